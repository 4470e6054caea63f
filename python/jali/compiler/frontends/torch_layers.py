"""Operators of PyTorch's exported graphs (aten) that are layers: windows, normalisation and
attention.

An operator's arguments have PyTorch's names; ``x`` is the one that it calls ``self`` or ``input``.
Clear tensors come as arrays of NumPy. Nothing here imports PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers, maxima
from jali.compiler.frontends.torch_ops import Operator, Value, clear, operator_in
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = ["LAYERS", "OWN_STATISTICS"]

OWN_STATISTICS = "it uses the statistics of the batch, and so mixes examples: use track_running_stats=True and eval mode"

LAYERS: dict[str, Operator] = {}
_operator = operator_in(LAYERS)


# --- windows --------------------------------------------------------------------------------------


def _each(value: Any, axes: int, default: Any = None) -> tuple[int, ...]:
    """One number for each axis, of one for all or none, which stands for the default."""
    if value is None or (isinstance(value, Sequence) and not value):
        value = default
    numbers = list(value) if isinstance(value, Sequence) else [value]
    return tuple(int(n) for n in (numbers * axes if len(numbers) == 1 else numbers))


@_operator("conv1d", "conv2d", "conv3d", "convolution")
def _convolution(
    x: Value,
    weight: Value,
    bias: Value = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
) -> Traced:
    weight, bias = clear(weight, "weight"), clear(bias, "bias")
    axes = weight.ndim - 2
    strides, dilations = _each(stride, axes), _each(dilation, axes)
    if transposed:
        return layers.transposed_convolution(
            x,
            weight,
            bias,
            stride=strides,
            padding=_each(padding, axes),
            output_padding=_each(output_padding, axes),
            dilation=dilations,
            groups=groups,
        )
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
        widths = [(n // 2, n - n // 2) for n in total]
    else:
        widths = [(p, p) for p in _each(0 if padding == "valid" else padding, axes)]
    return layers.convolution(
        x, weight, bias, stride=strides, padding=widths, dilation=dilations, groups=groups
    )


@_operator("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _transposed(
    x: Value,
    weight: Value,
    bias: Value = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Traced:
    y: Traced = _convolution(
        x, weight, bias, stride, padding, dilation, True, output_padding, groups
    )
    return y


def _average_pool(axes: int) -> Operator:
    def pool(
        x: Traced,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Traced:
        kernel = _each(kernel_size, axes)
        y = layers.average_pool(
            x,
            kernel,
            _each(stride, axes, kernel),
            [(p, p) for p in _each(padding, axes)],
            ceil=ceil_mode,
            count_padding=count_include_pad,
        )
        if divisor_override is None:
            return y
        if ceil_mode or not count_include_pad:
            raise Unsupported(
                "divisor_override with ceil_mode or count_include_pad=False: leave it out, and scale the result"
            )
        return y * (math.prod(kernel) / divisor_override)

    return pool


for _n in (1, 2, 3):
    LAYERS[f"avg_pool{_n}d"] = _average_pool(_n)
    LAYERS[f"adaptive_avg_pool{_n}d"] = lambda x, output_size, axes=_n: layers.adaptive_pool(
        x, _each(output_size, axes)
    )


def _max_pool(axes: int, *, places: bool) -> Operator:
    def pool(
        x: Traced,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        kernel = _each(kernel_size, axes)
        y = maxima.pooled(
            x,
            kernel,
            _each(stride, axes, kernel),
            [(p, p) for p in _each(padding, axes)],
            _each(dilation, axes),
            ceil=ceil_mode,
        )
        return (y, None) if places else y

    return pool


for _n in (1, 2, 3):
    LAYERS[f"max_pool{_n}d"] = _max_pool(_n, places=False)
    LAYERS[f"max_pool{_n}d_with_indices"] = _max_pool(_n, places=True)
    LAYERS[f"adaptive_max_pool{_n}d"] = lambda x, output_size, axes=_n: (
        maxima.adaptively_pooled(x, _each(output_size, axes)),
        None,
    )


@_operator("pad", "constant_pad_nd")
def _pad(
    x: Traced, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Traced:
    widths = [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return layers.padded(x, widths, names[mode], float(value or 0.0))


@_operator("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def _nearest(x: Traced, output_size: Any, scale_factors: Any = None) -> Traced:
    axes = x.ndim - 2
    for k in range(axes):
        n = x.shape[k + 2]
        m = int(n * scale_factors[k]) if output_size is None else int(output_size[k])
        ratio = n / m if scale_factors is None else 1 / scale_factors[k]
        places = np.minimum((np.arange(m) * ratio).astype(int), n - 1)
        x = layers.taken(x, k + 2, places)
    return x


# --- normalisation and attention ------------------------------------------------------------------


@_operator("batch_norm", "_native_batch_norm_legit_no_training")
def _batch_norm(
    x: Traced,
    weight: Value,
    bias: Value,
    running_mean: Value,
    running_var: Value,
    eps: float,
    training: bool = False,
) -> Any:
    if training or running_mean is None:
        raise Unsupported(OWN_STATISTICS)
    factor = 1 / np.sqrt(running_var + eps)
    factor = factor if weight is None else factor * weight
    offset = (0.0 if bias is None else bias) - running_mean * factor
    shape = (-1, *(1,) * (x.ndim - 2))
    return (x._scaled(factor.reshape(shape), offset.reshape(shape)), None, None)


@_operator("layer_norm", "native_layer_norm")
def _layer_norm(
    x: Traced,
    normalized_shape: Sequence[int],
    weight: Value = None,
    bias: Value = None,
    eps: float = 1e-5,
) -> Traced:
    y = layers.normalised(x, range(x.ndim - len(normalized_shape), x.ndim), eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@_operator("rms_norm")
def _rms_norm(
    x: Traced, normalized_shape: Sequence[int], weight: Value = None, eps: float | None = None
) -> Traced:
    axes = range(x.ndim - len(normalized_shape), x.ndim)
    y = layers.normalised(
        x, axes, float(np.finfo(np.float32).eps) if eps is None else eps, centred=False
    )
    return y if weight is None else y * weight


@_operator("group_norm")
def _group_norm(
    x: Traced, num_groups: int, weight: Value = None, bias: Value = None, eps: float = 1e-5
) -> Traced:
    return layers.group_norm(x, num_groups, weight, bias, eps)


@_operator("instance_norm")
def _instance_norm(
    x: Traced,
    weight: Value,
    bias: Value,
    running_mean: Value,
    running_var: Value,
    use_input_stats: bool,
    eps: float,
) -> Traced:
    if not use_input_stats:
        result: Traced = _batch_norm(x, weight, bias, running_mean, running_var, eps)[0]
        return result
    return layers.group_norm(x, x.shape[1], weight, bias, eps)


@_operator("softmax", "_softmax")
def _softmax(x: Any, dim: int, half_to_float: bool = False) -> Traced:
    return layers.softmax(x, dim)


@_operator("scaled_dot_product_attention")
def _attention(
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise Unsupported("dropout in training mode is random: call eval() on the module")
    mask = attn_mask
    if isinstance(mask, Traced):
        mask = layers.Mask(mask) if mask.is_condition else mask
    if is_causal:
        mask = np.tri(query.shape[-2], key.shape[-2], dtype=np.bool_)
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        mask = np.where(mask, 0.0, -np.inf)
    if enable_gqa:
        key, value = (_repeated(v, query.shape[-3] // v.shape[-3]) for v in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    return layers.attention(query, key, value, mask, factor)


def _repeated(x: Traced, times: int) -> Traced:
    return layers.taken(x, -3, np.repeat(np.arange(x.shape[-3]), times))
