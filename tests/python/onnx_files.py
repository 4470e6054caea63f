"""Small models in ONNX as files, and what ONNX's own evaluator gives for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

WEIGHTS = np.array([[0.5, -0.25, 1.0], [-0.75, 0.5, 0.25]])
BIAS = np.array([0.25, -0.5, 0.125])


def save(
    path: Path, nodes: list[Any], shapes: dict[str, tuple[int, ...]], outputs: tuple[str, ...]
) -> Path:
    """A model of operators, whose inputs have a batch before these shapes, with WEIGHTS and BIAS as
    the constants w and b."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    double = TensorProto.DOUBLE
    ports = [helper.make_tensor_value_info(n, double, ("n", *s)) for n, s in shapes.items()]
    graph = helper.make_graph(
        nodes,
        "model",
        ports,
        [helper.make_tensor_value_info(name, double, None) for name in outputs],
        [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(BIAS, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path))
    return path


def squares(path: Path) -> Path:
    """x (n, 2) to the squares of x w + b (n, 3)."""
    from onnx.helper import make_node

    nodes = [make_node("Gemm", ["x", "w", "b"], ["u"]), make_node("Mul", ["u", "u"], ["y"])]
    return save(path, nodes, {"x": (2,)}, ("y",))


def pairs(path: Path) -> Path:
    """a, b (n, 3) to their sums and differences."""
    from onnx.helper import make_node

    nodes = [make_node("Add", ["left", "right"], ["s"]), make_node("Sub", ["left", "right"], ["d"])]
    return save(path, nodes, {"left": (3,), "right": (3,)}, ("s", "d"))


def labels(path: Path) -> Path:
    """words (n, 2), each from 0 to 2, to the place of the largest of three scores, and their
    shares."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gather", ["table", "words"], ["looked_up"]),
        helper.make_node("Flatten", ["looked_up"], ["vector"]),
        helper.make_node("MatMul", ["vector", "weights"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
        helper.make_node("Softmax", ["scores"], ["shares"]),
    ]
    table, weights = WEIGHTS.T, np.concatenate([WEIGHTS, WEIGHTS[::-1, ::-1]])
    results = (("label", TensorProto.INT64), ("shares", TensorProto.DOUBLE))
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("words", TensorProto.INT64, ("n", 2))],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in results],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path))
    return path


def rated(path: Path) -> Path:
    """x (n, 2) and a rate to the shares of three scores, of which 8,000 and other rates take other
    weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    double = TensorProto.DOUBLE
    ends = [helper.make_tensor_value_info("shares", double, None)]
    scores = helper.make_node("MatMul", ["x", "w"], ["scores"])
    less = helper.make_node("Sub", ["scores", "slower"], ["less"])
    shares = [helper.make_node("Softmax", [name], ["shares"]) for name in ("scores", "less")]
    slower = numpy_helper.from_array(BIAS, "slower")
    branches = (
        helper.make_graph([scores, shares[0]], "low", [], ends),
        helper.make_graph([scores, less, shares[1]], "high", [], ends, [slower]),
    )
    nodes = [
        helper.make_node("Equal", ["rate", "low"], ["is_low"]),
        helper.make_node("If", ["is_low"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    graph = helper.make_graph(
        nodes,
        "model",
        [
            helper.make_tensor_value_info("x", double, ("n", 2)),
            helper.make_tensor_value_info("rate", TensorProto.INT64, ()),
        ],
        [helper.make_tensor_value_info("y", double, None)],
        [
            numpy_helper.from_array(WEIGHTS, "w"),
            numpy_helper.from_array(np.array(8000), "low"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path))
    return path


def evaluated(path: Path, **inputs: np.ndarray) -> list[np.ndarray]:
    """What the model gives by ONNX's own evaluator."""
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(str(path)).run(None, inputs))
