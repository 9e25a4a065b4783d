"""Every command that reads a file, given files with random edits: no internal error, nothing written, nothing hung.

A case is one file of one command, edited with its structure in mind (`fuzzed_files`). Whatever comes of it, the exit
code is never that of an internal error, and where the input is refused nothing is printed or left behind.
"""

import contextlib
import io
import json
import random
import shutil
import signal
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
import report_documents
from fuzzed_files import fuzzed
from made_runs import every_verdict, on_grid, whole
from small_bundles import MATRICES, MODEL, SPEC, write_inputs
from small_logs import HAND

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.checksums import with_checksums
from verifier.base.errors import ExitCode, UsageError
from verifier.base.files import document_text
from verifier.cli import main
from verifier.closedloop.logfiles import write_logs
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.bundle.manifest import Entry, manifest_of, read_manifest
from verifier.study.case import Study
from verifier.study.inputs import Inputs
from verifier.study.options import RunOptions

ROOT = Path(__file__).resolve().parent.parent.parent
VALID = ROOT / "tests/data/invalid/detections"
HANGS_S = 60
TOKENS = {".ltl": "words", ".toml": "toml", ".json": "json", ".parquet": "parquet", ".txt": "table", ".csv": "table"}
TOKENS |= {".yaml": "words", ".xml": "words", ".png": "words"}


@dataclass(frozen=True)
class Target:
    """A command, files that it accepts, and which of them are edited.

    Attributes:
        files: path -> bytes.
        words: of the command, run in the folder of the files.
        edited: path -> kind of the edits.
        share: how often it is taken, against others.
    """

    files: dict
    words: tuple
    edited: dict
    share: int = 1


def target(files, words, edited=None, share=1):
    files = {path: each.encode() if isinstance(each, str) else each for path, each in files.items()}
    names = list(files) if edited is None else edited
    return Target(files, tuple(words.split()), {name: TOKENS[Path(name).suffix] for name in names}, share)


def files_below(folder, prefix=""):
    return {
        prefix + path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def as_parquet(raw):
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(raw)), stream)
    return stream.getvalue()


RUN = "run specs/a.ltl --cm cm.json -o out/r.json"
CAR = "run car.ltl --cm cm.json -o out/r.json"
COUNTED = {**MATRICES, "bins": [{"distance_m": [0, 10], "counts": [[300, 10], [100, 90]]}]}
PAIRS = "image,true_m,predicted_m,class\n" + "".join(f"{k // 2},{k % 9 + 1},{k % 9 + 1.5},ped\n" for k in range(24))
CONTEXT = """\
[system]
name = "Car"
[odd]
description = "Urban roads"
[detector]
name = "YOLOv3"
trained_on = ["2011_09_26_drive_00*"]
[exposure.ped]
encounters = 240
hours = 20
source = "Drives of March"
[exposure.obs]
between = [10, 14.5]
level = 0.9
[acceptance.stops]
per_hour = 1e-7
[responsible]
requirements = "Head of functional safety"
"""
ASSESSMENT = (ROOT / "examples/12_robustness_assessment.toml").read_text()
MADE = """\
[systems.car]
metrics = ["recall", "AP0.5"]
[[systems.car.circumstances]]
name = "fog"
frequency = 0.5
source_frequency = 0
transformation = { mutation = "haze", visibility_m = { low = 15.0, high = 40.0 } }
[systems.car.distances.ssim]
tolerance = 0.01
[systems.car.source]
images = "images"
annotations = { format = "coco", file = "truth.json", distance_field = "distance_m" }
depth = { folder = "depth" }
[systems.car.detector]
kind = "onnx"
file = "net.onnx"
classes = ["ped"]
class_map = "map.txt"
false_positives_per_image = 3
input = { size = [200, 320], resize = "letterbox_centre" }
output = { boxes = "boxes", scores = "scores", lowest_score = 0.1, batch_axis = false }
[systems.car.follow_up]
size = 8
"""
MIX = 'variable = "occluded"\n[weights]\n0 = 0.7\n1 = [0.2, 0.3]\n2 = [0, 0.1]\n3 = 0\n'
CAMERA = {"cam.csv": "fx,fy,cx,cy,height_m,pitch_deg,roll_deg,x_m\n700,700,50,10,1.5,0.5,0.1,0\n"}
FORMATS = {
    "kitti_object": "iou_2d --bins 0,50,inf",
    "kitti_tracking": "iou_2d --bins 0,50,inf",
    "coco": "iou_2d --bins 0,inf --distance-field distance",
    "mot": "iou_2d --calibration cam.csv",
    "yolo": "iou_2d --calibration cam.csv",
    "voc": "iou_2d --calibration cam.csv",
    "nuscenes": "centre_bev --match-threshold 2 --bins 0,inf",
    "nuscenes_compact": "centre_bev --match-threshold 2 --bins 0,inf",
    "table": "centre_bev --match-threshold 2 --bins 0,inf",
}


