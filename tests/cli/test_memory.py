"""Detectors with memory in the commands beside `verify run`: they say what that says, or have a closed form."""

import json

import numpy as np
import pytest
from context_cases import counted_drives, document, files_of, latch, systems_of, tracked_document

from verifier.perception.confusion.contexts import Contexts

RUNS = Contexts("run", 2)
ROWS = {"start": [1, 3], "right*1": [1, 9], "wrong*1": [6, 4], "wrong*2": [9, 1]}
"""Misses and hits: three misses in a row have the probability 1/4 * 6/10 * 9/10."""
BETTER = {"start": [1, 3], "right*1": [1, 9], "wrong*1": [3, 7], "wrong*2": [5, 5]}


def drives(rows, count=8):
    """So many times these rows, not all of them alike."""
    return [{name: [miss + at % 2, hit + at % 3] for name, (miss, hit) in rows.items()} for at in range(count)]


@pytest.fixture
def asked(tmp_path):
    """A function that writes the latch of three frames and matrices, and gives spec and matrices."""

    def write(written, target="P <= 0.5", name="c.json"):
        spec, matrices = files_of(tmp_path, latch(3), written, "ped", ["G seen = 0"])
        spec.write_text(spec.read_text().replace("P = ?", target))
        return spec, matrices.rename(tmp_path / name)

    return write


@pytest.fixture(scope="module")
def systems(shared):
    return systems_of(shared)


def test_two_detectors_with_memory_are_compared_by_draws_of_their_contexts(asked, verify):
    spec, one = asked(tracked_document(ROWS, RUNS), name="one.json")
    _, two = asked(tracked_document(BETTER, RUNS), name="two.json")
    files = ["--cm", f"one={one}", "--cm", f"two={two}", "--memory", "run:2", "--draws", "20000", "--json"]
    code, out, err = verify("compare", spec, *files)
    assert (code, err) == (0, "")
    found = json.loads(out)
    (each,) = found["specs"][0]["requirements"]
    points = [entry["points"][0]["probability"] for entry in each["entries"]]
    assert points == pytest.approx([0.135, 0.25 * 0.3 * 0.5], rel=1e-12)
    # Every miss rate has the posterior Beta(misses + 1/2, hits + 1/2), independent of the others.
    rng = np.random.default_rng(7)
    drawn = [
        np.prod([rng.beta(rows[at][0] + 0.5, rows[at][1] + 0.5, 10**6) for at in ("start", "wrong*1", "wrong*2")], 0)
        for rows in (ROWS, BETTER)
    ]
    assert each["better"][1][0] == pytest.approx((drawn[1] < drawn[0]).mean(), abs=4 / (2 * 20_000**0.5))
    for entry, expected in zip(each["entries"], drawn, strict=True):
        ends = [entry["interval"]["lower"], entry["interval"]["upper"]]
        assert ends == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=0.01)
    settings = found["settings"]["specs"]["s.ltl"]["one"]
    assert (settings["memory"], settings["initial_context"]) == ("run:2", "start")
    assert found["specs"][0]["drawn"][0]["channel"]["classes"][0]["contexts"] == "run:2"
    assert [each["matrices"]["contexts"]["used"] for each in found["detectors"]] == ["run:2", "run:2"]
    _, table, _ = verify("compare", spec, *files[:-1])
    assert (
        "one: assumes a detector that remembers run:2 and nothing else. Tests along tracks: ped: not tested." in table
    )
    assert "one: the detector remembers run:2 of each object, as asked for" in table


