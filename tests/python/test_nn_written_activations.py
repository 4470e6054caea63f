"""Activations that a model writes out as products are read as what they are, and other products
are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.nn import scalar
from jali.nn.execute import execute

ROOT = math.sqrt(2 / math.pi)
ROOT_24 = float(np.float32(ROOT))  # as models in 32 bits have it


def erf(x: Any) -> Any:
    return x._function("erf") if hasattr(x, "_function") else np.vectorize(math.erf)(x)


def sigmoid(x: Any) -> Any:
    return scalar.sigmoid(x)


def softplus(x: Any) -> Any:
    return x._function("softplus") if hasattr(x, "_function") else np.logaddexp(0.0, x)


WRITTEN: list[tuple[str, Callable[[Any], Any]]] = [
    ("gelu_tanh", lambda x: 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))),
    ("gelu_tanh", lambda x: x * (1 + np.tanh(ROOT_24 * (x + 0.044715 * (x * x * x)))) * 0.5),
    ("gelu_tanh", lambda x: x * (0.5 + 0.5 * np.tanh(ROOT_24 * x * (1 + 0.044715 * x * x)))),
    ("gelu_tanh", lambda x: x * sigmoid(2 * ROOT * (x + 0.044715 * x**3))),
    ("gelu", lambda x: x * 0.5 * (1.0 + erf(x / math.sqrt(2)))),
    ("gelu", lambda x: (erf(x * float(np.float32(0.70710678))) + 1) * x / 2),
    ("silu", lambda x: x * sigmoid(x)),
    ("silu", lambda x: x * (0.5 + 0.5 * np.tanh(x / 2))),
    ("silu", lambda x: x * sigmoid(1.702 * x)),  # of 1.702 x, divided by 1.702
    ("silu", lambda x: -3 * x * sigmoid(x)),
    ("mish", lambda x: x * np.tanh(softplus(x))),
]
OTHERS: list[Callable[[Any], Any]] = [
    lambda x: 0.5 * x * (1 + np.tanh(ROOT * (x + 0.05 * x**3))),
    lambda x: 0.5 * x * (1 + np.tanh(0.8 * (x + 0.044715 * x**3))),
    lambda x: x * np.tanh(x),
    lambda x: (x + 1e-3) * sigmoid(x),
    lambda x: x * sigmoid(x + 1e-3),
    lambda x: x * x * sigmoid(x),
    lambda x: x * sigmoid(x[::-1]),
    lambda x: x * sigmoid(x * np.array([1.0, 1, 1, 2])),
    lambda x: x * erf(x),
    lambda x: sigmoid(x) * sigmoid(x),
]


def functions(graph: nn.Graph) -> list[str]:
    return [node.operation.function for node in graph if node.op == "function"]


@pytest.mark.parametrize(("name", "written"), WRITTEN)
def test_activations_are_read_as_what_they_are(name: str, written: Callable[[Any], Any]) -> None:
    graph = nn.trace(written, np.zeros(4))
    assert functions(graph) == [name] and not [n for n in graph if n.op == "multiply"]
    x = np.random.default_rng(1).normal(0, 4, (200, 4))
    (found,) = execute(graph, x)
    expected = np.array([written(row) for row in x])
    assert np.abs(found - expected).max() < 1e-6


@pytest.mark.parametrize("written", OTHERS)
def test_other_products_stay_what_they_are(written: Callable[[Any], Any]) -> None:
    graph = nn.trace(written, np.zeros(4))
    assert [n for n in graph if n.op == "multiply"]
    x = np.random.default_rng(2).normal(0, 4, (200, 4))
    (found,) = execute(graph, x)
    np.testing.assert_allclose(found, np.array([written(row) for row in x]), rtol=1e-12, atol=1e-12)


def test_the_inner_array_is_the_one_that_is_taken() -> None:
    weights = np.random.default_rng(3).normal(size=(5, 4))

    def network(x: Any) -> Any:
        y = weights @ x + 1.0
        return y * sigmoid(y) + x[0]

    graph = nn.trace(network, np.zeros(4))
    assert functions(graph) == ["silu"]
    x = np.random.default_rng(4).normal(size=(20, 4))
    np.testing.assert_allclose(execute(graph, x)[0], [network(row) for row in x], atol=1e-9)


def test_a_cube_with_a_large_range_compiles() -> None:
    """The tanh alone would have to be a polynomial on an interval of thousands."""

    def network(x: Any) -> Any:
        return 0.5 * x * (1 + np.tanh(ROOT_24 * (x + 0.044715 * x**3)))

    x = np.random.default_rng(5).uniform(-30, 30, (200, 8))
    program = jali.compile(network, x[0], calibration=x, precision_bits=8)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), device="cpu", threads=1)
    found = client.decrypt(server(client.encrypt(x[:3])))
    expected = network(x[:3])
    assert np.abs(found - expected).max() < 2.0**-8 * np.abs(network(x)).max()
