"""Layout: which slot of which ciphertext holds which number.

A ciphertext with s slots serves ``lanes`` examples at once: slot k of lane b is slot k lanes + b. A rotation by k lanes slots is
then a cyclic rotation by k of every lane. All that follows is written for one lane, with s / lanes slots.

An array whose addresses all lie below a power of two, its period, repeats with that period. One that is longer takes
several ciphertexts. Images may be spread: number (c, y, x) of an array with gap g lies where pixel (y g + c' // g, x g + c' mod g)
of plane c // g^2 of a larger grid lies, with c' = c mod g^2. A convolution with a stride s multiplies the gap by s and has then
the few diagonals of one without a stride (multiplexed packing, Lee et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.nn.graph import Graph, Node, Shape
from jali.nn.sparse import Indices, SparseMap

__all__ = ["Layout", "lay_out", "offsets"]

_GAPS = (1, 2, 4, 8)


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

    def __str__(self) -> str:
        spread = f", gap {self.gap} on {'x'.join(map(str, self.grid))}" if self.gap > 1 else ""
        repeated = f", {self.slots // self.period} times" if self.ciphertexts == 1 else ""
        return f"{self.ciphertexts} x {self.slots} slots{repeated}{spread}"


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

    If the result has the smaller period w, the product of a row and a column whose slots are d + w k apart appears in
    window k, k w slots behind its place, on diagonal d. The sum over the windows is the result. It repeats with the period w.
    """
    columns, rows = source.addresses[single.cols], target.addresses[single.rows]
    block = rows // target.slots * source.ciphertexts + columns // source.slots
    slot = rows % target.slots
    apart = (columns % source.slots - slot) % source.period
    if target.period >= source.period:
        return block, apart, slot
    return block, apart % target.period, slot + apart // target.period * target.period


def _cost(node: Node, layouts: dict[str, Layout], target: Layout) -> tuple[float, int]:
    """(Rotations, diagonals) of all matrices of a node, as a measure of its time: n diagonals take about 2 sqrt(n) rotations."""
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
            rotations, products = rotations + 2 * math.sqrt(count), products + count
        rotations += target.ciphertexts * max(0, math.log2(source.period / target.period))
    return rotations, products


def _candidates(node: Node, sources: Sequence[Layout], slots: int) -> Iterator[Layout]:
    """Layouts that the result of matrices may have: dense or spread on the grid of a source, with several periods."""
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
            sources = [layouts[name] for name in node.inputs]
            chosen[root(node.name)] = min(
                _candidates(node, sources, slots), key=lambda c: _cost(node, layouts, c)
            )
        layouts[node.name] = chosen[root(node.name)]
    nodes = tuple(node.with_attrs(layout=layouts[node.name]) for node in graph)
    return Graph(nodes, graph.outputs, "layout")
