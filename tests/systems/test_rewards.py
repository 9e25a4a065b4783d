"""What steps gain: rewards over state and inputs, by what is reported; weights of scenarios; states that ended."""

from __future__ import annotations

import csv
import json
import math
import re
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from matrix_documents import document_of
from plain_gains import gained, reaching
from small_objectives import channel_of, objective_of

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.documents import json_values, read_document
from verifier.base.errors import InputError, UsageError
from verifier.checking.settings import EngineSettings
from verifier.evidence.consistency import read_document as read_result
from verifier.evidence.report import csv_report, markdown_report
from verifier.pipeline import verify_spec
from verifier.study.case import Study
from verifier.study.inputs import read_inputs
from verifier.study.options import RunOptions, Selection
from verifier.study.results import RunResult
from verifier.systems.rewards import Gains, gains_of

MODEL = """
name = "approach"
step_s = 0.5
initial = "x = 0"
terminal = "x = 3"

[variables]
x = { range = [0, 3], next = "min(x + go, 3)" }

[inputs]
go = { range = [0, 2] }

[labels]
close = "x >= 2"

[rewards]
waiting = "ite(go = 0, 1, 0)"
power = "0.1 * go * go"
far = "ite(close, 0, 1)"

[environments]
ped = [{ class = "ped", distance_m = "5" }]

[environments.nobody]
objects = [{ class = "empty", distance_m = "5" }]
weight = 3

[planners.careful]
rules = [
    { when = "sees(ped) & x < 2", set = { go = 0 } },
    { when = "x >= 2", set = { go = 1 } },
    { when = "true", set = { go = 2 } },
]
"""
# A pedestrian is seen with 3/4, and where there is none with 1/10.
MATRICES = document_of([[300, 10], [100, 90]])
SPEC = """model "model.toml"
time:    T = ? [ F ended ]
soon:    T{0.5} = ? [ F ended ]
waiting: R{waiting} <= 3 [ F ended ]
power:   R{power} = ? [ F ended ]
first:   R{waiting} = ? [ C<=2 ]
second:  R{waiting} = ? [ C<=1s ]
through: P = ? [ F<=1s x = 3 ]
far:     R{far} = ? [ F close ]
both:    P = ? [ F<=2 close given X close ]
fleet:   T = ? over profile [ F ended ]
never:   T <= 100 [ F (x = 1) ]
"""
DRAWN = RunOptions(confidence=ConfidenceSettings(draws=1000))
EXACT = RunOptions(confidence=None, engines=EngineSettings(exact=True))


