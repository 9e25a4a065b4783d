"""The record of a test set: what people state of it, what was left out of the counts, and how often it was used.

Every document says in its `source` how many annotations were read and why some are not counted; excluded and counted
add up to read, to the item. What people state (ISO/PAS 8800, clause 11; AMLAS artefacts L to S; to be confirmed
against the licensed texts) comes from a TOML file; what is missing there is "not stated". The record travels through
merging into results and bundles.

Let a share a of the annotated items of a column be wrong, and a share b of the true ones be missing, with rate r of
what is right. Measured is (1 - a) r + a q, true (1 - b) r + b p for some q, p in [0, 1]; they differ by at most
a (1 - r) + b r or a r + b (1 - r), so by max(a, b). So the error rate widens every interval of a rate at both ends.
Each verdict that was drawn from the data is a look at them, for which alpha is divided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

from verifier.base.documents import Count, Limits, Sha256, Share, is_sha256, json_values, read_document
from verifier.base.errors import InputError, Place, shown
from verifier.base.files import read_text
from verifier.base.toml import Element, read_toml
from verifier.perception.confusion.counts import ConfusionCounts
from verifier.perception.confusion.matrices import EMPTY
from verifier.perception.confusion.sanity import remark, with_sanity

KEY = "data_set"
TEXTS: Mapping[str, tuple[str, ...]] = {
    "": ("purpose", "version", "cleaning", "gaps"),
    "collection": ("sensors", "calibration", "places", "dates", "sampling"),
    "annotation": ("guide", "annotators", "double", "agreement"),
    "split": ("unit", "separation"),
    "terms": ("licence", "privacy"),
}
"""Tables of the file -> keys whose values are texts; "" is its top."""
PARTS = ("requirements", "error_rate", "odd", "frames")
"""What is stated in another form than a text."""
NAMES = tuple(f"{table}.{key}".lstrip(".") for table, keys in TEXTS.items() for key in keys)
Ends = Annotated[tuple[Share, Share], Limits(min_length=2)]


@dataclass(frozen=True)
class DataRequirement:
    """What is asked of the data, and how that was checked."""

    text: Annotated[str, Limits(min_length=1)]
    check: str


@dataclass(frozen=True)
class UseRecord:
    """A verdict that was drawn from the data: of which result, by hash, and on which day it was recorded."""

    title: str
    sha256: Sha256
    verdict: str
    day: str


@dataclass(frozen=True, kw_only=True)
class DataSetRecord:
    """What is stated of a test set.

    Attributes:
        stated: name of `NAMES` -> text.
        error_rate: ends of the share of items that are annotated wrongly, or are missing.
        odd: attribute of the operational design domain -> value -> its share there and in the data.
        frames: SHA-256 of each list of the frames that were counted -> how many it lists, by the SHA-256 of each.
        uses: verdicts drawn from these data; the next one is another look at them.
    """

    stated: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[DataRequirement, ...] = ()
    error_rate: Ends | None = None
    odd: Mapping[str, Mapping[str, Ends]] = field(default_factory=dict)
    frames: Mapping[str, Count] = field(default_factory=dict)
    uses: tuple[UseRecord, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not stated."""
        return tuple(name for name in (*NAMES, *PARTS) if not (self.stated.get(name) or getattr(self, name, None)))

    @property
    def distances(self) -> dict[str, float]:
        """Attribute -> total variation distance between its shares in the domain and in the data."""
        return {name: sum(abs(a - b) for a, b in values.values()) / 2 for name, values in self.odd.items()}


def record_of(metadata: Mapping[str, object]) -> DataSetRecord | None:
    """The record that matrices carry."""
    content = metadata.get(KEY)
    return None if content is None else read_document(DataSetRecord, content, "the matrices", f"/{KEY}")


