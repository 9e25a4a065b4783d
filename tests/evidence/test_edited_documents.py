"""Random edits of every kind of result: whoever reads it refuses it naming the element, or nothing has changed.

Whoever also makes the checksums anew of what a case rests on is refused for whatever follows from the rest of the
document. What does not is something declared, of which nothing else in the document speaks (a name, a count, a
setting), or computed from what the document does not hold: those are listed here, by the way to them. Numbers that
are accepted keep to rules that are written down here once more. Of the other kinds the checksums alone vouch for what
follows: with new ones, impossible probabilities and verdicts are refused, and nothing else fails.
"""

import contextlib
import io
import json
import math
import random
import re
from functools import cache
from pathlib import Path

import pytest
import report_documents
from document_edits import edited, pattern, summed
from PIL import Image

from verifier.base import checksums
from verifier.base.errors import ExitCode, InputError
from verifier.cli import main
from verifier.evidence.consistency import check_documents, read_document
from verifier.evidence.report import csv_report, markdown_report

KINDS = (
    "run", "sweep", "explain", "require", "compare", "collision", "robroc", "curves", "rate", "risk",
    "triggers", "mutate", "assess", "by_class",
)  # fmt: skip
DECLARED = (
    "title", "remarks", "versions", "command", "inputs", "matrices", "settings", "name", "formula", "environment",
    "initial", "constants", "vacuity", "draws", "conservative", "additional_data", "tipping_points", "planner",
    "labels", "bins", "channel", "detector", "detectors",
)  # fmt: skip
"""Keys below which a document says what was given, of which it holds nothing to compare with."""
SLACK = 1e-9
POINT = {
    "lower|upper": "bounds that hold are wider than they need be, or narrower: only solving again tells how far",
    "second_engine": "within the bound on the difference, which stands for points that are not listed, too",
    "uncertainty(/interval(/(lower|upper|(lower|upper)_range.*))?)?": "drawn: in order, and shares by `fits`",
    "uncertainty/confidence_bounds(/(lower|upper|attained_(lower|upper)))?": "of data that are not in the document",
}
"""Parts of points -> why an edit there contradicts nothing, within what `fits` says."""
VOUCHED = ("explain", "compare", "collision", "mutate", "assess")
"""Documents of which little is computed again when they are read: what changed them their checksums tell."""
GIVEN = ("curves", "by_class")
"""Documents that people write too: they have no checksums."""
TARGET = "given: verdicts, and values that meet it, are judged by it again"
REQUIREMENT = {
    "/requirements/*": "which requirements were asked about is said nowhere else",
    "/requirements/*/target.*": TARGET,
    **{f"/requirements/*/points/*/({part})": why for part, why in POINT.items()},
}
ENGINES = {"/engines/largest_difference": "a bound on points that are not all listed, of at most 1"}
FREE = {
    "run": REQUIREMENT,
    "sweep": REQUIREMENT,
    "require": {
        **ENGINES,
        "/requirement/(comparison|probability)": TARGET,
        "/answers/*/(gaps|curve).*": "what was tried: in order, and on the side of the target that the value says",
        "/answers/*/others.*": "columns that were not in question are said nowhere else",
        "/answers/*/cells/*/measured": "of matrices, which are not in the document; what is told twice is the same",
        "/answers/*/floor/(checked|proven|floors/*)": "proven: within the target, the required and what was tried",
        **{f"/answers/*/(measured|at_value|perfect)/({part})": why for part, why in POINT.items()},
    },
    "robroc": {"/metrics/*/conditions/*/severity": "of the files of curves, where no setting says it: a known one"},
}
"""What each kind tells without telling anything that it follows from -> why an edit there contradicts nothing."""
LEFT = {
    "robroc": r"/metrics/\*/curves/\*",
    "curves": r"/curves.*",
    "rate": r"/requirement|/event|/condition|/(bounds|other_bounds/\*)/(lower|upper|assumes.*)|/other_bounds(/\*)?"
    r"|/terms/\*/(worst_scenario|scenarios|exposure/source)|/acceptance/source|/demonstration/encounters",
    "risk": r"/hazards/\*/(requirement|severity|source|assumes(/\*)?|chain/\*/source|cells/\*/(unknown|scenario))"
    r"|/environments/\*/((exposure|unlisted)/source|shares/\*/source)|/source|/risks/\*/\w+_lower",
    "triggers": r"/triggers/\*/(text|source|effect|excluded_by|severity|part|sha256|where.*|items.*|drives|judged.*)"
    r"|/pairs/\*/(items|reason)",
    "by_class": r"/(distance|source|notes|matching|false_positives).*",
}
"""The same of the other kinds: of a list what is left out, of two that nothing tells apart which is which, texts that
are said of something, and numbers that were drawn or are within rules that are written down here once more. A rate's
encounters are whole, and follow up to one from numbers that are rounded. A lower end of 0 may be written as -0."""
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


