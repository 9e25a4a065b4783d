"""One point of a run's document, a requirement in a scenario: its name, and what its numbers say.

What decides a verdict is told here once; who checks, reports, argues or doubts asks here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from verifier.analysis.channel_test import channel_test
from verifier.base.documents import Content, json_values
from verifier.checking.verdicts import Decision, Verdict, VerdictRule, decide, verdict_of
from verifier.study.provenance import data_assumption

ROUNDING = 1e-9
"""By which a value may stand outside its bounds, or 0..1, because it was rounded."""
SOLVING = 1e-6
"""By which the value of a single matrix may stand outside its bounds, because it was solved for in doubles."""
LONGEST_FRACTION = 1_000_000
"""Characters of an exact probability."""


def is_probability(value: Any) -> bool:
    """A number from 0 to 1, up to rounding."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -ROUNDING <= value <= 1 + ROUNDING


def fraction_of(text: str) -> Fraction:
    """A decimal or a fraction of documents, however many digits an exact probability has.

    Raises:
        ValueError: it is none, its denominator is 0, or it is longer than any that is written.
    """
    if len(text) > LONGEST_FRACTION:
        raise ValueError(f"more than {LONGEST_FRACTION} characters")
    top, slash, bottom = text.partition("/")
    try:
        return Fraction(_long(top), _long(bottom)) if slash and len(text) >= 4000 else Fraction(text)
    except ZeroDivisionError:
        raise ValueError("the denominator is 0") from None


def _long(digits: str) -> int:
    """A whole number piece by piece: Python decodes no more than 4300 digits at once."""
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("no whole number")
    value = 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return sign * value


def block_text(environment: str, constants: Mapping[str, str]) -> str:
    """A true environment and swept constants, which make one Markov chain: `ped vmax=1`."""
    return " ".join([environment, *(f"{name}={value}" for name, value in constants.items())])


def scenario_text(point: Content) -> str:
    """A scenario in words, its initial state last: `ped vmax=1 x=1 v=1`."""
    initial = (f"{name}={value}" for name, value in point["initial"].items())
    return " ".join([block_text(point["environment"], point["constants"]), *initial])


def held_bounds(point: Content, verdict_from: str) -> tuple[float, float]:
    """The bounds of a point that were held against the target, where it has no exact probability.

    Of an interval not its ends, which are simulated, but all that other draws might have made of them. Without
    intervals and bounds the numerical ones count, whatever was asked for.
    """
    sure = point.get("sureness")
    if sure is None or verdict_from == "point":
        return point["lower"], point["upper"]
    if verdict_from == "interval":
        return sure["interval"]["lower_range"][0], sure["interval"]["upper_range"][1]
    return sure["confidence_bounds"]["lower"], sure["confidence_bounds"]["upper"]


def held_ends(point: Content, verdict_from: str) -> tuple[Fraction, Fraction]:
    """As `held_bounds`, as fractions; where P itself was held against the target and is exact, twice that."""
    if "exact" in point and ("sureness" not in point or verdict_from == "point"):
        exact = fraction_of(point["exact"])
        return exact, exact
    lower, upper = held_bounds(point, verdict_from)
    return Fraction(lower), Fraction(upper)


def following_verdict(
    point: Content, target: Mapping[str, str] | None, settings: Content, channel: Content
) -> Decision:
    """The verdict that follows from the numbers of a point, by the rule that a run decides by.

    Args:
        point: of the document of a run. That its probability is the same whatever the detector predicts is taken
            from it: the numbers do not show that.
        target: of the requirement.
        settings, channel: of the run's document.
    """
    if target is None:
        return Decision(Verdict.NO_TARGET)
    asked = target["comparison"], Fraction(target["probability"])
    return decided(point, target, settings, channel, verdict_of(*held_ends(point, settings["verdict_from"]), *asked))


def decided(
    point: Content, target: Mapping[str, str], settings: Content, channel: Content, model: Verdict
) -> Decision:
    """As `following_verdict`, where the numbers of the memoryless chain say `model`."""
    asked = target["comparison"], Fraction(target["probability"])
    whatever = point.get("whatever_predicted")
    return decide(
        model,
        Verdict.INCONCLUSIVE if whatever is None else verdict_of(whatever, whatever, *asked),
        channel_test(channel["classes"], point["draws"]),
        data_assumption(settings),
        VerdictRule(settings["strict"], settings["assume_memoryless"]),
        vacuous="vacuity" in point,
    )


