"""With what a bundle was built, and how to build that environment again in ten years.

sbom.cdx.json              what was installed when it was built (CycloneDX 1.6), recorded and not derived again
environment/               the locks of this version with hashes, and the recipe of an image that holds one

Source: CycloneDX 1.6 (ECMA-424), JSON; package URLs of type pypi (https://github.com/package-url/purl-spec).
"""

import importlib.metadata
import json
import platform
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from verifier.base.errors import InputError, Place
from verifier.base.files import json_of
from verifier.base.libraries import __version__
from verifier.evidence.identity import DISTRIBUTION, full_version, tool_identity

SBOM_FILE = "sbom.cdx.json"
SBOM_WORDS = "what was installed when it was built, as a software bill of materials"
ENVIRONMENT = "environment/"
_FILES = tuple(Path(__file__).with_name(name) for name in ("requirements.lock", "extras.lock", "Containerfile"))


def environment_texts() -> dict[str, str]:
    """The files of the folder, which are those of this version; it is named where they say {version}."""
    texts = {f"{ENVIRONMENT}{each.name}": each.read_text(encoding="utf-8") for each in _FILES}
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
    names = {name: f"pkg:pypi/{name}@{each.version}" for name, each in parts.items()}
    known = {"": DISTRIBUTION, **names}
    needs = {known[name]: sorted(names[each] for each in wanted if each in names) for name, wanted in _graph(parts)}
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [_component(name, each, names[name]) for name, each in parts.items()],
        "dependencies": [{"ref": ref, "dependsOn": wanted} for ref, wanted in needs.items()],
    }
    return json.dumps(found, indent=2) + "\n"


def _component(name: str, part: importlib.metadata.Distribution, purl: str) -> dict[str, Any]:
    licence = part.metadata.json.get("license_expression")
    licences = {"licenses": [{"expression": licence}]} if licence else {}
    return {"type": "library", "bom-ref": purl, "name": name, "version": part.version, **licences, "purl": purl}


def _normal(name: str) -> str:
    """A name as the index of packages compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _wanted(requirements: list[str] | None) -> Iterator[str]:
    """The distributions that requirements name, those for tests left out."""
    for each in requirements or ():
        if (named := re.match(r"[A-Za-z0-9._-]+", each)) and not re.search(r"extra\s*==\s*['\"]test['\"]", each):
            yield _normal(named[0])


@cache
def _needed() -> Mapping[str, importlib.metadata.Distribution]:
    """Name -> distribution of all that this one needs and that is there, sorted; all where it is not installed."""
    installed = {_normal(each.metadata["Name"]): each for each in importlib.metadata.distributions()}
    if DISTRIBUTION not in installed:
        return dict(sorted((name, each) for name, each in installed.items() if name != DISTRIBUTION))
    found, open_ = dict[str, importlib.metadata.Distribution](), [DISTRIBUTION]
    while open_:
        for name in _wanted(installed[open_.pop()].requires):
            if name in installed and name not in found and name != DISTRIBUTION:
                found[name] = installed[name]
                open_.append(name)
    return dict(sorted(found.items()))


def _graph(parts: Mapping[str, importlib.metadata.Distribution]) -> Iterator[tuple[str, set[str]]]:
    """Name, "" for this program -> what it needs."""
    try:
        yield "", set(_wanted(importlib.metadata.requires(DISTRIBUTION)))
    except importlib.metadata.PackageNotFoundError:
        yield "", set(parts)
    for name, each in parts.items():
        yield name, set(_wanted(each.requires))


def refuse_other_versions(raw: bytes, versions: Mapping[str, str]) -> None:
    """Refuse a bill of materials that is none, or names other versions than the results; InputError."""
    place = Place(SBOM_FILE)
    content = json_of(raw, SBOM_FILE)
    try:
        found = {each["name"]: each["version"] for each in content["components"]}
        own = str(content["metadata"]["component"]["version"])
        if content["bomFormat"] != "CycloneDX":
            raise KeyError
    except (KeyError, TypeError):
        raise InputError("expected a CycloneDX document with components", place) from None
    stated = {**found, "verifier": own.partition("+")[0]}
    for name, version in versions.items():
        if stated.get(name, version) != version:
            raise InputError(f"{name} {stated[name]}, and the results were made with {version}", place)
