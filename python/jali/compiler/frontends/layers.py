"""Layers of networks in terms of the operations of traced graphs. The readers of models share them.

Axes are those of the traced arrays, which may or may not have one for the batch; the caller knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core.axes import axes as axes_of
from jali._core.console import counted_text
from jali.compiler.frontends import conditions
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.graph import Array, Shape
from jali.compiler.ir.linear_ops import Concat, Pad, Take
from jali.compiler.ir.windows import AveragePool, Convolution
from jali.errors import InvalidArgument, Unsupported

__all__ = [
    "MINUS_INFINITY",
    "MISPLACED",
    "Mask",
    "Masked",
    "adaptive_pool",
    "along",
    "as_traced",
    "attention",
    "average_pool",
    "chosen",
    "clamp",
    "concatenated",
    "convolution",
    "elu",
    "group_norm",
    "halves",
    "hard_sigmoid",
    "leaky_relu",
    "masked",
    "matmul",
    "moved",
    "normalised",
    "padded",
    "softmax",
    "softplus",
    "taken",
    "transposed_convolution",
    "variance",
]

#: Masks have minus infinity or the least number of a type, which are at most this.
MINUS_INFINITY = -1e30


#: Why an array with minus infinity is refused.
MISPLACED = "minus infinity can be added to what goes into a softmax, and nowhere else"


@dataclass(frozen=True)
class Masked:
    """An array that is minus infinity where ``keep`` is false, and x elsewhere. A softmax gives 0
    there.

    keep: an array, or flags that are encrypted.
    """

    x: Traced
    keep: Any


@dataclass(frozen=True)
class Mask:
    """An array that is 0 where encrypted flags are 1, and minus infinity elsewhere."""

    keep: Traced


def along(x: Traced, axis: int, matrix: Array) -> Traced:
    """The product of a clear matrix (m, n) with every vector along an axis of n numbers."""
    axis %= x.ndim
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    moved = x if axis == x.ndim - 1 else x.transpose(tuple(order))
    y: Traced = moved @ np.asarray(matrix, np.float64).T
    return y if axis == x.ndim - 1 else y.transpose(tuple(int(a) for a in np.argsort(order)))


def taken(x: Traced, axis: int, indices: Any) -> Traced:
    """The numbers at these places of an axis, in their order: numpy.take."""
    places = np.asarray(indices).ravel()
    if x.is_condition:  # a move keeps that, and a product with a matrix does not
        return moved(x, np.take(np.arange(x.size).reshape(x.shape), places, axis=axis))
    return along(x, axis, np.eye(x.shape[axis])[places])


def moved(x: Traced, places: Any) -> Traced:
    """The numbers at these places of the flattened array, in the shape of `places`; -1 stands for a
    zero."""
    return x._add("take", Take(places=np.asarray(places, np.float64)), x)


def matmul(a: Any, b: Any) -> Any:
    """numpy.matmul of arrays of any number of axes, of which at least one is traced."""
    if isinstance(a, Traced) and not isinstance(b, Traced) and np.ndim(b) <= 2:
        return a @ b
    if not isinstance(a, Traced) and np.ndim(a) == 2 and b.ndim > 1:
        return along(b, -2, a)
    both = isinstance(a, Traced) and isinstance(b, Traced)
    if both and min(a.ndim, b.ndim) > 1 and min(a.shape[-2], b.shape[-1]) > 1:
        return a @ b
    ends = (() if a.ndim == 1 else (a.shape[-2],)) + (() if b.ndim == 1 else (b.shape[-1],))
    rows = a.reshape(*a.shape[:-1], 1, a.shape[-1]) if a.ndim > 1 else a.reshape(1, 1, -1)
    columns = _columns(b if b.ndim > 1 else b.reshape(-1, 1))
    product = rows * columns
    return product.sum(-1).reshape(*product.shape[:-3], *ends)


def _columns(b: Any) -> Any:
    order = (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)
    turned = b.transpose(order)
    return turned.reshape(*turned.shape[:-2], 1, *turned.shape[-2:])


def concatenated(arrays: Sequence[Any], axis: int) -> Traced:
    """Traced arrays, and clear ones, one after the other."""
    first: Traced = next(x for x in arrays if isinstance(x, Traced))
    parts = [x if isinstance(x, Traced) else as_traced(first, x) for x in arrays]
    return first._add("concat", Concat(axis=axes_of(axis, first.ndim)[0]), *parts)


def as_traced(of: Traced, value: Any) -> Traced:
    """A clear array as a traced one: zero times a number, and the array added."""
    array = np.asarray(value, np.float64)
    one = of.reshape(-1)[:1].reshape((1,) * array.ndim)
    return one._scaled(np.zeros(array.shape), array)


def halves(x: Traced, axis: int) -> tuple[Traced, Traced]:
    """The first half of an axis, and the second."""
    n, moved = x.shape[axis] // 2, [slice(None)] * x.ndim
    parts = []
    for part in (slice(0, n), slice(n, 2 * n)):
        moved[axis] = part
        parts.append(x[tuple(moved)])
    return parts[0], parts[1]


def padded(x: Traced, widths: Sequence[tuple[int, int]], mode: str, value: float = 0.0) -> Traced:
    """The array with (before, after) more numbers along its last axes; negative widths cut.

    mode: "constant", or how NumPy's pad calls it: "reflect", "edge", "wrap".
    """
    full = [(0, 0)] * (x.ndim - len(widths)) + [(int(a), int(b)) for a, b in widths]
    cuts = [slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(full, x.shape, strict=True)]
    x, full = x[tuple(cuts)], [(max(0, a), max(0, b)) for a, b in full]
    if not any(map(any, full)):
        return x
    if mode == "constant":
        y = x._add("pad", Pad(widths=tuple(full)), x)
        border = np.pad(np.zeros(x.shape), full, constant_values=value)
        return y + border if value else y
    for axis, pair in enumerate(full):
        if any(pair):
            x = taken(x, axis, np.pad(np.arange(x.shape[axis]), pair, mode=mode))  # type: ignore[call-overload]
    return x


# --- windows --------------------------------------------------------------------------------------


def convolution(
    x: Traced,
    weight: Array,
    bias: Array | None,
    *,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
    groups: int,
) -> Traced:
    """The convolution of (.., channels, *sizes).

    padding: (before, after) of every axis.
    """
    axes = weight.ndim - 2
    outer, inner = x.shape[: -axes - 1], x.shape[-axes - 1 :]
    if len(inner) != axes + 1:
        raise InvalidArgument(
            f"its window has {counted_text(axes, 'axis', 'axes')}, and its input the shape {x.shape}: it takes (channels, *sizes)"
        )
    many = math.prod(outer)  # examples within an example are groups of channels
    flat = x.reshape(many * inner[0], *inner[1:])
    y = flat._add(
        "convolution",
        Convolution(
            weight=np.tile(weight, (many, *(1,) * (axes + 1))),
            bias=None if bias is None else np.tile(bias, many),
            stride=tuple(stride),
            padding=tuple((int(a), int(b)) for a, b in padding),
            dilation=tuple(dilation),
            groups=groups * many,
        ),
        flat,
    )
    return y.reshape(*outer, len(weight), *y.shape[1:])


def transposed_convolution(
    x: Traced,
    weight: Array,
    bias: Array | None,
    *,
    stride: Shape,
    padding: Shape,
    output_padding: Shape,
    dilation: Shape,
    groups: int,
) -> Traced:
    """The transpose of a convolution: zeros between the numbers, and a convolution with the kernel
    turned round.

    weight: (channels, out channels / groups, *kernel).
    """
    axes = weight.ndim - 2
    for k in range(axes):
        n, axis = x.shape[k - axes], x.ndim - axes + k
        spread = np.zeros((stride[k] * (n - 1) + 1, n))
        spread[:: stride[k]] = np.eye(n)
        x = along(x, axis, spread) if stride[k] > 1 else x
    reach = [d * (s - 1) for d, s in zip(dilation, weight.shape[2:], strict=True)]
    widths = [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True)]
    x = padded(x, widths, "constant")
    parts = weight.reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2)
    turned = np.flip(parts.reshape(-1, *parts.shape[2:]), tuple(range(2, weight.ndim)))
    ones, none = (1,) * axes, ((0, 0),) * axes
    return convolution(
        x, turned.copy(), bias, stride=ones, padding=none, dilation=dilation, groups=groups
    )


def average_pool(
    x: Traced,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    *,
    ceil: bool = False,
    count_padding: bool = True,
) -> Traced:
    """The mean under a window over the last axes.

    ceil: the last window may begin inside the array or its padding and end outside, where nothing
        counts.
    """
    axes = len(kernel)
    if ceil:
        for k in range(axes):
            axis = x.ndim - axes + k
            mean = _window_means(x.shape[axis], kernel[k], stride[k], padding[k], count_padding)
            x = along(x, axis, mean)
        return x
    outer = x.shape[:-axes]
    flat = x.reshape(-1, *x.shape[-axes:])
    y = flat._add(
        "average_pool",
        AveragePool(
            kernel=tuple(kernel),
            stride=tuple(stride),
            padding=tuple((int(a), int(b)) for a, b in padding),
            count_padding=count_padding,
        ),
        flat,
    )
    return y.reshape(*outer, *y.shape[1:])


def _window_means(
    n: int, kernel: int, stride: int, padding: tuple[int, int], count_padding: bool
) -> Array:
    """The matrix of an average pool with ceil_mode along one axis, by PyTorch's definition."""
    before, after = padding
    places = -(-(n + before + after - kernel) // stride) + 1
    if (places - 1) * stride >= n + before:  # the last window must not begin in the padding behind
        places -= 1
    matrix = np.zeros((places, n))
    for place in range(places):
        start = place * stride - before
        end = min(start + kernel, n + after)
        inside = slice(max(start, 0), min(end, n))
        counted = end - start if count_padding else inside.stop - inside.start
        matrix[place, inside] = 1 / counted
    return matrix


def adaptive_pool(x: Traced, sizes: Sequence[int | None]) -> Traced:
    """Means such that the last axes have these sizes: number i is that of the places from floor(i n
    / m) to ceil((i + 1) n / m)."""
    axes = len(sizes)
    pairs = [(n, n if m is None else int(m)) for n, m in zip(x.shape[-axes:], sizes, strict=True)]
    if all(n % m == 0 for n, m in pairs):
        kernel = tuple(n // m for n, m in pairs)
        if all(m == 1 for _, m in pairs):
            return x.mean(tuple(range(x.ndim - axes, x.ndim)), keepdims=True)
        return average_pool(x, kernel, kernel, ((0, 0),) * axes)
    for k, (n, m) in enumerate(pairs):
        matrix = np.zeros((m, n))
        for i in range(m):
            matrix[i, i * n // m : -(-(i + 1) * n // m)] = 1.0
        x = along(x, x.ndim - axes + k, matrix / matrix.sum(1, keepdims=True))
    return x


# --- normalisation and attention ------------------------------------------------------------------


def variance(x: Traced, axes: tuple[int, ...], keepdims: bool, correction: float = 0.0) -> Traced:
    """The mean of the squares of the distances from the mean; correction: as in numpy.var's
    ddof."""
    centred = x - x.mean(axes, keepdims=True)
    count = float(np.prod([x.shape[a] for a in axes]))
    if count <= correction:
        raise InvalidArgument(
            f"the variance of {counted_text(round(count), 'number')} with correction {correction:g}"
        )
    return (centred * centred).mean(axes, keepdims=keepdims) * (count / (count - correction))


def normalised(x: Traced, axes: Sequence[int], epsilon: float, *, centred: bool = True) -> Traced:
    """(x - mean) / sqrt(variance + epsilon) with the statistics of these axes; without the mean if
    not centred."""
    along_axes = tuple(a % x.ndim for a in axes)
    distance = x - x.mean(along_axes, keepdims=True) if centred else x
    spread = (distance * distance).mean(along_axes, keepdims=True)
    return distance * (spread + epsilon)._function("inverse_sqrt")


def group_norm(
    x: Traced, groups: int, weight: Array | None, bias: Array | None, epsilon: float
) -> Traced:
    """The normalisation of groups of channels of (batch, channels, *sizes)."""
    parts = x.reshape(x.shape[0], groups, -1)
    y = normalised(parts, (2,), epsilon).reshape(x.shape)
    shape = (-1, *(1,) * (x.ndim - 2))
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def masked(x: Any, mask: Any) -> Any:
    """x + mask, where a mask of minus infinity leaves numbers out of the softmax that follows."""
    if isinstance(x, Masked):
        y = masked(x.x, mask)
        return Masked(y.x, _both(y.keep, x.keep)) if isinstance(y, Masked) else Masked(y, x.keep)
    if isinstance(mask, Mask):
        shape = np.broadcast_shapes(x.shape, mask.keep.shape)
        return Masked(x._broadcast(shape), mask.keep._broadcast(shape))
    if isinstance(mask, Traced):
        return x + mask
    gone = mask <= MINUS_INFINITY
    if not gone.any():
        return x + mask
    finite, shape = np.where(gone, 0.0, mask), np.broadcast_shapes(x.shape, np.shape(mask))
    y = x + finite if finite.any() else x._broadcast(shape)
    return Masked(y, np.broadcast_to(~gone, shape))


def _both(a: Any, b: Any) -> Any:
    """Where two masks let numbers count."""
    return conditions.both(a, b) if isinstance(a, Traced) or isinstance(b, Traced) else a & b


def chosen(condition: Any, x: Any, other: Any) -> Any:
    """x where a clear condition holds, and the other elsewhere; at least one of them is traced."""
    mask = np.asarray(condition, np.float64)
    if isinstance(x, Traced) and isinstance(other, Traced):
        return x * mask + other * (1 - mask)
    if not isinstance(x, Traced):
        x, other, mask = other, x, 1 - mask
    put = np.where(mask > 0, 0.0, np.asarray(other, np.float64))
    kept = np.where(put <= MINUS_INFINITY, 1.0, mask)
    return masked(x if kept.all() else x * kept, put)


def softmax(x: Traced | Masked, axis: int) -> Traced:
    """exp(x) / sum of exp(x) along an axis."""
    if isinstance(x, Masked):
        keep = x.keep
        if not isinstance(keep, Traced):
            if not np.all(keep.any(axis)):
                raise Unsupported(
                    "a softmax of which a mask leaves nothing: let the mask keep a number"
                )
            keep = keep.astype(np.float64)
        powers = x.x._function("exp") * keep
    else:
        powers = x._function("exp")
    shares: Traced = powers / powers.sum(axis, keepdims=True)
    return shares


def attention(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    """softmax(scale q k^T + mask) v on the last two axes.

    mask: an array, a traced one, a Mask, or None.
    """
    turned = k.transpose((*range(k.ndim - 2), k.ndim - 1, k.ndim - 2))
    scores = matmul(q * scale, turned)
    return matmul(softmax(scores if mask is None else masked(scores, mask), -1), v)


# --- activations ----------------------------------------------------------------------------------


def leaky_relu(x: Traced, slope: Any) -> Traced:
    """x above 0, slope x below.

    slope: a number, or numbers that NumPy broadcasts.
    """
    below = np.asarray(slope, np.float64)
    return x._function("relu") * (1 - below) + x * below


def clamp(x: Traced, low: Any = None, high: Any = None) -> Traced:
    """x between low and high: a ReLU for each end."""
    if low is None and high is None:
        return x
    if low is None:
        below: Traced = high - (high - x)._function("relu")
        return below
    above: Traced = (x - low)._function("relu") + low
    if high is not None:
        above = above - (x - high)._function("relu")
    return above


def hard_sigmoid(x: Traced, slope: float = 1 / 6, middle: float = 0.5) -> Traced:
    """slope x + middle between 0 and 1."""
    return clamp(x * slope + middle, 0.0, 1.0)


def elu(x: Traced, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Traced:
    """scale x above 0, scale alpha (exp(input_scale x) - 1) below: ELU, CELU and SELU."""
    y = (x if input_scale == 1 else x * input_scale)._function("elu") * alpha
    if alpha * input_scale != 1:
        y = y + x._function("relu") * (1 - alpha * input_scale)
    return y * scale


def softplus(x: Traced, beta: float = 1.0) -> Traced:
    """log(1 + exp(beta x)) / beta."""
    return (x * beta)._function("softplus") / beta
