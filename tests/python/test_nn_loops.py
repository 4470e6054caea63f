"""Loops: traced, recorded, folded, calibrated and approximated as one operation, and computed on
ciphertexts.

The oracle is the same function on arrays of NumPy, where nn.loop is a loop of Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slot_interpreter import WEIGHTS
from test_nn_program import assert_precise, encrypted

import jali
from jali import nn
from jali.compiler.ir.execute import every_value, execute
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import packed, unpacked
from jali.compiler.ir.linear_ops import Pad
from jali.compiler.ir.loop_graph import ByStep, Loop
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Multiply, made, verify
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.passes.approximate import approximate, approximated, scaled
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.execute_approximated import expected
from jali.compiler.passes.fold import fold
from jali.compiler.passes.unroll import unrolled
from jali.compiler.pipeline import lowered
from jali.nn import graph_file, scalar, trace


def example_of(f: Any, shapes: list[tuple[int, ...]], rng: np.random.Generator, n: int = 6) -> Any:
    """Examples of every input, and what the function gives for them."""
    x = [rng.uniform(-1, 1, (n, *shape)) for shape in shapes]
    return x, np.stack([f(*v) for v in zip(*x, strict=True)])


def result(graph: Graph, x: list[np.ndarray]) -> np.ndarray:
    """The output of an approximated graph, in the model's units."""
    inside = [scaled(node, v) for node, v in zip(graph.inputs, x, strict=True)]
    output = graph[graph.outputs[0]]
    value = every_value(graph, inside)[output.name]
    return value * np.reshape(output.attrs["radius"], (-1,))[0] + output.attrs["centre"]


def check_stages(f: Any, shapes: list[tuple[int, ...]], rng: np.random.Generator) -> Graph:
    """Every stage computes what the function computes. It returns the approximated graph."""
    x, want = example_of(f, shapes, rng)
    graph = verify(trace(f, tuple(v[0] for v in x)))
    assert any(node.op == "loop" for node in graph)
    for same in (graph, graph_file.from_bytes(graph_file.to_bytes(graph)), fold(graph)):
        assert np.allclose(execute(same, *x)[0].reshape(want.shape), want, atol=1e-9)
    made_of = approximated(calibrate(fold(graph), x), 1e-3)
    flat = unrolled(made_of)
    assert not any(node.op == "loop" for node in flat)
    for same in (made_of, flat):
        assert np.allclose(result(same, x).reshape(want.shape), want, atol=1e-9)
    for slots in (8, 64):
        graph = lowered(made_of, slots, WEIGHTS)["levels"]
        inside = [
            packed(node.attrs["layout"], scaled(node, v).reshape(len(v), -1))
            for node, v in zip(graph.inputs, x, strict=True)
        ]
        output = graph[graph.outputs[0]]
        got = unpacked(output.attrs["layout"], every_slot(graph, inside)[output.name])
        got = got * output.attrs["radius"] + output.attrs["centre"]
        assert np.allclose(got.reshape(want.shape), want, atol=1e-9)
    return made_of


