"""Diagonals: which product of a slot and a rotated slot computes each entry of a matrix between two
layouts.

Slot s of ciphertext i of a result gets  sum_d v_d[s] x_j[s + d]  from ciphertext j of a source.
Sums of windows may follow: for every step, y becomes y + y rotated by the step. The result then has
the smallest step as a period, if the sums go on to all slots of the source's period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.compiler.ir.layouts import Gathered, Layout, Repeated, Shared
from jali.compiler.ir.sparse import Indices, SparseMap

__all__ = ["Placed", "gathered", "phased", "placed", "sent", "steps"]


@dataclass(frozen=True, eq=False)
class Placed:
    """Products.

    block: ciphertext of the result times ciphertexts of the source + that of the source.
    diagonal: by how many slots the source is rotated.
    slot: of the result, before the sums of windows.
    entry: of the matrix.
    """

    block: Indices
    diagonal: Indices
    slot: Indices
    entry: Indices

    @cached_property
    def counts(self) -> list[int]:
        """How many diagonals there are, for each block that has any."""
        if not len(self.block):
            return []
        width = int(self.diagonal.max()) + 1
        seen = np.bincount(self.block * width + self.diagonal) > 0
        full = np.zeros(-(-len(seen) // width) * width, bool)
        full[: len(seen)] = seen
        return [int(n) for n in full.reshape(-1, width).sum(1) if n]


def steps(source: Layout, target: Layout) -> tuple[int, ...]:
    """The rotations of the sums of windows that follow the diagonals."""
    first, end = target.period, source.period
    if isinstance(target, Shared):
        first, end = target.chunk, target.every
    found = []
    while first < end:
        found.append(first)
        first *= 2
    return tuple(found)


def _ranks(single: SparseMap) -> Indices:
    """For each entry of a map, how many entries of its row lie before it."""
    return np.arange(single.count) - np.searchsorted(single.rows, single.rows)


def placed(single: SparseMap, source: Layout, target: Layout) -> Placed:
    """The products of a map between two layouts.

    For a source with a period and a result with a smaller one, w, the product of a row and a column
    whose slots are d + w k apart appears in window k, k w slots behind its place, on diagonal d.
    """
    rows, columns = target.addresses[single.rows], single.cols
    everything = np.arange(single.count)
    if isinstance(source, Gathered) and source.like is not None:
        source = source.like
    if isinstance(source, Gathered):
        return _of_gathered(single, source, target, rows)
    columns = source.addresses[columns]
    if isinstance(target, Shared):
        return _shared(rows, columns, source, target)
    if isinstance(target, Repeated):  # every copy is computed
        everything = np.repeat(everything, target.width)
        rows = (rows[:, None] + np.arange(target.width)).ravel()
        columns = np.repeat(columns, target.width)
    # Slots and periods are powers of two.
    if target.ciphertexts == source.ciphertexts == 1 and not isinstance(target, Repeated):
        block, slot = np.zeros(len(rows), np.int64), rows
    else:
        block = (rows >> _log(target.slots)) * source.ciphertexts + (columns >> _log(source.slots))
        slot = rows & (target.slots - 1)
    apart = (columns - slot) & (source.period - 1)
    if isinstance(source, Shared):  # the copy that is the least number of slots behind the window
        behind = (apart & (target.period - 1)) // source.every
        copy = -behind & (source.block // source.every - 1)
        apart = (apart + copy * source.every) & (source.period - 1)
    if target.period >= source.period:
        return Placed(block, apart, slot, everything)
    window = apart & -target.period
    return Placed(block, apart - window, slot + window, everything)


def _log(n: int) -> int:
    """log2 of a power of two."""
    return n.bit_length() - 1


def _shared(rows: Indices, columns: Indices, source: Layout, target: Shared) -> Placed:
    """Every copy of a number is computed from the copy of the source in which it lies."""
    copies = np.arange(0, target.block, target.every)
    slots = rows[:, None] + copies
    apart = (columns[:, None] - slots) & (source.period - 1)
    window = apart & (target.every - 1) & -target.chunk
    entry = np.repeat(np.arange(len(rows)), len(copies))
    diagonal = (apart - window).ravel()
    return Placed(np.zeros_like(entry), diagonal, (slots + window).ravel(), entry)


def _of_gathered(single: SparseMap, source: Gathered, target: Layout, rows: Indices) -> Placed:
    everything = np.arange(single.count)
    if source.places is None:
        block, window = np.divmod(_ranks(single), target.slots // target.period)
        return Placed(block, np.zeros_like(rows), rows + window * target.period, everything)
    places, half = source.places[single.cols], target.period // 2
    apart = (places - rows[:, None] + half) % target.period - half
    nearest = np.where(places >= 0, np.abs(apart), target.slots).argmin(1)
    block, slot = np.divmod(places[everything, nearest], source.slots)
    apart = apart[everything, nearest]
    return Placed(block, apart % source.slots, (slot - apart) % source.slots, everything)


def gathered(single: SparseMap, shape: tuple[int, ...], target: Layout, most: int) -> Layout | None:
    """The input of which every window holds one entry of each row; None if it takes more than
    `most` ciphertexts. Clients send all numbers: those that no row takes lie where no row has an
    entry."""
    windows = target.slots // target.period
    ciphertexts = -(-max(1, int(single.row_counts.max(initial=0))) // windows)
    if ciphertexts > most:
        return None
    table = np.full((ciphertexts, target.slots), -1)
    layout = Gathered(shape, target.slots, target.slots, table=table)
    found = placed(single, layout, target)
    table[found.block, found.slot] = single.cols[found.entry]
    unused = np.setdiff1d(np.arange(math.prod(shape)), table)
    free = np.argwhere(table < 0)[: len(unused)]
    if len(free) < len(unused):
        return None
    table[tuple(free.T)] = unused
    return layout


def phased(shape: tuple[int, ...], stride: int, target: Layout, most: int) -> Layout | None:
    """The images of an input cut into phases, (s y + i, s x + j) for every i, j < s, each in a
    window of its own, and there once for every channel of the result. A convolution with the stride
    s then reads each phase at few distances. None if that takes more than `most` ciphertexts.

    target: dense, on the grid of a phase.
    """
    channels, sizes, grid = shape[0], shape[1:], target.grid
    plane, copies = math.prod(grid), target.shape[0]
    windows = target.slots // target.period
    total = channels * stride ** len(sizes)
    if -(-total // windows) > most or target.ciphertexts > 1 or copies * plane > target.period:
        return None
    index = np.indices(shape)
    window, place = index[0], np.zeros(shape, np.int64)
    for coordinate, size in zip(index[1:], grid, strict=True):
        window = window * stride + coordinate % stride
        place = place * size + coordinate // stride
    first = window // windows * target.slots + window % windows * target.period + place
    places = first.ravel()[:, None] + np.arange(copies) * plane
    table = np.full(-(-total // windows) * target.slots, -1)
    table[places] = np.arange(len(places))[:, None]
    table = table.reshape(-1, target.slots)
    return Gathered(shape, target.slots, target.slots, table=table, places=places)


def sent(layout: Shared) -> Gathered:
    """An input in shares, for a matrix that may take every copy."""
    table = np.full((1, layout.slots), -1)
    for start in layout.copies:
        table[0, start + layout.addresses] = np.arange(len(layout.addresses))
    return Gathered(layout.shape, layout.slots, layout.slots, table=table, like=layout)
