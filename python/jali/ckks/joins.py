"""Encrypted arrays put together and taken apart, and NumPy's functions of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from jali._core.array import number
from jali._core.axes import axes
from jali._core.moves import of_other_evaluators
from jali._core.shaped import split
from jali._core.view import View
from jali.ckks.array import EncryptedArray
from jali.errors import InvalidArgument, Unsupported

__all__ = ["FUNCTIONS", "concatenate", "split", "stack"]


def _encrypted(values: Any) -> list[EncryptedArray]:
    try:
        items = list(values)
    except TypeError:
        raise InvalidArgument("give a sequence of encrypted arrays") from None
    if not items or not all(isinstance(v, EncryptedArray) for v in items):
        raise InvalidArgument("give a sequence of at least one encrypted array, and no others")
    out = [v._viewed() for v in items]
    for one in out:
        if one.evaluator is not out[0].evaluator:
            raise of_other_evaluators()
        if one.slots != out[0].slots:
            raise InvalidArgument(
                f"arrays are packed in {out[0].slots} and {one.slots} slots: encrypt both with the same slots="
            )
    return out


def stack(values: Iterable[EncryptedArray], axis: int = 0) -> EncryptedArray:
    """Encrypted arrays of one shape along a new axis, as numpy.stack. Each keeps vectors of its
    own.

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
    server = items[0].evaluator
    core = server._core
    level = min(one.level for one in laid)
    scale = server.params.level(level).scale
    values_ = [one._settled() for one in laid]
    levelled = [v if v.level == level else core.explicit.adjust(v, level, scale) for v in values_]
    if any(v.batch != first.vectors for v in levelled):
        raise Unsupported("these arrays lie in different numbers of vectors: encrypt them alike")
    value = core.with_view(core.stack(levelled), None, False)
    known = [one._place.changing() for one in laid]
    view = View(
        (len(laid), *shape),
        (first.vectors * first.slots, *first.strides),
        first.first,
        first.slots,
        first.vectors * len(laid),
        0,
        max(one.rest for one in known),
        any(one.copies or one.period for one in known),
    )
    order = [*range(1, k + 1), 0, *range(k + 1, len(shape) + 1)]
    return EncryptedArray(server, value, view).transpose(order)


def concatenate(values: Iterable[EncryptedArray], axis: int | None = 0) -> EncryptedArray:
    """Encrypted arrays one after the other along an axis, densely, as numpy.concatenate. None
    stands for all as vectors.

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
    total: EncryptedArray | None = None
    done = 0
    for one in items:
        key = (slice(None),) * k + (slice(done, done + one.shape[k]),)
        part = one._moved(target.changed(lambda a, key=key: a[key]), exact=True)  # type: ignore[misc]
        done += one.shape[k]
        flat = part._new(part._ct)
        total = flat if total is None else total + flat
    assert total is not None
    return items[0]._new(total._ct, target)


def dot(a: Any, b: Any) -> EncryptedArray:
    """a @ b, and the product with a number, as numpy.dot."""
    if isinstance(a, EncryptedArray):
        return a.dot(b)
    value = number(a)
    x: EncryptedArray = b._viewed()
    return x._server._matmul(a, x) if value is None else x * value


#: What NumPy's functions do with encrypted arrays.
FUNCTIONS: dict[Any, Any] = {
    np.stack: stack,
    np.concatenate: concatenate,
    np.split: split,
    np.sum: lambda x, axis=None, *, keepdims=False: x._viewed().sum(axis, keepdims),
    np.mean: lambda x, axis=None, *, keepdims=False: x.mean(axis, keepdims),
    np.var: lambda x, axis=None, *, ddof=0, keepdims=False: x.var(axis, ddof, keepdims),
    np.dot: dot,
    np.reshape: lambda x, shape, order="C": x.reshape(shape, order=order),
    np.ravel: lambda x, order="C": x.ravel(order),
    np.transpose: lambda x, axes=None: x.transpose(axes),
    np.swapaxes: lambda x, a, b: x.swapaxes(a, b),
    np.moveaxis: lambda x, source, destination: x._changed(
        lambda a: np.moveaxis(a, source, destination)
    ),
    np.expand_dims: lambda x, axis: x._changed(lambda a: np.expand_dims(a, axis)),
    np.flip: lambda x, axis=None: x._changed(lambda a: np.flip(a, axis)),
    np.vstack: lambda tup: concatenate([x[None] if x.ndim == 1 else x for x in _encrypted(tup)]),
    np.hstack: lambda tup: concatenate(tup, axis=min(1, _encrypted(tup)[0].ndim - 1)),
    np.squeeze: lambda x, axis=None: x.squeeze(axis),
    np.broadcast_to: lambda x, shape: x.broadcast_to(shape),
    np.conj: lambda x: x.conj(),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
}