@pytest.mark.every(2)
@pytest.mark.parametrize("number", [4, 6])
def test_a_comparison_has_the_points_and_verdicts_of_runs(number, systems, tmp_path, verify):
    case = systems[number]
    formulas = [answer["formula"] for answer in case["answers"][:4]]
    spec, matrices = files_of(tmp_path, case["model"], document(case), case["environment"], formulas)
    spec.write_text(spec.read_text().replace("P = ?", "P >= 0.4"))
    memory = ["--memory", "{kind}:{cap}".format(**case["contexts"]), "--draws", "200", "--assume-independent-items"]
    memory += ["--initial-context", "wrong", "--json"]
    _, run, _ = verify("run", spec, "--cm", matrices, *memory)
    _, compared, _ = verify("compare", spec, "--cm", f"one={matrices}", *memory)
    alone = [each["points"][0] for each in json.loads(run)["requirements"]]
    beside = [each["entries"][0]["points"][0] for each in json.loads(compared)["specs"][0]["requirements"]]
    for name in ("probability", "lower", "upper", "verdict", "condition", "basis", "reason"):
        assert [each.get(name) for each in alone] == [each.get(name) for each in beside], name


def test_a_comparison_takes_the_memory_that_the_data_support(asked, verify):
    spec, one = asked(counted_drives(drives(ROWS), RUNS), name="one.json")
    _, two = asked(tracked_document(BETTER, RUNS), name="two.json")
    files = ["--cm", f"one={one}", "--cm", f"two={two}", "--draws", "200"]
    code, out, err = verify("compare", spec, *files, "--json")
    assert (code, err) == (0, "")
    settings = json.loads(out)["settings"]["specs"]["s.ltl"]
    assert {name: settings[name].get("memory") for name in ("one", "two")} == {"one": "run:2", "two": None}
    _, run, _ = verify("run", spec, "--cm", one, "--json")
    assert json.loads(run)["settings"]["memory"] == "run:2"
    remarks = json.loads(out)["remarks"]
    assert any(each.startswith("two: counts by context are summed; the detector is memoryless") for each in remarks)
    # Nobody solves games against a detector with memory: beside the best planner detectors are memoryless.
    code, out, _ = verify("compare", spec, *files, "--best-planner", "4", "--json")
    assert json.loads(out)["settings"]["specs"]["s.ltl"]["one"].get("memory") is None
    code, _, err = verify("compare", spec, *files, "--best-planner", "4", "--memory", "run:2")
    assert code == 2
    assert "such games are solved for memoryless detectors only" in err
    code, _, err = verify("compare", spec, *files, "--dependence-free")
    assert (code, "--dependence-free gives bounds alone" in err) == (2, True)


def test_comparisons_in_every_context_have_no_axis_of_contexts(asked, verify):
    spec, one = asked(tracked_document(ROWS, RUNS))
    worst = ["--memory", "run:2", "--initial-context", "worst", "--draws", "200", "--json"]
    _, out, _ = verify("compare", spec, "--cm", f"one={one}", *worst)
    (each,) = json.loads(out)["specs"][0]["requirements"]
    # wrong*2 at first: 9/10 three times.
    assert each["entries"][0]["points"][each["entries"][0]["worst"]]["probability"] == pytest.approx(0.729)
    assert each["curves"] == []


def test_a_gate_draws_both_detectors_with_the_memory_of_the_run(asked, verify):
    spec, one = asked(tracked_document(ROWS, RUNS), name="one.json")
    _, two = asked(tracked_document(BETTER, RUNS), name="two.json")
    gate = ["--baseline", two, "--max-drop", "0.01", "--drop-from", "probability:0.9", "--memory", "run:2", "--json"]
    _, out, err = verify("run", spec, "--cm", one, *gate)
    assert err == ""
    regression = json.loads(out)["gates"]["regression"]
    (drop,) = regression["drops"]
    assert (drop["before"], drop["now"]) == pytest.approx((0.0375, 0.135))
    rng = np.random.default_rng(11)
    drawn = [
        np.prod([rng.beta(rows[at][0] + 0.5, rows[at][1] + 0.5, 10**6) for at in ("start", "wrong*1", "wrong*2")], 0)
        for rows in (ROWS, BETTER)
    ]
    assert drop["chance"] == pytest.approx((drawn[0] - drawn[1] > 0.01).mean(), abs=0.03)
    assert "paired draws" in regression["compared"]


