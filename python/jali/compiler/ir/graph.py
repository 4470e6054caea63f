"""The compiler's graphs: nodes that each compute one array from others, in an order in which they
can be computed.

A shape is that of one example, without the axis of the batch. Graphs do not change: every stage of
the compiler is a function from one graph to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from jali._core.refusals import Answering
from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.facts import NOTHING, Facts, Origin, Range, Scaling
from jali.compiler.ir.layouts import Layout
from jali.compiler.ir.operation import Input, Operation
from jali.errors import InternalError, InvalidArgument

__all__ = ["Array", "Graph", "Node", "Shape", "peak"]

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, eq=False)
class Node(metaclass=Answering):
    """One operation: its name in the model, what it computes of which nodes, the shape of the
    result, and what passes know of it. For people, ``op`` and ``attrs`` say by name what
    ``operation`` and ``facts`` are.

    >>> graph = nn.trace(lambda x: x.reshape(2, 3) * 2, np.zeros(6))
    >>> node = graph[graph.outputs[0]]
    >>> node.op, node.shape, node.size
    ('scale', (2, 3), 6)
    >>> node.operation.factor
    array(2.)
    """

    name: str
    operation: Operation
    inputs: tuple[str, ...]
    shape: Shape
    facts: Facts = NOTHING

    @property
    def op(self) -> str:
        """The name of the operation, as it stands in files and in texts."""
        return self.operation.name

    @cached_property
    def attrs(self) -> Mapping[str, Any]:
        """The arguments of the operation and what is known of the result, by name, as texts show
        it; what is None or as always is left out. The compiler asks ``operation`` and ``facts``,
        whose fields have types."""
        arguments = self.operation.arguments().items()
        return {**{k: v for k, v in arguments if v is not None}, **self.facts.by_name()}

    @property
    def size(self) -> int:
        """How many numbers one example has here."""
        return math.prod(self.shape)

    @property
    def range(self) -> Range:
        """Between which numbers it lies, after calibration."""
        return self._known(self.facts.range, "range")

    @property
    def scaling(self) -> Scaling:
        """In which scale it is computed, after approximation."""
        return self._known(self.facts.scaling, "scale")

    @property
    def origin(self) -> Origin:
        """Which nodes of the model it comes from."""
        return self.facts.origin

    @property
    def layout(self) -> Layout:
        """Which slot holds which of its numbers, after layout."""
        return self._known(self.facts.layout, "layout")

    @property
    def level(self) -> int:
        """How many multiplications may follow it, after levels."""
        return self._known(self.facts.level, "level")

    def _known(self, fact: _Fact | None, what: str) -> _Fact:
        if fact is None:
            raise InternalError(f"{self.name} has no {what} yet")
        return fact

    def with_operation(self, **arguments: Any) -> Node:
        """The same node with other arguments of its operation."""
        return replace(self, operation=replace(self.operation, **arguments))

    def with_facts(self, **facts: Any) -> Node:
        """The same node with other facts, by the fields of Facts."""
        return replace(self, facts=replace(self.facts, **facts))

    def with_range(self, **numbers: Any) -> Node:
        """The same node with another range, by the fields of Range."""
        return self.with_facts(range=replace(self.range, **numbers))

    def with_scaling(self, **numbers: Any) -> Node:
        """The same node with another scaling, by the fields of Scaling."""
        return self.with_facts(scaling=replace(self.scaling, **numbers))

    def with_origin(self, **names: Any) -> Node:
        """The same node with another origin, by the fields of Origin."""
        return self.with_facts(origin=replace(self.origin, **names))

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "1"
        attrs = "".join(f", {k}={text(v)}" for k, v in self.attrs.items())
        return f"{self.name}: {shape} = {self.op}({', '.join(self.inputs)}{attrs})"


@dataclass(frozen=True)
class Graph(metaclass=Answering):
    """Nodes in the order of computation, and the names of those that are the results.

    stage: the name of the compiler's stage that made it.

    >>> graph = nn.trace(lambda x: 2 * x + 1, np.zeros(3))
    >>> [node.op for node in graph]
    ['input', 'scale', 'scale']
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    stage: str = "trace"

    def __post_init__(self) -> None:
        known: dict[str, Node] = {}
        for node in self.nodes:
            if node.name in known:
                raise InvalidArgument(f"two nodes are named {node.name!r}: give each its own name")
            for name in node.inputs:
                if name not in known:
                    raise InvalidArgument(
                        f"{node.name} uses {name!r}, which no node before it computes"
                    )
            known[node.name] = node
        for name in self.outputs:
            if name not in known:
                raise InvalidArgument(f"the output {name!r} is computed by no node")
        if not self.outputs:
            raise InvalidArgument("the graph computes nothing: name at least one output")
        object.__setattr__(self, "_known", known)

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def _by_name(self) -> dict[str, Node]:
        known: dict[str, Node] = self.__dict__["_known"]
        return known

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that stand for the model's arguments."""
        return tuple(node for node in self.nodes if isinstance(node.operation, Input))

    def users(self, name: str) -> list[Node]:
        """The nodes that use a node's result."""
        return list(self._users.get(name, ()))

    @cached_property
    def _users(self) -> Mapping[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    def needed(self) -> Graph:
        """The same graph without the nodes that no output needs. Inputs stay, as they are the
        model's arguments."""
        wanted = set(self.outputs)
        for node in reversed(self.nodes):
            if node.name in wanted:
                wanted |= set(node.inputs)
        nodes = tuple(
            node for node in self.nodes if node.name in wanted or isinstance(node.operation, Input)
        )
        return replace(self, nodes=nodes)

    def __str__(self) -> str:
        lines = [f"graph after {self.stage!r}", *(f"  {node}" for node in self.nodes)]
        return "\n".join([*lines, f"  return {', '.join(self.outputs)}"])


def text(value: Any) -> str:
    """An argument or a fact in a text: arrays by their shape, the body of a loop by its own lines,
    everything else as it is."""
    if isinstance(value, Graph):
        return "\n" + "\n".join(f"    {line}" for line in str(value).splitlines())
    if isinstance(value, np.ndarray):
        return f"array{value.shape}" if value.size > 4 else str(value.tolist())
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return f"({', '.join(map(text, value))})"
    return str(value)


def peak(node: Node) -> float:
    """No number of the node is larger in modulus, in its scale."""
    scaling = node.scaling
    error = scaling.beyond + node.operation.error
    return float(max(abs(scaling.low), abs(scaling.high), 2.0**-20) + error)
