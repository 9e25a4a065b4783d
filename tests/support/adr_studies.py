"""ADR of one detector at thresholds from its baseline, under every condition: the two steps after each other."""

from types import SimpleNamespace

from verifier.robustness.adr import AdrSettings, detection_rates, pick_thresholds


def adr_study(baseline, conditions, settings=None):
    """`baseline` and `conditions` as `DetectionRates`."""
    settings = settings or AdrSettings()
    thresholds = pick_thresholds(baseline, settings)
    rates = {name: detection_rates(data, thresholds, settings) for name, data in conditions.items()}
    return SimpleNamespace(baseline=detection_rates(baseline, thresholds, settings), conditions=rates)
