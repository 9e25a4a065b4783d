"""What a confusion document may say: each refusal with its JSON pointer and words, and what is accepted."""

import copy
import json
import math

import jsonschema
import pytest

from verifier.base.errors import InputError
from verifier.evidence.documents import schema_of
from verifier.perception.confusion.document import confusion_text
from verifier.perception.confusion.document_reader import DocumentReader

SCHEMA = jsonschema.Draft202012Validator(schema_of("verifier.confusion"))
PLAIN = {
    "schema": "verifier.confusion", "version": 1, "labelling": "class", "axes": ["predicted", "true"],
    "labels": ["ped", "empty"],
    "bins": [{"distance_m": [0, 10], "counts": [[3, 1], [0, 5]]},
             {"distance_m": [10, None], "counts": [[0, 0], [1, 0]]}],
}  # fmt: skip
SETS = {**PLAIN, "labelling": "proposition", "labels": [["ped"], []]}
FAMILY = {
    **PLAIN, "axes": ["score_threshold", "predicted", "true"], "score_thresholds": [0.25, 1],
    "bins": [{"distance_m": [0, 10], "counts": [[[3, 1], [0, 5]], [[2, 0], [1, 6]]]}],
}  # fmt: skip
SPEED = {"name": "speed", "of": "object", "edges": [None, 2, None]}
DRIVE = {"name": "sequence", "of": "frame", "values": {"night": ["n*"], "day": ["*"]}}
BINNED = {
    **PLAIN, "variables": [DRIVE, SPEED],
    "bins": [{"distance_m": [0, 10], "where": {"sequence": name, "speed": speed}, "counts": [[k, 0], [0, 5 + k // 2]]}
             for k, (name, speed) in enumerate([("night", [None, 2]), ("night", [2, None]),
                                                ("day", [None, 2]), ("day", [2, None])])],
}  # fmt: skip
LATER = {
    **PLAIN, "version": 2, "labels": ["ped", "empty", "obs"],
    "contexts": {"kind": "run", "cap": 1, "of": "outcome", "gaps": "break"},
    "bins": [
        {"distance_m": [0, 10], "counts": [[1, 0, 0], [1, 4, 0], [0, 0, 0]], "contexts": {
            "start": [[1, 0, 0], [0, 3, 0], [0, 0, 0]], "right*1": [[0, 0, 0], [1, 1, 0], [0, 0, 0]]}},
        {"distance_m": [10, None], "counts": [[0, 0, 1], [0, 2, 0], [0, 0, 1]], "contexts": {
            "start": [[0, 0, 1], [0, 2, 0], [0, 0, 0]], "wrong*1": [[0, 0, 0], [0, 0, 0], [0, 0, 1]]}},
    ],
    "sequences": [
        {"name": "A", "frames": 4, "counts": [
            [0, 0, 0, 0, 1], [0, 0, 1, 1, 3], [0, 1, 1, 0, 1], [0, 1, 1, 1, 1],
            [1, 0, 0, 2, 1], [1, 0, 1, 1, 2], [1, 2, 2, 2, 1],
        ], "tracks": {
            "columns": [[0, 0, 1], [1, 2, 1], [None, 0, 1], [None, 2, 1]],
            "shares": [[0, 0, 0, 0.5], [0, 1, 0, 0.5], [1, 0, 2, 0.5], [1, 2, 2, 0.5],
                       [None, 0, 0, 0.5], [None, 0, 2, 0.5], [None, 1, 0, 0.5], [None, 2, 2, 0.5]],
        }},
        {"name": "B", "frames": 0, "counts": [], "tracks": {"columns": [], "shares": []}},
    ],
}  # fmt: skip
TWO_DRIVES = {**LATER, "sequences": [
    {"name": "A", "frames": 2, "counts": LATER["sequences"][0]["counts"][:4], "tracks": {
        "columns": [[0, 0, 1], [None, 0, 1]],
        "shares": [[0, 0, 0, 0.5], [0, 1, 0, 0.5], [None, 0, 0, 0.5], [None, 1, 0, 0.5]]}},
    {"name": "B", "frames": 2, "counts": LATER["sequences"][0]["counts"][4:], "tracks": {
        "columns": [[1, 2, 1], [None, 2, 1]],
        "shares": [[1, 0, 2, 0.5], [1, 2, 2, 0.5], [None, 0, 2, 0.5], [None, 2, 2, 0.5]]}},
]}  # fmt: skip
CONTEXTS_OF_FAMILY = {**FAMILY, "version": 2, "contexts": LATER["contexts"], "bins": [{
    **FAMILY["bins"][0], "contexts": {
        "start": [[[2, 0], [0, 2]], [[1, 0], [1, 2]]], "right*1": [[[1, 0], [0, 3]], [[0, 0], [0, 0]]],
        "wrong*1": [[[0, 1], [0, 0]], [[1, 0], [0, 4]]]},
}]}  # fmt: skip
NOBODY = {
    **PLAIN, "version": 2, "labels": ["ped", "empty"], "bins": [{"distance_m": [0, 10], "counts": [[0, 0], [0, 4]]}],
    "sequences": [{**LATER["sequences"][1], "frames": 4, "counts": [[0, 1, 1, 4]]}],
}  # fmt: skip
NO_PAIR = {"pairs": 0, "after_miss": 0, "joint_misses": 0, "expected_miss_after_miss": None, "p_value": 1}
UNTESTED = {
    **NO_PAIR, "label": "ped", "objects": 1, "misses": 0, "expected_joint_misses": 0, "permutations": 1,
    "miss_after_miss": None, "mean_run": None, "expected_mean_run": None,
}  # fmt: skip
UNTESTED_BINS = {**UNTESTED, "bins": [{**NO_PAIR, "bin": 1}]}
PEOPLE = {"label": "ped", "objects": 2, "value": 0.5, "lower": 0.25, "upper": 0.5}
CLASS = {**PEOPLE, "sequences": [0.5, None]}
PRECISION = {"unit": "drive", "level": 0.95, "draws": 1, "seed": 0}
MADE_AGAIN = "\n  hint: documents are read as this program writes them; make it again with this version"
NEVER = {"kind": "kind", "text": "text"}
TEST = {"label": "ped", "contexts": "none", "z": None, "p_value": 1.0, "permutations": 9}
REPLAY = {"label": "ped", "contexts": "none", "confirm": "1/1", "range": "0..10", "frames": 2, "tracks": 2,
          "not_confirmed": 1, "expected": 1.25, "p_value": 1.0}  # fmt: skip
TRACKS = "/sequences/0/tracks"


def changed(document, edits):
    """The document with the values at JSON pointers; `...` takes the element away."""
    document = copy.deepcopy(document)
    for pointer, value in edits.items():
        inner, keys = document, [int(key) if key.isdigit() else key for key in pointer.split("/")[1:]]
        for key in keys[:-1]:
            inner = inner[key]
        if value is ...:
            del inner[keys[-1]]
        else:
            inner[keys[-1]] = copy.deepcopy(value)
    return document


REFUSED = [
    # The head.
    (PLAIN, {"/lables": 1}, "/lables: unknown key 'lables'\n  hint: did you mean 'labels'?"),
    (PLAIN, {"/x~y": 1}, "/x~0y: unknown key 'x~y'\n  hint: put free text under 'notes'"),
    (PLAIN, {"/remarks": []}, "/remarks: unknown key 'remarks'\n  hint: put free text under 'notes'"),
    (PLAIN, {"/labels": ...}, "the document: missing key 'labels'"),
    (PLAIN, {"/command": "verify"}, "/command: expected a list of strings, got 'verify'"),
    (PLAIN, {"/command": ["verify", 3]}, "/command: expected a list of strings, got ['verify', 3]"),
    (PLAIN, {"/version": 0}, "/version: expected 1 or 2, got 0"),
    (PLAIN, {"/title": 3}, "/title: expected a string, got 3"),
    (PLAIN, {"/labels": []}, "/labels: expected a list of labels, got []"),
    (PLAIN, {"/labels": "ped"}, "/labels: expected a list of labels, got 'ped'"),
    (PLAIN, {"/labels/0": " ped"}, "/labels/0: expected a class name, got ' ped'"),
    (PLAIN, {"/labels/0": ""}, "/labels/0: expected a class name, got ''"),
    (SETS, {"/labels/0": ["ped", "a\n"]}, "/labels/0/1: expected a class name, got 'a\\n'"),
    (SETS, {"/labels/0": ["ped", "obs", "ped"]}, "/labels/0: a class occurs twice in ['ped', 'obs', 'ped']"),
    *((document, {"/labels/1": ...},
       f"/labels: the label {label} is missing\n  hint: it stands for 'nothing is there'")
      for document, label in ((SETS, "[] (no class)"), (PLAIN, "'empty'"))),
    (SETS, {"/labels/1": ["ped"]}, "/labels/1: label ['ped'] occurs twice"),
    (FAMILY, {"/axes": ["predicted", "true"]},
     """/axes: expected ["score_threshold", "predicted", "true"], got ['predicted', 'true']\n"""
     "  hint: transpose the counts, so that each column sums to the items of one true label"),
    (FAMILY, {"/score_thresholds": []}, "/score_thresholds: expected a list of scores, got []"),
    (PLAIN, {"/bins": []}, "/bins: expected a list of at least one bin, got []"),
    (FAMILY, {"/score_thresholds": None}, "/score_thresholds: expected a list of scores, got None"),
    (FAMILY, {"/score_thresholds": [0.25, 0.25]}, "/score_thresholds/1: expected increasing scores, got 0.25"),
    (FAMILY, {"/score_thresholds": [True, 2]}, "/score_thresholds/0: expected increasing scores, got True"),
    (FAMILY, {"/score_thresholds": [0.25, math.inf]}, "/score_thresholds/1: expected increasing scores, got inf"),
    (FAMILY, {"/score_thresholds": [1, 0.25]}, "/score_thresholds/1: expected increasing scores, got 0.25"),
    (FAMILY, {"/score_thresholds": ...},
     """/axes: expected ["predicted", "true"], got ['score_threshold', 'predicted', 'true']\n"""
     "  hint: transpose the counts, so that each column sums to the items of one true label"),
    (FAMILY, {"/score_thresholds": [1]}, "/bins/0/counts: expected 1 matrices (one per score threshold), got 2"),
    # Bins and their ranges.
    (PLAIN, {"/bins/1": 3}, "/bins/1: expected an object with 'distance_m' and 'counts', got 3"),
    (PLAIN, {"/bins": {}}, "/bins: expected a list of at least one bin, got {}"),
    (PLAIN, {"/bins/0/distance_m": [0]}, "/bins/0/distance_m: expected [low, high] in metres, got [0]"),
    (PLAIN, {"/bins/0/distance_m": "0-10"}, "/bins/0/distance_m: expected [low, high] in metres, got '0-10'"),
    (PLAIN, {"/bins/0/distance_m/0": None},
     "/bins/0/distance_m/0: expected a distance in metres from 0 to 1e9, got None"),
    (PLAIN, {"/bins/1/distance_m/1": 1000000001},
     "/bins/1/distance_m/1: expected a distance in metres from 0 to 1e9, got 1000000001"),
    (PLAIN, {"/bins/1/distance_m": [9.5, 20]},
     "/bins/1/distance_m: bin [9.5, 20) overlaps or precedes the bin that ends at 10 m\n"
     "  hint: bins are half-open, sorted, and each begins where the one before it ends"),
    (PLAIN, {"/bins": [
        *({"distance_m": ends, "counts": [[0, 0], [0, 0]]} for ends in ([0, 10], [10, 20], [15, 30]))]},
     "/bins/2/distance_m: bin [15, 30) overlaps or precedes the bin that ends at 20 m\n"
     "  hint: bins are half-open, sorted, and each begins where the one before it ends"),
    (PLAIN, {"/bins/1/counts": 7}, "/bins/1/counts: expected 2 rows (one per predicted label), got 7"),
    (PLAIN, {"/bins/1/counts/1/0": 2**53 + 1}, "/bins/1/counts/1/0: expected at most 2**53, got 9007199254740993"),
    (PLAIN, {"/bins/1/counts/1/0": 2**53},
     "/bins: expected at most 2**53 items in all\n  hint: larger sums are not exact"),
    (FAMILY, {"/bins/0/counts/1/1/1": 2**53},  # at one threshold
     "/bins: expected at most 2**53 items in all\n  hint: larger sums are not exact"),
    (FAMILY, {"/bins/0/counts": {}}, "/bins/0/counts: expected 2 matrices (one per score threshold), got {}"),
    (FAMILY, {"/bins/0/counts/1/1/0": -2}, "/bins/0/counts/1/1/0: expected a non-negative integer, got -2"),
    (PLAIN, {"/false_positives": "dropped"},
     "/bins/0/counts/0/1: 1 false positives, though /false_positives says 'dropped'\n  hint: write "
     '"false_positives": "counted" if unmatched detections are counted; they count as data then'),
    (PLAIN, {"/false_positives": "dropped", "/labels": ["empty", "ped"]},
     "/bins/1/counts/1/0: 1 false positives, though /false_positives says 'dropped'\n  hint: write "
     '"false_positives": "counted" if unmatched detections are counted; they count as data then'),
    (FAMILY, {"/false_positives": "dropped", "/bins/0/counts/0/0/1": 0, "/bins/0/counts/1/0/1": 2},
     "/bins/0/counts/1/0/1: 2 false positives, though /false_positives says 'dropped'\n  hint: write "
     '"false_positives": "counted" if unmatched detections are counted; they count as data then'),
    (BINNED, {"/bins/3": ...}, "/bins: expected a multiple of 4 bins, got 3\n"
     "  hint: distance changes slowest, the last variable fastest, and each bin says its ranges"),
    (BINNED, {"/bins/1/where": ...}, "/bins/1: expected an object with 'distance_m', 'where' and 'counts', "
     "got ['counts', 'distance_m']"),
    (BINNED, {"/bins/2/where/sequence": "night"},
     """/bins/2/where: expected {"sequence": "day", "speed": [null, 2]}, """
     "got {'sequence': 'night', 'speed': [None, 2]}\n"
     "  hint: distance changes slowest, the last variable fastest, and each bin says its ranges"),
    (BINNED, {"/bins/3/distance_m": [0, None]}, "/bins/3/distance_m: expected the range of the bin before it\n"
     "  hint: distance changes slowest, the last variable fastest, and each bin says its ranges"),
    (BINNED, {"/bins/3/counts/1/1": 5},
     "/bins: the column of the label 'empty' differs between bins of 'speed'\n"
     "  hint: only objects have 'speed', so where there is no object the counts must be equal"),
    (BINNED, {"/variables": 3}, "/variables: expected a list, got 3"),
    (BINNED, {"/variables": ...},
     "/bins/0: expected an object with 'distance_m' and 'counts', got ['counts', 'distance_m', 'where']"),
    (BINNED, {"/variables/1/name": "sequence"}, "/variables/1: variable 'sequence' has no numbers: give values"),
    (BINNED, {"/variables/0": SPEED, **{f"/bins/{k}/where": {"speed": [None, 2] if k in (0, 2) else [2, None]}
                                        for k in range(4)}},
     "/variables: a variable is named twice"),
    (BINNED, {"/variables/0": 3},
     "/variables/0: expected an object with 'name', 'of', and either 'edges' or 'values'"),
    (BINNED, {"/variables/1/edges": {}}, "/variables/1/edges: expected a list, got {}"),
    (BINNED, {"/variables/1/edges/1": None}, "/variables/1/edges/1: expected a number, got None"),
    (BINNED, {"/variables/1/edges/0": "a"}, "/variables/1/edges/0: expected a number, got 'a'"),
    (BINNED, {"/variables/1/edges": [3, 2, None]},
     "/variables/1: variable 'speed': expected at least two increasing edges"),
    (BINNED, {"/variables/0/of": "object"}, "/variables/0/of: expected 'frame', got 'object'"),
    (BINNED, {"/variables/0/values": {"a~b": "n"}}, "/variables/0/values/a~0b: expected a list of strings"),
    (BINNED, {"/variables/0/values/day": ["n", 3]}, "/variables/0/values/day: expected a list of strings"),
    (BINNED, {"/variables/0/values": []}, "/variables/0: variable 'sequence' needs either edges or values"),
    # What is said of the numbers.
    (PLAIN, {"/dependence": {"seed": 0, "classes": [UNTESTED_BINS]}},
     "/dependence: tests of bins, and combined ones, belong to version 2 of the document"),
    *((LATER, {"/average_precision": {**PRECISION, "classes": [CLASS, {**CLASS, **edit}]}},
       f"/average_precision/classes/1{words}" + MADE_AGAIN * (words[0] == "/")) for edit, words in (
        ({"label": "car"}, ": the matrices have no class 'car'"),
        ({"sequences": [0.5]}, ": expected one value for each sequence, or none"),
        ({"sequences": [0.5] * 3}, ": expected one value for each sequence, or none"),
        ({"value": None}, "/value: expected a number"),
        ({"value": 1.5}, "/value: input should be less than or equal to 1, got 1.5"),
        ({"objects": 0}, "/value: expected null"),
        ({"lower": None}, "/lower: expected both ends of an interval, or none"),
        ({"upper": 0}, "/lower: expected both ends of an interval, or none"),
        ({"lower": 0.75}, "/lower: expected both ends of an interval, or none"),
    )),
    (LATER, {"/average_precision": {**PRECISION, "classes": [CLASS]}, "/sequences": ...,
             "/average_precision/classes/0/sequences": [0.5]},
     "/average_precision/classes/0: expected one value for each sequence, or none"),
    (PLAIN, {"/localisation": {"axes": []}},
     "/localisation: expected an object with the keys 'axes' and 'counts', got {'axes': []}"),
    (PLAIN, {"/localisation": 3}, "/localisation: expected an object with the keys 'axes' and 'counts', got 3"),
    (PLAIN, {"/localisation": {"axes": ["true", "reported"], "counts": [[1, 0], [0, 1]]}},
     """/localisation/axes: expected ["reported", "true"], got ['true', 'reported']\n"""
     "  hint: transpose the counts, so that each column sums to the items of one true bin"),
    (PLAIN, {"/localisation": {"axes": ["reported", "true"], "counts": [[1, 0]]}},
     "/localisation/counts: expected 2 rows (one per reported bin), got 1 rows"),
    (PLAIN, {"/localisation": {"axes": ["reported", "true"], "counts": [[1, 0], [1]]}},
     "/localisation/counts/1: expected 2 entries (one per true bin), got 1 entries"),
    (PLAIN, {"/localisation": {"axes": ["reported", "true"], "counts": [[0, 0], [0, 0]]}},
     "/localisation/counts: expected at least one item"),
    (PLAIN, {"/notes": {"a": [math.inf]}}, "/notes: NaN and infinities are not JSON numbers"),
    (LATER, {"/remarks": {}}, "/remarks: expected a list of remarks, got {}"),
    *((LATER, {"/remarks": [NEVER, entry]},
       f"/remarks/1: expected an object with the texts 'kind' and 'text', got {entry!r}")
      for entry in ("text", {"kind": "a"}, {"kind": "a", "text": 3}, {**NEVER, "more": "b"})),
    # Contexts.
    ({**LATER, "labelling": "group"}, {}, "/contexts: an item of a group-labelled matrix has no context"),
    (LATER, {"/contexts/knd": 1}, "/contexts/knd: unknown key 'knd'\n  hint: did you mean 'kind'?"),
    (LATER, {"/contexts/zz~": 1}, "/contexts/zz~0: unknown key 'zz~'\n"
     "  hint: known: kind, cap, of, gaps, period_s, units, tests, tracks, replays"),
    (LATER, {"/contexts/kind": "last", "/contexts/cap": 9},
     "/contexts/cap: contexts last:9: expected a length from 1 to 8"),
    *((LATER, {"/contexts/tests": tests}, f"/contexts/tests/{number}: {words}") for tests, number, words in (
        ([TEST, {**TEST, "contexts": "run:2"}], 1, "expected contexts no finer than run:1, got 'run:2'"),
        ([TEST, {**TEST, "label": "obs"}, TEST], 2, "ped with none has a test already"),
    )),
    (LATER, {"/contexts/replays": [REPLAY, {**REPLAY, "contexts": "run:0"}]},
     "/contexts/replays/1/contexts: contexts run:0: expected a length from 1 to 50"),
    (LATER, {"/bins/0/contexts": ...}, "/bins/0: expected an object with 'contexts', 'distance_m' and 'counts', "
     "got ['counts', 'distance_m']"),
    (LATER, {"/bins/0/contexts": 3}, "/bins/0/contexts: expected an object from contexts to matrices, got 3"),
    (LATER, {"/bins/0/contexts/rihgt*1": 3},
     "/bins/0/contexts/rihgt*1: unknown context 'rihgt*1'\n  hint: did you mean 'right*1'?"),
    (LATER, {"/bins/0/contexts/0~": 3},
     "/bins/0/contexts/0~0: unknown context '0~'\n  hint: run:1 has start, right*1, wrong*1, untracked.."),
    (LATER, {"/bins/1/contexts/wrong*1/2": [0, 0]},
     "/bins/1/contexts/wrong*1/2: expected 3 entries (one per true label), got 2 entries"),
    (LATER, {"/bins/1/contexts/wrong*1/2/2": 3}, "/bins/1/contexts: the matrices add up to 3 at predicted 2, true 2, "
     "and /bins/1/counts has 1"),
    # Sequences.
    (LATER, {"/sequences": "A"}, "/sequences: expected a list of at least one sequence, got 'A'"),
    (LATER, {"/sequences/1": 3}, "/sequences/1: expected an object with 'name', 'frames', 'counts' and 'tracks'"),
    (LATER, {"/sequences/0/tracks": ..., "/sequences/1/tracks": ..., "/sequences/1/frames": ...},
     "/sequences/1: expected an object with 'name', 'frames' and 'counts'"),
    ({**LATER, "labelling": "proposition", "labels": [["ped"], [], ["obs"]]}, {},
     "/sequences/0: expected an object with 'name', 'frames' and 'counts'"),
    (NOBODY, {"/version": 1}, "/sequences/0: expected an object with 'name', 'frames' and 'counts'"),
    (LATER, {"/sequences/1/name": 3}, "/sequences/1/name: expected a name that is not used yet, got 3"),
    (LATER, {"/sequences/1/frames": True}, "/sequences/1/frames: expected a number of frames, got True"),
    (LATER, {"/sequences/1/frames": -1}, "/sequences/1/frames: expected a number of frames, got -1"),
    (LATER, {"/sequences/1/frames": 2**53 + 1},
     "/sequences/1/frames: expected a number of frames, got 9007199254740993"),
    (LATER, {"/sequences/1/counts": {}}, "/sequences/1/counts: expected a list of rows, got {}"),
    (LATER, {"/sequences/0/counts/6": [1, 2, 2, 1]},
     "/sequences/0/counts/6: expected [bin, context, predicted, true, count, ...] with 5 numbers, got [1, 2, 2, 1]"),
    (LATER, {"/sequences/0/counts/6": 3},
     "/sequences/0/counts/6: expected [bin, context, predicted, true, count, ...] with 5 numbers, got 3"),
    *((LATER, {f"/sequences/0/counts/6/{place}": limit},
       f"/sequences/0/counts/6/{place}: expected an integer from 0 to {limit - 1}, got {limit}")
      for place, limit in enumerate((2, 4, 3, 3, 2**53 + 1))),
    (LATER, {"/sequences/0/counts/6/0": 1.0},
     "/sequences/0/counts/6/0: expected an integer from 0 to 1, got 1.0"),
    (LATER, {"/sequences/0/counts/6": [1, 0, 1, 1, 0]}, "/sequences: a cell occurs twice in one sequence"),
    (LATER, {"/sequences/0/counts/6/1": 0}, "/sequences: the counts of the sequences do not add up to "
     "/bins/1/contexts/start at predicted 2, true 2"),
    (LATER, {"/sequences/0/counts/5/4": 1},
     "/sequences: the counts of the sequences do not add up to /bins/1/counts at predicted 1, true 1"),
    # Tracks.
    (LATER, {TRACKS: {"columns": []}},
     f"{TRACKS}: expected an object with 'columns' and 'shares', got {{'columns': []}}"),
    (LATER, {TRACKS: 3}, f"{TRACKS}: expected an object with 'columns' and 'shares', got 3"),
    (LATER, {f"{TRACKS}/shares": 3}, f"{TRACKS}/shares: expected a list of rows, got 3"),
    (LATER, {f"{TRACKS}/columns/1": [1, 2]},
     f"{TRACKS}/columns/1: expected [bin of each axis, true, tracks] with 3 entries, got [1, 2]"),
    (LATER, {f"{TRACKS}/shares/1": 3},
     f"{TRACKS}/shares/1: expected [bin of each axis, predicted, true, share, ...] with 4 entries, got 3"),
    (LATER, {f"{TRACKS}/shares/1/0": 2}, f"{TRACKS}/shares/1/0: expected an integer from 0 to 1, or null, got 2"),
    (LATER, {f"{TRACKS}/shares/1/1": None}, f"{TRACKS}/shares/1/1: expected an integer from 0 to 2, got None"),
    (LATER, {f"{TRACKS}/shares/1/2": 3}, f"{TRACKS}/shares/1/2: expected an integer from 0 to 2, got 3"),
    (LATER, {f"{TRACKS}/columns/1/1": -1}, f"{TRACKS}/columns/1/1: expected an integer from 0 to 2, got -1"),
    (LATER, {f"{TRACKS}/columns/1/1": True}, f"{TRACKS}/columns/1/1: expected an integer from 0 to 2, got True"),
    (LATER, {f"{TRACKS}/columns/1/1": 1},
     f"{TRACKS}/columns/1/1: there is no object in column 'empty', so it has no tracks"),
    (LATER, {f"{TRACKS}/shares/1/2": 1},
     f"{TRACKS}/shares/1/2: there is no object in column 'empty', so it has no tracks"),
    *((LATER, {f"{TRACKS}/columns/1/2": number},
       f"{TRACKS}/columns/1/2: expected a number of tracks from 1, got {number}") for number in (0, 1.0, 2**53 + 1)),
    *((LATER, {f"{TRACKS}/shares/1/3": share},
       f"{TRACKS}/shares/1/3: expected a sum of shares from 0, got {share!r}")
      for share in (-0.5, "1", 2**53 + 1, math.nan)),
    (LATER, {f"{TRACKS}/shares/1": [0, 0, 0, 0.5]}, f"{TRACKS}/shares: a cell or column occurs twice"),
    (LATER, {f"{TRACKS}/columns/1": [0, 0, 1]}, f"{TRACKS}/columns: a cell or column occurs twice"),
    (LATER, {"/sequences/1/tracks/columns": [[1, 2, 1], [1, 2, 1]]},
     "/sequences/1/tracks/columns: a cell or column occurs twice"),
    (LATER, {f"{TRACKS}/shares/7/3": 1.5},
     f"{TRACKS}: at [null], predicted 2, true 2: 1.5 tracks are reported so, of 1 items"),
    (LATER, {f"{TRACKS}/shares/4/3": 1.5},
     f"{TRACKS}: at [null], predicted 0, true 0: 1.5 tracks are reported so, of 1 items"),
    (LATER, {f"{TRACKS}/columns/1/2": 2**53},
     f"{TRACKS}: at [1], true 2: shares add up to 1, of 9007199254740992 tracks with 2 items"),
    *((LATER, {f"{TRACKS}/shares/1/3": share},
       f"{TRACKS}: at [0], predicted 1, true 0: {told} tracks are reported so, of 1 items")
      for share, told in ((0, "0"), (2**53, "9.00719925474e+15"))),
    (LATER, {f"{TRACKS}/columns/1": ...}, f"{TRACKS}: at [1], true 2: shares add up to 1, of 0 tracks with 2 items"),
    (LATER, {f"{TRACKS}/columns/1/2": 2}, f"{TRACKS}: at [1], true 2: shares add up to 1, of 2 tracks with 2 items"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "edits", "words"), REFUSED, ids=[row[2].partition("\n")[0][:70] for row in REFUSED]
)
def test_what_does_not_fit_is_refused_with_its_place(document, edits, words):
    with pytest.raises(InputError) as caught:
        DocumentReader("a.json").counts(changed(document, edits))
    assert str(caught.value) == f"a.json: {words}"


def test_sequences_of_version_2_may_have_no_tracks():
    read = DocumentReader("a.json").counts(changed(NOBODY, {"/sequences/0/tracks": ...})).sequences
    assert (read.names, read.frames.tolist(), read.tracks) == (("B",), [4], None)


@pytest.mark.parametrize(
    ("document", "edits"),
    [
        (PLAIN, {}), (SETS, {}), (FAMILY, {}), (BINNED, {}), (LATER, {}),
        (PLAIN, {"/bins/0/distance_m": [0.5, 10], "/bins/1/distance_m": [10, 1000000000]}),
        (PLAIN, {"/bins": [{"distance_m": [0, None], "counts": [[0, 0], [2**53, 0]]}]}),
        (PLAIN, {"/labelling": "group", "/false_positives": "counted", "/title": "made up"}),
        (PLAIN, {"/localisation": {"axes": ["reported", "true"], "counts": [[0, 1], [0, 0]]}}),
        (FAMILY, {"/score_thresholds": [-1.5, 0]}),
        (LATER, {"/sequences/1/frames": 2**53}),
        (LATER, {"/remarks": [NEVER], "/average_precision": {**PRECISION, "classes": [
            CLASS, {**CLASS, "label": "obs", "lower": 0.5}, {**CLASS, "lower": 0},
            {**PEOPLE, "objects": 0, "value": None}, {**CLASS, "lower": None, "upper": None}]}}),
        ({**SETS, "version": 2}, {"/average_precision": {**PRECISION, "classes": [PEOPLE]}}),
        (NOBODY, {}), (PLAIN, {"/dependence": {"seed": 0, "classes": [UNTESTED]}}),
        (PLAIN, {"/version": 2, "/dependence": {"seed": 0, "classes": [UNTESTED_BINS]}}),
        (PLAIN, {"/labels": ["empty"], "/bins": [{"distance_m": [0, 10], "counts": [[4]]}]}),
        (PLAIN, {"/labels/0": "p"}), (SETS, {"/labels/0": ["p"]}), (TWO_DRIVES, {}), (CONTEXTS_OF_FAMILY, {}),
        (LATER, {"/contexts/tests": [TEST, {**TEST, "label": "obs"}, {**TEST, "contexts": "run:1"}],
                 "/contexts/replays": [REPLAY, REPLAY]}),
    ],
)  # fmt: skip
def test_what_fits_is_read_and_written_again(document, edits):
    document = changed(document, edits)
    SCHEMA.validate(document)
    counts = DocumentReader("a.json").counts(document)
    written = json.loads(confusion_text(counts))
    assert {key: written[key] for key in document} == document
    matrices = [entry["counts"] for entry in document["bins"]]
    members = [matrices] if counts.thresholds is None else [list(member) for member in zip(*matrices, strict=True)]
    assert counts.counts.tolist() == members


@pytest.mark.parametrize(
    ("document", "edits"),
    [
        *((PLAIN, {"/labels": labels})
          for labels in (["ped", "ped", "empty"], ["ped"], ["", "empty"], ["empty", []])),
        *((SETS, {"/labels": labels}) for labels in ([["ped"], ["ped"], []], [["ped"]], [["empty"], []], [[""], []],
                                                     [["ped", "ped"], []], ["ped", []])),
        (PLAIN, {"/axes": FAMILY["axes"]}), (FAMILY, {"/axes": PLAIN["axes"]}), (PLAIN, {"/bins": []}),
        (FAMILY, {"/score_thresholds": []}), (PLAIN, {"/sequences": []}), (FAMILY, {"/bins/0/counts": []}),
        (PLAIN, {"/bins/0/distance_m/0": -1}), (PLAIN, {"/bins/1/distance_m/1": 1e9 + 1}),
        *((PLAIN, {"/bins/0/counts": counts}) for counts in ([], [[]], [[-1]], [[2**53 + 1]])),
        (BINNED, {"/variables/1/edges": [3]}), (BINNED, {"/variables/0/values/day": []}),
        *((BINNED, {f"/variables/{number}/name": "a b"}) for number in (0, 1)),
        *((PLAIN, {f"/{key}": LATER[key]}) for key in ("contexts", "sequences")),
        (PLAIN, {"/remarks": []}), (PLAIN, {"/data_set": {}}),
        (LATER, {"/contexts/cap": 0}), (LATER, {"/contexts/cap": 51}), (LATER, {"/contexts/period_s": 0}),
        (LATER, {"/contexts/period_s": 1e6 + 1}), (LATER, {"/sequences/0/counts/0": [0, 0, 0]}),
        (LATER, {f"{TRACKS}/columns/0": [0, 0]}), (LATER, {f"{TRACKS}/shares/0": [0, 0, 0]}),
        (LATER, {"/average_precision": {**PRECISION, "draws": 0, "classes": []}}),
    ],
)  # fmt: skip
def test_the_schema_refuses_it_too(document, edits):
    assert not SCHEMA.is_valid(changed(document, edits))
