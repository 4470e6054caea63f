"""The operations that are left after folding and approximation, beside ``input``, ``multiply``,
``function``, ``polynomial``, ``products`` and ``loop``; and the one that levels add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jali import ckks
from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.graph import Node
from jali.compiler.ir.operation import Elementwise, Operation
from jali.compiler.ir.sparse import SparseMap, matrix_sum

__all__ = [
    "Affine",
    "Approximated",
    "Approximation",
    "Bootstrap",
    "Errors",
    "MatrixSum",
    "approximation_of",
    "error_of",
]

_CACHED = 1 << 14  # numbers of which a polynomial is computed at a time


@dataclass(frozen=True)
class Approximation:
    """A function of numbers in [-1, 1] with values in the result's scale.

    by: what computes it.
    error: how far the approximation may be off, in the result's scale; 0 for an exact polynomial.
    fixed: whether it stays as it is, however exact the outputs have to be.
    part: the node of the model of which this is one of several polynomials; "" if it is the only
        one, or if they are fixed.
    """

    name: str
    by: ckks.Polynomial | ckks.functions.Function
    error: float
    fixed: bool = False
    part: str = ""

    @property
    def depth(self) -> int:
        """Levels that it takes."""
        return self.by.depth

    @property
    def constant(self) -> bool:
        """Whether it is a number, as few bits of precision may allow for. That takes no level."""
        return isinstance(self.by, ckks.Polynomial) and self.by.degree == 0

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts that it takes."""
        return self.by.multiplications

    def __call__(self, x: Array) -> Array:
        """Its value for clear numbers of any shape."""
        if isinstance(self.by, ckks.Polynomial):
            coefficients, flat = np.real(self.by.coefficients), np.ravel(x)
            found = np.empty(flat.shape)
            # The recurrence reads its numbers once for each coefficient.
            for k in range(0, len(flat), _CACHED):
                part = slice(k, k + _CACHED)
                found[part] = np.polynomial.chebyshev.chebval(flat[part], coefficients)
            return found.reshape(np.shape(x))
        return np.asarray(self.by(x))

    def __str__(self) -> str:
        degree = f" of degree {self.by.degree}" if isinstance(self.by, ckks.Polynomial) else ""
        return f"{self.name}{degree}, depth {self.depth}, error {self.error:.2g}"


class Errors(float):
    """How far functions may be off, in units of the largest value of each: the number itself, but
    for those that have an error of their own.

    own: their errors, by the names of their nodes.

    >>> errors = Errors(0.01, {"sqrt": 0.001})
    >>> errors.of("sqrt"), errors.of("tanh"), errors < 0.02
    (0.001, 0.01, True)
    """

    own: Mapping[str, float]

    def __new__(cls, common: float, own: Mapping[str, float] | None = None) -> Errors:
        """Errors with a common one for all functions that are not named."""
        made = super().__new__(cls, common)
        made.own = dict(own or {})
        return made

    def of(self, name: str) -> float:
        """The error of the function of this name."""
        return self.own.get(name, float(self))


def error_of(error: float, name: str) -> float:
    """The error of the function of this name, if all may have the same one or each its own."""
    return error.of(name) if isinstance(error, Errors) else error


@dataclass(frozen=True, eq=False)
class MatrixSum(Operation):
    """y = sum_k M_k x_k + bias: what linear operations become, as matrices between arrays (Affine),
    and behind lowering between ciphertexts (jali.compiler.layout.lowered_ops.Transform).

    bias: of the numbers, or of the slots of every ciphertext.
    """

    arity = None
    bias: Array


@dataclass(frozen=True, eq=False)
class Affine(MatrixSum):
    """y = sum_k maps_k x_k + bias, on flattened arrays.

    shape: of the result.
    """

    name = "affine"
    maps: tuple[SparseMap, ...]
    shape: Shape

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return tuple(self.shape)

    def compute(self, values: Sequence[Array]) -> Array:
        return matrix_sum(self.maps, values, self.bias).reshape(-1, *self.shape)

    def depth(self, k: int) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class Approximated(Elementwise):
    """What replaces a function on [-1, 1]."""

    name = "approximated"
    by: Approximation

    def compute(self, values: Sequence[Array]) -> Array:
        return np.asarray(self.by(values[0]))

    def depth(self, k: int) -> int:
        return self.by.depth

    @property
    def error(self) -> float:
        return self.by.error


@dataclass(frozen=True, eq=False)
class Bootstrap(Elementwise):
    """The same numbers at a higher level.

    kind: one ciphertext after the other ("real"), or two at once ("pair").
    slots: with how many a ciphertext is bootstrapped; None for all.
    """

    name = "bootstrap"
    kind: Literal["real", "pair"]
    slots: int | None = None

    def compute(self, values: Sequence[Array]) -> Array:
        return values[0]

    def depth(self, k: int) -> int:
        return 0


def approximation_of(node: Node) -> Approximation | None:
    """What computes the function that a node is; None for other operations."""
    return node.operation.by if isinstance(node.operation, Approximated) else None