@pytest.mark.parametrize(
    ("question", "required"),
    [
        # Missed three times: m0 m1 m2 <= 0.05, where m0 = 1/4, m1 = 6/10, m2 = 9/10 as measured.
        (("--mode", "cell", "--context", "start"), {"start": 1 - 0.05 / (0.6 * 0.9)}),
        (("--mode", "cell", "--context", "wrong*1"), {"wrong*1": 1 - 0.05 / (0.25 * 0.9)}),
        (("--mode", "cell", "--context", "wrong*2"), {"wrong*2": 1 - 0.05 / (0.25 * 0.6)}),
        ((), dict.fromkeys(("start", "wrong*1", "wrong*2"), 1 - 0.05 ** (1 / 3))),
        (("--mode", "bin", "--bin", "15"), dict.fromkeys(("start", "wrong*1", "wrong*2"), 1 - 0.05 ** (1 / 3))),
        (("--context", "wrong*1", "--context", "wrong*2"), dict.fromkeys(("wrong*1", "wrong*2"), 1 - 0.2**0.5)),
    ],
)
def test_recall_is_required_by_context(question, required, asked, verify):
    spec, matrices = asked(tracked_document(ROWS, RUNS), "P <= 0.05")
    code, out, err = verify("require", spec, "--cm", matrices, "--memory", "run:2", "--json", *question)
    assert (code, err) == (0, "")
    found = json.loads(out)
    (answer,) = found["answers"]
    told = {cell["bin"]: float(cell["required"]) for cell in answer["cells"]}
    words = {"start": "at start", "wrong*1": "after wrong*1", "wrong*2": "after wrong*2"}
    assert told == {
        f"[10, 20) m, {words[name]}": pytest.approx(recall, abs=1e-6) for name, recall in required.items()
    }
    assert all(cell["measured"]["recall"] is not None for cell in answer["cells"])
    assert answer["condition"] == "if the detector remembers run:2 and nothing else (not tested)"
    assert answer["at_value"]["verdict"] == "satisfied"
    assert found["settings"]["memory"] == "run:2"


def test_what_is_reported_after_a_hit_is_not_required_where_it_does_not_matter(asked, verify):
    spec, matrices = asked(tracked_document(ROWS, RUNS), "P <= 0.05")
    memory = ["--cm", matrices, "--memory", "run:2"]
    _, out, _ = verify("require", spec, *memory, "--context", "right*1", "--json")
    assert json.loads(out)["answers"][0]["outcome"] == "independent"
    code, _, err = verify("require", spec, *memory, "--context", "wrong*3")
    assert (code, "unknown context of the detector 'wrong*3'" in err) == (2, True)
    code, _, err = verify("require", spec, *memory, "--mode", "cell")
    assert (code, "name it with --class, --bin and --context" in err) == (2, True)
    code, _, err = verify("require", spec, *memory, "--initial-context", "counted")
    assert (code, "contexts are as frequent as with the measured recalls" in err) == (2, True)
    code, _, err = verify("require", spec, "--cm", matrices, "--persist", "3")
    assert (code, "--persist bounds what errors may do in each state" in err) == (2, True)
    _, told, _ = verify("require", spec, *memory)
    assert "Assumes a detector that remembers run:2 and nothing else. Tests along tracks:" in told


def test_required_recalls_of_contradicted_contexts_are_conditional(asked, verify):
    tests = [{"label": "ped", "contexts": "run:2", "z": 9.0, "p_value": 0.001, "permutations": 999}]
    spec, matrices = asked(tracked_document(ROWS, RUNS, tests=tests), "P <= 0.05")
    memory = ["require", spec, "--cm", matrices, "--memory", "run:2"]
    assert verify(*memory)[0] == 3
    assert verify(*memory, "--assume-memoryless")[0] == 3
    assert verify(*memory, "--assume-contexts")[0] == 0


LOOKS = {"start": [4000, 16000], "right*1": [1600, 38400], "wrong*1": [2400, 1600], "wrong*2": [1440, 160]}
"""Misses and hits: 14 % of all frames are misses, 20 % of first looks, 60 % of those after a miss."""


