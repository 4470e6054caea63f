"""A traced graph of a batch of one, without the axis of the batch.

Layouts take the first axis of an array for its channels, so that an image has to be (channels,
*sizes) and not (1, channels, *sizes). Operations that treat the first axis like no other lose it.
The others keep it, between two reshapes, which folding leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.traced_ops import Attrs

__all__ = ["unbatched"]

Rule = Callable[[Attrs], dict[str, Any] | None]


def unbatched(graph: Graph, labels: Mapping[str, str]) -> Graph:
    """The same function. labels: what the nodes are named after, by their names."""
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
        if node.op == "reshape":
            self._reshape(node, name)
            return
        attrs = dict(node.attrs)
        lost = self._lost(node)
        if lost is not None:
            inputs = [self._part(source) for source in node.inputs]
            self._parts[node.name] = self.builder.add(name, node.op, inputs, **lost)
            return
        inputs = [self.whole(source) for source in node.inputs]
        self._wholes[node.name] = self.builder.add(name, node.op, inputs, **attrs)

    def _lost(self, node: Node) -> dict[str, Any] | None:
        """The attributes without the first axis; None if the operation needs it."""
        rule = _RULES.get(node.op)
        if rule is None or node.shape[:1] != (1,):
            return None
        if any(not self._has_part(source) for source in node.inputs):
            return None
        return rule({**node.attrs, "rank": len(node.shape)})

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
            self._parts[node.name] = self.builder.add(name, "reshape", known[:1], shape=shape)
        else:
            whole = self.builder.add(name, "reshape", known[:1], shape=node.shape)
            self._wholes[node.name] = whole

    def whole(self, name: str) -> Node:
        """An array with all of its axes."""
        if name not in self._wholes:
            part = self._parts[name]
            shape = (1, *part.shape)
            self._wholes[name] = self.builder.add(part.name, "reshape", [part], shape=shape)
        return self._wholes[name]

    def _part(self, name: str) -> Node:
        if name not in self._parts:
            whole = self._wholes[name]
            shape = whole.shape[1:]
            self._parts[name] = self.builder.add(whole.name, "reshape", [whole], shape=shape)
        return self._parts[name]


def _numbers(value: Any, rank: int) -> Any:
    """What is broadcast to an array, without the axis that it may have for the batch."""
    return value[0] if np.ndim(value) == rank else value


def _same(attrs: Attrs) -> dict[str, Any]:
    return {k: v for k, v in attrs.items() if k != "rank"}


def _scale(attrs: Attrs) -> dict[str, Any]:
    return {k: _numbers(attrs[k], attrs["rank"]) for k in ("factor", "offset")}


def _dense(attrs: Attrs) -> dict[str, Any] | None:
    return _same(attrs) if attrs["rank"] > 1 else None


def _sum(attrs: Attrs) -> dict[str, Any] | None:
    if 0 in attrs["axes"]:
        return None
    return _same(attrs) | {"axes": tuple(a - 1 for a in attrs["axes"])}


def _transpose(attrs: Attrs) -> dict[str, Any] | None:
    order = attrs["axes"]
    return None if order[0] else {"axes": tuple(a - 1 for a in order[1:])}


def _slice(attrs: Attrs) -> dict[str, Any] | None:
    if (attrs["start"][0], attrs["step"][0]) != (0, 1):
        return None
    return {k: attrs[k][1:] for k in ("start", "stop", "step")}


def _concat(attrs: Attrs) -> dict[str, Any] | None:
    return {"axis": attrs["axis"] - 1} if attrs["axis"] else None


_RULES: dict[str, Rule] = {
    "broadcast": lambda attrs: {"shape": attrs["shape"][1:]},
    "combine": _same,
    "concat": _concat,
    "dense": _dense,
    "function": _same,
    "matmul": lambda attrs: {} if attrs["rank"] > 2 else None,
    "multiply": _same,
    "pad": lambda attrs: {"widths": attrs["widths"][1:]} if not any(attrs["widths"][0]) else None,
    "polynomial": _same,
    "scale": _scale,
    "slice": _slice,
    "sum": _sum,
    "transpose": _transpose,
}
