"""The noise that products of encrypted matrices add to their factors, before they multiply them.

Every number of a factor is copied to the slots of all numbers of the result that it is part of. The
mask that picks it has a rounding, which is copied with it. So this noise is in proportion to the
other factor, and the same for a whole row or column of the result. If it was spread evenly, that of
a softmax would not lie in the directions of the values that it weighs, which matrices behind it
enlarge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.products import MatrixProduct

__all__ = ["Factors", "factor_noise", "gain_of_products"]


def gain_of_products(node: Node) -> float:
    """The root mean square of the numbers of a product, if those of both factors have 1 and are
    independent."""
    product = MatrixProduct.of(node)
    return float(abs(product.gain) * math.sqrt(product.contracted))


def factor_noise(
    node: Node, sizes: Sequence[float], own: float, alone: tuple[float, float], floor: float
) -> tuple[float, float]:
    """The standard deviations of what is added to both factors, in their scales.

    sizes: the root mean squares of the factors.
    own: what the product adds.
    alone: what it adds if the other factor has its size, and this one is 0.
    floor: what it adds if both are 0.
    """
    gain = gain_of_products(node)
    behind = [math.sqrt(max(min(part, own) ** 2 - floor**2, 0.0)) for part in alone]
    scale = min(1.0, math.sqrt(max(own**2 - floor**2, 0.0)) / max(math.hypot(*behind), 1e-300))
    return scale * behind[0] / (gain * sizes[1]), scale * behind[1] / (gain * sizes[0])


class Factors:
    """Adds this noise to the values of a graph with layouts, node by node.

    within: for each product, the standard deviations of what is added to both factors.
    """

    def __init__(
        self, graph: Graph, within: Mapping[str, tuple[float, float]], rng: np.random.Generator
    ) -> None:
        self._within, self._rng = within, rng
        self._last = {k: node.name for node in graph if node.name in within for k in node.inputs}
        self._factors: dict[str, Array] = {}

    def __call__(self, node: Node, values: Array) -> Array:
        """The values of a product for noisy factors; those of another node."""
        if node.name not in self._within:
            return values
        factors = [self._factors[name] for name in node.inputs]
        deviations = self._within[node.name]
        noisy = [
            x + deviation * self._rng.normal(size=x.shape)
            for x, deviation in zip(factors, deviations, strict=True)
        ]
        exact = node.operation.compute(factors).reshape(values.shape)
        found = node.operation.compute(noisy).reshape(values.shape)
        for name in {*node.inputs}:
            if self._last[name] == node.name:
                del self._factors[name]
        return np.asarray(values + (found - exact))

    def keep(self, node: Node, values: Array) -> None:
        """Has to be called with the values of every node, with all noise."""
        if node.name in self._last:
            self._factors[node.name] = values
