"""Several frames in a step, each remembered: against every series of reports, for every reading and trackers."""

from dataclasses import replace
from fractions import Fraction

import pytest
from context_cases import drawn_document, files_of, latch, tracked_document
from plain_memory import context_of, histories

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.errors import UsageError
from verifier.checking.settings import EngineSettings
from verifier.perception.confusion.contexts import Contexts
from verifier.pipeline import verify_spec
from verifier.questions.explain.explaining import explain_spec
from verifier.study.options import RunOptions
from verifier.telling.questions import explain_table

EXACT = RunOptions(confidence=None, engines=EngineSettings(exact=True))
PED, OBS, NOTHING = frozenset({"ped"}), frozenset({"obs"}), frozenset()
STEPS = 2


def model_of(frames, reading, objects, more=""):
    """A car that keeps in h, step by step, whether it sees each class; a bit for each."""
    return f"""
step_s = {frames}
frame_s = 1
initial = "t = 0 & h = 0"
terminal = "t = {STEPS}"
[variables]
t = {{ range = [0, {STEPS}], next = "t + 1" }}
h = {{ range = [0, {4**STEPS - 1}], next = "4 * h + note" }}
[inputs]
note = {{ range = [0, 3] }}
[planners.driver]
reading = {reading}
{more}
rules = [
    {{ when = "sees(ped) & sees(obs)", set = {{ note = 3 }} }},
    {{ when = "sees(ped)", set = {{ note = 2 }} }},
    {{ when = "sees(obs)", set = {{ note = 1 }} }},
    {{ when = "true", set = {{ note = 0 }} }},
]
[environments]
here = [{objects}]
"""


def read(seen, reading):
    """The classes that a step of these frames shows."""
    if reading == '"last"':
        return seen[-1]
    least = {'"any"': 1, '"all"': len(seen)}.get(reading) or int(reading.strip("[]").split(",")[0])
    return {label for label in ("ped", "obs") if sum(label in each for each in seen) >= least}


def expected(steps, columns, contexts, frames, noted):
    """h at the end -> probability; `noted` gives from all frames so far what is noted in each step."""
    found = {}
    series = [draws for draws in steps for _ in range(frames)]
    for told, weight in histories(series, columns, contexts.kind, contexts.cap).items():
        h = 0
        for note in noted([told[k : k + frames] for k in range(0, len(told), frames)]):
            h = 4 * h + note
        found[h] = found.get(h, 0) + weight
    return found


TWO = '{ class = "ped", distance_m = "5 + 10 * t" }, { class = "obs", distance_m = 15 }'
ONE = '{ class = "ped", distance_m = "5 + 10 * t" }'


@pytest.mark.parametrize(
    ("frames", "reading", "objects", "contexts"),
    [
        (2, '"last"', TWO, "run:2"), (2, '"any"', TWO, "last:2"), (2, '"all"', TWO, "run:1"),
        (3, "[2, 3]", ONE, "run:3"), (5, '"last"', ONE, "run:2"), (5, "[3, 5]", ONE, "last:1"),
    ],
)  # fmt: skip
def test_every_frame_is_remembered(frames, reading, objects, contexts, tmp_path):
    contexts = Contexts.parsed(contexts)
    written, columns = drawn_document(
        [PED, OBS, NOTHING] if objects is TWO else [PED, NOTHING], contexts, "class", 2, 4
    )
    steps = [[("ped", t, PED), *([("obs", 1, OBS)] if objects is TWO else [])] for t in range(STEPS)]

    def noted(by_step):
        return [2 * ("ped" in seen) + ("obs" in seen) for seen in (read(each, reading) for each in by_step)]

    known = expected(steps, columns, contexts, frames, noted)
    model = model_of(frames, reading, objects)
    if objects is ONE:
        model = model.replace("sees(obs)", "false")
    formulas = [f"F (t = {STEPS} & h = {h})" for h in known]
    files = files_of(tmp_path, model, written, "here", formulas)
    result = verify_spec(*files, replace(EXACT, memory=str(contexts)))
    for h, requirement in zip(known, result.requirements, strict=True):
        (point,) = requirement.points
        assert point.exact == known[h]
        assert abs(point.second_engine - float(known[h])) <= 1e-9
    assert sum(known.values()) == 1
    plain = verify_spec(*files, replace(EXACT, memory="none"))
    assert [each.points[0].exact for each in plain.requirements] != list(known.values())


