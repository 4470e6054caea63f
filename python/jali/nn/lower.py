"""Lowering: matrices between arrays become diagonals between ciphertexts, and biases become vectors of slots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jali.nn.graph import Array, Graph, Node
from jali.nn.layout import Gathered, Layout, Shared, offsets
from jali.nn.sparse import Indices, SparseMap

__all__ = ["Block", "Term", "lower", "packed", "simulate", "unpacked"]


@dataclass(frozen=True, eq=False)
class Block:
    """The diagonals from one ciphertext to another: slot s of the result gets values x[s + diagonal].

    Entries are kept; the vectors are made when they are needed. They repeat with a period.
    """

    diagonals: Indices
    slots: Indices
    values: Array
    period: int

    def vectors(self, slots: int, lanes: int) -> dict[int, Array]:
        """The diagonals for ciphertexts of slots x lanes, by the rotation that they take."""
        found, index = np.unique(self.diagonals, return_inverse=True)
        table = np.zeros((len(found), self.period))
        table[index, self.slots] = self.values
        full = np.repeat(np.tile(table, slots // self.period), lanes, axis=1)
        return {int(d) * lanes: full[k] for k, d in enumerate(found)}


@dataclass(frozen=True, eq=False)
class Term:
    """What one source adds to a result: the same number times all of it, or blocks of diagonals and sums of windows.

    factor: None if there are blocks. blocks: by (ciphertext of the result, of the source). sums: rotations, in slots of a lane; after
    each, y becomes y + rotated y.
    """

    factor: float | None
    blocks: dict[tuple[int, int], Block]
    sums: tuple[int, ...]

    def bounds(self, to: int, slots: int) -> list[Array]:
        """How large the slots of ciphertext `to` can be for numbers in [-1, 1]: before the sums of windows, and after each."""
        total = np.zeros(slots)
        for (row, _), block in self.blocks.items():
            if row == to:
                one = np.zeros(block.period)
                np.add.at(one, block.slots, np.abs(block.values))
                total += np.tile(one, slots // block.period)
        found = [total]
        for step in self.sums:
            found.append(found[-1] + np.roll(found[-1], -step))
        return found

    @property
    def is_free(self) -> bool:
        """Whether it takes no level."""
        return self.factor == 1.0

    @property
    def diagonals(self) -> int:
        """Products with diagonals."""
        return sum(len(np.unique(block.diagonals)) for block in self.blocks.values())

    def __str__(self) -> str:
        if self.factor is not None:
            return f"times {self.factor:.4g}"
        return f"{self.diagonals} diagonals in {len(self.blocks)} blocks, {len(self.sums)} sums"


def lower(graph: Graph) -> Graph:
    """The graph on ciphertexts: nodes ``transform`` (attributes terms, one for each source, and bias) in the place of ``affine``."""
    layouts: dict[str, Layout] = {node.name: node.attrs["layout"] for node in graph}
    nodes: list[Node] = []
    most: dict[str, float] = {}  # what no slot of a node exceeds, where slots may hold anything
    for node in graph:
        if node.op != "affine":
            if node.op == "multiply" and isinstance(layouts[node.name], Shared):
                most[node.name] = math.prod(most[name] for name in node.inputs)
                node = node.with_attrs(most=most[node.name])
            nodes.append(node)
            continue
        attrs = {k: v for k, v in node.attrs.items() if k not in ("maps", "shape")}
        attrs["terms"] = tuple(
            _term(single, layouts[name], layouts[node.name])
            for name, single in zip(node.inputs, node.attrs["maps"], strict=True)
        )
        attrs["bias"] = packed(layouts[node.name], node.attrs["bias"][None])[0]
        if isinstance(layouts[node.name], Shared):
            sources = [most.get(name, 1.0) for name in node.inputs]
            most[node.name] = _most(attrs["terms"], sources, attrs["bias"][0])
            attrs["most"] = most[node.name]
        nodes.append(Node(node.name, "transform", node.inputs, node.shape, attrs))
    return Graph(tuple(nodes), graph.outputs, "lower")


def _most(terms: Sequence[Term], sources: Sequence[float], bias: Array) -> float:
    """What no slot of a result exceeds, for numbers in [-1, 1] in the sources and anything up to `sources` between them."""
    total = np.abs(bias)
    for term, source in zip(terms, sources, strict=True):
        total = total + abs(term.factor or 0.0) * source + term.bounds(0, len(bias))[-1]
    return max(1.0, float(total.max()))


def _term(single: SparseMap, source: Layout, target: Layout) -> Term:
    same = source == target and single.count == single.shape[0] == single.shape[1]
    if same and np.array_equal(single.rows, single.cols) and len(np.unique(single.values)) == 1:
        return Term(float(single.values[0]), {}, ())
    block, diagonal, slot = offsets(single, source, target)
    period = max(source.period, target.period)
    blocks = {}
    for index in np.unique(block):
        mine = block == index
        pair = (int(index) // source.ciphertexts, int(index) % source.ciphertexts)
        blocks[pair] = Block(diagonal[mine], slot[mine], single.values[mine], period)
    sums, step = [], target.window
    while step < source.period:
        sums.append(step)
        step *= 2
    return Term(None, blocks, tuple(sums))


def packed(layout: Layout, values: Array) -> Array:
    """Examples (batch, size) as the slots of one lane, (batch, ciphertexts, slots). Zeros lie in the slots that hold no number."""
    if isinstance(layout, Gathered):
        return np.where(layout.table >= 0, values[:, layout.table], 0.0)
    flat = np.zeros((len(values), layout.ciphertexts * layout.slots))
    for start in range(0, layout.slots if layout.ciphertexts == 1 else 1, layout.period):
        flat[:, start + layout.addresses] = values
    return flat.reshape(len(values), layout.ciphertexts, layout.slots)


def unpacked(layout: Layout, slots: Array) -> Array:
    """The numbers (batch, size) of the slots (batch, ciphertexts, slots) of a lane."""
    return slots.reshape(len(slots), -1)[:, layout.addresses]


def simulate(graph: Graph, inputs: Sequence[Array]) -> dict[str, Array]:
    """The slots (batch, ciphertexts, slots) of every node of a lowered graph, for packed inputs, in the clear."""
    given, values = iter(inputs), dict[str, Array]()
    for node in graph:
        sources = [values[name] for name in node.inputs]
        if node.op == "input":
            values[node.name] = next(given)
        elif node.op == "multiply":
            values[node.name] = sources[0] * sources[1]
        elif node.op == "approximated":
            values[node.name] = node.attrs["by"](sources[0])
        else:
            terms = zip(node.attrs["terms"], sources, strict=True)
            total = sum((_applied(term, x, node) for term, x in terms), start=np.zeros(()))
            values[node.name] = total + node.attrs["bias"]
    return values


def _applied(term: Term, x: Array, node: Node) -> Array:
    layout: Layout = node.attrs["layout"]
    if term.factor is not None:
        return term.factor * x
    y = np.zeros((len(x), layout.ciphertexts, layout.slots))
    for (to, source), block in term.blocks.items():
        for d, vector in block.vectors(layout.slots, 1).items():
            y[:, to] += vector * np.roll(x[:, source], -d, axis=1)
    for step in term.sums:
        y = y + np.roll(y, -step, axis=2)
    return y
