"""`verify confusion` as a user meets it: tables, documents, records, audits, exit codes, and what it refuses."""

import csv
import json
import re
import subprocess
import sys

import jsonschema
import pyarrow.csv
import pyarrow.parquet
import pytest

from verifier.base.errors import ExitCode
from verifier.evidence.documents import schema_of
from verifier.perception.confusion.document import read_counts
from verifier.pipeline import verify_spec
from verifier.study.options import RunOptions

# Two drives, two bins. Drive a, frame 0: ped at 5 m seen, ped at 8 m missed; obs at 12 m reported as ped. Frame 1 of
# drive a: nothing but an obs reported at 15 m. Drive b, frame 0: obs at 10 m seen. Counts as in tests/perception.
ANNOTATIONS = """\
sequence,frame,class,x,y,occluded
a,0,ped,5,0,0
a,0,ped,8,0,1
a,0,obs,12,0,0
b,0,obs,10,0,0
"""
DETECTIONS = """\
sequence,frame,class,score,x,y
a,0,ped,0.9,5,0
a,0,ped,0.8,13,0
a,1,obs,0.4,15,0
b,0,obs,0.7,10,0
"""
FRAMES = "sequence,frame\na,0\na,1\nb,0\n"
TWO_BINS = ["--bins", "0,10,20"]


@pytest.fixture
def run(tmp_path, monkeypatch, verify):
    """Run `verify confusion` in a folder with the tables above; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("truth.csv", ANNOTATIONS), ("found.csv", DETECTIONS), ("frames.csv", FRAMES)):
        (tmp_path / name).write_text(text)
    tables = ["--format", "table", "--annotations", "truth.csv"]
    tables += ["--detections", "found.csv", "--frames", "frames.csv"]
    return lambda *arguments, data=True: verify("confusion", *(tables if data else []), *arguments)


def test_boxes_that_stand_twice_are_told_in_parts_as_at_once(run, tmp_path):
    # As of two exports in one file: counted they are, each as an item of its own.
    for name, again in (("truth", 2), ("found", 2), ("frames", 0)):
        table = pyarrow.csv.read_csv(tmp_path / f"{name}.csv")
        twice = pyarrow.concat_tables([table, table.slice(0, again)]).sort_by(
            [("sequence", "ascending"), ("frame", "ascending")]
        )
        pyarrow.parquet.write_table(twice, tmp_path / f"{name}.parquet")
    tables = ("--annotations", "truth.parquet", "--detections", "found.parquet", "--frames", "frames.parquet")
    tables += (*TWO_BINS, "--classes", "ped,obs")
    told = "note: 2 annotations and 2 detections repeat others, with the same frame, class and box: all are counted"
    for way in ((), ("--stream", "--chunk-rows", "1")):
        _, out, err = run(*tables, *way)
        assert (err, told in " ".join(out.split())) == ("", True)
    assert "repeat" not in run(*TWO_BINS)[1]


def test_a_frame_that_the_truth_does_not_list_may_be_one_without_objects(run, tmp_path):
    tables = ("--format", "table", "--annotations", "truth.csv", "--detections", "found.csv")
    err = run(*tables, *TWO_BINS, data=False)[2]
    assert "hint: --frames FILE lists every frame, also empty ones; --ignore unknown" in err


def test_an_object_without_a_distance_is_asked_for_one_and_named_by_its_place(run, tmp_path):
    boxes = [{"id": n, "image_id": 1, "category_id": 1, "bbox": [n, 0, 9, 9]} for n in (1, 2)]
    truth = {"images": [{"id": 1, "file_name": "a.png"}], "categories": [{"id": 1, "name": "ped"}]}
    truth["annotations"] = [boxes[0] | {"distance": 5}, boxes[1]]
    (tmp_path / "truth.json").write_text(json.dumps(truth, indent=1))
    (tmp_path / "found.json").write_text(json.dumps([boxes[0] | {"score": 0.9}]))
    files = ("--format", "coco", "--annotations", "truth.json", "--detections", "found.json")
    err = run(*files, "--distance-field", "distance", "--bins", "0,10,inf", data=False)[2]
    assert "truth.json: element 2: 1 of 2 annotated objects lie in no bin; the first is a 'ped' without a" in err
    assert "hint: state its distance in the data, or use --outside drop" in err


def test_the_main_job_prints_matrices_and_writes_the_document(run, tmp_path, root):
    code, out, err = run(*TWO_BINS, "-o", "results.json", "--title", "made up")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
made up
class-labelled; predicted in rows, true in columns; count (share of its column)
matching: centre_bev <= 2.0, greedy, any class, unmatched drop, duplicates drop; false positives dropped
distance: euclidean_3d of the true object
3 frames, 4 annotations, 4 detections, 3 matched, 1 unmatched, 0 duplicates, 0 ignored, 0 outside bins

Reported as what it is, by true label and distance: rate (count of items)
distance    obs            ped            empty
----------  -------------  -------------  --------------
[0, 10) m   no items       50 % (1 of 2)  100 % (2 of 2)
[10, 20) m  50 % (1 of 2)  no items       100 % (1 of 1)

[0, 10) m: count (rate) of each report
reported  true obs      true ped  true empty
--------  ------------  --------  ----------
obs       0 (no items)  0 (0)     0 (0)
ped       0 (no items)  1 (0.5)   0 (0)
empty     0 (no items)  1 (0.5)   2 (1)
items     0             2         2

[10, 20) m: count (rate) of each report
reported  true obs  true ped      true empty
--------  --------  ------------  ----------
obs       1 (0.5)   0 (no items)  0 (0)
ped       1 (0.5)   0 (no items)  0 (0)
empty     0 (0)     0 (no items)  1 (1)
items     2         0             1

note: 6 columns with fewer than 30 items: obs in [0, 10) m (0), ped in [0, 10) m (2), empty in [0, 10) m (2), \
obs in [10, 20) m (2), ped in [10, 20) m (0), empty in [10, 20) m (1)
"""
    )
    document = json.loads((tmp_path / "results.json").read_text())
    jsonschema.validate(document, schema_of("verifier.confusion"))
    assert [each["counts"] for each in document["bins"]] == [
        [[0, 0, 0], [0, 1, 0], [0, 1, 2]],
        [[1, 0, 0], [1, 0, 0], [0, 0, 1]],
    ]
    assert [(each["name"], each["frames"]) for each in document["sequences"]] == [("a", 2), ("b", 1)]
    assert document["matching"]["affinity"] == "centre_bev"
    assert document["source"]["format"] == "table"
    assert str(tmp_path) not in json.dumps(document)


