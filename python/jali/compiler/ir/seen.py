"""A summary of the values that an array of a large model has for all examples.

The values of a model that reads a line of text take 0.6 GB for each example. Arrays of such models
are computed for a few examples at a time, and only the summary of each is kept
(jali.compiler.ir.execute.seen_values).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jali.compiler.ir.arrays import Array

__all__ = ["Seen", "Values"]


@dataclass(frozen=True)
class Seen:
    """The least and the largest number of an array, the sums of its numbers and of their squares,
    and how many there are; NaN or infinity if one of them is."""

    least: float
    most: float
    total: float
    squares: float
    count: int

    @classmethod
    def of(cls, values: Array) -> Seen:
        """The summary of an array."""
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(np.square(values).sum())
            total = float(values.sum())
        return cls(float(values.min()), float(values.max()), total, square, values.size)

    def __add__(self, other: Seen) -> Seen:
        """The summary of two arrays together."""
        return Seen(
            float(np.minimum(self.least, other.least)),
            float(np.maximum(self.most, other.most)),
            self.total + other.total,
            self.squares + other.squares,
            self.count + other.count,
        )

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are."""
        return math.isfinite(self.least) and math.isfinite(self.most)

    @property
    def largest(self) -> float:
        """The largest modulus."""
        return max(abs(self.least), abs(self.most))

    def min(self) -> float:
        """The least number, as of an array."""
        return self.least

    def max(self) -> float:
        """The largest number, as of an array."""
        return self.most


Values = Mapping[str, Array | Seen]  #: The values of nodes or their summaries, by names of nodes.
