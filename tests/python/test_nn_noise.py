"""Noise of programs that bootstrap: against noise that is drawn at random and carried through the
same sums."""

from __future__ import annotations

import numpy as np
import pytest
from graph_nodes import node_of
from slot_interpreter import WEIGHTS

from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import Layout, fitted
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.terms import Term, gain_of
from jali.compiler.noise.array_noise import Noises
from jali.compiler.noise.bootstrap_noise import BootstrapNoise
from jali.compiler.noise.copies import AddedToCopies

SIZE = 64


def recurrence(steps: int, momentum: float) -> Graph:
    """x[t+1] = (1 + momentum) x[t] - momentum x[t-1], as the stage levels has it."""
    one = SparseMap.identity(SIZE)
    nodes = [node_of(name, "input", (), (SIZE,), {}) for name in ("x0", "x1")]
    gains = (gain_of(one.scaled(1 + momentum)), gain_of(one.scaled(-momentum)))
    for t in range(2, steps):
        nodes.append(
            node_of(f"x{t}", "transform", (f"x{t - 1}", f"x{t - 2}"), (SIZE,), {"gains": gains})
        )
    return Graph(tuple(nodes), (nodes[-1].name,), "levels")


def test_errors_of_neighbours_in_a_recurrence_cancel(rng: np.random.Generator) -> None:
    """With independent noises, 32 steps would multiply them by 10^10; the sums of what each step
    adds grow by 1 / (1 - 0.9) at most."""
    steps, momentum = 32, 0.9
    graph = recurrence(steps, momentum)
    noises = Noises(graph)
    found = [noises.add(node, 1.0) for node in graph]
    x = [rng.normal(size=100_000) for _ in range(2)]
    for _ in range(2, steps):
        x.append((1 + momentum) * x[-1] - momentum * x[-2] + rng.normal(size=len(x[0])))
    assert np.allclose(found, [v.std() for v in x], rtol=0.02)


def test_noise_behind_a_matrix_is_independent_of_its_source(rng: np.random.Generator) -> None:
    """y = M x + x with the noise of x, and what the sum adds."""
    matrix = rng.normal(size=(SIZE, SIZE)) / 4
    inputs = node_of("x", "input", (), (SIZE,), {})
    gains = (gain_of(SparseMap.dense(matrix)), gain_of(SparseMap.identity(SIZE)))
    node = node_of("y", "transform", ("x", "x"), (SIZE,), {"gains": gains})
    graph = Graph((inputs, node), ("y",), "levels")
    noises = Noises(graph)
    noises.add(inputs, 0.5)
    noise = rng.normal(size=(SIZE, 50_000)) * 0.5
    y = matrix @ noise + noise + rng.normal(size=noise.shape) * 0.1
    assert abs(noises.add(node, 0.1) / np.sqrt(np.mean(y**2)) - 1) < 0.1


def test_the_noise_of_a_sum_that_two_take_is_one(rng: np.random.Generator) -> None:
    """g = M x; p = 2 g + x and q = 3 g - p, with what each adds: in q, two of three g cancel."""
    matrix = rng.normal(size=(SIZE, SIZE)) / 4
    multiple = {
        factor: gain_of(SparseMap.identity(SIZE).scaled(factor)) for factor in (1, -1, 2, 3)
    }
    nodes = [node_of("x", "input", (), (SIZE,), {})]
    for name, inputs, gains in (
        ("g", ("x",), (gain_of(SparseMap.dense(matrix)),)),
        ("p", ("g", "x"), (multiple[2], multiple[1])),
        ("q", ("g", "p"), (multiple[3], multiple[-1])),
    ):
        nodes.append(node_of(name, "transform", inputs, (SIZE,), {"gains": gains}))
    noises = Noises(Graph(tuple(nodes), ("q",), "levels"))
    found = [noises.add(node, 0.5) for node in nodes]
    own = rng.normal(size=(4, SIZE, 50_000)) * 0.5
    x = own[0]
    g = matrix @ x + own[1]
    p = 2 * g + x + own[2]
    q = 3 * g - p + own[3]
    assert np.allclose(found, [np.sqrt(np.mean(v**2)) for v in (x, g, p, q)], rtol=0.1)


