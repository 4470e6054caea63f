"""Loops in graphs: a node ``loop`` whose body is a graph, and numbers in the clear that differ from
iteration to iteration.

The inputs of the node are the states before the first iteration, then, for each sequence, the array
of every iteration, then the constants, which all iterations use. The inputs of the body are the
states, one array of each sequence and the constants. The outputs of the body are the states after
an iteration and then the arrays that are collected. The result of the node is the last state or, if
it has several parts, all of them flattened, one after the other: the last states, then each
collected array of every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jali._core.console import counted_text
from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import Scale
from jali.compiler.ir.operation import Elementwise, Operation
from jali.compiler.ir.sparse import SparseMap
from jali.errors import InvalidArgument

__all__ = [
    "MOST_WHOLE",
    "ByStep",
    "Loop",
    "StepMap",
    "at_step",
    "factor_of",
    "has_loops",
    "inputs_at",
    "is_light",
    "is_whole",
    "multiple_of",
    "unrolled_count",
]


MOST_STEPS = 1 << 16  # iterations of a loop, each of which is planned
MOST_WHOLE = 64  #: The largest whole number by which arrays are multiplied without a level


@dataclass(frozen=True, eq=False)
class Loop(Operation):
    """See the module.

    count: of iterations.
    states, sequences, collected: how many there are.
    """

    name = "loop"
    arity = None
    body: Graph
    count: int
    states: int
    sequences: int
    collected: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        body, count, states = self.body, self.count, self.states
        sequences, collected = self.sequences, self.collected
        if not isinstance(body, Graph) or min(count, states) < 1 or min(sequences, collected) < 0:
            raise InvalidArgument("a loop has a body, and at least one state and one iteration")
        if count * max(1, collected) > MOST_STEPS:
            raise InvalidArgument(
                f"a loop has at most {MOST_STEPS:,} iterations, and collects as many arrays: let the server run the program several times"
            )
        constants = len(shapes) - states - count * sequences
        if constants < 0 or len(body.inputs) != states + sequences + constants:
            raise InvalidArgument(
                f"its body takes {counted_text(len(body.inputs), 'array')}, which its inputs ({len(shapes)}) do not give"
            )
        for port, place in zip(body.inputs, self.places(len(shapes), 0), strict=True):
            steps = count if states <= place < states + count * sequences else 1
            for shape in shapes[place : place + steps]:
                if port.shape != shape:
                    raise InvalidArgument(
                        f"its body takes {port.name} of the shape {port.shape}, and is given {shape}"
                    )
        if len(body.outputs) != states + collected:
            raise InvalidArgument(
                f"its body gives {counted_text(len(body.outputs), 'array')}, not {counted_text(states, 'state')} and {collected} to collect"
            )
        for k, name in enumerate(body.outputs[:states]):
            if body[name].size != body.inputs[k].size:
                raise InvalidArgument(
                    f"a state has the shape {body.inputs[k].shape} before an iteration and {body[name].shape} behind it"
                )
        for node in body:
            by_step = node.operation
            if isinstance(by_step, ByStep) and by_step.factors.shape != (count,):
                raise InvalidArgument(f"{node.name} needs a number for each of {count} iterations")
        sizes = self.sizes
        return body.inputs[0].shape if len(sizes) == 1 else (sum(sizes),)

    @property
    def own_inputs(self) -> int:
        """How many of its inputs have the scale and the layout that the body expects: all but the
        constants."""
        return self.states + self.count * self.sequences

    def places(self, inputs: int, step: int) -> list[int]:
        """Which of so many inputs the body takes in an iteration."""
        picked = [self.states + k * self.count + step for k in range(self.sequences)]
        return [*range(self.states), *picked, *range(self.own_inputs, inputs)]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Of what the result is made: (place among the body's outputs, iteration) of every part."""
        collected = range(self.states, self.states + self.collected)
        return [
            *((k, self.count - 1) for k in range(self.states)),
            *((k, step) for k in collected for step in range(self.count)),
        ]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each part of the result has."""
        body, states = self.body, self.states
        sizes = [node.size for node in body.inputs[:states]]
        sizes += [body[name].size for name in body.outputs[states:]]
        return [sizes[k] for k, _ in self.parts]


@dataclass(frozen=True, eq=False)
class ByStep(Elementwise):
    """An array times a number that the iteration says.

    factors: one number for each. It occurs in bodies only.
    """

    name = "by_step"
    factors: Array

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if self.factors.ndim != 1:
            raise InvalidArgument("it needs one number for each iteration")
        return shapes[0]


@dataclass(frozen=True, eq=False)
class StepMap(SparseMap):
    """y = factors[t] M x in iteration t, where all entries of M are 1: copies, or sums."""

    factors: Array = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(cls, pattern: SparseMap, factors: Array | float) -> StepMap:  # type: ignore[override]
        """factors[t] times a map whose entries are equal."""
        m = pattern
        first = m.values[0] if m.count else 0.0
        numbers = np.asarray(factors, np.float64) * (1.0 if isinstance(m, StepMap) else first)
        if isinstance(m, StepMap):
            numbers = numbers * m.factors
        return cls(m.rows, m.cols, np.ones(m.count), m.shape, numbers)

    @property
    def is_identity(self) -> bool:
        """Never: it is one in some iterations at most."""
        return False

    def scaled(self, rows: Array | float, cols: Array | float = 1.0) -> StepMap:
        """The map between other units. Both are numbers, as the arrays of a body have one unit
        each."""
        return replace(self, factors=self.factors * float(rows) * float(cols))

    def at(self, step: int) -> SparseMap:
        """The map in an iteration."""
        values = np.broadcast_to(self.factors[step], self.count)
        return SparseMap(self.rows, self.cols, values, self.shape)

    def is_like(self, other: SparseMap) -> bool:
        """Whether another map has its entries in the same places."""
        return self.has_places_of(other)

    def __str__(self) -> str:
        return f"by_step({self.shape[0]}x{self.shape[1]}, {len(self.factors)} factors)"


def is_light(single: SparseMap) -> bool:
    """Whether all entries of the map are equal, so that a number that depends on the iteration can
    be part of it."""
    return single.count > 0 and single.is_uniform


def factor_of(single: SparseMap) -> float | None:
    """The number of which the map is the multiple of the identity; None for another map."""
    m, n = single.shape
    if isinstance(single, StepMap) or m != n or single.count != m:
        return None
    first = float(single.values[0])
    same = np.array_equal(single.rows, single.cols) and np.all(single.values == first)
    return first if same else None


def is_whole(factor: float) -> bool:
    """Whether a product with this number takes no level: a whole number from 1."""
    return 1 <= factor <= MOST_WHOLE and factor == int(factor)


def multiple_of(single: SparseMap) -> float | None:
    """The number of which the map is the multiple of the identity, or of a map by which all numbers
    move round; None for another map."""
    m, n = single.shape
    if isinstance(single, StepMap) or m != n or single.count != m or not is_light(single):
        return None
    moved = (single.cols - single.rows) % n
    return float(single.values[0]) if np.all(moved == moved[0]) else None


def at_step(body: Graph, step: int) -> Graph:
    """The body in one iteration, without numbers that depend on it."""
    nodes = []
    for node in body:
        match node.operation:
            case ByStep(factors=factors):
                node = replace(node, operation=Scale(np.asarray(factors[step]), np.asarray(0.0)))
            case Affine(maps=maps) if any(isinstance(m, StepMap) for m in maps):
                node = _affine_at(node, maps, step)
        nodes.append(node)
    return Graph(tuple(nodes), body.outputs, body.stage)


def _affine_at(node: Node, maps: Sequence[SparseMap], step: int) -> Node:
    """Sums of arrays times numbers of an iteration. Arrays whose number is 0 are left out, if
    others remain."""
    terms = [
        (name, m.at(step) if isinstance(m, StepMap) else m)
        for name, m in zip(node.inputs, maps, strict=True)
    ]
    terms = [term for term in terms if np.any(term[1].values)] or terms[:1]
    return replace(
        node.with_operation(maps=tuple(m for _, m in terms)), inputs=tuple(n for n, _ in terms)
    )


def has_loops(graph: Graph) -> bool:
    """Whether any node is a loop."""
    return any(isinstance(node.operation, Loop) for node in graph)


def unrolled_count(graph: Graph) -> int:
    """How many nodes there are if every iteration of every loop has nodes of its own."""
    loops = [loop for node in graph if isinstance(loop := node.operation, Loop)]
    return len(graph) - len(loops) + sum(x.count * unrolled_count(x.body) for x in loops)


def inputs_at(node: Node, step: int) -> list[int]:
    """Which of a loop's inputs its body takes in an iteration, after the states: sequences and
    constants."""
    loop = Loop.of(node)
    return loop.places(len(node.inputs), step)[loop.states :]
