"""Distances from depth maps: by hand on 6 x 6 pixels, by a second definition, on KITTI, and what is refused."""

import hashlib
import io
import json
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from verifier.base.errors import ExitCode, InputError, UsageError
from verifier.cli import main
from verifier.perception.detections import distance, with_depth
from verifier.perception.detections.arrays import from_arrays
from verifier.perception.detections.coco import coco
from verifier.perception.detections.depth import box_depth, depth_map, whole_depth
from verifier.perception.detections.kitti import kitti_object

# Metres; 0 is unknown.
#   column  0   1   2   3   4   5
METRES = [
    [10, 10, 10, 40, 40, 40],  # row 0
    [10, 12, 14, 40, 0, 0],
    [10, 0, 20, 40, 0, 0],
    [0, 0, 0, 40, 0, 0],
    [5, 6, 7, 8, 0, 0],
    [1, 2, 3, 4, 0, 9.5],
]
HAND = [
    # left, top, right, bottom: distance
    ((0, 0, 3, 3), 12),  # rows 10 | 12 | median of 10, 20 = 15: 12
    ((0, 2, 3, 5), 10.5),  # row 2: 15, row 3 left out, row 4: 6: their mean
    ((0, 0, 6, 2), 19),  # row 0: (10 + 40) / 2 = 25, row 1: (12 + 14) / 2 = 13: their mean
    ((-50, 3, 2, 99), 3.5),  # cut to columns 0, 1 and rows 3 to 5: row 4: 5.5, row 5: 1.5
    ((2.9, 0.5, 3.1, 0.6), 25),  # touches columns 2 and 3 of row 0
    ((5, 5, 5, 5), 9.5),  # no area: the pixel it lies in
    ((5, 5, 6, 6), 9.5),
]
FAR = (4, 2, 6, 4)  # no known depth
OUTSIDE = (6, 0, 8, 2)  # begins where the image ends


def data_of(folder, boxes, name="a.png", names=None):
    """COCO with one image (or `names`, one box each) and boxes given by their corners."""
    names = names or [name]
    images = [{"id": number, "file_name": each} for number, each in enumerate(names)]
    found = [
        {
            "id": number,
            "image_id": number if len(names) > 1 else 0,
            "category_id": 1,
            "bbox": [left, top, right - left, bottom - top],
            "score": 0.5,
        }
        for number, (left, top, right, bottom) in enumerate(boxes)
    ]
    truth = {"images": images, "categories": [{"id": 1, "name": "cone"}], "annotations": found}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "found.json").write_text(json.dumps(found))
    return coco(folder / "truth.json", folder / "found.json")


def write_png(path, metres, scale=256):
    Image.fromarray((np.array(metres) * scale).astype(np.uint16)).save(path)


@pytest.fixture
def maps(tmp_path):
    folder = tmp_path / "maps"
    folder.mkdir()
    return folder


def pfm_bytes(metres, order="<"):
    """A portable float map, whose unknown depths are infinite; numpy's order of bytes."""
    values = np.where(np.array(metres) == 0, np.inf, metres)
    height, width = values.shape
    head = f"Pf\n{width} {height}\n{'-1.0' if order == '<' else '1.0'}\n"
    return head.encode() + values[::-1].astype(f"{order}f4").tobytes()


@pytest.mark.parametrize("kind", ["npy", "npy32", "png", "named png", "<pfm", ">pfm"])
def test_distances_by_hand(tmp_path, maps, kind):
    if kind.endswith("pfm"):
        (maps / "a.pfm").write_bytes(pfm_bytes(METRES, kind[0]))
    elif kind.startswith("npy"):
        np.save(maps / "a.npy", np.array(METRES, dtype=np.float32 if kind == "npy32" else np.float64))
    else:
        write_png(maps / ("a.png.png" if kind == "named png" else "a.png"), METRES)
    found = with_depth(data_of(tmp_path, [box for box, _ in HAND]), maps)
    assert distance(found.annotations, "given").tolist() == [metres for _, metres in HAND]
    # The detections are the same rectangles.
    assert distance(found.detections, "given").tolist() == [metres for _, metres in HAND]


