"""No path leads from what nobody tested, or somebody only said, to a supported claim: over random cases."""

import random
from fractions import Fraction

import pytest
from run_documents import channel, document, matrices, point, requirement, run

from verifier.base.documents import json_values
from verifier.evidence.case.building import build_case
from verifier.evidence.context import DUTIES, CaseContext, Detector
from verifier.evidence.declarations import NUMBERS, Declarations, Disposition, Evidence
from verifier.evidence.defeaters.finding import find_defeaters
from verifier.evidence.defeaters.values import Claim, answers_to
from verifier.evidence.rates.document import Acceptance
from verifier.evidence.rates.exposure import Exposure
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate
from verifier.evidence.status import Grade

SHOWING = (Grade.TESTED, Grade.DOCUMENTED)


def generated(seed):
    """Documents and context of a random case, and what is known of it."""
    rng = random.Random(seed)
    p_value = rng.choice([0.4, None, 0.0001, 0.4, None])
    points, environments = [], ["ped", "obs"]
    free = [rng.random() < 0.3 for _ in environments]
    for environment, any_detector in zip(environments, free, strict=True):
        more = {"whatever_predicted": 1, "basis": "any_dependence"} if any_detector else {}
        if rng.random() < 0.15:
            over = [{"kind": "ended", "text": "it is over"}]
            points.append(point(1.0, "vacuous", (0.92, 1.0), environment=environment, vacuity=over, **more))
        elif rng.random() < 0.1 and not any_detector:
            points.append(point(0.9, "inconclusive", (0.8, 0.95), environment=environment))
        else:
            points.append(point(1.0, "satisfied", (0.92, 1.0), environment=environment, draws=["ped"], **more))
    order = ("satisfied", "vacuous", "inconclusive")
    told = [each["verdict"] for each in points]
    over_all = max([each for each in told if each != "vacuous"] or told, key=order.index)
    table = matrices(
        sequences=[{"name": "0001", "frames": 1, "counts": [[0, 0, 0, 20]]}] if rng.random() < 0.5 else None
    )
    given = run(
        [requirement("stops", points, worst=told.index(over_all))],
        inputs=("1" * 64, "2" * 64, table.sha256),
        channel=channel(p_value),
        assume_memoryless=True,
        **({"endless": True} if rng.random() < 0.15 else {}),
    )
    documents = [given, table]
    if rng.random() < 0.3:
        asked = RateQuestion("stops", acceptance=Acceptance(Fraction(2), ""))
        rate = hazard_rate(given, asked, {EVERY: Exposure.stated(12)})
        documents.append(document(json_values(rate), "rate.json"))
    claims, thorough = [*DUTIES, *NUMBERS], rng.random() < 0.3
    evidence = {
        name: Evidence(
            name=name,
            claims=(name,),
            title=name,
            sha256="0" * 64,
            grade=rng.choice([*SHOWING, *SHOWING, Grade.DOCUMENTED if thorough else Grade.DECLARED]),
            fault="the file is missing" if rng.random() < (0.005 if thorough else 0.05) else "",
        )
        for name in claims
        if rng.random() < (0.93 if thorough else rng.choice([0.5, 1]))
    }
    detector = Detector("D", "1", rng.choice([None, (), ("0002",), ("0001",)]))
    people = {name: "N. N." for name in DUTIES if rng.random() < 0.5}
    plain = CaseContext(detector=detector, responsible=people, declared=Declarations(evidence))
    dispositions = {}
    for key, each in answers_to(find_defeaters(documents, plain, {}), plain.declared).items():
        if rng.random() < 0.5 and evidence:
            dispositions[key] = Disposition(
                decision=rng.choice(["refuted", "accepted", "open"]), reason="r", by="b", dated=None,
                doubt=rng.choice([each.digest, each.digest, "0" * 8]), evidence=rng.choice(list(evidence)),
            )  # fmt: skip
    context = CaseContext(detector=detector, responsible=people, declared=Declarations(evidence, dispositions))
    unverified = {given.sha256: "its inputs are not here"} if rng.random() < 0.15 else {}
    return documents, context, unverified, p_value, free


def shows(context, claim):
    """Whether sound evidence above a declaration is given for a claim."""
    found = context.declared.evidence.get(claim)
    return found is not None and found.grade in SHOWING and not found.fault


