"""Fewer keys than a program uses: its other rotations are composed of these, and its bootstrappings
take longer.

A client that sends fewer keys waits longer for every answer, because what has no key takes several
key switchings. Each adds noise, for which a program may need a larger scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from jali._core.console import bytes_text
from jali.compiler.cost.composed import key_sets, levels_of
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.keys import (
    key_curve,
    relative_time,
    sent_bytes,
    sent_exactly,
    sent_of_expanded,
    serving_rotations,
)
from jali.compiler.ir.folded_ops import Bootstrap
from jali.compiler.planning.node_costs import cost_at_level
from jali.compiler.planning.plan import Plan
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import Unsupported
from jali.program.demand import Demand

__all__ = [
    "FEWEST",
    "Choice",
    "TooManyKeys",
    "choices",
    "restoring_cost",
    "run_cost",
    "sending",
    "weights_of",
]

#: A number of bytes to send that stands for as few as are found.
FEWEST = 0
_CURVE = 16  # about as many sets of keys of bootstrapping are tried


class TooManyKeys(Unsupported):
    """A program whose client would have to send more bytes of keys than it may.

    rotations: of the fewest keys, how many are those of rotations.
    """

    rotations = 0


@dataclass(frozen=True)
class Choice:
    """A set of keys with which a program can be computed.

    sent: their bytes in a message; about, for a program that bootstraps.
    cost: of a run with them, in the unit of the costs.
    composing: what composed rotations cost of that, beyond a rotation each.
    """

    demand: Demand
    sent: int
    cost: float
    composing: float = 0.0


def choices(interpreter: Interpreter, demand: Demand, costs: Costs) -> list[Choice]:
    """Keys from the fewest bytes to all, each faster than the one before.

    demand: of all keys: one for every rotation, and of bootstrapping those that the server has
        memory for.
    costs: with bootstrappings that take as long as with these.
    """
    run = run_cost(interpreter, costs)
    every = Choice(demand, sent_exactly(interpreter.params, demand), run)
    found = [every, *_fewer(interpreter, demand, costs, run)]
    best: list[Choice] = []
    for one in sorted(found, key=lambda one: (one.sent, one.cost)):
        if one.sent <= every.sent and (not best or one.cost < best[-1].cost):
            best.append(one)
    return best


def _chosen(interpreter: Interpreter, demand: Demand, costs: Costs, upload: float) -> Choice:
    """The fastest keys of at most so many bytes, or the fewest for FEWEST. Arguments as of choices.

    Raises TooManyKeys if there are none.
    """
    params, found = interpreter.params, choices(interpreter, demand, costs)

    def exactly(k: int) -> Choice:
        return replace(found[k], sent=sent_exactly(params, found[k].demand))

    best = exactly(0)
    if upload != FEWEST and best.sent > upload:
        refused = TooManyKeys(f"the fewest keys take {bytes_text(best.sent)} in a message")
        refused.rotations = len(best.demand.rotations)
        raise refused
    low, high = 0, 1 if upload == FEWEST else len(found)
    # Choices are sorted by about how many bytes they have. Their exact bytes, which are costly to
    # count, rise in the same order, but for keys that serve both rotations and bootstrapping.
    while high - low > 1:
        middle = (low + high) // 2
        one = exactly(middle)
        if one.sent <= upload:
            best, low = one, middle
        else:
            high = middle
    return best


def sending(plan: Plan, costs: Costs, upload: float, again: Callable[[Demand], Demand]) -> Plan:
    """The plan with keys of at most so many bytes, or the fewest for FEWEST. Costs as of choices.

    again: a dry run of the plan with other keys, which gives their demand with its noise.
    """
    choice = _chosen(plan.interpreter, plan.demand, costs, upload)
    if choice.demand == plan.demand:
        return plan
    if choice.demand.bootstrap != "none":
        params = plan.interpreter.params
        fewer, more = (costs.slower(relative_time(params, d)) for d in (choice.demand, plan.demand))
        costs = costs.slowed(fewer / more)
    return replace(plan, demand=again(choice.demand), costs=costs, composing=choice.composing)


def _fewer(interpreter: Interpreter, demand: Demand, costs: Costs, run: float) -> Iterator[Choice]:
    """Sets of keys of which other rotations are composed, each with several sets of keys of
    bootstrapping if the program bootstraps."""
    params, slots = interpreter.params, interpreter.params.slots
    weights = weights_of(interpreter, demand, costs)

    @cache
    def composed(others: tuple[int, ...] = ()) -> list[tuple[dict[int, int], float]]:
        sets = key_sets(slots, weights, others)
        return [(levels_of(slots, x.steps, demand.rotations, others), x.extra) for x in sets]

    if demand.bootstrap == "none":
        for rotations, extra in composed():
            fewer = replace(demand, rotations=rotations)
            yield Choice(fewer, sent_exactly(params, fewer), run + extra, extra)
        return
    restoring = restoring_cost(interpreter, costs)
    own = relative_time(params, demand)
    each = {level: sent_bytes(params, level) for level in {*demand.rotations.values()}}
    # Those that are no faster than the demand's: the server has memory for them.
    curve = [one for one in key_curve(params, tuple(demand.packings)) if one[1] >= own]
    for size, slower in curve[:: max(1, len(curve) // _CURVE)]:
        more = run + restoring * (costs.slower(slower) / costs.slower(own) - 1)
        others = serving_rotations(params, replace(demand, bootstrap=size))
        for rotations, extra in composed(tuple(others)):
            fewer = replace(demand, rotations=rotations, bootstrap=size)
            sent = sent_of_expanded(params, size) + sum(each[k] for k in rotations.values())
            yield Choice(fewer, sent, more + extra, extra)


def run_cost(interpreter: Interpreter, costs: Costs) -> float:
    """What a run costs with a key for every rotation."""
    run = sum(cost_at_level(costs, node) for node in interpreter.graph)
    return float(run + sum(interpreter.extra.values()))


def restoring_cost(interpreter: Interpreter, costs: Costs) -> float:
    """What the bootstraps of a run cost."""
    restored = (node for node in interpreter.graph if isinstance(node.operation, Bootstrap))
    return float(sum(cost_at_level(costs, node) for node in restored))


def weights_of(interpreter: Interpreter, demand: Demand, costs: Costs) -> dict[int, float]:
    """What the rotations by each step cost in a run. Those that the interpreter does not count are
    taken to come once."""
    slots, found = interpreter.params.slots, dict[int, float]()
    for (step, level), times in interpreter.turns.items():
        key = step % slots
        found[key] = found.get(key, 0.0) + times * costs.rotation[level]
    for step, level in demand.rotations.items():
        found.setdefault(step % slots, float(costs.rotation[level]))
    return found
