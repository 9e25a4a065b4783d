"""The sheet of frames behind detection errors: which frames, what is drawn on them, what is blurred or refused."""

import base64
import csv
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from verifier.base.errors import ExitCode

MODEL = """
initial = "x = 0 & seen = 0"
terminal = "x = 3"
[variables]
x = { range = [0, 3], next = "x + 1" }
seen = { range = [0, 1], next = "max(seen, look)" }
[inputs]
look = { range = [0, 1], default = 0 }
[environments]
person = [{ class = "person", distance_m = "5" }]
[planners.simple]
rules = [{ when = "sees(person)", set = { look = 1 } }]
"""
BOX = (80, 40, 110, 90)
"""Left, top, right, bottom of the object of every frame, in images of 200 by 100 pixels."""


@pytest.fixture
def counted(tmp_path, monkeypatch, verify):
    """Two drives: a misses the person in two of three frames, b in one of two. Every image is a chessboard."""
    monkeypatch.chdir(tmp_path)
    frames = [("a", k) for k in range(3)] + [("b", k) for k in range(2)]
    there = [["sequence", "frame", "class", "x1", "y1", "x2", "y2", "distance_m"]]
    there += [[*frame, "person", *BOX, 5] for frame in frames]
    found = [["sequence", "frame", "class", "x1", "y1", "x2", "y2", "score", "distance_m"]]
    found += [[*frames[k], "person", 81, 41, 111, 91, 0.9, 5] for k in (0, 3)]
    for name, rows in (("there.csv", there), ("found.csv", found)):
        with (tmp_path / name).open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
    board = np.kron(np.indices((50, 100)).sum(axis=0) % 2, np.ones((2, 2)))[..., None].repeat(3, 2) * 255
    for drive, frame in frames:
        (tmp_path / "images" / drive).mkdir(parents=True, exist_ok=True)
        Image.fromarray(board.astype(np.uint8)).save(tmp_path / f"images/{drive}/{frame}.png")
    (tmp_path / "m.toml").write_text(MODEL)
    (tmp_path / "m.ltl").write_text('model "m.toml"\nnoticed: P >= 0.99 [ F seen = 1 ]\n')
    data = ("--format", "table", "--annotations", "there.csv", "--detections", "found.csv", "--bins", "0,10")
    code, _, err = verify("confusion", *data, "-o", "m.json", "--record", "record.csv")
    assert code == 0, err
    return tmp_path


ASKED = ("explain", "m.ltl", "--cm", "m.json", "--point-only", "--false-positives", "ignore")
SHEET = ("--record", "record.csv", "--images", "images", "--contact-sheet", "sheet.html")


def pictures(page):
    """(caption, pixels) of every photograph of a page."""
    found = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)"[^>]*><figcaption>(.*?)</figcaption>', page)
    return [(text, np.asarray(Image.open(io.BytesIO(base64.b64decode(each))).convert("RGB"))) for each, text in found]


def test_frames_of_the_worst_drive_come_first(counted, verify):
    code, _, err = verify(*ASKED, *SHEET)
    assert code == ExitCode.VIOLATED, err
    page = (counted / "sheet.html").read_text()
    assert "3 such errors in 3 frames, 3 with an image; 3 shown. By drive: a 2, b 1." in page
    told = "Drive {}: person at 5.0 m reported as empty (there.csv:{})."
    assert [re.sub(r"\(\S*/", "(", text) for text, _ in pictures(page)] == [
        told.format("a, frame a/1", 3), told.format("a, frame a/2", 4), told.format("b, frame b/1", 6),
    ]  # fmt: skip
    assert "img-src data:" in page
    assert "Nothing was blurred" in page


