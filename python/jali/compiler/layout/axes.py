"""Sums along axes, and copies, by rotations and additions instead of matrices.

The sum of w neighbouring slots appears in the first of them after log2(w) rotations, each added to
what it rotates. A mask keeps it, and log2(w) rotations back spread it over the w slots (Han et al.
2019). The sum over windows of a ciphertext and over ciphertexts takes no mask, and an array that
lies in all windows needs nothing to be multiplied with every one of them.

Both add up all slots of a window, also those that hold no number. So these must hold zeros
(`empty`, see jali.compiler.layout.padding), or there must be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Node
from jali.compiler.ir.layouts import Gathered, Layout, Repeated, Skewed, contents
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.diagonals import Placed

__all__ = ["copied", "powers", "repeated", "rolled", "summed", "totalled", "turned"]


def repeated(node: Node, sources: Sequence[Layout], empty: Sequence[bool]) -> Iterator[Repeated]:
    """The layout of sums along an axis whose numbers lie one behind the other, if the node is such
    sums."""
    for single, source, zeros in zip(Affine.of(node).maps, sources, empty, strict=True):
        most = int(single.row_counts.max(initial=0))
        width = 1 << max(0, most - 1).bit_length()
        if isinstance(source, Skewed):
            width = source.width
        total = node.size * width
        if most < 2 or source.period * source.ciphertexts < total:
            continue
        period = min(source.slots, 1 << (total - 1).bit_length())
        target = Repeated(node.shape, source.slots, period, width=width)
        if summed(single, source, target, zeros) is not None:
            yield target


def copied(single: SparseMap, source: Layout, target: Layout) -> tuple[tuple[int, ...], ...] | None:
    """For each ciphertext of the result, the one of the source that holds the same numbers, up to a
    factor; None if one does not."""
    m, _ = single.shape
    if single.count != m or not np.array_equal(single.rows, np.arange(m)):
        return None
    if not single.is_uniform or source.partial or target.partial or isinstance(target, Gathered):
        return None
    wanted = np.r_[single.cols, -1][contents(target)]
    held = contents(source)
    found = []
    for row in wanted:
        alike = next((k for k, other in enumerate(held) if np.array_equal(row, other)), None)
        if alike is None:
            return None
        found.append((alike,))
    return tuple(found)


def turned(single: SparseMap, source: Layout, target: Layout) -> bool:
    """Whether ciphertext j of a skewed result holds the same numbers as a source of one ciphertext
    that is rotated by turn j of its layout, up to a factor."""
    if not isinstance(target, Skewed) or source.partial or source.ciphertexts > 1:
        return False
    m, _ = single.shape
    if single.count != m or not single.is_uniform or not np.array_equal(single.rows, np.arange(m)):
        return False
    (held,) = contents(source)
    wanted = np.r_[single.cols, -1][contents(target)]
    pairs = zip(wanted, target.turns, strict=True)
    return all(np.array_equal(row, np.roll(held, -turn)) for row, turn in pairs)


def rolled(single: SparseMap, source: Layout, target: Layout) -> int:
    """By how much a ciphertext is rotated to hold the numbers of another one, up to a factor, as of
    an array that fills its period and whose numbers move round; 0 if no rotation does that."""
    if type(source) is not Layout or type(target) is not Layout:
        return 0
    m, n = single.shape
    if single.count != m or m != n or np.ptp(single.values):
        return 0
    if source.ciphertexts > 1 or target.ciphertexts > 1 or source.period != target.period:
        return 0
    moved = (source.addresses[single.cols] - target.addresses[single.rows]) % source.period
    if m < source.period or np.any(moved != moved[0]):
        return 0
    return int(moved[0])


def summed(single: SparseMap, source: Layout, target: Layout, empty: bool) -> Placed | None:
    """For sums of neighbouring slots, of a skewed matrix those of all its ciphertexts: the slots in
    which they begin, and for each the first of its entries; None for other maps.

    Whatever the source holds in these slots belongs to the sum.

    empty: whether it holds zeros between its numbers.
    """
    if not isinstance(target, Repeated) or type(source) not in (Layout, Skewed):
        return None
    # Each number of the source is in one sum, and those of the sums are all that there are.
    if not single.count or single.count != single.shape[1]:
        return None
    if target.ciphertexts > source.ciphertexts:
        return None
    places, width = source.addresses[single.cols], target.width
    if isinstance(source, Skewed):
        if width != source.width or target.ciphertexts > 1:
            return None
        places = places % source.slots
    if target.period < source.period and target.ciphertexts == 1:
        return None
    begins = np.searchsorted(single.rows, np.arange(single.shape[0]))
    most = width * source.ciphertexts if isinstance(source, Skewed) else width
    if source.slots % width or np.any(single.row_counts < (1 if empty else most)):
        return None
    if np.any(places // width != target.addresses[single.rows] // width):
        return None
    if np.any(single.values != single.values[begins][single.rows]):
        return None
    if single.used_cols != single.count:
        return None
    ciphertext, slot = np.divmod(target.addresses, source.slots)
    block = ciphertext * (
        source.ciphertexts + 1
    )  # of each ciphertext of the result and the same of the source
    return Placed(block, np.zeros_like(slot), slot, begins)


def totalled(
    single: SparseMap, source: Layout, target: Layout, empty: bool
) -> tuple[tuple[int, ...], ...] | None:
    """For sums over windows and ciphertexts: the ciphertexts of the source of which each one of the
    result is the sum, up to one factor, before the sums of windows. None for other maps. Those of a
    skewed matrix are rotated back before.

    empty: as for summed.
    """
    if type(source) not in (Layout, Skewed) or type(target) is not Layout:
        return None
    if not single.count or single.count != single.shape[1] or not single.is_uniform:
        return None
    if single.used_cols != single.count:
        return None
    rows, columns = target.addresses[single.rows], source.addresses[single.cols]
    if isinstance(source, Skewed):
        columns = columns + np.asarray(source.turns)[columns // source.slots]
    if target.ciphertexts > 1 or source.period < target.period:
        return None
    if np.any((columns % source.slots - rows) % target.period):
        return None
    windows = source.ciphertexts * (source.period // target.period)
    if not empty and np.any(single.row_counts < windows):
        return None
    return (tuple(range(source.ciphertexts)),)


def powers(first: int, end: int) -> tuple[int, ...]:
    """first, 2 first, .. below end."""
    found = []
    while first < end:
        found.append(first)
        first *= 2
    return tuple(found)
