"""What a verdict of a document rests on, in words: its condition, why it is open or vacuous, what its bounds assume.

Whoever shows a verdict asks here, so that every format says the same of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.analysis.channel_test import contradicted_text
from verifier.base.documents import Content
from verifier.checking.verdicts import verdict_text


def told_verdict(part: Content) -> str:
    """The verdict of a point, a requirement or a run with its condition: `violated, if items are independent`."""
    return verdict_text(part["verdict"], part.get("condition"))


def why(point: Content) -> str:
    """Why a point is not decided, or says nothing about the system; empty where its numbers alone decide."""
    return "; ".join(part for part in (reason_text(point), vacuity_text(point)) if part)


def reason_text(point: Content) -> str:
    """Why a verdict is inconclusive although numbers decide; empty where the bounds leave it open."""
    reason = point.get("reason")
    if reason is None or reason["kind"] == "bounds":
        return ""
    model = reason["model_verdict"]
    if reason["kind"] == "untested":
        return f"--strict refuses the verdict '{verdict_text(model, reason['condition'])}'"
    value = f"P = {point['probability']:.9g}, " if "probability" in point else ""
    return f"{contradicted_text(reason['label'], reason['p_value'])}; the contradicted model gives {value}{model}"


def vacuity_text(point: Content) -> str:
    """What makes the check of a requirement say nothing in a scenario; empty where nothing does."""
    return "; ".join(part["text"] for part in point.get("vacuity", ()))


def tipping_sentences(part: Content) -> Iterator[str]:
    """How wrong what the bounds of a requirement assume may be before its verdict falls, where that is known."""
    tipping = part.get("tipping_points") or {}
    for name, of, what in (
        ("largest_icc", "icc_verdict", "the ICC of items within drives is at most"),
        ("largest_shift", "shift_verdict", "no observation's rate shifts by more than"),
    ):
        if tipping.get(name) is not None:
            yield f"{tipping[of]} as long as {what} {tipping[name]:g}"


def marked_verdict(point: Content) -> str:
    """As `told_verdict`; a violated scenario that is vacuous as well is marked."""
    also = " (vacuous)" if point.get("vacuity") and point["verdict"] != "vacuous" else ""
    return told_verdict(point) + also


def bounds_name(settings: Content) -> str:
    """The confidence bounds of a run with their tier: `95 % confidence bounds (independent drives)`."""
    return str(settings["confidence"]["bounds"]["name"])


def bounds_told(settings: Content) -> str:
    """As `bounds_name`, and what they assume where the name does not say it."""
    name, condition = bounds_name(settings), settings["confidence"]["bounds"]["condition"]
    return name if condition in name else f"{name}; they assume: {condition}"


def looks_text(bounds: Content) -> str:
    """For which looks at growing data confidence bounds hold, to follow `they hold`."""
    if bounds["every_look"]:
        return "at every look between drives that are added, if drives are identically distributed"
    return "for one look at the data" if bounds["looks"] == 1 else f"for {bounds['looks']} looks at the data"


def tier_of(settings: Content) -> str:
    """The tier of a run's confidence bounds; empty where it has none."""
    found = settings["confidence"]
    return "" if found is None else str(found["bounds"]["tier"])


def needed_text(plan: Content | None) -> str:
    """How much more data a plan asks for: `40 more items`, `71 more drives like these`; empty without a plan."""
    if plan is None:
        return ""
    if plan["drives"] is not None:
        return f"{plan['drives']} more {'drive' if plan['drives'] == 1 else 'drives'} like these"
    return f"{sum(column['further'] for column in plan['columns'])} more items"


def channel_lines(channel: Content) -> Iterator[str]:
    """What the test of the memoryless detector says, class by class."""
    for test in channel["classes"]:
        if test["test"] == "untested":
            yield f"{test['label']}: not tested"
            continue
        said = "contradicted" if test["test"] == "contradicted" else "not contradicted"
        text = f"{test['label']}: {said}, p = {test['p_value']:.2g}"
        again, expected = test["miss_after_miss"], test["expected_miss_after_miss"]
        if again is not None and expected is not None:
            text += (
                f"; after a miss the next frame misses with {again:.2f}, not {expected:.2f} "
                f"({test['joint_misses']} of {test['after_miss']} pairs of frames)"
            )
        yield text
