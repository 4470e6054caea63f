"""Numbers between NumPy and digits: what may be encrypted, and what decryption shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali.tfhe import Ciphertext, Params
from jali.errors import InvalidArgument

__all__ = ["digits_of", "integers", "messages", "shown", "whole_numbers", "width_of"]

Words = npt.NDArray[np.uint64]


def whole_numbers(values: npt.ArrayLike, what: str = "values") -> npt.NDArray[Any]:
    """``values`` as an array of integers or booleans of NumPy, of any shape.

    Raises InvalidArgument for numbers that are not whole, and for anything that is no number.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"{what} are not an array of numbers: {error}") from None
    if array.size == 0:
        raise InvalidArgument(f"{what} have the shape {array.shape}: give at least one number")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.trunc(array)).all():
        raise InvalidArgument(
            f"{what} have dtype {array.dtype}: TFHE computes on whole numbers, so convert them with .astype(int)"
        )
    if array.dtype.kind not in "biu":
        raise InvalidArgument(
            f"{what} have dtype {array.dtype}: give whole numbers or booleans; jali.ckks computes on real ones"
        )
    return array


def _within(array: npt.NDArray[Any], low: int, high: int, instead: str) -> None:
    least, most = int(array.min()), int(array.max())
    if least < low or most > high:
        wrong = least if least < low else most
        raise InvalidArgument(f"{wrong} is not from {low} to {high}: {instead}")


def messages(values: npt.ArrayLike, params: Params, largest: int | None = None) -> Words:
    """Messages as words, in C order. Raises InvalidArgument for numbers that do not fit."""
    array = whole_numbers(values)
    high = (1 << params.message_bits) - 1 if largest is None else largest
    _within(
        array,
        0,
        high,
        "messages of these parameters are not negative and have "
        f"{params.message_bits} bits; encrypt_uint and encrypt_int take wider numbers",
    )
    return np.ascontiguousarray(array, dtype=np.uint64).reshape(-1)


def integers(values: npt.ArrayLike, bits: Any, *, signed: bool, what: str = "values") -> Words:
    """Integers modulo 2^bits as words. Raises InvalidArgument for numbers that do not fit."""
    width = checks.whole(bits, 1, "bits must be a whole number from 1 to 64")
    if width > 64:
        raise InvalidArgument(f"bits must be a whole number from 1 to 64, not {width}")
    array = whole_numbers(values, f"{what} numbers" if what.endswith("'s") else what)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    negative = not signed and int(array.min()) < 0
    _within(
        array,
        low,
        high,
        "integers without a sign are not negative: use encrypt_int"
        if negative
        else "use more bits",
    )
    kind = array.dtype.kind
    words = array.astype(np.int64).view(np.uint64) if kind == "i" else array.astype(np.uint64)
    return words & np.uint64((1 << width) - 1)


def width_of(bits: int, signed: bool) -> str:
    """The name of NumPy's type in which integers are shown."""
    if bits == 1 and not signed:
        return "bool"
    return f"{'int' if signed else 'uint'}{next(w for w in (8, 16, 32, 64) if w >= bits)}"


def digits_of(words: npt.NDArray[np.uint64], bits: int, message_bits: int) -> Words:
    """The digits of every number, of message_bits bits each, the lowest first; in C order."""
    count = -(-bits // message_bits)
    shifts = np.arange(count, dtype=np.uint64) * np.uint64(message_bits)
    digits = (words[..., None] >> shifts) & np.uint64((1 << message_bits) - 1)
    return np.ascontiguousarray(digits).reshape(-1)


def shown(digits: Words, array: Ciphertext) -> npt.NDArray[Any]:
    """What decryption shows: booleans, messages with their carries, or integers of the array's width."""
    params = array.params
    if array.bits == 0:
        if params.message_bits == 1 and params.carry_bits == 0:
            return digits.astype(np.bool_).reshape(array.shape)
        return digits.astype(np.int64).reshape(array.shape)
    parts = digits.reshape(*array.shape, array.digits)
    shifts = np.arange(array.digits, dtype=np.uint64) * np.uint64(params.message_bits)
    words: npt.NDArray[Any] = np.bitwise_and(
        (parts << shifts).sum(axis=-1, dtype=np.uint64), np.uint64((1 << array.bits) - 1)
    )
    if array.is_signed:
        sign = np.uint64(1 << (array.bits - 1))
        words = (words ^ sign) - sign  # modulo 2^64
        words = words.view(np.int64)
    found: npt.NDArray[Any] = words.astype(width_of(array.bits, array.is_signed))
    return found
