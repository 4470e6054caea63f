"""The arithmetic of encrypted arrays of exact integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self, Union

import numpy as np
import numpy.typing as npt

from jali._core import array as arrays
from jali._core import checks
from jali._core.moves import aligned, of_other_evaluators, of_product, of_sum
from jali._core.shaped import Shaped
from jali._core.view import View, joint_shape
from jali._jali.discrete import Ciphertext
from jali.discrete.ends import Ends
from jali.discrete.values import LEAST, MOST, TOO_LARGE, number, numbers
from jali.errors import DepthExhausted, InvalidArgument

if TYPE_CHECKING:
    from jali.discrete.evaluator import Evaluator

__all__ = ["Arithmetic", "Operand"]

#: The other operand of an EncryptedArray's arithmetic.
Operand = Union["Arithmetic", int, npt.NDArray[Any], list[Any], tuple[Any, ...], range]


class Arithmetic(Shaped):
    """An encrypted array with NumPy's operators for sums and products."""

    __slots__ = ()
    _hint = "decrypt them first: what is computed here are sums and products of integers"
    _server: Evaluator
    _ct: Ciphertext

    def __init__(self, server: Evaluator, ciphertext: Ciphertext, view: View) -> None:
        self._server, self._ct, self._view = server, ciphertext, view

    # --- operators ------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Self:
        if not isinstance(other, Arithmetic):
            return self._plus(other, subtract=False)
        x, y, view = self._with(other)
        return self._new(self._server._engine.add(x._ct, y._ct), of_sum(x, y, view))

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Self:
        if not isinstance(other, Arithmetic):
            return self._plus(other, subtract=True)
        x, y, view = self._with(other)
        return self._new(self._server._engine.sub(x._ct, y._ct), of_sum(x, y, view))

    def __rsub__(self, other: Operand) -> Self:
        # x - other fits wherever other - x does, but for one number at the end of the range.
        return -(self - other)

    def __neg__(self) -> Self:
        return self._new(self._server._engine.negate(self._ct), self._place)

    def __pos__(self) -> Self:
        return self

    def __mul__(self, other: Operand) -> Self:
        core = self._server._engine
        if isinstance(other, Arithmetic):
            x, y, view = self._with(other)
            return self._new(core.multiply(x._ct, y._ct), of_product(x, y, view))
        value = number(other)
        if value is not None:
            x = self._compact()
            factor = x._small(value)
            return x._new(core.multiply_number(x._ct, factor), x._place.scaled(abs(factor)))
        clear = self._with_clear(other)
        if clear is None:
            return NotImplemented
        x, slots = clear
        return x._new(self._server._core.multiply_array(x._ct, slots), x._place.zeroed())

    __rmul__ = __mul__

    def __pow__(self, exponent: int, modulo: Any = None) -> Self:
        if modulo is not None:
            raise InvalidArgument(
                "powers are already modulo params.modulus: call pow with two arguments"
            )
        if (
            isinstance(exponent, (bool, np.bool_))
            or not isinstance(exponent, (int, np.integer))
            or exponent < 1
        ):
            raise InvalidArgument(
                f"an exponent must be a whole number from 1, not {checks.shown(exponent)}"
            )
        n = arrays.exponent(exponent)
        self._check_power(n)
        result: Self = arrays.power({1: self}, n)
        return result

    def _check_power(self, n: int) -> None:
        """Raises what the n-th power would raise after some of its products. By BFV's product,
        noise may still end it on the way."""
        params, products = self._server.params, (n - 1).bit_length()
        if params.packing != "slots":
            return
        if not self._ct.wraps:
            ends = arrays.power({1: Ends(*self._ct.range)}, n)
            self._server._engine.check_range(ends.low, ends.high)
        if params.multiplication == "bgv" and products > self._ct.level:
            lacking = products - self._ct.level
            higher = ", or encrypt at a higher level" if self._ct.level < params.depth else ""
            raise DepthExhausted(
                f"a power of {n} takes {products} products after each other, and level {self._ct.level} has no room for "
                f"{lacking} of them: make the parameters with depth={params.depth + lacking}{higher}"
            )

    # --- operands in the clear --------------------------------------------------------------------

    def _plus(self, other: Any, *, subtract: bool) -> Self:
        """The sum with a number or an array, or the difference."""
        core, value = self._server._engine, number(other)
        if value is not None:
            x = self._compact()
            added = x._small(-value if subtract else value)
            if not x._place.zero:
                return x._new(core.add_number(x._ct, added), x._place.raised(abs(added)))
            # Slots that hold no element stay zero.
            slots, subtract = x._place.scattered(np.array(added, np.int64)), False
        else:
            clear = self._with_clear(other)
            if clear is None:
                return NotImplemented  # type: ignore[no-any-return]
            x, slots = clear
        total = core.add_array(x._ct, self._server._core.paired(slots), subtract)
        return x._new(total, x._place.added())

    def _small(self, value: int) -> int:
        """A number of 64 bits with a sign that is the same modulo T. Raises InvalidArgument for
        numbers that are none, unless these numbers wrap."""
        if LEAST <= value <= MOST:
            return value
        if not self._ct.wraps:
            raise InvalidArgument(f"{TOO_LARGE}, or x.wrap()")
        params = self._server.params
        return params.low + (value - params.low) % params.modulus

    def _with_clear(self, other: Any) -> tuple[Self, npt.NDArray[np.int64]] | None:
        """This array, broadcast to the shape of the result, and numbers in the slots beside it;
        None if `other` is no array. Raises InvalidArgument for shapes that do not fit."""
        values = numbers(other)
        if values is None:
            return None
        if values.size == 1 and values.ndim <= self.ndim:
            x = self._compact()
            return x, x._place.scattered(values.reshape(()))
        x = self._compact().broadcast_to(joint_shape(self.shape, values.shape))
        return x, x._place.scattered(values)

    def _with(self, other: Arithmetic) -> tuple[Arithmetic, Arithmetic, View]:
        if other._server is not self._server:
            raise of_other_evaluators()
        return aligned(self, other)

    # --- what jali._core asks for -----------------------------------------------------------------

    def _new(self, value: Ciphertext, view: View | None = None) -> Self:
        return type(self)(self._server, value, self._place if view is None else view)

    def _settled(self) -> Ciphertext:
        return self._ct

    def _held(self, value: Ciphertext) -> int:
        return value.rows

    def _peak(self) -> float:
        return math.inf  # the range is that of the elements

    def _added(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        return self._server._core.add(a, b)

    def _bounded(self, value: Ciphertext, like: Ciphertext, count: int, terms: int) -> Ciphertext:
        return self._server._engine.bounded(value, like, count, terms)

    def _taken(self, vectors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        # Rows of different pairs become a pair by two masks. Whole pairs cost nothing.
        pairs = np.unique(vectors // 2)
        whole = np.stack([2 * pairs, 2 * pairs + 1], axis=1).ravel()
        paired = len(vectors) >= len(whole) - 1 and (vectors == whole[: len(vectors)]).all()
        return vectors if len(vectors) == 1 or paired else whole

    def _masked(self, products: Iterator[Ciphertext], like: Ciphertext) -> Ciphertext:
        total = next(products)
        for product in products:
            total = self._bounded(self._added(total, product), like, 2, 1)
        return total

    def _gathered_rows(self, parts: list[Ciphertext], rows: list[list[int]]) -> Ciphertext:
        # Of an odd number of rows, the last pair is half full.
        at: list[int] = []
        first = 0
        for part, mine in zip(parts, rows, strict=True):
            at += range(first, first + len(mine))
            first += part.rows
        order = np.argsort(np.concatenate(rows))
        stacked = self._server._core.stack(parts)
        return self._server._core.take(stacked, np.array(at)[order].tolist())