def fits_as_trade_offs(content):
    """Areas below safety over efficiency are those of the curves, by trapezoids in efficiency from its best end."""
    for table in content["metrics"]:
        if any(each["severity"] not in ("", "mild", "severe") for each in table["conditions"]):
            return False
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


FITS = {
    "run": fits_as_run, "sweep": fits_as_run, "rate": fits_as_rate, "robroc": fits_as_trade_offs,
}  # fmt: skip


def rate_of(path):
    """What `verify evidence rate` says of a run: exit code, output without the file's hash, what it complains of."""
    said, complained = io.StringIO(), io.StringIO()
    words = ["evidence", "rate", path, "--requirement", "stops_for_pedestrians", "--exposure", "12/h", "--json"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = main(list(map(str, words)))
    rate = json.loads(said.getvalue() or "{}")
    rate.pop(checksums.KEY, None)  # they are of the file's hash, too
    return code, re.sub(r'"sha256": "[0-9a-f]*"', "", json.dumps(rate) if rate else ""), complained.getvalue()


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
    if kind in VOUCHED:
        return True
    where = pattern(way)
    allowed = (each.replace("/*", r"/\*") for each in FREE.get(kind, ()))
    return any(key in DECLARED for key in way) or bool(
        any(re.fullmatch(each, where) for each in allowed) or re.fullmatch(LEFT.get(kind, "-"), where)
    )


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
    refused = done = 0
    while done < count:
        found = edited(content, rng)
        done += hidden or (found is not None and found[2] != content)
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
    assert check(kind, 12, 3, tmp_path, hidden=False) >= 12  # also 1.0 for 1, which Python calls equal


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_that_is_hidden_is_refused_or_contradicts_nothing(kind, tmp_path):
    assert check(kind, FEWER.get(kind, 30), 1, tmp_path, hidden=True) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in GIVEN])
def test_2000_edited_documents_are_refused_or_say_the_same(kind, tmp_path):
    assert check(kind, 2000, 4, tmp_path, hidden=False) >= 2000


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_2000_hidden_edits_are_refused_or_contradict_nothing(kind, tmp_path):
    assert check(kind, 2000, 2, tmp_path, hidden=True) > (100 if kind in VOUCHED else 400)


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


@pytest.mark.parametrize(
    ("kind", "way", "value", "place"),
    [
        ("adr", ("rates", 0, "adr"), 0.9, "/rates/0/adr"),
        ("adr", ("rates", 1, "normalised"), 0.5, "/rates/1/normalised"),
        ("adr", ("rates", 1, "adr_interval"), [0.9, 0.1], "/rates/1/adr_interval"),
        ("adr", ("rates", 1, "condition"), "baseline", "/rates/1"),
        ("adr", ("rates", 1, "condition"), "rain", "/rates/1"),
        ("adr", ("settings", "confidence"), 1.5, "/settings"),
        ("campaign", ("campaign", 1, "normalised"), 0.9, "/campaign/1/normalised"),
        ("campaign", ("campaign", 1, "detector"), "other", "/campaign/1/detector"),
        ("campaign", ("campaign", 1, "condition"), "baseline", "/campaign/1"),
        ("campaign", ("campaign", 0, "requirements"), [], "/campaign/1/requirements"),
        ("campaign", ("campaign", 0, "requirements", 0, "verdict"), "fine", "/campaign/0/requirements/0/verdict"),
        ("campaign", ("campaign", 0, "recall_interval"), [0.5, 2.0], "/campaign/0/recall_interval"),
        ("campaign", ("magnitudes", 0, "parameter"), "beta", "/magnitudes/0"),
    ],
)
def test_detection_rates_that_contradict_each_other(kind, way, value, place, tmp_path):
    content = json.loads(Path(report_documents.path(kind)).read_text())
    *above, key = way
    holder = content
    for each in above:
        holder = holder[each]
    assert holder[key] != value
    holder[key] = value
    assert refusal(content, tmp_path)[0] == place