def below(case, name):
    """The elements under a goal, contexts included; what is vacuous beside others counts for nothing."""
    pending, found = [name], []
    while pending:
        each = case.by_id[pending.pop()]
        found.append(each)
        parts = [case.by_id[part] for part in each.supported_by]
        counted = [part for part in parts if part.status is None or part.status.value != "vacuous"] or parts
        pending += [*(part.id for part in counted), *each.in_context_of]
    return found


def look_at(seed):
    """Checks one case; gives the statuses in it."""
    documents, context, unverified, p_value, free = generated(seed)
    given = documents[0]
    defeaters = find_defeaters(documents, context, {})
    case = build_case(documents, context, defeaters, {}, unverified=unverified)
    answers = answers_to(defeaters, context.declared)
    for each in case.elements:
        if each.status is not None and each.status.value == "supported":
            for part in below(case, each.id):
                doubted = [one for one in case.challengers(part.id) if not one.defeated]
                assert not doubted, (seed, each.id, part.id)
                assert not part.undeveloped, (seed, each.id, part.id)
                if part.id.startswith("A") and part.grade is not None:
                    # Grounds stand with the whole strategy; a goal names its own.
                    owners = [one for one in below(case, each.id) if part.id in one.in_context_of]
                    resting = [one for one in owners if one.id.startswith("G")]
                    assert not resting or part.grade in SHOWING, (seed, each.id, part.id)
            assert each.grade not in (Grade.DECLARED, Grade.UNTESTED), (seed, each.id)
    # What a scenario needs, from how the case was made.
    for at, any_detector in enumerate(free):
        goal = case.by_id[case.goals[Claim(given.sha256, "stops", "p", at)]]
        memory = any_detector or p_value == 0.4 or (p_value is None and shows(context, "memory"))
        if p_value == 0.0001 and not any_detector:
            memory = False
        needed = memory and (any_detector or shows(context, "statistics")) and not unverified
        if goal.status.value == "supported":
            assert needed, (seed, at)
            assert all(
                answers[f"{one.kind}/stops"].state == "refuted"
                for one in defeaters
                if any(claim.point in (None, at) for claim in one.claims)
            ), (seed, at)
        elif not any(any(claim.point in (None, at) for claim in one.claims) for one in defeaters):
            verdict = given.result.requirements[0].points[at].verdict.value
            assert not (needed and verdict == "satisfied"), (seed, at, goal.told)
    for duty, text in (
        ("model", "The system model"),
        ("odd", "The system is used"),
        ("requirements", "The requirements"),
    ):
        (goal,) = [each for each in case.elements if each.text.startswith(text) and each.status is not None]
        assert (goal.status.value == "supported") == shows(context, duty), (seed, duty)
    return {each.status.value for each in case.elements if each.status is not None} | {f"top {case.status.value}"}


def test_no_path_leads_from_what_nobody_showed_to_a_supported_claim():
    found = set().union(*map(look_at, range(60)))
    assert {"supported", "conditional", "vacuous", "undeveloped", "defeated", "inconclusive"} <= found


@pytest.mark.slow
def test_no_path_in_a_thousand_cases():
    found = set().union(*map(look_at, range(1000)))
    assert {"top supported", "top conditional", "top undeveloped", "top defeated", "top inconclusive"} <= found


def test_a_faulty_document_takes_what_another_one_shows():
    points = [point(1.0, "satisfied", (0.92, 1.0), draws=["ped"])]
    given = run([requirement("stops", points)], channel=channel(None), assume_memoryless=True)
    good = Evidence(name="a", claims=("memory", "statistics", "odd"), title="a", sha256="0" * 64)
    for fault, stands in (("", "supported"), ("the file is missing", "conditional")):
        other = Evidence(name="b", claims=("memory", "odd"), title="b", sha256="1" * 64, fault=fault)
        context = CaseContext(declared=Declarations({"a": good, "b": other}))
        case = build_case([given], context, find_defeaters([given], context, {}), {})
        assert case.by_id[case.goals[Claim(given.sha256, "stops", "p")]].status.value == stands
        (odd,) = [each for each in case.elements if each.text.startswith("The system is used") and each.status]
        assert odd.status.value == ("defeated" if fault else "supported")
