"""Where files lie in a bundle. Copies of spec and model keep their places to each other: the spec still finds it."""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from verifier.base.errors import InputError, Place, shown
from verifier.evidence.paths import check_paths
from verifier.language.specs import Specification
from verifier.systems.model_parts import PlannerFile

INPUTS = "inputs"
CERTIFICATES = "certificates"
RUN_FILE = "results/run.json"
EXPLAIN_FILE = "results/explain.json"
OMITTED_FILE = "results/omitted.json"
LONGEST_NAME = 60
_SPEC_FOLDERS = "specs"
_DEEPEST = 8
_CERTIFICATE = re.compile(
    CERTIFICATES + r"/(?:(?P<of>[a-z0-9_]+)-)?block(?P<block>\d{3,6})_requirement(?P<requirement>\d{2,6})"
    r"_(?P<side>((point|free)_)?(lower|upper)|point_steps)_(?P<part>\d{2,6})\.json"
)


class CertificatePlace(NamedTuple):
    """What a certificate is about.

    Attributes:
        of: the result; "" for the run.
        block, requirement: from 0.
        proves: "point" for a probability, "free" for a bound whatever the dependence, "" for a confidence bound.
    """

    of: str
    block: int
    requirement: int
    proves: str


def input_paths(
    spec: Specification,
    matrices: str | Path,
    context: str | Path | None,
    given: tuple[str | Path, ...],
    planners: tuple[PlannerFile, ...] = (),
) -> Mapping[str, Path]:
    """Path in the bundle -> file on disk, for spec, model, matrices, context, given results, planners, in this order.

    Raises:
        InputError: a name that cannot stand in a bundle, a spec that names its model by an absolute path, or a model
            that names the file of a planner so or too far above.
    """
    written = PurePosixPath(spec.model_name)
    if written.is_absolute():
        said = "the spec names its model by an absolute path, which means nothing in a bundle"
        raise InputError(said, Place(spec.file), "name it relative to the spec's folder")
    up, inside = _normal(written)
    if up > _DEEPEST:
        raise InputError(f"the model lies more than {_DEEPEST} folders above the spec", Place(spec.file))
    above = [_SPEC_FOLDERS] * max(up, 1)
    model = "/".join([INPUTS, *([] if up else above), *inside])
    origins = {
        "/".join([INPUTS, *above, PurePath(spec.file or "").name]): Path(spec.file or ""),
        model: spec.model,
        f"{INPUTS}/matrices/{PurePath(matrices).name}": Path(matrices),
    }
    if context is not None:
        origins[f"{INPUTS}/context/{PurePath(context).name}"] = Path(context)
    for name in given:
        path = f"{INPUTS}/given/{PurePath(name).name}"
        if path in origins:
            raise InputError(f"two given results are called {PurePath(name).name}", Place(str(name)), "rename one")
        origins[path] = Path(name)
    origins |= {path_of_planner(model, planner.name, str(spec.model)): Path(planner.path) for planner in planners}
    if len(origins) != 3 + (context is not None) + len(given) + len(planners):
        raise InputError("two inputs would lie at one place of the bundle", Place(spec.file), "rename one")
    check_paths(origins, "an input")
    return origins


def path_of_planner(model: str, name: str, file: str) -> str:
    """Where the file of a planner lies, for the model's path in the bundle and the name that the model gives it.

    `file` is what messages call the model.
    """
    written = PurePosixPath(name)
    up, inside = _normal(written)
    folders = model.split("/")[1:-1]
    if written.is_absolute() or up > len(folders):
        said = f"the model names the planner's file {shown(name)}, which means nothing in a bundle"
        hint = "put it beside the model, and name it relative to the model's folder"
        raise InputError(said, Place(file), hint)
    return "/".join([INPUTS, *folders[: len(folders) - up], *inside])


def require_file(number: int, requirement: str) -> str:
    """Where the answer of `verify require` for one requirement lies; `number` is its place in the spec, from 1."""
    return numbered_file("results/require", number, requirement)


def numbered_file(folder: str, number: int, requirement: str) -> str:
    """A file about a requirement; the number keeps names apart that are cut, or equal but for case."""
    return f"{folder}/{number:02}_{requirement[:LONGEST_NAME]}.json"


def certificate_file(block: int, requirement: int, side: str, part: int, of: str = "") -> str:
    """Where a certificate lies: of one block of the grid and one requirement, all numbers counted from 0.

    `side` is that of a confidence bound; for a probability `point_lower`, `point_upper` or, where steps are counted,
    `point_steps`; `of` is the result that it is about, if that is not the run.
    """
    return f"{certificates_of_pair(block, requirement, of)}_{side}_{part + 1:02}.json"


def free_certificate_file(block: int, requirement: int, side: str, start: int, of: str = "") -> str:
    """As `certificate_file`, for a bound whatever the dependence at one initial state."""
    return certificate_file(block, requirement, f"free_{side}", start, of)


def certificates_of_pair(block: int, requirement: int, of: str = "") -> str:
    """What the names of all certificates of a block and a requirement begin with."""
    return f"{CERTIFICATES}/{of}{'-' if of else ''}block{block + 1:03}_requirement{requirement + 1:02}"


def certificates_of_any_block(requirement: int) -> str:
    """A pattern of the names of all certificates of a requirement, counted from 0."""
    return f"{CERTIFICATES}/block*_requirement{requirement + 1:02}_*.json"


def place_of_certificate(path: str) -> CertificatePlace | None:
    """What a path is that of a certificate of; None where it is no such path."""
    match = _CERTIFICATE.fullmatch(path)
    if match is None:
        return None
    block, requirement, part = (int(match[group]) - 1 for group in ("block", "requirement", "part"))
    of, side = match["of"] or "", match["side"]
    same = min(block, requirement, part) >= 0 and certificate_file(block, requirement, side, part, of) == path
    return CertificatePlace(of, block, requirement, side.rpartition("_")[0]) if same else None


def _normal(path: PurePosixPath) -> tuple[int, list[str]]:
    """How far a relative path leads up, and what follows."""
    parts = PurePosixPath(posixpath.normpath(path)).parts
    inside = [part for part in parts if part != ".."]
    return len(parts) - len(inside), inside
