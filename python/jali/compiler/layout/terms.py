"""Terms: what one source adds to a result, as products of ciphertexts with diagonals, and sums."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.graph import Array
from jali.compiler.ir.layouts import Gathered, Layout, Repeated, Skewed
from jali.compiler.ir.loop_graph import factor_of, is_whole
from jali.compiler.ir.sparse import Indices, SparseMap
from jali.compiler.layout.axes import copied, powers, rolled, summed, totalled, turned
from jali.compiler.layout.diagonals import placed, steps
from jali.compiler.layout.overlay import exponents, joined, overlaid, sums_of
from jali.compiler.layout.product_factors import spread

__all__ = ["Term", "gain_of"]


#: (diagonal, slot, value, number of the result) of entries of a matrix.
_Entries = tuple[Indices, Indices, Array, Indices]

#: (ciphertext of the result, ciphertext of the source).
_Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Term:
    """What one source adds to a result: the same number times all of it, or products with diagonals
    and sums of windows.

    Slot s of ciphertext `to` gets v[s] x[s + diagonal] from ciphertext `from_`. Which diagonals
    there are is known; their numbers are made from the matrix whenever they are needed, because
    they take much more memory than it.

    factor: None if there are diagonals.
    diagonals: by (to, from_), those that products are computed with.
    bounds: by ciphertext of the result, how large its slots can be for numbers in [-1, 1], before
        the sums of windows and after each.
    sums: rotations, in slots of a lane; after each, y becomes y + rotated y.
    single: the matrix.
    source, target: the layouts between which it lies.
    before: rotations as of sums, of the source, before the diagonals.
    picked: with a factor, the ciphertexts of the source whose sum goes into each one of the result;
        None if they are the same.
    turns: of the overlay of the source that the diagonals are for (jali.compiler.layout.overlay).
        The sums of the overlay come before the other ones.
    digests: by (to, from_), a hash of the numbers and the overlay of the diagonals: blocks with the
        same one are the same matrix.
    copy_rotations: for each ciphertext of the result, the rotation of the one ciphertext of the
        source whose copy it is; empty if there are no copies. Of several, they go up in equal steps
        from 0.
    joined: for each ciphertext of the source, its rotation before all of them are added, which
        comes before anything else; empty if they are not added. Of several, they go up in equal
        steps from 0.
    own: by (to, from_), the diagonals of the matrix itself, of which an overlay joins several.
    """

    factor: float | None
    diagonals: Mapping[tuple[int, int], Indices] = field(default_factory=dict)
    bounds: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    sums: tuple[int, ...] = ()
    single: SparseMap | None = None
    source: Layout | None = None
    target: Layout | None = None
    before: tuple[int, ...] = ()
    picked: tuple[tuple[int, ...], ...] | None = None
    turns: tuple[int, ...] = ()
    digests: Mapping[tuple[int, int], bytes] = field(default_factory=dict)
    copy_rotations: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    own: Mapping[tuple[int, int], Indices] = field(default_factory=dict)

    @classmethod
    def of(
        cls, single: SparseMap, source: Layout, target: Layout, empty: bool, costs: LayoutCosts
    ) -> Term:
        """The term of a matrix between two layouts.

        empty: whether the source holds zeros between its numbers.
        costs: by which overlays are chosen.
        """
        if source == target and single.is_diagonal and not np.ptp(single.values):
            return cls(float(single.values[0]))
        picked = copied(single, source, target) or totalled(single, source, target, empty)
        joined: tuple[int, ...] = ()
        copy_rotations: tuple[int, ...] = ()
        if picked is None and turned(single, source, target):
            assert isinstance(target, Skewed)
            picked, copy_rotations = ((0,),) * target.count, target.turns
        elif picked is None and (step := rolled(single, source, target)):
            picked, copy_rotations = ((0,),), (step,)
        elif picked is not None and isinstance(source, Skewed) and target.ciphertexts == 1:
            joined = tuple(-turn for turn in source.turns)
        if picked is not None:
            factor = float(single.values[0])
            sums = powers(target.period, source.period) if len(picked) == 1 else ()
            most = {
                to: tuple(abs(factor) * len(of) * 2.0**k for k in range(len(sums) + 1))
                for to, of in enumerate(picked)
            }
            return cls(
                factor,
                bounds=most,
                sums=sums,
                single=single,
                source=source,
                target=target,
                picked=picked,
                copy_rotations=copy_rotations,
                joined=joined,
            )
        term = cls(None, sums=steps(source, target), single=single, source=source, target=target)
        if summed(single, source, target, empty) is not None:
            assert isinstance(target, Repeated)
            before = powers(1, target.width)
            back = tuple(target.slots - step for step in before)
            joined = (0,) * source.ciphertexts if isinstance(source, Skewed) else ()
            term = replace(term, before=before, sums=back, joined=joined)
        return term._counted()._overlaid(costs)

    @classmethod
    def copies(cls, single: SparseMap, source: Layout, target: Layout, costs: LayoutCosts) -> Term:
        """The term of a map of copies, which rotations may spread; see
        jali.compiler.ir.products."""
        found = spread(single, source, target, costs)
        made = cls(None, sums=found.steps, single=found.first, source=source, target=target)
        return made._counted()

    def _counted(self) -> Term:
        """The term with its diagonals, their digests and its bounds."""
        assert self.target is not None
        diagonals, digests, slots, period = {}, {}, self.target.slots, self.period
        sums: dict[int, Array] = {}  # of absolute values, by ciphertext of the result
        for (to, from_), pieces in self._entries():
            there, told = np.zeros(period, bool), [period.to_bytes(8, "little")]
            total = np.zeros(period)
            for diagonal, slot, values, _ in pieces:
                there[diagonal] = True
                total += np.bincount(slot, np.abs(values), period)
                told.append(_digest(diagonal, slot, values))
            if there.any():
                diagonals[to, from_] = np.flatnonzero(there)
                digests[to, from_] = _hash(*told)
                sums[to] = sums.get(to, 0.0) + total
        bounds = {}
        added = 2.0 ** len(self.before) * max(1, len(self.joined))
        for to, total in sums.items():
            found = [np.tile(total, slots // period) * added]
            for step in self.sums:
                found.append(found[-1] + np.roll(found[-1], -step))
            bounds[to] = tuple(float(x.max()) for x in found)
        return replace(self, diagonals=diagonals, bounds=bounds, digests=digests, own=diagonals)

    def _overlaid(self, costs: LayoutCosts) -> Term:
        """The term with fewer diagonals, if copies of the source may lie on each other; see
        jali.compiler.layout.overlay."""
        assert self.source is not None and self.target is not None
        turns: tuple[int, ...] = ()
        diagonals, period = self.diagonals, self.source.period
        if not self.before and not self.joined and not self.source.partial:
            windows = self.target.slots // max(period, self.target.period)
            turns, diagonals = overlaid(diagonals, period, windows, costs)
        told = repr((turns, period)).encode()
        digests = {pair: _hash(told, digest) for pair, digest in self.digests.items()}
        return replace(self, diagonals=diagonals, turns=turns, digests=digests)

    def sources_of(self, to: int) -> tuple[int, ...]:
        """With a factor: the ciphertexts of the source whose sum goes into ciphertext `to`."""
        return (to,) if self.picked is None else self.picked[to]

    def copy_rotation(self, to: int) -> int:
        """By how much the copy of the source that is ciphertext `to` is rotated."""
        return self.copy_rotations[to] if self.copy_rotations else 0

    def columns(self, to: int) -> list[int]:
        """The ciphertexts of the source that are multiplied with diagonals for ciphertext `to`."""
        return [from_ for row, from_ in self.diagonals if row == to]

    @property
    def period(self) -> int:
        """The diagonals repeat after so many slots."""
        assert self.source is not None and self.target is not None
        return max(self.source.period, self.target.period)

    def monomials(self, lanes: int = 1) -> list[int]:
        """For every turn, the exponent of X with which the turned source is multiplied."""
        return [] if self.target is None else exponents(self.turns, self.target.slots * lanes)

    @property
    def traced(self) -> list[int]:
        """The rotations of the overlay's sums, in slots of a lane. With an overlay, twice the real
        part follows."""
        return [] if self.target is None else sums_of(self.turns, self.target.slots)

    @property
    def behind(self) -> tuple[object, ...]:
        """What the sums behind an overlay are. Terms of a transform with the same ones are added
        before them. Empty if there is no overlay."""
        return (len(self.turns), self.sums) if self.turns else ()

    @property
    def around(self) -> int:
        """How many key switchings the overlay of one ciphertext takes: as many before the diagonals
        as behind them."""
        return len(self.turns)

    @property
    def is_free(self) -> bool:
        """Whether it takes no level, because it multiplies by a small whole number, which is exact
        and keeps the scale."""
        return self.factor is not None and is_whole(self.factor)

    @property
    def moved(self) -> int:
        """How many rotations of whole ciphertexts it takes: of copies, and before ciphertexts are
        added."""
        return sum(step != 0 for step in (*self.copy_rotations, *self.joined))

    @property
    def count(self) -> int:
        """Products with diagonals."""
        return sum(map(len, self.diagonals.values()))

    def vectors(
        self, to: int, lanes: int = 1, only: Collection[int] | None = None
    ) -> Iterator[tuple[int, dict[int, npt.NDArray[np.inexact[Any]]]]]:
        """For each ciphertext of the source that ciphertext `to` of the result needs, or for some
        of them, the diagonals by the rotation that they take."""
        assert self.target is not None
        wanted = self.columns(to) if only is None else only
        for (_, from_), own, table, _ in self.tables([(to, from_) for from_ in wanted]):
            if self.turns:
                assert self.source is not None
                by = dict(zip(map(int, own), table, strict=True))
                left, period = self.diagonals[to, from_], self.source.period
                parts_of = joined(self.turns, left, by, period, self.target.slots, lanes)
                yield from_, {e * lanes: vector for e, vector in parts_of}
                continue
            full = np.repeat(np.tile(table, self.target.slots // self.period), lanes, axis=1)
            yield from_, {int(d) * lanes: full[k] for k, d in enumerate(own)}

    def tables(
        self, only: Collection[_Pair] | None = None
    ) -> Iterator[tuple[_Pair, Indices, Array, Indices]]:
        """For each pair of ciphertexts, or for some: the diagonals of the matrix itself; their
        numbers (diagonals, period); and for every slot of a period the number of the result that it
        belongs to, or -1."""
        for pair, pieces in self._entries(only):
            own, period = self.own[pair], self.period
            place = np.zeros(period, np.int64)
            place[own] = np.arange(len(own))
            table, rows = np.zeros((len(own), period)), np.full(period, -1)
            for diagonal, slot, values, row in pieces:
                table[place[diagonal], slot] = values
                rows[slot] = row
            yield pair, own, table, rows

    def _entries(
        self, only: Collection[_Pair] | None = None
    ) -> Iterator[tuple[_Pair, Iterator[_Entries]]]:
        """The entries between each pair of ciphertexts, or between some, in pieces."""
        assert self.single is not None and self.source is not None and self.target is not None
        single, source = self.single, self.source
        if isinstance(source, Gathered) and source.like is not None:
            source = source.like
        axis = self.before or self.joined
        if single.in_pieces and not isinstance(source, Gathered) and not axis:
            tos = self.target.addresses // self.target.slots
            froms = source.addresses // source.slots
            for pair in itertools.product(
                range(self.target.ciphertexts), range(source.ciphertexts)
            ):
                if only is None or pair in only:
                    pieces = single.pieces(
                        *(np.flatnonzero(x == k) for x, k in zip((tos, froms), pair, strict=True))
                    )
                    yield pair, (self._entries_of(piece) for piece in pieces)
            return
        single = single.listed()
        found = summed(single, source, self.target, True) if axis else None
        found = found or placed(single, source, self.target)
        values, rows = single.values[found.entry], single.rows[found.entry]
        if not found.block.any():  # the usual case
            if len(values) and (only is None or (0, 0) in only):
                yield (0, 0), iter([(found.diagonal, found.slot, values, rows)])
            return
        order = np.argsort(found.block, kind="stable")
        present, starts = np.unique(found.block[order], return_index=True)
        for block, mine in zip(present, np.split(order, starts[1:]), strict=True):
            to, from_ = divmod(int(block), source.ciphertexts)
            if only is None or (to, from_) in only:
                part = (x[mine] for x in (found.diagonal, found.slot, values, rows))
                yield (to, from_), iter([tuple(part)])  # type: ignore[list-item]

    def _entries_of(self, piece: SparseMap) -> _Entries:
        """Those of a part of the matrix between two ciphertexts."""
        assert self.source is not None and self.target is not None
        found = placed(piece, self.source, self.target)
        return found.diagonal, found.slot, piece.values[found.entry], piece.rows[found.entry]

    def __str__(self) -> str:
        if self.factor is not None:
            told = f"times {self.factor:.4g}" + (f", {len(self.sums)} sums" if self.sums else "")
            return told + (f", {self.moved} turns" if self.moved else "")
        sums = len(self.before) + len(self.sums)
        overlay = f" of an overlay of {1 << len(self.turns)}" if self.turns else ""
        joined = f" of the sum of {len(self.joined)} ciphertexts" if self.joined else ""
        return (
            f"{self.count} diagonals{overlay}{joined} in {len(self.diagonals)} blocks, {sums} sums"
        )


def _hash(*parts: bytes | npt.NDArray[Any]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else part.data.cast("B")
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.digest()


def _digest(diagonal: Indices, slot: Indices, values: Array) -> bytes:
    """A hash of products between two ciphertexts."""
    kinds = ((diagonal, np.int32), (slot, np.int32), (values, np.float64))
    return _hash(*(np.ascontiguousarray(x, kind) for x, kind in kinds))


def gain_of(single: SparseMap) -> tuple[float, bool]:
    """The gain of a map: by how much the noise of a source grows behind it, and whether the result
    is a multiple of the source, number by number."""
    factor = factor_of(single)
    if factor is not None:
        return factor, True
    rows = max(1, single.used_rows)  # beside the others there is no noise
    return math.sqrt(float(np.sum(single.row_squares)) / rows), False
