"""Tracing of plain Python functions: they are called once with arrays that record what is done with
them.

The function takes one example of every argument. It may use NumPy's arithmetic, ``@``, sums, means,
slices, shapes, and the functions of jali.nn.scalar and NumPy of the same names. It must not branch
on its arguments, whose numbers nobody knows.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from jali._core import checks
from jali._core.axes import axes as axes_of
from jali._core.console import counted_text
from jali._core.refusals import answer_names
from jali.compiler.frontends import conditions, maxima, written_out
from jali.compiler.frontends.numpy_refusals import called, reason, replacement
from jali.compiler.ir.builder import Builder, innermost
from jali.compiler.ir.graph import Array, Graph, Node, Shape
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
from jali.errors import IndexOutOfRange, InvalidArgument, Unsupported

__all__ = ["Builder", "Traced", "innermost", "trace_function"]


class Traced:
    """An array of which only the shape is known. It records what is done with it."""

    __slots__ = ("builder", "node")

    def __init__(self, builder: Builder, node: Node) -> None:
        self.builder, self.node = builder, node

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.node.shape

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self.node.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    @property
    def is_condition(self) -> bool:
        """Whether it is made of comparisons alone, so that its numbers are 0 and 1."""
        return self.node.name in self.builder.conditions

    @property
    def _name(self) -> str | None:
        """The name of an argument, or of a part of a model. Other names say nothing to the author
        of a function: x[0] is a reshape."""
        known = isinstance(self.node.operation, Input) or self.builder.label is not None
        return self.node.name if known else None

    def _refuse(self, sentence: str, kind: type[Exception] = Unsupported) -> NoReturn:
        raise kind(f"{self._name}: {sentence}" if self._name else sentence) from None

    def _refused(self, what: str) -> NoReturn:
        self._refuse(
            f"{what} needs the numbers of an encrypted array, which nobody has while it is computed: compute "
            "both cases, and choose by numpy.where(x > 0, a, b)"
        )

    def __bool__(self) -> bool:
        self._refused("a condition")

    def __float__(self) -> float:
        self._refused("a conversion to a number")

    __int__ = __index__ = __float__

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refused(
            "a conversion to an array of NumPy, such as S @ x makes for a sparse S of SciPy (write S.toarray() @ x),"
        )

    # --- comparisons ------------------------------------------------------------------------------

    def __gt__(self, other: Any) -> Any:
        return conditions.greater(self, other)

    def __lt__(self, other: Any) -> Any:
        return conditions.greater(other, self)

    def __ge__(self, other: Any) -> Any:
        return conditions.inverted(conditions.greater(other, self))

    def __le__(self, other: Any) -> Any:
        return conditions.inverted(conditions.greater(self, other))

    def __eq__(self, other: object) -> NoReturn:
        self._refuse(
            "whether encrypted numbers are equal cannot be computed: write numpy.abs(a - b) < d with the smallest difference d that counts"
        )

    __ne__ = __eq__

    def __and__(self, other: Any) -> Any:
        return conditions.both(self, other)

    def __or__(self, other: Any) -> Any:
        return conditions.either(self, other)

    def __xor__(self, other: Any) -> Any:
        return conditions.exactly_one(self, other)

    def __invert__(self) -> Any:
        return conditions.inverted(self)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    # --- arithmetic -------------------------------------------------------------------------------

    def _add(self, name: str, operation: Operation, *inputs: Traced) -> Traced:
        builder = innermost(inputs)
        node = builder.add(name, operation, [builder.lifted(x) for x in inputs])
        if isinstance(operation, Move) and all(x.is_condition for x in inputs):
            builder.conditions.add(node.name)
        return Traced(builder, node)

    def _scaled(self, factor: Any, offset: Any) -> Traced:
        factor, offset = np.asarray(factor, np.float64), np.asarray(offset, np.float64)
        shape = _joint(self.shape, factor.shape, offset.shape)
        return self._add("scale", Scale(factor=factor, offset=offset), self._broadcast(shape))

    def _broadcast(self, shape: Shape) -> Traced:
        if shape == self.shape:
            return self
        return self._add("broadcast", Broadcast(shape=tuple(shape)), self)

    def _together(self, other: Traced) -> tuple[Traced, Traced]:
        shape = _joint(self.shape, other.shape)
        return self._broadcast(shape), other._broadcast(shape)

    def _sum_with(self, other: Any, sign: float) -> Traced:
        if self.is_condition:
            conditions.refuse_sums(self, other, "a sum of conditions", "a | b, or a * 1.0 + b")
        if isinstance(other, Traced):
            pair = self._together(other)
            return self._add("add", Combine(weights=(1.0, sign)), *pair)
        return self._scaled(1.0, sign * _numbers(other))

    def __add__(self, other: Any) -> Traced:
        return self._sum_with(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Traced:
        return self._sum_with(other, -1.0)

    def __rsub__(self, other: Any) -> Traced:
        return self._scaled(-1.0, _numbers(other))

    def __neg__(self) -> Traced:
        return self._scaled(-1.0, 0.0)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return self._function("absolute")

    def __mod__(self, other: Any) -> NoReturn:
        self._refuse(f"a remainder: {replacement('mod')}")

    __rmod__ = __divmod__ = __rdivmod__ = __mod__

    def __floordiv__(self, other: Any) -> NoReturn:
        self._refuse(f"a division to whole numbers: {replacement('floor_divide')}")

    __rfloordiv__ = __floordiv__

    def __mul__(self, other: Any) -> Traced:
        if self.is_condition and conditions.is_condition(other):
            return conditions.both(self, other)  # type: ignore[no-any-return]
        return self._times(other)

    def _times(self, other: Any) -> Traced:
        """The product of numbers."""
        if isinstance(other, Traced):
            if self.builder.functions:
                one: Traced | None = written_out.activation(self, other)
                if one is not None:
                    return one
            return self._add("multiply", Multiply(), *self._together(other))
        if hasattr(other, "times"):  # numbers that differ between the iterations of a loop
            times: Traced = other.times(self)
            return times
        numbers = _numbers(other)
        if not numbers.any():  # nobody has to encrypt what everybody knows
            return np.zeros(_joint(self.shape, numbers.shape))  # type: ignore[return-value]
        return self._scaled(numbers, 0.0)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Traced:
        if isinstance(other, Traced):
            found: Traced | None = written_out.shares(self, other)
            return self * other._inverse() if found is None else found
        if hasattr(other, "times"):
            quotient: Traced = self * (1 / other)
            return quotient
        divisor = _numbers(other)
        if not np.all(divisor):
            raise InvalidArgument("division by zero: divide by other numbers")
        return self._scaled(1 / divisor, 0.0)

    def __rtruediv__(self, other: Any) -> Traced:
        return self._inverse() * _numbers(other)

    def _inverse(self) -> Traced:
        """1 / self; of a square root, the inverse square root, which is one function."""
        if isinstance(function := self.node.operation, Function) and function.function == "sqrt":
            inner = Traced(self.builder, self.builder.nodes[self.node.inputs[0]])
            return inner._function("inverse_sqrt")
        return self._function("inverse")

    def __pow__(self, exponent: Any) -> Traced:
        if isinstance(exponent, Traced):
            raise Unsupported(
                "an exponent is a clear number: for x ** y of positive x write numpy.exp(y * numpy.log(x))"
            )
        named = {0.5: "sqrt", -0.5: "inverse_sqrt"}
        if isinstance(exponent, (int, float, np.integer, np.floating)):
            if exponent == -1:
                return self._inverse()
            if exponent in named:
                return self._function(named[float(exponent)])
        power = checks.whole(exponent, 1, "the exponent is a whole number from 1, -1, 0.5 or -0.5")
        if power < 3:
            return self * self if power == 2 else self
        return self.polynomial([0.0] * power + [1.0])

    def __rpow__(self, base: Any) -> Traced:
        raise Unsupported(
            "a clear number to the power of an encrypted array: write numpy.exp(numpy.log(base) * x) for base ** x"
        )

    def __matmul__(self, other: Any) -> Traced:
        """Products of encrypted matrices are one operation; those with vectors are sums of products
        of broadcast arrays."""
        if not isinstance(other, Traced):
            matrix = _numbers(other)
            if matrix.ndim not in (1, 2):
                raise Unsupported(
                    "a product with a clear array of more than two axes: take its matrices one by one"
                )
            y = self._add("matmul", Dense(weight=np.atleast_2d(matrix.T), bias=None), self)
            return y if matrix.ndim == 2 else y.reshape(self.shape[:-1])
        if min(self.ndim, other.ndim) > 1 and min(self.shape[-2], other.shape[-1]) > 1:
            if self.shape[-1] != other.shape[-2]:
                raise InvalidArgument(f"a product of arrays of {self.shape} and {other.shape}")
            outer = _joint(self.shape[:-2], other.shape[:-2])
            pair = [x._broadcast((*outer, *x.shape[-2:])) for x in (self, other)]
            return self._add("matmul", Matmul(), *pair)
        return self._times_vectors(other)

    def _times_vectors(self, other: Traced) -> Traced:
        """numpy.matmul if one of both matrices has a single row or column, or is a vector."""
        a = self if self.ndim > 1 else self.reshape(1, *self.shape)
        b = other if other.ndim > 1 else other.reshape(*other.shape, 1)
        if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-2]:
            raise InvalidArgument(f"a product of arrays of {self.shape} and {other.shape}")
        columns = b.transpose((*range(b.ndim - 2), b.ndim - 1, b.ndim - 2))
        rows = a.reshape(*a.shape[:-1], 1, a.shape[-1])
        columns = columns.reshape(*columns.shape[:-2], 1, *columns.shape[-2:])
        product: Traced = (rows * columns).sum(-1)
        ends = (
            *(a.shape[-2:-1] if self.ndim > 1 else ()),
            *(b.shape[-1:] if other.ndim > 1 else ()),
        )
        return product.reshape(*product.shape[:-2], *ends)

    def __rmatmul__(self, other: Any) -> Traced:
        matrix = np.asarray(checks.dense(other))
        if self.ndim == 1:
            return self.__matmul__(matrix.T)
        if self.ndim != 2 or matrix.ndim not in (1, 2):
            raise Unsupported(
                "a product with an array of more than two axes: take its matrices one by one"
            )
        return (self.T @ matrix.T).T

    def dot(self, other: Any) -> Traced:
        """The same as ``@``, and the product with a number."""
        single = np.ndim(other) == 0 and not isinstance(other, Traced)
        result: Traced = self * other if single else self @ other
        return result

    def _function(self, name: str) -> Traced:
        self.builder.functions.add(name)
        return self._add(name, Function(function=name), self)

    def polynomial(self, coefficients: Sequence[float]) -> Traced:
        """The polynomial with these coefficients, the constant first, of every number."""
        exact = tuple(float(c) for c in coefficients)
        return self._add("polynomial", PowerSeries(coefficients=exact), self)

    # --- shapes -----------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Traced:
        """As NumPy's."""
        wanted = shape[0] if len(shape) == 1 and np.ndim(shape[0]) else shape
        try:
            full = np.empty(self.shape, np.bool_).reshape(wanted).shape
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"{self._name or 'an array'} has the shape {self.shape}, which is not that of {checks.shown(wanted)} in another form"
            ) from None
        return self if full == self.shape else self._add("reshape", Reshape(shape=full), self)

    def ravel(self) -> Traced:
        """As NumPy's."""
        return self.reshape(-1)

    flatten = ravel

    def transpose(self, *axes: Any) -> Traced:
        """As NumPy's."""
        order = (
            axes[0] if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])) else axes or None
        )
        order = range(self.ndim)[::-1] if order is None else order
        order = axes_of(tuple(order), self.ndim)
        if len(order) != self.ndim:
            raise InvalidArgument(
                f"{self._name or 'an array'} has {counted_text(self.ndim, 'axis', 'axes')}: name each of them once"
            )
        return self._add("transpose", Transpose(axes=order), self)

    @property
    def T(self) -> Traced:
        """The transpose."""
        return self.transpose()

    def sum(self, axis: Any = None, keepdims: bool = False) -> Traced:
        """As NumPy's."""
        return self._summed(axis, keepdims, mean=False)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Traced:
        """As NumPy's."""
        return self._summed(axis, keepdims, mean=True)

    def _summed(self, axis: Any, keepdims: bool, mean: bool) -> Traced:
        whole = axes_of(axis, self.ndim)
        count = math.prod([self.shape[a] for a in whole])
        factor = 1.0 / count if mean else 1.0
        name = "mean" if mean else "sum"
        return self._add(name, Sum(axes=whole, factor=factor, keepdims=bool(keepdims)), self)

    def max(self, axis: Any = None, keepdims: bool = False) -> Traced:
        """As NumPy's: a ReLU for each number but one, in as many rounds as its count has bits."""
        found: Traced = maxima.largest(self, axis, keepdims)
        return found

    def min(self, axis: Any = None, keepdims: bool = False) -> Traced:
        """As NumPy's, see max."""
        found: Traced = maxima.smallest(self, axis, keepdims)
        return found

    def __getitem__(self, key: Any) -> Traced:
        """Whole numbers, slices, None and ``...``, as in NumPy."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(
            not (k is None or k is Ellipsis or isinstance(k, (int, np.integer, slice)))
            for k in keys
        ):
            self._refuse(
                f"an encrypted array is indexed by whole numbers and slices, not {checks.shown(key)}"
            )
        try:
            shape = np.empty(self.shape, np.bool_)[tuple(keys)].shape
        except (IndexError, ValueError) as error:
            self._refuse(str(error), IndexOutOfRange)
        named = sum(k is not None and k is not Ellipsis for k in keys)
        rest = [slice(None)] * (self.ndim - named)
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
        full = [k for k in [*keys[:at], *rest, *keys[at + 1 :]] if k is not None]
        start, stop, step = [], [], []
        for k, n in zip(full, self.shape, strict=True):
            chosen = range(n)[k] if isinstance(k, slice) else range(n)[k : k + 1 or None]
            start.append(chosen.start)
            stop.append(chosen.stop if chosen.stop >= 0 else None)
            step.append(chosen.step)
        cut = self._add(
            "slice", Slice(start=tuple(start), stop=tuple(stop), step=tuple(step)), self
        )
        return cut.reshape(shape)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self._refuse(
            "an array that is traced never changes: write a new one, such as numpy.concatenate((a, x[n:])), or keep * x + b with numbers 0 and 1 in keep"
        )

    # --- NumPy ------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or known is None:
            self._unknown(ufunc, "" if method == "__call__" else method)
        if kwargs:
            self._refuse(f"{called(ufunc)} with {', '.join(kwargs)}: leave this out")
        return known(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            self._unknown(function)
        try:
            bound = inspect.signature(known).bind(*args, **kwargs)
        except TypeError as error:
            takes = ", ".join(inspect.signature(known).parameters)
            raise Unsupported(
                f"{called(function)} of an encrypted array takes {takes}: {error}"
            ) from None
        return known(*bound.args, **bound.kwargs)

    def _unknown(self, function: Callable[..., Any], method: str = "") -> NoReturn:
        name = f"{called(function)}.{method}" if method else called(function)
        self._refuse(
            f"{name} cannot be compiled: {reason(function, method)}. There are {', '.join(sorted(_UFUNCS))}, "
            f"{', '.join(sorted(f.__name__ for f in _FUNCTIONS))}, and the functions of jali.nn.scalar"
        )


def _joint(*shapes: Shape) -> Shape:
    """The shape to which NumPy joins these. Raises InvalidArgument if it joins them to none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = " and ".join(str(shape) for shape in shapes if shape)
        raise InvalidArgument(
            f"arrays of the shapes {given} do not fit each other: make their last axes equal, or one of them 1"
        ) from None