def written(folder, spec=SPEC, model=MODEL, matrices=MATRICES):
    for name, text in (("model.toml", model), ("spec.ltl", spec), ("cm.json", json.dumps(matrices))):
        (folder / name).write_text(text)
    return folder / "spec.ltl", folder / "cm.json"


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The JSON of a run."""
    return verify_spec(*written(tmp_path_factory.mktemp("run")), RunOptions(confidence=None)).json_text()


@pytest.fixture
def files(tmp_path):
    return partial(written, tmp_path)


def numbers(run):
    """(requirement, environment) -> exact value."""
    return {(each.name, point.environment): point.exact for each in run.requirements for point in each.points}


def test_hand_solved(files):
    # Away from x = 0 with q = 1/4 (9/10 where nobody is), to 2 in one step; from there a step to 3. So T is
    # (1/q + 1)/2 s: 5/2 s and 19/18 s. Waiting (1 - q)/q steps: 3 and 1/9. Power 0.4 once and 0.1 once.
    # T{0.5}: k + 1 steps with 1 - (3/4)^k, and 1 - 27/64 >= 1/2 for k = 3, so 2 s; with 9/10 one step and one more.
    run = verify_spec(*files(), EXACT)
    found = numbers(run)
    for name, ped, nobody in (
        ("time", "5/2", "19/18"),
        ("soon", "2", "1"),
        ("waiting", "3", "1/9"),
        ("power", "1/2", "1/2"),
        ("first", "21/16", "11/100"),  # 3/4 + 9/16, 1/10 + 1/100
        ("second", "21/16", "11/100"),
        ("through", "1/4", "9/10"),
        ("far", "4", "10/9"),
        ("both", "1", "1"),
        ("fleet", "5/2", "19/18"),
    ):
        assert (found[name, "ped"], found[name, "nobody"]) == (Fraction(ped), Fraction(nobody)), name
    results = {each.name: each for each in run.requirements}
    assert results["waiting"].verdict.value == "satisfied"
    assert results["fleet"].weights == (Fraction(1, 4), Fraction(3, 4))
    (mean,) = results["fleet"].means
    assert mean.exact == Fraction(5, 2) / 4 + Fraction(19, 18) * 3 / 4
    never = results["never"]
    assert [point.probability for point in never.points] == [math.inf] * 2
    assert never.verdict.value == "violated"
    assert "never: 'F (x = 1)' has probability 0 < 1; ask P, or R given" in run.remarks
    assert [(each.asked, each.unit) for each in results.values()][:4] == [
        ("T", "s"),
        ("T{0.5}", "s"),
        ("R{waiting}", ""),
        ("R{power}", ""),
    ]


def test_min_and_max_are_equal_on_a_chain(files):
    spec = 'model "model.toml"\nenvironments ped\n' + "".join(
        f"q{number}: {asked}\n"
        for number, asked in enumerate(
            f"{quantity}{end}{inner} = ? [ F ended ]"
            for quantity, inner, formula in (
                ("P", "", "F<=3 close"),
                ("R", "{waiting}", "F ended"),
                ("T", "", "F ended"),
            )
            for end in ("", "min", "max")
        )
    )
    run = verify_spec(*files(spec), EXACT)
    found = [each.points[0].exact for each in run.requirements]
    assert len(set(found[:3])) == len(set(found[3:6])) == len(set(found[6:])) == 1
    assert [each.asked for each in run.requirements[:5]] == ["P", "Pmin", "Pmax", "R{waiting}", "Rmin{waiting}"]


def test_draws_give_intervals_and_verdicts(files, tmp_path):
    run = verify_spec(*files(), DRAWN)
    results = {each.name: each for each in run.requirements}
    time = results["time"].points[0].uncertainty
    # The posterior of q is Beta(100.5, 300.5), T = (1/q + 1)/2 falls in it.
    from scipy.stats import beta

    low, high = (0.5 / beta.ppf(share, 100.5, 300.5) + 0.5 for share in (0.975, 0.025))
    assert time.interval.lower_range[0] <= low <= time.interval.lower_range[1]
    assert time.interval.upper_range[0] <= high <= time.interval.upper_range[1]
    assert time.confidence_bounds is None
    assert results["waiting"].verdict.value == "inconclusive"
    assert results["never"].condition == "if items are independent"
    assert results["through"].points[0].uncertainty.confidence_bounds is not None
    (mean,) = results["fleet"].means
    assert mean.interval.lower < mean.probability < mean.interval.upper
    # The mean is a row beside those of its scenarios, alone among the metrics, and stands in reports.
    *scenarios, row = (row for row in run.rows() if row["requirement"] == "fleet")
    assert {row["environment"] for row in scenarios} == {"ped", "nobody"}
    assert (row["asked"], row["environment"], row["initial_x"], row["bounds_upper"]) == ("T over profile", "", "", "")
    ends = (mean.probability, mean.interval.lower, mean.interval.upper)
    assert (row["probability"], row["interval_lower"], row["interval_upper"]) == ends
    assert len({tuple(row) for row in run.rows()}) == 1
    metrics = {name.rpartition("/")[2]: value for name, value in run.metrics().items() if name.startswith("fleet/")}
    assert (metrics["probability"], metrics["interval_lower"], metrics["interval_upper"]) == ends
    (tmp_path / "run.json").write_text(run.json_text())
    documents = [read_result(tmp_path / "run.json")]
    table = csv.DictReader(csv_report(documents).splitlines())
    (row,) = (row for row in table if row["asked"] == "T over profile")
    assert (float(row["probability"]), float(row["interval_lower"]), float(row["interval_upper"])) == ends
    page = markdown_report(documents).replace("\\", "")
    assert re.search(r"Over the profile it is \S+ s \(interval \[1\.\d+, 1\.\d+\]\)\.", page)
    assert re.search(r"\| T = \? over profile \| \S+ s \| \[1\.\d+, 1\.\d+\] \| none \| profile \|", page)
    assert any(
        remark.startswith("no confidence bounds over all matrices for time (T = ?), soon") for remark in run.remarks
    )


def test_documents_say_what_is_asked(files):
    run = verify_spec(*files(), RunOptions(confidence=None))
    content = json_values(run)
    again = read_document(RunResult, json.loads(json.dumps(content, allow_nan=False)), "run.json")
    assert again == run
    never = next(each for each in content["requirements"] if each["name"] == "never")
    assert never["asked"] == "T"
    assert never["points"][0]["probability"] == "inf"
    assert never["target"] == {"comparison": "<=", "probability": "100"}
    rows = {row["requirement"]: row for row in run.rows()}
    assert (rows["time"]["asked"], rows["time"]["unit"], rows["power"]["unit"]) == ("T", "s", "")


def test_many_matrices_are_taken_in_parts(files, monkeypatch):
    from verifier.analysis import objective as quantities

    study = Study.of(read_inputs(*files(), EXACT), EXACT)
    seen = np.array([0.75, 0.5, 0.125])
    rates = np.stack([np.array([[[q, 0.1], [1 - q, 0.9]]]) for q in seen])
    ped, _ = study.cases
    names = [each.name for each in study.requirements]
    asked = dict(zip(names, ped.objectives, strict=True))
    found = {name: each.probabilities(rates).probability[:, 0] for name, each in asked.items()}
    assert found["time"] == pytest.approx(0.5 / (1 - seen) + 0.5)
    assert found["soon"].tolist() == [2, 1, 1]
    assert found["first"] == pytest.approx(seen + seen**2)
    assert found["never"].tolist() == [math.inf] * 3
    monkeypatch.setattr(quantities, "_NUMBERS_AT_ONCE", 1)
    for name, each in asked.items():
        assert np.array_equal(each.probabilities(rates).probability[:, 0], found[name])


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        (
            "fleet",
            "means",
            [{"constants": {}, "probability": 1.0, "lower": 1.0, "upper": 1.0}],
            "the mean of the points",
        ),
        ("fleet", "weights", ["3/4", "1/4"], "the mean of the points by their weights"),
        ("fleet", "weights", ["1/4", "1/4"], "expected weights that add up to 1"),
        ("fleet", "weights", ["1/4"], "expected one entry per point beside means"),
        ("never", "asked", "P", "expected a probability from 0 to 1"),
        ("never", "asked", "Q", "/asked: "),
        ("time", "points", [], "/points: "),
    ],
)
def test_documents_that_contradict_themselves(document, name, key, value, message):
    content = json.loads(document)
    next(each for each in content["requirements"] if each["name"] == name)[key] = value
    with pytest.raises(InputError, match=message):
        read_document(RunResult, content, "run.json")


def test_the_table_has_units(files):
    from verifier.telling.run import run_table

    table = run_table(verify_spec(*files(), EXACT))
    lines = {line.split()[0]: line for line in table.splitlines() if line[:1].isalpha()}
    assert "2.5 s" in table
    assert "T <= 100 s" in lines["never"]
    assert "inf " in lines["never"]
    assert "T = ? over profile" in lines["fleet"]
    assert "profile" in lines["fleet"].split("exact")[1]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("step_s = 0.5\n", ""), "T needs the duration of a step: step_s = ... in the model"),
        (('power = "0.1 * go * go"', 'power = "go - 1"'), "in state x = 0, go = 0 the reward is -1; a reward is at"),
        (('power = "0.1 * go * go"', 'power = "1 / go"'), "division by zero"),
        (('power = "0.1 * go * go"', 'energy = "go"'), "unknown reward 'power'"),
        (("weight = 3", "weight = -3"), "the weight is -3; a weight is at least 0"),
        (("set = { go = 0 }", "stay = true"), "needs"),
        (('far = "ite(close, 0, 1)"', 'far = "sees(ped)"'), "belongs in the rules of a planner"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(files, change, error):
    assert MODEL.count(change[0]) == 1
    model = MODEL.replace(*change)
    if "stay" in change[1]:
        error = "the rule stays without setting inputs, and a reward asks for them"
    with pytest.raises(InputError, match=error.replace("(", r"\(").replace("?", r"\?")):
        verify_spec(*files(model=model), EXACT)


def test_bounds_in_seconds_are_whole_steps(files):
    with pytest.raises(InputError, match=r"expected a whole number of steps, got 0.7 s for steps of 0.5 s"):
        verify_spec(*files('model "model.toml"\na: P = ? [ F<=0.7s close ]\n'), EXACT)
    with pytest.raises(InputError, match=r"a bound in seconds needs the duration of a step"):
        verify_spec(
            *files('model "model.toml"\na: P = ? [ F<=1s close ]\n', MODEL.replace("step_s = 0.5\n", "")), EXACT
        )


def test_a_label_of_the_model_comes_before_the_word(files):
    model = MODEL.replace('close = "x >= 2"', 'close = "x >= 2"\nended = "x >= 2"')
    run = verify_spec(*files('model "model.toml"\ntime: T = ? [ F ended ]\n', model), EXACT)
    assert numbers(run)["time", "ped"] == 2
    let = 'model "model.toml"\nlet ended = x >= 2\ntime: T = ? [ F ended ]\n'
    assert numbers(verify_spec(*files(let), EXACT))["time", "ped"] == 2


def test_the_first_state_may_be_terminal(files):
    # The same system with its road turned round: states are numbered by their values.
    model = MODEL
    for old, new in (
        ('initial = "x = 0"', 'initial = "x = 3"'),
        ('terminal = "x = 3"', 'terminal = "x = 0"'),
        ('next = "min(x + go, 3)"', 'next = "max(x - go, 0)"'),
        ("sees(ped) & x < 2", "sees(ped) & x > 1"),
        ("x >= 2", "x <= 1"),
    ):
        model = model.replace(old, new)
    spec = 'model "model.toml"\ntime: T = ? [ F ended ]\nsoon: T{0.5} = ? [ F ended ]\nfar: R{far} = ? [ F close ]\n'
    found = numbers(verify_spec(*files(spec, model), EXACT))
    assert [found[name, "ped"] for name in ("time", "soon", "far")] == [Fraction(5, 2), 2, 4]


def test_other_commands_refuse_by_name(files):
    from verifier.questions.compare.comparing import compare
    from verifier.questions.compare.gating import CompareOptions
    from verifier.questions.explain.explaining import explain_spec

    spec, matrices = files()
    with pytest.raises(UsageError, match=r"verify explain is about probabilities of formulas, and 'time' asks T, "):
        explain_spec(spec, matrices)
    with pytest.raises(UsageError, match=r"verify compare .* 'both' asks P given"):
        compare([spec], {"one": matrices, "two": matrices}, CompareOptions())
    options = RunOptions(selection=Selection(requirements=("through",)))
    assert explain_spec(spec, matrices, options).explanations[0].name == "through"


def test_a_run_planner_has_rewards_of_states_alone(files):
    # It chooses moves and not inputs.
    kind = """kind = "runs"\nruns = [{ when = "sees(ped)", set = { go = 1 } }]\n"""
    runs = MODEL.replace("[planners.careful]\n", f"[planners.careful]\n{kind}")
    spec = 'model "model.toml"\na: R{far} = ? [ F ended ]\n'
    assert all(value > 0 for value in numbers(verify_spec(*files(spec, runs), EXACT)).values())
    with pytest.raises(UsageError, match=r"R\{waiting\} asks for inputs, and planner 'careful' of kind \"runs\""):
        verify_spec(*files(spec.replace("far", "waiting"), runs), EXACT)


def test_gains_of_reports_that_move_nothing(files):
    # In x = 2 the car moves on whatever it sees, but brakes if it sees somebody: the reward draws from the matrix.
    model = MODEL.replace('power = "0.1 * go * go"', 'power = "ite(go = 2, 1, 0)"').replace(
        '{ when = "x >= 2", set = { go = 1 } }', '{ when = "x >= 2 & sees(ped)", set = { go = 1 } }'
    )
    spec = 'model "model.toml"\npower: R{power} = ? [ F ended ]\n'
    found = numbers(verify_spec(*files(spec, model), EXACT))
    # Once in leaving x = 0, and once more with the chance of seeing nobody: min(x + 2, 3) is 3 as well.
    assert (found["power", "ped"], found["power", "nobody"]) == (1 + Fraction(1, 4), 1 + Fraction(9, 10))
    interval = verify_spec(*files(spec, model), DRAWN).requirements[0].points[0].uncertainty.interval
    assert interval.lower < 1.25 < interval.upper


def test_the_definition_in_plain_python(files):
    # The same system written out: states 0, 2, 3 (goal).
    for environment, q in (("ped", Fraction(1, 4)), ("nobody", Fraction(9, 10))):
        rows = [{0: 1 - q, 1: q}, {2: Fraction(1)}, {2: Fraction(1)}]
        found = numbers(verify_spec(*files(), EXACT))
        waiting = gained(rows, [1 - q, Fraction(0), Fraction(0)], {2})[0]
        assert found["waiting", environment] == waiting
        assert reaching(rows, {2})[0] == 1


def test_a_reward_reads_what_the_world_draws(files):
    # Each step slips with 1/5 where x < 2, and then costs 3, else what go says; slips are drawn apart from reports.
    drawing = MODEL.replace(
        "[inputs]",
        '[world]\nslip = { range = [0, 1], probability = { 1 = "ite(x < 2, 0.2, 0)", 0 = "rest" } }\n\n[inputs]',
    ).replace("[rewards]", '[rewards]\ncost = "ite(slip = 1, 3, go)"')
    run = verify_spec(
        *files('model "model.toml"\ncost: R{cost} = ? [ F ended ]\nfirst: R{cost} = ? [ C<=1 ]', drawing), EXACT
    )
    found = numbers(run)
    # In x = 0 a step costs 3/5 + 4/5 * 2 q with q = 1/4 (9/10), 1/q times; in x = 2 it costs 1 surely.
    for environment, q in (("ped", Fraction(1, 4)), ("nobody", Fraction(9, 10))):
        step = Fraction(3, 5) + Fraction(4, 5) * 2 * q
        assert found["first", environment] == step
        assert found["cost", environment] == step / q + 1
    drawn = verify_spec(*files(model=drawing, spec='model "model.toml"\ncost: R{cost} = ? [ F ended ]'), DRAWN)
    for point in drawn.requirements[0].points:
        low, high = point.uncertainty.interval.lower, point.uncertainty.interval.upper
        assert low < float(found["cost", point.environment]) < high


def test_a_planner_from_a_table_gains_what_the_same_rules_gain(files, tmp_path):
    text = "x,sees(ped),->,go\n0..1,true,,0\n2..3,*,,1\n0..1,false,,2\n"
    (tmp_path / "rules.csv").write_text(text)
    written = MODEL[: MODEL.index("rules = [")] + 'kind = "table"\nfile = "rules.csv"\n'
    spec = "\n".join(line for line in SPEC.splitlines() if not line.startswith("never"))
    by_rules, by_table = (numbers(verify_spec(*files(spec, model), EXACT)) for model in (MODEL, written))
    assert by_rules == by_table


DRAWING = MODEL.replace(
    "[inputs]", '[world]\nslip = { range = [0, 2], probability = { 1 = "0.2 * x", 2 = 0.1, 0 = "rest" } }\n\n[inputs]'
)


@pytest.mark.parametrize(
    ("initial", "reward", "gains"),
    [
        # In x = 2 a slip is of 1 with 2/5 and of 2 with 1/10, in x = 0 of 2 with 1/10; 0 and 1 are what is reported.
        ("x = 0", "ite(x = 0 & slip = 1, -1, slip)", {0: [(None, "1/5")], 2: [(None, "3/5")]}),
        ("x = 0", "slip / 3 + x", {0: [(None, "1/15")], 2: [(None, "11/5")]}),
        ("x = 0", "slip * go + 1", {0: [(0, "7/5"), (1, "1")], 2: [(None, "8/5")]}),
        ("x = 0", "go / 4", {0: [(0, "1/2"), (1, "0")], 2: [(None, "1/4")]}),
        ("x = 0", "1 / 3", {0: [(None, "1/3")], 2: [(None, "1/3")]}),
        ("x = 3", "go", {}),
        ("x = 3", "x", {}),
    ],
)
def test_parts_of_gains_by_hand(files, initial, reward, gains):
    model = DRAWING.replace("x = 0", initial, 1).replace("0.1 * go * go", reward)
    spec = 'model "model.toml"\nenvironments ped\na: R{power} = ? [ C<=1 ]\n'
    (case,) = Study.of(read_inputs(*files(spec, model), EXACT), EXACT).cases
    skeleton = case.skeleton
    found = gains_of(skeleton, skeleton.system.planners["careful"], "power")
    x, width = skeleton.valuations["x"], len(skeleton.channel.observations)
    parts = {}
    for state, place, rewarded, exact in zip(found.states, found.places, found.rewards, found.exact, strict=True):
        told = None if place == len(skeleton.channel.bins) * width else int(place % width)
        parts.setdefault(int(x[state]), []).append((told, str(exact)))
        assert rewarded == float(exact)
    assert {x: sorted(of_state) for x, of_state in parts.items()} == gains


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("-x", "in state x = 2 the reward is -2"),
        ("(1 - slip) * go", "in state x = 2, go = 1, slip = 2 the reward is -1"),
    ],
)
def test_the_first_state_with_a_reward_below_0_is_named(files, reward, message):
    model = DRAWING.replace("0.1 * go * go", reward)
    with pytest.raises(InputError, match=message):
        verify_spec(*files('model "model.toml"\na: R{power} = ? [ C<=1 ]\n', model), EXACT)


def test_every_rounding_of_a_gain_is_counted():
    """Two labels and two observations: 2 * 2 + 2 roundings in a draw, 2 in the sum of weights; 2 + 4 for gains."""
    channel = channel_of(((), ("a",)), [[0]], [[1]])
    skeleton = objective_of(channel, [[0, 1], [1, 1]], [0, 0], {"p": {1}}, "F p", ended=(1,)).skeleton
    for place, roundings in ((1, 8 + 2 + 4), (len(channel.bins) * 2, 2 + 4)):
        gains = Gains(skeleton, np.array([0]), np.array([place]), np.ones(1), np.array([Fraction(1)], dtype=object))
        assert gains.relative_error == roundings * 2.0**-53