def document(run, *arguments):
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_json_is_the_document(run, tmp_path):
    found = document(run, *TWO_BINS, "-o", "results.json")
    assert found == json.loads((tmp_path / "results.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        (["--classes", "ped,obs"], [[[1, 0, 0], [0, 0, 0], [1, 0, 2]], [[0, 1, 0], [0, 1, 0], [0, 0, 1]]]),
        (["--unmatched", "own_bin"], [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[1, 0, 1], [1, 0, 0], [0, 0, 0]]]),
        (["--class-aware"], [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[1, 0, 0], [0, 0, 0], [1, 0, 1]]]),
        (["--match-threshold", "0.5"], [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[1, 0, 0], [0, 0, 0], [1, 0, 1]]]),
        (["--min-score", "0.85"], [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[0, 0, 0], [0, 0, 0], [2, 0, 1]]]),
        (["--labelling", "group", "--gap", "3"],
         [[[0, 0, 0], [0, 1, 0], [0, 0, 2]], [[1, 0, 0], [1, 0, 0], [0, 0, 1]]]),
        (["--labelling", "proposition", "--classes", "ped"], [[[1, 0], [0, 2]], [[0, 0], [0, 3]]]),
        (["--max", "occluded=0"], [[[0, 0, 0], [0, 1, 0], [0, 0, 2]], [[1, 0, 0], [1, 0, 0], [0, 0, 1]]]),
        (["--range", "0..11"], [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[1, 0, 0], [0, 0, 0], [0, 0, 2]]]),
        (["--sequence", "b", "--classes", "obs,ped"],
         [[[0, 0, 0], [0, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 0], [0, 0, 0]]]),
        (["--affinity", "centre_3d", "--assignment", "optimal"],
         [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[1, 0, 0], [1, 0, 0], [0, 0, 1]]]),
        (["--convention", "nuscenes", "--class-agnostic"],
         [[[0, 0, 0], [0, 1, 0], [0, 1, 2]], [[1, 0, 0], [1, 0, 0], [0, 0, 1]]]),
    ],
)  # fmt: skip
def test_each_choice_counts_as_it_says(run, arguments, counts):
    assert [each["counts"] for each in document(run, *TWO_BINS, *arguments)["bins"]] == counts


