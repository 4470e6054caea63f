"""What encrypted arrays of messages and of integers have in common: their shapes, which they change
as NumPy's arrays do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.array import Encrypted
from jali._jali.tfhe import Ciphertext, Params
from jali.errors import IndexOutOfRange, InvalidArgument, KeyMismatch, Unsupported

if TYPE_CHECKING:
    from jali.tfhe.evaluator import Evaluator

__all__ = ["Shaped"]

#: For every element of a result, the place of an element in C order.
Addresses = npt.NDArray[Any]


class Shaped(Encrypted):
    """An encrypted array of any shape that can gather its elements in any order."""

    __slots__ = ("_ct", "_server")
    _hint = "no method of the array or of Evaluator has this name: write it with operators, or decrypt first, Client.decrypt(x)"

    def __init__(self, server: Evaluator, ciphertext: Ciphertext) -> None:
        self._server = server
        self._ct = ciphertext

    def _gathered(self, places: list[int], shape: tuple[int, ...]) -> Ciphertext:
        """The elements at these places in C order."""
        raise NotImplementedError

    # --- what is known of it --------------------------------------------------------------------

    @property
    def ciphertext(self) -> Ciphertext:
        """The ciphertext to send or decrypt, in the host's memory."""
        return self._server._core.host_copy(self._ct)

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator that computes on it."""
        return self._server

    @property
    def params(self) -> Params:
        """Its parameters."""
        return self._server.params

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self._ct.shape

    # --- shapes ---------------------------------------------------------------------------------

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            "an encrypted array becomes none of NumPy: decrypt it first, Client.decrypt(x), or, if it is an index into a clear table, "
            "write evaluator.read(table, x) for integers and evaluator.apply(table, x) for messages"
        )

    def __getitem__(self, index: Any) -> Self:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, (Shaped, Ciphertext)) for part in parts):
            raise Unsupported(
                "the places of an index are clear: of integers, write evaluator.read(x, index) for x of one axis and an index that "
                "encrypt_uint encrypted"
            )
        try:
            return self._taken(np.asarray(self._addresses()[index]))
        except IndexError as error:
            raise IndexOutOfRange(str(error)) from None
        except (ValueError, TypeError) as error:  # of a slice
            raise InvalidArgument(str(error)) from None

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise InvalidArgument("an encrypted number has no elements")
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        if not self.shape:
            raise InvalidArgument("an encrypted number has no length")
        return self.shape[0]

    def reshape(self, *shape: Any) -> Self:
        """As numpy.ndarray.reshape."""
        try:
            return self._taken(self._addresses().reshape(*shape))
        except (ValueError, TypeError) as error:
            raise InvalidArgument(str(error)) from None

    def transpose(self, *axes: Any) -> Self:
        """As numpy.ndarray.transpose."""
        try:
            return self._taken(self._addresses().transpose(*axes))
        except (ValueError, TypeError) as error:
            raise InvalidArgument(str(error)) from None

    @property
    def T(self) -> Self:
        """The transpose."""
        return self.transpose()

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """As numpy.ndarray.swapaxes."""
        try:
            return self._taken(self._addresses().swapaxes(axis1, axis2))
        except (ValueError, TypeError) as error:
            raise InvalidArgument(str(error)) from None

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Self:
        """As numpy.ndarray.squeeze."""
        try:
            return self._taken(self._addresses().squeeze(axis))
        except (ValueError, TypeError) as error:
            raise InvalidArgument(str(error)) from None

    def ravel(self) -> Self:
        """The elements in one axis."""
        return self.reshape(-1)

    flatten = ravel

    # --- what operations need -------------------------------------------------------------------

    def _addresses(self) -> Addresses:
        return np.arange(self.size).reshape(self.shape)

    def _taken(self, order: Addresses) -> Self:
        """The elements with these addresses."""
        flat = order.reshape(-1)
        if flat.size == 0:
            raise IndexOutOfRange("no element is chosen: an encrypted array has at least one")
        if flat.size == self.size and (flat == np.arange(flat.size)).all():
            return type(self)(self._server, self._ct.with_shape(list(order.shape)))
        return type(self)(self._server, self._gathered(flat.tolist(), order.shape))

    def _here(self, server: Evaluator) -> Ciphertext:
        if server is not self._server:
            raise KeyMismatch(
                "the array belongs to another evaluator: bind its ciphertext to this one"
            )
        return self._ct

    def _shape_with(self, other: tuple[int, ...]) -> tuple[int, ...]:
        """As numpy.broadcast_shapes."""
        try:
            return np.broadcast_shapes(self.shape, other)
        except ValueError:
            raise InvalidArgument(
                f"arrays of the shapes {self.shape} and {other} do not fit together: axes, counted from the last, "
                "must be of one length, or of length 1"
            ) from None

    def _spread(self, shape: tuple[int, ...]) -> Self:
        """As numpy.broadcast_to."""
        if shape == self.shape:
            return self
        return self._taken(np.broadcast_to(self._addresses(), shape))

    def _aligned(self, other: Self) -> tuple[Self, Self]:
        """Two arrays of this evaluator, broadcast to one shape."""
        other._here(self._server)
        shape = self._shape_with(other.shape)
        return self._spread(shape), other._spread(shape)

    def _with_clear(self, numbers: npt.NDArray[Any]) -> tuple[Self, list[int]]:
        """This array and whole numbers, broadcast to one shape. A single number stays one."""
        if numbers.ndim == 0:
            return self, [int(numbers)]
        shape = self._shape_with(numbers.shape)
        each = np.broadcast_to(numbers, shape).reshape(-1).tolist()
        return self._spread(shape), [int(number) for number in each]

    def _kept(self, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
        """The shape, with a length of 1 for these axes, which exist."""
        axes = (
            range(self.ndim) if axis is None else {int(a) % self.ndim for a in np.atleast_1d(axis)}
        )
        return tuple(1 if i in axes else length for i, length in enumerate(self.shape))

    def _in_rows(self, axis: int | tuple[int, ...] | None) -> tuple[Addresses, tuple[int, ...]]:
        """The addresses of the elements along the axes, in one row for each result; and the shape
        of the results."""
        at = self._addresses()
        axes = tuple(range(at.ndim)) if axis is None else tuple(np.atleast_1d(axis))
        try:
            moved = np.moveaxis(at, axes, range(-len(axes), 0))
        except (ValueError, TypeError):
            raise InvalidArgument(
                f"an axis is a whole number from {-at.ndim} to {at.ndim - 1} for an array of the shape {self.shape}, and none is "
                f"named twice; not {checks.shown(axis)}"
            ) from None
        shape = moved.shape[: moved.ndim - len(axes)]
        return moved.reshape(math.prod(shape), -1), shape
