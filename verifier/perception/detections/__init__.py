"""Annotated objects and detections of real data sets, read into columns in the ego frame."""

from verifier.perception.detections.arrays import from_dicts, from_objects
from verifier.perception.detections.cameras import with_ground
from verifier.perception.detections.classmap import ClassMap, class_map, read_class_map
from verifier.perception.detections.columns import DetectionSet
from verifier.perception.detections.depth import with_depth
from verifier.perception.detections.distances import distance, with_distances
from verifier.perception.detections.filters import keep_scores
from verifier.perception.detections.formats import read_detections
from verifier.perception.detections.parquetfiles import Tables
from verifier.perception.detections.sources import Reading
from verifier.perception.detections.stream import Chunk, stream_tables

__all__ = [
    "Chunk",
    "ClassMap",
    "DetectionSet",
    "Reading",
    "Tables",
    "class_map",
    "distance",
    "from_dicts",
    "from_objects",
    "keep_scores",
    "read_class_map",
    "read_detections",
    "stream_tables",
    "with_depth",
    "with_distances",
    "with_ground",
]