@pytest.mark.parametrize("told", ["x", "severe"])
def test_a_severity_is_a_known_one_and_the_one_of_the_settings(told, tmp_path):
    content = read("robroc")
    content["settings"]["severities"] = {"fog": "mild"}
    content["metrics"][0]["conditions"][1]["severity"] = told
    assert refusal(content, tmp_path)[0] == "/metrics/0/conditions/1/severity"


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
        (lambda content: content["specs"][0]["requirements"][0]["better"].pop(), "/specs/0/requirements/0/better"),
        (lambda content: content["specs"][0]["drawn"].pop(), "/specs/0/requirements/0/entries/1/detector"),
        (lambda content: content["specs"][0]["drawn"][0]["channel"]["classes"].append(
            content["specs"][0]["drawn"][0]["channel"]["classes"][0]), "/specs/0/drawn/0/channel/classes"),
        (lambda content: content["specs"][0]["requirements"].append(content["specs"][0]["requirements"][0]),
         "/specs/0/requirements/4"),
        (lambda content: content["specs"][0]["requirements"][0]["entries"][0]["points"].append(
            content["specs"][0]["requirements"][0]["entries"][0]["points"][0]),
         "/specs/0/requirements/0/entries/0/points/1"),
    ],
)  # fmt: skip
def test_a_comparison_has_all_its_parts_once(change, place, tmp_path):
    content = read("compare")
    change(content)
    assert refusal(content, tmp_path)[0] == place


@pytest.mark.parametrize(
    ("kind", "change", "place"),
    [
        ("mutate", lambda content: content["counts"].update(unreadable=1), "/counts/unreadable"),
        ("mutate", lambda content: content["images"][0]["outputs"][0].update(mutation=9),
         "/images/0/outputs/0/mutation"),
        ("assess", lambda content: content.update(verdict="no target"), "/verdict"),
        ("assess", lambda content: content["systems"][0].update(verdict="no target"), "/systems/0/verdict"),
        ("collision", lambda content: content["policies"][0]["detectors"][0]["probability"].pop(),
         "/policies/0/detectors/0/probability"),
        ("collision", lambda content: content["policies"][0]["detectors"][0]["oracle"][0].__setitem__(0, 1.5),
         "/policies/0/detectors/0/oracle/0/0"),
        ("collision", lambda content: content["policies"][0]["detectors"][0]["trust"][0].__setitem__(0, 99),
         "/policies/0/detectors/0/trust"),
        ("collision", lambda content: content["policies"][0]["stopping_m"].append(9.0), "/policies/0/stopping_m"),
        ("collision", lambda content: content["policies"][0]["stopping_m"].__setitem__(1, 9.0),
         "/policies/0/stopping_m/1"),
        ("collision", lambda content: content["policies"][0]["detectors"][0]["intervals"].clear(),
         "/policies/0/detectors/0/intervals"),
        ("collision", lambda content: content["policies"][0]["detectors"][0]["intervals"].append(
            content["policies"][0]["detectors"][0]["intervals"][0]), "/policies/0/detectors/0/intervals"),
        ("collision", lambda content: content["codes"]["trust"].update({"0": "not to be trusted"}), "/codes/trust"),
        ("collision", lambda content: content["codes"]["area"].update({"99": "unknown"}), "/codes/area"),
        ("collision", lambda content: content["grid"]["speeds_mps"].__setitem__(0, -1.5), "/policies/0"),
        ("assess", lambda content: content["systems"][1]["sweeps"][0]["targets"].__setitem__(0, "Fog"),
         "/systems/1/sweeps/0/targets"),
    ],
)  # fmt: skip
def test_totals_verdicts_and_maps_are_possible(kind, change, place, tmp_path):
    content = read(kind)
    change(content)
    assert refusal(content, tmp_path)[0] == place


def test_images_of_several_folders_may_have_one_file_name(tmp_path):
    for name in ("one", "two"):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.new("RGB", (8, 6)).save(tmp_path / "in" / name / "a.png")
    with contextlib.redirect_stdout(io.StringIO()):
        words = [
            "mutate",
            str(tmp_path / "in"),
            "--mutation",
            "gaussian_blur:sigma_px=2",
            "-o",
            str(tmp_path / "made"),
        ]
        assert main(words) == 0
    assert {image.name for image in read_document(tmp_path / "made/mutate.json").result.images} == {"one/a", "two/a"}


@pytest.mark.parametrize("kind", ["run", "explain", "require"])
def test_a_document_need_not_say_what_the_matrices_are(kind, tmp_path):
    content = read(kind)
    content["matrices"] = None
    written(content, tmp_path / "edited.json")
    assert read_document(tmp_path / "edited.json").result.matrices is None


@pytest.mark.parametrize("far", [1, 3])
def test_a_fraction_rounds_to_the_numbers_beside_it(far, tmp_path):
    """Of a run in exact arithmetic; doubles beside are all that rounding may give."""
    content = json.loads((exact_run()).read_text())
    point = content["requirements"][0]["points"][0]
    for _ in range(far):
        point["lower"] = math.nextafter(point["lower"], -1)
    path = tmp_path / "edited.json"
    written(content, path)
    if far == 1:
        read_document(path)
    else:
        assert refusal(content, tmp_path)[0] == "/requirements/0/points/0/lower"
        point["lower"] = point["probability"]
        del point["exact"]
        assert refusal(content, tmp_path) == (
            "/requirements/0/points/0/exact", "expected a fraction where the settings are exact"
        )  # fmt: skip


