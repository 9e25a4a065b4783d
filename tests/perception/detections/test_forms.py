"""The same scene in every form that has rectangles: equal matrices, each from detections to a verdict; what is
recognised."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dask_clusters import cluster

import verifier
from verifier.base.errors import ExitCode, InputError, UsageError
from verifier.cli import main
from verifier.perception.confusion.document import read_counts, write_confusion
from verifier.perception.detections import Reading, class_map, from_objects, read_detections
from verifier.perception.detections.formats import FORMATS

NAMES = ("car", "van")
WIDTH, HEIGHT = 640, 480
IMAGES = 24
CAMERA = "fx,fy,cx,cy,height_m\n700,700,320,200,1.5\n"


def scene():
    """Image, class and corners of annotations and detections, the latter with scores; some images have none."""
    random = np.random.default_rng(5)
    truth, found = [], []
    for image in range(IMAGES):
        for place in range(int(random.integers(0, 4))):
            left, low = 20 + 200 * place, int(random.integers(225, 470))
            box = [left, low - 60, left + 80, low]
            kind = int(random.integers(0, 2))
            truth.append((image, kind, box))
            if random.random() < 0.8:
                moved = [edge + int(random.integers(-4, 5)) for edge in box]
                found.append(
                    (image, kind if random.random() < 0.8 else 1 - kind, moved, random.integers(1, 99) / 100)
                )
        if random.random() < 0.5:
            found.append((image, 0, [600, 100, 630, int(random.integers(230, 470))], 0.3))
    return truth, found


TRUTH, FOUND = scene()


def stem(image):
    return f"i{image:03}"


def per_image(folder, suffix, lines, head="", tail=""):
    folder.mkdir(parents=True)
    for image in range(IMAGES):
        text = "".join(line for at, line in lines if at == image)
        (folder / f"{stem(image)}{suffix}").write_text(head + text + tail)


def write_table(folder):
    def frame(rows):
        corners = np.array([row[2] for row in rows])
        columns = {"frame": [stem(row[0]) for row in rows], "class": [NAMES[row[1]] for row in rows]}
        columns |= {name: corners[:, k] for k, name in enumerate(("x1", "y1", "x2", "y2"))}
        return pd.DataFrame(columns | ({"score": [row[3] for row in rows]} if len(rows[0]) > 3 else {}))

    tables = frame(TRUTH), frame(FOUND), pd.DataFrame({"frame": [stem(k) for k in range(IMAGES)]})
    for name, each in zip(("truth", "found", "frames"), tables, strict=True):
        each.to_csv(folder / f"{name}.csv", index=False)
    return tables


def coco_rows(rows, image, first):
    found = []
    for k, (at, kind, (left, top, right, low), *score) in enumerate(rows):
        row = {"id": k, "image_id": image(at), "category_id": kind + first}
        row["bbox"] = [left, top, right - left, low - top]
        found.append(row | ({"score": score[0]} if score else {}))
    return found


def write_coco(folder):
    document = {
        "images": [{"id": k, "file_name": f"{stem(k)}.jpg"} for k in range(IMAGES)],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(NAMES)],
        "annotations": coco_rows(TRUTH, int, 1),
    }
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "found.json").write_text(json.dumps(coco_rows(FOUND, int, 1)))


def write_fiftyone(folder):
    def detections(rows, image):
        for at, kind, (left, top, right, low), *score in rows:
            if at == image:
                box = [left / WIDTH, top / HEIGHT, (right - left) / WIDTH, (low - top) / HEIGHT]
                told = {"confidence": score[0]} if score else {}
                yield {"_cls": "Detection", "label": NAMES[kind], "bounding_box": box, **told}

    samples = [
        {
            "filepath": f"{stem(k)}.jpg",
            "metadata": {"_cls": "ImageMetadata", "width": WIDTH, "height": HEIGHT},
            "ground_truth": {"_cls": "Detections", "detections": list(detections(TRUTH, k))},
            "predictions": {"_cls": "Detections", "detections": list(detections(FOUND, k))},
        }
        for k in range(IMAGES)
    ]
    (folder / "samples.json").write_text(json.dumps({"name": "street", "media_type": "image", "samples": samples}))


def write_yolo(folder):
    def lines(rows):
        for at, kind, (left, top, right, low), *score in rows:
            middle = (left + right) / 2 / WIDTH, (top + low) / 2 / HEIGHT
            numbers = (*middle, (right - left) / WIDTH, (low - top) / HEIGHT, *score)
            yield at, " ".join(map(repr, (kind, *map(float, numbers)))) + "\n"

    per_image(folder / "yolo/labels", ".txt", list(lines(TRUTH)))
    per_image(folder / "predict/labels", ".txt", list(lines(FOUND)))
    (folder / "yolo/data.yaml").write_text("names: [car, van]\n")
    (folder / "predictions.json").write_text(json.dumps(coco_rows(FOUND, stem, 0)))


def write_voc(folder):
    def lines(rows):
        for at, kind, corners, *score in rows:
            edges = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))
            told = f"<score>{score[0]}</score>" if score else "<difficult>0</difficult>"
            yield at, f"<object><name>{NAMES[kind]}</name>{told}<bndbox>{edges}</bndbox></object>\n"

    for name, rows in (("Annotations", TRUTH), ("detected", FOUND)):
        per_image(folder / name, ".xml", list(lines(rows)), "<annotation>\n", "</annotation>\n")
    (folder / "results").mkdir()
    for kind, name in enumerate(NAMES):
        rows = [f"{stem(at)} {score} {' '.join(map(str, box))}\n" for at, k, box, score in FOUND if k == kind]
        (folder / f"results/comp3_det_val_{name}.txt").write_text("".join(rows))


def write_bdd100k(folder):
    def frames(rows):
        for k in range(IMAGES):
            labels = [{"id": "lane", "category": "lane/single white", "poly2d": []}]
            for at, kind, corners, *score in rows:
                if at == k:
                    box = dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
                    told = {"score": score[0]} if score else {"attributes": {"occluded": False, "weather": "clear"}}
                    labels.append({"id": str(len(labels)), "category": NAMES[kind], "box2d": box, **told})
            yield {"name": f"{stem(k)}.jpg", "videoName": None, "labels": labels if len(labels) > 1 else None}

    for name, rows in (("bdd", TRUTH), ("bdd_found", FOUND)):
        (folder / f"{name}.json").write_text(json.dumps(list(frames(rows))))


def write_openlabel(folder):
    """Each object is one of its own."""
    for name, rows in (("openlabel", TRUTH), ("openlabel_found", FOUND)):
        objects = {str(k): {"name": f"o{k}", "type": NAMES[kind]} for k, (_, kind, *_) in enumerate(rows)}
        frames = {str(k): {"objects": {}} for k in range(IMAGES)}
        for k, (at, _, (left, top, right, low), *score) in enumerate(rows):
            box = {"name": "shape", "val": [(left + right) / 2, (top + low) / 2, right - left, low - top]}
            if score:
                box["attributes"] = {"num": [{"name": "score", "val": score[0]}]}
            frames[str(at)]["objects"][str(k)] = {"object_data": {"bbox": [box]}}
        document = {"metadata": {"schema_version": "1.0.0"}, "objects": objects, "frames": frames}
        (folder / f"{name}.json").write_text(json.dumps({"openlabel": document}))


def write_cvat(folder):
    """Of images, and of a video in which each object is a track that ends in the frame after, by `outside`."""

    def edges(corners):
        return " ".join(f'{k}="{v}"' for k, v in zip(("xtl", "ytl", "xbr", "ybr"), corners, strict=True))

    task = f"<task><size>{IMAGES}</size><labels><label><name>car</name></label></labels></task>"
    for name, rows in (("cvat", TRUTH), ("cvat_found", FOUND)):
        images, tracks = "", ""
        for k in range(IMAGES):
            boxes = [row for row in rows if row[0] == k]
            inner = "".join(
                f'<box label="{NAMES[kind]}" source="auto" occluded="0" {edges(corners)} z_order="0">'
                + "".join(f'<attribute name="score">{each}</attribute>' for each in score)
                + "</box>\n"
                for _, kind, corners, *score in boxes
            )
            inner += '<polygon label="road" occluded="0" points="1,2;3,4;5,6"></polygon>'
            images += f'<image id="{k}" name="{stem(k)}.jpg" width="{WIDTH}" height="{HEIGHT}">\n{inner}</image>\n'
        for k, (at, kind, corners, *score) in enumerate(rows):
            told = "".join(f' score="{each}"' for each in score)
            box = f'<box frame="{{}}" outside="{{}}" occluded="0" keyframe="1" {edges(corners)}{told}/>'
            tracks += f'<track id="{k}" label="{NAMES[kind]}">{box.format(at, 0)}{box.format(at + 1, 1)}</track>\n'
        for suffix, inner in (("", images), ("_video", tracks)):
            (folder / f"{name}{suffix}.xml").write_text(
                f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><meta>{task}</meta>{inner}</annotations>\n'
            )


SIZE = ("--image-size", f"{WIDTH}x{HEIGHT}")
FORMS = {
    "table": (write_table, "truth.csv", "found.csv", ("--frames", "frames.csv")),
    "coco": (write_coco, "truth.json", "found.json", ()),
    "fiftyone": (write_fiftyone, "samples.json", "samples.json", ()),
    "yolo": (write_yolo, "yolo/labels", "predict/labels", SIZE),
    "yolo predictions": (write_yolo, "yolo/labels", "predictions.json", SIZE),
    "voc": (write_voc, "Annotations", "detected", ()),
    "voc results": (write_voc, "Annotations", "results", ()),
    "bdd100k": (write_bdd100k, "bdd.json", "bdd_found.json", ()),
    "openlabel": (write_openlabel, "openlabel.json", "openlabel_found.json", ()),
    "cvat": (write_cvat, "cvat.xml", "cvat_found.xml", ()),
    "cvat video": (write_cvat, "cvat_video.xml", "cvat_found_video.xml", ()),
}


def confusion(form, *options):
    _, truth, found, own = FORMS[form]
    paths = ["--format", form.split()[0], "--annotations", truth, "--detections", found, *own]
    return ["confusion", *paths, "--calibration", "cameras.csv", "--bins", "0,5,10,20,40,60,inf", "--unmatched",
            "own_bin", "--localisation", *options, "-o", "c.json"]  # fmt: skip


@pytest.fixture(scope="module")
def by_table(tmp_path_factory):
    """The counts from tables, whose reader is the one that everything else is compared with."""
    folder = tmp_path_factory.mktemp("table")
    tables = write_table(folder)
    (folder / "cameras.csv").write_text(CAMERA)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(confusion("table")) == 0
        return read_counts("c.json"), tables, folder


def same(found, expected):
    assert found.labels == expected.labels
    assert np.array_equal(found.counts, expected.counts)
    for key in ("totals", "localisation"):
        assert found.metadata[key] == expected.metadata[key]


def test_the_scene_has_what_can_go_wrong(by_table):
    """Hits, confusions, misses and false alarms, in several bins; the sum is that of the scene."""
    counts = by_table[0]
    total = counts.counts[0].sum(axis=0)
    assert total[:, :2].sum() == len(TRUTH)
    assert (total[:2, :2] > 0).all()
    assert (total[2, :2] > 0).all()
    assert total[0, 2] > 0
    assert np.count_nonzero(counts.counts[0][:, :2, :2].sum(axis=(1, 2))) >= 4
    assert counts.metadata["totals"]["frames"] == IMAGES


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_matrices_and_a_verdict(form, by_table, root, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    FORMS[form][0](tmp_path)
    (tmp_path / "cameras.csv").write_text(CAMERA)
    assert main(confusion(form)) == 0
    same(read_counts("c.json"), by_table[0])
    # One class, and on to a verdict: the phantom brake of the manual.
    (tmp_path / "map.txt").write_text("* -> vehicle\n")
    assert main(confusion(form, "--class-map", "map.txt", "--bins", "0,10,20,40,60,inf")) == 0
    model = root / "verifier/manual/models/phantom_braking.toml"
    (tmp_path / "s.ltl").write_text(f'model "{model}"\nno_phantom: P >= 0.9 [ G v >= 4 ]\n')
    run = ["run", "s.ltl", "--cm", "c.json", "--env", "empty_road", "--point-only", "--empty-columns", "prior"]
    assert main(run) == ExitCode.VIOLATED


def test_tables_of_pandas_give_the_same_matrices(by_table, tmp_path, monkeypatch):
    counts, (truth, found, frames), folder = by_table
    choices = {"calibration": str(folder / "cameras.csv"), "bins": "0,5,10,20,40,60,inf", "unmatched": "own_bin"}
    assert set(frames["frame"]) - set(truth["frame"])  # images without annotations: the list of frames decides
    data = read_detections("table", truth, found, frames=frames)
    assert data.frame_name == tuple(stem(k) for k in range(IMAGES))
    listed = [stem(k) for k in range(IMAGES) if stem(k) in set(truth["frame"])]
    inside = found[found["frame"].isin(listed)]
    short = verifier.count(truth, inside, localisation=True, **choices)
    assert short.metadata["localisation"] == counts.metadata["localisation"]
    objects = short.counts[0][:, :, :2]
    assert np.array_equal(objects, counts.counts[0][:, :, :2])
    own = truth.rename(columns={"frame": "image", "class": "kind"})
    mine = inside.rename(columns={"frame": "image", "class": "kind"})
    renamed = verifier.count(own, mine, column={"frame": "image", "class": "kind"}, localisation=True, **choices)
    same(renamed, short)
    write_confusion(short, tmp_path / "c.json")
    assert read_counts(tmp_path / "c.json").title == short.title


def per_frame(rows, make):
    """`make` of the corners, classes and scores of each image, by its name."""
    found = {}
    for k in range(IMAGES):
        own = [row for row in rows if row[0] == k]
        corners = np.array([row[2] for row in own], dtype=np.float32).reshape(-1, 4)
        found[stem(k)] = make(corners, np.array([row[1] for row in own], dtype=int), np.array([r[3:] for r in own]))
    return found


def dictionaries(rows):
    def one(corners, kinds, scores):
        return {"boxes": corners, "labels": kinds} | ({"scores": scores[:, 0]} if scores.size else {})

    found = per_frame(rows, one)
    if rows is FOUND:
        for each in found.values():
            each.setdefault("scores", np.zeros(0))
    return found


def of_supervision(rows, named=False):
    supervision = pytest.importorskip("supervision")

    def one(corners, kinds, scores):
        told = {"class_name": np.array([NAMES[k] for k in kinds])} if named else {}
        kinds = kinds + 40 if named else kinds  # numbers of another scheme, as those of a detector are
        confidence = scores.reshape(len(kinds)) if rows is FOUND else None
        return supervision.Detections(corners, class_id=kinds, confidence=confidence, data=told)

    return per_frame(rows, one)


def of_maite(rows):
    def one(corners, kinds, scores):
        sure = np.ones(len(kinds)) if rows is TRUTH else scores.reshape(len(kinds))
        return SimpleNamespace(boxes=corners, labels=kinds, scores=sure)

    return per_frame(rows, one)


def of_pycocotools(rows, folder):
    coco = pytest.importorskip("pycocotools.coco")
    truth = coco.COCO(folder / "truth.json")
    return truth if rows is TRUTH else truth.loadRes(str(folder / "found.json"))


OBJECTS = {
    "torchmetrics": lambda rows, _: list(dictionaries(rows).values()),
    "torchmetrics by name": lambda rows, _: dictionaries(rows),
    "supervision": lambda rows, _: list(of_supervision(rows).values()),
    "supervision with names": lambda rows, _: of_supervision(rows, named=True),
    "MAITE": lambda rows, _: of_maite(rows),
    "pycocotools": of_pycocotools,
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_other_libraries_give_the_same_matrices(kind, by_table, tmp_path):
    counts, _, folder = by_table
    write_coco(tmp_path)
    truth, found = (OBJECTS[kind](rows, tmp_path) for rows in (TRUTH, FOUND))
    told = {} if kind in ("supervision with names", "pycocotools") else {"names": NAMES}
    made = verifier.count(
        truth, found, calibration=str(folder / "cameras.csv"), bins="0,5,10,20,40,60,inf", unmatched="own_bin",
        localisation=True, **told,
    )  # fmt: skip
    same(made, counts)


NAMED = {"names": NAMES}


@pytest.mark.parametrize(
    ("truth", "found", "options", "words"),
    [
        ([{}], [{}], {}, "<annotations>: the labels have no names"),
        ([3], [3], NAMED, "<annotations>: expected dictionaries, supervision.Detections or MAITE targets, got int"),
        ({"a": {}}, {"b": {}}, NAMED, "<annotations>: no annotations of the image 'b'"),
        ({"a": {}, "b": {}}, {"b": {}}, NAMED, "<detections>: no detections of the image 'a'"),
        ([{}], {"b": {}}, NAMED, "<detections>: the images have names and those of the annotations have none"),
        ([{"labels": 0}], [{"labels": [], "scores": []}], NAMED, "<annotations>: labels of entry 1 is no array: 0"),
        ([{"labels": []}], 3, NAMED, "<detections>: expected one object for each image, got int"),
        ([{"labels": []}] * 2, [{"labels": [], "scores": []}], NAMED, "<detections>: 1 entries for 2 frames"),
        (SimpleNamespace(dataset={"a": 1j}), [], {}, "<annotations>: expected what COCO files hold: Type is not"),
        (SimpleNamespace(dataset={"images": []}), [], {}, "<annotations>: expected an object with the key"),
    ],
)  # fmt: skip
def test_objects_that_are_none(truth, found, options, words):
    with pytest.raises(InputError) as caught:
        from_objects(truth, found, **options)
    assert str(caught.value).startswith(words)


def test_attributes_are_the_columns_that_are_named(tmp_path):
    """Those of annotations need not be those of detections; a score is of detections alone."""
    box = {"category": "car", "box2d": {"x1": 1, "y1": 2, "x2": 30, "y2": 40}}
    there = box | {"attributes": {"range": 9, "occluded": True, "x": 5, "weather": "wet"}}
    (tmp_path / "t.json").write_text(json.dumps([{"name": "a", "labels": [there]}]))
    (tmp_path / "f.json").write_text(json.dumps([{"name": "a", "labels": [box | {"attributes": {"conf": 0.4}}]}]))
    columns = {"distance_m": "range", "score": "conf"}
    data = read_detections("bdd100k", tmp_path / "t.json", tmp_path / "f.json", columns=columns)
    assert (data.annotations.distance_m.tolist(), data.detections.score.tolist()) == ([9], [0.4])
    assert {name: value.tolist() for name, value in data.annotations.attributes.items()} == {
        "occluded": [1],
        "id": [1],
    }
    assert data.annotations.box_3d is None


RENAMED = {
    "table": ("found.csv", lambda text: re.sub(r"(?m)^0*(\d+),", r"cam/\1.png,", text)),
    "coco": ("found.json", lambda text: re.sub(r'"image_id": (\d+)', r'"image_id": "/data/\1.jpeg"', text)),
    "fiftyone": ("found.json", lambda text: text.replace('"filepath": "', '"filepath": "/elsewhere/')),
    "bdd100k": ("bdd_found.json", lambda text: text.replace('.jpg"', '.png"')),
    "cvat": ("cvat_found.xml", lambda text: text.replace('name="i', 'name="b/i').replace(".jpg", ".png")),
}


@pytest.mark.parametrize("form", RENAMED)
def test_names_of_another_scheme_are_matched_by_stem_on_request(form, by_table, tmp_path, monkeypatch, capfd):
    """Other folders, suffixes and leading zeros; without being asked the frames do not match."""
    monkeypatch.chdir(tmp_path)
    FORMS[form][0](tmp_path)
    (tmp_path / "cameras.csv").write_text(CAMERA)
    file, change = RENAMED[form]
    if form == "fiftyone":
        (tmp_path / file).write_bytes((tmp_path / "samples.json").read_bytes())
    for name in ("truth.csv", "frames.csv", "found.csv", "truth.json") if form in ("table", "coco") else ():
        if (tmp_path / name).exists():  # numbers as stems
            text = (tmp_path / name).read_text()
            (tmp_path / name).write_text(
                re.sub(r'"i(\d)', r'"\1', text) if "json" in name else re.sub(r"(?m)^i", "", text)
            )
    (tmp_path / file).write_text(change((tmp_path / file).read_text()))
    command = confusion(form)
    command[command.index("--detections") + 1] = file
    assert main(command) == ExitCode.BAD_INPUT
    assert "--match-frames stem where only folder, suffix or zeros differ" in capfd.readouterr().err
    assert main([*command, "--match-frames", "stem"]) == 0
    same(read_counts("c.json"), by_table[0])
    assert read_counts("c.json").metadata["source"]["match_frames"] == "stem"


BOX = {"frame": [1, 1], "class": ["a", "a"], "x1": [0, 0], "y1": [0, 0], "x2": [9, 9], "y2": [9, 9]}
SCORED = {**BOX, "score": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("truth", "found", "words"),
    [
        (BOX, SCORED, "<annotations>: expected a pandas DataFrame, got dict"),
        (pd.DataFrame(BOX), pd.DataFrame(BOX), "<detections>: no column 'score'"),
        (pd.DataFrame({**BOX, "x1": [0, "left"]}), pd.DataFrame(SCORED),
         "<annotations>: cannot be read as a table: Could not convert 'left' with type str: tried to convert to "
         "int64; Conversion failed for column x1"),
        (pd.DataFrame(BOX), pd.DataFrame({**SCORED, "score": [0.5, np.nan]}),
         "<detections>:2: detection without a score (nan)"),
        (pd.DataFrame([[1, "a"]], columns=["frame", "frame"]), pd.DataFrame(SCORED),
         "<annotations>: cannot be read as a table: Duplicate column names found"),
        (pd.DataFrame({**BOX, "frame": pd.to_datetime(["2020", "2021"])}), pd.DataFrame(SCORED),
         "<annotations>: column 'frame': expected names or whole numbers, got timestamp"),
    ],
)  # fmt: skip
def test_tables_of_pandas_that_are_none(truth, found, words):
    with pytest.raises(InputError) as caught:
        read_detections("table", truth, found)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_recognised(form, by_table, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    FORMS[form][0](tmp_path)
    (tmp_path / "cameras.csv").write_text(CAMERA)
    command = confusion(form)
    command[2] = "auto"
    assert main(command) == 0
    out = capfd.readouterr().out
    assert f"note: read as {form.split()[0]}: " in out
    same(read_counts("c.json"), by_table[0])


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("auto", "fiftyone")])
def test_the_small_files_of_every_format_are_recognised(form, root):
    folder = root / "tests/data/invalid/detections" / form / "valid"
    paths = [next(folder.glob(f"{name}*")) for name in ("annotations", "detections")]
    reading = Reading(class_map=class_map({"*": "thing"}))
    data, expected = (read_detections(name, *paths, reading) for name in ("auto", form))
    assert data.origin["recognised"].startswith(f"read as {form}: ")
    assert data.frame_name == expected.frame_name
    assert np.array_equal(data.annotations.line, expected.annotations.line)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "data: the format is not recognised: neither .txt, .xml nor .json files, and"),
        ({"a.txt": ""}, "data/a.txt: the format is not recognised: all 1 text files are empty"),
        ({"a.txt": "1 2 3\n"}, "data/a.txt: the format is not recognised: a line such as '1 2 3'"),
        ({"a.txt": "a 1 Car" + " 2" * 14}, "data/a.txt: the format is not recognised: a line such as 'a 1 Car"),
        ({"a.xml": "<html/>"}, "data/a.xml: the format is not recognised: XML without the element 'annotation'"),
    ],
)
def test_what_is_not_recognised(tmp_path, monkeypatch, files, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name, text in files.items():
        (tmp_path / "data" / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_detections("auto", "data", "data")
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith("hint: name it with --format")


def test_errors_say_how_a_format_was_recognised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(InputError, match="JSON, but neither COCO, FiftyOne, OpenLABEL, BDD100K nor"):
        read_detections("auto", "a.json", "a.json")
    with pytest.raises(InputError, match="no such file or folder"):
        read_detections("auto", "nowhere", "a.json")
    (tmp_path / "t.csv").write_text("frame,class\n1,a\n")
    with pytest.raises(InputError) as caught:
        read_detections("auto", "t.csv", "t.csv")
    assert str(caught.value).endswith("; read as table: a file .csv; --format NAME says otherwise")
    with pytest.raises(UsageError, match="unknown option of the format 'table' 'image_size'"):
        read_detections("auto", "t.csv", "t.csv", image_size="1x1")


SAMPLE = {
    "filepath": "a.jpg",
    "metadata": {"width": 100, "height": 50},
    "ground_truth": {"detections": [{"label": "car", "bounding_box": [0.1, 0.2, 0.3, 0.4], "distance_m": 7}]},
    "predictions": {"detections": [{"label": "car", "bounding_box": [0.1, 0.2, 0.3, 0.4], "confidence": 0.5}]},
}


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([{"filepath": "a"}], "s.json: no sample has the field 'ground_truth'"),
        ([SAMPLE | {"ground_truth": 3}], "s.json: /samples/0/ground_truth: expected an object with a list"),
        (
            [SAMPLE | {"predictions": SAMPLE["ground_truth"]}],
            "s.json: /samples/0/predictions/detections/0: missing key 'confidence'",
        ),
        (
            [SAMPLE | {"ground_truth": {"detections": [{"label": "a", "bounding_box": [0, 0, 1]}]}}],
            "s.json: /samples/0/ground_truth/detections/0/bounding_box: expected a list of 4 numbers",
        ),
    ],
)
def test_what_is_wrong_with_samples_of_fiftyone(samples, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps({"samples": samples}))
    with pytest.raises(InputError) as caught:
        read_detections("fiftyone", "s.json", "s.json")
    assert str(caught.value).startswith(words)


@pytest.fixture(scope="module")
def scheduler():
    with cluster(2, processes=False) as address:
        yield address


def test_parquet_tables_have_their_distances_by_parts(by_table, scheduler, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("cameras.csv").write_text(CAMERA)
    drives = ["a" if image < 9 else "b" for image in range(IMAGES)]
    for image, drive in enumerate(drives):
        Path(f"depth/{drive}").mkdir(parents=True, exist_ok=True)
        np.save(f"depth/{drive}/{stem(image)}.npy", np.full((HEIGHT, WIDTH), 8.0 + image / 3))
    names = ("truth", "found", "frames")
    for name, table in zip(names, write_table(tmp_path), strict=True):
        own = table.assign(sequence=[drives[int(frame[1:])] for frame in table["frame"]])
        own.to_parquet(f"{name}.parquet", index=False)
    paths = zip(("annotations", "detections", "frames"), names, strict=True)
    command = ["confusion", "--format", "table", *(f"--{role}={name}.parquet" for role, name in paths)]
    command += ["--bins", "0,5,10,20,40,60,inf", "--unmatched", "own_bin", "--localisation", "--affinity", "iou_2d"]
    command += ["--classes", "car,van", "-o", "c.json"]
    for more in (["--calibration", "cameras.csv"], ["--depth-folder", "depth"]):
        assert main([*command, *more]) == 0
        once = read_counts("c.json")
        assert main([*command, *more, "--stream", "--chunk-rows", "7", "-o", "stream.json"]) == 0
        ways = ["stream.json"]
        for number in (1, 2, 3):
            own = ["--shard", f"{number}/3", "--chunk-rows", "7", "-o", f"{number}.json"]
            assert main([*command, *more, *own]) == 0
        assert main(["confusion", "merge", "1.json", "2.json", "3.json", "-o", "sum.json"]) == 0
        assert main([*command, *more, "--scheduler", scheduler, "--chunk-rows", "7", "-o", "workers.json"]) == 0
        for way in (*ways, "sum.json", "workers.json"):
            found = read_counts(way)
            same(found, once)
            for key in ("distances", "projected"):
                assert found.metadata["source"].get(key) == once.metadata["source"].get(key)
        assert Path("sum.json").read_bytes() == Path("workers.json").read_bytes()
    # The unit is judged by all objects together, and each part has its say in the median.
    capfd.readouterr()
    for image, drive in enumerate(drives):
        np.save(f"depth/{drive}/{stem(image)}.npy", np.full((HEIGHT, WIDTH), 3000.0 if image > 8 else 8.0))
    for way in ([], ["--scheduler", scheduler, "--chunk-rows", "7"]):
        assert main([*command, "--depth-folder", "depth", "--outside", "drop", *way]) == 4
        assert "the depths do not fit the heights" in capfd.readouterr().err
    last = TRUTH[-1][0]
    path = f"depth/{drives[last]}/{stem(last)}.npy"
    np.save(path, np.full((HEIGHT, WIDTH), -1.0))
    assert main([*command, "--depth-folder", "depth", "--scheduler", scheduler]) == 4
    assert f"{path}: pixel (0, 0)" in capfd.readouterr().err
