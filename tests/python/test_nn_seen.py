"""Calibration that keeps summaries of arrays, against calibration with all values."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.ir import execute
from jali.compiler.ir.execute import each_value, every_value, seen_values
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.seen import Seen
from jali.compiler.ir.traced_ops import Function, function_of
from jali.compiler.pipeline import Calibrated
from jali.compiler.progress import Progress


def normed(x):
    """Two functions that are not defined at 0, of arguments that are used otherwise, too."""
    centred = x - x.mean()
    variance = (centred * centred).mean() + 0.1
    logs = np.log(variance[None] * np.array([1.0, 2.0, 3.0]) + 1.0)
    return centred / np.sqrt(variance) + logs * variance + np.tanh(x @ np.ones((3, 3)))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """No values are kept, and two examples are computed at a time."""
    monkeypatch.setattr(execute, "_MOST", 0)
    monkeypatch.setattr(execute, "_AT_ONCE", 100)


def calibrated(x: np.ndarray) -> Graph:
    graph = nn.trace(normed, x[0])
    return Calibrated.of(graph, [x], Progress()).stages["calibrate"]


def test_ranges_are_those_of_all_values(
    rng: np.random.Generator, request: pytest.FixtureRequest
) -> None:
    x = rng.normal(size=(21, 3))
    want = calibrated(x)
    request.getfixturevalue("few")
    found = calibrated(x)
    assert [n.name for n in found] == [n.name for n in want]
    assert any(" argument" in n.name for n in want)  # copies of arguments
    for one, other in zip(found, want, strict=True):
        for key in ("low", "high", "mean", "square", "largest"):
            mine, theirs = (np.asarray(getattr(n.range, key)) for n in (one, other))
            assert mine.shape == theirs.shape and np.allclose(mine, theirs), (one.name, key)
        assert one.range.proven == other.range.proven


@pytest.mark.usefixtures("few")
def test_what_is_seen_is_seen_of_all_examples(rng: np.random.Generator) -> None:
    x = rng.normal(size=(7, 3))
    graph = nn.trace(normed, x[0])
    values, seen = every_value(graph, [x]), seen_values(graph, [x])
    assert values.keys() == seen.keys()
    assert sum(isinstance(one, Seen) for one in seen.values()) == len(graph) - 2
    for name, one in seen.items():
        if isinstance(one, Seen):
            numbers = values[name]
            assert one.count == numbers.size and one.largest == np.abs(numbers).max()
            assert (one.min(), one.max()) == (numbers.min(), numbers.max())
            assert np.isclose(one.total, numbers.sum())
            assert np.isclose(one.squares, np.square(numbers).sum())
        else:
            assert np.allclose(one, values[name])
    each = {node.name: found for node, found in each_value(graph, [x])}
    assert all(np.array_equal(each[name], found) for name, found in values.items())


def test_values_that_no_node_takes_any_more_are_not_kept(rng: np.random.Generator) -> None:
    def deep(x):
        for _ in range(6):
            x = np.tanh(x @ np.ones((3, 3)))
        return x

    x = rng.normal(size=(4, 3))
    alive: list[int] = []
    seen: list[weakref.ref[np.ndarray]] = []
    for _, values in each_value(nn.trace(deep, x[0]), [x]):
        seen.append(weakref.ref(values))
        del values
        alive.append(sum(one() is not None for one in seen))
    assert len(alive) > 12 and max(alive) <= 3  # the input, which the test keeps, and two others


def test_a_node_stands_in_the_place_of_another(rng: np.random.Generator) -> None:
    """It is told of the values that the node takes, and later nodes take what it gives."""
    x = rng.normal(size=(4, 3))
    graph = nn.trace(lambda v: np.tanh(np.exp(v)) + 1, x[0])
    told = []

    def replaced(node: Node, sources: Sequence[np.ndarray]) -> Node:
        if function_of(node) != "exp":
            return node
        told.extend(sources)
        return replace(node, operation=Function(function="sigmoid"))

    found = {node.name: values for node, values in each_value(graph, [x], replaced)}
    assert len(told) == 1 and np.array_equal(told[0], x)
    assert np.allclose(found[graph.outputs[0]], np.tanh(1 / (1 + np.exp(-x))) + 1)
    changed = every_value(graph, [x], {"exp": lambda values: 0 * values})
    assert np.array_equal(changed["exp"], 0 * x) and np.all(changed[graph.outputs[0]] == 1)


@pytest.mark.usefixtures("few")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers_that_are_none_are_refused() -> None:
    x = np.array([[1.0], [2.0], [-3.0], [1.0]])
    graph = nn.trace(lambda v: np.sqrt(v) * 2 + 1, x[0])
    with pytest.raises(jali.InvalidArgument, match="NaN or infinity"):
        Calibrated.of(graph, [x], Progress())


@pytest.mark.usefixtures("few")
def test_a_program_of_such_a_calibration(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (40, 3))
    weight = rng.normal(size=(3, 3))
    program = jali.compile(lambda v: np.tanh(weight @ v), x[0], calibration=x, precision_bits=8)
    client = program.client()
    server = program.server(client.evaluation_keys())
    found = client.decrypt(server(client.encrypt(x[:2])))
    assert np.allclose(found, np.tanh(x[:2] @ weight.T), atol=2**-8)
