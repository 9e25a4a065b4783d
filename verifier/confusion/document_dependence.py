"""The key `dependence` of a confusion document: whether misses follow misses (see `verifier.analysis.dependence`)."""

from __future__ import annotations

from typing import Any

from verifier.confusion.document_variables import Fail, is_number
from verifier.errors import shown

COUNTS = ("objects", "misses", "pairs", "after_miss", "joint_misses", "permutations")
SHARES = ("miss_after_miss", "expected_miss_after_miss", "p_value")
NUMBERS = ("expected_joint_misses", "mean_run", "expected_mean_run")
NULL_WITHOUT_ONE = ("miss_after_miss", "expected_miss_after_miss", "mean_run", "expected_mean_run")


def check_dependence(found: Any, members: int | None, fail: Fail) -> None:
    """Refuse a value of the key that is not as the schema says.

    Args:
        found: the value.
        members: how many matrices the file holds in a family; None where it is none.
        fail: makes the complaint from a JSON pointer and a text.
    """
    if members is None:
        _check_member("/dependence", found, fail)
        return
    if not isinstance(found, list) or len(found) != members:
        raise fail("/dependence", f"expected a list of {members} tests, one per score threshold, got {shown(found)}")
    for number, each in enumerate(found):
        _check_member(f"/dependence/{number}", each, fail)


def _check_member(path: str, found: Any, fail: Fail) -> None:
    if not isinstance(found, dict) or set(found) != {"seed", "classes"} or not isinstance(found["classes"], list):
        raise fail(path, f"expected an object with 'seed' and a list 'classes', got {shown(found)}")
    if not _is_count(found["seed"]):
        raise fail(f"{path}/seed", f"expected an integer from 0, got {shown(found['seed'])}")
    keys = {"label", *COUNTS, *SHARES, *NUMBERS}
    for number, each in enumerate(found["classes"]):
        at = f"{path}/classes/{number}"
        if not isinstance(each, dict) or set(each) != keys:
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
                expected = "null" if nothing else "a share from 0 to 1" if most == 1 else "a number from 0"
                raise fail(f"{at}/{key}", f"expected {expected}, got {shown(value)}")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
