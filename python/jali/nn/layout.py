"""Layout: which slot of which ciphertext holds which number.

A ciphertext with s slots serves ``lanes`` examples at once: slot k of lane b is slot k lanes + b. A rotation by k lanes slots is
then a cyclic rotation by k of every lane. All that follows is written for one lane, with s / lanes slots.

An array whose addresses all lie below a power of two, its period, repeats with that period. One that is longer takes
several ciphertexts. Images may be spread: number (c, y, x) of an array with gap g lies where pixel (y g + c' // g, x g + c' mod g)
of plane c // g^2 of a larger grid lies, with c' = c mod g^2. A convolution with a stride s multiplies the gap by s and has then
the few diagonals of one without a stride (multiplexed packing, Lee et al. 2022).

The client can send numbers in any order, and several times. If an input has a single use, which is a matrix of few entries in each row, every
window of its ciphertexts holds what the rows take as one of their entries (Gathered). The product then takes one diagonal for each
ciphertext, and the rotations that add the windows.

The result of a matrix may lie in shares: every copy of what it takes computes some of the rows (Shared). The slots between them then
hold parts of sums, which the next matrix ignores. No function may see them, because nobody knows how large they are; products may.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from jali.nn.graph import Graph, Node, Shape
from jali.nn.sparse import Indices, SparseMap

__all__ = ["Gathered", "Layout", "Shared", "lay_out", "offsets"]

_GAPS = (1, 2, 4, 8)
_MOST_GATHERED = 4  # ciphertexts that an input may take if it is gathered


@dataclass(frozen=True)
class Layout:
    """Where the numbers of an array lie.

    slots: of one lane. period: a power of two, after which an array of one ciphertext repeats. grid: the sizes of the grid on which
    all axes but the first lie.
    """

    shape: Shape
    slots: int
    period: int
    gap: int = 1
    grid: Shape = ()

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the flattened array, ciphertext times slots + slot."""
        channels, sizes = (self.shape[0], self.shape[1:]) if self.shape else (1, ())
        if not sizes:
            return np.arange(channels)
        cell = self.gap ** len(sizes)
        channel = np.arange(channels).reshape(-1, *(1,) * len(sizes))
        address, inside = channel // cell, channel % cell
        for axis, (size, pitch) in enumerate(zip(sizes, self.grid, strict=True)):
            place = np.arange(size).reshape(-1, *(1,) * (len(sizes) - axis - 1))
            fine = inside // self.gap ** (len(sizes) - axis - 1) % self.gap
            address = address * pitch + place * self.gap + fine
        return np.asarray(address.ravel())

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts the array takes."""
        return int(self.addresses.max()) // self.slots + 1

    @property
    def window(self) -> int:
        """How far apart lie the sums of which the result of a matrix is the sum."""
        return self.period

    def __str__(self) -> str:
        spread = f", gap {self.gap} on {'x'.join(map(str, self.grid))}" if self.gap > 1 else ""
        repeated = f", {self.slots // self.period} times" if self.ciphertexts == 1 else ""
        return f"{self.ciphertexts} x {self.slots} slots{repeated}{spread}"


@dataclass(frozen=True, eq=False)
class Gathered(Layout):
    """An input in the order in which a matrix takes it.

    table: (ciphertexts, slots), the index of the number that lies there, or -1 for zero.
    """

    table: Indices = field(default_factory=lambda: np.zeros((1, 1), np.int64))

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts the array takes."""
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gathered) and np.array_equal(self.table, other.table)

    def __str__(self) -> str:
        return f"{self.ciphertexts} x {self.slots} slots, gathered"