def annotation_error(metadata: Mapping[str, object]) -> Fraction:
    """The largest share of items that may be annotated wrongly; 0 where nothing is stated."""
    data_set = record_of(metadata)
    return (
        Fraction(0) if data_set is None or data_set.error_rate is None else Fraction(repr(max(data_set.error_rate)))
    )


def looks_at(metadata: Mapping[str, object]) -> int:
    """How many looks at the data the next verdict is."""
    data_set = record_of(metadata)
    return 1 if data_set is None else 1 + len(data_set.uses)


def read_stated(path: str | Path) -> DataSetRecord:
    """What a TOML file states; InputError with file, line and key."""
    top = read_toml(path).table((*TEXTS[""], *(name for name in TEXTS if name), "requirement", "odd", "frames"))
    stated = dict[str, str]()
    error = None
    for table, keys in TEXTS.items():
        more = ("error_rate",) if table == "annotation" else ()
        if table and not top.has(table):
            continue
        at = top.at(table).table((*keys, *more)) if table else top
        stated |= {f"{table}.{key}".lstrip("."): at.at(key).string() for key in keys if at.has(key)}
        if at.has("error_rate"):
            error = _ends(at.at("error_rate"), ordered=True)
    listed = top.at("requirement").items() if top.has("requirement") else []
    tables = (element.table(("text", "check"), ("text", "check")) for element in listed)
    requirements = tuple(DataRequirement(table.at("text").string(), table.at("check").string()) for table in tables)
    domain = {name: dict(_shares(element)) for name, element in top.at("odd").entries()} if top.has("odd") else {}
    frames = dict[str, int]()
    if top.has("frames"):
        hashes, digest = frame_hashes(Path(path).parent / top.at("frames").string())
        frames = {digest: len(hashes)}
    return DataSetRecord(stated=stated, requirements=requirements, error_rate=error, odd=domain, frames=frames)


def frame_hashes(path: Path) -> tuple[frozenset[str], str]:
    """The SHA-256 of each frame in a list as sha256sum writes it, and that of the list; InputError with its line."""
    text, raw = read_text(path)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for number, line in lines:
        if not is_sha256(line.split()[0]) or line[0].isspace():
            raise InputError("expected 64 hexadecimal digits, as sha256sum writes them", Place(str(path), number))
    if not lines:
        raise InputError("expected the SHA-256 of a frame in each line, found none", Place(str(path)))
    return frozenset(line[:64] for _, line in lines), hashlib.sha256(raw).hexdigest()


def _ends(element: Element, *, ordered: bool) -> Ends:
    ends = [element.number(0, 1) for element in element.items(least=2)]
    if len(ends) != 2 or (ordered and ends[0] > ends[1]):
        raise element.fail("expected two shares" + (", the lower one first" if ordered else ""))
    return float(ends[0]), float(ends[1])


def _shares(attribute: Element) -> Iterator[tuple[str, Ends]]:
    """Value -> share of the domain, share of the data; each of both adds up to 1 over the values."""
    shares = {name: _ends(element, ordered=False) for name, element in attribute.entries()}
    for side, what in enumerate(("the domain", "the data")):
        if abs(sum(ends[side] for ends in shares.values()) - 1) > 1e-9:
            raise attribute.fail(f"the shares of {what} do not add up to 1")
    yield from shares.items()


def annotations_told(counts: ConfusionCounts, file: str | None = None) -> dict[str, Any] | None:
    """How many annotations were read, why some are not counted, and how many are; None where that is not known.

    Raises:
        InputError: they do not add up; names the `file`.
    """
    try:
        told = _told(counts.metadata["source"], counts.metadata["totals"])
        added_up = sum(told["excluded"].values()) + told["counted"] == told["read"]
    except (AttributeError, LookupError, TypeError):
        return None  # people write such files, and may say there what they like
    items = counts.counts[0].sum(axis=(0, 1))
    of_objects = int(items.sum() - items[counts.labels.index(EMPTY)])
    if not added_up or (counts.labelling == "class" and of_objects != told["counted"]):
        said = ", ".join(f"{count} {name}" for name, count in told["excluded"].items()) or "none"
        raise InputError(
            f"annotations do not add up: {told['read']} read, {told['counted']} counted, left out: {said}; "
            f"{of_objects} items of objects",
            None if file is None else Place(file),
        )
    return told


