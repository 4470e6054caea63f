"""Which of the elements of an encrypted array is the largest, along an axis or of all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jali._core.axes import axes
from jali._core.view import View
from jali._jali import ckks as _ckks
from jali.ckks.array import EncryptedArray
from jali.errors import InvalidArgument

__all__ = ["argmax"]


def argmax(plan: _ckks.ArgMaxCore, x: EncryptedArray, axis: Any) -> EncryptedArray:
    """1 where the largest element lies and 0 elsewhere, in the shape of x.

    The elements that are compared are brought into the first slots of a vector, one vector for each
    index of the other axes, and what lies behind them is masked, which takes a level. Moving them
    apart takes a level of its own.
    """
    shape, slots = x.shape, x.slots
    along = axes(axis, len(shape))
    count = math.prod(shape[k] for k in along)
    if count != plan.count:
        raise InvalidArgument(
            f"this argmax is made for {plan.count} numbers, and an array of the shape {shape} has {count} "
            + ("in all" if axis is None else f"along axis {axis}")
        )
    strides, inner, outer = [1] * len(shape), 1, slots
    for k in reversed(range(len(shape))):
        if k in along:
            strides[k], inner = inner, inner * shape[k]
        else:
            strides[k], outer = outer, outer * shape[k]
    target = View(shape, tuple(strides), 0, slots, outer // slots)
    core = x.evaluator._core
    value = x._compact()._moved(target)._settled()
    if count < slots:
        zeros_behind = core.multiply_array(core.with_length(value, count), np.ones(count))
        value = core.with_bounds(zeros_behind, value, 1)
    found = core.argmax(plan, value)
    return x._new(core.with_view(found, None, False), target)
