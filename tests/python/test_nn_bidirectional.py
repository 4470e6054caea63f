"""Recurrent networks of both directions that give one position or several: parts of loops that a
result does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jali.compiler.frontends import layers
from jali.compiler.frontends.recurrent import GATES, Cell, run
from jali.compiler.frontends.tracing import trace_function
from jali.compiler.ir.execute import execute
from jali.compiler.passes.approximate import approximated, scaled
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.unroll import unrolled
from jali.compiler.program.verifiers import verify_graph

FEATURES, UNITS = 2, 3


def cells(kind: str, rng: np.random.Generator) -> list[Cell]:
    rows = len(GATES[kind]) * UNITS
    shapes = ((rows, FEATURES), (rows, UNITS), (rows,))
    return [Cell(kind, *(rng.normal(size=s) / 2 for s in shapes)) for _ in range(2)]


def network(pair: list[Cell], directions: int, read: Any) -> Any:
    """What PyTorch's layers of one or two directions give at a position, at several, or as their
    last states."""

    def f(x: Any) -> Any:
        each = [run(c, x, reverse=k == 1) for k, c in enumerate(pair[:directions])]
        hidden = [h for h, _ in each]
        if read == "last states":
            ends = [states[0].reshape(1, -1) for _, states in each]
            return layers.concatenated(ends, 0) if directions > 1 else ends[0]
        if read == "last state backwards":
            return each[-1][1][0]
        return (layers.concatenated(hidden, 1) if directions > 1 else hidden[0])[read]

    return f


READ = (0, "middle", -1, slice(0, None, 2), "last states", "last state backwards")


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("steps", [1, 3, 4])
def test_positions_are_read(
    kind: str, directions: int, steps: int, rng: np.random.Generator
) -> None:
    """In all stages up to layouts; a first or last position was a ValueError from three steps
    on."""
    pair, x = cells(kind, rng), rng.normal(size=(20, steps, FEATURES))
    for read in READ:
        at = steps // 2 if read == "middle" else read
        graph = trace_function(network(pair, directions, at), [x[0]])
        folded = fold(graph)
        (want,), (got,) = execute(graph, x), execute(folded, x)
        assert np.allclose(got.reshape(want.shape), want), read
        made = approximated(calibrate(folded, [x]), 2.0**-2)
        verify_graph("approximate", made)
        flat = unrolled(made)
        (again,) = execute(flat, *(scaled(node, x) for node in made.inputs))
        assert again.shape[0] == len(x)


def test_a_result_that_is_a_constant(rng: np.random.Generator) -> None:
    """Zero times every state: a matrix without an entry, of a loop with several parts."""
    pair, x = cells("RNN", rng), rng.normal(size=(20, 4, FEATURES))

    def f(x: Any) -> Any:
        hidden, _ = run(pair[0], x)
        return hidden._scaled(np.zeros(hidden.shape), np.arange(12.0).reshape(4, 3))

    folded = fold(trace_function(f, [x[0]]))
    made = approximated(calibrate(folded, [x]), 2.0**-2)
    assert np.array_equal(execute(folded, x)[0].reshape(20, 4, 3)[0].ravel(), np.arange(12.0))
    assert unrolled(made).outputs == made.outputs
