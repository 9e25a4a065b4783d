"""Batches of image files: what is read, what is refused, what is written, and annotations that move along."""

import errno
import io
import json
import random
import re
import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
from image_batches import BLUR, batch, picture, saved
from PIL import Image

from verifier.base.documents import json_values
from verifier.base.errors import InputError, LimitError, UsageError
from verifier.perception.detections.depth import depth_map
from verifier.robustness.detectors.protocol import read_image
from verifier.robustness.mutators import Frame, apply
from verifier.robustness.mutators import batch as batch_module
from verifier.robustness.mutators.annotations import read_annotations
from verifier.robustness.mutators.batch_result import BatchSettings, folder_name
from verifier.robustness.mutators.frames import DepthSource, Sky
from verifier.robustness.mutators.imagefiles import ImageFile, image_files
from verifier.robustness.mutators.mutation import generator_for
from verifier.robustness.mutators.sweeps import parse_mutation

NOISE = parse_mutation("salt_and_pepper:share=0.2")
HAZE = parse_mutation("haze:visibility_m=97.8")
CROP = parse_mutation("truncation:left=0.25,top=0.25,canvas=cropped")


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
    assert [image.record.name for image in result.images] == ["drive/000", "drive/001", "drive/002"]
    assert not result.failures
    for mutation in (BLUR, NOISE):
        for number in range(3):
            name = f"drive/{number:03d}"
            rng = generator_for(7, name, mutation)
            wanted = apply(mutation, Frame(picture(number)), rng).pixels
            assert np.array_equal(pixels_of(tmp_path / "out" / mutation.slug / f"{name}.png"), wanted)


def test_equal_bytes_whatever_the_order_and_the_number_of_jobs(images, tmp_path):
    paths = sorted((images / "drive").iterdir())
    mutations = (BLUR, NOISE, HAZE, parse_mutation("additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5"))
    made = []
    for number, jobs in enumerate((1, 4, 2)):
        random.Random(number).shuffle(paths)
        folder = tmp_path / f"out{number}"
        batch(paths, folder, *mutations, seed=3, jobs=jobs, depth=DepthSource(constant_m=20))
        made.append(tree(folder))
    assert made[0] == made[1] == made[2]
    assert len(made[0]) == 12


def test_as_many_images_as_jobs_are_worked_on_at_the_same_time(images, tmp_path, monkeypatch):
    meeting, real = threading.Barrier(3, timeout=20), batch_module.apply

    def met(*arguments):
        meeting.wait()  # raises where fewer than three come
        return real(*arguments)

    monkeypatch.setattr(batch_module, "apply", met)
    assert not batch([images], tmp_path / "out", jobs=3).failures


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


def test_names_that_would_meet_are_refused(images, tmp_path):
    with pytest.raises(UsageError, match="two images are called 'a'"):
        image_files([saved(tmp_path / "a.png", picture()), saved(tmp_path / "a.jpg", picture())])
    with pytest.raises(UsageError, match=r"the image .*000\.png is named twice"):
        image_files([images / "drive" / "000.png", images / "drive" / "000.png"])
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
        *(DepthSource(tmp_path / "sparse", densify=each) for each in ("nearest", "linear", "pyramid")),
    ]
    wanted = apply(HAZE, Frame(picture(), metres)).pixels
    for number, source in enumerate(sources):
        result = batch([path], tmp_path / f"out{number}", HAZE, depth=source)
        assert np.array_equal(pixels_of(tmp_path / f"out{number}" / HAZE.slug / "a.png"), wanted)
        assert result.images[0].record.depth.known == (0.5 if source.densify else 1)


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
    shares = {each.low_m: (each.pixels, each.guessed) for each in result.images[0].record.depth.guessed}
    assert shares[1e5] == (182, 182)
    assert (shares[0][0] - shares[0][1], shares[20][0] - shares[20][1]) == (180, 30)
    assert sum(pixels for pixels, _ in shares.values()) == 480
    assert sum(guessed for _, guessed in shares.values()) == 480 - 210
    (told,) = (note for note in result.remarks if note.startswith("pixels with a guessed depth"))
    assert "in the sky 100 % of 182" in told
    record = json_values(result.document())
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


def test_another_sky_is_another_image(tmp_path):
    path = saved(tmp_path / "a.png", picture(width=60))
    depth_png(tmp_path / "depth" / "a.png", sparse_street())
    for text, kept in (("horizon:0.5", 0), ("horizon:0.5", 1), ("horizon:0.2", 0)):
        source = DepthSource(tmp_path / "depth", densify="nearest", sky=Sky.of(text))
        result = batch([path], tmp_path / "out", HAZE, depth=source, resume=True)
        assert sum(len(each.kept) for each in result.images) == kept


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
    assert result.images[0].record.depth is None


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
            batch([images], tmp_path / "out", BLUR, NOISE, jobs=2)
    assert "--resume" in str(caught.value)
    left = tree(tmp_path / "out")
    assert len(left) == 3
    for path in left:
        assert pixels_of(tmp_path / "out" / path).shape == (8, 12, 3)
    batch([images], tmp_path / "out", BLUR, NOISE, jobs=2, resume=True)
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


