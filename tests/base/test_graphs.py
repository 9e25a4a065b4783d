"""Searches in graphs against networkx, in Python and in compiled code."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base import graphs
from verifier.base.errors import LimitError


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


@pytest.fixture(params=[0, 300], ids=["compiled", "in Python"], autouse=True)
def few(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "FEW", request.param)
        yield


@given(graph_and_sources())
def test_reachable_nodes_and_their_distances(case):
    n, edges, sources = case
    expected = nx.multi_source_dijkstra_path_length(as_networkx(n, edges), set(np.flatnonzero(sources).tolist())) if (
        sources.any()
    ) else {}  # fmt: skip
    found = graphs.distances(n, *columns(edges), sources)
    assert found.tolist() == [expected.get(node, -1) for node in range(n)]
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
    assert graphs.on_cycle(n, *columns(edges)).tolist() == [k in cyclic for k in range(n)]
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


def test_edges_in_rows_stand_once_each():
    starts, targets = graphs.rows(3, *columns([(2, 1), (0, 2), (2, 0), (2, 1)]))
    assert (starts.tolist(), targets.tolist()) == ([0, 1, 1, 3], [2, 0, 1])


def test_more_moves_than_the_searches_number_are_refused(monkeypatch):
    monkeypatch.setattr(graphs, "FEW", 0)
    monkeypatch.setattr(graphs, "_MOST_EDGES", 3)
    edges = columns([(0, 1), (1, 0)])
    assert graphs.reachable(2, *edges, np.array([True, False])).all()
    with pytest.raises(LimitError, match=r"has 4 moves between its states; at most 3 can be searched"):
        graphs.reachable(2, *edges, np.array([True, True]))  # a move to each state where the search begins, too
