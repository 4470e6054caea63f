"""Intervals: between which numbers every number of every array of a calibrated graph lies, by
interval arithmetic.

The ranges of the inputs are those that clients keep to. Beside them, a function relies on its
argument: it is approximated on an interval, outside of which the polynomial means nothing, and what
follows from it neither. So whoever asks for the interval of an array may take it for granted that
the arguments of functions lie where these are approximated (``relied``).

What calibration has seen beyond that is not used: a number may leave what was seen without any
function noticing.

In: a calibrated graph. Out: the least and the largest number of every array, by the names of nodes.

>>> examples = np.array([[-1.0, 1.0], [1.0, 3.0]])
>>> graph = calibrate(fold(nn.trace(lambda x: x * x, examples[0])), [examples], margin=0.0)
>>> low, high = intervals(graph)["multiply"]
>>> low.tolist(), high.tolist()
([0.0, 1.0], [1.0, 9.0])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.operation import Input
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.scalar import ABOVE_ZERO, FUNCTIONS
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries, function_of
from jali.compiler.passes.function_domains import is_around_zero

__all__ = ["Interval", "intervals", "products_range", "relied"]

Interval = tuple[Array, Array]  # the least and the largest of every number of an array (size,)

_DECREASING = ("inverse", "inverse_sqrt")
#: Where functions that fall and then rise have their least value.
_LEAST_AT = {
    "absolute": 0.0,
    "cosh": 0.0,
    "silu": -1.2784645427610738,
    "gelu": -0.7517915246935645,
    "gelu_tanh": -0.7524614220710163,
    "mish": -1.1924312145154093,
}
_WAVES = ("sin", "cos")
#: What undoes functions; all but the logarithm have results from 0.
_BACK: dict[str, Callable[[Array], Array]] = {
    "square": np.sqrt,
    "sqrt": np.square,
    "inverse": np.reciprocal,
    "inverse_sqrt": lambda y: np.asarray(np.reciprocal(np.square(y))),
    "exp": np.log,
    "log": np.exp,
}
_OF_ALL = ("exp",)  # the others are undone for numbers above 0
#: The most entries of a matrix for which the numbers of its argument have intervals of their own.
_MOST_ENTRIES = 1 << 22


def intervals(graph: Graph, known: Mapping[str, Interval] | None = None) -> dict[str, Interval]:
    """The interval of every node of a calibrated graph.

    known: intervals in which arrays lie besides, see ``relied``.
    """
    found: dict[str, Interval] = {}
    with np.errstate(all="ignore"):
        for node in graph:
            low, high = _of_node(node, [found[name] for name in node.inputs])
            # Infinity minus infinity, or times 0: nothing is known.
            low, high = (
                np.where(np.isnan(low), -np.inf, low),
                np.where(np.isnan(high), np.inf, high),
            )
            if known and node.name in known:
                low, high = _both((low, high), known[node.name])
            found[node.name] = low, high
    return found


def relied(graph: Graph, without: Collection[str] = ()) -> dict[str, Interval]:
    """Where arrays lie if the arguments of functions lie where these are approximated.

    without: functions that do not count.

    What that says of an argument is carried back to what it is made of, number by number, through
    functions, squares, and those rows of matrices that take a single number.
    """
    found: dict[str, Interval] = {}
    with np.errstate(all="ignore"):
        for node in reversed(graph.nodes):
            for user in graph.users(node.name):
                mine = found.get(node.name)
                if isinstance(user.operation, Function) and user.name not in without:
                    mine = _both(_interval_of(graph, node, user), mine)
                if user.name in found:
                    mine = _both(_before(user, node, found[user.name]), mine)
                if mine is not None:
                    found[node.name] = mine
    return found


def _interval_of(graph: Graph, node: Node, function: Node) -> Interval:
    """Where a function of a node is approximated, or more."""
    low, high = float(np.min(node.range.low)), float(np.max(node.range.high))
    if function_of(function) not in ABOVE_ZERO and is_around_zero(graph, node):
        high = max(-low, high)
        low = -high
    return np.full(node.size, low), np.full(node.size, high)


def _both(one: Interval, other: Interval | None) -> Interval:
    """The numbers that lie in both. Rounding can leave none, which is then a single one."""
    if other is None:
        return one
    low = np.maximum(one[0], other[0])
    return low, np.maximum(low, np.minimum(one[1], other[1]))


def _before(user: Node, source: Node, after: Interval) -> Interval:
    """Where a source lies if the result of a node that takes it lies there."""
    low, high = np.full(source.size, -np.inf), np.full(source.size, np.inf)
    name = function_of(user)
    if isinstance(user.operation, Multiply) and user.inputs[0] == user.inputs[1]:
        name = "square"
    if name in _BACK and (name in _OF_ALL or np.min(source.range.low) > 0):
        ends = [_BACK[name](end if name == "log" else np.maximum(end, 0.0)) for end in after]
        return np.minimum(*ends), np.maximum(*ends)
    if not isinstance(user.operation, Affine) or len(user.inputs) > 1:
        return low, high
    (single,), bias = user.operation.maps, user.operation.bias
    if single.count > 4 * single.shape[0]:  # few rows that take a single number, if any
        return low, high
    rows, cols, values = single.rows, single.cols, single.values
    alone = single.row_counts[rows] == 1
    rows, cols, values = rows[alone], cols[alone], values[alone]
    ends = [(end[rows] - bias[rows]) / values for end in after]
    np.maximum.at(low, cols, np.minimum(*ends))
    np.minimum.at(high, cols, np.maximum(*ends))
    return low, high


def _of_node(node: Node, sources: Sequence[Interval]) -> Interval:
    match node.operation:
        case Input():
            known = node.range
            return np.broadcast_to(known.low, node.size), np.broadcast_to(known.high, node.size)
        case Affine(maps=maps, bias=bias):
            low = high = bias
            for source, single in zip(sources, maps, strict=True):
                least, most = _mapped(single, source)
                low, high = low + least, high + most
            return low, high
        case Multiply():
            return _product(sources, square=node.inputs[0] == node.inputs[1])
        case MatrixProduct() as products:
            ends = [(float(np.min(low)), float(np.max(high))) for low, high in sources]
            bottom, top = products_range(products, ends)
            return np.full(node.size, bottom), np.full(node.size, top)
        case PowerSeries(coefficients=coefficients):
            return _of_polynomial(np.asarray(coefficients), *sources[0])
        case Function(function=name):
            return _of_function(name, *sources[0])
    return np.full(node.size, -np.inf), np.full(node.size, np.inf)


def products_range(
    products: MatrixProduct, ends: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Between which numbers a product of matrices lies whose numbers lie between these ends: sums
    of as many products as a row has numbers."""
    count = products.gain * products.contracted
    each = [float(count * a * b) for a in ends[0] for b in ends[1]]
    return min(each), max(each)