def test_further_variables_and_a_family(run):
    found = document(run, *TWO_BINS, "--by", "occluded=0,1", "--score-thresholds", "0.1,0.85")
    assert found["axes"] == ["score_threshold", "predicted", "true"]
    assert [(each["distance_m"], each["where"]) for each in found["bins"]] == [
        ([0, 10], {"occluded": "0"}),
        ([0, 10], {"occluded": "1"}),
        ([10, 20], {"occluded": "0"}),
        ([10, 20], {"occluded": "1"}),
    ]
    assert found["bins"][2]["counts"] == [[[1, 0, 0], [1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0], [2, 0, 1]]]
    code, out, _ = run(*TWO_BINS, "--score-thresholds", "0.1,0.75,0.85")
    assert code == 0
    table = [line.split() for line in out.splitlines()[5:10]]
    assert table[2:] == [["0.1", "0.5", "0.5"], ["0.75", "0", "0.5"], ["0.85", "0", "0.5"]]


def test_a_detector_that_misses_the_same_pedestrian_again_is_told(run, tmp_path):
    # Six pedestrians in ten frames; three are never seen, three always.
    rows = [f"{frame},ped,5,{4 * k},{k}" for k in range(6) for frame in range(10)]
    (tmp_path / "truth.csv").write_text("\n".join(["frame,class,x,y,track", *rows]))
    seen = [f"{frame},ped,0.9,5,{4 * k}" for k in range(3) for frame in range(10)]
    (tmp_path / "found.csv").write_text("\n".join(["frame,class,score,x,y", *seen]))
    (tmp_path / "frames.csv").write_text("\n".join(["frame", *map(str, range(10))]))
    note = (
        "warning: memoryless assumption rejected: after a missed ped the next frame misses it with probability 1.00, "
        "not 0.50 (27 of 27 frame pairs, p = 0.0001). P and bounds may be wrong in either direction."
    )
    code, out, err = run("--bins", "0,50", "-o", "m.json")
    assert (code, err) == (0, "")
    assert note in out.splitlines()
    found = json.loads((tmp_path / "m.json").read_text())["dependence"]
    assert (found["classes"][0]["pairs"], found["classes"][0]["mean_run"]) == (54, 10.0)
    assert document(run, "--bins", "0,50")["dependence"] == found
    family = document(run, "--bins", "0,50", "--score-thresholds", "0.5,0.95")
    assert [each["classes"][0]["misses"] for each in family["dependence"]] == [30, 60]
    code, out, err = run("--bins", "0,50", "--score-thresholds", "0.5,0.95")
    assert note in out.splitlines()


def test_record_and_plot_are_written(run, tmp_path):
    code, _, err = run(*TWO_BINS, "--record", "record.csv", "--plot", "recall.svg")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader((tmp_path / "record.csv").open()))
    assert [row["kind"] for row in rows] == ["frame"] * 3 + ["object"] * 4 + ["unmatched"]
    first = (tmp_path / "recall.svg").read_bytes()
    assert b"recall" in first
    run(*TWO_BINS, "--plot", "recall.svg")
    assert (tmp_path / "recall.svg").read_bytes() == first


def test_merging_drives_gives_what_counting_them_together_gives(run, tmp_path):
    for drive in ("a", "b"):
        assert run(*TWO_BINS, "--classes", "ped,obs", "--sequence", drive, "-o", f"{drive}.json")[0] == 0
    code, out, err = run("merge", "a.json", "b.json", "-o", "both.json", data=False)
    assert (code, err) == (0, "")
    assert "3 frames, 4 annotations, 4 detections" in out
    run(*TWO_BINS, "--classes", "ped,obs", "-o", "whole.json")
    both, whole = read_counts(tmp_path / "both.json"), read_counts(tmp_path / "whole.json")
    assert both.counts.tolist() == whole.counts.tolist()
    assert both.sequences.names == ("a", "b")
    (tmp_path / "again.json").write_text((tmp_path / "a.json").read_text() + "\n")
    code, _, err = run("merge", "a.json", "again.json", "-o", "c.json", data=False)
    assert code == ExitCode.BAD_INPUT
    assert err.startswith("verify: again.json: sequence 'a' is in an earlier file, too")
    kept = (tmp_path / "b.json").read_bytes()
    code, _, err = run("merge", "a.json", "b.json", "-o", "b.json", data=False)
    assert (code, err) == (ExitCode.USAGE, "verify: --output: b.json is an input of this sum\n")
    assert (tmp_path / "b.json").read_bytes() == kept
    for more in ([], ["--same-sequences", "rename"]):
        code, _, err = run("merge", "a.json", "b.json", "a.json", *more, "-o", "c.json", data=False)
        assert code == ExitCode.BAD_INPUT
        assert err.startswith("verify: a.json: the same bytes as 'a.json': its items would count twice")
    assert not (tmp_path / "c.json").exists()