def _told(source: Any, totals: Any) -> dict[str, Any]:
    if "merged" in source:
        parts: list[dict[str, object]] = [entry["annotations"] for entry in source["merged"]]
        return reduce(_added, parts)
    known = source["annotations"]
    excluded = {name: count for name, count in known.items() if name != "read" and count}
    for entry in source.get("filters", ()):
        if entry.get("annotations"):
            name = f"filter {entry['filter']} {entry.get('name', '')}".strip()
            excluded[name] = excluded.get(name, 0) + entry["annotations"]
    excluded |= (
        {"unknown depth": source["ignored"]["unknown_depth"]} if source["ignored"].get("unknown_depth") else {}
    )
    excluded |= {"in no bin": totals["outside_bins"]} if totals["outside_bins"] else {}
    counted = totals["annotations"] - totals["outside_bins"]
    return {"read": known["read"], "excluded": excluded, "counted": counted}


def _added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, object]:
    names = dict.fromkeys((*one["excluded"], *other["excluded"]))
    excluded = {name: one["excluded"].get(name, 0) + other["excluded"].get(name, 0) for name in names}
    return {key: one[key] + other[key] for key in ("read", "counted")} | {"excluded": excluded}


def with_record(counts: ConfusionCounts, stated: DataSetRecord | None, file: str | None = None) -> ConfusionCounts:
    """The counts with what is stated of their data, after a look whether all annotations are accounted for.

    Raises:
        InputError: they are not, or what a `file` states cannot be: fewer frames are listed than were counted, or
            something else is stated of the data already.
    """
    annotations_told(counts)
    if stated is None:
        return counts
    before = record_of(counts.metadata) or DataSetRecord()
    if before != DataSetRecord(uses=before.uses):
        said = "expected matrices without a record of their data set, found one: count again to state something else"
        raise InputError(said, Place(file))
    listed, sequences = sum(stated.frames.values()), counts.sequences
    if stated.frames and sequences is not None and listed < (frames := int(sequences.frames.sum())):
        raise InputError(f"expected the SHA-256 of {frames} frames, which were counted, found {listed}", Place(file))
    return _with(counts, replace(stated, uses=before.uses))


def _with(counts: ConfusionCounts, record: DataSetRecord) -> ConfusionCounts:
    return replace(counts, metadata={**counts.metadata, KEY: json_values(record)})


def with_uses(counts: ConfusionCounts, uses: Sequence[UseRecord], file: str) -> ConfusionCounts:
    """The counts whose record says of further verdicts; InputError where one is recorded already."""
    before = record_of(counts.metadata) or DataSetRecord()
    known = {use.sha256 for use in before.uses}
    for use in uses:
        if use.sha256 in known:
            raise InputError(f"the record has the verdict of {shown(use.title)} already", Place(file))
        known.add(use.sha256)
    return _with(counts, replace(before, uses=(*before.uses, *uses)))


