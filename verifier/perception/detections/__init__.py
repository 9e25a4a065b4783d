"""Annotated objects and detections of real data sets, read into columns in the ego frame."""

from verifier.perception.detections.arrays import from_arrays, from_dicts, from_maite, from_supervision
from verifier.perception.detections.classmap import ClassMap, class_map, read_class_map
from verifier.perception.detections.columns import ANY_CLASS, Boxes, DetectionSet
from verifier.perception.detections.depth import with_depth
from verifier.perception.detections.distances import MEASURES, distance, with_distances
from verifier.perception.detections.filters import keep_attribute, keep_field_of_view, keep_range, keep_scores
from verifier.perception.detections.formats import FORMATS, read_detections
from verifier.perception.detections.ground import with_ground
from verifier.perception.detections.sources import IGNORABLE, Plausible, Reading
from verifier.perception.detections.stream import Chunk, stream_tables

__all__ = [
    "ANY_CLASS",
    "FORMATS",
    "IGNORABLE",
    "MEASURES",
    "Boxes",
    "Chunk",
    "ClassMap",
    "DetectionSet",
    "Plausible",
    "Reading",
    "class_map",
    "distance",
    "from_arrays",
    "from_dicts",
    "from_maite",
    "from_supervision",
    "keep_attribute",
    "keep_field_of_view",
    "keep_range",
    "keep_scores",
    "read_class_map",
    "read_detections",
    "stream_tables",
    "with_depth",
    "with_distances",
    "with_ground",
]
