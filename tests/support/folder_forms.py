"""The same three drives as folders, archives and files of many formats, and the counts that are written of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from verifier.cli import main

DRIVES = ("fog", "rain", "sun")
NAMES = ("pedestrian", "car")


def made_rows():
    """Objects and detections of three drives with six frames: every third object is missed, every fifth misnamed."""
    truth = [
        {"drive": drive, "frame": frame, "track": track, "kind": track % 2, "x": 4.0 + 6 * track + frame, "y": number}
        for number, drive in enumerate(DRIVES)
        for frame in range(6)
        for track in range(4)
    ]
    found = [{**row, "score": 0.9 - at / 100} for at, row in enumerate(truth) if at % 3]
    for row in found[::5]:
        row["kind"] = 1 - row["kind"]
    return pd.DataFrame(truth), pd.DataFrame(found)


def each_drive(rows):
    for part, table in zip(("truth", "found"), rows, strict=True):
        for drive in DRIVES:
            yield part, drive, table[table["drive"] == drive]


def corners(row):
    return 20 * row.x, 10.0, 20 * row.x + 15, 60.0 + row.y


def write_mot(rows):
    for part, drive, table in each_drive(rows):
        Path(f"{part}/{drive}/{'gt' if part == 'truth' else 'det'}").mkdir(parents=True)
        lines = [
            f"{row.frame + 1},{row.track + 1},{20 * row.x},10,15,{50 + row.y},"
            + (f"1,{1 + 2 * row.kind},1.0" if part == "truth" else f"{row.score}")
            for row in table.itertuples()
        ]
        name = "gt/gt.txt" if part == "truth" else "det/det.txt"
        Path(f"{part}/{drive}/{name}").write_text("\n".join(lines) + "\n")
        Path(f"{part}/{drive}/notes.txt").write_text("read by nobody\n")
    truth = rows[0]
    named = [f"{row.drive}/{row.frame + 1:06},{row.track + 1},{row.x}" for row in truth.itertuples()]
    Path("metres.csv").write_text("frame,track,distance_m\n" + "\n".join(named) + "\n")


def write_kitti_object(rows):
    for part, drive, table in each_drive(rows):
        Path(part).mkdir(exist_ok=True)
        for frame in range(6):
            lines = [
                f"{('Pedestrian', 'Car')[row.kind]} 0 0 0 {' '.join(map(str, corners(row)))} 1.7 0.6 0.8 "
                f"{row.y} 1.6 {row.x} 0.1" + (f" {row.score}" if part == "found" else "")
                for row in table[table["frame"] == frame].itertuples()
            ]
            Path(f"{part}/{drive}{frame}.txt").write_text("".join(f"{line}\n" for line in lines))


def write_voc(rows):
    metres = ["frame,id,distance_m"]
    for part, drive, table in each_drive(rows):
        Path(part).mkdir(exist_ok=True)
        for frame in range(6):
            objects = ""
            for number, row in enumerate(table[table["frame"] == frame].itertuples(), 1):
                sides = zip(("xmin", "ymin", "xmax", "ymax"), corners(row), strict=True)
                box = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
                score = f"<score>{row.score}</score>" if part == "found" else ""
                objects += f"<object><name>{NAMES[row.kind]}</name>{score}<bndbox>{box}</bndbox></object>"
                metres += [f"{drive}{frame},{number},{row.x}"] if part == "truth" else []
            Path(f"{part}/{drive}{frame}.xml").write_text(f"<annotation>{objects}</annotation>")
    Path("metres.csv").write_text("\n".join(metres) + "\n")


def write_bdd100k(rows):
    for part, drive, table in each_drive(rows):
        Path(part).mkdir(exist_ok=True)
        frames = []
        for frame in range(6):
            labels = [
                {
                    "id": str(row.track),
                    "category": NAMES[row.kind],
                    "box2d": dict(zip(("x1", "y1", "x2", "y2"), corners(row), strict=True)),
                    **({"score": row.score} if part == "found" else {"attributes": {"metres": row.x}}),
                }
                for row in table[table["frame"] == frame].itertuples()
            ]
            frames.append({"name": f"{drive}-{frame}.jpg", "videoName": drive, "frameIndex": frame, "labels": labels})
        Path(f"{part}/{drive}.json").write_text(json.dumps(frames))


def write_openlabel(rows):
    for part, drive, table in each_drive(rows):
        Path(part).mkdir(exist_ok=True)
        objects = {str(track): {"name": f"o{track}", "type": NAMES[track % 2]} for track in range(4)}
        frames = {str(frame): {"objects": {}} for frame in range(6)}
        for row in table.itertuples():
            key = str(row.track) if part == "truth" else f"{row.track}{row.kind}"
            objects[key] = {"name": key, "type": NAMES[row.kind]}
            value = [float(row.x), float(row.y), 0, 0, 0, 0, 1, 4, 2, 1.5]
            data = {"cuboid": [{"name": "box", "val": value, "coordinate_system": "vehicle"}]}
            data["num"] = [{"name": "score", "val": row.score}] if part == "found" else []
            frames[str(row.frame)]["objects"][key] = {"object_data": data}
        systems = {"vehicle": {"type": "local_cs", "parent": ""}}
        document = {"openlabel": {"objects": objects, "coordinate_systems": systems, "frames": frames}}
        Path(f"{part}/{drive}.json").write_text(json.dumps(document))


def write_cvat(rows):
    for part, drive, table in each_drive(rows):
        Path(part).mkdir(exist_ok=True)
        images = ""
        for frame in range(6):
            images += f'<image id="{frame}" name="{frame}.jpg" width="2000" height="100">'
            for row in table[table["frame"] == frame].itertuples():
                sides = zip(("xtl", "ytl", "xbr", "ybr"), corners(row), strict=True)
                box = " ".join(f'{side}="{value}"' for side, value in sides)
                told = {"metres": row.x, **({"score": row.score} if part == "found" else {})}
                inner = "".join(f'<attribute name="{name}">{value}</attribute>' for name, value in told.items())
                images += f'<box label="{NAMES[row.kind]}" occluded="0" {box}>{inner}</box>'
            images += "</image>"
        Path(f"{part}/{drive}.xml").write_text(f"<annotations>{images}</annotations>")


def in_space(table, names):
    """Columns of a box that stands on the road and looks ahead."""
    x, y, z, length, width, height, *turn = names
    place = {x: table["x"], y: table["y"].astype(float), z: 0.0, length: 4.0, width: 2.0, height: 1.5}
    return table[[]].assign(**place, **dict.fromkeys(turn[:-1], 0.0), **{turn[-1]: 1.0 if turn[1:] else 0.0})


def write_argoverse(rows):
    names = ("tx_m", "ty_m", "tz_m", "length_m", "width_m", "height_m", "qx", "qy", "qz", "qw")
    for part, drive, table in each_drive(rows):
        own = in_space(table, names).assign(timestamp_ns=table["frame"], category=[NAMES[k] for k in table["kind"]])
        own = (
            own.assign(track_uuid=table["track"].astype(str)) if part == "truth" else own.assign(score=table["score"])
        )
        path = Path(f"truth/{drive}/annotations.feather" if part == "truth" else f"found/{drive}.feather")
        path.parent.mkdir(parents=True, exist_ok=True)
        own.reset_index(drop=True).to_feather(path)
        Path(f"truth/{drive}/sensors/lidar").mkdir(parents=True, exist_ok=True)
        Path(f"truth/{drive}/sensors/lidar/9.feather").write_bytes(b"")  # a sweep without an object


def write_waymo(rows):
    names = ("center.x", "center.y", "center.z", "size.x", "size.y", "size.z", "heading")
    names = tuple(f"[LiDARBoxComponent].box.{name}" for name in names)
    for part, drive, table in each_drive(rows):
        own = {"key.segment_context_name": drive, "key.frame_timestamp_micros": table["frame"]}
        own |= {"[LiDARBoxComponent].type": (1 + table["kind"]).astype("int8")}
        own |= {"key.laser_object_id": table["track"].astype(str)} if part == "truth" else {"score": table["score"]}
        path = Path(f"{part}/lidar_box/{drive}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        in_space(table, names).assign(**own).to_parquet(path, index=False)
        poses = pd.DataFrame({"key.segment_context_name": drive, "key.frame_timestamp_micros": np.arange(7)})
        Path("truth/vehicle_pose").mkdir(parents=True, exist_ok=True)
        poses.to_parquet(f"truth/vehicle_pose/{drive}.parquet", index=False)


def write_coco(rows):
    """The frames of the drives take turns in the file."""
    names = [f"{drive}/{frame}.jpg" for frame in range(6) for drive in DRIVES]
    images = [{"id": k, "file_name": name} for k, name in enumerate(names)]
    for part, table in zip(("truth", "found"), rows, strict=True):
        boxes = [
            {"id": k, "image_id": names.index(f"{row.drive}/{row.frame}.jpg"), "category_id": row.kind}
            | {"bbox": [20 * row.x, 10.0, 15, 50.0 + row.y], "metres": row.x + (part == "found")}
            | ({"score": row.score} if part == "found" else {})
            for k, row in enumerate(table.itertuples())
        ]
        categories = [{"id": k, "name": name} for k, name in enumerate(NAMES)]
        whole = {"images": images, "categories": categories, "annotations": boxes}
        Path(part).write_text(json.dumps(whole if part == "truth" else boxes))


def write_zipped_mot(rows):
    write_mot(rows)
    for part in ("truth", "found"):
        shutil.make_archive(f"{part}_all", "zip", part)


TRACKED = {"memory": "run:2"}
LOCALISED = {"localisation": True}
METRES = {"distance-field": "metres", "detection-distance-field": "metres"}
ZIP = {"annotations": "truth_all.zip", "detections": "found_all.zip"}
FORMS = {
    "mot": (write_mot, TRACKED | {"distance-file": "metres.csv", "distance-key": "track"}),
    "kitti_object": (write_kitti_object, {}),
    "voc": (write_voc, {"distance-file": "metres.csv", "distance-key": "id"}),
    "bdd100k": (write_bdd100k, {"column": "distance_m=metres"}),
    "openlabel": (write_openlabel, {}),
    "cvat": (write_cvat, {"column": "distance_m=metres"}),
    "argoverse": (write_argoverse, TRACKED),
    "waymo": (write_waymo, TRACKED),
}
WHOLE = {
    "mot zipped": (write_zipped_mot, TRACKED | ZIP | {"distance-file": "metres.csv", "distance-key": "track"}),
    "coco": (write_coco, LOCALISED | METRES | {"unmatched": "own_bin", "min-score": 0.4}),
}
"""Forms that are read at once only."""


def written(path, choices):
    words = (f"--{name}" if value is True else f"--{name}={value}" for name, value in choices.items())
    assert main(["confusion", *words, f"--output={path}"]) == 0
    return Path(path).read_bytes()
