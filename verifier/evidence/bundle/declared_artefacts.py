"""What people declare of the case, in a bundle: whether it fits model and spec, and the rates that follow from it."""

from __future__ import annotations

from collections.abc import Iterable

from verifier.base.errors import InputError, LimitError, Place, UsageError, unknown_name
from verifier.base.files import document_text
from verifier.evidence.bundle.layout import numbered_file
from verifier.evidence.bundle.making import omission, omitted_text
from verifier.evidence.bundle.parts import Parts
from verifier.evidence.context import CaseContext
from verifier.evidence.rates.document import rate_document
from verifier.evidence.rates.hazard import EVERY, RateQuestion, hazard_rate
from verifier.study.case import Study
from verifier.study.results import RunResult

RATES = "rates/"
OMITTED_RATES = "rates/omitted.json"
"""Rates that cannot be made, with the reason; only where there are any."""


def check_context(context: CaseContext, path: str | None, rebuilt: Study) -> None:
    """Refuse a context that cannot be meant for this system, before anything is computed.

    Args:
        context: as read.
        path: of its file in the bundle.
        rebuilt: the system.

    Raises:
        InputError: it names what model or spec do not have, or says only of some environments how often they come.
    """
    inputs = rebuilt.inputs
    _refuse_unknown("environment", "exposure", context.exposures, {*inputs.model.environments, EVERY}, path)
    names = [each.name for each in inputs.spec.requirements]
    _refuse_unknown("requirement", "acceptance", context.acceptances, names, path)
    if EVERY in context.exposures and len(context.exposures) > 1:
        raise InputError(
            "an exposure to every encounter leaves no room for one to a single environment",
            Place(path, path="exposure"),
        )
    run = dict.fromkeys(block.environment for block in rebuilt.grid.blocks)
    told = context.exposures_for(run)
    missing = [name for name in run if told and EVERY not in told and name not in told]
    if missing:
        raise InputError(
            f"no exposure is given for {', '.join(missing)}, which is checked as well",
            Place(path, path="exposure"),
            "say how often each environment is met; 0 if never",
        )


def made_rates(parts: Parts) -> dict[str, str]:
    """Path -> text of a rate for every requirement with a target, where the context has exposures."""
    context, run = parts.context, parts.run
    texts: dict[str, str] = {}
    omitted: list[dict[str, str]] = []
    exposures = context.exposures_for(parts.result.settings.environments)
    for number, path in rate_paths(parts.result).items() if exposures else ():
        each = parts.result.requirements[number - 1]
        asked = RateQuestion(each.name, each.planner, acceptance=context.acceptances.get(each.name))
        try:
            found = hazard_rate(run, asked, exposures)
        except (UsageError, LimitError) as error:
            omitted.append(omission(path, error))
        else:
            texts[path] = document_text(rate_document(found, context.file))
    return texts | ({OMITTED_RATES: omitted_text(omitted)} if omitted else {})


def rate_paths(run: RunResult) -> dict[int, str]:
    """Number in the document of a run, from 1 -> where the rate of a requirement with a target lies."""
    return {
        number: numbered_file(RATES.rstrip("/"), number, each.name)
        for number, each in enumerate(run.requirements, 1)
        if each.target is not None
    }


def _refuse_unknown(kind: str, table: str, given: Iterable[str], known: Iterable[str], path: str | None) -> None:
    for name in given:
        if name not in known:
            message, hint = unknown_name(kind, name, known)
            raise InputError(message, Place(path, path=f"{table}.{name}"), hint)
