"""Why a requirement is lost, in words: explanation, report and assurance case all ask here, so they say the same.

All functions read the JSON of an explanation (`explain.schema.json`); `content` is the document and `part` one of its
explanations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verifier.base.documents import Content
from verifier.base.numbers import number_text
from verifier.base.words import counted, listed, name_text, percent

HOW_CAUSES_COUNT = (
    "A wrong report counts where, with the correct one in its place, losing was less probable (on average of the "
    "measured detector and a perfect one from there on). Each losing run counts once, for all wrong reports that "
    "counted on it together."
)


def violation_text(part: Content) -> str:
    """How probable the violation is, as a sentence."""
    found = part["violation"]
    verb = "holds" if found["satisfies_the_formula"] else "fails"
    if not found["patterns"]:
        return f"There is no run on which the formula {verb}: with these matrices none has a positive probability."
    if lost_at_once(part):
        return f"The formula {verb} whatever the detector reports."
    return f"The formula {verb} with probability {number_text(found['probability'])}."


def lost_at_once(part: Content) -> bool:
    """Whether the violation is certain from the start, whatever the detector reports."""
    patterns = part["violation"]["patterns"]
    starts = [pattern["members"][0]["irrevocable_after"] == 0 and not pattern["steps"] for pattern in patterns[:1]]
    return any(starts)


def cause_lines(content: Content, part: Content) -> Iterator[str]:
    """One line for each cause, the most probable first; their shares add up to the whole violation."""
    found = part["violation"]
    for cause in found["causes"]:
        yield f"Cause of {percent(cause['share'])} of the violation: {_cause_text(content, part, cause)}"
    if found["rest"] > 0:
        share = percent(found["rest"] / found["probability"])
        yield f"Cause of {share} of the violation: other sets of wrong reports, each less probable"


def _cause_text(content: Content, part: Content, cause: Content) -> str:
    kinds = _kinds(part, cause)
    if not kinds and not cause["others"]:
        perfect = number_text(part["perfect_perception"])
        return f"no wrong report; the planner and the dynamics lose (with perfect perception P would be {perfect})"
    told = [report_text(content, kind) for kind in kinds] + ["further wrong reports"] * cause["others"]
    corrected = number_text(cause["corrected"])
    if len(told) == 1:
        return f"{told[0]} (if correct, P would be {corrected})"
    alone = listed([number_text(kind["corrected"]) for kind in kinds], "or")
    each = f"; if only {'the first' if len(kinds) == 1 else 'one of them'}, {alone}" if kinds else ""
    return f"{listed(told)} together (if all were correct, P would be {corrected}{each})"


def correction_text(content: Content, part: Content) -> str | None:
    """Which correction of one kind, of two, and so on gains most; None where more than one kind gains no more."""
    best = part["violation"]["corrections"]
    told = [
        f"{'one kind' if len(one['wrong_reports']) == 1 else counted(len(one['wrong_reports']), 'kind')}, "
        f"{listed([report_text(content, kind) for kind in _kinds(part, one)])}: P would be "
        f"{number_text(one['corrected'])}"
        for one in best
    ]
    return f"Corrections that gain most. Of {'; of '.join(told)}" if len(best) > 1 else None


def _kinds(part: Content, named: Content) -> list[Content]:
    return [part["violation"]["wrong_reports"][number] for number in named["wrong_reports"]]


def report_text(content: Content, kind: Content) -> str:
    """A kind of wrong report: `ped in [0, 10) m reported as empty`."""
    where = name_text(content["bins"][kind["bin"]])
    return f"{name_text(kind['true'])} in {where} reported as {name_text(kind['reported'])}"


def patterns_text(part: Content) -> str:
    """How many patterns are listed, and what share of the violation they are."""
    found = part["violation"]
    many = counted(len(found["patterns"]), "pattern")
    if found["complete"]:
        return f"Losing runs, whenever it happened: {many}"
    which = "most probable" if found["ranked"] else "probable (others may be more so)"
    return f"Losing runs, whenever it happened: the {which} {many}, {percent(found['covered'])} of the violation"


def pattern_text(content: Content, part: Content, pattern: Content) -> str:
    """A pattern with its total probability: what counted on its steps, in order."""
    kinds = part["violation"]["wrong_reports"]
    steps = [_step_text(content, [[kinds[k] for k in reports] for reports in step]) for step in pattern["steps"]]
    told = ", then ".join(steps) or "no wrong report counted"
    return f"probability {number_text(pattern['probability'])}, {percent(pattern['share'])} of it: {told}"


def _step_text(content: Content, alternatives: Sequence[Sequence[Content]]) -> str:
    """What may have counted on a step; one object reported in one of several wrong ways is told at once."""
    single = [reports[0] for reports in alternatives if len(reports) == 1]
    if len({(kind["bin"], kind["true"]) for kind in single}) == 1 and len(single) == len(alternatives):
        labels = [name_text(kind["reported"]) for kind in single]
        return report_text(content, {**single[0], "reported": listed(labels, "or")})
    return " or ".join(
        listed([report_text(content, kind) for kind in reports]) or "no wrong report" for reports in alternatives
    )


def deviation_text(part: Content) -> str:
    """The standard deviation of P, with what it assumes."""
    assumed = part["posterior_deviation_assumes"]
    return f"P has a standard deviation of about {part['posterior_deviation']:.3g}, to first order, {assumed}"
