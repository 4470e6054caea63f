"""The operations of graphs that clients compute in the clear. docs/format.md lists them.

They are those of NumPy. An operation takes whole arrays with the axis of the batch in front, and
knows the shape of its result before it computes anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jali._core import schema
from jali.errors import InvalidArgument
from jali.program.clear.values import (
    DTYPES,
    KINDS,
    Arguments,
    Known,
    Operation,
    Shape,
    Value,
    joint,
)

__all__ = ["FUNCTIONS", "LARGEST", "MOST_AXES", "MOST_SIZE", "OPERATIONS"]

MOST_AXES = 8
MOST_SIZE = 1 << 26  # numbers of one array
LARGEST = schema.MAX_INTEGER  # of a whole number

_size = schema.whole(0, MOST_SIZE)
_sizes = schema.listed(_size, most=MOST_AXES)
_axis = schema.whole(0, MOST_AXES - 1)
_axes = schema.listed(_axis, most=MOST_AXES)
_place = schema.whole(-MOST_SIZE, MOST_SIZE)


# --- what operations ask of what they take --------------------------------------------------------


def _needs(one: Known, *kinds: str) -> None:
    if one.kind not in kinds:
        raise ValueError(f"takes {' or '.join(kinds)} numbers, and was given {one.kind}")


def _alike(values: Sequence[Known], *kinds: str) -> str:
    """The one kind of all values."""
    for one in values:
        _needs(one, *kinds)
        if one.kind != values[0].kind:
            raise ValueError(f"takes numbers of one kind, not {values[0].kind} and {one.kind}")
    return values[0].kind


def _along(one: Known, axis: int) -> int:
    """The size of an axis."""
    if axis >= len(one.shape):
        raise ValueError(f"has no axis {axis}")
    return one.shape[axis]


def _without(shape: Shape, axes: Sequence[int], keep: bool) -> Shape:
    if keep:
        return tuple(1 if k in axes else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in axes)


# --- moves ----------------------------------------------------------------------------------------


def _reshaped(values: Sequence[Known], how: Arguments) -> Known:
    if math.prod(how["shape"]) != values[0].size:
        raise ValueError(f"has another number of numbers than {values[0].shape}")
    return Known(how["shape"], values[0].kind)


def _transposed(values: Sequence[Known], how: Arguments) -> Known:
    shape = values[0].shape
    if sorted(how["axes"]) != list(range(len(shape))):
        raise ValueError("must name each axis once")
    return Known(tuple(shape[a] for a in how["axes"]), values[0].kind)


def _cut(n: int, start: int, stop: int | None, step: int) -> slice:
    """The part of an axis. None stands for its end, in the direction of the step."""
    if step == 0:
        raise ValueError("must have steps other than 0")
    return slice(start, stop, step)


def _slice(values: Sequence[Known], how: Arguments) -> Known:
    shape = values[0].shape
    _along(values[0], how["axis"])
    part = _cut(shape[how["axis"]], how["start"], how["stop"], how["step"])
    count = len(range(*part.indices(shape[how["axis"]])))
    return Known(
        tuple(count if k == how["axis"] else n for k, n in enumerate(shape)), values[0].kind
    )


def _sliced(values: Sequence[Value], how: Arguments) -> Value:
    (x,), axis = values, how["axis"]
    part = slice(how["start"], how["stop"], how["step"])
    return np.asarray(x[(slice(None),) * axis + (part,)])


def _joined(values: Sequence[Known], how: Arguments) -> Known:
    kind, axis, first = _alike(values, *KINDS), how["axis"], values[0].shape
    total = 0
    for one in values:
        total += _along(one, axis)
        if len(one.shape) != len(first) or _without(one.shape, [axis], True) != _without(
            first, [axis], True
        ):
            raise ValueError("takes arrays that differ along one axis alone")
    return Known(tuple(total if k == axis else n for k, n in enumerate(first)), kind)


def _expanded(values: Sequence[Known], how: Arguments) -> Known:
    if joint([values[0].shape, how["shape"]]) != how["shape"]:
        raise ValueError(f"does not expand {values[0].shape}")
    return Known(how["shape"], values[0].kind)


def _gathered(values: Sequence[Known], how: Arguments) -> Known:
    table, places = values
    _needs(places, "whole")
    axis, shape = how["axis"], table.shape
    if _along(table, axis) == 0:
        raise ValueError("looks up in a table without a row")
    return Known((*shape[:axis], *places.shape, *shape[axis + 1 :]), table.kind)


def _gather(values: Sequence[Value], how: Arguments) -> Value:
    table, places = values
    rows = table.shape[how["axis"]]
    if places.size and not (places.min() >= -rows and places.max() < rows):
        raise InvalidArgument(
            f"a number by which a table is looked up is none of its {rows:,} rows: give whole numbers from 0 to {rows - 1}"
        )
    return np.take(table, places, axis=how["axis"])


# --- numbers --------------------------------------------------------------------------------------


def _bounded(found: Value, exact: Value | None, how: Arguments) -> Value:
    """The whole numbers, if none is beyond `largest`.

    exact: the same as floats, of which none has wrapped around.
    """
    beyond = found if exact is None else exact
    if found.dtype == np.int64 and np.abs(beyond).max(initial=0) > how["largest"]:
        raise InvalidArgument(
            f"a whole number that the model computes is beyond {how['largest']:,}: give it smaller numbers"
        )
    return found


def _arithmetic(function: Callable[[Any, Any], Any]) -> Operation:
    def result(values: Sequence[Known], how: Arguments) -> Known:
        kind = _alike(values, "real", "whole")
        return Known(joint([one.shape for one in values]), kind)

    def compute(values: Sequence[Value], how: Arguments) -> Value:
        a, b = values
        found = function(a, b)
        exact = (
            function(a.astype(np.float64), b.astype(np.float64)) if a.dtype == np.int64 else None
        )
        return _bounded(found, exact, how)

    return Operation(2, result, compute, {"largest": schema.whole(1, LARGEST)})


def _divide(values: Sequence[Value], how: Arguments) -> Value:
    """The quotient; of whole numbers, without its fraction, as in ONNX."""
    a, b = values
    if a.dtype != np.int64:
        return np.asarray(a / b)
    _refuse_zeros(b)
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))


def _modulo(values: Sequence[Value], how: Arguments) -> Value:
    a, b = values
    if a.dtype == np.int64:
        _refuse_zeros(b)
    return np.asarray(np.mod(a, b))


def _refuse_zeros(divisors: Value) -> None:
    if not np.all(divisors):
        raise InvalidArgument("the model divides whole numbers by 0: give it other numbers")


def _pair(compute: Callable[[Any, Any], Any], *kinds: str, gives: str = "") -> Operation:
    """An operation on two arrays that are broadcast.

    gives: the kind of its result; otherwise, that of what it takes.
    """

    def result(values: Sequence[Known], how: Arguments) -> Known:
        kind = _alike(values, *kinds)
        return Known(joint([one.shape for one in values]), gives or kind)

    return Operation(2, result, lambda values, how: np.asarray(compute(*values)), {})


def _negated(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], "flag")
    return values[0]


def _chosen(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], "flag")
    return Known(joint([one.shape for one in values]), _alike(values[1:], *KINDS))


def _sigmoid(x: Value) -> Value:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))  # which never overflows


#: The functions of single numbers. Those of _EVERY take whole numbers, too.
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "absolute": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "negative": np.negative,
    "reciprocal": np.reciprocal,
    "relu": lambda x: np.maximum(x, 0),
    "round": np.rint,
    "sigmoid": _sigmoid,
    "sign": np.sign,
    "sin": np.sin,
    "softplus": lambda x: np.logaddexp(x, 0),
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}
_EVERY = ("absolute", "negative", "relu", "sign")


def _function(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], *(("real", "whole") if how["function"] in _EVERY else ("real",)))
    return values[0]


def _cast(values: Sequence[Value], how: Arguments) -> Value:
    (x,), kind = values, how["kind"]
    if kind == "whole":
        if not np.all(np.abs(x) <= how["largest"]):  # NaN is no whole number, either
            raise InvalidArgument(
                f"a number that the model makes a whole one is none, or beyond {how['largest']:,}: give it other numbers"
            )
        x = np.trunc(x) if x.dtype == np.float64 else x
    return np.asarray(x.astype(DTYPES[kind]))


# --- along axes -----------------------------------------------------------------------------------

_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": np.max,
    "mean": np.mean,
    "min": np.min,
    "product": np.prod,
    "sum": np.sum,
}


def _reduced(values: Sequence[Known], how: Arguments) -> Known:
    (one,), axes = values, how["axes"]
    whole = how["how"] in ("max", "min", "sum")
    _needs(one, *(("real", "whole") if whole else ("real",)))
    if len(set(axes)) != len(axes):
        raise ValueError("must name each axis once")
    for axis in axes:
        _filled(one, axis)
    return Known(_without(one.shape, axes, how["keep"]), one.kind)


def _filled(one: Known, axis: int) -> None:
    if _along(one, axis) == 0:
        raise ValueError(f"takes the numbers along the axis {axis}, which has none")


def _reduce(values: Sequence[Value], how: Arguments) -> Value:
    (x,), axes = values, tuple(how["axes"])
    found = np.asarray(_REDUCTIONS[how["how"]](x, axis=axes, keepdims=how["keep"]))
    whole = x.dtype == np.int64 and how["how"] == "sum"
    exact = np.asarray(np.sum(x.astype(np.float64), axis=axes)) if whole else None
    return _bounded(found, exact, {"largest": LARGEST})


def _places(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], "real", "whole")
    _filled(values[0], how["axis"])
    return Known(_without(values[0].shape, [how["axis"]], how["keep"]), "whole")


def _place_of(values: Sequence[Value], how: Arguments) -> Value:
    (x,), axis = values, how["axis"]
    function = np.argmax if how["how"] == "max" else np.argmin
    if how["last"]:
        found = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=how["keep"])
    else:
        found = function(x, axis=axis, keepdims=how["keep"])
    return np.asarray(found, np.int64)


def _real_along(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], "real")
    _filled(values[0], how["axis"])
    return values[0]


def _softmax(values: Sequence[Value], how: Arguments) -> Value:
    (x,), axis = values, how["axis"]
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def _log_softmax(values: Sequence[Value], how: Arguments) -> Value:
    (x,), axis = values, how["axis"]
    below = x - x.max(axis=axis, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=axis, keepdims=True)))


def _top(values: Sequence[Known], how: Arguments) -> Known:
    one, axis = values[0], how["axis"]
    _needs(one, "real", "whole")
    if how["count"] > _along(one, axis):
        raise ValueError(f"takes {how['count']} of {one.shape[axis]} numbers")
    shape = tuple(how["count"] if k == axis else n for k, n in enumerate(one.shape))
    return Known(shape, "whole" if how["what"] == "places" else one.kind)


def _top_of(values: Sequence[Value], how: Arguments) -> Value:
    """The largest or smallest numbers in order, or their places. Of equal numbers, the first ones
    come first."""
    (x,), axis = values, how["axis"]
    order = np.argsort(-x if how["how"] == "max" else x, axis=axis, kind="stable")
    places = np.take(order, range(how["count"]), axis=axis)
    return places if how["what"] == "places" else np.take_along_axis(x, places, axis=axis)


def _cumulate(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], "real", "whole")
    _along(values[0], how["axis"])
    return values[0]


def _cumulated(values: Sequence[Value], how: Arguments) -> Value:
    x = values[0]
    found = np.cumsum(x, axis=how["axis"])
    exact = np.cumsum(x.astype(np.float64), axis=how["axis"])
    return _bounded(found, exact, {"largest": LARGEST})


def _one_hot(values: Sequence[Known], how: Arguments) -> Known:
    _needs(values[0], "whole")
    return Known((*values[0].shape, how["depth"]), "flag")


def _hot(values: Sequence[Value], how: Arguments) -> Value:
    """A flag for each of `depth` numbers, along a new last axis. Numbers from -depth to -1 count
    from the end, and others have no flag."""
    places = values[0][..., None]
    places = np.where(places < 0, places + how["depth"], places)
    return np.asarray(places == np.arange(how["depth"]))


_how = {"how": schema.one_of("max", "min")}

#: Every operation, by its name in files.
OPERATIONS: Mapping[str, Operation] = {
    # moves
    "reshape": Operation(
        1, _reshaped, lambda v, how: v[0].reshape(how["shape"]), {"shape": _sizes}
    ),
    "transpose": Operation(
        1, _transposed, lambda v, how: v[0].transpose(how["axes"]), {"axes": _axes}
    ),
    "slice": Operation(
        1,
        _slice,
        _sliced,
        {"axis": _axis, "start": _place, "stop": schema.optional(_place), "step": _place},
    ),
    "concat": Operation(
        None, _joined, lambda v, how: np.concatenate(v, axis=how["axis"]), {"axis": _axis}
    ),
    "expand": Operation(
        1, _expanded, lambda v, how: np.broadcast_to(v[0], how["shape"]), {"shape": _sizes}
    ),
    "gather": Operation(2, _gathered, _gather, {"axis": _axis}),
    # numbers
    "add": _arithmetic(np.add),
    "subtract": _arithmetic(np.subtract),
    "multiply": _arithmetic(np.multiply),
    "divide": Operation(2, _pair(np.add, "real", "whole").result, _divide, {}),
    "modulo": Operation(2, _pair(np.add, "real", "whole").result, _modulo, {}),
    "power": _pair(np.power, "real"),
    "maximum": _pair(np.maximum, "real", "whole"),
    "minimum": _pair(np.minimum, "real", "whole"),
    "equal": _pair(np.equal, *KINDS, gives="flag"),
    "less": _pair(np.less, "real", "whole", gives="flag"),
    "less_equal": _pair(np.less_equal, "real", "whole", gives="flag"),
    "and": _pair(np.logical_and, "flag"),
    "or": _pair(np.logical_or, "flag"),
    "not": Operation(1, _negated, lambda v, how: np.logical_not(v[0]), {}),
    "where": Operation(3, _chosen, lambda v, how: np.where(*v), {}),
    "function": Operation(
        1,
        _function,
        lambda v, how: np.asarray(FUNCTIONS[how["function"]](v[0])),
        {"function": schema.one_of(*FUNCTIONS)},
    ),
    "cast": Operation(
        1,
        lambda v, how: Known(v[0].shape, how["kind"]),
        _cast,
        {"kind": schema.one_of(*KINDS), "largest": schema.whole(1, LARGEST)},
    ),
    # along axes
    "reduce": Operation(
        1,
        _reduced,
        _reduce,
        {"how": schema.one_of(*_REDUCTIONS), "axes": _axes, "keep": schema.flag},
    ),
    "place_of": Operation(
        1,
        _places,
        _place_of,
        {**_how, "axis": _axis, "keep": schema.flag, "last": schema.flag},
    ),
    "softmax": Operation(1, _real_along, _softmax, {"axis": _axis}),
    "log_softmax": Operation(1, _real_along, _log_softmax, {"axis": _axis}),
    "top": Operation(
        1,
        _top,
        _top_of,
        {**_how, "axis": _axis, "count": _size, "what": schema.one_of("numbers", "places")},
    ),
    "cumulate": Operation(1, _cumulate, _cumulated, {"axis": _axis}),
    "one_hot": Operation(1, _one_hot, _hot, {"depth": schema.whole(1, MOST_SIZE)}),
}
