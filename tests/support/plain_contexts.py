"""Counts by context as the definition says them: one frame after the other, one history of outcomes per series."""

from collections import Counter
from itertools import pairwise

from plain_counter import EMPTY, _extra_place, _place, _told


def name_of(history, kind, cap):
    """The context after these outcomes, True for a right one, oldest first."""
    if kind == "none":
        return "*"
    if not history:
        return "start"
    if kind == "last":
        return "".join("r" if right else "w" for right in history[-cap:])
    run = next((k for k, right in enumerate(reversed(history)) if right != history[-1]), len(history))
    return f"{'right' if history[-1] else 'wrong'}*{min(run, cap)}"


def numbered(frames):
    """{frame: number within its sequence}: on the grid of the smallest step."""
    found = {}
    for sequence in set(frames):
        own = [k for k, name in enumerate(frames) if name == sequence]
        step = min((after - before for before, after in pairwise(own)), default=1)
        regular = all((k - own[0]) % step == 0 for k in own)
        found |= {k: (k - own[0]) // step if regular else at for at, k in enumerate(own)}
    return found


def twice_in_a_frame(objects):
    seen = Counter((each.track, each.kind, each.frame) for each in objects if each.track >= 0)
    return any(number > 1 for number in seen.values())


def plain_contexts(frames, objects, reports, matched, nearest, plain, kind, cap, gaps, *, labelling, threshold,
                   unmatched, duplicates):  # fmt: skip
    """Counter of (sequence, bin, context, reported set, true set)."""
    found, number = Counter(), numbered(frames)
    report_of = {a: d for d, a in matched.items() if reports[d].score >= threshold}
    false_positives = (unmatched, duplicates) != ("drop", "drop")
    history, last = {}, {}

    def context(series, frame, right, policy):
        """That before this outcome; the outcome enters it."""
        if series is None:
            return "untracked"
        missing = number[frame] - last.get(series, number[frame] - 1) - 1
        if series not in history or (missing and policy == "break"):
            history[series] = []
        elif policy == "miss":
            history[series] += [False] * missing
        before = name_of(history[series], kind, cap)
        history[series].append(right)
        last[series] = number[frame]
        return before

    for frame, sequence in enumerate(frames):
        here = [k for k, each in enumerate(objects) if each.frame == frame]
        extra = [
            (d, _extra_place(d, sequence, objects, reports, nearest, plain, unmatched, duplicates))
            for d, each in enumerate(reports)
            if each.frame == frame and each.score >= threshold and d not in matched
        ]
        places = [(k, *more) for k in range(plain.distance_count) for more in plain.all_place_bins(sequence)]
        taken = {_place(objects[k], sequence, plain) for k in here}
        if labelling == "class":
            for k in here:
                told, true = _told([k], objects, reports, report_of), frozenset({objects[k].kind})
                series = None if objects[k].track < 0 else (sequence, objects[k].track, objects[k].kind)
                before = context(series, frame, told == true, gaps)
                place, bins = _place(objects[k], sequence, plain), plain.object_bins(objects[k])
                if place is not None and bins is not None:
                    found[sequence, (*place, *bins), before, told, true] += 1
        else:
            for place in taken - {None}:
                members = [k for k in here if _place(objects[k], sequence, plain) == place]
                told = {reports[report_of[k]].kind for k in members if k in report_of}
                told |= {reports[d].kind for d, at in extra if at == place}
                true = frozenset(objects[k].kind for k in members)
                tracks = frozenset((objects[k].track, objects[k].kind) for k in members)
                series = None if min(tracks)[0] < 0 else (sequence, tracks)
                found[sequence, place, context(series, frame, told == true, "break"), frozenset(told), true] += 1
        for place in places:
            if place in taken:
                continue
            alarms = [d for d, at in extra if at == place]
            if labelling == "proposition":
                told = frozenset(reports[d].kind for d in alarms)
            else:
                surest = min(alarms, key=lambda d: (-reports[d].score, d)) if alarms else None
                told = EMPTY if surest is None else frozenset({reports[surest].kind})
            series = (sequence, "free", place) if false_positives else None
            before = context(series, frame, told == EMPTY, "break")
            for bins in plain.all_object_bins if labelling == "class" else ((),):
                found[sequence, (*place, *bins), before, told, EMPTY] += 1
    return found