def _numbers(value: Any) -> Array:
    array = np.asarray(checks.dense(value))
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"a traced function computes with real numbers, not {checks.shown(value)}"
        )
    return array.astype(np.float64)


_MOST_SHIFT = 1 << 62


def _named(name: str) -> Callable[[Traced], Traced]:
    return lambda x: x._function(name)


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Traced:
    if not all(isinstance(x, Traced) for x in arrays):
        raise Unsupported(
            "numpy.concatenate of encrypted and clear arrays: add the clear numbers instead"
        )
    first: Traced = arrays[0]
    return first._add("concat", Concat(axis=axes_of(axis, first.ndim)[0]), *arrays)


def _roll(a: Traced, shift: int, axis: int | None = None) -> Traced:
    if axis is None and a.ndim != 1:
        return _roll(a.ravel(), shift).reshape(a.shape)
    (place,) = axes_of(0 if axis is None else axis, a.ndim)
    size = a.shape[place]
    start = (size - checks.whole(shift, -_MOST_SHIFT, "shift must be a whole number")) % size
    if not start:
        return a
    index = (slice(None),) * place
    parts = [a[(*index, slice(start, None))], a[(*index, slice(None, start))]]
    return _concatenate(parts, place)


def _stack(arrays: Sequence[Any], axis: int = 0) -> Traced:
    (place,) = axes_of(axis, arrays[0].ndim + 1)
    return _concatenate([x.reshape(*x.shape[:place], 1, *x.shape[place:]) for x in arrays], place)


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b if isinstance(a, Traced) else b + a,
    "subtract": lambda a, b: a - b if isinstance(a, Traced) else b.__rsub__(a),
    "multiply": lambda a, b: a * b if isinstance(a, Traced) else b * a,
    "divide": lambda a, b: a / b if isinstance(a, Traced) else b.__rtruediv__(a),
    "matmul": lambda a, b: a @ b if isinstance(a, Traced) else b.__rmatmul__(a),
    "negative": operator.neg,
    "positive": operator.pos,
    "power": lambda a, b: a**b if isinstance(a, Traced) else b.__rpow__(a),
    "square": lambda x: x * x,
    "maximum": maxima.maximum,
    "minimum": lambda a, b: -maxima.maximum(-a, -b),
    "absolute": _named("absolute"),
    "exp": _named("exp"),
    "log": _named("log"),
    "sqrt": _named("sqrt"),
    "tanh": _named("tanh"),
    "reciprocal": lambda x: x._inverse(),
    "sign": _named("sign"),
    "greater": conditions.greater,
    "less": lambda a, b: conditions.greater(b, a),
    "greater_equal": lambda a, b: conditions.inverted(conditions.greater(b, a)),
    "less_equal": lambda a, b: conditions.inverted(conditions.greater(a, b)),
    "logical_and": conditions.both,
    "logical_or": conditions.either,
    "logical_xor": conditions.exactly_one,
    "logical_not": conditions.inverted,
    "bitwise_and": conditions.both,
    "bitwise_or": conditions.either,
    "bitwise_xor": conditions.exactly_one,
    "invert": conditions.inverted,
}

