"""How large and how small the numbers of a program may be, so that products, squares and quotients
of them are finite. What is compiled and what a file may hold have the same limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.loop_graph import Loop
from jali.errors import CorruptData

__all__ = [
    "LARGEST",
    "LEAST_RADIUS",
    "LEAST_WIDTH",
    "MOST_FACTOR",
    "MOST_WEIGHT",
    "divisible",
    "refusing_overflow",
    "too_large",
]

LARGEST = 1e100  #: Of the numbers of any array.
LEAST_WIDTH = 1e-50  #: Of the range of an input.
LEAST_RADIUS = 1e-100  #: Of any array; that of a product is the product of two radii.
MOST_WEIGHT = 1e50  #: Of matrices and biases, in the model's units.
MOST_FACTOR = (
    2.0**100
)  #: Of matrices and biases between arrays on [-1, 1]. It multiplies noise, too.
_ROUNDED = 2.0**-40


def divisible(centre: float, radius: float) -> float:
    """The radius, or a larger one if all numbers are the centre, or so near to it that they could
    not be divided by their radius."""
    near = abs(centre) * _ROUNDED
    if radius >= max(near, LEAST_WIDTH):
        return radius
    return near if near >= LEAST_WIDTH else 1.0


def too_large(graph: Graph, most: float) -> str | None:
    """What has a number above `most`, or one that is not finite: "the weights of NAME" or "the bias
    of NAME". None if nothing has."""
    for node in graph:
        match node.operation:
            case Loop(body=body):
                inside = too_large(body, most)
                if inside is not None:
                    return inside
            case Affine(maps=maps, bias=bias):
                if not all(single.largest <= most for single in maps):
                    return f"the weights of {node.name}"
                if not np.all(np.abs(bias) <= most):
                    return f"the bias of {node.name}"
    return None


@contextmanager
def refusing_overflow() -> Iterator[None]:
    """Arithmetic with numbers of a file: what overflows, divides by 0 or has no value raises
    CorruptData."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError:  # FloatingPointError, OverflowError, ZeroDivisionError
        raise CorruptData(
            "the bytes are no program: its numbers are so large or so small that results are not finite"
        ) from None
