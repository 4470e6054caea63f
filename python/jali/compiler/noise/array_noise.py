"""The noise of every array of a program that bootstraps, from what each operation adds.

The noise of an array is a sum of independent sources. A sum of multiples of arrays adds the
multiples of each source, with their signs: in a recurrence such as (1 + m) w - m w', the errors of
w and of its predecessor w' are nearly the same, and almost cancel. Behind matrices, products and
functions, the noise of an input is a source of its own, larger by g, the root mean square of the
derivative of a number of the result by those that it is computed from.

A part of an array may be zeros, because a matrix leaves them there, and then has no noise behind a
product. The noise of an array is a mean over its other numbers: a mean over all would be too small
for those who take that part. A matrix has the noise of those columns alone whose numbers are not
zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.facts import Scaling
from jali.compiler.ir.folded_ops import Approximated, Approximation, Bootstrap, approximation_of
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.lowered_ops import LoweredProducts, Transform
from jali.compiler.noise.bootstrap_noise import BootstrapNoise
from jali.compiler.noise.copies import AddedToCopies, sums_slots
from jali.compiler.noise.product_noise import gain_of_products

__all__ = ["GAINS", "Noises"]

_STEP = 2.0**-24  # of a difference quotient
_SAMPLES = 1 << 14  # of the slope of a polynomial
_Sources = Mapping[tuple[str, int], float]  # standard deviations, with signs, by node and input
_Gain = tuple[float, bool]  # see GAINS
_Mask = npt.NDArray[np.bool_]


class Noises:
    """The noise of the nodes of a graph with levels, as standard deviations, one node after the
    other. The gains of a Transform say for each input by how much its noise grows, and whether the
    result is a multiple of it, number by number."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._sources: dict[str, _Sources] = {}
        self._own: dict[str, float] = {}
        self._restored: dict[str, BootstrapNoise] = {}
        self._within: dict[str, tuple[float, float]] = {}
        self._filled = _filled(graph)

    def add(
        self,
        node: Node,
        own: float,
        restored: BootstrapNoise | None = None,
        within: tuple[float, float] = (0.0, 0.0),
    ) -> float:
        """The noise of a node that adds `own` to that of its inputs, which have to be there
        already.

        restored: the parts of `own`, if the node is a bootstrapping.
        within: if it is a product of encrypted matrices, what is added to its factors, which is
            part of `own`.
        """
        total: dict[tuple[str, int], float] = {(node.name, -1): own}
        self._own[node.name] = own
        self._restored[node.name], self._within[node.name] = restored or BootstrapNoise(own), within
        chain = self._chain(node)
        if chain:
            total |= self._of_composition(node, chain)
            self._sources[node.name] = total
            return _deviation(total)
        parts = self._parts_of_root(node)
        if parts:
            total |= self._of_root(node, parts)
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

    def added(self, laid_out: Graph) -> dict[str, AddedToCopies]:
        """What every node of the graph after the stage layout adds to what it computes from its
        inputs.

        What a bootstrapping adds is counted where its input is computed, and what a shared sum adds
        where it is used.
        """
        there = {node.name for node in laid_out if node.name in self._own}
        common, alone = dict.fromkeys(there, 0.0), dict.fromkeys(there, 0.0)  # variances
        restored, repetitions = dict.fromkeys(there, BootstrapNoise()), dict.fromkeys(there, 1)
        for node in self._graph:
            own = self._own[node.name] ** 2
            source = node.inputs[0] if node.inputs else ""
            if node.name in there:
                (common if sums_slots(node) else alone)[node.name] += max(
                    own - self._behind_factors(node), 0
                )
            elif isinstance(node.operation, Bootstrap) and source in there:
                restored[source] = self._restored[node.name]
                only = self._users(source) == [node] and source not in self._graph.outputs
                if only and node.operation.slots:
                    layout = node.layout
                    repetitions[source] = layout.slots // layout.period
            else:
                for user in self._users(node.name):
                    for k, name in enumerate(user.inputs):
                        if name == node.name:
                            common[user.name] += self._gains(user)[k][0] ** 2 * own
        root = math.sqrt
        return {
            k: AddedToCopies(
                root(common[k]), root(alone[k]), restored[k], repetitions[k], self._within[k]
            )
            for k in there
        }

    def _behind_factors(self, node: Node) -> float:
        """The part of the variance that a product adds which comes from the noise that it adds to
        its factors."""
        first, second = self._within[node.name]
        if first == second == 0:
            return 0.0
        sizes = [self._graph[name].scaling.rms for name in node.inputs]
        return float(
            gain_of_products(node) ** 2 * ((first * sizes[1]) ** 2 + (second * sizes[0]) ** 2)
        )

    def _users(self, name: str) -> list[Node]:
        return [node for node in self._graph if name in node.inputs]

    def _chain(self, node: Node) -> list[Node]:
        """For a product x s(x) with a composition s of fixed polynomials: the polynomials of s and
        the bootstraps behind them, from the last. Empty for other nodes."""
        found: list[Node] = []
        if not isinstance(node.operation, Multiply) or node.inputs[0] == node.inputs[1]:
            return found
        name = node.inputs[1]
        while name != node.inputs[0]:
            inner = self._graph[name]
            by = approximation_of(inner)
            if (by is None or not by.fixed) and not isinstance(inner.operation, Bootstrap):
                return []
            found.append(inner)
            (name,) = inner.inputs
        return found

    def _of_composition(self, node: Node, chain: Sequence[Node]) -> dict[tuple[str, int], float]:
        """The noise of x s(x) from that of x, and from that of every step of s.

        The slope of s is large where x is small, so that the root mean squares of slope and x must
        not be multiplied. They are taken over normal numbers of x's size.
        """
        x = np.linspace(-1, 1, _SAMPLES)
        rms = float(self._graph[node.inputs[0]].scaling.rms)
        weights = np.exp(-0.5 * (x / max(rms, 2.0**-10)) ** 2)
        steps = [(n.name, by) for n in reversed(chain) if (by := approximation_of(n)) is not None]
        values = [x]
        for _, by in steps:
            values.append(np.clip(by(values[-1]), -1, 1))

        def mean(slopes: Array) -> float:
            return math.sqrt(float((slopes**2 * weights).sum() / weights.sum()))

        behind, slopes = {steps[-1][0]: mean(x)}, np.ones_like(x)
        for k in range(len(steps) - 1, -1, -1):
            (_, by), u = steps[k], values[k]
            slopes = slopes * (by(u + _STEP) - by(u - _STEP)) / (2 * _STEP)
            if k:
                behind[steps[k - 1][0]] = mean(x * slopes)
        of_x = _deviation(self._sources[node.inputs[0]])
        found = {(node.name, 0): mean(x * slopes + values[-1]) * of_x}
        for inner in chain:
            stage = (
                inner if isinstance(inner.operation, Approximated) else self._graph[inner.inputs[0]]
            )
            found[inner.name, -1] = behind[stage.name] * self._own[inner.name]
        return found

    def _parts_of_root(self, node: Node) -> list[Node]:
        """For a product of a composition near a root (passes/staged_roots.py): what computes it
        from the argument, with the bootstraps between, and the product. Empty for other nodes."""
        if not isinstance(node.operation, Multiply):
            return []
        factor = self._graph[node.inputs[1]]
        while isinstance(factor.operation, Bootstrap):
            factor = self._graph[factor.inputs[0]]
        by, parts = approximation_of(factor), dict[str, Node]()
        if by is None or not by.part:
            return []
        for inner in self._graph:
            made = approximation_of(inner)
            behind = isinstance(inner.operation, Multiply | Bootstrap)
            if (made is not None and made.part == by.part) or (
                behind and all(name in parts for name in inner.inputs)
            ):
                parts[inner.name] = inner
            if inner is node:
                break
        return list(parts.values())

    def _of_root(self, node: Node, parts: Sequence[Node]) -> dict[tuple[str, int], float]:
        """The noise of a product of a composition near a root, from that of its argument and of
        every part.

        Where the slope of one factor is large, the other one is small, so that their root mean
        squares must not be multiplied. They are taken over roots that are distributed as the
        moduli of normal numbers, whose fourth powers have the mean that the argument has.
        """
        (source,) = parts[0].inputs
        v = np.linspace(0, 1, _SAMPLES)
        weights = np.exp(-0.5 * v * v / _mean_of_roots(self._graph[source].scaling))
        values = {source: 2 * v * v - 1}
        for inner in parts:
            values[inner.name] = inner.operation.compute([values[name] for name in inner.inputs])
        slopes = dict.fromkeys(values, np.zeros_like(v)) | {node.name: np.ones_like(v)}
        for inner in reversed(parts):
            slope, taken = slopes[inner.name], [values[name] for name in inner.inputs]
            factors = [slope] * len(taken)
            if isinstance(inner.operation, Multiply):
                factors = [slope * taken[1], slope * taken[0]]
            elif (by := approximation_of(inner)) is not None:
                u = taken[0]
                factors = [slope * (by(u + _STEP) - by(u - _STEP)) / (2 * _STEP)]
            for name, one in zip(inner.inputs, factors, strict=True):
                slopes[name] = slopes[name] + one

        def mean(name: str) -> float:
            return math.sqrt(float((slopes[name] ** 2 * weights).sum() / weights.sum()))

        found = {(node.name, 0): mean(source) * _deviation(self._sources[source])}
        for inner in parts[:-1]:
            found[inner.name, -1] = mean(inner.name) * self._own[inner.name]
        return found

    def _gains(self, node: Node) -> Sequence[_Gain]:
        return GAINS[type(node.operation)](self, node)

    def _same(self, node: Node) -> list[_Gain]:
        return [(1.0, True) for _ in node.inputs]

    def _of_transform(self, node: Node) -> list[_Gain]:
        return [self._behind(node, Transform.of(node), k) for k in range(len(node.inputs))]

    def _of_multiply(self, node: Node) -> list[_Gain]:
        first, second = map(self._rms, node.inputs)
        if node.inputs[0] == node.inputs[1]:  # a square
            return [(2 * first, False)]
        return [(second, False), (first, False)]

    def _of_products(self, node: Node) -> list[_Gain]:
        first, second = (self._graph[name].scaling.rms for name in node.inputs)
        gain = gain_of_products(node)
        return [(gain * second, False), (gain * first, False)]

    def _of_function(self, node: Node) -> list[_Gain]:
        return [(_slope(Approximated.of(node).by), False)]

    def _behind(self, node: Node, transform: Transform, k: int) -> tuple[float, bool]:
        """The gain of input k of a transform, between noises that are means over the numbers that
        may be other than zero."""
        gain: float
        gain, alike = transform.gains[k]
        source, result = self._filled[node.inputs[k]], self._filled[node.name]
        single = transform.terms[k].single
        if alike or single is None:
            return gain * math.sqrt(_share(source) / _share(result)), alike
        squares = (
            single.row_squares if source is None else single.squared(source.astype(np.float64))
        )
        return math.sqrt(float(np.sum(squares)) / (_share(result) * single.shape[0])), alike

    def _rms(self, name: str) -> float:
        """The root mean square of the numbers of an array that may be other than zero."""
        return float(self._graph[name].scaling.rms) / math.sqrt(_share(self._filled[name]))


