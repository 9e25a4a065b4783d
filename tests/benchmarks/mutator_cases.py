"""What a mutation of an image of 375 x 1242 pixels takes, beside others doing the same; prints JSON.

Every mutator runs in turn with its peers, each on one thread; the figures are medians of the time on a processor, so
that what else the machine does matters little. imagecorruptions and NRTK take part if they are installed, or lie in
the folder named by the environment variable VERIFIER_MUTATOR_PEERS; OpenCV always does.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from verifier.robustness.mutators import Frame, apply
from verifier.robustness.mutators.defocus import Lens
from verifier.robustness.mutators.frames import Metres, Pixels
from verifier.robustness.mutators.sweeps import parse_mutation, published

HEIGHT, WIDTH = 375, 1242
ROUNDS = 25
GREY = (205, 208, 211)
Peers: TypeAlias = dict[str, Callable[[], object]]


def scene() -> tuple[Pixels, Metres]:
    """An image with structure of every size, and a road between houses with cars on it, as KITTI's camera sees it."""
    rng = np.random.default_rng(0)
    rows = np.arange(HEIGHT)[:, np.newaxis] - 172.0
    depth = np.where(rows > 0, 721 * 1.65 / np.maximum(rows, 1), 80.0) * np.ones((1, WIDTH))
    depth = np.minimum(depth, 80)
    for left in range(0, WIDTH, 180):
        depth[60:200, left : left + 120] = rng.uniform(20, 70)
    for _ in range(6):
        metres, left = rng.uniform(6, 30), rng.integers(0, WIDTH - 200)
        foot = int(172 + 721 * 1.65 / metres)
        depth[max(0, foot - int(721 * 1.5 / metres)) : foot, left : left + int(721 * 1.7 / metres)] = metres
    pixels = np.zeros((HEIGHT, WIDTH, 3))
    for sigma in (1, 4, 16):
        layer = cv2.GaussianBlur(rng.normal(size=(HEIGHT, WIDTH, 3)), (0, 0), sigma)
        pixels += layer / layer.std()
    return np.clip(110 + 45 * pixels, 0, 255).astype(np.uint8), depth


def medians(calls: list[Callable[[], object]], rounds: int = ROUNDS) -> list[float]:
    """Seconds on a processor of each, measured in turn."""
    taken: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 2):
        for call, times in zip(calls, taken, strict=True):
            start = time.process_time()
            call()
            if turn > 1:
                times.append(time.process_time() - start)
    return [statistics.median(times) for times in taken]


