"""Operators of ONNX that move numbers, are linear, or are smooth functions: against ONNX's own
evaluator for a batch, and encrypted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_nn_onnx import agrees, model_of
from test_nn_program import assert_precise, encrypted

import jali
from jali.compiler.ir.execute import execute
from jali.nn import graph_file, trace

pytest.importorskip("onnx")

SHAPE = (4, 5, 6)
INDEX = np.array([[[[2, 0, 1, -1, 3, 5]]]])

#: (operation, attributes, inputs behind the first one, the opset)
CASES: list[tuple[str, dict[str, Any], list[Any], int]] = [
    ("Resize", {"mode": "nearest"}, [None, np.float32([1, 1, 2, 1.5])], 20),
    ("Resize", {"mode": "linear"}, [None, np.float32([1, 1, 2, 1.5])], 20),
    ("Resize", {"mode": "cubic"}, [None, None, np.array([7, 3])], 20),
    ("Resize", {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, [None, np.float32([1, 1, 2, 2])], 13),
    ("Resize", {"mode": "linear", "antialias": 1}, [None, np.float32([1, 1, 0.6, 0.5])], 20),
    ("Upsample", {"mode": "nearest"}, [np.float32([1, 1, 2, 3])], 9),
    ("Tile", {}, [np.array([1, 2, 1, 3])], 20),
    ("CumSum", {}, [np.array(2)], 20),
    ("CumSum", {"reverse": 1, "exclusive": 1}, [np.array(-1)], 20),
    ("Trilu", {"upper": 0}, [np.array(1)], 20),
    ("Compress", {"axis": 3}, [np.array([True, False, True, True, False, False])], 20),
    ("GatherElements", {"axis": 3}, [np.broadcast_to(INDEX, (2, 4, 5, 6)).copy()], 20),
    ("GatherND", {"batch_dims": 1}, [np.array([[[1, 2], [3, 0]]] * 2)], 20),
    ("ScatterElements", {"axis": 3}, [INDEX[..., :2], np.float64([[[[5, 7]]]])], 20),
    ("ReverseSequence", {"batch_axis": 0, "time_axis": 1}, [np.array([3, 3])], 20),
    ("Pad", {"mode": "wrap"}, [np.array([0, 0, 1, 2, 0, 0, 3, 0])], 20),
    ("Pad", {"mode": "reflect"}, [np.array([2, 1]), None, np.array([-1])], 20),
    ("Einsum", {"equation": "bcij,jk->bcik"}, [np.arange(18.0).reshape(6, 3)], 20),
    ("Einsum", {"equation": "...ij->...ji"}, [], 20),
    ("Einsum", {"equation": "bcij->bi"}, [], 20),
    ("Sin", {}, [], 20),
    ("Cos", {}, [], 20),
    ("Tan", {}, [], 20),
    ("Atan", {}, [], 20),
    ("Sinh", {}, [], 20),
    ("Cosh", {}, [], 20),
    ("Asinh", {}, [], 20),
    ("Softsign", {}, [], 20),
    ("LogSoftmax", {"axis": 2}, [], 20),
    ("Pow", {}, [np.arange(1.0, 7.0)], 20),
    ("Pow", {}, [1.5], 20),
    ("LpPool", {"kernel_shape": [2, 3], "p": 2}, [], 20),
    ("AveragePool", {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}, [], 20),
    ("AveragePool", {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 1, 1, 1]}, [], 20),
    ("LpNormalization", {"axis": 3, "p": 1}, [], 20),
    ("ReduceL1", {}, [np.array([2, 3])], 20),
    ("ReduceLogSum", {"keepdims": 0}, [np.array([3])], 20),
    ("ReduceLogSumExp", {}, [np.array([1])], 20),
    ("ReduceProd", {}, [np.array([2])], 20),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "opset"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_operators(
    op: str, attrs: dict[str, Any], inputs: list[Any], opset: int, rng: np.random.Generator
) -> None:
    agrees(node_model(op, attrs, inputs, opset), rng.uniform(0.1, 1.4, (2, *SHAPE)), tolerance=1e-5)


def node_model(op: str, attrs: dict[str, Any], inputs: list[Any], opset: int) -> Any:
    from onnx.helper import make_node

    if op == "Resize" and opset > 10 and len(inputs) == 3:  # sizes, of the last two axes
        attrs = {**attrs, "axes": [2, 3]}
    names = ["" if x is None else f"c{k}" for k, x in enumerate(inputs)]
    constants = {n: x for n, x in zip(names, inputs, strict=True) if n}
    return model_of(
        [make_node(op, ["x", *names], ["y"], **attrs)], constants, {"x": SHAPE}, opset=opset
    )


def test_reverses_of_trigonometric_functions(rng: np.random.Generator) -> None:
    for op, low, high in (
        ("Asin", -0.9, 0.9),
        ("Acos", -0.9, 0.9),
        ("Atanh", -0.9, 0.9),
        ("Acosh", 1.1, 5),
    ):
        agrees(node_model(op, {}, [], 20), rng.uniform(low, high, (2, *SHAPE)))


def test_old_spellings(rng: np.random.Generator) -> None:
    """Resize of opset 10 has its scales in the place of a region, and the places of Upsample; a
    softmax before opset 13 is one over all axes from the one that it names."""
    x = rng.normal(size=(2, *SHAPE))
    model = node_model("Resize", {"mode": "nearest"}, [np.float32([1, 1, 2, 3])], 10)
    assert np.allclose(execute(trace(model, x), x)[0], x.repeat(2, 2).repeat(3, 3))
    powers = np.exp(x)
    want = powers / powers.sum((2, 3), keepdims=True)
    assert np.allclose(execute(trace(node_model("Softmax", {"axis": 2}, [], 11), x), x)[0], want)


def test_responses_are_normalised_by_neighbouring_channels(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, *SHAPE))
    model = node_model("LRN", {"size": 3, "alpha": 0.6, "beta": 0.5, "bias": 2.0}, [], 20)
    wide = np.pad(np.square(x), ((0, 0), (1, 1), (0, 0), (0, 0)))
    sums = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    assert np.allclose(execute(trace(model, x), x)[0], x / np.sqrt(2 + 0.2 * sums))


def test_layer_normalisation_gives_mean_and_deviation(rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    node = make_node("LayerNormalization", ["x", "g"], ["y", "m", "d"], axis=-1, epsilon=0.1)
    model = model_of([node], {"g": rng.normal(size=6)}, {"x": (4, 6)}, ("y", "m", "d"))
    agrees(model, rng.normal(size=(3, 4, 6)))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_types_of_real_numbers(kind: str, rng: np.random.Generator) -> None:
    from onnx import TensorProto, helper, numpy_helper
    from onnx.helper import make_node

    element = getattr(
        TensorProto, {"float16": "FLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}[kind]
    )
    weight, x = rng.normal(size=(6, 3)).astype(kind), rng.normal(size=(5, 6)).astype(kind)
    nodes = [
        make_node("Gemm", ["x", "w", "b"], ["a"]),
        make_node("Cast", ["a"], ["c"], to=TensorProto.FLOAT),
        make_node("Tanh", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element, ("n", 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(weight[0], "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    want = np.tanh(x.astype(float) @ weight.astype(float) + weight[0])
    assert np.allclose(execute(trace(model, x), x)[0], want)


@pytest.mark.parametrize("opset", range(9, 24))
def test_opsets(opset: int, rng: np.random.Generator) -> None:
    """Operations whose axes were attributes, and are inputs since."""
    from onnx.helper import make_node

    old, axes = opset < 13, np.array([1])
    nodes = [
        make_node("Unsqueeze", ["x"] if old else ["x", "axes"], ["a"], **({"axes": [1]} if old else {})),
        make_node("Softmax", ["a"], ["b"], axis=3),
        make_node("Squeeze", ["b"] if old else ["b", "axes"], ["c"], **({"axes": [1]} if old else {})),
        make_node("Clip", ["c"], ["d"], **({"min": 0.1, "max": 0.3} if opset < 11 else {})),
        make_node("ReduceMean", ["d"] if opset < 18 else ["d", "axes"], ["y"], **({"axes": [1]} if opset < 18 else {})),
    ]  # fmt: skip
    agrees(model_of(nodes, {"axes": axes}, {"x": (3, 4)}, opset=opset), rng.normal(size=(2, 3, 4)))


def test_operations_that_are_made_of_others(rng: np.random.Generator) -> None:
    """Attention and rotary embeddings by their definition in ONNX, and a function of the model."""
    from onnx import helper
    from onnx.helper import make_node

    twice = helper.make_function(
        "own",
        "Twice",
        ["v"],
        ["w"],
        [make_node("Add", ["v", "v"], ["w"])],
        [helper.make_opsetid("", 23)],
    )
    nodes = [
        make_node("RotaryEmbedding", ["x", "cos", "sin"], ["q"]),
        make_node("Attention", ["q", "x", "x"], ["a"], is_causal=1),
        make_node("Twice", ["a"], ["y"], domain="own"),
    ]
    angles = rng.uniform(0, 3, (1, 3, 2))
    constants = {"cos": np.cos(angles), "sin": np.sin(angles)}
    model = model_of(nodes, constants, {"x": (2, 3, 4)}, opset=23)
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(twice)
    agrees(model, rng.normal(size=(1, 2, 3, 4)), tolerance=1e-5)


def test_attention_takes_keys_that_are_encrypted(rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    node = make_node("Attention", ["x", "k", "x"], ["y"], softcap=2.0)
    model = model_of([node], {}, {"x": (2, 3, 4), "k": (2, 3, 4)}, opset=23)
    agrees(model, *rng.normal(size=(2, 2, 2, 3, 4)), tolerance=1e-5)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "says"),
    [
        ("Gather", {"axis": 1}, [np.array([4])], "indices are from -4 to 3"),
        (
            "ScatterElements",
            {"axis": 3, "reduction": "max"},
            [INDEX, np.ones((1, 1, 1, 6))],
            "not linear",
        ),
        ("Resize", {"mode": "linear"}, [None, np.float32([2, 2])], "2 scales for 4 axes"),
        ("CumSum", {}, [np.array(7)], "axis 7 is none of an array of 4 axes"),
        ("Squeeze", {}, [np.array([1])], "axes of one number away"),
        ("Concat", {}, [], "Concat does not take these inputs and attributes"),
    ],
)
def test_what_does_not_fit_is_refused(
    op: str, attrs: dict[str, Any], inputs: list[Any], says: str
) -> None:
    with pytest.raises(jali.Error, match=says):
        trace(node_model(op, attrs, inputs, 20), np.zeros((1, *SHAPE)))


def test_operators_of_others_are_refused() -> None:
    """They may have the name of another operator."""
    from onnx import helper

    node = helper.make_node("Softmax", ["x"], ["y"], domain="com.example")
    model = model_of([node], {}, {"x": SHAPE})
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(jali.Unsupported, match=r"Softmax of com\.example cannot be compiled"):
        trace(model, np.zeros((1, *SHAPE)))


def test_places_are_recorded(rng: np.random.Generator) -> None:
    """A graph of moved numbers as a file."""
    x = rng.normal(size=(2, *SHAPE))
    graph = trace(node_model("Tile", {}, [np.array([1, 2, 1, 3])], 20), x)
    assert any(node.op == "take" for node in graph)
    again = graph_file.from_bytes(graph_file.to_bytes(graph))
    assert np.array_equal(execute(again, x)[0], execute(graph, x)[0])


ENCRYPTED: dict[str, tuple[str, dict[str, Any], list[Any], tuple[int, ...]]] = {
    "Resize": ("Resize", {"mode": "linear"}, [None, np.float32([1, 1, 2, 2])], (1, 3, 3)),
    "Sin": ("Sin", {}, [], (5,)),
    "CumSum": ("CumSum", {}, [np.array(1)], (6,)),
    "Tile": ("Tile", {}, [np.array([1, 3])], (4,)),
}


@pytest.mark.parametrize("name", ENCRYPTED)
def test_operators_encrypted(name: str, rng: np.random.Generator) -> None:
    from onnx.helper import make_node
    from onnx.reference import ReferenceEvaluator

    op, attrs, inputs, shape = ENCRYPTED[name]
    names = ["" if x is None else f"c{k}" for k, x in enumerate(inputs)]
    constants = {n: x for n, x in zip(names, inputs, strict=True) if n}
    model = model_of(
        [make_node(op, ["x", *names], ["y"], **attrs)], constants, {"x": shape}, opset=20
    )
    x = rng.uniform(-1, 1, (40, *shape))
    program = jali.compile(model, x[:1], calibration=x, batch=2)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x[:2]})
    assert_precise(program, encrypted(program, x[:2]), np.asarray(want))
