"""The skeleton against Algorithm 3 written out state by state, and against hand-made cases."""

import itertools
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.chains.chain import filled_counts, markov_chain
from verifier.language.expressions import parse_expression
from verifier.language.expressions.syntax import FALSE, TRUE, Name
from verifier.perception.confusion import EMPTY, ConfusionMatrices, rates
from verifier.systems.model import BoundedVariable
from verifier.systems.reader import read_model
from verifier.systems.scene import Scene, SkeletonOptions, _check_places, predicted_bytes, set_scene
from verifier.systems.settings import Limits
from verifier.systems.skeleton import build_skeleton, merged_transitions

PED, OBS = frozenset({"ped"}), frozenset({"obs"})

HALLWAY = """
initial = "x = 0"
terminal = "x = last"
admissible = "step <= 2 - x % 2"
[constants]
last = 3
width = 1
[variables]
x = { range = [0, "last"], next = "min(x + step, last)" }
[inputs]
step = { range = [0, 2] }
[labels]
half = "2 * x >= last"
[environments]
ped = [{ class = "ped", distance_m = "width * (last - x)" }]
pair = [{ class = "ped", distance_m = "last - x" }, { class = "obs", distance_m = 5 }]
empty = [{ class = "empty", distance_m = "last - x" }]
[planners.walker]
rules = [
    { when = "sees(ped)", set = { step = 0 } },
    { when = "sees(obs)", set = { step = 1 } },
    { when = "x % 2 = 0", set = { step = 2 } },
    { when = "true", set = { step = 1 } },
]
[planners.reckless]
rules = [{ when = "true", set = { step = 2 } }]
[planners.silent]
rules = [{ when = "sees(ped)", set = { step = 0 } }]
"""

COUNTS = np.array([[[5, 1, 1], [2, 4, 1], [3, 5, 8]], [[1, 0, 0], [1, 1, 0], [2, 1, 9]]], dtype=np.int64)


def by_distance(edges=(0, 2, 10), counts=COUNTS):
    return ConfusionMatrices("class", (PED, OBS, EMPTY), np.array(edges, dtype=float), counts)


@pytest.fixture
def hallway(tmp_path):
    path = tmp_path / "hallway.toml"
    path.write_text(HALLWAY)
    return read_model(path)


def chain_of(model, planner="walker", environment="ped", matrices=None, settings=None, **options):
    matrices = matrices or by_distance()
    system = model.instantiate(settings or {})
    skeleton = build_skeleton(system, system.planners[planner], environment, matrices, SkeletonOptions(**options))
    return markov_chain(skeleton, filled_counts(skeleton, matrices, "error"), {}, exact=True)


def rows_of(chain):
    """x -> {x': probability}."""
    x = chain.valuations["x"].tolist()
    return {
        x[s]: {x[chain.indices[k]]: chain.fractions[k] for k in range(chain.indptr[s], chain.indptr[s + 1])}
        for s in range(chain.state_count)
    }


def test_a_chain_small_enough_to_write_down(hallway):
    # x = 0 and 1 are 3 and 2 m away: the second bin, column ped: 1/4 ped, 1/4 obs, 2/4 nothing.
    # x = 2 is 1 m away: the first bin, 5/10, 2/10, 3/10; both obs and nothing lead to 3 from there (1 and 2 steps).
    assert rows_of(chain_of(hallway)) == {
        0: {0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(1, 2)},
        1: {1: Fraction(1, 4), 2: Fraction(3, 4)},
        2: {2: Fraction(1, 2), 3: Fraction(1, 2)},
        3: {3: 1},
    }


def test_impossible_reports_are_no_transitions(hallway):
    # Column empty of the second bin never reports anything: from 0 the only move is to 2, and 1 is never reached.
    # At x = 2 the first bin's column empty reports ped or obs one time in ten each.
    assert rows_of(chain_of(hallway, environment="empty")) == {
        0: {2: 1},
        1: {2: 1},
        2: {2: Fraction(1, 10), 3: Fraction(9, 10)},
        3: {3: 1},
    }


