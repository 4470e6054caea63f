"""What the operations of a graph do on encrypted arrays modulo T.

Every number is a residue on the way, so that nothing is refused for its range. What the results
are is known from exact intervals (jali.compiler.integers.intervals).

There are two ways to lay numbers. By columns, each number of an example is a vector of its own, in
whose slots the examples lie: sums and products with numbers in the clear take no level and no key.
By rows, the numbers of an example lie beside each other in slots, so that one example takes few
ciphertexts; sums and matrices take rotations, and products with arrays in the clear take levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.array import power
from jali.compiler.integers.intervals import whole
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import Combine, Dense, Move, Scale, Sum
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.products import Matmul
from jali.compiler.ir.traced_ops import Multiply, PowerSeries

__all__ = ["LAYOUTS", "Columns", "Rows", "computed"]

#: An array of one or several examples, with the axis of the examples first: an encrypted array or,
#: by columns, an array of NumPy (1, *shape) whose elements are vectors over examples, encrypted or
#: in the clear, and numbers.
Value = Any


class Arithmetic:
    """The operations that do the same for both ways to lay numbers.

    modulus: T; numbers in the clear are taken nearest to 0 modulo T. None computes in 64 bits.
    """

    def __init__(self, modulus: int | None) -> None:
        self.modulus = modulus

    def clear(self, numbers: Any) -> npt.NDArray[Any]:
        """Numbers in the clear, nearest to 0 modulo T."""
        found = whole(numbers)
        if self.modulus is None:
            return found
        half = self.modulus // 2
        return np.asarray((found + half) % self.modulus - half)

    def combine(self, operation: Combine, x: list[Value]) -> Value:
        """The sum of arrays, each times a number."""
        total: Any = 0
        for weight, one in zip(self.clear(operation.weights), x, strict=True):
            total = self.plus(total, self.times(one, int(weight)))
        return total

    def multiplied(self, x: Value, y: Value) -> Value:
        """The product of two arrays, number by number."""
        return x * y

    def multiply(self, operation: Multiply, x: list[Value]) -> Value:
        """The product, number by number."""
        return self.multiplied(*x)

    def matmul(self, operation: Matmul, x: list[Value]) -> Value:
        """The product of matrices: the sums of products of rows and columns."""
        return self.multiplied(x[0][..., :, :, None], x[1][..., None, :, :]).sum(-2)

    def sum(self, operation: Sum, x: list[Value]) -> Value:
        """The sum along axes."""
        axes = tuple(a + 1 for a in operation.axes)
        return x[0].sum(axes, keepdims=operation.keepdims) if axes else x[0]

    def move(self, operation: Move, x: list[Value]) -> Value:
        """Numbers in another order, or repeated."""
        return operation.moved(x)

    def polynomial(self, operation: PowerSeries, x: list[Value]) -> Value:
        """The sum of powers, each times a number."""
        coefficients = self.clear(operation.coefficients).tolist()
        known, total = {1: x[0]}, self.times(x[0], coefficients[1])
        for k, c in enumerate(coefficients[2:], 2):
            if c:
                total = self.plus(total, self.times(power(known, k), c))
        return self.plus(total, coefficients[0])

    def times(self, x: Value, factor: Any) -> Value:
        """The product with a number or an array (of x's shape without examples) in the clear."""
        raise NotImplementedError

    def plus(self, x: Value, y: Any) -> Value:
        """The sum with an array, or with a number or an array in the clear."""
        raise NotImplementedError

    def scale(self, operation: Scale, x: list[Value]) -> Value:
        """factor x + offset."""
        factor, offset = self.clear(operation.factor), self.clear(operation.offset)
        return self.plus(self.times(x[0], factor), offset)

    def dense(self, operation: Dense, x: list[Value]) -> Value:
        """weight x + bias."""
        raise NotImplementedError


def _product(x: Any, factor: int) -> Any:
    return 0 if factor == 0 else x if factor == 1 else x * factor


def _total(x: Any, y: Any) -> Any:
    return x if isinstance(y, int) and y == 0 else y if isinstance(x, int) and x == 0 else x + y


def _multiplied(x: Any, y: Any) -> Any:
    return _product(x, y) if isinstance(y, int) else _product(y, x) if isinstance(x, int) else x * y


_PRODUCT, _TOTAL = np.frompyfunc(_product, 2, 1), np.frompyfunc(_total, 2, 1)
_MULTIPLIED = np.frompyfunc(_multiplied, 2, 1)


class Columns(Arithmetic):
    """Each number of an example is a vector of its own."""

    def times(self, x: Value, factor: Any) -> Value:
        return _PRODUCT(x, factor)

    def plus(self, x: Value, y: Any) -> Value:
        return _TOTAL(x, y)

    def multiplied(self, x: Value, y: Value) -> Value:
        return _MULTIPLIED(x, y)

    def dense(self, operation: Dense, x: list[Value]) -> Value:
        weight = self.clear(operation.weight)
        m, n = weight.shape
        rows = x[0].reshape(-1, n)
        out = np.empty((len(rows), m), object)
        for r, row in enumerate(rows):
            for j, weights in enumerate(weight):
                total: Any = 0
                for number, factor in zip(row, weights, strict=True):
                    total = _total(total, _product(number, factor))
                out[r, j] = total
        y = out.reshape(*x[0].shape[:-1], m)
        return y if operation.bias is None else self.plus(y, self.clear(operation.bias))


class Rows(Arithmetic):
    """The numbers of an example lie beside each other."""

    def times(self, x: Value, factor: Any) -> Value:
        numbers = np.asarray(factor)
        same = numbers.size and (numbers == numbers.reshape(-1)[0]).all()
        if not same:
            return x * numbers.astype(np.int64)
        number = int(numbers.reshape(-1)[0])
        return x if number == 1 else x * number

    def plus(self, x: Value, y: Any) -> Value:
        if isinstance(x, int) and x == 0:
            return y
        if isinstance(y, (int, np.ndarray)):
            numbers = np.asarray(y)
            return x + numbers.astype(np.int64) if (numbers != 0).any() else x
        return x + y

    def dense(self, operation: Dense, x: list[Value]) -> Value:
        weight = self.clear(operation.weight).astype(np.int64)
        if len(weight) == 1:
            y = (x[0] * weight[0]).sum(-1, keepdims=True)
        else:
            y = (x[0][..., None, :] * weight).sum(-1)
        return y if operation.bias is None else self.plus(y, self.clear(operation.bias))


LAYOUTS: Mapping[str, type[Arithmetic]] = {"columns": Columns, "rows": Rows}

#: The method of Arithmetic for every operation.
_METHODS: Mapping[type[Operation], str] = {
    Scale: "scale",
    Dense: "dense",
    Combine: "combine",
    Sum: "sum",
    Move: "move",
    Multiply: "multiply",
    Matmul: "matmul",
    PowerSeries: "polynomial",
}


def computed(
    graph: Graph,
    arithmetic: Arithmetic,
    inputs: Sequence[Value],
    stop: Callable[[], object] | None = None,
) -> list[Value]:
    """The outputs of a graph.

    inputs: one value for each input of the graph.
    stop: called before each operation; if it raises, the work ends.
    """
    given, values = iter(inputs), dict[str, Value]()
    last = {name: node.name for node in graph for name in node.inputs}
    for node in graph:
        if stop is not None:
            stop()
        values[node.name] = (
            next(given)
            if isinstance(node.operation, Input)
            else _of(arithmetic, node, [values[name] for name in node.inputs])
        )
        for name in set(node.inputs):
            if last[name] == node.name and name not in graph.outputs:
                del values[name]  # its memory is free
    return [values[name] for name in graph.outputs]


def _of(arithmetic: Arithmetic, node: Node, sources: list[Value]) -> Value:
    kind = Move if isinstance(node.operation, Move) else type(node.operation)
    method: Any = getattr(arithmetic, _METHODS[kind])
    return method(node.operation, sources)