def looked(asked, p_value, target, **more):
    """Spec and matrices: whether somebody is seen within three looks; the contexts are tested with this p-value."""
    tests = [{"label": "ped", "contexts": "run:2", "z": 3.0, "p_value": p_value, "permutations": 9999}]
    found = tracked_document(LOOKS, RUNS, **({} if p_value is None else {"tests": tests}))
    spec, one = asked(found | more, target)
    text = spec.read_text().replace("G seen = 0", "F seen = 1")
    spec.write_text(text)
    return spec, one


@pytest.mark.parametrize(
    ("p_value", "target", "expected"),
    [
        # The least P is 1 - 0.14 whatever the dependence, and 1 - 0.2 * 0.6 * 0.9 with contexts.
        (0.0001, "P >= 0.8", (0, "satisfied", "any_dependence", "if items are independent")),
        (0.5, "P >= 0.8", (0, "satisfied", "any_dependence", "if items are independent")),
        (0.5, "P >= 0.88", (0, "satisfied", "contexts", "if items are independent")),
        (0.0001, "P >= 0.88", (3, "inconclusive", None, None)),
        (0.5, "P < 0.88", (1, "violated", "contexts", "if items are independent")),
        (0.5, "P < 0.8", (1, "violated", "any_dependence", "if items are independent")),
    ],
)
def test_the_first_basis_that_applies_decides(p_value, target, expected, asked, verify):
    spec, one = looked(asked, p_value, target)
    command = ["run", spec, "--cm", one, "--memory", "run:2", "--dependence-free", "--draws", "200"]
    code, out, _ = verify(*command, "--json")
    found = json.loads(out)
    (point,) = found["requirements"][0]["points"]
    assert (code, *(point.get(name) for name in ("verdict", "basis", "condition"))) == expected
    assert found["settings"]["memory"] == "run:2"
    assert point["probability"] == pytest.approx(1 - 0.2 * 0.6 * 0.9, rel=1e-12)
    assert 0.8 < point["dependence_free"]["lower"] < 0.86 < 0.88 < point["uncertainty"]["confidence_bounds"]["lower"]
    reason = point.get("reason") or {}
    assert reason.get("contexts") == ("run:2" if code == 3 else None)
    assert verify(*command, "--strict")[0] == 3


def test_both_families_of_bounds_hold_at_once(asked, verify):
    """Whichever of them decides, the confidence is as stated: each is what it is alone with half of alpha."""
    spec, one = looked(asked, 0.5, "P >= 0.88")

    def point_of(*more):
        found = json.loads(verify("run", spec, "--cm", one, "--draws", "200", "--json", *more)[1])
        return found, found["requirements"][0]["points"][0]

    free, memory = ("--dependence-free",), ("--memory", "run:2")
    found, both = point_of(*free, *memory)
    halves = [point_of(*more, "--confidence", "0.975")[1] for more in ((*free, "--memory", "none"), memory)]
    assert both["dependence_free"] == halves[0]["dependence_free"]
    assert both["uncertainty"]["confidence_bounds"] == halves[1]["uncertainty"]["confidence_bounds"]
    alone = [point_of(*more)[1] for more in ((*free, "--memory", "none"), memory)]
    assert both["dependence_free"]["lower"] < alone[0]["dependence_free"]["lower"]
    assert both["uncertainty"]["interval"] == alone[1]["uncertainty"]["interval"]
    bounds = found["settings"]["confidence"]["bounds"]
    assert (bounds["level"], bounds["families"]) == (0.95, 2)
    # Without memory both are of the same rates, which are bounded once.
    assert "families" not in point_of(*free, "--memory", "none")[0]["settings"]["confidence"]["bounds"]
    told = " ".join(verify("run", spec, "--cm", one, "--draws", "200", *free, *memory)[1].split())
    assert "at once with those whatever the dependence (each has 1/2 of alpha)" in told
    assert "however reports depend on each other, P lies in" in told


def test_default_contexts_stay_beside_bounds_whatever_the_dependence(asked, verify):
    spec, one = asked(counted_drives(drives(ROWS), RUNS))
    _, out, _ = verify("run", spec, "--cm", one, "--dependence-free", "--draws", "200", "--json")
    found = json.loads(out)
    assert found["settings"]["memory"] == "run:2"
    assert not any("counts by context are summed" in each for each in found["remarks"])