def readers_of_detections():
    for name, options in FORMATS.items():
        files = files_below(VALID / name / "valid", "d/") | CAMERA
        top = {path.split("/")[1] for path in files if "/" in path}
        truth, found = (next(f"d/{each}" for each in top if each.startswith(role)) for role in ("ann", "det"))
        words = f"confusion --format {name} --annotations {truth} --detections {found}"
        words += f" --affinity {options} --outside drop"
        yield f"confusion {name}", target(files, f"{words} --accept nothing-matched -o out/c.json", share=2)
    files = {
        f"d/{path.stem}.parquet": as_parquet(path.read_bytes()) for path in (VALID / "table/valid").glob("*.csv")
    }
    words = "confusion --format table --annotations d/annotations.parquet --detections d/detections.parquet"
    words += " --affinity centre_bev --match-threshold 2"
    yield (
        "confusion parquet",
        target(files, f"{words} --bins 0,inf --outside drop --accept nothing-matched -o out/c.json"),
    )
    files = files_below(VALID / "kitti_tracking/valid", "d/")
    files |= {"map.txt": "Car -> obs\nPed* -> ped\n* -> ignore\n", "n.csv": "seq,n_frames\n0000,9\n"}
    files["g.csv"] = "sequence,drive\n0000,monday\n"
    words = (
        "confusion --format kitti_tracking --annotations d/annotations --detections d/detections --class-map map.txt"
    )
    words += " --frames n.csv --groups g.csv --affinity iou_2d --bins 0,inf --outside drop --accept nothing-matched"
    words += " -o out/c.json"
    yield "class map, frames, drives", target(files, words, ["map.txt", "n.csv", "g.csv"], 2)


def readers_of_counts():
    spec = {"specs/a.ltl": SPEC, "models/two_looks.toml": MODEL, "cm.json": json.dumps(MATRICES)}
    car = {"car.ltl": (ROOT / "specs/car_pedestrian.ltl").read_text().replace("../models/", "")}
    car |= {"car_pedestrian.toml": (ROOT / "models/car_pedestrian.toml").read_text()}
    car |= {"cm.json": (ROOT / "examples/nuscenes_yolov3_class.json").read_text()}
    yield "spec", target(spec, RUN, ["specs/a.ltl"], 4)
    yield "car spec", target(car, CAR + " --planner feedback --set study_vmax=2 --set vmax=1", ["car.ltl"], 4)
    yield "model", target(spec, RUN, ["models/two_looks.toml"], 4)
    yield "car model", target(car, CAR, ["car_pedestrian.toml"], 2)
    yield "matrices", target(spec, RUN, ["cm.json"], 2)
    car |= {"price.csv": "distance_m,price,class\n5,1,ped\n15,0.5,ped\n", "r.csv": counted("r.csv")}
    words = "car.ltl --cm cm.json -o out/r.json --planner feedback"
    yield (
        "prices",
        target(car, f"require {words} --requirement stops_for_pedestrians --cost price.csv", ["price.csv"]),
    )
    yield "record", target(car, f"explain {words} --record r.csv", ["r.csv"])
    drives = {
        "a.json": counted("c.json"),
        "b.json": counted("c.json") + b"\n",
        "g.csv": "sequence,drive\n0000,monday\n",
    }
    drives |= {"mix.toml": MIX, "spec.ltl": car["car.ltl"]}
    drives |= {"car_pedestrian.toml": car["car_pedestrian.toml"]}
    merge = "confusion merge a.json b.json --same-sequences add --groups g.csv -o out/m.json"
    yield "drives", target(drives, merge, ["a.json", "g.csv"])
    yield (
        "mix",
        target(
            drives,
            "run spec.ltl --cm a.json --mix mix.toml --env obs --empty-columns prior -o out/r.json",
            ["a.json", "mix.toml"],
        ),
    )
    yield "baseline", target(
        {**spec, "base.json": (report_documents.folder() / "run.json").read_bytes()},
        f"{RUN} --baseline base.json --max-drop 0.1", ["base.json"],
    )  # fmt: skip


