"""Errors of their own for functions, where one error for all leads to polynomials that there are
not.

A model may amplify the error of one function, such as a root whose small values count, and bear
those of others, such as a tanh on a wide interval. With one error for all, the exactness that the
first one needs is asked of the second, too. Here all begin with the error that is allowed of the
outputs; those that contribute most are halved until the outputs are within it.

In: a calibrated graph and examples. Out: the graph on [-1, 1], and the errors.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> ranged = calibrate(fold(nn.trace(np.tanh, examples[0])), [examples])
>>> exact = {ranged.outputs[0]: np.tanh(examples)}
>>> made, errors = approximate_each(ranged, [examples], 4, traced=ranged, exact=exact)
>>> errors.own["tanh"] <= 2**-4
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jali.compiler.ir.folded_ops import Approximated, Approximation, Errors
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.scalar import FUNCTIONS
from jali.compiler.ir.traced_ops import Function, function_of
from jali.compiler.passes.approximate import NOISE_SHARE, Measured, approximated, promised
from jali.compiler.passes.widened_ranges import TooCoarse
from jali.errors import InvalidArgument

__all__ = ["approximate_each"]

_ROUNDS = 48
_EXAMPLES = 64  # on so many, it is measured how much each function contributes


def approximate_each(
    graph: Graph,
    examples: Sequence[Array],
    precision_bits: float,
    *,
    traced: Graph,
    exact: Mapping[str, Array],
) -> tuple[Graph, Errors]:
    """As approximate, with an error for every function. Raises InvalidArgument, which names the
    function, where no approximation is found."""
    outputs = [exact[name] for name in graph.outputs]
    every = Measured.of(traced, examples, outputs)
    some = Measured.of(traced, [x[:_EXAMPLES] for x in examples], [y[:_EXAMPLES] for y in outputs])
    limit = (1 - NOISE_SHARE) * 2.0**-precision_bits
    own = {node.name: limit for node in graph if function_of(node)}
    finest = set[str]()  # functions that have no approximation with half of their error
    for _ in range(_ROUNDS):
        errors = Errors(limit, own)
        try:
            made = approximated(graph, errors)
        except TooCoarse:
            own = {name: error / 2 for name, error in own.items()}
            continue
        if every.largest_error(traced, made, limit) <= limit:
            return promised(made, precision_bits), errors
        shares = {
            name: some.largest_error(traced, _exact_but(made, graph, name), np.inf)
            for name in (own.keys() - finest) & _stands_for(made).keys()
        }
        too_coarse = [  # however exact all others are
            name
            for name in finest
            if some.largest_error(traced, _exact_but(made, graph, name), np.inf) > limit
        ]
        if too_coarse or not shares:
            break
        least = max(shares.values()) / 2
        for name in [name for name, share in shares.items() if share >= least]:
            halved = own | {name: own[name] / 2}
            if _has_approximation(graph, Errors(limit, halved)):
                own = halved
            else:
                finest.add(name)
    raise InvalidArgument(
        f"no approximation keeps the outputs within {precision_bits:g} bits: ask for a smaller precision_bits"
    )


def _has_approximation(graph: Graph, errors: Errors) -> bool:
    """Whether every function has an approximation that keeps to its error."""
    try:
        approximated(graph, errors)
    except TooCoarse:
        return True
    except InvalidArgument:
        return False
    return True


def _stands_for(made: Graph) -> dict[str, str]:
    """The function of every node of the model that is approximated, by the node's name. One that
    became a composition has the name of its last node."""
    found = {}
    for node in made:
        if isinstance(node.operation, Approximated):
            found[node.operation.by.part or node.name] = node.operation.by.name
    return found


def _exact_but(made: Graph, graph: Graph, kept: str) -> Graph:
    """The graph on [-1, 1], all of whose functions but one are exact."""
    nodes, functions = [], {node.name: node for node in graph if function_of(node)}
    approximations = _stands_for(made)
    for node in made:
        if node.name in approximations and node.name in functions.keys() - {kept}:
            source = functions[node.name].inputs
            by: Any = _Exact(functions[node.name], made[source[0]], node)
            exact = Approximation(approximations[node.name], by, 0.0)
            node = replace(node, operation=Approximated(exact), inputs=source)
        nodes.append(node)
    return Graph(tuple(nodes), made.outputs, made.stage)


@dataclass(frozen=True, eq=False)
class _Exact:
    """A function between the scales of two nodes."""

    function: Node
    source: Node
    result: Node

    def __call__(self, t: Array) -> Array:
        before, after = self.source.scaling, self.result.scaling
        x = before.centre + before.radius * t
        name = Function.of(self.function).function
        with np.errstate(all="ignore"):
            y = FUNCTIONS[name](np.maximum(x, 0.0) if name == "sqrt" else x)
        return np.asarray((y - after.centre) / after.radius)
