"""Amplified factors of products: the same results, from larger numbers with less noise beside them,
at the same depth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from slot_interpreter import WEIGHTS

from jali import nn
from jali.compiler.ir.graph import Graph, peak
from jali.compiler.ir.layouts import packed, unpacked
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.passes.amplify import LARGEST, amplified
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.levels import depth_of
from jali.compiler.pipeline import lowered
from jali.compiler.planning.dry_run import demanded
from jali.compiler.planning.parameters import smallest
from jali.compiler.program.verifiers import verify_graph
from jali.compiler.runtime.interpreter import Interpreter
from jali.nn import trace

SLOTS = 512


def layers(rng: np.random.Generator, *sizes: int) -> Any:
    weights = [rng.normal(size=(m, n)) / n for n, m in pairwise(sizes)]

    def f(x: Any) -> Any:
        for w in weights[:-1]:
            x = (w @ x + 0.01) ** 2
        return weights[-1] @ x

    return f


def approximation(f: Any, x: np.ndarray) -> Graph:
    return approximated(calibrate(fold(trace(f, x[0])), [x], margin=0.0), 2.0**-6)


@pytest.mark.parametrize("sizes", [(16, 40, 8, 5), (64, 100, 4), (100, 3, 3, 3)])
def test_results_are_the_same(sizes: tuple[int, ...], rng: np.random.Generator) -> None:
    """Slot by slot, and no slot holds more than is said of its array."""
    f, x = layers(rng, *sizes), rng.uniform(-1, 1, (40, sizes[0]))
    flat, found = approximation(f, x), []
    for bootstraps in (False, True):
        stages = lowered(flat, SLOTS, WEIGHTS, bootstraps=bootstraps)
        low = stages["lower"]
        for stage in ("layout", "lower", "levels"):
            verify_graph(stage, stages[stage])
        (node,) = low.inputs
        inside = (x - node.attrs["centre"]) / node.attrs["radius"]
        values = every_slot(low, [packed(node.attrs["layout"], inside)])
        for n in low:
            most = max(peak(n), n.attrs.get("most", 0.0), 1.0 if n.op == "input" else 0.0)
            assert np.abs(values[n.name]).max() <= most * (1 + 1e-9)
        out = low[low.outputs[0]]
        y = unpacked(out.attrs["layout"], values[out.name]) * out.attrs["radius"]
        found.append(y + out.attrs["centre"])
        large = [n.name for n in low if peak(n) > 1.01]
        assert not large if bootstraps else large
        assert depth_of(stages["levels"]) == depth_of(lowered(flat, SLOTS, WEIGHTS)["levels"])
    assert np.allclose(found[0], np.stack([f(v) for v in x]), atol=1e-9)
    assert np.allclose(*found, rtol=1e-12, atol=1e-15)


def test_squares_behind_and_before_matrices_lose_less_to_noise(rng: np.random.Generator) -> None:
    """A rescaling adds the same to numbers that are larger. About a bit is left once all other
    noise is counted."""
    f, x = layers(rng, 64, 64, 64), rng.uniform(-1, 1, (100, 64))
    flat = approximation(f, x)
    bits = []
    for bootstraps in (False, True):
        graph = lowered(flat, 4096, WEIGHTS, bootstraps=bootstraps)["levels"]
        params = smallest(flat, depth_of(graph), 28.0, 1, "cpu", 13)
        bits += demanded(Interpreter(graph, params, 1, 1 << 30))[0].noise_bits
    assert bits[0] > bits[1] + 0.4


def test_what_others_see_stays_within_its_range(rng: np.random.Generator) -> None:
    """Functions, the client, sums and copies: as large as before, and at the same depth."""
    w, x = rng.normal(size=(8, 8)) / 8, rng.uniform(-1, 1, (40, 8))
    programs = {
        "a function": lambda v: nn.scalar.polynomial((w @ v) ** 2, (0.1, 0.2, 0.0, 0.3)),
        "an output": lambda v: (w @ v) ** 2,
        "a shift": lambda v: (w @ v) * (w @ v + 0.25),
        "a sum of numbers": lambda v: ((w @ v) ** 2).sum(),
        "a sum of arrays": lambda v: (w @ v) ** 2 + (w.T @ v) ** 2,
        "a matrix that is used twice": lambda v: w @ (w @ v) ** 2 + w @ (w @ v),
    }
    for what, f in programs.items():
        flat = approximation(f, x)
        assert amplified(flat) is flat or what.startswith("a matrix"), what
        depths = [
            depth_of(lowered(flat, SLOTS, WEIGHTS, bootstraps=b)["levels"]) for b in (False, True)
        ]
        assert depths[0] == depths[1], what


def test_numbers_stay_small_enough_for_a_level(rng: np.random.Generator) -> None:
    """Rare large numbers: the root mean square is tiny, and factors grow by no more than is
    allowed."""
    w = rng.normal(size=(32, 32)) / 32
    x = rng.uniform(-1, 1, (200, 32)) * 2.0**-12
    x[0] = 1
    graph = amplified(approximation(lambda v: w @ (w @ v) ** 2, x))
    largest = max(peak(n) for n in graph)
    assert 1 < largest <= LARGEST * 1.01