#: Of every operation of a lowered graph, for each input: by how much its noise grows, and whether
#: the result holds a multiple of it, number by number.
GAINS: Mapping[type[Operation], Callable[[Noises, Node], Sequence[_Gain]]] = {
    Input: Noises._same,
    Transform: Noises._of_transform,
    Multiply: Noises._of_multiply,
    LoweredProducts: Noises._of_products,
    Approximated: Noises._of_function,
    Bootstrap: Noises._same,
}


def _filled(graph: Graph) -> dict[str, _Mask | None]:
    """For every node, which of its numbers may be other than zero, by the matrices and products
    that compute it; None stands for all."""
    found: dict[str, _Mask | None] = {}
    for node in graph:
        sources = [found[name] for name in node.inputs]
        match node.operation:
            case Transform(terms=terms, bias=bias) if not np.any(bias):
                pairs = zip(terms, sources, strict=True)
                parts = [
                    source if term.single is None else _reached(term.single, source)
                    for term, source in pairs
                ]
                known = [part for part in parts if part is not None]
                same = len({part.shape for part in known}) == 1
                whole = len(known) < len(parts) or not same
                found[node.name] = None if whole else _part(np.any(known, axis=0))
            case Multiply():
                known = [source for source in sources if source is not None]
                found[node.name] = _part(np.all(known, axis=0)) if known else None
            case Bootstrap():
                found[node.name] = sources[0]
            case _:
                found[node.name] = None
    return found


