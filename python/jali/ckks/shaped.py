"""The shapes of encrypted arrays, which change as those of NumPy's arrays do, and what follows
axes: sums, means and variances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from jali._core import array as arrays
from jali._core import checks
from jali._core.console import counted_text
from jali.ckks.arithmetic import Arithmetic
from jali.ckks.operands import axes as numbered
from jali.ckks.sums import summed
from jali.errors import IndexOutOfRange, InvalidArgument, Unsupported

__all__ = ["Shaped"]

_LEAST_COUNT = 8  # a smaller number in the place of an axis is one


class Shaped(Arithmetic):
    """An encrypted array of any shape. A vector or a batch that changes its shape gets a view of
    its slots first."""

    __slots__ = ()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an encrypted number has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Self:
        """Elements by whole numbers and slices, None and ``...``, as in NumPy. It costs nothing."""
        keys = key if isinstance(key, tuple) else (key,)
        for one in keys:
            simple = one is None or one is Ellipsis or isinstance(one, (slice, int, np.integer))
            if isinstance(one, (bool, np.bool_)) or not simple:
                raise Unsupported(
                    "an encrypted array takes whole numbers and slices as an index: for other choices multiply by a "
                    "mask of zeros and ones, or by a selection matrix (S @ x)"
                )
        if not any(one is Ellipsis for one in keys):
            keys = (*keys, Ellipsis)  # so that a single element stays a view
        try:
            return self._changed(lambda a: a[keys])
        except IndexError as error:
            raise IndexOutOfRange(f"{error}: its shape is {self.shape}") from None

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise TypeError("an encrypted number cannot be iterated")
        whole = self._viewed()
        return (whole[i] for i in range(self.shape[0]))

    def _changed(self, change: Any) -> Self:
        """The array that NumPy's `change` makes of it. It costs nothing."""
        x = self._viewed()
        try:
            return x._seen(x._place.changed(change))
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(str(error)) from None

    def reshape(self, *shape: Any, order: str = "C") -> Self:
        """The same numbers in another shape. It costs nothing, and raises InvalidArgument if
        numbers would have to move.

        order: "C", or "F" for numbers that are read and written with the first axis fastest.
        """
        if not isinstance(order, str) or order not in ("C", "F"):
            raise InvalidArgument(f'order must be "C" or "F", not {checks.shown(order)}')
        wanted = (
            shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        )
        return self._changed(lambda a: a.reshape(wanted, order=order))

    def transpose(self, *axes: Any) -> Self:
        """The axes in another order, reversed if none is given. It costs nothing."""
        return self._changed(lambda a: a.transpose(*axes))

    @property
    def T(self) -> Self:
        """The transpose. It costs nothing."""
        return self.transpose()

    def swapaxes(self, first: int, second: int) -> Self:
        """The array with two axes exchanged. It costs nothing."""
        return self._changed(lambda a: a.swapaxes(first, second))

    def squeeze(self, axis: Any = None) -> Self:
        """Without the axes of count 1, or without these. It costs nothing."""
        return self._changed(lambda a: a.squeeze(axis))

    def ravel(self, order: str = "C") -> Self:
        """All numbers as a vector. It costs nothing, and raises InvalidArgument if they would have
        to move."""
        return self.reshape(-1, order=order)

    flatten = ravel

    # --- sums -----------------------------------------------------------------------------------

    def sum(self, axis: Any = None, keepdims: bool = False, *, count: int | None = None) -> Self:
        """The sum along an axis, several, or all, of any count, as numpy.sum. It takes no level.

        count: for vectors, instead of an axis. Slot i of the result is then the sum of the slots i
            to i + count - 1, cyclically over all ``slots``; a power of two up to ``slots``. A
            number from 8 on in the place of the axis is taken as the count: ``x.sum(64)`` of a
            vector is ``x.sum(count=64)``. Smaller ones are axes, as in NumPy.

        It takes about log2(count) rotations by 1, 2, 4 .. times the distance of the elements, up to
        half the count (jali.ckks.sum_rotations for those of a vector). Estimates take the terms as
        equal.
        """
        if self._view is None and count is None and isinstance(axis, (int, np.integer)):
            if axis >= _LEAST_COUNT:
                axis, count = None, int(axis)
            elif axis >= self.ndim == 1 and not axis & (axis - 1):
                raise InvalidArgument(
                    f"axis {axis} is out of range for an array of {counted_text(1, 'axis', 'axes')}: "
                    f"write count={axis} to sum over so many slots"
                )
        if count is None:
            axes = numbered(axis, self.ndim)
            return self._viewed()._summed(axes, checks.flag(keepdims, "keepdims"))
        if self._view is not None:
            raise Unsupported("sum(count=) adds windows of a vector: add the slices of an array")
        if axis is not None or keepdims:
            raise InvalidArgument(
                "a sum over a count of slots has no axis and keeps none: leave out axis and keepdims, or the count"
            )
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InvalidArgument("count must be a power of two from 1 to slots")
        elif count & (count - 1):
            raise InvalidArgument(
                f"count {checks.shown(count)} is not a power of two: pad the vector with zeros to the next one"
            )
        return self._new(self._server._core.sum(self._whole(), int(count)))

    def _summed(self, axes: tuple[int, ...], keepdims: bool) -> Self:
        out = self._compact()
        for k in sorted(axes, key=lambda k: -abs(self._place.strides[k])):
            out = summed(out, k)
        if keepdims:
            return out
        view = out._place
        kept = tuple(k for k in range(len(self.shape)) if k not in axes)
        shape = tuple(view.shape[k] for k in kept)
        strides = tuple(view.strides[k] for k in kept)
        return out._seen(replace(view, shape=shape, strides=strides))

    def _count(self, axis: Any) -> int:
        return math.prod(self.shape[k] for k in numbered(axis, len(self.shape)))

    def mean(self, axis: Any = None, keepdims: bool = False) -> Self:
        """The mean along an axis, several, or all. It takes one level."""
        x = self._viewed()
        return x.sum(axis, keepdims) * (1 / x._count(axis))

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Self:
        """The variance along an axis, several, or all: the mean of squares less the square of the
        mean. It takes two levels.

        Its error is that of a number as large as the squares: take away a mean that you know first,
        if it is large.
        """
        x = self._viewed()
        count = x._count(axis)
        freedom = arrays.number(ddof)
        if freedom is None or freedom.imag or not 0 <= freedom.real < count:
            raise InvalidArgument(
                f"ddof must be a number from 0 and below the count of {count}, not {checks.shown(ddof)}"
            )
        # Of complex numbers it is the mean of their squared moduli, less that of their mean.
        complex_values = x._settled().is_complex
        squares = (x * (x.conj() if complex_values else x)).sum(axis, keepdims)
        mean = x.mean(axis, keepdims)
        spread = squares * (1 / count) - mean * (mean.conj() if complex_values else mean)
        return spread if freedom == 0 else spread * (count / (count - freedom.real))
