"""Small documents of `verify run` and of confusion matrices, valid and made by hand."""

import copy
import json

from verifier.evidence.documents import checked_document

SPEC, MODEL, MATRICES = "1" * 64, "2" * 64, "3" * 64

SETTINGS = {
    "planners": {"p": {"kind": "rules", "pick": "lowest"}},
    "environments": ["ped", "obs"],
    "set": {},
    "constants": {},
    "synthesised_from": None,
    "initial": None,
    "where": {},
    "score_threshold": None,
    "canonical": False,
    "empty_columns": "error",
    "false_alarms": "as_counted",
    "endless": False,
    "round_transitions": None,
    "exact": False,
    "verdict_from": "guaranteed",
    "confidence": {
        "level": 0.95,
        "interval": "credible",
        "reason": "posterior",
        "prior": "jeffreys",
        "draws": 10000,
        "seed": 0,
        "semantics": "every_state",
        "events": 1,
    },
}


def document(content, name="run.json"):
    """A validated document; its hash is that of its bytes."""
    return checked_document(content, json.dumps(content).encode(), name)


def point(probability, verdict, guaranteed=None, environment="ped", initial=None, interval=None, **more):
    """One scenario; `guaranteed` and `interval` are pairs, the interval the guaranteed bounds if not given."""
    found = {
        "environment": environment,
        "constants": {},
        "initial": initial or {"x": 1},
        "probability": probability,
        "lower": probability,
        "upper": probability,
        "second_engine": probability,
        "verdict": verdict,
        **more,
    }
    if guaranteed is not None:
        low, high = guaranteed
        inner = interval or guaranteed
        found["sureness"] = {
            "level": 0.95,
            "interval": {
                "kind": "credible",
                "lower": inner[0],
                "upper": inner[1],
                "lower_range": [inner[0], inner[0]],
                "upper_range": [inner[1], inner[1]],
                "draws": 10000,
            },
            "guaranteed": {
                "lower": low,
                "upper": high,
                "attained_lower": low,
                "attained_upper": high,
                "conservative": False,
            },
        }
    return found


def requirement(name, points, target=(">=", "9/10"), verdict=None, planner="p", worst=0, **more):
    """One requirement; its verdict is that of its worst point if not given."""
    return {
        "name": name,
        "planner": planner,
        "formula": "G safe",
        "target": None if target is None else {"comparison": target[0], "probability": target[1]},
        "verdict": verdict or points[worst]["verdict"],
        "worst": worst,
        "points": points,
        **more,
    }


def run(requirements, remarks=(), inputs=(SPEC, MODEL, MATRICES), name="run.json", title="made by hand", **settings):
    """The document of a run; settings replace those of `SETTINGS`."""
    content = {
        "schema": "verifier.run",
        "version": 1,
        "title": title,
        "verdict": requirements[0]["verdict"],
        "inputs": [
            {"role": "spec", "name": "a.ltl", "sha256": inputs[0]},
            {"role": "model", "name": "a.toml", "sha256": inputs[1]},
            {"role": "confusion", "name": "a.json", "sha256": inputs[2]},
        ],
        "settings": copy.deepcopy(SETTINGS) | settings,
        "versions": {"verifier": "0.1.0", "storm": "2.0.0"},
        "engines": {"reported": "storm", "second": "batch", "largest_difference": 0.0},
        "remarks": list(remarks),
        "requirements": list(requirements),
    }
    return document(content, name)


def satisfied_run(**more):
    """One requirement, P >= 0.9, met in two scenarios."""
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(0.97, "satisfied", (0.93, 0.99), environment="obs"),
    ]
    return run([requirement("stops", points)], **more)


def matrices(counts=((20, 5), (1, 74)), sequences=None, name="a.json", **more):
    """Confusion matrices of one bin over the labels ped and empty."""
    content = {
        "schema": "verifier.confusion",
        "version": 1,
        "labelling": "class",
        "axes": ["predicted", "true"],
        "labels": ["ped", "empty"],
        "bins": [{"distance_m": [0, None], "counts": [list(row) for row in counts]}],
        **more,
    }
    if sequences is not None:
        content["sequences"] = sequences
    return document(content, name)


def made_with(matrices_document, make=satisfied_run, **more):
    """A run of these matrices."""
    return make(inputs=(SPEC, MODEL, matrices_document.sha256), **more)


def tried(p_value):
    """The block `dependence` of matrices whose test has this p-value."""
    return {
        "seed": 0,
        "classes": [
            {
                "label": "ped", "objects": 90, "misses": 30, "pairs": 80, "after_miss": 25, "joint_misses": 20,
                "expected_joint_misses": 8.5, "miss_after_miss": 0.8, "expected_miss_after_miss": 0.34,
                "mean_run": 3.0, "expected_mean_run": 1.4, "p_value": p_value, "permutations": 9999,
            }
        ],
    }  # fmt: skip
