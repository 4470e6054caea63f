"""The array protocol: what the encrypted arrays of every scheme have in common, including what none
of them can do."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.numpy_calls import NumPyCalls
from jali._core.refusals import Answering
from jali.errors import InvalidArgument, NotPickled, Unsupported, WrongCall

__all__ = [
    "Encrypted",
    "exponent",
    "number",
    "operand",
    "plain",
    "power",
    "refuse_matrix",
    "refuse_non_numbers",
]


def number(value: Any) -> complex | None:
    """The value as a finite complex number, or None if it is no number. Raises InvalidArgument for
    NaN and infinity."""
    if isinstance(value, (float, int, complex, np.number, np.bool_, numbers.Rational)):
        try:
            found = complex(value)
        except OverflowError:
            raise InvalidArgument(
                "the number is too large for a double: use a smaller one"
            ) from None
    elif isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biufc":
        found = complex(value.item())
    else:
        return None
    if not (math.isfinite(found.real) and math.isfinite(found.imag)):
        raise InvalidArgument("the number is a NaN or an infinity: replace it first")
    return found


def refuse_non_numbers(value: Any) -> None:
    """Raises WrongCall for what is often passed in the place of an operand and cannot be one."""
    decimal = sys.modules.get("decimal")  # imported by who has such a number
    if decimal is not None and isinstance(value, decimal.Decimal):
        raise WrongCall(
            "encrypted numbers are approximate, so that a Decimal cannot be an operand: write float(value)"
        )
    if value is None or isinstance(value, (str, bytes, dict, set)):
        raise WrongCall(
            "an operand must be an encrypted array, a number or an array of numbers, "
            f"not {checks.shown(value)}"
        )


def plain(value: Any) -> Any:
    """A numpy.matrix as an array, for products of matrices; anything else as it is."""
    return np.asarray(value) if isinstance(value, np.matrix) else value


def refuse_matrix(value: Any) -> None:
    """Raises WrongCall for a numpy.matrix, whose * is the product of matrices."""
    if isinstance(value, np.matrix):
        raise WrongCall(
            "a numpy.matrix M is no operand of + - * /, because its own * is the product of matrices: write "
            "np.asarray(M) * x for element by element, or M @ x for the product"
        )


def operand(value: Any, length: int) -> npt.NDArray[Any] | None:
    """The operand as an array, or None if it is no array, list, tuple, range or column of pandas. A
    last axis of 1 is repeated to `length`."""
    if hasattr(value, "to_numpy"):  # a column or a table of pandas
        value = value.to_numpy()
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        refuse_non_numbers(value)
        return None
    refuse_matrix(value)
    array = checks.as_array(
        value,
        "the operand is not an array of numbers: give one, or lists whose rows have equal lengths",
    )
    checks.unmasked(value, "the operand's numbers")
    if array.ndim in (1, 2) and array.shape[-1] == 1 and length != 1:
        array = np.broadcast_to(array, (*array.shape[:-1], length))  # as NumPy does
    return array


def exponent(value: Any) -> int:
    """The value as a whole number of at least 1.

    Raises InvalidArgument for anything else, and for numbers so large that no parameters have the
    depth.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidArgument(
            f"an exponent must be a whole number from 1, not {checks.shown(value)}: for x ** 0.5, x ** -1 and x ** -0.5 write f(x), with f = "
            "ckks.functions.sqrt((low, high)), inverse((low, high)) or inverse_sqrt((low, high))"
        )
    if int(value).bit_length() > 200:  # no parameters have more levels
        raise InvalidArgument(
            f"no parameters have the depth for an exponent of {int(value).bit_length()} bits: use a smaller one"
        )
    return int(value)


def power(known: dict[int, Any], n: int) -> Any:
    """The n-th power at depth ceil(log2 n). It uses the smaller powers in `known`, and adds those
    that it makes."""
    if n not in known:
        half = power(known, n - n // 2)
        known[n] = half * half if n % 2 == 0 else half * power(known, n // 2)
    return known[n]


class Encrypted(NumPyCalls, metaclass=Answering):
    """An encrypted vector (n,), or a batch of vectors (batch, n). Only its shape is public."""

    __slots__ = ()
    __pandas_priority__ = (
        10_000  # so that a column or a table of pandas calls the scheme's operator
    )
    #: What < <= > >= are refused with.
    _ordering: ClassVar[str] = "encrypted values cannot be compared: decrypt them first"

    @property
    def shape(self) -> tuple[int, ...]:
        """(length,), or (batch, length)."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """How many axes the shape has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many numbers decryption shows."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> NoReturn:
        raise Unsupported("an encrypted value has no truth value: decrypt it first")

    def __eq__(self, other: object) -> NoReturn:
        raise Unsupported("encrypted values cannot be compared: decrypt them first")

    def __lt__(self, other: object) -> NoReturn:
        raise Unsupported(self._ordering)

    __le__ = __gt__ = __ge__ = __lt__
    __hash__ = object.__hash__

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported("an encrypted value is not an array: decrypt it first")

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported(
            "the slots of an encrypted value cannot be taken one by one: rotate it, or decrypt it first"
        )

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def copy(self) -> Self:
        """Itself, because values never change."""
        return self

    def __format__(self, specification: str) -> str:
        if specification:
            raise Unsupported(
                f'an encrypted value has no digits to show as "{specification}": decrypt it first'
            )
        return str(self)

    def __reduce__(self) -> NoReturn:
        raise NotPickled("send value.ciphertext.to_bytes() instead of pickling an encrypted array")
