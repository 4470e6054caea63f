"""Operations of ONNX as steps that a client computes in the clear.

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
from jali.compiler.frontends.onnx_ops import ALONG_BATCH
from jali.compiler.frontends.onnx_values import Attrs
from jali.compiler.frontends.quantised_values import TYPE_ENDS
from jali.errors import Unsupported

__all__ = ["MERGES", "MOVES", "OPERATIONS", "Given", "is_head", "translated"]

Given = Clear | np.ndarray[Any, Any] | None  # a value, an array of the model, or what is left out
Result = Clear | list[Clear]


def translated(op: str, inputs: Sequence[Given], attrs: Attrs) -> list[Clear]:
    """The results of an operation of ONNX. Raises Unsupported.

    attrs: as of jali.compiler.frontends.onnx_ops.
    """
    found = OPERATIONS[op](inputs, attrs)
    results = found if isinstance(found, list) else [found]
    if any(not x.shape or x.shape[0] != 1 for x in results):
        raise Unsupported(ALONG_BATCH)
    return results


# --- what operations are given --------------------------------------------------------------------


def _value(given: Given) -> Clear:
    if given is None:
        raise Unsupported("an input is left out")
    return given if isinstance(given, Clear) else constant(given)


def _clear(given: Given, what: str) -> Any:
    if given is None or isinstance(given, Clear):
        raise Unsupported(f"its {what} depends on the input, and has to be a constant")
    return np.asarray(given)


def _numbers(given: Given, what: str) -> list[int]:
    return [int(n) for n in _clear(given, what).ravel()]


def _axis(axis: int, rank: int) -> int:
    """An axis that is not the batch."""
    if not -rank <= axis < rank or axis % rank == 0:
        raise Unsupported(ALONG_BATCH)
    return axis % rank


def _axes(inputs: Sequence[Given], attrs: Attrs, place: int = 1) -> list[int] | None:
    if "axes" in attrs:
        return [int(a) for a in attrs["axes"]]
    if len(inputs) > place and inputs[place] is not None:
        return _numbers(inputs[place], "axes")
    return None


def _beside(values: Sequence[Clear]) -> None:
    """Raises Unsupported if broadcasting would pair the batch of one array with another axis."""
    varying = {x.ndim for x in values if not x.is_constant}
    rank = max(varying, default=0)
    if len(varying) > 1:
        raise Unsupported("it joins arrays of different ranks, which pairs the batch with an axis")
    for x in values:
        if x.is_constant and (x.ndim > rank or (x.ndim == rank and x.shape[:1] not in ((), (1,)))):
            raise Unsupported("a constant that differs between the examples of a batch")


# --- moves ----------------------------------------------------------------------------------------


def _reshaped(x: Clear, shape: Sequence[int]) -> Clear:
    if math.prod(shape) != math.prod(x.shape):
        raise Unsupported(f"a reshape of {x.shape} to {tuple(shape)}")
    return x if tuple(shape) == x.shape else step("reshape", [x], {"shape": tuple(shape)})


def _reshape(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, wanted = _value(inputs[0]), _numbers(inputs[1], "shape")
    shape = [x.shape[k] if n == 0 and k < x.ndim else n for k, n in enumerate(wanted)]
    if shape and shape[0] in attrs["batches"]:
        shape[0] = 1
    if -1 in shape:
        rest = -math.prod(shape)
        if rest <= 0 or math.prod(x.shape) % rest:
            raise Unsupported(f"a reshape of {x.shape} to {wanted}")
        shape[shape.index(-1)] = math.prod(x.shape) // rest
    return _reshaped(x, shape)


def _flatten(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    axis = _axis(int(attrs.get("axis", 1)), x.ndim + 1)
    return _reshaped(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def _squeeze(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, axes = _value(inputs[0]), _axes(inputs, attrs)
    if axes is None:
        raise Unsupported("a squeeze without axes, which may take the batch away")
    gone = {_axis(a, x.ndim) for a in axes}
    return _reshaped(x, [n for a, n in enumerate(x.shape) if a not in gone])


def _unsqueeze(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, axes = _value(inputs[0]), _axes(inputs, attrs) or []
    shape = list(x.shape)
    for axis in sorted(_axis(a, x.ndim + len(axes)) for a in axes):
        shape.insert(axis, 1)
    return _reshaped(x, shape)


def _transposed(x: Clear, order: Sequence[int]) -> Clear:
    if order[0] != 0:
        raise Unsupported(ALONG_BATCH)
    return step("transpose", [x], {"axes": tuple(order)})


def _transpose(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    return _transposed(x, [int(a) for a in attrs.get("perm", range(x.ndim)[::-1])])


def _part(x: Clear, axis: int, start: int, stop: int | None, by: int) -> Clear:
    """A part of an axis, by ONNX's rules: ends beyond the axis are its ends."""
    n = x.shape[axis]
    low, high, _ = slice(start, stop, by).indices(n)
    last = None if by < 0 and high < 0 else high
    return step("slice", [x], {"axis": axis, "start": low, "stop": last, "step": by})


