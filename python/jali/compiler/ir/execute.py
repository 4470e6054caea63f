"""The clear interpreter: what a graph of any stage before lowering computes, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.console import counted_text
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import Loop, at_step, has_loops, inputs_at
from jali.compiler.ir.operation import Elementwise, Input
from jali.compiler.ir.seen import Seen
from jali.errors import InvalidArgument

__all__ = [
    "check_count",
    "checked_examples",
    "each_value",
    "every_value",
    "execute",
    "iterations",
    "seen_values",
]

_MOST = 1 << 27  # numbers of all arrays for all examples that are kept: 1 GB
_AT_ONCE = 1 << 24  # numbers of all arrays that are computed at a time


def checked_examples(node: Node, values: npt.ArrayLike) -> Array:
    """Examples (batch, *shape) for an input, see jali._core.checks."""
    return checks.examples(node.name, node.shape, values)


def every_value(
    graph: Graph,
    inputs: Sequence[Array],
    changed: Mapping[str, Callable[[Array], Array]] | None = None,
) -> dict[str, Array]:
    """The value (batch, *shape) of every node, for examples (batch, *shape) of every input.

    changed: for some nodes, by their names, a function of their values. What it gives stands in the
        place of these values, also for the nodes that take them.
    """
    given = iter(inputs)
    values: dict[str, Array] = {}
    for node in graph:
        values[node.name] = _value(node, [values[name] for name in node.inputs], given)
        if changed is not None and node.name in changed:
            values[node.name] = changed[node.name](values[node.name])
    return values


def each_value(
    graph: Graph,
    inputs: Sequence[Array],
    replaced: Callable[[Node, Sequence[Array]], Node] | None = None,
) -> Iterator[tuple[Node, Array]]:
    """Every node with its value (batch, *shape), one after the other, for examples (batch, *shape)
    of every input. A value is kept only as long as a later node takes it.

    replaced: gives the node that is computed in the place of a node, from that and the values of
        its inputs.
    """
    given = iter(inputs)
    last = {name: node.name for node in graph for name in node.inputs}
    values: dict[str, Array] = {}
    for node in graph:
        sources = [values[name] for name in node.inputs]
        found = _value(replaced(node, sources) if replaced else node, sources, given)
        yield node, found
        if node.name in last:
            values[node.name] = found
        for name in set(node.inputs):
            if last[name] == node.name:
                del values[name]


def seen_values(graph: Graph, examples: Sequence[Array]) -> dict[str, Array | Seen]:
    """The value (batch, *shape) of every node, for examples (batch, *shape) of every input. If they
    would take more than a gigabyte, and no node is a loop, nodes that are neither inputs nor
    outputs have a summary in its place, a Seen."""
    each, count = sum(node.size for node in graph), len(examples[0])
    if has_loops(graph) or each * count <= _MOST:
        return {**every_value(graph, examples)}
    whole = {node.name for node in graph.inputs} | set(graph.outputs)
    parts: dict[str, list[Array]] = {name: [] for name in whole}
    found: dict[str, Array | Seen] = {}
    step = max(1, _AT_ONCE // each)
    for k in range(0, count, step):
        for node, values in each_value(graph, [x[k : k + step] for x in examples]):
            if node.name in whole:
                parts[node.name].append(values)
                continue
            seen, before = Seen.of(values), found.get(node.name)
            found[node.name] = before + seen if isinstance(before, Seen) else seen
    return found | {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _value(node: Node, sources: list[Array], given: Iterator[Array]) -> Array:
    """The value of a node that takes these arrays; of an input, the next one that is given."""
    match node.operation:
        case Input():
            return next(given)
        case Loop():
            return _looped(node, sources)
        case operation:
            if isinstance(operation, Elementwise):  # arrays of one size lie alike behind folding
                sources = [x.reshape(-1, *node.shape) for x in sources]
            return operation.compute(sources)


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