def test_detections_of_no_depth_have_no_distance(tmp_path, maps):
    """One where no depth is known, one outside the image, one in a frame without annotations and map: no error."""
    write_png(maps / "a.png", METRES)
    data = data_of(tmp_path, [HAND[0][0], HAND[1][0], HAND[2][0], HAND[3][0]], names=["a.png", "b", "c", "d"])
    annotations = data.annotations.take(np.array([0]))
    box = data.detections.box_2d.copy()
    box[:3] = HAND[1][0], FAR, OUTSIDE
    data = data.change(
        annotations=annotations, detections=replace(data.detections, frame=np.array([0, 0, 0, 3]), box_2d=box)
    )
    found = with_depth(data, maps)
    assert distance(found.detections, "given")[0] == 10.5
    assert np.isnan(distance(found.detections, "given")[1:]).all()
    assert found.origin["distances"]["unknown_of_detections"] == 3


def test_depths_in_another_unit_are_refused_by_known_heights(tmp_path, maps, monkeypatch, capfd):
    """Five people of 1.7 m at 8 m, 85 pixels tall in an image of 600: a focal length of 400 pixels, 2/3 of the width.

    Read as 1/256 m the millimetres are 31.25 m: 2.604 widths, 21.7 degrees. Read as 1/1000 m, 1/256 m are 2.048 m:
    0.1707 widths, 142 degrees.
    """
    monkeypatch.chdir(tmp_path)
    data_of(tmp_path, [(100 * k, 50, 100 * k + 40, 135) for k in range(5)])
    text = (tmp_path / "truth.json").read_text().replace("cone", "Person")
    (tmp_path / "truth.json").write_text(text)
    paths = ["--annotations", "truth.json", "--detections", "found.json", "--depth-folder", "maps"]
    command = ["confusion", "--format", "coco", *paths, "--bins", "0,10,inf"]
    for scale, own, degrees in ((1000, 256, 22), (256, 1000, 142)):
        write_png(maps / "a.png", np.full((200, 600), 8.0), scale)
        assert main([*command, "--depth-scale", str(own)]) == 4
        assert capfd.readouterr().err == (
            "verify: maps: the depths do not fit the heights of 5 objects: in the median they mean a camera with a "
            f"field of view of {degrees} degrees; expected 29 to 110\n"
            "  hint: PNG maps hold 1/256 m unless --depth-scale says otherwise (--depth-scale 1000 for millimetres); "
            "if the camera is such a one: --accept implausible-depth\n"
        )
        assert main([*command, "--depth-scale", str(own), "--accept", "implausible-depth"]) == 0
        assert main([*command, "--depth-scale", str(scale), "-o", f"{scale}.json"]) == 0
        record = json.loads((tmp_path / f"{scale}.json").read_text())["source"]["distances"]
        assert (record["scale"], record["focal_length_in_widths"]) == (scale, 0.6667)
    assert main(["confusion", "--format", "coco", *paths[:4], "--depth-scale", "9"]) == ExitCode.USAGE
    # Four of known height are too few to tell.
    data_of(tmp_path, [(100 * k, 50, 100 * k + 40, 135) for k in range(4)])
    (tmp_path / "truth.json").write_text((tmp_path / "truth.json").read_text().replace("cone", "Person"))
    assert main([*command, "--depth-scale", "9"]) == 0


def test_the_scale_of_an_image(tmp_path, maps):
    write_png(maps / "a.png", METRES, 1000)
    data = data_of(tmp_path, [HAND[0][0]])
    assert with_depth(data, maps, scale=1000).annotations.distance_m.tolist() == [12]
    write_png(maps / "a.png", np.full((6, 6), 8), 0.5)
    assert with_depth(data, maps, scale=0.5).annotations.distance_m.tolist() == [8]
    np.save(maps / "a.npy", np.array(METRES, dtype=float))
    (maps / "a.png").unlink()
    assert with_depth(data, maps, scale=1000).annotations.distance_m.tolist() == [12]  # an array is in metres


def test_what_is_recorded(tmp_path, maps):
    (maps / "city").mkdir()
    names = ["z.png", "city/night/b.jpg", "city/c"]
    (maps / "city/night").mkdir()
    write_png(maps / "z.png", METRES)
    np.save(maps / "city/night/b.npy", np.full((6, 6), 3.0))
    np.save(maps / "city/c.npy", np.full((6, 6), 7.0))
    found = with_depth(data_of(tmp_path, [box for box, _ in HAND[:3]], names=names), maps)
    assert found.annotations.distance_m.tolist() == [12, 3, 7]
    files = ["city/c.npy", "city/night/b.npy", "z.png"]
    lines = [f"{hashlib.sha256((maps / each).read_bytes()).hexdigest()}  {each}\n" for each in files]
    assert found.origin["distances"] == {
        "role": "depth",
        "name": "maps",
        "files": 3,
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
        "scale": 256.0,
        "rule": "median of the medians of rows",
        "unknown": 0,
        "unknown_of_detections": 0,
    }