@pytest.mark.parametrize("initial", ["worst", "counted", "wrong"])
def test_every_initial_context_has_the_same_bounds_whatever_the_dependence(initial, asked, verify):
    spec, one = looked(asked, 0.5, "P >= 0.5")
    options = ["run", spec, "--cm", one, "--dependence-free", "--point-only", "--json"]
    many = json.loads(verify(*options, "--memory", "run:2", "--initial-context", initial)[1])["requirements"][0]
    (alone,) = json.loads(verify(*options, "--memory", "none")[1])["requirements"][0]["points"]
    assert len(many["points"]) == (5 if initial == "worst" else 1)
    assert {json.dumps(each["dependence_free"]) for each in many["points"]} == {json.dumps(alone["dependence_free"])}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--persist", "2"), "--persist bounds what errors may do in each state, which --dependence-free"),
        (("--memory", "run:2", "--bounds", "approximate"), "needs matrices that say which drive"),
    ],
)
def test_what_these_bounds_do_not_stand_beside(more, told, asked, verify):
    spec, one = looked(asked, 0.5, "P >= 0.5")
    code, _, err = verify("run", spec, "--cm", one, "--dependence-free", *more)
    assert (code, told in " ".join(err.split())) == (2, True)


def test_gates_count_what_these_bounds_decide_beside_contexts(asked, verify):
    spec, one = looked(asked, 0.0001, "P >= 0.88")
    command = ["run", spec, "--cm", one, "--memory", "run:2", "--dependence-free", "--draws", "200", "--json"]
    for floor, failed in (("0.84", False), ("0.87", True)):
        (held,) = json.loads(verify(*command, "--fail-under", floor)[1])["gates"]["fail_under"]["requirements"]
        assert held["failed"] == failed


def test_a_comparison_by_drives_says_why_its_intervals_are_narrower(asked, verify):
    """Both add a drive to each column; a run takes what it reports at its worst and at its best, this draws it."""
    spec, one = asked(counted_drives(drives(ROWS), RUNS))
    (point,) = json.loads(verify("run", spec, "--cm", one, "--draws", "200", "--json")[1])["requirements"][0][
        "points"
    ]
    found = json.loads(verify("compare", spec, "--cm", one, "--draws", "200", "--json")[1])
    (entry,) = found["specs"][0]["requirements"][0]["entries"]
    width = {
        name: each["upper"] - each["lower"]
        for name, each in (("run", point["uncertainty"]["interval"]), ("compare", entry["interval"]))
    }
    assert width["compare"] < width["run"]
    assert sum("are narrower than those of verify run" in each for each in found["remarks"]) == 1
    _, two = asked(tracked_document(BETTER, RUNS), name="two.json")
    items = json.loads(verify("compare", spec, "--cm", two, "--draws", "200", "--json")[1])
    assert not any("are narrower" in each for each in items["remarks"])


@pytest.mark.parametrize(
    ("change", "element", "words"),
    [
        (lambda said: said.pop("e_values"), "/matrices/contexts", "'e_values' is a required property"),
        (
            lambda said: said.update(tests=[{"label": "ped"}]),
            "/matrices/contexts/tests/0",
            "'contexts' is a required",
        ),
        (lambda said: said.update(used=3), "/matrices/contexts/used", "3 is not of type 'string'"),
        (lambda said: said.update(tracks={"ped": 1}), "/matrices/contexts/tracks/ped", "1 is not of type 'object'"),
    ],
)
def test_torn_contexts_of_a_result_are_refused_by_name(asked, verify, tmp_path, change, element, words):
    spec, matrices = asked(tracked_document(ROWS, RUNS))
    _, out, _ = verify("run", spec, "--cm", matrices, "--memory", "run:2", "--draws", "200", "--json")
    found = json.loads(out)
    change(found["matrices"]["contexts"])
    (tmp_path / "torn.json").write_text(json.dumps(found))
    code, _, err = verify("report", tmp_path / "torn.json", "-o", tmp_path / "r.md")
    assert (code, f"{element}: " in err, words in err) == (4, True, True), err
