"""Sequences of arrays in ONNX, which are lists while a model is read. See
jali.compiler.frontends.onnx_values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_control import stacked
from jali.compiler.frontends.onnx_values import Attrs, Operation, Value, clear, given, inner
from jali.compiler.frontends.tracing import Traced

__all__ = ["SEQUENCES"]


def _place(value: Value) -> int:
    return int(clear(value, "position").ravel()[0])


def _inserted(inputs: Sequence[Value], attrs: Attrs) -> Value:
    parts = list(inputs[0])
    at = len(parts) if given(inputs, 2) is None else _place(inputs[2])
    parts.insert(at, inputs[1])
    return parts


def _erased(inputs: Sequence[Value], attrs: Attrs) -> Value:
    parts = list(inputs[0])
    del parts[-1 if given(inputs, 1) is None else _place(inputs[1])]
    return parts


def _joined(inputs: Sequence[Value], attrs: Attrs) -> Value:
    parts, axis = list(inputs[0]), int(attrs["axis"])
    if attrs.get("new_axis"):
        return stacked(parts, axis)
    real = [x if isinstance(x, Traced) else np.asarray(x, np.float64) for x in parts]
    return layers.concatenated(real, axis)


def _split(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axis = inputs[0], inner(attrs.get("axis", 0), inputs[0].ndim)
    n = x.shape[axis]
    if given(inputs, 1) is None:
        sizes, kept = [1] * n, bool(attrs.get("keepdims", 1))
    else:
        chosen, kept = clear(inputs[1], "sizes"), True
        sizes = [int(s) for s in chosen] if chosen.ndim else _chunks(n, int(chosen))
    parts, start = [], 0
    for size in sizes:
        index = slice(start, start + size) if kept else start
        parts.append(x[(*(slice(None),) * axis, index)])
        start += size
    return parts


def _chunks(n: int, size: int) -> list[int]:
    return [min(size, n - k) for k in range(0, n, size)]


SEQUENCES: dict[str, Operation] = {
    "ConcatFromSequence": _joined,
    "SequenceAt": lambda inputs, attrs: inputs[0][_place(inputs[1])],
    "SequenceConstruct": lambda inputs, attrs: list(inputs),
    "SequenceErase": _erased,
    "SequenceInsert": _inserted,
    "SequenceLength": lambda inputs, attrs: np.array(len(inputs[0]), np.int64),
    "SplitToSequence": _split,
}