def test_frames_without_annotations_need_no_map(tmp_path, maps):
    found = with_depth(data_of(tmp_path, []), maps)
    assert (len(found.annotations), found.origin["distances"]["files"]) == (0, 0)


def test_unknown_depths_become_regions_where_that_is_ignored(tmp_path, maps):
    write_png(maps / "a.png", METRES)
    data = data_of(tmp_path, [HAND[0][0], FAR, HAND[1][0], FAR])
    with pytest.raises(InputError) as caught:
        with_depth(data, maps)
    assert str(caught.value) == (
        f"{tmp_path}/truth.json: element 2: frame 'a.png': no depth is known in the rectangle (and 1 more like it)\n"
        "  hint: --ignore unknown_depth (in Python ignore=('unknown_depth',)) leaves these out and counts them"
    )
    with pytest.raises(InputError, match=r"no depth is known in the rectangle\n"):  # one alone
        with_depth(data_of(tmp_path, [HAND[0][0], FAR]), maps)
    found = with_depth(data, maps, ignore=("unknown_depth",))
    assert found.annotations.distance_m.tolist() == [12, 10.5]
    assert found.annotations.line.tolist() == [1, 3]
    assert (found.ignored.box_2d.tolist(), found.ignored.line.tolist()) == ([list(FAR)] * 2, [2, 4])
    assert found.origin["ignored"] == {"unknown_depth": 2}
    assert found.origin["distances"]["unknown"] == 2


@given(
    arrays(np.uint16, (6, 6), elements=st.sampled_from([0, 0, 256, 300, 1000, 65535])),
    st.lists(st.integers(0, 6), min_size=2, max_size=2, unique=True),
    st.lists(st.integers(0, 6), min_size=2, max_size=2, unique=True),
)
def test_a_second_definition(tmp_path_factory, values, across, down):
    folder = tmp_path_factory.mktemp("maps")
    (left, right), (top, bottom) = sorted(across), sorted(down)
    known = [[each / 256 for each in row[left:right] if each] for row in values.tolist()[top:bottom]]
    rows = [statistics.median(row) for row in known if row]
    Image.fromarray(values).save(folder / "a.png")
    data = data_of(folder, [(0, 0, 6, 6)])
    box = replace(data.annotations, box_2d=[[left, top, right, bottom]])
    found = with_depth(data.change(annotations=box), folder, ignore=("unknown_depth",))
    assert found.annotations.distance_m.tolist() == ([statistics.median(rows)] if rows else [])


def test_labelled_cars_of_kitti(shared, tmp_path):
    """LiDAR depth against labels, for the four cars of two frames that nothing hides.

    Measured minus labelled: +5.74 (at 33.2 m), +3.33 (19.96 m), -0.84 (9.72 m), -1.81 (59.59 m). Nearer by up to
    half a car, as the points lie on its surface; further where rows with a single point of the background count as
    much as full ones. The median of the sizes is (1.81 + 3.33) / 2 = 2.57 m; a wrong scale, axis or row order would
    be wrong by tens of metres.
    """
    folder = shared / "data/images_kitti_depth"
    for name in ("000008", "000019"):
        (tmp_path / f"{name}.txt").write_text("")
    truth = with_depth(kitti_object(folder / "label_2", tmp_path), folder / "sparse_depth").annotations
    cars = truth.take((truth.attributes["occluded"] == 0) & (truth.label == 0))
    labelled = distance(cars, "forward")
    assert labelled.tolist() == pytest.approx([33.2, 19.96, 9.72, 59.59])
    error = distance(cars, "given") - labelled
    assert np.median(np.abs(error)) == pytest.approx(2.57, abs=0.01)
    assert np.abs(error / labelled).max() < 0.18


def png_bytes(array, **options):
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, "PNG", **options)
    return stream.getvalue()


def npy_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def changed(value):
    metres = np.array(METRES)
    metres[2, 4] = value
    return npy_bytes(metres)


