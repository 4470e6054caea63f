"""What follows the axes of encrypted arrays: sums, means and variances."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from jali._core import array as arrays
from jali._core import checks
from jali._core.axes import axes as numbered
from jali._core.console import counted_text
from jali.ckks.arithmetic import Arithmetic
from jali.errors import InvalidArgument, Unsupported

__all__ = ["SummedArray"]

_LEAST_COUNT = 8  # a smaller number in the place of an axis is one


class SummedArray(Arithmetic):
    """An encrypted array with sums along axes and over windows of slots."""

    __slots__ = ()

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
