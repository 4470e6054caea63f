"""Quantised models in ONNX, read as the real numbers that they approximate: against ONNX's own
evaluator, within the steps of the quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.frontends.cut_models import cut_model
from jali.compiler.ir.execute import execute

pytest.importorskip("onnx")

SHAPE = (3, 6, 6)
Nodes = list[tuple[Any, ...]]


def model_of(
    nodes: Nodes,
    constants: dict[str, Any],
    shape: tuple[int, ...] = SHAPE,
    kind: Any = np.float32,
    outputs: tuple[str, ...] = ("y",),
) -> Any:
    """A model of nodes (op, inputs, outputs, attributes) whose input is x (n, *shape)."""
    from onnx import helper, numpy_helper

    made = [helper.make_node(op, i, o, **(rest[0] if rest else {})) for op, i, o, *rest in nodes]
    ends = [helper.make_tensor_value_info(name, 1, None) for name in outputs]
    graph = helper.make_graph(
        made,
        "g",
        [
            helper.make_tensor_value_info(
                "x", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), ("n", *shape)
            )
        ],
        ends,
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets)


def close(model: Any, x: np.ndarray, off: float) -> nn.Graph:
    """The traced graph gives what ONNX gives, up to this; numbers that are wrong are far more off.
    The graph."""
    from onnx.reference import ReferenceEvaluator

    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    graph = nn.trace(model, x)
    (got,) = execute(graph, x)
    assert got.shape == want.shape
    assert np.abs(got - want).max() < off < 0.1 * np.abs(want).max()
    assert np.abs(got - want).max() > 0  # nothing is rounded
    return graph


def functions(graph: nn.Graph) -> list[str]:
    return [node.operation.function for node in graph if hasattr(node.operation, "function")]


def pair(x: str, y: str, scale: str = "s", zero: str = "z", **how: Any) -> Nodes:
    """The quantisation of x, and back again to y."""
    return [
        ("QuantizeLinear", [x, scale, zero], [f"{y}_q"], how),
        ("DequantizeLinear", [f"{y}_q", scale, zero], [y], how),
    ]


f32, u8, i8 = np.float32, np.uint8, np.int8


def weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-127, 128, shape).astype(i8)


# --- pairs around the operators of a float model --------------------------------------------------


def test_pairs_around_a_network(rng: np.random.Generator) -> None:
    """Weights per channel; the first pair behind a convolution is its ReLU."""
    nodes: Nodes = [
        *pair("x", "a", "sx", "zx"),
        ("DequantizeLinear", ["w", "sw", "zw"], ["wr"], {"axis": 0}),
        ("Conv", ["a", "wr"], ["h"], {"pads": [1, 1, 1, 1]}),
        *pair("h", "b", "sh", "zh"),
        ("Flatten", ["b"], ["c"]),
        ("DequantizeLinear", ["v", "sv", "zv"], ["vr"]),
        ("MatMul", ["c", "vr"], ["g"]),
        *pair("g", "y", "sy", "zy"),
    ]
    constants = {
        **{"w": weights(rng, 4, 3, 3, 3), "sw": np.full(4, 0.003, f32), "zw": np.zeros(4, i8)},
        **{"v": weights(rng, 144, 5), "sv": f32(0.002), "zv": i8(3)},
        **{"sx": f32(8 / 65535), "zx": np.uint16(32768)},
        **{"sh": f32(12 / 65535), "zh": np.uint16(0)},
        **{"sy": f32(0.03), "zy": i8(-5)},
    }
    x = rng.uniform(-1, 1, (5, *SHAPE)).astype(f32)
    assert functions(close(model_of(nodes, constants), x, off=0.018)) == ["relu"]


def test_a_relu_is_taken_once(rng: np.random.Generator) -> None:
    """The zero point at the low end says nothing new of what cannot be negative."""
    nodes: Nodes = [
        ("Relu", ["x"], ["a"]),
        ("AveragePool", ["a"], ["b"], {"kernel_shape": [2, 2]}),
        *pair("b", "c"),
        ("Concat", ["c", "c"], ["d"], {"axis": 1}),
        *pair("d", "y"),
    ]
    x = rng.uniform(-1, 1, (5, *SHAPE)).astype(f32)
    model = model_of(nodes, {"s": f32(1 / 255), "z": u8(0)})
    assert functions(close(model, x, off=1 / 255)) == ["relu"]


@pytest.mark.parametrize(("least", "found"), [(0.0, []), (-1.0, ["relu"])])
def test_pixels_are_not_cut(least: float, found: list[str], rng: np.random.Generator) -> None:
    """An input that is not negative in the example; if it is, the pair is its ReLU."""
    x = rng.uniform(least, 1, (5, *SHAPE)).astype(f32)
    model = model_of(pair("x", "y"), {"s": f32(1 / 255), "z": i8(-128)})
    assert functions(close(model, x, off=1 / 255)) == found


def test_the_upper_end_is_kept_where_it_is_a_relu6(rng: np.random.Generator) -> None:
    x = rng.uniform(-9, 9, (5, *SHAPE)).astype(f32)
    six, many = {"s": f32(6 / 255), "z": u8(0)}, {"s": f32(8.9 / 255), "z": u8(0)}
    graph = close(model_of([*pair("x", "a"), *pair("a", "y")], six), x, off=6 / 255)
    assert functions(graph) == ["relu", "relu"]
    graph = close(model_of(pair("x", "y"), many), x, off=0.12)  # outliers alone are beyond it
    assert functions(graph) == ["relu"]


def test_ends_are_kept_beside_a_zero_in_the_middle(rng: np.random.Generator) -> None:
    x = rng.uniform(-9, 9, (5, *SHAPE)).astype(f32)
    model = model_of(pair("x", "y"), {"s": f32(3 / 127), "z": i8(0)})
    assert len(functions(close(model, x, off=3 / 127))) == 2


def test_scales_of_an_axis_and_of_blocks(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (5, *SHAPE)).astype(f32)
    of_axis = {"s": np.array([2, 3, 4], f32) / 200, "z": np.array([3, -5, 0], i8)}
    assert functions(close(model_of(pair("x", "y", axis=1), of_axis), x, off=0.011)) == []
    rows = rng.uniform(0.01, 0.02, (1, 3, 6, 2)).astype(f32)
    of_blocks = {"s": rows, "z": np.zeros((1, 3, 6, 2), i8), "t": rows * f32(1.5)}
    how = {"axis": 3, "block_size": 3}
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"], how),
        ("DequantizeLinear", ["q", "t", "z"], ["y"], how),
    ]
    (got,) = execute(nn.trace(model_of(nodes, of_blocks), x), x)
    assert np.allclose(got, 1.5 * x, atol=1e-6)


def test_other_scales_behind_than_in_front(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("DequantizeLinear", ["q", "t", "o"], ["y"]),
    ]
    x = rng.uniform(-1, 1, (5, *SHAPE)).astype(f32)
    constants = {"s": f32(0.01), "z": u8(120), "t": f32(0.03), "o": u8(7)}
    close(model_of(nodes, constants), x, off=0.016)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of onnx itself
def test_quantised_numbers_are_moved(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("MaxPool", ["q"], ["m"], {"kernel_shape": [2, 2]}),
        ("Transpose", ["m"], ["t"], {"perm": [0, 2, 3, 1]}),
        ("Concat", ["t", "t"], ["c"], {"axis": 3}),
        ("Reshape", ["c", "shape"], ["r"]),
        ("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    x = rng.uniform(-1, 1, (5, *SHAPE)).astype(f32)
    constants = {"s": f32(0.01), "z": u8(120), "shape": np.array([0, -1])}
    close(model_of(nodes, constants), x, off=0.006)


# --- operators of whole numbers -------------------------------------------------------------------


def dynamic(op: str, how: dict[str, Any]) -> Nodes:
    return [
        ("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        (op, ["q", "w", "z", "zw"], ["i"], how),
        ("Cast", ["i"], ["f"], {"to": 1}),
        ("Mul", ["s", "sw"], ["both"]),
        ("Mul", ["f", "both"], ["g"]),
        ("Add", ["g", "b"], ["y"]),
    ]


def test_matrices_of_ranges_that_nobody_knows(rng: np.random.Generator) -> None:
    constants = {"w": weights(rng, 8, 5), "zw": weights(rng, 5) // 8, "b": f32(0.25)}
    constants["sw"] = rng.uniform(0.001, 0.002, 5).astype(f32)
    x = rng.uniform(-1, 1, (7, 8)).astype(f32)
    assert functions(close(model_of(dynamic("MatMulInteger", {}), constants, (8,)), x, 0.01)) == []


def test_convolutions_of_ranges_that_nobody_knows(rng: np.random.Generator) -> None:
    constants = {"w": weights(rng, 4, 3, 3, 3), "zw": i8(4), "b": f32(0.25), "sw": f32(0.002)}
    x = rng.uniform(-1, 1, (4, *SHAPE)).astype(f32)
    how = {"pads": [1, 0, 1, 0], "strides": [2, 1]}
    close(model_of(dynamic("ConvInteger", how), constants), x, 0.03)


def test_whole_products_of_scales_that_are_known(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("MatMulInteger", ["q", "w", "z"], ["i"]),
        ("Cast", ["i"], ["f"], {"to": 1}),
        ("Mul", ["f", "t"], ["y"]),
    ]
    constants = {"w": weights(rng, 8, 5), "s": f32(0.01), "z": u8(100), "t": f32(0.0001)}
    x = rng.uniform(-1, 1, (7, 8)).astype(f32)
    close(model_of(nodes, constants, (8,)), x, 0.02)


def test_linear_convolutions(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        (
            "QLinearConv",
            ["q", "s", "z", "w", "sw", "zw", "sh", "zh", "b"],
            ["h"],
            {"pads": [1] * 4},
        ),
        ("DequantizeLinear", ["h", "sh", "zh"], ["y"]),
    ]
    constants = {
        **{"s": f32(0.01), "z": u8(100), "w": weights(rng, 4, 3, 3, 3)},
        **{"sw": rng.uniform(0.002, 0.004, 4).astype(f32), "zw": np.zeros(4, i8)},
        **{"b": np.array([100, -2000, 3000, 0], np.int32), "sh": f32(0.02), "zh": u8(0)},
    }
    x = rng.uniform(-1, 1, (4, *SHAPE)).astype(f32)
    assert functions(close(model_of(nodes, constants), x, off=0.06)) == ["relu"]


def test_linear_matrices(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("QLinearMatMul", ["q", "s", "z", "w", "sw", "zw", "sh", "zh"], ["h"]),
        ("DequantizeLinear", ["h", "sh", "zh"], ["y"]),
    ]
    constants = {
        **{"s": f32(0.01), "z": u8(100), "w": weights(rng, 8, 5), "sh": f32(0.03), "zh": u8(130)},
        **{"sw": rng.uniform(0.003, 0.006, 5).astype(f32), "zw": weights(rng, 5) // 8},
    }
    x = rng.uniform(-1, 1, (4, 8)).astype(f32)
    close(model_of(nodes, constants, (8,)), x, off=0.04)


#: Operators of onnxruntime: (nodes between "q" and "h", what they are of the dequantised "x").
OTHERS: dict[str, tuple[Nodes, Any]] = {
    "gemm": (
        [("QGemm", ["q", "s", "z", "w", "sw", "zw", "c", "s", "z"], ["h"], {"transB": 1})],
        lambda x, k: (
            x @ ((k["w"] - 1.0 * k["zw"][:, None]) * k["sw"][:, None]).T + k["c"] * k["s"] * k["sw"]
        ),
    ),
    "sums": ([("QLinearAdd", ["q", "s", "z", "q", "s", "z", "s", "z"], ["h"])], lambda x, k: 2 * x),
    "products": (
        [("QLinearMul", ["q", "s", "z", "q", "s", "z", "s", "z"], ["h"])],
        lambda x, k: x * x,
    ),
    "means": (
        [
            ("Reshape", ["q", "image"], ["r"]),
            ("QLinearGlobalAveragePool", ["r", "s", "z", "s", "z"], ["h"]),
        ],
        lambda x, k: x.reshape(-1, 2, 2, 2).mean((2, 3), keepdims=True),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_operators_of_onnxruntime(name: str, rng: np.random.Generator) -> None:
    """Real numbers whose quantised ones meet all of their ends inside."""
    between, meaning = OTHERS[name]
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        *[(op, i, o, *(how or [{}])) for op, i, o, *how in between],
        ("DequantizeLinear", ["h", "s", "z"], ["y"]),
    ]
    known = {
        **{"w": weights(rng, 5, 8), "zw": weights(rng, 5) // 8, "c": weights(rng, 5).astype("i4")},
        **{"s": f32(0.05), "z": u8(128), "sw": rng.uniform(0.002, 0.004, 5).astype(f32)},
        "image": np.array([0, 2, 2, 2]),
    }
    model = model_of(nodes, known, (8,))
    for node in model.graph.node:
        node.domain = (
            "com.microsoft"
            if node.op_type.startswith("Q") and node.op_type != "QuantizeLinear"
            else ""
        )
    x = rng.uniform(-1, 1, (4, 8)).astype(f32)
    (got,) = execute(nn.trace(model, x), x)
    assert np.allclose(got, meaning(x.astype(float), known), atol=1e-5)


# --- whole numbers as inputs ----------------------------------------------------------------------


def test_inputs_of_bytes(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("DequantizeLinear", ["x", "s", "z"], ["a"]),
        ("Flatten", ["a"], ["b"]),
        ("MatMul", ["b", "w"], ["y"]),
    ]
    constants = {"s": f32(0.01), "z": u8(100), "w": rng.normal(size=(108, 3)).astype(f32)}
    x = rng.integers(0, 256, (4, *SHAPE)).astype(u8)
    close(model_of(nodes, constants, kind=u8), x, off=1e-4)


def test_words_in_a_quantised_table(rng: np.random.Generator) -> None:
    """The client encrypts the vectors that they stand for."""
    from onnx.reference import ReferenceEvaluator

    nodes: Nodes = [
        ("Gather", ["table", "x"], ["q"]),
        ("DequantizeLinear", ["q", "s", "z"], ["a"]),
        ("MatMul", ["a", "w"], ["y"]),
    ]
    constants = {"table": weights(rng, 9, 4), "s": f32(0.01), "z": i8(5)}
    constants["w"] = rng.normal(size=(4, 2)).astype(f32)
    x = rng.integers(0, 9, (4, 6))
    model = model_of(nodes, constants, (6,), np.int64)
    found = cut_model(model, x[:1])
    assert found is not None
    graph, parts, ranges = found
    (sent,), _ = parts.sent([x])
    assert np.allclose(sent, (constants["table"][x] - 5.0) * 0.01)
    (got,) = execute(graph, sent)
    assert np.allclose(got, ReferenceEvaluator(model).run(None, {"x": x})[0], atol=1e-5)
    assert ranges is not None and ranges[0] is not None and np.all(np.abs(ranges[0]) < 1.4)


def test_the_client_rounds_what_it_computes(rng: np.random.Generator) -> None:
    """A softmax at the end is the client's, and so is its quantisation, exactly."""
    from onnx.reference import ReferenceEvaluator

    nodes: Nodes = [("MatMul", ["x", "w"], ["h"]), ("Softmax", ["h"], ["p"]), *pair("p", "y")]
    constants = {"w": rng.normal(size=(8, 5)).astype(f32), "s": f32(1 / 300), "z": i8(-120)}
    x = rng.uniform(-3, 3, (20, 8)).astype(f32)
    model = model_of(nodes, constants, (8,), outputs=("y", "y_q"))
    found = cut_model(model, x[:1])
    assert found is not None
    graph, parts, _ = found
    assert [node.op for node in graph if node.op != "input"] == ["dense"]
    got = parts.results(execute(graph, x))
    want = ReferenceEvaluator(model).run(None, {"x": x})
    assert got[1].dtype.kind == "i" and got[1].max() == 127  # beyond which numbers are cut
    assert np.array_equal(got[1], want[1]) and np.allclose(got[0], want[0], atol=1e-6)