def test_the_annotated_box_is_drawn_where_it_is(counted, verify):
    verify(*ASKED, *SHEET, "--frames", "1")
    ((_, pixels),) = pictures((counted / "sheet.html").read_text())
    assert pixels.shape == (360 + 300, 720, 3)  # the frame at 3.6 times its size, and the close-up
    left, middle = (pixels[round(3.6 * 65), round(3.6 * x)].astype(int) for x in (BOX[0], (BOX[0] + BOX[2]) / 2))
    assert left[2] - left[0] > 100  # blue
    assert abs(middle[2] - middle[0]) < 60  # the chessboard is grey


def test_a_drive_with_many_frames_does_not_crowd_out_the_others(counted, verify):
    verify(*ASKED, *SHEET, "--frames", "2")
    shown = [text[:20] for text, _ in pictures((counted / "sheet.html").read_text())]
    assert shown == ["Drive a, frame a/1: ", "Drive b, frame b/1: "]


def test_boxes_of_a_class_can_be_made_unrecognisable(counted, verify):
    def contrast(*more):
        verify(*ASKED, *SHEET, "--frames", "1", *more)
        page = (counted / "sheet.html").read_text()
        ((_, pixels),) = pictures(page)
        inside = pixels[round(3.6 * 50) : round(3.6 * 80), round(3.6 * 85) : round(3.6 * 105)]
        outside = pixels[:300, :250]
        return page, inside.std(), outside.std()

    _, seen, around = contrast()
    page, blurred, still = contrast("--blur", "person")
    assert seen > 80
    assert blurred < 25
    assert still == around
    assert "Boxes of person were made unrecognisable." in page


def test_frames_without_an_image_are_counted(counted, verify):
    (counted / "images/a/1.png").unlink()
    verify(*ASKED, *SHEET)
    page = (counted / "sheet.html").read_text()
    assert "3 such errors in 3 frames, 2 with an image; 2 shown." in page
    assert len(pictures(page)) == 2


