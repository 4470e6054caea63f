"""Products of matrices and vectors, of which one or both are encrypted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.array import plain
from jali._core.diagonals import mapped
from jali._core.view import View
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


def _mapped(x: EncryptedArray, matrix: npt.NDArray[Any]) -> EncryptedArray:
    """x @ matrix for an encrypted matrix x."""
    x, new, diagonals = mapped(x, matrix)
    if diagonals is None:  # the outer product of a column and a row
        return x * matrix
    server, slots = x._server, x._place.slots
    explicit = server._core.explicit
    plan = LinearTransform(server.params, {**diagonals}, level=x.level, slots=slots, streaming=True)
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
