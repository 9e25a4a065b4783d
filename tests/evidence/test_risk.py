"""Residual risk of a car with a brake by day and by night: numbers by hand, what is refused, what is unknown."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from brake import HIT, PHANTOM, VACUOUS, write, write_run
from document_edits import summed
from risk_cases import CASE
from run_documents import channel, document, matrices, point, requirement, run

import verifier
from verifier.base.documents import json_values
from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.evidence.consistency import check_document, read_document
from verifier.evidence.context import read_context
from verifier.evidence.rates.exposure import Exposure
from verifier.evidence.rates.hazard import RateQuestion, hazard_rate
from verifier.evidence.report import markdown_report
from verifier.evidence.residual_risk.assembly import residual_risk

SEEN = "[unknown]\nclassified = 300\nleft_over = 0"


def digits(value):
    return pytest.approx(value, rel=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Spec, model and matrices, and a run of each."""
    found = write(tmp_path_factory.mktemp("brake"), spec=HIT + PHANTOM + VACUOUS)
    for name in ("day", "night"):
        write_run(found, name, f"{name}_run.json")
    return found


@pytest.fixture(scope="module")
def runs(folder):
    return [read_document(folder / f"{name}_run.json") for name in ("day", "night")]


def stated(folder, text):
    (folder / "case.toml").write_text(text)
    context = read_context(folder / "case.toml")
    return context.stated


def risk(folder, runs, text=CASE):
    return residual_risk(stated(folder, text), runs)


def test_the_numbers_of_the_specification(folder, runs):
    found = risk(folder, runs)
    (where,), (hazard,), (of_hazard,) = found.environments, found.hazards, found.risks
    assert (where.exposure.lower, where.exposure.upper) == (digits(10.52971640451582), digits(13.61813127164304))
    day, night = hazard.cells
    assert (day.lower, day.upper) == (digits(8.55621683363e-5), digits(3.945230802077e-4))
    assert (night.lower, night.upper) == (digits(0.1861856363948634), digits(0.1938584766104168))
    # The specification gives ten decimals of what follows.
    assert of_hazard.behaviour == pytest.approx((0.0988799956, 0.4005652944), abs=5.1e-11)
    # It gives 0.0029663999677 for the first, where 0.3 * 0.1 of its own lower end is 0.002966399868: a wrong digit.
    assert of_hazard.harm == (pytest.approx(0.0988799956 * 0.03, abs=2e-12), pytest.approx(0.0400565294, abs=5.1e-11))
    assert of_hazard.per_hour == digits(0.230159892)
    shares = {each.name: each.share for each in of_hazard.contributions if each.kind == "condition"}
    assert shares["night"] == pytest.approx(0.98860, abs=5e-6)
    assert next(iter(shares)) == "night"


def test_nobody_was_left_over_of_three_hundred(folder, runs):
    found = risk(folder, runs, CASE.replace("[unknown]\nat_most = 0", SEEN))
    (where,), (of_hazard,) = found.environments, found.risks
    assert where.unlisted.upper == digits(0.00993608194)
    assert where.unlisted.upper >= 1 - 0.05 ** (1 / 300)
    assert of_hazard.behaviour_upper == digits(0.5318961131)
    # What nobody knows may be harmless: the lower end falls by its share.
    assert of_hazard.behaviour_lower == digits(0.09887999559077 * (1 - where.unlisted.upper))
    assert [(each.part, float(each.error)) for each in found.parts] == [
        ("bounds of run 1, day_run.json", 0.05), ("bounds of run 2, night_run.json", 0.05),
        ("encounters of ped", 0.05), ("unlisted encounters", 0.05),
    ]  # fmt: skip
    assert found.level == 0.8


def test_the_rate_of_each_run_alone(runs):
    """What `verify evidence rate` says, which knows of one run: the worst condition for all, or the best."""
    exposure = {"ped": Exposure.counted(240, 20)}
    tops = [hazard_rate(each, RateQuestion("no_hit", environments=("ped",)), exposure).bounds.upper for each in runs]
    assert float(tops[1]) == digits(2.6399901826)
    assert float(tops[0]) == pytest.approx(0.00537267, abs=5e-9)