def test_terminal_states_absorb_unless_the_run_is_endless(tmp_path):
    path = tmp_path / "loop.toml"
    path.write_text(HALLWAY.replace("min(x + step, last)", "(x + step) % 4"))
    model = read_model(path)
    assert rows_of(chain_of(model))[3] == {3: 1}
    # Without its end the walker goes on from 3, 0 m away: stays (5/10), or one step on to 0 (7/10 - 2/10 + 3/10).
    assert rows_of(chain_of(model, endless=True))[3] == {3: Fraction(1, 2), 0: Fraction(1, 2)}


def test_initial_states_can_be_narrowed_but_not_to_nothing(hallway):
    with pytest.raises(UsageError, match="no state satisfies the initial condition"):
        chain_of(hallway, initial=parse_expression("x = 2"))


def test_a_step_out_of_what_is_admissible_is_named_where_it_is_reached(hallway):
    # From an odd x at most one step is admissible, and the reckless planner takes two; from 0 it meets even x only.
    assert rows_of(chain_of(hallway, "reckless")) == {0: {2: 1}, 2: {3: 1}, 3: {3: 1}}
    from_one = replace(hallway, initial=parse_expression("x = 1"))
    with pytest.raises(InputError, match=r"planner 'reckless' has no valid step in state x = 1 when the detector"):
        chain_of(from_one, "reckless")


def test_an_observation_without_a_rule_is_named(hallway):
    with pytest.raises(InputError, match=r"no rule applies in state x = 0 on report \{\}, and 'step' has no default"):
        chain_of(hallway, "silent")


def test_a_distance_beyond_the_bins_is_refused_and_an_overflow_bin_takes_it(hallway):
    with pytest.raises(InputError, match=r"in state x = 0 the ped is 30 m away, and the bins cover \[0, 10\) m"):
        chain_of(hallway, settings={"width": 10})
    chain_of(hallway, settings={"width": 10}, matrices=by_distance(edges=(0, 2, np.inf)))


def test_columns_without_items_are_refused_when_needed_and_only_then(hallway):
    counts = COUNTS.copy()
    counts[1, :, 1] = 0  # nobody has seen an obstacle in the second bin
    chain_of(hallway, matrices=by_distance(counts=counts))
    with pytest.raises(InputError, match=r"no items with true label obs in bin \[2, 10\) m, and the chain .* 'pair'"):
        chain_of(hallway, environment="pair", matrices=by_distance(counts=counts))


def test_a_column_is_not_needed_where_every_report_leads_to_the_same_state(hallway):
    # The reckless planner takes two steps whatever it is told: it needs no rates at all, and its chain is certain.
    nothing = by_distance(counts=np.zeros_like(COUNTS))
    assert rows_of(chain_of(hallway, "reckless", matrices=nothing)) == {0: {2: 1}, 2: {3: 1}, 3: {3: 1}}
    with pytest.raises(InputError, match="no items with true label ped"):
        chain_of(hallway, "walker", matrices=nothing)


def test_classes_that_the_detector_does_not_have_are_named(hallway):
    matrices = ConfusionMatrices("class", (PED, EMPTY), np.array([0.0, 10.0]), np.ones((1, 2, 2), dtype=np.int64))
    with pytest.raises(InputError, match="the matrices have no class 'obs'"):
        chain_of(hallway, matrices=matrices)


def test_explosion_is_refused(hallway):
    with pytest.raises(LimitError, match=r"more than 100 states are reachable \(stopped at depth 50; 2 new"):
        chain_of(hallway, settings={"last": 10**9}, limits=Limits(states=100))
    with pytest.raises(LimitError, match=r"needs about [\d.]+ KiB; the limit is 0\.9766 KiB"):
        chain_of(hallway, limits=Limits(memory_bytes=1000))
    # Four states are reached, each of 120 bytes, 20 for x, and 80 for each of three observations.
    chain_of(hallway, limits=Limits(memory_bytes=4 * (120 + 20 + 3 * 80)))
    with pytest.raises(LimitError, match="3 observations on 4 reachable states"):
        chain_of(hallway, limits=Limits(memory_bytes=4 * (120 + 20 + 3 * 80) - 1))


