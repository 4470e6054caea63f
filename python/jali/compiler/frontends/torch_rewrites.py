"""Operators of exported modules of PyTorch, written as others, so that a server multiplies by what
its client knows where the module divides by it or looks up by it.

PyTorch is imported by no function of this file; its caller gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.torch_arguments import is_node, name_of

__all__ = ["join_bags", "with_products"]


def join_bags(exported: Any) -> None:
    """Gives an EmbeddingBag its words as one example has them, (1, words). PyTorch flattens them,
    and says where examples begin."""
    for node in exported.graph.nodes:
        if node.op != "call_function" or name_of(node.target) != "embedding_bag":
            continue
        words = node.args[1]
        if name_of(words.target) in ("view", "reshape"):
            whole = words.args[0]
            if tuple(whole.meta["val"].shape) == (1, *words.meta["val"].shape):
                node.args = (node.args[0], whole, *node.args[2:])


def with_products(
    torch: Any,
    exported: Any,
    nodes: Sequence[Any],
    light: Collection[str],
    constant: Callable[[Any], Any],
) -> bool:
    """Writes those of these nodes, which a server computes, as products with what the client knows
    that divide by it or look up by it: x / n as x (1 / n), and x[n] as the sum of x times a one-hot
    vector. Tells whether there were any.

    light: the names of what the client knows.
    constant: the array of a node that is known, or None.
    """
    rewriter = _Rewriter(torch, exported, light, constant)
    found = [rewriter.rewrite(node) for node in nodes]
    return any(found)


class _Rewriter:
    def __init__(
        self,
        torch: Any,
        exported: Any,
        light: Collection[str],
        constant: Callable[[Any], Any],
    ) -> None:
        self._aten, self._graph = torch.ops.aten, exported.graph
        self._long, self._light, self._constant = torch.int64, light, constant

    def rewrite(self, node: Any) -> bool:
        """Puts others in the place of a node, if it has one of these forms, and tells whether it
        has."""
        makes = {"div": self._quotient, "index": self._indexed, "gather": self._gathered}
        make = makes.get(name_of(node.target))
        if make is None:
            return False
        with self._graph.inserting_before(node):
            made = make(node)
        if made is None:
            return False
        node.replace_all_uses_with(made)
        self._graph.erase_node(node)
        return True

    def _is_light(self, value: Any) -> bool:
        return is_node(value) and value.name in self._light

    def _call(self, like: Any, target: Any, *args: Any, val: Any = None) -> Any:
        """A new node.

        like: the node in whose place it stands, whose label it has.
        val: a tensor of its shape and type; None for what the operator gives.
        """
        made = self._graph.call_function(target, args)
        given = [x.meta["val"] if is_node(x) else x for x in args]
        made.meta = {**like.meta, "val": target(*given) if val is None else val}
        return made

    def _quotient(self, node: Any) -> Any:
        of, by = node.args[:2]
        whole = node.kwargs.get("rounding_mode") is not None
        if whole or not self._is_light(by) or not is_node(of):
            return None
        inverse = self._call(node, self._aten.reciprocal.default, by)
        return self._call(node, self._aten.mul.Tensor, of, inverse)

    def _hot(self, node: Any, places: Any, count: int) -> Any:
        """One-hot vectors of `count` numbers, along a new last axis, in the type of a node."""
        shape = (*places.meta["val"].shape, count)
        val = places.meta["val"].new_empty(shape, dtype=self._long)
        flags = self._call(node, self._aten.one_hot.default, places, count, val=val)
        made = self._graph.call_function(
            self._aten._to_copy.default, (flags,), {"dtype": node.meta["val"].dtype}
        )
        made.meta = {**node.meta, "val": node.meta["val"].new_empty(shape)}
        return made

    def _indexed(self, node: Any) -> Any:
        """x[arange(n), places], with a place for each example, as the sum of x times one-hot
        vectors; None for other indices."""
        x, indices = node.args[:2]
        if len(indices) != 2 or any(i is None for i in indices) or not is_node(x):
            return None
        batch, places = indices
        first, shape = self._constant(batch), tuple(x.meta["val"].shape)
        if first is None or np.any(first) or not self._is_light(places):
            return None
        if tuple(places.meta["val"].shape) != (1,) or places.meta["val"].dtype != self._long:
            return None
        hot = self._hot(node, places, shape[1])
        column = self._call(
            node, self._aten.view.default, hot, [1, shape[1], *[1] * (len(shape) - 2)]
        )
        product = self._call(node, self._aten.mul.Tensor, x, column)
        return self._call(node, self._aten.sum.dim_IntList, product, [1])

    def _gathered(self, node: Any) -> Any:
        """torch.gather along an axis, as the sum of x times one-hot vectors; None if the places are
        the server's, or cut other axes. Places that were only repeated along other axes are taken
        as they were before."""
        x, dim, places = node.args[:3]
        if not self._is_light(places) or not is_node(x):
            return None
        rank = len(x.meta["val"].shape)
        dim %= rank
        wide, given = places.meta["val"].shape, tuple(x.meta["val"].shape)
        if dim == 0 or any(wide[a] != given[a] for a in range(rank) if a != dim):
            return None
        if name_of(places.target) == "expand" and len(places.args[0].meta["val"].shape) == rank:
            source = places.args[0]
            if source.meta["val"].shape[dim] == wide[dim] and self._is_light(source):
                places = source
        hot = self._hot(node, places, given[dim])  # the axis of x is its last one
        moved = self._call(node, self._aten.unsqueeze.default, x, -1)
        moved = self._call(node, self._aten.transpose.int, moved, dim, -1)
        product = self._call(node, self._aten.mul.Tensor, moved, hot)
        return self._call(node, self._aten.sum.dim_IntList, product, [-1])
