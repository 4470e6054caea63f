"""The clear interpreter: what a graph of any stage before lowering computes, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.console import counted_text
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import Loop, at_step, inputs_at
from jali.compiler.ir.operation import Elementwise, Input
from jali.errors import InvalidArgument

__all__ = ["check_count", "checked_examples", "every_value", "execute", "iterations"]


def checked_examples(node: Node, values: npt.ArrayLike) -> Array:
    """Examples (batch, *shape) for an input, see jali._core.checks."""
    return checks.examples(node.name, node.shape, values)


def every_value(
    graph: Graph,
    inputs: Sequence[Array],
    changed: Mapping[str, Callable[[Array], Array]] | None = None,
) -> dict[str, Array]:
    """The value (batch, *shape) of every node, for examples (batch, *shape) of every input.

    changed: of some nodes, what the others take in the place of their values.
    """
    given = iter(inputs)
    values: dict[str, Array] = {}
    for node in graph:
        sources = [values[name] for name in node.inputs]
        match node.operation:
            case Input():
                values[node.name] = next(given)
            case Loop():
                values[node.name] = _looped(node, sources)
            case operation:
                if isinstance(
                    operation, Elementwise
                ):  # arrays of one size lie alike behind folding
                    sources = [x.reshape(-1, *node.shape) for x in sources]
                values[node.name] = operation.compute(sources)
        if changed is not None and node.name in changed:
            values[node.name] = changed[node.name](values[node.name])
    return values


def iterations(
    node: Node, sources: Sequence[Array]
) -> Iterator[tuple[Graph, list[Array], dict[str, Array]]]:
    """For each iteration of a loop: its body, the arrays (batch, *shape) that the body takes, and
    the value of every node of it."""
    loop = Loop.of(node)
    body, states = loop.body, list(sources[: loop.states])
    for step in range(loop.count):
        inputs = [*states, *(sources[k] for k in inputs_at(node, step))]
        inputs = [x.reshape(-1, *port.shape) for x, port in zip(inputs, body.inputs, strict=True)]
        inside = at_step(body, step)
        values = every_value(inside, inputs)
        states = [values[name] for name in body.outputs[: len(states)]]
        yield inside, inputs, values


def _looped(node: Node, sources: Sequence[Array]) -> Array:
    loop = Loop.of(node)
    names = loop.body.outputs
    each = [[values[name] for name in names] for _, _, values in iterations(node, sources)]
    parts = [each[step][k] for k, step in loop.parts]
    joined = np.concatenate([x.reshape(len(x), -1) for x in parts], axis=1)
    return joined.reshape(-1, *node.shape)


def check_count(graph: Graph, inputs: Sequence[object]) -> None:
    """Raises InvalidArgument unless there is an array for every input."""
    if len(inputs) != len(graph.inputs):
        raise InvalidArgument(
            f"the model takes {counted_text(len(graph.inputs), 'array')}, and was given {len(inputs)}"
        )


def check_alike(arrays: Sequence[Array]) -> None:
    """Raises InvalidArgument unless all inputs have as many examples."""
    if len({len(array) for array in arrays}) > 1:
        raise InvalidArgument("give every input the same number of examples")


def execute(graph: Graph, *inputs: npt.ArrayLike) -> list[Array]:
    """The results (batch, *shape) for examples of every input. A folded graph leaves out a reshape
    at the end."""
    check_count(graph, inputs)
    arrays = [checked_examples(n, x) for n, x in zip(graph.inputs, inputs, strict=True)]
    check_alike(arrays)
    values = every_value(graph, arrays)
    return [values[name] for name in graph.outputs]
