"""Operations of ONNX, each against ONNX's own evaluator, and those that would be computed wrongly
and are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali.compiler.ir.execute import execute
from jali.compiler.passes.fold import fold
from jali.nn import trace

pytest.importorskip("onnx")

SHAPE = (4, 5, 6)


def model_of(
    nodes: list[Any],
    constants: dict[str, Any],
    shapes: dict[str, tuple[int, ...]],
    outputs: tuple[str, ...] = ("y",),
    opset: int = 20,
) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    ports = [
        helper.make_tensor_value_info(n, TensorProto.DOUBLE, ("n", *s)) for n, s in shapes.items()
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        ports,
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def agrees(model: Any, *inputs: np.ndarray, tolerance: float = 1e-9) -> None:
    """The traced graph and the folded one give what ONNX gives for a batch."""
    from onnx.reference import ReferenceEvaluator

    feeds = dict(zip((port.name for port in model.graph.input), inputs, strict=True))
    wanted = ReferenceEvaluator(model).run(None, feeds)
    graph = trace(model, inputs)
    for stage in (graph, fold(graph)):
        for got, want in zip(execute(stage, *inputs), wanted, strict=True):
            want = np.asarray(want)
            limit = tolerance * max(1, np.abs(want).max())
            assert np.allclose(got.reshape(want.shape), want, rtol=0, atol=limit)


#: What ONNX's evaluator computes with constants of 32 bits.
SINGLE = ("Selu", "Erf", "Gelu", "HardSwish", "GroupNormalization")

#: (operation, attributes, constants after the input, the opset if it matters)
CASES: list[tuple[str, dict[str, Any], list[Any], int]] = [
    ("Clip", {}, [0.3, 0.8], 20),
    ("Clip", {}, [0.3], 20),
    ("Clip", {"max": 0.5}, [], 6),
    ("LeakyRelu", {"alpha": 0.2}, [], 20),
    ("PRelu", {}, [np.full((4, 1, 1), 0.3)], 20),
    ("Elu", {"alpha": 0.7}, [], 20),
    ("Selu", {}, [], 20),
    ("Celu", {"alpha": 0.5}, [], 20),
    ("Softplus", {}, [], 20),
    ("Mish", {}, [], 20),
    ("Erf", {}, [], 20),
    ("Gelu", {}, [], 20),
    ("Gelu", {"approximate": "tanh"}, [], 20),
    ("HardSigmoid", {"alpha": 0.4}, [], 20),
    ("HardSwish", {}, [], 20),
    ("Abs", {}, [], 20),
    ("Reciprocal", {}, [], 20),
    ("Pow", {}, [-2.0], 20),
    ("Pow", {}, [3.0], 20),
    ("Min", {}, [0.4, np.arange(6) / 5], 20),
    ("Max", {}, [0.4], 20),
    ("Sum", {}, [2.0, np.ones((1, 4, 1, 1))], 20),
    ("Mean", {}, [2.0, 5.0], 20),
    ("ReduceL2", {"keepdims": 0}, [np.array([2])], 20),
    ("ReduceSumSquare", {}, [np.array([1, -1])], 20),
    ("InstanceNormalization", {"epsilon": 0.1}, [np.arange(4) / 2.0, np.arange(4.0)], 20),
    ("GroupNormalization", {"num_groups": 2, "epsilon": 0.1}, [np.arange(4) / 2, np.ones(4)], 21),
    ("GroupNormalization", {"num_groups": 2, "epsilon": 0.1}, [np.arange(2) / 2, np.ones(2)], 20),
    ("LayerNormalization", {"axis": 2, "epsilon": 0.1}, [np.arange(30.0).reshape(5, 6)], 20),
    ("Softmax", {"axis": 2}, [], 20),
    ("Softmax", {"axis": 3}, [], 12),
    ("Expand", {}, [np.array([1, 4, 5, 6])], 20),
    ("Expand", {}, [np.array([5, 1])], 20),
    ("Gather", {"axis": 2}, [np.array([[3, 0], [0, -1]])], 20),
    ("Gather", {"axis": 1}, [np.array(2)], 20),
    ("Pad", {"mode": "reflect"}, [np.array([0, 1, 0, 2, 0, 0, 3, 1])], 20),
    ("Pad", {"mode": "edge"}, [np.array([0, 1, 0, 2, 0, 0, 3, 1])], 20),
    ("Pad", {}, [np.array([0, 1, 0, 2, 0, 0, 3, 1]), 1.5], 20),
    ("DepthToSpace", {"blocksize": 2}, [], 20),
    ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, [], 20),
    ("MatMul", {}, [np.arange(36.0).reshape(1, 1, 6, 6)], 20),
    ("MatMul", {}, [np.arange(4 * 36.0).reshape(4, 6, 6)], 20),
]


@pytest.mark.parametrize(
    ("op", "attrs", "constants", "opset"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_operations(
    op: str, attrs: dict[str, Any], constants: list[Any], opset: int, rng: np.random.Generator
) -> None:
    from onnx.helper import make_node

    if op == "LayerNormalization":
        constants = [*constants, np.ones((5, 6))]
    names = [f"c{k}" for k in range(len(constants))]
    node = make_node(op, ["x", *names], ["y"], **attrs)
    model = model_of([node], dict(zip(names, constants, strict=True)), {"x": SHAPE}, opset=opset)
    single = op in SINGLE
    agrees(model, rng.uniform(0.1, 1.5, (3, *SHAPE)), tolerance=1e-6 if single else 1e-9)
    if op not in ("Pow", "Reciprocal"):
        agrees(model, rng.normal(0, 3, (2, *SHAPE)), tolerance=1e-6 if single else 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    from onnx.helper import make_node

    draw, each = data.draw, lambda low, high: [data.draw(st.integers(low, high)) for _ in range(2)]
    rng, groups = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.sampled_from([1, 2]))
    kernel, strides = [draw(st.integers(2, 3)) for _ in range(2)], each(1, 3)
    attrs = {
        "strides": strides,
        "dilations": each(1, 2),
        "pads": each(0, 1) + each(0, 1),
        "output_padding": [draw(st.integers(0, s - 1)) for s in strides],
    }
    w = rng.normal(size=(2 * groups, 3, *kernel))
    constants = {"w": w, "b": rng.normal(size=3 * groups)}
    # ONNX's evaluator knows one group; several are convolutions one beside the other.
    first, second = np.split(w, 2) if groups == 2 else (w, None)
    node = make_node("ConvTranspose", ["x", "w", "b"], ["y"], group=groups, **attrs)
    model = model_of([node], constants, {"x": (2 * groups, 4, 5)})
    x = rng.normal(size=(2, 2 * groups, 4, 5))
    if second is None:
        agrees(model, x)
        return
    parts = [
        make_node("Split", ["x"], ["x1", "x2"], axis=1, num_outputs=2),
        make_node("ConvTranspose", ["x1", "w1", "b1"], ["y1"], **attrs),
        make_node("ConvTranspose", ["x2", "w2", "b2"], ["y2"], **attrs),
        make_node("Concat", ["y1", "y2"], ["y"], axis=1),
    ]
    b1, b2 = np.split(constants["b"], 2)
    apart = model_of(parts, {"w1": first, "w2": second, "b1": b1, "b2": b2}, {"x": (4, 4, 5)})
    agrees(apart, x)
    assert np.allclose(execute(trace(model, x), x)[0], execute(trace(apart, x), x)[0], atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_attention_with_heads(data: st.DataObject) -> None:
    """As exported: shapes computed from the input's, a mask of minus infinity, products of
    encrypted batches of matrices."""
    from onnx.helper import make_node

    draw = data.draw
    heads, tokens, width = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng, wide = np.random.default_rng(draw(st.integers(0, 2**32))), heads * width
    mask = np.where(np.tri(tokens), 0.0, -np.inf) if draw(st.booleans()) else np.zeros((1, 1))
    constants = {
        **{f"w{k}": rng.normal(size=(wide, wide)) for k in range(3)},
        "heads": np.array([heads, width]),
        "two": np.array([2]),
        "zero": np.array([0]),
        "minus": np.array([-1]),
        "scale": np.array(width**-0.5),
        "mask": mask,
    }
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Slice", ["shape", "zero", "two"], ["front"]),
        make_node("Concat", ["front", "heads"], ["split"], axis=0),
        make_node("Concat", ["front", "minus"], ["joined"], axis=0),
    ]
    for k, name in enumerate("qkv"):
        nodes += [
            make_node("MatMul", ["x", f"w{k}"], [f"{name}1"]),
            make_node("Reshape", [f"{name}1", "split"], [f"{name}2"]),
            make_node(
                "Transpose",
                [f"{name}2"],
                [name],
                perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3],
            ),
        ]
    nodes += [
        make_node("MatMul", ["q", "k"], ["s1"]),
        make_node("Mul", ["s1", "scale"], ["s2"]),
        make_node("Add", ["s2", "mask"], ["s3"]),
        make_node("Softmax", ["s3"], ["s4"], axis=-1),
        make_node("MatMul", ["s4", "v"], ["o1"]),
        make_node("Transpose", ["o1"], ["o2"], perm=[0, 2, 1, 3]),
        make_node("Reshape", ["o2", "joined"], ["y"]),
    ]
    agrees(model_of(nodes, constants, {"x": (tokens, wide)}), rng.normal(size=(2, tokens, wide)))


def test_several_results_and_constants_among_the_arrays(rng: np.random.Generator) -> None:
    from onnx.helper import make_node

    constants = {
        "sizes": np.array([1, 2, 1]),
        "row": rng.normal(size=(1, 1, 5, 6)),
        "mask": np.arange(6) > 2,
        "seven": np.array(7.0),
        "a": np.array([1.0, 2.0]),
        "matrix": rng.normal(size=(3, 5)),
    }
    nodes = [
        make_node("Split", ["x", "sizes"], ["p", "q", "r"], axis=1),
        make_node("Concat", ["q", "row", "p"], ["c"], axis=1),
        make_node("Where", ["mask", "c", "seven"], ["d"]),
        make_node("ReduceSum", ["a"], ["three"], keepdims=0),  # of constants alone
        make_node("Mul", ["three", "d"], ["e"]),
        make_node("MatMul", ["matrix", "e"], ["y"]),
        make_node("Neg", ["r"], ["z"]),
    ]
    agrees(model_of(nodes, constants, {"x": SHAPE}, ("y", "z")), rng.normal(size=(1, *SHAPE)))


#: Operations that would give other numbers than the model does.
REFUSED: list[tuple[str, dict[str, Any], list[Any], str, int]] = [
    ("Cast", {"to": 7}, [], "whole numbers", 20),
    ("MatMul", {}, [np.ones((3, 1, 6, 6))], "axis of the batch", 20),
    ("Add", {}, [np.ones((3, 4, 5, 6))], "axis of the batch", 20),
    ("Dropout", {}, [np.array(0.5), np.array(True)], "training mode", 20),
    ("Equal", {}, [0.5], "encrypted numbers are equal", 20),
    ("Pad", {}, [np.array([1, 0, 0, 0, 0, 0, 0, 0])], "axis of the batch", 20),
    ("Expand", {}, [np.array([2, 4, 5, 6])], "axis of the batch", 20),
    ("Reshape", {}, [np.array([8, -1])], "axis of the batch", 20),
]


@pytest.mark.parametrize(
    ("op", "attrs", "constants", "says", "opset"),
    REFUSED,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_would_be_wrong_is_refused(
    op: str, attrs: dict[str, Any], constants: list[Any], says: str, opset: int
) -> None:
    from onnx.helper import make_node

    names = [f"c{k}" for k in range(len(constants))]
    node = make_node(op, ["x", *names], ["y"], name="layer", **attrs)
    model = model_of([node], dict(zip(names, constants, strict=True)), {"x": SHAPE}, opset=opset)
    with pytest.raises(jali.Unsupported, match=f"^layer: .*{says}"):
        trace(model, np.zeros((1, *SHAPE)))


def test_a_reshape_may_name_the_batch_for_which_the_model_was_exported(
    rng: np.random.Generator,
) -> None:
    from onnx.helper import make_node

    model = model_of([make_node("Reshape", ["x", "s"], ["y"])], {"s": [8, -1]}, {"x": SHAPE})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 8
    agrees(model, rng.normal(size=(8, *SHAPE)))


@pytest.mark.parametrize(
    ("inputs", "outputs", "says"),
    [
        (["x", "lost"], ("y",), "^layer: nothing in the model computes its input lost: export"),
        (["x", "one"], ("z",), "^nothing in the model computes its output z: export"),
        (["one", "one"], ("y",), "the output y of the model does not depend on its inputs: leave"),
    ],
)
def test_models_that_are_not_whole_are_refused(
    inputs: list[str], outputs: tuple[str, ...], says: str
) -> None:
    from onnx.helper import make_node

    node = make_node("Add", inputs, ["y"], name="layer")
    model = model_of([node], {"one": 1.0}, {"x": SHAPE}, outputs)
    with pytest.raises(jali.InvalidArgument, match=says):
        trace(model, np.zeros((1, *SHAPE)))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (1, 1)])
def test_biases_are_of_features(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    """One that differs between the rows of a batch is none, also if there are as many rows as
    features."""
    from onnx.helper import make_node

    node = make_node("Gemm", ["x", "w", "b"], ["y"], name="layer", beta=0.5)
    weight = rng.normal(size=(5, 3))
    constants = {"w": weight, "b": rng.normal(size=shape)}
    agrees(model_of([node], constants, {"x": (5,)}), rng.normal(size=(4, 5)))
    for rows in ((3, 1), (3, 3)):
        other = model_of([node], {"w": weight, "b": np.ones(rows)}, {"x": (5,)})
        with pytest.raises(jali.Unsupported, match=r"^layer: it works along the axis of the batch"):
            trace(other, np.zeros((1, 5)))


@pytest.mark.parametrize("op", ["Add", "MatMul"])
def test_arrays_of_different_numbers_of_axes(op: str, rng: np.random.Generator) -> None:
    """The batch of one would meet another axis of the other: the whole arrays are one example."""
    from onnx.helper import make_node
    from onnx.reference import ReferenceEvaluator

    model = model_of([make_node(op, ["x", "z"], ["y"])], {}, {"x": (5, 5), "z": (5,)})
    with pytest.raises(
        jali.Error, match=r"it works along the axis of the batch|a product of arrays"
    ):
        trace(model, (np.zeros((1, 5, 5)), np.zeros((1, 5))))
    x, z = rng.normal(size=(5, 5, 5)), rng.normal(size=(5, 5))
    graph = trace(model, (x, z))
    assert [node.shape for node in graph.inputs] == [(5, 5, 5), (5, 5)]
    (want,) = ReferenceEvaluator(model).run(None, {"x": x, "z": z})
    assert np.allclose(execute(graph, x, z)[0][0], np.asarray(want))
