"""The JSON document of confusion matrices: round trip, schema, and what is refused with which words."""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.base.errors import ExitCode, InputError
from verifier.evidence.documents import schema_of
from verifier.perception.confusion import EMPTY, ConfusionMatrices, read_confusion, write_confusion
from verifier.perception.confusion import document as document_module
from verifier.perception.confusion.bins import is_number
from verifier.perception.confusion.document import confusion_text, read_counts_of
from verifier.perception.confusion.tally import Tally

FOLDER = Path(__file__).resolve().parents[2] / "data/invalid/confusion"
SCHEMA = jsonschema.Draft202012Validator(schema_of("verifier.confusion"))
EXAMPLES = ["nuscenes_yolov3_class.json", "nuscenes_yolov3_proposition.json"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_shipped_examples_match_the_schema_and_survive_a_round_trip(root, tmp_path, name):
    original = root / "examples" / name
    SCHEMA.validate(json.loads(original.read_text()))
    write_confusion(read_confusion(original).matrices, tmp_path / name)
    assert (tmp_path / name).read_bytes() == original.read_bytes()


@pytest.mark.parametrize("kind", ["class", "proposition"])
def test_shipped_examples_hold_the_published_numbers(root, shared, kind):
    published = json.loads((shared / "reference/nuscenes_yolov3_cm.json").read_text())[f"{kind}_labeled"]
    found = read_confusion(root / f"examples/nuscenes_yolov3_{kind}.json").matrices
    assert found.counts.tolist() == [each["counts"] for each in published["bins"]]
    assert found.edges_m.tolist() == [10.0 * k for k in range(11)]
    assert [set(label) or {"empty"} for label in found.labels] == [set(label) for label in published["labels"]]


def test_shipped_examples_hold_the_papers_figures(root):
    # Figures 6 and 7: d <= 10 m.
    by_class = read_confusion(root / "examples/nuscenes_yolov3_class.json").matrices
    by_set = read_confusion(root / "examples/nuscenes_yolov3_proposition.json").matrices
    assert by_class.counts[0].tolist() == [[31, 0, 0], [0, 191, 0], [127, 734, 3227]]
    assert by_set.counts[0].tolist() == [[22, 0, 5, 0], [0, 184, 4, 0], [0, 0, 0, 0], [63, 354, 13, 3227]]
    assert by_set.counts.sum(axis=(1, 2)).tolist() == [3872] * 10


@pytest.mark.parametrize(
    ("error", "looks", "said"),
    [
        (0, 1, {}),
        (1, 1, {"annotation-error": "up to a share of 1 of the items may be annotated wrongly or missing: "}),
        (Fraction(1, 4), 2, {"annotation-error": "up to a share of 0.25 of", "looks": "1 verdict was drawn from"}),
        (0, 3, {"looks": "2 verdicts were drawn from these data before: confidence bounds allow for 3 looks"}),
    ],
)
def test_doubts_about_the_data_are_told(root, monkeypatch, error, looks, said):
    monkeypatch.setattr(document_module, "annotation_error", lambda _: error)
    monkeypatch.setattr(document_module, "looks_at", lambda _: looks)
    read = read_confusion(root / f"examples/{EXAMPLES[0]}").matrices.metadata
    remarks = {told["kind"]: told["text"] for told in read.get("remarks", [])}
    assert {kind: text[: len(said.get(kind, ""))] for kind, text in remarks.items()} == said


def test_names_of_sequences_are_written_as_they_are():
    tally = Tally(np.array([[0, 1, 0, 2], [1, 0, 1, 1]]), np.array([[7], [3]]))
    sequences = SimpleNamespace(names=("Straße", "b"), frames=np.array([3, 1]), tally=tally, tracks=None)
    assert document_module._sequence_texts(SimpleNamespace(sequences=sequences, by_context=None)) == [
        '    {"name":"Straße","frames":3,"counts":[[1,0,2,7]]}',
        '    {"name":"b","frames":1,"counts":[[0,1,1,3]]}',
    ]


CLASSES = st.lists(st.sampled_from(["ped", "car", "traffic cone", "étui"]), unique=True, min_size=1, max_size=4)


@st.composite
def documents(draw):
    classes = draw(CLASSES)
    labelling = draw(st.sampled_from(["class", "proposition"]))
    labels = [frozenset({name}) for name in classes] if labelling == "class" else [frozenset(classes)]
    labels = draw(st.permutations([*labels, EMPTY]))
    cuts = draw(st.lists(st.integers(0, 1000), unique=True, min_size=2, max_size=4).map(sorted))
    edges = np.array([*cuts, *draw(st.sampled_from([[], [np.inf]]))], dtype=float)
    size = len(labels)
    cells = (len(edges) - 1) * size * size
    counts = draw(st.lists(st.integers(0, 2**40), min_size=cells, max_size=cells))
    return ConfusionMatrices(
        labelling, tuple(labels), edges, np.array(counts).reshape(len(edges) - 1, size, size), draw(st.text())
    )


@given(documents())
def test_reading_what_was_written_gives_the_same(document):
    text = confusion_text(document)
    decoded = json.loads(text)
    SCHEMA.validate(decoded)
    again = read_counts_of(json.dumps(decoded).encode(), "m.json").matrices()
    assert (again.labelling, again.labels, again.title) == (document.labelling, document.labels, document.title)
    assert np.array_equal(again.edges_m, document.edges_m)
    assert np.array_equal(again.counts, document.counts)
    assert confusion_text(again) == text


def expected_messages():
    return sorted(path for path in FOLDER.iterdir() if path.suffix != ".expected")


@pytest.mark.parametrize("path", expected_messages(), ids=lambda path: path.name)
def test_invalid_documents_are_refused_with_their_message(path, monkeypatch):
    monkeypatch.chdir(FOLDER)
    with pytest.raises(InputError) as caught:
        read_confusion(path.name)
    assert str(caught.value) == path.with_suffix(".expected").read_text().rstrip("\n")
    assert caught.value.exit_code == ExitCode.BAD_INPUT == 4


def test_ten_megabytes_of_garbage_are_refused_at_once(tmp_path):
    path = tmp_path / "garbage.json"
    path.write_bytes(bytes(range(32, 127)) * 110_000)
    with pytest.raises(InputError, match="not JSON"):
        read_confusion(path)


def test_deep_nesting_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read_confusion(path)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_confusion(tmp_path / "none.json")
    with pytest.raises(InputError, match="found a directory"):
        read_confusion(tmp_path)


def test_writing_is_all_or_nothing(tmp_path, root):
    matrices = read_confusion(root / "examples" / EXAMPLES[0]).matrices
    with pytest.raises(InputError, match="cannot be written"):
        write_confusion(matrices, tmp_path / "no such folder" / "out.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, True), (-1.5, True), (10**308, True), (10**309, False), (-(10**400), False), (math.inf, False),
     (math.nan, False), (True, False), ("1", False), (sys.float_info.max, True), (None, False)],
)  # fmt: skip
def test_a_number_is_what_a_double_can_hold(value, number):
    assert is_number(value) == number