def recurrent(rng: np.random.Generator, units: int, features: int) -> Any:
    """An Elman network whose activation is a cubic polynomial."""
    w = rng.normal(size=(units, units)) / units
    u = rng.normal(size=(units, features)) / features**0.5

    def f(words: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            return scalar.polynomial(w @ h + x, (0.0, 0.9, 0.0, -0.1))

        return nn.loop(cell, np.zeros(units), words @ u.T)

    return f


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_stages_of_recurrent_networks(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    units, features, steps = (data.draw(st.integers(1, n)) for n in (6, 4, 5))
    check_stages(recurrent(rng, units, features), [(steps + 2, features)], rng)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_stages_of_loops_with_several_states(data: st.DataObject) -> None:
    """Two states that exchange places, arrays from outside, a sequence in the clear, and a list of
    arrays."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, steps = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    rates = rng.normal(size=steps) * (rng.random(steps) < 0.7)
    weight, first = rng.normal(size=(size, size)) / size, draw(st.integers(0, 1))

    def f(x: Any, y: Any) -> Any:
        def body(v: Any, w: Any, row: Any, rate: Any) -> Any:
            step = v + 0.5 * (row * (weight @ w)) * y
            return (1 - rate) * step + rate * w, step * 0.5 if first else v

        pair = nn.loop(body, (y, y * 0.5), ([x[t] for t in range(steps)], rates))
        return pair[0] - 2 * pair[1]

    check_stages(f, [(steps, size), (size,)], rng)


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_stages_of_scans(data: st.DataObject) -> None:
    """Every state is used by a second loop, and arrays of another shape are summed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    units, steps = data.draw(st.integers(1, 4)), data.draw(st.integers(3, 5))
    w, v, u = rng.normal(size=(3, units, units)) / units

    def f(x: Any) -> Any:
        def body(h: Any, c: Any, row: Any) -> Any:
            h, c = w @ h + row * 0.5, c + v @ np.square(h)
            return (h, c), (h, 2 * c[:1])

        (_, c), (hidden, firsts) = nn.scan(body, (np.zeros(units), x[0]), x)
        upper = nn.loop(lambda g, row: u @ g + np.square(row), np.zeros(units), hidden)
        return upper + c + firsts.sum(axis=0)

    graph = check_stages(f, [(steps, units)], rng)
    assert sum(node.op == "loop" for node in graph) == 2


def test_a_scan_is_a_loop_of_python_in_the_clear() -> None:
    last, seen = nn.scan(lambda s, x: (s + x, s * x), 1.0, np.arange(4.0))
    assert last == 7 and np.array_equal(seen, [0, 1, 4, 12])
    last, (first, second) = nn.scan(lambda s: (2 * s, (s, s[:1])), np.ones(2), count=3)
    assert np.array_equal(last, [8, 8])
    assert np.array_equal(first, [[1, 1], [2, 2], [4, 4]])
    assert np.array_equal(second, [[1], [2], [4]])


def test_loops_in_loops(rng: np.random.Generator) -> None:
    w = rng.normal(size=(4, 4)) / 3

    def f(x: Any) -> Any:
        def outer(h: Any) -> Any:
            return nn.loop(lambda k: w @ k * x + 0.1, h, count=2) - 0.5 * h

        return nn.loop(outer, x * 0.5, count=3)

    check_stages(f, [(4,)], rng)


def test_a_loop_is_a_loop_of_python_in_the_clear() -> None:
    assert nn.loop(lambda x: 2 * x, 1.0, count=5) == 32
    assert nn.loop(lambda s, x: s + x, 0.0, np.arange(5.0)) == 10
    assert nn.loop(lambda s, n, x: (s + x * n, n + 1), (0.0, 1.0), [1.0, 2.0]) == (5.0, 3.0)
    powers = nn.loop(lambda s, a, b: s + a * b, np.zeros(2), (np.ones((3, 2)), np.arange(3.0)))
    assert np.array_equal(powers, [3, 3])


def test_the_body_is_traced_once_and_its_matrices_are_shared(rng: np.random.Generator) -> None:
    seen = []
    w = rng.normal(size=(6, 6)) / 6

    def body(h: Any) -> Any:
        seen.append(h)
        return np.square(w @ h)

    f = lambda x: nn.loop(body, x, count=9)  # noqa: E731
    x = rng.uniform(-1, 1, (20, 6))
    graph = trace(f, x[0])
    assert len(seen) == 1 and len([n for n in graph if n.op == "loop"]) == 1
    flat = lowered(approximated(calibrate(fold(graph), [x]), 1e-3), 64, WEIGHTS)["levels"]
    inside = [node for node in flat if "step" in node.attrs]
    terms = [t for node in inside for t in node.attrs.get("terms", ()) if not t.is_free]
    assert len(terms) == 9 and len({id(t) for t in terms}) == 1
    layouts = {n.attrs["layout"] for n in flat if "alike" in n.attrs}
    assert len(layouts) == 1


def test_the_scale_of_a_state_costs_no_level(rng: np.random.Generator) -> None:
    """The body ends with a product, whose scale is what it is; the state takes it over."""
    w = rng.normal(size=(5, 5)) / 3

    def f(x: Any) -> Any:
        def body(h: Any) -> Any:
            z = scalar.polynomial(w @ h, (0.0, 0.8, 0.0, -0.05))
            return z * scalar.polynomial(w.T @ h + x, (0.5, 0.2, 0.0, -0.01))

        return nn.loop(body, w @ x, count=4)

    graph = check_stages(f, [(5,)], rng)
    depth = [max(n.attrs["level"] for n in lowered(graph, 64, WEIGHTS)["levels"])]
    # In each iteration a matrix, a cubic polynomial of two levels and a product; and before the
    # loop, a matrix.
    assert depth == [4 * (1 + 2 + 1) + 1]


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: nn.loop(lambda h: h[:2], x, count=3), "returned"),
        (lambda x: nn.loop(lambda h: (h, h), x, count=3), "returned 2 arrays"),
        (lambda x: nn.loop(lambda h: np.ones(4), x, count=3), "does not depend"),
        (lambda x: nn.loop(lambda h: h, x), "or a count"),
        (lambda x: nn.loop(lambda h: h, x, count=0), "count"),
        (lambda x: nn.loop(lambda h, a: h, x, np.ones((3, 4))), "one number to each"),
        (lambda x: nn.loop(lambda h, a: h, x, x, count=3), "one length"),
        (lambda x: nn.loop(lambda h, a: h + a, x, np.ones(3)), "multiply and divide"),
        (lambda x: nn.loop(lambda h, a: h if a > 0 else -h, x, np.ones(3)), "branch"),
        (lambda x: nn.loop(lambda h, n: (h * n, n + 1), (x, 1.0), count=9), "as a sequence"),
        (lambda x: nn.loop(lambda h, a: h, x, [x, x[:2], x]), "different shapes"),
        (lambda x: nn.scan(lambda h: h, x, count=3), "returns two things"),
        (lambda x: nn.scan(lambda h: ((h, h), h), x, count=3), "returned 2 arrays"),
        (lambda x: nn.scan(lambda h: (h, np.ones(2)), x, count=3), "what to keep.*does not depend"),
    ],
)
def test_loops_that_cannot_be_compiled(f: Any, says: str) -> None:
    with pytest.raises(jali.Error, match=says):
        trace(f, np.zeros(4))


