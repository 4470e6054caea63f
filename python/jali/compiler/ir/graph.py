"""The compiler's graphs: nodes that each compute one array from others, in an order in which they
can be computed.

A shape is that of one example, without the axis of the batch. Graphs do not change: every stage of
the compiler is a function from one graph to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core.refusals import Answering
from jali.errors import InvalidArgument

__all__ = ["Array", "Graph", "Node", "Shape", "peak"]

Array = npt.NDArray[np.float64]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Node(metaclass=Answering):
    """One operation: its name in the model, what it computes of which nodes, and the shape of the
    result.

    >>> graph = nn.trace(lambda x: x.reshape(2, 3) * 2, np.zeros(6))
    >>> node = graph[graph.outputs[0]]
    >>> node.op, node.shape, node.size
    ('scale', (2, 3), 6)
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    shape: Shape
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many numbers one example has here."""
        return int(np.prod(self.shape, dtype=np.int64))

    def with_attrs(self, **attrs: Any) -> Node:
        """The same node, knowing more."""
        return replace(self, attrs={**self.attrs, **attrs})

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "1"
        attrs = "".join(f", {k}={text(v)}" for k, v in self.attrs.items() if v is not None)
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
        return tuple(node for node in self.nodes if node.op == "input")

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
        nodes = tuple(node for node in self.nodes if node.name in wanted or node.op == "input")
        return replace(self, nodes=nodes)

    def __str__(self) -> str:
        lines = [f"graph after {self.stage!r}", *(f"  {node}" for node in self.nodes)]
        return "\n".join([*lines, f"  return {', '.join(self.outputs)}"])


def text(value: Any) -> str:
    """An attribute in a dump: arrays by their shape, the body of a loop by its own lines,
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
    by = node.attrs.get("by")
    error = node.attrs.get("beyond", 0.0) + (0.0 if by is None else by.error)
    return float(max(abs(node.attrs["low"]), abs(node.attrs["high"]), 2.0**-20) + error)