def test_a_confidence_that_is_asked_is_shared_by_the_counts(folder, runs):
    text = CASE.replace("[unknown]\nat_most = 0", SEEN) + "[risk]\nconfidence = 0.88\n"
    found = risk(folder, runs, text)
    assert found.level == 0.88
    assert [str(each.error) for each in found.parts] == ["1/20", "1/20", "1/100", "1/100"]
    assert found.environments[0].unlisted.upper == digits(1 - 0.01 ** (1 / 300))
    for asked in ("0.9", "0.95"):
        with pytest.raises(UsageError, match=r"leaves too little for 2 counted intervals at a confidence of 0\.9"):
            risk(folder, runs, text.replace("0.88", asked))
    with pytest.raises(UsageError, match="leaves too little for 1 counted intervals"):
        risk(folder, runs, CASE.replace('source = "Fleet log L, 2026"', "level = 0.1"))


def test_stated_levels_are_spent_once(folder, runs):
    text = CASE.replace(
        "uncontrolled = [0.3, 0.5]", 'uncontrolled = { between = [0.3, 0.5], level = 0.99, source = "T" }'
    )
    text = text.replace('source = "Fleet log L, 2026"', 'source = "Fleet log L, 2026"\nlevel = 0.98')
    text += '[hazard.H2]\nevent = "no_hit"\nenvironments = ["ped"]\n'
    found = risk(folder, runs, text)
    assert {each.part: str(each.error) for each in found.parts} == {
        "bounds of run 1, day_run.json": "1/20", "bounds of run 2, night_run.json": "1/20",
        "encounters of ped": "1/20", "share of day": "1/50", "uncontrolled of H1": "1/100",
    }  # fmt: skip
    assert found.level == 0.82
    assert [each.source for each in found.hazards[0].chain] == ["HARA 3.2", "T", "HARA 3.2"]
    # Nothing is stated of H2's way to harm: every factor is 1, and both together are the sum.
    assert found.risks[1].harm == found.risks[1].behaviour
    assert found.total.harm_upper == digits(found.risks[0].harm_upper + found.risks[1].harm_upper)


def cells(found):
    return [(each.condition, each.lower, each.upper, each.unknown) for each in found.hazards[0].cells]


def test_what_has_no_matrices_or_no_run_counts_as_unknown(folder, runs):
    nothing = risk(folder, runs, CASE.replace('matrices = "night.json"\n', ""))
    assert cells(nothing)[1] == ("night", 0, 1, "it has no matrices")
    assert nothing.risks[0].behaviour_upper == digits(13.61813127164304 * (0.85 * 3.945230802077e-4 + 0.15))
    no_run = risk(folder, runs[:1])
    assert cells(no_run)[1] == ("night", 0, 1, "no run of its matrices is here")
    assert no_run.risks[0].per_hour is None
    assert [run.name for run in no_run.runs] == ["day_run.json"]
    missing = risk(folder, runs, CASE.replace("[unknown]\nat_most = 0\n", ""))
    assert missing.risks[0].behaviour_upper == digits(13.61813127164304)
    assert missing.risks[0].behaviour_lower == 0


def made(matrices_file, p_value=None, low=0.9, assume=False, **more):
    """The result of a run of these matrices, made by hand: P of `stops` within `low` and 0.99 in two states."""
    drawn = {"draws": ["ped"]}
    values = ((0.96, low, 1), (0.97, 0.92, 2))
    points = [
        point(
            value,
            "satisfied" if assume or p_value != 0.0001 else "inconclusive",
            (least, 0.99),
            initial={"x": x},
            **drawn,
        )
        for value, least, x in values
    ]
    asked = requirement("stops", points, target=(">=", "1/2"))
    inputs = ("1" * 64, "2" * 64, read_document(matrices_file).sha256)
    return run(
        [asked], inputs=inputs, channel=channel(p_value), environments=["ped"], assume_memoryless=assume, **more
    )


MADE = """
[exposure.every]
per_hour = 1
[condition.all]
matrices = "all.json"
share = 1
[unknown]
at_most = 0
[hazard.H1]
event = "stops"
"""


@pytest.fixture
def alone(tmp_path):
    (tmp_path / "all.json").write_text(json.dumps(matrices().content))
    return tmp_path


