"""Levels: how many multiplications still follow every array, until the end or until a
bootstrapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jali._core.console import counted_text
from jali.compiler.ir.graph import Graph, Node
from jali.errors import InvalidArgument

__all__ = [
    "Levels",
    "assign_levels",
    "conjugated",
    "depth_of",
    "levelled",
    "levels_of",
    "lowest",
    "taken",
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


def taken(node: Node, k: int = 0) -> int:
    """Levels between a node and its input number k."""
    match node.op:
        case "affine":
            return 1
        case "transform":
            return 0 if node.attrs["terms"][k].is_free else 1
        case "approximated":
            return int(node.attrs["by"].depth)
        case "multiply":
            return 1
        case "products":
            return 2
    return 0


def conjugated(graph: Graph) -> int:
    """The highest level at which a graph with levels conjugates, behind overlays; -1 if it does
    not."""
    nodes = (node for node in graph if any(t.turns for t in node.attrs.get("terms", ())))
    return max((int(node.attrs["level"]) for node in nodes), default=-1)


def lowest(graph: Graph) -> Levels:
    """The lowest levels without a bootstrapping. Low levels are the cheap ones. An input is
    encrypted at its level."""
    levels = {node.name: 0 for node in graph}
    for node in reversed(graph.nodes):
        for k, name in enumerate(node.inputs):
            levels[name] = max(levels[name], levels[node.name] + taken(node, k))
    return Levels(levels, {})


def depth_of(graph: Graph) -> int:
    """The levels that the whole graph takes without a bootstrapping."""
    return max(lowest(graph).at.values())


def assign_levels(graph: Graph) -> Graph:
    """The graph; every node has the attribute level, the lowest one that leaves enough for what
    follows."""
    return levelled(graph, lowest(graph))


def levelled(graph: Graph, levels: Levels) -> Graph:
    """The graph; every node has the attribute level, and nodes ``bootstrap`` follow the arrays that
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
    instead: dict[str, str] = {}
    nodes = []
    for node in graph:
        level = levels.at[node.name]
        for k, source in enumerate(node.inputs):
            if above[source] < level + taken(node, k):
                raise InvalidArgument(
                    f"{node.name} lies at level {level} and takes {counted_text(taken(node, k), 'level')} of {source}, which lies at "
                    f"{above[source]}"
                )
        made = Node(
            node.name,
            node.op,
            tuple(instead.get(source, source) for source in node.inputs),
            node.shape,
            {**node.attrs, "level": level},
        )
        nodes.append(made)
        if node.name in levels.restored:
            fresh = f"{node.name} restored"
            while fresh in names:
                fresh += "'"
            instead[node.name] = fresh
            names.add(fresh)
            slots = levels.slots.get(node.name, 0)
            nodes.append(_bootstrap(made, fresh, levels.restored[node.name], slots))
    return Graph(tuple(nodes), graph.outputs, "levels")


def _bootstrap(node: Node, name: str, level: int, slots: int) -> Node:
    """The node that restores an array to a level, with so many slots, 0 for all. Its numbers are
    those of the array."""
    dropped = ("by", "terms", "bias", "folds", "maps", "gains", "shape", "shared", "sums")
    attrs: dict[str, Any] = {k: v for k, v in node.attrs.items() if k not in dropped}
    error = node.attrs["by"].error if "by" in node.attrs else 0.0
    attrs["low"], attrs["high"] = attrs["low"] - error, attrs["high"] + error
    count = attrs["layout"].ciphertexts
    kind = "real" if count == 1 else "pair"
    attrs |= {"level": level, "kind": kind} | ({"slots": slots} if slots else {})
    return Node(name, "bootstrap", (node.name,), node.shape, attrs)


def levels_of(graph: Graph) -> Levels:
    """The levels of a graph after this stage."""
    at = {node.name: node.attrs["level"] for node in graph if node.op != "bootstrap"}
    restored = {n.inputs[0]: n.attrs["level"] for n in graph if n.op == "bootstrap"}
    slots = {
        n.inputs[0]: n.attrs["slots"] for n in graph if n.op == "bootstrap" and "slots" in n.attrs
    }
    return Levels(at, restored, slots)
