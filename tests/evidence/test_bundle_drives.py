"""Bundles of bounds by drives: certificates carry the table of the drives, and a check proves every end from it."""

import json

import numpy as np
import pytest
from drive_tables import write_drives
from small_bundles import write_inputs

from verifier.cli import main
from verifier.evidence.bundle.layout import OMITTED_FILE

OPTIONS = ["--draws", "400"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drives")
    spec, matrices = write_inputs(folder)
    rng = np.random.default_rng(4)
    counts = np.zeros((12, 1, 2, 2), dtype=np.int64)
    for true, rate in ((0, 0.75), (1, 0.1)):
        items = rng.integers(5, 30, 12)
        counts[:, 0, 0, true] = rng.binomial(items, rate)
        counts[:, 0, 1, true] = items - counts[:, 0, 0, true]
    write_drives(matrices, counts, ("ped", "empty"), (0.0, 10.0))
    return spec, matrices


def built(inputs, folder, *options):
    spec, matrices = inputs
    command = ["evidence", "build", str(spec), "--cm", str(matrices), *OPTIONS, *options, "-o", str(folder)]
    assert main(command) in (0, 1, 3)
    return folder


def check(folder, capsys):
    capsys.readouterr()
    code = main(["evidence", "check", str(folder), "--json"])
    return code, json.loads(capsys.readouterr().out)


def certificates(folder):
    return sorted((folder / "certificates").rglob("*.json")) if (folder / "certificates").is_dir() else []


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--weights", "drive"),
        ("--largest-drive", "40", "--looks", "9", "--shift", "0.01"),
        ("--icc-at-most", "0.05"),
        ("--assume-independent-items",),
    ],
)
def test_a_bundle_of_every_proven_tier_passes(inputs, tmp_path, capsys, options):
    folder = built(inputs, tmp_path / "b", *options)
    assert certificates(folder)
    code, found = check(folder, capsys)
    assert (code, found["findings"]) == (0, [])


def test_computed_anew_rates_keep_their_weights(inputs, tmp_path, capsys):
    folder = built(inputs, tmp_path / "b", "--weights", "drive")
    capsys.readouterr()
    code = main(["evidence", "check", str(folder), "--recompute", "--json"])
    assert (code, json.loads(capsys.readouterr().out)["findings"]) == (0, [])


def test_bounds_that_are_drawn_have_no_certificates_and_say_why(inputs, tmp_path, capsys):
    folder = built(inputs, tmp_path / "b", "--bounds", "approximate")
    assert all("_point_" in path.name for path in certificates(folder))
    assert "drawn, and not proven by a certificate" in (folder / OMITTED_FILE).read_text(encoding="utf-8")
    code, found = check(folder, capsys)
    assert (code, found["findings"]) == (0, [])