def test_predicted_memory_by_hand(hallway):
    # 4 states of 120 bytes and 20 for x. The walker chooses nothing; a transition for each of 5 observations takes 80
    # bytes, in each of 3 runs.
    system = hallway.instantiate({})
    walker = system.planners["walker"]
    assert predicted_bytes(system, walker, 5) == 4 * (140 + 80 * 5)
    assert predicted_bytes(system, walker, 5, 3) == 4 * 3 * (140 + 80 * 5)
    # With a second variable 8 states and 20 bytes more. Whoever looks at the 3 moves of each state takes 48 for each.
    wide = replace(system, variables=(*system.variables, BoundedVariable("y", 0, 1)))
    assert predicted_bytes(wide, walker, 5) == 8 * (160 + 80 * 5)
    maker = replace(walker, kind="synthesis")
    assert [predicted_bytes(wide, maker, told) for told in (1, 2)] == [8 * (160 + 48 * 3), 8 * (160 + 80 * 2)]


@pytest.mark.parametrize(
    ("kind", "starts", "limits", "refused"),
    [
        ("synthesis", 1, {"states": 4}, None),
        ("synthesis", 1, {"states": 3}, r"the model has 4 states \(x: 4\); the limit is 3"),
        ("synthesis", 1, {"memory_bytes": 4 * 380}, None),
        ("synthesis", 1, {"memory_bytes": 4 * 380 - 1}, "3 observations on 4 states needs about"),
        ("synthesis", 1, {"moves": 3}, None),
        ("synthesis", 1, {"moves": 2}, "would choose among 3 combinations of inputs; at most 2 are tried"),
        ("runs", 2, {"states": 8}, None),
        ("runs", 2, {"states": 7}, r"the model has 8 states \(x: 4 x runs: 2\); the limit is 7"),
        ("runs", 2, {"memory_bytes": 4 * 2 * 380}, None),
        ("runs", 2, {"memory_bytes": 4 * 2 * 380 - 1}, "3 observations on 8 states needs about"),
    ],
)
def test_planners_that_choose_are_refused_by_what_they_look_at(hallway, kind, starts, limits, refused, monkeypatch):
    # Each state takes 120 bytes, 20 for x, 80 for each of three observations, and each run that is followed the same.
    system = replace(hallway, initial=parse_expression(f"x < {starts}")).instantiate({})
    planner = replace(system.planners["walker"], kind=kind)
    limits = dict(limits)
    monkeypatch.setattr("verifier.systems.scene.LARGEST_INPUT_COUNT", limits.pop("moves", 10_000))
    given_ = system, planner, "ped", by_distance(), SkeletonOptions(limits=Limits(**limits))
    if refused is None:
        assert len(set_scene(*given_).starts) == starts
    else:
        with pytest.raises(LimitError, match=refused):
            set_scene(*given_)


@pytest.mark.parametrize(
    ("within", "view", "when", "comes"),
    [
        (False, None, (TRUE, TRUE), False),
        (True, None, (TRUE, TRUE), True),
        (False, (1, 5), (TRUE, TRUE), True),
        (False, None, (TRUE, Name("late")), True),
    ],
)
def test_what_can_be_reported_changes_with_a_view_a_condition_or_a_distance(within, view, when, comes):
    scene = SimpleNamespace(
        questions=SimpleNamespace(asks_within=within),
        system=SimpleNamespace(field_of_view_m=view),
        objects=[SimpleNamespace(when=condition) for condition in when],
    )
    assert Scene.comes_and_goes.fget(scene) is comes


@pytest.mark.parametrize(
    ("kind", "when", "view", "refused"),
    [
        ("empty", TRUE, (1, 5), True),
        ("empty", FALSE, (1, 5), False),
        ("empty", TRUE, None, False),
        ("ped", TRUE, (1, 5), False),
    ],
)
def test_an_empty_place_beside_a_field_of_view(hallway, kind, when, view, refused):
    system = replace(hallway.instantiate({}), field_of_view_m=view)
    places = (SimpleNamespace(class_name="ped", when=TRUE), SimpleNamespace(class_name=kind, when=when))
    with pytest.raises(InputError, match="the field of view draws") if refused else nullcontext():
        _check_places(system, "pair", places)


