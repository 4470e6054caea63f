"""The noise that a bootstrapping adds, in parts that add up differently over copies of a number and
over iterations.

A sparse bootstrapping reduces the same m + I, a number and an integer, in all copies of a number.
So the errors of the reduction's approximations are in common to all copies. The error of the cosine
depends on I, which is random; its mean over I is the same in every bootstrapping. The error of the
sine grows as the cube of m, and is the same for the same m. Key switches and roundings add to each
copy by itself, but for a little that comes in before the copies are made.

The shares below were measured with copies that were decrypted one by one, for 14 to 22 bits of
precision (notebook 2026-11-28-noise-of-copies). E is the cosine's error at the most frequent
integers. Its mean had a variance of 0.06 to 0.09 E^2, and the common part in all 0.4 to 0.5 E^2.
What comes in earlier had at most a 64th of the variance for numbers near 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jali import ckks
from jali.compiler.ir.graph import Array

__all__ = ["BootstrapNoise", "frequent_error"]

_MEAN, _COMMON, _EARLIER = 0.09, 0.5, 1 / 64  # see the module


@dataclass(frozen=True)
class BootstrapNoise:
    """The parts of the noise of a bootstrapping, as standard deviations in the scale of the
    numbers.

    alone: of each copy by itself.
    common: of all copies alike, but random in every bootstrapping.
    mean: what is subtracted from every number in every bootstrapping.
    cubic: the root mean square of an error in proportion to the cubes of the numbers.
    """

    alone: float = 0.0
    common: float = 0.0
    mean: float = 0.0
    cubic: float = 0.0

    @classmethod
    def of(cls, deviation: float, small: float, frequent: float) -> BootstrapNoise:
        """The parts of a deviation.

        small: that of numbers near 0.
        frequent: see frequent_error.
        """
        near_zero = min(small, deviation) ** 2
        mean = min(_MEAN * frequent**2, near_zero / 4)
        common = min((_COMMON - _MEAN) * frequent**2 + _EARLIER * near_zero, near_zero / 4)
        parts = (near_zero - mean - common, common, mean, deviation**2 - near_zero)
        return cls(*(math.sqrt(part) for part in parts))

    @property
    def random(self) -> float:
        """What is random in every bootstrapping."""
        return math.hypot(self.alone, self.common)

    def systematic(self, values: Array) -> Array | float:
        """What every bootstrapping of the same numbers adds to them. Numbers (examples, *shape)."""
        if not self.cubic:
            return -self.mean
        with np.errstate(over="ignore"):  # numbers that noise has outgrown
            cubes = values * values * values  # values**3 takes ten times as long
            size = math.sqrt(float(np.mean(cubes * cubes)))
        return -self.mean - (self.cubic / size * cubes if 0 < size < math.inf else 0.0)


def frequent_error(params: ckks.Params) -> float:
    """The largest error of the modular reduction, in the scale of the numbers, at integers that are
    among the most frequent ones."""
    low, high = -64.0, 0.0  # log2: the error is above 2^low and at most 2^high
    while high - low > 0.05:
        middle = (low + high) / 2
        known = params.log2_bootstrap_beyond(2.0**middle, 1) < 0
        low, high = (low, middle) if known else (middle, high)
    return float(2.0**high)
