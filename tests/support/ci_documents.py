"""Documents of runs for the outputs of continuous integration, made by hand: every verdict, and hostile names."""

import json

from verifier.evidence.documents import checked_document

HASHES = {"spec": "a" * 64, "model": "b" * 64, "confusion": "c" * 64}
HOSTILE = "<b onclick='x'>&\"]]>--> \x1b[2J\x00\x0b\u202e\ufffe\n[a](http://x) {0}"


def point(verdict, probability, environment="ped", **more):
    return {
        "environment": environment,
        "constants": {},
        "initial": {"x": 1},
        "probability": probability,
        "lower": probability,
        "upper": probability,
        "second_engine": probability,
        "verdict": verdict,
    } | more


def sureness(lower, upper, guaranteed_lower, guaranteed_upper):
    return {
        "level": 0.95,
        "interval": {
            "kind": "credible",
            "lower": lower,
            "upper": upper,
            "lower_range": [lower, lower],
            "upper_range": [upper, upper],
            "draws": 100,
        },
        "guaranteed": {
            "lower": guaranteed_lower,
            "upper": guaranteed_upper,
            "attained_lower": guaranteed_lower,
            "attained_upper": guaranteed_upper,
            "conservative": False,
        },
    }


def requirement(name, verdict, points, target=(">=", "9/10"), planner="p", worst=0, **more):
    asked = None if target is None else {"comparison": target[0], "probability": target[1]}
    found = {"name": name, "planner": planner, "formula": f"G ({name})", "target": asked, "verdict": verdict}
    return found | {"worst": worst, "points": points} | more


def run_content(requirements, verdict, title="made up", **more):
    return {
        "schema": "verifier.run",
        "version": 1,
        "title": title,
        "verdict": verdict,
        "inputs": [{"role": role, "name": f"{role}.file", "sha256": sha} for role, sha in HASHES.items()],
        "settings": {
            "planners": {"p": {"kind": "rules", "pick": "lowest"}},
            "environments": ["ped"],
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
            "confidence": None,
        },
        "versions": {"verifier": "0.1.0", "storm": "2.0.0"},
        "engines": {"reported": "storm", "second": "batch", "largest_difference": 0.0},
        "remarks": [],
        "requirements": requirements,
    } | more


def document_of(content, name="result.json"):
    raw = json.dumps(content).encode()
    return checked_document(json.loads(raw), raw, name)


EVIDENCE = {
    "columns": [{"true": "ped", "bin": "[0, 10) m", "items": 5, "further": 40}],
    "lower": 0.9,
    "upper": 1.0,
    "verdict": "satisfied",
}


def every_verdict(name="stops"):
    """Four requirements: violated in one of two scenarios, inconclusive, satisfied, without a target."""
    violated = [point("satisfied", 0.95), point("violated", 0.25, "obs", sureness=sureness(0.2, 0.3, 0.1, 0.4))]
    return run_content(
        [
            requirement(name, "violated", violated, worst=1),
            requirement("unsure", "inconclusive", [point("inconclusive", 0.92)], evidence_needed=EVIDENCE),
            requirement("holds", "satisfied", [point("satisfied", 0.001)], target=("<=", "1/100")),
            requirement("asks", "no target", [point("no target", 0.5)], target=None),
        ],
        "violated",
    )
