"""Products of matrices and vectors, of which one or both are encrypted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.array import plain
from jali._core.diagonals import mapped
from jali._jali.discrete import Ciphertext
from jali.discrete.array import EncryptedArray
from jali.discrete.ends import Ends
from jali.discrete.values import LEAST, MOST, numbers
from jali.errors import InvalidArgument, Unsupported

__all__ = ["matmul"]


def matmul(a: Any, b: Any) -> EncryptedArray:
    """a @ b, of vectors and matrices of which one or both are encrypted."""
    left, right = (x if isinstance(x, EncryptedArray) else _clear(x) for x in (a, b))
    if not 1 <= len(left.shape) <= 2 or not 1 <= len(right.shape) <= 2:
        raise Unsupported(
            f"@ multiplies vectors and matrices, not arrays of the shapes {left.shape} and {right.shape}"
        )
    if left.shape[-1] != right.shape[0]:
        raise InvalidArgument(
            f"a product of the shapes {left.shape} and {right.shape} does not fit: {left.shape[-1]} and {right.shape[0]} "
            "must be equal"
        )
    if isinstance(left, EncryptedArray) and isinstance(right, EncryptedArray):
        return _of_encrypted(left, right)
    if isinstance(right, EncryptedArray):
        # A transpose says where numbers lie, and costs nothing.
        return matmul(right.T, left.T).T if len(right.shape) == 2 else matmul(right, left.T)
    assert isinstance(left, EncryptedArray)  # one of both is
    if right.ndim == 1:
        return (left * right).sum(-1)
    if len(left.shape) == 1:
        out: EncryptedArray = _mapped(left[None], right)[0]
        return out
    return _mapped(left, right)


def _clear(value: Any) -> npt.NDArray[np.int64]:
    array = numbers(plain(value))
    if array is None:
        raise InvalidArgument(f"@ takes arrays, not {checks.shown(value)}")
    return array


def _mapped(x: EncryptedArray, matrix: npt.NDArray[np.int64]) -> EncryptedArray:
    """x @ matrix for an encrypted matrix x: every row's map, at once in all rows.

    out[r, j] = sum_d matrix[j + d, j] x[r, j + d]: a product with a rotation of x for every
    diagonal d.
    """
    low, high = _range_of_map(x.range, matrix)
    server = x._server
    if not x.wraps:
        server._engine.check_range(low, high)
    x, view, diagonals = mapped(x, matrix)
    if diagonals is None:  # the outer product of a column and a row
        return x * matrix
    rows = server._core
    total: Ciphertext | None = None
    for step, diagonal in diagonals.items():
        turned = rows.rotate(x._ct, step)
        part = server._engine.multiply_array(
            turned, rows.paired(np.tile(diagonal, (view.vectors, 1))), True
        )
        total = part if total is None else rows.add(total, part)
    assert total is not None
    value = total if x.wraps else server._engine.with_range(total, low, high)
    return x._new(value, view)


def _range_of_map(range: tuple[int, int], matrix: npt.NDArray[np.int64]) -> tuple[int, int]:
    """The range of x @ matrix for numbers x of a range, zero included."""
    above = np.where(matrix > 0, matrix, 0).astype(object).sum(axis=0)
    below = np.where(matrix < 0, matrix, 0).astype(object).sum(axis=0)
    ends = [
        int(end)
        for end in (
            (above * range[0] + below * range[1]).min(),
            (above * range[1] + below * range[0]).max(),
        )
    ]
    # In slots T is below 2^61: what does not fit into 64 bits is refused by what does.
    return max(LEAST, min(0, ends[0])), min(MOST, max(0, ends[1]))


def _of_encrypted(left: EncryptedArray, right: EncryptedArray) -> EncryptedArray:
    if not (left.wraps or right.wraps):  # before the products that are summed
        first = Ends(*left.range)
        squares = left is right and left.ndim == 1
        product = first * (first if squares else Ends(*right.range))
        ends = product.times(left.shape[-1])
        left._server._engine.check_range(ends.low, ends.high)
    if len(right.shape) == 1:
        return (left * right).sum(-1)
    if len(left.shape) == 1:
        return (right.T * left).sum(-1)
    # Row i of the result is the sum of right's rows, each times a number of left's row i.
    return (left[:, :, None] * right[None]).sum(1)
