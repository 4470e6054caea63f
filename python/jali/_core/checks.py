"""Checks on arguments that come from the user, before any work is done with them."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.console import one_text
from jali.errors import InvalidArgument

_PLAIN = (type(None), bool, int, float, complex, str, np.generic, type)
_CONTAINERS = (list, tuple, dict, set, frozenset, bytes, bytearray, memoryview)
_LONGEST = 8  # of a tuple that is shown


def shown(value: Any) -> str:
    """A wrong argument for an error message: the repr of one number, one text, a short tuple of
    such (a shape, an interval) or an object of this package, cut to 100 characters.

    Of arrays, lists, tables and objects of other packages it is the type, and how many numbers they
    hold: who takes one argument for another may have given what was to be encrypted, and messages
        end up in logs.
    """
    if isinstance(value, np.ndarray):
        return f"an array of the shape {value.shape}"
    kind = type(value)
    short = kind is tuple and len(value) <= _LONGEST and all(isinstance(x, _PLAIN) for x in value)
    if not short and isinstance(value, _CONTAINERS) and len(value):
        return f"{one_text(kind.__name__)} of length {len(value)}"
    known = short or isinstance(value, (*_PLAIN, *_CONTAINERS)) or callable(value)
    if not known and kind.__module__.partition(".")[0] != "jali":
        return one_text(kind.__name__)
    try:
        text = repr(value)
    except ValueError:  # Python writes out no number of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 100 else f"{text[:97]}..."


def as_array(values: Any, refusal: str) -> np.ndarray[Any, Any]:
    """numpy.asarray(values). Raises InvalidArgument with this sentence if that fails.

    The error of NumPy, or of the object, may name numbers: it is neither in the sentence nor kept
    beside it.
    """
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        pass
    raise InvalidArgument(refusal)


def dtype_text(array: np.ndarray[Any, Any]) -> str:
    """The name of a dtype for an error message. That of text has no width, which is how many digits
    the longest number has."""
    return {"U": "str", "S": "bytes"}.get(array.dtype.kind, str(array.dtype))


def instance(value: object, kind: type, what: str, instead: str = "") -> None:
    """Raises InvalidArgument unless value is an instance of `kind`, a class of jali.ckks. what: the
    argument's name."""
    if not isinstance(value, kind):
        raise InvalidArgument(
            f"{what} must be a ckks.{kind.__name__}, not {type(value).__name__}{instead}"
        )


def dense(value: Any) -> Any:
    """A sparse matrix of SciPy as an array of NumPy, which knows it as an object only; everything
    else as it is."""
    return value.toarray() if hasattr(value, "toarray") and hasattr(value, "nnz") else value


def unmasked(values: Any, what: str) -> None:
    """Raises InvalidArgument for an array of numpy.ma that hides numbers: nobody could say what
    stands in their place."""
    if "numpy.ma" in sys.modules and np.ma.is_masked(values):
        raise InvalidArgument(f"{what} have masked entries: fill them first, with filled(number)")


def whole(value: Any, least: int, message: str) -> int:
    """The value as an int, from a whole number of Python or NumPy of at least `least`.

    Raises InvalidArgument, with `message` and the value, for anything else.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidArgument(f"{message}, not {shown(value)}")
    if not least <= value < 1 << 62:
        raise InvalidArgument(f"{message}, not {shown(value)}")
    return int(value)


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size(value: Any, what: str) -> int:
    """A number of bytes from a whole number, or from text such as "1.5 GB" or "800 MiB". what: the
    argument's name.

    Raises InvalidArgument for anything else.
    """
    from fractions import Fraction  # imported late, for the time that `import jali` takes

    message = f'{what} must be a whole number of bytes, or text such as "1.5 GB"'
    if not isinstance(value, str):
        return whole(value, 0, message)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?i?B)\s*", value, re.ASCII | re.IGNORECASE)
    if found is None or found[2].upper() not in _UNITS or len(value) > 40:
        raise InvalidArgument(f"{message}, not {shown(value)}")
    return whole(int(Fraction(found[1]) * _UNITS[found[2].upper()]), 0, message)


def flag(value: Any, what: str) -> bool:
    """The value as a bool. Raises InvalidArgument unless it is True or False. what: the argument's
    name."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgument(f"{what} must be True or False, not {shown(value)}")
    return bool(value)


def slots(value: Any) -> int:
    """A number of slots as an int of at least 1; 0 for None, which stands for all slots. Raises
    InvalidArgument."""
    if value is None:
        return 0
    return whole(value, 1, "slots must be a power of two from 1 to params.slots, or None")


def magnitude(value: Any) -> float:
    """The value as a float, for the root mean square of numbers. Raises InvalidArgument unless it
    is finite and above 0."""
    number = math.nan
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not 0 < number < math.inf:
        raise InvalidArgument(
            "magnitude must be a positive number, the root mean square of this kind of values, "
            f"not {shown(value)}"
        )
    return number


def peak(value: Any) -> float:
    """The value as a float, for the largest modulus that numbers can have; 0 for None.

    Raises InvalidArgument unless it is finite and above 0.
    """
    if value is None:
        return 0.0
    try:
        return magnitude(value)
    except InvalidArgument:
        raise InvalidArgument(
            "peak must be a positive number, the largest modulus that a value can have, or None, "
            f"not {shown(value)}"
        ) from None


def examples(name: str, shape: tuple[int, ...], values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Examples (batch, *shape) for an input. One example may come without the axis of the batch.

    Raises InvalidArgument for other shapes, rows of different lengths, and numbers that are not
    finite.
    """
    values = dense(values)
    array = as_array(
        values,
        f"{name} takes an array of numbers, and its rows differ in length: give every example the shape {shape}",
    )
    unmasked(values, f"the numbers of {name}")
    if array.dtype.names is not None:
        raise InvalidArgument(
            f"{name} takes real numbers, not records: convert them by numpy.lib.recfunctions.structured_to_unstructured(records)"
        )
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"{name} takes real numbers, not an array of {dtype_text(array)}: convert it, for example by astype(float)"
        )
    array = array.astype(np.float64)
    if array.shape == shape:
        array = array[None]
    if array.shape[1:] != shape or not len(array):
        raise InvalidArgument(
            f"{name} takes examples of the shape {shape}, or a batch of them, not an array of {array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{name} holds NaN or infinity: replace these numbers")
    return array
