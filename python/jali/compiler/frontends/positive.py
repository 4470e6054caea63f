"""Whether traced numbers can be negative."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from jali.compiler.ir.graph import Node
from jali.compiler.ir.linear_ops import Combine, Move, Scale, Sum
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Function, Multiply
from jali.compiler.ir.windows import AveragePool

__all__ = ["positive_if"]

_POSITIVE = {"absolute", "exp", "maximum", "relu", "sigmoid", "softplus", "step"}
_KEEPING = {"inverse", "inverse_sqrt", "sqrt"}


def positive_if(
    nodes: Mapping[str, Node], node: Node, known: Collection[str] = ()
) -> set[str] | None:
    """The inputs whose numbers must not be negative, so that none of a node's are; None if some of
    these may be negative whatever the inputs are.

    known: the names of nodes whose numbers are not negative.
    """
    inputs, seen, pending = set[str](), set[str](), [node]
    while pending:
        one = pending.pop()
        if one.name in seen or one.name in known:
            continue
        seen.add(one.name)
        operation = one.operation
        match operation:
            case Input():
                inputs.add(one.name)
                continue
            case Function() if operation.function in _POSITIVE:
                continue
            case Multiply() if len(set(one.inputs)) == 1:
                continue
            case Function():
                goes_on = operation.function in _KEEPING
            case Scale():
                goes_on = bool(np.all(operation.factor >= 0) and np.all(operation.offset >= 0))
            case Combine():
                goes_on = all(weight >= 0 for weight in operation.weights)
            case Sum():
                goes_on = operation.factor >= 0
            case _:
                goes_on = isinstance(operation, (Move, AveragePool, Multiply))
        if not goes_on:
            return None
        pending += [nodes[name] for name in one.inputs]
    return inputs
