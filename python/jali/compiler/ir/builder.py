"""What collects the nodes of a graph while a model is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.operation import Input, Operation
from jali.compiler.ir.traced_ops import made
from jali.errors import InvalidArgument

__all__ = ["Builder", "TracedArray", "innermost", "printable"]

#: Characters of a name that a node gets, so that names made of several such can be read again.
_LONGEST = 200


def printable(name: str) -> str:
    """A name as jali._core.schema.name takes it: other characters are written as _, and what is too
    long is cut."""
    return "".join(c if c.isprintable() else "_" for c in name[:_LONGEST]) or "_"


class TracedArray(Protocol):
    """An array that is being traced."""

    @property
    def node(self) -> Node:
        """The node that computes it."""

    @property
    def builder(self) -> Builder:
        """What collects this node and those that use it."""


class Builder:
    """Collects the nodes of a graph, and gives each a name of its own.

    label: the name of the model's operation that is being traced; its nodes are named after it.
    outer: for the body of a loop, the builder of the graph around it.
    conditions: the names of the nodes that are comparisons, and made of such alone.
    maxima: of nodes that are the largest numbers of another one, its name by theirs.
    functions: the names of the functions that it has.
    captured: the nodes of that graph which the body uses, by the names of the body's inputs that
        stand for them.
    """

    def __init__(self, outer: Builder | None = None) -> None:
        self.nodes: dict[str, Node] = {}
        self.label: str | None = None
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.conditions: set[str] = set()
        self.maxima: dict[str, str] = {}
        self.functions: set[str] = set()
        self.captured: dict[str, Node] = {}
        self._inside: dict[str, Node] = {}  # inputs of the body by the name outside
        self._closed = False

    def add(self, name: str, operation: Operation, inputs: Sequence[Node]) -> Node:
        """One more node. A name that is taken gets a number. Names are kept in files and shown, so
        they can be printed."""
        unique = name = printable(self.label or name)
        count = 1
        while unique in self.nodes:
            count += 1
            unique = f"{name}_{count}"
        node = made(unique, operation, inputs)
        self.nodes[unique] = node
        return node

    def lifted(self, array: TracedArray) -> Node:
        """The node of an array, which may come from around the loop whose body is traced."""
        if array.builder is self and not self._closed:
            return array.node
        if self.outer is None or self._closed:
            raise InvalidArgument(
                f"{array.node.name} belongs to the body of a loop and is used outside of it: return it as a state"
            )
        node = self.outer.lifted(array)
        if node.name not in self._inside:
            inside = self.add(node.name, Input(node.shape), [])
            self._inside[node.name], self.captured[inside.name] = inside, node
        return self._inside[node.name]

    def close(self) -> None:
        """The body is complete: its arrays are used no more."""
        self._closed = True

    def graph(self, outputs: Sequence[Node]) -> Graph:
        """The graph of these outputs."""
        return Graph(tuple(self.nodes.values()), tuple(n.name for n in outputs)).needed()


def innermost(arrays: Sequence[TracedArray]) -> Builder:
    """The builder of the innermost body to which one of these arrays belongs."""
    return max((x.builder for x in arrays), key=lambda builder: builder.depth)
