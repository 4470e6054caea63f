"""Arrays of ONNX models whose batch is another axis than the first, as in front of recurrent layers
and behind them.

Everywhere else, a traced array has no axis for the batch, which is axis 0 in the model. A
``Turned`` array is such an array, and knows which axis of the model's array the batch is.
Operations that work along other axes are those of jali.compiler.frontends.onnx_ops and onnx_shapes,
with their axes renamed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jali.compiler.frontends.onnx_ops import (
    ALONG_BATCH,
    COMPUTING,
    DIFFERING,
    Attrs,
    Operation,
    Value,
    axes_of,
    clear,
)
from jali.compiler.frontends.onnx_shapes import MOVING
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = ["TURNED", "Turned", "place_of", "turned"]


@dataclass(frozen=True)
class Turned:
    """x: the array without the batch.
    at: which axis of the model's array the batch is; not 0."""

    x: Traced
    at: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The model's shape, for a batch of one."""
        return (*self.x.shape[: self.at], 1, *self.x.shape[self.at :])


def turned(x: Value, at: int) -> Value:
    """An array whose batch is this axis of the model's."""
    return Turned(x, at) if at else x


def place_of(x: Traced | Turned) -> int:
    """Which axis of the model's array the batch is."""
    return x.at if isinstance(x, Turned) else 0


def _transpose(inputs: Sequence[Value], attrs: Attrs) -> Value:
    (x,) = inputs
    array, at = (x.x if isinstance(x, Turned) else x), place_of(x)
    order = [int(a) for a in attrs.get("perm", range(array.ndim + 1)[::-1])]
    rest = [a - (a > at) for a in order if a != at]
    return turned(array.transpose(tuple(rest)), order.index(at))


def _reshape(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, wanted = inputs[0], [int(n) for n in clear(inputs[1], "shape").ravel()]
    copied = [x.shape[k] if n == 0 else n for k, n in enumerate(wanted)]
    before = math.prod(x.x.shape[: x.at])
    for at, n in enumerate(copied):
        same = -1 not in copied[:at] and math.prod(copied[:at]) == before
        if same and n == 1 and (wanted[at] == 0 or copied.count(1) == 1):
            return turned(x.x.reshape(tuple(copied[:at] + copied[at + 1 :])), at)
    raise Unsupported(
        f"a reshape to {wanted}, which does not keep the batch: transpose the batch to the front first"
    )


def _renamed(axis: int, at: int, rank: int) -> int:
    """An axis of the model's array, if the batch were its first axis."""
    axis %= rank
    return 0 if axis == at else axis + (axis < at)


def _along(op: str, drops: Callable[[Attrs], bool]) -> Operation:
    """An operation on some axes.

    drops: whether its result has these axes no more.
    """

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        x = inputs[0]
        rank, place = x.x.ndim + 1, 3 if op == "Slice" else 1
        axes = axes_of(inputs, attrs, place)
        if axes is None:
            if op != "Slice":
                raise Unsupported(ALONG_BATCH)
            axes = tuple(range(len(attrs["starts"] if "starts" in attrs else inputs[1])))
        named = [_renamed(a, x.at, rank) for a in axes]
        known = {k: v for k, v in attrs.items() if k != "axes"}
        given = [x.x, *inputs[1:]]
        if len(inputs) > place:
            given[place] = np.array(named)
        elif op == "Slice" and "starts" not in attrs:
            given.append(np.array(named))
        else:
            known["axes"] = named
        y = (MOVING.get(op) or COMPUTING[op])(given, known)
        return turned(y, x.at - sum(a % rank < x.at for a in axes) * drops(attrs))

    return apply


def _unsqueeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], axes_of(inputs, attrs) or ()
    rank = x.x.ndim + 1 + len(axes)
    new = {a % rank for a in axes}
    at = [a for a in range(rank) if a not in new][x.at]
    named = np.array([_renamed(a, at, rank) for a in axes])
    known = {k: v for k, v in attrs.items() if k != "axes"}
    return turned(MOVING["Unsqueeze"]([x.x, named], known), at)


def _gather(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, places = inputs[0], np.asarray(clear(inputs[1], "indices"))
    axis = int(attrs.get("axis", 0)) % (x.x.ndim + 1)
    named = {**attrs, "axis": _renamed(axis, x.at, x.x.ndim + 1)}
    y = MOVING["Gather"]([x.x, places], named)
    return turned(y, x.at + (places.ndim - 1) * (axis < x.at))


def _joined(op: str) -> Operation:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        first = next(x for x in inputs if isinstance(x, Turned))
        axis = _renamed(int(attrs.get("axis", 0)), first.at, first.x.ndim + 1)
        given = [_moved(x, first, exact=True) for x in inputs]
        found = MOVING[op](given, {**attrs, "axis": axis})
        if isinstance(found, list):
            return [turned(y, first.at) for y in found]
        return turned(found, first.at)

    return apply


def _moved(value: Value, like: Turned, *, exact: bool = False) -> Value:
    """What stands beside a turned array, as if the batch were the first axis of both.

    exact: it has the same number of axes.
    """
    if isinstance(value, Turned):
        if value.at != like.at or value.x.ndim != like.x.ndim:
            raise Unsupported(
                "it joins arrays whose batches are different axes: transpose both batches to the front"
            )
        return value.x
    if isinstance(value, Traced):
        raise Unsupported(
            f"it joins arrays whose batches are the axes 0 and {like.at}: transpose both batches to the front"
        )
    if value is None or np.ndim(value) == 0:
        return value
    array, back = np.asarray(value), like.x.ndim + 1 - like.at
    if array.ndim < back:
        return array
    if array.shape[array.ndim - back] != 1:
        raise Unsupported(DIFFERING)
    without = np.squeeze(array, array.ndim - back)
    return without[None] if exact else without


def _elementwise(op: str) -> Operation:
    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        first = next(x for x in inputs if isinstance(x, Turned))
        found = COMPUTING[op]([_moved(x, first) for x in inputs], attrs)
        if isinstance(found, list):
            return [turned(y, first.at) for y in found]
        if found.ndim != first.x.ndim:
            raise Unsupported("it gives the array more axes: transpose the batch to the front")
        return turned(found, first.at)

    return apply


def _matmul(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, weight = inputs
    if not isinstance(x, Turned) or np.ndim(weight) != 2 or x.at == x.x.ndim:
        raise Unsupported("a product of arrays whose batch is not their first axis: transpose it")
    return turned(x.x @ clear(weight, "weight").astype(np.float64), x.at)


_NOT_ELEMENTWISE = {op for op in COMPUTING if op.startswith("Reduce")} | {"PRelu", "Where"}
_KEEPS = lambda attrs: not attrs.get("keepdims", 1)  # noqa: E731

#: Operations on arrays of which at least one is turned.
TURNED: dict[str, Operation] = {
    **{op: _elementwise(op) for op in COMPUTING if op not in _NOT_ELEMENTWISE},
    **{op: _along(op, _KEEPS) for op in COMPUTING if op.startswith("Reduce")},
    "Concat": _joined("Concat"),
    "Gather": _gather,
    "MatMul": _matmul,
    "Reshape": _reshape,
    "Slice": _along("Slice", lambda attrs: False),
    "Split": _joined("Split"),
    "Squeeze": _along("Squeeze", lambda attrs: True),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
