"""Operations of ONNX that are layers: matrices, windows, normalisation and softmax. See
jali.compiler.frontends.onnx_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_ops import (
    DIFFERING,
    Attrs,
    Operation,
    Value,
    aligned,
    clear,
    inner,
)
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.graph import Shape
from jali.compiler.ir.linear_ops import Dense
from jali.errors import Unsupported

__all__ = ["LAYERS"]


def _gemm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, weight = inputs[0], clear(inputs[1], "weight").astype(np.float64)
    if attrs.get("transA"):
        raise Unsupported(
            "transA exchanges the batch with the features: export the model with transA=0"
        )
    if not attrs.get("transB"):
        weight = weight.T
    bias = None
    if len(inputs) > 2 and inputs[2] is not None:
        full = np.asarray(clear(inputs[2], "bias"), np.float64) * attrs.get("beta", 1.0)
        if full.ndim == 2 and len(full) != 1:
            raise Unsupported(DIFFERING)
        bias = np.broadcast_to(full, (1, len(weight)))[0].copy()
    return x._add("gemm", Dense(weight=weight * attrs.get("alpha", 1.0), bias=bias), x)


def _matmul(inputs: Sequence[Value], attrs: Attrs) -> Value:
    a, b = inputs
    if isinstance(b, Traced) and b.ndim == 1:
        raise Unsupported(
            "a product with a batch of vectors on the right: put the vectors on the left, or give them another axis"
        )
    if isinstance(a, Traced) and isinstance(b, Traced):
        return layers.matmul(a, aligned(a, b))
    if isinstance(a, Traced):
        return layers.matmul(a, b if np.ndim(b) <= 2 else aligned(a, b))
    return layers.matmul(a if np.ndim(a) <= 2 else aligned(b, a), b)


# --- windows
# ----------------------------------------------------------------------------------------


def _padding(attrs: Attrs, size: Shape, kernel: Shape, dilation: Shape, stride: Shape) -> Any:
    auto = attrs.get("auto_pad", b"NOTSET")
    auto = auto.decode() if isinstance(auto, bytes) else auto
    axes = len(kernel)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for n, k, d, s in zip(size, kernel, dilation, stride, strict=True):
            total = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
            small, large = total // 2, total - total // 2
            found.append((small, large) if auto == "SAME_UPPER" else (large, small))
        return tuple(found)
    pads = attrs.get("pads", [0] * (2 * axes))
    return tuple((int(pads[k]), int(pads[k + axes])) for k in range(axes))


def _sizes(values: Any, axes: int) -> Shape:
    return tuple(int(v) for v in (values or [1] * axes))


def _weights(inputs: Sequence[Value]) -> tuple[Any, Any]:
    bias = None
    if len(inputs) > 2 and inputs[2] is not None:
        bias = clear(inputs[2], "bias").astype(np.float64)
    return clear(inputs[1], "weight").astype(np.float64), bias


def _convolution(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, (weight, bias) = inputs[0], _weights(inputs)
    kernel = weight.shape[2:]
    stride = _sizes(attrs.get("strides"), len(kernel))
    dilation = _sizes(attrs.get("dilations"), len(kernel))
    return layers.convolution(
        x,
        weight,
        bias,
        stride=stride,
        padding=_padding(attrs, x.shape[1:], kernel, dilation, stride),
        dilation=dilation,
        groups=int(attrs.get("group", 1)),
    )


def _transposed(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, (weight, bias) = inputs[0], _weights(inputs)
    axes = weight.ndim - 2
    if attrs.get("auto_pad", b"NOTSET") != b"NOTSET" or "output_shape" in attrs:
        raise Unsupported(
            "a transposed convolution with auto_pad or output_shape: export it with pads"
        )
    pads = attrs.get("pads", [0] * (2 * axes))
    y = layers.transposed_convolution(
        x,
        weight,
        bias,
        stride=_sizes(attrs.get("strides"), axes),
        padding=(0,) * axes,
        output_padding=_sizes(attrs.get("output_padding") or [0] * axes, axes),
        dilation=_sizes(attrs.get("dilations"), axes),
        groups=int(attrs.get("group", 1)),
    )
    return layers.padded(y, [(-pads[k], -pads[k + axes]) for k in range(axes)], "constant")


def _average_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, kernel = inputs[0], tuple(int(k) for k in attrs["kernel_shape"])
    if attrs.get("ceil_mode") or any(d != 1 for d in attrs.get("dilations", ())):
        raise Unsupported(
            "an average pool with ceil_mode or dilations: train the model without them"
        )
    stride, ones = _sizes(attrs.get("strides"), len(kernel)), (1,) * len(kernel)
    padding = _padding(attrs, x.shape[1:], kernel, ones, stride)
    counted = bool(attrs.get("count_include_pad", 0))
    return layers.average_pool(x, kernel, stride, padding, count_padding=counted)


def _global_pool(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return inputs[0].mean(tuple(range(1, inputs[0].ndim)), keepdims=True)


# --- normalisation
# ----------------------------------------------------------------------------------


def _batch_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    scale, shift, mean, variance = (clear(v, "statistics").astype(np.float64) for v in inputs[1:5])
    if attrs.get("training_mode"):
        raise Unsupported("batch normalisation in training mode: export the model in eval mode")
    factor = scale / np.sqrt(variance + attrs.get("epsilon", 1e-5))
    axes = (-1, *(1,) * (x.ndim - 1))
    return x._scaled(factor.reshape(axes), (shift - mean * factor).reshape(axes))


def _parts(inputs: Sequence[Value]) -> list[Any]:
    """Scale and bias of a normalisation, or None."""
    given = [v for v in inputs[1:3] if v is not None]
    arrays = [clear(v, "scale or bias").astype(np.float64) for v in given]
    return [*arrays, None, None][:2]


def _layer_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs["outputs"] > 1:
        raise Unsupported(
            "a layer normalisation that also gives mean and deviation: use its first output alone"
        )
    x, (scale, bias) = inputs[0], _parts(inputs)
    axes = range(inner(attrs.get("axis", -1), x.ndim + 1), x.ndim)
    y = layers.normalised(x, axes, attrs.get("epsilon", 1e-5))
    y = y if scale is None else y * aligned(y, scale)
    return y if bias is None else y + aligned(y, bias)


def _instance_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, (scale, bias) = inputs[0], _parts(inputs)
    y = x.reshape(1, *x.shape)
    y = layers.group_norm(y, x.shape[0], scale, bias, attrs.get("epsilon", 1e-5))
    return y.reshape(x.shape)


def _group_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, (scale, bias) = inputs[0], _parts(inputs)
    groups = int(attrs["num_groups"])
    if attrs["opset"] < 21:  # scale and bias of each group
        scale, bias = (np.repeat(v, x.shape[0] // groups) for v in (scale, bias))
    y = layers.group_norm(x.reshape(1, *x.shape), groups, scale, bias, attrs.get("epsilon", 1e-5))
    return y.reshape(x.shape)


def _rms_norm(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, (scale, _) = inputs[0], _parts(inputs)
    axes = range(inner(attrs.get("axis", -1), x.ndim + 1), x.ndim)
    y = layers.normalised(x, axes, attrs.get("epsilon", 1e-5), centred=False)
    return y if scale is None else y * aligned(y, scale)


def _softmax(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    shape = x.x.shape if isinstance(x, layers.Masked) else x.shape
    if attrs["opset"] >= 13:
        return layers.softmax(x, inner(attrs.get("axis", -1), len(shape) + 1))
    first = inner(
        attrs.get("axis", 1), len(shape) + 1
    )  # earlier, all axes from this one on together
    if first < len(shape) - 1:
        raise Unsupported("a softmax over several axes: export the model with opset 13 or later")
    return layers.softmax(x, first)


LAYERS: dict[str, Operation] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "MatMul": _matmul,
    "RMSNormalization": _rms_norm,
    "Softmax": _softmax,
}
