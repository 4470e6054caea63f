"""Which axis of the arrays of a model in ONNX is the batch.

A model is read for a batch of one example, and its graph is that of one example. It is read again
for a larger batch, and the two are compared on numbers like the example's: so nothing is compiled
whose examples depend on each other, wherever the model moves the batch. If the model fixes the
first axis and the examples do depend on each other, the axis is none of a batch, and the whole
array is one example.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.onnx_reader import Reader
from jali.compiler.frontends.quantised_values import KeptEnds, ends_left
from jali.compiler.frontends.unbatched import unbatched
from jali.compiler.ir.execute import every_value
from jali.compiler.ir.graph import Array, Graph, Shape
from jali.compiler.ir.loop_graph import Loop
from jali.errors import InvalidArgument, Unsupported

__all__ = ["graph_of"]

_TOLERANCE = 1e-6  # of the largest number
_MODERATE = (0.1, 0.9)  # numbers for which most functions have values
_MOST_SIZES = 12  # of batches that are tried, if the model does not take two examples
_LARGEST_TRIED = 64
_MANY = 67  # examples of a batch that would show operations on places far behind
_MOST_NUMBERS = 1 << 22  # in all arrays of such a batch
_ALONE = (
    "it works along the axis of the batch, and a program computes every example alone: let it work along another axis. If the "
    "first axis of the input is none of a batch, give it its size in the model"
)
_NOWHERE = -1  # of an output that is the same for all examples


def graph_of(
    model: Any,
    examples: Mapping[str, Array],
    constants: Mapping[str, Any],
    declared: Mapping[str, int | None],
) -> Graph:
    """The graph of one example.

    examples: of every input that is encrypted.
    declared: the size of the first axis of each input, where the model says it.
    """
    shapes = {name: x.shape for name, x in examples.items()}
    fixed = set(declared.values())
    exported = next(iter(fixed)) if len(fixed) == 1 else None

    kept: KeptEnds | None = set()

    def read(count: int | None) -> Reader:
        """For a batch of so many examples; None stands for the arrays as they are."""
        if count is None:
            return Reader(model, shapes, constants, None, kept)
        sized = {name: (count, *shape[1:]) for name, shape in shapes.items()}
        return Reader(model, sized, constants, {1: count, exported or 1: count}, kept)

    counts = {s[0] if len(s) > 1 else 0 for s in shapes.values()}
    alone = len(counts) != 1 or 0 in counts  # no batch, or not as their first axis
    if any(map(_quantises, (model.graph, *model.functions))):
        kept = None
        kept = _kept_ends(read, alone, list(examples.values()))
    if alone:
        return _finished(read(None))
    if exported == 1:
        return _finished(read(1))
    sizes = _sizes(model, shapes) if exported is None else [2]
    return _compared(read, examples, counts.pop(), exported, sizes)


def _quantises(body: Any) -> bool:
    """Whether a graph, or one inside it, has an operation that quantises, and so cuts at the ends
    of a type."""
    inner = (g for node in body.node for a in node.attribute for g in (a.g, *a.graphs))
    kinds = ("QuantizeLinear", "QLinear", "QGemm")
    return any(node.op_type.startswith(kinds) for node in body.node) or any(map(_quantises, inner))


def _kept_ends(
    read: Callable[[int | None], Reader], alone: bool, examples: Sequence[Array]
) -> KeptEnds:
    """The ends of quantised types that numbers of the examples leave.

    alone: whether the examples have no batch.
    """
    one = None if alone else _first_read(read, [1])
    reader = one or read(None)
    graph = _whole(reader)
    inputs = [x.reshape(-1, *node.shape) for x, node in zip(examples, graph.inputs, strict=True)]
    return ends_left(reader.limits, graph, inputs)


def _compared(
    read: Callable[[int | None], Reader],
    examples: Mapping[str, Array],
    count: int,
    exported: int | None,
    sizes: Sequence[int],
) -> Graph:
    """The graph of one example, if examples do not depend on each other; else that of the whole
    array, if it is none of several examples.

    count: of the examples.
    exported: for how many examples the model is, if it says so.
    sizes: of the batches that are tried.
    """
    try:
        one = read(1)
    except (Unsupported, InvalidArgument):
        if count == (exported or count) > 1:
            return _finished(read(None))
        raise
    many = _first_read(read, sizes)
    if many is None:  # the model takes one example alone, if any
        axes: list[int] | str = _last(one)
        if exported is None and all(y.shape[:1] == (1,) for y in one.outputs):
            return _finished(one)
    else:
        axes = _batch_axes(one, many, examples)
        larger = _larger(one, exported)
        if not isinstance(axes, str) and larger > 2:
            many = _first_read(read, [larger])
            axes = _last(one) if many is None else _batch_axes(one, many, examples)
    whole = count == (exported or count) > 1
    if not isinstance(axes, str) and not (whole and exported and any(axes)):
        return _finished(one, axes)
    if whole:
        return _finished(read(None))
    raise Unsupported(f"{axes}: {_ALONE}")


def _larger(one: Reader, exported: int | None) -> int:
    """A number of examples that is large beside the places that an operation may name, if computing
    them takes little."""
    size = 0
    for node in one.builder.nodes.values():
        if isinstance(node.operation, Loop):  # there would be one for each example
            return 0
        arrays = node.operation.arguments().values()
        size += node.size + sum(x.size for x in arrays if isinstance(x, np.ndarray))
    most = _MOST_NUMBERS // size
    return exported if exported is not None and exported <= most else min(most, _MANY)


def _first_read(read: Callable[[int | None], Reader], sizes: Sequence[int]) -> Reader | None:
    for size in sizes:
        with contextlib.suppress(Unsupported, InvalidArgument):
            return read(size)
    return None


def _sizes(model: Any, shapes: Mapping[str, Shape]) -> list[int]:
    """Numbers of examples for which the model may be read: two, three, and those with which an axis
    of a constant could be taken for that of the batch."""
    found: dict[int, None] = {2: None, 3: None}
    for dims in (*(t.dims for t in model.graph.initializer), *shapes.values()):
        found |= {int(n): None for n in dims if 1 < n <= _LARGEST_TRIED}
    return list(found)[:_MOST_SIZES]


def _batch_axes(one: Reader, many: Reader, examples: Mapping[str, Array]) -> list[int] | str:
    """Which axis of every output is the batch, or _NOWHERE; or the name of the operation that gives
    other numbers for a batch than for each of its examples."""
    count, rng = _whole(many).inputs[0].shape[0], np.random.default_rng(0)
    found: list[int] | str = _last(one)
    for low, high in (None, None), _MODERATE:
        inputs = [_like(x, count, rng, low, high) for x in examples.values()]
        each = every_value(_whole(one), inputs)
        together = every_value(_whole(many), [x[None] for x in inputs])
        found = _axes(one, many, each, together, count)
        if all(np.isfinite(each[y.node.name]).any() for y in one.outputs):
            break
    return found


def _axes(
    one: Reader, many: Reader, each: Mapping[str, Array], together: Mapping[str, Array], count: int
) -> list[int] | str:
    axes: list[int] = []
    for a, b, constant in zip(one.outputs, many.outputs, one.constant, strict=True):
        axis = _axis(each[a.node.name], together[b.node.name][0], count)
        if axis is None and constant and a.shape == b.shape:
            axis = _NOWHERE
        if axis is None:
            return _first_to_differ(one, many, each, together, count)
        axes.append(axis)
    return axes


def _whole(reader: Reader) -> Graph:
    return reader.builder.graph([y.node for y in reader.outputs])


def _like(
    x: Array, count: int, rng: np.random.Generator, low: float | None, high: float | None
) -> Array:
    """So many examples of random numbers, between these or between those of an example."""
    if low is None or high is None:
        low, high = float(x.min()), float(x.max())
    return rng.uniform(low, high if high > low else low + 1, (count, *x.shape[1:]))


def _axis(each: Array, together: Array, count: int) -> int | None:
    """The axis of `together` along which `each` (count, *shape) lies, one example after the
    other."""
    shape = each.shape[1:]
    if len(shape) != together.ndim:
        return None
    for axis, n in enumerate(shape):
        if together.shape == (*shape[:axis], count * n, *shape[axis + 1 :]):
            parts = np.stack(np.split(together, count, axis))
            seen = np.isfinite(parts) & np.isfinite(each)
            if not seen.any():
                continue
            limit = _TOLERANCE * max(np.abs(parts[seen]).max(initial=0.0), 1e-30)
            if np.abs(parts - each)[seen].max(initial=0.0) <= limit:
                return axis
    return None


def _first_to_differ(
    one: Reader, many: Reader, each: Mapping[str, Array], together: Mapping[str, Array], count: int
) -> str:
    """The operation at whose result the two readings part."""
    inputs = {node.name for node in _whole(one).inputs}
    for name, value in each.items():
        if name in inputs or name not in together:
            continue
        if one.labels.get(name) == many.labels.get(name):
            shown = together[name][0]
            if _axis(value, shown, count) is None and not np.array_equal(value[0], shown):
                return one.labels.get(name, name)
    return _last(one)


def _last(reader: Reader) -> str:
    """The operation that gives the first output."""
    name = reader.outputs[0].node.name
    return reader.labels.get(name, name)


def _finished(reader: Reader, axes: Sequence[int] | None = None) -> Graph:
    """The graph without the axis of the batch.

    axes: of every output; None stands for the first one.
    """
    ends = []
    for k, y in enumerate(reader.outputs):
        axis = 0 if axes is None else axes[k]
        if axis != _NOWHERE and y.shape[axis : axis + 1] == (1,):
            y = y.reshape((*y.shape[:axis], *y.shape[axis + 1 :]))
        ends.append(y.node)
    return unbatched(reader.builder.graph(ends), reader.labels)
