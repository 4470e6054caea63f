"""Products of matrices and vectors, of which one or both are encrypted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.array import plain
from jali._core.console import counted_text
from jali._core.view import View, fitting
from jali._jali.ckks import Layout, LinearTransform, MatVec
from jali.ckks.arguments import refuse_complex, refuse_complex_matrix
from jali.ckks.array import EncryptedArray
from jali.ckks.formulations import multiplied
from jali.ckks.operands import numbers
from jali.errors import InvalidArgument, Unsupported

__all__ = ["matmul"]


def matmul(a: Any, b: Any) -> EncryptedArray:
    """a @ b, of vectors and matrices of which one or both are encrypted.

    A matrix in the clear takes one level, or two if the rows of an encrypted matrix have to be
    moved apart, because those of the product are longer. Of two encrypted operands, the product of
    matrices takes two levels, because columns and rows are masked and repeated. The formulation
    with the least work is taken (formulations.py); its result may lie in a vector for each row or
    column. With a vector it takes one level or, if the vector has to be moved or masked, two. A
    product that will take more than 10 seconds says so first, in a RuntimeWarning.
    """
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
    if not isinstance(left, EncryptedArray):
        x: EncryptedArray = b._viewed()
        if len(x.shape) == 1:
            return _matvec(left, x) if left.ndim == 2 else (x * left).sum()
        return matmul(x.T, left.T).T
    if not isinstance(right, EncryptedArray):
        x = a._viewed()
        if right.ndim == 1:
            return (x * right).sum(-1)
        return _matvec(right.T, x) if len(x.shape) == 1 else _mapped(x, right)
    x, y = a._viewed(), b._viewed()
    if len(x.shape) == 1 and len(y.shape) == 2:
        return multiplied(y.T, x)  # a transpose says where numbers lie, and costs nothing
    return multiplied(x, y)


def _clear(value: Any) -> npt.NDArray[Any]:
    array = numbers(plain(value))
    if array is None:
        raise InvalidArgument(f"@ takes arrays, not {checks.shown(value)}")
    return array


def _matvec(matrix: npt.NDArray[Any], x: EncryptedArray) -> EncryptedArray:
    """matrix @ x for a vector x that lies anywhere."""
    view, server = x._place, x._server
    refuse_complex_matrix(matrix)
    if view.slots != server.params.slots:
        raise Unsupported(
            "a matrix product takes vectors packed in all slots: encrypt without slots="
        )
    value = x._settled()
    refuse_complex(value)
    element = np.full(view.extent, -1, np.int32)
    element[view.addresses()] = np.arange(view.size)
    rows = np.tile(element, view.slots // view.period if view.period else 1).reshape(-1, view.slots)
    layout = Layout._of(rows.tolist(), view.size)  # type: ignore[attr-defined]
    plan = MatVec(matrix, server.params, level=x.level, layout=layout, streaming=True)
    inputs = [server._core.take(value, [v]) for v in range(view.vectors)]
    outputs = server._core.matvec(plan, inputs)
    rest = max(out.rest for out in outputs)
    copies = len(outputs) > 1 and any(out.repeats for out in outputs)
    outputs = [server._core.with_view(out, None, False) for out in outputs]
    out = outputs[0] if len(outputs) == 1 else server._core.stack(outputs)
    period = plan.output_layout.period % view.slots if len(outputs) == 1 else 0
    return EncryptedArray(
        server, out, View((len(matrix),), (1,), 0, view.slots, len(outputs), period, rest, copies)
    )


def _mapped(x: EncryptedArray, matrix: npt.NDArray[Any], widened: bool = False) -> EncryptedArray:
    """x @ matrix for an encrypted matrix x: every row's map, at once in all rows that a vector
    holds.

    out[r, j] = sum_d matrix[j + d, j] x[r, j + d]: a product with a rotation of x for every
    diagonal d.
    widened: the rows were moved apart already, to make room for those of the product.
    """
    x = x._compact()
    if x._place.period:  # the rows are read where they lie first
        x = x._seen(replace(x._place.changing(), period=0, copies=True))
    view, server, slots = x._place, x._server, x._place.slots
    n, k = matrix.shape
    stride = view.strides[1] if n > 1 else 1
    if n == 1:  # the outer product of a column and a row
        return x * matrix
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
        return _mapped(x, matrix, widened=True)
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
    explicit = server._core.explicit
    plan = LinearTransform(server.params, diagonals, level=x.level, slots=slots, streaming=True)
    if all(explicit.has_rotation(step) for step in plan.rotations):
        value = server._core.linear_transform(plan, x._settled())
        return EncryptedArray(server, server._core.with_view(value, None, False), new)
    total: EncryptedArray | None = None
    core, source = server._core, x._settled()
    for step, diagonal in diagonals.items():  # rotations that are composed of those that have keys
        turned = core.rotate(source, step) if step else source
        part = EncryptedArray(server, core.multiply_array(turned, diagonal))
        total = part if total is None else total + part
    assert total is not None
    return EncryptedArray(server, total._ct, new)


def _no_room(view: View, n: int, k: int) -> Unsupported:
    return Unsupported(
        f"rows of {counted_text(n, 'number')} lie {counted_text(view.strides[0], 'slot')} apart, and there is no room for the {k} of the product: encrypt "
        f"the matrix with at least {counted_text(k, 'column')} (zeros will do), or multiply by fewer columns at a time"
    )