def _reached(single: SparseMap, source: _Mask | None) -> _Mask | None:
    """Which numbers behind a map may be other than zero."""
    if source is None:
        full = single.used_rows == single.shape[0]
        return None if full else np.asarray(single.row_squares > 0)
    return _part(single.squared(source.astype(np.float64)) > 0)


def _part(filled: _Mask) -> _Mask | None:
    return None if filled.all() else filled


def _share(filled: _Mask | None) -> float:
    return 1.0 if filled is None else max(1, int(np.count_nonzero(filled))) / len(filled)


def _mean_of_roots(scaling: Scaling) -> float:
    """The mean s of the squares of normal numbers v of which t = 2 v^2 - 1 has the root mean square
    of a scale: t^2 has the mean 12 s^2 - 4 s + 1. Of two solutions it is the one with more numbers
    near 0."""
    inside = 16 - 48 * (1 - scaling.rms**2)
    return max((4 - math.sqrt(max(inside, 0.0))) / 24, 2.0**-20)


def _deviation(sources: _Sources) -> float:
    return math.hypot(*sources.values())


def _slope(by: Approximation) -> float:
    """The root mean square of the slope of a function of numbers in [-1, 1]."""
    x = np.linspace(-1, 1, _SAMPLES)
    return float(np.sqrt(np.mean(np.gradient(by(x), x) ** 2)))
