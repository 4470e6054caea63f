"""Arguments of clients, evaluators and functions, which are checked before any work."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali.ckks import Ciphertext
from jali.errors import InvalidArgument, Unsupported

__all__ = [
    "checked_count",
    "checked_interval",
    "checked_iterations",
    "checked_level",
    "checked_packings",
    "checked_positive",
    "checked_target",
    "checked_within",
    "refuse_complex",
    "refuse_complex_matrix",
]


def checked_target(target_level: int | None) -> int:
    """The level as an int of at least 0; -1 for None, which stands for all levels. Raises
    InvalidArgument."""
    if target_level is None:
        return -1
    if isinstance(target_level, bool) or not isinstance(target_level, (int, np.integer)):
        raise InvalidArgument(
            f"target_level must be a whole number, not {checks.shown(target_level)}"
        )
    if target_level < 0:
        raise InvalidArgument(
            f"target_level must be at least 0, not {checks.shown(target_level)}: leave it out for all levels"
        )
    return int(target_level)


def refuse_complex(value: Ciphertext) -> None:
    """Raises InvalidArgument for complex numbers, which products with matrices do not take."""
    if value.is_complex:
        raise InvalidArgument(
            "a product with a matrix takes real vectors: encrypt the real and the imaginary parts as two vectors, or write "
            "(matrix * x).sum(-1) for matrix @ x, which takes complex ones"
        )


def refuse_complex_matrix(matrix: npt.NDArray[Any]) -> None:
    """Raises Unsupported for a complex matrix, which plans of products do not take."""
    if matrix.dtype.kind == "c":
        raise Unsupported(
            "a product with a matrix takes a real one: write matrix.real @ x + 1j * (matrix.imag @ x) for matrix @ x"
        )


def checked_iterations(iterations: int) -> int:
    """The number of iterations as an int from 1 to 4. Raises InvalidArgument for anything else."""
    if isinstance(iterations, bool) or not isinstance(iterations, (int, np.integer)):
        raise InvalidArgument(f"iterations must be a whole number, not {checks.shown(iterations)}")
    if not 1 <= iterations <= 4:
        raise InvalidArgument(f"iterations must be 1 to 4, not {checks.shown(iterations)}")
    return int(iterations)


# --- of keys and encryption


def checked_packings(bootstrap: bool | int | Iterable[int]) -> list[int]:
    """The numbers of slots to make bootstrapping keys for; 0 stands for all slots."""
    if isinstance(bootstrap, (bool, np.bool_)):
        return [0] if bootstrap else []
    if isinstance(bootstrap, (int, np.integer)):
        bootstrap = [int(bootstrap)]
    message = "bootstrap takes True, or numbers of slots of at least 2"
    try:
        return [checks.whole(n, 2, message) for n in bootstrap]
    except TypeError:
        raise InvalidArgument(f"{message}, not {checks.shown(bootstrap)}") from None


def checked_level(level: int | None) -> int:
    """The level as an int of at least 0; -1 for None, which stands for the top level. Raises
    InvalidArgument."""
    if level is None:
        return -1
    return checks.whole(level, 0, "level must be a whole number from 0 to params.depth, or None")


# --- of functions


def _real(value: Any) -> float:
    """The value as a real number, NaN if it is none."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return math.nan


def _pair(value: Any, message: str) -> tuple[float, float]:
    pair = value if isinstance(value, (tuple, list)) else ()
    numbers = [_real(v) for v in pair]
    if len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        raise InvalidArgument(f"{message}, not {checks.shown(value)}")
    return numbers[0], numbers[1]


def checked_interval(value: Any) -> tuple[float, float]:
    """Two numbers, the lower first."""
    low, high = _pair(value, "an interval is two finite numbers (low, high)")
    if not low < high:
        raise InvalidArgument(
            f"an interval (low, high) needs low < high, not {checks.shown(value)}"
        )
    return low, high


def checked_within(value: Any) -> tuple[float, float] | None:
    """None, or two numbers, the lower first or both equal."""
    if value is None:
        return None
    low, high = _pair(value, "within is the least and the largest number that can occur, or None")
    if not low <= high:
        raise InvalidArgument(f"within needs the lower number first, not {checks.shown(value)}")
    return low, high


def checked_positive(value: Any, what: str) -> float:
    """The value as a positive number. Raises InvalidArgument."""
    number = _real(value)
    if not 0 < number < math.inf:
        raise InvalidArgument(f"{what} must be a positive number, not {checks.shown(value)}")
    return number


def checked_count(value: Any, what: str) -> int:
    """The value as a whole number, of steps or levels. Raises InvalidArgument."""
    number = checks.whole(value, 0, f"{what} must be a whole number")
    return min(number, 1 << 20)
