"""Products of encrypted matrices: sums of products of arrays, each a copy of parts of one operand.

y[o, i, j] = sum_k a[o, i, k] b[o, k, j] is a sum over k of two arrays of the shape of y: column k of a, repeated along j, and row k of b, repeated
along i. Each of them takes one level: few diagonals, a mask, put a number where it occurs first, and rotations spread it from there, the
distance doubled with each. The products of ciphertexts are added before they are relinearised and rescaled, which happens once.

If y takes only a part of the slots, its windows share the work: window p takes a part of all k, and the sum over the windows follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jali.errors import InvalidArgument
from jali.nn.diagonals import placed
from jali.nn.graph import Array, Graph, Node, Shape
from jali.nn.layout import Layout
from jali.nn.operation import Attrs, Op
from jali.nn.sparse import Indices, SparseMap
from jali.nn.weights import Weights

__all__ = [
    "Matmul",
    "Operand",
    "Products",
    "Spread",
    "factors",
    "operand",
    "ordered",
    "spread",
    "windowed",
]


class Matmul(Op):
    """numpy.matmul of arrays (*outer, n, k) and (*outer, k, m) with the same outer axes."""

    count = 2

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        a, b = shapes
        if len(a) < 2 or len(a) != len(b) or a[:-2] != b[:-2] or a[-1] != b[-2]:
            raise InvalidArgument(f"it multiplies matrices of the shapes {a} and {b}")
        return (*a[:-1], b[-1])

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        return np.asarray(np.matmul(*values))


class Products(Op):
    """A product of matrices behind folding: gain times the matrices (*outer, n, k) and (*outer, k, m) whose numbers are those of two arrays.

    Attributes: shapes, of both matrices; left and right, for each number of a matrix its place in the array; order, for each number
    of the result its place in the product; gain; and shape, of the result.
    """

    count = 2

    def shape(self, shapes: Sequence[Shape], attrs: Attrs) -> Shape:
        return tuple(attrs["shape"])

    def compute(self, values: Sequence[Array], attrs: Attrs) -> Array:
        # An array x[:, index] does not lie in the order of its axes, and NumPy multiplies such matrices without BLAS.
        a, b = (
            np.take(x.reshape(len(x), -1), attrs[side], axis=1).reshape(-1, *shape)
            for x, side, shape in zip(values, ("left", "right"), attrs["shapes"], strict=True)
        )
        y = np.take(np.matmul(a, b).reshape(len(a), -1), attrs["order"], axis=1)
        return np.asarray(attrs["gain"] * y).reshape(-1, *attrs["shape"])


# --- folding ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Operand:
    """An array that holds the numbers of a matrix, each times a factor: the number of the matrix that is flattened lies at ``places``.

    base: the array before the moves that lead to the matrix. It is a node of its own, so that moves never become part of a large matrix.
    """

    name: str
    places: Indices
    factor: float
    base: str


def operand(graph: Graph, node: Node, k: int) -> Operand:
    """Operand k of a node ``matmul``.

    If numbers only move between an array and the matrix, the copies may be taken from where the numbers were before any of the moves. The choice
    is what takes the fewest diagonals: of the copies, and of the moves up to there.
    """
    copies = _copies(*(graph[name].shape for name in node.inputs))[k]
    node = graph[node.inputs[k]]
    places, factor = np.arange(node.size), 1.0
    passed = [(node, places, factor)]
    while not _along(graph, node) and (found := _moved(node)) is not None:
        index, scale = found
        places, factor, node = index[places], factor * scale, graph[node.inputs[0]]
        passed.append((node, places, factor))

    def cost(at: Indices) -> float:
        apart = len(np.unique(places - at))  # of the moves, in arrays without gaps
        return len(copies) * _diagonals(at[copies[0]]) + (2 * math.sqrt(apart) if apart > 1 else 0)

    chosen, places, factor = min(reversed(passed), key=lambda one: cost(one[1]))
    return Operand(chosen.name, places, factor, node.name)


def _moved(node: Node) -> tuple[Indices, float] | None:
    """Where every number of a node comes from in its input, and its factor; None if more happens to it."""
    if node.op == "reshape":
        return np.arange(node.size), 1.0
    if node.op == "transpose":
        axes = node.attrs["axes"]
        inner = [0] * len(axes)
        for place, axis in enumerate(axes):
            inner[axis] = node.shape[place]
        return np.arange(node.size).reshape(inner).transpose(axes).ravel(), 1.0
    if node.op == "scale":
        factor, offset = node.attrs["factor"], node.attrs["offset"]
        if not np.any(offset) and not np.ptp(factor) and np.ravel(factor)[0] > 0:
            return np.arange(node.size), float(np.ravel(factor)[0])
    return None


def _along(graph: Graph, node: Node) -> bool:
    """Whether it is a matrix along another axis than the last one: transposed, multiplied, and transposed back. What it takes lies as the result does."""
    if node.op != "transpose" or graph[node.inputs[0]].op != "dense":
        return False
    before = graph[graph[node.inputs[0]].inputs[0]]
    axes = list(node.attrs["axes"])
    return before.op == "transpose" and [axes[a] for a in before.attrs["axes"]] == sorted(axes)


def _goes_back(graph: Graph, node: Node) -> bool:
    """Whether it is the first transposition of a matrix along another axis."""
    dense = graph.users(node.name)
    behind = graph.users(dense[0].name) if len(dense) == 1 else []
    return len(behind) == 1 and _along(graph, behind[0])


def _diagonals(copies: Indices) -> int:
    """How many diagonals put every number where it occurs first, in arrays without gaps."""
    source, first = np.unique(copies, return_index=True)
    return len(np.unique(source - first))


def ordered(graph: Graph, node: Node) -> tuple[Node, Indices]:
    """The last of the nodes that only move the numbers of a product, each the only user of the one before, and where each of its numbers lies in
    the product."""
    order = np.arange(node.size)
    while True:
        users = graph.users(node.name)
        if len(users) != 1 or node.name in graph.outputs:
            return node, order
        if users[0].op not in ("reshape", "transpose") or _goes_back(graph, users[0]):
            return node, order
        found = _moved(users[0])
        assert found is not None
        node, order = users[0], order[found[0]]


# --- lowering -----------------------------------------------------------------------------------------


def _copies(a: Shape, b: Shape) -> tuple[Indices, Indices]:
    """(k, size of the product): for each k and each number of the product, which numbers of both matrices are multiplied."""
    outer = int(np.prod(a[:-2], dtype=np.int64))
    (n, count), m = a[-2:], b[-1]
    o, i, j = np.ogrid[:outer, :n, :m]
    k = np.arange(count).reshape(-1, 1, 1, 1)
    shape = (count, outer, n, m)
    left = np.broadcast_to((o * n + i) * count + k, shape).reshape(count, -1)
    right = np.broadcast_to((o * count + k) * m + j, shape).reshape(count, -1)
    return left, right


@dataclass(frozen=True)
class Windows(Layout):
    """The arrays of several windows, one behind the other."""

    pitch: int = 1
    windows: int = 1

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the first array, then of the second .., its slot."""
        starts = np.arange(self.windows)[:, None] * self.pitch
        return np.asarray((starts + super().addresses).ravel())


