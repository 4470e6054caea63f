"""Amplification: arrays that are only multiplied, and outputs, become as large as their levels let
them be, which makes the noise beside them smaller.

A calibrated range has a margin and rare large numbers, so that most numbers in it are small: the
root mean square of an array in [-1, 1] is often below 1/8. Level 0 needs room for the largest
number of a result. A level above holds 2^scale_bits times as much, so that the factors of a product
may be 2^g and 2^h times as large there, and the product 2^(g + h) times. The matrix in front
multiplies by 2^g, and that behind divides by 2^(g + h). Neither costs anything, and what a
rescaling adds to the array is the same, which is 2^g times less beside it.

What a rescaling adds has a variance of N/18 in a coefficient, and the rounding of a diagonal 1/12,
times the mean square of the numbers that it meets. So k diagonals behind a product of mean square m
add k m 3 / (2 N) of it: with m = 16 and k = 16, a twentieth at N = 2^13.

An output grows by 2^OUTPUT_BITS, and level 0 has as many bits more. A larger scale would take these
bits at every level.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from jali.compiler.ir.graph import Graph, Node

__all__ = ["LARGEST", "OUTPUT_BITS", "amplified", "largest_of"]

_MOST = 4  # bits; beyond, the diagonals of the matrix behind become small beside their rounding
_ROOT_MEAN_SQUARE = 1  # bits: factors of products have one of about 2
LARGEST = 4**_MOST  #: No number of an amplified graph is larger: a product of two factors.
OUTPUT_BITS = 2  #: Bits by which outputs grow.


def amplified(graph: Graph) -> Graph:
    """The same approximated graph without loops, in which the root mean squares of factors of
    products are about 2, and outputs are larger than they were.

    A program that bootstraps needs numbers in [-1, 1], and must not be amplified.
    """
    gains = _gains(graph)
    nodes = [_amplified(node, gains) for node in graph]
    return Graph(tuple(nodes), graph.outputs, graph.stage) if gains else graph


def largest_of(graph: Graph, node: Node) -> float:
    """What no number of an array exceeds after amplification. Functions, bootstrapping and what a
    client encrypts stay in [-1, 1]."""
    takes = {user.op for user in graph.users(node.name)}
    if node.name in graph.outputs:
        return 1.0 if takes else 2.0**OUTPUT_BITS
    return LARGEST if takes <= {"affine", "transform", "multiply"} else 1.0


def _gains(graph: Graph) -> dict[str, int]:
    """The bits by which arrays grow: results of matrices of which only products are formed, and
    products that only matrices take."""
    factors = {}
    for node in graph:
        bits = min(_MOST, round(-math.log2(node.attrs["rms"])) + _ROOT_MEAN_SQUARE)
        hidden = node.name not in graph.outputs and graph.users(node.name)
        if node.op == "affine" and _is_scaled(node) and hidden and bits > 0:
            factors[node.name] = bits
    while True:
        products = {
            node.name: sum(factors[name] for name in node.inputs)
            for node in graph
            if node.op == "multiply" and _may_grow(graph, node, factors)
        }
        left = {
            name: bits
            for name, bits in factors.items()
            if all(user.name in products for user in graph.users(name))
        }
        if len(left) == len(factors):
            return factors | products | _of_outputs(graph)
        factors = left


def _of_outputs(graph: Graph) -> dict[str, int]:
    """The bits of outputs that matrices compute and nothing else takes."""
    outputs = [graph[name] for name in graph.outputs]
    alone = [n for n in outputs if n.op == "affine" and _is_scaled(n) and not graph.users(n.name)]
    return {node.name: OUTPUT_BITS for node in alone}


def _may_grow(graph: Graph, product: Node, factors: Collection[str]) -> bool:
    if product.name in graph.outputs or any(name not in factors for name in product.inputs):
        return False
    return all(user.op == "affine" and _is_scaled(user) for user in graph.users(product.name))


def _is_scaled(node: Node) -> bool:
    """Whether its matrices multiply by different numbers, which takes a level and has another
    factor for nothing. Copies and sums may take none."""
    return all(not single.is_uniform for single in node.attrs["maps"])


def _amplified(node: Node, gains: dict[str, int]) -> Node:
    """Factors are powers of two, so that no number is rounded."""
    attrs, factor = dict(node.attrs), 2.0 ** gains.get(node.name, 0)
    if node.op == "affine":
        pairs = zip(node.inputs, node.attrs["maps"], strict=True)
        scales = [(single, factor / 2.0 ** gains.get(name, 0)) for name, single in pairs]
        attrs["maps"] = tuple(m if scale == 1 else m.scaled(scale) for m, scale in scales)
        attrs["bias"] = attrs["bias"] * factor
    if factor > 1:
        attrs |= {
            key: attrs[key] * factor for key in ("low", "high", "rms", "beyond") if key in attrs
        }
        attrs["radius"] = attrs["radius"] / factor
    return Node(node.name, node.op, node.inputs, node.shape, attrs)
