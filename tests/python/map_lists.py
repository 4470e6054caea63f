"""Linear maps against the lists of their entries."""

from __future__ import annotations

import numpy as np

from jali.compiler.ir.sparse import SparseMap


def listed(matrix: np.ndarray) -> SparseMap:
    """The map of a matrix as a list."""
    rows, cols = np.nonzero(matrix)
    return SparseMap(rows, cols, matrix[rows, cols], matrix.shape)


def check_against_list(
    found: SparseMap, want: SparseMap, rng: np.random.Generator, rtol: float = 1e-12
) -> None:
    """A map has the entries of a list, in its order, and computes the same."""
    assert found.shape == want.shape
    for name in (
        "count",
        "used_rows",
        "used_cols",
        "is_uniform",
        "is_even",
        "is_identity",
        "is_diagonal",
    ):
        assert getattr(found, name) == getattr(want, name), name
    for name in ("rows", "cols", "row_counts"):
        assert np.array_equal(getattr(found, name), getattr(want, name)), name
    assert np.allclose(found.values, want.values, rtol=rtol)
    assert np.isclose(found.largest, want.largest)
    assert np.allclose(found.row_squares, want.row_squares)
    x, low = rng.normal(size=(4, want.shape[1])), rng.normal(size=want.shape[1])
    assert np.allclose(found(x), want(x))
    assert np.allclose(found.squared(low**2), want.squared(low**2))
    assert np.allclose(found.bounds(low, low + 1), want.bounds(low, low + 1))
    assert found.has_places_of(want) and want.has_places_of(found)
