"""Approximation: functions become polynomials on [-1, 1], and every array is scaled into [-1, 1].

An array of the new graph holds (true - centre) / radius, where centre and radius are attributes of its node. The matrices and
polynomials absorb the factors, so they cost nothing. A polynomial on [-1, 1] takes one level less than on another
interval, and numbers of size 1 lose the least to noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jali import ckks
from jali.errors import InvalidArgument
from jali.nn.execute import every_value
from jali.nn.graph import Array, Graph, Node
from jali.nn.scalar import APPROXIMATED

__all__ = ["NOISE_SHARE", "Approximation", "approximate", "approximated", "largest_error", "scaled"]

#: Which part of the error is left to the noise.
NOISE_SHARE = 1 / 8
_HOMOGENEOUS = ("relu", "absolute")  # f(r x) = r f(x) for r > 0
_CORNER_DEGREES = (2, 6, 14, 30, 62, 126, 254)
_LEAST_RMS = 2.0**-20  # a declared root mean square is above 0
_ROUNDS = 24  # the errors of the functions are halved at most so many times


@dataclass(frozen=True)
class Approximation:
    """A function of numbers in [-1, 1] with values in the result's scale.

    by: what computes it. error: how far the approximation may be off, in the result's scale; 0 for an exact polynomial.
    """

    name: str
    by: ckks.Polynomial | ckks.functions.Function
    error: float

    @property
    def depth(self) -> int:
        """Levels that it takes."""
        return self.by.depth

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts that it takes."""
        return self.by.multiplications

    def __call__(self, x: Array) -> Array:
        """Its value for clear numbers of any shape."""
        if isinstance(self.by, ckks.Polynomial):
            coefficients = np.real(self.by.coefficients)
            return np.asarray(np.polynomial.chebyshev.chebval(x, coefficients))
        return np.asarray(self.by(x))

    def __str__(self) -> str:
        degree = f" of degree {self.by.degree}" if isinstance(self.by, ckks.Polynomial) else ""
        return f"{self.name}{degree}, depth {self.depth}, error {self.error:.2g}"


def approximate(
    graph: Graph,
    examples: Sequence[Array],
    precision_bits: float,
    *,
    exact: Mapping[str, Array] | None = None,
) -> tuple[Graph, float]:
    """The graph on [-1, 1] with approximated functions, for a calibrated one, and the functions' error.

    precision_bits: on the examples, no output is off by more than 7/8 of 2^-precision_bits of the output's largest number. The
    rest is left to the noise, of which a bit costs less. Every function has the same error in units of its largest value.
    exact: the value of every node for the examples, as for ``calibrate``.
    Raises InvalidArgument, which names the function, where no approximation is found.
    """
    exact = every_value(graph, examples) if exact is None else exact
    limit = error = (1 - NOISE_SHARE) * 2.0**-precision_bits
    for _ in range(_ROUNDS):
        made = approximated(graph, error)
        functions = [n.name for n in made if n.op == "approximated" and n.attrs["by"].error]
        if not functions or largest_error(made, examples, exact) <= limit:
            return made, error
        error /= 2
    raise InvalidArgument(
        f"no approximation of {', '.join(functions)} keeps the outputs within {precision_bits:g} bits: ask for a smaller "
        "precision_bits"
    )


def largest_error(graph: Graph, examples: Sequence[Array], exact: Mapping[str, Array]) -> float:
    """The largest error of an output on the examples, in units of the output's largest number."""
    values = every_value(graph, [scaled(n, x) for n, x in zip(graph.inputs, examples, strict=True)])
    errors = []
    for name in graph.outputs:
        node = graph[name]
        got, want = (v.reshape(len(v), -1) for v in (values[name], exact[name]))
        got = got * node.attrs["radius"] + node.attrs["centre"]
        errors.append(float(np.abs(got - want).max()) / node.attrs["largest"])
    return float(max(errors))


def scaled(node: Node, values: Array) -> Array:
    """Examples (batch, *shape) of an input in its scale."""
    flat = values.reshape(len(values), -1)
    inside = (flat - node.attrs["centre"]) / node.attrs["radius"]
    return np.asarray(inside.reshape(values.shape))


def approximated(graph: Graph, error: float) -> Graph:
    """The graph on [-1, 1] whose functions are off by at most `error` of their largest value."""
    nodes: dict[str, Node] = {}
    for node in graph:
        inputs = [nodes[name] for name in node.inputs]
        if node.op == "affine":
            nodes[node.name] = _affine(node, inputs, *_scale(node, graph))
        elif node.op == "multiply":
            radius = inputs[0].attrs["radius"] * inputs[1].attrs["radius"]
            nodes[node.name] = _known(node, 0.0, radius)
        elif node.op == "input":
            nodes[node.name] = _known(node, *_scale(node, graph))
        else:
            nodes[node.name] = _function(node, inputs[0], error, graph)
    return Graph(tuple(nodes.values()), graph.outputs, "approximate")


