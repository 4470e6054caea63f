"""An input or output of a program of exact integers, as its client knows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.refusals import Answering
from jali.errors import InvalidArgument

__all__ = ["Integers", "Port", "whole_numbers"]

Integers = npt.NDArray[np.int64]
_EXACT = 2.0**53  # every whole number below it is a float


@dataclass(frozen=True, eq=False)
class Port(metaclass=Answering):
    """An input or output.

    shape: of one example.
    low, high: for each number of an example, flattened, the lowest and the highest that it can be.
    scale: of an output, what its numbers stand for is numbers / scale. 1 for inputs.
    columns: the names of the numbers along the last axis, as the model's table had them; empty if
        they have none.
    """

    name: str
    shape: tuple[int, ...]
    low: Integers
    high: Integers
    scale: int = 1
    columns: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers an example has."""
        return math.prod(self.shape)

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest of all numbers."""
        return int(self.low.min()), int(self.high.max())

    @property
    def sent(self) -> tuple[int, int]:
        """The range of an input's ciphertext. Slots that hold no number hold zeros."""
        low, high = self.range
        return min(0, low), max(0, high)

    def examples(self, values: npt.ArrayLike) -> Integers:
        """Examples (n, size) for an input; one example may come without the axis of the batch.

        Raises InvalidArgument for other shapes, and for numbers that are no whole numbers or lie
        outside of their range. It says which of them it is, and not the number: that was to be
        encrypted.
        """
        numbers = whole_numbers(self.name, self.shape, values)
        flat = numbers.reshape(len(numbers), -1)
        outside = (flat < self.low) | (flat > self.high)
        if outside.any():
            example, k = (int(i) for i in np.argwhere(outside)[0])
            raise InvalidArgument(
                f"{self.name}: number {k} of example {example} is outside of its range, from {self.low[k]} to {self.high[k]}: results would be "
                "wrong. Compile with examples like this in calibration=, or with input_range=(low, high)"
            )
        return flat


def whole_numbers(name: str, shape: tuple[int, ...], values: npt.ArrayLike) -> Integers:
    """Examples (n, *shape) of whole numbers; floats are taken if they are whole.

    Raises InvalidArgument for other shapes and for fractions.
    """
    floats = checks.examples(name, shape, values)  # which checks everything but fractions
    exact = np.asarray(checks.dense(values))
    fractions = not np.array_equal(floats, np.rint(floats)) or not np.all(np.abs(floats) < _EXACT)
    floats.fill(0)  # no copy of the numbers stays in memory
    if exact.dtype.kind == "f" and fractions:
        raise InvalidArgument(
            f"{name} holds fractions, and the program computes with exact integers: round them, for example by "
            "np.rint(scale * x).astype(np.int64), with the scale of the calibration, or compile with fractions in calibration="
        )
    if exact.dtype.kind == "u" and exact.dtype.itemsize == 8 and np.any(exact >> np.uint64(63)):
        raise InvalidArgument(f"{name} holds a number above 2**63 - 1: use smaller ones")
    found: Any = exact.astype(np.int64)
    return np.ascontiguousarray(found.reshape(-1, *shape))
