"""Which part of a program's work computes maxima."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jali.compiler.ir.folded_ops import Bootstrap
from jali.compiler.passes.levels import levels_taken
from jali.compiler.planning.node_costs import cost_at_level
from jali.compiler.planning.plan import Plan

__all__ = ["maxima_share"]


def maxima_share(plan: Plan, names: Sequence[str]) -> float:
    """The part of a run's cost that is spent on the maxima of these names.

    Bootstrappings give back levels, so their cost is divided in proportion to the levels that
    operations take, times their ciphertexts.
    """
    extra = plan.interpreter.extra
    costs, levels = dict[str, int](), dict[str, int]()
    bootstraps = 0
    for node in plan.interpreter.graph:
        cost = cost_at_level(plan.costs, node)
        if isinstance(node.operation, Bootstrap):
            bootstraps += cost
            continue
        costs[node.name] = cost + extra.get(node.name, 0)
        taken = max((levels_taken(node, k) for k in range(len(node.inputs))), default=0)
        levels[node.name] = taken * node.layout.ciphertexts
    restored = bootstraps / max(1, bootstraps + sum(costs.values()))
    return (1 - restored) * _share(costs, names) + restored * _share(levels, names)


def _share(amounts: Mapping[str, int], names: Sequence[str]) -> float:
    """The part of a sum that these amounts have."""
    return sum(amounts[name] for name in names) / max(1, sum(amounts.values()))
