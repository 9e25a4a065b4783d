"""Whether the parts of results that were measured fit together: collision maps, curves, rates, images, matrices."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from verifier.base.documents import fraction_of, json_values, read_document
from verifier.base.errors import UsageError
from verifier.closedloop.curvefiles import curves_of
from verifier.evidence.documents import Document
from verifier.evidence.following.assessments import assess_misfits
from verifier.evidence.following.collisions import collision_misfits
from verifier.evidence.following.numbers import Misfits, misfits, near
from verifier.evidence.following.rates import rate_misfits
from verifier.evidence.following.risks import risk_misfits
from verifier.evidence.following.trade_offs import trade_offs_misfits
from verifier.evidence.following.triggers import triggers_misfits
from verifier.evidence.resting import (
    check_criterion,
    check_once,
    refuse,
)
from verifier.perception.confusion.document_reader import DocumentReader

if TYPE_CHECKING:
    from verifier.collision.document import CollisionStudy
    from verifier.evidence.rates.document import RateResult
    from verifier.robustness.mutators.batch_result import MutateResult


def check_collision(document: Document) -> None:
    """Inputs are as they are said to be; maps, scores and rankings follow from each other."""
    from verifier.collision.document import CollisionInput  # with all that a study needs, for studies only

    study: CollisionStudy = document.result
    known = [each.name for each in fields(CollisionInput)]
    for k, source in enumerate(study.inputs):
        told = {key: source[key] for key in known if key in source}
        read_document(CollisionInput, told, document.name, f"/inputs/{k}")
    refuse_misfits(document, collision_misfits(study))


def check_curves(document: Document) -> None:
    """Curves are read as `robroc` reads them."""
    curves_of(document.content, document.name)


def check_trade_offs(document: Document) -> None:
    """Tables and choices follow from the curves."""
    refuse_misfits(document, trade_offs_misfits(document.result))


def check_rate(document: Document) -> None:
    """Bounds, factors and verdict of a rate follow from each other."""
    content: RateResult = document.result
    limit = None
    if content.acceptance is not None:
        limit = fraction_of(content.acceptance.per_hour)
    check_criterion(document, limit)
    total = 0.0
    for k, term in enumerate(content.terms):
        exposure, where = term.exposure, f"/terms/{k}/exposure"
        if exposure.per_hour is not None and not exposure.lower <= exposure.per_hour <= exposure.upper:
            refuse(document, f"{where}/per_hour", "expected a rate within its own bounds")
        if exposure.lower > exposure.upper:
            refuse(document, f"{where}/lower", f"expected at most the upper bound, {exposure.upper}")
        hours = None if exposure.hours is None else fraction_of(exposure.hours)
        if hours is not None and not _is_rate(exposure.encounters, exposure.per_hour, hours):
            refuse(document, f"{where}/per_hour", "expected encounters by hours")
        total += term.probability * (exposure.per_hour or 0.0)
    if content.per_hour is not None and not near(total, content.per_hour):
        refuse(document, "/per_hour", f"expected {total}, the sum of probability and exposure over the terms")
    listed = [("/bounds", content.bounds)]
    listed += [(f"/other_bounds/{k}", each) for k, each in enumerate(content.other_bounds)]
    check_once(document, "/other_bounds", [bounds.source for _, bounds in listed])
    for pointer, bounds in listed:
        if bounds.lower > bounds.upper:
            refuse(document, f"{pointer}/lower", f"expected at most the upper bound, {bounds.upper}")
        if bounds.level is None or bounds.error_probability is None:
            continue
        level = 1 - (bounds.error_probability + bounds.error_exposure)
        if not near(level, bounds.level):
            refuse(document, f"{pointer}/level", f"expected {level}, 1 minus both errors")
    refuse_misfits(document, rate_misfits(content))


def _is_rate(encounters: int | None, per_hour: float | None, hours: Fraction) -> bool:
    return encounters is not None and per_hour is not None and near(float(encounters), per_hour * float(hours))


def check_risk(document: Document) -> None:
    """What a risk states fits together; what follows from it is refused where it is read."""
    refuse_misfits(document, risk_misfits(document.result))


def check_triggers(document: Document) -> None:
    """Triggering conditions stand once, with every pair of them."""
    refuse_misfits(document, triggers_misfits(document.result))


def check_assess(document: Document) -> None:
    """What an assessment computes from its own numbers."""
    refuse_misfits(document, assess_misfits(document.result))


def refuse_misfits(document: Document, found: Misfits) -> None:
    """Refuse a document at the first element that contradicts others."""
    for pointer, message in found:
        refuse(document, pointer, message)


def check_mutate(document: Document) -> None:
    """The totals are those of the images, whose files lie in the folders of their mutations; a mutation is the one
    that its text stands for."""
    from verifier.robustness.mutators.batch_result import named_mutation  # with all mutations, for these only
    from verifier.robustness.mutators.sweeps import parse_mutation

    result: MutateResult = document.result
    for k, told in enumerate(result.mutations):
        try:
            follows = named_mutation(parse_mutation(told.text))
        except UsageError as error:
            refuse(document, f"/mutations/{k}/text", str(error))
        refuse_misfits(document, misfits(f"/mutations/{k}", json_values(told), json_values(follows)))
    check_once(document, "/mutations", [told.folder for told in result.mutations])
    images, counts = result.images, result.counts
    check_once(document, "/images", [image.name for image in images])
    written = sum(len(image.outputs) for image in images)
    failures = sum(len(image.failures) for image in images)
    unread = sum(image.size is None for image in images)
    totals = (("images", len(images)), ("unreadable", unread), ("written", written), ("failures", failures))
    for name, expected in totals:
        told = getattr(counts, name)
        if told != expected:
            refuse(document, f"/counts/{name}", f"expected {expected}, as the images have, got {told}")
    for k, image in enumerate(images):
        if PurePosixPath(image.name).name != PurePosixPath(image.file).stem:
            refuse(document, f"/images/{k}/file", f"expected the file of {image.name}, got {image.file}")
        if (image.size is None) != (image.sha256 is None) or (image.size is None and image.outputs):
            refuse(
                document, f"/images/{k}/sha256", "expected size and checksum of an image that was read, or neither"
            )
        for n, output in enumerate(image.outputs):
            here = result.mutations[output.mutation : output.mutation + 1]
            if not here or output.path != f"{here[0].folder}/{image.name}.png":
                where = f"/images/{k}/outputs/{n}/mutation"
                refuse(document, where, f"expected the mutation of the folder, got {output.mutation}")
        for n, failure in enumerate(image.failures):
            if failure.mutation is not None and not 0 <= failure.mutation < len(result.mutations):
                refuse(document, f"/images/{k}/failures/{n}/mutation", "expected the number of a mutation, or null")


def check_confusion(document: Document) -> None:
    """Counts are read as `run` reads them."""
    DocumentReader(document.name).counts(dict(document.content))
