"""Products of encrypted matrices: sums of products of arrays, each a copy of parts of one operand.

y[o, i, j] = sum_k a[o, i, k] b[o, k, j] is a sum over k of two arrays of the shape of y: column k
of a, repeated along j, and row k of b, repeated along i. Each of them takes one level: few
diagonals, a mask, put a number where it occurs first, and rotations spread it from there, the
distance doubled with each. The products of ciphertexts are added before they are relinearised and
rescaled, which happens once.

If y takes only a part of the slots, its windows share the work: window p takes a part of all k, and
the sum over the windows follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.products import Products, copy_tables
from jali.compiler.ir.sparse import Indices, SparseMap
from jali.compiler.layout.diagonals import placed

__all__ = ["Spread", "Windows", "factors", "spread", "windowed"]


@dataclass(frozen=True)
class Windows(Layout):
    """The arrays of several windows, one behind the other."""

    pitch: int = 1
    windows: int = 1

    @cached_property
    def addresses(self) -> Indices:
        """The slots of the numbers of several arrays, one array after the other."""
        starts = np.arange(self.windows)[:, None] * self.pitch
        return np.asarray((starts + super().addresses).ravel())


def windowed(target: Layout) -> tuple[Layout, int]:
    """The layout of what is added for a result that lies so, and how many windows share the
    work."""
    count = target.slots // target.period if target.ciphertexts == 1 else 1
    if count == 1:
        return target, 1
    shape, slots = target.shape, target.slots
    return Windows(shape, slots, slots, target.gap, target.grid, target.period, count), count


def factors(
    products: Products, sizes: Sequence[int], windows: int
) -> Iterator[tuple[SparseMap, SparseMap]]:
    """The maps from both arrays to the factors of every product.

    sizes: of the arrays.
    """
    tables = copy_tables(*products.shapes)
    count, size = len(tables[0]), len(products.order)
    each = -(-count // windows)
    for first in range(each):
        taken = [(p, k) for p in range(windows) if (k := p * each + first) < count]
        rows = np.concatenate([p * size + np.arange(size) for p, _ in taken])
        pair = []
        sides = ((products.left, products.gain), (products.right, 1.0))
        for (places, gain), table, length in zip(sides, tables, sizes, strict=True):
            cols = np.concatenate([places[table[k][products.order]] for _, k in taken])
            values = np.full(len(rows), gain)
            pair.append(SparseMap(rows, cols, values, (windows * size, length)))
        yield pair[0], pair[1]


@dataclass(frozen=True, eq=False)
class Spread:
    """How an array of copies is made: a map to where every number occurs first, and the rotations
    that spread it from there.

    cost: of both.
    """

    first: SparseMap
    steps: tuple[int, ...]
    cost: float


def spread(single: SparseMap, source: Layout, target: Layout, costs: LayoutCosts) -> Spread:
    """The cheapest way for a map of copies."""
    plain = Spread(single, (), costs.matrix(placed(single, source, target).counts))
    steps, chosen = _doublings(single, target)
    if not steps:
        return plain
    first = SparseMap(single.rows[chosen], single.cols[chosen], single.values[chosen], single.shape)
    cost = costs.matrix(placed(first, source, target).counts)
    cost += costs.behind * len(steps) * target.ciphertexts
    return Spread(first, steps, cost) if cost < plain.cost else plain


def _doublings(single: SparseMap, target: Layout) -> tuple[tuple[int, ...], Indices]:
    """The rotations after which the first copies are all copies, and the entries of the first ones.
    There are none if numbers are not copied a power of two of times, all at the same distances,
    which are multiples of one."""
    slots = target.addresses[single.rows]
    order = np.lexsort((slots, single.cols, slots // target.slots))
    column, ciphertext = single.cols[order], slots[order] // target.slots
    new = (column[1:] != column[:-1]) | (ciphertext[1:] != ciphertext[:-1])
    starts = np.flatnonzero(np.r_[True, new])
    width, rest = divmod(len(order), len(starts))
    none: tuple[tuple[int, ...], Indices] = ((), order)
    if rest or width < 2 or width & (width - 1) or np.any(starts != np.arange(len(starts)) * width):
        return none
    places = slots[order].reshape(-1, width)
    distances = places - places[:, :1]
    step = int(distances[0, 1])
    if np.any(distances != step * np.arange(width)):
        return none
    steps = tuple(target.slots - step * (1 << k) for k in range(width.bit_length() - 1))
    return steps, np.sort(order.reshape(-1, width)[:, 0])
