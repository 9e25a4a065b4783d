"""The mutations of the two papers, as their lists print them, and the mild and severe groups of the second.

* `published-2021`: the 22 of Pezzementi et al. 2021, section 5 and table 1. Section 5.3 puts them into groups. It
  prints "u_f 1 and (kappa 2; kappa 3.6)" for severe defocus, but 3.6 was not run; both constants that were are severe
  at 1 m.
* `published-2018`: the rows of table IV of Pezzementi et al. 2018.
* `published-2018-text`: section III and table II of the same paper, which differ: blur up to 2.5 only, alpha 0.875
  instead of 0.1 and 0.25, JPEG also at 60, 10 % of salt and pepper, defocus without 10 m. Noise has no numbers there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from verifier.closedloop.settings import Severity
from verifier.robustness.mutators.mutation import Mutation

Group: TypeAlias = Literal["mild", "severe", "any"]
GROUPS: tuple[Group, ...] = get_args(Group)
VISIBILITIES_M = (978.0, 326.0, 97.8)
"""u_V for beta = 0.004, 0.012 and 0.04 per metre."""


@dataclass(frozen=True)
class Published:
    """A mutation of a paper and its group there; None where the paper has no groups."""

    mutation: Mutation
    group: Severity | None


def published(name: str, group: Group = "any") -> tuple[Mutation, ...]:
    """The mutations of a list of `PUBLISHED`, or those of one group.

    Raises:
        ValueError: no such list or group, or a list without groups.
    """
    if name not in PUBLISHED or group not in GROUPS:
        raise ValueError(f"expected a list of {', '.join(PUBLISHED)} and a group of {', '.join(GROUPS)}")
    if group != "any" and any(each.group is None for each in PUBLISHED[name]):
        raise ValueError(f"{name} has no groups")
    return tuple(each.mutation for each in PUBLISHED[name] if group in ("any", each.group))


def _each(name: str, parameter: str, values: Iterable[Any], **fixed: Any) -> list[Mutation]:
    return [Mutation(name, {parameter: value, **fixed}) for value in values]


def _defocus(constants: Iterable[float], distances_m: Iterable[float]) -> list[Mutation]:
    return [
        Mutation("defocus", {"kappa_m_px": constant, "focus_m": distance})
        for constant in constants
        for distance in distances_m
    ]


def _severe(mutation: Mutation) -> bool:
    """Section 5.3 of the 2021 paper."""
    given: Mapping[str, Any] = mutation.parameters
    return bool(
        (mutation.name == "gaussian_blur" and given["sigma_px"] >= 2.5)
        or (mutation.name == "alpha_blend" and given["alpha"] >= 0.5)
        or mutation.name == "channel_dropout"
        or (mutation.name == "haze" and given["visibility_m"] == 97.8)
        or (mutation.name == "defocus" and given["focus_m"] == 1)
    )


_OF_2021 = [
    *_each("gaussian_blur", "sigma_px", (1.5, 2.0, 2.5, 3.0)),
    *_each("alpha_blend", "alpha", (0.1, 0.25, 0.5, 0.75)),
    *_each("channel_dropout", "channel", ("Cb", "Cr", "R", "G", "B")),
    *_each("haze", "visibility_m", VISIBILITIES_M),
    *_defocus((2.0, 2.8), (1.0, 2.0, 5.0)),
]
_TABLE_OF_2018 = [
    *_defocus((2.0, 2.8, 3.6), (10.0, 5.0, 2.0, 1.0)),
    *_each("gaussian_blur", "sigma_px", (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)),
    *_each("haze", "visibility_m", VISIBILITIES_M),
    *_each("alpha_blend", "alpha", (0.1, 0.25, 0.5, 0.75)),
    *_each("jpeg", "quality", (40, 20, 10)),
    *_each("brightness", "factor", (2.0, 1.33, 1.14, 0.88, 0.75, 0.5)),
    *_each("salt_and_pepper", "share", (0.01, 0.02, 0.05)),
    *_each("channel_dropout", "channel", ("Cb", "Cr", "R", "G", "B")),
    *(
        Mutation("additive_noise", {"constant_sd": constant, "signal_sd": signal, "exponent": exponent})
        for constant, signal, exponent in ((5, 0.5, 0.5), (5, 0.5, 0.7), (5, 1.5, 0.5), (15, 0.5, 0.5), (5, 2.5, 0.5))
    ),
]
_TEXT_OF_2018 = [
    *_each("gaussian_blur", "sigma_px", (0.5, 1.0, 1.5, 2.0, 2.5)),
    *_each("brightness", "factor", (0.5, 0.75, 0.875, 1.143, 1.333, 2.0)),
    *_each("alpha_blend", "alpha", (0.5, 0.75, 0.875)),
    *_each("jpeg", "quality", (60, 40, 20, 10)),
    *_each("salt_and_pepper", "share", (0.01, 0.02, 0.05, 0.1)),
    *_each("channel_dropout", "channel", ("R", "G", "B", "Cb", "Cr")),
    *_each("haze", "visibility_m", VISIBILITIES_M[::-1]),
    *_defocus((2.0, 2.8, 3.6), (1.0, 2.0, 5.0)),
]
PUBLISHED: Mapping[str, tuple[Published, ...]] = MappingProxyType(
    {
        "published-2021": tuple(Published(each, "severe" if _severe(each) else "mild") for each in _OF_2021),
        "published-2018": tuple(Published(each, None) for each in _TABLE_OF_2018),
        "published-2018-text": tuple(Published(each, None) for each in _TEXT_OF_2018),
    }
)
"""The lists by name."""