@dataclass(frozen=True)
class Shared(Layout):
    """Numbers in shares of ``rows``, each at the beginning of a block. The slots between them may hold anything.

    block: the period of what the matrix takes.
    """

    block: int = 1
    rows: int = 1

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the flattened array, its slot."""
        share, row = np.divmod(np.arange(int(np.prod(self.shape, dtype=np.int64))), self.rows)
        return np.asarray(share * self.block + row)

    @property
    def window(self) -> int:
        """The rows of a share, rounded up to a power of two."""
        return 1 << (self.rows - 1).bit_length()

    def __str__(self) -> str:
        return f"1 x {self.slots} slots, {self.rows} in each block of {self.block}"


def _ranks(single: SparseMap) -> Indices:
    """For each entry of a map, how many entries of its row lie before it."""
    return np.arange(single.count) - np.searchsorted(single.rows, single.rows)


def _gathered(node: Node, single: SparseMap, target: Layout) -> Gathered | None:
    """The input as its only matrix takes it; None if that takes too many ciphertexts."""
    windows = target.slots // target.window
    ciphertexts = -(-int(_ranks(single).max(initial=0) + 1) // windows)
    if isinstance(target, Shared) or target.ciphertexts > 1 or ciphertexts > _MOST_GATHERED:
        return None
    table = np.full((ciphertexts, target.slots), -1)
    layout = Gathered(node.shape, target.slots, target.slots, table=table)
    block, _, slot = offsets(single, layout, target)
    table[block, slot] = single.cols
    return layout


def _fitted(
    shape: Shape, slots: int, gap: int = 1, grid: Shape | None = None, least: int = 1
) -> Layout:
    """The layout with the smallest period, but none below `least`."""
    layout = Layout(shape, slots, slots, gap, shape[1:] if grid is None else grid)
    needed = max(int(layout.addresses.max()) + 1, least)
    return Layout(shape, slots, min(slots, 1 << (needed - 1).bit_length()), gap, layout.grid)


def offsets(single: SparseMap, source: Layout, target: Layout) -> tuple[Indices, Indices, Indices]:
    """For each entry of a map: the block (ciphertext of the result times ciphertexts of the source + that of the source), the
    diagonal, and the slot of the result in which the product appears.

    If the result has a window w smaller than the source's period, the product of a row and a column whose slots are d + w k apart appears in
    window k, k w slots behind its place, on diagonal d. The sum over the windows is the result.
    """
    rows = target.addresses[single.rows]
    if isinstance(
        source, Gathered
    ):  # entry k of a row lies in window k, counted over the ciphertexts
        ciphertext, window = np.divmod(_ranks(single), target.slots // target.window)
        return ciphertext, np.zeros_like(rows), rows + window * target.window
    columns = source.addresses[single.cols]
    block = rows // target.slots * source.ciphertexts + columns // source.slots
    slot = rows % target.slots
    apart = (columns % source.slots - slot) % source.period
    if target.window >= source.period:
        return block, apart, slot
    return block, apart % target.window, slot + apart // target.window * target.window


def _cost(node: Node, layouts: dict[str, Layout], target: Layout) -> tuple[float, int]:
    """(Rotations, diagonals) of all matrices of a node, as a measure of its time.

    n diagonals take about 2 (sqrt(n) - 1) rotations. Each further ciphertext that the client has to send counts as one.
    """
    rotations, products = 0.0, 0
    for name, single in zip(node.inputs, node.attrs["maps"], strict=True):
        source = layouts[name]
        if source == target and np.array_equal(single.rows, single.cols):
            continue
        block, diagonal, _ = offsets(single, source, target)
        period = max(source.period, target.period)
        seen = np.bincount(block * period + diagonal) > 0
        for part in np.split(seen, np.arange(period, len(seen), period)):
            count = int(part.sum())
            rotations, products = rotations + 2 * (max(1.0, math.sqrt(count)) - 1), products + count
        if isinstance(source, Gathered):
            rotations += source.ciphertexts - 1
        rotations += target.ciphertexts * max(0, math.log2(source.period / target.window))
    return rotations, products


def _candidates(
    node: Node, sources: Sequence[Layout], slots: int, *, shared: bool
) -> Iterator[Layout]:
    """Layouts that the result of matrices may have: dense or spread on the grid of a source, with several periods; and in shares,
    if that is possible here."""
    least = _fitted(node.shape, slots)
    forms = {least}
    for source in sources:
        if len(node.shape) > 1 and len(source.grid) == len(node.shape) - 1:
            for gap in _GAPS:
                if all(n * gap <= m for n, m in zip(node.shape[1:], source.grid, strict=True)):
                    forms.add(_fitted(node.shape, slots, gap, source.grid))
    periods = {1 << k for k in range(slots.bit_length())}
    largest = max(source.period for source in sources)
    for form in sorted(forms, key=lambda f: (f.gap, f.grid, f.period)):
        yield form
        for period in sorted(p for p in periods if form.period < p <= largest):
            yield Layout(form.shape, slots, period, form.gap, form.grid)
    copies = slots // largest
    alike = {(s.period, s.ciphertexts) for s in sources} == {(largest, 1)}
    if shared and alike and copies > 1:
        rows = -(-node.size // copies)
        if 1 << (rows - 1).bit_length() < largest:
            yield Shared(node.shape, slots, slots, block=largest, rows=rows)


def _taken(node: Node, graph: Graph) -> Node | None:
    """The input that nothing but these matrices uses, and that may therefore lie as they take it."""
    source = graph[node.inputs[0]]
    alone = len(node.inputs) == len(graph.users(source.name)) == 1
    return source if alone and source.op == "input" and source.name not in graph.outputs else None


def lay_out(graph: Graph, slots: int) -> Graph:
    """The graph; every node has the attribute layout, for ciphertexts of which a lane has this many slots.

    Functions and products keep the layout of what they take, and factors of a product have the same one. For every other array, the
    cheapest layout is taken, in the order of computation.
    """
    group = {node.name: node.name for node in graph}  # arrays that must lie alike, by one of them

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for node in graph:
        if node.op in ("approximated", "multiply"):
            for name in node.inputs:
                group[root(name)] = root(node.name)
    chosen: dict[str, Layout] = {}
    for node in graph.inputs:
        chosen.setdefault(root(node.name), _fitted(node.shape, slots))
    layouts: dict[str, Layout] = {}
    for node in graph:
        if node.op == "affine" and root(node.name) not in chosen:
            taken = _taken(node, graph)
            best: tuple[tuple[float, int], Layout, dict[str, Layout]] | None = None
            alike = [n for n in graph if root(n.name) == root(node.name)]
            shared = all(
                n.op in ("affine", "multiply") and n.name not in graph.outputs for n in alike
            )
            sources = [layouts[name] for name in node.inputs]
            for target in _candidates(node, sources, slots, shared=shared):
                for source in [
                    None,
                    *([_gathered(taken, node.attrs["maps"][0], target)] if taken else []),
                ]:
                    given = layouts if source is None else {**layouts, node.inputs[0]: source}
                    cost = _cost(node, given, target)
                    if best is None or cost < best[0]:
                        best = cost, target, given
            assert best is not None
            _, chosen[root(node.name)], layouts = best
        layouts[node.name] = chosen[root(node.name)]
    nodes = tuple(node.with_attrs(layout=layouts[node.name]) for node in graph)
    return Graph(nodes, graph.outputs, "layout")