def windowed(target: Layout) -> tuple[Layout, int]:
    """The layout of what is added for a result that lies so, and how many windows share the work."""
    count = target.slots // target.period if target.ciphertexts == 1 else 1
    if count == 1:
        return target, 1
    shape, slots = target.shape, target.slots
    return Windows(shape, slots, slots, target.gap, target.grid, target.period, count), count


def factors(
    attrs: Mapping[str, Any], sizes: Sequence[int], windows: int
) -> Iterator[tuple[SparseMap, SparseMap]]:
    """The maps from both arrays to the factors of every product. sizes: of the arrays."""
    tables = _copies(*attrs["shapes"])
    count, size = len(tables[0]), len(attrs["order"])
    each = -(-count // windows)
    for first in range(each):
        taken = [(p, k) for p in range(windows) if (k := p * each + first) < count]
        rows = np.concatenate([p * size + np.arange(size) for p, _ in taken])
        pair = []
        for side, table, length in zip(("left", "right"), tables, sizes, strict=True):
            cols = np.concatenate([attrs[side][table[k][attrs["order"]]] for _, k in taken])
            values = np.full(len(rows), attrs["gain"] if side == "left" else 1.0)
            pair.append(SparseMap(rows, cols, values, (windows * size, length)))
        yield pair[0], pair[1]


@dataclass(frozen=True, eq=False)
class Spread:
    """How an array of copies is made: a map to where every number occurs first, and the rotations that spread it from there. cost: of both."""

    first: SparseMap
    steps: tuple[int, ...]
    cost: float


def spread(single: SparseMap, source: Layout, target: Layout, weights: Weights) -> Spread:
    """The cheapest way for a map of copies."""
    plain = Spread(single, (), weights.matrix(placed(single, source, target).counts))
    steps, chosen = _doublings(single, target)
    if not steps:
        return plain
    first = SparseMap(single.rows[chosen], single.cols[chosen], single.values[chosen], single.shape)
    cost = weights.matrix(placed(first, source, target).counts)
    cost += weights.behind * len(steps) * target.ciphertexts
    return Spread(first, steps, cost) if cost < plain.cost else plain


def _doublings(single: SparseMap, target: Layout) -> tuple[tuple[int, ...], Indices]:
    """The rotations after which the first copies are all copies, and the entries of the first ones. There are none if numbers are not copied a power of
    two of times, all at the same distances, which are multiples of one."""
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
