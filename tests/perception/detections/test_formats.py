"""By what a format is recognised, and by what it is not: small files by hand."""

import pyarrow
import pyarrow.parquet
import pytest

from verifier.base.errors import InputError
from verifier.perception.detections.formats import recognised

COCO, FIFTYONE = (
    '"images": [], "annotations": [], "categories": []',
    '"samples": [{"filepath": 1, "bounding_box": 2}]',
)
SCENE = '"sample_token": 1, "cam_front": 2, "boxes": 3'
FAR = '{"x": "' + "-" * 180
LINES = {
    f"{{{COCO}}}": "coco",
    f" \n{{{COCO}}}": "coco",
    f"[{{{COCO}}}]": None,
    f"{{{COCO}}}".replace("images", "image"): None,
    f"{{{COCO}}}".replace("categories", "category"): None,
    f"{{{FIFTYONE}}}": "fiftyone",
    f"[{{{FIFTYONE}}}]": None,
    f"{{{FIFTYONE}}}".replace("bounding_", ""): None,
    f"{{{FIFTYONE}}}".replace("path", ""): None,
    ' {"openlabel": {}}': "openlabel",
    '["openlabel"]': None,
    f'{FAR}", "openlabel": 1}}'.replace("-", "", 1): "openlabel",  # up to byte 200
    f'{FAR}", "openlabel": 1}}': None,
    '[{"labels": [{"box2d": {}}]}]': "bdd100k",
    '{"frames": [{"labels": [{"box2d": {}}]}]}': "bdd100k",
    '[{"labels": []}]': None,
    '[{"box2d": {}}]': None,
    f"[{{{SCENE}}}]": "nuscenes_compact",
    f"{{{SCENE}}}": None,
    f"[{{{SCENE}}}]".replace("boxes", "box"): None,
    f"[{{{SCENE}}}]".replace("cam_", ""): None,
}
TEXTS = {
    "\n \nCar" + " 0.5" * 14: "kitti_object",
    "1" + " 0.5" * 14: None,
    "Car" + " 0.5" * 13: None,
    "Car" + " 0.5" * 13 + " x": None,
    "Car x" + " 0.5" * 13: None,
    "0 1 Car" + " 0.5" * 14: "kitti_tracking",
    "x 1 Car" + " 0.5" * 14: None,
    "0 x Car" + " 0.5" * 14: None,
    "0 1.5 Car" + " 0.5" * 14: None,
    "0 1 2" + " 0.5" * 14: None,
    "0 1 Car" + " 0.5" * 13: None,
    "0 1 Car x" + " 0.5" * 13: None,
    "0 0.5 0.5 0.5 0.5": "yolo",
    "0 0.5 0.5 0.5": None,
    "0.5 0.5 0.5 0.5 0.5": None,
    "0 0.5 0.5 0.5 x": None,
    "1, 1" + ",0.5" * 7: "mot",
    "1,1" + ",0.5" * 8: "mot",
    "1,1" + ",0.5" * 6: None,
    "1,1" + ",0.5" * 9: None,
    "1,1" + ",0.5" * 6 + ",x": None,
}
XMLS = {
    "<annotation>": "voc",
    '<annotation version="1">': "voc",
    "<annotations>": "cvat",
    "<annotations\n>": "cvat",
    "<annotationx>": None,
    "<annotationsx>": None,
    "annotation": None,
}


def told(path):
    """The format, and what was seen of it; None and why not."""
    try:
        return recognised(path)
    except InputError as error:
        return None, str(error)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (name, *case)
        for name, cases in (("a.json", LINES), ("a.txt", TEXTS), ("a.xml", XMLS))
        for case in cases.items()
    ],
)
def test_what_a_file_shows(name, text, expected, tmp_path, monkeypatch):
    """Alone and in a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    for path in (name, "."):
        found, words = told(path)
        assert found == expected
        assert expected or words.removeprefix("./").startswith(f"{name}: the format is not recognised: ")


def test_files_beside_each_other(tmp_path):
    """The first that says something: of texts one that is not empty, of XML any."""
    for folder, files, expected in (
        ("texts", {"a.txt": "\n", "b.txt": "0 0.5 0.5 0.5 0.5\n"}, "yolo"),
        ("empty", {"a.txt": "\n", "b.txt": ""}, None),
        ("xml", {"a.xml": "<x>", "b.xml": "<annotations>"}, "cvat"),
        ("both", {"a.xml": "<annotations>", "b.xml": "<annotation>"}, "voc"),
        ("mixed", {"a.xml": "<annotations>", "a.txt": "?", "a.json": "?"}, "cvat"),
        ("text", {"a.txt": "0 0.5 0.5 0.5 0.5", "a.json": "?", "a.parquet": "?"}, "yolo"),
        ("mot", {"S/gt/gt.txt": "?", "S/det/det.txt": "?"}, "mot"),
        ("gt", {"gt/gt.txt": "?", "a.txt": "?"}, "mot"),
        ("flat", {"S/gt.txt": "?"}, None),
        ("tables", {"sample_annotation.json": "?", "a.txt": "?"}, "nuscenes"),
        ("logs", {"log/annotations.feather": "?", "a.txt": "?"}, "argoverse"),
        ("nothing", {"a.png": "?"}, None),
    ):
        for name, text in files.items():
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(text)
        assert told(tmp_path / folder)[0] == expected, folder


def test_suffixes_and_columns_of_tables(tmp_path):
    for suffix, name in (
        ("csv", "table"),
        ("TSV", "table"),
        ("feather", "argoverse"),
        ("yaml", "yolo"),
        ("yml", "yolo"),
    ):
        (tmp_path / f"a.{suffix}").write_text("?")
        assert told(tmp_path / f"a.{suffix}") == (name, f"a file .{suffix.lower()}")
    for column, name in (("key.segment_context_name", "waymo"), ("frame", "table")):
        folder = tmp_path / name
        folder.mkdir()
        pyarrow.parquet.write_table(pyarrow.table({column: ["a"]}), folder / "a.parquet")
        assert told(folder / "a.parquet")[0] == name
        assert told(folder)[0] == (name if name == "waymo" else None)
    (tmp_path / "b.parquet").write_text("?")
    assert told(tmp_path / "b.parquet")[0] == "table"
    assert told(tmp_path / "none") == (None, f"{tmp_path}/none: no such file or folder")
