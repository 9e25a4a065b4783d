"""The scripts that reproduce papers: every figure and table is made or says why not, and known numbers come out."""

import contextlib
import csv
import importlib
import io
import json
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_logs import made_logs, straight

from verifier.closedloop.logfiles import write_logs
from verifier.robustness.mutators.sweeps import published

FOLDER = Path(__file__).resolve().parent.parent / "examples/reproduce"
PAPERS = ("badithela_2022", "pezzementi_2018", "pezzementi_2021", "wozniak_2024", "xu_2021")


def roman(number):
    return ["I", "II", "III", "IV"][number - 1]


EVERY = {
    "badithela_2022": {f"figure {k}" for k in range(1, 9)},
    "pezzementi_2018": {f"figure {k}" for k in range(1, 9)} | {f"table {roman(k)}" for k in range(1, 5)},
    "pezzementi_2021": {f"figure {k}" for k in range(1, 12)} | {f"table {k}" for k in range(1, 11)} | {"equation 7"},
    "wozniak_2024": {
        *(f"figure {k}" for k in range(1, 7)),
        *(f"table {k}" for k in range(1, 9)),
        *(f"box {k}" for k in range(1, 8)),
    },
    "xu_2021": {f"figure {k}" for k in range(1, 6)} | {"slopes"},
}


