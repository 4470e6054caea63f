"""All operations of traced graphs by name, and what makes and checks their nodes.

Values carry the batch as their first axis. Shapes and arguments do not know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jali._core.console import counted_text
from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import (
    Broadcast,
    Combine,
    Concat,
    Dense,
    Pad,
    Reshape,
    Scale,
    Slice,
    Sum,
    Take,
    Transpose,
)
from jali.compiler.ir.loop_graph import ByStep, Loop
from jali.compiler.ir.operation import Elementwise, Input, Linear, Operation, by_name
from jali.compiler.ir.products import Matmul
from jali.compiler.ir.scalar import AROUND_ZERO, FUNCTIONS, HOMOGENEOUS
from jali.compiler.ir.windows import AveragePool, Convolution
from jali.errors import InvalidArgument

__all__ = [
    "OPERATIONS",
    "Function",
    "Multiply",
    "PowerSeries",
    "entries",
    "function_of",
    "is_clamp",
    "made",
    "may_be_inactive",
    "verify",
]


@dataclass(frozen=True, eq=False)
class Multiply(Elementwise):
    """The product of two arrays of one shape, number by number."""

    name = "multiply"
    arity = 2

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if shapes[0] != shapes[1]:
            raise InvalidArgument(f"it multiplies arrays of {shapes[0]} and {shapes[1]}")
        return shapes[0]

    def compute(self, values: Sequence[Array]) -> Array:
        return values[0] * values[1]

    def depth(self, k: int) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class Function(Elementwise):
    """A named function of every number.

    function: a name in jali.nn.scalar.FUNCTIONS.
    """

    name = "function"
    function: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if self.function not in FUNCTIONS:
            raise InvalidArgument(f"no function is named {self.function!r}")
        return shapes[0]

    def compute(self, values: Sequence[Array]) -> Array:
        with np.errstate(all="ignore"):  # calibration reports numbers that are not finite
            return FUNCTIONS[self.function](values[0])


@dataclass(frozen=True, eq=False)
class PowerSeries(Elementwise):
    """A polynomial of every number.

    coefficients: the constant first.
    """

    name = "polynomial"
    coefficients: tuple[float, ...]

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(self.coefficients) < 2:
            raise InvalidArgument("a polynomial needs at least two coefficients")
        return shapes[0]

    def compute(self, values: Sequence[Array]) -> Array:
        coefficients = np.asarray(self.coefficients)
        return np.asarray(np.polynomial.polynomial.polyval(values[0], coefficients))


def function_of(node: Node) -> str:
    """The name of the function that a node is; "" for other operations."""
    return node.operation.function if isinstance(node.operation, Function) else ""


def is_clamp(node: Node) -> bool:
    """Whether it is a ReLU or a modulus."""
    return function_of(node) in HOMOGENEOUS


def may_be_inactive(node: Node) -> bool:
    """Whether it is a clamp, a comparison or a sign: what does nothing on some intervals."""
    return function_of(node) in AROUND_ZERO


#: Every operation of a traced graph, by name.
OPERATIONS = by_name(
    Input,
    Dense,
    Convolution,
    AveragePool,
    Scale,
    Combine,
    Reshape,
    Transpose,
    Slice,
    Concat,
    Broadcast,
    Pad,
    Take,
    Sum,
    Multiply,
    Matmul,
    Function,
    PowerSeries,
    Loop,
    ByStep,
)


def made(name: str, operation: Operation, inputs: Sequence[Node]) -> Node:
    """A node of a traced graph. Raises InvalidArgument, which names it, for shapes and numbers that
    do not fit."""
    op, arity = operation.name, operation.arity
    if len(inputs) != arity and (arity is not None or not inputs):
        raise InvalidArgument(f"{name}: {op} does not take {counted_text(len(inputs), 'array')}")
    for key, value in operation.arguments().items():
        if isinstance(value, np.ndarray) and not np.all(np.isfinite(value)):
            raise InvalidArgument(
                f"{name}: its {key} holds NaN or infinity: train the model again, or replace the number"
            )
    try:
        shape = operation.result_shape([node.shape for node in inputs])
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from None
    if 0 in shape:
        raise InvalidArgument(f"{name}: its result has the shape {shape}, without a number")
    return Node(name, operation, tuple(node.name for node in inputs), shape)


def entries(graph: Graph) -> int:
    """At most so many entries the matrices of a traced graph have together. None is made."""
    total = 0
    for node in graph:
        match node.operation:
            case Linear() as linear:
                total += linear.entries([graph[name].shape for name in node.inputs])
            case Loop(body=body):
                total += entries(body)
    return total


def verify(graph: Graph) -> Graph:
    """The graph, if every node's operation takes its inputs and gives its shape. Raises
    InvalidArgument otherwise."""
    for node in graph:
        if isinstance(node.operation, Loop):
            verify(node.operation.body)
        again = made(node.name, node.operation, [graph[name] for name in node.inputs])
        if again.shape != node.shape:
            raise InvalidArgument(
                f"{node.name}: its shape is {again.shape}, and the graph says {node.shape}"
            )
    return graph