@cache
def counted(name):
    """Counts by occlusion and the record of the objects, as `verify confusion` writes them."""
    folder, source = report_documents.folder(), VALID / "kitti_tracking/valid"
    (folder / "map.txt").write_text("Ped* -> ped\nCar -> obs\n* -> ignore\n")
    words = ["confusion", "--format", "kitti_tracking", "--affinity", "centre_bev", "--match-threshold", "2"]
    words += ["--annotations", source / "annotations", "--detections", source / "detections", "--bins", "0,10,inf"]
    words += ["--class-map", folder / "map.txt", "--by", "occluded=0,1,2,3", "--accept", "nothing-matched"]
    words += ["--record", folder / "r.csv", "-o", folder / "c.json"]
    found = outcome(map(str, words))
    assert found[0] == 0, found
    return (folder / name).read_bytes()


def readers_of_results():
    kinds = ("run", "explain", "require", "compare", "collision", "robroc", "curves", "rate", "risk", "triggers")
    for name in (*kinds, "mutate", "assess"):
        raw = (report_documents.folder() / f"{name}.json").read_bytes()
        yield f"report {name}", target({"r.json": raw}, "report r.json -o out/r.md")
    yield "report matrices", target({"r.json": json.dumps(MATRICES)}, "report r.json -o out/r.html")
    summed = with_checksums(json.dumps(whole(on_grid(every_verdict())), indent=2))
    result = {"r.json": summed, "case.toml": CONTEXT}
    rate = "evidence rate r.json --requirement stops -o out/rate.json"
    yield "rate", target(result, f"{rate} --exposure 12/h", ["r.json"])
    yield "context", target(result, f"{rate} --context case.toml", ["case.toml"], 2)
    names = ("case.toml", "run.json", "by_class.json")
    case = {name: (report_documents.folder() / name).read_bytes() for name in names}
    yield "risk", target(case, "evidence risk case.toml run.json -o out/r.json", ["case.toml"], 2)
    yield "triggers", target(case, "evidence triggers case.toml run.json -o out/t.json", ["case.toml"], 2)
    curves = json.dumps(report_documents.CURVES)
    rows = "detector,condition,sensitivity,safety,efficiency\na,baseline,0,.5,1\na,baseline,1,1,.5\na,fog,0,.2,1\n"
    yield "curves", target({"c.json": curves, "c.csv": rows}, "robroc c.json -o out/c.json", ["c.json"])
    yield "curves table", target({"c.csv": rows}, "robroc c.csv -o out/c.json")


def readers_of_pairs_and_logs():
    options = "--distances 2..10:4 --bootstrap 2 -o out/c.json"
    yield "pairs", target({"p.csv": PAIRS}, f"collision p.csv {options}", share=2)
    words = f"collision --record r.csv --distance ground_plane {options}"
    yield "pairs of a record", target({"r.csv": counted("r.csv")}, words)
    yield "pairs parquet", target({"p.parquet": as_parquet(PAIRS.encode())}, f"collision p.parquet {options}")
    profile = "distance_m,speed_mps,weight\n2,9,1\n6,9,0.5\n"
    yield (
        "weights",
        target({"p.csv": PAIRS, "w.csv": profile}, f"collision p.csv --weight w.csv {options}", ["w.csv"]),
    )
    logs = written_logs("csv")
    words = "closed-loop logs --validation self --control-radius 2 --match-distance 1 --safety-radius 1.5 "
    words += "--engine events --levels 3 --draws 2 --tolerance 1 -o out/t.json"
    yield "logs", target(logs, words, share=2)
    yield "logs parquet", target(written_logs("parquet"), words)
    yield "assessment", target({"a.toml": ASSESSMENT}, "assess a.toml -o out/a.json", share=2)
    yield (
        "assessment with data",
        target({"a.toml": MADE, "truth.json": "{}"}, "assess a.toml -o out/a.json", ["a.toml"], 2),
    )


@cache
def written_logs(kind):
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(report_documents.folder() / kind)
    write_logs(HAND, report_documents.folder() / kind, kind)
    return files_below(report_documents.folder() / kind, "logs/")


def readers_of_bundles(folder):
    made = make_bundle(Sources(*write_inputs(folder)), RunOptions(confidence=ConfidenceSettings(draws=20)))
    edited = [path for path in made.files if Path(path).suffix in (".json", ".ltl", ".toml", ".csv")]
    files = {f"b/{path}": raw for path, raw in made.files.items()}
    yield "bundle", target(files, "evidence check b", [f"b/{path}" for path in edited])


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    found = dict(readers_of_detections())
    found |= dict(readers_of_counts())
    found |= dict(readers_of_results())
    found |= dict(readers_of_pairs_and_logs())
    found |= dict(readers_of_bundles(tmp_path_factory.mktemp("inputs")))
    return found


