"""Functions that are written out in a model, and cheaper if they are read as what they are.

- A softmax with the largest number subtracted: exp(x - max x) / sum of exp(x - max x). In floating
  point, the maximum keeps the exponential from overflowing. Encrypted, it would be a tournament of
  ReLUs, and it cancels: whatever is subtracted from all numbers of a sum changes no share. So the
  quotient is read as exp(x) / sum of exp(x), as the operation softmax is.
- An activation that is a product, such as GELU: x (1 + tanh(c (x + 0.044715 x^3))) / 2. The cube
  has a range of thousands, on which no polynomial of a useful degree is near the tanh, and GELU
  itself is as smooth as x is long. Constants in models have 24 bits, so a product is taken for an
  activation if it has its values up to this rounding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jali.compiler.ir.arrays import Array
from jali.compiler.ir.graph import Node
from jali.compiler.ir.linear_ops import Broadcast, Combine, Reshape, Scale, Sum
from jali.compiler.ir.scalar import FUNCTIONS
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries

__all__ = ["activation", "shares"]

_ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "mish")
_INNER = ("sigmoid", "tanh", "erf", "softplus")  # one of these is in each of them
#: Numbers at which functions are compared, from where they bend to where they are straight.
_AT = np.concatenate([np.linspace(-12, 12, 193), [-1000, -100, -40, -20, 20, 40, 100, 1000]])
_ROUNDING = 3e-7  # of a constant in 24 bits, and some more
_MOST = 24  # nodes that an activation is written in


def shares(powers: Any, total: Any) -> Any:
    """The quotient of two traced arrays without the maximum, if it is exactly such a softmax;
    otherwise None."""
    builder = powers.builder
    exponent = _source(powers.builder, powers.node, Function)
    if total.builder is not builder or exponent is None:
        return None
    if powers.node.operation.function != "exp" or not isinstance(exponent.operation, Combine):
        return None
    axes = _summed(builder, powers.node, total.node)
    if axes is None or exponent.operation.weights != (1.0, -1.0):
        return None
    x, largest = (builder.nodes[name] for name in exponent.inputs)
    if not _is_largest(builder, x, largest, axes):
        return None
    plain = type(powers)(builder, x)._function("exp")
    return plain * plain.sum(axes, keepdims=True)._inverse()


def activation(a: Any, b: Any) -> Any:
    """The product of two traced arrays as an activation of an array of which both are made, number
    by number, times a number; None if it is none."""
    if a.builder is not b.builder or a.node.shape != b.node.shape:
        return None
    nodes = a.builder.nodes
    mine, theirs = (_made_of(nodes, node) for node in (a.node, b.node))
    if not any(_is_inner(nodes[name]) for name in mine | theirs):
        return None
    scales = {1.0} | {k for name in mine | theirs if (k := _scale(nodes[name]))}
    for name in sorted(mine & theirs, key=list(nodes).index, reverse=True):
        for scale in sorted(scales, key=lambda k: abs(k - 1)):  # of the number that is taken
            values = {name: _AT / scale}
            with np.errstate(all="ignore"):
                found = _value(nodes, a.node, values) * _value(nodes, b.node, values)
            if (known := _known(found)) is not None:
                x = type(a)(a.builder, nodes[name])
                plain = (x if scale == 1.0 else x * scale)._function(known[0])
                return plain if known[1] == 1.0 else plain * known[1]
    return None


def _known(found: Array) -> tuple[str, float] | None:
    """The activation with these values at _AT, and by what it is multiplied."""
    for name, values in _activations():
        factor = float(found[-1] / values[-1])
        if abs(factor - round(factor, 2)) < _ROUNDING:  # of constants, such as 1 or 1/2
            factor = round(factor, 2)
        near = abs(factor) * _ROUNDING * np.maximum(1, np.abs(_AT))
        if factor and np.all(np.abs(found - factor * values) <= near):
            return name, factor
    return None


@lru_cache(maxsize=1)
def _activations() -> tuple[tuple[str, Array], ...]:
    return tuple((name, FUNCTIONS[name](_AT)) for name in _ACTIVATIONS)


def _scale(node: Node) -> float:
    """By what a node multiplies another one, if it does nothing else; otherwise 0."""
    by = node.operation
    if not isinstance(by, Scale) or not _is_by_number(node) or np.any(by.offset):
        return 0.0
    return float(np.ravel(by.factor)[0])


def _is_inner(node: Node) -> bool:
    return isinstance(node.operation, Function) and node.operation.function in _INNER


def _made_of(nodes: Any, node: Node) -> set[str]:
    """The node and those of which it is made, number by number."""
    found, left = {node.name}, [node]
    while left and len(found) < _MOST:
        node = left.pop(0)
        if _is_by_number(node):
            more = [name for name in node.inputs if name not in found]
            found.update(more)
            left += [nodes[name] for name in more]
    return found


def _is_by_number(node: Node) -> bool:
    """Whether every number of a node is the same function of the numbers at its place."""
    if isinstance(node.operation, Scale):
        return all(
            np.ptp(numbers) == 0 for numbers in (node.operation.factor, node.operation.offset)
        )
    return isinstance(node.operation, Function | Multiply | PowerSeries | Combine)


def _value(nodes: Any, node: Node, values: dict[str, Array]) -> Array:
    """The value of a node where those of others are known; not a number if it needs others."""
    if node.name not in values:
        if _is_by_number(node):
            sources = [_value(nodes, nodes[name], values) for name in node.inputs]
            operation = node.operation
            if isinstance(operation, Scale):
                factor, offset = (
                    float(np.ravel(x)[0]) for x in (operation.factor, operation.offset)
                )
                values[node.name] = factor * sources[0] + offset
            else:
                values[node.name] = np.asarray(operation.compute(sources))
        else:
            values[node.name] = np.full_like(_AT, np.nan)
    return values[node.name]


def _source(builder: Any, node: Node, kind: Any) -> Node | None:
    """What a node takes, if it is an operation of this kind on one array."""
    if not isinstance(node.operation, kind) or len(node.inputs) != 1:
        return None
    found: Node = builder.nodes[node.inputs[0]]
    return found


def _summed(builder: Any, powers: Node, total: Node) -> tuple[int, ...] | None:
    """The axes along which `total` is the sum of `powers`, beside which it is broadcast; None if it
    is something else."""
    node = _source(builder, total, Broadcast) or total
    shape = node.shape
    while (inner := _source(builder, node, Reshape)) is not None:
        node = inner
    total_of = node.operation
    if _source(builder, node, Sum) is not powers or not isinstance(total_of, Sum):
        return None
    axes = total_of.axes
    kept = tuple(1 if a in axes else n for a, n in enumerate(powers.shape))
    return axes if shape == kept and total_of.factor == 1.0 else None


def _is_largest(builder: Any, x: Node, node: Node, axes: tuple[int, ...]) -> bool:
    """Whether a node is the largest number of x, and the same all along these axes."""
    inner = _source(builder, node, Broadcast)
    if inner is None:
        return False
    shape = (1,) * (len(node.shape) - len(inner.shape)) + inner.shape
    if any(shape[a] != 1 for a in axes):
        return False
    while inner is not None and inner.name not in builder.maxima:
        inner = _source(builder, inner, (Broadcast, Reshape))
    return inner is not None and builder.maxima[inner.name] == x.name
