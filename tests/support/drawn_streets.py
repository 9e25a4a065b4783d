"""Drawn street scenes with people of known place and distance, whom OpenCV's HOG detector finds.

A camera 1.5 m above a flat road looks level. Figures 1.75 m tall stand on the road; depth is exact: the road is a
plane, figures are upright, and a wall closes the scene at `WALL_M`.
"""

import json
from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT, HORIZON = 320, 200, 90
FOCAL_PX, CAMERA_M, TALL_M, WALL_M = 250.0, 1.5, 1.75, 60.0


@dataclass(frozen=True)
class Scene:
    """Pixels (H, W, 3), depth (H, W) in metres, and people as (left, top, right, bottom, distance)."""

    pixels: np.ndarray
    depth_m: np.ndarray
    people: tuple


def covered(height, lean):
    """(h, w) in 0..1: how much of each pixel a figure covers: head, neck, trunk, two arms and two legs, smoothed."""
    fine = 4
    rows, columns = np.mgrid[0 : height * fine, 0 : int(0.42 * height) * fine]
    y = (rows + 0.5) / (height * fine)
    x = (columns + 0.5 - int(0.42 * height) * fine / 2) / (height * fine)
    body = (x / 0.055) ** 2 + ((y - 0.075) / 0.075) ** 2 <= 1
    body |= (abs(x) <= 0.03) & (abs(y - 0.155) <= 0.035)
    body |= (abs(x) <= 0.105 - 0.02 * (y - 0.17) / 0.35) & (y >= 0.17) & (y <= 0.52)
    for side in (-1, 1):
        for (x0, y0), (x1, y1), thick in (
            ((side * 0.105, 0.2), (side * (0.13 + 0.02 * lean), 0.5), 0.025),
            ((side * 0.045, 0.5), (side * (0.05 + 0.03 * abs(lean)), 0.97), 0.0375),
        ):
            along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2), 0, 1)
            body |= np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0)) <= thick
    return body.reshape(height, fine, -1, fine).mean(axis=(1, 3))


def drawn(rng, distances_m):
    """A scene with one figure for each distance, side by side."""
    rows = np.arange(HEIGHT) + 0.5
    road = np.where(rows > HORIZON, FOCAL_PX * CAMERA_M / np.maximum(rows - HORIZON, 1e-6), WALL_M)
    depth = np.repeat(np.minimum(road, WALL_M)[:, None], WIDTH, axis=1)
    patches = np.kron(rng.normal(0, 1, (HEIGHT // 8, WIDTH // 8)), np.ones((8, 8)))
    grey = np.where((rows > HORIZON)[:, None], 100 + 3 * patches, 170 + 3 * patches)
    people = []
    for place, away in enumerate(distances_m):
        body = covered(int(FOCAL_PX * TALL_M / away), rng.uniform(-1, 1))
        height, width = body.shape
        bottom = min(int(HORIZON + FOCAL_PX * CAMERA_M / away), HEIGHT)
        left = int(WIDTH * (place + 0.5) / len(distances_m) - width / 2)
        body = body[: HEIGHT - (bottom - height)]
        where = (slice(bottom - height, bottom), slice(left, left + width))
        grey[where] += body * (rng.uniform(20, 60) - grey[where])
        depth[where] = np.where(body > 0.5, away, depth[where])
        people.append((left, bottom - height, left + width, bottom, float(away)))
    return Scene(np.repeat(np.rint(grey).astype(np.uint8)[..., None], 3, axis=2), depth, tuple(people))


def write_scenes(folder, scenes):
    """`images`, `depth` (NumPy) and `truth.json` (COCO with `distance_m`) below a folder."""
    from PIL import Image

    (folder / "images").mkdir()
    (folder / "depth").mkdir()
    document = {"images": [], "categories": [{"id": 1, "name": "ped"}], "annotations": []}
    for number, scene in enumerate(scenes, 1):
        name = f"street{number}"
        Image.fromarray(scene.pixels).save(folder / "images" / f"{name}.png")
        np.save(folder / "depth" / f"{name}.npy", scene.depth_m)
        document["images"].append({"id": number, "file_name": f"{name}.png", "width": WIDTH, "height": HEIGHT})
        for left, top, right, bottom, away in scene.people:
            box = [left, top, right - left, bottom - top]
            document["annotations"].append(
                {"id": len(document["annotations"]) + 1, "image_id": number, "category_id": 1, "bbox": box,
                 "area": box[2] * box[3], "iscrowd": 0, "distance_m": away}
            )  # fmt: skip
    (folder / "truth.json").write_text(json.dumps(document))
