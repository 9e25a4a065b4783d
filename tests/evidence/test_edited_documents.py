"""Random edits of every kind of result: whoever reads it refuses it naming the element, or nothing has changed.

Whoever also makes the checksums anew is refused for whatever follows from the rest of the document. What does not is
something declared, of which nothing else in the document speaks (a name, a count, a setting), or computed from what
the document does not hold: those are listed here, by the way to them. Numbers that are accepted keep to rules that
are written down here once more.
"""

import contextlib
import io
import json
import random
import re
from pathlib import Path

import pytest
import report_documents
from document_edits import edited, pattern, summed

from verifier.base import checksums
from verifier.base.errors import ExitCode, InputError
from verifier.cli import main
from verifier.evidence.consistency import check_documents, read_document
from verifier.evidence.report import csv_report, markdown_report

KINDS = (
    "run", "sweep", "explain", "require", "compare", "collision", "robroc", "curves", "rate", "mutate", "assess",
    "by_class",
)  # fmt: skip
DECLARED = (
    "title", "remarks", "versions", "command", "inputs", "matrices", "settings", "name", "formula", "environment",
    "initial", "constants", "vacuity", "draws", "conservative", "additional_data", "tipping_points", "planner",
    "labels", "bins", "channel", "detector", "detectors",
)  # fmt: skip
"""Keys below which a document says what was given, of which it holds nothing to compare with."""
POINTS = (
    r"/requirements/\*/points/\*", r"/explanations/\*/point", r"/answers/\*/(measured|at_value|perfect)",
    r"/specs/\*/requirements/\*/entries/\*/points/\*",
)  # fmt: skip
SLACK = 1e-9
RULED = re.compile(
    rf"({'|'.join(POINTS)})/(lower|upper|probability|second_engine|uncertainty.*)|/requirements/\*/points/\*"
)
"""Numbers that may move within what `fits` says."""
GIVEN = ("curves", "by_class")
"""Documents that people write too: they have no checksums."""
FREE = {
    "run": r"/requirements/\*|/requirements/\*/target.*",
    "sweep": r"/requirements/\*|/requirements/\*/target.*",
    "explain": r"/explanations.*|/engines.*",
    "require": r"/answers/\*(/(constants|gaps|curve|others|draws).*|/cells/\*(/bin|/label|/measured.*)?)?"
    r"|/answers/\*/floor/(checked|rest|semantics|proven|floors/\*)"
    r"|/answers/\*/(measured|at_value|perfect)/(exact|basis|draws.*)|/requirement.*|/engines.*",
    "compare": r"/specs.*|/engines.*|/gate.*",
    "collision": r"/codes/(reason|trust|area)/.*"
    r"|/policies/\*/detectors/\*/(intervals/\*.*|trust.*|images_near.*|pairs|images|.*_m)",
    "robroc": r"/metrics/\*/curves/\*",
    "curves": r"/curves.*",
    "rate": r"/requirement|/event|/condition|/(bounds|other_bounds/\*)/(lower|upper|assumes.*)|/other_bounds(/\*)?"
    r"|/terms/\*/(worst_scenario|scenarios|exposure/source)|/acceptance/source|/demonstration/encounters",
    "mutate": r"/mutations.*|/counts/unreadable",
    "assess": r"/systems/\*/((source|targets/\*)/performance|targets/\*/distances).*"
    r"|/systems/\*/(citation|viewpoint|perspectives|circumstances|rules|sweeps|plan).*",
    "by_class": r"/(distance|source|notes|matching|false_positives).*",
}
"""What each kind tells without telling anything that it follows from: of a list what is left out, of two that nothing
tells apart which is which, texts that are said of something, and numbers that were drawn or are within rules that are
written down here once more. A rate's encounters are whole, and follow up to one from numbers that are rounded."""
RUN_KINDS = ("run", "sweep")


