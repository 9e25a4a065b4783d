"""Safety performance indicators of a bundle, and what the field does to its claims."""

import csv
import hashlib
import io
import json
import math

import numpy as np
import pytest
from small_bundles import MATRICES, write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.documents import read_document
from verifier.cli import main
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.check import check_files
from verifier.evidence.field import FieldRow, SpiResult
from verifier.evidence.field import tested as said_of
from verifier.study.options import RunOptions

pytestmark = pytest.mark.usefixtures("results_made_once")

FEW = RunOptions(confidence=ConfidenceSettings(draws=100))
CONTEXT = """
[exposure.ped]
per_hour = 12
[exposure.empty]
per_hour = 100
[acceptance.stops]
per_hour = 2
[condition.day]
share = [0.8, 0.9]
matrices = "matrices.json"
[condition.rain]
share = [0.1, 0.2]
[unknown]
classified = 300
left_over = 0
[hazard.H1]
event = "stops"
accept_harm_per_hour = 60
"""
RECALL = "recall ped [0, 10) m"


def built(folder, field=None, matrices=MATRICES):
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(CONTEXT + ("" if field is None else '[field]\nfile = "field.csv"\n'))
    (folder / "field.csv").write_text(field or "")
    return make_bundle(Sources(*write_inputs(folder, matrices=matrices), folder / "case.toml"), FEW)


