"""What is declared of numbers before they are encrypted: their root mean square and their peak."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali.errors import InvalidArgument

__all__ = ["check_magnitude", "declared"]

#: The largest modulus of a number is taken to be so many times the magnitude, if only that is
#: declared.
PEAK = 8.0
#: Squares of so many numbers are looked at together. They are wiped.
_TOGETHER = 4096


def declared(magnitude: Any, peak: Any) -> tuple[float, float]:
    """The magnitude, and the peak or 0 if it is left out. A magnitude that is left out is the peak,
    or 1 without one."""
    largest = checks.peak(peak)
    return checks.magnitude(magnitude if magnitude is not None else largest or 1.0), largest


def check_magnitude(
    numbers: npt.NDArray[Any], magnitude: float, peak: float, *, stacklevel: int
) -> None:
    """Raises InvalidArgument if the root mean square of the numbers is above the declared one, and
    warns of uneven numbers.

    The magnitude is that of a kind of numbers, of which these are a sample. The mean square of n
    normal numbers has the standard deviation sqrt(2 / n) times its expectation, so that their root
    mean square exceeds the magnitude by the factor 1 + 4 / sqrt(n), which is 5.7 standard
    deviations, in less than one of a million arrays. Numbers of a smaller peak, uniform ones for
    example, vary less.

    Claims of precision take powers of the numbers to be at most those of normal numbers of this
    magnitude (docs/noise.md). Fourth and eighth powers tell. By experiment, the roots of their
    means are above those of normal numbers by less than the factors 1 + 4 / sqrt(n) and 1 + 16 /
    sqrt(n) for 20,000 samples of every n (decision 0042).

    numbers: contiguous, float64 or complex128. It makes no copy of them that stays in memory, and
        its time does not depend on them.
    peak: 0 stands for the one that the magnitude implies. Numbers that must be above it are left to
        the engine's check.
    stacklevel: of the warning, as of ``warnings.warn``, for the caller of this function.
    """
    flat = numbers.reshape(-1)
    rms = math.sqrt(np.vdot(flat, flat).real / flat.size)
    if magnitude * (1 + 4 / math.sqrt(flat.size)) < rms <= (peak or PEAK * magnitude):
        # The error says that the numbers are too large, and nothing else of them.
        raise InvalidArgument(
            f"the root mean square of the numbers is above the declared magnitude of {magnitude:g}: pass magnitude=, the root "
            "mean square of this kind of numbers, and peak=, the largest of them. Precision is estimated from the magnitude, "
            "which is 1 if neither is given"
        )
    fourth, eighth, largest = _moments(flat, magnitude)
    root = 1 / math.sqrt(flat.size)
    uneven = fourth > 3 * (1 + 4 * root) ** 4 or eighth > 105 * (1 + 16 * root) ** 8
    if uneven and largest * magnitude <= (peak or PEAK * magnitude):
        warnings.warn(
            f"a few of these numbers are far larger than the others, for the declared magnitude of {magnitude:g}: precision_bits of "
            "their powers, and after bootstrapping, may be better than the truth. Pass a larger magnitude=, or peak= alone, which "
            "is then the magnitude, too",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def _moments(flat: npt.NDArray[Any], magnitude: float) -> tuple[float, float, float]:
    """The means of the fourth and the eighth powers of numbers over those of the magnitude, and the
    largest modulus over it."""
    fourth = eighth = largest = 0.0
    first, second = np.zeros((2, min(_TOGETHER, flat.size)))
    scale = 1 / magnitude if magnitude else 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # such numbers are refused later
        for start in range(0, flat.size, _TOGETHER):
            part = flat[start : start + _TOGETHER]
            squares, others = first[: part.size], second[: part.size]
            np.multiply(part.real, scale, out=squares)
            np.square(squares, out=squares)
            if np.iscomplexobj(part):
                np.multiply(part.imag, scale, out=others)
                np.square(others, out=others)
                np.add(squares, others, out=squares)
            largest = max(largest, float(squares.max()))
            fourth += float(squares @ squares)
            np.square(squares, out=squares)
            eighth += float(squares @ squares)
    first.fill(0)
    second.fill(0)
    return fourth / flat.size, eighth / flat.size, math.sqrt(largest)
