"""The clear interpreter: what a graph of any stage before lowering computes, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument
from jali.nn.folded import ELEMENTWISE, FOLDED
from jali.nn.graph import Array, Graph, Node
from jali.nn.ops import OPS

__all__ = ["checked_examples", "every_value", "execute"]


def checked_examples(node: Node, values: npt.ArrayLike) -> Array:
    """Examples (batch, *shape) for an input. One example may come without the axis of the batch.

    Raises InvalidArgument for other shapes and for numbers that are not finite.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"{node.name} takes real numbers, not an array of {array.dtype}")
    array = array.astype(np.float64)
    if array.shape == node.shape:
        array = array[None]
    if array.shape[1:] != node.shape or not len(array):
        raise InvalidArgument(
            f"{node.name} takes examples of the shape {node.shape}, or a batch of them, not an array of "
            f"{array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise InvalidArgument(f"{node.name} holds NaN or infinity: replace these numbers")
    return array


def every_value(graph: Graph, inputs: Sequence[Array]) -> dict[str, Array]:
    """The value (batch, *shape) of every node, for examples (batch, *shape) of every input."""
    given = iter(inputs)
    values: dict[str, Array] = {}
    for node in graph:
        if node.op == "input":
            values[node.name] = next(given)
            continue
        sources = [values[name] for name in node.inputs]
        if node.op in ELEMENTWISE:  # a folded graph has no reshapes: arrays of one size lie alike
            sources = [x.reshape(-1, *node.shape) for x in sources]
        op = FOLDED.get(node.op) or OPS[node.op]
        values[node.name] = op.compute(sources, node.attrs)
    return values


def execute(graph: Graph, *inputs: npt.ArrayLike) -> list[Array]:
    """The results (batch, *shape) for examples of every input. A folded graph leaves out a reshape at the end."""
    if len(inputs) != len(graph.inputs):
        raise InvalidArgument(
            f"the model takes {len(graph.inputs)} arrays, and {len(inputs)} were given"
        )
    arrays = [checked_examples(n, x) for n, x in zip(graph.inputs, inputs, strict=True)]
    if len({len(a) for a in arrays}) > 1:
        raise InvalidArgument("give every input the same number of examples")
    values = every_value(graph, arrays)
    return [values[name] for name in graph.outputs]
