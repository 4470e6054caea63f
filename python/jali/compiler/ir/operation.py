"""What an operation of a graph is. docs/decisions/0069-operations-are-classes.md says why.

An operation is an instance of a class whose fields are its arguments: ``Scale(factor, offset)``.
The class declares the shape of the result, its value in the clear and the levels that it takes.
Rooms above declare what they know of operations in tables by class: what one costs
(jali.compiler.planning.node_costs), what noise it passes on (jali.compiler.noise.array_noise), and
how it is computed on ciphertexts (jali.compiler.runtime.interpreter).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.sparse import SparseMap, matrix_sum
from jali.errors import InternalError

__all__ = ["Elementwise", "Input", "Linear", "Operation"]


class HasOperation(Protocol):
    """A node of a graph."""

    @property
    def name(self) -> str:
        """Its name in the model."""

    @property
    def operation(self) -> Operation:
        """What it computes."""


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation and its arguments.

    name: in files, in texts, and as ``node.op``.
    arity: how many arrays it takes; None stands for any number from 1.
    """

    name: ClassVar[str]
    arity: ClassVar[int | None] = 1

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of the result. Raises InvalidArgument for shapes that do not fit."""
        raise NotImplementedError

    def compute(self, values: Sequence[Array]) -> Array:
        """The result of arrays (batch, *shape)."""
        raise NotImplementedError

    def depth(self, k: int) -> int:
        """The levels between the result and array number k: the multiplications that it meets."""
        return 0

    @property
    def error(self) -> float:
        """How far the result may be off, in its scale; above 0 for approximations alone."""
        return 0.0

    def arguments(self) -> dict[str, Any]:
        """The fields by their names, for files and texts."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, node: HasOperation) -> Self:
        """The operation of a node, which must be one of this class."""
        found = node.operation
        if not isinstance(found, cls):
            raise InternalError(f"{node.name} is {found.name}, not {cls.__name__}")
        return found


@dataclass(frozen=True, eq=False)
class Elementwise(Operation):
    """An operation that works number by number, on arrays of one shape."""

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]


@dataclass(frozen=True, eq=False)
class Linear(Operation):
    """An operation that is a matrix for each of its arrays, and a bias:
    y = sum_k maps_k x_k + bias, on flattened arrays."""

    def maps(self, shapes: Sequence[Shape]) -> list[SparseMap]:
        """One matrix for each array."""
        raise NotImplementedError

    def entries(self, shapes: Sequence[Shape]) -> int:
        """At most so many entries its matrices have together, which is known before they are
        made."""
        return math.prod(self.result_shape(shapes)) * len(shapes)

    def constant(self, shapes: Sequence[Shape]) -> Array:
        """The bias, flattened."""
        return np.zeros(math.prod(self.result_shape(shapes)))

    def compute(self, values: Sequence[Array]) -> Array:
        shapes = [v.shape[1:] for v in values]
        total = matrix_sum(self.maps(shapes), values, self.constant(shapes))
        return total.reshape(-1, *self.result_shape(shapes))


@dataclass(frozen=True, eq=False)
class Input(Operation):
    """An argument of the model."""

    name = "input"
    arity = 0
    shape: Shape

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return tuple(self.shape)

    def depth(self, k: int) -> int:
        return 0


def by_name(*classes: type[Operation]) -> Mapping[str, type[Operation]]:
    """A table of operations."""
    return {cls.name: cls for cls in classes}