def test_where_runs_begin_and_what_is_kept_beside_them(hallway):
    skeleton = build_skeleton(hallway.instantiate({}), hallway.planners["walker"], "ped", by_distance())
    assert skeleton.beginnings(["x"]) == (({"x": 0}, {0: Fraction(1)}),)
    assert (skeleton.forgets, skeleton.table, skeleton.start_weights) == (False, "", None)
    values = skeleton.entry_values(rates(by_distance().counts))
    assert values.shape == (len(skeleton.entry_row) + 1,)
    assert values[-1] == 1


def test_rounding_that_leaves_a_state_without_transitions_is_refused(tmp_path):
    # 22 equally likely reports lead to 22 states: 1/22 = 0.045... is 0.0 with one decimal and 0.05 with two.
    names = [f"c{k}" for k in range(21)]
    rules = [f'{{ when = "sees({name})", set = {{ u = {k + 2} }} }},' for k, name in enumerate(names)]
    text = f"""
        initial = "x = 0"
        terminal = "x > 0"
        variables.x = {{ range = [0, 22], next = "u" }}
        inputs.u = {{ range = [0, 22] }}
        environments.one = [{{ class = "c0", distance_m = 0 }}]
        planners.teller.rules = [{"".join(rules)} {{ when = "true", set = {{ u = 1 }} }}]
        """
    path = tmp_path / "teller.toml"
    path.write_text(text)
    labels = (*(frozenset({name}) for name in names), EMPTY)
    matrices = ConfusionMatrices("class", labels, np.array([0.0, 1.0]), np.ones((1, 22, 22), dtype=np.int64))
    system = read_model(path).instantiate()
    skeleton = build_skeleton(system, system.planners["teller"], "one", matrices)
    assert markov_chain(skeleton, matrices.counts, {}, decimals=2).transition_count == 22 + 22
    with pytest.raises(UsageError, match="rounded to 1 decimals, every transition of some state is 0"):
        markov_chain(skeleton, matrices.counts, {}, decimals=1)


@pytest.mark.parametrize("at_once", [3, 2**15])
@pytest.mark.parametrize("width", [1, 2, 5, 61, 62, 63, 124, 125])
def test_observations_with_one_successor_are_one_transition(monkeypatch, width, at_once):
    monkeypatch.setattr("verifier.systems.skeleton._ROWS_AT_ONCE", at_once)
    generator = np.random.default_rng(width)
    following, ended = generator.integers(0, 3, (10, width)), np.arange(10) % 4 == 0
    following[1::3] = following[2]  # some rows are alike
    following[ended] = following[ended, :1]
    row_of_state = generator.integers(0, 2, 10)
    indptr, indices, entry, entry_row, observations = merged_transitions(following, row_of_state, ended)
    sums = [
        None if entry[k] == len(entry_row) else (entry_row[entry[k]], *np.flatnonzero(observations[entry[k]]))
        for k in range(len(entry))
    ]
    for row, targets in enumerate(following.tolist()):
        wanted = {
            target: None if ended[row] else (row_of_state[row], *(y for y in range(width) if targets[y] == target))
            for target in sorted(set(targets))
        }
        own = slice(*indptr[row : row + 2])
        assert list(zip(indices[own].tolist(), sums[own], strict=True)) == list(wanted.items())
    assert indptr[-1] == len(indices)
    assert len(entry_row) == len(observations) == len({each for each in sums if each is not None})


# Random small systems: two variables, one input, random rules.
ARITHMETIC = st.sampled_from(
    ["a", "b", "u", "1", "2", "a + b", "a - b", "a * 2", "max(a, b)", "(a + u) % 3", "3 - a"]
)
CONDITION = st.sampled_from(
    ["true", "a = b", "a < 2", "a + b > 2", "sees(ped)", "sees(obs)", "sees(ped) & a > 0", "!sees(obs) | b = 1"]
)


@st.composite
def systems(draw):
    names = {"a": 3, "b": draw(st.integers(1, 3))}
    rules = [
        {"when": draw(CONDITION), "u": draw(st.sampled_from(["0", "1", "a % 2", "b % 2"]))}
        for _ in range(draw(st.integers(0, 3)))
    ]
    rules.append({"when": "true", "u": "1"})
    steps = {name: draw(ARITHMETIC) for name in names}
    objects = draw(st.lists(st.tuples(st.sampled_from(["ped", "obs"]), st.integers(0, 9)), min_size=1, max_size=2))
    bins = draw(st.integers(1, 2))
    cells = bins * 9
    counts = np.array(draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells))).reshape(bins, 3, 3)
    counts[:, 2, :] += 1
    return names, rules, steps, objects, counts, draw(st.sampled_from(["false", "a = 2", "a = b"]))