# --- encrypted, and refused -----------------------------------------------------------------------


def test_encrypted(rng: np.random.Generator) -> None:
    nodes: Nodes = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("QLinearMatMul", ["q", "s", "z", "w", "sw", "zw", "sh", "zh"], ["h"]),
        ("DequantizeLinear", ["h", "sh", "zh"], ["g"]),
        ("Mul", ["g", "g"], ["y"]),
    ]
    constants = {
        **{"s": f32(0.01), "z": u8(128), "w": weights(rng, 8, 5), "sw": f32(0.002)},
        **{"zw": i8(0), "sh": f32(0.01), "zh": u8(128)},
    }
    x = rng.uniform(-1, 1, (40, 8)).astype(f32)
    program = jali.compile(model_of(nodes, constants, (8,)), x[:1], calibration=x)
    client = program.client()
    got = client.decrypt(program.server(client.evaluation_keys())(client.encrypt(x[0])))
    want = (x[0].astype(float) @ (constants["w"] * float(constants["sw"]))) ** 2
    assert np.abs(got - want).max() < 2**-9


REFUSED: dict[str, tuple[Nodes, str]] = {
    "an output": ([("QuantizeLinear", ["x", "s", "z"], ["y"])], "the output y of the model: quant"),
    "outputs with a range": (
        [("DynamicQuantizeLinear", ["x"], ["y", "t", "o"])],
        "the output y of the model: quant",
    ),
    "a whole product": (
        [("QuantizeLinear", ["x", "s", "z"], ["q"]), ("MatMulInteger", ["q", "w", "z"], ["y"])],
        "the output y of the model: quant",
    ),
    "arithmetic": (
        [("QuantizeLinear", ["x", "s", "z"], ["q"]), ("Add", ["q", "z"], ["y"])],
        "let DequantizeLinear follow at once",
    ),
    "another range": (
        [
            ("DynamicQuantizeLinear", ["x"], ["q", "t", "o"]),
            ("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ],
        "the scale or the zero point of other numbers",
    ),
    "another zero point": (
        [("DynamicQuantizeLinear", ["x"], ["q", "t", "o"]), ("MatMulInteger", ["q", "w"], ["y"])],
        "the scale or the zero point of other numbers",
    ),
    "two ranges": (
        [
            ("DynamicQuantizeLinear", ["x"], ["q", "t", "o"]),
            ("Transpose", ["x"], ["v"]),
            ("DynamicQuantizeLinear", ["v"], ["p", "u", "n"]),
            ("MatMulInteger", ["q", "p", "o", "n"], ["y"]),
        ],
        "both quantised by their own range",
    ),
    "a scale as a number": (
        [("DynamicQuantizeLinear", ["x"], ["q", "t", "o"]), ("Mul", ["x", "t"], ["y"])],
        "let DequantizeLinear follow at once",
    ),
    "floats of 8 bits": (
        [
            ("QuantizeLinear", ["x", "s"], ["q"], {"output_dtype": 17}),
            ("DequantizeLinear", ["q", "s"], ["y"]),
        ],
        "quantised numbers of the type",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_dequantised_is_refused(name: str, rng: np.random.Generator) -> None:
    nodes, sentence = REFUSED[name]
    constants = {"s": f32(0.01), "z": u8(100), "w": weights(rng, 8, 5)}
    with pytest.raises(jali.Unsupported, match=sentence):
        nn.trace(model_of(nodes, constants, (8,)), np.ones((1, 8), f32))
