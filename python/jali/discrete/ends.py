"""Between which numbers the results of several products lie, known before the first is computed."""

from __future__ import annotations

from dataclasses import dataclass

from jali.discrete.values import LEAST, MOST

__all__ = ["Ends"]


@dataclass(frozen=True)
class Ends:
    """The lowest and the highest number that an array can hold. In slots T is below 2^61, so that
    numbers that are cut to 64 bits are refused as larger ones would be."""

    low: int
    high: int

    def __mul__(self, other: Ends) -> Ends:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        if other is self:  # a square is not negative
            squares = self.low**2, self.high**2
            corners = [*squares, 0] if self.low <= 0 <= self.high else [*squares]
        return Ends(max(LEAST, min(corners)), min(MOST, max(corners)))

    def times(self, count: int) -> Ends:
        """Of sums of so many of these numbers."""
        return Ends(max(LEAST, count * self.low), min(MOST, count * self.high))
