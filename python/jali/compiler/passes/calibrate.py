"""Calibration: between which numbers every array of the graph lies.

The examples say it for inputs and for the results of matrices, with a margin. Where the matrix
proves less from its inputs' ranges, the proof counts. Ranges of functions and products follow from
those of what they take. If only proofs are to count, the ranges of all arrays follow from those of
the inputs, by interval arithmetic.

In: a folded graph and examples. Out: the graph, whose nodes have a Range.

>>> examples = np.array([[-1.0, 0.5], [1.0, 1.5]])
>>> graph = fold(nn.trace(lambda x: x * x, examples[0]))
>>> x, square = calibrate(graph, [examples], margin=0.5)
>>> x.range.low, x.range.high
(array([-2.  , -0.25]), array([2.  , 2.25]))
>>> square.range.low, square.range.high, square.range.proven
(0.0, 5.0625, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.execute import iterations, seen_values
from jali.compiler.ir.facts import Range
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import Loop, inputs_at
from jali.compiler.ir.operation import Input
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.scalar import ABOVE_ZERO, FUNCTIONS, undefined
from jali.compiler.ir.seen import Seen, Values
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries, function_of
from jali.compiler.passes.function_domains import (
    factors_of_arguments,
    has_own,
    shared_arguments,
    sources_of_own,
    with_own,
)
from jali.compiler.passes.intervals import products_range, relied
from jali.compiler.passes.limits import LARGEST, LEAST_WIDTH, MOST_WEIGHT, too_large
from jali.errors import InternalError, InvalidArgument

__all__ = [
    "MARGIN",
    "Ends",
    "Sides",
    "affine_bounds",
    "calibrate",
    "check_outputs",
    "function_range",
    "input_range",
]

#: How far a range reaches beyond what was seen, at both ends, in units of the width that was seen.
MARGIN = 0.5
_EQUAL = 2.0**-20
_ROUNDED = 2.0**-40  # part of a bound by which roundings do not carry it over another one
_LEAST = 2.0**-50  # of outputs
#: Samples of a function that find its range: between two of them, named functions have at most
#: one turning point.
_SAMPLES = 4097

Ends = tuple[float, float]  # the least and the largest number of an array
Sides = Mapping[str, npt.NDArray[np.bool_]]  # which numbers of inputs stay on their side of 0


def calibrate(
    graph: Graph,
    examples: Sequence[Array],
    *,
    margin: float = MARGIN,
    proven: bool = False,
    input_ranges: Sequence[tuple[Any, Any] | None] | None = None,
    exact: Values | None = None,
    sides: Sides | None = None,
) -> Graph:
    """The same graph; every node has its range, for each number of an input or a loop, and for each
    array otherwise.

    proven: whether only proofs count: no array leaves its range then, whatever numbers in their
        ranges the inputs have.
    input_ranges: for each input, (low, high) that the user knows, of one number for all or one for
        each; None for examples.
    exact: the value of every node or its summary, as seen_values gives them, if they are known
        already.
    sides: which numbers of inputs without a declared range stay on the side of 0 on which they were
        seen, by the names of the inputs.

    Raises InvalidArgument, which names the node, for numbers that are not finite, and for ranges
    that proofs do not bound.
    """
    large = too_large(graph, MOST_WEIGHT)
    if large is not None:
        raise InvalidArgument(
            f"{large} are above {MOST_WEIGHT:.0e}: divide by a constant before, so that the largest is near 1"
        )
    values = seen_values(graph, examples) if exact is None else dict(exact)
    declared = input_ranges or [None] * len(graph.inputs)
    ranges: list[_Known] = []
    functions = any(map(function_of, graph))
    factors = factors_of_arguments(graph) if functions else {}
    for node, seen, pair in zip(graph.inputs, examples, declared, strict=True):
        _check_finite(node, seen)
        none = np.zeros(node.size, np.bool_)
        is_factor, stays = factors.get(node.name, none), (sides or {}).get(node.name, none)
        ranges.append((*input_range(node, seen, pair, margin, is_factor, stays), True))

    def copied(names: set[str]) -> Graph:
        """The graph with copies before these functions. Adds the summaries of copies to the values;
        other copies are computed."""
        for copy, source in sources_of_own(graph, names).items():
            if isinstance(values[source], Seen):
                values[copy] = values[source]
        return with_own(graph, names)

    graph = copied(shared_arguments(graph)) if functions else graph
    room = math.inf if proven else margin
    while True:
        touching: set[str] = set()
        made = _calibrated(graph, values, ranges, room, touching)
        if not touching:
            break
        graph = copied(touching)
    if not functions:
        return made
    kept = _within_functions(made, ranges, examples, [pair is None for pair in declared])
    return made if kept is ranges else _calibrated(graph, values, kept, room, touching)


_Known = tuple[Array | float, Array | float, bool]  # low, high, proven


def _within_functions(
    made: Graph, ranges: list[_Known], examples: Sequence[Array], free: Sequence[bool]
) -> list[_Known]:
    """The ranges of inputs without those numbers that would lead a function of them out of its
    interval, as log(1 + x) for an x whose margin is larger than that of 1 + x. Clients then refuse
    them.

    free: which inputs have no range that was declared.
    """
    known, found, narrower = relied(made), list[_Known](), False
    for node, seen, (low, high, _), is_free in zip(
        made.inputs, examples, ranges, free, strict=True
    ):
        if is_free and node.name in known:
            flat = seen.reshape(len(seen), -1)
            least, most = known[node.name]
            finite = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in (least, most))
            least, most = least + _ROUNDED * next(finite), most - _ROUNDED * next(finite)
            low = np.maximum(low, np.minimum(least, flat.min(0)))
            high = np.minimum(high, np.maximum(most, flat.max(0)))
            narrower |= bool(np.any(low > node.range.low) or np.any(high < node.range.high))
        found.append((low, high, True))
    return found if narrower else ranges


def _calibrated(
    graph: Graph,
    exact: Values,
    ranges: Sequence[_Known],
    margin: float,
    touching: set[str],
) -> Graph:
    """The graph for inputs with these ranges.

    exact: values of its nodes; what is not there is computed.
    margin: infinite if only proofs count.
    touching: takes the functions that are not defined in the whole range of their argument, and
        need a copy of it, see jali.compiler.passes.function_domains.
    """
    given, values = iter(ranges), dict(exact)
    nodes: dict[str, Node] = {}
    for node in graph:
        if node.name not in values:  # nodes that folding adds around loops, and copies of arguments
            taken = [_whole(values, name) for name in node.inputs]
            values[node.name] = node.operation.compute(taken)
        seen, sources = values[node.name], [nodes[name] for name in node.inputs]
        _check_finite(node, seen)
        low: Array | float
        high: Array | float
        if isinstance(node.operation, Loop):
            given_values = [_whole(values, name) for name in node.inputs]
            nodes[node.name] = _loop(node, sources, given_values, margin)
            continue
        if isinstance(node.operation, Input):
            low, high, proven = next(given)
        elif isinstance(node.operation, MatrixProduct):
            low, high = _with_margin(seen, margin)
            proven = math.isinf(margin)
            if proven:
                low, high = products_range(node.operation, list(map(_ends, sources)))
        elif isinstance(node.operation, Affine):
            named = {function_of(user) for user in graph.users(node.name)}
            away = not named.isdisjoint(ABOVE_ZERO)
            low, high, proven = _affine_range(node, nodes, seen, margin, away)
        elif _is_undefined(node, sources) and not has_own(node):
            touching.add(node.name)  # and the graph is calibrated once more
            low, high = _with_margin(seen, min(margin, MARGIN))
            proven = False
        else:
            low, high = _range(node, sources, margin)
            proven = all(source.range.proven for source in sources)
        if not (np.all(np.abs(low) <= LARGEST) and np.all(np.abs(high) <= LARGEST)):
            raise InvalidArgument(
                f'{node.name}: nothing proves that its numbers stay below {LARGEST:.0e}, whatever the inputs are: take ranges="seen", or smaller ranges '
                "of the inputs by input_range="
            )
        mean, square, largest = _statistics(seen, each=isinstance(node.operation, Input))
        known = Range(
            low=low,
            high=high,
            mean=mean,
            square=square,
            largest=max(largest, 2.0**-40),
            proven=proven,
        )
        nodes[node.name] = node.with_facts(range=known)
    return Graph(tuple(nodes.values()), graph.outputs, "calibrate")


def _whole(values: Values, name: str) -> Array:
    """The value of a node. Raises InternalError if only its summary was kept."""
    found = values[name]
    if isinstance(found, Seen):
        raise InternalError(f"the values of {name} are needed, and were not kept")
    return found


def _statistics(seen: Array | Seen, *, each: bool) -> tuple[Array | float, Array | float, float]:
    """The mean, the mean of squares, and the largest modulus.

    each: whether the means are those of every number.
    """
    if isinstance(seen, Seen):
        return seen.total / seen.count, seen.squares / seen.count, seen.largest
    flat, axis = seen.reshape(len(seen), -1), 0 if each else None
    return flat.mean(axis), np.square(flat).mean(axis), float(np.abs(seen).max())


def _loop(node: Node, sources: Sequence[Node], values: Sequence[Array], margin: float) -> Node:
    """A loop whose body knows the ranges of all iterations together, and whose result has those of
    its parts."""
    body = Loop.of(node).body
    node = node.with_operation(body=with_own(body, shared_arguments(body, body=True)))
    while True:
        touching: set[str] = set()
        found = _iterations(node, sources, values, margin, touching)
        if not touching:
            break
        node = node.with_operation(body=with_own(Loop.of(node).body, touching))
    loop = Loop.of(node)
    parts = [found[step][loop.body.outputs[k]] for k, step in loop.parts]

    def joined(number: Callable[[Range], Array | float]) -> Array:
        return np.concatenate([np.broadcast_to(number(n.range), n.size) for n in parts])

    known = Range(
        low=joined(lambda r: r.low),
        high=joined(lambda r: r.high),
        mean=joined(lambda r: r.mean),
        square=joined(lambda r: r.square),
        largest=max(n.range.largest for n in parts),
        proven=all(n.range.proven for n in parts),
    )
    return node.with_operation(body=_merged_body(loop.body, found)).with_facts(range=known)


def _iterations(
    node: Node, sources: Sequence[Node], values: Sequence[Array], margin: float, touching: set[str]
) -> list[Graph]:
    """The calibrated body of every iteration."""
    known = [_known(n) for n in sources]
    states, found = known[: Loop.of(node).states], list[Graph]()
    for step, (body, inputs, inside) in enumerate(iterations(node, values)):
        ranges = [*states, *(known[k] for k in inputs_at(node, step))]
        ranges = [_of_size(r, port.size) for r, port in zip(ranges, body.inputs, strict=True)]
        exact = {**inside, **{n.name: x for n, x in zip(body.inputs, inputs, strict=True)}}
        found.append(_calibrated(body, exact, ranges, margin, touching))
        states = [_known(found[-1][name]) for name in body.outputs[: len(states)]]
    return found


def _known(node: Node) -> _Known:
    return node.range.low, node.range.high, node.range.proven


def _of_size(known: _Known, size: int) -> _Known:
    low, high, proven = known
    return np.broadcast_to(low, size), np.broadcast_to(high, size), proven


def _merged_body(body: Graph, found: Sequence[Graph]) -> Graph:
    """The body with what its nodes know over all iterations, in which it is `found`."""
    nodes = (_merged(n, [graph[n.name] for graph in found]) for n in body)
    return Graph(tuple(nodes), body.outputs, "calibrate")


def _merged(node: Node, found: Sequence[Node]) -> Node:
    """A node of a body with what it knows over all iterations, in which it is `found`."""
    ranges = [n.range for n in found]
    known = Range(
        low=np.array([r.low for r in ranges]).min(axis=0),
        high=np.array([r.high for r in ranges]).max(axis=0),
        mean=np.array([r.mean for r in ranges]).mean(axis=0),
        square=np.array([r.square for r in ranges]).mean(axis=0),
        largest=max(r.largest for r in ranges),
        proven=all(r.proven for r in ranges),
    )
    if isinstance(node.operation, Loop):
        bodies = [Loop.of(n).body for n in found]
        node = node.with_operation(body=_merged_body(bodies[0], bodies))
    return node.with_facts(range=known)


def check_outputs(graph: Graph, exact: Mapping[str, Array]) -> None:
    """Raises InvalidArgument for an output whose numbers are all 0, or so small that nothing is
    left of them: its precision is told of the largest."""
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


def _check_finite(node: Node, seen: Array | Seen) -> None:
    if not (seen.is_finite if isinstance(seen, Seen) else np.all(np.isfinite(seen))):
        raise InvalidArgument(
            f"{node.name}: some examples of the calibration give NaN or infinity here: the function is not "
            "defined for them, or its numbers are too large. Leave these examples out, or scale what is computed before it into the interval on which it is "
            "defined"
        )
    if (seen.largest if isinstance(seen, Seen) else np.abs(seen).max()) > LARGEST:
        raise InvalidArgument(
            f"{node.name}: some examples of the calibration give numbers above {LARGEST:.0e} here: divide by a constant before it, so that the largest is "
            "near 1"
        )


def input_range(
    node: Node,
    seen: Array,
    declared: tuple[Any, Any] | None,
    margin: float,
    factors: npt.NDArray[np.bool_],
    stays: npt.NDArray[np.bool_],
) -> tuple[Array, Array]:
    """What a client will accept, for each number.

    A vector's numbers have ranges of their own, because features come in different units: each may
    lie outside of what was seen by the margin times its width or the median feature's, whichever is
    more. Numbers of an array of more axes have one range together.

    factors: which numbers make a function undefined by being 0. If they were seen on one side of 0,
        their range lies there.
    stays: which numbers have a range that ends at 0, if they were seen on one side of it.
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
        if np.any(high - low < LEAST_WIDTH):
            raise InvalidArgument(
                f"the range of {node.name} is narrower than {LEAST_WIDTH:.0e}: multiply what you encrypt by a constant, so that the largest is near 1"
            )
        if np.any(np.maximum(np.abs(low), np.abs(high)) > LARGEST):
            raise InvalidArgument(
                f"the range of {node.name} reaches beyond {LARGEST:.0e}: declare a smaller one, and divide what you encrypt by a constant"
            )
        if np.any(seen < low) or np.any(seen > high):
            raise InvalidArgument(
                f"examples of the calibration lie outside of the range that was declared for {node.name}: widen input_range=, or leave them out"
            )
        low, high = low.ravel(), high.ravel()
        if np.any(factors & (low <= 0) & (high >= 0)):
            raise InvalidArgument(
                f"the range that was declared for {node.name} holds 0, for which a function in the model has no value: declare one that lies above 0"
            )
        return low, high
    axes = 0 if len(node.shape) == 1 else None
    low, high = (np.broadcast_to(f(seen, axis=axes), node.shape).ravel() for f in (np.min, np.max))
    width = high - low
    room = np.maximum(width, np.median(width)) * margin
    room[room == 0] = max(1.0, float(np.abs(seen).max())) * margin  # every example is the same
    above, below = _towards_0(low, high, margin), -_towards_0(-high, -low, margin)
    if np.any(width + room < LEAST_WIDTH):
        raise InvalidArgument(
            f"some numbers of {node.name} are equal in all examples, or differ by less than {LEAST_WIDTH:.0e}: declare input_range=, give a margin above 0, or "
            "multiply what you encrypt by a constant, so that the largest is near 1"
        )
    least = np.where(stays & (low >= 0), np.maximum(low - room, 0.0), low - room)
    most = np.where(stays & (high <= 0), np.minimum(high + room, 0.0), high + room)
    least = np.where(factors & (low > 0), np.maximum(least, above), least)
    most = np.where(factors & (high < 0), np.minimum(most, below), most)
    return least, most


