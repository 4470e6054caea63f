"""Maxima of many encrypted numbers: tournaments, pools, and what they cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.frontends import maxima
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.traced_ops import Function
from jali.compiler.ir.windows import window_places

RNG = np.random.default_rng(45)


def clear(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The results of a traced function, computed in the clear."""
    (found,) = execute(nn.trace(function, x[0]), x)
    return found


def numbers_that_meet(graph: Graph) -> int:
    """For how many numbers a maximum is computed."""
    return sum(
        node.size
        for node in graph
        if isinstance(node.operation, Function) and node.operation.function == "maximum"
    )


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2), (2, 0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_maxima_are_numpys(axis: Any, keepdims: bool, n: int) -> None:
    x = RNG.normal(size=(6, n, 3, 2))
    for name in ("max", "min"):
        of = getattr(np, name)
        want = np.stack([of(one, axis=axis, keepdims=keepdims) for one in x])
        assert np.allclose(clear(lambda v, of=of: of(v, axis=axis, keepdims=keepdims), x), want)
        method = clear(lambda v, name=name: getattr(v, name)(axis, keepdims), x)
        assert np.allclose(method, want)


def test_a_tournament_has_few_rounds_and_few_meetings() -> None:
    """n - 1 numbers meet in all, in ceil(log2 n) rounds; windows share what meets."""
    for n in range(2, 40):
        graph = nn.trace(lambda x: x.max(), np.zeros(n))
        rounds = sum(node.op == "function" for node in graph)
        assert rounds == (n - 1).bit_length()
        assert n - 1 <= numbers_that_meet(graph) <= n - 1 + rounds

    places = window_places(20, 5, 1, 1, (2, 2), ceil=False)
    inside = np.clip(places, 0, 19)
    graph = nn.trace(lambda x: maxima.largest_under(x, 0, inside), np.zeros(20))
    assert numbers_that_meet(graph) <= 3 * 22  # not 4 for every window


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("ceil", [False, True])
def test_pools_take_no_padding(size: int, stride: int, dilation: int, ceil: bool) -> None:
    """All numbers are negative, so that a zero of the padding would be the largest."""
    pad, n = (size - 1) // 2, 11
    x = -RNG.uniform(1, 2, (4, 2, n))
    got = clear(
        lambda v: maxima.pooled(v, (size,), (stride,), ((pad, pad),), (dilation,), ceil=ceil), x
    )
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad + n)), constant_values=-np.inf)
    steps = np.arange(size) * dilation
    want = np.stack(
        [padded[..., k * stride + steps].max(-1) for k in range(got.shape[-1])], axis=-1
    )
    assert np.array_equal(np.isfinite(want), np.ones(want.shape, bool))
    assert np.allclose(got, want)


def test_a_window_in_the_padding_alone_is_refused() -> None:
    with pytest.raises(jali.InvalidArgument, match=r"lies in the padding alone.*pad less"):
        nn.trace(
            lambda x: maxima.pooled(x, (2,), (1,), ((2, 0),), (1,)),
            np.zeros(4),
        )


@pytest.mark.parametrize("sizes", [(3,), (4,), (7,), (1,), (None,)])
def test_adaptive_pools(sizes: tuple[int | None, ...]) -> None:
    x = RNG.normal(size=(5, 7))
    m = sizes[0] or 7
    want = [x[:, i * 7 // m : -(-(i + 1) * 7 // m)].max(1) for i in range(m)]
    got = clear(lambda v: maxima.adaptively_pooled(v, sizes), x)
    assert np.allclose(got, np.stack(want, axis=1))


def pooled(x: Any) -> Any:
    """A small network whose pool is what it pays for."""
    return np.max(x.reshape(4, 4), axis=1) * 0.5


def test_a_pool_on_encrypted_numbers() -> None:
    x = RNG.uniform(-1, 1, (60, 16))
    with pytest.warns(UserWarning, match=r"of this program's work are maxima \(maximum and 1 more"):
        program = jali.compile(pooled, x[0], calibration=x, precision_bits=5)
    assert [layer.op for layer in program.summary().layers].count("maximum") == 2
    want = np.stack([pooled(one) for one in x])
    client = program.client()
    server = program.server(client.evaluation_keys())
    for k in range(3):
        got = client.decrypt(server(client.encrypt(x[k])))
        assert np.abs(got - want[k]).max() < 2**-5 * np.abs(want).max()
    assert np.abs(program.simulate(x) - want).max() < 2**-5 * np.abs(want).max()


def test_programs_without_many_maxima_are_not_warned_of() -> None:
    x = RNG.uniform(-1, 1, (60, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jali.compile(lambda v: np.tanh(v) + v * v, x[0], calibration=x, precision_bits=6)


ONNX: list[tuple[str, dict[str, Any], tuple[int, ...], Callable[[np.ndarray], np.ndarray]]] = [
    ("GlobalMaxPool", {}, (2, 3, 4), lambda x: x.max((2, 3), keepdims=True)),
    ("ReduceMax", {"axes": [1], "keepdims": 0}, (2, 3, 4), lambda x: x.max(1)),
    ("ReduceMin", {"axes": [-1]}, (2, 3, 4), lambda x: x.min(-1, keepdims=True)),
    (
        "MaxPool",
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        (2, 4, 4),
        lambda x: x.reshape(len(x), 2, 2, 2, 2, 2).max((3, 5)),
    ),
]


@pytest.mark.parametrize(("op", "attrs", "shape", "want"), ONNX, ids=[o[0] for o in ONNX])
def test_maxima_of_onnx(
    op: str,
    attrs: dict[str, Any],
    shape: tuple[int, ...],
    want: Callable[[np.ndarray], np.ndarray],
) -> None:
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y",)]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])
    node = helper.make_node(op, ["x"], ["y"], name="largest", **attrs)
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(helper.make_graph([node], "g", [given], ports), opset_imports=opset)
    x = RNG.normal(size=(5, *shape)).astype(np.float32)
    (got,) = execute(nn.trace(model, x[:1]), x.astype(np.float64))
    assert np.allclose(got, want(x))


def test_the_places_of_a_pool_are_refused() -> None:
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "places")]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 4])
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], name="pool", kernel_shape=[2])
    model = helper.make_model(helper.make_graph([node], "g", [given], ports))
    with pytest.raises(jali.Unsupported, match=r"pool: the places of the largest.*leave that"):
        nn.trace(model, np.zeros((1, 1, 4)))