def _mapped(single: SparseMap, source: Interval) -> Interval:
    if single.count > _MOST_ENTRIES:  # the sums of its rows are known then, from calibration
        return single.bounds(float(source[0].min()), float(source[1].max()))
    return single.bounds(*source)


def _product(sources: Sequence[Interval], square: bool) -> Interval:
    (a, b), (c, d) = sources
    ends = (a * a, b * b) if square else (a * c, a * d, b * c, b * d)
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return (np.where((a <= 0) & (b >= 0), 0.0, low) if square else low), high


def _of_function(name: str, low: Array, high: Array) -> Interval:
    f = FUNCTIONS[name]
    if name in _LEAST_AT:
        ends = f(low), f(high)
        return np.minimum(f(np.clip(_LEAST_AT[name], low, high)), np.minimum(*ends)), np.maximum(
            *ends
        )
    if name in _WAVES:
        return np.full_like(low, -1.0), np.full_like(high, 1.0)
    if name in ABOVE_ZERO:
        lost = (low < 0 if name == "sqrt" else low <= 0) & (
            high >= 0 if name == "inverse" else True
        )
        least, most = (f(high), f(low)) if name in _DECREASING else (f(low), f(high))
        return np.where(lost, -np.inf, least), np.where(lost, np.inf, most)
    return f(low), f(high)


def _of_polynomial(coefficients: Array, low: Array, high: Array) -> Interval:
    """Its values at both ends, and at those places between them where it has a least or largest
    value."""
    f = np.polynomial.Polynomial(coefficients).trim()
    turns = np.real(f.deriv().roots()) if f.degree() > 1 else ()  # some may be none: values, too
    values = [f(low), f(high), *(f(np.clip(turn, low, high)) for turn in turns)]
    return np.minimum.reduce(values), np.maximum.reduce(values)
