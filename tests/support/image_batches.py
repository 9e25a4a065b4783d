"""Small pictures in files, and batches of them."""

from pathlib import Path

import numpy as np
from PIL import Image

from verifier.robustness.mutators.annotations import AnnotationFiles, read_annotations
from verifier.robustness.mutators.batch import mutate_files
from verifier.robustness.mutators.batch_result import BatchSettings, mutate_result
from verifier.robustness.mutators.imagefiles import image_files
from verifier.robustness.mutators.sweeps import parse_mutation

BLUR = parse_mutation("gaussian_blur:sigma_px=1")


def picture(seed=0, height=8, width=12):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def saved(path, pixels=None, **options):
    """The path, with a picture in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture() if pixels is None else pixels).save(path, **options)
    return path


def batch(images, folder, *mutations, **settings):
    """The result of a batch."""
    what = BatchSettings(mutations or (BLUR,), **settings)
    return mutate_result(what, mutate_files(image_files(images), what, folder))


def annotated(path, paths):
    """The annotations in a file or folder, of the images at `paths`."""
    called = {name: each.stem for each in paths for name in (each.stem, each.name)}
    return read_annotations(AnnotationFiles.recognised(str(path)), Path(), called, partly=True)
