"""Made-up risks: environments, conditions and factors with any ends, and what must come out, by brute force."""

from fractions import Fraction
from itertools import product

from verifier.evidence.rates.document import RateExposure
from verifier.evidence.risk.records import CHAIN, RiskCell, RiskEnvironment, RiskHazard, RiskShare, RiskUnlisted

CASE = """
[exposure.ped]
encounters = 240
hours = 20
[condition.day]
matrices = "day.json"
share = [0.85, 0.95]
source = "Fleet log L, 2026"
[condition.night]
matrices = "night.json"
share = [0.05, 0.15]
[unknown]
at_most = 0
[hazard.H1]
event = "no_hit"
environments = ["ped"]
severity = "S3"
source = "HARA 3.2"
exposed = 1
uncontrolled = [0.3, 0.5]
severe = [0.1, 0.2]
accept_harm_per_hour = 1e-3
"""
"""By day and by night; the matrices lie beside it."""


def shown(claim):
    """A document that shows a claim."""
    return (
        f'[evidence.{claim}]\nclaim = "{claim}"\ntitle = "T"\nfile = "docs/{claim}.txt"\nauthor = "N. N."\n'
        "date = 2026-05-04\n"
    )


def share(name, lower, upper, part=None, error=Fraction(0)):
    lower, upper = Fraction(lower), Fraction(upper)
    return RiskShare(name=name, lower=lower, upper=upper, part=part or f"of {name}", error=error, source="")


def exposure(lower, upper, per_hour=None):
    return RateExposure("interval", None, None, None, per_hour, float(lower), float(upper), "")


def environment(name, met, shares, unlisted=0.0, **more):
    """`shares` are pairs of ends, of conditions c0, c1, ..."""
    named = tuple(share(f"c{k}", *ends) for k, ends in enumerate(shares))
    missed = RiskUnlisted(upper=unlisted)
    return RiskEnvironment(
        name=name, exposure=exposure(*met), part=f"encounters of {name}", error=Fraction(0), unlisted=missed,
        shares=named, **more,
    )  # fmt: skip


def hazard(chances, chain=(), accepted=None, name="H1"):
    """`chances`: environment -> pairs of ends, of conditions c0, c1, ...; `chain`: pairs of ends."""
    cells = tuple(
        RiskCell(environment=where, condition=f"c{k}", lower=low, upper=high, estimate=low, scenario="s", run=0)
        for where, pairs in chances.items()
        for k, (low, high) in enumerate(pairs)
    )
    factors = tuple(share(link, *ends) for link, ends in zip(CHAIN, chain, strict=False))
    return RiskHazard(
        name=name,
        requirement="r",
        planner="p",
        environments=tuple(chances),
        chain=factors,
        accepted=accepted,
        cells=cells,
    )


def random_case(rng, conditions=None):
    """Environments and a hazard in them."""

    def pair(most=1.0):
        return sorted(rng.choice([0.0, rng.random() * most, most]) for _ in range(2))

    count = conditions or rng.randint(1, 6)
    places, chances = [], {}
    for k in range(rng.randint(1, 2)):
        inside = [rng.randint(0, 100) for _ in range(count)]
        inside[0] += not sum(inside)
        shares = [Fraction(each, sum(inside)) for each in inside]
        ends = [(max(each - Fraction(rng.randint(0, 40), 100), 0), min(each + Fraction(rng.randint(0, 40), 100), 1))
                for each in shares]  # fmt: skip
        name = f"e{k}"
        places.append(environment(name, pair(20.0), ends, rng.choice([0.0, rng.random(), 1.0])))
        chances[name] = [pair() for _ in range(count)]
    chain = [[Fraction(end).limit_denominator(1000) for end in pair()] for _ in range(rng.randint(0, 3))]
    return places, hazard(chances, chain)


def vertices(shares):
    """Every vertex of the shares within their ends that add up to 1: at most one is at neither end."""
    for free in range(len(shares)):
        others = [each for k, each in enumerate(shares) if k != free]
        for corner in product(*others):
            rest = 1 - sum(corner, Fraction(0))
            if shares[free][0] <= rest <= shares[free][1]:
                yield (*corner[:free], rest, *corner[free:])


def brute(places, asked):
    """((lower, upper) of behaviour, of harm): over every corner of everything, and every vertex of the shares."""
    least = most = Fraction(0)
    for where in places:
        cells = [cell for cell in asked.cells if cell.environment == where.name]
        met = [Fraction(end) for end in (where.exposure.lower, where.exposure.upper)]
        unlisted = {Fraction(0), Fraction(where.unlisted.upper)}
        found = set()
        for weights in set(vertices([each.ends for each in where.shares])):
            # For given shares each probability is at one of its ends, whichever is the worse or the better.
            terms = [
                [w * Fraction(end) for end in (cell.lower, cell.upper)]
                for w, cell in zip(weights, cells, strict=True)
            ]
            for inside in (sum(map(min, terms)), sum(map(max, terms))):
                for often, u, harmful in product(met, unlisted, (0, 1)):
                    found.add(often * ((1 - u) * inside + u * harmful))
        least, most = least + min(found), most + max(found)
    corners = set()
    for rate in (least, most):
        for factors in product(*(each.ends for each in asked.chain)):
            harm = rate
            for factor in factors:
                harm *= factor
            corners.add(harm)
    return (least, most), (min(corners), max(corners))