def test_a_run_that_its_data_contradict_says_nothing(alone):
    (cell,) = cells(risk(alone, [made(alone / "all.json", 0.0001)], MADE))
    assert cell[:3] == ("all", 0, 1)
    assert cell[3].startswith("the data contradict a memoryless detector (ped, p = 0.0001)")
    found = risk(alone, [made(alone / "all.json", 0.0001, assume=True)], MADE)
    assert cells(found) == [("all", pytest.approx(0.01), pytest.approx(0.1), "")]
    assert "memoryless (assumed; the data contradict it" in found.hazards[0].assumes[0]


def test_bounds_however_reports_depend_stand_in_for_what_the_data_contradict(alone):
    free = {
        "lower": 0.8,
        "upper": 0.995,
        "horizon": 9,
        "flows": 1,
        "undecided": [0.0, 0.0],
        "rates": "confidence_region",
    }
    content = json.loads(json.dumps(made(alone / "all.json", 0.0001).content))
    for each in content["requirements"][0]["points"]:
        each["dependence_free"] = free
    found = risk(alone, [document(content)], MADE)
    assert cells(found) == [("all", pytest.approx(0.005), pytest.approx(0.2), "")]
    assert found.hazards[0].assumes == ("drives are independent and none holds more than 40 items of a column",)
    assert [(each.times, str(each.error)) for each in found.runs] == [(2, "1/10")]  # those of the model may miss, too
    for each in content["requirements"][0]["points"]:
        each["dependence_free"] = free | {"rates": "measured"}  # which leaves the data's uncertainty out
    assert cells(risk(alone, [document(content)], MADE))[0][:3] == ("all", 0, 1)


def test_an_interval_that_stands_in_for_bounds_misses_once_for_each_state(alone):
    content = json.loads(json.dumps(made(alone / "all.json", 0.4).content))
    assert risk(alone, [document(content)], MADE).runs[0].times == 1
    for each in content["requirements"][0]["points"]:
        each["uncertainty"]["confidence_bounds"] = None
    (found,) = risk(alone, [document(content)], MADE).runs
    assert (found.source, found.times) == ("interval", 2)


def test_a_run_without_uncertainty_says_nothing(alone):
    content = json.loads(json.dumps(made(alone / "all.json", 0.4).content))
    content["settings"] |= {"verdict_from": "point"}
    (cell,) = cells(risk(alone, [document(content)], MADE))
    assert cell == ("all", 0, 1, "its run leaves the data's uncertainty out")


def test_initial_states_are_mixed_as_stated_else_from_the_least_to_the_worst(alone):
    given = made(alone / "all.json", 0.4)
    (cell,) = cells(risk(alone, [given], MADE))
    assert cell[1:3] == (pytest.approx(0.01), pytest.approx(0.1))
    mixed = MADE.replace("[exposure.every]", "[exposure.ped]")
    mixed += '[initial.ped]\n"ped x=1" = [0.2, 0.3]\n"ped x=2" = [0.7, 1]\n'
    found = risk(alone, [given], mixed)
    assert cells(found)[0][1:3] == (pytest.approx(0.01), pytest.approx(0.3 * 0.1 + 0.7 * 0.08))
    for line, said in (
        ('"ped x=1" = [0.2, 0.3]\n"ped x=3" = [0.7, 1]', r"\[initial.ped\]: unknown scenario 'ped x=3'"),
        ('"ped x=1" = 1', r"\[initial.ped\]: no share of 'ped x=2'"),
    ):
        with pytest.raises(UsageError, match=said):
            risk(alone, [given], mixed[: mixed.index('"ped x=1"')] + line)


def test_a_vacuous_run_says_nothing(folder, runs):
    found = risk(folder, runs, CASE.replace("no_hit", "vacuous_one"))
    assert {cell[3] for cell in cells(found)} == {"its run says nothing about the system"}
    assert found.risks[0].behaviour_upper == digits(13.61813127164304)