def counted(*rows):
    """A file of the field, by the metrics' whole names."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("metric", "count", "of"), *rows])
    return text.getvalue()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return built(tmp_path_factory.mktemp("plain"))


def spi_of(bundle):
    return json.loads(bundle.files["spi.json"])


def test_a_bundle_says_what_must_stay_true(plain):
    found = spi_of(plain)["indicators"]
    told = {f"{each['metric']} {each['side']}": each for each in found}
    required = json.loads(plain.files["results/require/01_stops.json"])["answers"][0]["cells"][0]["required"]
    assert told[f"{RECALL} at_least"]["threshold"] == float(required)
    assert told["misses after a miss ped [0, 10) m at_most"]["threshold"] == pytest.approx(1 - float(required))
    assert told["encounters ped at_most"]["threshold"] == 12
    assert told["share rain ped at_most"]["threshold"] == 0.2
    assert told["share rain ped at_least"]["threshold"] == 0.1
    assert told["no listed condition ped at_most"]["threshold"] == pytest.approx(1 - 0.05 ** (1 / 300))
    (false,) = [each for name, each in told.items() if name.startswith("false positives")]
    assert 0.1 < false["threshold"] < 0.2  # 10 of 100
    for each in found:
        assert each["least"] > 0
        assert all(each[key] for key in ("measure", "source", "action", "requirements"))
    assert [each["falls"] for each in found].count("requirement") == 3


def test_distances_are_an_indicator_where_their_errors_are_known(tmp_path):
    rows = [[0, 5], [5, 10]]
    matrices = {
        **MATRICES,
        "bins": [{"distance_m": each, "counts": [[150, 5], [50, 45]]} for each in rows],
        "localisation": {"axes": ["reported", "true"], "counts": [[140, 10], [10, 140]]},
    }
    (found,) = [
        each
        for each in spi_of(built(tmp_path, matrices=matrices))["indicators"]
        if each["metric"] == "reported in the true distance bin"
    ]
    assert 0.89 < found["threshold"] < 280 / 300


def statuses(bundle):
    rows = {row["requirement"]: row for row in bundle.trace()}
    case = bundle.files["case/gsn.yaml"].decode()
    return rows["stops"]["status"], rows["stops"]["defeated_by"], case


def test_a_fired_indicator_makes_its_claim_defeated_when_the_bundle_is_built_with_the_field(plain, tmp_path):
    assert statuses(plain)[0] == "conditional"
    quiet = built(tmp_path / "quiet", counted((RECALL, 700, 1000), (RECALL, 720, 1000)))
    assert statuses(quiet)[0] == "conditional"
    bundle = built(tmp_path / "fired", counted((RECALL, 700, 1000), (RECALL, 500, 1000)))
    status, by, _ = statuses(bundle)
    assert (status, "the field contradicts it" in by) == ("defeated", True)
    assert check_files("b", bundle.files).sound
    altered = {**bundle.files, "inputs/context/field.csv": counted((RECALL, 999, 1000)).encode()}
    assert not check_files("b", altered).sound


def test_encounters_that_come_more_often_defeat_the_rate_and_not_the_requirement(plain, tmp_path):
    bundle = built(tmp_path, counted(("encounters ped", 400, 20)))
    status, by, case = statuses(bundle)
    assert (status, by) == ("conditional", statuses(plain)[1])
    goals = [block for block in case.split("\n\n") if "violation rate" in block or "The harm of" in block]
    assert len(goals) == 2
    assert all('status: "defeated"' in each for each in goals)
    assert check_files("b", bundle.files).sound


def test_the_command_says_what_fired_and_when(plain, tmp_path, capsys):
    (tmp_path / "spi.json").write_bytes(plain.files["spi.json"])
    metrics = list(dict.fromkeys(each["metric"] for each in spi_of(plain)["indicators"]))
    enough = {name: (8, 10) if name.startswith("recall") else (0, 10) for name in metrics}
    enough |= {
        "share day ped": (9, 10),
        "share day empty": (9, 10),
        "share rain ped": (1, 10),
        "share rain empty": (1, 10),
    }
    good = [(name, *enough[name]) for name in metrics]
    for rows, code, said in (
        (good, 0, "0 indicators of"),
        ([*good, (RECALL, 0, 40)], 1, "fired at look 2"),
        (good[1:], 3, "no data"),
    ):
        (tmp_path / "field.csv").write_text(counted(*rows))
        command = ["spi", "check", str(tmp_path / "spi.json"), str(tmp_path / "field.csv")]
        assert main([*command, "-o", str(tmp_path / "out.json")]) == code
        assert said in capsys.readouterr().out
        out = json.loads((tmp_path / "out.json").read_text())
        assert out["schema"] == "verifier.spi_check"
        assert len(out["found"]) == len(spi_of(plain)["indicators"])


def test_the_day_on_which_an_indicator_fired_is_told(plain, tmp_path, capsys):
    (tmp_path / "spi.json").write_bytes(plain.files["spi.json"])
    (tmp_path / "field.csv").write_text(
        f'metric,count,of,date\n"{RECALL}",9,10,2026-05-01\n"{RECALL}",0,400,2026-05-08\n"{RECALL}",0,4,2026-05-15\n'
    )
    command = ["spi", "check", str(tmp_path / "spi.json"), str(tmp_path / "field.csv")]
    assert main([*command, "-o", str(tmp_path / "out.json")]) == 1
    assert "fired at look 2, 2026-05-08" in capsys.readouterr().out
    (found,) = [each for each in json.loads((tmp_path / "out.json").read_text())["found"] if each.get("fired_on")]
    assert (found["fired_at"], found["fired_on"]) == (2, "2026-05-08")


def fired(indicator, true, rng):
    """Whether an indicator fires within its printed least sample, whoever looks after so many items at a time."""
    whole = math.ceil(indicator.least)
    ends = sorted({*rng.integers(1, whole, rng.integers(0, 60)).tolist(), whole})
    sizes = np.diff([0, *ends])
    draws = rng.binomial(sizes, true) if indicator.kind == "share" else rng.poisson(true * sizes)
    rows = [FieldRow(indicator.metric, int(count), int(of)) for count, of in zip(draws, sizes, strict=True)]
    (found,) = said_of(SpiResult(title="t", level=0.95, indicators=(indicator,)), rows, "f")
    return found.fired_at is not None


@pytest.mark.parametrize("start", ["recall", "misses after", "false positives", "encounters ped", "share rain ped"])
def test_what_a_bundle_prints_holds_in_a_thousand_streams(start, plain):
    """At the threshold: fires in a twentieth at most, however often somebody looks. Off it as the indicator says:
    nearly nine in ten, as few look after each item."""
    spi = read_document(SpiResult, spi_of(plain), "spi.json")
    rng = np.random.default_rng(4)
    chosen = [one for one in spi.indicators if one.metric.startswith(start)]
    assert chosen
    for each in chosen:
        sign = -1 if each.side == "at_least" else 1
        off = float(each.departure.split()[0])
        true = 1.5 * each.threshold if each.kind == "rate" else each.threshold + sign * off
        assert off == (1.5 if each.kind == "rate" else 0.05)
        assert sum(fired(each, each.threshold, rng) for _ in range(1000)) <= 50, each.told
        assert sum(fired(each, true, rng) for _ in range(1000)) >= 800, each.told


BAD = {
    f'metric,count,of,date\n"{RECALL}",1,2,yesterday\n': "field.csv:2: expected a date such as 2026-05-04",
    f'metric,count,of,date\n"{RECALL}",1,2,2026-05-04\n"{RECALL}",1,2,2026-05-03\n': "field.csv:3: expected",
    f'metric,count,of,date\n"{RECALL}",1,2,2999-05-04\n': "field.csv:2: expected a day that has been, today is ",
    "": "expected the columns metric, count, of, and perhaps date, found nothing",
    "metric,count\n": "expected the columns metric, count, of",
    "metric,count,of\nrecal ped,1,2\n": "unknown metric",
    f'metric,count,of\n"{RECALL}",3,2\n': "expected a count of at most as many items, a whole number, found 3 of 2",
    f'metric,count,of\n"{RECALL}",1,2.5\n': "expected a count of at most as many items",
    f'metric,count,of\n"{RECALL}",x,2\n': "field.csv:2: expected a metric and two numbers",
    f'metric,count,of\n"{RECALL}",nan,2\n': "field.csv:2",
    f'metric,count,of\n"{RECALL}",1,inf\n': "field.csv:2",
    f'metric,count,of\n"{RECALL}",-1,2\n': "field.csv:2",
    f'metric,count,of\n"{RECALL}",1.5,2\n': "field.csv:2",
    f'metric,count,of\n"{RECALL}",1,0\n': "field.csv:2",
    f'metric,count,of\n"{RECALL}",1,2,3\n': "field.csv:2",
    'metric,count,of\n"open,1,2\n': "not a readable CSV file",
    f"metric,count,of\n{RECALL},1,2\n": "quotation marks",
}


@pytest.mark.parametrize("text", BAD)
def test_files_of_the_field_that_cannot_be_right_are_refused_with_their_line(text, plain, tmp_path, capsys):
    (tmp_path / "spi.json").write_bytes(plain.files["spi.json"])
    (tmp_path / "field.csv").write_text(text)
    assert main(["spi", "check", str(tmp_path / "spi.json"), str(tmp_path / "field.csv")]) == 4
    assert BAD[text] in capsys.readouterr().err


IMPOSSIBLE = [
    {"threshold": 5},
    {"side": "at_most", "threshold": 1},
    {"threshold": 0},
    {"kind": "rate", "threshold": 1},
    {"kind": "rate", "side": "at_most", "threshold": 0},
]


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_an_indicator_that_no_count_can_contradict_is_refused(change, plain, tmp_path, capsys):
    spi = {key: each for key, each in spi_of(plain).items() if key != "checksums"}
    (tmp_path / "spi.json").write_text(json.dumps({**spi, "indicators": [{**spi["indicators"][0], **change}]}))
    (tmp_path / "field.csv").write_text(counted((RECALL, 0, 1000)))
    assert main(["spi", "check", str(tmp_path / "spi.json"), str(tmp_path / "field.csv")]) == 4
    assert "/indicators/0" in capsys.readouterr().err


def test_no_indicator_is_no_evidence_and_the_result_names_what_was_read(plain, tmp_path, capsys):
    spi = {key: each for key, each in spi_of(plain).items() if key != "checksums"}
    (tmp_path / "spi.json").write_text(json.dumps({**spi, "indicators": []}))
    (tmp_path / "field.csv").write_text("metric,count,of\n")
    command = ["spi", "check", str(tmp_path / "spi.json"), str(tmp_path / "field.csv"), "--json"]
    assert main(command) == 3
    files = {each["role"]: each["sha256"] for each in json.loads(capsys.readouterr().out)["inputs"]}
    assert files == {
        role: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for role, name in {"spi": "spi.json", "field": "field.csv"}.items()
    }


def test_bins_of_false_positives_are_named_as_everywhere(tmp_path):
    rows = [[0, 10], [10, None]]
    matrices = {**MATRICES, "bins": [{"distance_m": each, "counts": [[150, 5], [50, 45]]} for each in rows]}
    found = [each["metric"] for each in spi_of(built(tmp_path, matrices=matrices))["indicators"]]
    assert {"false positives [0, 10) m", "false positives [10, inf) m"} <= set(found)


def test_what_is_no_object_has_no_occlusion(tmp_path):
    """The same false positives stand in both bins of occlusion: one indicator, of what can be counted."""
    bins = [
        {"distance_m": [0, 10], "where": {"occlusion": [at, at + 1]}, "counts": [[150, 5], [50, 45]]} for at in (0, 1)
    ]
    variables = [{"name": "occlusion", "of": "object", "edges": [0, 1, 2]}]
    found = spi_of(built(tmp_path, matrices={**MATRICES, "variables": variables, "bins": bins}))["indicators"]
    alarms = [each["metric"] for each in found if "false positives" in each["metric"]]
    assert alarms == ["false positives [0, 10) m"]


def test_indicators_that_are_none_are_refused(plain, tmp_path, capsys):
    (tmp_path / "field.csv").write_text("metric,count,of\n")
    for change in ({"level": 1}, {"indicators": [{}]}, {"schema": "verifier.run"}):
        (tmp_path / "spi.json").write_text(json.dumps({**spi_of(plain), **change}))
        assert main(["spi", "check", str(tmp_path / "spi.json"), str(tmp_path / "field.csv")]) == 4
        assert "spi.json" in capsys.readouterr().err
