"""Networks of many layers, for tests of plans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["squares"]


def squares(
    layers: int, rng: np.random.Generator | None = None
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """A function with squares one behind the other, and examples for it. Without rng they are the
    same in every run, so that plans can be compared."""
    rng = np.random.default_rng(3) if rng is None else rng
    matrices = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(layers)]

    def f(x: np.ndarray) -> np.ndarray:
        for matrix in matrices:
            y = matrix @ x
            x = 0.8 * y + 0.2 * y * y
        return x

    return f, rng.uniform(-1, 1, (50, 8))
