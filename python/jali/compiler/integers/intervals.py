"""Which graphs compute whole numbers of whole numbers, and between which numbers every array of
one lies: interval arithmetic on Python's integers, which never rounds and never overflows.

Arrays of bounds are NumPy's arrays of Python's integers, (1, *shape).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import (
    Broadcast,
    Combine,
    Concat,
    Dense,
    Move,
    Reshape,
    Scale,
    Slice,
    Sum,
    Transpose,
)
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.products import Matmul
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries
from jali.errors import RangeExceeded

__all__ = ["EXACT", "MOST_DEGREE", "Bounds", "Whole", "bounds", "why_not", "work"]

Whole = npt.NDArray[Any]  # of Python's integers

EXACT = 1 << 53  # graphs hold floats, which are every whole number below it
MOST_DEGREE = 256
_LARGEST = 1 << 512  # of a number on the way
_MOST_TRIED = 1 << 12  # numbers at which a polynomial is computed for its range

_MOVES = (Broadcast, Concat, Reshape, Slice, Transpose)


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest that each number of an array can be."""

    low: Whole
    high: Whole


# --- which graphs -------------------------------------------------------------------------------


def why_not(graph: Graph) -> str | None:
    """Why a graph does not compute whole numbers exactly, with what to write instead; None if it
    does."""
    for node in graph:
        reason = _why_not(node)
        if reason is not None:
            return f"{node.name} {reason}"
    return None


def _why_not(node: Node) -> str | None:
    match node.operation:
        case Input() | Multiply() | Matmul() | Move():
            known = isinstance(node.operation, (Input, Multiply, Matmul, *_MOVES))
            return None if known else f"is {node.op}, which is compiled for CKKS alone"
        case Function(function=name):
            return f"is {name}, whose results are no whole numbers: let the client compute it of the decrypted numbers"
        case PowerSeries(coefficients=numbers):
            if len(numbers) > MOST_DEGREE + 1:
                return f"is a polynomial of degree {len(numbers) - 1}: use one of degree {MOST_DEGREE} at most"
            return _fractions(numbers)
        case Sum(factor=factor):
            if factor != 1.0:
                return "divides: take the sum, and divide the decrypted number"
            return None
        case Scale() | Dense() | Combine():
            for numbers in node.operation.arguments().values():
                if numbers is not None and (reason := _fractions(numbers)):
                    return reason
            return None
    return f"is {node.op}, which is compiled for CKKS alone"


def _fractions(numbers: Any) -> str | None:
    array = np.asarray(numbers, np.float64)
    if not np.array_equal(array, np.rint(array)):
        return "computes with fractions: round its numbers by np.rint(scale * numbers), and divide the decrypted results by the scale"
    if np.any(np.abs(array) >= EXACT):
        return "computes with a number of 2**53 or more: use smaller ones"
    return None


def work(graph: Graph) -> int:
    """How many sums and products of single numbers a graph takes, at most."""
    total = 0
    for node in graph:
        match node.operation:
            case Dense(weight=weight):
                total += node.size * weight.shape[1]
            case Matmul():
                total += node.size * graph[node.inputs[0]].shape[-1]
            case PowerSeries(coefficients=numbers):
                total += 2 * node.size * len(numbers)
            case _:
                total += sum((graph[name].size for name in node.inputs), node.size)
    return total


# --- ranges -------------------------------------------------------------------------------------


def whole(numbers: Any) -> Whole:
    """An array of Python's integers with the numbers of an array that holds whole ones."""
    array = np.asarray(numbers)
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = [int(x) for x in array.reshape(-1).tolist()]
    return found


def bounds(graph: Graph, inputs: Sequence[Bounds]) -> dict[str, Bounds]:
    """Between which numbers every array of a graph lies for which why_not is None.

    inputs: of the graph's inputs.

    Raises RangeExceeded if some number on the way may have more than 512 bits.
    """
    given, found = iter(inputs), dict[str, Bounds]()
    for node in graph:
        if isinstance(node.operation, Input):
            mine = next(given)
        else:
            kind = Move if isinstance(node.operation, Move) else type(node.operation)
            mine = _RULES[kind](node, [found[name] for name in node.inputs])
        largest = max(abs(int(end)) for side in (mine.low, mine.high) for end in side.flat)
        if largest > _LARGEST:
            raise RangeExceeded(
                f"{node.name} may reach numbers of {largest.bit_length()} bits: use smaller numbers, by input_range=, or lower powers"
            )
        found[node.name] = mine
    return found