def of_opencv(image: Pixels, depth: Metres) -> dict[str, Callable[[], object]]:
    """The same mutations, written with OpenCV and NumPy as one would."""
    solid = np.empty_like(image)
    solid[:] = GREY
    turn = cv2.getRotationMatrix2D(((WIDTH - 1) / 2, (HEIGHT - 1) / 2), 10, 1)
    rng = np.random.default_rng(0)

    def dropped(space: int, back: int, channel: int) -> object:
        other = cv2.cvtColor(image, space)
        other[..., channel] = 0
        return cv2.cvtColor(other, back)

    def without_red() -> object:
        out = image.copy()
        out[..., 0] = 0
        return out

    def salted() -> object:
        drawn = np.empty(image.shape[:2], np.uint16)
        cv2.randu(drawn, 0, 65536)
        out = image.copy()
        out[drawn < 1638] = 0
        out[drawn > 63897] = 255
        return out

    def noisy() -> object:
        both = np.empty(image.shape, np.float32)
        cv2.randn(both, 0, 1)
        both *= cv2.LUT(image, np.sqrt(25 + 0.25 * np.arange(256)).astype(np.float32))
        return cv2.add(image, both, dtype=cv2.CV_8U)

    def rolled() -> object:
        out = image.copy()
        for row in rng.choice(HEIGHT, HEIGHT // 5, replace=False):
            out[row] = np.roll(out[row], int(rng.integers(1, 21)), axis=0)
        return out

    def aberrated() -> object:
        out = image.copy()
        for channel, factor in ((0, 1.01), (2, 1 / 1.01)):
            scale = cv2.getRotationMatrix2D(((WIDTH - 1) / 2, (HEIGHT - 1) / 2), 0, factor)
            plane = cv2.warpAffine(image[..., channel], scale, (WIDTH, HEIGHT), borderMode=cv2.BORDER_REPLICATE)
            out[..., channel] = cv2.GaussianBlur(plane, (0, 0), 1)
        return out

    def blocks() -> object:
        small = cv2.resize(image, (math.ceil(WIDTH / 8), math.ceil(HEIGHT / 8)), interpolation=cv2.INTER_AREA)
        return cv2.resize(small, (WIDTH, HEIGHT), interpolation=cv2.INTER_NEAREST)

    def cut() -> object:
        out = np.zeros_like(image)
        out[:, WIDTH // 5 :] = image[:, WIDTH // 5 :]
        return out

    def hazed() -> object:
        seen = cv2.exp(-0.04 * cv2.GaussianBlur(depth.astype(np.float32), (0, 0), 2))[..., np.newaxis]
        return np.rint(image * seen + np.array(GREY, np.float32) * (1 - seen)).astype(np.uint8)

    def compressed() -> object:
        return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 20])[1], cv2.IMREAD_COLOR)

    return {
        "gaussian_blur:sigma_px=0.5": lambda: cv2.GaussianBlur(image, (0, 0), 0.5),
        "gaussian_blur:sigma_px=1": lambda: cv2.GaussianBlur(image, (0, 0), 1),
        "gaussian_blur:sigma_px=3": lambda: cv2.GaussianBlur(image, (0, 0), 3),
        "brightness:factor=1.33": lambda: cv2.convertScaleAbs(image, alpha=1.33),
        "contrast:factor=0.5": lambda: cv2.convertScaleAbs(image, alpha=0.5, beta=0.5 * float(image.mean())),
        "alpha_blend:alpha=0.5": lambda: cv2.addWeighted(image, 0.5, solid, 0.5, 0),
        "jpeg:quality=20": compressed,
        "salt_and_pepper:share=0.05": salted,
        "channel_dropout:channel=R": without_red,
        "channel_dropout:channel=Cb": lambda: dropped(cv2.COLOR_RGB2YCrCb, cv2.COLOR_YCrCb2RGB, 2),
        "additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5": noisy,
        "motion_blur:length_px=5,angle_deg=30": lambda: cv2.filter2D(image, -1, line(5, 30)),
        "motion_blur:length_px=15,angle_deg=30": lambda: cv2.filter2D(image, -1, line(15, 30)),
        "pixelation:block_px=8": blocks,
        "rotation:angle_deg=10": lambda: cv2.warpAffine(image, turn, (WIDTH, HEIGHT)),
        "truncation:left=0.2": cut,
        "shifted_lines:share=0.2,most_px=20": rolled,
        "chromatic_aberration:expansion=0.01,sigma_px=1": aberrated,
        "haze:visibility_m=97.8": hazed,
    }


