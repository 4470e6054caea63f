"""Levels: how many multiplications still follow every array, until the end or until a
bootstrapping.

In: a lowered graph. Out: the graph, whose nodes have a level, with a Bootstrap behind every array
that is restored.

>>> graph = fold(nn.trace(lambda x: x * x * x, np.ones(2)))
>>> [(node.op, node.level) for node in assign_levels(graph)]
[('input', 2), ('multiply', 1), ('multiply', 0)]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from jali._core.console import counted_text
from jali.compiler.ir.folded_ops import Bootstrap
from jali.compiler.ir.graph import Graph, Node
from jali.errors import InvalidArgument

__all__ = [
    "Levels",
    "assign_levels",
    "depth_of",
    "levelled",
    "levels_of",
    "levels_taken",
    "lowest",
]


@dataclass(frozen=True)
class Levels:
    """The level of every array of a lowered graph, and of some the level to which they are
    bootstrapped then.

    slots: with how many slots those are bootstrapped that are not bootstrapped with all.
    """

    at: Mapping[str, int]
    restored: Mapping[str, int]
    slots: Mapping[str, int] = field(default_factory=dict)

    @property
    def packings(self) -> tuple[int, ...]:
        """With how many slots arrays are bootstrapped, 0 for all."""
        return tuple(sorted({self.slots.get(name, 0) for name in self.restored}))


def levels_taken(node: Node, k: int = 0) -> int:
    """Levels between a node and its input number k."""
    return node.operation.depth(k)


def lowest(graph: Graph) -> Levels:
    """The lowest levels without a bootstrapping. Low levels are the cheap ones. An input is
    encrypted at its level."""
    levels = {node.name: 0 for node in graph}
    for node in reversed(graph.nodes):
        for k, name in enumerate(node.inputs):
            levels[name] = max(levels[name], levels[node.name] + levels_taken(node, k))
    return Levels(levels, {})


def depth_of(graph: Graph) -> int:
    """The levels that the whole graph takes without a bootstrapping."""
    return max(lowest(graph).at.values())


def assign_levels(graph: Graph) -> Graph:
    """The graph; every node has its level, the lowest one that leaves enough for what
    follows."""
    return levelled(graph, lowest(graph))


def levelled(graph: Graph, levels: Levels) -> Graph:
    """The graph; every node has its level, and nodes ``bootstrap`` follow the arrays that
    are restored.

    Users take the restored array; as an output, an array is what it was before. Raises
    InvalidArgument for levels that are not those of this graph, or that some operation cannot have.
    """
    if (
        set(levels.at) != {node.name for node in graph}
        or not set(levels.restored) <= set(levels.at)
        or not set(levels.slots) <= set(levels.restored)
    ):
        raise InvalidArgument("the levels are those of another graph")
    above = {**levels.at, **levels.restored}
    names = {node.name for node in graph}
    restored_as: dict[str, str] = {}
    nodes = []
    for node in graph:
        level = levels.at[node.name]
        for k, source in enumerate(node.inputs):
            if above[source] < level + levels_taken(node, k):
                raise InvalidArgument(
                    f"{node.name} lies at level {level} and takes {counted_text(levels_taken(node, k), 'level')} of {source}, which lies at "
                    f"{above[source]}"
                )
        inputs = tuple(restored_as.get(source, source) for source in node.inputs)
        made = replace(node, inputs=inputs).with_facts(level=level)
        nodes.append(made)
        if node.name in levels.restored:
            fresh = f"{node.name} restored"
            while fresh in names:
                fresh += "'"
            restored_as[node.name] = fresh
            names.add(fresh)
            slots = levels.slots.get(node.name, 0)
            nodes.append(_bootstrap(made, fresh, levels.restored[node.name], slots))
    return Graph(tuple(nodes), graph.outputs, "levels")


def _bootstrap(node: Node, name: str, level: int, slots: int) -> Node:
    """The node that restores an array to a level, with so many slots, 0 for all. Its numbers are
    those of the array."""
    kind: Literal["real", "pair"] = "real" if node.layout.ciphertexts == 1 else "pair"
    known, error = node.scaling, node.operation.error
    scaling = replace(known, low=known.low - error, high=known.high + error)
    origin = replace(node.origin, folds=())
    facts = replace(node.facts, scaling=scaling, origin=origin, level=level)
    return Node(name, Bootstrap(kind, slots or None), (node.name,), node.shape, facts)


def levels_of(graph: Graph) -> Levels:
    """The levels of a graph after this stage."""
    at = {node.name: node.level for node in graph if not isinstance(node.operation, Bootstrap)}
    restored = {n.inputs[0]: n.level for n in graph if isinstance(n.operation, Bootstrap)}
    slots = {
        n.inputs[0]: n.operation.slots
        for n in graph
        if isinstance(n.operation, Bootstrap) and n.operation.slots
    }
    return Levels(at, restored, slots)
