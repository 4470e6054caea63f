"""Numbers between NumPy and digits: what may be encrypted, and what decryption shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.console import counted_text
from jali._jali.tfhe import Ciphertext, CompactCiphertext, Params
from jali.errors import InvalidArgument, OutOfMemory

__all__ = [
    "checked_largest",
    "common_type",
    "digits",
    "extended",
    "integers",
    "messages",
    "need_carries",
    "shown",
    "whole_numbers",
    "width_of",
]

Words = npt.NDArray[np.uint64]


def _whole(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    """``values`` as an array of integers or booleans, of Python's integers if those of NumPy have
    no room."""
    if isinstance(values, (Ciphertext, CompactCiphertext)):
        raise InvalidArgument(
            f"{what} are encrypted: bind the ciphertext first, evaluator.bind(ciphertext), and compute on the array that it gives"
        )
    array = checks.as_array(
        values,
        f"{what} are not an array of numbers: give one, or lists whose rows have equal lengths",
    )
    checks.unmasked(values, what)
    if array.size == 0:
        raise InvalidArgument(f"{what} have the shape {array.shape}: give at least one number")
    _have_room(array.size, what)
    kind = array.dtype.kind
    if kind == "O" or (kind == "f" and not isinstance(values, np.ndarray)):
        exact = np.asarray(values, dtype=object)
        if all(isinstance(v, (int, np.integer, np.bool_)) for v in exact.flat):
            return np.array([int(v) for v in exact.flat], dtype=object).reshape(exact.shape)
    if kind == "f" and np.isfinite(array).all() and (array == np.trunc(array)).all():
        raise InvalidArgument(
            f"{what} have dtype {array.dtype}: TFHE computes on whole numbers, so convert them with .astype(int)"
        )
    if kind not in "biu":
        raise InvalidArgument(
            f"{what} have dtype {checks.dtype_text(array)}: give whole numbers or booleans; jali.ckks computes on real ones"
        )
    return array


def _have_room(count: int, what: str) -> None:
    """Raises OutOfMemory if so many words have no room. It looks at no number, which may take
    minutes."""
    try:
        np.empty(count, dtype=np.uint64)
    except (MemoryError, ValueError):  # ValueError if their bytes are more than addresses
        raise OutOfMemory(
            f"{what} are {count} numbers, for which there is no memory: give fewer at a time"
        ) from None


def _within(array: npt.NDArray[Any], low: int, high: int, instead: str) -> None:
    """Raises InvalidArgument unless all are from low to high. It does not show the number, which
    may be a secret."""
    if int(array.min()) < low or int(array.max()) > high:
        raise InvalidArgument(f"a number is not from {low} to {high}: {instead}")


def whole_numbers(
    values: npt.ArrayLike,
    what: str = "values",
    *,
    low: int = -(1 << 63),
    high: int = (1 << 63) - 1,
    instead: str = "use smaller numbers",
) -> npt.NDArray[Any]:
    """``values`` as an array of integers or booleans of NumPy, of any shape, from low to high.

    Raises InvalidArgument for numbers that are not whole or not in the range, and for anything that
    is no number.
    """
    array = _whole(values, what)
    _within(array, low, high, instead)
    return array.astype(np.int64) if array.dtype.kind == "O" else array


def messages(values: npt.ArrayLike, params: Params, largest: int | None = None) -> Words:
    """Messages as words, in C order. Raises InvalidArgument for numbers that do not fit."""
    array = _whole(values, "values")
    high = (1 << params.message_bits) - 1 if largest is None else largest
    _within(
        array,
        0,
        high,
        "messages of these parameters are not negative and have "
        f"{counted_text(params.message_bits, 'bit')}; encrypt_uint and encrypt_int take wider numbers",
    )
    return np.ascontiguousarray(array, dtype=np.uint64).reshape(-1)


def integers(
    values: npt.ArrayLike,
    bits: Any,
    *,
    signed: bool,
    what: str = "values",
    negative: str = "integers without a sign are not negative: use encrypt_int (clear_int)",
    wide: str = "use more bits",
) -> Words:
    """Integers modulo 2^bits as words. Raises InvalidArgument for numbers that do not fit.

    negative, wide: what the error says of negative numbers without a sign, and of numbers of more
        bits.
    """
    # Who takes the arguments for each other gives a number to encrypt as bits: it is not shown.
    if isinstance(bits, (bool, np.bool_)) or not isinstance(bits, (int, np.integer)):
        raise InvalidArgument("bits must be a whole number from 1 to 64")
    if not 1 <= bits <= 64:
        raise InvalidArgument("bits must be a whole number from 1 to 64")
    width = int(bits)
    array = _whole(values, f"{what} numbers" if what.endswith("'s") else what)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    instead = wide if width < 64 else "integers have at most 64 bits"
    _within(array, low, high, negative if not signed and int(array.min()) < 0 else instead)
    words = array.astype(np.int64).view(np.uint64) if signed else array.astype(np.uint64)
    return words & np.uint64((1 << width) - 1)


def checked_largest(largest: int | None) -> int | None:
    """The bound on messages that a caller states."""
    if largest is None:
        return None
    return checks.whole(largest, 0, "largest must be a whole number of at least 0")


def need_carries(params: Params) -> None:
    """Raises InvalidArgument for parameters that have no room for the digits of integers."""
    message, carry = params.message_bits, params.carry_bits
    if carry < message or message + carry > 8:
        raise InvalidArgument(
            "integers need parameters with at least as many carry bits as message bits and at most 8 in all, and these have "
            f'{message} and {carry}: use Params.preset("message_1_carry_1") or a wider one'
        )


def digits(values: npt.ArrayLike, bits: int, params: Params, *, signed: bool) -> Words:
    """Integers to encrypt, as ``integers`` gives them, in their shape. Raises InvalidArgument also
    for parameters without carries."""
    need_carries(params)
    return integers(values, bits, signed=signed)


def extended(words: Words, bits: int) -> Words:
    """Words modulo 2^bits with their sign in every higher bit: of 8 bits, 255 is 2^64 - 1."""
    up = np.uint64(64 - bits)
    return ((words << up).view(np.int64) >> up.view(np.int64)).view(np.uint64)


def common_type(x: npt.ArrayLike, y: npt.ArrayLike) -> np.dtype[Any]:
    """The type of integers in which clear numbers are computed: of two arrays of NumPy the common
    one, else the narrowest that holds all numbers.
    """
    both = [whole_numbers(one) for one in (x, y)]
    if all(isinstance(one, (np.ndarray, np.integer)) for one in (x, y)):
        kind = np.result_type(*both)
        if kind.kind in "iu":
            return kind
    low, high = min(int(one.min()) for one in both), max(int(one.max()) for one in both)
    signed = low < 0
    return np.dtype(width_of(max(8, max(high, -low - 1).bit_length() + signed), signed))


def width_of(bits: int, signed: bool) -> str:
    """The name of NumPy's type in which integers are shown."""
    if bits == 1 and not signed:
        return "bool"
    return f"{'int' if signed else 'uint'}{next(w for w in (8, 16, 32, 64) if w >= bits)}"


def shown(words: Words, array: Ciphertext | CompactCiphertext) -> npt.NDArray[Any]:
    """What decryption shows: booleans, messages with their carries, or integers of the array's
    width.

    It makes no copy but the array that it returns, because NumPy does not wipe what it frees.
    """
    params = array.params
    if array.bits:
        kind: Any = width_of(array.bits, array.is_signed)
    else:
        kind = np.bool_ if params.message_bits == 1 and params.carry_bits == 0 else np.int64
    found: npt.NDArray[Any] = words.reshape(array.shape).astype(kind)
    return found