def _slice(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    if "starts" in attrs:
        starts, ends = list(attrs["starts"]), list(attrs["ends"])
    else:
        starts, ends = (_numbers(v, "range") for v in inputs[1:3])
    axes = _axes(inputs, attrs, 3) or list(range(len(starts)))
    steps = _numbers(inputs[4], "steps") if len(inputs) > 4 else [1] * len(starts)
    for start, end, axis, by in zip(starts, ends, axes, steps, strict=True):
        if axis % x.ndim == 0 and start == 0 and end >= 1 << 30 and by == 1:
            continue  # the whole batch
        x = _part(x, _axis(axis, x.ndim), start, None if end < -(1 << 30) else end, by)
    return x


def _concat(inputs: Sequence[Given], attrs: Attrs) -> Result:
    values = [_value(x) for x in inputs]
    if any(x.is_constant and x.shape[:1] != (1,) for x in values):
        raise Unsupported("a constant that differs between the examples of a batch")
    return step("concat", values, {"axis": _axis(int(attrs["axis"]), values[0].ndim)})


def _split(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    axis, sizes = _axis(int(attrs.get("axis", 0)), x.ndim), attrs.get("split")
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = _numbers(inputs[1], "sizes")
    if sizes is None:
        each = -(-x.shape[axis] // attrs["outputs"])
        sizes = [min(each, x.shape[axis] - k * each) for k in range(attrs["outputs"])]
    ends = np.cumsum([0, *sizes]).tolist()
    return [_part(x, axis, a, b, 1) for a, b in itertools.pairwise(ends)]


def _expand(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, wanted = _value(inputs[0]), _numbers(inputs[1], "shape")
    if len(wanted) > x.ndim:
        raise Unsupported("an expansion that gives the array axes before the batch")
    try:
        shape = np.broadcast_shapes(x.shape, tuple(wanted))
    except ValueError:
        raise Unsupported(f"an expansion of {x.shape} to {wanted}") from None
    return x if shape == x.shape else step("expand", [x], {"shape": shape})


def _gather(inputs: Sequence[Given], attrs: Attrs) -> Result:
    table, places = _value(inputs[0]), _value(inputs[1])
    axis = int(attrs.get("axis", 0))
    if table.is_constant:
        if axis % table.ndim:
            raise Unsupported("a look-up along another axis of a table than its first one")
        return step("gather", [table, places], {"axis": 0}, largest=table.largest)
    if not places.is_constant:
        raise Unsupported("a look-up in an array that depends on the input")
    rows = table.shape[_axis(axis, table.ndim)]
    named = np.asarray(inputs[1])
    if named.size and not (named.min() >= -rows and named.max() < rows):
        raise Unsupported(f"a look-up beyond the {rows} numbers of an axis")
    return step("gather", [table, places], {"axis": axis % table.ndim}, largest=table.largest)


# --- numbers --------------------------------------------------------------------------------------


def _arithmetic(op: str) -> Callable[[Clear, Clear], Clear]:
    def apply(a: Clear, b: Clear) -> Clear:
        _beside([a, b])
        if a.kind != "whole":
            return step(op, [a, b], {"largest": 1})
        most = min(a.largest, b.largest)
        if not most:
            raise Unsupported(
                "sums and products of whole numbers of fewer than 32 bits, which wrap around: convert them to 64 bits before"
            )
        return step(op, [a, b], {"largest": most})

    return apply


_add, _subtract, _multiply = (_arithmetic(op) for op in ("add", "subtract", "multiply"))


def _both(op: str, *, turned: bool = False, negated: bool = False) -> Callable[..., Clear]:
    def apply(a: Clear, b: Clear) -> Clear:
        _beside([a, b])
        found = step(op, [b, a] if turned else [a, b], {})
        return step("not", [found], {}) if negated else found

    return apply


def _pair(function: Callable[[Clear, Clear], Clear]) -> Callable[..., Result]:
    return lambda inputs, attrs: function(_value(inputs[0]), _value(inputs[1]))


def _several(function: Callable[[Clear, Clear], Clear]) -> Callable[..., Result]:
    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        found = _value(inputs[0])
        for other in inputs[1:]:
            found = function(found, _value(other))
        return found

    return apply


def _extreme(op: str, end: float) -> Callable[..., Result]:
    """The larger or smaller of several arrays.

    end: what changes nothing.
    """

    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        kept = [x for x in inputs if isinstance(x, Clear) or not np.all(np.asarray(x) == end)]
        return _several(_both(op))(kept, attrs)

    return apply


def _modulo(inputs: Sequence[Given], attrs: Attrs) -> Result:
    if attrs.get("fmod"):
        raise Unsupported("a remainder with fmod=1")
    return _both("modulo")(_value(inputs[0]), _value(inputs[1]))


def _power(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, exponent = _value(inputs[0]), _value(inputs[1])
    if exponent.kind != x.kind and exponent.is_constant:
        exponent = constant(np.asarray(inputs[1], np.float64))
    return _both("power")(x, exponent)


def _function(name: str) -> Callable[..., Result]:
    return lambda inputs, attrs: step("function", [_value(inputs[0])], {"function": name})


def _like(x: Clear, number: float) -> Clear:
    """A number of the kind of a value."""
    if x.kind == "whole":
        return constant(np.int32(number) if x.largest < 1 << 53 else np.int64(number))
    return constant(np.float64(number))


def _clip(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, ends = _value(inputs[0]), [attrs.get("min"), attrs.get("max")]
    for k, end in enumerate(inputs[1:]):
        if end is not None:
            ends[k] = _clear(end, "range").ravel()[0]
    for op, end in zip(("maximum", "minimum"), ends, strict=True):
        if end is not None and abs(end) < 1e30:
            x = step(op, [x, _like(x, end)], {})
    return x


def _hard_sigmoid(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    y = _add(_multiply(x, _like(x, attrs.get("alpha", 0.2))), _like(x, attrs.get("beta", 0.5)))
    return step("minimum", [step("maximum", [y, _like(x, 0)], {}), _like(x, 1)], {})


def _leaky_relu(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    above, below = (step(op, [x, _like(x, 0)], {}) for op in ("maximum", "minimum"))
    return _add(above, _multiply(below, _like(x, attrs.get("alpha", 0.01))))


def _where(inputs: Sequence[Given], attrs: Attrs) -> Result:
    values = [_value(x) for x in inputs]
    _beside(values)
    largest = min(x.largest for x in values[1:])
    return step("where", values, {}, largest=largest)


_TO = {1: "real", 10: "real", 11: "real", 16: "real", 6: "whole", 7: "whole", 9: "flag"}


def _cast(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, to = _value(inputs[0]), _TO.get(attrs["to"])
    if to is None:
        raise Unsupported("a conversion to whole numbers of fewer than 32 bits, or to text")
    largest = (1 << 31) - 1 if attrs["to"] == 6 else 1 << 53
    if to == x.kind and (to != "whole" or x.largest == largest):
        return x
    return _cast_to(x, to, largest)


def _cast_to(x: Clear, kind: str, largest: int = 1 << 53) -> Clear:
    return step("cast", [x], {"kind": kind, "largest": largest}, largest=largest)


def _by_one_scale(inputs: Sequence[Given]) -> tuple[Clear, Clear, Clear, str]:
    """Real numbers, their scale and their zero point, which must be single ones, and its type."""
    x, scale = _value(inputs[0]), _clear(inputs[1], "scale")
    zero = np.zeros((), np.uint8)
    if len(inputs) > 2 and inputs[2] is not None:
        zero = _clear(inputs[2], "zero point")
    if scale.size > 1 or zero.size > 1:
        raise Unsupported("quantised numbers of several scales")
    factor, point = (constant(n.astype(np.float64).reshape(())) for n in (scale, zero))
    real = x if x.kind == "real" else _cast_to(x, "real")
    return real, factor, point, zero.dtype.name


def _dequantised(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, scale, zero, _ = _by_one_scale(inputs)
    return _multiply(_subtract(x, zero), scale)


def _quantised(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, scale, zero, kind = _by_one_scale(inputs)
    if kind not in TYPE_ENDS or attrs.get("output_dtype"):
        raise Unsupported("quantised numbers of this type")
    low, high = (constant(np.float64(end)) for end in TYPE_ENDS[kind])
    rounded = step("function", [_both("divide")(x, scale)], {"function": "round"})
    cut = step("minimum", [step("maximum", [_add(rounded, zero), low], {}), high], {})
    return step("cast", [cut], {"kind": "whole", "largest": 1 << 53}, largest=0)


# --- along axes -----------------------------------------------------------------------------------


def _reduced(how: str, x: Clear, axes: Sequence[int], attrs: Attrs) -> Clear:
    arguments = {"how": how, "axes": tuple(axes), "keep": bool(attrs.get("keepdims", 1))}
    return step("reduce", [x], arguments)


def _reduction(how: str, inside: str = "", outside: str = "") -> Callable[..., Result]:
    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        x, axes = _value(inputs[0]), _axes(inputs, attrs)
        if not axes:
            if attrs.get("noop_with_empty_axes"):
                return x
            raise Unsupported(ALONG_BATCH)
        if inside == "square":
            x = _multiply(x, x)
        elif inside:
            x = step("function", [x], {"function": inside})
        y = _reduced(how, x, [_axis(a, x.ndim) for a in axes], attrs)
        return step("function", [y], {"function": outside}) if outside else y

    return apply


def _place_of(how: str) -> Callable[..., Result]:
    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        x = _value(inputs[0])
        arguments = {
            "how": how,
            "axis": _axis(int(attrs.get("axis", 0)), x.ndim),
            "keep": bool(attrs.get("keepdims", 1)),
            "last": bool(attrs.get("select_last_index", 0)),
        }
        return step("place_of", [x], arguments, largest=1 << 53)

    return apply


def _top(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = _value(inputs[0])
    count = int(attrs["k"]) if "k" in attrs else _numbers(inputs[1], "count")[0]
    how = "max" if attrs.get("largest", 1) else "min"
    axis = _axis(int(attrs.get("axis", -1)), x.ndim)
    known = {"how": how, "axis": axis, "count": count}
    return [
        step("top", [x], {**known, "what": "numbers"}),
        step("top", [x], {**known, "what": "places"}, largest=1 << 53),
    ]


def _shares(op: str) -> Callable[..., Result]:
    """A softmax. Before opset 13, it is one over all axes from the named one on."""

    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        x, late = _value(inputs[0]), attrs["opset"] >= 13
        axis = _axis(int(attrs.get("axis", -1 if late else 1)), x.ndim)
        if late or axis == x.ndim - 1:
            return step(op, [x], {"axis": axis})
        flat = _reshaped(x, [*x.shape[:axis], math.prod(x.shape[axis:])])
        return _reshaped(step(op, [flat], {"axis": axis}), x.shape)

    return apply


def _hardmax(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, late = _value(inputs[0]), attrs["opset"] >= 13
    axis = _axis(int(attrs.get("axis", -1 if late else 1)), x.ndim)
    if axis != x.ndim - 1:
        raise Unsupported("a Hardmax along another axis than the last one")
    how = {"how": "max", "axis": axis, "keep": False, "last": False}
    place = step("place_of", [x], how, largest=1 << 53)
    return _cast_to(step("one_hot", [place], {"depth": x.shape[axis]}), "real")


def _cumulated(inputs: Sequence[Given], attrs: Attrs) -> Result:
    if attrs.get("exclusive") or attrs.get("reverse"):
        raise Unsupported("a cumulative sum that is exclusive or goes backwards")
    x = _value(inputs[0])
    return step("cumulate", [x], {"axis": _axis(_numbers(inputs[1], "axis")[0], x.ndim)})


def _one_hot(inputs: Sequence[Given], attrs: Attrs) -> Result:
    places, depth = _value(inputs[0]), _numbers(inputs[1], "depth")[0]
    off, on = _clear(inputs[2], "values").ravel()
    if places.kind != "whole":
        places = _cast_to(places, "whole")
    axis = _axis(int(attrs.get("axis", -1)), places.ndim + 1)
    flags = step("one_hot", [places], {"depth": depth})
    order = list(range(places.ndim))
    order.insert(axis, places.ndim)
    flags = flags if axis == places.ndim else _transposed(flags, order)
    return step("where", [flags, constant(on), constant(off)], {}, largest=constant(on).largest)


OPERATIONS: dict[str, Callable[[Sequence[Given], Attrs], Result]] = {
    "Abs": _function("absolute"),
    "Add": _pair(_add),
    "And": _pair(_both("and")),
    "ArgMax": _place_of("max"),
    "ArgMin": _place_of("min"),
    "Cast": _cast,
    "Ceil": _function("ceil"),
    "Clip": _clip,
    "Concat": _concat,
    "Cos": _function("cos"),
    "CumSum": _cumulated,
    "DequantizeLinear": _dequantised,
    "Div": _pair(_both("divide")),
    "Equal": _pair(_both("equal")),
    "Exp": _function("exp"),
    "Expand": _expand,
    "Flatten": _flatten,
    "Floor": _function("floor"),
    "Gather": _gather,
    "Greater": _pair(_both("less", turned=True)),
    "GreaterOrEqual": _pair(_both("less_equal", turned=True)),
    "HardSigmoid": _hard_sigmoid,
    "Hardmax": _hardmax,
    "Identity": lambda inputs, attrs: _value(inputs[0]),
    "LeakyRelu": _leaky_relu,
    "Less": _pair(_both("less")),
    "LessOrEqual": _pair(_both("less_equal")),
    "Log": _function("log"),
    "LogSoftmax": _shares("log_softmax"),
    "Max": _extreme("maximum", -math.inf),
    "Min": _extreme("minimum", math.inf),
    "Mod": _modulo,
    "Mul": _pair(_multiply),
    "Neg": _function("negative"),
    "Not": lambda inputs, attrs: step("not", [_value(inputs[0])], {}),
    "OneHot": _one_hot,
    "Or": _pair(_both("or")),
    "Pow": _power,
    "Reciprocal": _function("reciprocal"),
    "QuantizeLinear": _quantised,
    "ReduceL1": _reduction("sum", "absolute"),
    "ReduceL2": _reduction("sum", "square", "sqrt"),
    "ReduceLogSumExp": _reduction("sum", "exp", "log"),
    "ReduceMax": _reduction("max"),
    "ReduceMean": _reduction("mean"),
    "ReduceMin": _reduction("min"),
    "ReduceProd": _reduction("product"),
    "ReduceSum": _reduction("sum"),
    "ReduceSumSquare": _reduction("sum", "square"),
    "Relu": _function("relu"),
    "Reshape": _reshape,
    "Round": _function("round"),
    "Sigmoid": _function("sigmoid"),
    "Sign": _function("sign"),
    "Sin": _function("sin"),
    "Slice": _slice,
    "Softmax": _shares("softmax"),
    "Softplus": _function("softplus"),
    "Split": _split,
    "Sqrt": _function("sqrt"),
    "Squeeze": _squeeze,
    "Sub": _pair(_subtract),
    "Sum": _several(_add),
    "Tanh": _function("tanh"),
    "TopK": _top,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
    "Xor": _pair(_both("equal", negated=True)),
}

#: Operations that move numbers, or compare them: a part before encrypting goes on through them.
MOVES = {
    *("And", "Cast", "Concat", "Equal", "Expand", "Flatten", "Gather", "Greater", "GreaterOrEqual"),
    *("Identity", "Less", "LessOrEqual", "Not", "Or", "Reshape", "Slice", "Split", "Squeeze"),
    *("Transpose", "Unsqueeze", "Where", "Xor"),
}
#: Sums and products, through which it goes on if they make one array of several, or take single
#: numbers of the model.
MERGES = {"Add", "DequantizeLinear", "Sub", "Mul", "Div", "Sum", "CumSum", "Mod"}
#: What a server computes as well as a client.
_SERVERS = {
    *("Add", "Concat", "Expand", "Flatten", "Identity", "Mul", "Neg", "Pow", "ReduceMean"),
    *("ReduceSum", "ReduceSumSquare", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Sum"),
    *("Transpose", "Unsqueeze", "Cast", "Div", "Where", "Gather", "CumSum", "DequantizeLinear"),
    "QuantizeLinear",
}


def is_head(op: str, varying: Sequence[bool], attrs: Attrs) -> bool:
    """Whether an operation is one for the client: a server does not compute it, or approximates it.

    varying: of each input, whether it is no constant.
    """
    match op:
        case "Cast":
            return _TO.get(attrs["to"]) != "real"
        case "Div" | "Gather":
            return len(varying) > 1 and varying[1]
        case "Where":
            return varying[0]
    return op not in _SERVERS
