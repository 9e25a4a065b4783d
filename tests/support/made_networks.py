"""Detectors as ONNX files, made on the spot: what they put out is fixed, or is taken from their input."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}


def save(path, nodes, constants, outputs, shape=("N", 3, "H", "W"), kind=TensorProto.FLOAT):
    """A network with the input "images". `outputs` are the names and types of what it puts out."""
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("images", kind, shape)],
        [helper.make_tensor_value_info(name, type_, None) for name, type_ in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def fixed(path, outputs, shape=(1, 3, 8, 8), kind=TensorProto.FLOAT):
    """A network that puts out the same arrays (float32 or int64) whatever it sees."""
    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    nodes = [helper.make_node("Identity", [f"{name}_fixed"], [name]) for name in arrays]
    constants = {f"{name}_fixed": value for name, value in arrays.items()}
    return save(path, nodes, constants, {name: TYPES[value.dtype] for name, value in arrays.items()}, shape, kind)


def brightness(path, shape=("N", 3, "H", "W")):
    """One box (1, 1, 4, 4) for each image of a batch; its score is the mean of the first channel of the input.

    Outputs "boxes" (N, 1, 4) and "scores" (N, 1).
    """
    nodes = [
        helper.make_node("Slice", ["images", "zero", "one", "channel"], ["first"]),
        helper.make_node("ReduceMean", ["first"], ["mean"], axes=[2, 3], keepdims=0),  # (N, 1)
        helper.make_node("Identity", ["mean"], ["scores"]),
        helper.make_node("Mul", ["mean", "nothing"], ["zeros"]),
        helper.make_node("Unsqueeze", ["zeros", "channel"], ["wide"]),  # (N, 1, 1)
        helper.make_node("Add", ["wide", "box"], ["boxes"]),
    ]
    constants = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "channel": np.array([1]),
        "nothing": np.array([0], dtype=np.float32),
        "box": np.array([[[1, 1, 4, 4]]], dtype=np.float32),
    }
    outputs = {"boxes": TensorProto.FLOAT, "scores": TensorProto.FLOAT}
    return save(path, nodes, constants, outputs, shape)
