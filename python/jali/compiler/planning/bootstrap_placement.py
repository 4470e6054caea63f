"""Levels and bootstraps of a lowered graph: which arrays may be bootstrapped, what everything
costs, and the cheapest plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jali._core.console import counted_text, one_text
from jali.ckks import Params
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.elimination import NEVER
from jali.compiler.ir.folded_ops import Bootstrap, approximation_of
from jali.compiler.ir.graph import Graph, Node, peak
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.operation import Input
from jali.compiler.layout.lowered_ops import LoweredProducts, Transform, terms_of
from jali.compiler.passes.levels import Levels, levels_taken
from jali.compiler.planning.bootstrap_search import Placement, Problem, Stage, placed
from jali.compiler.planning.node_costs import cost_of
from jali.errors import InvalidArgument, Unsupported

__all__ = ["best_levels", "problem_of", "refusal", "repeated_after", "verify"]

#: The largest modulus of a number that is bootstrapped; approximations leave [-1, 1] by their
#: error.
_LARGEST = 1 + 2.0**-6


def refusal(node: Node, most: float) -> str:
    """Why an array must not be bootstrapped; "" if it may.

    most: bootstrap_max_magnitude of the parameters.

    Bootstrapping is as precise as its parameters promise for numbers of modulus up to 1. Slots
    between the numbers lose precision, which nobody needs, but must not leave the range in which
    the modular reduction works.
    """
    if isinstance(node.operation, Input | Bootstrap):
        return f"{node.name} is {one_text(node.op)}"
    if node.layout.partial:
        return (
            f"slots between the numbers of {node.name} hold parts of sums, whose size nobody knows"
        )
    largest, between = peak(node), node.scaling.most or 1.0
    if largest > _LARGEST:
        return f"numbers of {node.name} may be as large as {largest:.3g}, and bootstrapping takes numbers up to 1"
    if between > most:
        return (
            f"slots between the numbers of {node.name} may hold {between:.3g}, and these parameters bootstrap "
            f"{most:.3g}"
        )
    return ""


def repeated_after(layout: Layout, slots: int) -> int:
    """After how many of all slots the numbers of every ciphertext repeat: the fewest with which
    they can be bootstrapped, at least 2."""
    lanes = slots // layout.slots
    return max(2, layout.period * lanes) if layout.ciphertexts == 1 else slots


def _ways(layout: Layout, slots: int, packings: Sequence[int]) -> list[int]:
    """Those numbers of slots, 0 for all, with which an array can be bootstrapped."""
    least = repeated_after(layout, slots)
    return [packing for packing in packings if packing == 0 or least <= packing < slots]


def _work(node: Node) -> tuple[object, ...]:
    """What tells nodes of equal cost: the iterations of a loop share these objects."""
    operation = node.operation
    objects = (node.layout, approximation_of(node), *terms_of(node))
    shared = operation.shared if isinstance(operation, Transform) else ()
    sums = operation.sums if isinstance(operation, LoweredProducts) else ()
    return (node.op, len(node.inputs), shared, sums, *map(id, objects))


def problem_of(
    graph: Graph, params: Params, costs: Costs, packings: Sequence[int] = (0,)
) -> Problem:
    """The abstract problem of a lowered graph.

    packings: with how many slots there are keys to bootstrap, 0 for all.
    """
    stages, most = [], params.bootstrap_max_magnitude
    known: dict[tuple[object, ...], tuple[int, ...]] = {}
    of_restored = cache(costs.bootstrap)
    for node in graph:
        inputs = tuple((name, levels_taken(node, k)) for k, name in enumerate(node.inputs))
        may = params.bootstraps and graph.users(node.name) and not refusal(node, most)
        layout = node.layout
        ways = _ways(layout, params.slots, packings) if may else ()
        restored = tuple(of_restored(layout.ciphertexts, packing) for packing in ways)
        work = _work(node)
        if work not in known:
            known[work] = cost_of(costs, node)
        stages.append(Stage(node.name, inputs, known[work], restored))
    due = params.bootstrap_level if params.bootstraps else params.depth + 1
    return Problem(tuple(stages), params.depth, due)


def verify(graph: Graph, params: Params) -> None:
    """Raises InvalidArgument if the bootstraps of a graph with levels are not those that parameters
    can do."""
    for node in graph:
        if isinstance(node.operation, Bootstrap):
            source = graph[node.inputs[0]]
            refused = refusal(source, params.bootstrap_max_magnitude)
            due = params.bootstrap_level if params.bootstraps else params.depth + 1
            if refused or source.level < due:
                raise InvalidArgument(refused or f"{source.name} is bootstrapped below level {due}")
            packing = node.operation.slots or 0
            if not _ways(source.layout, params.slots, [packing]) or (packing & (packing - 1)):
                raise InvalidArgument(f"{source.name} does not repeat after {packing} slots")


def best_levels(
    graph: Graph,
    params: Params,
    costs: Costs,
    packings: Sequence[int] = (0,),
    below: int = NEVER,
) -> tuple[Levels, Placement]:
    """The cheapest levels and bootstraps.

    packings: see problem_of.

    Raises Unsupported, which names what is too deep, if there are none, or none that cost less than
    `below`.
    """
    plan = placed(problem_of(graph, params, costs, packings), below=below)
    if plan is not None:
        ways = {
            name: _ways(graph[name].layout, params.slots, packings)[way]
            for name, way in plan.ways.items()
        }
        slots = {name: packing for name, packing in ways.items() if packing}
        return Levels(plan.levels, plan.restored, slots), plan
    if below < NEVER:
        raise Unsupported(f"no plan with these parameters costs less than {below}")
    between = params.depth - params.bootstrap_level
    deep = max(
        graph, key=lambda n: max((levels_taken(n, k) for k in range(len(n.inputs))), default=0)
    )
    most = params.bootstrap_max_magnitude
    refused = [
        why
        for node in graph
        if (why := refusal(node, most)) and not isinstance(node.operation, Input)
    ]
    raise Unsupported(
        f"{counted_text(between, 'level')} {'lies' if between == 1 else 'lie'} between two bootstrappings, and no plan gets along with them. Most of a single operation, "
        f"{levels_taken(deep)}, go to {deep.name} ({approximation_of(deep) or deep.op}). {' '.join(refused[:2])}"
    )
