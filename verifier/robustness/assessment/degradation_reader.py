"""The part of an assessment file on what a growing disturbance does to the system.

    [systems.car.degradation]
    parameter = "visibility"
    unit = "m"
    scale = "reciprocal"                         # or "linear", "log"
    allowed_change = { AP = 0.05 }
    run = { spec = "specs/car_pedestrian.ltl", planner = "published" }
    collision = { distance_m = 20, speed_mps = 10, deceleration_mps2 = 6.86, reaction_s = 0.1, at_most = 0.05 }
    trade_off = { detector = "ssd", metric = "closed_loop", at_least = 0.8 }

    [[systems.car.degradation.levels]]           # the mildest first
    at = inf
    performance = { AP = 0.41 }
    confusion = "clear.json"
    pairs = "clear.csv"
    curves = "clear_curves.json"

Paths are from the folder of the file.
"""

from __future__ import annotations

import math
from typing import cast

from verifier.robustness.assessment.degradation import (
    SCALES,
    CollisionLimit,
    Degradation,
    Level,
    Scale,
    SystemModelRun,
    TradeOffLimit,
)
from verifier.robustness.assessment.tomldata import Element

KEYS = ("parameter", "unit", "scale", "allowed_change", "run", "collision", "trade_off", "levels")
LEVEL_KEYS = ("at", "confusion", "pairs", "curves", "performance")
RUN_KEYS = ("spec", "planner", "environments", "set", "empty_columns")
COLLISION_KEYS = ("distance_m", "speed_mps", "deceleration_mps2", "reaction_s", "at_most")
TRADE_OFF_KEYS = ("detector", "metric", "at_least")
EMPTY_COLUMNS = ("error", "prior", "neighbour", "pool")


def read_degradation(found: Element) -> Degradation:
    """The degradation that a table of the file describes; InputError."""
    found.table(KEYS, required=("parameter", "levels"))
    changes = found.at("allowed_change").entries() if found.has("allowed_change") else ()
    allowed = {name: each.number(0, 1) for name, each in changes}
    parts = {
        "levels": tuple(_level(each) for each in found.at("levels").items(least=2)),
        "run": _run(found.at("run")) if found.has("run") else None,
        "collision": _collision(found.at("collision")) if found.has("collision") else None,
        "trade_off": _trade_off(found.at("trade_off")) if found.has("trade_off") else None,
    }
    try:
        return Degradation(
            parameter=found.at("parameter").string(),
            unit=found.at("unit").string(empty=True) if found.has("unit") else "",
            scale=cast(Scale, found.at("scale").one_of(SCALES)) if found.has("scale") else "linear",
            allowed_change=allowed,
            **parts,  # type: ignore[arg-type]
        )
    except ValueError as error:
        raise found.fail(str(error)) from None


def _level(found: Element) -> Level:
    found.table(LEVEL_KEYS, required=("at",))
    files = {key: found.at(key).string() if found.has(key) else None for key in ("confusion", "pairs", "curves")}
    values = found.at("performance").entries() if found.has("performance") else ()
    return Level(_at(found.at("at")), performance={name: each.number(0, 1) for name, each in values}, **files)


def _at(found: Element) -> float:
    """A level; the only number of an assessment that may be infinite."""
    return math.inf if repr(found.value) in ("inf", "+inf") else float(found.number())


def _run(found: Element) -> SystemModelRun:
    found.table(RUN_KEYS, required=("spec",))
    constants = dict(found.at("set").entries()) if found.has("set") else {}
    return SystemModelRun(
        found.at("spec").string(),
        found.at("planner").string() if found.has("planner") else None,
        tuple(each.string() for each in found.at("environments").items(least=1)) if found.has("environments") else (),
        {name: each.number() for name, each in constants.items()},
        found.at("empty_columns").one_of(EMPTY_COLUMNS) if found.has("empty_columns") else "error",
    )


def _collision(found: Element) -> CollisionLimit:
    found.table(COLLISION_KEYS, required=COLLISION_KEYS)
    distance_m, speed_mps, deceleration_mps2, reaction_s = (found.at(key).number(0) for key in COLLISION_KEYS[:-1])
    for key in COLLISION_KEYS[:3]:
        if found.at(key).number() == 0:
            raise found.at(key).fail("expected a number above 0, got 0")
    drive = float(distance_m), float(speed_mps), float(deceleration_mps2), float(reaction_s)
    return CollisionLimit(*drive, at_most=found.at("at_most").number(0, 1))


def _trade_off(found: Element) -> TradeOffLimit:
    found.table(TRADE_OFF_KEYS, required=TRADE_OFF_KEYS)
    return TradeOffLimit(
        found.at("detector").string(), found.at("metric").string(), found.at("at_least").number(0, 1)
    )
