"""Searches in graphs, in both places that have them, against networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import LimitError
from verifier.checking import graphs
from verifier.systems import reachability


@st.composite
def graph_and_sources(draw):
    n = draw(st.integers(1, 12))
    nodes = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(nodes, nodes), max_size=30))
    return n, edges, np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))


def as_networkx(n, edges):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edges)
    return graph


def columns(edges):
    return np.array([s for s, _ in edges], dtype=np.int64), np.array([t for _, t in edges], dtype=np.int64)


@given(graph_and_sources())
def test_reachable_nodes_and_their_distances(case):
    n, edges, sources = case
    expected = nx.multi_source_dijkstra_path_length(as_networkx(n, edges), set(np.flatnonzero(sources).tolist())) if (
        sources.any()
    ) else {}  # fmt: skip
    rows = reachability.rows(n, *columns(edges))
    assert reachability.distances(*rows, sources).tolist() == [expected.get(node, -1) for node in range(n)]
    assert reachability.reachable(*rows, sources).tolist() == [node in expected for node in range(n)]
    assert graphs.reachable(n, *columns(edges), sources).tolist() == [node in expected for node in range(n)]


@given(graph_and_sources())
def test_nodes_from_which_a_goal_is_reached(case):
    n, edges, goal = case
    graph = as_networkx(n, edges)
    expected = set(np.flatnonzero(goal).tolist())
    expected |= {a for b in list(expected) for a in nx.ancestors(graph, b)}
    assert graphs.coreachable(n, *columns(edges), goal).tolist() == [node in expected for node in range(n)]


@given(graph_and_sources())
def test_cycles_and_components(case):
    n, edges, _ = case
    graph = as_networkx(n, edges)
    components = list(nx.strongly_connected_components(graph))
    cyclic = {node for part in components for node in part if len(part) > 1 or graph.has_edge(node, node)}
    assert reachability.on_cycle(*reachability.rows(n, *columns(edges))).tolist() == [k in cyclic for k in range(n)]
    found = graphs.components(n, *columns(edges))
    assert {frozenset(np.flatnonzero(found == k).tolist()) for k in set(found.tolist())} == set(
        map(frozenset, components)
    )


@given(graph_and_sources())
def test_levels_are_longest_paths(case):
    n, edges, _ = case
    forward = [(s, t) for s, t in edges if s < t]
    graph = as_networkx(n, forward)
    expected = [0] * n
    for node in reversed(list(nx.topological_sort(graph))):
        expected[node] = max((1 + expected[t] for t in graph.successors(node)), default=0)
    assert graphs.levels(n, *columns(forward), max_levels=n).tolist() == expected


@pytest.mark.parametrize(
    ("n", "edges", "most", "expected"),
    [
        (3, [(0, 1), (1, 2)], 3, [2, 1, 0]),
        (3, [(0, 1), (1, 2)], 2, None),
        (2, [(0, 1), (1, 0)], 9, None),
        (3, [(0, 1), (1, 0)], 9, None),  # beside the cycle
        (4, [(0, 1), (1, 2), (2, 1), (2, 3)], 9, None),  # after one
        # Of 20 or 21 nodes two in the first two levels, the others in a third: at most 5 are foreseen or not.
        (20, [(1, 0), *((k, 1) for k in range(2, 20))], 5, [0, 1, *[2] * 18]),
        (21, [(1, 0), *((k, 1) for k in range(2, 21))], 5, None),
    ],
)
def test_levels_by_hand_and_too_many(n, edges, most, expected, monkeypatch):
    monkeypatch.setattr(graphs, "_ROUNDS", 2)
    levels = graphs.levels(n, *columns(edges), max_levels=most)
    assert (None if levels is None else levels.tolist()) == expected


def test_more_moves_than_the_searches_number_are_refused(monkeypatch):
    reachability._refuse_too_many(2**31 - 1)
    with pytest.raises(LimitError, match=r"has 2147483648 moves between its states; at most 2147483647 can be"):
        reachability._refuse_too_many(2**31)
    monkeypatch.setattr(reachability, "_MOST_EDGES", 3)
    rows = reachability.rows(2, *columns([(0, 1), (1, 0)]))
    assert reachability.reachable(*rows, np.array([True, False])).all()
    with pytest.raises(LimitError, match="has 4 moves"):  # a move to each state where the search begins, too
        reachability.reachable(*rows, np.array([True, True]))