def is_share(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and -SLACK <= value <= 1 + SLACK


def fits(value):
    """Whether all points in a document are as a point must be, by the definitions of its parts."""
    if isinstance(value, list):
        return all(map(fits, value))
    if not isinstance(value, dict):
        return True
    if {"lower", "upper", "probability", "second_engine"} <= value.keys():
        numbers = [value[name] for name in ("lower", "probability", "upper")]
        if not all(map(is_share, [*numbers, value["second_engine"]])):
            return False
        if not (numbers[0] <= numbers[2] and numbers[0] - SLACK <= numbers[1] <= numbers[2] + SLACK):
            return False
    if {"interval", "confidence_bounds", "level"} <= value.keys():
        interval, bounds = value["interval"], value["confidence_bounds"]
        shares = [*(interval[k] for k in ("lower", "upper")), *(bounds[k] for k in ("lower", "upper"))]
        if not all(map(is_share, [*shares, *interval["lower_range"], *interval["upper_range"]])):
            return False
        if interval["lower"] > interval["upper"] or bounds["lower"] > bounds["upper"]:
            return False
        for end in ("lower", "upper"):
            low, high = interval[f"{end}_range"]
            if not low <= interval[end] <= high:
                return False
    return all(map(fits, value.values()))


def fits_as_run(content):
    """Whether the summaries of a run equal what its points give: the worst verdict, the furthest engines."""
    order = ("no target", "satisfied", "vacuous", "no answer", "inconclusive", "violated")
    for asked in content["requirements"]:
        told = [point["verdict"] for point in asked["points"]]
        counted = [verdict for verdict in told if verdict != "vacuous"] or ["vacuous"]
        worst = max(counted, key=("no target", "satisfied", "vacuous", "inconclusive", "violated").index)
        if asked["verdict"] != worst or asked["points"][asked["worst"]]["verdict"] != worst:
            return False
    points = [point for asked in content["requirements"] for point in asked["points"]]
    furthest = max(abs(point["probability"] - point["second_engine"]) for point in points)
    worst = max((asked["verdict"] for asked in content["requirements"]), key=order.index)
    return content["engines"]["largest_difference"] == furthest and content["verdict"] == worst


def fits_as_rate(content):
    """Rates are sums over the terms, and bounds are no wider than what every encounter would give."""
    terms, most = content["terms"], sum(term["exposure"]["upper"] for term in content["terms"])
    total = sum(term["probability"] * term["exposure"]["per_hour"] for term in terms)
    bounds = [content["bounds"], *content["other_bounds"]]
    held = all(0 <= each["lower"] <= each["upper"] <= most + SLACK for each in bounds)
    return held and abs(total - content["per_hour"]) < SLACK * max(total, 1)


def fits_as_assessment(content):
    """Changes are those of the performances, and compared with the straight lines of the rules."""
    for system in content["systems"]:
        lines = {rule["name"]: rule["tolerance"] for rule in system["rules"]}
        for target in system["targets"]:
            for told in target["outcomes"]:
                before, after = (data["performance"][told["metric"]] for data in (system["source"], target))
                line = next(a for a in lines[told["distance_name"]] if (a["up_to"] or 1e9) >= told["distance"])
                allowed = (line["constant"] + line["slope"] * told["distance"]) * told["scale"]
                kept = abs(before - after) <= allowed
                if (
                    abs(told["change"] - abs(before - after)) > SLACK
                    or told["verdict"] != ("violated", "satisfied")[kept]
                ):
                    return False
    return True


def fits_as_trade_offs(content):
    """Areas below safety over efficiency are those of the curves, by trapezoids in efficiency from its best end."""
    for table in content["metrics"]:
        areas = {}
        for curve in table["curves"]:
            points = sorted(zip(curve["efficiency"], curve["safety"], strict=True))
            if any(not (is_share(x) and is_share(y)) for x, y in points):
                return False
            areas[curve["detector"], curve["condition"]] = curve["area"]
        for row in table["rows"]:
            for cell in row["cells"]:
                own = [areas[cell["detector"], condition] for condition in row["conditions"]]
                if cell["area"] > min(own) + SLACK:  # the worst case is at most each of what it is over
                    return False
            best = max(cell["area"] for cell in row["cells"])
            if row["best"] != [cell["detector"] for cell in row["cells"] if cell["area"] > best - 1e-12]:
                return False
    return True


def fits_as_collision(content):
    """Probabilities are shares, null where a code says why; a score is the mean excess over the oracle."""
    for policy in content["policies"]:
        for told in policy["detectors"]:
            above = []
            for row, oracle, codes in zip(told["probability"], told["oracle"], told["reason"], strict=True):
                for value, best, code in zip(row, oracle, codes, strict=True):
                    if (value is None) != (code != 0) or not all(
                        each is None or is_share(each) for each in (value, best)
                    ):
                        return False
                    if value is not None and best is not None:
                        above.append(max(value - best, 0))
            if above and abs(sum(above) / len(above) - told["score"]["above"]) > SLACK:
                return False
    return True


FITS = {
    "run": fits_as_run, "sweep": fits_as_run, "rate": fits_as_rate, "assess": fits_as_assessment,
    "robroc": fits_as_trade_offs, "collision": fits_as_collision,
}  # fmt: skip


def rate_of(path):
    """What `verify evidence rate` says of a run: exit code, output without the file's hash, what it complains of."""
    said, complained = io.StringIO(), io.StringIO()
    words = ["evidence", "rate", path, "--requirement", "stops_for_pedestrians", "--exposure", "12/h", "--json"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = main(list(map(str, words)))
    return code, re.sub(r'"sha256": "[0-9a-f]*"', "", said.getvalue()), complained.getvalue()


def told(path):
    """What the report says of a document, as Markdown and as a table, without the file's hash; or why nothing."""
    try:
        document = read_document(path)
    except InputError as error:
        return error
    text = markdown_report([document]) + (csv_report([document]) if document.kind == "run" else "")
    return re.sub(rf"{document.sha256}|{document.sha256[:12]}", "", text)


def free(kind, way):
    """Whether an edit that is accepted and seen is one of something declared, or of a number within its rules."""
    where = pattern(way)
    if any(key in DECLARED for key in way) or re.fullmatch(FREE[kind], where):
        return True
    return RULED.fullmatch(where) is not None


FEWER = {"run": 10, "sweep": 10, "explain": 12, "collision": 6}
"""Edits in the plain suite of what takes long to read; of the others 30."""


def written(content, path):
    """Write a document, its checksums those of what it now says, as whoever hides an edit would."""
    path.write_text(json.dumps(summed(content)))


def check(kind, count, seed, folder, *, hidden):
    rng = random.Random(f"{kind} {seed}")
    source = Path(report_documents.path(kind))
    content = json.loads(source.read_text())
    path = folder / "edited.json"
    path.write_text(source.read_text())
    before = told(path)
    rate_before = rate_of(path) if kind in RUN_KINDS else None
    refused = 0
    for _ in range(count):
        found = edited(content, rng)
        if found is None:
            continue
        what, way, other = found
        if hidden:
            written(other, path)
        else:
            path.write_text(json.dumps(other))
        after = told(path)
        if isinstance(after, InputError):
            refused += 1
            place = after.place
            assert place.path, (way, str(after))
            assert place.file in (str(path), path.name)
            if "checksums" in after.message and checksums.KEY not in way and what != "swap":
                assert pattern(way).startswith(re.sub(r"/\d+(?=/|$)", "/*", place.path)), (way, place.path)
            if kind in RUN_KINDS:
                code, said, complained = rate_of(path)
                assert (code, said) == (ExitCode.BAD_INPUT, ""), (what, way)
                assert complained.startswith(f"verify: {path}: {place.path}: "), complained
            continue
        if not hidden and kind not in GIVEN:
            assert other == content, (what, way)
            continue
        assert fits(other), (what, way)
        assert kind not in FITS or FITS[kind](other), (what, way)
        if after != before or (rate_before is not None and rate_of(path) != rate_before):
            assert checksums.KEY in way or free(kind, way), (what, way)
    return refused


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in GIVEN])
def test_an_edited_document_is_refused_or_says_the_same(kind, tmp_path):
    assert check(kind, 12, 3, tmp_path, hidden=False) >= 2  # some edits change nothing


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_that_is_hidden_is_refused_or_contradicts_nothing(kind, tmp_path):
    assert check(kind, FEWER.get(kind, 30), 1, tmp_path, hidden=True) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in GIVEN])