def test_trackers_see_every_frame_and_remember(tmp_path):
    """Confirmed by two right reports in a row, the last of a step and the first of the next among them."""
    contexts = Contexts("run", 2)
    written, columns = drawn_document([PED, NOTHING], contexts, "class", 2, 9)
    more = 'trackers.ped = { of = "sees(ped)", confirm = [2, 2], delete = [2, 2] }'
    model = model_of(3, '"last"', ONE, more).replace("sees(ped) & sees(obs)", "false").replace("sees(obs)", "false")
    model = model.replace('when = "sees(ped)"', 'when = "confirmed(ped)"')

    def noted(by_step):
        confirmed, last = False, (False,)
        for step in by_step:
            for seen in step:
                hit = "ped" in seen
                if not confirmed and hit and last[-1]:
                    confirmed, last = True, (True,)
                elif confirmed and not hit and not last[-1]:
                    confirmed, last = False, (False,)
                else:
                    last = (hit,)
            yield 2 * confirmed

    known = expected([[("ped", t, PED)] for t in range(STEPS)], columns, contexts, 3, noted)
    files = files_of(tmp_path, model, written, "here", [f"F (t = {STEPS} & h = {h})" for h in known])
    result = verify_spec(*files, replace(EXACT, memory="run:2"))
    assert [each.points[0].exact for each in result.requirements] == list(known.values())


QUESTIONS = {
    # Of what is noted in the two steps: by the definition, and as a spec asks it.
    "X h >= 2": lambda one, two: one >= 2,
    "X[2] (h % 4 >= 2)": lambda one, two: two >= 2,
    "F<=1 h >= 2": lambda one, two: one >= 2,
    "F[2,2] (h % 4 >= 2)": lambda one, two: two >= 2,
    "G (t = 1 -> X (h % 4 >= 2))": lambda one, two: two >= 2,
    "h = 0 U[1,1] (h >= 2)": lambda one, two: one >= 2,
    "F (h = 0 & X (h >= 2 & X h % 4 = 0))": lambda one, two: one >= 2 and two == 0,
    "(t < 2) U[2,3] (h >= 8)": lambda one, two: one >= 2,
}


@pytest.mark.parametrize(
    ("frames", "reading", "contexts"), [(2, '"any"', "run:2"), (3, '"last"', "run:2"), (2, '"all"', "last:2")]
)
def test_steps_are_counted_and_not_frames(frames, reading, contexts, tmp_path):
    contexts = Contexts.parsed(contexts)
    written, columns = drawn_document([PED, NOTHING], contexts, "class", 2, 6)

    def noted(by_step):
        return [2 * ("ped" in seen) for seen in (read(each, reading) for each in by_step)]

    known = expected([[("ped", t, PED)] for t in range(STEPS)], columns, contexts, frames, noted)
    model = model_of(frames, reading, ONE).replace("sees(obs)", "false")
    files = files_of(
        tmp_path, model + '[rewards]\nsilent = "1 - min(h, 1)"\nnotes = "note"\n', written, "here", QUESTIONS
    )

    def total(gain):
        return sum(weight * gain(*divmod(h, 4)) for h, weight in known.items())

    more = {
        "P = ? [ F (h % 4 >= 2 & t = 2) given X h >= 2 ]":
            total(lambda one, two: one >= 2 and two >= 2) / total(lambda one, two: one >= 2),
        # h = 0 is a gain of 1 in each step that begins with it.
        "R{silent} = ? [ F t = 2 ]": total(lambda one, two: 1 + (one == 0)),
        "R{silent} = ? [ C<=1 ]": Fraction(1),
        "T = ? [ F (h > 0 | t = 2) ]": frames * total(lambda one, two: 1 + (one == 0)),
        "T{0.05} = ? [ F (h > 0 | t = 2) ]": frames if total(lambda one, two: one > 0) >= Fraction(1, 20) else None,
        "T{0.999} = ? [ F (h > 0 | t = 2) ]": 2 * frames,
    }  # fmt: skip
    files[0].write_text(files[0].read_text() + "".join(f"more{k}: {each}\n" for k, each in enumerate(more)))
    result = verify_spec(*files, replace(EXACT, memory=str(contexts)))
    wanted = [*(total(holds) for holds in QUESTIONS.values()), *more.values()]
    for requirement, value in zip(result.requirements, wanted, strict=True):
        (point,) = requirement.points
        assert point.exact == value, requirement.formula
        assert abs(point.second_engine - float(value)) <= 1e-9
    assert any("the chain follows frames: a step of the model is" in each for each in result.remarks)
    asked = files[0].read_text().replace("R{silent} = ? [ F t = 2 ]", "R{notes} = ? [ F t = 2 ]")
    files[0].write_text(asked)
    with pytest.raises(UsageError, match="asks for inputs, and with memory each of several frames"):
        verify_spec(*files, replace(EXACT, memory=str(contexts)))


