"""Random programs on positive numbers, as data scientists write them: quotients, roots, logarithms,
products, squares, sums and norms.

Every program is defined wherever its inputs are positive, so that no compiler has a reason to
refuse it but its depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

#: In words, what each step makes of positive arrays; all results are positive again.
STEPS = (
    *("product", "square", "sum of two", "quotient", "inverse", "root", "inverse root", "log"),
    *("scaled", "shifted", "total", "mean", "norm", "normalised", "matrix", "clamp", "modulus"),
)


@dataclass
class Program:
    """A function of one positive vector, and examples of it. steps: what it computes, in words."""

    examples: Array
    steps: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, x: Any) -> Any:
        """Of a vector of NumPy, or one that is traced."""
        values: list[Any] = [x, x[:1], x[1:]]
        for name, (a, b, number) in self.steps:
            values.append(_apply(name, values[a], values[b], number))
        return values[-1]

    def __str__(self) -> str:
        return "; ".join(f"v{k + 3} = {n} {v[:2]}" for k, (n, v) in enumerate(self.steps))


def _apply(name: str, a: Any, b: Any, number: Any) -> Any:
    if np.ndim(a) != np.ndim(b) or (a.shape != b.shape and 1 not in (a.size, b.size)):
        b = a
    steps: dict[str, Callable[[], Any]] = {
        "product": lambda: a * b,
        "square": lambda: a * a,
        "sum of two": lambda: a + b,
        "quotient": lambda: a / b,
        "inverse": lambda: 1 / a,
        "root": lambda: np.sqrt(a),
        "inverse root": lambda: 1 / np.sqrt(a),
        "log": lambda: np.log(1 + a),
        "scaled": lambda: a * number,
        "shifted": lambda: a + number,
        "total": lambda: a.sum(keepdims=True),
        "mean": lambda: a.mean(keepdims=True),
        "norm": lambda: np.sqrt((a * a).sum(keepdims=True)),
        "normalised": lambda: a / np.maximum(np.sqrt((a * a).sum(keepdims=True)), 1e-12),
        "matrix": lambda: _matrix(a.shape[0], number) @ a,
        "clamp": lambda: np.maximum(a, number * 1e-6),
        "modulus": lambda: np.abs(a),
    }
    return steps[name]()


def _matrix(n: int, number: float) -> Array:
    """Positive weights."""
    return 1 / (1 + number + np.add.outer(np.arange(n), np.arange(n))) + 0.05


def draw(rng: np.random.Generator, examples: int = 64) -> Program:
    """A program of one to four steps, of which the last uses what came before."""
    low = rng.choice([0.1, 0.3, 0.5])
    x = rng.uniform(low, rng.choice([1.0, 1.5, 2.0]), (examples, int(rng.integers(2, 6))))
    program = Program(x)
    for k in range(int(rng.integers(1, 5))):
        known = k + 3
        first = int(rng.integers(known)) if k == 0 or rng.random() < 0.3 else known - 1
        step = str(rng.choice(STEPS)), (first, int(rng.integers(known)), rng.uniform(0.3, 2))
        program.steps.append(step)
    return program
