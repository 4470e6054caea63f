"""The nodes of a square root that is a composition, see roots.py: one for each polynomial, and
products, so that every one of them may be bootstrapped.

Between them lie 2 u_k - 1, from -1 to 1, and factors of up to 32, which products alone take: beside
a larger factor, the noise of a product is as small as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from jali import ckks
from jali.compiler.ir.facts import Facts, Scaling
from jali.compiler.ir.folded_ops import Approximated, Approximation
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.traced_ops import Function, Multiply, function_of
from jali.compiler.passes.limits import divisible
from jali.compiler.passes.roots import RootPolynomial, RootStages, is_near_zero, root_of, value_of
from jali.errors import InvalidArgument

__all__ = ["StagedRoot", "bootstraps", "polynomial_root", "staged_root"]

_POINTS = 4097  # roots from 0 to 1, of which the factors' sizes are taken
_ROUNDED = 1 + 2.0**-20
_FUNCTION = 6  # levels of a function: a polynomial of degree 63
_DEEP = 24  # levels beside roots from which on a program is likely to bootstrap


@dataclass(frozen=True)
class StagedRoot:
    """The nodes of a composition.

    parts: all nodes but the last, which is the product of two of them.
    inputs: the names of the factors of this product.
    radius: of its scale, whose centre is 0.
    """

    parts: tuple[Node, ...]
    inputs: tuple[str, str]
    radius: float


def polynomial_root(name: str, interval: tuple[float, float], error: float) -> RootPolynomial:
    """As root_of, for a polynomial. Raises InvalidArgument, which names the node, if there is
    none."""
    found = root_of(interval, error, whole=True)
    if not isinstance(found, RootPolynomial):
        raise _refused(name, interval)
    return found


def bootstraps(graph: Graph) -> bool:
    """Whether a calibrated graph takes so many levels beside its roots that it is likely to be
    bootstrapped. Functions are counted as polynomials of degree 63."""
    above = {node.name: 0 for node in graph}
    for node in reversed(graph.nodes):
        root = function_of(node) == "sqrt"
        takes = 0 if root else _FUNCTION if isinstance(node.operation, Function) else 1
        for name in node.inputs:
            above[name] = max(above[name], above[node.name] + takes)
    return max(above.values()) > _DEEP


def staged_root(
    node: Node, source: Node, error: float, level: float, fixed: float | None = None
) -> StagedRoot | None:
    """The composition for a node sqrt that is off by at most `error` of the largest root. None if
    its numbers do not reach 0, or if a polynomial is cheaper.

    level: how many products of ciphertexts a level is worth.
    fixed: a radius that the result must have, if it is not smaller than its own.

    Raises InvalidArgument if there is neither.
    """
    centre, reach = float(source.scaling.centre), float(source.scaling.radius)
    interval = centre - reach, centre + reach
    if not is_near_zero(interval):
        return None
    largest = divisible(0.0, max(abs(float(node.range.low)), abs(float(node.range.high))))
    found = root_of(interval, error * largest, level=level)
    if found is None:
        raise _refused(node.name, interval)
    if isinstance(found, RootPolynomial):
        return None
    radius = max(fixed or 0.0, largest * (1 + error))
    return _of_stages(node, source, found.from_low(interval[0] / interval[1]), interval, radius)


def _refused(name: str, interval: tuple[float, float]) -> InvalidArgument:
    return InvalidArgument(
        f"{name}: sqrt on [{interval[0]:.3g}, {interval[1]:.3g}] has no approximation that is exact enough: keep its numbers away from 0, for example by "
        "adding a constant, or ask for fewer precision_bits"
    )


def _of_stages(
    node: Node, source: Node, stages: RootStages, interval: tuple[float, float], radius: float
) -> StagedRoot:
    size = math.sqrt(interval[1] - min(interval[0], 0.0)) / radius
    rms = min(1.0, math.sqrt(float(np.mean(node.range.square))) / radius)
    proven = source.scaling.proven
    t = 2 * np.linspace(0, 1, _POINTS) ** 2 - 1

    def polynomial(name: str, series: Array, of: str, error: float = 0.0) -> Node:
        by = ckks.Polynomial(series, "chebyshev", (-1.0, 1.0))
        how = Approximated(Approximation("sqrt", by, error, part=node.name))
        return Node(f"{node.name} {name}", how, (of,), node.shape)

    def known(
        one: Node, low: float, high: float, rms: float, centre: float = 0.0, radius: float = 1.0
    ) -> Node:
        scaling = Scaling(
            centre=centre,
            radius=radius,
            low=low,
            high=high,
            rms=rms,
            largest=max(1.0, high),
            proven=proven,
        )
        return replace(one, facts=Facts(scaling=scaling))

    def product(one: Node) -> Node:
        return known(one, min(0.0, -stages.error), size * _ROUNDED, rms, radius=radius)

    made = [product(polynomial("root 1", stages.factors[0] * size, source.name))]
    argument, root = source.name, made[0].name
    for k, (inner, factor) in enumerate(zip(stages.inner, stages.factors[1:], strict=True), 2):
        square = polynomial(f"square {k - 1}", inner, argument)
        made.append(known(square, -1.0, 1.0, 1.0, centre=0.5, radius=0.5))
        argument = square.name
        t = value_of(t, inner)
        values = value_of(t, factor)
        last = k == len(stages.factors)
        by = polynomial(f"factor {k}", factor, argument, stages.error if last else 0.0)
        low, high = float(values.min()) / _ROUNDED, float(values.max()) * _ROUNDED
        made.append(known(by, low, high, math.sqrt(float(np.mean(values * values)))))
        if last:
            return StagedRoot(tuple(made), (root, by.name), radius)
        next_root = Node(f"{node.name} root {k}", Multiply(), (root, by.name), node.shape)
        made.append(product(next_root))
        root = next_root.name
    raise AssertionError("a composition has two factors or more")
