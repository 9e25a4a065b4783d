"""Detectors under test: one protocol, adapters, and runs that are kept and can be resumed."""

from verifier.robustness.detectors.onnx_file import open_onnx
from verifier.robustness.detectors.onnx_layout import OnnxInput, OnnxLayout, OnnxOutput
from verifier.robustness.detectors.opencv import CascadePeople, CascadeSettings, HogPeople, HogSettings
from verifier.robustness.detectors.protocol import Detector, Image, read_image
from verifier.robustness.detectors.run import run_detector, run_detectors, with_detections

__all__ = [
    "CascadePeople",
    "CascadeSettings",
    "Detector",
    "HogPeople",
    "HogSettings",
    "Image",
    "OnnxInput",
    "OnnxLayout",
    "OnnxOutput",
    "open_onnx",
    "read_image",
    "run_detector",
    "run_detectors",
    "with_detections",
]