def _known(node: Node, centre: Array | float, radius: Array | float, **attrs: object) -> Node:
    """The node with its scale, and its range and root mean square in that scale."""
    low, high, mean, square = (node.attrs[k] for k in ("low", "high", "mean", "square"))
    moved = np.mean((square - 2 * centre * mean + np.square(centre)) / np.square(radius))
    dropped = ("low", "high", "mean", "square", "function", "coefficients")
    kept = {k: v for k, v in node.attrs.items() if k not in dropped}
    kept |= {"centre": centre, "radius": radius, **attrs}
    kept["low"] = float(np.min((low - centre) / radius))
    kept["high"] = float(np.max((high - centre) / radius))
    kept["rms"] = min(1.0, max(float(np.sqrt(max(moved, 0.0))), _LEAST_RMS))
    return Node(node.name, node.op, node.inputs, node.shape, kept)


def _scale(node: Node, graph: Graph) -> tuple[Array | float, Array | float]:
    """(centre, radius) of an array. Functions and matrices take any centre, products and ReLU take 0."""
    low, high = node.attrs["low"], node.attrs["high"]
    users = graph.users(node.name)
    operations = {user.op for user in users}
    if node.op != "input" or operations - {
        "affine"
    }:  # all but matrices need one scale for all numbers
        low, high = float(np.min(low)), float(np.max(high))
    corners = any(user.attrs.get("function") in _HOMOGENEOUS for user in users)
    only_functions = bool(operations) and operations <= {"function", "polynomial"}
    if corners or "multiply" in operations or (node.op != "input" and not only_functions):
        return 0.0, max(abs(low), abs(high))
    return (low + high) / 2, (high - low) / 2


def _affine(
    node: Node, inputs: Sequence[Node], centre: Array | float, radius: Array | float
) -> Node:
    bias = node.attrs["bias"] - centre
    maps = []
    for source, single in zip(inputs, node.attrs["maps"], strict=True):
        theirs = np.broadcast_to(source.attrs["centre"], (source.size,))
        bias = bias + single(theirs[None])[0]
        maps.append(single.scaled(1 / np.asarray(radius), source.attrs["radius"]))
    return _known(node, centre, radius, maps=tuple(maps), bias=bias / radius)


def _function(node: Node, source: Node, error: float, graph: Graph) -> Node:
    """A function or polynomial of (centre + reach t), for t in [-1, 1], in the result's scale."""
    centre, reach = source.attrs["centre"], source.attrs["radius"]
    name = node.attrs.get("function", "polynomial")
    by: ckks.Polynomial | ckks.functions.Function
    middle, radius = map(float, _scale(node, graph))
    if name in _HOMOGENEOUS:
        (by, off), middle, radius = _with_a_corner(name, error), 0.0, reach
    else:
        largest = max(abs(node.attrs["low"]), abs(node.attrs["high"]), np.finfo(float).tiny)
        radius = max(radius, largest * 2.0**-20) + error * largest
        coefficients, off = _chebyshev(node, centre, reach, error * largest)
        coefficients[0] -= middle
        by, off = _on_unit(coefficients / radius), off / radius
    made = Node(node.name, "approximated", node.inputs, node.shape, node.attrs)
    return _known(made, middle, radius, by=Approximation(name, by, off))


def _chebyshev(node: Node, centre: float, reach: float, error: float) -> tuple[Array, float]:
    """The Chebyshev coefficients of a function or polynomial on centre +- reach, and how far they are off."""
    if node.op == "polynomial":
        inner = np.polynomial.Polynomial([centre, reach])
        power = np.polynomial.Polynomial(node.attrs["coefficients"])(inner)
        return np.asarray(np.polynomial.chebyshev.poly2cheb(power.coef), np.float64), 0.0
    name, interval = node.attrs["function"], (float(centre - reach), float(centre + reach))
    try:
        found = APPROXIMATED[name](interval, error=error)
    except InvalidArgument as refused:
        raise InvalidArgument(f"{node.name}: {refused}") from None
    if found.polynomial is None:
        raise InvalidArgument(
            f"{node.name}: {name} on [{interval[0]:g}, {interval[1]:g}] takes several polynomials: keep its "
            "numbers in a smaller interval"
        )
    return np.real(np.asarray(found.polynomial.coefficients)), found.max_error


def _with_a_corner(
    name: str, error: float
) -> tuple[ckks.Polynomial | ckks.functions.Function, float]:
    """ReLU or the modulus on [-1, 1], and its error.

    One minimax polynomial of degree n is off by about 0.14 / n for ReLU. Up to degree 254 it takes fewer levels and products
    than the composition of polynomials that has the same error.
    """
    least = (0.13 if name == "relu" else 0.26) / error
    for degree in filter(lambda n: n >= least, _CORNER_DEGREES):
        single = ckks.Polynomial.approximate(
            lambda t: max(t, 0.0) if name == "relu" else abs(t), degree, minimax=True
        )
        assert single.measured_error is not None
        if single.measured_error <= error:
            return single, single.measured_error
    composed = APPROXIMATED[name](1.0, error=error)
    return composed, composed.max_error


def _on_unit(coefficients: Array) -> ckks.Polynomial:
    """The polynomial with these Chebyshev coefficients on [-1, 1]."""
    return ckks.Polynomial(coefficients, "chebyshev", (-1.0, 1.0))
