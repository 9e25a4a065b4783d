"""Triggering conditions: each once, sorted by what is known; no data supports nothing; pairs that never were."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from brake import HIT, PHANTOM, built, matrices, write, write_run
from document_edits import summed
from gsn_rules import complaints
from risk_cases import shown
from run_documents import document

import verifier
from verifier.base.documents import json_values
from verifier.base.errors import InputError, UsageError
from verifier.cli import main
from verifier.evidence.bundle.check import check_files
from verifier.evidence.case.building import build_case
from verifier.evidence.consistency import check_document, read_document
from verifier.evidence.context import read_context
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.report import markdown_report
from verifier.evidence.triggers import EXCLUSIVE, NOT_COUNTED, known_triggers

pytestmark = pytest.mark.usefixtures("results_made_once")

CASE = """
[trigger.night]
text = "Street without lamps"
part = "sense"
source = "Analysis 4.2"
effect = "Pedestrians are missed"
matrices = "night.json"
[trigger.day]
text = "Full daylight"
matrices = "day.json"
[trigger.fog]
text = "Visibility below 50 m"
severity = "haze:visibility_m=50"
[trigger.snow]
text = "Snow on the lens"
excluded_by = "Lens monitor"
"""
NAMES, LABELS = ("[0, 10) m", "[10, 20) m", "[20, inf) m"), ("ped", "empty")
LIGHT = ("bright", "dark")
RAIN = ("dry", "wet")
COUNTS = {("bright", "dry"): 4, ("bright", "wet"): 1, ("dark", "dry"): 1, ("dark", "wet"): 0}


def by_light_and_rain():
    """Those of the day by two further variables, with four, one, one and no times the pedestrians."""
    content, bins = matrices("day"), []
    for each in content["bins"]:
        (seen, phantom), (missed, none) = each["counts"]
        for (light, rain), times in COUNTS.items():
            counts = [[times * seen, phantom], [times * missed, none]]  # what is empty has no light and no rain
            bins.append({**each, "where": {"light": light, "rain": rain}, "counts": counts})
    named = (("light", LIGHT), ("rain", RAIN))
    variables = [
        {"name": name, "of": "object", "values": {each: [each] for each in values}} for name, values in named
    ]
    return {**content, "variables": variables, "bins": bins}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = write(tmp_path_factory.mktemp("brake"), spec=HIT + PHANTOM)
    for name in ("day", "night"):
        write_run(found, name, f"{name}_run.json")
    (found / "both.json").write_text(json.dumps(by_light_and_rain()))
    (found / "docs").mkdir()
    for claim in SHOWN:
        (found / f"docs/{claim}.txt").write_text(claim)
    return found


SHOWN = ("memory", "statistics", "triggers", "odd")


@pytest.fixture(scope="module")
def results(folder):
    return [read_document(folder / f"{name}.json") for name in ("day_run", "night_run", "day", "night", "both")]


def stated(folder, text):
    (folder / "case.toml").write_text(text)
    return read_context(folder / "case.toml")


def sorts(found):
    return {each.name: each.sort for each in found.triggers}


def test_every_condition_stands_once_as_what_it_is_known(folder, results):
    found = known_triggers(stated(folder, CASE).triggers, results)
    assert sorts(found) == {"night": "hazardous", "day": "not hazardous", "fog": "no data", "snow": "excluded"}
    assert (found.verdict.value, found.condition) == ("violated", "if items are independent")
    night = found.triggers[0]
    assert {one.requirement: one.verdict.value for one in night.judged} == {
        "no_hit": "violated",
        "no_phantom": "satisfied",
    }
    (hit, _) = night.judged
    assert (hit.probability, hit.lower, hit.upper) == (
        0.81,
        pytest.approx(0.806142, abs=1e-6),
        pytest.approx(0.813814, abs=1e-6),
    )
    assert night.items == {"ped": 300000, "empty": 300000}  # 3 bins of 10^5 each
    page = markdown_report([document(json_values(found), "t.json"), *results]).replace("\\", "")
    table = page.partition("**Triggering conditions**")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    assert [row.partition(":")[0] for row in rows] == ["night", "day", "fog", "snow"]
    assert "no data, in the operational design domain: fog" in page


def test_what_is_undecided_says_what_would_decide_it(tmp_path):
    content = matrices("day")
    for each in content["bins"]:
        each["counts"] = [[count // 1000 for count in row] for row in each["counts"]]
    found = write(tmp_path, spec=HIT.replace("0.99", "0.9999"), day=content)
    write_run(found, "day", "day_run.json")
    context = stated(found, '[trigger.day]\ntext = "Daylight"\nmatrices = "day.json"\n')
    study = known_triggers(context.triggers, [read_document(found / "day_run.json")])
    (trigger,) = study.triggers
    assert (trigger.sort, trigger.items, trigger.drives) == ("undecided", None, None)
    more = int(re.fullmatch(r"(\d+) more items", trigger.judged[0].needed)[1])
    assert study.verdict.value == "inconclusive"
    plan = read_document(found / "day_run.json").content["requirements"][0]["additional_data"]["columns"]
    assert more == sum(each["further"] for each in plan)
    # With so many more at the same rates its bounds decide; with a third of them they do not.
    for times, verdict in ((1.02, "satisfied"), (1 / 3, "inconclusive")):
        bins = [np.array(each["counts"], dtype=float) for each in content["bins"]]
        for each in plan:
            column = bins[NAMES.index(each["bin"])][:, LABELS.index(each["true"])]
            column *= 1 + times * each["further"] / column.sum()
        more_of_it = [{**each, "counts": np.rint(counts).astype(int).tolist()}
                      for each, counts in zip(content["bins"], bins, strict=True)]  # fmt: skip
        path = tmp_path / verdict
        path.mkdir()
        write(path, spec=HIT.replace("0.99", "0.9999"), day={**content, "bins": more_of_it})
        write_run(path, "day", "run.json")
        assert read_document(path / "run.json").content["verdict"] == verdict


def test_a_run_that_asks_nothing_is_no_data(tmp_path):
    found = write(tmp_path, spec=HIT.replace("P >= 0.99", "P = ?"))
    write_run(found, "day", "day_run.json")
    context = stated(found, '[trigger.day]\ntext = "Daylight"\nmatrices = "day.json"\n')
    study = known_triggers(context.triggers, [read_document(found / "day_run.json")])
    assert sorts(study) == {"day": "no data"}
    check_document(document(json_values(study), "t.json"))
    forged = replace(study, triggers=(replace(study.triggers[0], run=None, sort="no data"),))
    check_document(document(json_values(forged), "t.json"))


def test_drives_are_those_with_an_item(tmp_path):
    found = write(tmp_path, day=matrices("day", ("day_01", "day_02", "day_03")))
    context = stated(found, '[trigger.day]\ntext = "Daylight"\nmatrices = "day.json"\n')
    (trigger,) = known_triggers(context.triggers, [read_document(found / "day.json")]).triggers
    assert (trigger.drives, trigger.sort) == (3, "no data")  # nobody ran anything


BINS = "".join(
    f'[trigger.{name}]\ntext = "{name}"\nmatrices = "both.json"\nwhere = {{ {variable} = "{name}" }}\n'
    for variable, names in (("light", LIGHT), ("rain", RAIN))
    for name in names
)


def test_pairs_are_counted_and_those_that_never_were_are_named(folder, results, capsys):
    found = known_triggers(stated(folder, BINS + CASE).triggers, results)
    pairs = {(each.first, each.second): (each.items, each.reason) for each in found.pairs}
    assert len(pairs) == 8 * 7 // 2
    times = 300000  # pedestrians of the day: 10^5 in 3 bins
    assert {pair: pairs[pair] for pair in COUNTS} == {pair: (count * times, "") for pair, count in COUNTS.items()}
    assert pairs["bright", "dark"] == (None, EXCLUSIVE)
    assert pairs["bright", "night"] == pairs["fog", "snow"] == (None, NOT_COUNTED)
    assert {each.name: each.items for each in found.triggers[:4]} == {
        "bright": {"ped": 5 * times, "empty": times}, "dark": {"ped": times, "empty": times},
        "dry": {"ped": 5 * times, "empty": times}, "wet": {"ped": times, "empty": times},
    }  # fmt: skip
    assert main(["evidence", "triggers", *(str(folder / name) for name in ("case.toml", "both.json"))]) == 3
    told = capsys.readouterr().out
    assert "never seen together:\n* dark with wet\n" in told
    assert "no data, in the operational design domain: bright; dark; dry; wet; night; day; fog\n" in told


def test_all_objects_of_one_file_are_in_both_conditions_that_name_it(folder, results):
    text = "".join(f'[trigger.{name}]\ntext = "{name}"\nmatrices = "night.json"\n' for name in ("sun", "lamps"))
    (pair,) = known_triggers(stated(folder, text).triggers, results).pairs
    assert (pair.items, pair.reason) == (300000, "")


def test_a_run_in_a_bin_is_of_the_condition_of_that_bin(folder, results):
    words = [
        "run",
        str(folder / "aeb.ltl"),
        "--cm",
        str(folder / "both.json"),
        "--where",
        "light=dark",
        "--draws",
        "100",
    ]
    main([*words, "-o", str(folder / "dark_run.json")])
    run = read_document(folder / "dark_run.json")
    found = known_triggers(stated(folder, BINS).triggers, [run, *results])
    assert [each.name for each in found.triggers if each.run == run.sha256] == ["dark"]
    with pytest.raises(UsageError, match="two runs of the data of dark"):
        known_triggers(stated(folder, BINS).triggers, [run, replace(run, sha256="0" * 64)])


def test_a_bin_that_is_not_there_is_refused(folder, results):
    text = '[trigger.t]\ntext = "t"\nmatrices = "both.json"\nwhere = { light = "dusk" }\n'
    with pytest.raises(UsageError, match="dusk"):
        known_triggers(stated(folder, text).triggers, results)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('text = "t"\npart = "see"', "trigger.t.part: expected one of sense, plan, act"),
        ('source = "t"', "trigger.t: missing key 'text'"),
        ('text = "t"\nmatrices = "none.json"', "trigger.t.matrices: there is no file 'none.json'"),
        ('text = "t"\nmatrices = "../day.json"', "trigger.t.matrices: expected a file beside this one or below"),
        ('text = "t"\nwhere = { light = "dark" }', "trigger.t.where: expected matrices whose bins these are"),
        ('text = "t"\nodd = true', "trigger.t.odd: unknown key 'odd'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_line_and_key(folder, text, said):
    with pytest.raises(InputError) as refused:
        stated(folder, f"[trigger.t]\n{text}\n")
    assert said in str(refused.value)
    assert re.search(r"case\.toml:\d+", str(refused.value))


ACCEPTABLE = CASE.replace('"night.json"', '"day.json"').replace(
    "[trigger.fog]", '[trigger.fog]\nexcluded_by = "Radar"'
)


def goal(folder, results, text):
    """The goal about triggering conditions, of documents alone."""
    context = stated(folder, text)
    made = document(json_values(known_triggers(context.triggers, results)), "triggers.json")
    documents = [*results, made]
    case = build_case(documents, context, find_defeaters(documents, context, {}), {})
    (found,) = [each for each in case.elements if each.text.startswith("Every known triggering condition")]
    return found.status.value


def test_no_data_in_the_domain_blocks_support_and_what_is_excluded_does_not(folder, results):
    day = [results[0], results[2]]
    documents = "".join(map(shown, SHOWN))
    assert goal(folder, day, ACCEPTABLE + documents) == "supported"
    assert goal(folder, day, ACCEPTABLE.replace('excluded_by = "Radar"', "") + documents) == "undeveloped"
    assert goal(folder, results, CASE + documents) == "violated"
    for left_out in SHOWN:
        some = "".join(shown(claim) for claim in SHOWN if claim != left_out)
        assert goal(folder, day, ACCEPTABLE + some) == "conditional", left_out


def test_without_a_result_the_goal_is_not_developed(folder, results):
    context = stated(folder, CASE)
    case = build_case(results[:1], context, (), {})
    (found,) = [each for each in case.elements if each.text.startswith("Every known triggering condition")]
    assert found.status.value == "undeveloped"


def test_in_a_bundle_they_are_made_again(folder):
    (folder / "case.toml").write_text(CASE)
    bundle = built(folder, "night_run.json", "night.json", context=folder / "case.toml")
    content = json.loads(bundle.files["triggers.json"])
    assert [each["sort"] for each in content["triggers"]] == ["hazardous", "not hazardous", "no data", "excluded"]
    assert check_files("b", bundle.files).findings == ()
    case = yaml.safe_load(bundle.files["case/gsn.yaml"].decode())
    assert complaints(case) == []
    (found,) = [each for each in case.values() if each.get("text", "").startswith("Every known triggering condition")]
    assert found["status"] == "violated"
    other = bundle.files["triggers.json"].replace(b'"sort": "hazardous"', b'"sort": "undecided"')
    wrong = check_files("b", bundle.files | {"triggers.json": other}).findings
    assert any(each.file == "triggers.json" and each.where == "/triggers/0/sort" for each in wrong)


FORGED = [
    (("triggers", 0, "sort"), "not hazardous", "/triggers/0/sort"),
    (("triggers", 0, "judged", 0, "verdict"), "satisfied", "/triggers/0/sort"),
    (("triggers", 0, "judged"), [], "/triggers/0/sort"),
    (("triggers", 0, "run"), "0" * 64, "/triggers/0/run"),
    (("triggers", 2, "name"), "night", "/triggers/2"),
    (("triggers", 2, "excluded_by"), "nobody", "/triggers/2/sort"),
    (("verdict",), "satisfied", "/verdict"),
    (("condition",), None, "/condition"),
    (("pairs",), [], "/pairs"),
    (("pairs", 0, "items"), 7, "/pairs/0/reason"),
]


@pytest.mark.parametrize(("way", "value", "where"), FORGED, ids=range(len(FORGED)))
def test_a_document_that_contradicts_itself_is_refused(folder, results, way, value, where, tmp_path):
    content = json.loads(json.dumps(json_values(known_triggers(stated(folder, CASE).triggers, results))))
    (tmp_path / "t.json").write_text(json.dumps(summed(content)))
    read_document(tmp_path / "t.json")
    part = content
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    (tmp_path / "t.json").write_text(json.dumps(summed(content)))
    with pytest.raises(InputError) as refused:
        read_document(tmp_path / "t.json")
    assert where in str(refused.value)


@pytest.mark.parametrize("change", [{"items": {"ped": 1}}, {"drives": 4}, {"text": "x"}])
def test_one_of_other_numbers_is_refused_beside_its_sources(folder, results, change):
    found = known_triggers(stated(folder, CASE).triggers, results)
    forged = replace(found, triggers=(replace(found.triggers[0], **change), *found.triggers[1:]))
    made = document(json_values(forged), "t.json")
    check_document(made)
    (name,) = change
    if name != "text":  # what people say is said nowhere else
        with pytest.raises(InputError, match="/triggers/0"):
            markdown_report([made, *results])


def test_in_python(folder, results):
    stated(folder, CASE)
    found = verifier.triggers(folder / "case.toml", [folder / "night_run.json", folder / "night.json"])
    assert sorts(found)["night"] == "hazardous"
    assert (
        main(
            [
                "evidence",
                "triggers",
                str(folder / "case.toml"),
                str(folder / "day.json"),
                "-o",
                str(folder / "day.json"),
            ]
        )
        == 2
    )
    with pytest.raises(UsageError, match="the context states no triggering condition"):
        known_triggers((), results)
