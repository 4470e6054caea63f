"""Shapes and axes of encrypted arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jali._core import checks
from jali._core.console import counted_text
from jali.errors import InvalidArgument

__all__ = ["axes", "checked_shape"]


def checked_shape(shape: Any) -> tuple[int, ...]:
    """The shape as a tuple of counts from 1; a whole number stands for one axis. Raises
    InvalidArgument."""
    given = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        counts = tuple(operator.index(count) for count in given)
    except TypeError:
        counts = (0,)
    if any(count < 1 for count in counts):
        raise InvalidArgument(
            f"a shape must be a whole number from 1 or a tuple of them, not {checks.shown(shape)}"
        )
    return counts


def axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes as numbers from 0, without duplicates. None stands for all. Raises
    InvalidArgument."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    out = []
    for one in given:
        if isinstance(one, (bool, np.bool_)) or not isinstance(one, (int, np.integer)):
            raise InvalidArgument(f"an axis must be a whole number, not {checks.shown(one)}")
        if not -ndim <= one < ndim:
            raise InvalidArgument(
                f"axis {checks.shown(one)} is out of range for an array of {counted_text(ndim, 'axis', 'axes')}"
                + (f": they are counted from 0 to {ndim - 1}" if ndim else "")
            )
        out.append(int(one) % ndim)
    if len(set(out)) != len(out):
        raise InvalidArgument(f"an axis is named twice: {checks.shown(axis)}")
    return tuple(out)