def test_2000_edited_documents_are_refused_or_say_the_same(kind, tmp_path):
    assert check(kind, 2000, 4, tmp_path, hidden=False) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_2000_hidden_edits_are_refused_or_contradict_nothing(kind, tmp_path):
    assert check(kind, 2000, 2, tmp_path, hidden=True) > 400


def refusal(content, tmp_path):
    """Why a document is refused: the element and the message."""
    path = tmp_path / "edited.json"
    written(content, path)
    with pytest.raises(InputError) as error:
        read_document(path)
    return error.value.place.path, error.value.message


def read(kind):
    return json.loads(Path(report_documents.path(kind)).read_text())


class TestRunsAreWhole:
    def test_uncertainty_of_a_point_is_missed(self, tmp_path):
        content = read("run")
        del content["requirements"][1]["points"][2]["uncertainty"]
        assert refusal(content, tmp_path) == (
            "/requirements/1/points/2", "expected uncertainty, as the settings have confidence"
        )  # fmt: skip

    @pytest.mark.parametrize("kind", RUN_KINDS)
    def test_a_scenario_of_one_requirement_is_missed(self, kind, tmp_path):
        content = read(kind)
        asked = content["requirements"][0]
        gone = next(k for k in range(len(asked["points"])) if k != asked["worst"])
        asked["worst"] -= gone < asked["worst"]
        point = asked["points"].pop(gone)
        place, message = refusal(content, tmp_path)
        assert place == "/requirements/0/points"
        assert message.startswith(f"expected the scenario {point['environment']}")

    @pytest.mark.parametrize("kind", RUN_KINDS)
    def test_an_environment_that_all_requirements_leave_out_is_missed(self, kind, tmp_path):
        content = read(kind)
        for asked in content["requirements"]:
            worst = asked["points"][asked["worst"]]
            asked["points"] = [point for point in asked["points"] if point["environment"] != "obs"]
            asked["worst"] = asked["points"].index(worst) if worst in asked["points"] else 0
        assert refusal(content, tmp_path)[1].startswith("expected the scenario obs")

    def test_a_swept_value_that_one_environment_leaves_out_is_missed(self, tmp_path):
        content = read("sweep")
        for asked in content["requirements"]:
            asked["points"] = [
                point for point in asked["points"]
                if (point["environment"], point["constants"]) != ("obs", {"vmax": "2"})
            ]  # fmt: skip
            asked["worst"] = 0
        assert refusal(content, tmp_path)[1].startswith("expected the scenario obs vmax=2")

    def test_a_planner_and_an_environment_that_are_said_but_not_told_are_missed(self, tmp_path):
        content = read("run")
        content["settings"]["planners"]["other"] = {"kind": "runs", "pick": "lsb_first"}
        assert refusal(content, tmp_path) == (
            "/requirements", f"expected {content['requirements'][0]['name']} under the planner other too"
        )  # fmt: skip
        content = read("run")
        content["settings"]["environments"].remove("obs")
        assert refusal(content, tmp_path)[1] == "expected a scenario of the settings, got obs"


