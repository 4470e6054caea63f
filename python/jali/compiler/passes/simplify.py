"""Simplification: operations of a traced graph that become cheaper ones, or nothing, which folding
then takes in.

- A clamp that never acts is what it takes, or 0, and a comparison whose result is always the same
  is that number, see jali.compiler.passes.inactive_clamps.
- The inverse of a square root, or of products of square roots, is that of inverse square roots: x /
  |x| and cosines of angles then take one function instead of two in a row.

What is changed is a mapping from names of nodes, which files keep: to a word of KINDS.

In: a traced graph and its examples. Out: a traced graph of the same function.

>>> graph = nn.trace(np.abs, np.ones(2))
>>> [node.op for node in changed(graph, {"absolute": "same"})]
['input', 'scale']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jali.compiler.ir.execute import seen_values
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.linear_ops import Scale
from jali.compiler.ir.scalar import DECIDING
from jali.compiler.ir.seen import Values
from jali.compiler.ir.traced_ops import Function, Multiply, function_of, is_clamp, may_be_inactive
from jali.compiler.passes.calibrate import Sides
from jali.compiler.passes.fold import fold
from jali.compiler.passes.inactive_clamps import inactive_on_sides

__all__ = ["KINDS", "Changes", "are_changes_of", "changed", "simplified"]

Changes = Mapping[str, str]
#: What is in the place of functions that are left out: a x + b, with these a and b.
_MULTIPLES = {
    "same": (1.0, 0.0),
    "negated": (-1.0, 0.0),
    "zero": (0.0, 0.0),
    "one": (0.0, 1.0),
    "negative_one": (0.0, -1.0),
}
_OF_CLAMPS, _OF_COMPARISONS = ("same", "zero", "negated"), ("zero", "one", "negative_one")
KINDS = (*_MULTIPLES, "inverse_sqrt")  #: What a node can be changed to.


def simplified(
    graph: Graph,
    examples: Sequence[Array],
    exact: Values,
    calibrated: Callable[[Graph, Values, Sides], Graph],
) -> tuple[Changes, dict[str, Graph]]:
    """What can be changed in a traced graph, and the stages simplify, fold and calibrate.

    exact: the value of every node for the examples, or its summary.
    calibrated: what calibrates a folded graph of which it is given these values, and the numbers of
        inputs that stay on their side of 0.
    """
    changes, stages = _without_roots(graph, {})

    def ranges(sides: Sides) -> Graph:
        others = "inverse_sqrt" in changes.values()  # clamps keep their values
        values = seen_values(stages["simplify"], examples) if others else exact
        return calibrated(stages["fold"], values, sides)

    stages["calibrate"] = ranges({})
    if not any(map(may_be_inactive, stages["calibrate"])):
        return changes, stages
    clamps, sides = inactive_on_sides(stages["calibrate"], examples, ranges)
    if clamps:
        changes, stages = _without_roots(graph, {**changes, **clamps})
        stages["calibrate"] = ranges(sides)
    return changes, stages


def changed(graph: Graph, changes: Changes) -> Graph:
    """The traced graph with these changes."""
    nodes = []
    for node in graph:
        to = changes.get(node.name, "")
        if to in _MULTIPLES:
            node = replace(node, operation=Scale(*map(np.asarray, _MULTIPLES[to])))
        elif to:
            node = replace(node, operation=Function(to))
        nodes.append(node)
    return Graph(tuple(nodes), graph.outputs, "simplify")


def are_changes_of(graph: Graph, changes: Changes) -> bool:
    """Whether the changes are such as are made here."""
    functions = {node.name: node for node in graph if isinstance(node.operation, Function)}

    def fits(name: str, to: str) -> bool:
        node = functions.get(name)
        if node is None:
            return False
        if is_clamp(node):
            return to in _OF_CLAMPS
        if function_of(node) in DECIDING:
            return to in _OF_COMPARISONS
        return (function_of(node), to) in (("sqrt", "inverse_sqrt"), ("inverse", "same"))

    return all(fits(*change) for change in changes.items())


def _without_roots(graph: Graph, changes: Changes) -> tuple[Changes, dict[str, Graph]]:
    simple = changed(graph, changes)
    folded = fold(simple)
    more = _inverse_roots(folded)
    if more:
        changes = {**changes, **more}
        simple = changed(graph, changes)
        folded = fold(simple)
    return changes, {"simplify": simple, "fold": folded}


def _inverse_roots(folded: Graph) -> dict[str, str]:
    """The inverses of products of square roots, and these roots, if nothing else takes them."""
    roots = {node.name: node for node in folded if _is(node, "sqrt")}
    inside = {
        node.name: node
        for node in folded
        if isinstance(node.operation, Multiply) or _only_moves(node)
    }
    inside |= roots

    def fits(node: Node) -> bool:
        users = folded.users(node.name)
        taken = all(user.name in inside or _is(user, "inverse") for user in users)
        made = node.name in roots or all(name in inside for name in node.inputs)
        return made and taken and bool(users) and node.name not in folded.outputs

    while True:  # a product is left out if one of its factors is, and the other way round
        still = {name: node for name, node in inside.items() if fits(node)}
        if len(still) == len(inside):
            break
        inside = still
    found = {name: "inverse_sqrt" for name in roots if name in inside}
    inverses = (node.name for node in folded if _is(node, "inverse") and node.inputs[0] in inside)
    return found | dict.fromkeys(inverses, "same")


def _is(node: Node, function: str) -> bool:
    return function_of(node) == function


def _only_moves(node: Node) -> bool:
    """Whether every number of it is a number of its only source."""
    affine = node.operation
    if not isinstance(affine, Affine) or len(node.inputs) > 1 or np.any(affine.bias):
        return False
    (single,) = affine.maps
    return bool(single.used_rows == single.count == single.shape[0] and np.all(single.values == 1))
