"""A softmax that is written out with the largest number subtracted: exp(x - max x) / sum of
exp(x - max x).

In floating point, the maximum keeps the exponential from overflowing. Encrypted, it would be a
tournament of ReLUs, and it cancels: whatever is subtracted from all numbers of a sum changes no
share. So the quotient is read as exp(x) / sum of exp(x), as the operation softmax is.
"""

from __future__ import annotations

from typing import Any

from jali.compiler.ir.graph import Node
from jali.compiler.ir.linear_ops import Broadcast, Combine, Reshape, Sum
from jali.compiler.ir.traced_ops import Function

__all__ = ["shares"]


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
