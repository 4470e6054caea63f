"""Functions that are not defined at 0, such as the logarithm: the interval of their argument must
not touch 0, so some get a copy of the argument with a scale of its own.

A function is approximated on the interval that its argument has, centre +- radius. An array that
products, loops or outputs take, too, is scaled around 0, so that this interval would hold 0: x
log(x), or sqrt(a b). Then a copy of the array stands before the function, a node ``affine`` that
nothing else uses. It has its own centre and radius, which takes one level, and the range that
calibration finds for it.

In: a folded graph. Out: the graph with copies before some functions.

>>> graph = fold(nn.trace(lambda x: x * np.log(x), np.ones(2)))
>>> shared_arguments(graph)
{'log'}
>>> [node.name for node in with_own(graph, {"log"})]
['x', 'log argument', 'log', 'multiply']
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.scalar import ABOVE_ZERO, AROUND_ZERO
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries, function_of

__all__ = [
    "factors_of_arguments",
    "functions_with_own",
    "has_own",
    "is_around_zero",
    "shared_arguments",
    "sources_of_own",
    "with_own",
]

#: Operations whose results may be scaled around any centre.
_SCALED_FREELY = (Input, Affine, Function, PowerSeries)
#: Functions that are 0 or not defined where their argument is 0, and nowhere else.
_KEEP_ZERO = (
    "sqrt",
    "inverse",
    "inverse_sqrt",
    "relu",
    "maximum",
    "absolute",
    "tanh",
    "erf",
    "sign",
    "step",
)


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
    """The functions of a folded graph whose argument would be scaled around 0.

    body: whether it is the body of a loop, which is given the scales of its inputs.
    """
    free = _SCALED_FREELY[body:]
    return {
        node.name
        for node in _undefined_somewhere(graph)
        if is_around_zero(graph, graph[node.inputs[0]], free)
    }


def is_around_zero(
    graph: Graph, source: Node, free: tuple[type[Operation], ...] = _SCALED_FREELY
) -> bool:
    """Whether an array is scaled around 0, for what it is or for its users.

    free: operations whose results may be scaled otherwise.
    """
    users = graph.users(source.name)
    shared = any(not isinstance(user.operation, Function | PowerSeries) for user in users)
    corners = any(function_of(one) in AROUND_ZERO for one in (source, *users))
    return (
        not isinstance(source.operation, free) or shared or corners or source.name in graph.outputs
    )


def sources_of_own(graph: Graph, functions: Collection[str]) -> dict[str, str]:
    """By the names of the copies that with_own makes, the arrays that they are copies of."""
    return {
        name + _BEHIND: graph[name].inputs[0]
        for name in functions
        if isinstance(graph[name].operation, Function)
    }


def with_own(graph: Graph, functions: Collection[str]) -> Graph:
    """The folded graph with copies before these functions. A copy of moved numbers is made from
    where they come from, which saves its level."""
    nodes: list[Node] = []
    for node in graph:
        if node.name in functions and isinstance(node.operation, Function):
            source = graph[node.inputs[0]]
            maps: tuple[SparseMap, ...] = (SparseMap.identity(source.size),)
            bias: Array = np.zeros(source.size)
            inputs: tuple[str, ...] = (source.name,)
            moved = source.operation
            if isinstance(moved, Affine) and all(m.used_rows == m.count for m in moved.maps):
                maps, bias, inputs = moved.maps, moved.bias, source.inputs
            copy = Affine(maps=maps, bias=bias, shape=source.shape)
            own = Node(node.name + _BEHIND, copy, inputs, source.shape)
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
        if _keeps_zero(node.operation):
            for name in node.inputs:
                marked[name] |= mine
        elif isinstance(node.operation, Affine) and len(node.inputs) == 1:
            (single,), bias = node.operation.maps, node.operation.bias
            alone = (single.row_counts == 1) & (bias == 0) & mine
            marked[node.inputs[0]][single.cols[alone[single.rows]]] = True
    return {node.name: marked[node.name] for node in graph.inputs}


def _keeps_zero(operation: Operation) -> bool:
    """Whether its result is 0, or not defined, where an array that it takes is 0."""
    match operation:
        case Multiply():
            return True
        case PowerSeries(coefficients=c):
            return bool(np.count_nonzero(c) == 1 and c[0] == 0)
        case Function(function=name):
            return name in _KEEP_ZERO
    return False


def _undefined_somewhere(graph: Graph) -> list[Node]:
    return [node for node in graph if function_of(node) in ABOVE_ZERO]
