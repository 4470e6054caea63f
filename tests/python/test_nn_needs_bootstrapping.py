"""What is told of noise and levels before layouts, against trial runs."""

from __future__ import annotations

import numpy as np
import pytest
from deep_networks import squares
from slot_interpreter import WEIGHTS

import jali
from jali import ckks, nn
from jali.compiler.ir.graph import Graph
from jali.compiler.passes.amplify import amplified
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.levels import depth_of
from jali.compiler.pipeline import lowered
from jali.compiler.planning import planner as planning
from jali.compiler.planning.dry_run import demanded
from jali.compiler.planning.needs_bootstrapping import bounds_overflow, least_depth, takes_ring
from jali.compiler.runtime.interpreter import Interpreter

SCALE = 27.0
SLOTS = 1 << 9


def network(rng: np.random.Generator, layers: int) -> Graph:
    """Squares or products of branches one behind the other, after the stage approximate. The rows
    of matrices have different sizes."""
    size = int(rng.choice([4, 8, 16]))
    kinds = rng.integers(3, size=layers)
    matrices = np.linalg.qr(rng.normal(size=(layers, 2, size, size)))[0]
    matrices = matrices * rng.uniform(0.1, 1, (layers, 1, size, 1))

    def f(x: np.ndarray) -> np.ndarray:
        for kind, (a, b) in zip(kinds, matrices, strict=True):
            y = a @ x
            x = (y * y + 0.3 * y, y + 0.3 * y * (b @ x), 0.8 * y + 0.2 * y * y)[kind]
            x = x * 0.9
        return x

    x = rng.uniform(-1, 1, (50, size))
    return approximated(calibrate(fold(nn.trace(f, x[0])), [x]), 2.0**-6)


def fails(low: Graph, depth: int) -> bool:
    """Whether the bounds of a trial run outgrow all numbers."""
    params = ckks.Params.create(
        depth=depth, scale_bits=SCALE, log_n=10, integer_bits=16, security=0, name="insecure_test"
    )
    try:
        demanded(Interpreter(low, params, 1, 1 << 30))
    except jali.RangeExceeded:
        return True
    return False


@pytest.mark.parametrize("layers", [2, 5, 8, 11, 14, 17])
def test_a_trial_run_fails_wherever_it_is_said_to(layers: int, rng: np.random.Generator) -> None:
    """Also the levels are at least as many as were told."""
    graph = amplified(network(rng, layers))
    low = lowered(graph, SLOTS, WEIGHTS)["levels"]
    depth = depth_of(low)
    assert layers < least_depth(graph) <= depth <= depth_of(graph)
    if bounds_overflow(graph, SCALE):
        assert fails(low, depth)
        assert bounds_overflow(graph, SCALE - 5)
    if layers == 2:
        assert not fails(low, depth)  # so that a run that never succeeds would show


def test_deep_squares_are_certain_to_fail_and_shallow_ones_are_not() -> None:
    for layers in (6, 20):
        f, x = squares(layers)
        graph = amplified(approximated(calibrate(fold(nn.trace(f, x[0])), [x]), 2.0**-6))
        low = lowered(graph, SLOTS, WEIGHTS)["levels"]
        assert bounds_overflow(graph, SCALE) == fails(low, depth_of(low)) == (layers == 20)


def test_functions_and_free_copies_count_as_little_as_they_can() -> None:
    """Numbers that are copied and doubled take no level, and an identity in front of a function has
    no bound that grows."""
    x = np.random.default_rng(5).uniform(-1, 1, (50, 8))

    def f(v: np.ndarray) -> np.ndarray:
        return np.tanh(2 * np.roll(v, 1)) * 3 + np.array([1.0, 2, 3, 4, 5, 6, 7, 8]) * v

    graph = approximated(calibrate(fold(nn.trace(f, x[0])), [x]), 2.0**-6)
    low = lowered(graph, SLOTS, WEIGHTS)["levels"]
    assert least_depth(graph) <= depth_of(low)
    assert not bounds_overflow(graph, SCALE)


def test_rings_have_the_levels_that_the_table_allows_for() -> None:
    """Where no ring below 2^15 is said to do, there are none; and the parameters of the next depths
    need 2^15."""
    for bits in (25.0, 31.0, 40.0):
        most = ckks.max_log_qp(14, 128)
        depth = next(k for k in range(1, 60) if takes_ring(k, bits, 15))
        assert (depth - 1) * (bits - 1) <= most < depth * (bits - 1)
        for device in ("cpu", "cuda"):
            assert ckks.Params.create(depth, bits, device=device).log_n >= 15


@pytest.mark.long
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_certain_to_fail_is_not_tried(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is the same, byte by byte, as one that tries it first. On a CPU the two have other
    words, and the costs of the first in a ring are the weights of its layouts."""
    f, x = squares(20)
    tried = []
    demanded = planning.demanded
    monkeypatch.setattr(planning, "demanded", lambda *a, **k: tried.append(a) or demanded(*a, **k))

    def program() -> nn.Program:
        return jali.compile(f, x[0], calibration=x, precision_bits=4, device=device)

    now = program()
    assert not tried
    monkeypatch.setattr(planning, "bounds_overflow", lambda *_: False)
    before = program()
    assert len(tried) == planning._PATIENCE
    assert now.to_bytes() == before.to_bytes()