GOOD_PNG = png_bytes(np.full((6, 6), 256, dtype=np.uint16))
GOOD_NPY = npy_bytes(np.ones((6, 6)))
REFUSED = [
    ("a.png", png_bytes(np.zeros((6, 6), np.uint8)), "a.png: expected a 16-bit grey image, found one of mode L"),
    ("a.png", png_bytes(np.zeros((6, 6, 3), np.uint8)), "a.png: expected a 16-bit grey image, found one of mode RGB"),
    ("a.png", b"no image", "a.png: not a readable PNG image"),
    ("a.png", GOOD_PNG[:45], "a.png: not a readable PNG image"),
    (
        "a.npy",
        changed(np.nan),
        r"a.npy: pixel \(4, 2\), counted from 0: expected a depth .*, got nan\n  hint: write 0",
    ),
    ("a.npy", changed(np.inf), "got inf"),
    ("a.npy", changed(-1), "got -1"),
    ("a.npy", changed(2e5), "got 200000"),
    ("a.npy", npy_bytes(np.ones((6, 6, 1))), r"expected floating-point metres .* found float64 of shape \(6, 6, 1\)"),
    ("a.npy", npy_bytes(np.ones((6, 6), int)), "expected floating-point metres .* found int64 of shape"),
    ("a.npy", npy_bytes(np.array([["a"]], dtype=object)), "a.npy: not a readable NumPy array: .*Object arrays"),
    ("a.npy", GOOD_NPY[:-1], "a.npy: not a readable NumPy array"),
    ("a.npy", b"", "a.npy: not a readable NumPy array"),
    ("a.pfm", pfm_bytes(METRES)[:-1], r"a.pfm: 143 bytes; 6 x 6 pixels take 144"),
    ("a.pfm", b"Pf\n0 6\n-1\n", r"a.pfm: 0 bytes; 0 x 6 pixels take 0"),
    ("a.pfm", b"PF\n6 6\n-1\n", r"a.pfm: expected a portable float map of one channel"),
    ("b.npy", GOOD_NPY, r"maps: frame 'a.png' has no depth map 'a' with .npy, .png or .pfm"),
]


@pytest.mark.parametrize(("name", "raw", "message"), REFUSED)
def test_files_that_are_no_depth_map(tmp_path, maps, name, raw, message):
    (maps / name).write_bytes(raw)
    with pytest.raises(InputError, match=message):
        with_depth(data_of(tmp_path, [HAND[0][0]]), maps)


@given(st.sampled_from([("a.png", GOOD_PNG), ("a.npy", GOOD_NPY)]), st.data())
def test_damaged_files_never_crash(tmp_path_factory, file, draw):
    name, good = file
    folder = tmp_path_factory.mktemp("maps")
    raw = bytearray(good[: draw.draw(st.integers(0, len(good)))])
    for place in draw.draw(st.lists(st.integers(0, max(len(raw) - 1, 0)), max_size=3)) if raw else ():
        raw[place] = draw.draw(st.integers(0, 255))
    (folder / name).write_bytes(raw)
    data = data_of(folder, [(0, 0, 6, 6)])
    try:
        found = with_depth(data, folder)
    except InputError as error:
        assert str(folder) in str(error)  # noqa: PT017 - most damaged files are refused, a few still hold a map
    else:
        assert np.isfinite(found.annotations.distance_m).all()


def test_a_box_outside_its_map(tmp_path, maps):
    np.save(maps / "a.npy", np.array(METRES))
    with pytest.raises(InputError) as caught:
        with_depth(data_of(tmp_path, [HAND[0][0], OUTSIDE]), maps, ignore=("unknown_depth",))
    assert str(caught.value) == (
        f"{tmp_path}/truth.json: element 2: frame 'a.png': the rectangle (6, 0, 8, 2) lies outside the depth map of "
        "6 x 6 pixels"
    )


@pytest.mark.parametrize("name", ["../a.png", "x/../../a.png", "/a.png", "..\\a.png", ".", "a\0.png", "a" * 300])
def test_names_stay_inside_the_folder(tmp_path, maps, name):
    np.save(tmp_path / "a.npy", np.ones((6, 6)))
    leaves = len(name) < 300 and "\0" not in name
    words = "the name does not lead to a file inside the folder" if leaves else ""
    with pytest.raises(InputError, match=f"maps: frame .*{words}"):
        with_depth(data_of(tmp_path, [HAND[0][0]], name), maps)


