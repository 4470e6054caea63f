"""When jali.compile makes a program of exact integers: if that is exact and costs no more.

docs/decisions/0075-models-of-whole-numbers.md has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jali._core import checks
from jali.compiler.cost.costs import counted
from jali.compiler.integers.intervals import EXACT, why_not
from jali.compiler.integers.program import Program
from jali.compiler.integers.summary import Choice
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.passes.calibrate import input_range
from jali.compiler.planning.node_costs import cost_at_level
from jali.compiler.program.program import Program as CkksProgram
from jali.errors import Error, InvalidArgument, RangeExceeded, Unsupported
from jali.program.integers.port import Port

__all__ = ["Dtypes", "cheaper", "exact_if_possible", "exact_program"]


class Dtypes:
    """Which numbers the types of the examples of each input can hold, if all are types of whole
    numbers. Conversions to floats, which the rest of the compiler computes with, lose them."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[int, int]] = {}
        self._floats = False
        #: Whether all came with a type. Lists have none, and [1, 2] may stand for real numbers.
        self.declared = True

    def see(self, arrays: Sequence[Any]) -> None:
        """The arrays for the inputs, of an example or of a batch of the calibration."""
        for k, values in enumerate(arrays):
            dtype = _dtype(values)
            self.declared &= any(hasattr(values, name) for name in ("dtype", "dtypes", "schema"))
            if dtype is None or dtype.kind not in "biu":
                self._floats = True
                continue
            info = None if dtype.kind == "b" else np.iinfo(dtype)
            low, high = (0, 1) if info is None else (int(info.min), int(info.max))
            known = self._ends.get(k, (low, high))
            self._ends[k] = min(low, known[0]), max(high, known[1])

    def of(self, inputs: int) -> list[tuple[int, int]] | None:
        """The lowest and the highest number of the types of each input; None if an example holds
        floats."""
        if self._floats or set(self._ends) != set(range(inputs)):
            return None
        return [self._ends[k] for k in range(inputs)]


def _dtype(values: Any) -> np.dtype[Any] | None:
    if hasattr(values, "is_floating_point") and hasattr(values, "detach"):  # a tensor of PyTorch
        values = values.detach().cpu()
    try:
        return np.asarray(checks.dense(values)).dtype
    except (TypeError, ValueError):
        return None


def exact_program(
    graph: Graph,
    examples: Sequence[Array],
    dtypes: Dtypes,
    declared: Sequence[Any] | None,
    margin: float,
    batch: int,
    scale: int = 1,
) -> Program:
    """The program of exact integers of a traced graph.

    examples: (n, *shape) of every input.
    declared, margin, batch: as input_range, margin and batch of jali.compile.
    scale: see Program.of.

    Raises Unsupported for a model or for examples with fractions, RangeExceeded for numbers that
    are too large, and the errors of Program.of.
    """
    types = dtypes.of(len(graph.inputs))
    if types is None:
        raise Unsupported(
            "exact integers are computed of whole numbers, and the example or the calibration holds floats: give integers, "
            "such as np.rint(scale * x).astype(np.int64)"
        )
    ports = []
    for k, (node, seen) in enumerate(zip(graph.inputs, examples, strict=True)):
        pair = None if declared is None else declared[k]
        none = np.zeros(node.size, np.bool_)
        low, high = input_range(node, seen, pair, margin, none, none)
        if pair is None:  # outwards, and not beyond what the type holds
            flat = seen.reshape(len(seen), -1)
            low = np.minimum(np.maximum(np.floor(low), types[k][0]), flat.min(axis=0))
            high = np.maximum(np.minimum(np.ceil(high), types[k][1]), flat.max(axis=0))
        else:
            low, high = np.ceil(low), np.floor(high)
        if np.any(low > high):
            raise InvalidArgument(
                f"the range that was declared for {node.name} holds no whole number: widen input_range="
            )
        if np.any(np.maximum(np.abs(low), np.abs(high)) >= EXACT):
            raise RangeExceeded(
                f"numbers of {node.name} may reach 2**53, beyond which the compiler does not tell whole numbers apart: give a smaller input_range="
            )
        ports.append(Port(node.name, node.shape, low.astype(np.int64), high.astype(np.int64)))
    return Program.of(graph, ports, batch, scale)


def exact_if_possible(graph: Graph, dtypes: Dtypes, *arguments: Any) -> Program | None:
    """The same, or None where exact_program raises an error, and for lists, which have no type."""
    possible = dtypes.declared and dtypes.of(len(graph.inputs)) is not None
    if not possible or why_not(graph) is not None:
        return None
    try:
        return exact_program(graph, arguments[0], dtypes, *arguments[1:])
    except Error:
        return None


def cheaper(exact: Program, other: CkksProgram) -> Program | None:
    """The exact program, told why, if neither its run nor what it sends costs more than of the
    program of CKKS; otherwise None.

    A run's cost is the bytes that it reads, and what is sent are the client's keys, a
    request and a reply. Both are counted, so that the choice is the same on every machine.
    """
    params, packings = other.params, other.manifest.demand.packings
    costs = counted(params, packings, other.device)
    mine, its = _traffic(exact.manifest), _traffic(other.manifest)
    ckks_cost = sum(cost_at_level(costs, node) for node in other.stages["levels"])
    if exact.plan.cost > ckks_cost or mine > its:
        return None
    return replace(exact, choice=Choice(exact.plan.cost, ckks_cost, mine, its))


def _traffic(manifest: Any) -> int:
    """The bytes of the keys, of a request and of a reply, as they lie in the client's memory."""
    cost = manifest.client_cost
    return int(manifest.key_cost.made + cost.request + cost.reply)
