"""Operators of PyTorch's exported graphs (aten) that move numbers: shapes, slices, joins.

An operator's arguments have PyTorch's names; ``x`` is the one that it calls ``self`` or ``input``.
Clear tensors come as arrays of NumPy. Nothing here imports PyTorch.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import conditions, layers
from jali.compiler.frontends.torch_ops import Operator, Value, axes_of, clear, operator_in
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = ["MOVING"]

MOVING: dict[str, Operator] = {}
_operator = operator_in(MOVING)

for _name in ("alias", "detach", "clone", "contiguous", "lift_fresh_copy"):
    MOVING[_name] = lambda x, other=None: x
for _name in ("to", "_to_copy"):
    MOVING[_name] = lambda x, other=None: conditions.number(x)
for _name in ("type_as", "expand_as"):
    MOVING[_name] = lambda x, other: x._broadcast(tuple(other.shape))
MOVING["view_as"] = lambda x, other: x.reshape(tuple(other.shape))


@_operator("view", "reshape", "_unsafe_view", "_reshape_alias")
def _view(x: Traced, size: Any = None, shape: Any = None, stride: Any = None) -> Traced:
    return x.reshape(tuple(int(n) for n in (size if shape is None else shape)))


@_operator("flatten")
def _flatten(x: Traced, start_dim: int = 0, end_dim: int = -1) -> Traced:
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])


@_operator("unflatten")
def _unflatten(x: Traced, dim: int, sizes: Sequence[int]) -> Traced:
    axis = dim % x.ndim
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


@_operator("squeeze")
def _squeeze(x: Traced, dim: Any = None) -> Traced:
    gone = {a % x.ndim for a in axes_of(x, dim)}
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in gone or n != 1))


@_operator("unsqueeze")
def _unsqueeze(x: Traced, dim: int) -> Traced:
    axis = dim % (x.ndim + 1)
    return x.reshape(*x.shape[:axis], 1, *x.shape[axis:])


@_operator("transpose")
def _transpose(x: Traced, dim0: int, dim1: int) -> Traced:
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.transpose(tuple(order))


MOVING["permute"] = lambda x, dims: x.transpose(tuple(dims))
MOVING["t"] = lambda x: x.T


@_operator("expand")
def _expand(x: Traced, size: Sequence[int]) -> Traced:
    shape = (1,) * (len(size) - x.ndim) + x.shape
    return x._broadcast(tuple(n if m == -1 else int(m) for m, n in zip(size, shape, strict=True)))


@_operator("repeat")
def _repeat(x: Traced, repeats: Sequence[int]) -> Traced:
    shape = (1,) * (len(repeats) - x.ndim) + x.shape
    x = x.reshape(shape)
    for axis, times in enumerate(repeats):
        if times != 1:
            x = layers.concatenated([x] * times, axis)
    return x


@_operator("cat", "concat")
def _cat(tensors: Sequence[Value], dim: int = 0) -> Traced:
    return layers.concatenated(tensors, dim)


@_operator("stack")
def _stack(tensors: Sequence[Value], dim: int = 0) -> Traced:
    rank = np.ndim(tensors[0]) if not isinstance(tensors[0], Traced) else tensors[0].ndim
    axis = dim % (rank + 1)
    return layers.concatenated(
        [x.reshape(*x.shape[:axis], 1, *x.shape[axis:]) for x in tensors], axis
    )


@_operator("slice")
def _slice(
    x: Traced, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Traced:
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, end, step)
    return x[tuple(key)]


@_operator("select")
def _select(x: Traced, dim: int, index: int) -> Traced:
    key: list[Any] = [slice(None)] * x.ndim
    key[dim] = int(index)
    return x[tuple(key)]


def _chunks(x: Traced, sizes: Sequence[int], dim: int) -> list[Traced]:
    ends = np.cumsum([0, *sizes])
    return [_slice(x, dim, int(a), int(b)) for a, b in itertools.pairwise(ends)]


@_operator("split", "split_with_sizes")
def _split(
    x: Traced, split_size: Any = None, split_sizes: Any = None, dim: int = 0
) -> list[Traced]:
    sizes, n = split_size if split_sizes is None else split_sizes, x.shape[dim]
    if not isinstance(sizes, Sequence):
        sizes = [min(sizes, n - k) for k in range(0, n, sizes)]
    return _chunks(x, sizes, dim)


@_operator("chunk")
def _chunk(x: Traced, chunks: int, dim: int = 0) -> list[Traced]:
    return list(_split(x, -(-x.shape[dim] // chunks), dim=dim))


@_operator("unbind")
def _unbind(x: Traced, dim: int = 0) -> list[Traced]:
    return [_select(x, dim, k) for k in range(x.shape[dim])]


@_operator("flip")
def _flip(x: Traced, dims: Sequence[int]) -> Traced:
    key = [slice(None)] * x.ndim
    for axis in dims:
        key[axis] = slice(None, None, -1)
    return x[tuple(key)]


@_operator("roll")
def _roll(x: Traced, shifts: Any, dims: Any = ()) -> Traced:
    places, axes = (list(v) if isinstance(v, Sequence) else [v] for v in (shifts, dims))
    if not axes:
        flat: Traced = _roll(x.reshape(-1), places, [0])
        return flat.reshape(x.shape)
    for shift, axis in zip(places, axes, strict=True):
        n = x.shape[axis]
        cut = (n - shift) % n
        if cut:
            x = layers.concatenated(_chunks(x, [cut, n - cut], axis)[::-1], axis)
    return x


@_operator("index_select")
def _index_select(x: Traced, dim: int, index: Value) -> Traced:
    return layers.taken(x, dim, clear(index, "index"))


@_operator("index")
def _index(x: Traced, indices: Sequence[Value]) -> Traced:
    given = [(a, i) for a, i in enumerate(indices) if i is not None]
    if len(given) != 1 or not isinstance(given[0][1], np.ndarray):
        raise Unsupported("an index by several arrays, or by encrypted numbers: use slices")
    axis, places = given[0]
    places = np.flatnonzero(places) if places.dtype == np.bool_ else places
    y = layers.taken(x, axis, places)
    return y.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])


@_operator("pixel_shuffle")
def _pixel_shuffle(x: Traced, upscale_factor: int) -> Traced:
    r, (*outer, c, h, w) = upscale_factor, x.shape
    k = len(outer)
    y = x.reshape(*outer, c // r**2, r, r, h, w)
    order = (*range(k), *(k + a for a in (0, 3, 1, 4, 2)))
    return y.transpose(order).reshape(*outer, c // r**2, h * r, w * r)
