"""The shapes of encrypted arrays that lie in slots, which change as those of NumPy's arrays do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np

from jali._core import checks
from jali._core.axes import axes as numbered
from jali._core.console import counted_text
from jali._core.moves import Placed
from jali._core.sums import summed
from jali.errors import IndexOutOfRange, InvalidArgument, Unsupported

__all__ = ["Shaped", "split"]

Array = TypeVar("Array", bound="Shaped")


class Shaped(Placed):
    """An encrypted array of any shape. One without a view that changes its shape gets one first."""

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


def split(x: Array, sections: Any, axis: int = 0) -> list[Array]:
    """Equal parts along an axis, or the parts between these indices, as numpy.split. It costs
    nothing."""
    (k,) = numbered((axis,), len(x.shape))
    count = x.shape[k]
    if isinstance(sections, (int, np.integer)) and not isinstance(sections, bool):
        sections = int(sections)
        if not 1 <= sections <= count or count % sections:
            raise InvalidArgument(
                f"{counted_text(count, 'element')} cannot be split into {checks.shown(sections)} equal parts"
            )
        cuts: Sequence[int] = range(0, count + 1, count // sections)
    else:
        try:
            cuts = [0, *sections, count]
        except TypeError:
            raise InvalidArgument(
                f"split takes a number of parts, or the indices between them, not {checks.shown(sections)}"
            ) from None
    key = (slice(None),) * k
    return [x[(*key, slice(a, b))] for a, b in itertools.pairwise(cuts)]
