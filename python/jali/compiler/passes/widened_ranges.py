"""Ranges that also hold when functions are replaced by approximations.

Calibration says between which numbers the arrays of the exact graph lie, and some of these ranges
are proven: a sum of ReLUs is never below 0. That of their approximations may be, by as much as each
of them is off. So every range that follows from those of functions gets room for their errors. A
range that was seen, not proven, has its margin for that.

In: a calibrated graph, and the error of its functions. Out: the graph with wider ranges.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> graph = calibrate(fold(nn.trace(np.tanh, examples[0])), [examples])
>>> graph.nodes[-1].range.high < widened(graph, 0.1).nodes[-1].range.high
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jali.compiler.ir.folded_ops import Affine, error_of
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import Loop
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.scalar import COMPOSITIONS, HOMOGENEOUS, undefined
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries, function_of
from jali.compiler.passes.calibrate import affine_bounds, function_range
from jali.compiler.passes.composite import sign
from jali.compiler.passes.intervals import products_range
from jali.errors import InvalidArgument

__all__ = ["TooCoarse", "widened"]

_SAME = 1e-9  # of a range's size: by less than that do equal bounds differ

Range = tuple[Array | float, Array | float]


class TooCoarse(InvalidArgument):
    """The errors of approximations may lead the argument of a function of positive numbers to 0 or
    below."""


def widened(graph: Graph, error: float) -> Graph:
    """The calibrated graph with ranges that hold if every function is off by at most `error` of its
    largest value.

    Functions that keep the scale of what they take, and products, whose scale is that of their
    factors, may leave low and high: `beyond` says by how much at most. Loops, and what they take,
    keep the ranges of all their iterations.
    """
    nodes: dict[str, Node] = {}
    ranges: dict[str, Range] = {}  # of what is computed
    for node in graph:
        sources = [ranges[name] for name in node.inputs]
        kept = any(isinstance(user.operation, Loop) for user in graph.users(node.name))
        made, found = node, (node.range.low, node.range.high)
        if isinstance(node.operation, Affine) and not kept:
            found = _affine(node, graph, sources)
            made = node.with_range(low=found[0], high=found[1])
        elif isinstance(node.operation, Multiply) and not kept:
            found = _product(node, sources)
            own = _product(node, [(n.range.low, n.range.high) for n in _of(nodes, node)])
            beyond = max(0.0, own[0] - found[0], found[1] - own[1])
            made = node.with_range(low=own[0], high=own[1], beyond=beyond)
        elif isinstance(node.operation, MatrixProduct) and node.range.proven and not kept:
            found = products_range(node.operation, [_ends(source) for source in sources])
            made = node.with_range(low=found[0], high=found[1])
        elif isinstance(node.operation, Function | PowerSeries) and not kept:
            made, found = _function(node, sources[0], error_of(error, node.name))
        nodes[node.name], ranges[node.name] = made, found
    return Graph(tuple(nodes.values()), graph.outputs, graph.stage)


def _of(nodes: Mapping[str, Node], node: Node) -> list[Node]:
    return [nodes[name] for name in node.inputs]


def _ends(source: Range) -> tuple[float, float]:
    return float(np.min(source[0])), float(np.max(source[1]))


def _affine(node: Node, graph: Graph, sources: Sequence[Range]) -> tuple[float, float]:
    """The range of a matrix's result. Where its end is what is proven of the exact sources, it
    becomes what is proven of the approximated ones."""
    low, high = float(node.range.low), float(node.range.high)
    exact = [(n.range.low, n.range.high) for n in (graph[name] for name in node.inputs)]
    was, now = (affine_bounds(node, of) for of in (exact, sources))
    near = _SAME * (high - low)
    return (
        min(low, now[0]) if abs(low - was[0]) <= near else low,
        max(high, now[1]) if abs(high - was[1]) <= near else high,
    )


def _product(node: Node, sources: Sequence[Range]) -> tuple[float, float]:
    return function_range(node, [_ends(source) for source in sources])


def _function(node: Node, source: Range, error: float) -> tuple[Node, Range]:
    """The node, and the range of what is computed."""
    name, ends = function_of(node), _ends(source)
    if name == "sqrt":  # near 0, it is approximated as the root of max(x, 0)
        ends = max(0.0, ends[0]), ends[1]
    if undefined(name, *ends):
        raise TooCoarse(
            f"{node.name}: {name} is computed on an interval above 0, and errors of approximations lead to [{ends[0]:.3g}, {ends[1]:.3g}]: add a "
            "constant to its numbers, or ask for more precision_bits"
        )
    low, high = function_range(node, [ends])
    if isinstance(node.operation, PowerSeries):
        return node.with_range(low=low, high=high), (low, high)
    if name in HOMOGENEOUS:
        part = sign(COMPOSITIONS[name]).relu_error if name in COMPOSITIONS else error
        off = part * max(map(abs, ends))
        return node.with_range(low=low, high=high), (low - off, high + off)
    off = error * max(abs(low), abs(high)) / (1 - error)
    return node.with_range(low=low - off, high=high + off), (low - off, high + off)
