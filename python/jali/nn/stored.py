"""Programs as files: the traced model, what the calibration found, and the manifest. Everything else follows from these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jali.errors import CorruptData
from jali.nn import files, recorded
from jali.nn.graph import Array, Graph, Node
from jali.nn.manifest import Manifest

__all__ = ["Stored", "from_bytes", "to_bytes"]

_KIND = "program"
_NUMBERS = ("low", "high", "mean", "square")  # for each number of an input, or one for all


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file of a program holds. ranges: a calibrated graph, or the attributes of its nodes by name."""

    graph: Graph
    ranges: Graph | dict[str, dict[str, Any]]
    manifest: Manifest
    precision_bits: float
    error: float
    memory: float

    def calibrated(self, folded: Graph) -> Graph:
        """The folded graph with the ranges of the file. Raises CorruptData if they do not fit."""
        ranges = self.ranges
        assert isinstance(ranges, dict)
        if set(ranges) != {node.name for node in folded}:
            raise CorruptData("the program's ranges are those of other arrays")
        nodes = tuple(node.with_attrs(**_checked(node, ranges[node.name])) for node in folded)
        return Graph(nodes, folded.outputs, "calibrate")


def to_bytes(program: Stored) -> bytes:
    """The bytes of a program."""
    assert isinstance(program.ranges, Graph)
    arrays: list[Array] = []
    content = {
        "graph": recorded.document(program.graph, arrays),
        "ranges": {node.name: _ranges(node, arrays) for node in program.ranges},
        "manifest": list(program.manifest.to_bytes()),
        "precision_bits": float(program.precision_bits),
        "error": program.error,
        "memory": float(program.memory),
    }
    return files.written(_KIND, content, arrays)


def _ranges(node: Node, arrays: list[Array]) -> Any:
    kept: dict[str, Any] = {k: np.asarray(node.attrs[k], np.float64) for k in _NUMBERS}
    kept |= {"largest": float(node.attrs["largest"]), "proven": bool(node.attrs["proven"])}
    return files.encoded(kept, arrays)


def from_bytes(data: bytes | bytearray | memoryview) -> Stored:
    """What to_bytes wrote. Raises CorruptData, VersionError and LimitExceeded."""
    content, arrays = files.read(_KIND, data)
    try:
        graph = recorded.graph_of(content["graph"], arrays)
        ranges = {str(k): files.decoded(v, arrays) for k, v in content["ranges"].items()}
        manifest = Manifest.from_bytes(bytes(content["manifest"]))
        numbers = {k: float(content[k]) for k in ("precision_bits", "error", "memory")}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptData(f"the bytes are no program: {error}") from None
    if not (1 <= numbers["precision_bits"] <= 40 and 0 < numbers["error"] < 1):
        raise CorruptData("the program's precision is none")
    if not numbers["memory"] >= 0:
        raise CorruptData("the program's memory is none")
    return Stored(graph, ranges, manifest, **numbers)


def _checked(node: Node, ranges: Any) -> dict[str, Any]:
    """The attributes of a node of the calibrated graph."""
    shape = (node.size,) if node.op == "input" else ()
    try:
        found = {k: ranges[k] for k in _NUMBERS}
        fits = all(v.shape == shape for v in found.values()) and np.all(
            found["low"] <= found["high"]
        )
        largest, proven = float(ranges["largest"]), ranges["proven"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptData(f"the program has no range for {node.name}: {error}") from None
    if not fits or not 0 < largest < 1e300 or not isinstance(proven, bool):
        raise CorruptData(f"the program's range for {node.name} is none")
    if node.op == "input" and not np.all(found["low"] < found["high"]):
        raise CorruptData(f"the program's range for {node.name} is empty")
    numbers = found if shape else {k: float(v) for k, v in found.items()}
    return {**numbers, "largest": largest, "proven": proven}
