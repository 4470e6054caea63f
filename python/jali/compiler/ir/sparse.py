"""The linear maps between flattened arrays: as lists of their non-zero entries, or, if most entries
are not zero, as matrices.

A list takes 24 bytes for an entry, and what is computed from it at once a multiple of that. So
whoever goes through all entries of a map takes them in pieces (SparseMap.pieces), which a matrix
makes one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.arrays import Array
from jali.errors import InvalidArgument

__all__ = [
    "MOST_ENTRIES",
    "PIECE",
    "DenseMap",
    "SparseMap",
    "are_uniform",
    "joined",
    "matrix_sum",
    "step_between",
]

MOST_ENTRIES = 1 << 30  #: of one matrix: 26 GB as a list

Indices = npt.NDArray[np.signedinteger[Any]]
_SMALL = 1 << 20  # entries of a matrix that is kept as one
_FILLED = 8
_CHUNK = 1 << 24  # how many products are in memory at a time
PIECE = 1 << 18  #: Entries of a matrix that are listed at a time.
_LISTED = 1 << 16  # entries of a matrix up to which it is a list
_PRODUCTS = 1 << 22  # of two lists, that are in memory at a time
_FULL_SIZE = 1 << 27  # numbers of matrices that are multiplied as such
_FULL = 0.5  # part of the entries that are not zero, from which on a matrix is no list


@dataclass(frozen=True, eq=False)
class SparseMap:
    """y[rows[k]] += values[k] x[cols[k]]. Entries are sorted by row, then by column, and no place
    has two."""

    rows: Indices
    cols: Indices
    values: Array
    shape: tuple[int, int]

    in_pieces: ClassVar[bool] = False  #: Whether entries are listed when they are asked for.

    @classmethod
    def of(cls, rows: Indices, cols: Indices, values: Array, shape: tuple[int, int]) -> SparseMap:
        """The map of entries in any order. Those in the same place are added, and zeros are left
        out."""
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
        """y[i] = x[source[i]], or 0 if source[i] is negative.

        size: the length of x.
        """
        rows = np.flatnonzero(source >= 0)
        return cls(rows, source[rows], np.ones(len(rows)), (len(source), size))

    @classmethod
    def dense(cls, matrix: Array) -> SparseMap:
        """The map of a matrix (m, n), which must not change afterwards."""
        if matrix.size > _LISTED and np.count_nonzero(matrix) >= _FULL * matrix.size:
            return DenseMap(matrix)
        rows, cols = np.nonzero(matrix)
        return cls(rows, cols, matrix[rows, cols].astype(np.float64), matrix.shape)

    @property
    def count(self) -> int:
        """How many entries are not zero."""
        return len(self.values)

    @property
    def held(self) -> int:
        """How many numbers it keeps in memory; those of a list, with the row and the column of
        each."""
        return self.count

    @property
    def largest(self) -> float:
        """The largest modulus of an entry."""
        pieces = (float(np.abs(p.values).max(initial=0.0)) for p in self.pieces())
        return max(pieces, default=0.0)

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
    def is_uniform(self) -> bool:
        """Whether all entries are equal; also if there is none."""
        return not self.count or not np.ptp(self.values)

    @cached_property
    def row_squares(self) -> Array:
        """The sum of the squares of the entries of each y."""
        return np.asarray(np.bincount(self.rows, np.square(self.values), self.shape[0]))

    @cached_property
    def is_even(self) -> bool:
        """Whether all numbers of y that have an entry have the same sum of squares."""
        squares = self.row_squares
        filled = squares[squares > 0]
        return not len(filled) or bool(np.ptp(filled) <= 1e-9 * filled.max())

    def sample(self, most: int) -> SparseMap:
        """A map of at most so many of the entries, spread evenly: one in a number that few kernels
        and sizes have a factor with."""
        chosen = slice(None, None, step_between(self.count, most))
        return SparseMap(self.rows[chosen], self.cols[chosen], self.values[chosen], self.shape)

    def has_places_of(self, other: SparseMap) -> bool:
        """Whether another map has its entries in the same places."""
        return (
            (self.shape, self.count) == (other.shape, other.count)
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.cols, other.cols)
        )

    def pieces(self) -> Iterator[SparseMap]:
        """Maps that together are this one."""
        yield self

    def listed(self) -> SparseMap:
        """The same map as a list."""
        return self

    def part(self, rows: Indices) -> SparseMap:
        """What the map has in some rows, which rise, as a list."""
        if self.in_pieces:
            return joined(self.pieces(rows), self.shape)  # type: ignore[call-arg]
        starts = np.searchsorted(self.rows, rows)
        counts = np.searchsorted(self.rows, rows, "right") - starts
        at = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return SparseMap(self.rows[at], self.cols[at], self.values[at], self.shape)

    def matrix(self) -> Array:
        """The map as a matrix (m, n)."""
        out = np.zeros(self.shape)
        out[self.rows, self.cols] = self.values
        return out

    @cached_property
    def _transposed(self) -> Array | None:
        """The transpose as a matrix, if that is small and so many of its entries are not zero that
        a product with it takes less time than their list."""
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
        left, right = (
            float(np.reshape(x, ())) if np.size(x) == 1 else np.asarray(x)[at]
            for x, at in ((rows, self.rows), (cols, self.cols))
        )
        return SparseMap(self.rows, self.cols, np.asarray(left * self.values * right), self.shape)

    def after(self, inner: SparseMap) -> SparseMap:
        """The composition y = self(inner(x))."""
        if inner.is_diagonal and np.all(inner.values):
            return self.scaled(1.0, inner.values)
        if self.is_diagonal and np.all(self.values):
            return inner.scaled(self.values)
        outer, inner = self.listed(), inner.listed()
        starts = np.searchsorted(inner.rows, np.arange(inner.shape[0] + 1))
        counts = np.diff(starts)[outer.cols]
        total, shape = int(counts.sum()), (self.shape[0], inner.shape[1])
        if min(total, shape[0] * shape[1]) > MOST_ENTRIES:
            raise InvalidArgument(
                f"two matrices that follow each other make one of {shape[0]:,} x {shape[1]:,} numbers, which is too large: put a function "
                "between them, or take smaller inputs"
            )
        full = shape[0] * shape[1]
        if total > 2 * full and full + self.shape[1] * sum(shape) <= _FULL_SIZE:
            return SparseMap.dense(outer.matrix() @ inner.matrix())  # which is cheaper
        firsts, parts = np.searchsorted(outer.rows, np.arange(shape[0] + 1)), []
        ends = np.r_[0, np.cumsum(counts)][firsts]  # products before each row
        row = 0
        while row < shape[0]:  # some rows after the other
            last = max(row + 1, int(np.searchsorted(ends, ends[row] + _PRODUCTS, "right")) - 1)
            mine = slice(firsts[row], firsts[last])
            parts.append(_products(outer, inner, mine, starts, counts[mine], shape))
            row = last
        return joined(parts, shape)

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

    def squared(self, x: Array) -> Array:
        """y (m,) of x (n,) for the map whose entries are the squares of these: the variances of y
        for independent numbers with the variances x."""
        found = np.bincount(self.rows, np.square(self.values) * x[self.cols], self.shape[0])
        return np.asarray(found, np.float64)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """The sums of the entries below 0 and of those above 0 of each y."""
        negative, positive = (
            np.asarray(np.bincount(self.rows, part(self.values, 0.0), self.shape[0]), np.float64)
            for part in (np.minimum, np.maximum)
        )
        return negative, positive

    def bounds(self, low: Array | float, high: Array | float) -> tuple[Array, Array]:
        """The least and the largest that each y can be if every x lies between low and high,
        numbers or arrays (n,)."""
        if _are_equal(low) and _are_equal(high):
            negative, positive = self._sums
            a, b = float(np.ravel(low)[0]), float(np.ravel(high)[0])
            return a * positive + b * negative, b * positive + a * negative
        return self._bounds(*(np.broadcast_to(x, self.shape[1]) for x in (low, high)))

    def _bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        a, b = self.values * low[self.cols], self.values * high[self.cols]
        least, most = (
            np.asarray(np.bincount(self.rows, part(a, b), self.shape[0]), np.float64)
            for part in (np.minimum, np.maximum)
        )
        return least, most

    def __str__(self) -> str:
        return f"map({self.shape[0]}x{self.shape[1]}, {self.count} entries)"


class DenseMap(SparseMap):
    """y = diag(left) M diag(right) x, of a matrix M (m, n) most of whose entries are not zero.
    Lists of rows, columns and values are made whenever they are asked for, and then have the same
    entries as those of a SparseMap.

    left: (m,) or a number; right: (n,) or a number. None of them is 0.
    """

    in_pieces = True

    def __init__(
        self, matrix: Array, left: Array | float = 1.0, right: Array | float = 1.0
    ) -> None:
        m, n = matrix.shape
        vars(self).update(shape=(m, n), _matrix=matrix)
        vars(self).update(_left=np.asarray(left, np.float64), _right=np.asarray(right, np.float64))

    _matrix: Array
    _left: Array
    _right: Array

    @property
    def rows(self) -> Indices:
        """Of every entry, as a new array."""
        return np.nonzero(self._matrix)[0]

    @property
    def cols(self) -> Indices:
        """Of every entry, as a new array."""
        return np.nonzero(self._matrix)[1]

    @property
    def values(self) -> Array:
        """Of every entry, as a new array."""
        found = self.matrix()[self._matrix != 0]
        return np.asarray(found)

    @cached_property
    def count(self) -> int:
        """How many entries are not zero."""
        return int(np.count_nonzero(self._matrix))

    @property
    def held(self) -> int:
        """See SparseMap."""
        return int(self._matrix.size)

    def listed(self) -> SparseMap:
        """See SparseMap."""
        rows, cols = np.nonzero(self._matrix)
        return SparseMap(rows, cols, self.matrix()[rows, cols], self.shape)

    @cached_property
    def used_rows(self) -> int:
        """See SparseMap."""
        return int(np.count_nonzero(self.row_counts))

    @cached_property
    def used_cols(self) -> int:
        """See SparseMap."""
        return int(np.count_nonzero(np.count_nonzero(self._matrix, axis=0)))

    @cached_property
    def row_counts(self) -> Indices:
        """See SparseMap."""
        return np.asarray(np.count_nonzero(self._matrix, axis=1))

    @cached_property
    def is_uniform(self) -> bool:
        """See SparseMap."""
        return are_uniform(self.pieces())

    @cached_property
    def row_squares(self) -> Array:
        """See SparseMap."""
        return self.squared(np.ones(self.shape[1]))

    @property
    def is_identity(self) -> bool:
        """Never: most entries of a large identity are zero."""
        return False

    def sample(self, most: int) -> SparseMap:
        """See SparseMap. Zeros count as entries, and are left out of the sample."""
        step = step_between(self._matrix.size, most)
        rows, cols = np.divmod(np.arange(0, self._matrix.size, step), self.shape[1])
        return self._listed(rows, cols, self._matrix[rows, cols])

    def has_places_of(self, other: SparseMap) -> bool:
        """See SparseMap."""
        if not isinstance(other, DenseMap):
            return super().has_places_of(other)
        if (self.shape, self.count) != (other.shape, other.count):
            return False
        step = max(1, PIECE // self.shape[1])
        return self.count == self._matrix.size or all(
            np.array_equal(self._matrix[k : k + step] != 0, other._matrix[k : k + step] != 0)
            for k in range(0, self.shape[0], step)
        )

    def matrix(self) -> Array:
        """See SparseMap."""
        return self._scaled(slice(None))

    def scaled(self, rows: Array | float, cols: Array | float = 1.0) -> SparseMap:
        """See SparseMap."""
        if not (np.all(rows) and np.all(cols)):
            return super().scaled(rows, cols)
        return DenseMap(self._matrix, self._left * rows, self._right * cols)

    def after(self, inner: SparseMap) -> SparseMap:
        """See SparseMap."""
        moves = inner.count == inner.used_rows == inner.used_cols
        if not moves or (inner.is_diagonal and np.all(inner.values)):
            return super().after(inner)
        found = np.zeros((self.shape[0], inner.shape[1]))
        found[:, inner.cols] = self.matrix()[:, inner.rows] * inner.values
        return SparseMap.dense(found)

    def __call__(self, x: Array) -> Array:
        """See SparseMap."""
        return np.asarray((x * self._right) @ self._matrix.T * self._left)

    def squared(self, x: Array) -> Array:
        """See SparseMap."""
        found = [np.square(part) @ x for part in self._parts()]
        return np.concatenate(found)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """See SparseMap."""
        parts = [[part(m, 0.0).sum(1) for part in (np.minimum, np.maximum)] for m in self._parts()]
        negative, positive = (np.concatenate(sums) for sums in zip(*parts, strict=True))
        return negative, positive

    def _bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """See SparseMap."""
        ends = []
        for part in self._parts():
            a, b = part * low, part * high
            ends.append((np.minimum(a, b).sum(1), np.maximum(a, b).sum(1)))
        least, most = (np.concatenate(end) for end in zip(*ends, strict=True))
        return least, most

    def pieces(
        self, rows: Indices | None = None, cols: Indices | None = None
    ) -> Iterator[SparseMap]:
        """Maps of a few whole rows each, which together are the map, or what it has in some rows
        and columns. Indices are those of the map."""
        m, n = self.shape
        rows = np.arange(m) if rows is None else rows
        cols = np.arange(n) if cols is None else cols
        step = max(1, PIECE // max(1, len(cols)))
        for k in range(0, len(rows), step):
            some = rows[k : k + step]
            plain = self._matrix[np.ix_(some, cols)].ravel()
            yield self._listed(np.repeat(some, len(cols)), np.tile(cols, len(some)), plain)

    def _listed(self, rows: Indices, cols: Indices, plain: Array) -> SparseMap:
        """The entries in these places, where M holds these numbers."""
        m, n = self.shape
        left, right = np.broadcast_to(self._left, m), np.broadcast_to(self._right, n)
        values = left[rows] * plain * right[cols]
        if not np.all(plain):
            rows, cols, values = rows[plain != 0], cols[plain != 0], values[plain != 0]
        return SparseMap(rows, cols, values, self.shape)

    def _parts(self) -> Iterator[Array]:
        """The scaled matrix, some rows after the other."""
        step = max(1, PIECE // self.shape[1])
        for k in range(0, self.shape[0], step):
            yield self._scaled(slice(k, k + step))

    def _scaled(self, rows: slice) -> Array:
        left = self._left[rows, None] if self._left.ndim else self._left
        return np.asarray(left * self._matrix[rows] * self._right)


def _products(
    outer: SparseMap,
    inner: SparseMap,
    mine: slice,
    starts: Indices,
    counts: Indices,
    shape: tuple[int, int],
) -> SparseMap:
    """The part of a composition that comes from some entries of the outer map.

    mine: these entries, whole rows of them.
    starts: where rows of `inner` begin.
    counts: how many entries of it each of the entries meets.
    """
    rows, cols, factors = outer.rows[mine], outer.cols[mine], outer.values[mine]
    own = np.repeat(np.arange(len(cols)), counts)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = starts[cols[own]] + within
    values = factors[own] * inner.values[theirs]
    return SparseMap.of(rows[own], inner.cols[theirs], values, shape)


def _are_equal(x: Array | float) -> bool:
    """Whether there are numbers, and all are equal."""
    flat = np.ravel(x)
    return flat.size > 0 and bool(np.all(flat == flat[0]))


def joined(pieces: Iterable[SparseMap], shape: tuple[int, int]) -> SparseMap:
    """The list of pieces whose rows rise from one to the next."""
    parts = list(pieces)
    if len(parts) == 1:
        return parts[0]
    none = SparseMap(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0), shape)
    rows, cols, values = (
        np.concatenate([getattr(part, name) for part in parts or [none]])
        for name in ("rows", "cols", "values")
    )
    return SparseMap(rows, cols, values, shape)


def are_uniform(pieces: Iterable[SparseMap]) -> bool:
    """Whether all entries of all pieces are equal."""
    first: float | None = None
    for piece in pieces:
        first = float(piece.values[0]) if first is None and piece.count else first
        if np.any(piece.values != first):
            return False
    return True


def step_between(count: int, most: int) -> int:
    """The distance of at most so many of `count` entries that few kernels and sizes have a factor
    with."""
    if count <= most:
        return 1
    step = -(-count // most) | 1
    while math.gcd(step, 3 * 5 * 7) > 1:
        step += 2
    return step


def matrix_sum(maps: Sequence[SparseMap], values: Sequence[Array], bias: Array) -> Array:
    """sum_k maps_k x_k + bias, (batch, m), for arrays x_k (batch, *shape) that are flattened."""
    flat = (x.reshape(len(x), -1) for x in values)
    return np.asarray(bias + sum(m(x) for m, x in zip(maps, flat, strict=True)))
