"""One document of each kind, the report on them all, one bundle, and all options, as they were when they were frozen.

A difference that is meant is written down in CHANGELOG.md; then `GOLDEN=write pytest tests/test_golden.py`
freezes what there is now.
"""

import json
import math
import os
import re
from dataclasses import MISSING
from itertools import zip_longest
from pathlib import Path

import pytest
from printed_text import without_noise
from report_documents import EVERY_KIND, documents, path
from small_bundles import write_inputs

from verifier.analysis.settings import ConfidenceSettings
from verifier.base.options import options_of
from verifier.cli.verbs import VERBS
from verifier.evidence.bundle.build import Sources, make_bundle
from verifier.evidence.report import csv_report, markdown_report
from verifier.study.options import RunOptions

CHANGING = ("versions", "command", "checksums", "inputs", "sha256")
"""What depends on where, with which libraries and from which files a document is made."""
MADE = tuple(name for name in EVERY_KIND if name not in ("curves", "campaign", "by_class", "by_set"))
DIGITS = {"rel_tol": 1e-9, "abs_tol": 1e-12}
"""How far numbers may differ on another machine."""
IN_BUNDLE = ("report/report.md", "report/report.csv", "case/gsn.yaml", "trace.csv", "README.txt")


@pytest.fixture
def golden(request):
    """The frozen text of a name, frozen now where that is asked for."""

    def read(name, now):
        file = request.config.rootpath / "tests" / "data" / "golden" / name
        if os.environ.get("GOLDEN") == "write":
            file.write_text(now)
        return file.read_text()

    return read


def differences(frozen, now, where=""):
    """Where two JSON values differ, by their JSON paths."""
    if isinstance(frozen, dict) and isinstance(now, dict):
        for key in frozen.keys() | now.keys():
            if key not in CHANGING:
                yield from differences(frozen.get(key, "missing"), now.get(key, "missing"), f"{where}/{key}")
    elif isinstance(frozen, list) and isinstance(now, list) and len(frozen) == len(now):
        for at, pair in enumerate(zip(frozen, now, strict=True)):
            yield from differences(*pair, f"{where}/{at}")
    elif isinstance(frozen, float) and isinstance(now, float):
        if not math.isclose(frozen, now, **DIGITS):
            yield where, frozen, now
    elif type(frozen) is not type(now) or (frozen != now and not (is_digest(frozen) and is_digest(now))):
        yield where, frozen, now


def is_digest(value):
    """A SHA-256: that of a result depends on the versions that it names."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def frozen_words(text):
    """A text without what depends on place, libraries and files."""
    text = re.sub(r"\b[0-9a-f]{12,64}\b", "HASH", without_noise(text))
    text = re.sub(r"\b\d+\.\d+(\.\d+)+\b", "VERSION", text)
    text = re.sub(r"\d\.?\d*e-1[2-9]", "BOUND", text)
    return re.sub(r"/[\w/.-]*/", "", text)


def same_lines(frozen, now):
    for before, after in zip_longest(frozen.splitlines(), now.splitlines()):
        assert after == before


@pytest.mark.parametrize("name", MADE)
def test_a_document_of_each_kind(golden, name):
    made = json.loads(Path(path(name)).read_text())
    now = {key: value for key, value in made.items() if key not in CHANGING}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in now.items())
    frozen = json.loads(golden(f"{name}.json", f"{{{lines}}}\n"))
    assert list(differences(frozen, now)) == []


@pytest.mark.parametrize(("ending", "tell"), [("md", markdown_report), ("csv", csv_report)])
def test_the_report_on_all_kinds(golden, ending, tell):
    now = frozen_words(tell(documents(*EVERY_KIND)))
    same_lines(golden(f"report.{ending}", now), now)


def test_a_bundle(golden, tmp_path):
    bundle = make_bundle(Sources(*write_inputs(tmp_path)), RunOptions(confidence=ConfidenceSettings(draws=300))).files
    texts = [f"== {name} ==\n{frozen_words(bundle[name].decode())}" for name in IN_BUNDLE]
    now = "\n".join([*bundle, *texts])
    same_lines(golden("bundle.txt", now), now)


def test_every_option_and_its_default(golden):
    now = "".join(
        f"{verb}: {' '.join(setting.all_spellings) or setting.name} = "
        f"{'must be given' if setting.default is MISSING else repr(setting.default)}\n"
        for verb, command in VERBS.items()
        for _, setting in options_of(command.settings)
    )
    same_lines(golden("options.txt", now), now)
