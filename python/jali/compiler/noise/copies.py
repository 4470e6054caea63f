"""The noise of numbers of which a ciphertext holds several copies.

A sparse bootstrapping gives every copy of a number the mean of all c copies. It keeps the noise
that the copies have in common. Of the noise that each copy has by itself, it keeps a c-th part of
the variance, which is then in common, too. Training with momentum adds up common noise over its
iterations, and a bootstrapping in every iteration takes most of the other noise away.

An operation that works slot by slot adds noise to each copy by itself. A sum over slots makes
copies: the noise of what is summed is then in common. What the rotations of a sum add is taken to
be in common as well. That is more than there is, because the last rotations add to half of the
copies each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import factor_of
from jali.compiler.ir.operation import Elementwise, Input
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.lowered_ops import terms_of
from jali.compiler.noise.bootstrap_noise import BootstrapNoise

__all__ = ["AddedToCopies", "Copies", "sums_slots"]


@dataclass(frozen=True)
class AddedToCopies:
    """What a node adds to its numbers, as standard deviations in its scale.

    common: what all copies of a number have in common.
    alone: what each copy has by itself.
    restored: what the bootstrapping behind the node adds.
    repetitions: of how many copies this bootstrapping takes the mean; 1 if it takes no mean.
    within: of a product of encrypted matrices, what it adds to its factors
        (jali.compiler.noise.product_noise); common is then what it adds behind them.
    """

    common: float = 0.0
    alone: float = 0.0
    restored: BootstrapNoise = field(default_factory=BootstrapNoise)
    repetitions: int = 1
    within: tuple[float, float] = (0.0, 0.0)

    @property
    def random(self) -> float:
        """What one copy has, but for what is the same in every bootstrapping."""
        return math.hypot(self.common, self.alone, self.restored.random)


class Copies:
    """Adds noise to the values of a graph with layouts, node by node.

    Every example is there twice: in the first half of the values with the noise that all copies of
    a number have in common, in the second half with the noise of one copy.
    """

    def __init__(
        self, graph: Graph, added: Mapping[str, AddedToCopies], rng: np.random.Generator
    ) -> None:
        self._graph, self._added, self._rng = graph, added, rng
        self._last = {name: node.name for node in graph for name in node.inputs}
        self._apart: dict[str, Array] = {}  # by node: one copy less what all have in common

    def __call__(self, node: Node, values: Array) -> Array:
        """The values with what the node adds."""
        common, one = np.split(values, 2)
        if isinstance(node.operation, Affine):
            for name, single in zip(node.inputs, node.operation.maps, strict=True):
                if not self._is_slot_by_slot(node, name, single):
                    common = common + single(self._apart[name]).reshape(common.shape)
        elif not (isinstance(node.operation, Elementwise | Input)):
            common = one
        own = self._added.get(node.name, AddedToCopies())
        new = self._drawn(own.common, common)
        common, one = common + new, one + new + self._drawn(own.alone, common)
        if own.repetitions > 1:
            common = one = common + (one - common) / math.sqrt(own.repetitions)
        new = self._drawn(own.restored.common, common) + own.restored.systematic(common)
        common, one = common + new, one + new + self._drawn(own.restored.alone, common)
        for name in {*node.inputs}:
            if self._last[name] == node.name:
                del self._apart[name]
        if node.name in self._last:
            self._apart[node.name] = (one - common).reshape(len(one), -1)
        return np.concatenate((common, one))

    def _is_slot_by_slot(self, node: Node, name: str, single: SparseMap) -> bool:
        """Whether every copy of a result takes a multiple of one copy of an input."""
        return factor_of(single) is not None and self._graph[name].layout == node.layout

    def _drawn(self, deviation: float, like: Array) -> Array | float:
        return deviation * self._rng.normal(size=like.shape) if deviation else 0.0


def sums_slots(node: Node) -> bool:
    """Whether a node of a graph with levels adds up numbers of several slots."""
    terms = terms_of(node)
    return isinstance(node.operation, MatrixProduct) or any(
        t.factor is None or t.sums or t.before for t in terms
    )
