"""What is declared of numbers before they are encrypted: their root mean square and their peak."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali.errors import InvalidArgument

__all__ = ["check_magnitude", "declared"]

#: The largest modulus of a number is taken to be so many times the magnitude, if only that is declared.
PEAK = 8.0


def declared(magnitude: Any, peak: Any) -> tuple[float, float]:
    """The magnitude, and the peak or 0 if it is left out. A magnitude that is left out is the peak, or 1 without one."""
    largest = checks.peak(peak)
    return checks.magnitude(magnitude if magnitude is not None else largest or 1.0), largest


def check_magnitude(numbers: npt.NDArray[Any], magnitude: float, peak: float) -> None:
    """Raises InvalidArgument if the root mean square of the numbers is above the declared one.

    The magnitude is that of a kind of numbers, of which these are a sample. The mean square of n normal numbers has the
    standard deviation sqrt(2 / n) times its expectation, so that their root mean square exceeds the magnitude by the
    factor 1 + 4 / sqrt(n), which is 5.7 standard deviations, in less than one of a million arrays. Numbers of a smaller peak,
    uniform ones for example, vary less.

    numbers: contiguous, float64 or complex128. It makes no copy of them, and its time does not depend on them.
    peak: 0 stands for the one that the magnitude implies. Numbers that must be above it are left to the engine's check.
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