def contradictions(
    point: Content, target: Mapping[str, str] | None, settings: Content, channel: Content | None = None
) -> Iterator[tuple[str, str]]:
    """(element below the point, what is wrong) where its numbers do not fit together.

    Args:
        point: accepted by the schema, its numbers finite.
        target: of the requirement, a probability.
        settings: of the run; they say what decides verdicts.
        channel: of the run; None for a point of a document whose verdicts say nothing of the channel.
    """
    apart = list(numbers_apart(point, settings))
    yield from apart
    if apart:
        return
    yield from _disordered(point, settings)
    if channel is None:
        ends = held_ends(point, settings.get("verdict_from", "point"))
        model = None if target is None else verdict_of(*ends, target["comparison"], Fraction(target["probability"]))
        yield from _otherwise("verdict", point["verdict"], (model or Verdict.NO_TARGET).value)
        return
    value = point["probability"]
    if abs(point.get("whatever_predicted", value) - value) > ROUNDING:
        yield "/whatever_predicted", f"expected the probability, {value}, or nothing"
    decision = following_verdict(point, target, settings, channel)
    yield from _otherwise("verdict", point["verdict"], decision.verdict.value)
    for name in ("basis", "condition", "reason"):
        yield from _otherwise(name, point[name], json_values(getattr(decision, name)))


def numbers_apart(point: Content, settings: Content) -> Iterator[tuple[str, str]]:
    """As `contradictions`, of the numbers of both engines alone."""
    for name, text in point["constants"].items():
        try:
            fraction_of(text)
        except ValueError as error:
            yield f"/constants/{name}", f"expected a number: {error}"
    value = point["probability"]
    for name in ("probability", "lower", "upper", "second_engine"):
        if not is_probability(point[name]) and settings.get("round_transitions") is None:
            yield f"/{name}", f"expected a probability, got {point[name]}"
    if not point["lower"] - ROUNDING <= value <= point["upper"] + ROUNDING:
        yield "/probability", f"expected a value within its own bounds, {point['lower']} to {point['upper']}"
    if point["lower"] > point["upper"]:
        yield "/lower", f"expected at most the upper bound, {point['upper']}, got {point['lower']}"
    if "exact" in point:
        try:
            exact = fraction_of(point["exact"])
        except ValueError as error:
            yield "/exact", f"expected a fraction: {error}"
            return
        if abs(exact - Fraction(value)) > ROUNDING:
            yield "/exact", f"expected what rounds to {value}"


def _otherwise(name: str, found: Any, following: Any) -> Iterator[tuple[str, str]]:
    if found != following:
        yield f"/{name}", f"expected {following}, which follows from the numbers beside it, got {found}"


def _disordered(point: Content, settings: Content) -> Iterator[tuple[str, str]]:
    if "sureness" not in point:
        return
    sure, asked = point["sureness"], settings["confidence"]
    for kind in ("interval", "confidence_bounds"):
        ends = sure[kind]
        if ends["lower"] > ends["upper"]:
            yield f"/sureness/{kind}", f"expected the lower end below the upper, got {ends['lower']}, {ends['upper']}"
    for end in ("lower", "upper"):
        low, high = sure["interval"][f"{end}_range"]
        if not low <= sure["interval"][end] <= high:
            yield f"/sureness/interval/{end}_range", f"expected a range that holds the end, {sure['interval'][end]}"
        found, bounds = sure["confidence_bounds"][f"attained_{end}"], sure["confidence_bounds"]
        if not bounds["lower"] - SOLVING <= found <= bounds["upper"] + SOLVING:
            told = f"{bounds['lower']} to {bounds['upper']}"
            yield (
                f"/sureness/confidence_bounds/attained_{end}",
                f"expected a value within the bounds, {told}, got {found}",
            )
    for name, told, expected in (
        ("level", sure["level"], asked["level"]),
        ("interval/kind", sure["interval"]["kind"], asked["interval"]),
        ("interval/draws", sure["interval"]["draws"], asked["draws"]),
        ("confidence_bounds/tier", sure["confidence_bounds"]["tier"], asked["bounds"]["tier"]),
    ):
        if told != expected:
            yield f"/sureness/{name}", f"expected {expected}, as in the settings of the run, got {told}"
