"""Encrypted arrays of messages: whole numbers of a few bits, or bits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali.tfhe import Ciphertext
from jali.errors import InvalidArgument, RangeExceeded, Unsupported
from jali.tfhe.shaped import Shaped
from jali.tfhe.values import whole_numbers

if TYPE_CHECKING:
    pass

__all__ = ["EncryptedArray"]


class EncryptedArray(Shaped):
    """An encrypted array of messages, of any shape, with NumPy's arithmetic.

    Evaluator.bind makes it. Sums and products with whole numbers cost nothing, but values grow into
    the carries, and noise grows: RangeExceeded says when Evaluator.apply or Evaluator.refresh must
    bring them back. Differences, products of two arrays, comparisons, ``//``, ``%``, ``& | ^ ~``
    and Evaluator.apply cost a bootstrapping for each element. Values are not negative, so
    differences are modulo 2^message_bits, as those of NumPy's unsigned integers are modulo 2^8 or
    more; Evaluator.linear takes differences without a bootstrapping, with a constant that keeps
    them positive. Values are immutable.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> server = tfhe.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt([1, 2]))
    >>> client.decrypt(x + 1)
    array([2, 3])
    """

    __slots__ = ()

    def _gathered(self, places: list[int], shape: tuple[int, ...]) -> Ciphertext:
        return self._server._core.gather(self._ct, places, list(shape))

    # --- what is known of it --------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the decrypted numbers."""
        return np.dtype(np.bool_ if self._is_bits() else np.int64)

    @property
    def largest(self) -> int:
        """The largest value that an element can have, by the computation that made it."""
        return self._ct.largest

    @property
    def norm2(self) -> float:
        """The squared norm of the weights since the last look-up; params.max_norm2 bounds it."""
        return self._ct.norm2

    def __repr__(self) -> str:
        return f"EncryptedArray(shape={self.shape}, largest={self.largest}, params='{self.params.name}')"

    def _is_bits(self) -> bool:
        return self.params.message_bits == 1 and self.params.carry_bits == 0

    # --- sums -----------------------------------------------------------------------------------

    def __add__(self, other: Any) -> EncryptedArray:
        core = self._server._core
        if isinstance(other, EncryptedArray):
            a, b = self._aligned(other)
            return EncryptedArray(self._server, core.add(a._ct, b._ct))
        x, values = self._beside(other, "added")
        return EncryptedArray(self._server, core.add_clear(x._ct, values))

    __radd__ = __add__

    def __sub__(self, other: Any) -> EncryptedArray:
        """Modulo 2^message_bits, because values are not negative: one look-up an element, which
        takes off the carry."""
        core = self._server._core
        if isinstance(other, EncryptedArray):
            a, b = self._aligned(other)
            return self._reduced(core.subtract(a._ct, b._ct))
        x, values = self._beside(other, "subtracted")
        return self._reduced(core.add_clear(x._ct, [-v % self._modulus() for v in values]))

    def __rsub__(self, other: Any) -> EncryptedArray:
        x, values = self._beside(other, "subtracted")
        core = self._server._core
        return self._reduced(
            core.add_clear(core.negate(x._ct), [v % self._modulus() for v in values])
        )

    def __neg__(self) -> EncryptedArray:
        """Modulo 2^message_bits: one look-up an element."""
        return self._reduced(self._server._core.negate(self._ct))

    def _modulus(self) -> int:
        return 1 << self.params.message_bits

    def _reduced(self, ciphertext: Ciphertext) -> EncryptedArray:
        """Values modulo 2^message_bits: 3 - 1 lies as 2 + 2^message_bits, and is 2 to whoever
        decrypts or compares it."""
        return self._server.refresh(EncryptedArray(self._server, ciphertext))

    def __pos__(self) -> EncryptedArray:
        return self

    def __mul__(self, other: Any) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            most = self.largest * other.largest
            high = (1 << (self.params.message_bits + self.params.carry_bits)) - 1
            if most > high:
                raise RangeExceeded(
                    f"the product may be as large as {most}, and there is room up to {high}: take it modulo the message, "
                    "evaluator.apply(lambda x, y: (x * y) % modulus, x, y)"
                )
            return self._server.apply(operator.mul, self, other)
        x, values = self._beside(other, "multiplied with")
        return EncryptedArray(self._server, self._server._core.scale(x._ct, values))

    __rmul__ = __mul__

    def _beside(self, other: Any, use: str) -> tuple[EncryptedArray, list[int]]:
        """This array and numbers of its shape (or one number), for an operation with clear
        numbers."""
        if isinstance(other, (str, bytes)) or other is None:
            raise InvalidArgument(f"what is {use} must be whole numbers, not {checks.shown(other)}")
        self._not_integers(other)
        array = whole_numbers(other, "the operand's numbers")
        if use != "subtracted" and int(array.min()) < 0:
            raise InvalidArgument(
                "a number is negative, and values are not: use - for differences, and -x, "
                "which is modulo 2^message_bits"
            )
        return self._with_clear(array)

    @staticmethod
    def _not_integers(other: Any) -> None:
        if isinstance(other, Shaped):
            raise InvalidArgument(
                "messages and integers do not mix: encrypt both by encrypt_uint or encrypt_int"
            )

    def sum(
        self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
    ) -> EncryptedArray:
        """The sum along an axis. It costs nothing, but must fit: at most params.max_norm2 fresh
        values are added at once.

        keepdims: whether the axes stay, with the length 1.

        Raises RangeExceeded for a sum that does not fit. Those of integers (Client.encrypt_uint)
        always do.
        """
        terms, shape = self._in_rows(axis)
        if checks.flag(keepdims, "keepdims"):
            shape = self._kept(axis)
        return self._combined(terms, np.ones_like(terms), shape)

    def __matmul__(self, matrix: Any) -> EncryptedArray:
        """The product with a clear matrix of whole numbers of at least 0."""
        if isinstance(matrix, Shaped):
            raise Unsupported("a matrix is clear: multiply two encrypted arrays by Evaluator.apply")
        weights = whole_numbers(matrix, "the matrix's numbers")
        if (
            weights.ndim not in (1, 2)
            or self.ndim not in (1, 2)
            or weights.shape[0] != self.shape[-1]
        ):
            raise InvalidArgument(
                f"an array of shape {self.shape} and a matrix of shape {weights.shape} have no product"
            )
        at = np.atleast_2d(self._addresses())
        columns = weights.reshape(weights.shape[0], -1)
        terms = np.broadcast_to(at[:, None, :], (at.shape[0], columns.shape[1], at.shape[1]))
        factors = np.broadcast_to(columns.T[None], terms.shape)
        shape = (*self.shape[:-1], *weights.shape[1:])
        width = terms.shape[-1]
        return self._combined(terms.reshape(-1, width), factors.reshape(-1, width), shape)

    def _combined(
        self, terms: npt.NDArray[Any], weights: npt.NDArray[Any], shape: tuple[int, ...]
    ) -> EncryptedArray:
        """Row r of the result is the sum of weights[r, j] times element terms[r, j]."""
        kept = weights != 0
        begin = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        core = self._server._core
        made = core.linear(
            [self._ct],
            begin.tolist(),
            terms[kept].tolist(),
            weights[kept].tolist(),
            [],
            list(shape),
        )
        return EncryptedArray(self._server, made)

    # --- look-ups -------------------------------------------------------------------------------

    def _looked_up(self, function: Callable[[int, int], Any], other: Any) -> EncryptedArray:
        """function(element, other), by one bootstrapping an element."""
        if isinstance(other, EncryptedArray):
            return self._server.apply(function, self, other)
        self._not_integers(other)
        numbers = whole_numbers(other, "the operand's numbers")
        if numbers.ndim == 0:
            value = int(numbers)
            return self._server.apply(lambda v: function(v, value), self)
        from jali.tfhe.tables import of_one

        x, values = self._beside(other, "compared")
        kinds = sorted(set(values))
        tables = [
            of_one(self.params, lambda v, value=value: function(v, value), self.largest)  # type: ignore[misc]
            for value in kinds
        ]
        which = [kinds.index(value) for value in values]
        core = self._server._core
        return EncryptedArray(self._server, core.apply_each(x._ct, tables, which))

    def _gated(self, name: str, function: Callable[[int, int], int], other: Any) -> EncryptedArray:
        """A gate if values are bits, else a look-up."""
        if not (self._is_bits() and isinstance(other, EncryptedArray)):
            return self._looked_up(function, other)
        a, b = self._aligned(other)
        return EncryptedArray(self._server, self._server._core.gate(name, a._ct, b._ct))

    def __and__(self, other: Any) -> EncryptedArray:
        return self._gated("and", operator.and_, other)

    def __or__(self, other: Any) -> EncryptedArray:
        return self._gated("or", operator.or_, other)

    def __xor__(self, other: Any) -> EncryptedArray:
        return self._gated("xor", operator.xor, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def nand(self, other: EncryptedArray) -> EncryptedArray:
        """not (x and y), of bits. other: bits of a shape that fits."""
        return self._bit_gate("nand", other)

    def nor(self, other: EncryptedArray) -> EncryptedArray:
        """not (x or y), of bits. other: bits of a shape that fits."""
        return self._bit_gate("nor", other)

    def xnor(self, other: EncryptedArray) -> EncryptedArray:
        """x == y, of bits. other: bits of a shape that fits."""
        return self._bit_gate("xnor", other)

    def andny(self, other: EncryptedArray) -> EncryptedArray:
        """(not x) and y, of bits. other: bits of a shape that fits."""
        return self._bit_gate("andny", other)

    def andyn(self, other: EncryptedArray) -> EncryptedArray:
        """x and (not y), of bits. other: bits of a shape that fits."""
        return self._bit_gate("andyn", other)

    def orny(self, other: EncryptedArray) -> EncryptedArray:
        """(not x) or y, of bits. other: bits of a shape that fits."""
        return self._bit_gate("orny", other)

    def oryn(self, other: EncryptedArray) -> EncryptedArray:
        """x or (not y), of bits. other: bits of a shape that fits."""
        return self._bit_gate("oryn", other)

    def _bit_gate(self, name: str, other: Any) -> EncryptedArray:
        if not isinstance(other, EncryptedArray):
            raise InvalidArgument(f"a gate takes an encrypted array, not {checks.shown(other)}")
        a, b = self._aligned(other)
        return EncryptedArray(self._server, self._server._core.gate(name, a._ct, b._ct))

    def __invert__(self) -> EncryptedArray:
        """Every bit of the message turned; of bits without bootstrapping."""
        if self._is_bits():
            return EncryptedArray(self._server, self._server._core.not_gate(self._ct))
        high = (1 << self.params.message_bits) - 1
        return self._server.apply(lambda v: high - v % (high + 1), self)

    def __mod__(self, other: Any) -> EncryptedArray:
        return self._looked_up(operator.mod, self._divisor(other))

    def __floordiv__(self, other: Any) -> EncryptedArray:
        return self._looked_up(operator.floordiv, self._divisor(other))

    @staticmethod
    def _divisor(other: Any) -> Any:
        if isinstance(other, EncryptedArray):
            raise Unsupported(
                "a message is divided by clear numbers alone: for others say what x // 0 is, "
                "evaluator.apply(lambda x, y: x // y if y else 0, x, y)"
            )
        if (checks.as_array(other, "a divisor is a whole number, or an array of them") == 0).any():
            raise InvalidArgument("a divisor is 0: use other numbers")
        return other

    def _compared(self, function: Callable[[int, int], bool], other: Any) -> EncryptedArray:
        return self._looked_up(lambda x, y: int(function(x, y)), other)

    def __eq__(self, other: object) -> EncryptedArray:  # type: ignore[override]
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> EncryptedArray:  # type: ignore[override]
        return self._compared(operator.ne, other)

    def __lt__(self, other: object) -> EncryptedArray:  # type: ignore[override]
        return self._compared(operator.lt, other)

    def __le__(self, other: object) -> EncryptedArray:  # type: ignore[override]
        return self._compared(operator.le, other)

    def __gt__(self, other: object) -> EncryptedArray:  # type: ignore[override]
        return self._compared(operator.gt, other)

    def __ge__(self, other: object) -> EncryptedArray:  # type: ignore[override]
        return self._compared(operator.ge, other)

    __hash__ = object.__hash__
