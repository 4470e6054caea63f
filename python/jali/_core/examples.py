"""Examples of an input, as users give them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali.errors import InvalidArgument

__all__ = ["checked_examples"]


def checked_examples(
    name: str, shape: tuple[int, ...], values: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Examples (batch, *shape) for an input. One example may come without the axis of the batch.

    Raises InvalidArgument for other shapes, rows of different lengths, and numbers that are not
    finite.
    """
    values = checks.dense(values)
    array = checks.as_array(
        values,
        f"{name} takes an array of numbers, and its rows differ in length: give every example the shape {shape}",
    )
    checks.unmasked(values, f"the numbers of {name}")
    if array.dtype.names is not None:
        raise InvalidArgument(
            f"{name} takes real numbers, not records: convert them by numpy.lib.recfunctions.structured_to_unstructured(records)"
        )
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"{name} takes real numbers, not an array of {checks.dtype_text(array)}: convert it, for example by astype(float)"
        )
    array = array.astype(np.float64)
    if array.shape == shape:
        array = array[None]
    if array.shape[1:] != shape or not len(array):
        raise InvalidArgument(
            f"{name} takes examples of the shape {shape}, or a batch of them, not an array of {array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{name} holds NaN or infinity: replace these numbers")
    return array
