"""Operands of encrypted arrays in the clear."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.array import refuse_matrix, refuse_non_numbers
from jali._core.arrays import as_numbers

__all__ = ["numbers"]


def numbers(value: Any) -> npt.NDArray[Any] | None:
    """The operand as an array of numbers; None if it is nothing like an array."""
    if hasattr(value, "to_numpy"):  # a column or a table of pandas
        value = value.to_numpy()
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        refuse_non_numbers(value)
        return None
    refuse_matrix(value)
    return as_numbers(value, "the array's numbers")