def test_an_interrupted_batch_goes_on_where_it_was(images, tmp_path, monkeypatch):
    made, real = [], batch_module.apply

    def counted(mutation, *rest):
        made.append(mutation)
        return real(mutation, *rest)

    monkeypatch.setattr(batch_module, "apply", counted)
    mutations = (BLUR, NOISE, HAZE)
    source = {"depth": DepthSource(constant_m=20)}
    batch([images / "drive" / "000.png", images / "drive" / "001.png"], tmp_path / "out", *mutations, **source)
    assert len(made) == 6
    made.clear()
    result = batch(sorted((images / "drive").iterdir()), tmp_path / "out", *mutations, **source, resume=True)
    assert len(made) == 3
    assert sum(len(each.kept) for each in result.images) == 6
    fresh = batch(sorted((images / "drive").iterdir()), tmp_path / "fresh", *mutations, **source)
    assert fresh.json_text() == result.json_text()
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")


@pytest.mark.parametrize("change", ["seed", "depth", "image", "program", "damage", "cut", "foreign"])
def test_resuming_never_takes_a_file_made_from_something_else(tmp_path, change):
    path = saved(tmp_path / "a.png", picture())
    before = {"seed": 1, "depth": DepthSource(constant_m=20), "programs": (("verifier", "1"),)}
    after, mutation = dict(before), BLUR
    if change == "seed":
        after["seed"], mutation = 2, NOISE
    if change == "depth":
        after["depth"], mutation = DepthSource(constant_m=21), HAZE
    if change == "program":
        after["programs"] = (("verifier", "2"),)
    batch([path], tmp_path / "out", mutation, **before)
    made = tmp_path / "out" / mutation.slug / "a.png"
    raw = made.read_bytes()
    if change == "image":
        saved(path, picture(9))
    if change == "damage":
        made.write_bytes(raw[:-40] + bytes([raw[-40] ^ 1]) + raw[-39:])
    if change == "cut":
        made.write_bytes(raw[:-20])
    if change == "foreign":
        saved(made, picture(5))
    result = batch([path], tmp_path / "out", mutation, **after, resume=True)
    assert not any(each.kept for each in result.images)
    fresh = batch([path], tmp_path / "fresh", mutation, **after)
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")
    assert fresh.json_text() == result.json_text()


# Annotations. The image has 12 x 8 pixels; CROP takes 3 columns on the left and 2 rows above.

TABLE = """\
frame,label,x1,y1,x2,y2,note
a.png,ped,5,4,9,8,"half, hidden"
b,ped,1,1,2,2,
a,car,0.50,0,3,8,gone
a,car,1,1,6,4,cut
a,sign,,,,,no box
c,ped,0,0,1,1,of another image
"""


def test_a_table_moves_along(tmp_path):
    (tmp_path / "boxes.csv").write_text(TABLE)
    paths = [saved(tmp_path / f"{name}.png", picture()) for name in "ab"]
    found = read_annotations(tmp_path / "boxes.csv")
    result = batch(paths, tmp_path / "out", CROP, BLUR, annotations=found)
    assert (tmp_path / "out" / CROP.slug / "annotations.csv").read_text() == (
        "frame,label,x1,y1,x2,y2,note\n"
        'a.png,ped,2.0,2.0,6.0,6.0,"half, hidden"\n'  # 5 - 3, 4 - 2, 9 - 3, 8 - 2
        "a,car,0.0,0.0,3.0,2.0,cut\n"  # 1 - 3 and 1 - 2 cut to 0, 6 - 3, 4 - 2
        "a,sign,,,,,no box\n"
    )
    assert (tmp_path / "out" / BLUR.slug / "annotations.csv").read_text() == (
        "frame,label,x1,y1,x2,y2,note\n"
        'a.png,ped,5,4,9,8,"half, hidden"\n'
        "a,car,0.50,0,3,8,gone\n"
        "a,car,1,1,6,4,cut\n"
        "a,sign,,,,,no box\n"
        "b,ped,1,1,2,2,\n"
    )
    assert "annotations of 1 frame that is no image of this batch are left out" in result.remarks


OBJECT = "Car 0.00 1 -1.33 {} 1.47 1.60 3.66 1.07 1.55 14.44 -1.25"


