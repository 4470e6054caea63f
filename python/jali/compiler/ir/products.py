"""The operations that multiply encrypted matrices, and where folding finds the numbers of their
operands.

jali.compiler.layout.product_factors has how they are computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import Dense, Reshape, Scale, Transpose
from jali.compiler.ir.operation import Operation
from jali.compiler.ir.sparse import Indices
from jali.errors import InvalidArgument

__all__ = [
    "Matmul",
    "MatrixProduct",
    "Operand",
    "Products",
    "copy_tables",
    "operand",
    "ordered",
]


@dataclass(frozen=True, eq=False)
class Matmul(Operation):
    """numpy.matmul of arrays (*outer, n, k) and (*outer, k, m) with the same outer axes."""

    name = "matmul"
    arity = 2

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        a, b = shapes
        if len(a) < 2 or len(a) != len(b) or a[:-2] != b[:-2] or a[-1] != b[-2]:
            raise InvalidArgument(f"it multiplies matrices of the shapes {a} and {b}")
        return (*a[:-1], b[-1])

    def compute(self, values: Sequence[Array]) -> Array:
        return np.asarray(np.matmul(*values))


@dataclass(frozen=True, eq=False)
class MatrixProduct(Operation):
    """gain times the product of the matrices (*outer, n, k) and (*outer, k, m) whose numbers are
    those of two arrays.

    shapes: of both matrices.
    """

    name = "products"
    arity = 2
    shapes: tuple[Shape, Shape]
    gain: float

    @property
    def contracted(self) -> int:
        """Of how many products each number of the result is the sum: k."""
        return self.shapes[0][-1]

    def depth(self, k: int) -> int:
        return 2


@dataclass(frozen=True, eq=False)
class Products(MatrixProduct):
    """A product of matrices behind folding.

    left, right: for each number of a matrix its place in the array.
    order: for each number of the result its place in the product.
    shape: of the result.
    """

    left: Indices
    right: Indices
    order: Indices
    shape: Shape

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return tuple(self.shape)

    def compute(self, values: Sequence[Array]) -> Array:
        # An array x[:, index] does not lie in the order of its axes, and NumPy multiplies such
        # matrices without BLAS.
        a, b = (
            np.take(x.reshape(len(x), -1), side, axis=1).reshape(-1, *shape)
            for x, side, shape in zip(values, (self.left, self.right), self.shapes, strict=True)
        )
        y = np.take(np.matmul(a, b).reshape(len(a), -1), self.order, axis=1)
        return np.asarray(self.gain * y).reshape(-1, *self.shape)


@dataclass(frozen=True, eq=False)
class Operand:
    """An array that holds the numbers of a matrix, each times a factor: the number of the matrix
    that is flattened lies at ``places``.

    base: the array before the moves that lead to the matrix. It is a node of its own, so that moves
        never become part of a large matrix.
    """

    name: str
    places: Indices
    factor: float
    base: str


def operand(graph: Graph, node: Node, k: int) -> Operand:
    """Operand k of a node ``matmul``.

    If numbers only move between an array and the matrix, the copies may be taken from where the
    numbers were before any of the moves. The choice is what takes the fewest diagonals: of the
    copies, and of the moves up to there.
    """
    copies = copy_tables(*(graph[name].shape for name in node.inputs))[k]
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
    """Where every number of a node comes from in its input, and its factor; None if more happens to
    it."""
    match node.operation:
        case Reshape():
            return np.arange(node.size), 1.0
        case Transpose(axes=axes):
            inner = [0] * len(axes)
            for place, axis in enumerate(axes):
                inner[axis] = node.shape[place]
            return np.arange(node.size).reshape(inner).transpose(axes).ravel(), 1.0
        case Scale(factor=factor, offset=offset):
            if not np.any(offset) and not np.ptp(factor) and np.ravel(factor)[0] > 0:
                return np.arange(node.size), float(np.ravel(factor)[0])
    return None


def _along(graph: Graph, node: Node) -> bool:
    """Whether it is a matrix along another axis than the last one: transposed, multiplied, and
    transposed back. What it takes lies as the result does."""
    dense = graph[node.inputs[0]] if node.inputs else node
    if not isinstance(node.operation, Transpose) or not isinstance(dense.operation, Dense):
        return False
    before, axes = graph[dense.inputs[0]].operation, node.operation.axes
    return isinstance(before, Transpose) and [axes[a] for a in before.axes] == sorted(axes)


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
    """The last of the nodes that only move the numbers of a product, each the only user of the one
    before, and where each of its numbers lies in the product."""
    order = np.arange(node.size)
    while True:
        users = graph.users(node.name)
        if len(users) != 1 or node.name in graph.outputs:
            return node, order
        if not isinstance(users[0].operation, Reshape | Transpose) or _goes_back(graph, users[0]):
            return node, order
        found = _moved(users[0])
        assert found is not None
        node, order = users[0], order[found[0]]


def copy_tables(a: Shape, b: Shape) -> tuple[Indices, Indices]:
    """(k, size of the product): for each k and each number of the product, which numbers of both
    matrices are multiplied."""
    outer = math.prod(a[:-2])
    (n, count), m = a[-2:], b[-1]
    o, i, j = np.ogrid[:outer, :n, :m]
    k = np.arange(count).reshape(-1, 1, 1, 1)
    shape = (count, outer, n, m)
    left = np.broadcast_to((o * n + i) * count + k, shape).reshape(count, -1)
    right = np.broadcast_to((o * count + k) * m + j, shape).reshape(count, -1)
    return left, right
