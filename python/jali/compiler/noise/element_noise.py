"""The noise of every number of a program's outputs: what each operation adds, carried through the
model with examples of the calibration.

What operations add is drawn at random, number by number, and the model computes with it. So the
rows of matrices, which may differ by orders of magnitude, the sizes of a product's factors, and the
correlation of numbers that come from the same ones are counted as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import has_loops
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.sparse import Indices, SparseMap
from jali.compiler.layout.lowered_ops import terms_of
from jali.compiler.layout.terms import Term
from jali.compiler.noise.copies import AddedToCopies, Copies
from jali.compiler.noise.empty_slots import EmptySlotNoise, empty_slot_noise
from jali.compiler.noise.product_noise import Factors
from jali.compiler.passes.approximate import LEAST_RMS
from jali.compiler.passes.execute_approximated import computed
from jali.errors import RangeExceeded

__all__ = ["SIGMAS", "Added", "Samples", "by_rows"]

SIGMAS = 6.0  #: Noise beyond so many standard deviations occurs once in 5 * 10^8 numbers.

_NUMBERS = 1 << 21  # of all arrays of the model together, for the examples that are drawn
_FEWEST, _MOST = 8, 1024  # examples that are drawn
_ERRORS = 256  # of outputs, from which a mean is taken
_SEED = 2026  # every machine makes the same plan


@dataclass(frozen=True)
class Added:
    """What a node adds in its scale: the standard deviations of the real and the imaginary part, of
    all numbers or of each."""

    real: Array | float
    imaginary: Array | float


class Samples:
    """A traced model, and examples (n, *shape) for each of its inputs."""

    def __init__(self, traced: Graph, inputs: Sequence[Array]) -> None:
        each = sum(node.size for node in traced)
        count = min(_MOST, max(_FEWEST, _NUMBERS // each))  # some of them again, if there are fewer
        self._index = np.arange(count) * max(1, len(inputs[0]) // count)
        self._traced, self._examples = traced, inputs
        self._inputs = self._drawn(0)
        self._known: tuple[Graph, list[Array], dict[str, Array]] | None = None
        self._empty_slots: dict[int, tuple[Term, EmptySlotNoise]] = {}  # by the ids of terms

    def _drawn(self, first: int) -> list[Array]:
        """Examples of every input, spread evenly from the first on."""
        return [x[(self._index + first) % len(x)] for x in self._examples]

    @property
    def has_loops(self) -> bool:
        """Whether the model has loops, which multiply by the same matrices in every step."""
        return has_loops(self._traced)

    def sizes(self, graph: Graph) -> dict[str, float]:
        """For each node of a graph with layouts, the largest root mean square of any of its
        numbers, in its scale; at least LEAST_RMS."""
        values = self._exact(graph)[1]
        found = {name: math.sqrt(float(np.square(x).mean(0).max())) for name, x in values.items()}
        return {name: max(size, LEAST_RMS) for name, size in found.items()}

    def noise_bits(self, graph: Graph, low: Graph, added: Mapping[str, Added]) -> tuple[float, ...]:
        """For each output of a graph with layouts, -log2 of the noise in its scale.

        The noise is the standard deviation of the number that has most of it, or a SIGMASth part of
        the largest error, if that is more. Of n normal numbers, the largest is about sqrt(2 ln n)
        deviations. The promise has to hold for events that are rarer: for some examples noise is
        larger than for others, and squares of noise are not normal. So all noise is drawn SIGMAS /
        sqrt(2 ln n) times as large as it is.

        low: the lowered graph.
        added: what every node adds.
        """
        numbers = max(2, max(graph[name].size for name in graph.outputs) * len(self._inputs[0]))
        larger = max(1.0, SIGMAS / math.sqrt(2 * math.log(numbers)))
        added = {k: Added(larger * x.real, larger * x.imaginary) for k, x in added.items()}
        rng = np.random.default_rng(_SEED)
        outputs, exact = self._exact(graph)
        real, imaginary = dict[str, Array](), dict[str, Array]()  # variances of numbers
        between: dict[str, float] = {}  # variances of the slots that hold no number
        strength: dict[str, Array] = {}  # of every example's noise, as a part of the mean

        def noisy(node: Node, values: Array) -> Array:
            flat = values.reshape(len(values), -1)
            part = added.get(node.name, Added(0.0, 0.0))  # none if its user has taken it apart
            own = np.zeros(node.size) + np.square(part.real)
            between[node.name], more = float(own.min()), own
            if node.name in added and isinstance(node.operation, Affine):
                known = added, real, imaginary, between, strength
                more = own + self._beyond(low[node.name], low, *known)
            flat = flat + np.sqrt(more) * rng.normal(size=flat.shape)
            squares = np.square(flat - exact[node.name])
            real[node.name], each = squares.mean(axis=0), squares.sum(axis=1)
            strength[node.name] = each / max(each.mean(), np.finfo(float).tiny)
            alone = np.square(part.imaginary)
            imaginary[node.name] = alone + self._imaginary(node, low, own, real, imaginary)
            return flat.reshape(values.shape)

        found, bits = computed(self._traced, graph, self._inputs, noisy), []
        for name, got, want in zip(graph.outputs, found, outputs, strict=True):
            off = (got - want).reshape(len(got), -1) / graph[name].scaling.radius
            worst = math.sqrt(float(np.square(off).mean(axis=0).max())) / larger
            bits.append(-math.log2(max(worst, float(np.abs(off).max()) / SIGMAS, 2.0**-100)))
        return tuple(bits)

    def mean_noise_bits(
        self, graph: Graph, added: Mapping[str, AddedToCopies]
    ) -> tuple[float, ...]:
        """For each output of a graph with layouts, -log2 of the root mean square of the noise of
        its numbers, in its scale. If there are few outputs, several sets of examples are drawn,
        because some have more noise than others.

        added: what every node adds.

        Raises RangeExceeded if an output has more noise than its numbers have size.
        """
        rng = np.random.default_rng(_SEED)

        def noisy(node: Node, values: Array) -> Array:
            own = added.get(node.name, AddedToCopies())
            drawn = own.random * rng.normal(size=values.shape)
            return np.asarray(values + drawn + own.restored.systematic(values))

        twice = any(own.repetitions > 1 for own in added.values())
        if twice:
            noisy = Copies(graph, added, rng)
        within = {name: own.within for name, own in added.items() if any(own.within)}
        factors = Factors(graph, within, rng)

        def with_noise(node: Node, values: Array) -> Array:
            found = noisy(node, factors(node, values))
            factors.keep(node, found)
            return found

        fewest = len(self._index) * min(graph[name].size for name in graph.outputs)
        draws = max(1, -(-_ERRORS // fewest))
        squares = [0.0] * len(graph.outputs)  # the mean of squares of every draw, added up
        # Noise that outgrows its numbers leaves the intervals of polynomials, whose values may then
        # be infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            for draw in range(draws):
                inputs, outputs = self._inputs, self._exact(graph)[0]
                if draw:
                    inputs = self._drawn(draw)
                    outputs = computed(self._traced, graph, inputs, lambda _, values: values)
                if twice:
                    inputs = [np.concatenate((x, x)) for x in inputs]
                found = computed(self._traced, graph, inputs, with_noise)
                for k, (name, got, want) in enumerate(
                    zip(graph.outputs, found, outputs, strict=True)
                ):
                    off = (got[-len(want) :] - want).reshape(len(want), -1)
                    squares[k] += float(np.mean(np.square(off / graph[name].scaling.radius)))
                    # The mean over all draws is at least 1 then, whatever the other draws give. How
                    # much larger it is says nothing.
                    if not squares[k] < draws:
                        raise RangeExceeded(f"{name} has more noise than its numbers have size")
        means = [total / draws for total in squares]
        return tuple(-0.5 * math.log2(max(mean, 4.0**-100)) for mean in means)

    def _exact(self, graph: Graph) -> tuple[list[Array], dict[str, Array]]:
        """The outputs without noise, in the model's units, and the values (examples, size) of every
        node in its scale."""
        if self._known is None or self._known[0] is not graph:
            values: dict[str, Array] = {}

            def seen(node: Node, found: Array) -> Array:
                values[node.name] = found.reshape(len(found), -1)
                return found

            self._known = graph, computed(self._traced, graph, self._inputs, seen), values
        return self._known[1:]

    def _beyond(
        self,
        node: Node,
        low: Graph,
        added: Mapping[str, Added],
        real: Mapping[str, Array],
        imaginary: Mapping[str, Array],
        between: dict[str, float],
        strength: Mapping[str, Array],
    ) -> Array:
        """For every example, the variances of a transform's numbers beyond what its matrices make
        of its sources' and what it adds: from empty slots, and from sums that it shares with other
        nodes.

        It also notes the variance of the slots between its numbers.
        """
        found = np.zeros(node.size)
        for name, term in zip(node.inputs, terms_of(node), strict=True):
            if name in real:
                leaks = self._empty_slot_noise(term)
                more = leaks(real[name], imaginary[name], between[name], node.size)
                found = found + np.outer(strength[name], more)
            else:
                shared, own = low[name], np.square(added[name].real)
                between[name] = float(np.min(own))
                known = added, real, imaginary, between, strength
                more = own + self._beyond(shared, low, *known)
                found = found + float(term.factor or 0.0) ** 2 * more
            if term.factor is not None:
                windows = 2.0 ** len(term.sums)
                between.setdefault(node.name, 0.0)
                between[node.name] += term.factor**2 * windows * between[name]
        return found

    def _imaginary(
        self,
        node: Node,
        low: Graph,
        own: Array,
        real: Mapping[str, Array],
        imaginary: Mapping[str, Array],
    ) -> Array:
        """The variance of the imaginary part of the noise that a node's numbers have of its inputs.
        The result of an overlay is real."""
        if isinstance(node.operation, MatrixProduct):
            return real[node.name]
        found = np.zeros(node.size)
        if isinstance(node.operation, Affine):
            lowered = {n.name: n for n in low}.get(node.name)
            pairs = zip(lowered.inputs, terms_of(lowered), strict=True) if lowered else ()
            overlaid = {name for name, term in pairs if term.turns}
            for name, single in zip(node.inputs, node.operation.maps, strict=True):
                if name not in overlaid:
                    found = found + single.squared(imaginary[name])
        else:
            taken = np.maximum(real[node.name] - own, 0.0)
            for name in node.inputs:
                found = np.maximum(found, taken * imaginary[name] / real[name])
        return found

    def _empty_slot_noise(self, term: Term) -> EmptySlotNoise:
        if id(term) not in self._empty_slots:
            self._empty_slots[id(term)] = term, empty_slot_noise(term)
        return self._empty_slots[id(term)][1]


def by_rows(own: float, floor: float, maps: Sequence[SparseMap], ciphertexts: Indices) -> Array:
    """What a transform adds to each number.

    own: what it adds, as the mean over the numbers of the ciphertext that gets most.
    floor: the part of it that does not depend on the entries of the matrices, which every number
        gets. What rotations add to the source is multiplied by the row of a number, so that the
        variance of the rest is proportional to the sum of its squares.
    ciphertexts: in which one every number lies.
    """
    ratio = np.zeros(len(ciphertexts))
    for single in maps:
        squares = single.row_squares
        total = np.bincount(ciphertexts.astype(np.int64), squares)
        filled = np.bincount(ciphertexts.astype(np.int64), squares > 0)
        mean = (total / np.maximum(filled, 1)).max()
        ratio = np.maximum(ratio, squares / max(mean, np.finfo(float).tiny))
    return np.asarray(np.sqrt(floor**2 + max(own**2 - floor**2, 0.0) * ratio))
