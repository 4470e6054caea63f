"""Operations of ONNX that move numbers: shapes, slices, joins. See
jali.compiler.frontends.onnx_ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_ops import Attrs, Operation, Value, axes_of, clear, inner
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = ["MOVING"]


def _reshape(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, wanted = inputs[0], [int(n) for n in clear(inputs[1], "shape").ravel()]
    full = (0, *x.shape)
    within = [full[k] if n == 0 else n for k, n in enumerate(wanted)][1:]
    first = wanted[0] if wanted else 0
    whole = -1 in within and (first in (-1, 0, 1) or first in attrs["batches"])
    if not whole and math.prod(within) != x.size:
        raise Unsupported(
            f"a reshape to {wanted}, which moves numbers between examples: keep the first axis"
        )
    return x.reshape(tuple(within))


def _flatten(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if attrs.get("axis", 1) % (inputs[0].ndim + 1) != 1:
        raise Unsupported("a flatten that does not keep the axis of the batch: flatten with axis=1")
    return inputs[0].reshape(-1)


def _squeeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], axes_of(inputs, attrs)
    if axes is None:
        raise Unsupported("a squeeze without axes, which may take the batch away: name the axes")
    gone = {inner(a, x.ndim + 1) for a in axes}
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in gone))


def _unsqueeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], axes_of(inputs, attrs) or ()
    shape = list(x.shape)
    for axis in sorted(inner(a, x.ndim + 1 + len(axes)) for a in axes):
        shape.insert(axis, 1)
    return x.reshape(tuple(shape))


def _expand(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, wanted = inputs[0], [int(n) for n in clear(inputs[1], "shape").ravel()]
    if len(wanted) > x.ndim + 1:
        raise Unsupported(
            "an expansion that gives the array axes before the batch: reshape it first"
        )
    if len(wanted) == x.ndim + 1 and wanted[0] != 1:
        raise Unsupported("an expansion of the batch: expand another axis")
    return x._broadcast(np.broadcast_shapes(x.shape, tuple(wanted[-x.ndim :]) if x.ndim else ()))


def _concat(inputs: Sequence[Value], attrs: Attrs) -> Value:
    rank = next(x.ndim for x in inputs if isinstance(x, Traced)) + 1
    parts = []
    for x in inputs:
        if not isinstance(x, Traced) and (np.ndim(x) != rank or np.shape(x)[0] != 1):
            raise Unsupported(
                "a concatenation with constants that differ between the examples: make them an input of the model"
            )
        parts.append(x if isinstance(x, Traced) else np.asarray(x, np.float64)[0])
    return layers.concatenated(parts, inner(attrs["axis"], rank))


def _split(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axis = inputs[0], inner(attrs.get("axis", 0), inputs[0].ndim + 1)
    sizes = attrs.get("split")
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = clear(inputs[1], "sizes").ravel()
    if sizes is None:
        each = -(-x.shape[axis] // attrs["outputs"])
        sizes = [min(each, x.shape[axis] - k * each) for k in range(attrs["outputs"])]
    ends, key = np.cumsum([0, *sizes]), [slice(None)] * x.ndim
    parts = []
    for start, size in zip(ends, sizes, strict=False):
        key[axis] = slice(int(start), int(start + size))
        parts.append(x[tuple(key)])
    return parts


def _slice(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    if "starts" in attrs:  # before opset 10
        starts, ends = np.asarray(attrs["starts"]), np.asarray(attrs["ends"])
    else:
        starts, ends = (clear(v, "range").ravel() for v in inputs[1:3])
    axes = axes_of(inputs, attrs, 3) or tuple(range(len(starts)))
    steps = np.ones(len(starts), int) if len(inputs) < 5 else clear(inputs[4], "steps").ravel()
    key = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        last = None if end < -(1 << 30) else int(end)
        key[inner(axis, x.ndim + 1)] = slice(int(start), last, int(step))
    return x[tuple(key)]


def _gather(inputs: Sequence[Value], attrs: Attrs) -> Value:
    if not isinstance(inputs[0], Traced):
        raise Unsupported(
            "a table is looked up by a number that the server does not see: let the client look it up, and compile the rest"
        )
    x, places = inputs[0], clear(inputs[1], "indices").astype(int)
    axis = inner(attrs.get("axis", 0), x.ndim + 1)
    y = layers.taken(x, axis, places)
    return y.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])


def _pad(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, mode = inputs[0], attrs.get("mode", b"constant").decode()
    widths = clear(inputs[1], "widths").ravel() if len(inputs) > 1 else np.asarray(attrs["pads"])
    value = attrs.get("value", 0.0)
    if len(inputs) > 2 and inputs[2] is not None:
        value = float(clear(inputs[2], "value").ravel()[0])
    half = len(widths) // 2
    pairs = [(int(widths[k]), int(widths[k + half])) for k in range(half)]
    if (len(inputs) > 3 and inputs[3] is not None) or half != x.ndim + 1 or pairs[0] != (0, 0):
        raise Unsupported("padding of the batch, or of some axes: pad all axes but the first")
    return layers.padded(x, pairs[1:], mode, value)


def _depth_to_space(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, r = inputs[0], int(attrs["blocksize"])
    c, h, w = x.shape
    if attrs.get("mode", b"DCR") == b"CRD":
        y: Any = x.reshape(c // r**2, r, r, h, w).transpose(0, 3, 1, 4, 2)
    else:
        y = x.reshape(r, r, c // r**2, h, w).transpose(2, 3, 0, 4, 1)
    return y.reshape(c // r**2, h * r, w * r)


MOVING: dict[str, Operation] = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
