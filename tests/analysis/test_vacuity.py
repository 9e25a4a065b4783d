"""What is settled before anybody looks: against the definition on every short path of small random systems."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from exact_oracle import holds_on_lasso
from formula_strategies import formulas
from hypothesis import given
from hypothesis import strategies as st
from random_ltl import F, G, X, neg, op, temporal

from verifier.analysis import vacuity
from verifier.analysis.vacuity import find_vacuity
from verifier.chains.chain import markov_chain
from verifier.checking.batch import satisfaction_probabilities
from verifier.checking.product import build_product
from verifier.checking.two_engines import abstracted
from verifier.language.expressions import substitute
from verifier.language.expressions.syntax import Name
from verifier.language.ltl import parse_formula
from verifier.perception.confusion import ConfusionMatrices
from verifier.systems.reader import read_model
from verifier.systems.skeleton import build_skeleton

EMPTY, PED = frozenset(), frozenset({"ped"})
COUNTS = np.array([[[3, 1], [1, 2]]])
MATRICES = ConfusionMatrices("class", (PED, EMPTY), np.array([0.0, 10.0]), COUNTS)
STATES = range(4)
LONGEST = 4
"""States on a path before it repeats."""


def system_text(table, labels, terminal):
    """A system of four states in which a table says where the planner goes: [state][pedestrian seen or not]."""

    def among(states):
        return " | ".join(f"s = {state}" for state in sorted(states)) or "s < 0"

    rules = [
        f'{{ when = "s = {state}{told}", set = {{ to = {target} }} }}'
        for state, targets in enumerate(table)
        for told, target in zip((" & sees(ped)", ""), targets, strict=True)
    ]
    conditions = "\n".join(f'{name} = "{among(states)}"' for name, states in labels.items())
    return f"""
