"""Ciphertexts as rows of slots.

A ciphertext has two rows of N/2 slots for each vector of its batch, which rotate together. Views,
moves and sums of arrays (jali._core) take every row for a vector of its own. Row 2 i + j is row j of
vector i. Only ``take`` and ``rotate_all`` know that rows come in pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._jali.discrete import Ciphertext, EvaluatorCore

__all__ = ["Rows"]

Numbers = npt.NDArray[Any]


class Rows:
    """The operations of an evaluator that arrays with views need."""

    __slots__ = ("core", "row")

    def __init__(self, core: EvaluatorCore, row: int) -> None:
        self.core, self.row = core, row

    # --- sums and products ------------------------------------------------------------------------

    def add(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """The sum modulo T. Arrays say afterwards what range it has."""
        return self.core.add(a, b, True)

    def multiply_array(self, a: Ciphertext, values: Numbers) -> Ciphertext:
        """The product with (rows, N/2) numbers."""
        return self.core.multiply_array(a, self.paired(values))

    def paired(self, values: Numbers) -> npt.NDArray[np.int64]:
        """(rows, N/2) numbers as (vectors, N) of them. A last row of zeros makes the rows even."""
        rows = len(values)
        out = np.zeros((rows + rows % 2, self.row), np.int64)
        out[:rows] = values
        return out.reshape(-1, 2 * self.row)

    # --- moves ------------------------------------------------------------------------------------

    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Place i of every row of the result is place i + steps of that row, cyclically."""
        steps %= self.row
        return self.core.rotate_rows(a, steps) if steps else a

    def rotate_all(self, a: Ciphertext, steps: int, count: int) -> Ciphertext:
        """Slot i of the result is slot i + steps, cyclically over both rows, of a vector that holds
        numbers in its first ``count`` slots. The others are taken for zeros.

        It takes one level, for masks, unless the steps are a multiple of N/2 and all slots hold
        numbers. Two masks put the ends of the rows together: where place i + steps goes past the end
        of a row, the other row goes on.
        """
        steps %= 2 * self.row
        held = np.roll(np.arange(2 * self.row) < count, -steps).reshape(2, self.row)
        if steps >= self.row:
            a, steps = self.core.swap_rows(a), steps - self.row
        if steps == 0:
            return a if held.all() else self.multiply_array(a, held)
        same = self.rotate(a, steps)
        other = self.core.swap_rows(same)
        inside = np.arange(self.row) < self.row - steps
        kept = self.multiply_array(same, held & inside)
        taken = self.multiply_array(other, held & ~inside)
        return self.core.bounded(self.add(kept, taken), a, 2, 1)

    def stack(self, parts: list[Ciphertext]) -> Ciphertext:
        """All rows, one part after the other."""
        return self.core.stack(parts)

    def take(self, a: Ciphertext, rows: list[int]) -> Ciphertext:
        """The rows with these numbers, of any of which there may be several.

        It costs nothing if pairs stay together, one rotation if the rows of a pair are exchanged,
        and otherwise one level, for two masks.
        """
        count = a.rows // 2
        if list(rows) == list(range(len(rows))) and (len(rows) + 1) // 2 == count:
            return a
        first = np.array(rows[::2])
        second = np.array([*rows[1::2], *([-1] * (len(rows) % 2))])
        second = np.where(second < 0, first ^ 1, second)  # nobody reads the row behind the last
        swapped = first % 2 == 1
        both = self._with_swapped(a) if swapped.any() or (second % 2 == 0).any() else a
        upper = self.core.vectors(both, (first // 2 + count * swapped).tolist())
        if ((first ^ 1) == second).all():
            return upper
        lower = self.core.vectors(both, (second // 2 + count * (second % 2 == 0)).tolist())
        mask = np.zeros((2 * len(first), self.row), np.int64)
        mask[::2] = 1
        kept, taken = self.multiply_array(upper, mask), self.multiply_array(lower, 1 - mask)
        return self.core.bounded(self.add(kept, taken), a, 2, 1)

    def _with_swapped(self, a: Ciphertext) -> Ciphertext:
        """Its vectors, and behind them the same with their rows exchanged."""
        return self.core.stack([a, self.core.swap_rows(a)])
