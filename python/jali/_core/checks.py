"""Checks on arguments that come from the user, before any work is done with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jali.errors import InvalidArgument


def shown(value: Any) -> str:
    """A value in an error's sentence: its repr, cut short."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no number of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 100 else f"{text[:97]}..."


def instance(value: object, kind: type, what: str, instead: str = "") -> None:
    """Raises InvalidArgument unless value is of a kind of jali.ckks."""
    if not isinstance(value, kind):
        raise InvalidArgument(
            f"{what} must be a ckks.{kind.__name__}, not {type(value).__name__}{instead}"
        )


def whole(value: Any, least: int, message: str) -> int:
    """A whole number, NumPy's too, of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidArgument(f"{message}, not {shown(value)}")
    if not least <= value < 1 << 62:
        raise InvalidArgument(f"{message}, not {shown(value)}")
    return int(value)


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgument(f"{what} must be True or False, not {shown(value)}")
    return bool(value)


def magnitude(value: Any) -> float:
    """A size of numbers, above 0 and finite."""
    number = math.nan
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not 0 < number < math.inf:
        raise InvalidArgument(
            f"magnitude must be a positive number, the size of the values at large, not {shown(value)}"
        )
    return number


def peak(value: Any) -> float:
    """The largest modulus that numbers can have, or 0 for None."""
    if value is None:
        return 0.0
    try:
        return magnitude(value)
    except InvalidArgument:
        raise InvalidArgument(
            f"peak must be a positive number, the largest that any value can be, or None, not {value!r}"
        ) from None
