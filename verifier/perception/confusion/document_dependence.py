"""The key `dependence` of a confusion document: whether misses follow misses (see `dependence`)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from verifier.base.errors import shown
from verifier.perception.confusion.document_variables import Fail, is_number

COUNTS = ("objects", "misses", "pairs", "after_miss", "joint_misses", "permutations")
SHARES = ("miss_after_miss", "expected_miss_after_miss", "p_value")
NUMBERS = ("expected_joint_misses", "mean_run", "expected_mean_run")
COUNTS_OF_BIN = ("pairs", "after_miss", "joint_misses")
SHARES_OF_BIN = ("expected_miss_after_miss", "p_value")
SHARE = "a share from 0 to 1"
COMBINED = "Fisher's method over the files that were merged"
"""Which test `p_value` belongs to where counts of several files were added."""
IN_PARTS = "Fisher's method over the parts that were counted"
"""The same of one count in parts, each of which is tested alone: counted at once, all are permuted together."""
NULL_WITHOUT_ONE = ("miss_after_miss", "expected_miss_after_miss", "mean_run", "expected_mean_run")


def check_dependence(found: Any, members: int | None, fail: Fail, bins: int | None) -> None:
    """Refuse a value of the key that is not as the schema says.

    Args:
        found: the value.
        members: how many matrices the file holds in a family; None where it is none.
        fail: makes the complaint from a JSON pointer and a text.
        bins: how many distance bins the file has; None for the first version of the document, which has neither the
            test of a bin nor one that `combined_dependence` made.
    """
    if members is None:
        _check_member("/dependence", found, fail, bins)
        return
    if not isinstance(found, list) or len(found) != members:
        raise fail("/dependence", f"expected a list of {members} tests, one per score threshold, got {shown(found)}")
    for number, each in enumerate(found):
        _check_member(f"/dependence/{number}", each, fail, bins)


def _check_member(path: str, found: Any, fail: Fail, bins: int | None) -> None:
    of_files = bins is not None and isinstance(found, dict) and "combined" in found
    expected_keys = {"seed", "classes", "combined"} if of_files else {"seed", "classes"}
    if not isinstance(found, dict) or set(found) != expected_keys or not isinstance(found["classes"], list):
        raise fail(path, f"expected an object with 'seed' and a list 'classes', got {shown(found)}")
    if not _is_count(found["seed"]) and not (of_files and found["seed"] is None):
        raise fail(f"{path}/seed", f"expected an integer from 0, got {shown(found['seed'])}")
    if of_files and found["combined"] not in (COMBINED, IN_PARTS):
        raise fail(
            f"{path}/combined", f"expected {shown(COMBINED)} or {shown(IN_PARTS)}, got {shown(found['combined'])}"
        )
    keys = {"label", *COUNTS, *SHARES, *NUMBERS}
    for number, each in enumerate(found["classes"]):
        at = f"{path}/classes/{number}"
        if not isinstance(each, dict) or set(each) - (set() if bins is None else {"bins"}) != keys:
            raise fail(at, f"expected an object with the keys {', '.join(sorted(keys))}, got {shown(each)}")
        if not isinstance(each["label"], str):
            raise fail(f"{at}/label", f"expected a class name, got {shown(each['label'])}")
        for key in COUNTS:
            if not _is_count(each[key]):
                raise fail(f"{at}/{key}", f"expected an integer from 0, got {shown(each[key])}")
        for key in (*SHARES, *NUMBERS):
            value, most = each[key], 1 if key in SHARES else float("inf")
            nothing = key in NULL_WITHOUT_ONE and each["misses" if "run" in key else "after_miss"] == 0
            if value is not None if nothing else not is_number(value) or not 0 <= value <= most:
                expected = "null" if nothing else SHARE if most == 1 else "a number from 0"
                raise fail(f"{at}/{key}", f"expected {expected}, got {shown(value)}")
        _check_fits_together(at, each, {other["label"] for other in found["classes"][:number]}, fail)
        if "bins" in each:
            _check_bins(f"{at}/bins", each, fail, bins or 0)


def _check_fits_together(at: str, test: Mapping[str, Any], before: set[str], fail: Fail) -> None:
    """Refuse a class with two tests, of which one would hide the other, and numbers that no tracks can give."""
    if test["label"] in before:
        raise fail(f"{at}/label", f"the class {shown(test['label'])} has a test already")
    # Every run of misses begins with a miss that none precedes.
    following = max(test["misses"] - 1, 0)
    most = {"after_miss": min(test["pairs"], test["misses"]), "joint_misses": min(test["after_miss"], following)}
    for key, limit in most.items():
        if test[key] > limit:
            raise fail(f"{at}/{key}", f"expected at most {limit}, from the numbers beside it, got {test[key]}")
    expected = test["expected_joint_misses"]
    if is_number(expected) and expected > following:
        raise fail(
            f"{at}/expected_joint_misses", f"expected at most {following}, one less than misses, got {expected}"
        )


def _check_bins(path: str, test: Mapping[str, Any], fail: Fail, bins: int) -> None:
    """Refuse tests of bins that are not as the schema says, or that do not fit the test of their class."""
    found, keys = test["bins"], {"bin", *COUNTS_OF_BIN, *SHARES_OF_BIN}
    if not isinstance(found, list) or not found:
        raise fail(path, f"expected a list of tests of bins, got {shown(found)}")
    least = 0
    for number, each in enumerate(found):
        at = f"{path}/{number}"
        if not isinstance(each, dict) or set(each) != keys:
            raise fail(at, f"expected an object with the keys {', '.join(sorted(keys))}, got {shown(each)}")
        if not _is_count(each["bin"]) or not least <= each["bin"] < bins:
            raise fail(f"{at}/bin", f"expected the number of a bin, {least} to {bins - 1}, got {shown(each['bin'])}")
        least, most = each["bin"] + 1, float("inf")
        for key in COUNTS_OF_BIN:
            if not _is_count(each[key]) or each[key] > most:
                limit = "an integer from 0" if most == float("inf") else f"an integer from 0 to {most}"
                raise fail(f"{at}/{key}", f"expected {limit}, got {shown(each[key])}")
            most = each[key]
        for key in SHARES_OF_BIN:
            value, nothing = each[key], key in NULL_WITHOUT_ONE and each["after_miss"] == 0
            if value is not None if nothing else not is_number(value) or not 0 <= value <= 1:
                raise fail(f"{at}/{key}", f"expected {'null' if nothing else SHARE}, got {shown(value)}")
    for key in COUNTS_OF_BIN:
        total = sum(each[key] for each in found)
        if total > test[key]:
            raise fail(path, f"expected {key} of at most {test[key]} in all bins, as of the class, got {total}")


def combined_dependence(parts: Sequence[Any], how: str = COMBINED) -> dict[str, Any] | list[dict[str, Any]]:
    """The tests of several files, which hold different frames, as one: counts add, chances come by Fisher's method.

    If no file's reports have a memory then, of k files, -2 sum log p has at most the tails of the chi-squared law
    with 2 k degrees of freedom (Fisher, Statistical Methods for Research Workers, 4th ed. 1932, section 21.1), for
    reports in different files are independent then, and each p-value is valid. This needs different drives, or at
    least different frames, in different files; `merge` refuses a sequence that is in two of them unless told so. A
    class takes part with the files that test it, and each of its bins, where all these files test bins, with those
    that have a pair in it.

    Args:
        parts: values of the key `dependence`, at least one; of families, all over the same score thresholds.
        how: what the document calls it, `COMBINED` or `IN_PARTS`.
    """
    if isinstance(parts[0], list):
        return [_combined_member(each, how) for each in zip(*parts, strict=True)]
    return _combined_member(parts, how)


def _combined_member(parts: Sequence[Mapping[str, Any]], how: str) -> dict[str, Any]:
    if len(parts) == 1:
        return dict(parts[0])
    classes = [each for part in parts for each in part["classes"]]
    labels = dict.fromkeys(each["label"] for each in classes)
    seeds = {part["seed"] for part in parts}
    return {
        "seed": seeds.pop() if len(seeds) == 1 else None,
        "combined": how,
        "classes": [_combined_class([each for each in classes if each["label"] == label]) for label in labels],
    }


def _combined_class(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total = {key: sum(each[key] for each in parts) for key in (*COUNTS, "expected_joint_misses")}
    misses = total["misses"]
    return {
        "label": parts[0]["label"],
        **total,
        **added(parts),
        "mean_run": misses / (misses - total["joint_misses"]) if misses else None,
        "expected_mean_run": misses / (misses - total["expected_joint_misses"]) if misses else None,
        "p_value": fisher([each["p_value"] for each in parts]),
        **({"bins": _combined_bins(parts)} if all("bins" in each for each in parts) else {}),
    }


def _combined_bins(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_bin: dict[int, list[Mapping[str, Any]]] = {}
    for each in (each for part in parts for each in part["bins"]):
        by_bin.setdefault(each["bin"], []).append(each)
    return [_combined_bin(by_bin[number]) for number in sorted(by_bin)]


def _combined_bin(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = {key: value for key, value in added(parts).items() if key != "miss_after_miss"}
    tested = [each["p_value"] for each in parts if each["pairs"]]
    return {"bin": parts[0]["bin"], **found, "p_value": fisher(tested) if tested else 1.0}


def added(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of pairs of several tests, of different frames, and the shares that follow from them."""
    total: dict[str, Any] = {key: sum(each[key] for each in tests) for key in COUNTS_OF_BIN}
    expected = sum(each["after_miss"] * (each["expected_miss_after_miss"] or 0.0) for each in tests)
    after_miss = total["after_miss"]
    return {
        **total,
        "miss_after_miss": total["joint_misses"] / after_miss if after_miss else None,
        "expected_miss_after_miss": expected / after_miss if after_miss else None,
    }


def fisher(p_values: Sequence[float]) -> float:
    """The p-value of tests that are independent if reports have no memory, by Fisher's method; of one, its own."""
    from scipy.special import gammaincc

    if len(p_values) == 1:
        return p_values[0]
    return float(gammaincc(len(p_values), sum(map(_surprise, p_values))))


def _surprise(p_value: float) -> float:
    """-log p; infinite for a p-value that was rounded to 0."""
    return -math.log(p_value) if p_value else math.inf


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
