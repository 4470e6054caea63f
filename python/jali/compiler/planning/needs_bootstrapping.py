"""Early check: does this program need bootstrapping? Bounds on its noise tell, before layouts,
parameters and matrices are made.

A ciphertext carries a bound on the error of every slot, whatever the errors of its inputs are. So
no layout makes it smaller than what some errors of that size become. With errors of size e in the
numbers of an array, or e_k in those of several ones,

    a matrix M leaves      max_i sum_k sum_j |M^k_ij| e_k    in one of its results,
    a product of x and y   |x| e_y + |y| e_x + e_x e_y,

where |x| is the largest that a number of x may be, by its range: that is what a program claims of
it. Beside a scale of 2^s, encryption and each rescaling alone have a bound of more than 2^(_LEAST -
s). Of functions and of products of matrices only this is counted. Evaluators refuse a product whose
bound is no number (kUnbounded in params/ckks/noise.h), so a trial run fails there, if not before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jali.ckks import max_log_qp
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.traced_ops import Multiply

__all__ = ["bounds_overflow", "least_depth", "takes_ring"]

#: Bits of the error of a fresh encryption in the smallest ring, N = 2^10, in units of the scaled
#: integers: its bound is N/2 for the roundings, and twice as much for what is drawn. Larger rings
#: have more.
_LEAST = 9.0
_MOST = math.log2(1e300)  # kUnbounded, likewise
_DRIFT = 1.0  # bits by which the primes of a level may have less than the scale


def bounds_overflow(graph: Graph, scale_bits: float) -> bool:
    """Whether a dry run of an approximated graph without loops is certain to raise RangeExceeded at
    this scale, and at all below, because a bound on its noise is no number."""
    least = _LEAST - scale_bits
    found: dict[str, float] = {}  # log2 of the bound, in the scale of the numbers
    for node in graph:
        sources = [found[name] for name in node.inputs]
        bits = least
        if isinstance(node.operation, Affine):
            bits = max(least, _of_matrices(node, sources))
        elif isinstance(node.operation, Multiply):
            (x, y), (a, b) = (_size(graph[name]) for name in node.inputs), sources
            bits = max(least, float(np.logaddexp2.reduce([x + b, y + a, a + b])))
            if bits + scale_bits > _MOST + _DRIFT:
                return True
        found[node.name] = bits
    return False


def _of_matrices(node: Node, sources: Sequence[float]) -> float:
    """log2 of the largest error of a matrix's results, for the errors of its inputs."""
    largest, total = max(sources), np.zeros(node.size)
    for single, bits in zip(Affine.of(node).maps, sources, strict=True):
        ones = np.ones(single.shape[1])
        total += single.bounds(-ones, ones)[1] * 2.0 ** (bits - largest)
    return largest + math.log2(max(float(total.max(initial=0.0)), 2.0**-100))


def _size(node: Node) -> float:
    """log2 of the modulus that a program claims of the numbers of an array, or less."""
    return math.log2(max(abs(node.scaling.low), abs(node.scaling.high), 2.0**-20))


def least_depth(graph: Graph) -> int:
    """The levels that an approximated graph without loops takes in every layout. A matrix whose
    entries are equal may take none."""
    above = {node.name: 0 for node in graph}
    for node in reversed(graph.nodes):
        for k, name in enumerate(node.inputs):
            takes = node.operation.depth(k)
            if isinstance(node.operation, Affine) and node.operation.maps[k].is_uniform:
                takes = 0
            above[name] = max(above[name], above[node.name] + takes)
    return max(above.values())


def takes_ring(depth: int, scale_bits: float, log_n: int) -> bool:
    """Whether so many levels have no secure parameters in any ring below 2^log_n."""
    return depth * (scale_bits - _DRIFT) > max_log_qp(log_n - 1, 128)
