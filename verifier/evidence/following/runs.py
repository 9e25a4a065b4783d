"""Whether a run tells every requirement in every scenario of its grid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from verifier.evidence.following.numbers import Misfits
from verifier.study.points import block_text


def scenarios_left_out(content: Mapping[str, Any]) -> Misfits:
    """Every requirement is told under every planner and in every scenario; if intervals were asked for, with them.

    The grid is what the document of a run says of it: its planners and environments, each with every combination of
    the values of swept constants, and in each of these blocks the same initial states for every requirement.
    """
    settings, asked = content["settings"], content["requirements"]
    told = {(each["name"], each["planner"]) for each in asked}
    for name, planner in itertools.product(dict.fromkeys(each["name"] for each in asked), settings["planners"]):
        if (name, planner) not in told:
            yield "/requirements", f"expected {name} under the planner {planner} too"
    points = [point for each in asked for point in each["points"]]
    swept: dict[str, dict[str, None]] = {}
    for point in points:
        for constant, value in point["constants"].items():
            swept.setdefault(constant, {})[value] = None
    grid = itertools.product(settings["environments"], *([(name, v) for v in swept[name]] for name in swept))
    blocks = {block_text(environment, dict(values)): set[str]() for environment, *values in grid}
    for k, each in enumerate(asked):
        for n, point in enumerate(each["points"]):
            block = block_text(point["environment"], point["constants"])
            if block not in blocks:
                yield f"/requirements/{k}/points/{n}", f"expected a scenario of the settings, got {block}"
                return
            blocks[block].add(str(point["initial"]))
            if settings["confidence"] is not None and "uncertainty" not in point:
                yield f"/requirements/{k}/points/{n}", "expected uncertainty, as the settings have confidence"
    whole = {(block, initial) for block, states in blocks.items() for initial in states or {"one"}}
    for k, each in enumerate(asked):
        there = {(block_text(p["environment"], p["constants"]), str(p["initial"])) for p in each["points"]}
        for block, initial in sorted(whole - there)[:1]:
            yield f"/requirements/{k}/points", f"expected the scenario {block} with the initial state {initial} too"
