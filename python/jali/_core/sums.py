"""Sums along an axis of an encrypted array, by rotations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jali._core.view import Addresses, View
from jali.errors import Unsupported

if TYPE_CHECKING:
    from jali._core.moves import Array

__all__ = ["summed"]


def summed(x: Array, k: int) -> Array:
    """The sums along axis k, which keeps a count of 1. Slots other than theirs hold anything,
    unless sums repeat."""
    view, slots = x._place, x._place.slots
    count, stride = view.shape[k], view.strides[k]
    if count == 1:
        return x
    if stride < 0:  # the sum is the same from the other end
        first, stride = view.first + (count - 1) * stride, -stride
        view = replace(view, first=first, strides=_put(view.strides, k, stride))
    known = view.changing()
    bases = known.without((k,))
    unknown = replace(bases, rest=math.inf, copies=False, whole=None)
    at = bases.addresses()
    terms = np.arange(count, dtype=np.int64) * stride
    every = at.reshape(-1, 1) + terms
    if view.cycle:
        if view.cycle % stride == 0 and _alone(view, at, stride):
            around = view.cycle // stride
            if around == count or (view.zero and around < 2 * count):
                out = x._windows(stride, around, count)
                new = unknown if known.copies else bases.scaled(around)
                return out._seen(replace(new, first=view.first % stride, period=stride % slots))
        out = x._windows(stride, *_rounded(view, every, count, stride))
        return out._seen(unknown)
    vector = every // slots
    relative = vector - vector[:, :1]
    if (relative != relative[0]).any():
        raise Unsupported(
            f"axis {k} of an array of the shape {view.shape} with the strides {view.strides} goes from one vector to "
            "the next at different places: encrypt it in the shape in which it is summed"
        )
    # Segments of the axis that lie in one vector each. Equal ones are added before they are summed.
    starts = np.flatnonzero(np.diff(relative[0], prepend=-1))
    ends = np.append(starts[1:], count)
    used = np.unique(vector[:, 0])
    if not relative[0].any():
        used = x._taken(used)
    alike: dict[tuple[int, int], list[int]] = {}
    longest = int((ends - starts).max())
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        shift = start * stride - int(relative[0][start]) * slots
        length = end - start
        if view.zero and length < longest and shift == 0:
            length = longest  # what follows its end is zero
        alike.setdefault((shift, length), []).append(int(relative[0][start]))
    core, source = x._server._core, x._settled()
    total: Any = None
    done = 0
    for (shift, length), offsets in alike.items():
        value: Any = None
        for offset in offsets:
            part = core.take(source, [int(v) + offset for v in used])
            value = part if value is None else x._added(value, part)
        assert value is not None
        part = x._new(value, view)._windows(stride, length, length)._settled()
        part = core.rotate(part, shift % slots) if shift else part
        total = part if total is None else x._added(total, part)
        done += length * len(offsets)
    assert total is not None
    total = x._bounded(total, source, done, count)
    compact = np.searchsorted(used, at // slots) * slots + at % slots
    new = _affine(compact, bases, len(used))
    only = new.vectors == 1 and len(alike) == 1 and next(iter(alike))[0] == 0
    around = next(iter(alike))[1] * stride == slots
    if only and around and _alone(new, compact, stride):
        new = replace(new, first=new.first % stride, period=stride % slots)
        return x._new(total, new.zeroed() if view.zero else new)
    return x._new(total, new)


def _put(values: tuple[int, ...], k: int, value: int) -> tuple[int, ...]:
    return (*values[:k], value, *values[k + 1 :])


def _alone(view: View, at: Addresses, stride: int) -> bool:
    """Whether the addresses `at` lie in one block of `stride`, so that no two are equal modulo the
    stride."""
    return bool(at.min() // stride == at.max() // stride) and stride & (stride - 1) == 0


def _rounded(view: View, every: Addresses, count: int, stride: int) -> tuple[int, int]:
    """How many terms to add, and how many of them may not be zero: a power of two if only zeros are
    added with it."""
    power = 1 << (count - 1).bit_length()
    if view.zero and power > count:
        more = every[:, :1] + np.arange(count, power) * stride
        if more.max() < view.cycle and not np.isin(more, view.addresses()).any():
            return power, count
    return count, count


def _affine(at: Addresses, like: View, vectors: int) -> View:
    """The view with these addresses. Raises Unsupported if they have no strides."""
    ndim = len(like.shape)
    origin = (0,) * ndim
    strides = tuple(
        int(at[_put(origin, k, 1)] - at[origin]) if c > 1 else 1 for k, c in enumerate(like.shape)
    )
    new = View(like.shape, strides, int(at[origin]), like.slots, vectors)
    if (new.addresses() != at).any():
        raise Unsupported(
            f"the sums of an array with the strides {like.strides} do not lie evenly: sum another axis first"
        )
    return new