def test_maps_are_not_mixed_up(tmp_path, maps):
    np.save(maps / "a.npy", np.array(METRES))
    two = data_of(tmp_path, [HAND[0][0], HAND[1][0]], names=["a.png", "a.jpg"])
    with pytest.raises(InputError, match=r"a\.npy: the depth map of two frames, 'a\.png' and 'a\.jpg'"):
        with_depth(two, maps)
    write_png(maps / "a.png", METRES)
    with pytest.raises(InputError, match=r"a\.png: frame 'a\.png' has a second depth map, .*a\.npy"):
        with_depth(data_of(tmp_path, [HAND[0][0]]), maps)


def test_what_does_not_fit_together(tmp_path, maps):
    data = data_of(tmp_path, [HAND[0][0]])
    with pytest.raises(InputError, match="nowhere: no such folder"):
        with_depth(data, tmp_path / "nowhere")
    for scale in (0, -1, np.inf, np.nan):
        with pytest.raises(UsageError, match="expected a positive number"):
            with_depth(data, maps, scale=scale)
    with pytest.raises(UsageError, match="unknown kind of fault to ignore 'depth'"):
        with_depth(data, maps, ignore=("depth",))
    without = data.change(annotations=replace(data.annotations, box_2d=None))
    with pytest.raises(UsageError, match="the annotations have none"):
        with_depth(without, maps)


def command(folder, *more):
    files = ["--annotations", str(folder / "truth.json"), "--detections", str(folder / "found.json")]
    return main(["confusion", "--format", "coco", *files, "--depth-folder", str(folder / "maps"), *more])