def test_kitti_labels_move_along(tmp_path):
    labels = tmp_path / "label_2"
    labels.mkdir()
    (labels / "a.txt").write_text(OBJECT.format("5.00 4.00 9.00 8.00") + "\n" + OBJECT.format("0 0 3 8") + "\n")
    (labels / "b.txt").write_text("")
    paths = [saved(tmp_path / f"{name}.png", picture()) for name in "abc"]
    result = batch(paths, tmp_path / "out", CROP, BLUR, annotations=read_annotations(labels))
    moved = tmp_path / "out" / CROP.slug / "labels"
    assert (moved / "a.txt").read_text() == OBJECT.format("2.0 2.0 6.0 6.0") + "\n"
    assert (moved / "b.txt").read_text() == ""
    assert (tmp_path / "out" / BLUR.slug / "labels" / "a.txt").read_bytes() == (labels / "a.txt").read_bytes()
    said = "no labels 'c.txt'; an image without objects has an empty file"
    assert [(name, each.mutation, each.message) for name, each in result.failures] == [("c", 0, said), ("c", 1, said)]


def test_kitti_tracking_labels_move_along(tmp_path):
    labels = tmp_path / "label_02"
    labels.mkdir()
    (labels / "0016.txt").write_text(f"4 7 {OBJECT.format('5 4 9 8')}\n11 7 {OBJECT.format('4 4 9 8')}\n")
    for name in ("000004", "000005", "000011"):
        saved(tmp_path / "image_02" / "0016" / f"{name}.png", picture())
    batch([tmp_path / "image_02"], tmp_path / "out", CROP, annotations=read_annotations(labels))
    assert (tmp_path / "out" / CROP.slug / "labels" / "0016.txt").read_text() == (
        f"4 7 {OBJECT.format('2.0 2.0 6.0 6.0')}\n11 7 {OBJECT.format('1.0 2.0 6.0 6.0')}\n"
    )
    with pytest.raises(
        InputError, match="know no image of this batch: its first is called '000004', theirs '0016/11'"
    ):
        batch([tmp_path / "image_02" / "0016"], tmp_path / "x", CROP, annotations=read_annotations(labels))


def coco(tmp_path, **changes):
    document = {
        "info": {"year": 2026},
        "categories": [{"id": 1, "name": "person"}],
        "images": [
            {"id": 10, "file_name": "a.jpg", "height": 8, "width": 12, "license": 1},
            {"id": 11, "file_name": "b.png", "height": 8, "width": 12},
            {"id": 12, "file_name": "c.png", "height": 8, "width": 12},
        ],
        "annotations": [
            {"id": 1, "image_id": 11, "category_id": 1, "bbox": [5, 4, 4, 4], "area": 9.5, "iscrowd": 0,
             "segmentation": [[5, 4, 9, 4, 9, 8]], "keypoints": [5, 4, 2], "num_keypoints": 1},
            {"id": 2, "image_id": 10, "category_id": 1, "bbox": [1, 1, 5, 3], "area": 15},
            {"id": 3, "image_id": 10, "category_id": 1, "bbox": [0, 0, 3, 8], "area": 24},
            {"id": 4, "image_id": 12, "category_id": 1, "bbox": [0, 0, 3, 8], "area": 24},
        ],
    }  # fmt: skip
    document |= changes
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(document))
    return path, document


def test_coco_annotations_move_along(tmp_path):
    path, document = coco(tmp_path)
    paths = [saved(tmp_path / "a.jpg", picture()), saved(tmp_path / "b.png", picture())]
    result = batch(paths, tmp_path / "out", CROP, BLUR, annotations=read_annotations(path))
    moved = json.loads((tmp_path / "out" / CROP.slug / "annotations.json").read_text())
    assert moved["images"] == [
        {"id": 10, "file_name": "a.png", "height": 6, "width": 9, "license": 1},
        {"id": 11, "file_name": "b.png", "height": 6, "width": 9},
    ]
    assert moved["annotations"] == [
        {"id": 1, "image_id": 11, "category_id": 1, "bbox": [2, 2, 4, 4], "area": 16, "iscrowd": 0},
        {"id": 2, "image_id": 10, "category_id": 1, "bbox": [0, 0, 3, 2], "area": 6},
    ]
    assert moved["info"] == document["info"]
    assert moved["categories"] == document["categories"]
    still = json.loads((tmp_path / "out" / BLUR.slug / "annotations.json").read_text())
    assert still["annotations"] == document["annotations"][:3]
    assert "annotations of 1 frame that is no image of this batch are left out" in result.remarks


