"""Which document evidence is, and which program made or checked it.

[document]: id, revision, issued, author, reviewer, approver, previous (digest of the bundle before); and, for a test
report, organisation, location, customer, received, performed, sampling

With what a bundle was built, and how to build that environment again in ten years.

sbom.cdx.json              what was installed when it was built (CycloneDX 1.6), recorded and not derived again
environment/               the locks of this version with hashes, and the recipe of an image that holds one

Source: CycloneDX 1.6 (ECMA-424), JSON; package URLs of type pypi (https://github.com/package-url/purl-spec).
"""

import base64
import csv
import datetime
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from verifier.base.commit import commit_of
from verifier.base.errors import InputError, Place
from verifier.base.files import json_of
from verifier.base.libraries import __version__
from verifier.base.toml import Element
from verifier.evidence.declarations import digest_at, past_at

NOT_ISSUED = "not issued"
DISTRIBUTION = "verify-perception"
COMMIT_FILE = "commit.txt"
"""Written into the package by `base.building` where it is built from a repository."""
_PACKAGE = Path(__file__).resolve().parent.parent


def _said(words: str) -> Any:
    """A field with what it is called for people."""
    return field(default="", metadata={"words": words})


@dataclass(frozen=True)
class Identity:
    """What tells a document from all others, and who stands behind it; empty or None where that is not stated.

    Attributes:
        issued: the day that is stated, or that of SOURCE_DATE_EPOCH when it was built.
        previous: digest of the bundle that this one replaces.
        organisation, location, customer: who made it, with address, where, and for whom.
        received, performed: when the inputs came, and when the work was done.
        sampling: plan and method of sampling.
    """

    id: str = _said("document id")
    revision: str = _said("revision")
    issued: datetime.date | None = field(default=None, metadata={"words": "issue date"})
    author: str = _said("author")
    reviewer: str = _said("reviewer")
    approver: str = _said("approver")
    previous: str = _said("digest of the previous revision")
    organisation: str = _said("made by")
    location: str = _said("made at")
    customer: str = _said("made for")
    received: str = _said("inputs received")
    performed: str = _said("work done")
    sampling: str = _said("sampling")

    @property
    def told(self) -> dict[str, str]:
        """For people, name -> what is stated; a day that is missing is "not issued"."""
        texts = {field.metadata["words"]: str(getattr(self, field.name) or "") for field in fields(self)}
        return texts | {"issue date": str(self.issued or NOT_ISSUED)}

    @property
    def is_whole(self) -> bool:
        """Whether everything is stated but the revision before, which a first one does not have."""
        return all(getattr(self, field.name) for field in fields(self) if field.name != "previous")

    @property
    def missing(self) -> list[str]:
        """What is not stated, for people."""
        needed = ("id", "revision", "issued", "author", "reviewer", "approver")
        stated = (field for field in fields(self) if field.name in needed)
        return [field.metadata["words"] for field in stated if not getattr(self, field.name)]


def read_identity(top: Element, issued: datetime.date | None) -> Identity:
    """The identity that a context states; `issued` where it states no day. InputError with file, line and key."""
    if not top.has("document"):
        return Identity(issued=issued)
    table = top.at("document").table(tuple(field.name for field in fields(Identity)), ("id",))
    texts = (field.name for field in fields(Identity) if field.name not in ("issued", "previous"))
    told = {key: table.given(key, _words, "") for key in texts}
    day, previous = table.given("issued", past_at, issued), table.given("previous", digest_at, "")
    return Identity(**told, issued=day, previous=previous)


def _words(element: Element) -> str:
    """A text, or a day without quotes."""
    return str(element.value) if isinstance(element.value, datetime.date) else element.string()


@dataclass(frozen=True)
class Tool:
    """The program, as it is installed.

    Attributes:
        commit: of the source it runs from or was built from, with `+` where files differ from it; empty if not known.
        sha256: over path and SHA-256 of every file of the installed package, but for the one that names the commit.
        environment: name -> version of every distribution that it is installed with.
    """

    name: str
    version: str
    commit: str
    sha256: str
    environment: Mapping[str, str]


@cache
def tool_identity() -> Tool:
    """This program."""
    versions = {part.metadata["Name"].lower(): part.version for part in importlib.metadata.distributions()}
    return Tool(DISTRIBUTION, __version__, _commit(), _package_digest(), dict(sorted(versions.items())))


def full_version() -> str:
    """The version with the commit, where that is known: 0.1.0+g1a2b3c4d5e6f, `.dirty` where files differ from it."""
    commit = _commit()
    if not commit:
        return __version__
    return f"{__version__}+g{commit[:12]}{'.dirty' if commit.endswith('+') else ''}"


