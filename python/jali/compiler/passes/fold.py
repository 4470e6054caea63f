"""Folding: neighbouring linear operations become one matrix, ``affine``, which costs one level
whatever it is made of.

In: a traced graph. Out: a graph of the same function, in which every linear operation is part of an
Affine, and a product of encrypted matrices is one Products with the moves around it.

>>> graph = nn.trace(lambda x: 2 * x.reshape(2, 2).T + 1, np.zeros(4))
>>> [node.op for node in graph]
['input', 'reshape', 'transpose', 'scale', 'scale']
>>> [node.op for node in fold(graph)]
['input', 'affine']
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jali.compiler.ir.compositions import composed
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.linear_ops import Scale
from jali.compiler.ir.loop_graph import ByStep, Loop, StepMap, factor_of, is_light
from jali.compiler.ir.operation import Linear
from jali.compiler.ir.products import Matmul, Products, operand, ordered
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Multiply

__all__ = ["fold"]

_ANYWAY = 1 << 20  # entries up to which maps are composed, however few their parts have


@dataclass
class _Form:
    """An array as sum_k maps[k] k + bias, where every k is a node of the folded graph."""

    maps: dict[str, SparseMap]
    bias: Array
    folds: tuple[str, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether no number of it depends on a node."""
        return not any(single.count for single in self.maps.values())

    @property
    def node(self) -> str | None:
        """The node that it is as it stands, if it is one."""
        if len(self.maps) == 1 and not self.bias.any():
            ((name, single),) = self.maps.items()
            return name if single.is_identity else None
        return None

    @property
    def is_cheap(self) -> bool:
        """Whether it only moves and scales the numbers of one node. Its users then take it into
        their own matrices."""
        single = next(iter(self.maps.values())) if len(self.maps) == 1 else None
        return single is not None and single.used_rows == single.count


def fold(graph: Graph, *, body: bool = False) -> Graph:
    """The same function with nodes ``affine`` in the place of all linear operations.

    A linear result that several nodes use is computed once and kept, unless it only moves and
    scales numbers. So is one whose composition with what takes it would be larger than both. A
    reshape disappears: what uses it takes the same numbers in the same order.

    body: whether it is the body of a loop. The arrays that a loop takes, and the states that its
        body returns, are nodes of their own, so that they can have the same scale and the same
        layout. They cost nothing where nothing has to change.
    """
    return _Folding(graph, body).graph()