def _ends(*corners: Whole) -> Bounds:
    """Between the least and the largest of arrays, number by number."""
    low = high = corners[0]
    for one in corners[1:]:
        low, high = np.minimum(low, one), np.maximum(high, one)
    return Bounds(low, high)


def _products(a: Bounds, b: Bounds) -> Bounds:
    return _ends(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)


def _square(a: Bounds) -> Bounds:
    squares = _ends(a.low * a.low, a.high * a.high)
    around = np.asarray((a.low <= 0) & (a.high >= 0), bool)
    return Bounds(np.where(around, 0, squares.low), squares.high)


def _scale(node: Node, x: list[Bounds]) -> Bounds:
    operation = Scale.of(node)
    factor, offset = whole(operation.factor), whole(operation.offset)
    ends = _ends(x[0].low * factor, x[0].high * factor)
    return Bounds(ends.low + offset, ends.high + offset)


def _dense(node: Node, x: list[Bounds]) -> Bounds:
    operation = Dense.of(node)
    weight = whole(operation.weight).T
    bias = 0 if operation.bias is None else whole(operation.bias)
    above, below = np.maximum(weight, 0), np.minimum(weight, 0)
    low = x[0].low @ above + x[0].high @ below + bias
    return Bounds(low, x[0].high @ above + x[0].low @ below + bias)


def _combine(node: Node, x: list[Bounds]) -> Bounds:
    low: Any = 0
    high: Any = 0
    for weight, one in zip(Combine.of(node).weights, x, strict=True):
        ends = _ends(one.low * int(weight), one.high * int(weight))
        low, high = low + ends.low, high + ends.high
    return Bounds(low, high)


def _sum(node: Node, x: list[Bounds]) -> Bounds:
    axes, keep = tuple(a + 1 for a in Sum.of(node).axes), Sum.of(node).keepdims
    return Bounds(*(side.sum(axis=axes, keepdims=keep) for side in (x[0].low, x[0].high)))


def _move(node: Node, x: list[Bounds]) -> Bounds:
    operation = Move.of(node)
    low, high = ([getattr(one, side) for one in x] for side in ("low", "high"))
    return Bounds(np.asarray(operation.moved(low)), np.asarray(operation.moved(high)))


def _multiply(node: Node, x: list[Bounds]) -> Bounds:
    return _square(x[0]) if node.inputs[0] == node.inputs[1] else _products(*x)


def _matmul(node: Node, x: list[Bounds]) -> Bounds:
    a, b = x
    rows = Bounds(a.low[..., :, :, None], a.high[..., :, :, None])
    columns = Bounds(b.low[..., None, :, :], b.high[..., None, :, :])
    each = _products(rows, columns)
    return Bounds(each.low.sum(-2), each.high.sum(-2))


def _polynomial(node: Node, x: list[Bounds]) -> Bounds:
    coefficients = [int(c) for c in PowerSeries.of(node).coefficients]
    low, high = np.empty(x[0].low.shape, object), np.empty(x[0].low.shape, object)
    known: dict[tuple[int, int], tuple[int, int]] = {}
    pairs = zip(x[0].low.flat, x[0].high.flat, strict=True)
    for k, ends in enumerate(pairs):
        if ends not in known:
            known[ends] = _range_of(coefficients, *ends)
        low.flat[k], high.flat[k] = known[ends]
    return Bounds(low, high)


def _range_of(coefficients: list[int], low: int, high: int) -> tuple[int, int]:
    """Between which numbers a polynomial's values lie at the whole numbers of an interval: exactly,
    of few numbers, and otherwise by its terms."""
    if high - low <= _MOST_TRIED:
        values = [_value(coefficients, x) for x in range(low, high + 1)]
        return min(values), max(values)
    least = most = coefficients[0]
    for k, c in enumerate(coefficients[1:], 1):
        ends = [c * low**k, c * high**k]
        if k % 2 == 0 and low < 0 < high:
            ends.append(0)
        least, most = least + min(ends), most + max(ends)
    return least, most


def _value(coefficients: list[int], x: int) -> int:
    total = 0
    for c in reversed(coefficients):
        total = total * x + c
    return total


_RULES: Mapping[type[Operation], Callable[[Node, list[Bounds]], Bounds]] = {
    Scale: _scale,
    Dense: _dense,
    Combine: _combine,
    Sum: _sum,
    Move: _move,
    Multiply: _multiply,
    Matmul: _matmul,
    PowerSeries: _polynomial,
}