CHANGES = [
    ("share = [0.85, 0.95]", "share = [0.85, 0.84]", "condition.day.share: expected a number from 0 to 1, or two"),
    (
        "share = [0.85, 0.95]",
        "share = [0.85, 0.9, 0.95]",
        "condition.day.share: expected a number from 0 to 1, or two",
    ),
    ("share = [0.85, 0.95]", "share = []", "condition.day.share: expected a number from 0 to 1, or two"),
    (
        "share = [0.85, 0.95]",
        "share = 0.8",
        "condition: the shares must add up to 1, and they add up to 0.85 to 0.95",
    ),
    ("share = [0.85, 0.95]", "share = [0.96, 1]", "condition: the shares must add up to 1, and they add up to 1.01"),
    ("share = [0.85, 0.95]", "share = -0.1", "condition.day.share: expected a number from 0 to 1, got -0.1"),
    ("share = [0.85, 0.95]", "share = [0.85, nan]", "condition.day.share[1]: expected a number from 0 to 1, got nan"),
    ("share = [0.85, 0.95]", "share = inf", "condition.day.share: expected a number from 0 to 1, got inf"),
    ("share = [0.85, 0.95]", 'share = "much"', "condition.day.share: expected a number from 0 to 1"),
    ("share = [0.85, 0.95]", "share = true", "condition.day.share: expected a number from 0 to 1, got True"),
    ("share = [0.85, 0.95]", "share = {}", "condition.day.share: expected a share for each environment"),
    ("share = [0.85, 0.95]", "share = { ped = 0.9 }", "condition.night.share: no share in environment 'ped'"),
    ("share = [0.85, 0.95]\n", "", "condition.day: missing key 'share'"),
    ('"day.json"', '"dya.json"', "condition.day.matrices: there is no file 'dya.json' beside this one"),
    ('"day.json"', '"../day.json"', "condition.day.matrices: expected a file beside this one or below"),
    ('"day.json"', '"/etc/passwd"', "condition.day.matrices: expected a file beside this one or below"),
    ('"Fleet log L, 2026"', '"L"\nlevel = 1', "condition.day.level: a level lies strictly between 0 and 1"),
    ("at_most = 0", "at_most = 1.01", "unknown.at_most: expected a number from 0 to 1"),
    ("at_most = 0", "classified = 300", "unknown: expected encounters that were classified and left over"),
    ("at_most = 0", "classified = 0\nleft_over = 0", "unknown.classified: expected a whole number from 1"),
    ("at_most = 0", "classified = 9\nleft_over = 10", "unknown.left_over: expected a whole number from 0 to 9"),
    ("at_most = 0", "classified = 9\nleft_over = 0\nat_most = 0", "unknown: expected encounters that were"),
    ("at_most = 0", "", "unknown: expected encounters that were classified and left over"),
    ('event = "no_hit"\n', "", "hazard.H1: missing key 'event'"),
    ('event = "no_hit"', 'evnt = "no_hit"', "hazard.H1.evnt: unknown key 'evnt'"),
    ("exposed = 1", "exposed = 1.5", "hazard.H1.exposed: expected a number from 0 to 1"),
    ("exposed = 1", "exposed = { between = [0, 1], level = 2 }", "hazard.H1.exposed.level: a level lies strictly"),
    ("exposed = 1", "exposed = { level = 0.9 }", "hazard.H1.exposed: missing key 'between'"),
    ("accept_harm_per_hour = 1e-3", "accept_harm_per_hour = 0", "accept_harm_per_hour: expected a number above 0"),
    (
        "[hazard.H1]",
        "[risk]\naccept_harm_per_hour = 1e-4\n[hazard.H1]",
        "the hazards accept 0.001 harm per hour in all",
    ),
    ("[hazard.H1]", "[risk]\nconfidence = 1\n[hazard.H1]", "risk.confidence: a level lies strictly between 0 and 1"),
    ('"night.json"', '"day.json"', "condition.night.matrices: the same counts as those of 'day'"),
    ('"night.json"', '"of_the_night.json"', "condition.night.matrices: the same counts as those of 'day'"),
    ("[hazard.H1]", "[initial.ped]\n[hazard.H1]", "initial.ped: the shares in 'ped' must add up to 1"),
]


@pytest.mark.parametrize(("old", "new", "said"), CHANGES, ids=range(len(CHANGES)))
def test_what_cannot_be_meant_is_refused_with_line_and_key(folder, old, new, said):
    assert old in CASE
    same = json.loads((folder / "day.json").read_text()) | {"title": "the day in other words"}
    (folder / "of_the_night.json").write_text(json.dumps(same, indent=1))
    with pytest.raises(InputError) as refused:
        stated(folder, CASE.replace(old, new, 1))
    told = str(refused.value)
    assert said in told
    assert re.search(r"case\.toml:\d+", told), told