def merged_record(counts: ConfusionCounts, parts: Sequence[ConfusionCounts], names: Sequence[str]) -> ConfusionCounts:
    """The sum with the records of its parts: texts of each, the widest error rate, every use.

    Where not all parts have a record, or an error rate, the sum says so.
    """
    records = [record_of(part.metadata) for part in parts]
    held = [record for record in records if record is not None]
    metadata = {key: value for key, value in counts.metadata.items() if key != KEY}
    counts = replace(counts, metadata=metadata)
    if not held:
        return counts
    uses = tuple({use.sha256: use for record in held for use in record.uses}.values())
    partly = (
        [] if len(held) == len(parts) else [f"the data set is stated in {len(held)} of {len(parts)} merged files"]
    )
    rates = [data_set.error_rate for data_set in held if data_set.error_rate is not None]
    if 0 < len(rates) < len(parts):
        partly.append(f"the annotation error rate of {len(rates)} of {len(parts)} merged files is taken for all")
    listed = len(held) == len(parts) and all(data_set.frames for data_set in held)
    if not listed and any(data_set.frames for data_set in held):
        partly.append("the frames that were counted are listed of some merged files only, and the lists are left out")
    domains = {str(data_set.odd): data_set.odd for data_set in held}
    if len(domains) > 1:
        partly.append("the coverage of the domain differs between merged files, and is left out")
    record = DataSetRecord(
        stated={
            name: _texts_of(name, records, names)
            for name in NAMES
            if any(data_set.stated.get(name) for data_set in held)
        },
        requirements=tuple(dict.fromkeys(requirement for record in held for requirement in record.requirements)),
        error_rate=(min(low for low, _ in rates), max(high for _, high in rates)) if rates else None,
        odd=next(iter(domains.values())) if len(domains) == 1 and len(held) == len(parts) else {},
        frames={name: number for record in held for name, number in record.frames.items()} if listed else {},
        uses=uses,
    )
    return with_sanity(_with(counts, record), [remark("merged-partly", name) for name in partly])


def _texts_of(name: str, records: Sequence[DataSetRecord | None], names: Sequence[str]) -> str:
    """One text where all files say the same, else that of each behind its name."""
    texts = [record.stated.get(name, "") if record is not None else "" for record in records]
    if len(set(texts)) == 1:
        return texts.pop()
    return "; ".join(f"{file}: {text or 'not stated'}" for file, text in zip(names, texts, strict=True))


_CROISSANT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "verifier": "urn:verifier:data-set:",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
            "transform",
        )
    },
}  # fmt: skip
"""The context that Croissant 1.0 gives, which readers expect word for word, and the names of this program."""


def croissant(
    record: DataSetRecord, told: Mapping[str, object] | None, title: str, path: str, sha256: str
) -> dict[str, object]:
    """The record as Croissant 1.0 (JSON-LD, MLCommons), with its responsible-AI vocabulary, around the matrices.

    Args:
        told: how many annotations were read and counted.
        path, sha256: of the file of matrices, the one that is distributed, seen from the folder above this one.
    """
    known = {
        "license": record.stated.get("terms.licence"),
        "version": record.stated.get("version"),
        "description": record.stated.get("purpose"),
        "rai:dataCollection": _joined_texts(record, "collection"),
        "rai:dataAnnotationProtocol": record.stated.get("annotation.guide"),
        "rai:dataPreprocessingProtocol": record.stated.get("cleaning"),
        "rai:dataLimitations": record.stated.get("gaps"),
        "rai:personalSensitiveInformation": record.stated.get("terms.privacy"),
        **{f"verifier:{name}": record.stated.get(name) for name in NAMES},
        "verifier:requirements": [asdict(requirement) for requirement in record.requirements],
        "verifier:errorRate": record.error_rate,
        "verifier:domain": record.odd,
        "verifier:domainDistance": record.distances,
        "verifier:frames": [{"sha256": name, "frames": number} for name, number in record.frames.items()],
        "verifier:annotations": told,
        "verifier:uses": [asdict(use) for use in record.uses],
        "verifier:notStated": list(record.missing),
    }
    return {
        "@context": _CROISSANT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": title or "test data",
        **{key: value for key, value in known.items() if value},
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "matrices",
                "name": "matrices",
                "contentUrl": f"../{path}",
                "encodingFormat": "application/json",
                "sha256": sha256,
            }
        ],
    }


def _joined_texts(record: DataSetRecord, table: str) -> str:
    pairs = ((key, record.stated.get(f"{table}.{key}")) for key in TEXTS[table])
    return "; ".join(f"{key}: {text}" for key, text in pairs if text)
