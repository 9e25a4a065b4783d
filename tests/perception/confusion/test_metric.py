"""The streaming metric: batches count the same as all at once, byte for byte, whatever the batches are."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shorthands import of_sequences

import verifier
from verifier.base.errors import InputError, UsageError

HOW = {"classes": "ped,obs", "bins": "0,20,40,inf", "unmatched": "nearest_bin"}
FRAMES = 40


def scene(seed=3):
    """Objects and detections of 40 frames in three drives; some frames have neither."""
    draw = np.random.default_rng(seed)
    there = pd.DataFrame({"frame": np.sort(draw.integers(0, FRAMES, 120))})
    there = there.assign(
        x1=draw.uniform(0, 600, 120), y1=draw.uniform(0, 300, 120), distance_m=draw.uniform(1, 60, 120)
    )
    there = there.assign(x2=there.x1 + 40, y2=there.y1 + 80, label=draw.integers(0, 2, 120))
    seen = there[draw.random(120) > there.distance_m / 90].copy()
    seen = seen.assign(
        x1=seen.x1 + draw.uniform(-9, 9, len(seen)),
        score=draw.random(len(seen)),
        label=np.where(draw.random(len(seen)) < 0.2, 1 - seen.label, seen.label),
    )
    return there, seen


def drive(frame):
    return f"drive {frame * 3 // FRAMES}"


def as_table(rows):
    return rows.assign(sequence=rows.frame.map(drive), **{"class": rows.label.map({0: "ped", 1: "obs"})}).drop(
        columns="label"
    )


def as_dict(rows, keys):
    columns = {"labels": rows.label.to_numpy(), "boxes": rows[["x1", "y1", "x2", "y2"]].to_numpy()}
    return columns | {key: rows[name].to_numpy() for key, name in keys.items()}


def batches(cuts):
    edges = [0, *sorted(cuts), FRAMES]
    return [range(low, high) for low, high in pairwise(edges) if low < high]


def fill(metric, cuts):
    """Update with dictionaries, one per frame."""
    there, seen = scene()
    for batch in batches(cuts):
        target = [as_dict(there[there.frame == k], {"distance_m": "distance_m"}) for k in batch]
        preds = [as_dict(seen[seen.frame == k], {"scores": "score"}) for k in batch]
        names, drives = [f"{k}" for k in batch], [drive(k) for k in batch]
        metric.update(preds, target, sequence=drives, frames=names)


def fill_tables(metric, cuts):
    there, seen = map(as_table, scene())
    listed = pd.DataFrame({"frame": range(FRAMES)}).assign(sequence=[drive(k) for k in range(FRAMES)])
    for batch in batches(cuts):
        preds, target, frames = (rows[rows.frame.isin(batch)] for rows in (seen, there, listed))
        metric.update(preds, target, frames=frames)


@pytest.mark.parametrize("filled", [fill, fill_tables])
@pytest.mark.parametrize("thresholds", [None, "0.2,0.5,0.8"])
def test_batches_count_the_same_as_all_at_once(filled, thresholds):
    metric = verifier.metric(**HOW, score_thresholds=thresholds)
    filled(metric, ())
    whole = metric.compute().json_text()

    @settings(max_examples=6)
    @given(st.sets(st.integers(1, FRAMES - 1), max_size=4))
    def check(cuts):
        metric.reset()
        filled(metric, cuts)
        assert metric.compute().json_text() == whole

    check()


def test_dictionaries_and_tables_count_what_the_command_counts(tmp_path):
    there, seen = map(as_table, scene())
    pd.DataFrame({"frame": range(FRAMES), "sequence": [drive(k) for k in range(FRAMES)]}).to_csv(
        tmp_path / "frames.csv", index=False
    )
    counted = verifier.count(there, seen, **HOW, frames=str(tmp_path / "frames.csv"))
    assert counted.counts[0, :, 0, 0].sum() > 20
    for filled in (fill, fill_tables):
        metric = verifier.metric(**HOW)
        filled(metric, (7, 20))
        found = metric.compute()
        assert np.array_equal(found.counts, counted.counts)
        assert found.sequences.names == counted.sequences.names == ("drive 0", "drive 1", "drive 2")
        assert found.sequences.frames.tolist() == counted.sequences.frames.tolist() == [14, 13, 13]
        assert np.array_equal(of_sequences(found), of_sequences(counted))
        assert found.metadata["totals"] == counted.metadata["totals"]


class Tensor:
    """What is used of a torch tensor."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return SimpleNamespace(cpu=lambda: np.array(self.values))


SEEN = {"boxes": Tensor([[0, 0, 10, 18]]), "labels": Tensor([1]), "scores": Tensor([0.9])}
HERE = {"boxes": Tensor([[0, 0, 10, 20]]), "labels": Tensor([1]), "distance_m": [5.0], "occluded": [2]}


def test_tensors_names_of_labels_and_further_columns():
    metric = verifier.metric(["obs", "ped"], classes="ped,obs", bins="0,inf", by="occluded=0,1,2")
    metric.update([SEEN, SEEN], [HERE, HERE], sequence="one")
    metric.update([SEEN], [HERE], sequence="two")
    found = metric.compute()
    assert found.counts[0, :, 0, 0].tolist() == [0, 0, 3]
    assert found.sequences.frames.tolist() == [2, 1]


def test_what_does_not_fit_is_refused():
    metric = verifier.metric(classes="ped,obs", bins="0,inf")
    with pytest.raises(UsageError, match="call update first"):
        metric.compute()
    with pytest.raises(InputError, match="entry 1 has no labels"):
        metric.update([{"boxes": [], "scores": []}], [HERE])
    with pytest.raises(InputError, match="<detections>: no column 'score'"):
        metric.update([HERE], [SEEN])  # swapped
    metric.update([SEEN], [HERE], frames=["a"])
    with pytest.raises(InputError, match="frame 'a' is in an earlier batch"):
        metric.update([SEEN], [HERE], frames=["a"])
    space = {"boxes_3d": [[5, 0, 0, 4, 2, 1, 0]], "labels": [1]}
    with pytest.raises(InputError, match="other boxes or distances than those before"):
        metric.update([{**space, "scores": [0.5]}], [space], frames=["b"])
    assert metric.compute().counts.sum() == 1  # a batch that is refused leaves nothing behind
    with pytest.raises(UsageError, match=r"does not take memory: use verifier\.count"):
        verifier.metric(classes="ped", memory="run:5")
    with pytest.raises(UsageError, match="needs its classes beforehand"):
        verifier.metric(bins="0,inf")
    with pytest.raises(UsageError, match="unknown choice 'bns'"):
        verifier.metric(classes="ped", bns="0,inf")
