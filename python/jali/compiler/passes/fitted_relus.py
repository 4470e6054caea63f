"""ReLUs that become polynomials of a low degree, fitted to the numbers that the calibration brings
them.

A ReLU that is precise takes ten levels or more, because it is precise near 0, where few of its
numbers may lie. The polynomial that is nearest in the mean of squares over these numbers takes two
or three levels. It changes the model. How much is counted on the calibration.

In: a traced graph and its examples. Out: a traced graph of another function.

>>> graph = nn.trace(lambda x: nn.scalar.relu(x) + x, np.zeros(2))
>>> examples = np.linspace(-1, 1, 40).reshape(20, 2)
>>> other, told = fitted_relus(graph, [examples], degree=2)
>>> [node.op for node in other], told.relus, told.same, told.every
(['input', 'polynomial', 'combine'], 1, 20, 20)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from jali._core import checks
from jali._core.console import counted_text
from jali.compiler.ir.execute import each_value, execute
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import has_loops
from jali.compiler.ir.scalar import RELUS
from jali.compiler.ir.traced_ops import PowerSeries, function_of
from jali.errors import InvalidArgument, Unsupported

__all__ = ["DEGREES", "Fitted", "checked_degree", "fitted_relus"]

#: The degrees that polynomials may have. Higher powers differ too much in size over an interval.
DEGREES = range(2, 9)
_FITTED = 1 << 16  # numbers to which a polynomial is fitted, at most
#: Of the weight of these numbers, that of points all over their range. Without it, a polynomial
#: may be anything between numbers that are seldom and far from the others.
_EVERYWHERE = 1 / 16
_AT_ONCE = 1 << 27  # numbers of all arrays together, for the examples that are computed


class Fitted(NamedTuple):
    """How much polynomials in the place of ReLUs change the results of the calibration.

    degree, relus: of the polynomials, and how many there are.
    same: examples whose answers are those of the model: the largest number along the last axis of
        every result or, of one number, its sign.
    every: examples.
    largest: the largest difference, over the largest result of the model.
    """

    degree: int
    relus: int
    same: int
    every: int
    largest: float

    def __str__(self) -> str:
        polynomials = "a polynomial" if self.relus == 1 else "polynomials"
        return (
            f"{counted_text(self.relus, 'ReLU')} became {polynomials} of degree {self.degree}, fitted to the calibration: {self.same:,} of its "
            f"{counted_text(self.every, 'answer')} are those of the model, whose results change by at most {self.largest:.2g} of the largest"
        )


def checked_degree(value: Any) -> int:
    """The degree. Raises InvalidArgument for any other value."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or int(value) not in DEGREES:
        raise InvalidArgument(
            f"relu_degree is a whole number from {DEGREES[0]} to {DEGREES[-1]}, the degree of polynomials in the place of ReLUs, not {checks.shown(value)}"
        )
    return int(value)


def fitted_relus(graph: Graph, examples: Sequence[Array], degree: int) -> tuple[Graph, Fitted]:
    """The graph with polynomials in the place of its ReLUs, and what that changes.

    Each is fitted to the numbers that it takes if those before it are polynomials already. A ReLU
    whose numbers all have one sign stays.

    Raises Unsupported if no ReLU is replaced, or if the model has a loop, and InvalidArgument if
    results of the model with polynomials are infinite or NaN.
    """
    if has_loops(graph):
        raise Unsupported(
            "relu_degree= is for models without loops: unroll the loop, or leave out relu_degree="
        )
    most = max(1, _AT_ONCE // sum(node.size for node in graph))
    some = np.linspace(0, len(examples[0]) - 1, min(len(examples[0]), most)).astype(int)
    chosen = [x[some] for x in examples]
    nodes: list[Node] = []
    count = 0

    def replaced(node: Node, sources: Sequence[Array]) -> Node:
        nonlocal count
        if function_of(node) in RELUS and sources[0].min() < 0 < sources[0].max():
            node = replace(node, operation=PowerSeries(_nearest(sources[0], degree)))
            count += 1
        nodes.append(node)
        return node

    found = {
        node.name: values
        for node, values in each_value(graph, chosen, replaced)
        if node.name in graph.outputs
    }
    if not count:
        raise Unsupported(
            "the model has no ReLU that takes numbers of both signs: leave out relu_degree="
        )
    exact = execute(graph, *chosen)
    made = [found[name] for name in graph.outputs]
    if not all(np.isfinite(y).all() for y in made):
        raise InvalidArgument(
            f"with polynomials of degree {degree} in the place of {counted_text(count, 'ReLU')}, results are infinite or no numbers (NaN): a function of what they give, such as a logarithm, is not defined there. Take a larger relu_degree, or leave it out"
        )
    off = max(float(np.abs(y - x).max()) for x, y in zip(exact, made, strict=True))
    largest = max(float(np.abs(x).max()) for x in exact)
    same = np.all([_answers(x, y) for x, y in zip(exact, made, strict=True)], axis=0)
    told = Fitted(degree, count, int(same.sum()), len(some), off / (largest or 1.0))
    return Graph(tuple(nodes), graph.outputs, graph.stage), told


def _nearest(values: Array, degree: int) -> tuple[float, ...]:
    """The coefficients of the polynomial that is nearest to ReLU at these numbers."""
    every = values.reshape(-1)
    x = every[:: max(1, every.size // _FITTED)]
    low, high = float(every.min()), float(every.max())
    spread = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    t = (2 * np.concatenate([x, spread]) - (low + high)) / (high - low)
    weights = np.ones(len(t))
    weights[len(x) :] = np.sqrt(_EVERYWHERE * len(x) / len(spread))
    wanted = np.maximum(np.concatenate([x, spread]), 0.0)
    rows = np.polynomial.chebyshev.chebvander(t, degree) * weights[:, None]
    series = np.linalg.lstsq(rows, wanted * weights, rcond=None)[0]
    powers = Chebyshev(series, domain=[low, high]).convert(kind=Polynomial).coef
    return tuple(float(c) for c in np.pad(powers, (0, degree + 1 - len(powers))))


def _answers(x: Array, y: Array) -> Array:
    """For each example, whether its answers in two arrays of results are the same."""
    scores = x.ndim > 1 and x.shape[-1] > 1
    a, b = (v.argmax(-1) if scores else v > 0 for v in (x, y))
    return np.asarray((a == b).reshape(len(x), -1).all(axis=1))
