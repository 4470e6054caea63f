"""Encrypted arrays of exact integers put together and taken apart, and what NumPy's functions do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from jali._core.axes import axes
from jali._core.moves import of_other_evaluators
from jali._core.shaped import split
from jali._core.view import View
from jali._jali.discrete import Ciphertext
from jali.discrete.array import EncryptedArray
from jali.discrete.selection import select
from jali.errors import InvalidArgument

__all__ = ["FUNCTIONS", "concatenate", "split", "stack"]


def _encrypted(values: Any) -> list[EncryptedArray]:
    try:
        items = list(values)
    except TypeError:
        raise InvalidArgument("give a sequence of encrypted arrays") from None
    if not items or not all(isinstance(v, EncryptedArray) for v in items):
        raise InvalidArgument("give a sequence of at least one encrypted array, and no others")
    if any(one._server is not items[0]._server for one in items):
        raise of_other_evaluators()
    return items


def stack(values: Iterable[EncryptedArray], axis: int = 0) -> EncryptedArray:
    """Encrypted arrays of one shape along a new axis, as numpy.stack. Each keeps vectors of its own.

    It costs nothing if all lie alike; others are moved to where the first lies. Levels become that
    of the lowest.
    """
    items = [one._compact() for one in _encrypted(values)]
    first = items[0]._place
    shape = first.shape
    if any(one.shape != shape for one in items):
        raise InvalidArgument("stack takes arrays of equal shapes")
    (k,) = axes((axis,), len(shape) + 1)
    place = replace(first, period=0)
    laid = [one if one._place.same_place(first) else one._moved(place) for one in items]
    rows = items[0]._server._core
    # Rows come in pairs: of an odd number of them, one stays between the arrays.
    own = [rows.take(one._ct, list(range(first.vectors))) for one in laid]
    apart = own[0].rows
    known = [one._place.changing() for one in laid]
    even = apart == first.vectors
    view = View(
        (len(laid), *shape),
        (apart * first.slots, *first.strides),
        first.first,
        first.slots,
        apart * len(laid),
        0,
        max(one.rest for one in known) if even else np.inf,
        any(one.copies or one.period for one in known),
    )
    order = [*range(1, k + 1), 0, *range(k + 1, len(shape) + 1)]
    return laid[0]._new(rows.stack(own), view).transpose(order)


def concatenate(values: Iterable[EncryptedArray], axis: int | None = 0) -> EncryptedArray:
    """Encrypted arrays one after the other along an axis, densely, as numpy.concatenate. None stands
    for all as vectors.

    They are rotated to their places. Those that lie otherwise than a dense array are masked, which
    takes one level.
    """
    items = _encrypted(values)
    if axis is None:
        items, axis = [one.ravel() for one in items], 0
    shape = list(items[0].shape)
    (k,) = axes((axis,), len(shape))
    for one in items:
        if len(one.shape) != len(shape) or any(
            c != d for j, (c, d) in enumerate(zip(one.shape, shape, strict=True)) if j != k
        ):
            raise InvalidArgument(
                "concatenate takes arrays whose shapes differ along its axis only"
            )
    shape[k] = sum(one.shape[k] for one in items)
    target = View.dense(tuple(shape), items[0].slots)
    low = min(0, *(one.range[0] for one in items))
    high = max(0, *(one.range[1] for one in items))
    wraps = any(one.wraps for one in items)
    core, done = items[0]._server._engine, 0
    total: Ciphertext | None = None
    for one in items:
        key = (slice(None),) * k + (slice(done, done + one.shape[k]),)
        part = one._moved(target.changed(lambda a, key=key: a[key]), exact=True)  # type: ignore[misc]
        done += one.shape[k]
        total = part._ct if total is None else items[0]._added(total, part._ct)
    assert total is not None
    # Every slot has a number of one of them, and zeros of the others.
    value = total if wraps else core.with_range(total, low, high)
    return items[0]._new(value, target)


def _dot(a: Any, b: Any) -> EncryptedArray:
    """numpy.dot, of a number on either side, too."""
    if isinstance(a, EncryptedArray):
        return a.dot(b)
    product: EncryptedArray = b.dot(a) if np.ndim(a) == 0 else b.__rmatmul__(a)
    return product


#: What NumPy's functions do with encrypted arrays. Others are the method of the same name.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.stack: stack,
    np.concatenate: concatenate,
    np.split: split,
    np.where: lambda condition, x, y: select(condition, x, y),
    np.dot: _dot,
    np.moveaxis: lambda a, source, destination: a._changed(
        lambda v: np.moveaxis(v, source, destination)
    ),
    np.expand_dims: lambda a, axis: a._changed(lambda v: np.expand_dims(v, axis)),
    np.flip: lambda m, axis=None: m._changed(lambda v: np.flip(v, axis)),
    np.broadcast_to: lambda array, shape: array.broadcast_to(shape),
    np.vstack: lambda tup: concatenate([x[None] if x.ndim == 1 else x for x in _encrypted(tup)]),
    np.hstack: lambda tup: concatenate(tup, axis=min(1, _encrypted(tup)[0].ndim - 1)),
}