def line(length: int, angle_deg: float) -> NDArray[np.float32]:
    """The usual kernel of motion blur: a row of ones, turned with interpolation, over its sum."""
    row = np.zeros((length + 2, length + 2), np.float32)
    middle = (length + 1) / 2
    row[length // 2 + 1, 1:-1] = 1
    turned = cv2.warpAffine(row, cv2.getRotationMatrix2D((middle, middle), angle_deg, 1), row.shape)
    return np.asarray(turned / turned.sum(), np.float32)


def of_imagecorruptions(image: Pixels) -> dict[str, Callable[[], object]]:
    """Those that it has, at its nearest severity; its Gaussian blur does not run with today's scikit-image."""
    from imagecorruptions import corrupt

    names = {
        "contrast:factor=0.5": ("contrast", 1),
        "jpeg:quality=20": ("jpeg_compression", 2),
        "salt_and_pepper:share=0.05": ("impulse_noise", 2),
        "additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5": ("gaussian_noise", 1),
        "motion_blur:length_px=15,angle_deg=30": ("motion_blur", 2),
        "pixelation:block_px=8": ("pixelate", 5),
    }
    return {
        mutation: lambda name=name, severity=severity: corrupt(image, severity=severity, corruption_name=name)
        for mutation, (name, severity) in names.items()
    }


def of_nrtk(image: Pixels, depth: Metres) -> dict[str, Callable[[], object]]:
    """Those of NRTK that need none of its extras."""
    from nrtk.impls.perturb_image.environment import HazePerturber
    from nrtk.impls.perturb_image.photometric.blur import GaussianBlurPerturber
    from nrtk.impls.perturb_image.photometric.enhance import BrightnessPerturber, ContrastPerturber
    from nrtk.impls.perturb_image.photometric.noise import (
        GaussianNoisePerturber,
        SaltAndPepperNoisePerturber,
    )

    deep = np.repeat(depth[..., np.newaxis], 3, axis=2)
    haze = HazePerturber(factor=0.04)
    plain: dict[str, Any] = {
        "gaussian_blur:sigma_px=3": GaussianBlurPerturber(ksize=19),
        "brightness:factor=1.33": BrightnessPerturber(factor=1.33),
        "contrast:factor=0.5": ContrastPerturber(factor=0.5),
        "salt_and_pepper:share=0.05": SaltAndPepperNoisePerturber(seed=0, amount=0.05),
        "additive_noise:constant_sd=5,signal_sd=0.5,exponent=0.5": GaussianNoisePerturber(seed=0, var=0.001),
    }
    made: dict[str, Callable[[], object]] = {
        mutation: lambda each=each: each.perturb(image=image) for mutation, each in plain.items()
    }
    made["haze:visibility_m=97.8"] = lambda: haze.perturb(image=image, depth_map=deep, sky_color=list(GREY))
    return made


def simple() -> list[dict[str, Any]]:
    """A row for each mutator: ours and every peer in seconds."""
    image, depth = scene()
    listed = {"OpenCV": of_opencv(image, depth)}
    for name, make in (
        ("imagecorruptions", lambda: of_imagecorruptions(image)),
        ("NRTK", lambda: of_nrtk(image, depth)),
    ):
        try:
            listed[name] = make()
        except ImportError:
            continue
    frame = Frame(image, depth)
    bare = Frame(image)
    rows = []
    for text in listed["OpenCV"]:
        mutation, rng = parse_mutation(text), np.random.default_rng(0)
        given = frame if mutation.steps[0].name == "haze" else bare
        peers = {name: calls[text] for name, calls in listed.items() if text in calls}
        seconds = medians([lambda: apply(mutation, given, rng), *peers.values()])  # noqa: B023
        rows.append({"mutation": text, "ours_s": seconds[0], "peers_s": dict(zip(peers, seconds[1:], strict=True))})
    return rows


def out_of_focus() -> list[dict[str, Any]]:
    """A row for each defocus of both papers, beside one blur of the widest spread by OpenCV, of bytes and float32."""
    image, depth = scene()
    exact, frame = image.astype(np.float32), Frame(image, depth)
    rows = []
    for mutation in published("published-2018"):
        if mutation.name != "defocus":
            continue
        widest = Lens(float(mutation.parameters["kappa_m_px"]), float(mutation.parameters["focus_m"])).range_px(
            depth
        )[1]
        seconds = medians(
            [
                lambda: apply(mutation, frame),  # noqa: B023
                lambda: cv2.GaussianBlur(image, (0, 0), widest),  # noqa: B023
                lambda: cv2.GaussianBlur(exact, (0, 0), widest),  # noqa: B023
            ]
        )
        peers = {"blur of bytes": seconds[1], "blur of float32": seconds[2]}
        rows.append({"mutation": mutation.text, "widest_px": widest, "ours_s": seconds[0], "peers_s": peers})
    return rows


if __name__ == "__main__":
    if folder := os.environ.get("VERIFIER_MUTATOR_PEERS"):
        sys.path.append(folder)
    cv2.setNumThreads(1)
    print(json.dumps({"simple": simple, "out_of_focus": out_of_focus}[sys.argv[1]]()))
