"""Operations of ONNX as steps that a client computes in the clear.

The first axis of every value is the batch, and stays it: what works along it, or moves it, is
refused, as it would mix the examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jali.compiler.frontends.client_steps import (
    LONG,
    Given,
    add,
    axis_of,
    both,
    cast_to,
    check_beside,
    clamped,
    expanded,
    function,
    hard_sigmoid,
    joined,
    known_array,
    known_numbers,
    leaky_relu,
    looked_up,
    multiply,
    part_of,
    parts_of,
    place_of,
    power,
    reduced,
    reshaped,
    subtract,
    top,
    transposed,
    value_of,
)
from jali.compiler.frontends.client_values import Clear, constant, step
from jali.compiler.frontends.onnx_values import Attrs
from jali.compiler.frontends.quantised_values import TYPE_ENDS
from jali.compiler.frontends.replacements import ALONG_BATCH
from jali.errors import Unsupported

__all__ = ["MERGES", "MOVES", "OPERATIONS", "is_head", "translated"]

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


def _axes(inputs: Sequence[Given], attrs: Attrs, place: int = 1) -> list[int] | None:
    if "axes" in attrs:
        return [int(a) for a in attrs["axes"]]
    if len(inputs) > place and inputs[place] is not None:
        return known_numbers(inputs[place], "axes")
    return None


# --- moves ----------------------------------------------------------------------------------------


def _reshape(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, wanted = value_of(inputs[0]), known_numbers(inputs[1], "shape")
    shape = [x.shape[k] if n == 0 and k < x.ndim else n for k, n in enumerate(wanted)]
    if shape and shape[0] in attrs["batches"]:
        shape[0] = 1
    if -1 in shape:
        rest = -math.prod(shape)
        if rest <= 0 or math.prod(x.shape) % rest:
            raise Unsupported(f"a reshape of {x.shape} to {wanted}")
        shape[shape.index(-1)] = math.prod(x.shape) // rest
    return reshaped(x, shape)


def _flatten(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = value_of(inputs[0])
    axis = axis_of(int(attrs.get("axis", 1)), x.ndim + 1)
    return reshaped(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def _squeeze(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, axes = value_of(inputs[0]), _axes(inputs, attrs)
    if axes is None:
        raise Unsupported("a squeeze without axes, which may take the batch away")
    gone = {axis_of(a, x.ndim) for a in axes}
    return reshaped(x, [n for a, n in enumerate(x.shape) if a not in gone])


def _unsqueeze(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, axes = value_of(inputs[0]), _axes(inputs, attrs) or []
    shape = list(x.shape)
    for axis in sorted(axis_of(a, x.ndim + len(axes)) for a in axes):
        shape.insert(axis, 1)
    return reshaped(x, shape)


def _transpose(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = value_of(inputs[0])
    return transposed(x, [int(a) for a in attrs.get("perm", range(x.ndim)[::-1])])


def _slice(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = value_of(inputs[0])
    if "starts" in attrs:
        starts, ends = list(attrs["starts"]), list(attrs["ends"])
    else:
        starts, ends = (known_numbers(v, "range") for v in inputs[1:3])
    axes = _axes(inputs, attrs, 3) or list(range(len(starts)))
    steps = known_numbers(inputs[4], "steps") if len(inputs) > 4 else [1] * len(starts)
    for start, end, axis, by in zip(starts, ends, axes, steps, strict=True):
        if axis % x.ndim == 0 and start == 0 and end >= 1 << 30 and by == 1:
            continue  # the whole batch
        x = part_of(x, axis_of(axis, x.ndim), start, None if end < -(1 << 30) else end, by)
    return x


def _concat(inputs: Sequence[Given], attrs: Attrs) -> Result:
    return joined([value_of(x) for x in inputs], int(attrs["axis"]))


def _split(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x = value_of(inputs[0])
    axis, sizes = axis_of(int(attrs.get("axis", 0)), x.ndim), attrs.get("split")
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = known_numbers(inputs[1], "sizes")
    if sizes is None:
        each = -(-x.shape[axis] // attrs["outputs"])
        sizes = [min(each, x.shape[axis] - k * each) for k in range(attrs["outputs"])]
    return parts_of(x, axis, sizes)


def _expand(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, wanted = value_of(inputs[0]), known_numbers(inputs[1], "shape")
    try:
        shape = np.broadcast_shapes(x.shape, tuple(wanted))
    except ValueError:
        raise Unsupported(f"an expansion of {x.shape} to {wanted}") from None
    return expanded(x, shape)


def _gather(inputs: Sequence[Given], attrs: Attrs) -> Result:
    axis = int(attrs.get("axis", 0))
    return looked_up(value_of(inputs[0]), value_of(inputs[1]), axis, inputs[1])


# --- numbers --------------------------------------------------------------------------------------


def _pair(function: Callable[[Clear, Clear], Clear]) -> Callable[..., Result]:
    return lambda inputs, attrs: function(value_of(inputs[0]), value_of(inputs[1]))


def _several(function: Callable[[Clear, Clear], Clear]) -> Callable[..., Result]:
    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        found = value_of(inputs[0])
        for other in inputs[1:]:
            found = function(found, value_of(other))
        return found

    return apply


def _extreme(op: str, end: float) -> Callable[..., Result]:
    """The larger or smaller of several arrays.

    end: what changes nothing.
    """

    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        kept = [x for x in inputs if isinstance(x, Clear) or not np.all(np.asarray(x) == end)]
        return _several(both(op))(kept, attrs)

    return apply


def _modulo(inputs: Sequence[Given], attrs: Attrs) -> Result:
    if attrs.get("fmod"):
        raise Unsupported("a remainder with fmod=1")
    return both("modulo")(value_of(inputs[0]), value_of(inputs[1]))


def _power(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, exponent = value_of(inputs[0]), value_of(inputs[1])
    if exponent.kind != x.kind and exponent.is_constant:
        exponent = constant(np.asarray(inputs[1], np.float64))
    return power(x, exponent)


def _function(name: str) -> Callable[..., Result]:
    return lambda inputs, attrs: function(name, value_of(inputs[0]))


def _clip(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, ends = value_of(inputs[0]), [attrs.get("min"), attrs.get("max")]
    for k, end in enumerate(inputs[1:]):
        if end is not None:
            ends[k] = known_array(end, "range").ravel()[0]
    return clamped(x, *ends)


def _hard_sigmoid(inputs: Sequence[Given], attrs: Attrs) -> Result:
    return hard_sigmoid(value_of(inputs[0]), attrs.get("alpha", 0.2), attrs.get("beta", 0.5))


def _leaky_relu(inputs: Sequence[Given], attrs: Attrs) -> Result:
    return leaky_relu(value_of(inputs[0]), attrs.get("alpha", 0.01))


def _where(inputs: Sequence[Given], attrs: Attrs) -> Result:
    values = [value_of(x) for x in inputs]
    check_beside(values)
    return step("where", values, {})


_TO = {1: "real", 10: "real", 11: "real", 16: "real", 6: "whole", 7: "whole", 9: "flag"}


def _cast(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, to = value_of(inputs[0]), _TO.get(attrs["to"])
    if to is None:
        raise Unsupported("a conversion to whole numbers of fewer than 32 bits, or to text")
    largest = (1 << 31) - 1 if attrs["to"] == 6 else LONG
    if to == x.kind and (to != "whole" or x.largest == largest):
        return x
    return cast_to(x, to, largest)


def _by_one_scale(inputs: Sequence[Given]) -> tuple[Clear, Clear, Clear, str]:
    """Real numbers, their scale and their zero point, which must be single ones, and its type."""
    x, scale = value_of(inputs[0]), known_array(inputs[1], "scale")
    zero = np.zeros((), np.uint8)
    if len(inputs) > 2 and inputs[2] is not None:
        zero = known_array(inputs[2], "zero point")
    if scale.size > 1 or zero.size > 1:
        raise Unsupported("quantised numbers of several scales")
    factor, point = (constant(n.astype(np.float64).reshape(())) for n in (scale, zero))
    real = x if x.kind == "real" else cast_to(x, "real")
    return real, factor, point, zero.dtype.name


def _dequantised(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, scale, zero, _ = _by_one_scale(inputs)
    return multiply(subtract(x, zero), scale)


def _quantised(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, scale, zero, kind = _by_one_scale(inputs)
    if kind not in TYPE_ENDS or attrs.get("output_dtype"):
        raise Unsupported("quantised numbers of this type")
    low, high = (constant(np.float64(end)) for end in TYPE_ENDS[kind])
    rounded = function("round", both("divide")(x, scale))
    cut = step("minimum", [step("maximum", [add(rounded, zero), low], {}), high], {})
    return step("cast", [cut], {"kind": "whole", "largest": LONG}, largest=0)


# --- along axes -----------------------------------------------------------------------------------


def _reduction(how: str, inside: str = "", outside: str = "") -> Callable[..., Result]:
    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        x, axes = value_of(inputs[0]), _axes(inputs, attrs)
        if not axes:
            if attrs.get("noop_with_empty_axes"):
                return x
            raise Unsupported(ALONG_BATCH)
        if inside == "square":
            x = multiply(x, x)
        elif inside:
            x = function(inside, x)
        y = reduced(how, x, axes, bool(attrs.get("keepdims", 1)))
        return function(outside, y) if outside else y

    return apply


def _place_of(how: str) -> Callable[..., Result]:
    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        axis, keep = int(attrs.get("axis", 0)), bool(attrs.get("keepdims", 1))
        last = bool(attrs.get("select_last_index", 0))
        return place_of(how, value_of(inputs[0]), axis, keep, last)

    return apply


def _top(inputs: Sequence[Given], attrs: Attrs) -> Result:
    count = int(attrs["k"]) if "k" in attrs else known_numbers(inputs[1], "count")[0]
    how = "max" if attrs.get("largest", 1) else "min"
    return top(how, value_of(inputs[0]), int(attrs.get("axis", -1)), count)


def _shares(op: str) -> Callable[..., Result]:
    """A softmax. Before opset 13, it is one over all axes from the named one on."""

    def apply(inputs: Sequence[Given], attrs: Attrs) -> Result:
        x, late = value_of(inputs[0]), attrs["opset"] >= 13
        axis = axis_of(int(attrs.get("axis", -1 if late else 1)), x.ndim)
        if late or axis == x.ndim - 1:
            return step(op, [x], {"axis": axis})
        flat = reshaped(x, [*x.shape[:axis], math.prod(x.shape[axis:])])
        return reshaped(step(op, [flat], {"axis": axis}), x.shape)

    return apply


def _hardmax(inputs: Sequence[Given], attrs: Attrs) -> Result:
    x, late = value_of(inputs[0]), attrs["opset"] >= 13
    axis = axis_of(int(attrs.get("axis", -1 if late else 1)), x.ndim)
    if axis != x.ndim - 1:
        raise Unsupported("a Hardmax along another axis than the last one")
    place = place_of("max", x, axis, keep=False)
    return cast_to(step("one_hot", [place], {"depth": x.shape[axis]}), "real")


def _cumulated(inputs: Sequence[Given], attrs: Attrs) -> Result:
    if attrs.get("exclusive") or attrs.get("reverse"):
        raise Unsupported("a cumulative sum that is exclusive or goes backwards")
    x = value_of(inputs[0])
    return step("cumulate", [x], {"axis": axis_of(known_numbers(inputs[1], "axis")[0], x.ndim)})


def _one_hot(inputs: Sequence[Given], attrs: Attrs) -> Result:
    places, depth = value_of(inputs[0]), known_numbers(inputs[1], "depth")[0]
    off, on = known_array(inputs[2], "values").ravel()
    if places.kind != "whole":
        places = cast_to(places, "whole")
    axis = axis_of(int(attrs.get("axis", -1)), places.ndim + 1)
    flags = step("one_hot", [places], {"depth": depth})
    order = list(range(places.ndim))
    order.insert(axis, places.ndim)
    flags = flags if axis == places.ndim else transposed(flags, order)
    return step("where", [flags, constant(on), constant(off)], {})


OPERATIONS: dict[str, Callable[[Sequence[Given], Attrs], Result]] = {
    "Abs": _function("absolute"),
    "Add": _pair(add),
    "And": _pair(both("and")),
    "ArgMax": _place_of("max"),
    "ArgMin": _place_of("min"),
    "Cast": _cast,
    "Ceil": _function("ceil"),
    "Clip": _clip,
    "Concat": _concat,
    "Cos": _function("cos"),
    "CumSum": _cumulated,
    "DequantizeLinear": _dequantised,
    "Div": _pair(both("divide")),
    "Equal": _pair(both("equal")),
    "Exp": _function("exp"),
    "Expand": _expand,
    "Flatten": _flatten,
    "Floor": _function("floor"),
    "Gather": _gather,
    "Greater": _pair(both("less", turned=True)),
    "GreaterOrEqual": _pair(both("less_equal", turned=True)),
    "HardSigmoid": _hard_sigmoid,
    "Hardmax": _hardmax,
    "Identity": lambda inputs, attrs: value_of(inputs[0]),
    "LeakyRelu": _leaky_relu,
    "Less": _pair(both("less")),
    "LessOrEqual": _pair(both("less_equal")),
    "Log": _function("log"),
    "LogSoftmax": _shares("log_softmax"),
    "Max": _extreme("maximum", -math.inf),
    "Min": _extreme("minimum", math.inf),
    "Mod": _modulo,
    "Mul": _pair(multiply),
    "Neg": _function("negative"),
    "Not": lambda inputs, attrs: step("not", [value_of(inputs[0])], {}),
    "OneHot": _one_hot,
    "Or": _pair(both("or")),
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
    "Sub": _pair(subtract),
    "Sum": _several(add),
    "Tanh": _function("tanh"),
    "TopK": _top,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
    "Xor": _pair(both("equal", negated=True)),
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
