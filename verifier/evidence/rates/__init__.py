"""From a probability per encounter to a rate per hour, compared with an acceptance criterion."""

from verifier.evidence.rates.exposure import Exposure
from verifier.evidence.rates.hazard import Acceptance, HazardRate, RateQuestion, hazard_rate

__all__ = ["Acceptance", "Exposure", "HazardRate", "RateQuestion", "hazard_rate"]
