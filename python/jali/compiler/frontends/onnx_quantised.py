"""Operations of ONNX on quantised numbers, which are read as the real numbers that they stand for:
see jali.compiler.frontends.quantised_values.

Rounding is left out. An end of the type is kept where it is a ReLU: if the zero point is the low
end; and where the model's examples go far beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_layers import LAYERS
from jali.compiler.frontends.onnx_values import (
    FLOATS,
    Attrs,
    Operation,
    Value,
    given,
    inner,
    is_traced,
    numbers,
)
from jali.compiler.frontends.onnx_windows import WINDOWS
from jali.compiler.frontends.positive import positive_if
from jali.compiler.frontends.quantised_values import (
    BESIDE,
    TYPE_ENDS,
    Limits,
    Quantised,
    Range,
    Scale,
    Unscaled,
    Zero,
)
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.graph import Array, Shape
from jali.errors import Unsupported

__all__ = ["NOT_DEQUANTISED", "OF_QUANTISED", "QUANTISED", "moved_along"]

NOT_DEQUANTISED = "quantised numbers stand for real ones, which programs compute: let DequantizeLinear follow at once, or export the model as it was before it was quantised"
_OWN_SCALE = "the scale or the zero point of other numbers than those that it takes"

# TensorProto's numbers of types.
_TYPES = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 21: "uint4", 22: "int4"}


# --- scales and zero points -----------------------------------------------------------------------


def _beside(value: Array, shape: Shape, axis: int, block: int = 0) -> Array:
    """A scale or a zero point as an array that NumPy broadcasts onto this shape."""
    if value.size == 1:
        return value.reshape(())
    axis = inner(axis, len(shape))
    if value.ndim == 1:
        return value.reshape(-1, *(1,) * (len(shape) - axis - 1))
    if not block:
        return value
    return np.repeat(value, block, axis)[(slice(None),) * axis + (slice(shape[axis]),)]


def _quantised(x: Traced, inputs: Sequence[Value], place: int, attrs: Attrs) -> Quantised:
    """Traced numbers with the scale and the zero point of these inputs."""
    scale, zero = numbers(inputs[place], "scale"), given(inputs, place + 1)
    kind = _TYPES.get(int(attrs.get("output_dtype") or 2), "")
    if zero is not None:
        kind = np.asarray(zero).dtype.name if not is_traced(zero) else ""
    if kind not in TYPE_ENDS:
        raise Unsupported(
            f"quantised numbers of the type {kind or 'that is asked for'}: export the model as it was before it was quantised"
        )
    how = int(attrs.get("axis", 1)), int(attrs.get("block_size", 0))
    scale = _beside(scale, x.shape, *how)
    point = np.zeros(()) if zero is None else numbers(zero, "zero point")
    point = _beside(point, x.shape, *how)
    low, high = ((np.asarray(end) - point) * scale for end in TYPE_ENDS[kind])
    return Quantised(_within(x, low, high, attrs), scale, point)


def _within(x: Traced, low: Array, high: Array, attrs: Attrs) -> Traced:
    """The numbers, cut at the ends that matter."""
    label, kept, limits = attrs["label"], attrs["kept"], attrs["limits"]
    needed: set[str] | None = set()
    if relu := bool(np.all(low == 0)):
        known = {one.node for one in limits if np.all(one.low >= 0)}
        needed = positive_if(x.builder.nodes, x.node, known)
    if kept is None:  # with a node of its own, whose numbers are seen
        y = x._scaled(1.0, 0.0)
    else:
        lowest = low if needed is None or (label, "low") in kept else None
        y = layers.clamp(x, lowest, high if (label, "high") in kept else None)
    limits.append(Limits(label, y.node.name, low, high, relu and bool(needed)))
    return y


def _real(value: Value, scale: Value, zero: Value, axis: int = 1, block: int = 0) -> Value:
    """The real numbers that quantised ones stand for; a constant as an array."""
    if isinstance(value, Quantised) and value.range is not None:
        if not isinstance(scale, Scale) or not isinstance(zero, Zero):
            raise Unsupported(_OWN_SCALE)
        if scale.range is not value.range or zero.range is not value.range:
            raise Unsupported(_OWN_SCALE)
        return value.x if np.all(scale.factor == 1) else value.x * scale.factor
    x = value.x if isinstance(value, Quantised) else value
    if isinstance(x, BESIDE):
        raise Unsupported(NOT_DEQUANTISED)
    x = x if isinstance(x, Traced) else numbers(x, "array")
    factor = _beside(numbers(scale, "scale"), x.shape, axis, block)
    point = np.zeros(()) if zero is None else numbers(zero, "zero point")
    point = _beside(point, x.shape, axis, block)
    if not isinstance(x, Traced):
        return (x - point) * factor
    if isinstance(value, Quantised):
        ratio, offset = factor / value.scale, (value.zero - point) * factor
    else:
        ratio, offset = factor, -point * factor
    return x if np.all(ratio == 1) and not np.any(offset) else x._scaled(ratio, offset)


def _centred(value: Value, zero: Value, axis: int) -> tuple[Value, Range | None]:
    """Quantised numbers less their zero point, as real numbers; if they have a range, times its
    scale."""
    if isinstance(value, Quantised) and value.range is not None:
        if not isinstance(zero, Zero) or zero.range is not value.range:
            raise Unsupported(_OWN_SCALE)
        return value.x, value.range
    return _real(value, np.ones(()), zero, axis), None


# --- operations -----------------------------------------------------------------------------------


def _quantise(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if not isinstance(inputs[0], Traced):
        raise Unsupported(NOT_DEQUANTISED)
    return _quantised(inputs[0], inputs, 1, attrs)


def _dequantise(inputs: Sequence[Value], attrs: Attrs) -> Value:
    zero, block = given(inputs, 2), int(attrs.get("block_size", 0))
    return _real(inputs[0], inputs[1], zero, int(attrs.get("axis", 1)), block)


def _dynamic(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """The range reaches from the least number to the largest, so that nothing is beyond it."""
    if not isinstance(inputs[0], Traced):
        raise Unsupported(NOT_DEQUANTISED)
    of = Range()
    return [Quantised(inputs[0], range=of), Scale(of), Zero(of)][: attrs["outputs"]]


def _integer_product(inputs: Sequence[Value], attrs: Attrs) -> Value:
    a, left = _centred(inputs[0], _by_rows(given(inputs, 2)), -2)
    b, right = _centred(inputs[1], given(inputs, 3), -1)
    return _products(layers.matmul(a, b), left, right)


def _by_rows(value: Value) -> Value:
    """A zero point or a scale of each row of a matrix."""
    if value is None or is_traced(value) or np.ndim(value) != 1 or np.size(value) == 1:
        return value
    return np.asarray(value)[:, None]


def _integer_convolution(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, of = _centred(inputs[0], given(inputs, 2), 1)
    weight = _centred(inputs[1], given(inputs, 3), 0)[0]
    return _products(WINDOWS["Conv"]([x, weight], attrs), of, None)


def _products(y: Traced, left: Range | None, right: Range | None) -> Value:
    if left is not None and right is not None:
        raise Unsupported(
            "a product of two arrays that are both quantised by their own range: export the model as it was before it was quantised"
        )
    of = left or right
    return Quantised(y) if of is None else Unscaled(y, of)


def _convolution(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = _real(*inputs[:3])
    weight = _real(inputs[3], inputs[4], inputs[5], 0)
    bias = given(inputs, 8)
    if bias is not None:
        each = numbers(inputs[1], "scale").ravel() * numbers(inputs[4], "scale").ravel()
        bias = numbers(bias, "bias") * each
    y = WINDOWS["Conv"]([x, weight, *([] if bias is None else [bias])], attrs)
    return _quantised(y, inputs, 6, attrs)


def _product(inputs: Sequence[Value], attrs: Attrs) -> Value:
    a = _real(inputs[0], _by_rows(inputs[1]), _by_rows(inputs[2]), -2)
    y = layers.matmul(a, _real(inputs[3], inputs[4], inputs[5], -1))
    return _quantised(y, inputs, 6, {**attrs, "axis": -1})


def _gemm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """Of com.microsoft: alpha A B + C, where C has the scale alpha a b of those of A and B."""
    alpha = float(attrs.get("alpha", 1.0))
    a = _real(*inputs[:3])
    b = _real(inputs[3], inputs[4], inputs[5], 0 if attrs.get("transB") else 1)
    c = given(inputs, 6)
    if c is not None:
        c = numbers(c, "bias") * (numbers(inputs[1], "scale") * numbers(inputs[4], "scale") * alpha)
    y = LAYERS["Gemm"]([a, b, c], attrs)
    return y if given(inputs, 7) is None else _quantised(y, inputs, 7, attrs)


def _of_two(function: Callable[[Any, Any], Any]) -> Operation:
    """Of com.microsoft: A, B and the result, each with its scale and its zero point."""

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        y = function(_real(*inputs[:3]), _real(*inputs[3:6]))
        return _quantised(y, inputs, 6, attrs)

    return apply


def _global_mean(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = _real(*inputs[:3])
    axes = range(1, x.ndim - 1) if attrs.get("channels_last") else range(2, x.ndim)
    return _quantised(x.mean(tuple(axes), keepdims=True), inputs, 3, attrs)


def _cast(inputs: Sequence[Value], attrs: Attrs) -> Value:
    value = inputs[0]
    if attrs["to"] not in FLOATS or isinstance(value, Zero):
        raise Unsupported(NOT_DEQUANTISED)
    if not isinstance(value, Quantised):
        return value
    if value.range is not None:
        raise Unsupported(NOT_DEQUANTISED)
    return _real(value, np.ones(()), np.zeros(()))


def _times(inputs: Sequence[Value], attrs: Attrs) -> Value:
    a, b = inputs if isinstance(inputs[0], BESIDE) else inputs[::-1]
    if isinstance(a, Scale) and isinstance(b, Unscaled):
        a, b = b, a
    if isinstance(a, Unscaled) and isinstance(b, Scale) and a.range is b.range:
        return a.x * b.factor
    if isinstance(a, Scale) and not is_traced(b):
        return replace(a, factor=a.factor * numbers(b, "factor"))
    if isinstance(a, Unscaled) and not is_traced(b):
        return replace(a, x=a.x * numbers(b, "factor"))
    raise Unsupported(NOT_DEQUANTISED)


def _joined(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """Arrays of one scale and one zero point, one behind the other."""
    alike = all(isinstance(x, Quantised) and x.range is None for x in inputs)
    pairs = {(x.scale.tobytes(), x.zero.tobytes()) for x in inputs} if alike else set()
    if len(pairs) != 1 or inputs[0].scale.size * inputs[0].zero.size > 1:
        raise Unsupported(NOT_DEQUANTISED)
    joined = layers.concatenated([x.x for x in inputs], int(attrs["axis"]))
    return replace(inputs[0], x=joined)


def moved_along(operation: Operation) -> Operation:
    """An operation that moves or chooses numbers, of quantised ones that have one scale."""

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        value, *rest = inputs
        many = isinstance(value, Quantised) and value.scale.size * value.zero.size > 1
        if many or isinstance(value, (Scale, Zero)) or any(isinstance(x, BESIDE) for x in rest):
            raise Unsupported(NOT_DEQUANTISED)
        found = operation([value.x, *rest], attrs)
        if isinstance(found, (list, tuple)):
            return [replace(value, x=x) if isinstance(x, Traced) else x for x in found]
        return replace(value, x=found) if isinstance(found, Traced) else found

    return apply


#: Operations that quantise, or take quantised numbers, be they constants, inputs of the model, or
#: computed.
QUANTISED: dict[str, Operation] = {
    "ConvInteger": _integer_convolution,
    "DequantizeLinear": _dequantise,
    "DynamicQuantizeLinear": _dynamic,
    "MatMulInteger": _integer_product,
    "QGemm": _gemm,
    "QLinearAdd": _of_two(lambda a, b: a + b),
    "QLinearConv": _convolution,
    "QLinearGlobalAveragePool": _global_mean,
    "QLinearMatMul": _product,
    "QLinearMul": _of_two(lambda a, b: a * b),
    "QuantizeLinear": _quantise,
}
#: What other operations mean if they are given quantised numbers, or scales that nobody knows.
OF_QUANTISED: dict[str, Operation] = {
    **QUANTISED,
    "Cast": _cast,
    "Concat": _joined,
    "Mul": _times,
}
