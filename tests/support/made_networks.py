"""Detectors as ONNX files, made on the spot: what they put out is fixed, or is taken from their input."""

import numpy as np
from onnx import TensorProto, helper, load, numpy_helper

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


SCALES = ((34, 14), (46, 20), (62, 26), (82, 34))


def dark_figures(path, names="{0: 'person'}"):
    """A network laid out as YOLOv8 that finds dark upright figures: output0 (N, 5, n), centres and sizes in pixels.

    A candidate's score is how much darker its box is than the box with a margin around it. Metadata as Ultralytics
    writes them.
    """
    high, wide, step = 200, 320, 8
    nodes, scores, boxes = [], [], []
    nodes.append(helper.make_node("ReduceMean", ["images"], ["grey"], axes=[1], keepdims=1))
    for at, (tall, broad) in enumerate(SCALES):
        edge, pool = broad // 2, {"strides": [step, step], "count_include_pad": 0}
        wider = {"kernel_shape": [tall + 2 * edge, broad + 2 * edge], "pads": [edge] * 4}
        nodes += [
            helper.make_node("AveragePool", ["grey"], [f"in{at}"], kernel_shape=[tall, broad], **pool),
            helper.make_node("AveragePool", ["grey"], [f"out{at}"], **wider, **pool),
            helper.make_node("Sub", [f"out{at}", f"in{at}"], [f"darker{at}"]),
            helper.make_node("Reshape", [f"darker{at}", "flat"], [f"row{at}"]),
        ]
        scores.append(f"row{at}")
        rows, columns = np.mgrid[0 : high - tall + 1 : step, 0 : wide - broad + 1 : step]
        size = np.ones(rows.size)
        boxes.append([columns.ravel() + broad / 2, rows.ravel() + tall / 2, size * broad, size * tall])
    nodes += [
        helper.make_node("Concat", scores, ["darker"], axis=2),
        helper.make_node("Sub", ["darker", "little"], ["enough"]),
        helper.make_node("Mul", ["enough", "gain"], ["scaled"]),
        helper.make_node("Clip", ["scaled", "least", "most"], ["scores"]),
        helper.make_node("Mul", ["scores", "nothing"], ["zeros"]),
        helper.make_node("Add", ["zeros", "boxes"], ["placed"]),
        helper.make_node("Concat", ["placed", "scores"], ["output0"], axis=1),
    ]
    single = {"little": 0.06, "gain": 8.0, "least": 0.0, "most": 1.0, "nothing": 0.0}
    constants = {name: np.array(value, np.float32) for name, value in single.items()}
    constants |= {"flat": np.array([0, 1, -1]), "boxes": np.concatenate(boxes, axis=1)[None].astype(np.float32)}
    save(path, nodes, constants, {"output0": TensorProto.FLOAT}, ("N", 3, high, wide))
    return with_metadata(path, {"names": names, "imgsz": f"[{high}, {wide}]", "stride": "32", "task": "detect"})


def with_metadata(path, metadata):
    """The network with metadata as exporters write them."""
    model = load(str(path))
    helper.set_model_props(model, metadata)
    path.write_bytes(model.SerializeToString())
    return path
