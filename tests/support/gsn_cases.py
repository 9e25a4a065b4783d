"""Assurance cases made by hand, small and large, and a name that means ill."""

from run_documents import point, requirement, run

from verifier.evidence.case.building import build_case
from verifier.evidence.context import CaseContext
from verifier.evidence.defeaters.finding import find_defeaters

HOSTILE = (
    "</text><script>alert(1)</script><image href='https://e.vil'/> \u202e\x1b[31m \ud800 &amp; \"q\" 漢字"
    + "w" * 3000
)


def case_of(requirements, **settings):
    given = run(requirements, **settings)
    return build_case([given], CaseContext(), find_defeaters([given], CaseContext(), {}), {})


def small():
    points = [
        point(0.96, "satisfied", (0.92, 0.99)),
        point(0.5, "violated", (0.4, 0.6), environment="obs"),
        point(0.9, "inconclusive", (0.8, 0.95), environment="empty"),
    ]
    return case_of([requirement(name, points) for name in ("a", "b", "c")], round_transitions=3)


def large():
    """200 scenario goals under 20 requirements."""
    return case_of(
        [
            requirement(
                f"requirement_{number}",
                [
                    point(0.96, "satisfied", (0.92, 0.99), environment=("ped", "obs")[k % 2], initial={"x": k})
                    for k in range(10)
                ],
            )
            for number in range(20)
        ]
    )
