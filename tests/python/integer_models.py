"""Models of whole numbers, which tests share: random ones, and programs of them in the smallest
ring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali import nn
from jali.compiler.integers.intervals import whole
from jali.compiler.integers.program import Program
from jali.program.integers.port import Port

#: The smallest ring: 1,024 slots in two rows of 512.
RING: dict[str, object] = {"log_n": 10, "security": 0, "name": "insecure_test"}

Model = Callable[..., Any]


def program(
    model: Model, low: Any, high: Any, shape: tuple[int, ...], batch: int = 4, scale: int = 1
) -> Program:
    """The program of a function of one array whose numbers lie from low to high."""
    graph = nn.trace(model, np.zeros(shape))
    ends = [np.broadcast_to(np.asarray(end, np.int64), shape).ravel() for end in (low, high)]
    port = Port(graph.inputs[0].name, shape, *ends)
    return Program.of(graph, [port], batch, scale, RING)


def exactly(model: Model, rows: Any) -> Any:
    """What a function gives for each of some examples, computed with Python's integers, which
    neither round nor overflow."""
    return np.array([np.asarray(model(whole(row)), object).tolist() for row in rows], object)


def examples(rng: np.random.Generator, low: Any, high: Any, shape: Sequence[int], n: int) -> Any:
    """Examples from low to high, of which some numbers are the ends."""
    low, high = (np.broadcast_to(np.asarray(end, np.int64), shape) for end in (low, high))
    found = rng.integers(low, high, (n, *shape), endpoint=True)
    found = np.where(rng.random(found.shape) < 0.2, low, found)
    return np.where(rng.random(found.shape) < 0.2, high, found)


def random_model(rng: np.random.Generator) -> tuple[Model, tuple[int, ...]]:
    """A function of a matrix of whole numbers and of NumPy's arrays of Python's integers, made of
    what programs of exact integers compute."""
    n, k = (int(x) for x in rng.integers(2, 4, 2))
    weights = rng.integers(-9, 10, (k, int(rng.integers(1, 4))))
    factors, offset = rng.integers(-3, 4, (n, k)), int(rng.integers(-9, 10))
    steps: list[Model] = [
        lambda x: x * 3 - offset,
        lambda x: x * factors + factors,
        lambda x: x - 2 * x[::-1],
        lambda x: x * x[:, :1],
        lambda x: x * x,
        lambda x: x + x.sum(axis=1, keepdims=True),
        lambda x: x.T.reshape(x.shape),
        lambda x: np.concatenate([x[1:], x[:1]]),
        lambda x: 5 - x,
    ]
    ends: list[Model] = [
        lambda x: x @ weights,
        lambda x: x.sum(axis=0),
        lambda x: x.sum(),
        lambda x: x @ x.T,
        lambda x: x**3 - x,
        lambda x: x[0] * x[-1] + 1,
        lambda x: x,
    ]
    chosen = [steps[i] for i in rng.integers(0, len(steps), int(rng.integers(0, 3)))]
    end = ends[int(rng.integers(len(ends)))]

    def model(x: Any) -> Any:
        for step in chosen:
            x = step(x)
        return end(x)

    return model, (n, k)
