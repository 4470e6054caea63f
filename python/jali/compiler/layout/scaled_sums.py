"""Two rewrites after layout. A sum of multiples is inlined into its only user, which saves a level.
A sum that several users multiply is computed once.

In training with momentum, w = v + c g is used by the next iteration alone, in v' = a w' + b w. If
v' takes b v + b c g instead, the multiplications by b and by c are one, and v' lies a level higher.
The sum g takes rotations and no level, so that it is computed once for all who multiply it.

In: a graph with layouts (`inlined_sums`), or a lowered graph (`shared_sums`). Out: a graph
of the same stage.

>>> graph = lay_out(fold(nn.trace(lambda x: x * x, np.ones(3))), 8, WEIGHTS)
>>> has_inlined_sums(graph)
False
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

import numpy as np

from jali.compiler.ir.facts import Facts, Origin
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.loop_graph import factor_of, is_light
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.lowered_ops import Transform
from jali.compiler.layout.terms import Term

__all__ = ["has_inlined_sums", "inlined_sums", "shared_sums"]


def inlined_sums(graph: Graph) -> Graph:
    """The graph after the stage layout, with sums of multiples inlined into their only user.

    That is done if the user multiplies the sum by a number and lies in the same layout. A node into
    which a sum was inlined is not inlined itself, so that sums do not grow with the iterations of a
    loop.
    """
    nodes, parts = [], _parts(graph)
    for node in graph:
        if node.name not in parts:
            nodes.append(_with_parts(node, parts) if _has(node, parts) else node)
    return replace(graph, nodes=tuple(nodes))


def has_inlined_sums(graph: Graph) -> bool:
    """Whether ``inlined_sums`` changes a graph."""
    return bool(_parts(graph))


def _parts(graph: Graph) -> dict[str, Node]:
    users: dict[str, list[Node]] = {node.name: [] for node in graph}
    for node in graph:
        for name in set(node.inputs):
            users[name].append(node)
    found: dict[str, Node] = {}
    for node in graph:
        hidden = node.name not in graph.outputs and not _has(node, found)
        if hidden and _is_part(node, users[node.name]):
            found[node.name] = node
    return found


def _has(node: Node, parts: Container[str]) -> bool:
    return any(name in parts for name in node.inputs)


def _is_part(node: Node, users: Sequence[Node]) -> bool:
    if len(users) != 1:
        return False
    (user,) = users
    part, whole = node.operation, user.operation
    if not (isinstance(part, Affine) and isinstance(whole, Affine)):
        return False
    pairs = zip(user.inputs, whole.maps, strict=True)
    factors = [factor_of(single) for name, single in pairs if name == node.name]
    light = all(map(is_light, part.maps)) and not np.any(part.bias)
    return light and len(factors) == 1 and factors[0] not in (None, 1.0) and _lie_alike(node, user)


def _lie_alike(a: Node, b: Node) -> bool:
    return a.layout == b.layout


def _with_parts(node: Node, parts: dict[str, Node]) -> Node:
    maps: dict[str, SparseMap] = {}
    for name, single in zip(node.inputs, Affine.of(node).maps, strict=True):
        inner: list[tuple[str, SparseMap]] = [(name, single)]
        if name in parts:
            factor = factor_of(single)
            assert factor is not None
            part = parts[name]
            pairs = zip(part.inputs, Affine.of(part).maps, strict=True)
            inner = [(source, m.scaled(factor)) for source, m in pairs]
        for source, m in inner:
            maps[source] = maps[source] + m if source in maps else m
    return replace(node.with_operation(maps=tuple(maps.values())), inputs=tuple(maps))


def shared_sums(graph: Graph) -> Graph:
    """The lowered graph in which sums that several transforms multiply, each by its own number, are
    nodes of their own, computed once."""
    found: dict[tuple[object, ...], list[str]] = {}
    for node in graph:
        for name, term in _summed(node):
            found.setdefault((name, *_kind(term)), []).append(node.name)
    shared = {key for key, users in found.items() if len(users) > 1}
    made: dict[tuple[object, ...], Node] = {}
    names = {node.name for node in graph}
    nodes: list[Node] = []
    for node in graph:
        transform = node.operation
        if not isinstance(transform, Transform):
            nodes.append(node)
            continue
        inputs, terms, gains = list(node.inputs), list(transform.terms), list(transform.gains)
        for name, term in _summed(node):
            key = (name, *_kind(term))
            if key not in shared:
                continue
            if key not in made:
                made[key] = _sum_of(graph[name], node, transform, term, names)
                names.add(made[key].name)
                nodes.append(made[key])
            k = inputs.index(name)
            inputs[k], terms[k] = made[key].name, type(term)(term.factor)
            assert term.factor is not None
            gains[k] = (term.factor, True)
        if inputs != list(node.inputs):
            node = replace(
                node.with_operation(terms=tuple(terms), gains=tuple(gains)), inputs=tuple(inputs)
            )
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _summed(node: Node) -> Iterator[tuple[str, Term]]:
    """The inputs of a transform that are summed into one ciphertext and multiplied by a number,
    with their terms."""
    transform = node.operation
    if not isinstance(transform, Transform) or node.layout.partial:
        return
    for name, term in zip(node.inputs, transform.terms, strict=True):
        rotations = term.sums or term.joined
        if term.factor is not None and not term.is_free and rotations and not term.copy_rotations:
            yield name, term


def _kind(term: Term) -> tuple[object, ...]:
    return term.picked, term.joined, term.sums, term.target


def _sum_of(source: Node, node: Node, user: Transform, term: Term, names: set[str]) -> Node:
    """The node of a shared sum, made from the term of one of its users. Its numbers have the scale
    of those that are added."""
    assert term.factor is not None and term.single is not None
    count = int(term.single.row_counts.max())
    name = f"{source.name} summed"
    while name in names:
        name += "'"
    most = {to: tuple(b / abs(term.factor) for b in bounds) for to, bounds in term.bounds.items()}
    sum_ = Transform(
        bias=np.zeros_like(user.bias),
        terms=(replace(term, factor=1.0, bounds=most),),
        gains=((math.sqrt(count), False),),
        shared=(False,),
    )
    scaling = replace(
        source.scaling,
        centre=np.asarray(source.scaling.centre) * count,
        low=source.scaling.low * count,
        high=source.scaling.high * count,
        rms=min(source.scaling.rms * count, float(count)),
        largest=source.scaling.largest * count,
        beyond=0.0,
        free=False,
        most=None,
        added=count,
    )
    origin = Origin(folds=node.origin.folds, step=node.origin.step)
    facts = Facts(scaling=scaling, origin=origin, layout=node.layout)
    return Node(name, sum_, (source.name,), node.shape, facts)
