"""The largest and smallest of several encrypted numbers, by a tournament.

The larger of two numbers is b + relu(a - b). A window of n numbers takes ceil(log2 n) rounds: in
each of them the first half of what is left meets the second half, at once for all windows. A pair
that is in several windows meets once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali._core.axes import axes as axes_of
from jali.compiler.ir.arrays import Shape
from jali.compiler.ir.linear_ops import Take
from jali.compiler.ir.windows import Places, window_places
from jali.errors import InvalidArgument

__all__ = [
    "adaptively_pooled",
    "largest",
    "largest_under",
    "maximum",
    "pooled",
    "smallest",
]


def maximum(a: Any, b: Any) -> Any:
    """The larger number of two arrays, of which at least one is traced: a ReLU for each number."""
    if not hasattr(a, "_function"):
        a, b = b, a
    if not hasattr(b, "_function"):
        return (a - b)._function("relu") + b if np.any(b) else a._function("relu")
    return (a - b)._function("maximum") + b


def largest_under(x: Any, axis: int, places: Places) -> Any:
    """The largest number under each window along an axis.

    places: (windows, size), the places of each window's numbers. A window of fewer numbers repeats
        one of them, which changes no maximum.
    """
    slots = np.asarray(places, np.int64)
    while slots.shape[1] > 1:
        half = (slots.shape[1] + 1) // 2
        pairs = np.sort(np.stack([slots[:, :half], slots[:, -half:]], axis=-1), axis=-1)
        met, found = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
        a, b = (_taken(x, axis, met[:, k]) for k in range(2))
        x = a if np.all(met[:, 0] == met[:, 1]) else maximum(a, b)
        slots = np.asarray(found, np.int64).reshape(len(slots), half)
    return _taken(x, axis, slots[:, 0])


def pooled(
    x: Any,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
    *,
    ceil: bool = False,
) -> Any:
    """The largest number under a window over the last axes, one axis after the other. Padding
    counts for nothing.

    ceil: the last window of an axis may end behind the array and its padding.
    """
    for k, (size, step, by, pad) in enumerate(zip(kernel, stride, dilation, padding, strict=True)):
        axis = x.ndim - len(kernel) + k
        places = window_places(x.shape[axis], size, step, by, pad, ceil=ceil)
        x = largest_under(x, axis, _inside(places, x.shape[axis]))
    return x


def adaptively_pooled(x: Any, sizes: Sequence[int | None]) -> Any:
    """The largest numbers such that the last axes have these sizes: number i is that of the places
    from floor(i n / m) to ceil((i + 1) n / m)."""
    for k, m in enumerate(sizes):
        axis = x.ndim - len(sizes) + k
        n = x.shape[axis]
        if m is None or m == n:
            continue
        starts, ends = np.arange(m) * n // m, -(-np.arange(1, m + 1) * n // m)
        places = starts[:, None] + np.arange((ends - starts).max())
        x = largest_under(x, axis, np.minimum(places, ends[:, None] - 1))
    return x


def _inside(places: Places, n: int) -> Places:
    """The places under windows; those outside of n numbers are the window's nearest one inside."""
    inside = (places >= 0) & (places < n)
    if not inside.any(axis=1).all():
        raise InvalidArgument(
            "one of its windows lies in the padding alone, where nothing is the largest: pad less"
        )
    first = np.where(inside, places, n).min(axis=1, keepdims=True)
    last = np.where(inside, places, -1).max(axis=1, keepdims=True)
    return np.asarray(np.where(inside, places, np.where(places < 0, first, last)))


def largest(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest number along axes: numpy.max."""
    along = axes_of(axis, x.ndim)
    rest = [a for a in range(x.ndim) if a not in along]
    kept = tuple(1 if a in along else n for a, n in enumerate(x.shape))
    count = math.prod(x.shape[a] for a in along)
    places = np.arange(x.size).reshape(x.shape).transpose(*rest, *along).reshape(-1, count)
    moved = x._add("take", Take(places=places.astype(np.float64)), x)
    found = largest_under(moved, 1, np.arange(count, dtype=np.int64)[None])
    y = found.reshape(kept if keepdims else tuple(x.shape[a] for a in rest))
    y.builder.maxima[y.node.name] = x.node.name
    return y


def smallest(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest number along axes: numpy.min."""
    return -largest(-x, axis, keepdims)


def _taken(x: Any, axis: int, indices: Places) -> Any:
    """numpy.take with a list of indices."""
    if np.array_equal(indices, np.arange(x.shape[axis])):
        return x
    places = np.take(np.arange(x.size).reshape(x.shape), indices, axis=axis)
    return x._add("take", Take(places=places.astype(np.float64)), x)
