"""Results of `verify run` as values, made by hand from few numbers."""

from made_runs import SETTINGS

from verifier.analysis.channel_test import Channel
from verifier.base.documents import read_document
from verifier.checking.verdicts import Verdict
from verifier.study.points import Point, PointBounds, PointInterval, Uncertainty
from verifier.study.records import SettingsRecord
from verifier.study.results import RequirementResult, RunInput, RunResult, Target


def settings_of(**more):
    """Settings in which everything is the default, but for what is given as JSON values."""
    return read_document(SettingsRecord, SETTINGS | more, "settings.json")


def channel_of(values):
    """The test of a channel from JSON values."""
    return read_document(Channel, values, "channel.json")


def point_of(probability, environment="ped", initial=None, verdict=Verdict.NO_TARGET, width=0.0, **more):
    """One scenario; both engines say the same."""
    found = {"constants": {}, "second_engine": probability, "basis": None, "condition": None, "reason": None}
    found |= {"lower": probability - width, "upper": probability + width, "draws": ()}
    found |= {"environment": environment, "initial": {"x": 1} if initial is None else initial, "verdict": verdict}
    return Point(probability=probability, **{**found, **more})


def uncertainty_of(interval, bounds, ranges=None, kind="credible", draws=100, tier="independent_items"):
    """Interval and confidence bounds from their ends, at level 0.95."""
    low, high = ranges or ((interval[0], interval[0]), (interval[1], interval[1]))
    return Uncertainty(
        0.95, PointInterval(kind, *interval, low, high, draws), PointBounds(*bounds, *bounds, False, tier)
    )


def requirement_of(*points, comparison=">=", target=None, name="r", planner="p", **more):
    """One requirement; `target` is a fraction, or None."""
    asked = None if target is None else Target(comparison, target)
    return RequirementResult(name=name, planner=planner, formula="G a", target=asked, points=points, **more)


def run_of_requirements(*requirements, title="t", settings=None, channel=None, remarks=(), **more):
    """A run of one spec."""
    return RunResult(
        title=title,
        inputs=(RunInput("spec", "a.ltl", "0" * 64),),
        settings=settings or settings_of(),
        channel=channel or Channel(classes=()),
        versions={"storm": "2.0.0"},
        remarks=remarks,
        requirements=requirements,
        **more,
    )
