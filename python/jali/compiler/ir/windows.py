"""Convolutions and average pools: windows that slide over (channels, *sizes), with any axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.console import counted_text
from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.operation import Linear
from jali.compiler.ir.shared_map import SHARED, SharedMap
from jali.compiler.ir.sparse import SparseMap
from jali.errors import InvalidArgument

__all__ = ["AveragePool", "Convolution", "Places", "window_places"]

#: Numbers under windows that are copied at once; of more, each copy gets new pages from the system.
_TOGETHER = 1 << 21

Places = npt.NDArray[np.int64]  # of numbers along an axis
_Pairs = tuple[tuple[int, int], ...]


def window_places(
    n: int, size: int, stride: int, dilation: int, padding: tuple[int, int], *, ceil: bool
) -> Places:
    """(windows, size): the places under each window that slides along n numbers, of which some may
    lie outside.

    ceil: the last window may end behind the array and its padding; it does not begin there.
    """
    span = n + sum(padding) - dilation * (size - 1) - 1
    count = (-(-span // stride) if ceil else span // stride) + 1
    if ceil and (count - 1) * stride >= n + padding[0]:
        count -= 1
    starts = np.arange(count)[:, None] * stride - padding[0]
    return np.asarray(starts + np.arange(size) * dilation, np.int64)


@dataclass(frozen=True, eq=False)
class Convolution(Linear):
    """The convolution of (channels, *sizes), without a flip of the kernel, as networks have it.

    weight: (out channels, channels / groups, *kernel).
    bias: (out channels,) or None.
    stride, padding, dilation: of every axis; padding is (before, after).
    """

    name = "convolution"
    weight: Array
    bias: Array | None
    stride: Shape
    padding: _Pairs
    dilation: Shape
    groups: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        """(out channels, *places)."""
        (shape,), groups = shapes, self.groups
        out, taken = self.weight.shape[:2]
        if groups < 1 or out % groups or shape[:1] != (taken * groups,):
            raise InvalidArgument(
                f"its weights of {self.weight.shape} in {groups} groups take {taken * groups} channels, and its "
                f"input has the shape {shape}"
            )
        if self.bias is not None and self.bias.shape != (out,):
            raise InvalidArgument(f"its bias has the shape {self.bias.shape}, not {(out,)}")
        kernel = self.weight.shape[2:]
        return (out, *_sizes(shape, kernel, self.dilation, self.stride, self.padding))

    def compute(self, values: Sequence[Array]) -> Array:
        (x,), weight = values, self.weight
        seen = self._windows(x, 0.0)
        axes = weight.ndim - 2
        contracted = [1, *range(2 + axes, 2 + 2 * axes)]
        places = seen.shape[2 : 2 + axes]
        made: Array = np.empty((len(x), len(weight), *places))
        some = max(1, _TOGETHER * len(x) // seen.size)
        for first in range(0, len(x), some):
            pairs = zip(
                np.split(seen[first : first + some], self.groups, 1),
                np.split(made[first : first + some], self.groups, 1),
                np.split(weight, self.groups, 0),
                strict=True,
            )
            for part, y, w in pairs:
                found = np.tensordot(part, w, (contracted, list(range(1, w.ndim))))
                y[:] = np.moveaxis(found, -1, 1)  # of (batch, *places, out)
        if self.bias is not None:
            made += self.bias.reshape(-1, *(1,) * axes)
        return made

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        (shape,), weight = shapes, self.weight
        kernel, out = weight.shape[2:], self.result_shape(shapes)
        places, window = math.prod(out[1:]), math.prod(kernel)
        if self.entries(shapes) > SHARED:
            plane = np.arange(math.prod(shape[1:])).reshape(1, *shape[1:])
            under = self._windows(plane, -1).reshape(places, window)
            kept = weight.reshape(self.groups, -1, weight.shape[1], window)
            return [SharedMap.windows(kept, under, shape[0], plane.size)]
        index = np.arange(math.prod(shape)).reshape(shape)
        seen = self._windows(index, -1).reshape(shape[0], places, window)
        per_group = out[0] // self.groups
        rows, cols, values = [], [], []
        for o in range(out[0]):
            first = o // per_group * weight.shape[1]
            # (places, channels, window)
            source = seen[first : first + weight.shape[1]].transpose(1, 0, 2)
            inside = source >= 0
            rows.append(o * places + np.nonzero(inside)[0])
            cols.append(source[inside])
            values.append(np.broadcast_to(weight[o].reshape(1, -1, window), source.shape)[inside])
        size = (math.prod(out), index.size)
        found = np.concatenate(rows), np.concatenate(cols), np.concatenate(values)
        return [SparseMap.of(*found, size)]

    def entries(self, shapes: Sequence[Shape]) -> int:
        window: Shape = self.weight.shape[1:]
        return math.prod(self.result_shape(shapes)) * math.prod(window)

    def constant(self, shapes: Sequence[Shape]) -> Array:
        if self.bias is None:
            return super().constant(shapes)
        shape = self.result_shape(shapes)
        return np.repeat(self.bias, math.prod(shape[1:]))

    def _windows(self, x: npt.NDArray[Any], fill: float) -> npt.NDArray[Any]:
        kernel = self.weight.shape[2:]
        return _windows(x, kernel, self.dilation, self.stride, self.padding, fill)


@dataclass(frozen=True, eq=False)
class AveragePool(Linear):
    """The mean under a window of (channels, *sizes).

    kernel, stride, padding: of every axis; padding is (before, after).
    count_padding: whether the zeros around count in the mean.
    """

    name = "average_pool"
    kernel: Shape
    stride: Shape
    padding: _Pairs
    count_padding: bool

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        """(channels, *places)."""
        (shape,), ones = shapes, (1,) * len(self.kernel)
        return (*shape[:1], *_sizes(shape, self.kernel, ones, self.stride, self.padding))

    def compute(self, values: Sequence[Array]) -> Array:
        (x,), axes = values, tuple(range(-len(self.kernel), 0))
        counted = self._windows(np.ones(x.shape[1:]), float(self.count_padding))
        return np.asarray(self._windows(x, 0.0).sum(axes) / counted.sum(axes))

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        (shape,) = shapes
        index = np.arange(math.prod(shape)).reshape(shape)
        m = math.prod(self.result_shape(shapes))
        seen = self._windows(index, -1).reshape(m, -1)
        counts = self._windows(np.ones(shape), float(self.count_padding)).reshape(m, -1).sum(1)
        rows, places = np.nonzero(seen >= 0)
        return [SparseMap.of(rows, seen[rows, places], 1 / counts[rows], (m, index.size))]

    def entries(self, shapes: Sequence[Shape]) -> int:
        return math.prod(self.result_shape(shapes)) * math.prod(self.kernel)

    def _windows(self, x: npt.NDArray[Any], fill: float) -> npt.NDArray[Any]:
        ones = (1,) * len(self.kernel)
        return _windows(x, self.kernel, ones, self.stride, self.padding, fill)


def _sizes(shape: Shape, kernel: Shape, dilation: Shape, stride: Shape, padding: _Pairs) -> Shape:
    """How many places the window has along each axis."""
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
    x: npt.NDArray[Any],
    kernel: Shape,
    dilation: Shape,
    stride: Shape,
    padding: _Pairs,
    fill: float,
) -> npt.NDArray[Any]:
    """(.., *places, *kernel): what lies under the window, with `fill` around x."""
    axes = tuple(range(x.ndim - len(kernel), x.ndim))
    widths = [(0, 0)] * (x.ndim - len(kernel)) + [tuple(p) for p in padding]
    x = np.pad(x, widths, constant_values=fill)
    spans = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = [slice(None)] * axes[0]
    places = [slice(None, None, s) for s in stride]
    return seen[(*steps, *places, *(slice(None, None, d) for d in dilation))]
