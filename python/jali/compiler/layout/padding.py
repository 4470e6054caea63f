"""What lies in the slots between the numbers of an array: zeros, or what a function makes of them.

Matrices leave zeros there, and so do products of zeros. A function with f(0) other than 0 does not:
behind exp, every slot that holds no number holds a 1. Sums without a mask
(jali.compiler.layout.axes) add up whole ciphertexts, and would count it.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from jali.compiler.ir.folded_ops import Affine, Approximated
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.operation import Input
from jali.compiler.ir.products import Products
from jali.compiler.ir.scalar import FUNCTIONS
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries

__all__ = ["filled"]

_LEAST = 2.0**-40  # less is rounding, and far below any noise


def filled(graph: Graph) -> Set[str]:
    """The names of the nodes that may hold other numbers than 0 between theirs, whatever their
    layouts are; of a graph before lowering."""
    found: set[str] = set()
    for node in graph:
        if _fills(node, [name in found for name in node.inputs]):
            found.add(node.name)
    return found


def _fills(node: Node, inputs: list[bool]) -> bool:
    """Whether a node may hold other numbers than 0 between its numbers.

    inputs: whether each of its inputs may.
    """
    match node.operation:
        case Input() | Products():
            return False
        case Multiply():
            return all(inputs)
        case Affine(maps=maps):  # a multiple of a ciphertext, or a copy, keeps what it holds
            kept = zip(inputs, maps, strict=True)
            return any(filled_ and single.count and single.is_uniform for filled_, single in kept)
    return any(inputs) or abs(_at_zero(node)) > _LEAST


def _at_zero(node: Node) -> float:
    """The value of a function at 0."""
    zero = np.zeros(1)
    match node.operation:
        case Approximated(by=by):
            return float(by(zero)[0])
        case PowerSeries(coefficients=coefficients):
            return float(coefficients[0])
        case Function(function=function):
            with np.errstate(all="ignore"):
                return float(np.nan_to_num(FUNCTIONS[function](zero)[0], nan=1.0))
    return 1.0