class _Folding:
    """One folding of a graph, or of the body of a loop.

    nodes: of the new graph.
    forms: what every node of the old graph is made of.
    pinned: arrays that are nodes of their own, because a product of matrices takes them.
    sums: in a body, copies and sums of multiples of arrays that are kept as nodes. Another such sum
        may be made of what they are made of, and then takes one level as they do.
    """

    def __init__(self, old: Graph, body: bool) -> None:
        self.old, self.body = old, body
        self.nodes: list[Node] = []
        self.names = {node.name for node in old}
        self.forms: dict[str, _Form] = {}
        self.pinned = self._pinned()
        self.sums: dict[str, _Form] = {}

    def graph(self) -> Graph:
        """The folded graph."""
        for node in self.old:
            node = self._without_constants(node)
            operation = node.operation
            if isinstance(operation, Matmul):
                self._products(node)
            elif node.name in self.forms:
                continue  # a move of a product's numbers
            elif isinstance(operation, ByStep):
                self.forms[node.name] = self._by_step(node, operation)
            elif isinstance(operation, Linear):
                self.forms[node.name] = form = self._composed(node, operation)
                users = len(self.old.users(node.name)) + (node.name in self.old.outputs)
                if node.name in self.pinned:
                    self.kept(node.name)
                elif users > 1 and not form.is_cheap:
                    if self.body and _is_light(form):
                        self.sums[node.name] = form
                    self.kept(node.name)
            else:
                self._added(node)
        kept = self._own if self.body else self.kept
        outputs = tuple(kept(name) for name in self.old.outputs)
        return Graph(tuple(self.nodes), outputs, "fold").needed()

    def _without_constants(self, node: Node) -> Node:
        """A product as a multiple, if one of its factors depends on no input."""
        if not isinstance(node.operation, Multiply):
            return node
        for factor, other in (node.inputs, node.inputs[::-1]):
            form = self.forms[factor]
            if form.is_constant:
                scale = Scale(form.bias.reshape(node.shape), np.asarray(0.0))
                return replace(node, operation=scale, inputs=(other,))
        return node

    def _added(self, node: Node) -> None:
        """A node that is no matrix."""
        if isinstance(node.operation, Loop):
            count, body = node.operation.own_inputs, node.operation.body
            inputs = [
                self._own(name) if k < count else self.kept(name)
                for k, name in enumerate(node.inputs)
            ]
            node = node.with_operation(body=fold(body, body=True))
        else:
            inputs = list(map(self.kept, node.inputs))
        self.nodes.append(replace(node, inputs=tuple(inputs)))
        self.forms[node.name] = _itself(node)

    def _pinned(self) -> set[str]:
        found: set[str] = set()
        for node in self.old:
            for k in (0, 1) if isinstance(node.operation, Matmul) else ():
                one = operand(self.old, node, k)
                found |= {one.base, one.name}
        return found

    def _products(self, node: Node) -> None:
        """A product of matrices, with the moves of operands and of the result that it takes in."""
        sides = [operand(self.old, node, k) for k in (0, 1)]
        last, order = ordered(self.old, node)
        first, second = node.inputs
        products = Products(
            shapes=(self.old[first].shape, self.old[second].shape),
            gain=sides[0].factor * sides[1].factor,
            left=sides[0].places,
            right=sides[1].places,
            order=order,
            shape=last.shape,
        )
        inputs = tuple(self.kept(side.name) for side in sides)
        made = Node(last.name, products, inputs, last.shape)
        self.nodes.append(made)
        while node is not last:
            self.forms[node.name] = _itself(made)
            (node,) = self.old.users(node.name)
        self.forms[last.name] = _itself(made)

    def kept(self, name: str) -> str:
        """The name of a node of the new graph that computes this array."""
        form = self.forms[name]
        if form.node is not None:
            return form.node
        self.forms[name] = _itself(self._affine(name, name, form))
        return name

    def _own(self, name: str) -> str:
        """The name of a new node that computes this array and that nothing else uses."""
        uses = sum(n.inputs.count(name) for n in self.old) + self.old.outputs.count(name)
        own, count = name, 1
        while uses > 1 or self.forms[name].node is not None:
            count += 1
            own = f"{name}.{count}"
            if own not in self.names:
                break
        self._affine(own, name, self.sums.get(name, self.forms[name]))
        self.names.add(own)
        return own

    def _affine(self, name: str, of: str, form: _Form) -> Node:
        shape = self.old[of].shape
        affine = Affine(maps=tuple(form.maps.values()), bias=form.bias, shape=shape)
        node = Node(name, affine, tuple(form.maps), shape).with_origin(folds=form.folds)
        self.nodes.append(node)
        return self.nodes[-1]

    def _by_step(self, node: Node, by_step: ByStep) -> _Form:
        """An array times the iteration's number."""
        (name,) = node.inputs
        form = self.sums.get(name, self.forms[name])
        if not _is_light(form) or form.bias.any():
            form = self.forms[self.kept(name)]
        maps = {k: StepMap.of(m, by_step.factors) for k, m in form.maps.items()}
        return _Form(dict(maps), np.zeros(node.size), (*form.folds, node.name))

    def _composed(self, node: Node, linear: Linear) -> _Form:
        """A linear node in terms of what its inputs are made of."""
        shapes = [self.old[name].shape for name in node.inputs]
        outers = linear.maps(shapes)
        scales = all(factor_of(outer) is not None for outer in outers)
        forms = []
        for name in node.inputs:
            form = self.sums.get(name, self.forms[name]) if scales else self.forms[name]
            if not scales and any(isinstance(m, StepMap) for m in form.maps.values()):
                form = self.forms[self.kept(name)]
            forms.append(form)
        if _clash(forms):
            forms = [self.forms[self.kept(name)] for name in node.inputs]
        behind: list[dict[str, SparseMap]] = []
        for k, (name, outer) in enumerate(zip(node.inputs, outers, strict=True)):
            parts = _behind(outer, forms[k])
            if parts is None:
                forms[k] = self.forms[self.kept(name)]
                parts = dict.fromkeys(forms[k].maps, outer)
            behind.append(parts)
        if _too_large_together(behind):
            forms = [self.forms[self.kept(name)] for name in node.inputs]
            pairs = zip(outers, forms, strict=True)
            behind = [dict.fromkeys(form.maps, outer) for outer, form in pairs]
        bias = linear.constant(shapes)
        maps: dict[str, SparseMap] = {}
        folds: tuple[str, ...] = ()
        for form, outer, parts in zip(forms, outers, behind, strict=True):
            folds += tuple(f for f in form.folds if f not in folds)
            if np.any(form.bias):
                bias = bias + outer(form.bias[None])[0]
            for source, both in parts.items():
                maps[source] = _sum(maps[source], both) if source in maps else both
        return _Form(_used(maps), bias, (*folds, node.name))