initial = "true"
terminal = "{among(terminal)}"
[variables]
s = {{ range = [0, 3], next = "to" }}
[inputs]
to = {{ range = [0, 3] }}
[labels]
{conditions}
[environments]
there = [{{ class = "ped", distance_m = "1" }}]
none = [{{ class = "empty", distance_m = "1" }}]
[planners.table]
rules = [{", ".join(rules)}]
"""


def skeleton_of(folder, text, environment, planner="table"):
    path = folder / "model.toml"
    path.write_text(text)
    system = read_model(path).instantiate()
    return build_skeleton(system, system.planners[planner], environment, MATRICES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vacuity")


def reached(table, terminal, start):
    """By hand: the states that a state reaches whatever is seen; a terminal one stays."""
    found, new = set(), {start}
    while new:
        found |= new
        new = {t for s in new for t in ({s} if s in terminal else set(table[s]))} - found
    return found


def outcomes(formula, first, letters):
    """Truth on every word `first`, l1, l2, ... over some letters, of at most `LONGEST` letters, that then repeats."""
    found = set()
    for length in range(1, LONGEST + 1):
        for rest in itertools.product(letters, repeat=length - 1):
            word = [first, *rest]
            found |= {holds_on_lasso(formula, word[:back], word[back:]) for back in range(length)}
            if len(found) == 2:
                return found
    return found


tables = st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 4)
sets = st.frozensets(st.integers(0, 3))
some = st.frozensets(st.integers(0, 3), max_size=1)
everywhere = st.sampled_from([frozenset(), frozenset(STATES)])
systems = st.tuples(tables, st.fixed_dictionaries({"a": sets | some, "b": sets | everywhere}), some)


@given(systems, formulas("abc", 3), st.booleans())
def test_what_is_vacuous_is_settled_on_every_path_and_for_every_planner(folder, system, formula, there):
    table, labels, terminal = system
    formula = substitute(formula, {"c": Name("ped")})
    skeleton = skeleton_of(folder, system_text(table, labels, terminal), "there" if there else "none")
    (found,) = find_vacuity(skeleton, [formula])
    present = frozenset({"ped"} if there else ())
    letters = [present | {name for name, states in labels.items() if s in states} for s in STATES]
    probabilities = probabilities_of(skeleton, formula)
    for start, why in enumerate(found.vacuity):
        assert len(why) <= 1  # one reason is enough
        assert (start in terminal) == bool(why and why[0].kind == "ended")
        if why:
            # By `antecedent` the planner keeps to what it reaches; by the others it may go anywhere.
            states = {"ended": {start}, "antecedent": reached(table, terminal, start)}.get(why[0].kind, STATES)
            truth = outcomes(formula, letters[start], {letters[s] for s in states})
            assert len(truth) == 1
            assert probabilities[start] == truth.pop()  # 0 or 1, without rounding


def probabilities_of(skeleton, formula):
    """From each initial state, by the second engine: what the graph decides is 0 or 1 exactly."""
    (abstract,) = abstracted([formula])
    labels = {name: skeleton.mask_of(node) for name, node in abstract.propositions.items()}
    chain = markov_chain(skeleton, COUNTS, labels)
    product = build_product(chain.indptr, chain.indices, chain.labels, abstract.formula, chain.initial)
    return satisfaction_probabilities(product, chain.probabilities).probability[0].tolist()


LETTERS = [frozenset(name for k, name in enumerate("abcd") if bits >> k & 1) for bits in range(16)]


@st.composite
def read_once(draw, names):
    """A formula in which every name of a list occurs at most once."""
    if len(names) == 1:
        leaf = Name(names[0])
        wrap = draw(st.sampled_from(["", "!", "X", "F", "G", "F[0,2]", "G[1,2]"]))
        if wrap in ("", "!"):
            return leaf if not wrap else neg(leaf)
        return parse_formula(f"{wrap} {names[0]}")
    cut = draw(st.integers(1, len(names) - 1))
    operator = draw(st.sampled_from(["&", "|", "->", "U", "R", "W", "M", "U[1,2]", "R[2,3]", "U[0,0]"]))
    left, right = draw(read_once(names[:cut])), draw(read_once(names[cut:]))
    if operator in ("&", "|", "->"):
        return op(operator, left, right)
    within = (int(operator[2]), int(operator[4])) if len(operator) > 2 else None
    whole = temporal(operator[0], left, right, within=within)
    return draw(st.sampled_from([whole, whole, F(whole), G(whole), X(whole)]))


@given(read_once(["a", "ped", "b"]) | read_once(["ped", "a"]) | read_once(["a", "b"]), st.booleans(), st.data())
def test_where_no_name_occurs_twice_nothing_is_missed(folder, formula, there, data):
    """A formula whose conditions are independent of each other is settled if and only if its truth is."""
    labels = {"a": {0, 1}, "b": {0, 2}}  # all four combinations, and the planner reaches each from each
    text = system_text([(1, 2), (2, 3), (3, 0), (0, 1)], labels, ())
    skeleton = skeleton_of(folder, text, "there" if there else "none")
    present = frozenset({"ped"} if there else ())
    letters = [present | {name for name, states in labels.items() if s in states} for s in STATES]
    (found,) = find_vacuity(skeleton, [formula])
    start = data.draw(st.sampled_from(STATES))
    settled = len(outcomes(formula, letters[start], letters)) == 1
    assert bool(found.vacuity[start]) == settled
    if settled:
        assert found.vacuity[start][0].kind == "trivial"


CONDITIONALS = {
    "G (a -> F b)": ({"a"}, {"b"}),
    "G (!a | X b)": ({"a"}, {"b"}),
    "G (a -> b)": ({"a"}, {"b"}),
    "(F a) -> G b": ({"a"}, {"b"}),
    "G (a -> (b -> F c))": ({"a", "b"}, {"c"}),
}


@given(systems, sets, st.sampled_from(sorted(CONDITIONALS)))
def test_a_conditional_that_is_never_tested_by_hand(folder, system, third, text):
    table, labels, _ = system
    labels = labels | {"c": third}
    antecedents, (consequent,) = CONDITIONALS[text]
    skeleton = skeleton_of(folder, system_text(table, labels, ()), "there")
    (found,) = find_vacuity(skeleton, [parse_formula(text)])
    for start, why in enumerate(found.vacuity):
        somewhere = [bool(labels[name] & reached(table, (), start)) for name in sorted(antecedents)]
        # What follows can be true somewhere, else the antecedent is forbidden; and it can be false, else all is said.
        if labels[consequent] in (frozenset(), frozenset(STATES)) or any(not labels[name] for name in antecedents):
            continue
        if text == "G (a -> b)" and labels["a"] <= labels["b"]:
            assert [reason.kind for reason in why] == ["constant"]  # true of every state there could be
            continue
        assert bool(why and why[0].kind == "antecedent") == (not all(somewhere))


def test_what_is_forbidden_is_no_antecedent_and_a_class_settles(folder):
    text = system_text([(1, 1)] * 4, {"bad": {3}, "good": {1}, "late": {2}}, ())
    skeleton = skeleton_of(folder, text, "none")

    def kinds(formula, start=0):
        (found,) = find_vacuity(skeleton, [parse_formula(formula)])
        return [why.kind for why in found.vacuity[start]]

    # State 1 is all that is reached from 0; bad is never true there. By hand:
    for kept in ("G !bad", "G (bad -> false)", "G (bad -> ped)", "G (bad -> !empty)", "G (good | !bad)", "!F bad"):
        assert kinds(kept) == [], kept
    for never in ("G (bad -> X good)", "G (bad -> late)", "G (!bad | F late)", "(F bad) -> (F late)"):
        assert kinds(never) == ["antecedent"], never
    assert kinds("G (bad -> F ped)") == []  # nobody stands there: bad is forbidden
    assert kinds("G (ped -> F bad)") == ["trivial"]
    assert kinds("G (bad -> X good) & F good") == []  # the other part says something
    assert kinds("G (bad -> X good)", start=3) == []


HOLDS, FAILS = "the requirement holds on every path", "the requirement fails on every path"
NEVER = f"never holds from this initial state on: {HOLDS} without being tested"


@pytest.mark.parametrize(
    ("environment", "formula", "start", "kind", "text"),
    [
        ("there", "G (empty -> bad)", 0, "trivial", f"empty is false in environment there: {HOLDS}"),
        ("none", "G (empty & !ped)", 0, "trivial", f"empty is true and ped is false in environment none: {HOLDS}"),
        ("none", "F (ped & bad)", 0, "trivial", f"ped is false in environment none: {FAILS}"),
        ("none", "true | F bad", 0, "trivial", f"by its form alone: {HOLDS}"),
        ("there", "good & ped", 0, "trivial", f"decided in the initial state itself: {FAILS} from there"),
        ("there", "good U bad", 3, "trivial", f"decided in the initial state itself: {HOLDS} from there"),
        ("there", "X s < 4", 0, "constant", f"'s < 4' is true for all values in range: {HOLDS}"),
        (
            *("there", "F (s > 3 | s < 0)", 0, "constant"),
            f"'s > 3' is false and 's < 0' is false for all values in range: {FAILS}",
        ),
        ("there", "G (bad -> X good)", 0, "antecedent", f"'bad' {NEVER}"),
        ("there", "G (X bad | most)", 0, "antecedent", f"'!most' {NEVER}"),
        ("there", "G (X good | !bad)", 0, "antecedent", f"'bad' {NEVER}"),
        ("there", "(!(F good)) -> F bad", 0, None, ""),
        ("there", "(G (bad -> X good)) & (G (late -> X bad))", 0, "antecedent", f"'bad' and 'late' {NEVER}"),
        ("there", "(G (bad -> X good)) & (G (late -> X bad))", 2, None, ""),
        ("there", "G s > 0", 1, None, ""),  # true for all values but the first
        ("there", "F 6 / (s - 3) > 9", 0, None, ""),  # not defined for all values in range
    ],
)
def test_why_by_hand(folder, environment, formula, start, kind, text, monkeypatch):
    """Every state leads to state 1; where ranges are looked at, three values at a time."""
    monkeypatch.setattr(vacuity, "AT_ONCE", 3)
    labels = {"bad": {3}, "good": {1}, "late": {2}, "most": {0, 1}}
    model = system_text([(1, 1)] * 4, labels, ()).replace('initial = "true"', f'initial = "s = {start}"')
    skeleton, node = skeleton_of(folder, model, environment), parse_formula(formula)
    (found,) = find_vacuity(skeleton, [node])
    search, conditions = vacuity._Search(skeleton), frozenset(vacuity.abstract(node)[1].values())
    values = [vacuity._Settling(search, node, conditions, level)._value for level in vacuity._Facts]
    assert np.abs([*np.ravel(values), *search.always(node)]).max() <= 1  # true, false or open
    assert [(why.kind, why.text) for why in found.vacuity[0]] == ([] if kind is None else [(kind, text)])


def test_what_is_constant_but_decides_nothing_is_noted(folder):
    text = system_text([(1, 1)] * 4, {"bad": {3}, "good": {1, 0}}, ())
    path = folder / "narrow.toml"
    path.write_text(text.replace('initial = "true"', 'initial = "s = 0"'))
    system = read_model(path).instantiate()
    skeleton = build_skeleton(system, system.planners["table"], "there", MATRICES)
    formulas_here = ["G (bad -> X good) & X ped & F (good & s = 1)", "G !bad", "ped | F good", "G s <= 3 & F s = 1"]
    found = find_vacuity(skeleton, [parse_formula(formula) for formula in formulas_here])
    assert found[0].notes == (
        "'bad' holds in no reachable state, so what should follow it is never tested",
        "'good' is true in every reachable state",
    )
    assert found[1].notes == ("'!bad' is true in every reachable state",)
    assert [each.notes for each in found[2:]] == [(), ()]  # vacuous; and true by its range, which is no news
    assert [each.vacuity for each in found] == [((),), ((),), found[2].vacuity, ((),)]
    assert found[2].vacuity[0][0].text == "ped is true in environment there: the requirement holds on every path"


def test_notes_are_told_where_a_requirement_says_something_from_some_start(folder):
    """From state 0 bad never holds, from 3 it does; late holds in 0, 1 and 3, which are all that is reached."""
    text = system_text([(1, 1)] * 4, {"bad": {3}, "late": {0, 1, 3}}, ())
    skeleton = skeleton_of(folder, text.replace('initial = "true"', 'initial = "s = 0 | s = 3"'), "there")
    (found,) = find_vacuity(skeleton, [parse_formula("G (bad -> X late)")])
    assert [[(why.kind, why.text) for why in each] for each in found.vacuity] == [
        [("antecedent", f"'bad' {NEVER}")],
        [],
    ]
    assert found.notes == ("'late' is true in every reachable state",)
    # Whatever is bad is late, which ranges say of both starts.
    (found,) = find_vacuity(skeleton, [parse_formula("G (bad -> late)")])
    assert [[why.kind for why in each] for each in found.vacuity] == [["constant"], ["constant"]]


def test_notes_of_a_system_with_one_state(folder):
    text = system_text([(1, 1)] * 4, {"bad": {3}}, ()).replace('initial = "true"', 'initial = "s = 1"')
    skeleton = skeleton_of(folder, text, "there")
    assert skeleton.state_count == 1
    found = find_vacuity(skeleton, [parse_formula("G !bad"), parse_formula("F bad")])
    assert [each.notes for each in found] == [
        ("'!bad' is true in every reachable state",),
        ("'bad' is false in every reachable state",),
    ]


LINE = """
initial = "true"
terminal = "x = 999"
[variables]
x = { range = [0, 999], next = "min(x + dx, 999)" }
y = { range = [0, 99], next = "min(y + 1, 99)" }
[inputs]
dx = { range = [0, 2] }
[environments]
there = [{ class = "ped", distance_m = "1" }]
[planners.table]
rules = [{ when = "sees(ped)", set = { dx = 1 } }, { when = "true", set = { dx = 2 } }]
"""


def test_what_it_costs_does_not_grow_with_the_initial_states(folder, monkeypatch):
    """One search for each antecedent, whatever the number of initial states (here 100,000); few states looked at."""
    skeleton = skeleton_of(folder, LINE, "there")
    searches, looked_at = [], []
    search, look = vacuity.coreachable, vacuity.truth
    monkeypatch.setattr(vacuity, "coreachable", lambda *given: searches.append(1) or search(*given))
    monkeypatch.setattr(
        vacuity, "truth", lambda node, values, count: looked_at.append(count) or look(node, values, count)
    )
    texts = ["G (x = 3 & y = 40 -> F x = 999)", "G (x = 3 & y = 40 -> X x > y)", "G (!(x = 5 & y = 7) | F y = 99)"]
    found = find_vacuity(skeleton, [parse_formula(text) for text in texts])
    assert len(skeleton.starts) == 100_000
    assert len(searches) == 2  # the first two ask about the same condition
    # From x = 4 on nobody comes back to x = 3; (3, 40) comes from (2, 39) and (1, 39) and so on.
    x, y = (skeleton.valuations[name][skeleton.starts].tolist() for name in "xy")
    where = dict(zip(zip(x, y, strict=True), found[0].vacuity, strict=True))
    assert where[4, 0][0].kind == "antecedent"
    assert where[2, 39] == () == where[3, 40]
    assert where[2, 38][0].kind == "antecedent"
    # Each distinct condition once at the starts; its range by the variables it names, refuted by the first part.
    conditions = 9
    assert sum(looked_at) <= conditions * (len(skeleton.starts) + vacuity.AT_ONCE) + 3 * vacuity.AT_ONCE
