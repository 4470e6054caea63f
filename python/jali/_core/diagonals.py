"""Products of an encrypted matrix and a matrix in the clear, as sums over diagonals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.console import counted_text
from jali._core.moves import Array
from jali._core.view import View, fitting
from jali.errors import Unsupported

__all__ = ["mapped"]


def mapped(
    x: Array, matrix: npt.NDArray[Any], widened: bool = False
) -> tuple[Array, View, dict[int, npt.NDArray[Any]] | None]:
    """How x @ matrix is computed for an encrypted matrix x: every row's map, at once in all rows
    that a vector holds.

    out[r, j] = sum_d matrix[j + d, j] x[r, j + d]: a product with a rotation of x for every
    diagonal d. Returns x as the rotations take it, which may have been moved; the view of the
    product; and for each rotation the numbers by which all slots of every vector are multiplied.
    These are None for a single column x, whose product with a row takes no rotation.
    widened: the rows were moved apart already, to make room for those of the product.
    """
    x = x._compact()
    if x._place.period:  # the rows are read where they lie first
        x = x._seen(replace(x._place.changing(), period=0, copies=True))
    view, slots = x._place, x._place.slots
    n, k = matrix.shape
    stride = view.strides[1] if n > 1 else 1
    if n == 1:  # the outer product of a column and a row
        return x, view, None
    new = fitting((view.shape[0], k), (view.strides[0], stride), view.first, slots)
    if (
        new is not None
        and view.shape[0] > 1
        and k > 1
        and abs(stride) * k > abs(view.strides[0]) > abs(stride)
    ):
        new = None
    if new is None or new.vectors > view.vectors:
        wider = View.dense((view.shape[0], max(n, k)), slots).changed(lambda a: a[:, :n])
        if widened or wider.same_place(view):
            raise _no_room(view, n, k)
        try:
            x = x._moved(wider)
        except Unsupported:
            raise _no_room(view, n, k) from None
        return mapped(x, matrix, widened=True)
    new = replace(new, vectors=view.vectors)
    diagonals: dict[int, Any] = {}
    rows = new.addresses()
    reads = view.addresses()
    if (rows[:, :1] // slots != rows // slots).any() or (
        reads[:, :1] // slots != reads // slots
    ).any():
        raise Unsupported(
            "the rows of this matrix go from one vector to the next: encrypt its transpose, or fewer columns"
        )
    for j in range(k):
        for i in range(n):
            if matrix[i, j] != 0:
                # A row lies in one vector: a rotation round its end reads no other row.
                step = (i - j) * stride % slots
                at = diagonals.setdefault(step, np.zeros(slots, matrix.dtype))
                at[rows[:, j] % slots] = matrix[i, j]
    # The diagonals are zero wherever no row of any vector lies, in all vectors alike.
    filled = np.zeros((view.vectors, slots), bool)
    filled.reshape(-1)[rows] = True
    if view.zero or (filled == filled.any(axis=0)).all():
        new = new.zeroed()
    if not diagonals:
        diagonals[0] = np.zeros(slots, matrix.dtype)
    return x, new, diagonals


def _no_room(view: View, n: int, k: int) -> Unsupported:
    return Unsupported(
        f"rows of {counted_text(n, 'number')} lie {counted_text(view.strides[0], 'slot')} apart, and there is no room for the {k} of the product: encrypt "
        f"the matrix with at least {counted_text(k, 'column')} (zeros will do), or multiply by fewer columns at a time"
    )
