"""Arguments of functions that are not defined everywhere: each has an interval of its own, which
does not touch 0.

A function is approximated on the interval that its argument has, centre +- radius. An array that
products, loops or outputs take, too, is scaled around 0, so that this interval would hold 0: x
log(x), or sqrt(a b). Then a copy of the array stands before the function, a node ``affine`` that
nothing else uses. It has its own centre and radius, which takes one level, and the range that
calibration finds for it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.scalar import ABOVE_ZERO, HOMOGENEOUS
from jali.compiler.ir.sparse import SparseMap

__all__ = [
    "factors_of_arguments",
    "functions_with_own",
    "has_own",
    "is_around_zero",
    "shared_arguments",
    "with_own",
]

#: Operations whose results may be scaled around any centre.
_SCALED_FREELY = ("input", "affine", "function", "polynomial")
#: Functions that are 0 or not defined where their argument is 0, and nowhere else.
_KEEP_ZERO = ("sqrt", "inverse", "inverse_sqrt", "relu", "absolute", "tanh", "erf")


_BEHIND = " argument"  # in the name of a copy, behind that of the function


def has_own(function: Node) -> bool:
    """Whether a copy stands before the function."""
    return function.inputs[0] == function.name + _BEHIND


def functions_with_own(names: Collection[str], folded: Graph) -> set[str]:
    """The functions of a folded graph before which copies stand, by the names of all nodes, with
    the copies."""
    copies = set(names) - {node.name for node in folded}
    return {name.removesuffix(_BEHIND) for name in copies}


def shared_arguments(graph: Graph, *, body: bool = False) -> set[str]:
    """The functions of a folded graph whose argument would be scaled around 0. body: whether it is
    the body of a loop, which is given the scales of its inputs."""
    free = _SCALED_FREELY[body:]
    return {
        node.name
        for node in _undefined_somewhere(graph)
        if is_around_zero(graph, graph[node.inputs[0]], free)
    }


def is_around_zero(graph: Graph, source: Node, free: Collection[str] = _SCALED_FREELY) -> bool:
    """Whether an array is scaled around 0, for what it is or for its users. free: operations whose
    results may be scaled otherwise."""
    users = graph.users(source.name)
    shared = any(user.op not in ("function", "polynomial") for user in users)
    corners = any(one.attrs.get("function") in HOMOGENEOUS for one in (source, *users))
    return source.op not in free or shared or corners or source.name in graph.outputs


def with_own(graph: Graph, functions: Collection[str]) -> Graph:
    """The folded graph with copies before these functions. A copy of moved numbers is made from
    where they come from, which saves its level."""
    nodes: list[Node] = []
    for node in graph:
        if node.name in functions and node.op == "function":
            source = graph[node.inputs[0]]
            maps: tuple[SparseMap, ...] = (SparseMap.identity(source.size),)
            bias: Array = np.zeros(source.size)
            inputs: tuple[str, ...] = (source.name,)
            if source.op == "affine" and all(m.used_rows == m.count for m in source.attrs["maps"]):
                maps, bias, inputs = source.attrs["maps"], source.attrs["bias"], source.inputs
            attrs = {"maps": maps, "bias": bias, "shape": source.shape, "folds": ()}
            own = Node(node.name + _BEHIND, "affine", inputs, source.shape, attrs)
            nodes.append(own)
            node = replace(node, inputs=(own.name,))
        nodes.append(node)
    return Graph(tuple(nodes), graph.outputs, graph.stage)


def factors_of_arguments(graph: Graph) -> dict[str, npt.NDArray[np.bool_]]:
    """For every input, which of its numbers make an argument 0 by being 0 themselves, because it is
    a product with them as a factor."""
    marked = {node.name: np.zeros(node.size, np.bool_) for node in graph}
    for node in _undefined_somewhere(graph):
        marked[node.inputs[0]] |= True
    for node in reversed(graph.nodes):
        mine = marked[node.name]
        if not mine.any():
            continue
        power = node.op == "polynomial" and np.count_nonzero(node.attrs["coefficients"]) == 1
        keeps = node.op == "function" and node.attrs["function"] in _KEEP_ZERO
        if node.op == "multiply" or (power and node.attrs["coefficients"][0] == 0) or keeps:
            for name in node.inputs:
                marked[name] |= mine
        elif node.op == "affine" and len(node.inputs) == 1:
            (single,) = node.attrs["maps"]
            alone = (single.row_counts == 1) & (node.attrs["bias"] == 0) & mine
            marked[node.inputs[0]][single.cols[alone[single.rows]]] = True
    return {node.name: marked[node.name] for node in graph.inputs}


def _undefined_somewhere(graph: Graph) -> list[Node]:
    return [n for n in graph if n.op == "function" and n.attrs["function"] in ABOVE_ZERO]