def test_shapes_do_not_stay_where_the_canvas_changed(tmp_path):
    # Right of the box the image is cut off: the box stays, but a mask as large as the old image fits no longer.
    mask = {"counts": [96], "size": [8, 12]}
    one = {"id": 1, "image_id": 11, "category_id": 1, "bbox": [1, 1, 2, 2], "area": 3, "segmentation": mask}
    path, _ = coco(tmp_path, annotations=[one])
    mutation = parse_mutation("truncation:right=0.25,canvas=cropped")
    batch([saved(tmp_path / "b.png", picture())], tmp_path / "out", mutation, annotations=read_annotations(path))
    moved = json.loads((tmp_path / "out" / mutation.slug / "annotations.json").read_text())
    assert moved["annotations"] == [{"id": 1, "image_id": 11, "category_id": 1, "bbox": [1, 1, 2, 2], "area": 3}]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"images": 5}, "expected an object with a list 'images'"),
        ({"images": [{"id": 1}]}, "/images/0: expected an image with an id and a file_name"),
        ({"images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "a.jpg"}]}, "/images/1: .*there twice"),
        ({"annotations": [{"image_id": 99, "bbox": [0, 0, 1, 1]}]}, "/annotations/0: image_id: there is no image 99"),
        ({"annotations": [{"image_id": 10, "bbox": [0, 0, 1]}]}, "/annotations/0: bbox: expected four numbers"),
        ({"annotations": [{"image_id": 10, "bbox": [0, 0, float("nan"), 1]}]}, "bbox: expected four numbers"),
        ({"annotations": [{"image_id": 10, "bbox": [0, 0, -1, 1]}]}, "/annotations/0: expected a box x1 <= x2"),
        ({"annotations": [{"image_id": 10, "bbox": [0, 0, 10**300, 1]}]}, "bbox: expected four numbers"),
        ({"annotations": [7]}, "/annotations/0: expected an object"),
    ],
)
def test_bad_coco_annotations(tmp_path, changes, said):
    path, _ = coco(tmp_path, **changes)
    with pytest.raises(InputError, match=said):
        read_annotations(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "boxes.csv:1: expected one column frame; there is none"),
        ("frame,x1,y1,x2\n", "boxes.csv:1: expected one column y2; there is none"),
        ("frame,x1,y1,x2,y2,x1\n", "expected one column x1; there are several"),
        ("frame,x1,y1,x2,y2\na,1,2,3\n", "boxes.csv:2: 4 cells; expected 5"),
        ("frame,x1,y1,x2,y2\na,1,2,3,4\n\na,3,2,1,4\n", "boxes.csv:4: expected a box x1 <= x2, y1 <= y2, got '3'"),
        ("frame,x1,y1,x2,y2\na,1,2,nan,4\n", "boxes.csv:2: expected a box"),
        ("frame,x1,y1,x2,y2\na,1,2,inf,4\n", "boxes.csv:2: expected a box"),
        ("frame,x1,y1,x2,y2\na,1,2,,4\n", "boxes.csv:2: expected a box"),
        ("frame,x1,y1,x2,y2\na,one,2,3,4\n", "boxes.csv:2: expected a box x1 <= x2, y1 <= y2, got 'one'"),
    ],
)
def test_bad_tables(tmp_path, text, said):
    (tmp_path / "boxes.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read_annotations(tmp_path / "boxes.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Car 1 2 3\n", "a.txt:1: 4 fields; expected 15 or 16"),
        (OBJECT.format("0 0 1 1") + "\n\n7 7 " + OBJECT.format("0 0 1 1"), "a.txt:3: 17 fields; expected 15 or 16"),
        (OBJECT.format("5 0 1 1"), "a.txt:1: expected a box"),
        ("x 7 " + OBJECT.format("0 0 1 1"), "a.txt:1: expected the number of a frame, got 'x'"),
        ("Car \0", "NUL"),
    ],
)
def test_bad_labels(tmp_path, text, said):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text(text)
    with pytest.raises(InputError, match=said):
        read_annotations(tmp_path / "labels")


def test_annotations_of_no_known_kind(tmp_path):
    (tmp_path / "boxes.xml").write_text("<x/>")
    with pytest.raises(UsageError, match="expected a folder of KITTI labels"):
        read_annotations(tmp_path / "boxes.xml")
    with pytest.raises(InputError, match="no such file or folder"):
        read_annotations(tmp_path / "none.csv")


def test_resuming_still_gives_annotations_of_moved_images(tmp_path):
    (tmp_path / "boxes.csv").write_text(TABLE)
    paths = [saved(tmp_path / f"{name}.png", picture()) for name in "ab"]
    found = read_annotations(tmp_path / "boxes.csv")
    batch(paths, tmp_path / "fresh", CROP, BLUR, annotations=found)
    batch(paths[:1], tmp_path / "out", CROP, BLUR)
    batch(paths, tmp_path / "out", CROP, BLUR, annotations=found, resume=True)
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")


def test_image_files_are_called_by_their_path_below_the_folder(images):
    found = image_files([images, images / "drive" / "001.png"])
    assert [each.name for each in found] == ["drive/000", "drive/001", "drive/002", "001"]
    assert found[3] == ImageFile(images / "drive" / "001.png", "001")