def test_a_record_without_rectangles_says_so(counted, verify):
    rows = list(csv.reader((counted / "record.csv").open()))
    kept = [k for k, name in enumerate(rows[0]) if not name.startswith("true_")]
    with (counted / "record.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([row[k] for k in kept] for row in rows)
    verify(*ASKED, *SHEET)
    assert (counted / "sheet.html").read_text().count("no rectangle of it in the image") == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (SHEET[2:], ExitCode.USAGE, "--contact-sheet needs the frames of detection errors"),
        ((*SHEET[:2], *SHEET[4:]), ExitCode.USAGE, "--contact-sheet and --images belong together"),
        (("--blur", "person"), ExitCode.USAGE, "--blur belongs to --contact-sheet"),
        (
            (*SHEET, "--blur", "persn"),
            ExitCode.USAGE,
            "--blur: unknown class 'persn'\n  hint: did you mean 'person'?",
        ),
        ((*SHEET, "--images", "nowhere"), ExitCode.BAD_INPUT, "nowhere: no such folder"),
        ((*SHEET, "--images", "other"), ExitCode.BAD_INPUT, "none of the frames with these errors has an image"),
        ((*SHEET, "--images", "second"), ExitCode.BAD_INPUT, "frame a/1 has two images"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, code, message, counted, verify):
    (counted / "other/b").mkdir(parents=True)
    image = (counted / "images/a/1.png").read_bytes()
    (counted / "other/b/9.png").write_bytes(image)
    (counted / "other/a").mkdir()
    (counted / "images/second/a").mkdir(parents=True)
    if arguments[-1] == "second":
        (counted / "images/second/a/1.png").write_bytes(image)
        arguments = arguments[:-2]
    found, _, err = verify(*ASKED, *arguments)
    assert (found, message in err) == (code, True), err
    assert not (counted / "sheet.html").exists()


# Real images.


def sheet_of(verify, data, images, folder):
    """The page of a system that must see every person, of real detections and images."""
    (folder / "m.toml").write_text(MODEL.replace('"5"', '"15"').replace("person", "ped"))
    (folder / "m.ltl").write_text('model "m.toml"\nnoticed: P >= 0.999999 [ F seen = 1 ]\n')
    (folder / "classes.txt").write_text("Pedestrian -> ped\nPerson* -> ped\nDontCare -> dont_care\n* -> ignore\n")
    record = ("--bins", "0,30,inf", "--class-map", folder / "classes.txt", "--record", folder / "record.csv")
    code, _, err = verify("confusion", *data, *record, "-o", folder / "m.json")
    assert code == 0, err
    shown = ("--record", folder / "record.csv", "--images", images, "--contact-sheet", folder / "sheet.html")
    code, _, err = verify(
        "explain", folder / "m.ltl", "--cm", folder / "m.json", "--point-only", "--false-positives", "ignore", *shown,
        "--empty-columns", "neighbour",
    )  # fmt: skip
    assert code in (ExitCode.VIOLATED, ExitCode.INCONCLUSIVE), err
    return pictures((folder / "sheet.html").read_text())


def test_images_of_kitti_tracking(shared, tmp_path, verify):
    """Of the drives only three frames have images here; the detector missed the same person in each of them."""
    tracking = shared / "data/kitti_tracking"
    data = ("--format", "kitti_tracking", "--annotations", tracking / "label_02", "--detections")
    found = sheet_of(verify, (*data, tracking / "det_rrc2d"), shared / "data/images_kitti_tracking", tmp_path)
    assert [text.partition(":")[0] for text, _ in found] == [f"Drive 0016, frame 0016/{k:06}" for k in (2, 7, 12)]
    assert all("ped at 2" in text and "reported as empty" in text for text, _ in found)
    assert len({pixels.tobytes() for _, pixels in found}) == 3


def test_images_of_kitti_object_and_coco(shared, tmp_path, verify):
    """No detector's output is at hand for the people in these images, so one that sees nothing is made up."""
    images = shared / "data/images_kitti_tracking/image_02/0016"
    labels = (shared / "data/kitti_tracking/label_02/0016.txt").read_text().splitlines()
    rows = {k: [line.split()[2:] for line in labels if line.startswith(f"{k} ")] for k in (2, 7, 12)}
    truth, seen = tmp_path / "label_2", tmp_path / "found"
    truth.mkdir()
    seen.mkdir()
    people = []
    for number, each in rows.items():
        (truth / f"{number:06}.txt").write_text("".join(" ".join(row) + "\n" for row in each))
        first = next(row for row in each if row[0] == "Pedestrian")
        (seen / f"{number:06}.txt").write_text(" ".join([*first, "0.9"]) + "\n")
        people += [(number, row) for row in each if row[0] == "Pedestrian"]
    data = ("--format", "kitti_object", "--annotations", truth, "--detections", seen)
    found = sheet_of(verify, data, images, tmp_path)
    assert [text.partition(":")[0].partition("frame ")[2] for text, _ in found] == ["000002", "000007", "000012"]
    coco = {
        "images": [{"id": k, "file_name": f"{k:06}.png", "width": 1242, "height": 375} for k in rows],
        "categories": [{"id": 1, "name": "Pedestrian"}],
        "annotations": [
            {
                "id": at, "image_id": number, "category_id": 1, "z": float(row[13]), "area": 1.0, "iscrowd": 0,
                "bbox": [float(row[4]), float(row[5]), float(row[6]) - float(row[4]), float(row[7]) - float(row[5])],
            }
            for at, (number, row) in enumerate(people, 1)
        ],
    }  # fmt: skip
    (tmp_path / "truth.json").write_text(json.dumps(coco))
    first = coco["annotations"][0]
    (tmp_path / "found.json").write_text(
        json.dumps([{"image_id": 2, "category_id": 1, "bbox": first["bbox"], "score": 0.9}])
    )
    data = ("--format", "coco", "--annotations", tmp_path / "truth.json", "--detections", tmp_path / "found.json")
    found = sheet_of(verify, (*data, "--distance-field", "z"), images, tmp_path)
    assert [text.partition(":")[0].partition("frame ")[2] for text, _ in found] == [
        "000002.png", "000007.png", "000012.png",
    ]  # fmt: skip
