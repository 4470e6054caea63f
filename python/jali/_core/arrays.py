"""Checks on numbers that come from the user, before any work is done with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali.errors import InvalidArgument

Vectors = npt.NDArray[np.float64] | npt.NDArray[np.complex128]


def as_vectors(values: npt.ArrayLike, what: str = "values") -> Vectors:
    """``values`` as a C-contiguous float64 or complex128 array, 1-D (n,) or 2-D (batch, n).

    Raises InvalidArgument for other dimensions, an empty axis, a type that is not numeric, or a
    number that is not finite.
    """
    array = as_numbers(values, what)
    if array.ndim not in (1, 2):
        raise InvalidArgument(
            f"{what} have {array.ndim} dimensions: give a vector (n,) or a batch of vectors "
            "(batch, n); a single number is np.array([number])"
        )
    return array


def as_numbers(values: npt.ArrayLike, what: str = "values") -> Vectors:
    """``values`` as a C-contiguous float64 or complex128 array.

    Raises InvalidArgument for an empty axis, a type that is not numeric, or a number that is not
    finite.
    """
    array = checks.as_array(
        values,
        f"{what} are not an array of numbers: give one, or lists whose rows have equal lengths",
    )
    checks.unmasked(values, what)
    kind = array.dtype.kind
    if kind not in "biufc":
        mixed = (
            ". values.astype(float) makes them of a table whose columns have several types, "
            "values.toarray() of a sparse matrix, and list(values) of an iterator"
        )
        raise InvalidArgument(
            f"{what} have dtype {checks.dtype_text(array)}: give booleans, integers, floats or complex numbers"
            + (mixed if kind == "O" else "")
        )
    if array.ndim == 0:
        raise InvalidArgument(f"{what} have 0 dimensions: a single number is np.array([number])")
    if array.size == 0:
        raise InvalidArgument(f"{what} have the shape {array.shape}: give at least one number")
    result: Vectors
    if kind == "c":
        result = np.ascontiguousarray(array, dtype=np.complex128)
    else:
        result = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(result).all():
        raise InvalidArgument(f"{what} hold a NaN or an infinity: replace them first")
    return result
