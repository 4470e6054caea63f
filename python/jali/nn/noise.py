"""The noise of every array of a program that bootstraps, from what each operation adds.

The noise of an array is a sum of independent sources. A sum of multiples of arrays adds the multiples of each source, with their signs: in a
recurrence such as (1 + m) w - m w', the errors of w and of its predecessor w' are nearly the same, and almost cancel. Behind matrices, products
and functions, the noise of an input is a source of its own, larger by g, the root mean square of the derivative of a number of the result
by those that it is computed from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from jali.nn.graph import Array, Graph, Node
from jali.nn.layout import Layout, Shared
from jali.nn.loop_graph import factor_of

__all__ = ["Noises", "concentrated", "estimated"]

_STEP = 2.0**-24  # of a difference quotient
_SAMPLES = 1 << 14  # of the slope of a polynomial
_Sources = Mapping[tuple[str, int], float]  # standard deviations, with signs, by node and input


class Noises:
    """The standard deviations of the noise of the nodes of a graph with levels, one after the other. approximated: the graph without
    loops after the stage approximate, which has the matrices."""

    def __init__(self, graph: Graph, approximated: Graph) -> None:
        self._graph, self._approximated = graph, approximated
        self._sources: dict[str, _Sources] = {}
        self._own: dict[str, float] = {}

    def add(self, node: Node, own: float) -> float:
        """The noise of a node that adds `own` to that of its inputs, which have to be there already."""
        total: dict[tuple[str, int], float] = {(node.name, -1): own}
        self._own[node.name] = own
        chain = self._chain(node)
        if chain:
            total |= self._of_composition(node, chain)
            self._sources[node.name] = total
            return _deviation(total)
        for k, (gain, alike) in enumerate(self._gains(node)):
            sources = self._sources[node.inputs[k]]
            if not alike:
                sources = {(node.name, k): _deviation(sources)}
            for source, size in sources.items():
                total[source] = total.get(source, 0.0) + gain * size
        self._sources[node.name] = total
        return _deviation(total)

    def _chain(self, node: Node) -> list[Node]:
        """Of a product x s(x) with a composition s of fixed polynomials: its polynomials, and the bootstraps behind them, from the last. Empty
        for other nodes."""
        found: list[Node] = []
        if node.op != "multiply" or node.inputs[0] == node.inputs[1]:
            return found
        name = node.inputs[1]
        while name != node.inputs[0]:
            inner = self._graph[name]
            fixed = inner.op == "approximated" and inner.attrs["by"].fixed
            if not fixed and inner.op != "bootstrap":
                return []
            found.append(inner)
            (name,) = inner.inputs
        return found

    def _of_composition(self, node: Node, chain: Sequence[Node]) -> dict[tuple[str, int], float]:
        """What reaches x s(x) from the noise of x, and from that of every step of s. The slope of s is large where x is small, so that their root mean
        squares must not be multiplied. They are taken over normal numbers of x's size."""
        x = np.linspace(-1, 1, _SAMPLES)
        rms = float(self._graph[node.inputs[0]].attrs["rms"])
        weights = np.exp(-0.5 * (x / max(rms, 2.0**-10)) ** 2)
        steps = [n for n in reversed(chain) if n.op == "approximated"]
        values = [x]
        for step in steps:
            values.append(np.clip(step.attrs["by"](values[-1]), -1, 1))

        def mean(slopes: Array) -> float:
            return math.sqrt(float((slopes**2 * weights).sum() / weights.sum()))

        behind, slopes = {steps[-1].name: mean(x)}, np.ones_like(x)
        for k in range(len(steps) - 1, -1, -1):
            by, u = steps[k].attrs["by"], values[k]
            slopes = slopes * (by(u + _STEP) - by(u - _STEP)) / (2 * _STEP)
            if k:
                behind[steps[k - 1].name] = mean(x * slopes)
        of_x = _deviation(self._sources[node.inputs[0]])
        found = {(node.name, 0): mean(x * slopes + values[-1]) * of_x}
        for inner in chain:
            stage = inner if inner.op == "approximated" else self._graph[inner.inputs[0]]
            found[inner.name, -1] = behind[stage.name] * self._own[inner.name]
        return found

    def _gains(self, node: Node) -> Sequence[tuple[float, bool]]:
        """For each input: by how much its noise grows, and whether the result holds a multiple of it, number by number."""
        match node.op:
            case "transform":
                maps = self._approximated[node.name].attrs["maps"]
                factors = [factor_of(m) for m in maps]
                means = [math.sqrt(float(np.sum(m.values**2)) / m.shape[0]) for m in maps]
                return [
                    (g, False) if f is None else (f, True)
                    for f, g in zip(factors, means, strict=True)
                ]
            case "multiply":
                first, second = (self._graph[name].attrs["rms"] for name in node.inputs)
                if node.inputs[0] == node.inputs[1]:  # a square
                    return [(2 * first, False)]
                return [(second, False), (first, False)]
            case "products":
                first, second = (self._graph[name].attrs["rms"] for name in node.inputs)
                gain = abs(node.attrs["gain"]) * math.sqrt(node.attrs["shapes"][0][-1])
                return [(gain * second, False), (gain * first, False)]
            case "approximated":
                return [(_slope(node), False)]
        return [(1.0, True) for _ in node.inputs]


def _deviation(sources: _Sources) -> float:
    return math.hypot(*sources.values())


def _slope(node: Node) -> float:
    """The root mean square of the slope of a function of numbers in [-1, 1]."""
    x = np.linspace(-1, 1, _SAMPLES)
    return float(np.sqrt(np.mean(np.gradient(node.attrs["by"](x), x) ** 2)))


def concentrated(graph: Graph) -> dict[str, float]:
    """For each output of a graph with layouts, by how many bits the noise of its numbers may be larger than that of all slots on average.

    The result of a matrix has zeros between its numbers, and there its rows have no noise of the source. So the variance may grow by
    slots / numbers with every matrix.
    """
    found: dict[str, float] = {}
    for node in graph:
        own = _concentration(node) if node.op == "transform" else 0.0
        found[node.name] = own + max((found[name] for name in node.inputs), default=0.0)
    return {name: found[name] for name in graph.outputs}


def _concentration(node: Node) -> float:
    layout: Layout = node.attrs["layout"]
    if all(term.factor is not None for term in node.attrs["terms"]):
        return 0.0
    numbers = node.size * len(layout.copies)
    if isinstance(layout, Shared):  # parts of sums lie between the chunks
        numbers *= layout.every // layout.chunk
    return max(0.0, math.log2(layout.ciphertexts * layout.slots / numbers) / 2)


def estimated(graph: Graph, approximated: Graph, restored_bits: float) -> list[float]:
    """About the precision of every output in bits, without a run: as if every operation added as much noise as a bootstrapping."""
    noises = Noises(graph, approximated)
    found = {node.name: noises.add(node, 2.0**-restored_bits) for node in graph}
    return [-math.log2(found[name]) for name in graph.outputs]