def only_read(first, *rest, **_):
    """In place of the model checker: everything is read and every chain is built."""
    study = first
    if isinstance(first, Inputs):
        study = Study.of(first, next(each for each in rest if isinstance(each, RunOptions)))
    for case in study.cases[:2]:
        assert case.skeleton.state_count
    raise UsageError("read")


class Hangs(BaseException):
    """A case takes too long."""


def hangs(*_):
    raise Hangs


def outcome(words):
    """Exit code, standard output and what was complained of."""
    said, complained = io.StringIO(), io.StringIO()
    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(HANGS_S)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                code = main(list(words))
            except SystemExit as stop:
                code = stop.code
            except Exception:
                code = traceback.format_exc()
    except Hangs:
        code = "hangs"
    finally:
        signal.alarm(0)
    return code, said.getvalue(), complained.getvalue()


def fitting(manifest, path, raw):
    """The manifest of a bundle with the hash of an edited file."""
    entries = {each.path: each for each in read_manifest(manifest).files}
    if path in entries:
        entries[path] = Entry.of(path, entries[path].role, entries[path].about, raw)
    return document_text(manifest_of("forged", entries)).encode()


def fault_of(one, name, folder, rng):
    """What is wrong with how one edited file is met; None where nothing is."""
    path = rng.choice(list(one.edited))
    raw = fuzzed(one.edited[path], one.files[path], rng)
    (folder / path).write_bytes(raw)
    manifest = one.files.get("b/manifest.json")
    if manifest is not None and rng.random() < 0.7:  # whoever edits a bundle may make its hashes fit
        (folder / "b/manifest.json").write_bytes(fitting(manifest, path.removeprefix("b/"), raw))
    before = {each for each in folder.rglob("*") if each.parent.name != "out"}
    code, said, complained = outcome(one.words)
    after = set(folder.rglob("*"))
    left = sorted(str(each.relative_to(folder)) for each in after - before)
    (folder / path).write_bytes(one.files[path])
    if manifest is not None:
        (folder / "b/manifest.json").write_bytes(manifest)
    for each in (folder / "out").iterdir():
        each.unlink()
    refused = code in (ExitCode.USAGE, ExitCode.BAD_INPUT, ExitCode.NO_ANSWER)
    fine = refused or code in (ExitCode.SATISFIED, ExitCode.VIOLATED, ExitCode.INCONCLUSIVE)
    fine = fine and "Traceback" not in complained
    told = complained.startswith(("verify: ", "usage: ")) and not said
    if name == "bundle":  # a check prints what it finds
        told = told or ((code == ExitCode.BAD_INPUT and "findings" in said) or "finding:" in said)
    if not fine or (refused and (left or not told)):
        return {
            "target": name,
            "file": path,
            "code": str(code),
            "said": (complained or said)[-600:],
            "left": left,
            "raw": raw,
        }
    return None


def prepare(targets, folder, monkeypatch):
    """A folder with its files for each target, and no model checker."""
    for name in ("cli.run.verified", "questions.require.requiring.required", "cli.questions.explained"):
        monkeypatch.setattr(f"verifier.{name}", only_read)
    monkeypatch.setenv("VERIFIER_DEBUG", "1")
    for name, one in targets.items():
        for path, raw in one.files.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_bytes(raw)
        (folder / name / "out").mkdir()


def faults(targets, cases, seed, tmp_path, monkeypatch, report=None):
    """The faults of so many cases over all targets."""
    prepare(targets, tmp_path, monkeypatch)
    rng = random.Random(seed)
    names, shares = list(targets), [each.share for each in targets.values()]
    found = []
    for _ in range(cases):
        name = rng.choices(names, shares)[0]
        folder = tmp_path / name
        monkeypatch.chdir(folder)
        fault = fault_of(targets[name], name, folder, rng)
        if fault is not None:
            found.append(fault)
            if report is not None:
                report(fault)
    return found


def test_every_target_accepts_its_files(targets, tmp_path, monkeypatch):
    """Otherwise the edits would be refused for another reason."""
    prepare(targets, tmp_path, monkeypatch)
    for name, one in targets.items():
        monkeypatch.chdir(tmp_path / name)
        code, _, complained = outcome(one.words)
        read = code in (0, 1, 3) or complained == "verify: read\n"
        assert read or (name == "assessment with data" and "No such" in complained), (name, code, complained)


def test_a_few_edits_of_every_kind_of_file_end_in_no_internal_error(targets, tmp_path, monkeypatch):
    assert not faults(targets, 80, 1, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_20000_edits_end_in_no_internal_error(targets, seed, tmp_path, monkeypatch):
    assert not faults(targets, 1000, seed, tmp_path, monkeypatch)
