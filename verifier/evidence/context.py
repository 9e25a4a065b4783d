"""What a safety case is about, beside what was computed: system, ODD, detector, data, exposure, acceptance, people.

All of it is stated by people; none of it can be computed here. What is not stated is None or empty, and the case then
says "not stated".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from verifier.evidence.rates.exposure import Exposure
from verifier.evidence.rates.hazard import EVERY, Acceptance

DUTIES: Mapping[str, str] = {
    "requirements": "that the requirements and their targets are right, and complete for the hazards",
    "model": "that the system model represents the deployed system",
    "odd": "that the operational design domain is kept",
    "training_data": "that the detector was trained on other data than it was tested on",
    "test_data": "that the test data represent the operational design domain",
    "assumptions": "that the assumptions hold",
    "exposure": "how often encounters come",
    "acceptance": "that the acceptance criteria are right",
    "independence": "that verification is independent of development",
}
"""What is not shown by this evidence: key in the file -> what they answer for."""


@dataclass(frozen=True)
class Detector:
    """The machine-learnt component.

    Attributes:
        name, version: of it; empty where not stated.
        trained_on: names of the sequences it was trained on, `*` and `?` standing for other characters; None where
            that is not stated, () where it is said to have seen none of them.
    """

    name: str = ""
    version: str = ""
    trained_on: tuple[str, ...] | None = None


@dataclass(frozen=True)
class CaseContext:
    """Everything that people state.

    Attributes:
        system, odd, dataset: in words; empty where not stated.
        detector: the machine-learnt component.
        exposures: environment, or `verifier.evidence.rates.hazard.EVERY` -> encounters per hour.
        acceptances: requirement -> how often per hour it may fail.
        responsible: key of `DUTIES` -> who answers for it.
        file: name and SHA-256 of the file it was read from; None where it was not read from one.

    Raises:
        ValueError: a duty that is not known.
    """

    system: str = ""
    odd: str = ""
    dataset: str = ""
    detector: Detector = Detector()
    exposures: Mapping[str, Exposure] = field(default_factory=dict)
    acceptances: Mapping[str, Acceptance] = field(default_factory=dict)
    responsible: Mapping[str, str] = field(default_factory=dict)
    file: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        unknown = [key for key in self.responsible if key not in DUTIES]
        if unknown:
            raise ValueError(f"unknown duties {unknown}; known: {', '.join(DUTIES)}")

    def exposures_for(self, environments: Collection[str]) -> dict[str, Exposure]:
        """Those to every encounter or one of these environments; a context may tell of more than a run is about."""
        return {name: each for name, each in self.exposures.items() if name == EVERY or name in environments}
