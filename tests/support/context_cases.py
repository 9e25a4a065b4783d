"""Documents and systems of detectors with memory."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
from matrix_documents import document_of


def document(case, **more):
    contexts = {**case["contexts"], "of": "outcome", "gaps": "break"}
    head = {
        "schema": "verifier.confusion",
        "version": 2,
        **{key: case[key] for key in ("labelling", "axes", "labels")},
    }
    return {**head, "bins": copy.deepcopy(case["bins"]), "contexts": contexts, **more}


def files_of(folder, model, confusion, environment, formulas):
    (folder / "m.toml").write_text(model)
    (folder / "c.json").write_text(json.dumps(confusion))
    asked = "".join(f"r{k}: P = ? [ {formula} ]\n" for k, formula in enumerate(formulas))
    (folder / "s.ltl").write_text(f'model "m.toml"\nenvironments {environment}\n{asked}')
    return folder / "s.ltl", folder / "c.json"


def systems_of(shared):
    """The systems that a detector with memory was solved for by independent code."""
    path = shared / "oracles/memory/systems.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return json.loads(path.read_text())["cases"]


def latch(steps=30, distance_m=15, initial="t = 0"):
    """A model that remembers whether a person was ever reported within so many steps."""
    return f"""
initial = "{initial} & seen = 0"
terminal = "t = {steps}"
[variables]
t = {{ range = [0, {steps}], next = "t + 1" }}
seen = {{ range = [0, 1], next = "max(seen, note)" }}
[inputs]
note = {{ range = [0, 1] }}
[environments]
ped = [{{ class = "ped", distance_m = {distance_m} }}]
[planners.latch]
rules = [{{ when = "sees(ped)", set = {{ note = 1 }} }}, {{ when = "true", set = {{ note = 0 }} }}]
"""


def tracked_document(rows, contexts, **head):
    """Of one class in one bin, from {context: [misses, hits]}."""
    by_context = {name: [[hits, 0], [misses, 0]] for name, (misses, hits) in rows.items()}
    whole = np.sum(list(by_context.values()), axis=0).tolist()
    bins = [{"distance_m": [10, 20], "counts": whole, "contexts": by_context}]
    told = {"kind": contexts.kind, "cap": contexts.cap, "of": "outcome", "gaps": "break", **head}
    return document_of(version=2, bins=bins, contexts=told)


def counted_drives(drives, contexts, **head):
    """As `tracked_document`, of several drives with rows of their own."""
    total = {name: np.sum([each.get(name, [0, 0]) for each in drives], axis=0).tolist() for name in contexts.names}
    found = tracked_document(total, contexts, **head)
    found["sequences"] = [
        {
            "name": f"drive {number}",
            "frames": 1000,
            "counts": [
                [0, contexts.names.index(name), predicted, 0, count]
                for name, row in rows.items()
                for predicted, count in zip((1, 0), row, strict=True)
                if count
            ],
        }
        for number, rows in enumerate(drives)
    ]
    return found


def drawn_document(labels, contexts, labelling, bins, seed, **more):
    """Counts by context without zeros, drawn; and (bin, true label, context) -> {reported label: rate}."""
    rng = np.random.default_rng(seed)
    written, columns = [], {}
    for at in range(bins):
        by_context = {}
        for name in contexts.names:
            matrix = rng.integers(1, 20, (len(labels), len(labels)))
            by_context[name] = matrix.tolist()
            for true, label in enumerate(labels):
                total = int(matrix[:, true].sum())
                column = {each: Fraction(int(matrix[k, true]), total) for k, each in enumerate(labels)}
                columns[at, label, name] = column
        whole = np.sum(list(by_context.values()), axis=0).tolist()
        written.append({"distance_m": [10 * at, 10 * at + 10], "counts": whole, "contexts": by_context})
    texts = [sorted(label) if labelling == "proposition" else next(iter(label), "empty") for label in labels]
    found = {
        "schema": "verifier.confusion", "version": 2, "labelling": labelling, "axes": ["predicted", "true"],
        "labels": texts, "bins": written, "false_positives": "counted",
        "contexts": {"kind": contexts.kind, "cap": contexts.cap, "of": "outcome", "gaps": "break"},
    }  # fmt: skip
    return found | more, columns
