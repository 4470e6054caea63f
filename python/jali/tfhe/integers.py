"""Encrypted arrays of integers of 1 to 64 bits, with or without a sign."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali.tfhe import Ciphertext, IntegersCore
from jali.errors import InvalidArgument, Unsupported
from jali.tfhe.shaped import Shaped
from jali.tfhe.values import extended, integers, width_of

__all__ = ["EncryptedIntegers", "type_of"]

MIXED = "messages and integers do not mix: encrypt both by encrypt_uint or encrypt_int"


class EncryptedIntegers(Shaped):
    """An encrypted array of integers, of any shape, with NumPy's arithmetic modulo 2^bits.

    Evaluator.bind makes it of what Client.encrypt_uint and encrypt_int encrypted. Operators take
    encrypted integers of the same type, and whole numbers and arrays of them, which must be numbers
    of that type. Comparisons give integers of one bit, which decrypt to booleans. ``x // y`` and
    ``x % y`` round as Python does; if y is 0 the quotient is the largest number of the type, and
    the remainder is x. Values are immutable.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> server = tfhe.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt_uint([17, 42], bits=7))
    >>> client.decrypt(x + 3).tolist()
    [20, 45]
    """

    __slots__ = ()

    @property
    def _core(self) -> IntegersCore:
        return self._server._integers

    def _gathered(self, places: list[int], shape: tuple[int, ...]) -> Ciphertext:
        return self._core.take(self._ct, places).with_shape(list(shape))

    def _made(self, flat: Ciphertext, shape: tuple[int, ...]) -> EncryptedIntegers:
        return EncryptedIntegers(self._server, flat.with_shape(list(shape)))

    # --- what is known of it --------------------------------------------------------------------

    @property
    def bits(self) -> int:
        """The width of its integers."""
        return self._ct.bits

    @property
    def is_signed(self) -> bool:
        """Whether its integers have a sign."""
        return self._ct.is_signed

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the decrypted numbers."""
        return np.dtype(width_of(self.bits, self.is_signed))

    def __repr__(self) -> str:
        kind = f"{'int' if self.is_signed else 'uint'}{self.bits}"
        return f"EncryptedIntegers(shape={self.shape}, {kind}, params='{self.params.name}')"

    # --- arithmetic -----------------------------------------------------------------------------

    def _words(self, other: Any) -> npt.NDArray[np.uint64]:
        """Clear numbers of this type as words modulo 2^64, of which signed ones have their sign."""
        if isinstance(other, (str, bytes)) or other is None:
            raise InvalidArgument(f"an operand must be whole numbers, not {checks.shown(other)}")
        if isinstance(other, Shaped):
            raise InvalidArgument(MIXED)
        words = integers(other, self.bits, signed=self.is_signed, what="an operand's")
        return extended(words, self.bits) if self.is_signed else words

    def _binary(self, name: str, other: Any, *, reversed_: bool = False) -> EncryptedIntegers:
        if isinstance(other, EncryptedIntegers):
            x, y = self._aligned(other)
            return self._made(self._core.binary(name, x._ct, y._ct), x.shape)
        x, clear = self._with_clear(self._words(other))
        return self._made(self._core.binary_clear(name, x._ct, clear, reversed_), x.shape)

    def _numbers(self) -> EncryptedIntegers:
        """Itself, unless it holds truth values. NumPy subtracts none, and its sum of two is another
        one."""
        if self.dtype == np.bool_:
            raise Unsupported(
                'truth values have one bit, in which 1 + 1 has no room: combine them with & | ^ ~, or count in x.astype("uint8")'
            )
        return self

    def __add__(self, other: Any) -> EncryptedIntegers:
        return self._numbers()._binary("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> EncryptedIntegers:
        return self._numbers()._binary("subtract", other)

    def __rsub__(self, other: Any) -> EncryptedIntegers:
        return self._numbers()._binary("subtract", other, reversed_=True)

    def __mul__(self, other: Any) -> EncryptedIntegers:
        return self._binary("multiply", other)

    __rmul__ = __mul__

    def __neg__(self) -> EncryptedIntegers:
        return self._numbers()._made(self._core.unary("negate", self._ct), self.shape)

    def __pos__(self) -> EncryptedIntegers:
        return self

    def __abs__(self) -> EncryptedIntegers:
        """As NumPy's: the lowest number of a type stays as it is."""
        return self.maximum(-self) if self.is_signed else self

    def __pow__(self, exponent: Any) -> EncryptedIntegers:
        """A whole power of at least 1, modulo 2^bits."""
        if isinstance(exponent, EncryptedIntegers):
            raise Unsupported("an exponent must be a clear number: give a whole number from 1 on")
        n = checks.whole(exponent, 1, "an exponent must be a whole number of at least 1")
        result: EncryptedIntegers | None = None
        square = self
        while True:
            if n % 2:
                result = square if result is None else result * square
            n //= 2
            if not n:
                assert result is not None
                return result
            square = square * square

    def __rpow__(self, base: Any) -> NoReturn:
        raise Unsupported(
            "a clear number to an encrypted power is not computed: look it up, Evaluator.read([1, base, ...], x)"
        )

    def __truediv__(self, other: Any) -> NoReturn:
        raise Unsupported("integers have no fractions: use // for the quotient and % for the rest")

    __rtruediv__ = __truediv__

    def __and__(self, other: Any) -> EncryptedIntegers:
        return self._binary("and", other)

    def __or__(self, other: Any) -> EncryptedIntegers:
        return self._binary("or", other)

    def __xor__(self, other: Any) -> EncryptedIntegers:
        return self._binary("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> EncryptedIntegers:
        return self._made(self._core.unary("invert", self._ct), self.shape)

    def divmod(
        self, other: Any, *, truncate: bool = False, reversed_: bool = False
    ) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        """Quotient and remainder. If the divisor is 0, they are the largest number of the type and
        the dividend.

        other: the divisor, encrypted or clear.
        reversed_: whether ``other``, in the clear, is the dividend instead.
        truncate: whether the quotient is rounded towards 0, as C does it, and not down, as Python
            does.
        """
        floor = not checks.flag(truncate, "truncate")
        if isinstance(other, EncryptedIntegers):
            x, y = self._aligned(other)
            both = self._core.divide(x._ct, y._ct, floor)
        else:
            x, clear = self._with_clear(self._words(other))
            both = self._core.divide_clear(x._ct, clear, reversed_, floor)
        return self._made(both[0], x.shape), self._made(both[1], x.shape)

    def __divmod__(self, other: Any) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        return self.divmod(other)

    def __floordiv__(self, other: Any) -> EncryptedIntegers:
        return self.divmod(other)[0]

    def __mod__(self, other: Any) -> EncryptedIntegers:
        return self.divmod(other)[1]

    def __rdivmod__(self, other: Any) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        return self.divmod(other, reversed_=True)

    def __rfloordiv__(self, other: Any) -> EncryptedIntegers:
        return self.divmod(other, reversed_=True)[0]

    def __rmod__(self, other: Any) -> EncryptedIntegers:
        return self.divmod(other, reversed_=True)[1]

    def _overflowing(self, name: str, other: Any) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        if isinstance(other, EncryptedIntegers):
            x, y = self._aligned(other)
            both = self._core.overflowing(name, x._ct, y._ct)
        else:
            x, clear = self._with_clear(self._words(other))
            both = self._core.overflowing_clear(name, x._ct, clear)
        return self._made(both[0], x.shape), self._made(both[1], x.shape)

    def add_overflow(self, other: Any) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        """The sum with ``other`` modulo 2^bits, and whether the true one is no number of the
        type."""
        return self._overflowing("add", other)

    def subtract_overflow(self, other: Any) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        """The difference with ``other`` modulo 2^bits, and whether the true one is no number of the
        type."""
        return self._overflowing("subtract", other)

    def multiply_overflow(self, other: Any) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        """The product with ``other`` modulo 2^bits, and whether the true one is no number of the
        type."""
        return self._overflowing("multiply", other)

    def _moved(self, name: str, amount: Any) -> EncryptedIntegers:
        if isinstance(amount, EncryptedIntegers):
            x, by = self._aligned(amount)
            return self._made(self._core.move(name, x._ct, by._ct), x.shape)
        if isinstance(amount, Shaped):
            raise InvalidArgument(MIXED)
        words = integers(
            amount,
            32,
            signed=False,
            what="an amount's",
            negative="amounts are not negative: shift or rotate the other way",
            wide=f"a shift by {self.bits} or more leaves no bit of these numbers but the sign, and a rotation counts modulo "
            f"{self.bits}: give such an amount",
        )
        x, clear = self._with_clear(words)
        return self._made(self._core.move_clear(name, x._ct, clear), x.shape)

    def __lshift__(self, amount: Any) -> EncryptedIntegers:
        return self._moved("left", amount)

    def __rshift__(self, amount: Any) -> EncryptedIntegers:
        """Of a signed number, with its sign."""
        return self._moved("right", amount)

    def __rlshift__(self, other: Any) -> NoReturn:
        raise Unsupported(
            "a clear number has no width in which encrypted amounts could shift it: encrypt it as well, or look "
            "the result up, Evaluator.read([1, 2, 4, 8], amount)"
        )

    __rrshift__ = __rlshift__

    def rotate_left(self, amount: Any) -> EncryptedIntegers:
        """The bits rotated, by an amount modulo bits: a number, one for each, or unsigned encrypted
        integers."""
        return self._moved("rotate_left", amount)

    def rotate_right(self, amount: Any) -> EncryptedIntegers:
        """The bits rotated to the right, by an amount as of ``rotate_left``."""
        return self._moved("rotate_right", amount)

    # --- comparisons ----------------------------------------------------------------------------

    def __eq__(self, other: object) -> EncryptedIntegers:  # type: ignore[override]
        return self._binary("equal", other)

    def __ne__(self, other: object) -> EncryptedIntegers:  # type: ignore[override]
        return self._binary("not_equal", other)

    def __lt__(self, other: object) -> EncryptedIntegers:  # type: ignore[override]
        return self._binary("less", other)

    def __le__(self, other: object) -> EncryptedIntegers:  # type: ignore[override]
        return self._binary("less_equal", other)

    def __gt__(self, other: object) -> EncryptedIntegers:  # type: ignore[override]
        return self._binary("greater", other)

    def __ge__(self, other: object) -> EncryptedIntegers:  # type: ignore[override]
        return self._binary("greater_equal", other)

    __hash__ = object.__hash__

    def minimum(self, other: Any) -> EncryptedIntegers:
        """The smaller of each pair of a number and one of ``other``, encrypted or clear."""
        return self._binary("minimum", other)

    def maximum(self, other: Any) -> EncryptedIntegers:
        """The larger of each pair of a number and one of ``other``, encrypted or clear."""
        return self._binary("maximum", other)

    # --- bits and types -------------------------------------------------------------------------

    def leading_zeros(self) -> EncryptedIntegers:
        """How many of the highest bits are 0, as integers of 8 bits."""
        return self._made(self._core.unary("leading_zeros", self._ct), self.shape)

    def trailing_zeros(self) -> EncryptedIntegers:
        """How many of the lowest bits are 0, as integers of 8 bits."""
        return self._made(self._core.unary("trailing_zeros", self._ct), self.shape)

    def ilog2(self) -> EncryptedIntegers:
        """The number of the highest bit that is 1, as integers of 8 bits; 255 for 0."""
        return self._made(self._core.unary("ilog2", self._ct), self.shape)

    def astype(self, kind: Any) -> EncryptedIntegers:
        """The numbers as another type: modulo 2^bits, or with the sign extended.

        kind: such as "uint8", numpy.int32 or "int5". "bool" is x != 0.

        Raises Unsupported for types that are none of integers.
        """
        bits, signed = type_of(kind)
        if (not isinstance(kind, str) or kind == "bool") and bits == 1 and self.bits > 1:
            return self != 0
        return self._made(self._core.cast(self._ct, bits, signed), self.shape)

    # --- along an axis --------------------------------------------------------------------------

    def _rows(self, axis: Any) -> tuple[EncryptedIntegers, tuple[int, ...], int]:
        """The elements with the axes last, the shape without them, and how many there are along
        them."""
        rows, shape = self._in_rows(axis)
        return self._taken(rows.reshape(-1)), shape, rows.shape[1]

    def _range(self) -> tuple[int, int]:
        """The smallest and the largest number of its type."""
        half = 1 << (self.bits - 1)
        return (-half, half - 1) if self.is_signed else (0, 2 * half - 1)

    def _type_of_sum(self, low: int, high: int, dtype: Any, bits: Any) -> tuple[int, bool]:
        """(bits, whether it has a sign) of sums from low to high: the type that was asked for, or
        else the narrowest that holds them all. It has no fewer bits than these numbers, those of
        truth values at least 8, and none more than 64.
        """
        if dtype is not None and bits is not None:
            raise InvalidArgument("dtype and bits both say the type of the sum: give one of them")
        if dtype is not None:
            wanted = type_of(dtype)
            if wanted == (1, False):
                raise Unsupported(
                    "a sum of truth values as a truth value says whether any is True: write (x != 0).max()"
                )
            return wanted
        signed = self.is_signed or low < 0
        if bits is not None:
            width = checks.whole(bits, 1, "bits must be a whole number from 1 to 64")
            if width > 64:
                raise InvalidArgument(f"bits must be a whole number from 1 to 64, not {width}")
            return width, signed
        least = 8 if self.dtype == np.bool_ else self.bits
        needed = max(high, -low - 1).bit_length() + signed
        return min(max(least, needed), 64), signed

    def sum(
        self,
        axis: int | tuple[int, ...] | None = None,
        dtype: Any = None,
        *,
        bits: int | None = None,
        keepdims: bool = False,
    ) -> EncryptedIntegers:
        """The sum along an axis. It is exact, as that of NumPy: its type has the bits that every
        possible sum needs, at most 64.

        dtype: the type of the sum, such as "uint8" or numpy.int32, modulo 2^bits of which it then
            is. It costs fewer look-ups if it has fewer bits.
        bits: the same by the number of bits alone, with the sign of these numbers.
        keepdims: whether the axes stay, with the length 1.

        Truth values are counted, in at least 8 bits. Raises InvalidArgument for axes that do not
        exist, and Unsupported for a type that is none of integers.

            ages = server.bind(client.encrypt_uint([17, 42, 18, 90], bits=7))
            client.decrypt(ages.sum())  # 167, of 9 bits
            client.decrypt(ages.sum(bits=7))  # 39, which is 167 modulo 128
        """
        x, shape, length = self._rows(axis)
        if checks.flag(keepdims, "keepdims"):
            shape = self._kept(axis)
        low, high = (length * end for end in self._range())
        width, signed = self._type_of_sum(low, high, dtype, bits)
        return self._made(self._core.sum(x._ct, length, width, signed), shape)

    def dot(self, weights: Any, *, dtype: Any = None, bits: int | None = None) -> EncryptedIntegers:
        """The product with clear weights, one for each number of the last axis. It is exact: its
        type has the bits that every possible product with these weights needs, at most 64, and a
        sign if one may be negative.

        dtype, bits: the type of the product, as for ``sum``, modulo 2^bits of which it then is.
        """
        if isinstance(weights, Shaped):
            raise Unsupported(
                "weights are clear: for two encrypted vectors write (x * y).sum(). The products have the bits of x and y, and "
                'x.astype("uint16") has more'
            )
        if not self.shape:
            raise InvalidArgument("a single encrypted number has no axis along which to multiply")
        refusal = (
            f"weights must be {self.shape[-1:]} whole numbers, one for each number of the last axis"
        )
        array = checks.as_array(weights, refusal)
        if array.shape != self.shape[-1:] or array.dtype.kind not in "biu":
            raise InvalidArgument(refusal)
        ends = [(int(w) * self._range()[0], int(w) * self._range()[1]) for w in array]
        low, high = sum(min(two) for two in ends), sum(max(two) for two in ends)
        width, signed = self._type_of_sum(low, high, dtype, bits)
        words = array.astype(np.int64).view(np.uint64).tolist()
        return self._made(self._core.dot(self._ct, words, width, signed), self.shape[:-1])

    __matmul__ = dot

    def sort(self, axis: int | None = -1, *, descending: bool = False) -> EncryptedIntegers:
        """Sorted along an axis, as a new array; None sorts all elements into one axis.

        descending: whether the largest comes first.
        """
        if axis is None:
            return self.ravel().sort(descending=descending)
        if isinstance(axis, tuple):
            raise InvalidArgument(
                f"sort takes one axis, not {checks.shown(axis)}: axis=None sorts all elements into one axis"
            )
        x, shape, length = self._rows(axis)
        done = self._made(
            self._core.sort(x._ct, length, checks.flag(descending, "descending")), (*shape, length)
        )
        return done._taken(np.moveaxis(done._addresses(), -1, axis))

    def _extreme(
        self, axis: int | None, *, largest: bool
    ) -> tuple[EncryptedIntegers, EncryptedIntegers]:
        x, shape, length = self._rows(axis)
        both = self._core.extreme(x._ct, length, largest)
        return self._made(both[0], shape), self._made(both[1], shape)

    def max(self, axis: int | None = None) -> EncryptedIntegers:
        """The largest number along an axis."""
        return self._extreme(axis, largest=True)[0]

    def min(self, axis: int | None = None) -> EncryptedIntegers:
        """The smallest number along an axis."""
        return self._extreme(axis, largest=False)[0]

    def argmax(self, axis: int | None = None) -> EncryptedIntegers:
        """The first index of the largest number along an axis."""
        return self._extreme(axis, largest=True)[1]

    def argmin(self, axis: int | None = None) -> EncryptedIntegers:
        """The first index of the smallest number along an axis."""
        return self._extreme(axis, largest=False)[1]


def type_of(kind: Any) -> tuple[int, bool]:
    """(bits, whether it has a sign) of the name of a type of integers."""
    try:
        text = kind if isinstance(kind, str) else np.dtype(kind).name
    except TypeError:
        text = ""
    signed = text.startswith("int")
    digits = text.removeprefix("u").removeprefix("int")
    if text == "bool":
        return 1, False
    if not (text.startswith(("int", "uint")) and digits.isdigit() and 1 <= int(digits) <= 64):
        raise Unsupported(f'{checks.shown(kind)} is no type of integers: use "uint8", "int16", ...')
    return int(digits), signed
