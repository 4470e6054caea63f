"""Shapes of encrypted arrays, which they change as NumPy's arrays do, and what follows axes.
Elements lie where a DenseArray says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jali._core.array import Encrypted

if TYPE_CHECKING:
    from jali.ckks.array import EncryptedArray
    from jali.ckks.dense import DenseArray

__all__ = ["Shaped"]


class Shaped(Encrypted):
    """An encrypted array that has other shapes and its axes as a DenseArray."""

    __slots__ = ()

    def _dense(self) -> DenseArray:
        """The same numbers as an array of any shape."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> EncryptedArray:
        """Elements by whole numbers and slices, None and ``...``, as in NumPy. It costs nothing."""
        return self._dense()[key]

    def __iter__(self) -> Iterator[EncryptedArray]:
        return iter(self._dense())

    def reshape(self, *shape: Any, order: str = "C") -> EncryptedArray:
        """The same numbers in another shape. It costs nothing, and raises InvalidArgument if
        numbers would have to move.

        order: "C", or "F" for numbers that are read and written with the first axis fastest.
        """
        return self._dense().reshape(*shape, order=order)

    def ravel(self, order: str = "C") -> EncryptedArray:
        """All numbers as a vector. It costs nothing, and raises InvalidArgument if they would have
        to move."""
        return self._dense().ravel(order)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> EncryptedArray:
        """Without the axes of count 1, or without these. It costs nothing."""
        return self._dense().squeeze(axis)

    def swapaxes(self, first: int, second: int) -> EncryptedArray:
        """The array with two axes exchanged. It costs nothing."""
        return self._dense().swapaxes(first, second)

    def transpose(self, *axes: Any) -> EncryptedArray:
        """The axes in another order, reversed if none is given. It costs nothing."""
        return self._dense().transpose(*axes)

    @property
    def T(self) -> EncryptedArray:
        """The transpose. It costs nothing."""
        return self.transpose()

    def mean(self, axis: Any = None, keepdims: bool = False) -> EncryptedArray:
        """The mean along an axis, several, or all. It takes one level."""
        return self._dense().mean(axis, keepdims)

    def var(self, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> EncryptedArray:
        """The variance along an axis, several, or all: the mean of squares less the square of the
        mean. It takes two levels."""
        return self._dense().var(axis, ddof, keepdims)

    def dot(self, other: Any) -> EncryptedArray:
        """The same as ``@``, and the product with a number."""
        return self._dense().dot(other)

    def __matmul__(self, other: Any) -> EncryptedArray:
        """The product with a vector or a matrix, in the clear or encrypted; see DenseArray."""
        return self._dense().__matmul__(other)
