"""Five real images of KITTI as one data set: three of tracking drive 0016, eight people each; two with LiDAR depth.

The two LiDAR images hold cars and nobody on foot. For the other three every column of pixels is given a wall at the
labelled depth of the people there (between people: interpolated), with the road before it, a plane 1.65 m below the
camera. So haze dims each person as far away as that person is. It spares the houses behind them, which stand further
off; cutting the people's rectangles out of a farther background would draw frames around them that no haze draws.
"""

import numpy as np
from scipy.ndimage import distance_transform_edt

from verifier.perception.detections import Reading, class_map, read_detections
from verifier.robustness.detectors import Image, read_image

DRIVE, FRAMES = "0016", (2, 7, 12)
LIDAR = ("000008", "000019")
CAMERA_HEIGHT_M = 1.65
PEOPLE = class_map({"Pedestrian": "ped", "Cyclist": "dont_care", "DontCare": "dont_care", "*": "ignore"})
EVERYTHING = class_map(
    {"Pedestrian": "ped", "Car": "obs", "Van": "obs", "Truck": "obs", "Cyclist": "dont_care", "DontCare": "dont_care"}
)


class KittiScenes:
    """Annotations, images and depth maps; label files in KITTI's object format are written to a folder."""

    def __init__(self, shared, folder):
        self.data, self.folder = shared / "data", folder
        (folder / "label").mkdir()
        (folder / "nothing").mkdir()
        labels = (self.data / f"kitti_tracking/label_02/{DRIVE}.txt").read_text().splitlines()
        files = {name: (self.data / f"images_kitti_depth/label_2/{name}.txt").read_text() for name in LIDAR}
        for frame in FRAMES:
            rows = [line.split() for line in labels]
            files[f"{frame:06d}"] = "".join(f"{' '.join(row[2:])}\n" for row in rows if int(row[0]) == frame)
        for name, text in files.items():
            (folder / f"label/{name}.txt").write_text(text)
            (folder / f"nothing/{name}.txt").write_text("")
        self.names = tuple(sorted(files))

    def truth(self, classes):
        """The annotations under a class map, and no detections."""
        return read_detections("kitti_object", self.folder / "label", self.folder / "nothing", Reading(classes))

    def image(self, name):
        """One image by the name of its frame."""
        lidar = self.data / f"images_kitti_depth/image_2/{name}.png"
        tracking = self.data / f"images_kitti_tracking/image_02/{DRIVE}/{name}.png"
        return Image(name, read_image(lidar if name in LIDAR else tracking).pixels)

    def depth(self, name):
        """(H, W) metres along the optical axis: by LiDAR where there is any (the nearest point), else by labels."""
        if name not in LIDAR:
            return self.labelled_depth(name)
        sparse = self.sparse_depth(name)
        nearest = distance_transform_edt(sparse == 0, return_distances=False, return_indices=True)
        return sparse[tuple(nearest)]

    def sparse_depth(self, name):
        """(H, W) metres of a LiDAR image, 0 where nothing was measured."""
        from PIL import Image as Files

        with Files.open(self.data / f"images_kitti_depth/sparse_depth/{name}.png") as file:
            return np.asarray(file).astype(np.float64) / 256

    def labelled_depth(self, name):
        """(H, W) metres of a tracking image, from the labelled people and the road."""
        height, width = self.image(name).size
        text = (self.data / f"kitti_tracking/calib/{DRIVE}.txt").read_text()
        (camera,) = (line for line in text.splitlines() if line.startswith("P2"))
        _, _, _, _, _, focal, centre, *_ = map(float, camera.split()[1:])
        below = np.maximum(np.arange(height) + 0.5 - centre, 1e-6)
        rows = [line.split() for line in (self.folder / f"label/{name}.txt").read_text().splitlines()]
        people = sorted(
            ((float(row[4]) + float(row[6])) / 2, float(row[13])) for row in rows if row[0] == "Pedestrian"
        )
        wall = np.interp(np.arange(width) + 0.5, *np.array(people).T)
        return np.minimum(wall[np.newaxis], (focal * CAMERA_HEIGHT_M / below)[:, np.newaxis])
