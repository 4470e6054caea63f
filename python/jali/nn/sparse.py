"""Sparse matrices: the linear maps between flattened arrays, as lists of their non-zero entries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.nn.graph import Array

__all__ = ["SparseMap"]

Indices = npt.NDArray[np.signedinteger[Any]]
_SMALL = 1 << 20  # entries of a matrix that is kept as one
_FILLED = 8
_CHUNK = 1 << 24  # how many products are in memory at a time


@dataclass(frozen=True, eq=False)
class SparseMap:
    """y[rows[k]] += values[k] x[cols[k]]. Entries are sorted by row, then by column, and no place has two."""

    rows: Indices
    cols: Indices
    values: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: Indices, cols: Indices, values: Array, shape: tuple[int, int]) -> SparseMap:
        """The map of entries in any order. Those in the same place are added, and zeros are left out."""
        keys, values = rows.astype(np.int64) * shape[1] + cols, np.asarray(values, np.float64)
        if np.any(keys[1:] <= keys[:-1]):
            order = np.argsort(keys, kind="stable")
            keys, values = keys[order], values[order]
            first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            keys, values = keys[first], np.add.reduceat(values, first)
        if not np.all(values):
            keys, values = keys[values != 0], values[values != 0]
        least = np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64
        rows, cols = np.divmod(keys, shape[1])
        return cls(rows.astype(least), cols.astype(least), values, shape)

    @classmethod
    def identity(cls, size: int) -> SparseMap:
        """y = x."""
        index = np.arange(size)
        return cls(index, index, np.ones(size), (size, size))

    @classmethod
    def gather(cls, source: Indices, size: int) -> SparseMap:
        """y[i] = x[source[i]], or 0 if source[i] is negative. size: the length of x."""
        rows = np.flatnonzero(source >= 0)
        return cls(rows, source[rows], np.ones(len(rows)), (len(source), size))

    @classmethod
    def dense(cls, matrix: Array) -> SparseMap:
        """The map of a matrix (m, n)."""
        rows, cols = np.nonzero(matrix)
        return cls(rows, cols, matrix[rows, cols].astype(np.float64), matrix.shape)

    @property
    def count(self) -> int:
        """How many entries are not zero."""
        return len(self.values)

    @cached_property
    def used_rows(self) -> int:
        """How many numbers of y have an entry."""
        return int(np.count_nonzero(np.bincount(self.rows)))

    @cached_property
    def used_cols(self) -> int:
        """How many numbers of x have an entry."""
        return int(np.count_nonzero(np.bincount(self.cols)))

    @cached_property
    def row_counts(self) -> Indices:
        """How many entries each y has."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @property
    def is_identity(self) -> bool:
        """Whether y = x."""
        m, n = self.shape
        return m == n == self.count and bool(
            np.all(self.rows == self.cols) and np.all(self.values == 1)
        )

    @property
    def is_diagonal(self) -> bool:
        """Whether every y is a multiple of the x with the same number, and none is left out."""
        return self.count == self.shape[0] == self.shape[1] and bool(np.all(self.rows == self.cols))

    @cached_property
    def is_even(self) -> bool:
        """Whether all numbers of y that have an entry have the same sum of squares."""
        squares = np.bincount(self.rows, np.square(self.values))
        filled = squares[squares > 0]
        return not len(filled) or bool(np.ptp(filled) <= 1e-9 * filled.max())

    def sample(self, most: int) -> SparseMap:
        """A map of at most so many of the entries, spread evenly: one in a number that few kernels and sizes have a factor with."""
        step = -(-self.count // most) | 1
        while math.gcd(step, 3 * 5 * 7) > 1:
            step += 2
        chosen = slice(None, None, step if self.count > most else 1)
        return SparseMap(self.rows[chosen], self.cols[chosen], self.values[chosen], self.shape)

    def matrix(self) -> Array:
        """The map as a matrix (m, n)."""
        out = np.zeros(self.shape)
        out[self.rows, self.cols] = self.values
        return out

    @cached_property
    def _transposed(self) -> Array | None:
        """The transpose as a matrix, if that is small and so many of its entries are not zero that a product with it takes less time than their list."""
        entries = self.shape[0] * self.shape[1]
        small = entries <= _SMALL and _FILLED * self.count >= entries
        return np.ascontiguousarray(self.matrix().T) if small and self.count else None

    def __add__(self, other: SparseMap) -> SparseMap:
        return SparseMap.of(
            np.r_[self.rows, other.rows],
            np.r_[self.cols, other.cols],
            np.r_[self.values, other.values],
            self.shape,
        )

    def scaled(self, rows: Array | float, cols: Array | float = 1.0) -> SparseMap:
        """diag(rows) M diag(cols)."""
        m, n = self.shape
        left = np.broadcast_to(rows, (m,))[self.rows]
        return SparseMap(
            self.rows,
            self.cols,
            left * self.values * np.broadcast_to(cols, (n,))[self.cols],
            (m, n),
        )

    def after(self, inner: SparseMap) -> SparseMap:
        """The composition y = self(inner(x))."""
        if inner.is_diagonal and np.all(inner.values):
            return self.scaled(1.0, inner.values)
        if self.is_diagonal and np.all(self.values):
            return inner.scaled(self.values)
        starts = np.searchsorted(inner.rows, np.arange(inner.shape[0] + 1))
        counts = np.diff(starts)[self.cols]
        total, shape = int(counts.sum()), (self.shape[0], inner.shape[1])
        if total > 2 * shape[0] * shape[1]:  # the result is dense, and a dense product is cheaper
            return SparseMap.dense(self.matrix() @ inner.matrix())
        mine = np.repeat(np.arange(self.count), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        theirs = starts[self.cols[mine]] + within
        values = self.values[mine] * inner.values[theirs]
        return SparseMap.of(self.rows[mine], inner.cols[theirs], values, shape)

    def __call__(self, x: Array) -> Array:
        """y (batch, m) of x (batch, n)."""
        if self._transposed is not None:
            return np.asarray(x @ self._transposed)
        y = np.zeros((len(x), self.shape[0]))
        if self.count:
            first = np.flatnonzero(np.r_[True, self.rows[1:] != self.rows[:-1]])
            step = max(1, _CHUNK // self.count)
            for k in range(0, len(x), step):
                products = x[k : k + step, self.cols] * self.values
                y[k : k + step, self.rows[first]] = np.add.reduceat(products, first, axis=1)
        return y

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The least and the largest that each y can be if every x lies between low and high."""
        a, b = self.values * low[self.cols], self.values * high[self.cols]
        least, most = np.zeros(self.shape[0]), np.zeros(self.shape[0])
        np.add.at(least, self.rows, np.minimum(a, b))
        np.add.at(most, self.rows, np.maximum(a, b))
        return least, most

    def __str__(self) -> str:
        return f"map({self.shape[0]}x{self.shape[1]}, {self.count} entries)"
