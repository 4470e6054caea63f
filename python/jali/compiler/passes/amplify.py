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

In: an approximated graph without loops, of a program that does not bootstrap. Out: the graph with
other matrices, and with numbers above 1.

>>> examples, m = np.linspace(-1, 1, 20).reshape(10, 2), np.array([[1.0, -2.0], [3.0, 0.5]])
>>> ranged = calibrate(fold(nn.trace(lambda v: m @ np.square(m @ v), examples[0])), [examples])
>>> [node.op for node in amplified(approximated(ranged, 1e-3)) if node.scaling.high > 1]
['affine', 'multiply', 'affine']
"""

from __future__ import annotations

import math
from collections.abc import Collection

from jali.compiler.ir.folded_ops import Affine, MatrixSum
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.traced_ops import Multiply

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
    users = graph.users(node.name)
    if node.name in graph.outputs:
        return 1.0 if users else 2.0**OUTPUT_BITS
    grows = all(isinstance(user.operation, MatrixSum | Multiply) for user in users)
    return LARGEST if grows else 1.0


def _gains(graph: Graph) -> dict[str, int]:
    """The bits by which arrays grow: results of matrices of which only products are formed, and
    products that only matrices take."""
    factors = {}
    for node in graph:
        bits = min(_MOST, round(-math.log2(node.scaling.rms)) + _ROOT_MEAN_SQUARE)
        hidden = node.name not in graph.outputs and graph.users(node.name)
        if isinstance(node.operation, Affine) and _is_scaled(node) and hidden and bits > 0:
            factors[node.name] = bits
    while True:
        products = {
            node.name: sum(factors[name] for name in node.inputs)
            for node in graph
            if isinstance(node.operation, Multiply) and _may_grow(graph, node, factors)
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
    alone = [
        n
        for n in outputs
        if isinstance(n.operation, Affine) and _is_scaled(n) and not graph.users(n.name)
    ]
    return {node.name: OUTPUT_BITS for node in alone}


def _may_grow(graph: Graph, product: Node, factors: Collection[str]) -> bool:
    if product.name in graph.outputs or any(name not in factors for name in product.inputs):
        return False
    return all(
        isinstance(user.operation, Affine) and _is_scaled(user)
        for user in graph.users(product.name)
    )


def _is_scaled(node: Node) -> bool:
    """Whether its matrices multiply by different numbers, which takes a level and has another
    factor for nothing. Copies and sums may take none."""
    return all(not single.is_uniform for single in Affine.of(node).maps)


def _amplified(node: Node, gains: dict[str, int]) -> Node:
    """Factors are powers of two, so that no number is rounded."""
    factor = 2.0 ** gains.get(node.name, 0)
    if isinstance(node.operation, Affine):
        maps, bias = node.operation.maps, node.operation.bias
        scales = [factor / 2.0 ** gains.get(name, 0) for name in node.inputs]
        scaled = (m if k == 1 else m.scaled(k) for m, k in zip(maps, scales, strict=True))
        node = node.with_operation(maps=tuple(scaled), bias=bias * factor)
    if factor > 1:
        was = node.scaling
        node = node.with_scaling(
            low=was.low * factor,
            high=was.high * factor,
            rms=was.rms * factor,
            beyond=was.beyond * factor,
            radius=was.radius / factor,
        )
    return node