def test_the_command(tmp_path, maps, capsys):
    np.save(maps / "a.npy", np.array(METRES))
    data_of(tmp_path, [HAND[0][0], (0, 4, 2, 5), FAR])  # 12 m, 5.5 m, unknown
    assert command(tmp_path) == ExitCode.BAD_INPUT
    assert "--ignore unknown_depth" in capsys.readouterr().err
    assert command(tmp_path, "--ignore", "unknown_depth", "--bins", "0,10,20", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["distance"]["measure"] == "given"
    assert document["source"]["distances"]["role"] == "depth"
    assert document["totals"]["annotations"] == 2
    assert document["totals"]["ignored"] == 1  # the detection on the annotation without a depth
    assert [each["counts"] for each in document["bins"]] == [[[1, 0], [0, 0]], [[1, 0], [0, 0]]]
    assert command(tmp_path, "--stream") == ExitCode.USAGE


def test_heights_of_boxes_in_space_tell_the_unit(tmp_path, maps):
    """KITTI: five vans 3.4 m high, 85 pixels tall at 16 m, in an image of 600: 400 pixels, 2/3 of it. Detections
    that have columns for boxes in space, but no box, get their depth."""
    lines = [f"Van 0 0 0 {100 * k} 50 {100 * k + 40} 135 3.4 2 5 0 1.6 16 0" for k in range(5)]
    space = "-1 -1 -1 -1000 -1000 -1000 -10"
    for name, text in (("label", "\n".join(lines)), ("found", f"Van -1 -1 -10 0 50 40 135 {space} 0.9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text + "\n")
    data = kitti_object(tmp_path / "label", tmp_path / "found")
    write_png(maps / "a.png", np.full((200, 600), 16.0))
    found = with_depth(data, maps)
    assert found.origin["distances"]["focal_length_in_widths"] == 0.6667
    assert found.detections.distance_m.tolist() == [16]
    with pytest.raises(InputError, match="the depths do not fit the heights of 5 objects"):
        with_depth(data, maps, scale=1000)


def test_false_alarms_lie_where_the_map_says(tmp_path, maps, monkeypatch, capfd):
    """A detection where nothing is annotated, on 40 m: column "empty" of that bin has it."""
    monkeypatch.chdir(tmp_path)
    write_png(maps / "a.png", METRES)
    data_of(tmp_path, [HAND[0][0], (3, 0, 4, 4)])
    truth = json.loads((tmp_path / "truth.json").read_text())
    truth["annotations"].pop()
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    command = ["confusion", "--format", "coco", "--annotations", "truth.json", "--detections", "found.json", "--bins",
               "0,20,50", "--depth-folder", "maps", "--unmatched", "own_bin", "-o", "c.json"]  # fmt: skip
    assert main(command) == 0
    counts = json.loads((tmp_path / "c.json").read_text())["bins"]
    assert [each["counts"] for each in counts] == [[[1, 0], [0, 0]], [[0, 1], [0, 0]]]


def test_focal_lengths_by_hand(tmp_path, maps):
    """Ten pixels at 8 m in an image of 100: 0.8 m of the height of its box, else of the usual one (a cone: none)."""
    np.save(maps / "a.npy", np.full((50, 100), 8.0))
    heights = [0, 0.5, 1, 2, np.nan, np.nan]
    box_3d = [[np.nan] * 7 if np.isnan(height) else [8, 0, 0, 1, 1, height, 0] for height in heights]
    columns = {"frame": [0] * 6, "class": [0] * 5 + [1], "box_2d": [[20, 5, 30, 15]] * 6}
    seen = {**columns, "score": [0.5] * 6}
    data = from_arrays(["PED", "cone"], ["a"], {**columns, "box_3d": box_3d}, seen)
    record = with_depth(data, maps, part=True).origin["distances"]
    assert record["focal_lengths"] == {"0.4": 1, "0.4706": 2, "0.8": 1, "1.6": 1}
    told = data.change(detections=replace(data.detections, distance_m=np.full(6, 3.0)))
    for detections in (told.detections, replace(data.detections, box_2d=None)):
        found = with_depth(data.change(detections=detections), maps)
        assert found.detections is detections
        assert "unknown_of_detections" not in found.origin["distances"]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ({}, None),
        ({"0.1": 4}, None),
        ({"0.35": 5}, 0.35),
        ({"1.9": 3, "0.2": 2}, 1.9),
        ({"0.4": 3, "0.5": 3}, 0.45),
        ({"0.3": 1, "0.33339": 1, "0.44449": 4}, 0.4445),
        ({"0.3499": 5}, "5 objects: in the median they mean a camera with a field of view of 110 degrees"),
        ({"1.9001": 6}, "6 objects: in the median they mean a camera with a field of view of 29 degrees"),
        ({"0.5": 2, "5.0": 3}, "field of view of 11 degrees"),
    ],
)
def test_the_median_focal_length_is_that_of_a_camera(lengths, expected):
    record = {"maps": [], "focal_lengths": lengths, "scale": 256.0}
    if isinstance(expected, str):
        with pytest.raises(InputError, match=f"^maps: the depths do not fit the heights of .*{expected}"):
            whole_depth(record, "maps", any_focal_length=False)
    else:
        assert whole_depth(record, "maps", any_focal_length=False).get("focal_length_in_widths") == expected
    assert "focal_length_in_widths" not in whole_depth(record, "maps", any_focal_length=True)


def test_disparities_are_depths_of_a_stereo_pair(maps):
    """700 pixels times 0.5 m over the disparity; of none no depth is known."""
    np.save(maps / "a.npy", np.array([[0, 1, 7], [350, 0.5, 2]]))
    assert depth_map(maps, "a", inverse=350.0).tolist() == [[0, 350, 50], [1, 700, 175]]
    assert depth_map(maps, "a").tolist() == [[0, 1, 7], [350, 0.5, 2]]
    np.save(maps / "a.npy", np.array([[0, 1e5]]))
    assert depth_map(maps, "a").tolist() == [[0, 1e5]]
    np.save(maps / "a.npy", np.array([[0, 1], [1e-9, 2]]))
    with pytest.raises(InputError, match=r"pixel \(0, 1\), counted from 0: expected a depth in metres, got 3.5e\+11"):
        depth_map(maps, "a", inverse=350.0)


@pytest.mark.parametrize(
    ("box", "depth"),
    [((np.nan, 0, 1, 1), np.nan), ((0, 6, 2, 8), None), ((-2, 0, 0, 2), None), ((0, -2, 2, 0), None), (FAR, np.nan)],
)
def test_no_depth_in_a_box(box, depth):
    found = box_depth(np.array(METRES), np.array(box))
    assert found is None if depth is None else np.isnan(found)


def test_reasons_are_told_up_to_120_characters(maps, monkeypatch):
    (maps / "a.npy").write_bytes(b"")
    for letters, told in ((118, "x" * 118), (119, "x" * 115 + "...")):

        def refuse(*_, letters=letters, **__):
            raise ValueError("x" * letters)

        monkeypatch.setattr(np.lib.format, "read_array", refuse)
        with pytest.raises(InputError) as caught:
            depth_map(maps, "a")
        assert str(caught.value).endswith(f"'{told}'")
