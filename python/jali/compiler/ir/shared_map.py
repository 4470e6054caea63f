"""Linear maps whose entries many places share: convolutions, and dense layers along an axis.

As a list, a convolution takes 16 bytes for each weight at each place. Here it is its weights and
where its window lies, with the size of the weights and of both arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.arrays import Array
from jali.compiler.ir.sparse import PIECE, Indices, SparseMap, are_uniform, joined, step_between

__all__ = ["SHARED", "SharedMap"]

SHARED = 1 << 18  #: Entries from which on a map is kept as what its places share.

_TOGETHER = 1 << 22  # numbers of arrays that are computed at once


class SharedMap(SparseMap):
    """y[rows[g, o, p]] = sum_{c, w} weight[g, o, c, w] x[cols[g, c, seen[p, w]]], times numbers of
    the rows and of the columns. Lists of rows, columns and values are made whenever they are asked
    for, and then have the same entries as those of a SparseMap.

    weight: (groups, out, in, window).
    seen: (places, window): what lies under the window at each place, or -1.
    rows_of: (groups, out, places): numbers of y, none of them twice.
    cols_of: (groups, in, plane): numbers of x, none of them twice.
    shape: how many numbers y and x have.
    left, right: of every number of y and of x, or one for all. None of them is 0.
    """

    in_pieces = True

    def __init__(
        self,
        weight: Array,
        seen: Indices,
        rows_of: Indices,
        cols_of: Indices,
        shape: tuple[int, int],
        left: Array | float = 1.0,
        right: Array | float = 1.0,
    ) -> None:
        vars(self).update(shape=shape, _weight=weight, _seen=seen, _rows=rows_of, _cols=cols_of)
        vars(self).update(_left=np.asarray(left, np.float64), _right=np.asarray(right, np.float64))

    _weight: Array
    _seen: Indices
    _rows: Indices
    _cols: Indices
    _left: Array
    _right: Array

    @classmethod
    def windows(cls, weight: Array, seen: Indices, channels: int, plane: int) -> SparseMap:
        """The map of a convolution from (channels, plane) to (out, places), as a list if that is
        smaller.

        weight: (groups, out / groups, channels / groups, window).
        """
        groups, out, taken, _ = weight.shape
        places = len(seen)
        rows = np.arange(groups * out * places, dtype=np.int32).reshape(groups, out, places)
        cols = np.arange(channels * plane, dtype=np.int32).reshape(groups, taken, plane)
        return cls(weight, seen.astype(np.int32), rows, cols, (rows.size, cols.size))._least()

    @classmethod
    def along_axis(cls, weight: Array, outer: int) -> SparseMap:
        """The map of a matrix (m, n) that takes each row of an array (outer, n), as a list if that
        is smaller."""
        m, n = weight.shape
        rows = np.arange(outer * m, dtype=np.int32).reshape(outer, m).T[None]
        cols = np.arange(outer * n, dtype=np.int32).reshape(outer, n).T[None]
        seen = np.arange(outer, dtype=np.int32)[:, None]
        made = cls(weight[None, :, :, None], seen, rows, cols, (outer * m, outer * n))
        return made._least()

    def _least(self) -> SparseMap:
        return self.listed() if self.count <= self.held else self

    @property
    def held(self) -> int:
        """See SparseMap."""
        return int(self._weight.size + sum(self.shape))

    @property
    def rows(self) -> Indices:
        """Of every entry, as a new array."""
        return self.listed().rows

    @property
    def cols(self) -> Indices:
        """Of every entry, as a new array."""
        return self.listed().cols

    @property
    def values(self) -> Array:
        """Of every entry, as a new array."""
        return self.listed().values

    @cached_property
    def _inside(self) -> npt.NDArray[np.bool_]:
        """(places, window): whether something lies there."""
        return np.asarray(self._seen >= 0)

    @cached_property
    def _filled(self) -> bool:
        """Whether no weight is 0."""
        return bool(np.all(self._weight))

    @cached_property
    def count(self) -> int:
        """How many entries are not zero."""
        each = np.count_nonzero(self._weight, axis=(0, 1, 2))
        return int(np.sum(each * self._inside.sum(0)))

    @cached_property
    def used_rows(self) -> int:
        """See SparseMap."""
        return int(np.count_nonzero(self.row_counts))

    @cached_property
    def used_cols(self) -> int:
        """See SparseMap."""
        groups, taken, plane = self._cols.shape
        found, takes = np.zeros((groups, taken, plane), bool), np.any(self._weight, axis=1)
        for w, inside in enumerate(self._inside.T):
            found[..., self._seen[inside, w]] |= takes[..., w, None]
        return int(np.count_nonzero(found))

    @cached_property
    def row_counts(self) -> Indices:
        """See SparseMap."""
        each = np.count_nonzero(self._weight, axis=2).astype(np.float64)
        found = np.zeros(self.shape[0], np.int64)
        found[self._rows] = np.rint(each @ self._inside.T.astype(np.float64))
        return found

    @cached_property
    def is_uniform(self) -> bool:
        """See SparseMap."""
        if self._left.ndim == self._right.ndim == 0:
            kept = self._weight[self._weight != 0]
            return not self.count or not np.ptp(kept)
        return are_uniform(self.pieces())

    @cached_property
    def row_squares(self) -> Array:
        """See SparseMap."""
        return self.squared(np.ones(self.shape[1]))

    @property
    def largest(self) -> float:
        """See SparseMap."""
        if self._left.ndim or self._right.ndim:
            return super().largest
        return float(np.abs(self._weight).max() * abs(self._left * self._right))

    def sample(self, most: int) -> SparseMap:
        """See SparseMap."""
        ends = np.cumsum(self.row_counts)
        chosen = np.arange(0, self.count, step_between(self.count, most))
        rows = np.searchsorted(ends, chosen, "right")
        ranks = chosen - (ends - self.row_counts)[rows]
        if self._filled and self._in_order:
            places = self._places[rows]
            under = self._inside[places % self._seen.shape[0]]
            channel, rank = np.divmod(ranks, under.sum(1))
            window = np.argsort(~under, axis=1, kind="stable")[np.arange(len(rank)), rank]
            return self._at(rows, channel, window)
        found = []
        for piece in self.pieces(np.unique(rows)):
            mine = (rows >= piece.rows[0]) & (rows <= piece.rows[-1])
            at = np.searchsorted(piece.rows, rows[mine]) + ranks[mine]
            found.append(SparseMap(piece.rows[at], piece.cols[at], piece.values[at], self.shape))
        return joined(found, self.shape)

    def has_places_of(self, other: SparseMap) -> bool:
        """See SparseMap."""
        if isinstance(other, SharedMap) and self.shape == other.shape:
            pairs = (
                (self._rows, other._rows),
                (self._cols, other._cols),
                (self._seen, other._seen),
                (self._weight != 0, other._weight != 0),
            )
            if all(one is two or np.array_equal(one, two) for one, two in pairs):
                return True
        return super().has_places_of(other)

    def matrix(self) -> Array:
        """See SparseMap."""
        return self.listed().matrix()

    def scaled(self, rows: Array | float, cols: Array | float = 1.0) -> SparseMap:
        """See SparseMap."""
        if not (np.all(rows) and np.all(cols)):
            return self.listed().scaled(rows, cols)
        weight, left, right = self._weight, self._left, self._right
        each = np.broadcast_to(rows, self.shape[0])[self._rows] if np.ndim(rows) else None
        if each is not None and np.array_equal(each, np.broadcast_to(each[..., :1], each.shape)):
            weight, rows = weight * each[..., 0, None, None], 1.0
        each = np.broadcast_to(cols, self.shape[1])[self._cols] if np.ndim(cols) else None
        if each is not None and np.array_equal(each, np.broadcast_to(each[..., :1], each.shape)):
            weight, cols = weight * each[:, None, :, 0, None], 1.0
        return self._with(weight=weight, left=left * rows, right=right * cols)

    def _with(self, **changes: Any) -> SharedMap:
        own = {
            "weight": self._weight,
            "seen": self._seen,
            "rows_of": self._rows,
            "cols_of": self._cols,
            "shape": self.shape,
            "left": self._left,
            "right": self._right,
        }
        return SharedMap(**{**own, **changes})

    def after_moves(self, inner: SparseMap) -> SparseMap | None:
        """The composition y = self(inner(x)) with a map that moves numbers, none of them twice, and
        multiplies them. None if it is not of this kind."""
        if inner.in_pieces or not inner.count == inner.used_rows == inner.used_cols:
            return None
        source = np.full(self.shape[1], -1, np.int32)
        source[inner.rows] = inner.cols
        cols, weight, seen = source[self._cols], self._weight, self._seen
        kept = _kept(cols)
        if kept is None:
            return None
        channels, places = kept
        if not channels.all():
            if len(cols) > 1:
                return None
            weight, cols = weight[:, :, channels[0]], cols[:, channels[0]]
        if not places.all():
            number = np.where(places, np.cumsum(places) - 1, -1)
            seen = np.where(seen >= 0, number[seen], -1).astype(np.int32)
            cols = cols[..., places]
        size = inner.shape[1]
        moved = self._with(
            weight=weight,
            seen=seen,
            cols_of=cols,
            shape=(self.shape[0], size),
            right=self._right if not self._right.ndim else 1.0,
        )
        factors = np.ones(size)
        factors[inner.cols] = inner.values * (self._right[inner.rows] if self._right.ndim else 1.0)
        return moved._scaled_by(1.0, factors)

    def before_moves(self, outer: SparseMap) -> SparseMap | None:
        """The composition y = outer(self(x)) with a map that moves numbers, none of them twice, and
        multiplies them. None if it is not of this kind."""
        if outer.in_pieces or not outer.count == outer.used_rows == outer.used_cols:
            return None
        target = np.full(self.shape[0], -1, np.int32)
        target[outer.cols] = outer.rows
        rows, weight, seen = target[self._rows], self._weight, self._seen
        kept = _kept(rows)
        if kept is None:
            return None
        channels, places = kept
        if not channels.all():
            if len(rows) > 1:
                return None
            weight, rows = weight[:, channels[0]], rows[:, channels[0]]
        if not places.all():
            seen, rows = seen[places], rows[..., places]
        size = outer.shape[0]
        moved = self._with(
            weight=weight,
            seen=seen,
            rows_of=rows,
            shape=(size, self.shape[1]),
            left=self._left if not self._left.ndim else 1.0,
        )
        factors = np.ones(size)
        factors[outer.rows] = outer.values * (self._left[outer.cols] if self._left.ndim else 1.0)
        return moved._scaled_by(factors, 1.0)

    def _scaled_by(self, rows: Array | float, cols: Array | float) -> SparseMap:
        """As scaled; without factors other than 1, the map itself."""
        ones = all(np.all(np.asarray(x) == 1.0) for x in (rows, cols))
        return self if ones else self.scaled(rows, cols)

    def __call__(self, x: Array) -> Array:
        """See SparseMap."""
        return np.asarray(self._product(self._weight, x * self._right) * self._left)

    def squared(self, x: Array) -> Array:
        """See SparseMap."""
        taken = (x * np.square(self._right))[None]
        return np.asarray(self._product(np.square(self._weight), taken)[0] * np.square(self._left))

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """See SparseMap."""
        return self._bounds(np.zeros(self.shape[1]), np.ones(self.shape[1]))

    def _bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """See SparseMap. Where an end is no number, nothing is known of what takes it."""
        ends = np.stack((self._right * low, self._right * high))
        lost = ~np.all(np.isfinite(ends), axis=0)
        least, most = np.where(lost, 0.0, ends.min(0)), np.where(lost, 0.0, ends.max(0))
        above, below = (part(self._weight, 0.0) for part in (np.maximum, np.minimum))
        both = np.stack((least, most))
        a = self._product(above, both) + self._product(below, both[::-1])
        if lost.any():
            taken = self._product((self._weight != 0).astype(np.float64), lost[None] * 1.0)[0] > 0
            a[0, taken], a[1, taken] = -np.inf, np.inf
        a = a * self._left
        return np.minimum(*a), np.maximum(*a)

    def _product(self, weight: Array, x: Array) -> Array:
        """y (batch, m) of x (batch, n) for these weights, without the factors of rows and
        columns."""
        y = np.zeros((len(x), self.shape[0]))
        some = max(1, _TOGETHER // max(self._rows.size, self._cols.size))
        every = np.arange(self._cols.shape[2])
        for k in range(0, len(x), some):
            taken = x[k : k + some][:, self._cols]
            made = np.zeros((len(taken), *self._rows.shape))
            for w, inside in enumerate(self._inside.T):
                at = self._seen[inside, w]
                part = taken if np.array_equal(at, every) else taken[..., at]
                found = np.matmul(weight[..., w], part)
                if inside.all():
                    made += found
                else:
                    made[..., inside] += found
            y[k : k + some, self._rows] = made
        return y

    def pieces(
        self, rows: Indices | None = None, cols: Indices | None = None
    ) -> Iterator[SparseMap]:
        """Maps of a few whole rows each, which together are the map, or what it has in some rows
        and columns. Indices are those of the map. Pieces without an entry are left out."""
        m, n = self.shape
        rows = np.arange(m) if rows is None else np.sort(rows)
        rows = rows[self._places[rows] >= 0]
        wanted, channels = None, np.arange(self._cols.shape[1])
        if cols is not None:
            wanted = np.zeros(n, bool)
            wanted[cols] = True
            channels = np.flatnonzero(wanted[self._cols].any((0, 2)))
        step = max(1, PIECE // max(1, len(channels) * self._seen.shape[1]))
        for k in range(0, len(rows) if len(channels) else 0, step):
            piece = self._listed(rows[k : k + step], channels, wanted)
            if piece.count:
                yield piece

    def listed(self) -> SparseMap:
        """See SparseMap."""
        return joined(self.pieces(), self.shape)

    @cached_property
    def _places(self) -> Indices:
        """For each number of y, where it is in rows_of, or -1."""
        found = np.full(self.shape[0], -1, np.int64)
        found[self._rows.ravel()] = np.arange(self._rows.size)
        return found

    @cached_property
    def _in_order(self) -> bool:
        """Whether the columns of each row rise with the channel, and then along the window."""
        before: Indices | None = None
        for taken in self._cols.transpose(1, 0, 2):  # one channel of every group
            seen = taken[:, self._seen]
            last = np.where(self._inside, seen, -1)
            highest = np.maximum.accumulate(last, axis=-1)
            if np.any(self._inside[:, 1:] & (last[..., 1:] <= highest[..., :-1])):
                return False
            first = np.where(self._inside, seen, np.iinfo(np.int32).max).min(-1)
            if before is not None and np.any((first <= before) & (before >= 0)):
                return False
            before = highest[..., -1]
        return True

    def _at(self, rows: Indices, channel: Indices, window: Indices) -> SparseMap:
        """The entries in these rows that come from the weights of these channels, at these places
        of the window."""
        out, place = np.divmod(self._places[rows], self._rows.shape[2])
        group, out = np.divmod(out, self._rows.shape[1])
        cols = self._cols[group, channel, self._seen[place, window]]
        values = self._with_factors(rows, cols, self._weight[group, out, channel, window])
        return SparseMap(rows, cols, values, self.shape)

    def _with_factors(self, rows: Indices, cols: Indices, weights: Array) -> Array:
        """Weights in these rows and columns, times the factors of both."""
        left, right = (
            side[at] if side.ndim else side
            for side, at in ((self._left, rows), (self._right, cols))
        )
        return np.asarray(left * weights * right)

    def _listed(
        self, rows: Indices, channels: Indices, wanted: npt.NDArray[np.bool_] | None
    ) -> SparseMap:
        """The entries of these rows in some channels, and in some columns."""
        out, place = np.divmod(self._places[rows], self._rows.shape[2])
        group, out = np.divmod(out, self._rows.shape[1])
        seen = self._seen[place]
        cols = self._cols[group[:, None, None], channels[:, None], seen[:, None]]
        values = self._weight[group[:, None], out[:, None], channels]
        there = np.broadcast_to((seen >= 0)[:, None], cols.shape)
        if not self._filled:
            there = there & (values != 0)
        if wanted is not None:
            there = there & wanted[cols]
        counts = np.count_nonzero(there, axis=(1, 2))
        rows, cols = np.repeat(rows, counts).astype(np.int32), cols[there]
        scaled = self._with_factors(rows, cols, values[there])
        made = SparseMap if self._in_order else SparseMap.of
        return made(rows, cols, scaled, self.shape)


def _kept(
    numbers: Indices,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None:
    """Which channels (groups, n) and which places of an array (groups, n, places) hold numbers from
    0, if all channels hold them in the same places, or none. None for other arrays, and without
    numbers."""
    there = numbers >= 0
    channels, places = np.asarray(there.any(2)), np.asarray(there.any((0, 1)))
    if not there.any() or not np.array_equal(there, channels[..., None] & places):
        return None
    return channels, places
