"""The manifest of a compiled program: what its client has to know of the graph with levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali._jali import program as _program
from jali.ckks import Params
from jali.compiler.ir.graph import Graph, Node, Shape, peak
from jali.compiler.ir.layouts import Gathered, Layout, Repeated, Skewed
from jali.errors import InternalError
from jali.program.demand import Demand
from jali.program.manifest import Manifest
from jali.program.port import Port

__all__ = ["client_layout", "manifest_of"]


def manifest_of(
    graph: Graph, shapes: Sequence[Shape], params: Params, lanes: int, demand: Demand
) -> Manifest:
    """The manifest of a graph with levels.

    shapes: of the outputs.
    """
    inputs = tuple(_port(node, node.shape) for node in graph.inputs)
    outputs = tuple(_port(graph[name], s) for name, s in zip(graph.outputs, shapes, strict=True))
    return Manifest(params, lanes, inputs, outputs, demand)


def _port(node: Node, shape: Shape) -> Port:
    scaling, size = node.scaling, (node.size,)
    centre, radius = (np.broadcast_to(n, size) for n in (scaling.centre, scaling.radius))
    low, high = scaling.low * radius + centre, scaling.high * radius + centre
    layout, rms, largest = client_layout(node.layout), scaling.rms, peak(node)
    return Port(node.name, shape, layout, centre, radius, low, high, rms, largest, node.level)


def client_layout(layout: Layout) -> _program.Layout:
    """How the client lays an array that the compiler lays so. Shares of a sum (Shared) never leave
    the server."""
    shape, slots = layout.shape, layout.slots
    if isinstance(layout, Gathered):
        return _program.Layout.gathered(
            shape, slots, np.ascontiguousarray(layout.table.ravel(), np.int32)
        )
    if isinstance(layout, Repeated):
        return _program.Layout.repeated(shape, slots, layout.period, layout.width)
    if isinstance(layout, Skewed):
        return _program.Layout.skewed(shape, slots, layout.count, layout.width)
    if type(layout) is not Layout:
        raise InternalError(f"an array of a client cannot lie as {layout}")
    return _program.Layout.grid(shape, slots, layout.period, layout.gap, layout.grid)
