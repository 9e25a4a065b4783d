"""Reading the context of a assurance case from a TOML file. Everything in it is optional; nothing in it is executed.

[system]
name = "Car with an emergency brake"

[odd]
description = "Urban roads with crosswalks, daylight, dry, up to 10 m/s"

[detector]
name = "YOLOv3"
version = "1.2"
trained_on = ["2011_09_26_drive_00*"]        # sequences; * and ? stand for other characters

[dataset]
description = "KITTI tracking, 21 drives"

[exposure.ped]                               # a environment of the model, or "every"
encounters = 240                             # a count, or: per_hour = 12, or: between = [10, 14] (and a level)
hours = 20
source = "Drives of March"

[acceptance.stops_for_pedestrians]           # a requirement
per_hour = 1e-7
source = "Hazard analysis 3.2"

[responsible]
requirements = "Head of functional safety"
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path, PurePath

from verifier.base.toml import Element, read_toml
from verifier.evidence.context import DUTIES, CaseContext, Detector
from verifier.evidence.rates.exposure import LARGEST_COUNT, Exposure
from verifier.evidence.rates.hazard import Acceptance

TABLES = ("system", "odd", "detector", "dataset", "exposure", "acceptance", "responsible")


def read_context(path: str | Path) -> CaseContext:
    """Read a context.

    Raises:
        InputError: the file cannot be read, is no TOML, or an element is not accepted; with file, line and key.
    """
    top = read_toml(path).table(TABLES)
    return CaseContext(
        _words(top, "system", ("name", "description")),
        _words(top, "odd", ("description",)),
        _words(top, "dataset", ("name", "description")),
        _detector(top),
        {name: _exposure(each) for name, each in top.table_at("exposure")},
        {name: _acceptance(each) for name, each in top.table_at("acceptance")},
        _responsible(top),
        (PurePath(path).name, top.sha256),
    )


def _words(top: Element, key: str, known: tuple[str, ...]) -> str:
    """The texts of a table as one; empty where it is missing."""
    if not top.has(key):
        return ""
    table = top.at(key).table(known)
    return ": ".join(table.at(name).string() for name in known if table.has(name))


def _detector(top: Element) -> Detector:
    if not top.has("detector"):
        return Detector()
    table = top.at("detector").table(("name", "version", "trained_on"))
    name, version = (table.at(key).string() if table.has(key) else "" for key in ("name", "version"))
    if not table.has("trained_on"):
        return Detector(name, version)
    return Detector(name, version, tuple(each.string() for each in table.at("trained_on").items()))


def _exposure(table: Element) -> Exposure:
    table.table(("encounters", "hours", "per_hour", "between", "level", "source"))
    source = table.at("source").string() if table.has("source") else ""
    ways = [key for key in ("encounters", "per_hour", "between") if table.has(key)]
    if len(ways) != 1 or table.has("hours") != (ways == ["encounters"]):
        raise table.fail(
            "expected one way to say how often",
            "encounters = 240 with hours = 20, or per_hour = 12, or between = [10, 14]",
        )
    if table.has("level") and ways != ["between"]:
        raise table.at("level").fail("only a stated interval has a level")
    if ways == ["encounters"]:
        hours = _positive(table.at("hours"))
        return Exposure.counted(table.at("encounters").whole(0, LARGEST_COUNT), hours, source)
    if ways == ["per_hour"]:
        return Exposure.stated(table.at("per_hour").number(0), source)
    ends = table.at("between").items(least=2)
    if len(ends) > 2:
        raise table.at("between").fail(f"expected two ends, got {len(ends)}")
    level = None
    if table.has("level"):
        level = table.at("level").number()
        if not 0 < level < 1:
            raise table.at("level").fail("a level lies strictly between 0 and 1")
    lower, upper = (end.number(0) for end in ends)
    return table.at("between").made(lambda: Exposure.stated_interval(lower, upper, level, source))


def _acceptance(table: Element) -> Acceptance:
    table.table(("per_hour", "source"), ("per_hour",))
    return Acceptance(_positive(table.at("per_hour")), table.at("source").string() if table.has("source") else "")


def _responsible(top: Element) -> dict[str, str]:
    if not top.has("responsible"):
        return {}
    table = top.at("responsible").table(tuple(DUTIES))
    return {key: table.at(key).string() for key in DUTIES if table.has(key)}


def _positive(element: Element) -> Fraction:
    found = element.number()
    if not found > 0:
        raise element.fail("expected a number above 0")
    return found
