"""Unrolling: a loop becomes a row of copies of its body, which share the body's matrices,
polynomials and layouts.

A copy is a few nodes that refer to the same objects. Their matrices become diagonals once, and
diagonals are encoded once for each level at which some iteration uses them.

In: an approximated graph. Out: the graph without loops, whose nodes have an Origin: which node of
the body they copy, and in which iteration.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> graph = nn.trace(lambda x: nn.loop(lambda h: 0.5 * h * h, x, count=3), examples[0])
>>> made = approximated(calibrate(fold(graph), [examples]), 1e-3)
>>> [node.op for node in made]
['input', 'affine', 'loop']
>>> sorted({node.origin.step for node in unrolled(made)} - {None})
[('loop', 0), ('loop', 1), ('loop', 2)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.loop_graph import Loop, at_step, has_loops, inputs_at
from jali.compiler.ir.operation import Input
from jali.compiler.ir.sparse import SparseMap

__all__ = ["two_iterations", "unrolled"]

_STEADY = 2  # iterations: in the second one, all arrays lie as they do in every later one


def unrolled(graph: Graph) -> Graph:
    """The same approximated graph without loops. The origin of its nodes says which node of
    ``two_iterations`` does the same, which nodes have to lie alike, and the iteration of a copy."""
    return _Unrolling(graph, None).graph().needed() if has_loops(graph) else graph


def two_iterations(graph: Graph) -> Graph:
    """The graph that ``unrolled`` would give if loops had two iterations at most. Layouts are
    chosen for it. The origin of a copy says for how many iterations it stands."""
    return _elements_late(_Unrolling(graph, _STEADY).graph()) if has_loops(graph) else graph


def _elements_late(graph: Graph) -> Graph:
    """The same graph in another order: elements of sequences come right before the iteration that
    takes them, and those of iterations that are left out at the end. A search that keeps the
    cheapest beginnings then compares them with the iteration, and not without it."""
    late: dict[str, Node] = {}
    nodes: list[Node] = []

    def add(node: Node) -> None:
        for name in node.inputs:
            if name in late:
                add(late.pop(name))
        nodes.append(node)

    for node in graph:
        origin = node.origin
        if origin.alike and origin.step is None and node.name not in graph.outputs:
            late[node.name] = node
        else:
            add(node)
    while late:
        add(late.pop(next(iter(late))))
    return replace(graph, nodes=tuple(nodes))


class _Unrolling:
    def __init__(self, old: Graph, most: int | None) -> None:
        self.old, self.most = old, most
        self.nodes: list[Node] = []
        self.parts: dict[str, list[str]] = {}  # of every loop: the nodes that its result is made of
        self.sizes: dict[str, list[int]] = {}

    def graph(self) -> Graph:
        names = {node.name: node.name for node in self.old}
        self._copied(self.old, names, "", "", {})
        outputs = (self._result(names[name]) for name in self.old.outputs)
        return Graph(tuple(self.nodes), tuple(outputs), self.old.stage)

    def _copied(
        self, graph: Graph, names: dict[str, str], path: str, like: str, extra: dict[str, Any]
    ) -> None:
        """Adds the nodes of a graph.

        names: what its nodes are called in the new one; the inputs of a body are there already.
        """
        alike: dict[str, str] = {}
        for node in graph:
            if isinstance(node.operation, Loop):
                count = node.operation.own_inputs
                alike |= {name: _group(path, node, k) for k, name in enumerate(node.inputs[:count])}
        for node in graph:
            if isinstance(node.operation, Input) and path:
                continue
            if isinstance(node.operation, Loop):
                self._loop(node, node.operation, names, path, like, extra.get("times", 1))
                continue
            known = {**extra, "like": like + node.name}
            if node.name in alike:
                known["alike"] = alike[node.name]
            inputs = [names[name] for name in node.inputs]
            node = node.with_origin(**known)
            if isinstance(node.operation, Affine):
                node = self._split(node, node.operation, inputs)
            else:
                node = replace(node, inputs=tuple(map(self._result, inputs)))
            self.nodes.append(replace(node, name=names[node.name]))

    def _loop(
        self, node: Node, loop: Loop, names: dict[str, str], path: str, like: str, times: int
    ) -> None:
        body, name = loop.body, names[node.name]
        states = [self._result(names[n]) for n in node.inputs[: loop.states]]
        count = loop.count if self.most is None else min(self.most, loop.count)
        made: list[list[str]] = []
        for step in range(count):
            inside = at_step(body, step)
            given = [*states, *(self._result(names[node.inputs[k]]) for k in inputs_at(node, step))]
            ports = [n.name for n in body.inputs]
            here = f"{name}[{step}]."
            called = {n.name: here + n.name for n in body}
            called |= dict(zip(ports, given, strict=True))
            last = step == count - 1 and len(body.outputs) == 1
            if last and body.outputs[0] not in ports:
                called[body.outputs[0]] = name
            groups = {n: _group(path, node, k) for k, n in enumerate(body.outputs[: len(states)])}
            start = len(self.nodes)
            steady = f"{like}{node.name}[{min(step, _STEADY - 1)}]."
            extra: dict[str, Any] = {"step": (name, step)}
            if self.most is not None:
                extra["times"] = times * (loop.count - step if step == count - 1 else 1)
            self._copied(inside, called, here, steady, extra)
            for k in range(start, len(self.nodes)):
                for inner, group in groups.items():
                    if self.nodes[k].name == called[inner]:
                        self.nodes[k] = self.nodes[k].with_origin(alike=group)
            made.append([self._result(called[n]) for n in body.outputs])
            states = made[-1][: len(states)]
        # Where iterations are left out, what the last one that is there collects stands for what
        # they would.
        self.parts[name] = [made[min(step, count - 1)][k] for k, step in loop.parts]
        self.sizes[name] = loop.sizes

    def _result(self, name: str) -> str:
        """The node that holds an array: for a loop of one state, this state after the last
        iteration."""
        return self.parts[name][0] if name in self.parts else name

    def _split(self, node: Node, affine: Affine, inputs: Sequence[str]) -> Node:
        """Matrices of all parts of a loop's result as matrices of each."""
        maps: list[tuple[str, SparseMap]] = []
        for name, single in zip(inputs, affine.maps, strict=True):
            if len(self.parts.get(name, ())) < 2:
                maps.append((self._result(name), single))
                continue
            rows, cols, values = single.rows, single.cols, single.values
            if not len(cols):  # of a constant
                none = SparseMap(rows, cols, values, (single.shape[0], self.sizes[name][0]))
                maps.append((self.parts[name][0], none))
                continue
            ends, first, last = np.cumsum(self.sizes[name]), cols.min(), cols.max()
            for part, size, end in zip(self.parts[name], self.sizes[name], ends, strict=True):
                if end <= first or end - size > last:
                    continue
                mine = (cols >= end - size) & (cols < end)
                if mine.any():
                    shape = (single.shape[0], size)
                    inside = cols[mine] - (end - size)
                    maps.append((part, SparseMap(rows[mine], inside, values[mine], shape)))
        merged: dict[str, SparseMap] = {}
        for name, single in maps:  # of a part that stands for several, one matrix
            merged[name] = merged[name] + single if name in merged else single
        return replace(node.with_operation(maps=tuple(merged.values())), inputs=tuple(merged))


def _group(path: str, node: Node, k: int) -> str:
    """What the arrays have in common that the loop takes as its input number k."""
    loop = Loop.of(node)
    states, count = loop.states, loop.count
    return f"{path}{node.name}.{k if k < states else states + (k - states) // count}"