def test_arrays_of_a_body_stay_inside() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = nn.loop(lambda h: (kept.append(h), 2 * h)[1], x, count=3)
        return y + kept[0]

    with pytest.raises(jali.InvalidArgument, match="return it as a state"):
        trace(f, np.zeros(4))


def test_loops_are_verified() -> None:
    x = made("x", Input(shape=(3,)), [])
    h = made("h", Input(shape=(3,)), [])
    body = Graph((h, made("y", Multiply(), [h, h])), ("y",))
    attrs = {"body": body, "count": 2, "states": 1, "sequences": 0, "collected": 0}
    assert made("loop", Loop(**attrs), [x]).shape == (3,)
    small = made("small", Input(shape=(2,)), [])
    longer = Graph((h, made("y", Pad(widths=((0, 1),)), [h])), ("y",))
    rates = Graph((h, made("y", ByStep(factors=np.ones(3)), [h])), ("y",))
    for inputs, wrong, says in (
        ([small], {}, "is given"),
        ([x, x], {}, "takes 1 array, "),
        ([x], {"count": 0}, "one iteration"),
        ([x], {"states": 2}, "do not give"),
        ([x], {"collected": 1}, "gives 1 array, not 1 state and 1 to collect"),
        ([x], {"body": longer}, "behind it"),
        ([x], {"body": rates}, "a number for each of 2"),
    ):
        with pytest.raises(jali.InvalidArgument, match=says):
            made("loop", Loop(**{**attrs, **wrong}), inputs)


def test_a_recurrent_network_encrypted(rng: np.random.Generator) -> None:
    """Compiled, saved, loaded and run, with an approximated function in the body."""
    w, u = rng.normal(size=(4, 4)) / 2, rng.normal(size=(4, 3)) / 2
    f = lambda x: nn.loop(lambda h, v: np.tanh(w @ h + v), np.zeros(4), x @ u.T)  # noqa: E731
    x, want = example_of(f, [(3, 3)], rng, 60)
    program = jali.compile(f, x[0][0], calibration=x[0], precision_bits=6, batch=2)
    assert np.allclose(program.clear(x[0]), want, atol=1e-9)
    assert "graph after 'approximate'" in program.explain("approximate").split("loop(")[1]
    assert_precise(program, encrypted(program, x[0][:3]), want[:3])
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.manifest.fingerprint == program.manifest.fingerprint
    largest = np.abs(want).max()
    assert np.abs(again.simulate(x[0]) - want).max() <= 2.0**-6 * largest


def test_two_states_and_a_sequence_in_the_clear_encrypted(rng: np.random.Generator) -> None:
    rates = np.array([0.0, 0.25, 0.5])

    def f(x: Any, y: Any) -> Any:
        def body(v: Any, w: Any, rate: Any) -> Any:
            step = v + (x * y).sum(axis=0)
            return (1 - rate) * step + rate * w, step

        return nn.loop(body, (y * 0.1, y * 0.2), rates)

    x, y = rng.uniform(-1, 1, (50, 4, 2)), rng.uniform(-1, 1, (50, 2))
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), precision_bits=10, batch=4)
    got = encrypted(program, x[:5], y[:5])
    for mine, want in zip(got, zip(*map(f, x[:5], y[:5]), strict=True), strict=True):
        assert np.abs(mine - np.stack(want)).max() < 2.0**-10 * 8


@pytest.mark.parametrize("gain", [1.0, 3.0])
def test_errors_of_functions_within_loops_are_measured(
    gain: float, rng: np.random.Generator
) -> None:
    """Also if the only functions are in the body: every iteration multiplies their errors by up to
    the gain."""
    weights = gain * np.linalg.qr(rng.normal(size=(4, 4)))[0]

    def network(x: Any) -> Any:
        return nn.loop(lambda hidden, t: np.tanh(weights @ hidden + t), x[0], x[1:])

    examples = rng.uniform(-0.3, 0.3, (100, 8, 4))
    graph = calibrate(fold(trace(network, examples[0])), [examples])
    made, _ = approximate(graph, [examples], 6)
    want = execute(graph, examples)[0]
    assert np.abs(expected(graph, made, [examples])[0] - want).max() < 2.0**-6 * np.abs(want).max()
