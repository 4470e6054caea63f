"""What a graph of the stage approximate computes, in the clear: the model's own layers between
approximated functions.

The graph's matrices give the same numbers, but a convolution as a matrix takes tens of times as
long as the convolution of the traced graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import has_loops
from jali.compiler.ir.operation import Elementwise, Input
from jali.compiler.passes.unroll import unrolled

__all__ = ["computed", "expected", "scaled", "unscaled"]


def scaled(node: Node, values: Array) -> Array:
    """Numbers (batch, *shape) of a node in its scale."""
    flat = values.reshape(len(values), -1)
    return np.asarray(((flat - node.scaling.centre) / node.scaling.radius).reshape(values.shape))


def unscaled(node: Node, values: Array) -> Array:
    """The inverse of ``scaled``."""
    flat = values.reshape(len(values), -1)
    return np.asarray((flat * node.scaling.radius + node.scaling.centre).reshape(values.shape))


def expected(traced: Graph, approximated: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs (batch, *shape) for examples of every input, all in the model's units.

    traced, approximated: a model's graphs after these stages; in the place of the first, also that
        after folding.
    """
    return computed(traced, approximated, inputs, lambda _, values: values)


def computed(
    traced: Graph,
    approximated: Graph,
    inputs: Sequence[Array],
    override: Callable[[Node, Array], Array],
) -> list[Array]:
    """The same.

    approximated: also a graph with layouts.
    override: called with every node of it, and its values in its scale; what it returns is taken
        for the values. Polynomials far outside of their intervals may give numbers that are not
        finite.
    """
    given = iter(inputs)
    # Copies of the bodies of loops are nodes that the model does not name. Their matrices are
    # computed as such.
    flat, model = approximated, None if has_loops(traced) else _Model(traced, approximated)
    if model is None:
        flat = unrolled(approximated)
    inside: dict[str, Array] = {}
    last = {name: node.name for node in flat for name in node.inputs}
    with np.errstate(over="ignore", invalid="ignore"):
        for node in flat:
            if isinstance(node.operation, Input):
                values = scaled(node, next(given))
            elif (
                model is not None
                and isinstance(node.operation, Affine)
                and node.name in model.names
            ):
                values = scaled(node, model.value(node.name).reshape(-1, *node.shape))
            else:
                sources = [inside[name] for name in node.inputs]
                if isinstance(node.operation, Elementwise):
                    sources = [x.reshape(-1, *node.shape) for x in sources]
                values = node.operation.compute(sources)
            inside[node.name] = override(node, values)
            if model is not None:
                model.visited(node.name, unscaled(node, inside[node.name]))
            for name in set(node.inputs):
                if last[name] == node.name and name not in flat.outputs:
                    del inside[name]
    found = [unscaled(flat[name], inside[name]) for name in flat.outputs]
    return [
        y.reshape(-1, *traced[name].shape) for y, name in zip(found, traced.outputs, strict=True)
    ]


class _Model:
    """The values of a model's nodes, while its approximated graph is computed.

    known: values of nodes of the approximated graph, in the place of what the model computes, and
        values that the model computes of these. Those that nothing takes any more are not kept.
    later: nodes of the approximated graph that are still to be visited.
    users: for every node, how many of the nodes that take it have no value yet.
    """

    def __init__(self, traced: Graph, approximated: Graph) -> None:
        self.traced = traced
        self.names = {node.name for node in traced}
        self.known: dict[str, Array] = {}
        self.later = {node.name for node in approximated}
        self.users = {node.name: len(traced.users(node.name)) for node in traced}
        self._had: set[str] = set()  # nodes that have had a value

    def visited(self, name: str, values: Array) -> None:
        """The value of a node of the approximated graph, which comes once."""
        self.later.discard(name)
        if name in self.names:
            self._has(name, values)
            self._drop(name)

    def _has(self, name: str, values: Array) -> None:
        self.known[name] = values
        if name not in self._had:
            self._had.add(name)
            for source in set(self.traced[name].inputs):
                self.users[source] -= 1
                self._drop(source)

    def _drop(self, name: str) -> None:
        if not self.users[name] and name not in self.later:
            self.known.pop(name, None)

    def value(self, name: str) -> Array:
        """The value of a node of the traced graph."""
        waiting = [name]
        while waiting:
            node_name = waiting[-1]
            if node_name in self.known:
                waiting.pop()
                continue
            node = self.traced[node_name]
            missing = [n for n in node.inputs if n not in self.known]
            if missing:
                waiting += missing
                continue
            sources = [self.known[n].reshape(-1, *self.traced[n].shape) for n in node.inputs]
            self._has(node_name, node.operation.compute(sources))
            waiting.pop()
        return self.known[name]
