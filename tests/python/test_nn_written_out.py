"""A softmax that is written out with the maximum subtracted is read without it, and what is not
exactly that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.ir.execute import execute

SHAPE = (3, 4, 5)


def softmax(x: Any, axis: Any) -> Any:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def has_maxima(graph: nn.Graph) -> bool:
    return any(getattr(node.operation, "function", "") == "maximum" for node in graph)


def without_keepdims(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1).reshape(3, 1, 5))
    return powers / powers.sum(axis=1).reshape(3, 1, 5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: softmax(x, -1),
        lambda x: softmax(x, 0),
        lambda x: softmax(x, (1, 2)),
        lambda x: softmax(2 * x + 1, 1) @ np.ones((5, 2)),
        without_keepdims,
    ],
)
def test_the_maximum_cancels(function: Callable[[Any], Any], rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, *SHAPE))
    graph = nn.trace(function, x[0])
    assert not has_maxima(graph)
    (got,) = execute(graph, x)
    assert np.allclose(got, [function(one) for one in x], rtol=1e-12)


def of_another(x: Any) -> Any:
    powers = np.exp(x - (x * x).max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def along_another_axis(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=0, keepdims=True)


def of_other_powers(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / np.exp(x).sum(axis=1, keepdims=True)


def added(x: Any) -> Any:
    powers = np.exp(x + x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def turned(x: Any) -> Any:
    powers = np.exp(x.max(axis=1, keepdims=True) - x)
    return powers / powers.sum(axis=1, keepdims=True)


def with_one_more(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / (powers.sum(axis=1, keepdims=True) + 1)


def sum_elsewhere(x: Any) -> Any:
    """The sum along one axis meets another axis of the same length."""
    powers = np.exp(x[:, :3, :3] - x[:, :3, :3].max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1).reshape(3, 3, 1)


@pytest.mark.parametrize(
    "function",
    [of_another, along_another_axis, of_other_powers, added, turned, with_one_more, sum_elsewhere],
)
def test_what_is_no_softmax_keeps_it(
    function: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    x = rng.normal(size=(6, *SHAPE))
    graph = nn.trace(function, x[0])
    assert has_maxima(graph)
    (got,) = execute(graph, x)
    assert np.allclose(got, [function(one) for one in x], rtol=1e-12)


def test_means_in_the_place_of_sums(rng: np.random.Generator) -> None:
    def function(x: Any) -> Any:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.mean(axis=1, keepdims=True)

    x = rng.normal(size=(6, *SHAPE))
    (got,) = execute(nn.trace(function, x[0]), x)
    assert np.allclose(got, [function(one) for one in x], rtol=1e-12)


def test_models_in_onnx(rng: np.random.Generator) -> None:
    """In front of a product with weights, so that it stays with the server."""
    pytest.importorskip("onnx")
    from test_nn_client_side import expected, model_of

    w = rng.normal(size=(5, 2))
    model = model_of(
        [
            ("ReduceMax", ["x", "axis"], ["m"]),
            ("Sub", ["x", "m"], ["d"]),
            ("Exp", ["d"], ["p"]),
            ("ReduceSum", ["p", "axis"], ["s"]),
            ("Div", ["p", "s"], ["q"]),
            ("MatMul", ["q", "w"], ["y"]),
        ],
        {"axis": np.array([-1]), "w": w},
        {"x": (np.float64, (5,))},
    )
    x = rng.uniform(-1, 1, size=(40, 5))
    assert not has_maxima(nn.trace(model, x[:1]))
    program = jali.compile(model, x[:1], calibration=x, precision_bits=8)
    client = program.client()
    got = client.decrypt(program.server(client.evaluation_keys())(client.encrypt(x[0])))
    (want,) = expected(model, x)
    assert np.abs(got - want[0]).max() < 2**-8 * np.abs(want).max()
