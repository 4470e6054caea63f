"""A graph of exact integers on ciphertexts: from those of a request to those of a reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.integers.arithmetic import LAYOUTS, Value, computed
from jali.compiler.ir.graph import Graph
from jali.discrete import EncryptedArray

__all__ = ["run"]


def run(
    graph: Graph,
    layout: str,
    inputs: Sequence[EncryptedArray],
    ranges: Sequence[tuple[int, int]],
    stop: Callable[[], object] | None = None,
) -> list[EncryptedArray]:
    """The outputs of a graph for encrypted arrays as Manifest.shape gives their shapes.

    ranges: of all numbers of each output.
    stop: see arithmetic.computed.
    """
    residues = [x.wrap() for x in inputs]
    modulus = inputs[0].evaluator.params.modulus
    columns = layout == "columns"
    pairs = zip(residues, graph.inputs, strict=True)
    given = [_columns(x, node.shape) if columns else x for x, node in pairs]
    found = computed(graph, LAYOUTS[layout](modulus), given, stop)
    arrays = [_joined(value, residues[0]) if columns else value for value in found]
    return [x.with_range(*ends) for x, ends in zip(arrays, ranges, strict=True)]


def _columns(x: EncryptedArray, shape: tuple[int, ...]) -> Value:
    found = np.empty(len(x), object)
    for k in range(len(x)):
        found[k] = x[k]
    return found.reshape(1, *shape)


def _joined(value: Value, some: EncryptedArray) -> EncryptedArray:
    """The columns of an output as one array. Those that depend on no input are encrypted numbers
    that everybody knows.

    some: any array of the run.
    """
    columns = [x if isinstance(x, EncryptedArray) else some[0] * 0 + x for x in value.flat]
    joined: Any = np.stack(columns)
    return joined  # type: ignore[no-any-return]
