"""What a graph of the stage approximate computes, in the clear: the model's own layers between approximated functions.

The graph's matrices give the same numbers, but a convolution as a matrix takes tens of times as long as the convolution of the traced graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.nn.execute import every_value
from jali.nn.folded import FOLDED
from jali.nn.graph import Array, Graph, Node
from jali.nn.ops import OPS
from jali.nn.unroll import has_loops

__all__ = ["expected", "scaled", "unscaled"]


def scaled(node: Node, values: Array) -> Array:
    """Numbers (batch, *shape) of a node in its scale."""
    flat = values.reshape(len(values), -1)
    return np.asarray(((flat - node.attrs["centre"]) / node.attrs["radius"]).reshape(values.shape))


def unscaled(node: Node, values: Array) -> Array:
    """The inverse of ``scaled``."""
    flat = values.reshape(len(values), -1)
    return np.asarray((flat * node.attrs["radius"] + node.attrs["centre"]).reshape(values.shape))


def expected(traced: Graph, approximated: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs (batch, *shape) for examples of every input, all in the model's units.

    traced, approximated: a model's graphs after these stages; in the place of the first, also that after folding.
    """
    if has_loops(approximated):  # copies of their bodies are nodes that the model does not name
        ports = zip(approximated.inputs, inputs, strict=True)
        values = every_value(approximated, [scaled(node, x) for node, x in ports])
        found = [unscaled(approximated[name], values[name]) for name in approximated.outputs]
    else:
        model = _Model(traced)
        given = iter(inputs)
        inside: dict[str, Array] = {}
        for node in approximated:
            if node.op == "input":
                model.known[node.name] = next(given)
            elif node.op != "affine":
                op = FOLDED.get(node.op) or OPS[node.op]
                y = op.compute([inside[name] for name in node.inputs], node.attrs)
                model.known[node.name] = unscaled(node, y)
            values_here = model.value(node.name).reshape(-1, *node.shape)
            inside[node.name] = scaled(node, values_here)
        found = [model.value(name) for name in approximated.outputs]
    return [
        y.reshape(-1, *traced[name].shape) for y, name in zip(found, traced.outputs, strict=True)
    ]


class _Model:
    """known: values of nodes that were given, in the place of what the model computes."""

    def __init__(self, traced: Graph) -> None:
        self.traced = traced
        self.known: dict[str, Array] = {}

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
            op = FOLDED.get(node.op) or OPS[node.op]
            self.known[node_name] = op.compute(sources, node.attrs)
            waiting.pop()
        return self.known[name]