@pytest.mark.parametrize("what", ["systems", "targets"])
def test_a_system_or_a_data_set_that_an_assessment_leaves_out_is_missed(what, tmp_path):
    content = read("assess")
    holder = content if what == "systems" else max(content["systems"], key=lambda each: len(each["targets"]))
    holder[what].append(holder[what].pop(0))
    assert refusal(content, tmp_path)[0].startswith("/systems")
    del holder[what][-1]
    place, message = refusal(content, tmp_path)
    assert place.startswith("/systems")
    assert "of the grid" in message or what == "targets"


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("condition", "if the sun shines", "/condition"),
        ("event", "satisfied", "/terms/0/worst_scenario"),
        ("left_out", ["obs"], "/terms/0/scenarios"),
        ("requirement", "unheard_of", "/requirement"),
    ],
)
def test_a_rate_beside_its_run_is_one_of_it(key, value, place, tmp_path):
    of, path = read_document(report_documents.path("run")), tmp_path / "rate.json"
    content = read("rate")
    check_documents([of, read_document(report_documents.path("rate"))])
    written({**content, key: value}, path)
    with pytest.raises(InputError) as error:
        check_documents([of, read_document(path)])
    assert error.value.place.path == place


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda asked: asked["entries"][0].update(best=asked["entries"][0]["best"] / 2 + 0.1), "/entries/0/best"),
        (lambda asked: asked["better"][0].__setitem__(1, 1 - asked["better"][0][1] + 0.25), "/better/0/1"),
        (lambda asked: asked["better"].pop(), "/better"),
    ],
)
def test_chances_of_a_comparison_add_up(change, place, tmp_path):
    content = read("compare")
    change(content["specs"][0]["requirements"][0])
    assert refusal(content, tmp_path)[0] == f"/specs/0/requirements/0{place}"


