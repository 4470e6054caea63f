"""Operations of ONNX that slide a window: convolutions and pools. See
jali.compiler.frontends.onnx_values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers, maxima
from jali.compiler.frontends.onnx_values import Attrs, Operation, Value, numbers, optional, text
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.graph import Array, Shape
from jali.compiler.ir.windows import Places, window_places
from jali.errors import InvalidArgument, Unsupported

__all__ = ["WINDOWS"]

_Pairs = tuple[tuple[int, int], ...]


def _sizes(values: Any, axes: int, otherwise: int = 1) -> Shape:
    return tuple(int(v) for v in (values or [otherwise] * axes))


def _padding(attrs: Attrs, size: Shape, kernel: Shape, dilation: Shape, stride: Shape) -> _Pairs:
    auto, axes = text(attrs.get("auto_pad", "NOTSET")), len(kernel)
    if len(size) != axes:
        raise InvalidArgument(
            f"its window has {axes} axes, and its input {len(size)} behind batch and channels"
        )
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        totals = [
            max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
            for n, k, d, s in zip(size, kernel, dilation, stride, strict=True)
        ]
        return _halved(totals, upper=auto == "SAME_UPPER")
    pads = _sizes(attrs.get("pads"), 2 * axes, 0)
    return tuple((pads[k], pads[k + axes]) for k in range(axes))


def _halved(totals: Sequence[int], *, upper: bool) -> _Pairs:
    """Each number in two halves, of which the second or the first is the larger."""
    pairs = [(n // 2, n - n // 2) for n in totals]
    return tuple(pairs if upper else [(b, a) for a, b in pairs])


def _convolution(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, weight, bias = inputs[0], numbers(inputs[1], "weight"), optional(inputs, 2, "bias")
    kernel = weight.shape[2:]
    stride = _sizes(attrs.get("strides"), len(kernel))
    dilation = _sizes(attrs.get("dilations"), len(kernel))
    padding = _padding(attrs, x.shape[2:], kernel, dilation, stride)
    return _convolved(x, weight, bias, stride, padding, dilation, int(attrs.get("group", 1)))


def _convolved(
    x: Traced,
    weight: Array,
    bias: Array | None,
    stride: Shape,
    padding: _Pairs,
    dilation: Shape,
    groups: int,
) -> Traced:
    return layers.convolution(
        x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


def _transposed(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, weight, bias = inputs[0], numbers(inputs[1], "weight"), optional(inputs, 2, "bias")
    axes, sizes = weight.ndim - 2, x.shape[2:]
    stride, dilation = (_sizes(attrs.get(key), axes) for key in ("strides", "dilations"))
    more = _sizes(attrs.get("output_padding"), axes, 0)
    auto, wanted = text(attrs.get("auto_pad", "NOTSET")), attrs.get("output_shape")
    if wanted is None and auto.startswith("SAME"):
        wanted = [n * s for n, s in zip(sizes, stride, strict=True)]
    if wanted is None:
        flat = _sizes(attrs.get("pads"), 2 * axes, 0)
        pads: _Pairs = tuple((flat[k], flat[k + axes]) for k in range(axes))
    else:
        reached = zip(sizes, stride, weight.shape[2:], dilation, more, wanted, strict=True)
        totals = [s * (n - 1) + o + d * (k - 1) + 1 - int(w) for n, s, k, d, o, w in reached]
        pads = _halved(totals, upper=auto == "SAME_UPPER")
    y = layers.transposed_convolution(
        x,
        weight,
        bias,
        stride=stride,
        padding=(0,) * axes,
        output_padding=more,
        dilation=dilation,
        groups=int(attrs.get("group", 1)),
    )
    return layers.padded(y, [(-a, -b) for a, b in pads], "constant")


# --- pools ----------------------------------------------------------------------------------------


def _average_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, kernel = inputs[0], _sizes(attrs["kernel_shape"], 0)
    stride = _sizes(attrs.get("strides"), len(kernel))
    dilation = _sizes(attrs.get("dilations"), len(kernel))
    padding = _padding(attrs, x.shape[2:], kernel, dilation, stride)
    counted = bool(attrs.get("count_include_pad", 0))
    if not attrs.get("ceil_mode") and all(d == 1 for d in dilation):
        return layers.average_pool(x, kernel, stride, padding, count_padding=counted)
    for k, (size, step, by, pad) in enumerate(zip(kernel, stride, dilation, padding, strict=True)):
        ceil = bool(attrs.get("ceil_mode"))
        places = window_places(x.shape[2 + k], size, step, by, pad, ceil=ceil)
        x = layers.along(x, 2 + k, _means(places, x.shape[2 + k], pad[1], counted))
    return x


def _means(places: Places, n: int, after: int, counted: bool) -> Array:
    """The matrix (windows, n) of means of the numbers at these places."""
    inside = (places >= 0) & (places < n)
    counts = ((places < n + after) if counted else inside).sum(1)
    matrix = np.zeros((len(places), n))
    rows, columns = np.nonzero(inside)
    matrix[rows, places[rows, columns]] = 1.0 / counts[rows]
    return matrix


def _global_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return inputs[0].mean(tuple(range(2, inputs[0].ndim)), keepdims=True)


def _max_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs["outputs"] > 1:
        raise Unsupported(
            "the places of the largest numbers, its second output: nobody knows them while they are encrypted, leave that output out"
        )
    x, kernel = inputs[0], _sizes(attrs["kernel_shape"], 0)
    stride, dilation = (_sizes(attrs.get(key), len(kernel)) for key in ("strides", "dilations"))
    padding = _padding(attrs, x.shape[2:], kernel, dilation, stride)
    return maxima.pooled(x, kernel, stride, padding, dilation, ceil=bool(attrs.get("ceil_mode")))


def _global_max_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return maxima.largest(inputs[0], tuple(range(2, inputs[0].ndim)), keepdims=True)


def _lp_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """The root of the sum of powers under a window."""
    kernel, p = attrs["kernel_shape"], int(attrs.get("p", 2))
    powers = inputs[0]._function("absolute") if p % 2 else inputs[0]
    powers = powers**p if p > 1 else powers
    sums = _average_pool([powers], {**attrs, "count_include_pad": 1}) * math.prod(kernel)
    return _root(sums, p)


def _global_lp_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, p = inputs[0], int(attrs.get("p", 2))
    powers = x._function("absolute") if p % 2 else x
    powers = powers**p if p > 1 else powers
    return _root(powers.sum(tuple(range(2, x.ndim)), keepdims=True), p)


def _root(sums: Traced, p: int) -> Traced:
    if p < 3:
        return sums._function("sqrt") if p == 2 else sums
    return (sums._function("log") * (1 / p))._function("exp")


def _response_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    """x / (bias + alpha / size times the sum of squares of neighbouring channels)^beta."""
    x, size, channels = inputs[0], int(attrs["size"]), inputs[0].shape[1]
    at = np.arange(channels)
    distance = at - at[:, None]
    near = (distance >= -((size - 1) // 2)) & (distance <= size - 1 - (size - 1) // 2)
    scale = attrs.get("alpha", 1e-4) / size
    sums = layers.along(x * x, 1, near * scale) + attrs.get("bias", 1.0)
    return x * (sums._function("log") * -attrs.get("beta", 0.75))._function("exp")


WINDOWS: dict[str, Operation] = {
    "AveragePool": _average_pool,
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "GlobalAveragePool": _global_pool,
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": _global_max_pool,
    "LRN": _response_norm,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
}
