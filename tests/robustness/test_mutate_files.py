"""Batches of image files: what is read, what is refused, what is written, and annotations that move along."""

import errno
import io
import json
import random
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
from image_batches import BLUR, annotated, batch, picture, saved
from PIL import Image

from verifier.base.errors import InputError, LimitError, UsageError
from verifier.perception.detections.depth import depth_map
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.mutators import Frame, apply
from verifier.robustness.mutators.batch_result import BatchSettings, folder_name
from verifier.robustness.mutators.frames import DepthSource, Sky
from verifier.robustness.mutators.imagefiles import ImageFile, image_files
from verifier.robustness.mutators.mutation import generator_for
from verifier.robustness.mutators.sweeps import parse_mutation

NOISE = parse_mutation("salt_and_pepper:share=0.2")
HAZE = parse_mutation("haze:visibility_m=97.8")
CUT = parse_mutation("truncation:left=0.25,top=0.25")


def pixels_of(path):
    with Image.open(path) as opened:
        return np.asarray(opened.convert("RGB"))


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    for number in range(3):
        saved(folder / "drive" / f"{number:03d}.png", picture(number))
    return folder


def test_each_image_under_each_mutation_is_what_the_mutation_makes_of_its_pixels(images, tmp_path):
    result = batch([images], tmp_path / "out", BLUR, NOISE, seed=7)
    assert [image.name for image in result.images] == ["drive/000", "drive/001", "drive/002"]
    assert not result.failures
    for mutation in (BLUR, NOISE):
        for number in range(3):
            name = f"drive/{number:03d}"
            rng = generator_for(7, name, mutation)
            wanted = apply(mutation, Frame(picture(number)), rng).pixels
            assert np.array_equal(pixels_of(tmp_path / "out" / mutation.slug / f"{name}.png"), wanted)


def test_equal_bytes_whatever_the_order(images, tmp_path):
    paths = sorted((images / "drive").iterdir())
    mutations = (BLUR, NOISE, HAZE, parse_mutation("additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5"))
    made = []
    for number in range(3):
        random.Random(number).shuffle(paths)
        folder = tmp_path / f"out{number}"
        batch(paths, folder, *mutations, seed=3, depth=DepthSource(constant_m=20))
        made.append(tree(folder))
    assert made[0] == made[1] == made[2]
    assert len(made[0]) == 12


def test_another_seed_changes_what_is_drawn_and_nothing_else(images, tmp_path):
    batch([images], tmp_path / "a", BLUR, NOISE, seed=1)
    batch([images], tmp_path / "b", BLUR, NOISE, seed=2)
    a, b = tree(tmp_path / "a"), tree(tmp_path / "b")
    assert {path for path in a if a[path] != b[path]} == {path for path in a if path.startswith("salt_and_pepper")}


