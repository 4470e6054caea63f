"""Levels: how many multiplications still follow every array. Without bootstrapping, this is the level at which it is computed."""

from __future__ import annotations

from jali.nn.graph import Graph, Node

__all__ = ["assign_levels", "depth_of", "taken"]


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
    return 0


def _levels(graph: Graph) -> dict[str, int]:
    levels = {node.name: 0 for node in graph}
    for node in reversed(graph.nodes):
        for k, name in enumerate(node.inputs):
            levels[name] = max(levels[name], levels[node.name] + taken(node, k))
    return levels


def depth_of(graph: Graph) -> int:
    """The levels that the whole graph takes."""
    return max(_levels(graph).values())


def assign_levels(graph: Graph) -> Graph:
    """The graph; every node has the attribute level, the lowest one that leaves enough for what follows.

    Low levels are the cheap ones. An input is encrypted at its level.
    """
    levels = _levels(graph)
    nodes = tuple(node.with_attrs(level=levels[node.name]) for node in graph)
    return Graph(nodes, graph.outputs, "levels")