@cache
def exact_run():
    """The file of a run in exact arithmetic."""
    path = report_documents.folder() / "exact.json"
    words = ["run", report_documents.SPEC, "--cm", report_documents.BY_CLASS, "--env", "ped", "--exact"]
    with contextlib.redirect_stdout(io.StringIO()):
        main([*words, "--point-only", "--output", str(path)])
    return path


def first_answer(**changes):
    return lambda content: content["answers"][0].update(changes)


def test_that_no_floor_is_enough_contradicts_nothing(tmp_path):
    content = read("require")
    content["answers"][0]["floor"].update(floors=None, proven=0.5)
    written(content, tmp_path / "edited.json")
    assert read_document(tmp_path / "edited.json").result.answers[0].floor.floors is None


def first_violation(content):
    return max(content["explanations"], key=lambda each: len(each["violation"]["patterns"]))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (first_answer(met_as_measured=True), "/answers/0/met_as_measured"),
        (first_answer(condition=None), "/answers/0/condition"),
        (first_answer(condition="if it rains"), "/answers/0/condition"),
        (first_answer(floor=None), "/answers/0/floor"),
        (lambda content: content["answers"][0]["floor"].update(rest="measured"), "/answers/0/floor/rest"),
        (lambda content: content["answers"].append(content["answers"][0]), "/answers/1"),
        (first_answer(planner_is_limit=True), "/answers/0/planner_is_limit"),
        (first_answer(value=None), "/answers/0/value"),
        (first_answer(value="0.9"), "/answers/0/cells/0/required"),
        (first_answer(value="1/0"), "/answers/0/value"),
        (lambda content: content["answers"][0]["curve"][3].__setitem__(0, "1/0"), "/answers/0/curve/3/0"),
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
        (
            lambda content: content["answers"][0]["measured"].update(exact="1962025316/10000000000"),
            "/answers/0/measured/probability",
        ),
        (lambda content: content["answers"][0]["measured"].pop("exact"), "/answers/0"),
        (lambda content: content["answers"][0]["at_value"].update(lower=0.5), "/answers/0/at_value/lower"),
        (
            lambda content: content["answers"][0]["cells"].append(content["answers"][0]["cells"][0]),
            "/answers/0/floor/floors",
        ),
        (lambda content: content["answers"][0]["cells"][0].update(bin="x"), "/answers/0/cells/0/bin"),
        (lambda content: content["answers"][0]["cells"][0].update(label="x"), "/answers/0/cells/0/label"),
        (lambda content: content["answers"][0]["curve"].reverse(), "/answers/0/curve"),
        (lambda content: content["answers"][0]["floor"].update(proven=0.5), "/answers/0/floor/proven"),
        (lambda content: content["answers"][0]["floor"].update(proven=0.96), "/answers/0/curve/244/1"),
        (lambda content: content["answers"][0]["floor"].update(floors=["0.9"]), "/answers/0/floor/floors/0"),
        (lambda content: content["answers"][0]["floor"].update(floors=None), "/answers/0/floor/proven"),
        (lambda content: content["engines"].update(largest_difference=2.0), "/engines/largest_difference"),
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
        (lambda each: each["fixes"][0].update(rate=1.25), "/fixes/0/rate"),
        (lambda each: each["violation"].update(rest=0.5), "/violation/causes"),
        (lambda each: each["violation"]["causes"][0].update(share=0.5), "/violation/causes/0/share"),
        (lambda each: each["map"]["probability"][0].pop(), "/map/probability/0"),
        (lambda each: each["violation"]["patterns"][0]["members"][0]["steps"][0].update(chance=1.5),
         "/violation/patterns/0/members/0/steps/0/chance"),
        (lambda each: each["fixes"][0].update(bin=99), "/fixes/0/bin"),
        (lambda each: each["point"].update(second_engine=0.5), "/point/second_engine"),
        (lambda each: each["point"]["uncertainty"]["interval"]["lower_range"].__setitem__(0, -0.1),
         "/point/uncertainty/interval/lower_range"),
    ],
)  # fmt: skip
def test_numbers_of_an_explanation_are_possible_and_add_up(change, place, tmp_path):
    content = read("explain")
    change(first_violation(content))
    where, _ = refusal(content, tmp_path)
    assert where == f"/explanations/{content['explanations'].index(first_violation(content))}{place}"
