"""Steps of clients as the readers of models make them: arrays and values, moves, arithmetic, and
what works along an axis.

The first axis of every value is the batch, and stays it: what works along it, or moves it, is
refused, as it would mix the examples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.client_values import Clear, constant, step
from jali.compiler.frontends.replacements import ALONG_BATCH
from jali.errors import Unsupported

__all__ = [
    "LONG",
    "Given",
    "add",
    "axis_of",
    "both",
    "cast_to",
    "check_beside",
    "clamped",
    "expanded",
    "function",
    "hard_sigmoid",
    "joined",
    "known_array",
    "known_numbers",
    "leaky_relu",
    "like",
    "looked_up",
    "multiply",
    "part_of",
    "parts_of",
    "place_of",
    "power",
    "reduced",
    "reshaped",
    "subtract",
    "top",
    "transposed",
    "value_of",
]

#: The largest whole number of 64 bits that files keep.
LONG = 1 << 53

Given = Clear | np.ndarray[Any, Any] | None  # a value, an array of the model, or what is left out


# --- what operations are given --------------------------------------------------------------------


def value_of(given: Given) -> Clear:
    """A value, or an array of the model as one."""
    if given is None:
        raise Unsupported("an input is left out")
    return given if isinstance(given, Clear) else constant(given)


def known_array(given: Given, what: str) -> Any:
    """An array that must be one of the model."""
    if given is None or isinstance(given, Clear):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return np.asarray(given)


def known_numbers(given: Given, what: str) -> list[int]:
    """Whole numbers that must be some of the model."""
    return [int(n) for n in known_array(given, what).ravel()]


def axis_of(axis: int, rank: int) -> int:
    """An axis that is not the batch."""
    if not -rank <= axis < rank or axis % rank == 0:
        raise Unsupported(ALONG_BATCH)
    return axis % rank


def check_beside(values: Sequence[Clear]) -> None:
    """Raises Unsupported if broadcasting would pair the batch of one array with another axis."""
    varying = {x.ndim for x in values if not x.is_constant}
    rank = max(varying, default=0)
    if len(varying) > 1:
        raise Unsupported("it joins arrays of different ranks, which pairs the batch with an axis")
    for x in values:
        if x.is_constant and (x.ndim > rank or (x.ndim == rank and x.shape[:1] not in ((), (1,)))):
            raise Unsupported("a constant that differs between the examples of a batch")


# --- moves ----------------------------------------------------------------------------------------


def reshaped(x: Clear, shape: Sequence[int]) -> Clear:
    """The same numbers in another shape."""
    if math.prod(shape) != math.prod(x.shape):
        raise Unsupported(f"a reshape of {x.shape} to {tuple(shape)}")
    return x if tuple(shape) == x.shape else step("reshape", [x], {"shape": tuple(shape)})


def transposed(x: Clear, order: Sequence[int]) -> Clear:
    """The axes in another order, of which the batch stays the first."""
    if order[0] != 0:
        raise Unsupported(ALONG_BATCH)
    return step("transpose", [x], {"axes": tuple(order)})


def expanded(x: Clear, shape: Sequence[int]) -> Clear:
    """The numbers repeated along axes of one number, to a shape of as many axes."""
    if len(shape) != x.ndim:
        raise Unsupported("an expansion that gives the array axes before the batch")
    return x if tuple(shape) == x.shape else step("expand", [x], {"shape": tuple(shape)})


def part_of(x: Clear, axis: int, start: int | None, stop: int | None, by: int) -> Clear:
    """A part of an axis: ends beyond the axis are its ends, as in NumPy."""
    n = x.shape[axis]
    low, high, _ = slice(start, stop, by).indices(n)
    last = None if by < 0 and high < 0 else high
    return step("slice", [x], {"axis": axis, "start": low, "stop": last, "step": by})


def parts_of(x: Clear, axis: int, sizes: Sequence[int]) -> list[Clear]:
    """An axis cut into parts of these sizes."""
    ends = itertools.accumulate(sizes, initial=0)
    return [part_of(x, axis, low, high, 1) for low, high in itertools.pairwise(ends)]


def joined(values: Sequence[Clear], axis: int) -> Clear:
    """Arrays one after the other along an axis."""
    if any(x.is_constant and x.shape[:1] != (1,) for x in values):
        raise Unsupported("a constant that differs between the examples of a batch")
    return step("concat", values, {"axis": axis_of(axis, values[0].ndim)})


def looked_up(table: Clear, places: Clear, axis: int, named: Given) -> Clear:
    """The rows of a table of the model along its first axis, or the numbers at places of the model
    along another axis of a value.

    named: the places as they were given.
    """
    if table.is_constant:
        if axis % table.ndim:
            raise Unsupported("a look-up along another axis of a table than its first one")
        return step("gather", [table, places], {"axis": 0}, largest=table.largest)
    if not places.is_constant:
        raise Unsupported("a look-up in an array that depends on the input")
    rows, numbers = table.shape[axis_of(axis, table.ndim)], np.asarray(named)
    if numbers.size and not (numbers.min() >= -rows and numbers.max() < rows):
        raise Unsupported(f"a look-up beyond the {rows} numbers of an axis")
    return step("gather", [table, places], {"axis": axis % table.ndim}, largest=table.largest)


# --- numbers --------------------------------------------------------------------------------------


def _arithmetic(op: str) -> Callable[[Clear, Clear], Clear]:
    def apply(a: Clear, b: Clear) -> Clear:
        check_beside([a, b])
        if a.kind != "whole":
            return step(op, [a, b], {"largest": 1})
        most = min(a.largest, b.largest)
        if not most:
            raise Unsupported(
                "sums and products of whole numbers of fewer than 32 bits, which wrap around: convert them to 64 bits before"
            )
        return step(op, [a, b], {"largest": most})

    return apply


add, subtract, multiply = (_arithmetic(op) for op in ("add", "subtract", "multiply"))


def both(op: str, *, turned: bool = False, negated: bool = False) -> Callable[..., Clear]:
    """An operation on two values.

    turned: whether it takes them in the other order.
    negated: whether its flags are inverted.
    """

    def apply(a: Clear, b: Clear) -> Clear:
        check_beside([a, b])
        found = step(op, [b, a] if turned else [a, b], {})
        return step("not", [found], {}) if negated else found

    return apply


power = both("power")


def function(name: str, x: Clear) -> Clear:
    """A function of single numbers."""
    return step("function", [x], {"function": name})


def like(x: Clear, number: float) -> Clear:
    """A number of the kind of a value."""
    if x.kind == "whole":
        return constant(np.int32(number) if x.largest < LONG else np.int64(number))
    return constant(np.float64(number))


def cast_to(x: Clear, kind: str, largest: int = LONG) -> Clear:
    """The numbers as another kind."""
    return step("cast", [x], {"kind": kind, "largest": largest}, largest=largest)


def clamped(x: Clear, low: Any = None, high: Any = None) -> Clear:
    """The numbers between two ends, of which None, and what is beyond all numbers, stands for
    nothing."""
    for op, end in (("maximum", low), ("minimum", high)):
        if end is not None and abs(end) < 1e30:
            x = step(op, [x, like(x, end)], {})
    return x


def hard_sigmoid(x: Clear, slope: float, middle: float) -> Clear:
    """slope x + middle between 0 and 1."""
    return clamped(add(multiply(x, like(x, slope)), like(x, middle)), 0, 1)


def leaky_relu(x: Clear, slope: float) -> Clear:
    """x above 0, slope x below."""
    above, below = (step(op, [x, like(x, 0)], {}) for op in ("maximum", "minimum"))
    return add(above, multiply(below, like(x, slope)))


# --- along axes -----------------------------------------------------------------------------------


def reduced(how: str, x: Clear, axes: Sequence[int], keep: bool) -> Clear:
    """One number of all those along axes: "max", "mean", "min", "product" or "sum"."""
    whole = tuple(axis_of(a, x.ndim) for a in axes)
    return step("reduce", [x], {"how": how, "axes": whole, "keep": bool(keep)})


def place_of(how: str, x: Clear, axis: int, keep: bool, last: bool = False) -> Clear:
    """The place of the largest ("max") or smallest ("min") number along an axis; of equal ones, the
    first or the last."""
    arguments = {"how": how, "axis": axis_of(axis, x.ndim), "keep": bool(keep), "last": bool(last)}
    return step("place_of", [x], arguments, largest=LONG)


def top(how: str, x: Clear, axis: int, count: int) -> list[Clear]:
    """The largest or smallest numbers along an axis in order, and their places."""
    known = {"how": how, "axis": axis_of(axis, x.ndim), "count": int(count)}
    return [
        step("top", [x], {**known, "what": "numbers"}),
        step("top", [x], {**known, "what": "places"}, largest=LONG),
    ]
