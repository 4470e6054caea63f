"""Calibration: between which numbers every array of the graph lies.

The examples say it for inputs and for the results of matrices, with a margin. Where the matrix proves less from its inputs'
ranges, the proof counts. Ranges of functions and products follow from those of what they take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali.errors import InvalidArgument
from jali.nn.execute import every_value
from jali.nn.graph import Array, Graph, Node
from jali.nn.scalar import FUNCTIONS

__all__ = ["MARGIN", "Range", "calibrate"]

#: How far a range reaches beyond what was seen, at both ends, in units of the width that was seen.
MARGIN = 0.5
_SAMPLES = 4097  # of a function, to find its range; named functions have at most one turning point between them

Range = tuple[float, float]


def calibrate(
    graph: Graph,
    examples: Sequence[Array],
    *,
    margin: float = MARGIN,
    input_ranges: Sequence[tuple[Any, Any] | None] | None = None,
    exact: Mapping[str, Array] | None = None,
) -> Graph:
    """The same graph; every node has the attributes low, high, mean and square (the mean of squares), for each number of an
    input and for each array otherwise; largest, the largest modulus seen; and proven, which says whether the range follows
    from those of the inputs alone.

    input_ranges: for each input, (low, high) that the user knows, of one number for all or one for each; None for examples.
    exact: the value of every node, if the traced graph has computed them, which takes less time.
    Raises InvalidArgument, which names the node, for numbers that are not finite.
    """
    values = every_value(graph, examples) if exact is None else exact
    declared = iter(input_ranges or [None] * len(graph.inputs))
    nodes: dict[str, Node] = {}
    for node in graph:
        seen = values[node.name]
        if not np.all(np.isfinite(seen)):
            raise InvalidArgument(
                f"{node.name}: some examples of the calibration give NaN or infinity here: the function is not "
                "defined for them, or its numbers are too large"
            )
        low: Array | float
        high: Array | float
        if node.op == "input":
            low, high = _input_range(node, seen, next(declared), margin)
            proven = True
        elif node.op == "affine":
            low, high, proven = _affine_range(node, nodes, seen, margin)
        else:
            low, high = _range(node, [nodes[name] for name in node.inputs])
            proven = all(nodes[name].attrs["proven"] for name in node.inputs)
        flat, axis = seen.reshape(len(seen), -1), 0 if node.op == "input" else None
        nodes[node.name] = node.with_attrs(
            low=low,
            high=high,
            mean=flat.mean(axis),
            square=np.square(flat).mean(axis),
            largest=max(float(np.abs(seen).max()), 2.0**-40),
            proven=proven,
        )
    return Graph(tuple(nodes.values()), graph.outputs, "calibrate")


def _input_range(
    node: Node, seen: Array, declared: tuple[Any, Any] | None, margin: float
) -> tuple[Array, Array]:
    """What the client will accept, for each number.

    A vector's numbers have ranges of their own, because features come in different units: each may lie outside of what was
    seen by the margin times its width or the median feature's, whichever is more. Numbers of an array of more axes have one
    range together.
    """
    if declared is not None:
        low, high = (np.broadcast_to(np.asarray(v, np.float64), node.shape) for v in declared)
        if not np.all(np.isfinite(low) & np.isfinite(high) & (low < high)):
            raise InvalidArgument(f"the range of {node.name} needs finite numbers, low < high")
        if np.any(seen < low) or np.any(seen > high):
            raise InvalidArgument(
                f"examples of the calibration lie outside of the range that was declared for {node.name}"
            )
        return low.ravel(), high.ravel()
    axes = 0 if len(node.shape) == 1 else None
    low, high = (np.broadcast_to(f(seen, axis=axes), node.shape).ravel() for f in (np.min, np.max))
    width = high - low
    room = np.maximum(width, np.median(width)) * margin
    room[room == 0] = max(1.0, float(np.abs(seen).max())) * margin  # every example is the same
    return low - room, high + room


def _affine_range(
    node: Node, nodes: dict[str, Node], seen: Array, margin: float
) -> tuple[float, float, bool]:
    least, largest = node.attrs["bias"], node.attrs["bias"]
    for name, single in zip(node.inputs, node.attrs["maps"], strict=True):
        source = nodes[name]
        bounds = [np.broadcast_to(source.attrs[k], (source.size,)) for k in ("low", "high")]
        a, b = single.bounds(*bounds)
        least, largest = least + a, largest + b
    proven_low, proven_high = float(least.min()), float(largest.max())
    low, high = float(seen.min()), float(seen.max())
    room = (high - low) * margin or max(1.0, abs(high)) * margin
    low, high = low - room, high + room
    if low <= proven_low and proven_high <= high:
        return proven_low, proven_high, all(nodes[n].attrs["proven"] for n in node.inputs)
    return max(low, proven_low), min(high, proven_high), False


def _range(node: Node, inputs: Sequence[Node]) -> Range:
    """The range of a function or a product, from the ranges of what it takes."""
    ends = [(float(np.min(n.attrs["low"])), float(np.max(n.attrs["high"]))) for n in inputs]
    if node.op == "multiply":
        products = [a * b for a in ends[0] for b in ends[1]]
        if node.inputs[0] == node.inputs[1]:
            return (0.0 if ends[0][0] <= 0 <= ends[0][1] else min(products)), max(products)
        return min(products), max(products)
    x = np.linspace(*ends[0], _SAMPLES)
    if node.op == "polynomial":
        y = np.polynomial.polynomial.polyval(x, np.asarray(node.attrs["coefficients"]))
    else:
        name = node.attrs["function"]
        if name in ("inverse", "log", "inverse_sqrt", "sqrt") and ends[0][0] <= 0:
            raise InvalidArgument(
                f"{node.name}: {name} is computed on an interval above 0, and its numbers may lie in "
                f"[{ends[0][0]:.3g}, {ends[0][1]:.3g}] with the margin: add a constant to them, declare input_range=, or take a "
                "smaller margin="
            )
        y = FUNCTIONS[name](x)
    return float(y.min()), float(y.max())
