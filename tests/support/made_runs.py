"""Documents of `verify run` made by hand: every verdict, and hostile names."""

import copy
import json

from document_edits import summed

from verifier.evidence.documents import checked_document

HASHES = {"spec": "a" * 64, "model": "b" * 64, "confusion": "c" * 64}
HOSTILE = "<b onclick='x'>&\"]]>--> \x1b[2J\x00\x0b\u202e\ufffe\n[a](http://x) {0}"
BOUNDS = {
    "tier": "independent_drives",
    "name": "95 % confidence bounds (independent drives)",
    "condition": "drives are independent and none holds more than 40 items of a column",
    "conditional": False,
    "weights": "item",
    "level": 0.95,
    "chances": 1,
    "looks": 1,
    "every_look": False,
    "shift": 0.0,
    "drives": 12,
    "effective_drives": 9.5,
    "largest_share": 0.2,
    "largest_drive": {"declared": False, "columns": [{"bin": 0, "true": 1, "items": 40}]},
    "ceiling": None,
    "icc_at_most": None,
}
"""Of the tier that is no condition of a verdict."""
CONFIDENCE = {
    "level": 0.95,
    "interval": "credible",
    "reason": "posterior",
    "prior": "jeffreys",
    "draws": 100,
    "seed": 0,
    "semantics": "per_state",
    "events": 1,
    "bounds": BOUNDS,
}
SETTINGS = {
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
    "false_positives": "as_counted",
    "endless": False,
    "round_transitions": None,
    "exact": False,
    "verdict_from": "bounds",
    "strict": False,
    "assume_memoryless": False,
    "confidence": CONFIDENCE,
}
NEEDED = {
    "columns": [{"true": "ped", "bin": "[0, 10) m", "items": 5, "further": 40}],
    "drives": None,
    "lower": 0.9,
    "upper": 1.0,
    "verdict": "satisfied",
}


def point(verdict, probability, environment="ped", **more):
    """One scenario of a chain that draws no class; the numbers of both engines are the same."""
    found = {"environment": environment, "constants": {}, "initial": {"x": 1}, "probability": probability}
    found |= {"lower": probability, "upper": probability, "second_engine": probability, "verdict": verdict}
    found |= {"basis": None if verdict in ("inconclusive", "no target") else "memoryless", "condition": None}
    found |= {"reason": {"kind": "bounds"} if verdict == "inconclusive" else None, "draws": []}
    return found | more


def uncertainty(lower, upper, bounds_lower, bounds_upper, tier="independent_drives"):
    """Interval and confidence bounds."""
    interval = {"kind": "credible", "lower": lower, "upper": upper, "draws": 100}
    interval |= {"lower_range": [lower, lower], "upper_range": [upper, upper]}
    bounds = {"lower": bounds_lower, "upper": bounds_upper, "conservative": False}
    bounds |= {"attained_lower": bounds_lower, "attained_upper": bounds_upper, "tier": tier}
    return {"level": 0.95, "interval": interval, "confidence_bounds": bounds}


def requirement(name, verdict, points, target=(">=", "9/10"), planner="p", worst=0, **more):
    """One requirement under one planner."""
    asked = None if target is None else {"comparison": target[0], "probability": target[1]}
    found = {"name": name, "planner": planner, "formula": f"G ({name})", "target": asked, "verdict": verdict}
    found |= {"condition": None}
    return found | {"worst": worst, "points": points} | more


def run_content(requirements, verdict, title="made up", **more):
    """The JSON values of a whole run."""
    inputs = [{"role": role, "name": f"{role}.file", "sha256": sha256} for role, sha256 in HASHES.items()]
    return {
        "schema": "verifier.run",
        "version": 1,
        "title": title,
        "verdict": verdict,
        "condition": None,
        "inputs": inputs,
        "settings": dict(SETTINGS),
        "channel": {"test": "not_contradicted", "classes": []},
        "versions": {"verifier": "0.1.0", "storm": "2.0.0"},
        "engines": {"reported": "storm", "second": "batch", "largest_difference": 0.0},
        "remarks": [],
        "requirements": requirements,
    } | more


def whole(content):
    """A run whose settings say its planners and environments, with uncertainty at every point or at none."""
    content = copy.deepcopy(content)
    points = [each for asked in content["requirements"] for each in asked["points"]]
    settings = content["settings"]
    planners = dict.fromkeys(asked["planner"] for asked in content["requirements"])
    settings["planners"] = {
        name: settings["planners"].get(name, {"kind": "rules", "pick": "lowest"}) for name in planners
    }
    settings["environments"] = list(dict.fromkeys(each["environment"] for each in points))
    if not any("uncertainty" in each for each in points):
        settings |= {"confidence": None, "verdict_from": "point"}
    for each in points if settings["confidence"] is not None else ():
        ends = each["lower"], each["upper"]
        each.setdefault("uncertainty", uncertainty(*ends, *ends, settings["confidence"]["bounds"]["tier"]))
    return content


def on_grid(content):
    """A run in which every requirement is told in every scenario of any; where it was not, as in its first one."""
    content = copy.deepcopy(content)
    told = {json.dumps([each["environment"], each["constants"], each["initial"]]): None
            for asked in content["requirements"] for each in asked["points"]}  # fmt: skip
    for asked in content["requirements"]:
        there = [[each["environment"], each["constants"], each["initial"]] for each in asked["points"]]
        for scenario in map(json.loads, told):
            if scenario not in there:
                keys = dict(zip(("environment", "constants", "initial"), scenario, strict=True))
                asked["points"].append(copy.deepcopy(asked["points"][0]) | keys)
    return content


def document_of(content, name="result.json"):
    """The document that a file with these values is."""
    if content["schema"] == "verifier.run":
        content = whole(content)
    raw = json.dumps(summed(content)).encode()
    return checked_document(json.loads(raw), raw, name)


def every_verdict(name="stops"):
    """Four requirements: violated in one of two scenarios, inconclusive, satisfied, without a target."""
    violated = [point("satisfied", 0.95), point("violated", 0.25, "obs", uncertainty=uncertainty(0.2, 0.3, 0.1, 0.4))]
    open_still = point("inconclusive", 0.92, uncertainty=uncertainty(0.88, 0.96, 0.8, 1.0))
    found = [
        requirement(name, "violated", violated, worst=1),
        requirement("unsure", "inconclusive", [open_still], additional_data=NEEDED),
        requirement("holds", "satisfied", [point("satisfied", 0.001)], target=("<=", "1/100")),
        requirement("asks", "no target", [point("no target", 0.5)], target=None),
    ]
    return run_content(found, "violated")
