"""How much haze can it take? Images, haze, a detector, and the requirements of the car that relies on it.

Street scenes are drawn, with people 4 to 14 m away and the depth of every pixel. Haze thickens from a clear day
(visibility 20 km) to 10 m; by depth, so that it hides far people first. The camera adds a little noise. OpenCV's HOG
people detector looks at every image. What it finds becomes matrices by distance, false positives included, and Storm
verifies a car that drives towards a person: it must be slow from 6 m on, and must not reach the person.

AP asks for every person at every distance alike. The car does not: it has several looks at far people, one of which
is enough, and two at near ones. So it can do with more haze than AP suggests, up to where that is no longer so.
How much of this could be the luck of so few scenes is computed, too: that AP fails before the car is too fast near
people is not luck.
Each look is taken to be independent; who is missed in one image of a real drive is missed in the next one more often
than that, and `verify confusion` tests for it.

One call does all of it, from images to table, as the command does: verify assess FILE --make FOLDER.
It needs the extras images, detections and coco, and half a minute. Everything is made up here, with a seed.
Run it from anywhere: python examples/13_how_much_haze.py
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import verifier

SCENES, WIDTH, HEIGHT, HORIZON = 120, 320, 200, 90
FOCAL_PX, CAMERA_M, TALL_M, WALL_M = 250.0, 1.5, 1.75, 60.0

MODEL = """
initial = "x = 0 & v = 2"
terminal = "x = line | v = 0"
[constants]
line = 14
[variables]
x = { range = [0, "line"], next = "min(x + v, line)", unit = "m" }
v = { range = [0, 2], next = "speed", unit = "m per step" }
[inputs]
speed = { range = [0, 2] }
[labels]
near = "line - x <= 6"
hit = "x = line"
[environments]
person = [{ class = "person", distance_m = "line - x" }]
empty = [{ class = "empty", distance_m = "line - x" }]
[planners.careful]
rules = [
    { when = "sees(person) & line - x <= 3", set = { speed = "max(v - 1, 0)" } },
    { when = "sees(person)", set = { speed = "min(v, 1)" } },
    { when = "true", set = { speed = "v" } },
]
"""
SPEC = """
model "car.toml"
slow_near_people: P >= 0.95 [ G (person & near -> v <= 1) ]
stops_for_people: P >= 0.95 [ G !(person & hit) ]
goes_on_alone:    P >= 0.99 [ person | F hit ]
"""
ASSESSMENT = """
[systems.car.source]
images = "images"
depth = { folder = "depth" }
annotations = { format = "coco", file = "truth.json", distance_field = "distance_m" }
[systems.car.detector]
kind = "hog"
enlargement = 2.5
pyramid_step = 1.2
lowest_score = -0.3
min_score = 0.3
[systems.car.degradation]
parameter = "visibility"
unit = "m"
scale = "reciprocal"
transformation = [
    { mutation = "haze", visibility_m = "level" },
    { mutation = "additive_noise", constant_sd = 2, signal_sd = 0, exponent = 0 },
]
levels = [{ at = 20000 }, { at = 60 }, { at = 40 }, { at = 25 }, { at = 15 }, { at = 10 }]
allowed_change = { AP = 0.1, recall = 0.1 }
counting = { edges_m = [0, 7, 11, inf], unmatched = "own_bin" }
run = { spec = "car.ltl" }
"""


def silhouette(height, lean):
    """(h, w) in 0..1, how much of each pixel a person covers: head, trunk, two arms, two legs."""
    rows, columns = np.mgrid[0 : 4 * height, 0 : 4 * int(0.42 * height)]
    y, x = (rows + 0.5) / (4 * height), (columns + 0.5) / (4 * height) - int(0.42 * height) / (2 * height)
    body = (x / 0.055) ** 2 + ((y - 0.075) / 0.075) ** 2 <= 1
    body |= (abs(x) <= 0.105 - 0.06 * (y - 0.17)) & (y >= 0.14) & (y <= 0.52)
    for side in (-1, 1):
        arm, leg = (0.105, 0.2, 0.13 + 0.02 * lean, 0.5, 0.025), (0.045, 0.5, 0.05 + 0.03 * lean, 0.97, 0.0375)
        for x0, y0, x1, y1, thick in (arm, leg):
            dx, dy = side * (x1 - x0), y1 - y0
            along = np.clip(((x - side * x0) * dx + (y - y0) * dy) / (dx**2 + dy**2), 0, 1)
            body |= np.hypot(x - side * x0 - along * dx, y - y0 - along * dy) <= thick
    return body.reshape(height, 4, -1, 4).mean(axis=(1, 3))


def street(random, distances_m):
    """Grey levels and depth of a road up to a wall, with a person at each distance; and their rectangles."""
    rows = np.arange(HEIGHT)[:, None] + 0.5
    depth = np.minimum(FOCAL_PX * CAMERA_M / np.maximum(rows - HORIZON, 1e-6), WALL_M) * np.ones(WIDTH)
    grey = np.where(rows > HORIZON, 100, 170) + np.kron(
        random.normal(0, 3, (HEIGHT // 8, WIDTH // 8)), np.ones((8, 8))
    )
    boxes = []
    for place, away in enumerate(distances_m):
        body = silhouette(int(FOCAL_PX * TALL_M / away), random.uniform(-1, 1))
        bottom = int(HORIZON + FOCAL_PX * CAMERA_M / away)
        top, left = bottom - len(body), int(WIDTH * (place + 0.5) / len(distances_m)) - body.shape[1] // 2
        seen = (slice(top, min(bottom, HEIGHT)), slice(left, left + body.shape[1]))
        body = body[: seen[0].stop - top]
        grey[seen] += body * (random.uniform(20, 70) - grey[seen])
        depth[seen] = np.where(body > 0.5, away, depth[seen])
        boxes.append([left, top, body.shape[1], len(body)])
    return np.rint(grey).astype(np.uint8), depth, boxes


def draw(folder):
    """Images, depth maps and annotations in the format of COCO."""
    random = np.random.default_rng(5)
    truth = {"images": [], "categories": [{"id": 1, "name": "person"}], "annotations": []}
    for name in ("images", "depth"):
        (folder / name).mkdir()
    for number in range(SCENES):
        slots = [random.uniform(4, 7), random.uniform(7, 11), random.uniform(11, 14)]
        distances_m = random.permutation(slots)[: number % 3]  # nobody, one or two people
        grey, depth, boxes = street(random, distances_m)
        Image.fromarray(np.repeat(grey[..., None], 3, axis=2)).save(folder / f"images/{number:02d}.png")
        np.save(folder / f"depth/{number:02d}.npy", depth)
        truth["images"].append({"id": number, "file_name": f"{number:02d}.png", "width": WIDTH, "height": HEIGHT})
        for away, box in zip(distances_m.tolist(), boxes, strict=True):
            person = {"id": len(truth["annotations"]) + 1, "image_id": number, "category_id": 1, "bbox": box}
            truth["annotations"].append({**person, "area": box[2] * box[3], "iscrowd": 0, "distance_m": away})
    (folder / "truth.json").write_text(json.dumps(truth))


def place(level):
    """A level as words."""
    return "20 km" if level == 20000 else f"{level:.0f} m"


with tempfile.TemporaryDirectory() as text:
    folder = Path(text)
    draw(folder)
    for name, content in (("car.toml", MODEL), ("car.ltl", SPEC), ("haze.toml", ASSESSMENT)):
        (folder / name).write_text(content)
    result = verifier.assess(folder / "haze.toml", make=folder / "made")
(car,) = json.loads(result.json_text())["systems"]

found = result.systems[0].degradation
print("visibility        " + "".join(f"{place(level):>7}" for level in found.levels))
for criterion in found.criteria:
    name = f"P({criterion.name})" if criterion.kind == "requirement" else criterion.name
    print(f"{name:<20}" + "".join(f"{value:7.2f}" for value in criterion.values).removeprefix("  "))

print("\nhow much haze it takes")
for criterion in found.criteria:
    each = criterion.break_
    lasts = "all that was tried" if each.fails_at is None else f"down to {place(each.holds_at)}"
    fails = "" if each.fails_at is None else f", no longer at {place(each.fails_at)}"
    doubt = "" if each.fails_at is None else ", surely" if each.sure_at == each.fails_at else ", perhaps by luck"
    print(f"  {criterion.name}, {criterion.limit}: {lasts}{fails}{doubt}")
for number, group in enumerate(found.seen):
    print(f"{'seen first by' if number == 0 else 'then by'} {', '.join(each.name for each in group)}")
for order in found.surely_before:
    print(f"whatever the luck of these scenes, {order.earlier.name} fails before {order.later.name}")

# Expected output:
# visibility          20 km   60 m   40 m   25 m   15 m   10 m
# AP                   0.54   0.49   0.44   0.27   0.14   0.07
# recall               0.97   0.99   0.95   0.66   0.39   0.14
# P(slow_near_people)  1.00   1.00   1.00   1.00   0.61   0.00
# P(stops_for_people)  1.00   1.00   1.00   1.00   1.00   0.63
# P(goes_on_alone)     1.00   1.00   1.00   1.00   1.00   1.00
#
# how much haze it takes
#   AP, change at most 0.1: down to 40 m, no longer at 25 m, surely
#   recall, change at most 0.1: down to 40 m, no longer at 25 m, surely
#   slow_near_people, P >= 0.95: down to 25 m, no longer at 15 m, surely
#   stops_for_people, P >= 0.95: down to 15 m, no longer at 10 m, surely
#   goes_on_alone, P >= 0.99: all that was tried
# seen first by AP, recall
# then by slow_near_people
# then by stops_for_people
# whatever the luck of these scenes, AP fails before slow_near_people
# whatever the luck of these scenes, recall fails before slow_near_people
