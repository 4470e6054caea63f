"""Operations of ONNX that move numbers: shapes, slices, joins. See
jali.compiler.frontends.onnx_values. Those of a form of their own are in onnx_linear."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_values import (
    Attrs,
    Operation,
    Value,
    axes_of,
    clear,
    given,
    inner,
    numbers,
    text,
    whole_numbers,
)
from jali.compiler.frontends.tracing import Traced
from jali.errors import InvalidArgument, Unsupported

__all__ = ["MOVING"]

_FAR = 10**9  # as an end, whatever the size: exporters write 2^31 - 1, 2^63 - 1 or 10^9


def _reshape(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, wanted = inputs[0], attrs.get("shape")
    wanted = whole_numbers(inputs[1], "shape") if wanted is None else [int(n) for n in wanted]
    if not attrs.get("allowzero"):
        wanted = [x.shape[k] if n == 0 else n for k, n in enumerate(wanted)]
    other = [attrs["batches"].get(n, n) for n in wanted[:1]] + wanted[1:]
    fits = -1 in other or math.prod(other) == x.size
    return x.reshape(tuple(other if fits else wanted))


def _flatten(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axis = inputs[0], int(attrs.get("axis", 1))
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def _squeeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], axes_of(inputs, attrs)
    if axes is None:
        return x.reshape(tuple(n for n in x.shape if n != 1))
    gone = {inner(a, x.ndim) for a in axes}
    if any(x.shape[a] != 1 for a in gone):
        raise InvalidArgument(f"it takes axes of one number away, and the shape is {x.shape}")
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in gone))


def _unsqueeze(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, axes = inputs[0], axes_of(inputs, attrs) or ()
    shape = list(x.shape)
    for axis in sorted(inner(a, x.ndim + len(axes)) for a in axes):
        shape.insert(axis, 1)
    return x.reshape(tuple(shape))


def _expand(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, wanted = inputs[0], tuple(whole_numbers(inputs[1], "shape"))
    if len(wanted) >= x.ndim:
        wanted = (*(attrs["batches"].get(n, n) if n > 1 else n for n in wanted[:1]), *wanted[1:])
    return x._broadcast(np.broadcast_shapes(x.shape, wanted))


def _concat(inputs: Sequence[Value], attrs: Attrs) -> Value:
    parts = [x if isinstance(x, Traced) else numbers(x, "part") for x in inputs]
    return layers.concatenated([x for x in parts if 0 not in x.shape], attrs["axis"])


def _split(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, sizes = inputs[0], attrs.get("split")
    axis = inner(attrs.get("axis", 0), x.ndim)
    if given(inputs, 1) is not None:
        sizes = whole_numbers(inputs[1], "sizes")
    if sizes is None:
        each = -(-x.shape[axis] // attrs["outputs"])
        sizes = [min(each, x.shape[axis] - k * each) for k in range(attrs["outputs"])]
    ends, key = np.cumsum([0, *sizes]), [slice(None)] * x.ndim
    parts = []
    for start, size in zip(ends, sizes, strict=False):
        key[axis] = slice(int(start), int(start + size))
        parts.append(
            x[tuple(key)] if size else np.zeros((*x.shape[:axis], 0, *x.shape[axis + 1 :]))
        )
    return parts


def _slice(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x = inputs[0]
    if "starts" in attrs:  # before opset 10
        starts, ends = list(attrs["starts"]), list(attrs["ends"])
    else:
        starts, ends = (whole_numbers(v, "range") for v in inputs[1:3])
    axes = axes_of(inputs, attrs, 3) or tuple(range(len(starts)))
    steps = [1] * len(starts)
    if given(inputs, 4) is not None:
        steps = whole_numbers(inputs[4], "steps")
    key = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = inner(axis, x.ndim)
        _check_kept(int(start), int(end), x.shape[place], attrs["batches"])
        key[place] = _range(int(start), int(end), int(step), x.shape[place])
    return x[tuple(key)]


def _check_kept(start: int, end: int, size: int, batches: Mapping[int, int]) -> None:
    """Raises Unsupported if a range may leave out examples of a larger batch than this one.

    batches: of the attributes. Without a batch, it is empty.
    """
    if size not in batches.values():
        return
    exported = max(batches)  # or 1
    cut = size < end < _FAR and (exported == 1 or end < exported)
    if cut or -_FAR < start < -size:
        raise Unsupported(
            f"a slice from {start} to {end} of an axis of {size}, which may be that of the batch and would leave out examples: leave "
            "the slice out, or let it begin at 0 and end at the largest whole number"
        )


def _range(start: int, end: int, step: int, size: int) -> slice:
    """ONNX's range: places below -size are the first one, or before it for negative steps."""
    start, end = (n + size if n < 0 else n for n in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


def _gather(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, places = inputs[0], inputs[1]
    if not isinstance(x, Traced):
        raise Unsupported(
            "a table is looked up by a number that the server does not see: let the client look it up, and compile the rest"
        )
    axis = inner(attrs.get("axis", 0), x.ndim)
    indices, n = clear(places, "indices").astype(int), x.shape[axis]
    if np.any((indices < -n) | (indices >= n)):
        raise InvalidArgument(f"its indices are from {-n} to {n - 1}, and one is not")
    return layers.moved(x, np.take(np.arange(x.size).reshape(x.shape), indices, axis))


def _pad(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, mode = inputs[0], text(attrs.get("mode", "constant"))
    pads = attrs.get("pads", attrs.get("paddings"))
    widths = whole_numbers(inputs[1], "widths") if pads is None else [int(n) for n in pads]
    value = attrs.get("value", 0.0)
    if given(inputs, 2) is not None:
        value = float(clear(inputs[2], "value").ravel()[0])
    half, pairs = len(widths) // 2, [(0, 0)] * x.ndim
    axes = range(half) if given(inputs, 3) is None else whole_numbers(inputs[3], "axes")
    for k, axis in enumerate(axes):
        pairs[inner(axis, x.ndim)] = (widths[k], widths[k + half])
    return layers.padded(x, pairs, mode, value)


def _depth_to_space(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, r = inputs[0], int(attrs["blocksize"])
    n, c, h, w = x.shape
    if text(attrs.get("mode", "DCR")) == "CRD":
        y: Any = x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        y = x.reshape(n, r, r, c // r**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // r**2, h * r, w * r)


def _space_to_depth(inputs: Sequence[Value], attrs: Attrs) -> Value:
    x, r = inputs[0], int(attrs["blocksize"])
    n, c, h, w = x.shape
    inner_first = text(attrs.get("mode", "DCR")) == "CRD"
    order = (0, 1, 3, 5, 2, 4) if inner_first else (0, 3, 5, 1, 2, 4)
    y = x.reshape(n, c, h // r, r, w // r, r).transpose(order)
    return y.reshape(n, c * r * r, h // r, w // r)


def _transpose(inputs: Sequence[Value], attrs: Attrs) -> Value:
    order = attrs.get("perm", range(inputs[0].ndim)[::-1])
    return inputs[0].transpose(tuple(int(a) for a in order)) if inputs[0].ndim else inputs[0]


def _shape(inputs: Sequence[Value], attrs: Attrs) -> Value:
    shape = np.array(inputs[0].shape, np.int64)
    return shape[slice(attrs.get("start", 0), attrs.get("end"))]


def _size(inputs: Sequence[Value], attrs: Attrs) -> Value:
    return np.array(inputs[0].size, np.int64)


MOVING: dict[str, Operation] = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
