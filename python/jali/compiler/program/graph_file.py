"""Recorded graphs: a traced model as a file, which needs neither the package that it came from nor
its code."""

from __future__ import annotations

import math
import os
from typing import Any

from jali._core import schema
from jali.compiler.frontends.tracing import Builder
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import unrolled_count
from jali.compiler.ir.operation import Operation
from jali.compiler.ir.traced_ops import OPERATIONS
from jali.errors import CorruptData, InvalidArgument, LimitExceeded
from jali.program import container

__all__ = ["ARGUMENTS", "document", "from_bytes", "graph_of", "load", "save", "to_bytes"]

_KIND = "graph"
_MOST_NODES = 100_000
_MOST_LOOPS = 4  # in each other
_MOST_UNROLLED = 1 << 20  # with a node for every iteration
_MOST_NUMBERS = 1 << 26  # of one example, anywhere in the graph
_MOST_AXES = 32

#: The arguments of each operation, and what they are: "array", "matrix", "filters" or "vector", of
#: which those with a question mark may be missing; "sizes", "bounds" (whole numbers or None),
#: "numbers", "pairs", "whole", "number", "flag", "name"; or "body", a graph.
ARGUMENTS: dict[str, dict[str, str]] = {
    "input": {"shape": "sizes"},
    "dense": {"weight": "matrix", "bias": "vector?"},
    "convolution": {
        "weight": "filters",
        "bias": "vector?",
        "stride": "sizes",
        "padding": "pairs",
        "dilation": "sizes",
        "groups": "whole",
    },
    "average_pool": {
        "kernel": "sizes",
        "stride": "sizes",
        "padding": "pairs",
        "count_padding": "flag",
    },
    "scale": {"factor": "array", "offset": "array"},
    "combine": {"weights": "numbers"},
    "reshape": {"shape": "sizes"},
    "transpose": {"axes": "sizes"},
    "slice": {"start": "bounds", "stop": "bounds", "step": "bounds"},
    "concat": {"axis": "whole"},
    "broadcast": {"shape": "sizes"},
    "pad": {"widths": "pairs"},
    "take": {"places": "array"},
    "sum": {"axes": "sizes", "factor": "number", "keepdims": "flag"},
    "multiply": {},
    "matmul": {},
    "function": {"function": "name"},
    "polynomial": {"coefficients": "numbers"},
    "loop": {
        "body": "body",
        "count": "whole",
        "states": "whole",
        "sequences": "whole",
        "collected": "whole",
    },
    "by_step": {"factors": "vector"},
}
assert set(ARGUMENTS) == set(OPERATIONS)

_BEFORE = {"collected": 0}  # of files from before loops collected arrays
_NUMBER = schema.number(-1e300, 1e300)
_NODE = schema.record(
    {
        "name": schema.name,
        "op": schema.one_of(*ARGUMENTS),
        "inputs": schema.listed(schema.name),
        "attrs": lambda value: value,
    }
)
_GRAPH = schema.record(
    {
        "nodes": schema.listed(_NODE, 1, _MOST_NODES),
        "outputs": schema.listed(schema.name, 1, _MOST_NODES),
    }
)


def to_bytes(graph: Graph) -> bytes:
    """Bytes from which from_bytes makes the same traced graph."""
    arrays: list[Array] = []
    return container.written(_KIND, document(graph, arrays), arrays)


def from_bytes(data: bytes | bytearray | memoryview, max_bytes: int = container.MAX_BYTES) -> Graph:
    """The graph that to_bytes wrote. Every shape and argument is checked, and nothing is executed.

    Raises CorruptData, VersionError and LimitExceeded.
    """
    content, arrays = container.read(_KIND, data, max_bytes)
    return graph_of(content, arrays)


def save(graph: Graph, file: str | os.PathLike[str]) -> None:
    """Write a traced graph to a path, which is replaced at once or not at all."""
    container.save(file, to_bytes(graph))


def load(file: str | os.PathLike[str]) -> Graph:
    """What save wrote. Raises FileError, and the errors of from_bytes."""
    return from_bytes(container.load(file))


