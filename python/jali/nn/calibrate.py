"""Calibration: between which numbers every array of the graph lies.

The examples say it for inputs and for the results of matrices, with a margin. Where the matrix proves less from its inputs'
ranges, the proof counts. Ranges of functions and products follow from those of what they take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali.errors import InvalidArgument
from jali.nn.execute import every_value, iterations
from jali.nn.folded import FOLDED
from jali.nn.graph import Array, Graph, Node
from jali.nn.loop_graph import inputs_at, parts_of
from jali.nn.scalar import FUNCTIONS

__all__ = [
    "ABOVE_ZERO",
    "MARGIN",
    "Range",
    "affine_bounds",
    "calibrate",
    "check_outputs",
    "function_range",
]

#: How far a range reaches beyond what was seen, at both ends, in units of the width that was seen.
MARGIN = 0.5
_LEAST, _MOST = 2.0**-50, 2.0**500  # of outputs; of all numbers, whose squares are doubles
_SAMPLES = 4097  # of a function, to find its range; named functions have at most one turning point between them

#: Functions of numbers above 0.
ABOVE_ZERO = ("inverse", "log", "inverse_sqrt", "sqrt")

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
    ranges: list[_Known] = []
    for node, seen in zip(graph.inputs, examples, strict=True):
        _check_finite(node, seen)
        ranges.append((*_input_range(node, seen, next(declared), margin), True))
    return _calibrated(graph, values, ranges, margin)


_Known = tuple[Array | float, Array | float, bool]  # low, high, proven


def _calibrated(
    graph: Graph, exact: Mapping[str, Array], ranges: Sequence[_Known], margin: float
) -> Graph:
    """The graph for inputs with these ranges. exact: values of its nodes; what is not there is computed."""
    given, values = iter(ranges), dict(exact)
    nodes: dict[str, Node] = {}
    for node in graph:
        if node.name not in values:  # nodes that folding adds around loops
            values[node.name] = FOLDED[node.op].compute(
                [values[name] for name in node.inputs], node.attrs
            )
        seen, sources = values[node.name], [nodes[name] for name in node.inputs]
        _check_finite(node, seen)
        low: Array | float
        high: Array | float
        if node.op == "loop":
            nodes[node.name] = _loop(node, sources, [values[n] for n in node.inputs], margin)
            continue
        if node.op == "input":
            low, high, proven = next(given)
        elif node.op == "products":
            low, high = _widened(seen, margin)
            proven = False
        elif node.op == "affine":
            above = any(u.attrs.get("function") in ABOVE_ZERO for u in graph.users(node.name))
            low, high, proven = _affine_range(node, nodes, seen, margin, above)
        else:
            low, high = _range(node, sources)
            proven = all(source.attrs["proven"] for source in sources)
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


def _loop(node: Node, sources: Sequence[Node], values: Sequence[Array], margin: float) -> Node:
    """A loop whose body knows the ranges of all iterations together, and whose result has those of its parts."""
    known = [_known(n) for n in sources]
    states, found = known[: node.attrs["states"]], []
    for step, (body, inputs, inside) in enumerate(iterations(node, values)):
        ranges = [*states, *(known[k] for k in inputs_at(node, step))]
        ranges = [_of_size(r, port.size) for r, port in zip(ranges, body.inputs, strict=True)]
        exact = {**inside, **{n.name: x for n, x in zip(body.inputs, inputs, strict=True)}}
        found.append(_calibrated(body, exact, ranges, margin))
        states = [_known(found[-1][name]) for name in body.outputs[: len(states)]]
    names = node.attrs["body"].outputs
    parts = [found[step][names[k]] for k, step in parts_of(node.attrs)]
    numbers = {
        key: np.concatenate([np.broadcast_to(n.attrs[key], n.size) for n in parts])
        for key in ("low", "high", "mean", "square")
    }
    body = node.attrs["body"]
    merged = [n.with_attrs(**_merged([graph[n.name] for graph in found])) for n in body]
    return node.with_attrs(
        **numbers,
        largest=max(n.attrs["largest"] for n in parts),
        proven=all(n.attrs["proven"] for n in parts),
        body=Graph(tuple(merged), body.outputs, "calibrate"),
    )


def _known(node: Node) -> _Known:
    return node.attrs["low"], node.attrs["high"], node.attrs["proven"]


def _of_size(known: _Known, size: int) -> _Known:
    low, high, proven = known
    return np.broadcast_to(low, size), np.broadcast_to(high, size), proven


def _merged(nodes: Sequence[Node]) -> dict[str, Any]:
    """What a node of a body knows over all iterations."""
    found: dict[str, Any] = {
        "low": np.min([n.attrs["low"] for n in nodes], axis=0),
        "high": np.max([n.attrs["high"] for n in nodes], axis=0),
        "mean": np.mean([n.attrs["mean"] for n in nodes], axis=0),
        "square": np.mean([n.attrs["square"] for n in nodes], axis=0),
        "largest": max(n.attrs["largest"] for n in nodes),
        "proven": all(n.attrs["proven"] for n in nodes),
    }
    if nodes[0].op == "loop":
        bodies = [n.attrs["body"] for n in nodes]
        inner = [n.with_attrs(**_merged([body[n.name] for body in bodies])) for n in bodies[0]]
        found["body"] = Graph(tuple(inner), bodies[0].outputs, "calibrate")
    return found


def check_outputs(graph: Graph, exact: Mapping[str, Array]) -> None:
    """Raises InvalidArgument for an output whose numbers are all 0, or so small that nothing is left of them: its precision is told of the largest."""
    for name in graph.outputs:
        largest = float(np.abs(exact[name]).max())
        if largest == 0:
            raise InvalidArgument(
                f"the output {name} is 0 for all examples of the calibration, and precision is told of the largest number: give examples for which it is "
                "not, or leave it out of the model"
            )
        if largest < _LEAST:
            raise InvalidArgument(
                f"the numbers of the output {name} are at most {largest:.3g} in the calibration: multiply them by a constant in the model, so that "
                "the largest is near 1"
            )


def _check_finite(node: Node, seen: Array) -> None:
    if not np.all(np.isfinite(seen)):
        raise InvalidArgument(
            f"{node.name}: some examples of the calibration give NaN or infinity here: the function is not "
            "defined for them, or its numbers are too large. Leave these examples out, or scale what is computed before it into the interval on which it is "
            "defined"
        )
    if np.any(np.abs(seen) > _MOST):
        raise InvalidArgument(
            f"{node.name}: some examples of the calibration give numbers above {_MOST:.0e} here: divide by a constant before it, so that the largest is "
            "near 1"
        )


def _input_range(
    node: Node, seen: Array, declared: tuple[Any, Any] | None, margin: float
) -> tuple[Array, Array]:
    """What the client will accept, for each number.

    A vector's numbers have ranges of their own, because features come in different units: each may lie outside of what was
    seen by the margin times its width or the median feature's, whichever is more. Numbers of an array of more axes have one
    range together.
    """
    if declared is not None:
        try:
            low, high = (np.broadcast_to(np.asarray(v, np.float64), node.shape) for v in declared)
        except ValueError:
            shapes = " and ".join(str(np.shape(v)) for v in declared)
            raise InvalidArgument(
                f"the range of {node.name} has ends of the shapes {shapes}: give one number for all, or arrays of the shape {node.shape}"
            ) from None
        if not np.all(np.isfinite(low) & np.isfinite(high) & (low < high)):
            raise InvalidArgument(f"the range of {node.name} needs finite numbers, low < high")
        if np.any(seen < low) or np.any(seen > high):
            raise InvalidArgument(
                f"examples of the calibration lie outside of the range that was declared for {node.name}: widen input_range=, or leave them out"
            )
        return low.ravel(), high.ravel()
    axes = 0 if len(node.shape) == 1 else None
    low, high = (np.broadcast_to(f(seen, axis=axes), node.shape).ravel() for f in (np.min, np.max))
    width = high - low
    room = np.maximum(width, np.median(width)) * margin
    room[room == 0] = max(1.0, float(np.abs(seen).max())) * margin  # every example is the same
    return low - room, high + room


def _affine_range(
    node: Node, nodes: dict[str, Node], seen: Array, margin: float, above: bool
) -> tuple[float, float, bool]:
    """The range of a matrix's result: what was seen, with room at both ends, or what is proven, if that is less.

    above: whether a function of it is defined for numbers above 0 alone. The room below is then on the scale of logarithms, on which
    it never reaches 0.
    """
    sources = [(n.attrs["low"], n.attrs["high"]) for n in (nodes[name] for name in node.inputs)]
    proven_low, proven_high = affine_bounds(node, sources)
    least_seen, (low, high) = float(seen.min()), _widened(seen, margin)
    if above and least_seen > 0:
        low = max(low, least_seen * (least_seen / float(seen.max())) ** margin / (1 + margin))
    if low <= proven_low and proven_high <= high:
        return proven_low, proven_high, all(nodes[n].attrs["proven"] for n in node.inputs)
    return max(low, proven_low), min(high, proven_high), False


def affine_bounds(
    node: Node, sources: Sequence[tuple[Array | float, Array | float]]
) -> tuple[float, float]:
    """What the matrices prove of their result from (low, high) of what they take."""
    least, largest = node.attrs["bias"], node.attrs["bias"]
    for (low, high), single in zip(sources, node.attrs["maps"], strict=True):
        a, b = single.bounds(low, high)
        least, largest = least + a, largest + b
    return float(least.min()), float(largest.max())


def _widened(seen: Array, margin: float) -> Range:
    """What was seen, with room at both ends."""
    low, high = float(seen.min()), float(seen.max())
    room = (high - low) * margin or max(1.0, abs(high)) * margin
    return low - room, high + room


def _range(node: Node, inputs: Sequence[Node]) -> Range:
    """The range of a function or a product, from the ranges of what it takes."""
    ends = [(float(np.min(n.attrs["low"])), float(np.max(n.attrs["high"]))) for n in inputs]
    return function_range(node, ends)


def function_range(node: Node, ends: Sequence[Range]) -> Range:
    """The range of a function or a product of numbers between these ends."""
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
        if name in ABOVE_ZERO and ends[0][0] <= 0:
            raise InvalidArgument(
                f"{node.name}: {name} is computed on an interval above 0, and its numbers may lie in "
                f"[{ends[0][0]:.3g}, {ends[0][1]:.3g}] with the margin: add a constant to them, declare input_range=, or take a "
                "smaller margin="
            )
        y = FUNCTIONS[name](x)
    return float(y.min()), float(y.max())
