"""What the single commands say of the files that a campaign wrote, held against its rows, number for number."""

import json

import pytest

from verifier.cli import main

BASELINE = "baseline"


def files_of(target, detector, condition):
    folder = target / detector / condition
    return ["--annotations", str(folder / "annotations.json"), "--detections", str(folder / "detections.json")]


def said(capsys, *words, codes=(0,)):
    """The JSON document that a command prints."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) in codes
    return json.loads(capsys.readouterr().out)


def same_matrices_and_probabilities(spec, target, row, folder, *counting):
    """`verify confusion` on annotations and detections, and `verify run` on the matrices."""
    own = target / row.detector / row.condition / "confusion.json"
    counted = folder / f"{row.condition}.json"
    command = ["confusion", "--format", "coco", "--distance-field", "distance_m", "--convention", "coco"]
    assert main([*command, *files_of(target, row.detector, row.condition), *counting, "-o", str(counted)]) == 0
    bins = [json.loads(path.read_text())["bins"] for path in (counted, own)]
    assert bins[0] == bins[1]
    run = folder / f"run-{row.condition}.json"
    assert main(["run", str(spec), "--cm", str(own), "-o", str(run)]) in (0, 1, 3)
    (told,) = json.loads(run.read_text())["requirements"]
    (one,) = row.requirements
    point = told["points"][told["worst"]]
    bounds = point["uncertainty"]["confidence_bounds"]
    assert one.probability == point["probability"]
    assert one.bounds == (bounds["lower"], bounds["upper"])
    assert one.verdict.startswith(told["verdict"])


def same_rates(target, rows, capsys, *options):
    """`verify adr` of all conditions."""
    command = ["adr", "--format", "coco", *options]
    command += ["--annotations", files_of(target, rows[0].detector, BASELINE)[1]]
    for row in rows:
        at = "" if row.condition == BASELINE else f"@{row.condition}"
        command += ["--detections", f"{row.detector}{at}={files_of(target, row.detector, row.condition)[3]}"]
    rates = {each["condition"]: each for each in said(capsys, *command)["rates"]}
    for row in rows:
        told = rates.pop(row.condition)
        assert (row.adr, row.normalised) == (told["adr"], told["normalised"])
        assert list(row.adr_interval) == told["adr_interval"]
    assert not rates


def same_areas(target, rows, capsys, *options):
    """`verify closed-loop` on the logs, all rows with those of the groups; how many cells were compared."""
    by_name = {row.condition: row for row in rows}
    metrics = list(by_name[BASELINE].area)
    command = ["closed-loop", target / "logs", "--validation", "self", *options]
    told = said(capsys, *command, *(word for name in metrics for word in ("--metric", name)))
    cells = 0
    for table in told["metrics"]:
        for each in table["rows"]:
            row, (cell,) = by_name[each["name"]], each["cells"]
            assert row.area[table["metric"]] == cell["area"]
            assert row.robustness[table["metric"]] == cell["robustness"]
            cells += 1
    assert cells == len(metrics) * len(rows)


def same_lambda(target, row, capsys, *at):
    """`verify collision` on the pairs, at the distance and speed of the campaign."""
    pairs = target / row.detector / row.condition / "pairs.csv"
    command = ["collision", pairs, "--deceleration", "6.86", "--reaction", "0.1", "--bootstrap", "0", *at]
    (found,) = said(capsys, *command)["policies"][0]["detectors"]
    assert row.collision == pytest.approx(found["probability"][0][0], abs=1e-12)


def same_ap_and_recall(target, row, least_score):
    """AP by pycocotools and recall by plain loops over what was written: no part of the campaign."""
    coco, evaluation = (pytest.importorskip(f"pycocotools.{name}") for name in ("coco", "cocoeval"))
    folder = target / row.detector / row.condition
    truth, found = (json.loads((folder / f"{name}.json").read_text()) for name in ("annotations", "detections"))
    known = coco.COCO(str(folder / "annotations.json"))
    judge = evaluation.COCOeval(known, known.loadRes(str(folder / "detections.json")), "bbox")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    assert row.average_precision == pytest.approx(judge.stats[0], abs=1e-12)
    hits = 0
    for image in truth["images"]:
        free = [each["bbox"] for each in truth["annotations"] if each["image_id"] == image["id"]]
        own = [each for each in found if each["image_id"] == image["id"] and each["score"] >= least_score]
        for each in sorted(own, key=lambda one: -one["score"]):
            best = max(free, key=lambda box: overlap(box, each["bbox"]), default=None)
            if best is not None and overlap(best, each["bbox"]) >= 0.5:
                free.remove(best)
                hits += 1
    assert row.recall == hits / len(truth["annotations"])


def overlap(one, other):
    """IoU of two rectangles x, y, width, height."""
    wide, high = (min(one[k] + one[k + 2], other[k] + other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
    common = max(wide, 0) * max(high, 0)
    return common / (one[2] * one[3] + other[2] * other[3] - common)