def _towards_0(low: Any, high: Any, margin: float) -> Array:
    """The end of a range that leaves room below positive numbers on the scale of logarithms, on
    which it never reaches 0; NaN for others."""
    with np.errstate(all="ignore"):
        return np.asarray(low * (low / high) ** margin / (1 + margin))


def _affine_range(
    node: Node, nodes: dict[str, Node], seen: Array | Seen, margin: float, away: bool
) -> tuple[float, float, bool]:
    """The range of a matrix's result: what was seen, with room at both ends, or what is proven, if
    that is less.

    away: whether a function of it is not defined at 0. The room on that side is then on the scale
        of logarithms.
    """
    sources = [(n.range.low, n.range.high) for n in (nodes[name] for name in node.inputs)]
    proven_low, proven_high = affine_bounds(node, sources)
    low, high = _with_margin(seen, margin)
    least, most = float(seen.min()), float(seen.max())
    away = away and math.isfinite(margin)
    if away and least > 0:
        low = max(low, float(_towards_0(least, most, margin)))
    if away and most < 0:
        high = min(high, -float(_towards_0(-most, -least, margin)))
    if low <= proven_low and proven_high <= high:
        return proven_low, proven_high, all(nodes[n].range.proven for n in node.inputs)
    return max(low, proven_low), min(high, proven_high), False


