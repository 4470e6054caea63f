"""What the operations of a lowered graph cost, by the level of their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from jali.compiler.cost.costs import Costs
from jali.compiler.cost.elimination import NEVER
from jali.compiler.ir.folded_ops import Approximated, Bootstrap
from jali.compiler.ir.graph import Node
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.lowered_ops import LoweredProducts, Transform
from jali.compiler.passes.levels import levels_taken

__all__ = ["COSTS", "cost_at_level", "cost_of"]


def cost_of(costs: Costs, node: Node) -> tuple[int, ...]:
    """What a node costs by the level of its result; NEVER where its inputs would have to lie above
    the top."""
    top = len(costs.rotation) - 1
    takes = max((levels_taken(node, k) for k in range(len(node.inputs))), default=0)
    levels = range(top - takes + 1)
    found = COSTS[type(node.operation)](costs, node.operation, node.layout.ciphertexts, levels)
    return (*found, *(NEVER for _ in range(top + 1 - len(levels))))


def cost_at_level(costs: Costs, node: Node) -> int:
    """What a node of a graph with levels costs where it lies, bootstraps among them."""
    if isinstance(node.operation, Bootstrap):
        return costs.bootstrap(node.layout.ciphertexts, node.operation.slots or 0)[node.level]
    return cost_of(costs, node)[node.level]


def _nothing(costs: Costs, operation: Operation, count: int, levels: range) -> list[int]:
    """Inputs are encrypted by the client. A bootstrap is priced by Costs.bootstrap."""
    return [0 for _ in levels]


def _transform(costs: Costs, operation: Transform, count: int, levels: range) -> list[int]:
    return _matrices(costs, operation, operation.shared, count, levels)


def _matrices(
    costs: Costs,
    operation: Transform | LoweredProducts,
    shared: tuple[bool, ...],
    count: int,
    levels: range,
) -> list[int]:
    """n diagonals between two ciphertexts take about 2 (sqrt(n) - 1) rotations."""
    turned, diagonals = 0, 0
    before, factors, sums = 0, 0, 0
    behind: set[tuple[object, ...]] = set()
    for term, is_shared in zip(operation.terms, shared, strict=True):
        before += term.moved
        if term.factor is not None:
            factors += 0 if term.is_free else 1 if term.joined else count
        for n in map(len, term.diagonals.values()):
            turned += max(0, math.ceil(2 * (math.sqrt(n) - 1)))
            diagonals += n
            before += len(term.before) + (0 if is_shared else term.around)
        if term.behind not in behind:
            sums += len(term.sums) * count + term.around * len({to for to, _ in term.diagonals})
        behind |= {term.behind} - {()}
    above = 1 if diagonals or factors else 0  # without products, no level is taken
    found = []
    for level in levels:
        rotation, plain = costs.rotation[level + above], costs.plain[level + above]
        matrix = (turned * rotation + diagonals * plain) * costs.fused // 1000
        other = before * rotation + factors * plain + sums * costs.rotation[level]
        found.append(costs.each(matrix + other, count) // count)
    return found


def _products(costs: Costs, operation: LoweredProducts, count: int, levels: range) -> list[int]:
    none = (False,) * len(operation.terms)
    factors = _matrices(costs, operation, none, count, range(1, levels.stop + 1))
    pairs = len(operation.terms) // 2
    return [
        factors[level]
        + (costs.product[level + 1] + pairs * costs.added[level + 1]) * count
        + costs.rotation[level] * len(operation.sums)
        for level in levels
    ]


def _multiply(costs: Costs, operation: Multiply, count: int, levels: range) -> list[int]:
    return [costs.each(costs.product[level + 1], count) for level in levels]


def _approximated(costs: Costs, operation: Approximated, count: int, levels: range) -> list[int]:
    """As many products as the polynomial has, at the mean cost over its levels."""
    times, takes = operation.by.multiplications, operation.by.depth
    return [
        costs.each(sum(costs.product[level + 1 : level + takes + 1]) * times, count)
        // max(1, takes)
        for level in levels
    ]


#: Of every operation of a lowered graph: what it costs at each of some levels, with a result of so
#: many ciphertexts.
COSTS: Mapping[type[Operation], Callable[[Costs, Any, int, range], list[int]]] = {
    Input: _nothing,
    Transform: _transform,
    LoweredProducts: _products,
    Multiply: _multiply,
    Approximated: _approximated,
    Bootstrap: _nothing,
}
