"""What simple mutation each pixel of a person gets from one by depth (Figure 8 of Pezzementi et al. 2018).

Haze blends a pixel at depth D with weight 1 - exp(-beta D), defocus spreads it by rho = kappa |D - u_f| / (D u_f).
Beside the weights with which blends and blurs predict an ADR (`verifier.robustness.prediction`) stand these shares.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verifier.base.documents import Count, Share
from verifier.robustness.campaign.scenes import Scenes
from verifier.robustness.mutators import AnyMutation
from verifier.robustness.mutators.defocus import Lens
from verifier.robustness.mutators.photometric import scattering_per_m

_SIMPLE = {"haze": "alpha", "defocus": "sigma_px"}
EDGES = {"alpha": np.linspace(0, 1, 11), "sigma_px": np.append(np.linspace(0, 3.5, 8), np.inf)}
"""Of the bins: blends by tenths, blurs by half pixels."""


@dataclass(frozen=True)
class Magnitudes:
    """Shares of the pixels in objects' rectangles, of known depth, by the magnitude of the simple mutation.

    Attributes:
        parameter: "alpha" of a blend or "sigma_px" of a blur.
        lower: ends of the bins from below; the last bin of `sigma_px` has no upper one.
    """

    condition: str
    parameter: str
    lower: tuple[float, ...]
    shares: tuple[Share, ...]
    pixels: Count


def magnitudes(scenes: Scenes, mutations: Mapping[str, AnyMutation]) -> Iterator[Magnitudes]:
    """Of every mutation of a list that is haze or defocus alone; none without depth or objects."""
    deep = {name: each for name, each in mutations.items() if len(each.steps) == 1 and each.steps[0].name in _SIMPLE}
    if not deep or scenes.depth is None or scenes.truth is None:
        return
    depths = [np.zeros(0)]
    for name in scenes.files:
        objects, _ = scenes.rows(name)
        frame = scenes.frame(name, deep=False)
        boxes = np.zeros((0, 4)) if frame.boxes is None else frame.boxes[: len(objects)]
        depth = scenes.depth_m(name, frame.size) if len(boxes) else np.zeros((0, 0))
        for left, top, right, bottom in np.round(np.maximum(boxes, 0)).astype(int).tolist():
            depths.append(depth[top:bottom, left:right].ravel())
    known = np.concatenate(depths)
    known = known[known > 0]
    for name, each in deep.items():
        given: Mapping[str, Any] = each.steps[0].parameters
        parameter = _SIMPLE[each.steps[0].name]
        if parameter == "alpha":
            beta = scattering_per_m(given.get("visibility_m", math.inf), given.get("beta_per_m"))
            magnitude = -np.expm1(-beta * known)
        else:
            magnitude = Lens(given["kappa_m_px"], given["focus_m"]).spread_px(known)
        counts = np.histogram(magnitude, EDGES[parameter])[0]
        if len(known):
            shares = tuple((counts / len(known)).tolist())
            yield Magnitudes(name, parameter, tuple(EDGES[parameter][:-1].tolist()), shares, len(known))
