"""Detectors under test: one protocol, adapters, and runs that are kept and can be resumed."""

from verifier.robustness.detectors.images import read_image, read_images
from verifier.robustness.detectors.maite import MaiteDetector
from verifier.robustness.detectors.onnx_file import OnnxDetector, open_onnx
from verifier.robustness.detectors.onnx_layout import OnnxInput, OnnxLayout, OnnxOutput
from verifier.robustness.detectors.opencv import CascadePeople, CascadeSettings, HogPeople, HogSettings
from verifier.robustness.detectors.protocol import Detections, Detector, Image, StoredDetector
from verifier.robustness.detectors.run import DetectorRun, run_detector, with_detections

__all__ = [
    "CascadePeople",
    "CascadeSettings",
    "Detections",
    "Detector",
    "DetectorRun",
    "HogPeople",
    "HogSettings",
    "Image",
    "MaiteDetector",
    "OnnxDetector",
    "OnnxInput",
    "OnnxLayout",
    "OnnxOutput",
    "StoredDetector",
    "open_onnx",
    "read_image",
    "read_images",
    "run_detector",
    "with_detections",
]