def test_a_hazard_needs_conditions(folder):
    with pytest.raises(InputError, match="hazard: a hazard needs conditions"):
        stated(folder, '[hazard.H1]\nevent = "no_hit"')


def test_an_allocation_that_fits_is_taken(folder, runs):
    text = CASE + '[hazard.H2]\nevent = "no_hit"\nenvironments = ["ped"]\naccept_harm_per_hour = 9e-3\n'
    found = risk(folder, runs, text + "[risk]\naccept_harm_per_hour = 1e-2\n")
    assert (found.accepted, found.total.verdict.value) == ("1/100", "violated")


FOREIGN = [
    ("no_hit", "no_hti", "unknown requirement 'no_hti'"),
    ('environments = ["ped"]', 'environments = ["pde"]', "unknown environment 'pde'"),
    ('environments = ["ped"]\n', "", "no exposure is given for empty"),
    ("[exposure.ped]", "[exposure.every]", "hazard H1 names environments, and [exposure.every] is of all of them"),
    ("[unknown]", "[unknown.empty]", "[unknown]: nothing is stated of environment 'ped'"),
    ('event = "no_hit"', 'event = "no_hit"\nplanner = "other"', "unknown planner 'other'"),
]


@pytest.mark.parametrize(("old", "new", "said"), FOREIGN)
def test_what_the_runs_do_not_know_is_refused(folder, runs, old, new, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        risk(folder, runs, CASE.replace(old, new))


def test_runs_that_do_not_belong_together_are_refused(folder, runs, alone):
    day, night = runs
    with pytest.raises(UsageError, match="no run is of the matrices of a condition"):
        risk(folder, [])
    with pytest.raises(UsageError, match="two runs of the same matrices"):
        risk(folder, [day, night, replace(day, sha256="0" * 64)])
    content = json.loads(json.dumps(night.content))
    for each in content["inputs"]:
        each["sha256"] = each["sha256"] if each["role"] == "confusion" else "9" * 64
    other = document({key: value for key, value in content.items() if key != "checksums"}, "other.json")
    with pytest.raises(
        UsageError, match=r"day_run\.json and other\.json are runs of different specs, models or settings"
    ):
        risk(folder, [day, other])


def test_shares_may_differ_by_environment(folder, runs):
    text = CASE.replace("share = [0.85, 0.95]", "share = { ped = 0.5, empty = 0.9 }")
    text = text.replace("share = [0.05, 0.15]", "share = { ped = 0.5, empty = 0.1 }").replace(
        'environments = ["ped"]\n', ""
    )
    text = text.replace("[unknown]\nat_most = 0", "[unknown.ped]\nat_most = 0\n[unknown.empty]\nat_most = 0.5")
    found = risk(folder, runs, text + "[exposure.empty]\nper_hour = 2\n")
    # In an empty place the event cannot happen, as far as that is known: half of the encounters are not.
    inside = 13.61813127164304 * (3.945230802077e-4 + 0.1938584766104168) / 2
    assert found.risks[0].behaviour_upper == digits(inside + 2 * 0.5)
    names = [each.name for each in found.risks[0].contributions if each.kind == "environment"]
    assert sorted(names) == ["empty", "ped"]


def test_on_the_command_line_and_in_python(folder, runs, capsys):
    stated(folder, CASE)
    words = [str(folder / name) for name in ("case.toml", "day_run.json", "night_run.json")]
    assert main(["evidence", "risk", *words, "-o", str(folder / "risk.json")]) == 1
    told = capsys.readouterr().out
    assert "H1: hazardous behaviour 0.2302, [0.09887, 0.4006] per hour, harm [0.002966, 0.04006] per hour" in told
    assert "the upper end by condition: night 98.86 %; day 1.14 %" in told
    assert "accepted is at most 0.001 per hour: not met, if items are independent" in told
    assert "* probability of the event in night: at most 0.00266 instead of 0.1939" in told
    assert "all ends hold at once at 85 % (error budget: 0.05 bounds of run 1, day_run.json" in told
    written = read_document(folder / "risk.json")
    assert written.kind == "risk"
    again = verifier.risk(folder / "case.toml", [folder / "day_run.json", folder / "night_run.json"])
    assert replace(written.result, command=()) == again
    assert main(["schema", "risk"]) == 0
    assert '"verifier.risk.v1"' in capsys.readouterr().out
    page = markdown_report([written, *runs]).replace("\\", "")
    assert "**violated, if items are independent**: Hazard H1: harm [0.002966, 0.04006] per hour at 85 %" in page
    assert "98.9 % of the upper end comes from condition night" in page
    assert "## Residual risk: risk.json" in page
    assert "is not beside this risk" not in page
    assert "is not beside this risk" in markdown_report([written])


def test_a_criterion_that_is_met_ends_with_exit_code_0(folder, capsys):
    stated(folder, CASE.replace("1e-3", "0.05"))
    words = [str(folder / name) for name in ("case.toml", "day_run.json", "night_run.json")]
    assert main(["evidence", "risk", *words]) == 0
    assert main(["evidence", "risk", *words[:2]]) == 3  # of the night nothing is known
    assert "unknown: no run of its matrices is here" in capsys.readouterr().out
    assert main(["evidence", "risk", words[0], str(folder / "day.json")]) == 2
    before = (folder / "day.json").read_bytes()
    assert main(["evidence", "risk", *words, "-o", str(folder / "day.json")]) == 2
    assert (folder / "day.json").read_bytes() == before


FORGED = [
    (("environments", 0, "exposure", "upper"), 11.0, "/risks/0/behaviour_upper"),
    (("environments", 0, "unlisted", "upper"), 0.001, "/risks/0/behaviour_lower"),
    (("environments", 0, "unlisted", "left_over"), 300, "/risks/0/per_hour"),
    (("environments", 0, "unlisted", "left_over"), None, "/environments/0/unlisted"),
    (("environments", 0, "error"), "1/2", "/parts/2/error"),
    (("environments", 0, "shares", 1, "upper"), "1/10", "/risks/0"),
    (("environments", 0, "shares", 1, "lower"), "9/10", "/environments/0/shares/1"),
    (("environments", 0, "shares", 1, "lower"), "-1/10", "/environments/0/shares/1"),
    (("environments", 0, "shares", 1, "name"), "dusk", "expected one cell for each of its environments"),
    (("hazards", 0, "cells", 1, "upper"), 0.19, "/risks/0"),
    (("hazards", 0, "cells", 1, "upper"), 1.5, "/hazards/0/cells/1/upper"),
    (("hazards", 0, "cells", 1, "unknown"), "so", "/hazards/0/cells/1"),
    (("hazards", 0, "cells", 1, "run"), 7, "/hazards/0/cells/1/run"),
    (("hazards", 0, "accepted"), "1", "/risks/0"),
    (("hazards", 0, "accepted"), "0", "/risks/0"),
    (("hazards", 0, "chain", 1, "upper"), "1/1000", "/hazards/0/chain/1"),
    (("hazards", 0, "chain", 1, "name"), "exposed", "/hazards/0"),
    (("runs", 0, "level"), 0.999, "/parts/0/error"),
    (("runs", 0, "sha256"), "0" * 64, "/inputs"),
    (("level",), 0.999, "/level"),
    (("verdict",), "satisfied", "/verdict"),
    (("risks", 0, "verdict"), "satisfied", "/risks/0/verdict"),
    (("risks", 0, "harm_upper"), 1e-4, "/risks/0/harm_upper"),
    (("risks", 0, "contributions", 0, "share"), 0.1, "/risks/0/contributions/0/share"),
    (("risks", 0, "improvements", 0, "needed"), 9.0, "/risks/0/improvements/0/needed"),
    (("total", "harm_upper"), 1e-4, "/total/harm_upper"),
]


def changed(content, way, value):
    content = json.loads(json.dumps(content))
    part = content
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    return content


@pytest.mark.parametrize(("way", "value", "where"), FORGED, ids=range(len(FORGED)))
def test_a_document_that_contradicts_itself_is_refused(folder, runs, way, value, where, tmp_path):
    content = json_values(risk(folder, runs, CASE.replace("[unknown]\nat_most = 0", SEEN)))
    (tmp_path / "risk.json").write_text(json.dumps(summed(content)))
    read_document(tmp_path / "risk.json")
    (tmp_path / "risk.json").write_text(json.dumps(summed(changed(content, way, value))))
    with pytest.raises(InputError) as refused:
        read_document(tmp_path / "risk.json")
    assert where in str(refused.value)


def made_again(found, **more):
    """The document of a risk of other numbers, which follows from itself."""
    names = (
        "inputs",
        "versions",
        "conditions",
        "environments",
        "runs",
        "hazards",
        "confidence",
        "accepted",
        "source",
    )
    kept = {name: getattr(found, name) for name in names}
    return document(json_values(type(found)(**kept | more)), "risk.json")


STATED = [
    (("exposure", {"upper": 11.0}), "exposure/upper"),
    (("exposure", {"lower": 12.0}), "exposure/lower"),
    (("exposure", {"per_hour": 1.0}), "exposure/per_hour"),
    (("exposure", {"encounters": 10}), "exposure/"),
    (("unlisted", {"upper": 0.001}), "unlisted/upper"),
    (("unlisted", {"classified": 3000}), "unlisted/upper"),
    (("unlisted", {"error": Fraction(1, 1000)}), "unlisted/"),
    (("unlisted", {"error": Fraction(-1, 2)}), ""),
    (("unlisted", {"part": "encounters of ped"}), "unlisted/part"),
    (("exposure", {"kind": "interval"}), "exposure/kind"),
]


@pytest.mark.parametrize(("change", "where"), STATED)
def test_intervals_of_counts_follow_from_them(folder, runs, change, where):
    found = risk(folder, runs, CASE.replace("[unknown]\nat_most = 0", SEEN))
    (place,), (name, more) = found.environments, change
    forged = made_again(found, environments=(replace(place, **{name: replace(getattr(place, name), **more)}),))
    with pytest.raises(InputError, match=f"/environments/0/{where}"):
        check_document(forged)
    check_document(made_again(found))


@pytest.mark.parametrize("change", [{"upper": 0.1900000001}, {"lower": 0.1}, {"estimate": 0.1}, {"scenario": "x"}])
def test_one_that_is_made_of_other_numbers_is_refused_beside_its_runs(folder, runs, change):
    found = risk(folder, runs)
    (hazard,), (name,) = found.hazards, change
    cells = (hazard.cells[0], replace(hazard.cells[1], **change))
    forged = made_again(found, hazards=(replace(hazard, cells=cells),))
    markdown_report([forged])  # alone it says so, and that nobody can tell
    with pytest.raises(InputError, match=f"/hazards/0/cells/1/{name}"):
        markdown_report([forged, *runs])
    weaker = made_again(
        found, hazards=(replace(hazard, assumes=()),), runs=(replace(found.runs[0], times=0), found.runs[1])
    )
    with pytest.raises(InputError, match="/runs/0/times"):
        markdown_report([weaker, *runs])


def test_no_part_of_the_error_is_hidden_behind_another(folder, runs):
    found = risk(folder, runs)
    ((place,), (hazard,)) = found.environments, found.hazards
    twice = tuple(replace(each, part="share of day") for each in place.shares)
    with pytest.raises(InputError, match="/environments/0/shares"):
        check_document(made_again(found, environments=(replace(place, shares=twice),)))
    chain = (replace(hazard.chain[0], part="share of day"), *hazard.chain[1:])
    with pytest.raises(InputError, match="/hazards/0/chain/0/part"):
        check_document(made_again(found, hazards=(replace(hazard, chain=chain),)))
    less = replace(place, unlisted=replace(place.unlisted, error=Fraction(-1, 2)))
    with pytest.raises(InputError, match="/environments/0/unlisted"):
        check_document(made_again(found, environments=(less,)))
    with pytest.raises(ValueError, match="from 0 to 1"):
        replace(place.shares[0], error=Fraction(-1, 2))


def test_what_is_too_large_or_too_much_is_refused(folder, runs):
    huge = CASE.replace("encounters = 240\nhours = 20", "per_hour = 9e299") + "[exposure.empty]\nper_hour = 9e299\n"
    huge = huge.replace("[unknown]\nat_most = 0", "[unknown]\nat_most = 1").replace('environments = ["ped"]\n', "")
    with pytest.raises(UsageError, match="a rate of more than 1e\\+300 per hour is none"):
        risk(folder, runs, huge)
    with pytest.raises(InputError, match="condition: expected at most 50 conditions, got 51"):
        stated(folder, "".join(f"[condition.c{k}]\nshare = [0, 1]\n" for k in range(51)))