def with_chunk(raw, kind, data):
    """A PNG file with one more chunk behind its header, which is 8 + 25 bytes long."""
    chunk = struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return raw[:33] + chunk + raw[33:]


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def declared(width, height, bits=8):
    """A PNG file of a few bytes that says it has so many pixels."""
    header = struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0)
    made = (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + b"IHDR"
        + header
        + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    )
    for kind, data in ((b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")):
        made += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return made


def oriented(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def bad_files(folder):
    """File name -> a part of what is said about it."""
    good = png(picture())
    folder.mkdir(exist_ok=True)
    made = {
        "alpha.png": (png(np.zeros((4, 4, 4), np.uint8)), "found mode RGBA"),
        "deep.png": (png(np.zeros((4, 4), np.uint16)), "expected eight bits a channel, found sixteen"),
        "deep_colours.png": (declared(4, 4, bits=16), "expected eight bits a channel, found sixteen"),
        "empty.png": (b"", "the file is empty"),
        "text.png": (b"these are words, not pixels\n", "not a readable image"),
        "truncated.png": (good[: len(good) // 2], "not a readable image"),
        "header.png": (good[:20], "not a readable image"),
        "bomb.png": (declared(50_000, 50_000), "an image of 2500000000 pixels; at most 80000000 are read"),
        "large.png": (declared(10_000, 10_000), "10000 x 10000 = 100000000 pixels; at most 80000000 are read"),
    }
    broken = bytearray(good)
    broken[len(good) // 2] ^= 0xFF
    made["flipped.png"] = (bytes(broken), "not a readable image")
    for name, (raw, _) in made.items():
        (folder / name).write_bytes(raw)
    Image.new("CMYK", (4, 4)).save(folder / "print.jpg")
    Image.fromarray(picture()).save(folder / "turned.jpg", exif=oriented(6))
    (folder / "turned.png").write_bytes(with_chunk(good, b"eXIf", oriented(3).tobytes()[6:]))
    frames = [Image.fromarray(picture(seed)) for seed in range(2)]
    frames[0].save(folder / "pages.tif", save_all=True, append_images=frames[1:])
    clear = Image.fromarray(picture()[..., 0]).convert("P")
    clear.save(folder / "clear.png", transparency=0)
    return {name: said for name, (_, said) in made.items()} | {
        "print.jpg": "found mode CMYK",
        "turned.jpg": "EXIF orientation is 6",
        "turned.png": "EXIF orientation is 3",
        "pages.tif": "2 pictures in one file",
        "clear.png": "with transparency",
    }


def test_what_cannot_be_used_is_listed_and_the_rest_is_made(tmp_path, recwarn):
    folder, out = tmp_path / "in", tmp_path / "out"
    said = bad_files(folder)
    for name in said:  # names without suffix are unique, so that all can go through one batch
        (folder / name).rename(folder / f"{name.replace('.', '_')}{Path(name).suffix}")
    saved(folder / "zz_good.png", picture())
    result = batch([folder], out, BLUR, NOISE)
    failed = dict(result.failures)
    assert set(failed) == {name.replace(".", "_") for name in said}
    for name, part in said.items():
        assert part in failed[name.replace(".", "_")].message
        assert failed[name.replace(".", "_")].mutation is None
    assert sorted(tree(out)) == sorted(f"{each.slug}/zz_good.png" for each in (BLUR, NOISE))
    assert not recwarn.list


def test_a_size_too_large_is_refused_before_pixels_are_unfolded(tmp_path, monkeypatch):
    (tmp_path / "bomb.png").write_bytes(declared(9_000, 9_000))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", None)  # would fail if it were called
    with pytest.raises(LimitError, match="9000 x 9000 = 81000000 pixels; at most 80000000 are read"):
        read_image(tmp_path / "bomb.png")


def test_a_side_too_long_for_mutations_is_listed(tmp_path):
    saved(tmp_path / "long.png", np.zeros((1, 16_001, 3), np.uint8))
    ((_, failure),) = batch([tmp_path / "long.png"], tmp_path / "out").failures
    assert "16001 x 1 pixels; at most 16000 a side" in failure.message
    assert failure.mutation is None


def test_grey_and_palette_images_are_taken_as_their_colours(tmp_path):
    grey = picture()[..., 0]
    assert np.array_equal(
        read_image(saved(tmp_path / "grey.png", grey)).pixels, np.repeat(grey[..., None], 3, axis=2)
    )
    few = (picture() // 128) * 255
    Image.fromarray(few).quantize(8).save(tmp_path / "palette.png")
    assert np.array_equal(read_image(tmp_path / "palette.png").pixels, few)
    Image.fromarray(picture()).save(tmp_path / "upright.png", exif=oriented(1))
    assert np.array_equal(read_image(tmp_path / "upright.png").pixels, picture())


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (2, 3)])
@pytest.mark.parametrize(
    "text",
    [
        "gaussian_blur:sigma_px=3", "motion_blur:length_px=9,angle_deg=30", "pixelation:block_px=5",
        "rotation:angle_deg=33", "chromatic_aberration:red_scale=1.01", "haze:visibility_m=50",
        "defocus:kappa_m_px=2,focus_m=1", "jpeg:quality=10", "contrast:factor=0.5", "shifted_lines:share=0.5",
        "additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5",
    ],
)  # fmt: skip
def test_tiny_images_are_images(tmp_path, size, text):
    from verifier.robustness.mutators import MUTATORS

    name = text.partition(":")[0]
    if name in ("chromatic_aberration", "shifted_lines"):
        needed = [each for each in MUTATORS[name].parameters if each.default is None and not each.optional]
        text = name + ":" + ",".join(f"{each.name}={each.choices[0] if each.choices else 1}" for each in needed)
    path = saved(tmp_path / "tiny.png", picture(height=size[0], width=size[1]))
    result = batch([path], tmp_path / "out", parse_mutation(text), depth=DepthSource(constant_m=5))
    assert not result.failures
    assert pixels_of(next((tmp_path / "out").rglob("*.png"))).shape == (*size, 3)


def test_a_mutation_is_named_once():
    with pytest.raises(UsageError, match="named twice"):
        BatchSettings((BLUR, BLUR))


def test_a_name_that_is_not_utf8_is_refused_before_anything_is_made(tmp_path):
    path = saved(tmp_path / "good.png", picture())
    odd = Path(str(tmp_path).encode().decode() + "/b\udcff.png")
    try:
        path.rename(odd)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with pytest.raises(InputError, match="not UTF-8"):
        image_files([tmp_path])


def test_an_output_never_overwrites_an_input(tmp_path):
    inside = saved(tmp_path / BLUR.slug / "a.png", picture())
    before = inside.read_bytes()
    with pytest.raises(UsageError, match="is an input of this batch"):
        batch([inside], tmp_path)
    assert inside.read_bytes() == before


def test_a_long_composition_gets_a_folder_that_every_file_system_takes(tmp_path):
    long = parse_mutation("+".join(f"gaussian_blur:sigma_px=0.{number}" for number in range(1, 30)))
    other = parse_mutation("+".join(f"gaussian_blur:sigma_px=0.{number}" for number in range(1, 31)))
    assert len(long.slug) > 255
    assert len(folder_name(long)) == len(folder_name(other)) == 120
    assert folder_name(long) != folder_name(other)
    result = batch([saved(tmp_path / "a.png", picture())], tmp_path / "out", long, other)
    assert not result.failures
    assert len(tree(tmp_path / "out")) == 2


# Depth.


def depth_png(path, metres):
    return saved(path, np.round(np.asarray(metres) * 256).astype(np.uint16))


def test_depth_of_every_kind_gives_the_same_haze(tmp_path):
    path = saved(tmp_path / "a.png", picture())
    metres = np.full((8, 12), 25.0)
    depth_png(tmp_path / "png" / "a.png", metres)
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy" / "a.npy", metres)
    sparse = metres.copy()
    sparse[::2] = 0
    depth_png(tmp_path / "sparse" / "a.png", sparse)
    sources = [
        DepthSource(tmp_path / "png"),
        DepthSource(tmp_path / "npy"),
        DepthSource(constant_m=25),
        *(DepthSource(tmp_path / "sparse", densify=each) for each in ("nearest", "linear")),
    ]
    wanted = apply(HAZE, Frame(picture(), metres)).pixels
    for number, source in enumerate(sources):
        result = batch([path], tmp_path / f"out{number}", HAZE, depth=source)
        assert np.array_equal(pixels_of(tmp_path / f"out{number}" / HAZE.slug / "a.png"), wanted)
        assert result.images[0].depth.known == (0.5 if source.densify else 1)


def test_stereo_and_portable_float_maps_give_the_same_haze(tmp_path):
    # 25 m before a camera of 500 px and 0.5 m: a disparity of 250 / 25 = 10 pixels.
    path, metres = saved(tmp_path / "a.png", picture()), np.full((8, 12), 25.0)
    wanted = apply(HAZE, Frame(picture(), metres)).pixels
    saved(tmp_path / "stereo" / "a.png", np.full((8, 12), 10 * 256, np.uint16))
    pfm(tmp_path / "pfm" / "a.pfm", metres)
    pfm(tmp_path / "monocular" / "a.pfm", 1 / metres, ">")
    sources = {"stereo": 250.0, "pfm": None, "monocular": 1.0}
    for name, inverse in sources.items():
        batch([path], tmp_path / f"out_{name}", HAZE, depth=DepthSource(tmp_path / name, inverse=inverse))
        assert np.array_equal(pixels_of(tmp_path / f"out_{name}" / HAZE.slug / "a.png"), wanted)


def pfm(path, metres, order="<"):
    path.parent.mkdir()
    head = f"Pf\n{metres.shape[1]} {metres.shape[0]}\n{'-1.0' if order == '<' else '1.0'}\n"
    path.write_bytes(head.encode() + metres[::-1].astype(f"{order}f4").tobytes())
    return path


def test_a_portable_float_map_counts_lines_from_the_lowest_and_infinity_is_unknown(tmp_path):
    values = np.arange(1.0, 13).reshape(3, 4)
    values[0, 3] = np.inf
    pfm(tmp_path / "maps" / "a.pfm", values)
    found = depth_map(tmp_path / "maps", "a")
    assert found.tolist() == [[1, 2, 3, 0], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert depth_map(tmp_path / "maps", "a", inverse=24)[:, 3].tolist() == [0, 3, 2]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"PF\n2 1\n-1\n" + bytes(24), "portable float map of one channel"),
        (b"Pf\n2 1\n-1\n" + bytes(7), "7 bytes"),
        (b"Pf\n0 0\n-1\n", "0 bytes"),
        (b"", "portable float map"),
        (b"Pf\n1 1\n-1\n" + np.float32(-np.inf).tobytes(), "expected a depth in metres, got -inf"),
        (b"Pf\n1 1\n-1\n" + np.float32(np.nan).tobytes(), "expected a depth in metres, got nan"),
        (b"Pf\n1 1\n-1\n" + np.float32(1e-30).tobytes(), "expected a depth in metres, got 1e+30"),
    ],
)
def test_bad_portable_float_maps(tmp_path, raw, said):
    (tmp_path / "a.pfm").write_bytes(raw)
    with pytest.raises(InputError, match=re.escape(said)):
        depth_map(tmp_path, "a", inverse=1 if "1e+30" in said else None)


# Sky.


def sparse_street():
    """8 x 60: a wall of 20 m up to row 2 in columns 0 to 19, known in every second pixel; elsewhere the road."""
    metres = np.zeros((8, 60))
    metres[5:] = 6.0
    metres[2:5, 0:20:2] = 20.0
    return metres


def test_sky_by_horizon_is_what_lies_above_all_that_is_known():
    # Half of eight rows: rows 0 to 3. A wall from row 2 on hides columns 0 to 18, and ten more to the right.
    sky = Sky.of("horizon:0.5").pixels("a", sparse_street())
    wanted = np.zeros((8, 60), bool)
    wanted[:2], wanted[:4, 29:] = True, True
    assert np.array_equal(sky, wanted)


def test_sky_by_mask_is_what_the_mask_says_where_nothing_is_known(tmp_path):
    mask = np.zeros((8, 60), np.uint8)
    mask[:5, 10:] = 200
    saved(tmp_path / "sky" / "a.png", mask)
    metres = sparse_street()
    for name in ("a", "a.jpg"):
        assert np.array_equal(Sky.of(f"mask:{tmp_path / 'sky'}").pixels(name, metres), (mask > 0) & (metres == 0))
    with pytest.raises(InputError, match="the mask has 60 x 8 pixels, the image 60 x 9"):
        Sky(masks=tmp_path / "sky").pixels("a", np.zeros((9, 60)))


@pytest.mark.parametrize(
    "text", ["", "mask:", "mask", "horizon:", "horizon:0", "horizon:1.5", "horizon:nan", "top:1"]
)
def test_other_policies_of_sky_are_refused(text):
    with pytest.raises(ValueError, match="expected mask:FOLDER or horizon:SHARE"):
        Sky.of(text)


def test_sky_is_infinitely_far_away_and_does_not_spread(tmp_path):
    path = saved(tmp_path / "a.png", np.full((8, 60, 3), 40, np.uint8))
    depth_png(tmp_path / "depth" / "a.png", sparse_street())
    source = DepthSource(tmp_path / "depth", densify="nearest", sky=Sky.of("horizon:0.5"))
    filled = source.filled("a", sparse_street())
    assert set(np.unique(filled).tolist()) == {6, 20, 1e5}
    result = batch([path], tmp_path / "out", HAZE, depth=source)
    assert pixels_of(tmp_path / "out" / HAZE.slug / "a.png")[0, 45].tolist() == [205, 208, 211]  # all haze
    # Row by row by hand: sky 2 x 60 + 2 x 31; the road is known; what the method filled lies at 6 or at 20 m.
    shares = {each.low_m: (each.pixels, each.guessed) for each in result.images[0].depth.guessed}
    assert shares[1e5] == (182, 182)
    assert (shares[0][0] - shares[0][1], shares[20][0] - shares[20][1]) == (180, 30)
    assert sum(pixels for pixels, _ in shares.values()) == 480
    assert sum(guessed for _, guessed in shares.values()) == 480 - 210
    (told,) = (note for note in result.remarks if note.startswith("pixels with a guessed depth"))
    assert "in the sky 100 % of 182" in told
    record = result.document()
    assert record["settings"]["depth"]["sky"] == "horizon:0.5"
    assert record["images"][0]["depth"]["guessed"][-1] == {
        "low_m": 1e5, "high_m": None, "pixels": 182, "guessed": 182
    }  # fmt: skip


def test_sky_alone_leaves_other_unknown_depths_refused(tmp_path):
    source = DepthSource(tmp_path, sky=Sky.of("horizon:0.25"))
    with pytest.raises(InputError, match="the depth of 150 of 480 pixels is unknown"):
        source.filled("a", sparse_street())
    full = np.full((8, 60), 5.0)
    full[:2] = 0
    assert source.filled("a", full)[:3, 0].tolist() == [1e5, 1e5, 5]


def test_unit_of_a_depth_map(tmp_path):
    path = saved(tmp_path / "a.png", picture())
    saved(tmp_path / "mm" / "a.png", np.full((8, 12), 25_000, np.uint16))
    batch([path], tmp_path / "out", HAZE, depth=DepthSource(tmp_path / "mm", scale=1000))
    wanted = apply(HAZE, Frame(picture(), np.full((8, 12), 25.0))).pixels
    assert np.array_equal(pixels_of(tmp_path / "out" / HAZE.slug / "a.png"), wanted)


def one_unknown():
    metres = np.full((8, 12), 25.0)
    metres[3, 5] = 0
    return metres


@pytest.mark.parametrize(
    ("metres", "densify", "said"),
    [
        (np.full((8, 11), 25.0), None, "the depth map has 11 x 8 pixels, the image 12 x 8"),
        (np.full((8, 11), 0.0), "nearest", "the depth map has 11 x 8 pixels, the image 12 x 8"),
        (one_unknown(), None, "the depth of 1 of 96 pixels is unknown, 0 in the map; --densify fills them"),
        (np.zeros((8, 12)), None, "the depth of 96 of 96 pixels is unknown"),
        (np.zeros((8, 12)), "nearest", "no pixel of the depth map has a known depth"),
        (one_unknown() - 1, "nearest", r"pixel (5, 3), counted from 0: expected a depth in metres, got -1"),
        (np.where(one_unknown() == 0, np.nan, 25), "nearest", "expected a depth in metres, got nan; write 0 where"),
        (np.where(one_unknown() == 0, np.inf, 25), None, "expected a depth in metres, got inf"),
        (np.full((8, 12), 25), None, "expected floating-point metres"),
        (np.full((8, 12, 1), 25.0), None, "expected floating-point metres (height, width)"),
    ],
)
def test_bad_depth_stops_what_needs_it_and_nothing_else(tmp_path, metres, densify, said):
    (tmp_path / "depth").mkdir()
    np.save(tmp_path / "depth" / "a.npy", metres)
    np.save(tmp_path / "depth" / "b.npy", np.full((8, 12), 25.0))
    paths = [saved(tmp_path / f"{name}.png", picture()) for name in "abc"]
    source = DepthSource(tmp_path / "depth", densify=densify)
    result = batch(paths, tmp_path / "out", HAZE, BLUR, depth=source)
    assert [(name, each.mutation) for name, each in result.failures] == [("a", 0), ("c", 0)]
    assert said in result.failures[0][1].message
    assert "frame 'c' has no depth map" in result.failures[1][1].message
    wanted = {f"{HAZE.slug}/b.png", *(f"{BLUR.slug}/{name}.png" for name in "abc")}
    assert set(tree(tmp_path / "out")) == wanted


def test_a_depth_map_is_not_read_where_no_mutation_needs_it(tmp_path):
    path = saved(tmp_path / "a.png", picture())
    (tmp_path / "depth").mkdir()
    result = batch([path], tmp_path / "out", BLUR, depth=DepthSource(tmp_path / "depth"))
    assert not result.failures
    assert result.images[0].depth is None


def test_haze_without_any_depth_is_refused_before_work():
    with pytest.raises(UsageError, match="needs depth: give --depth FOLDER or --depth-constant METRES"):
        BatchSettings((BLUR, HAZE))


# Writing.


def failing_writes(monkeypatch, number, after, only=""):
    """From the write number `after` on, bytes do not reach the disk, half-way through a file."""
    from verifier.base import files as textfiles

    real, count = textfiles.os.fsync, [0]

    def fsync(handle):
        count[0] += 1
        if count[0] > after:
            raise OSError(number, errno.errorcode[number])
        return real(handle)

    monkeypatch.setattr(textfiles.os, "fsync", fsync)


def test_a_full_disk_ends_the_batch_with_whole_files_only(images, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        failing_writes(patch, errno.ENOSPC, after=3)
        with pytest.raises(InputError, match="cannot be written") as caught:
            batch([images], tmp_path / "out", BLUR, NOISE)
    assert "make room" in str(caught.value)
    left = tree(tmp_path / "out")
    assert len(left) == 3
    for path in left:
        assert pixels_of(tmp_path / "out" / path).shape == (8, 12, 3)
    batch([images], tmp_path / "out", BLUR, NOISE)
    batch([images], tmp_path / "whole", BLUR, NOISE)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_one_file_that_cannot_be_written_does_not_stop_the_others(images, tmp_path):
    (tmp_path / "out" / BLUR.slug / "drive" / "001.png").mkdir(parents=True)
    (tmp_path / "out" / NOISE.slug).write_text("no folder")
    result = batch([images], tmp_path / "out", BLUR, NOISE)
    found = [(name, each.mutation) for name, each in result.failures]
    assert found == [("drive/000", 1), ("drive/001", 0), ("drive/001", 1), ("drive/002", 1)]
    assert "cannot be written: Is a directory" in result.failures[1][1].message
    assert "the folder cannot be made" in result.failures[0][1].message
    assert set(tree(tmp_path / "out")) == {
        f"{BLUR.slug}/drive/000.png", f"{BLUR.slug}/drive/002.png", NOISE.slug
    }  # fmt: skip


# Annotations. The image has 12 x 8 pixels; CUT makes 3 columns on the left and 2 rows above black.

TABLE = """\
frame,class,distance_m,x1,y1,x2,y2
a.png,ped,7,5,4,9,8
b,ped,,1,1,2,2
a.png,car,9,0,0,3,8
a.png,car,9,1,1,6,4
c,ped,1,0,0,1,1
"""
OBJECT = "Car 0.00 1 -1.33 {} 1.47 1.60 3.66 1.07 1.55 14.44 -1.25"


def moved_boxes(folder, mutation):
    """By the file of its image, class and box of each object after a mutation."""
    made = json.loads((folder / mutation.slug / "annotations.json").read_text())
    files = {each["id"]: each["file_name"] for each in made["images"]}
    names = {each["id"]: each["name"] for each in made["categories"]}
    return [(files[each["image_id"]], names[each["category_id"]], each["bbox"]) for each in made["annotations"]]


def test_a_table_moves_along(tmp_path):
    (tmp_path / "boxes.csv").write_text(TABLE)
    paths = [saved(tmp_path / f"{name}.png", picture()) for name in "abd"]
    result = batch(paths, tmp_path / "out", CUT, BLUR, annotations=annotated(tmp_path / "boxes.csv", paths))
    # Kept as it lies right of 3 and below 2; gone, as it ends at 3; cut to them.
    assert moved_boxes(tmp_path / "out", CUT) == [("a.png", "ped", [5, 4, 4, 4]), ("a.png", "car", [3, 2, 3, 2])]
    assert sorted(moved_boxes(tmp_path / "out", BLUR)) == [
        ("a.png", "car", [0, 0, 3, 8]), ("a.png", "car", [1, 1, 5, 3]), ("a.png", "ped", [5, 4, 4, 4]),
        ("b.png", "ped", [1, 1, 1, 1]),
    ]  # fmt: skip
    made = json.loads((tmp_path / "out" / CUT.slug / "annotations.json").read_text())
    assert [each["file_name"] for each in made["images"]] == ["a.png", "b.png", "d.png"]  # d has no objects
    assert [each["distance_m"] for each in made["annotations"]] == [7, 9]
    assert result.remarks == (
        "annotations of 1 frame that is no image of this batch are left out",
        "boxes in the image move along; distances are as they were",
    )
    assert not result.failures


def test_kitti_labels_move_along(tmp_path):
    labels = tmp_path / "label_2"
    labels.mkdir()
    (labels / "a.txt").write_text(OBJECT.format("5.00 4.00 9.00 8.00") + "\n" + OBJECT.format("0 0 3 8") + "\n")
    (labels / "b.txt").write_text("")
    paths = [saved(tmp_path / f"{name}.png", picture()) for name in "abc"]
    result = batch(paths, tmp_path / "out", CUT, annotations=annotated(labels, paths))
    assert moved_boxes(tmp_path / "out", CUT) == [("a.png", "Car", [5, 4, 4, 4])]
    said = "the annotations have no frame of this image"
    assert [(name, each.mutation, each.message) for name, each in result.failures] == [("c", 0, said)]


def coco(tmp_path, **changes):
    document = {
        "categories": [{"id": 3, "name": "person"}],
        "images": [
            {"id": 10, "file_name": "a.jpg", "height": 8, "width": 12},
            {"id": 11, "file_name": "b.png", "height": 8, "width": 12},
            {"id": 12, "file_name": "c.png", "height": 8, "width": 12},
        ],
        "annotations": [
            {"id": 1, "image_id": 11, "category_id": 3, "bbox": [5, 4, 4, 4], "area": 9.5, "iscrowd": 0},
            {"id": 2, "image_id": 10, "category_id": 3, "bbox": [1, 1, 5, 3], "area": 15, "iscrowd": 0},
            {"id": 4, "image_id": 12, "category_id": 3, "bbox": [0, 0, 3, 8], "area": 24, "iscrowd": 0},
        ],
    }
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(document | changes))
    return path, document


def test_coco_annotations_move_along_and_keep_their_ids(tmp_path):
    path, _ = coco(tmp_path)
    paths = [saved(tmp_path / "a.jpg", picture()), saved(tmp_path / "b.png", picture())]
    result = batch(paths, tmp_path / "out", CUT, annotations=annotated(path, paths))
    made = json.loads((tmp_path / "out" / CUT.slug / "annotations.json").read_text())
    assert made["images"] == [
        {"id": 10, "file_name": "a.png", "height": 8, "width": 12},
        {"id": 11, "file_name": "b.png", "height": 8, "width": 12},
    ]
    assert made["categories"] == [{"id": 3, "name": "person"}]
    assert sorted(made["annotations"], key=lambda each: each["id"]) == [
        {"id": 1, "image_id": 11, "category_id": 3, "bbox": [5, 4, 4, 4], "area": 9.5, "iscrowd": 0},
        {"id": 2, "image_id": 10, "category_id": 3, "bbox": [3, 2, 3, 2], "area": 6, "iscrowd": 0},
    ]
    assert "annotations of 1 frame that is no image of this batch are left out" in result.remarks


def test_annotations_of_an_image_of_another_size_are_not_put_on_this_one(tmp_path):
    path, _ = coco(tmp_path)
    paths = [saved(tmp_path / "a.jpg", picture(height=16, width=24)), saved(tmp_path / "b.png", picture())]
    result = batch(paths, tmp_path / "out", CUT, annotations=annotated(path, paths))
    said = "an image of 24 x 16 pixels; its annotations are of one of 12 x 8"
    assert [(name, each.message) for name, each in result.failures] == [("a", said)]
    assert sorted(each.name for each in (tmp_path / "out" / CUT.slug).iterdir()) == ["annotations.json", "b.png"]


def test_annotations_of_other_images_are_refused(tmp_path):
    path, _ = coco(tmp_path)
    with pytest.raises(InputError, match="they know no image of this batch: its first is called '000001'"):
        annotated(path, [saved(tmp_path / "000001.png", picture())])


def test_annotations_of_no_known_kind(tmp_path):
    paths = [saved(tmp_path / "a.png", picture())]
    (tmp_path / "label_02").mkdir()
    (tmp_path / "label_02" / "0016.txt").write_text(f"4 7 {OBJECT.format('5 4 9 8')}\n")
    with pytest.raises(InputError, match="annotations as kitti_tracking; expected coco, kitti_object, table"):
        annotated(tmp_path / "label_02", paths)
    with pytest.raises(InputError, match="no such file or folder"):
        annotated(tmp_path / "none.csv", paths)


def test_image_files_are_called_by_their_path_below_the_folder(images):
    found = image_files([images, images / "drive" / "001.png"])
    assert [each.name for each in found] == ["drive/000", "drive/001", "drive/002", "001"]
    assert found[3] == ImageFile(images / "drive" / "001.png", "001")