def _used(maps: dict[str, SparseMap]) -> dict[str, SparseMap]:
    """The maps that have an entry, as those of a part of an array to which a source gives nothing
    have none. Constants keep one map."""
    used = {name: m for name, m in maps.items() if m.count}
    return used or dict(list(maps.items())[:1])


def _itself(node: Node) -> _Form:
    return _Form({node.name: SparseMap.identity(node.size)}, np.zeros(node.size))


def _is_light(form: _Form) -> bool:
    """Whether an array is made of copies and sums of others, each times one number. A part of an
    array, with zeros in the place of the rest, is neither."""
    return all(is_light(m) and m.used_rows == m.shape[0] for m in form.maps.values())


def _clash(forms: list[_Form]) -> bool:
    """Whether a map that depends on the iteration would have to be added to another matrix."""
    found: dict[str, SparseMap] = {}
    for name, single in ((n, m) for form in forms for n, m in form.maps.items()):
        other = found.setdefault(name, single)
        if isinstance(other, StepMap) or isinstance(single, StepMap):
            places = other.is_like(single) if isinstance(other, StepMap) else single.is_like(other)  # type: ignore[attr-defined]
            if not (places and is_light(other) and is_light(single)):
                return True
    return False


def _behind(outer: SparseMap, form: _Form) -> dict[str, SparseMap] | None:
    """The maps of a form, each followed by another map; None if they would be larger than what they
    are made of. Small ones are made all the same, as a matrix of its own would take a level."""
    most = max(_ANYWAY, outer.held + sum(m.held for m in form.maps.values()))
    found: dict[str, SparseMap] = {}
    for source, single in form.maps.items():
        both = _after(outer, single, most)
        if both is None or both.held > most:
            return None
        found[source] = both
        most -= both.held
    return found


def _too_large_together(behind: list[dict[str, SparseMap]]) -> bool:
    """Whether maps of one source would have to be added, for which they have to be lists, and these
    would be large."""
    found: dict[str, list[SparseMap]] = {}
    for maps in behind:
        for source, single in maps.items():
            found.setdefault(source, []).append(single)
    return any(
        len(alike) > 1
        and any(m.in_pieces for m in alike)
        and sum(m.count for m in alike) > max(_ANYWAY, sum(m.held for m in alike))
        for alike in found.values()
    )


def _after(outer: SparseMap, single: SparseMap, most: float) -> SparseMap | None:
    if isinstance(single, StepMap):
        factor = factor_of(outer)
        assert factor is not None
        return single.scaled(factor)
    if single.is_identity:
        return outer
    small = outer.shape[0] * single.shape[1] <= _ANYWAY
    if small and not (outer.in_pieces or single.in_pieces):
        return outer.after(single)
    return composed(outer, single, most)


def _sum(a: SparseMap, b: SparseMap) -> SparseMap:
    if isinstance(a, StepMap) or isinstance(b, StepMap):
        first, second = StepMap.of(a, 1.0), StepMap.of(b, 1.0)
        return replace(first, factors=first.factors + second.factors)
    return a + b