def affine_bounds(
    node: Node, sources: Sequence[tuple[Array | float, Array | float]]
) -> tuple[float, float]:
    """What the matrices prove of their result from (low, high) of what they take."""
    affine = Affine.of(node)
    least, largest = affine.bias, affine.bias
    for (low, high), single in zip(sources, affine.maps, strict=True):
        a, b = single.bounds(low, high)
        least, largest = least + a, largest + b
    return float(least.min()), float(largest.max())


def _with_margin(seen: Array | Seen, margin: float) -> Ends:
    """What was seen, with room at both ends."""
    low, high = float(seen.min()), float(seen.max())
    # Numbers that differ by roundings alone are one number, and a scale in which they differ would
    # multiply by 2^50.
    width = high - low if high - low > _EQUAL * max(abs(low), abs(high)) else 0.0
    room = (width or max(1.0, abs(high))) * margin
    return low - room, high + room


def _range(node: Node, inputs: Sequence[Node], margin: float) -> Ends:
    """The range of a function or a product, from the ranges of what it takes."""
    if _is_undefined(node, inputs):
        name, (low, high) = function_of(node), _ends(inputs[0])
        raise InvalidArgument(
            f"{node.name}: {name} is computed on an interval above 0, and its numbers may lie in "
            f"[{low:.3g}, {high:.3g}] with the margin: add a constant to them, declare input_range=, or take a "
            + ("smaller margin=" if math.isfinite(margin) else 'smaller margin= or ranges="seen"')
        )
    return function_range(node, list(map(_ends, inputs)))


def _is_undefined(node: Node, inputs: Sequence[Node]) -> bool:
    """Whether it is a function that has no value for some of its numbers."""
    name = function_of(node)
    return bool(name) and undefined(name, *_ends(inputs[0]))


def _ends(node: Node) -> Ends:
    return float(np.min(node.range.low)), float(np.max(node.range.high))


def function_range(node: Node, ends: Sequence[Ends]) -> Ends:
    """The range of a function or a product of numbers between these ends."""
    if isinstance(node.operation, Multiply):
        products = [a * b for a in ends[0] for b in ends[1]]
        if node.inputs[0] == node.inputs[1]:
            return (0.0 if ends[0][0] <= 0 <= ends[0][1] else min(products)), max(products)
        return min(products), max(products)
    x = np.linspace(*ends[0], _SAMPLES)
    if isinstance(node.operation, PowerSeries):
        y = np.polynomial.polynomial.polyval(x, np.asarray(node.operation.coefficients))
    else:
        y = FUNCTIONS[Function.of(node).function](x)
    return float(y.min()), float(y.max())