def _package_digest() -> str:
    files = {path.relative_to(_PACKAGE).as_posix(): path for path in _package_files()}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    lines = (f"{digest}  {name}\n" for name, digest in digests.items() if name != COMMIT_FILE)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _package_files() -> list[Path]:
    return sorted(path for path in _PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _commit() -> str:
    """From the repository around the package, what the build recorded, or what an installer did."""
    if (_PACKAGE.parent / ".git").exists():
        return commit_of(_PACKAGE)
    if (_PACKAGE / COMMIT_FILE).exists():
        return (_PACKAGE / COMMIT_FILE).read_text(encoding="ascii").strip()
    try:
        recorded = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return str(json.loads(recorded or "{}").get("vcs_info", {}).get("commit_id", ""))


def installed_differences() -> tuple[str, ...] | None:
    """The files of the package that are not as an installer recorded them; None where it runs from elsewhere."""
    try:
        listed = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return None
    rows = [row for row in csv.reader((listed.read_text("RECORD") or "").splitlines()) if len(row) == 3]
    own = {
        Path(str(listed.locate_file(name))).resolve(): mark.removeprefix("sha256=")
        for name, mark, _ in rows
        if name.startswith(f"{_PACKAGE.name}/")
    }
    if Path(__file__).resolve() not in own:
        return None
    files = {path for path in _package_files() if path.suffix != ".pyc"}
    wrong = [path for path in files if own.get(path) != _recorded_mark(path)]
    missing = [path for path, mark in own.items() if mark and path not in files]
    return tuple(sorted(path.relative_to(_PACKAGE).as_posix() for path in (*wrong, *missing)))


def _recorded_mark(path: Path) -> str:
    """SHA-256 as a RECORD has it: base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")


SBOM_FILE = "sbom.cdx.json"
SBOM_WORDS = "what was installed when it was built, as a software bill of materials"
ENVIRONMENT = "environment/"
_FILES = tuple(Path(__file__).with_name(name) for name in ("requirements.lock", "extras.lock", "Containerfile"))


def environment_texts() -> dict[str, str]:
    """The files of the folder, which are those of this version; it is named where they say {version}."""
    texts = {f"{ENVIRONMENT}{path.name}": path.read_text(encoding="utf-8") for path in _FILES}
    return {path: text.replace("{version}", __version__) for path, text in texts.items()}


@cache
def sbom_text() -> str:
    """What is installed with this program: itself and all that it needs, or has of its extras."""
    tool, parts = tool_identity(), _needed()
    own = {
        "type": "application",
        "bom-ref": DISTRIBUTION,
        "name": DISTRIBUTION,
        "version": full_version(),
        "properties": [
            {"name": "verifier:commit", "value": tool.commit or "unknown"},
            {"name": "verifier:package-sha256", "value": tool.sha256},
            {"name": "verifier:python", "value": platform.python_version()},
            {"name": "verifier:platform", "value": platform.platform()},
        ],
    }
    names = {name: f"pkg:pypi/{name}@{part.version}" for name, part in parts.items()}
    known = {"": DISTRIBUTION, **names}
    needs = {known[name]: sorted(names[name] for name in wanted if name in names) for name, wanted in _graph(parts)}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [_component(name, part, names[name]) for name, part in parts.items()],
        "dependencies": [{"ref": ref, "dependsOn": wanted} for ref, wanted in needs.items()],
    }
    return json.dumps(bill, indent=2) + "\n"


def _component(name: str, part: importlib.metadata.Distribution, purl: str) -> dict[str, object]:
    licence = part.metadata.json.get("license_expression")
    licences = {"licenses": [{"expression": licence}]} if licence else {}
    return {"type": "library", "bom-ref": purl, "name": name, "version": part.version, **licences, "purl": purl}


def _normal(name: str) -> str:
    """A name as the index of packages compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _wanted(requirements: list[str] | None) -> Iterator[str]:
    """The distributions that requirements name, those for tests left out."""
    for requirement in requirements or ():
        for_tests = re.search(r"extra\s*==\s*['\"]test['\"]", requirement)
        if (named := re.match(r"[A-Za-z0-9._-]+", requirement)) and not for_tests:
            yield _normal(named[0])


@cache
def _needed() -> Mapping[str, importlib.metadata.Distribution]:
    """Name -> distribution of all that this one needs and that is there, sorted; all where it is not installed."""
    installed = {_normal(part.metadata["Name"]): part for part in importlib.metadata.distributions()}
    if DISTRIBUTION not in installed:
        return dict(sorted(installed.items()))
    needed, open_ = dict[str, importlib.metadata.Distribution](), [DISTRIBUTION]
    while open_:
        for name in _wanted(installed[open_.pop()].requires):
            if name in installed and name not in needed and name != DISTRIBUTION:
                needed[name] = installed[name]
                open_.append(name)
    return dict(sorted(needed.items()))


def _graph(parts: Mapping[str, importlib.metadata.Distribution]) -> Iterator[tuple[str, set[str]]]:
    """Name, "" for this program -> what it needs."""
    try:
        yield "", set(_wanted(importlib.metadata.requires(DISTRIBUTION)))
    except importlib.metadata.PackageNotFoundError:
        yield "", set(parts)
    for name, part in parts.items():
        yield name, set(_wanted(part.requires))


def refuse_other_versions(raw: bytes, versions: Mapping[str, str]) -> None:
    """Refuse a bill of materials that is none, or names other versions than the results; InputError."""
    place = Place(SBOM_FILE)
    content = json_of(raw, SBOM_FILE)
    try:
        listed = {entry["name"]: entry["version"] for entry in content["components"]}
        own = str(content["metadata"]["component"]["version"])
        if content["bomFormat"] != "CycloneDX":
            raise KeyError
    except (KeyError, TypeError):
        raise InputError("expected a CycloneDX document with components", place) from None
    stated = {**listed, "verifier": own.partition("+")[0]}
    for name, version in versions.items():
        if stated.get(name, version) != version:
            raise InputError(f"{name} {stated[name]}, and the results were made with {version}", place)
