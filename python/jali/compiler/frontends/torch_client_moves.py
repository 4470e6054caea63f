"""Operators of PyTorch at a client that move numbers, and that look them up.

Arguments and results as in jali.compiler.frontends.torch_client. Nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.client_steps import (
    axis_of,
    cast_to,
    expanded,
    joined,
    looked_up,
    part_of,
    parts_of,
    reduced,
    reshaped,
    transposed,
)
from jali.compiler.frontends.client_values import Clear, constant, step
from jali.compiler.frontends.replacements import ALONG_BATCH
from jali.compiler.frontends.torch_client_values import Given, Like, as_type, known
from jali.errors import Unsupported
from jali.program.clear.steps import Argument

__all__ = ["LOOKING_UP", "MOVING", "inside"]

Operator = Callable[..., Any]

#: Operators that move numbers.
MOVING: dict[str, Operator] = {}
#: Operators that take numbers from places which may depend on the input.
LOOKING_UP: dict[str, Operator] = {}

for _name in ("alias", "detach", "clone", "contiguous", "lift_fresh_copy", "dropout"):
    MOVING[_name] = lambda x, p=0.5, train=False: _in_use(x, train)


def _in_use(x: Given, train: bool) -> Given:
    if train:
        raise Unsupported("dropout in training mode is random: call eval() on the module")
    return x


for _name in ("view", "reshape", "_unsafe_view", "_reshape_alias", "view_as", "flatten"):
    MOVING[_name] = lambda x, like, size=None, shape=None, other=None, start_dim=0, end_dim=-1: (
        reshaped(x, like.shape)
    )
for _name in ("unflatten", "squeeze", "unsqueeze"):
    MOVING[_name] = lambda x, like, dim=None, sizes=None: reshaped(x, like.shape)


def _transpose(x: Clear, dim0: int, dim1: int) -> Clear:
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return transposed(x, order)


def _expand(x: Clear, like: Like, size: Any = None, other: Any = None) -> Clear:
    return expanded(x, like.shape)


def _repeat(x: Clear, repeats: Sequence[int]) -> Clear:
    if len(repeats) != x.ndim or repeats[0] != 1:
        raise Unsupported(ALONG_BATCH)
    for axis, times in enumerate(repeats):
        if times > 1:
            x = joined([x] * times, axis)
    return x


def _cat(tensors: Sequence[Given], like: Like, dim: int = 0) -> Clear:
    return joined([as_type(x, like.dtype) for x in tensors], dim)


def _stack(tensors: Sequence[Given], like: Like, dim: int = 0) -> Clear:
    values = [as_type(x, like.dtype) for x in tensors]
    axis = axis_of(dim, values[0].ndim + 1)
    return joined([reshaped(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in values], axis)


def _slice(
    x: Clear, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Clear:
    n = x.shape[dim]
    if len(range(*slice(start, end, step).indices(n))) == n and step == 1:
        return x
    return part_of(x, axis_of(dim, x.ndim), start, end, step)


def _select(x: Clear, like: Like, dim: int, index: int) -> Clear:
    axis = axis_of(dim, x.ndim)
    place = int(index) % x.shape[axis]
    return reshaped(part_of(x, axis, place, place + 1, 1), like.shape)


def _split(x: Clear, split_size: Any = None, split_sizes: Any = None, dim: int = 0) -> list[Clear]:
    sizes, axis = split_size if split_sizes is None else split_sizes, axis_of(dim, x.ndim)
    n = x.shape[axis]
    if not isinstance(sizes, Sequence):
        sizes = [min(sizes, n - k) for k in range(0, n, sizes)]
    return parts_of(x, axis, sizes)


def _chunk(x: Clear, chunks: int, dim: int = 0) -> list[Clear]:
    return _split(x, -(-x.shape[axis_of(dim, x.ndim)] // chunks), dim=dim)


def _unbind(x: Clear, dim: int = 0) -> list[Clear]:
    axis = axis_of(dim, x.ndim)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [reshaped(part_of(x, axis, k, k + 1, 1), rest) for k in range(x.shape[axis])]


def _flip(x: Clear, dims: Sequence[int]) -> Clear:
    for dim in dims:
        x = part_of(x, axis_of(dim, x.ndim), None, None, -1)
    return x


def _roll(x: Clear, shifts: Any, dims: Any = ()) -> Clear:
    places, axes = (list(v) if isinstance(v, Sequence) else [v] for v in (shifts, dims))
    if not axes:
        raise Unsupported(ALONG_BATCH)
    for shift, dim in zip(places, axes, strict=True):
        axis = axis_of(dim, x.ndim)
        n = x.shape[axis]
        if cut := -shift % n:
            x = joined([part_of(x, axis, cut, n, 1), part_of(x, axis, 0, cut, 1)], axis)
    return x


def _pad(
    x: Clear, like: Like, pad: Sequence[int], mode: str = "constant", value: Any = None
) -> Clear:
    if mode != "constant":
        raise Unsupported(f"a padding of the mode {mode}")
    for k in range(0, len(pad), 2):
        axis = axis_of(-1 - k // 2, x.ndim)
        before, behind = pad[k], pad[k + 1]
        if min(before, behind) < 0:
            x = part_of(x, axis, max(0, -before), x.shape[axis] - max(0, -behind), 1)
        parts = [x]
        for at, width in ((0, before), (len(parts) + 1, behind)):
            if width > 0:
                shape = tuple(width if a == axis else n for a, n in enumerate(x.shape))
                parts.insert(at, as_type(np.full(shape, value or 0), like.dtype))
        x = joined(parts, axis) if len(parts) > 1 else x
    return x


def _triangle(lower: bool) -> Operator:
    def apply(x: Clear, like: Like, diagonal: int = 0) -> Clear:
        if x.ndim < 3:
            raise Unsupported(ALONG_BATCH)
        rows, columns = x.shape[-2:]
        below = np.tri(rows, columns, diagonal if lower else diagonal - 1, dtype=np.bool_)
        values = [constant(below if lower else ~below), x, as_type(np.zeros(()), like.dtype)]
        return step("where", values, {})

    return apply


MOVING |= {
    "transpose": _transpose,
    "permute": lambda x, dims: transposed(x, [a % x.ndim for a in dims]),
    "expand": _expand,
    "expand_as": _expand,
    "repeat": _repeat,
    "cat": _cat,
    "concat": _cat,
    "stack": _stack,
    "slice": _slice,
    "select": _select,
    "split": _split,
    "split_with_sizes": _split,
    "chunk": _chunk,
    "unbind": _unbind,
    "flip": _flip,
    "roll": _roll,
    "pad": _pad,
    "constant_pad_nd": _pad,
    "tril": _triangle(lower=True),
    "triu": _triangle(lower=False),
}


# --- look-ups -------------------------------------------------------------------------------------


def inside(places: Clear, rows: int) -> Clear:
    """Places of which those below 0, which PyTorch refuses, are none of the rows, so that the
    client refuses them, too. An argument that says so itself is taken as it is."""
    if places.kind != "whole":
        raise Unsupported("a look-up by other numbers than whole ones")
    if isinstance(places.source, Argument) and places.source.low >= 0:
        return places
    below = step("less", [places, constant(np.int64(0))], {})
    return step("where", [below, constant(np.int64(rows)), places], {})


def _embedding(
    weight: Given,
    indices: Given,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Clear:
    table = known(weight, "table")
    if not isinstance(indices, Clear):
        raise Unsupported("a look-up in an array that depends on the input")
    return looked_up(constant(table), inside(indices, len(table)), 0, None)


def _embedding_bag(
    weight: Given,
    indices: Given,
    offsets: Given,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Given = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> list[Clear | None]:
    """The rows of one example, as their sum, mean or largest numbers."""
    bags = known(offsets, "offsets")
    whole = bags.size == 1 and bags.ravel()[0] == 0 and not include_last_offset
    if not whole or per_sample_weights is not None or (padding_idx or 0) < 0:
        raise Unsupported("an EmbeddingBag of several bags, or with weights for its samples")
    if padding_idx is not None or not isinstance(indices, Clear) or indices.ndim != 2:
        raise Unsupported(
            "an EmbeddingBag with a padding_idx, or of other inputs than (batch, words)"
        )
    rows = _embedding(weight, indices)
    return [reduced(("sum", "mean", "max")[mode], rows, [1], False), None, None, None]


def _one_hot(x: Clear, num_classes: int = -1) -> Clear:
    if x.kind != "whole" or num_classes < 1:
        raise Unsupported("a one_hot of other numbers than whole ones, or without num_classes")
    source = x.source
    if not (isinstance(source, Argument) and 0 <= source.low <= source.high < num_classes):
        every = constant(np.arange(num_classes))  # a look-up refuses what is none of the classes
        x = looked_up(every, inside(x, num_classes), 0, None)
    return cast_to(step("one_hot", [x], {"depth": num_classes}), "whole")


def _index(x: Given, like: Like, indices: Sequence[Given]) -> Clear:
    named = [(a, i) for a, i in enumerate(indices) if i is not None]
    if not isinstance(x, Clear):
        if len(named) != 1 or named[0][0] != 0 or not isinstance(named[0][1], Clear):
            raise Unsupported("an index by several arrays, or along another axis than the first")
        table = known(x, "table")
        if not named[0][1].largest:
            raise Unsupported("an index by flags, of which nobody knows how many are set")
        return looked_up(constant(table), named[0][1], 0, None)
    joint = np.broadcast_shapes(*(np.shape(known(i, "index")) for _, i in named))
    several = len(named) > 1
    first = known(named[0][1], "index")
    if several and named[0][0] == 0 and first.dtype.kind == "i" and not np.any(first):
        named = named[1:]  # every example, by its place in the batch
    if len(named) != 1:
        raise Unsupported("an index by several arrays")
    axis, places = axis_of(named[0][0], x.ndim), known(named[0][1], "index")
    if places.dtype.kind != "i":
        raise Unsupported("an index by other arrays than whole numbers of 32 or 64 bits")
    places = np.broadcast_to(places, joint) if several else places
    if np.array_equal(places.ravel(), np.arange(x.shape[axis])):
        return reshaped(x, like.shape)  # every number, in order
    return reshaped(looked_up(x, constant(places), axis, places), like.shape)


def _index_select(x: Given, dim: int, index: Given) -> Clear:
    if isinstance(x, Clear):
        places = known(index, "index")
        return looked_up(x, constant(places), axis_of(dim, x.ndim), places)
    return looked_up(constant(known(x, "table")), inside(index, np.shape(x)[dim]), dim, None)


LOOKING_UP |= {
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
    "one_hot": _one_hot,
    "index": _index,
    "index_select": _index_select,
}