_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: lambda a, axis=None, keepdims=False: a.sum(axis, keepdims),
    np.mean: lambda a, axis=None, keepdims=False: a.mean(axis, keepdims),
    np.max: lambda a, axis=None, keepdims=False: a.max(axis, keepdims),
    np.min: lambda a, axis=None, keepdims=False: a.min(axis, keepdims),
    np.reshape: lambda a, shape: a.reshape(shape),
    np.ravel: lambda a: a.ravel(),
    np.transpose: lambda a, axes=None: a.transpose(axes),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.roll: _roll,
    np.dot: lambda a, b: a.dot(b) if isinstance(a, Traced) else b.__rmatmul__(a),
    np.broadcast_to: lambda array, shape: array._broadcast(tuple(shape)),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.where: conditions.chosen,
}


answer_names(Traced)


def trace_function(function: Callable[..., Any], examples: Sequence[Array]) -> Graph:
    """The graph of a function of arrays like these, one example each."""
    builder = Builder()
    try:
        names = [p.name for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        names = []
    names += [f"x{k}" for k in range(len(names), len(examples))]
    arguments = [
        Traced(builder, builder.add(name, Input(shape=x.shape), []))
        for name, x in zip(names, examples, strict=False)
    ]
    try:
        results = function(*arguments)
    except TypeError as error:
        raise InvalidArgument(
            f"the function cannot be called with arrays that record what is done with them: {error}. It takes one array for each array of "
            "the example, and computes with NumPy and jali.nn.scalar"
        ) from error
    found = list(results) if isinstance(results, (tuple, list)) else [results]
    for result in found:
        if isinstance(result, dict):
            raise InvalidArgument(
                "the function returned a dict: return an array, or several in a tuple"
            )
        if not isinstance(result, Traced):
            raise InvalidArgument(
                f"the function returned {checks.shown(result)}, which does not depend on its arguments: return arrays that do"
            )
    return builder.graph([result.node for result in found])