def test_the_audit_shows_what_the_policy_does(run, root):
    code, out, err = run("--classes", "ped,obs", "--bins", "0,10,20,200", "--matching-audit")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["policy", "recall", "ped", "recall", "obs", "confused", "alarms"]
    # The obs at 12 m is the ped reported at 13 m; with equal classes only it is missed. Distances and assignments
    # change nothing, so that 36 policies are four rows.
    radii = "centre_bev <= 1 m or centre_bev <= 2 m or centre_bev <= 4 m, greedy or optimal"
    rows = [re.split(r" {2,}", line) for line in lines[2 : lines.index("")]]
    assert [(name.removeprefix(f"{radii}, "), numbers) for name, *numbers in rows] == [
        ("any class; leftovers: drop", ["0.5", "0.5", "0.25", "0"]),
        ("any class; leftovers: own_bin, nearest_bin; or own_bin", ["0.5", "0.5", "0.25", "0.1667"]),
        ("same class; leftovers: drop", ["0.5", "0.5", "0", "0"]),
        ("same class; leftovers: own_bin, nearest_bin; or own_bin", ["0.5", "0.5", "0", "0.1667"]),
    ]
    assert "Over 36 policies with 4 different matrices:" in lines
    spec = root / "specs/car_pedestrian.ltl"
    code, out, err = run(
        "--classes", "ped,obs", "--bins", "0,10,20,200", "--matching-audit", "--spec", spec,
        "--empty-columns", "miss", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found) == 36
    assert found[0]["matching"]["affinity"] == "centre_bev"
    # One bin for all that matters: the published planner needs the pedestrian once, in [0, 10) m: seen 1 of 2 times.
    assert {each["probabilities"]["stops_for_pedestrians"] for each in found} == {0.5}
    assert not any(each["one_engine"] for each in found)


def test_the_audit_says_which_engine_gave_its_probabilities(run, root, tmp_path):
    lines = f'model "{root}/models/car_pedestrian.toml"\nplanner published\nnear: P = ? [ F<=10 at_line ]\n'
    confirmed = "P: computed by Storm and confirmed by an independent solver"
    for more, said in (
        ("", "."),
        ("far: P = ? [ F<=1000000000 at_line ]\n", ", but for:\n  far: one engine: Storm would"),
    ):
        (tmp_path / "asked.ltl").write_text(lines + more)
        audit = ["--bins", "0,200", "--matching-audit", "--spec", "asked.ltl", "--empty-columns", "miss"]
        code, out, err = run(*audit)
        assert (code, err) == (0, "")
        assert f"\n{confirmed}{said}" in out


def test_the_audit_keeps_the_further_variables_that_the_model_places_objects_in(run, root, tmp_path):
    for name in ("truth", "found"):
        text = (tmp_path / f"{name}.csv").read_text().replace("obs", "forklift").replace("ped", "person")
        (tmp_path / f"{name}.csv").write_text(text.replace("occluded", "occlusion"))
    spec, by = root / "specs/warehouse.ltl", ["--bins", "0,10,20", "--by", "occlusion=0,1,2"]
    code, out, err = run(*by, "--matching-audit", "--spec", spec, "--empty-columns", "prior", "--json")
    assert (code, err) == (0, "")
    asked = {"affinity": "centre_bev", "threshold": 2.0, "assignment": "greedy", "class_aware": False}
    (audited,) = (
        each["probabilities"]
        for each in json.loads(out)
        if each["matching"].items() >= {**asked, "unmatched": "drop", "duplicates": "drop"}.items()
    )
    run(*by, "--affinity", "centre_bev", "-o", "alone.json")
    alone = verify_spec(spec, "alone.json", RunOptions(empty_columns="prior", confidence=None))
    assert audited == {each.name: each.worst_point.probability for each in alone.requirements}


def test_streaming_counts_the_same_and_cleans_up(run, tmp_path):
    for name in ("truth", "found", "frames"):
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / f"{name}.csv"), tmp_path / f"{name}.parquet")
    tables = ["--format", "table", "--annotations", "truth.parquet", "--detections", "found.parquet",
              "--frames", "frames.parquet"]  # fmt: skip
    options = [*TWO_BINS, "--classes", "ped,obs", "--json"]
    code, out, err = run(
        *tables, *options, "--checkpoint", "point.json", "--chunk-rows", "1", "--record", "r.csv", data=False
    )
    assert (code, err) == (0, "")
    streamed, whole = json.loads(out), document(run, *options)
    for key in ("bins", "sequences", "totals", "matching", "distance"):
        assert streamed[key] == whole[key]
    assert not (tmp_path / "point.json").exists()
    assert not (tmp_path / "r.csv.parts").exists()
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 9