def first_answer(**changes):
    return lambda content: content["answers"][0].update(changes)


def first_violation(content):
    return max(content["explanations"], key=lambda each: len(each["violation"]["patterns"]))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (first_answer(met_as_measured=True), "/answers/0/met_as_measured"),
        (first_answer(planner_is_limit=True), "/answers/0/planner_is_limit"),
        (first_answer(value=None), "/answers/0/value"),
        (first_answer(value="0.9"), "/answers/0/cells/0/required"),
        (first_answer(outcome="infeasible"), "/answers/0/value"),
        (first_answer(outcome="independent"), "/answers/0/value"),
        (first_answer(cells=[], floor=None), "/answers/0/cells"),
        (first_answer(gaps=[["0.5", "0.25"]]), "/answers/0/gaps/0"),
        (lambda content: content["answers"][0]["cells"][0].update(required="0.96"), "/answers/0/cells/0/required"),
        (lambda content: content["answers"][0]["cells"][0].update(required=None), "/answers/0/cells/0/required"),
        (lambda content: content["answers"][0]["curve"][-1].__setitem__(1, 0.5), "/answers/0/curve/256/1"),
        (lambda content: content["answers"][0]["curve"][3].__setitem__(0, "0"), "/answers/0/curve"),
        (lambda content: content["requirement"].update(probability="1/3"), "/requirement/probability"),
        (lambda content: content["settings"].update(decimals=-5), "/settings/decimals"),
    ],
)
def test_a_required_recall_follows_from_what_was_tried(change, place, tmp_path):
    content = read("require")
    change(content)
    assert refusal(content, tmp_path)[0] == place


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda each: each.update(perfect_perception=1.25), "/perfect_perception"),
        (lambda each: each["fixes"][0].update(rate=0.25), "/fixes/0/rate"),
        (lambda each: each["fixes"][0].update(probability=0.25), "/fixes/0/probability"),
        (lambda each: each["fixes"][0].update(first_order=0.25), "/fixes/0/first_order"),
        (lambda each: each["moves"][0].update(slope=0.125), "/moves/0/slope"),
        (lambda each: each["moves"][0].update(rate_to=0.75), "/moves/1/rate_to"),
        (lambda each: each["label_more"][0].update(share_of_variance=2.0), "/label_more/0/share_of_variance"),
        (lambda each: each["violation"]["causes"][0].update(corrected=0.5), "/violation/causes/0/corrected"),
        (lambda each: each["violation"]["corrections"][0].update(corrected=0.5),
         "/violation/corrections/0/corrected"),
        (lambda each: each["violation"]["patterns"][0]["members"][0].update(probability=0.125),
         "/violation/patterns/0/members/0/probability"),
        (lambda each: each["violation"]["patterns"][0]["members"][0]["steps"][0].update(probability="1/2"),
         "/violation/patterns/0/members/0/probability"),
        (lambda each: each["violation"]["patterns"][0]["members"][0]["steps"][0].update(chance=1.5),
         "/violation/patterns/0/members/0/steps/0/chance"),
        (lambda each: each["violation"]["patterns"][0]["members"][0].update(counted_steps=999),
         "/violation/patterns/0/members/0/counted_steps"),
        (lambda each: each["map"]["values"][0].reverse(), "/map/values/0"),
    ],
)  # fmt: skip
def test_what_an_explanation_says_twice_is_the_same(change, place, tmp_path):
    content = read("explain")
    change(first_violation(content))
    where, _ = refusal(content, tmp_path)
    assert where == f"/explanations/{content['explanations'].index(first_violation(content))}{place}"
