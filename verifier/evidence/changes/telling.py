"""What changed between two bundles, told once."""

from collections.abc import Iterator

from verifier.base.numbers import number_text
from verifier.base.words import counted, listed, name_text, some_of
from verifier.evidence.changes.claims import ChangeRecord, ClaimRecord, DiffResult
from verifier.evidence.context import DUTIES
from verifier.evidence.telling import CLAIM
from verifier.telling.blocks import Block, Listing, Paragraph, Table

_DUTIES = {**DUTIES, "triggers": "that the list of triggering conditions is complete"}
_RELATIONS = {
    "unaffected": "unaffected: equal inputs reach it",
    "equal": "made again, equal",
    "doubtful": "newly doubtful",
    "new": "new",
    "gone": "no longer claimed",
}


def diff_blocks(found: DiffResult) -> Iterator[Block]:
    """What changed, every claim, and what has to be done."""
    sides = (f"{name_text(each.name)} ({each.digest[:16]}...)" for each in (found.old, found.new))
    yield Paragraph(" -> ".join(sides))
    if not found.changes:
        yield Paragraph("Nothing differs by which a claim falls.")
    else:
        rows = tuple((each.changed, some_of(list(each.what)), _again(each)) for each in found.changes)
        yield Table("What changed", ("change", "what", "to compute again"), rows)
    claims = tuple(
        (_claim(each), each.before or "-", each.after or "-", _relation(each), _falls(each)) for each in found.claims
    )
    yield Table("Claims", ("claim", "before", "now", "compared", "falls by"), claims)
    activities = dict.fromkeys(
        f"{one.text} ({_DUTIES[one.duty]}): "
        f"{f'done, {listed([*map(name_text, one.done_by)])}' if one.done_by else 'open, no new document'}"
        for each in found.changes
        for one in each.repeat
    )
    if activities:
        yield Paragraph("What people do again:", "lead")
        yield Listing(tuple(activities))
    if found.findings_gone:
        yield Paragraph("Review findings that the new bundle does not have, or not as they were:", "lead")
        yield Listing(tuple(map(name_text, found.findings_gone)))
    yield Paragraph(_whole(found), "lead")
    yield Paragraph("Files were compared with their manifests; whether a bundle holds is for verify evidence check.")


def _again(each: ChangeRecord) -> str:
    return f"{each.recompute}: {'in the new bundle' if each.recomputed else 'open'}"


def _claim(each: ClaimRecord) -> str:
    if each.kind == "met":
        return f"{name_text(each.name)} is met, planner {name_text(each.planner)}"
    if each.kind == "triggers":
        return CLAIM
    if each.kind == "risk":
        return f"per hour: {name_text(each.name)}"
    return f"{name_text(each.name)}: {DUTIES[each.kind]}" if each.name else DUTIES[each.kind]


def _relation(each: ClaimRecord) -> str:
    told = _RELATIONS.get(each.relation, each.relation)
    return told if each.worse is None else f"{told}; worse with probability {number_text(each.worse)}"


def _falls(each: ClaimRecord) -> str:
    if not each.falls_by:
        return "-"
    by = listed([name.replace("_", " ") for name in each.falls_by])
    return f"{by}; stands again" if each.stands_again else by


def _whole(found: DiffResult) -> str:
    fell = [each.stands_again for each in found.claims if each.falls_by]
    lost = found.open_ - fell.count(False)
    said = "No claim falls."
    if fell:
        told = counted(len(fell), "claim falls", "claims fall")
        said = f"{told}; {fell.count(False)} of these do not stand again yet."
    return said + (
        f" {counted(lost, 'other claim has', 'other claims have')} a status worse than before." if lost else ""
    )