def run(name, output, *words):
    """What a script says of each part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        try:
            return importlib.import_module(name).main([str(output), *map(str, words)])
        finally:
            for module in ("parts", *PAPERS):
                sys.modules.pop(module, None)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """What each script says, where it wrote and what it printed, without data of the user: each is run once."""

    @cache
    def found(name):
        output = tmp_path_factory.mktemp(name)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            told = run(name, output, *(["--speeds", "1"] if name == "badithela_2022" else []))
        return told, output, printed.getvalue()

    return found


def rows(path):
    with path.open() as stream:
        return list(csv.reader(stream))


def made(told):
    return {name for name, text in told.items() if not text.startswith("not made: ")}


def test_there_is_a_script_for_each_paper_and_none_names_where_its_data_lie():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*PAPERS, "parts"}
    for path in FOLDER.iterdir():
        assert not path.is_file() or "shared/" not in path.read_text()


@pytest.mark.parametrize("name", PAPERS)
def test_every_figure_and_table_is_made_or_says_why_not(name, reproduced):
    told, output, _ = reproduced(name)
    assert told.keys() == EVERY[name]
    assert all(text.removeprefix("not made: ") for text in told.values())
    written = {file for part in made(told) for file in re.findall(r"\w+\.(?:csv|png)", told[part])}
    svg = {name.replace(".png", ".svg") for name in written if name.endswith(".png")}
    assert written | svg == {path.name for path in output.iterdir()}


def test_what_became_of_each_part_is_printed(reproduced):
    told, _, printed = reproduced("pezzementi_2021")
    assert all(f"  {part:<10} {text}\n" in printed for part, text in told.items())


def test_badithela_2022(reproduced):
    told, output, _ = reproduced("badithela_2022")
    assert made(told) == {"figure 6", "figure 7", "figure 8"}
    # The paper: the car stops with 0.20 and 0.26, twice as often as with one matrix for all distances.
    assert re.findall(r"0\.\d+", told["figure 8"]) == ["0.0825", "0.1962", "0.1294", "0.2588"]
    table = rows(output / "figure_6.csv")
    column = [int(row[1]) for row in table[1:]]
    assert table[0][1] == "true ped"
    assert (column[0], sum(column)) == (31, 158)


def test_pezzementi_2018(tmp_path):
    for folder in ("images", "depth"):
        (tmp_path / folder).mkdir()
    Image.fromarray(np.full((8, 8, 3), 120, dtype=np.uint8)).save(tmp_path / "images/a.png")
    np.save(tmp_path / "depth/a.npy", np.full((8, 8), 20.0))
    given = ["--images", tmp_path / "images", "--depth", tmp_path / "depth"]
    output = tmp_path / "out"
    told = run("pezzementi_2018", output, *given)
    assert made(told) == {"table II", "table III", "table IV"} | {f"figure {k}" for k in (1, 2, 3, 7, 8)}
    printed = {row[0]: row[1:] for row in rows(output / "table_4.csv")}
    assert printed["baseline"] == ["0.60", "0.29", "0.22", "0.64", "0.64", "0.71", "0.63", "0.73"]
    assert printed["defocus: u_f_m=1.0 kappa=2.8"][0] == "0.27"
    assert "kappa = 3.600 m px" in told["table III"]
    assert [float(row[1]) for row in rows(output / "table_2.csv")[1:]] == pytest.approx([97.8, 326, 978], rel=1e-3)
    assert "defocus R^2 = 0.991" in told["figure 7"]  # the paper: above 0.98 for all detectors
    shares = rows(output / "figure_8_pixels.csv")[1:]
    assert len(shares) == 12 * 8 + 3 * 10
    assert {row[2] for row in shares} == {"no data"}
    assert "no data for 15 of 15 mutations, they need --images" in told["figure 8"]
    assert [len(list((output / f"figure_{k}").rglob("*.png"))) for k in (1, 2, 3)] == [7, 3, 8]
    # Haze of 97.8 m visibility at 20 m: T = exp(-0.8), of grey 120 and haze 205.
    (hazy,) = (output / "figure_2").glob("*97.8*/a.png")
    assert np.asarray(Image.open(hazy))[4, 4, 0] == round(120 * np.exp(-0.8) + 205 * (1 - np.exp(-0.8)))


def test_pezzementi_2018_on_detections_of_ones_own(tmp_path):
    """Four images with an object each, found surely as taken; in haze one below a false positive, and not in blur."""
    (tmp_path / "images").mkdir()
    (tmp_path / "found").mkdir()
    for k in range(4):
        Image.fromarray(np.full((20, 30, 3), 90 + k, dtype=np.uint8)).save(tmp_path / f"images/{k}.png")
    truth = {
        "images": [{"id": k, "file_name": f"{k}.png", "width": 30, "height": 20} for k in range(4)],
        "annotations": [
            {"id": 7 + k, "image_id": k, "category_id": 1, "bbox": [5, 5, 8, 10], "area": 80, "iscrowd": 0}
            for k in range(4)
        ],
        "categories": [{"id": 1, "name": "ped"}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    false = {"image_id": 0, "category_id": 1, "bbox": [20, 2, 5, 5], "score": 0.5}
    for name, scores in {
        "net": (0.9,) * 4,
        "net@alpha_blend-alpha_0.25": (0.9, 0.9, 0.9, 0.3),
        "net@fog": (),
    }.items():
        found = [
            {"image_id": k, "category_id": 1, "bbox": [5, 5, 8, 10], "score": score} for k, score in enumerate(scores)
        ]
        (tmp_path / f"found/{name}.json").write_text(json.dumps([*found, false]))
    (tmp_path / "depth").mkdir()
    for k in range(4):  # half of each object at 10 m, and half at 40 m
        depth = np.full((20, 30), 10.0)
        depth[10:] = 40
        np.save(tmp_path / f"depth/{k}.npy", depth)
    output = tmp_path / "out"
    given = ["--annotations", tmp_path / "truth.json", "--detections", tmp_path / "found"]
    given += ["--depth", tmp_path / "depth"]
    told = run("pezzementi_2018", output, *given, "--images", tmp_path / "images")
    assert {"table IV", "figure 4", "figure 6"} <= made(told)
    table = {row[0]: row[1] for row in rows(output / "table_4.csv")[1:]}
    assert table.pop("baseline") == "1.00"
    assert table.pop("alpha_blend:alpha=0.25") == "0.75"  # all levels lie below one false positive in four images
    assert table.pop("fog") == "0.00"
    assert set(table.values()) == {"no data"}
    assert told["table IV"].endswith("no data for 46 of 49 cells")
    assert told["figure 5"].startswith("not made: no data of defocus")
    assert told["figure 6"] == "figure_6.png, 1 objects"
    # Figure 8: 1 - exp(-3.912 D / u) and kappa |D - u_f| / (D u_f) of the two depths, half of the pixels each.
    shares = {(row[0], row[1]): float(row[2]) for row in rows(output / "figure_8_pixels.csv")[1:] if row[2] != "0.0"}
    for depth in (10, 40):
        blend = int(10 * (1 - np.exp(-3.912 * depth / 97.8)))
        assert shares["u_V_m=97.8 beta_per_m=0.04", f"{blend / 10:g}-{(blend + 1) / 10:g}"] == 0.5
    assert shares["u_f_m=10.0 kappa=3.6", "0-0.5 px"] == 1  # 0 in focus, 0.27 behind
    assert sum(shares.values()) == 15


def test_pezzementi_2021(reproduced):
    told, output, _ = reproduced("pezzementi_2021")
    assert made(told) == {"table 1", "equation 7"}
    assert "full speed from 0.984 m on" in told["equation 7"]
    speeds = {float(d): float(v) for d, v in rows(output / "equation_7.csv")[1:]}
    assert (speeds[0.0], speeds[2.0]) == (0, 3)
    assert speeds[0.5] == pytest.approx(2 * np.sqrt(4.572 * 0.25), rel=1e-12)


def test_wozniak_2024(reproduced):
    told, output, _ = reproduced("wozniak_2024")
    assert made(told) == {f"box {k}" for k in range(1, 8)}
    assert told["box 2"].endswith(": 10")
    assert told["box 7"].endswith("; violated")
    change = {row[0]: round(abs(float(row[2]) - float(row[1])), 3) for row in rows(output / "box_5.csv")[1:]}
    assert [change[name] for name in ("AP", "precision", "recall")] == [0.094, 0.066, 0.126]
    assert len(rows(output / "boxes_1_and_3.csv")) == 9


@pytest.mark.slow
def test_xu_2021_on_kitti(shared, tmp_path):
    (tmp_path / "data").mkdir()
    for name, file in {"LABELS": "label_2.zip", "M3D-RPN": "det_m3d_rpn.zip"}.items():
        (tmp_path / f"data/{name}.zip").symlink_to(shared / "data/kitti_object_val" / file)
    output = tmp_path / "out"
    told = run("xu_2021", output, "--data", tmp_path / "data", "--quick")
    assert made(told) == {"figure 3", "figure 4"}
    assert told["figure 3"] == "figure_3.png, of M3D-RPN; no detections of D4LCN, Kinematic3D"
    assert told["figure 5"] == "not made: needs detections of D4LCN and Kinematic3D"
    assert all((output / f"figure_{k}.png").stat().st_size > 10_000 for k in (3, 4))


def test_pezzementi_2021_on_logs_of_ones_own(tmp_path):
    # Two logs towards a person at 33 m and two free ones of 40 m, an image per metre: 0-29, 30-59, 60-100, 101-141.
    drives = {f"person {k}": (True, straight(30)) for k in (1, 2)} | {
        f"free {k}": (False, straight(41)) for k in (1, 2)
    }
    people, seen = [(image, 33, 0) for image in range(60)], [(image, 0.9, 33, 0) for image in range(60)]
    reports = {"good": seen, "jumpy": [*seen, (70, 0.5, 11.5, 0)]}
    write_logs(made_logs(drives, people, reports), tmp_path / "logs")
    output = tmp_path / "out"
    told = run("pezzementi_2021", output, "--logs", tmp_path / "logs")
    assert told["table 4"] == "table_4.png"
    assert told["table 3"] == "not made: no data: no detector of one stage"
    assert {f"figure {k}" for k in range(8, 12)} <= made(told)
    header, *table = rows(output / "table_10.csv")
    assert header == ["closed_loop", "good", "jumpy"]
    assert table[0] == ["baseline", "1.0", "1.0"]  # both find the person long before the alarm counts
    names = [each.text for each in published("published-2021")]
    assert [row[0] for row in table] == ["baseline", *names, "Any", "AnyMild", "AnySevere"]
    assert {value for row in table[1:] for value in row[1:]} == {"no data"}
    assert told["table 9"] == "table_9.csv, table_9.png; no data for 50 of 52 cells"
    assert told["figure 10"].endswith("no data of Faster R-CNN w/ ResNet-101 under channel_dropout:channel=Cb")
    assert "no data for 52 of 52 cells; needs --logs-2d FOLDER, where people, too, are placed" in told["table 8"]
    assert "needs --logs-2d" in rows(output / "table_8.csv")[0][0]
    told = run("pezzementi_2021", output, "--logs-2d", tmp_path / "logs")
    assert "no data for 50 of 52 cells; that people are placed so is not said there" in told["table 8"]
