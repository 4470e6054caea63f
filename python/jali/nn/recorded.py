"""Recorded graphs: a traced model as a file, which needs neither the package that it came from nor its code."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from jali.errors import CorruptData, InvalidArgument
from jali.nn import files
from jali.nn.graph import Array, Graph
from jali.nn.ops import OPS, Attrs
from jali.nn.tracing import Builder

__all__ = ["document", "from_bytes", "graph_of", "load", "save", "to_bytes"]

_KIND = "graph"
_MOST_NODES = 100_000
_MOST_LOOPS = 4  # in each other
_MOST_NUMBERS = 1 << 26  # of one example, anywhere in the graph

#: The attributes of each operation, and what they are: "array" (or None), "sizes", "bounds" (whole numbers or None), "numbers",
#: "pairs", "whole", "number", "flag", "name"; or "body", a graph.
_ATTRS: dict[str, dict[str, str]] = {
    "input": {"shape": "sizes"},
    "dense": {"weight": "array", "bias": "array"},
    "convolution": {
        "weight": "array",
        "bias": "array",
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
    "by_step": {"factors": "array"},
}
assert set(_ATTRS) == set(OPS)


def to_bytes(graph: Graph) -> bytes:
    """Bytes from which from_bytes makes the same traced graph."""
    arrays: list[Array] = []
    return files.written(_KIND, document(graph, arrays), arrays)


def from_bytes(data: bytes | bytearray | memoryview, max_bytes: int = files.MAX_BYTES) -> Graph:
    """The graph that to_bytes wrote. Every shape and attribute is checked, and nothing is executed.

    Raises CorruptData, VersionError and LimitExceeded.
    """
    content, arrays = files.read(_KIND, data, max_bytes)
    return graph_of(content, arrays)


def save(graph: Graph, file: str | os.PathLike[str]) -> None:
    """Write a traced graph to a path, which is replaced at once or not at all."""
    files.save(file, to_bytes(graph))


def load(file: str | os.PathLike[str]) -> Graph:
    """What save wrote. Raises FileError, and the errors of from_bytes."""
    return from_bytes(files.load(file))


def document(graph: Graph, arrays: list[Array]) -> Any:
    """A traced graph for a file. Its arrays are appended to `arrays`."""
    if graph.stage != "trace":
        raise InvalidArgument(f"a traced graph can be recorded, not one after {graph.stage!r}")
    nodes = [
        {
            "name": node.name,
            "op": node.op,
            "inputs": list(node.inputs),
            "attrs": _attrs(node.attrs, arrays),
        }
        for node in graph
    ]
    return {"nodes": nodes, "outputs": list(graph.outputs)}


def _attrs(attrs: Attrs, arrays: list[Array]) -> dict[str, Any]:
    kept = {k: v for k, v in attrs.items() if k != "body"}
    inside = {"body": document(attrs["body"], arrays)} if "body" in attrs else {}
    return {**files.encoded(kept, arrays), **inside}


def graph_of(content: Any, arrays: list[Array], depth: int = 0) -> Graph:
    """The graph of a file's document. Raises CorruptData. depth: how many loops are around it."""
    if depth > _MOST_LOOPS:
        raise CorruptData(f"the recorded graph has more than {_MOST_LOOPS} loops in each other")
    builder = Builder()
    try:
        entries = content["nodes"]
        if not isinstance(entries, list) or len(entries) > _MOST_NODES:
            raise CorruptData("the recorded graph has no list of nodes, or too long a one")
        for entry in entries:
            _add(builder, entry, arrays, depth)
        return builder.graph([builder.nodes[_text(name)] for name in content["outputs"]])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
        raise CorruptData(f"the recorded graph is none: {error}") from None


def _add(builder: Builder, entry: Any, arrays: list[Array], depth: int) -> None:
    name, op = _text(entry["name"]), _text(entry["op"])
    if name in builder.nodes:
        raise ValueError(f"two nodes are named {name!r}")
    raw = dict(entry["attrs"])
    body = {"body": graph_of(raw.pop("body"), arrays, depth + 1)} if "body" in raw else {}
    before = {"collected": 0} if op == "loop" else {}  # files from before there was such a thing
    attrs = {**before, **files.decoded(raw, arrays), **body}
    kinds = _ATTRS[op]
    if set(attrs) != set(kinds):
        raise ValueError(f"{name}: the attributes of {op} are {', '.join(kinds) or 'none'}")
    checked = {key: _CHECKS[kind](attrs[key]) for key, kind in kinds.items()}
    inputs = [builder.nodes[_text(source)] for source in entry["inputs"]]
    _limit(op, checked)
    if builder.add(name, op, inputs, **checked).size > _MOST_NUMBERS:
        raise ValueError(f"{name}: an array of more than {_MOST_NUMBERS} numbers")


def _limit(op: str, attrs: Attrs) -> None:
    """Refuses shapes and windows that would take much memory before the shape of the result is known."""
    for key in ("shape", "kernel"):
        if key in attrs and np.prod(attrs[key], dtype=np.float64) > _MOST_NUMBERS:
            raise ValueError(f"{op}: an array of more than {_MOST_NUMBERS} numbers")
    widths = [w for pair in (*attrs.get("widths", ()), *attrs.get("padding", ())) for w in pair]
    if any(not 0 <= w <= 4096 for w in widths):
        raise ValueError(f"{op}: a padding of more than 4,096 numbers")
    if op == "by_step" and attrs["factors"] is None:
        raise ValueError(f"{op}: its numbers are missing")
    if "weight" in attrs and (attrs["weight"] is None or attrs["weight"].ndim < 2):
        raise ValueError(f"{op}: weights of fewer than two axes")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 1000:
        raise TypeError("a name is a string of 1 to 1,000 characters")
    return value


def _array(value: Any) -> Array | None:
    if value is not None and not isinstance(value, np.ndarray):
        raise TypeError("a tensor is an array of the file")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not -(1 << 31) <= value <= 1 << 31:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _each(value: Any, check: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise TypeError("a list is missing")
    return tuple(check(v) for v in value)


def _size(value: Any) -> int:
    if _whole(value) < 0:
        raise ValueError(f"{value} is no size")
    return int(value)


def _graph(value: Any) -> Graph:
    if not isinstance(value, Graph):
        raise TypeError("the body of a loop is a graph")
    return value


def _pair(value: Any) -> tuple[int, ...]:
    if len(_each(value, _size)) != 2:
        raise ValueError("a padding is two sizes")
    return _each(value, _size)


_CHECKS: dict[str, Any] = {
    "array": _array,
    "sizes": lambda v: _each(v, _size),
    "bounds": lambda v: _each(v, lambda n: None if n is None else _whole(n)),
    "numbers": lambda v: _each(v, _number),
    "pairs": lambda v: _each(v, _pair),
    "whole": _whole,
    "number": _number,
    "flag": _flag,
    "name": _text,
    "body": _graph,
}