def toml_of(system):
    names, rules, steps, objects, _, terminal = system
    lines = ['initial = "true"', f'terminal = "{terminal}"', "[variables]"]
    lines += [f'{n} = {{ range = [0, {top}], next = "min(max({steps[n]}, 0), {top})" }}' for n, top in names.items()]
    lines += ["[inputs]", "u = { range = [0, 1] }", "[environments]", "scene = ["]
    lines += [f'{{ class = "{name}", distance_m = "(a + {d}) % 10" }},' for name, d in objects]
    lines += ["]", "[planners.random]", "rules = ["]
    lines += [f'{{ when = "{rule["when"]}", set = {{ u = "{rule["u"]}" }} }},' for rule in rules]
    return "\n".join([*lines, "]"])


def evaluated(text, scope, seen):
    """An independent reading of the expressions above: Python's own, on one state at a time."""
    for name in ("ped", "obs"):
        text = text.replace(f"sees({name})", str(name in seen))
    text = text.replace(" = ", " == ").replace("!", " not ").replace("&", " and ").replace("|", " or ")
    return eval(text.replace("true", "True").replace("false", "False"), {"max": max, "min": min}, scope)


@given(systems())
def test_every_transition_is_algorithm_3s(tmp_path_factory, system):
    names, rules, steps, objects, counts, terminal = system
    path = tmp_path_factory.mktemp("systems") / "random.toml"
    path.write_text(toml_of(system))
    edges = np.linspace(0, 10, len(counts) + 1)
    chain = chain_of(read_model(path), "random", "scene", by_distance(edges, counts))
    labels = [{"ped"}, {"obs"}, set()]
    states = list(zip(chain.valuations["a"].tolist(), chain.valuations["b"].tolist(), strict=True))
    assert states == list(itertools.product(*(range(top + 1) for top in names.values())))
    for number, (a, b) in enumerate(states):
        expected = {}
        if evaluated(terminal, {"a": a, "b": b}, ()):
            expected[a, b] = Fraction(1)
        else:
            for reports in itertools.product(range(3), repeat=len(objects)):
                probability, seen = Fraction(1), set()
                for report, (name, d) in zip(reports, objects, strict=True):
                    table = counts[sum((a + d) % 10 >= edge for edge in edges[1:])]
                    column = table[:, ["ped", "obs"].index(name)].tolist()
                    probability *= Fraction(column[report], sum(column))
                    seen |= labels[report]
                rule = next(r for r in rules if evaluated(r["when"], {"a": a, "b": b}, seen))
                scope = {"a": a, "b": b, "u": evaluated(rule["u"], {"a": a, "b": b}, seen)}
                nxt = tuple(min(max(evaluated(steps[n], scope, seen), 0), top) for n, top in names.items())
                expected[nxt] = expected.get(nxt, 0) + probability
        span = range(chain.indptr[number], chain.indptr[number + 1])
        found = {states[chain.indices[k]]: chain.fractions[k] for k in span}
        assert found == {key: value for key, value in expected.items() if value}


@given(systems(), st.integers(1, 4))
def test_filling_a_batch_is_filling_each(tmp_path_factory, system, copies):
    path = tmp_path_factory.mktemp("systems") / "random.toml"
    path.write_text(toml_of(system))
    counts = system[4]
    matrices = by_distance(np.linspace(0, 10, len(counts) + 1), counts)
    ground = read_model(path).instantiate()
    skeleton = build_skeleton(ground, ground.planners["random"], "scene", matrices)
    batch = np.stack([counts + k for k in range(copies)])
    together = skeleton.fill(rates(batch))
    assert together.shape == (copies, len(skeleton.indices))
    for k in range(copies):
        assert np.array_equal(together[k], skeleton.fill(rates(batch[k])))
        sums = np.add.reduceat(together[k], skeleton.indptr[:-1])
        assert np.allclose(sums, 1, rtol=1e-14)