def test_bounds_that_count_steps_count_frames(tmp_path):
    """One of two looks of two frames: missed in the first step with 1/4 * 6/10 of each item's run, by hand."""
    rows = {"start": [1, 3], "right*1": [1, 9], "wrong*1": [6, 4], "wrong*2": [9, 1]}
    model = f'step_s = 2\nframe_s = 1\n{latch(2)}reading = "any"\n'
    files = files_of(
        tmp_path, model, tracked_document(rows, Contexts("run", 2)), "ped", ["F<=1 seen = 1", "F<=2s seen = 1"]
    )
    result = verify_spec(*files, RunOptions(memory="run:2", confidence=ConfidenceSettings(draws=200)))
    for requirement in result.requirements:
        (point,) = requirement.points
        assert point.probability == pytest.approx(1 - Fraction(1, 4) * Fraction(6, 10), abs=1e-12)
        bounds = point.uncertainty.confidence_bounds
        assert 0 < bounds.lower < point.probability < bounds.upper < 1


def test_violating_runs_are_told_frame_by_frame(tmp_path):
    """Nobody is reported in two steps of two frames: 1/4 * 6/10 * 9/10 * 9/10, the only run of four misses."""
    rows = {"start": [1, 3], "right*1": [1, 9], "wrong*1": [6, 4], "wrong*2": [9, 1]}
    model = f'step_s = 2\nframe_s = 1\n{latch(2)}reading = "any"\n'
    files = files_of(tmp_path, model, tracked_document(rows, Contexts("run", 2)), "ped", ["F seen = 1"])
    found = explain_spec(*files, options=replace(EXACT, memory="run:2"))
    (explained,) = found.explanations
    violation = explained.violation
    (pattern,) = violation.patterns
    (run,) = pattern.members
    assert run.exact == Fraction(1, 4) * Fraction(6, 10) * Fraction(9, 10) ** 2
    assert [Fraction(str(step.probability)) for step in run.steps] == [
        Fraction(1, 4), Fraction(6, 10), Fraction(9, 10), Fraction(9, 10),
    ]  # fmt: skip
    assert [found.bins[thing.bin].split(", ")[-1] for step in run.steps for thing in step.there] == [
        "at start", "after wrong*1", "after wrong*2", "after wrong*2",
    ]  # fmt: skip
    assert [step.after["frame of the step"] for step in run.steps] == [1, 0, 1, 0]
    assert [step.after["t"] for step in run.steps] == [0, 1, 1, 2]
    told = explain_table(found)
    assert "* Frame 1: ped in [10, 20) m, at start is there, and no ped is reported (probability 0.25)" in told
    assert "Step 1" not in told


def test_periods_of_frames(tmp_path):
    written, _ = drawn_document([PED, NOTHING], Contexts("run", 1), "class", 2, 1)
    model = model_of(2, '"last"', ONE).replace("sees(obs)", "false")
    written["contexts"]["period_s"] = 1.0
    verify_spec(*files_of(tmp_path, model, written, "here", ["F h = 2"]), replace(EXACT, memory="run:1"))
    written["contexts"]["period_s"] = 2.0
    with pytest.raises(UsageError, match="counted every 2 s, and the model takes a report every 1 s"):
        verify_spec(*files_of(tmp_path, model, written, "here", ["F h = 2"]), replace(EXACT, memory="run:1"))


def test_the_definition_itself():
    assert [context_of(past, "run", 2) for past in ([], [True], [True, True, True], [True, False])] == [
        "start", "right*1", "right*2", "wrong*1",
    ]  # fmt: skip
