"""The certificates of a bundle: the proofs of its guaranteed bounds, made, and checked against the inputs.

A certificate proves something about the arrays that it holds. That these arrays are the bundled system's is checked
here: everything that a certificate is about is built anew from spec, model and matrices, and must be equal.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verifier.analysis.certificate import Certificate, subject_of
from verifier.analysis.certificate_check import check_certificate
from verifier.analysis.certificate_document import document, from_document
from verifier.analysis.confidence import bounds_of_chain
from verifier.analysis.objective import Objective
from verifier.analysis.region import Region, confidence_region
from verifier.analysis.robust import Effort
from verifier.errors import InputError, Place, shown
from verifier.evidence.bundle.findings import Finding, Kind
from verifier.evidence.bundle.layout import certificate_file
from verifier.evidence.bundle.system import Rebuilt
from verifier.textfiles import json_of

LARGEST_CERTIFIED = 20_000
"""Product states; certificates of larger chains take long to check in rational arithmetic and are not made."""


class Proven(NamedTuple):
    """What the certificates of one block and requirement prove, for each initial state."""

    lower: list[Fraction | None]
    upper: list[Fraction | None]


def too_large(objective: Objective) -> str | None:
    """Why no certificates are made of an objective; None where they are."""
    if objective.state_count <= LARGEST_CERTIFIED:
        return None
    return (
        f"certificates are made of at most {LARGEST_CERTIFIED} product states, and there are {objective.state_count}"
    )


def certificates_of(rebuilt: Rebuilt, block: int, objectives: Sequence[Objective]) -> Iterator[tuple[str, int, str]]:
    """Path, number of the requirement (from 0) and text of every certificate of one block of the grid.

    Args:
        rebuilt: the system.
        block: number of the block, from 0.
        objectives: of the block.
    """
    data, settings = rebuilt.data, rebuilt.options.confidence
    if data is None or settings is None:
        return
    effort = Effort(attained=settings.semantics == "one_matrix")
    for number, objective in enumerate(objectives):
        if too_large(objective) is not None:
            continue
        (bounds,) = bounds_of_chain([objective], data, settings, effort)
        parts = {"lower": 0, "upper": 0}
        for each in bounds.certificates:
            path = certificate_file(block, number, each.side, parts[each.side])
            parts[each.side] += 1
            yield path, number, json.dumps(document(each), allow_nan=False) + "\n"


def check_certificates(
    files: Mapping[str, bytes], rebuilt: Rebuilt, objective: Objective, paths: Sequence[str]
) -> tuple[Proven, list[Finding]]:
    """What the certificates of one block and requirement prove about the bundled system, and what is wrong.

    Args:
        files: of the bundle.
        rebuilt: the system, with `data`.
        objective: the requirement on the block's chain, built anew.
        paths: of its certificates.
    """
    count = len(objective.product.start)
    proven = Proven([None] * count, [None] * count)
    findings: list[Finding] = []
    for path in paths:
        try:
            certificate = _read(files[path], path)
            wrong = _about_something_else(certificate, rebuilt, objective)
            if wrong:
                findings += [Finding(path, *each, Kind.CONTENT) for each in wrong]
                continue
            bounds = check_certificate(certificate).bounds
        except InputError as error:
            where = "" if error.place.path is None else error.place.path
            findings.append(Finding(path, where, error.message, "a proof that holds", Kind.CONTENT))
            continue
        side = proven.lower if certificate.side == "lower" else proven.upper
        for k, bound in enumerate(bounds):
            if bound is not None and side[k] is not None:
                findings.append(Finding(path, f"/claimed/{k}", "a second claim", "none", Kind.CONTENT))
            side[k] = bound if side[k] is None else side[k]
        if all(bound is None for bound in bounds):
            findings.append(Finding(path, "/claimed", "no claim", "one for some initial state", Kind.CONTENT))
    return proven, findings


def _read(raw: bytes, path: str) -> Certificate:
    content = json_of(raw, path)
    certificate = from_document(content, path)
    if (json.dumps(content, allow_nan=False) + "\n").encode() != raw:
        raise InputError("the same certificate in other bytes than were written", Place(path))
    return certificate


def _about_something_else(
    certificate: Certificate, rebuilt: Rebuilt, objective: Objective
) -> list[tuple[str, str, str]]:
    """(JSON pointer, found, expected) where a certificate is not about this objective and these counts."""
    data, settings = rebuilt.data, rebuilt.options.confidence
    if data is None or settings is None:
        raise ValueError("a run without guaranteed bounds has no certificates")
    region = confidence_region(objective.skeleton, data.measured, settings.level, data.events)
    wrong = _unequal("/subject", certificate.subject, subject_of(objective))
    wrong += _unequal("/region", certificate.region, _without_ends(region))
    if certificate.region.evidence is None:
        wrong.append(("/region/evidence", "null", "the counts of the matrices"))
    elif region.evidence is not None:
        wrong += _unequal("/region/evidence", certificate.region.evidence, region.evidence)
    return wrong


def _without_ends(region: Region) -> dict[str, Any]:
    """What of a region does not depend on how its ends were computed: the checker proves those from the counts."""
    return {"labels": region.labels, "group": region.group, "needed": region.needed}


def _unequal(pointer: str, found: Any, expected: Any) -> list[tuple[str, str, str]]:
    """The attributes in which two values of a kind differ; of arrays the first element."""
    names = expected if isinstance(expected, dict) else [each.name for each in dataclasses.fields(expected)]
    result = []
    for name in names:
        mine = getattr(found, name)
        other = expected[name] if isinstance(expected, dict) else getattr(expected, name)
        if isinstance(other, np.ndarray):
            result += _unequal_array(f"{pointer}/{name}", mine, other)
        elif mine != other:
            result.append((f"{pointer}/{name}", _said(mine), f"{_said(other)}, as the inputs give it"))
    return result


def _said(value: Any) -> str:
    return str(value) if isinstance(value, Fraction) else shown(value)


def _unequal_array(pointer: str, found: Any, expected: Any) -> list[tuple[str, str, str]]:
    if found.shape != expected.shape:
        return [(pointer, f"shape {found.shape}", f"{expected.shape}, as the inputs give it")]
    places = np.argwhere(found != expected)
    if not len(places):
        return []
    place = tuple(places[0].tolist())
    at = "".join(f"/{k}" for k in place)
    return [(pointer + at, str(found[place]), f"{expected[place]}, as the inputs give it")]
