"""Convolutions and average pools over any number of axes: a window slides over (channels, *sizes).

Attributes of both: stride, padding, of every axis; padding is (before, after). A convolution also
has dilation, groups, weight (out channels, channels / groups, *kernel) and bias (out channels,) or
None. A pool has kernel, and count_padding, which says whether the zeros around count in its mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.console import counted_text
from jali.compiler.ir.graph import Array, Shape
from jali.compiler.ir.sparse import SparseMap
from jali.errors import InvalidArgument

__all__ = [
    "average_pool",
    "convolution",
    "convolution_map",
    "convolution_shape",
    "pool_map",
    "pool_shape",
]

Attrs = Mapping[str, Any]

_TOGETHER = (
    1 << 21
)  # numbers under windows that are copied at once; of more, each copy gets new pages from the system


def _sizes(shape: Shape, kernel: Shape, dilation: Shape, attrs: Attrs) -> Shape:
    """How many places the window has along each axis."""
    stride, padding = attrs["stride"], attrs["padding"]
    axes = len(shape) - 1
    if not axes or not len(kernel) == len(stride) == len(padding) == len(dilation) == axes:
        raise InvalidArgument(
            f"its window has {counted_text(len(kernel), 'axis', 'axes')}, and its input the shape {shape}"
        )
    sizes = []
    for n, k, s, d, (before, after) in zip(
        shape[1:], kernel, stride, dilation, padding, strict=True
    ):
        if min(k, s, d) < 1 or min(before, after) < 0:
            raise InvalidArgument("kernel, stride and dilation are at least 1, and padding 0")
        sizes.append((n + before + after - d * (k - 1) - 1) // s + 1)
    if min(sizes) < 1:
        raise InvalidArgument(f"its window of {kernel} is larger than its input {shape[1:]}")
    return tuple(sizes)


def _windows(
    x: npt.NDArray[Any], kernel: Shape, dilation: Shape, attrs: Attrs, fill: float
) -> npt.NDArray[Any]:
    """(.., *places, *kernel): what lies under the window, with `fill` around x."""
    axes = tuple(range(x.ndim - len(kernel), x.ndim))
    widths = [(0, 0)] * (x.ndim - len(kernel)) + [tuple(p) for p in attrs["padding"]]
    x = np.pad(x, widths, constant_values=fill)
    spans = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = [slice(None)] * axes[0]
    places = [slice(None, None, s) for s in attrs["stride"]]
    return seen[(*steps, *places, *(slice(None, None, d) for d in dilation))]


def convolution_shape(shape: Shape, attrs: Attrs) -> Shape:
    """(out channels, *places)."""
    weight, groups = attrs["weight"], attrs["groups"]
    out, taken = weight.shape[:2]
    if groups < 1 or out % groups or shape[:1] != (taken * groups,):
        raise InvalidArgument(
            f"its weights of {weight.shape} in {groups} groups take {taken * groups} channels, and its "
            f"input has the shape {shape}"
        )
    if attrs["bias"] is not None and attrs["bias"].shape != (out,):
        raise InvalidArgument(f"its bias has the shape {attrs['bias'].shape}, not {(out,)}")
    return (out, *_sizes(shape, weight.shape[2:], attrs["dilation"], attrs))


def convolution(x: Array, attrs: Attrs) -> Array:
    """The convolution of (batch, channels, *sizes), without a flip of the kernel, as networks have
    it."""
    weight, groups = attrs["weight"], attrs["groups"]
    kernel = weight.shape[2:]
    seen = _windows(x, kernel, attrs["dilation"], attrs, 0.0)
    axes = len(kernel)
    contracted = [1, *range(2 + axes, 2 + 2 * axes)]
    places = seen.shape[2 : 2 + axes]
    made: Array = np.empty((len(x), len(weight), *places))
    some = max(1, _TOGETHER * len(x) // seen.size)
    for first in range(0, len(x), some):
        pairs = zip(
            np.split(seen[first : first + some], groups, 1),
            np.split(made[first : first + some], groups, 1),
            np.split(weight, groups, 0),
            strict=True,
        )
        for part, y, w in pairs:
            found = np.tensordot(part, w, (contracted, list(range(1, w.ndim))))
            y[:] = np.moveaxis(found, -1, 1)  # of (batch, *places, out)
    if attrs["bias"] is not None:
        made += attrs["bias"].reshape(-1, *(1,) * axes)
    return made


def convolution_map(shape: Shape, attrs: Attrs) -> SparseMap:
    """The convolution as a matrix between flattened arrays."""
    weight, groups = attrs["weight"], attrs["groups"]
    kernel, out = weight.shape[2:], convolution_shape(shape, attrs)
    places, window = int(np.prod(out[1:])), int(np.prod(kernel))
    index = np.arange(int(np.prod(shape))).reshape(shape)
    seen = _windows(index, kernel, attrs["dilation"], attrs, -1).reshape(shape[0], places, window)
    per_group = out[0] // groups
    rows, cols, values = [], [], []
    for o in range(out[0]):
        first = o // per_group * weight.shape[1]
        source = seen[first : first + weight.shape[1]].transpose(
            1, 0, 2
        )  # (places, channels, window)
        inside = source >= 0
        rows.append(o * places + np.nonzero(inside)[0])
        cols.append(source[inside])
        values.append(np.broadcast_to(weight[o].reshape(1, -1, window), source.shape)[inside])
    size = (int(np.prod(out)), index.size)
    return SparseMap.of(np.concatenate(rows), np.concatenate(cols), np.concatenate(values), size)


def pool_shape(shape: Shape, attrs: Attrs) -> Shape:
    """(channels, *places)."""
    kernel = attrs["kernel"]
    return (*shape[:1], *_sizes(shape, kernel, (1,) * len(kernel), attrs))


def _pool(x: npt.NDArray[Any], attrs: Attrs, fill: float) -> npt.NDArray[Any]:
    return _windows(x, attrs["kernel"], (1,) * len(attrs["kernel"]), attrs, fill)


def average_pool(x: Array, attrs: Attrs) -> Array:
    """The mean under the window, of (batch, channels, *sizes)."""
    axes = tuple(range(-len(attrs["kernel"]), 0))
    counted = _pool(np.ones(x.shape[1:]), attrs, float(attrs["count_padding"]))
    return np.asarray(_pool(x, attrs, 0.0).sum(axes) / counted.sum(axes))


def pool_map(shape: Shape, attrs: Attrs) -> SparseMap:
    """The pool as a matrix between flattened arrays."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    m = int(np.prod(pool_shape(shape, attrs)))
    seen = _pool(index, attrs, -1).reshape(m, -1)
    counts = _pool(np.ones(shape), attrs, float(attrs["count_padding"])).reshape(m, -1).sum(1)
    rows, places = np.nonzero(seen >= 0)
    return SparseMap.of(rows, seen[rows, places], 1 / counts[rows], (m, index.size))
