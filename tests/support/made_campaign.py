"""A campaign on drawn streets: images, depth, poses, a camera, a small system, and the file that names them."""

import numpy as np
from drawn_streets import CAMERA_M, FOCAL_PX, HORIZON, WIDTH, drawn, write_scenes

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
person = [{ class = "ped", distance_m = "line - x" }]
[planners.careful]
rules = [
    { when = "sees(ped) & line - x <= 3", set = { speed = "max(v - 1, 0)" } },
    { when = "sees(ped)", set = { speed = "min(v, 1)" } },
    { when = "true", set = { speed = "v" } },
]
"""
SPEC = """
model "car.toml"
slow_near_people: P >= 0.95 [ G (near -> v <= 1) ]
"""
COLLISION = """
[collision]
distance_m = 8
speed_mps = 10
deceleration_mps2 = 6.86
reaction_s = 0.1
"""
FILE = f"""\
title = "HOG on drawn streets"
[data]
images = "images"
annotations = {{ format = "coco", file = "truth.json", distance_field = "distance_m" }}
depth = {{ folder = "depth" }}
calibration = "camera.csv"
poses = "poses.csv"
[detectors.hog]
kind = "hog"
class = "ped"
enlargement = 1.8
lowest_score = -0.3
min_score = 0.5
[mutations]
sweep = ["haze:visibility_m=978,97.8"]
[counting]
edges_m = [0, 9, inf]
[run]
spec = "car.ltl"
{COLLISION}[closed_loop]
control_radius = 2
safety_radius = 1.5
draws = 0
[adr]
level = [0.2, 0.5]
draws = 100
"""


def write_streets(folder, scenes, seed=3):
    """Scenes with 0, 1 and 2 people in turn; of three images each a drive straight ahead at 1 m/s."""
    rng = np.random.default_rng(seed)
    write_scenes(folder, [drawn(rng, rng.uniform(5, 13, number % 3)) for number in range(scenes)])
    camera = f"{FOCAL_PX},{FOCAL_PX},{WIDTH / 2},{HORIZON},{CAMERA_M}"
    (folder / "camera.csv").write_text(f"fx,fy,cx,cy,height_m\n{camera}\n")
    poses = [f"street{k + 1},drive{k // 3},{(k % 3) / 2},{(k % 3) / 2},0,0" for k in range(scenes)]
    (folder / "poses.csv").write_text("\n".join(["frame,log,time_s,x_m,y_m,heading_rad", *poses]) + "\n")
    (folder / "car.toml").write_text(MODEL)
    (folder / "car.ltl").write_text(SPEC)
    (folder / "campaign.toml").write_text(FILE)
