"""How many examples a ciphertext holds if nobody says it: as many as cost next to nothing."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import TypeVar

from jali.compiler.cost.keys import key_sizes
from jali.compiler.planning.node_costs import cost_at_level
from jali.compiler.planning.plan import Plan
from jali.errors import InvalidArgument, Unsupported

__all__ = ["MOST_LANES", "cost_of_run", "relative_cost", "room_for", "widest"]

#: Examples in one ciphertext that jali.compile takes.
MOST_LANES = 1 << 15
_MORE = 1.1  # times the cost of a run, and the bytes of keys, that more examples may take
_TRIES = 4
_FACTOR = 4  # by which the examples of the next try are fewer

Made = TypeVar("Made")


def cost_of_run(plan: Plan) -> float:
    """What a run costs by the costs that the plan was made with: bootstraps, matrices that are not
    resident and composed rotations among it."""
    graph, extra = plan.interpreter.graph, plan.interpreter.extra
    run = sum(cost_at_level(plan.costs, node) + extra.get(node.name, 0) for node in graph)
    return run + plan.composing


def relative_cost(plan: Plan, other: Plan) -> float:
    """The cost of a run over that of another plan. If the costs of one ring were measured and those
    of the other were not, it is that of the bytes that are read."""
    alike = plan.costs.unit == other.costs.unit
    mine, theirs = (cost_of_run(p) if alike else p.read_bytes for p in (plan, other))
    if theirs == 0:
        return math.inf if mine else 1.0
    return mine / theirs


def room_for(plan: Plan) -> int:
    """For how many examples a ciphertext of these parameters has room, if each of its arrays is to
    lie in one."""
    largest = max(node.size for node in plan.stages["levels"])
    room = plan.interpreter.params.slots // (1 << (largest - 1).bit_length())
    return max(1, min(room, MOST_LANES))


def widest(at: Callable[[int], Made], plan_of: Callable[[Made], Plan], made: Made) -> Made:
    """What `at` makes with the most examples in a ciphertext whose run, and whose keys, cost at
    most a tenth more than those of `made`, which has the fewest. Of these numbers, the largest that
    the slots have room for is tried first, and then each time a quarter of them."""
    first = plan_of(made)
    lanes = first.interpreter.lanes
    keys = _keys(first)
    wider = room_for(first)
    for _ in range(_TRIES):
        if wider <= lanes:
            break
        with contextlib.suppress(Unsupported, InvalidArgument):
            found = at(wider)
            plan = plan_of(found)
            if relative_cost(plan, first) <= _MORE and _keys(plan) <= _MORE * keys:
                return found
        wider //= _FACTOR
    return made


def _keys(plan: Plan) -> int:
    return key_sizes(plan.interpreter.params, plan.demand).expanded
