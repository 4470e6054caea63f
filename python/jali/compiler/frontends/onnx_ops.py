"""Operations of ONNX that compute number by number, and sums. See
jali.compiler.frontends.onnx_values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import conditions, layers, maxima
from jali.compiler.frontends.onnx_values import (
    FLOATS,
    Attrs,
    Operation,
    Value,
    axes_of,
    clear,
    given,
    inner,
    is_traced,
    numbers,
    whole_numbers,
)
from jali.compiler.frontends.replacements import CLIENT, COMPARISON, STEP
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = ["COMPUTING", "INSTEAD", "reduced_axes"]

#: What to put in the place of operators that are not compiled.
INSTEAD = {
    **dict.fromkeys(("ArgMax", "ArgMin", "TopK", "Hardmax", "Unique", "NonMaxSuppression"), CLIENT),
    **dict.fromkeys(("Round", "Floor", "Ceil", "Mod"), STEP.format("leave it out")),
    "Equal": COMPARISON,
}
_BOOL = 9


# --- arithmetic -----------------------------------------------------------------------------------


def _real(value: Value) -> Value:
    """A traced array as it is, and a constant in the type in which programs compute."""
    return value if isinstance(value, Traced) else np.asarray(value).astype(np.float64)


def _binary(operation: Callable[[Any, Any], Any]) -> Operation:
    return lambda inputs, attrs: operation(_real(inputs[0]), _real(inputs[1]))


def _several(operation: Callable[[Any, Any], Any]) -> Operation:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        found = _real(inputs[0])
        for value in inputs[1:]:
            found = operation(found, _real(value))
        return found

    return apply


def _add(a: Value, b: Value) -> Value:
    for traced, other in ((a, b), (b, a)):
        if isinstance(other, np.ndarray) and isinstance(traced, Traced):
            return layers.masked(traced, other)
    return a + b


def _mean(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return _several(lambda a, b: a + b)(inputs, attrs) / len(inputs)


def _function(name: str) -> Operation:
    return lambda inputs, attrs: inputs[0]._function(name)


def _of_one(function: Callable[[Traced], Value]) -> Operation:
    return lambda inputs, attrs: function(inputs[0])


def _power(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, exponents = inputs[0], numbers(inputs[1], "exponent")
    if not isinstance(x, Traced):
        raise Unsupported("a power whose exponent depends on the input: write Exp(Mul(b, x))")
    different = np.unique(exponents)
    if len(different) == 1:
        y: Traced = _single_power(x, float(different[0]))
        return y._broadcast(np.broadcast_shapes(y.shape, exponents.shape))
    shape = np.broadcast_shapes(x.shape, exponents.shape)
    x, exponents = x._broadcast(shape), np.broadcast_to(exponents, shape)
    places = np.arange(x.size).reshape(shape)
    each = [places[exponents == e] for e in different]
    parts = [
        _single_power(layers.moved(x, p), float(e)) for e, p in zip(different, each, strict=True)
    ]
    joined = layers.concatenated(parts, 0)
    return layers.moved(joined, np.argsort(np.concatenate(each))).reshape(shape)


def _single_power(x: Traced, exponent: float) -> Traced:
    if exponent == 0:
        return x._scaled(0.0, 1.0)
    if exponent < -1 and exponent.is_integer():
        return (x ** int(-exponent))._inverse()
    if exponent.is_integer() or abs(exponent) == 0.5:
        return x ** (int(exponent) if exponent.is_integer() else exponent)
    return (x._function("log") * exponent)._function("exp")


def _cast(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs["to"] == _BOOL and conditions.is_condition(inputs[0]):
        return inputs[0]
    if attrs["to"] not in FLOATS:
        raise Unsupported(
            "a conversion to whole numbers or conditions: programs compute with real numbers, leave it out"
        )
    return conditions.number(inputs[0])


def _cast_like(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, like = inputs
    if isinstance(like, Traced):
        return np.asarray(x).astype(np.float64) if not is_traced(x) else x
    if np.asarray(like).dtype.name not in ("float32", "float64", "float16", "bfloat16"):
        return _cast([x], {"to": 0})
    return x


def _clip(inputs: Sequence[Value], attrs: Attrs) -> Value:
    ends = [attrs.get("min"), attrs.get("max")]
    for k, value in enumerate(inputs[1:]):
        if value is not None:
            ends[k] = float(clear(value, "range").ravel()[0])
    low, high = (None if v is None or abs(v) > 1e30 else v for v in ends)
    if low is not None and high is not None and low > high:
        low = high
    return inputs[0] if low is None and high is None else layers.clamp(inputs[0], low, high)


def _slopes(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return layers.leaky_relu(inputs[0], numbers(inputs[1], "slope"))


def _gelu(inputs: Sequence[Value], attrs: Attrs) -> Value:
    tanh = attrs.get("approximate", b"none") in (b"tanh", "tanh")
    return inputs[0]._function("gelu_tanh" if tanh else "gelu")


def _where(inputs: Sequence[Value], attrs: Attrs) -> Value:
    condition, a, b = inputs
    if is_traced(condition):
        return conditions.chosen(condition, _real(a), _real(b))
    return layers.chosen(condition, _real(a), _real(b))


def _compared(*, turned: bool, negated: bool) -> Operation:
    """A comparison as `greater` of its two arrays, which are turned round for "less", and negated
    for those that are true of equal numbers."""

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        a, b = map(_real, inputs)
        found = conditions.greater(b, a) if turned else conditions.greater(a, b)
        return conditions.inverted(found) if negated else found

    return apply


def _logical(of: Callable[..., Any]) -> Operation:
    return lambda inputs, attrs: of(*inputs)


def _thresholded(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    return x * conditions.greater(x, attrs.get("alpha", 1.0))


def _shrunk(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """x - bias above lambd, x + bias below -lambd, and 0 between."""
    x, bias, end = inputs[0], attrs.get("bias", 0.0), attrs.get("lambd", 0.5)
    above = conditions.greater(x, end) * (x - bias)
    return above + conditions.greater(-end, x) * (x + bias)


def _dropout(inputs: Sequence[Value], attrs: Attrs) -> Value:
    mode, ratio = given(inputs, 2), given(inputs, 1)
    trains = mode is not None and np.any(clear(mode, "mode"))
    if trains and (ratio is None or np.any(clear(ratio, "ratio"))):
        raise Unsupported("dropout in training mode is random: export the model in eval mode")
    return [inputs[0], np.ones(inputs[0].shape, np.bool_)]


def _never(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """Encrypted numbers are finite."""
    return np.zeros(inputs[0].shape, np.bool_)


# --- sums -----------------------------------------------------------------------------------------


def _reduced(mean: bool, inside: str = "", outside: str = "") -> Operation:
    """A sum or mean along axes.

    inside, outside: the functions of every number before it and behind it.
    """

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        x, along = inputs[0], reduced_axes(inputs, attrs)
        x = x * x if inside == "square" else x._function(inside) if inside else x
        y = x._summed(along, bool(attrs.get("keepdims", 1)), mean=mean)
        return y._function(outside) if outside else y

    return apply


def _extreme(of: Callable[..., Traced]) -> Operation:
    """The largest or smallest number along axes."""

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        return of(inputs[0], reduced_axes(inputs, attrs), bool(attrs.get("keepdims", 1)))

    return apply


def reduced_axes(inputs: Sequence[Value], attrs: Attrs) -> tuple[int, ...]:
    """The axes along which numbers are brought together: all, if none is named."""
    rank, axes = inputs[0].ndim, axes_of(inputs, attrs)
    if not axes:
        return () if attrs.get("noop_with_empty_axes") else tuple(range(rank))
    return tuple(inner(a, rank) for a in axes)


def _product(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """Products of halves, so that few levels are taken."""
    x, along = inputs[0], reduced_axes(inputs, attrs)
    rest = [a for a in range(x.ndim) if a not in along]
    y = x.transpose((*along, *rest)) if along else x.reshape(1, *x.shape)
    y = y.reshape(-1, *(x.shape[a] for a in rest))
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        pairs = y[:half] * y[half : 2 * half]
        y = pairs if y.shape[0] % 2 == 0 else layers.concatenated([pairs, y[2 * half :]], 0)
    kept = tuple(1 if a in along else n for a, n in enumerate(x.shape))
    return y.reshape(kept if attrs.get("keepdims", 1) else tuple(x.shape[a] for a in rest))


def _cumulated(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    axis = inner(whole_numbers(inputs[1], "axis")[0], x.ndim)
    sums = np.tri(x.shape[axis], k=-1 if attrs.get("exclusive") else 0)
    return layers.along(x, axis, sums.T if attrs.get("reverse") else sums)


def _products(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """All products of the first numbers of an axis: of one, two, four .. numbers in turn."""
    x, axis = inputs[0], inner(whole_numbers(inputs[1], "axis")[0], inputs[0].ndim)
    n = x.shape[axis]
    place = np.moveaxis(np.arange(x.size).reshape(x.shape), axis, -1)
    order = place[..., ::-1] if attrs.get("reverse") else place

    def shifted(y: Traced, by: int) -> Traced:
        """The numbers `by` places before, and ones in front."""
        source = np.full(x.size, -1)
        source[order[..., by:]] = order[..., : n - by]
        front = (source < 0).astype(np.float64).reshape(x.shape)
        return layers.moved(y, source.reshape(x.shape)) + front

    y = shifted(x, 1) if attrs.get("exclusive") and n > 1 else x
    if attrs.get("exclusive") and n == 1:
        return x._scaled(0.0, 1.0)
    by = 1
    while by < n:
        y = y * shifted(y, by)
        by *= 2
    return y


def _arc_sine(x: Traced) -> Traced:
    """asin(x) = atan(x / sqrt(1 - x^2))."""
    y: Traced = x * (1 - x * x)._function("inverse_sqrt")
    return y._function("atan")


#: Functions of single numbers that the compiler has by the same name.
_NAMED = (
    *("Asinh", "Atan", "Cos", "Cosh", "Sin", "Sinh"),
    *("Erf", "Exp", "Log", "Mish", "Relu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Tanh"),
)

COMPUTING: dict[str, Operation] = {
    **{name: _function(name.lower()) for name in _NAMED},
    "Abs": _function("absolute"),
    "Acos": _of_one(lambda x: math.pi / 2 - _arc_sine(x)),
    "Acosh": _of_one(lambda x: (x + (x * x - 1)._function("sqrt"))._function("log")),
    "Add": _binary(_add),
    "And": _logical(conditions.both),
    "Asin": _of_one(lambda x: _arc_sine(x)),
    "Atanh": _of_one(lambda x: ((1 + x)._function("log") - (1 - x)._function("log")) / 2),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Celu": lambda i, a: layers.elu(i[0], a.get("alpha", 1.0), 1.0, 1 / a.get("alpha", 1.0)),
    "Clip": _clip,
    "CumProd": _products,
    "CumSum": _cumulated,
    "Div": _binary(lambda a, b: a / b),
    "Dropout": _dropout,
    "Elu": lambda i, a: layers.elu(i[0], a.get("alpha", 1.0)),
    "Gelu": _gelu,
    "Greater": _compared(turned=False, negated=False),
    "GreaterOrEqual": _compared(turned=True, negated=True),
    "HardSigmoid": lambda i, a: layers.hard_sigmoid(i[0], a.get("alpha", 0.2), a.get("beta", 0.5)),
    "HardSwish": _of_one(lambda x: x * layers.hard_sigmoid(x)),
    "Identity": _of_one(lambda x: x),
    "OptionalGetElement": _of_one(lambda x: x),
    "IsInf": _never,
    "IsNaN": _never,
    "LeakyRelu": lambda i, a: layers.leaky_relu(i[0], a.get("alpha", 0.01)),
    "Less": _compared(turned=True, negated=False),
    "LessOrEqual": _compared(turned=False, negated=True),
    "Max": _several(lambda a, b: np.maximum(a, b)),
    "Mean": _mean,
    "Min": _several(lambda a, b: np.minimum(a, b)),
    "Mul": _binary(lambda a, b: a * b),
    "Neg": _of_one(lambda x: -x),
    "Not": _logical(conditions.inverted),
    "Or": _logical(conditions.either),
    "PRelu": _slopes,
    "Pow": _power,
    "Reciprocal": _of_one(lambda x: x._inverse()),
    "ReduceL1": _reduced(False, "absolute"),
    "ReduceL2": _reduced(False, "square", "sqrt"),
    "ReduceLogSum": _reduced(False, "", "log"),
    "ReduceLogSumExp": _reduced(False, "exp", "log"),
    "ReduceMax": _extreme(maxima.largest),
    "ReduceMean": _reduced(True),
    "ReduceMin": _extreme(maxima.smallest),
    "ReduceProd": _product,
    "ReduceSum": _reduced(False),
    "ReduceSumSquare": _reduced(False, "square"),
    "Selu": lambda i, a: layers.elu(
        i[0], a.get("alpha", 1.67326319217681884765625), a.get("gamma", 1.05070102214813232421875)
    ),
    "Shrink": _shrunk,
    "Sign": _function("sign"),
    "Sub": _binary(lambda a, b: a - b),
    "Sum": _several(lambda a, b: a + b),
    "Tan": _of_one(lambda x: x._function("sin") / x._function("cos")),
    "Swish": lambda i, a: i[0] * (i[0] * a.get("alpha", 1.0))._function("sigmoid"),
    "ThresholdedRelu": _thresholded,
    "Where": _where,
    "Xor": _logical(conditions.exactly_one),
}
