"""Figures of Xu, Blanchet, Gerardo-Castro and Paudel 2021, Measuring reliability of object detection (WSC 2021).

They need KITTI's object labels and detections of M3D-RPN, D4LCN and Kinematic3D in KITTI's format, as folders or zip
archives LABELS, M3D-RPN, D4LCN and Kinematic3D (or with .zip) in one folder; what is not there is left out. Figure 5
compares D4LCN with Kinematic3D, as the paper does.

  python examples/reproduce/xu_2021.py OUTPUT [--data FOLDER]
"""

import sys

from parts import options, reproduce, write_figure

import verifier
from verifier.telling.figures.collision import comparison_figure, intervals_figure, map_figure

DETECTORS = ("M3D-RPN", "D4LCN", "Kinematic3D")
DECELERATIONS = (3.92, 6.86)  # 0.4 g and 0.7 g, in m/s^2
FEW = {"bootstrap": 0, "subsamples": 20, "distances": "2..50:8", "speeds": "25,40 mph"}


def there(folder, name):
    """The file or folder of this name; None where there is none."""
    paths = [] if folder is None else [folder / name, folder / f"{name}.zip"]
    return next((str(path) for path in paths if path.exists()), None)


def study(labels, detectors, **more):
    """The collision probabilities of cars by reported distance and speed, as the paper computes them."""
    return verifier.collision_map(
        format="kitti_object",
        annotations=labels,
        detections=[f"{name}={path}" for name, path in detectors.items()],
        classes="Car",
        distance="euclidean_3d",
        bandwidth="normal_reference",
        confidence=0.9,
        deceleration=DECELERATIONS,
        at="25,40 mph",
        **more,
    )


def main(words=None):
    """Make what can be made."""
    parser = options(__doc__.splitlines()[0], data="folder of KITTI's labels and of detections")
    parser.add_argument("--quick", action="store_true", help="few subsamples, coarse grid")
    given = parser.parse_args(words)
    labels = there(given.data, "LABELS")
    found = {name: path for name in DETECTORS if (path := there(given.data, name)) is not None}
    lacking = [name for name in DETECTORS if name not in found]
    more = FEW if given.quick else {}
    made = study(labels, found, **more) if labels and found else None
    needed = "needs --data FOLDER with LABELS and detections of " + ", ".join(DETECTORS)

    def drawn(name, figure):
        def make(output):
            file = write_figure(figure(made), output / name)
            return f"{file}, of {', '.join(found)}" + (f"; no detections of {', '.join(lacking)}" if lacking else "")

        return make if made is not None else needed

    figure_5 = "needs detections of D4LCN and Kinematic3D"
    if {"D4LCN", "Kinematic3D"} <= found.keys():
        figure_5 = drawn("figure_5.png", comparison_figure)
    return reproduce(
        __doc__.splitlines()[0],
        {
            "figure 1": "a drawing",
            "figure 2": "two images of KITTI with boxes; the paper does not name them",
            "figure 3": drawn("figure_3.png", map_figure),
            "figure 4": drawn("figure_4.png", intervals_figure),
            "figure 5": figure_5,
            "slopes": "of the loss in beta / alpha: the paper's grid is not printed; verify collision tells its own",
        },
        given.output,
    )


if __name__ == "__main__":
    sys.exit(not main())
