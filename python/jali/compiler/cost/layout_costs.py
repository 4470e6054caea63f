"""The costs by which layouts are chosen: one for each operation, that in the middle of the levels
that a program works on.

Layouts are chosen before levels and parameters are, and serve all parameters of a ring. So they see
one number for each operation instead of one for each level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from jali._core import schema
from jali.ckks import Params
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.elimination import NEVER

__all__ = ["LayoutCosts", "layout_costs_of"]


@dataclass(frozen=True)
class LayoutCosts:
    """Whole numbers in the unit of the costs, for one ciphertext. A program pins them: it has the
    same layouts wherever it is loaded.

    rotation: of a whole ciphertext.
    behind: the same a level below, behind products.
    switch: of a rotation among the products of a matrix.
    diagonal: of a product with a diagonal there.
    mask: of such a product alone.
    product: of ciphertexts.
    added: of a product of ciphertexts that is added to others before they are relinearised.
    sent: of a ciphertext that arrives.
    level: of a level, by what it takes to restore it.
    several: what each of several ciphertexts of an array costs in thousandths of one alone.
    """

    rotation: int
    behind: int
    switch: int
    diagonal: int
    mask: int
    product: int
    added: int
    sent: int
    level: int
    several: int = 1000

    def matrix(self, counts: Iterable[int], turns: int = 0) -> float:
        """What products with diagonals cost, with their sums.

        counts: of diagonals, for each pair of ciphertexts; n of them take about 2 (sqrt(n) - 1)
            rotations.
        turns: of an overlay of each source, which are rotations before the products and behind
            them.
        """
        around = (self.rotation + self.behind) * turns
        return sum(
            self.switch * 2 * (math.sqrt(n) - 1) + self.diagonal * n + around for n in counts
        )

    def shared(self, cost: float, ciphertexts: int) -> float:
        """What a cost is if it is that of an array of so many ciphertexts, which are computed at
        once."""
        return cost * self.several / 1000 if ciphertexts > 1 else cost

    @property
    def document(self) -> dict[str, int]:
        """For a file."""
        return asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> LayoutCosts:
        """What ``document`` gave. Raises ValueError for anything else."""
        weight = schema.whole(0, NEVER - 1)
        return cls(**schema.record({field.name: weight for field in fields(cls)})(document))


def layout_costs_of(costs: Costs, params: Params) -> LayoutCosts:
    """The layout costs for parameters: those in the middle of the levels from which they bootstrap,
    or of all.

    A level costs its part of the bootstrapping that restores all of them. Without bootstrapping it
    costs what a rotation takes longer a level higher, which is the least: one operation that comes
    before. A ciphertext that arrives is two polynomials, each of the bytes of a diagonal.
    """
    first = params.bootstrap_level if params.bootstraps else 0
    level = (first + params.depth + 1) // 2
    rotation, plain, product = costs.rotation[level], costs.plain[level], costs.product[level]
    behind = costs.rotation[max(0, level - 1)]
    if params.bootstraps:
        restored = costs.bootstrap(1)[-1] // max(1, params.depth - first)
    else:
        restored = max(0, rotation - behind)
    return LayoutCosts(
        rotation=rotation,
        behind=behind,
        switch=rotation * costs.fused // 1000,
        diagonal=plain * costs.fused // 1000,
        mask=plain,
        product=product,
        added=costs.added[level],
        sent=2 * plain,
        level=restored,
        several=costs.together,
    )
