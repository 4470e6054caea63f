"""Integers in the clear: operands, and what is encrypted."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.array import refuse_matrix, refuse_non_numbers
from jali._jali.discrete import Params
from jali.errors import InvalidArgument

__all__ = [
    "LEAST",
    "MOST",
    "TOO_LARGE",
    "as_integers",
    "checked_range",
    "in_range",
    "number",
    "numbers",
    "range_of",
]

#: The numbers that a signed integer of 64 bits is.
LEAST, MOST = -(2**63), 2**63 - 1

TOO_LARGE = "an operand is not from -2**63 to 2**63 - 1: use a smaller number"

_QUANTISE = (
    "numbers here are exact integers: scale and round them first, "
    "np.rint(values * 2**8).astype(np.int64), and divide the decrypted results by the same scale"
)


def as_integers(values: Any, what: str) -> npt.NDArray[np.int64]:
    """The values as a C-contiguous array of int64, of any shape with at least one number.

    Raises InvalidArgument for numbers that are no integers or have more than 63 bits and a sign.
    """
    array = checks.as_array(
        values,
        f"{what} are not an array of integers: give one, or lists whose rows have equal lengths",
    )
    checks.unmasked(values, what)
    if array.size == 0:
        raise InvalidArgument(f"{what} have the shape {array.shape}: give at least one number")
    kind = array.dtype.kind
    if kind in "fc":
        raise InvalidArgument(f"{what} have dtype {array.dtype}, and {_QUANTISE}")
    if kind == "O" and all(isinstance(one, (int, np.integer)) for one in array.flat):
        if not all(LEAST <= one <= MOST for one in array.flat):
            raise InvalidArgument(f"{what} hold a number of more than 64 bits: use smaller ones")
        kind = "i"
    if kind not in "biu":
        raise InvalidArgument(
            f"{what} have dtype {checks.dtype_text(array)}: give booleans or integers"
        )
    if kind == "u" and array.dtype.itemsize == 8 and int(array.max()) > MOST:
        raise InvalidArgument(f"{what} hold a number above 2**63 - 1: use smaller ones")
    return np.asarray(array, np.int64, order="C")


def number(value: Any) -> int | None:
    """The value as a whole number of Python, or None if it is no number. Raises InvalidArgument for
    numbers that are no integers."""
    if isinstance(value, (int, np.integer, np.bool_)):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return int(as_integers(value, "the operand"))
    if isinstance(value, (float, complex, np.number, Fraction, Decimal)):
        raise InvalidArgument(
            f"an operand is {type(value).__name__}, and {_QUANTISE}. A whole number is int(number)"
        )
    return None


def numbers(value: Any) -> npt.NDArray[np.int64] | None:
    """The operand as an array of integers; None if it is nothing like an array."""
    if hasattr(value, "to_numpy"):  # a column or a table of pandas
        value = value.to_numpy()
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        refuse_non_numbers(value)
        return None
    refuse_matrix(value)
    return as_integers(value, "the operand's numbers")


def checked_range(range: Any, what: str = "range") -> tuple[int, int]:
    """The lowest and the highest number. Raises InvalidArgument."""
    message = f"{what} is the lowest and the highest number that there can be, (low, high)"
    pair = tuple(range) if isinstance(range, (tuple, list)) else ()
    whole = [
        int(one)
        for one in pair
        if isinstance(one, (int, np.integer)) and not isinstance(one, (bool, np.bool_))
    ]
    if len(whole) != 2 or len(pair) != 2:
        raise InvalidArgument(f"{message}, not {checks.shown(range)}")
    low, high = whole
    if not LEAST <= low <= high <= MOST:
        raise InvalidArgument(f"{message}, the lower one first, of 64 bits, not {(low, high)}")
    return low, high


def range_of(dtype: np.dtype[Any], params: Params) -> tuple[int, int]:
    """The range of a type of NumPy or, if the modulus does not tell so many numbers apart, of all
    that it does."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        if high - low < params.modulus and high <= MOST:
            return low, high
    return params.low, params.high


def in_range(
    residues: npt.NDArray[np.int64], low: int, high: int, modulus: int
) -> tuple[npt.NDArray[np.int64], bool]:
    """The numbers from low to low + modulus - 1 with these residues, which are those nearest to 0,
    and whether all are at most high. They take the place of the residues, so that no second copy
    stays in memory. No branch depends on a number."""
    above = residues.view(np.uint64)
    if modulus & (modulus - 1) == 0:
        above -= np.uint64(low % 2**64)
        above &= np.uint64(modulus - 1)
    else:  # below 2^61, so that nothing here leaves 64 bits
        residues -= np.int64((low + modulus // 2) % modulus - modulus // 2)
        residues += np.int64(modulus) * (residues < 0)
    within = bool((above <= np.uint64(high - low)).all())
    above += np.uint64(low % 2**64)
    return residues, within