def document(graph: Graph, arrays: list[Array]) -> Any:
    """A traced graph for a file. Its arrays are appended to `arrays`."""
    if graph.stage != "trace":
        raise InvalidArgument(f"a traced graph can be recorded, not one after {graph.stage!r}")
    nodes = [
        {
            "name": node.name,
            "op": node.op,
            "inputs": list(node.inputs),
            "attrs": _attrs(node.operation, arrays),
        }
        for node in graph
    ]
    return {"nodes": nodes, "outputs": list(graph.outputs)}


def _attrs(operation: Operation, arrays: list[Array]) -> dict[str, Any]:
    kept = operation.arguments()
    body = kept.pop("body", None)
    inside = {} if body is None else {"body": document(body, arrays)}
    return {**container.encoded(kept, arrays), **inside}


def graph_of(content: Any, arrays: list[Array]) -> Graph:
    """The graph of a file's document. Raises CorruptData, and LimitExceeded for more nodes than
    could be planned."""
    try:
        graph = _graph(content, _checks(arrays, 0))
    except ValueError as error:
        raise CorruptData(f"the recorded graph is none: {error}") from None
    if unrolled_count(graph) > _MOST_UNROLLED:
        raise LimitExceeded(
            f"the recorded graph has more than {_MOST_UNROLLED:,} nodes in all iterations of its loops: let the server run it several times"
        )
    return graph


def _checks(arrays: list[Array], depth: int) -> dict[str, schema.Check]:
    """The checks of arguments by what they are.

    depth: how many loops are around the graph.
    """
    array = container.array(arrays)
    tensors = {
        "array": array,
        "vector": _with_axes(array, 1, 1),
        "matrix": _with_axes(array, 2, 2),
        "filters": _with_axes(array, 3, 8),
    }
    whole = schema.whole(-(1 << 31), 1 << 31)
    size = schema.whole(0, 1 << 31)
    return {
        **tensors,
        **{f"{name}?": schema.optional(check) for name, check in tensors.items()},
        "sizes": schema.listed(size, most=_MOST_AXES),
        "bounds": schema.listed(schema.optional(whole), most=_MOST_AXES),
        "numbers": schema.listed(_NUMBER),
        "pairs": schema.listed(schema.listed(schema.whole(0, 4096), 2, 2), most=_MOST_AXES),
        "whole": whole,
        "number": _NUMBER,
        "flag": schema.flag,
        "name": schema.name,
        "body": _body(arrays, depth + 1),
    }


def _body(arrays: list[Array], depth: int) -> schema.Check:
    def check(value: Any) -> Graph:
        if depth > _MOST_LOOPS:
            raise ValueError(f"it has more than {_MOST_LOOPS} loops in each other")
        return _graph(value, _checks(arrays, depth))

    return check


def _with_axes(array: schema.Check, least: int, most: int) -> schema.Check:
    def check(value: Any) -> Array:
        found: Array = array(value)
        if not least <= found.ndim <= most:
            raise ValueError(f"must be an array of {least} to {most} axes")
        return found

    return check


def _graph(content: Any, checks: dict[str, schema.Check]) -> Graph:
    builder = Builder()
    found = _GRAPH(content)
    for k, entry in enumerate(found["nodes"]):
        try:
            _add(builder, entry, checks)
        except ValueError as error:
            raise ValueError(f"nodes: entry {k}: {error}") from None
    return builder.graph([_known(builder, name) for name in found["outputs"]])


def _known(builder: Builder, name: str) -> Node:
    if name not in builder.nodes:
        raise ValueError("it names a node that is not there, or stands behind it")
    return builder.nodes[name]


def _add(builder: Builder, entry: dict[str, Any], checks: dict[str, schema.Check]) -> None:
    name, op = entry["name"], entry["op"]
    if name in builder.nodes:
        raise ValueError("another node has its name")
    fields = schema.record({key: checks[kind] for key, kind in ARGUMENTS[op].items()}, _BEFORE)
    attrs = fields(entry["attrs"])
    for key in ("shape", "kernel"):
        if math.prod(attrs.get(key, ())) > _MOST_NUMBERS:
            raise ValueError(f"an array of more than {_MOST_NUMBERS} numbers")
    inputs = [_known(builder, source) for source in entry["inputs"]]
    if builder.add(name, OPERATIONS[op](**attrs), inputs).size > _MOST_NUMBERS:
        raise ValueError(f"an array of more than {_MOST_NUMBERS} numbers")
