"""A traced graph of a batch of one, without the axis of the batch.

Layouts take the first axis of an array for its channels, so that an image has to be (channels,
*sizes) and not (1, channels, *sizes). Operations that treat the first axis like no other lose it.
The others keep it, between two reshapes, which folding leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.arrays import Array
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import (
    Broadcast,
    Combine,
    Concat,
    Dense,
    Pad,
    Reshape,
    Scale,
    Slice,
    Sum,
    Transpose,
)
from jali.compiler.ir.operation import Operation
from jali.compiler.ir.products import Matmul
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries

__all__ = ["unbatched"]


def unbatched(graph: Graph, labels: Mapping[str, str]) -> Graph:
    """The same function.

    labels: what the nodes are named after, by their names.
    """
    rewriter = _Rewriter(labels)
    for node in graph:
        rewriter.add(node)
    return rewriter.builder.graph([rewriter.whole(name) for name in graph.outputs])


class _Rewriter:
    """Arrays by their old names: ``_wholes`` with all axes, ``_parts`` without a first axis of one
    number. Some have both."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.builder, self._labels = Builder(), labels
        self._wholes: dict[str, Node] = {}
        self._parts: dict[str, Node] = {}

    def add(self, node: Node) -> None:
        """The next node of the graph."""
        name = self._labels.get(node.name, node.name)
        if isinstance(node.operation, Reshape):
            self._reshape(node, name)
            return
        lost = self._lost(node)
        if lost is not None:
            inputs = [self._part(source) for source in node.inputs]
            self._parts[node.name] = self.builder.add(name, lost, inputs)
            return
        inputs = [self.whole(source) for source in node.inputs]
        self._wholes[node.name] = self.builder.add(name, node.operation, inputs)

    def _lost(self, node: Node) -> Operation | None:
        """The operation without the first axis; None if it needs that axis."""
        if node.shape[:1] != (1,):
            return None
        if any(not self._has_part(source) for source in node.inputs):
            return None
        return _without_first_axis(node.operation, len(node.shape))

    def _has_part(self, name: str) -> bool:
        return name in self._parts or self._wholes[name].shape[:1] == (1,)

    def _reshape(self, node: Node, name: str) -> None:
        (of,) = node.inputs
        known = [found[of] for found in (self._parts, self._wholes) if of in found]
        for source in known:
            if source.shape == node.shape:
                self._wholes[node.name] = source
                return
            if node.shape[:1] == (1,) and source.shape == node.shape[1:]:
                self._parts[node.name] = source
                return
        if node.shape[:1] == (1,) and len(node.shape) > 1:
            shape = node.shape[1:]
            self._parts[node.name] = self.builder.add(name, Reshape(shape=shape), known[:1])
        else:
            whole = self.builder.add(name, Reshape(shape=node.shape), known[:1])
            self._wholes[node.name] = whole

    def whole(self, name: str) -> Node:
        """An array with all of its axes."""
        if name not in self._wholes:
            part = self._parts[name]
            shape = (1, *part.shape)
            self._wholes[name] = self.builder.add(part.name, Reshape(shape=shape), [part])
        return self._wholes[name]

    def _part(self, name: str) -> Node:
        if name not in self._parts:
            whole = self._wholes[name]
            shape = whole.shape[1:]
            self._parts[name] = self.builder.add(whole.name, Reshape(shape=shape), [whole])
        return self._parts[name]


def _without_first_axis(operation: Operation, rank: int) -> Operation | None:
    """The operation on arrays that have lost their first axis, of one number; None for one that
    treats it in a way of its own.

    rank: how many axes its result had.
    """
    match operation:
        case Combine() | Function() | Multiply() | PowerSeries():
            return operation
        case Broadcast(shape=shape):
            return Broadcast(shape[1:])
        case Scale(factor=factor, offset=offset):
            return Scale(_numbers(factor, rank), _numbers(offset, rank))
        case Dense() if rank > 1:
            return operation
        case Matmul() if rank > 2:
            return operation
        case Concat(axis=axis) if axis:
            return Concat(axis - 1)
        case Pad(widths=widths) if not any(widths[0]):
            return Pad(widths[1:])
        case Sum(axes=axes) if 0 not in axes:
            return replace(operation, axes=tuple(a - 1 for a in axes))
        case Transpose(axes=axes) if not axes[0]:
            return Transpose(tuple(a - 1 for a in axes[1:]))
        case Slice(start=start, stop=stop, step=step) if (start[0], step[0]) == (0, 1):
            return Slice(start[1:], stop[1:], step[1:])
    return None


def _numbers(value: Array, rank: int) -> Array:
    """What is broadcast to an array, without the axis that it may have for the batch."""
    return np.asarray(value[0]) if np.ndim(value) == rank else value