def test_noise_beside_zeros_is_not_averaged(rng: np.random.Generator) -> None:
    """y = (m x) x, where the mask m keeps a quarter: the noise of y in that quarter is not that of
    all of it, which is half of it."""
    kept = SIZE // 4
    mask = SparseMap.gather(np.r_[np.arange(kept), np.full(SIZE - kept, -1)], SIZE)
    layout = fitted((SIZE,), SIZE)
    attrs = {"terms": (Term.of(mask, layout, layout, True, WEIGHTS),), "gains": (gain_of(mask),)}
    x = node_of("x", "input", (), (SIZE,), {"rms": 0.5})
    part = node_of(
        "part", "transform", ("x",), (SIZE,), {**attrs, "bias": np.zeros(1), "rms": 0.25}
    )
    y = node_of("y", "multiply", ("part", "x"), (SIZE,), {"rms": 0.125})
    noises = Noises(Graph((x, part, y), ("y",), "levels"))
    for node in (x, part):
        noises.add(node, 0.0 if node is part else 0.01)
    values = 0.5 * rng.choice([-1.0, 1.0], (SIZE, 20_000))
    noise = 0.01 * rng.normal(size=values.shape)
    # The noise of x reaches y twice, and the estimate takes the two for independent.
    true = np.hypot(noise * values, noise[::-1] * values)[:kept]
    found = noises.add(y, 0.0)
    assert 0.9 < found / np.sqrt(np.mean(true**2)) < 1.1


def test_what_nodes_add_is_counted_where_the_laid_out_graph_has_them() -> None:
    """s = 3 x is a shared sum and b a bootstrapping of x: neither is a node of the graph after the
    stage layout."""
    identity = SparseMap.identity(SIZE)
    x = node_of("x", "input", (), (SIZE,), {})
    b = node_of("b", "bootstrap", ("x",), (SIZE,), {})
    s = node_of("s", "transform", ("b",), (SIZE,), {"gains": (gain_of(identity.scaled(3)),)})
    gains = (gain_of(identity.scaled(-2)), gain_of(identity))
    y = node_of("y", "transform", ("s", "b"), (SIZE,), {"gains": gains})
    noises = Noises(Graph((x, b, s, y), ("y",), "levels"))
    for node, own in zip((x, b, s, y), (0.1, 0.2, 0.3, 0.4), strict=True):
        noises.add(node, own)
    laid_out = Graph((x, node_of("y", "affine", ("x",), (SIZE,), {})), ("y",), "layout")
    added = noises.added(laid_out)
    assert {name: own.random for name, own in added.items()} == pytest.approx(
        {"x": np.hypot(0.1, 0.2), "y": np.hypot(0.4, 2 * 0.3)}
    )
    assert added["x"] == AddedToCopies(0.0, 0.1, BootstrapNoise(0.2))
    assert added["y"] == AddedToCopies(pytest.approx(2 * 0.3), 0.4)


def test_a_bootstrapping_takes_the_mean_of_copies_for_those_who_use_it() -> None:
    """Who takes the array as it was before it, has the noise of one copy."""
    layout = Layout((SIZE,), 8 * SIZE, SIZE)
    sparse = {"slots": SIZE, "layout": layout}
    gains = (gain_of(SparseMap.identity(SIZE)),)
    x = node_of("x", "input", (), (SIZE,), {"rms": 0.5})
    b = node_of("b", "bootstrap", ("x",), (SIZE,), sparse | {"rms": 0.5})
    y = node_of("y", "transform", ("b",), (SIZE,), {"gains": gains, "rms": 0.5})
    z = node_of("z", "multiply", ("x", "y"), (SIZE,), {})
    whole = node_of("b", "bootstrap", ("x",), (SIZE,), {"layout": layout, "rms": 0.5})
    for nodes, output, repetitions in (
        ((x, b, y), "y", 8),
        ((x, whole, y), "y", 1),
        ((x, b, y, z), "y", 1),
        ((x, b, y), "x", 1),
    ):
        noises = Noises(Graph(nodes, (output,), "levels"))
        for node in nodes:
            noises.add(node, 0.1)
        below = [node_of(n.name, n.op, ("x",), (SIZE,), {}) for n in nodes[2:]]
        laid_out = Graph((x, *below), ("x",), "layout")
        assert noises.added(laid_out)["x"].repetitions == repetitions


def test_what_a_product_adds_to_its_factors_is_taken_out_of_what_it_adds_behind_them() -> None:
    a = node_of("a", "input", (), (4, 16), {"rms": 0.1})
    b = node_of("b", "input", (), (16, 8), {"rms": 0.2})
    attrs = {"shapes": ((4, 16), (16, 8)), "gain": 3.0, "rms": 0.24}
    y = node_of("y", "products", ("a", "b"), (4, 8), attrs)
    noises = Noises(Graph((a, b, y), ("y",), "levels"))
    for node in (a, b):
        noises.add(node, 0.0)
    within = (1e-3, 2e-3)
    assert noises.add(y, 0.01, within=within) == pytest.approx(0.01)
    added = noises.added(
        Graph((a, b, node_of("y", "products", ("a", "b"), (4, 8), {})), ("y",), "layout")
    )
    before = 3.0 * 4.0 * np.hypot(1e-3 * 0.2, 2e-3 * 0.1)
    assert added["y"].within == within
    assert np.hypot(added["y"].common, before) == pytest.approx(0.01)
    noises.add(y, before / 2, within=within)
    assert (
        noises.added(
            Graph((a, b, node_of("y", "products", ("a", "b"), (4, 8), {})), ("y",), "layout")
        )["y"].common
        == 0
    )
