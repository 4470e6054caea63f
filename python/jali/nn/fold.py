"""Folding: neighbouring linear operations become one matrix, ``affine``, which costs one level whatever it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jali.nn.graph import Array, Graph, Node
from jali.nn.ops import OPS, Linear
from jali.nn.sparse import SparseMap

__all__ = ["fold"]


@dataclass
class _Form:
    """An array as sum_k maps[k] k + bias, where every k is a node of the folded graph."""

    maps: dict[str, SparseMap]
    bias: Array
    folds: tuple[str, ...] = ()

    @property
    def node(self) -> str | None:
        """The node that it is as it stands, if it is one."""
        if len(self.maps) == 1 and not self.bias.any():
            ((name, single),) = self.maps.items()
            return name if single.is_identity else None
        return None

    @property
    def is_cheap(self) -> bool:
        """Whether it only moves and scales the numbers of one node. Its users then take it into their own matrices."""
        single = next(iter(self.maps.values())) if len(self.maps) == 1 else None
        return single is not None and len(np.unique(single.rows)) == single.count


def fold(graph: Graph) -> Graph:
    """The same function with nodes ``affine`` in the place of all linear operations.

    A linear result that several nodes use is computed once and kept, unless it only moves and scales numbers. A reshape
    disappears: what uses it takes the same numbers in the same order.
    """
    nodes: list[Node] = []
    forms: dict[str, _Form] = {}

    def kept(name: str) -> str:
        """The name of a node of the new graph that computes this array."""
        form = forms[name]
        if form.node is not None:
            return form.node
        shape = graph[name].shape
        attrs = {
            "maps": tuple(form.maps.values()),
            "bias": form.bias,
            "shape": shape,
            "folds": form.folds,
        }
        nodes.append(Node(name, "affine", tuple(form.maps), shape, attrs))
        forms[name] = _itself(nodes[-1])
        return name

    for node in graph:
        op = OPS[node.op]
        if not isinstance(op, Linear):
            nodes.append(
                Node(node.name, node.op, tuple(map(kept, node.inputs)), node.shape, node.attrs)
            )
            forms[node.name] = _itself(nodes[-1])
            continue
        forms[node.name] = form = _composed(node, graph, op, forms)
        users = len(graph.users(node.name)) + (node.name in graph.outputs)
        if users > 1 and not form.is_cheap:
            kept(node.name)
    outputs = tuple(map(kept, graph.outputs))
    return Graph(tuple(nodes), outputs, "fold").needed()


def _itself(node: Node) -> _Form:
    return _Form({node.name: SparseMap.identity(node.size)}, np.zeros(node.size))


def _composed(node: Node, graph: Graph, op: Linear, forms: dict[str, _Form]) -> _Form:
    """A linear node in terms of what its inputs are made of."""
    shapes = [graph[name].shape for name in node.inputs]
    bias = op.bias(shapes, node.attrs)
    maps: dict[str, SparseMap] = {}
    folds: tuple[str, ...] = ()
    for name, outer in zip(node.inputs, op.maps(shapes, node.attrs), strict=True):
        inner = forms[name]
        folds += tuple(f for f in inner.folds if f not in folds)
        bias = bias + outer(inner.bias[None])[0]
        for source, single in inner.maps.items():
            both = outer if single.is_identity else outer.after(single)
            maps[source] = maps[source] + both if source in maps else both
    return _Form(maps, bias, (*folds, node.name))