REFUSED = [
    (["--format", "table"], "no --annotations", ExitCode.USAGE),
    ([*TWO_BINS, "--by", "occluded"], "--by: expected NAME=VALUE", ExitCode.USAGE),
    ([*TWO_BINS, "--by", "weather=1"], "unknown attribute of the annotations 'weather'", ExitCode.BAD_INPUT),
    (["--bins", "0,10"], "2 of 4 annotated objects lie in no bin; the first is a 'obs' at 12 m", ExitCode.BAD_INPUT),
    (["--bins", "10"], "--bins: expected at least two increasing edges", ExitCode.USAGE),
    (["--match-threshold", "-1"], "matching: a distance threshold must be finite", ExitCode.USAGE),
    (["--affinity", "iou_2d"], "the matching policy compares image rectangles", ExitCode.USAGE),
    (["--labelling", "group"], "the labelling 'group' needs a gap in metres", ExitCode.USAGE),
    (["--gap", "3"], "a gap in metres belongs to the labelling 'group'", ExitCode.USAGE),
    (["-o", "truth.csv"], "--output: truth.csv is an input of this count", ExitCode.USAGE),
    (["--record", "found.csv"], "--record: found.csv is an input of this count", ExitCode.USAGE),
    (["-o", "a.csv", "--record", "a.csv"], "would be written to the same file", ExitCode.USAGE),
    (["--matching-audit", "-o", "a.json"], "--matching-audit writes no files: leave out --output", ExitCode.USAGE),
    (["--empty-columns", "prior"], "--empty-columns belongs to --spec", ExitCode.USAGE),
    (["--distance-key", "name"], "--distance-key belongs to --distance-file", ExitCode.USAGE),
    (["--score-thresholds", "0.5,0.1"], "expected increasing score thresholds", ExitCode.USAGE),
    (["--classes", "ped"], "the data has classes that get no column: obs", ExitCode.USAGE),
    (["--range", "5"], "--range: expected LOW..HIGH", ExitCode.USAGE),
    (["--max", "occluded"], "--max: expected NAME=VALUE", ExitCode.USAGE),
    (["--spec", "a.ltl"], "--spec belongs to --matching-audit", ExitCode.USAGE),
    (["--plot", "a.txt"], "--plot: expected a file name ending in", ExitCode.USAGE),
    (["--record", "a.txt"], "--record: expected a file name ending in", ExitCode.USAGE),
    (["--chunk-rows", "9"], "--chunk-rows belongs to --stream, --checkpoint, --scheduler or --shard", ExitCode.USAGE),
    (["--stream", "--classes", "ped,obs", "--distance-field", "d"], "belong to other formats", ExitCode.USAGE),
    (["--distance-field", "d"], "unknown option of the format 'table' 'distance_field'", ExitCode.USAGE),
    (["--class-map", "none.txt"], "none.txt: no such file", ExitCode.BAD_INPUT),
    (["--annotations", "none.csv"], "none.csv: no such file", ExitCode.BAD_INPUT),
    (["--sequence", "c"], "unknown sequence 'c'", ExitCode.USAGE),
    (["-o", "no/such/folder.json"], "cannot be written", ExitCode.BAD_INPUT),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words", "code"), REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_what_does_not_fit_is_refused(run, tmp_path, arguments, words, code):
    before = sorted(tmp_path.iterdir())
    found, _, err = run(*arguments, data=arguments != ["--format", "table"])
    assert words in err
    assert err.startswith("verify: ")
    assert found == code
    assert sorted(tmp_path.iterdir()) == before


def test_group_labelled_matrices_are_verified_like_class_labelled_ones(run, tmp_path, root):
    document(run, "--classes", "ped,obs", "--bins", "0,10,20,200", "-o", "class.json")
    text = (tmp_path / "class.json").read_text()
    (tmp_path / "group.json").write_text(text.replace('"labelling": "class"', '"labelling": "group"'))
    found = []
    for name in ("class", "group"):
        options = RunOptions(empty_columns="miss", confidence=None)
        result = verify_spec(root / "specs/car_pedestrian.ltl", tmp_path / f"{name}.json", options)
        found.append([point.probability for each in result.requirements for point in each.points])
    assert found[0] == found[1]
    assert 0.5 in found[0]


def test_help_names_the_command_and_stays_light(run):
    code, out, _ = run("--help", data=False)
    assert code == 0
    assert "verify confusion merge" in out
    light = (
        "import sys, verifier.cli as c; c.command_parser(); print(sorted({'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
