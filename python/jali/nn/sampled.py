"""The noise of every number of a program's outputs: what each operation adds, carried through the model with examples of the calibration.

What operations add is drawn at random, number by number, and the model computes with it. So the rows of matrices, which may differ by orders of
magnitude, the sizes of a product's factors, and the correlation of numbers that come from the same ones are counted as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jali.nn.expected import computed
from jali.nn.graph import Array, Graph, Node
from jali.nn.leaks import Leaks, leaks_of
from jali.nn.lower import Term
from jali.nn.sparse import SparseMap

__all__ = ["Added", "Samples", "by_rows"]

_NUMBERS = 1 << 21  # of all arrays of the model together, for the examples that are drawn
_FEWEST, _MOST = 8, 256  # examples that are drawn
_SEED = 2026  # every machine makes the same plan


@dataclass(frozen=True)
class Added:
    """What a node adds in its scale: the standard deviations of the real and the imaginary part, of all numbers or of each."""

    real: Array | float
    imaginary: Array | float


class Samples:
    """A traced model, and examples (n, *shape) for each of its inputs."""

    def __init__(self, traced: Graph, inputs: Sequence[Array]) -> None:
        each = sum(node.size for node in traced)
        count = min(_MOST, max(_FEWEST, _NUMBERS // each))  # some of them again, if there are fewer
        index = np.arange(count) * max(1, len(inputs[0]) // count) % len(inputs[0])
        self._traced, self._inputs = traced, [x[index] for x in inputs]
        self._known: tuple[Graph, list[Array], dict[str, Array]] | None = None
        self._leaks: dict[int, tuple[Term, Leaks]] = {}  # by the ids of terms

    def sizes(self, graph: Graph) -> dict[str, float]:
        """For every node of a graph with layouts, the root mean square of that of its numbers which has the largest, in its scale."""
        values = self._exact(graph)[1]
        return {name: math.sqrt(float(np.square(x).mean(0).max())) for name, x in values.items()}

    def noise_bits(self, graph: Graph, low: Graph, added: Mapping[str, Added]) -> tuple[float, ...]:
        """For each output of a graph with layouts, -log2 of the noise in its scale.

        low: the lowered graph. added: by node. The noise is the standard deviation of the number that has most of it, or more, if some examples
        have more noise than others: of n normal numbers, the largest is about sqrt(2 ln n) deviations.
        """
        rng = np.random.default_rng(_SEED)
        outputs, exact = self._exact(graph)
        real, imaginary = dict[str, Array](), dict[str, Array]()  # variances of numbers
        between: dict[str, float] = {}  # variances of the slots that hold no number

        def noisy(node: Node, values: Array) -> Array:
            flat = values.reshape(len(values), -1)
            own = np.zeros(node.size) + np.square(added[node.name].real)
            between[node.name], more = float(own.min()), own
            if node.op == "affine":
                terms, maps = low[node.name].attrs["terms"], node.attrs["maps"]
                for name, term, single in zip(node.inputs, terms, maps, strict=True):
                    leaks = self._leaks_of(term, single)
                    more = more + leaks(real[name], imaginary[name], between[name], node.size)
                    if term.factor is not None:
                        windows = 2.0 ** len(term.sums)
                        between[node.name] += term.factor**2 * windows * between[name]
            flat = flat + np.sqrt(more) * rng.normal(size=flat.shape)
            real[node.name] = np.square(flat - exact[node.name]).mean(axis=0)
            alone = np.square(added[node.name].imaginary)
            imaginary[node.name] = alone + self._imaginary(node, low, own, real, imaginary)
            return flat.reshape(values.shape)

        found, bits = computed(self._traced, graph, self._inputs, noisy), []
        for name, got, want in zip(graph.outputs, found, outputs, strict=True):
            off = (got - want).reshape(len(got), -1) / graph[name].attrs["radius"]
            worst = math.sqrt(float(np.square(off).mean(axis=0).max()))
            tail = float(np.abs(off).max()) / math.sqrt(2 * math.log(max(off.size, 2)))
            bits.append(-math.log2(max(worst, tail, 2.0**-100)))
        return tuple(bits)

    def _exact(self, graph: Graph) -> tuple[list[Array], dict[str, Array]]:
        """The outputs without noise, in the model's units, and the values (examples, size) of every node in its scale."""
        if self._known is None or self._known[0] is not graph:
            values: dict[str, Array] = {}

            def seen(node: Node, found: Array) -> Array:
                values[node.name] = found.reshape(len(found), -1)
                return found

            self._known = graph, computed(self._traced, graph, self._inputs, seen), values
        return self._known[1:]

    def _imaginary(
        self,
        node: Node,
        low: Graph,
        own: Array,
        real: Mapping[str, Array],
        imaginary: Mapping[str, Array],
    ) -> Array:
        """The variance of the imaginary part of the noise that a node's numbers have of its inputs. The result of an overlay is real."""
        if node.op == "products":
            return real[node.name]
        found = np.zeros(node.size)
        if node.op == "affine":
            terms, maps = low[node.name].attrs["terms"], node.attrs["maps"]
            for name, term, single in zip(node.inputs, terms, maps, strict=True):
                if not term.turns:
                    squares = SparseMap(
                        single.rows, single.cols, np.square(single.values), single.shape
                    )
                    found = found + squares(imaginary[name][None])[0]
        else:
            taken = np.maximum(real[node.name] - own, 0.0)
            for name in node.inputs:
                found = np.maximum(found, taken * imaginary[name] / real[name])
        return found

    def _leaks_of(self, term: Term, single: SparseMap) -> Leaks:
        if id(term) not in self._leaks:
            self._leaks[id(term)] = term, leaks_of(term, single)
        return self._leaks[id(term)][1]


def by_rows(own: float, floor: float, maps: Sequence[SparseMap], ciphertexts: Array) -> Array:
    """What a transform adds to each number.

    own: what it adds, as the mean over the numbers of the ciphertext that gets most. floor: the part of it that does not depend on the
    entries of the matrices, which every number gets. What rotations add to the source is multiplied by the row of a number, so that the variance of
    the rest is proportional to the sum of its squares. ciphertexts: in which one every number lies.
    """
    ratio = np.zeros(len(ciphertexts))
    for single in maps:
        squares = np.bincount(single.rows, np.square(single.values), single.shape[0])
        total = np.bincount(ciphertexts, squares)
        filled = np.bincount(ciphertexts, squares > 0)
        mean = (total / np.maximum(filled, 1)).max()
        ratio = np.maximum(ratio, squares / max(mean, np.finfo(float).tiny))
    return np.asarray(np.sqrt(floor**2 + max(own**2 - floor**2, 0.0) * ratio))
