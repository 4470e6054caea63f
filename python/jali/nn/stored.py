"""Programs as files: the traced model, what the calibration found, and the manifest. Everything else follows from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali.errors import CorruptData, VersionError
from jali.nn import files, recorded, storage_costs
from jali.nn.costs import Costs
from jali.nn.graph import Array, Graph, Node
from jali.nn.levels import Levels
from jali.nn.manifest import Manifest
from jali.nn.weights import Weights

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
    levels: Levels
    costs: Costs
    weights: Weights
    claims: Mapping[str, float]
    device: str = "cpu"

    def calibrated(self, folded: Graph) -> Graph:
        """The folded graph with the ranges of the file. Raises CorruptData if they do not fit."""
        ranges = self.ranges
        assert isinstance(ranges, dict)
        return _calibrated(folded, ranges)


def _calibrated(folded: Graph, ranges: Any) -> Graph:
    if not isinstance(ranges, dict) or set(ranges) != {node.name for node in folded}:
        raise CorruptData("the program's ranges are those of other arrays")
    nodes = []
    for node in folded:
        mine = ranges[node.name]
        made = node.with_attrs(**_checked(node, mine))
        if node.op == "loop":
            made = made.with_attrs(body=_calibrated(node.attrs["body"], mine.get("body")))
        nodes.append(made)
    return Graph(tuple(nodes), folded.outputs, "calibrate")


def to_bytes(program: Stored) -> bytes:
    """The bytes of a program."""
    assert isinstance(program.ranges, Graph)
    arrays: list[Array] = []
    content = {
        "graph": recorded.document(program.graph, arrays),
        "ranges": {node.name: _ranges(node, arrays) for node in program.ranges},
        "manifest": program.manifest.to_bytes().hex(),
        "precision_bits": float(program.precision_bits),
        "error": program.error,
        "memory": float(program.memory),
        "levels": dict(program.levels.at),
        "restored": dict(program.levels.restored),
        "slots": dict(program.levels.slots),
        "costs": program.costs.document,
        "weights": program.weights.document,
        "claims": dict(program.claims),
        "device": program.device,
    }
    return files.written(_KIND, content, arrays)


def _ranges(node: Node, arrays: list[Array]) -> Any:
    kept: dict[str, Any] = {k: np.asarray(node.attrs[k], np.float64) for k in _NUMBERS}
    if node.op == "input" and not any(np.ptp(kept[k]) for k in ("low", "high")):
        # All numbers have one scale, for which only the means over all of them count.
        kept = {k: np.full(1, _mean(values)) for k, values in kept.items()}
    kept |= {"largest": float(node.attrs["largest"]), "proven": bool(node.attrs["proven"])}
    if node.op == "loop":
        kept["body"] = {n.name: _ranges(n, arrays) for n in node.attrs["body"]}
    return files.encoded(kept, arrays)


def _mean(values: Array) -> float:
    """The mean; of equal numbers, that number exactly, so that a program that was loaded has the same bytes."""
    return float(values[0] if not np.ptp(values) else np.mean(values))


def from_bytes(data: bytes | bytearray | memoryview, security: int = 128) -> Stored:
    """What to_bytes wrote. Raises CorruptData, VersionError and LimitExceeded. security: see Manifest.from_bytes."""
    content, arrays = files.read(_KIND, data)
    try:
        graph = recorded.graph_of(content["graph"], arrays)
        ranges = {str(k): files.decoded(v, arrays) for k, v in content["ranges"].items()}
        manifest = Manifest.from_bytes(bytes.fromhex(content["manifest"]), security=security)
        params = manifest.params
        levels = Levels(
            _levels(content["levels"], params.depth),
            _levels(content["restored"], params.depth),
            _levels(content.get("slots", {}), params.slots),
        )
        if "weights" not in content or not {"added", *storage_costs.NAMES} <= set(content["costs"]):
            raise VersionError(
                "the program was compiled by an earlier version of Jali, which planned by other costs: compile the model again"
            )
        costs = Costs.of_document(content["costs"])
        weights = Weights.of_document(content["weights"])
        claims = {str(name): float(bits) for name, bits in content["claims"].items()}
        numbers = {k: float(content[k]) for k in ("precision_bits", "error", "memory")}
        device = content.get("device", "cpu")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptData(f"the bytes are no program: {error}") from None
    if not (1 <= numbers["precision_bits"] <= 40 and 0 < numbers["error"] < 1):
        raise CorruptData("the program's precision is none")
    if not numbers["memory"] >= 0:
        raise CorruptData("the program's memory is none")
    if device not in ("cpu", "cuda"):
        raise CorruptData("the program is for no kind of device")
    if not all(-256 < bits < 256 for bits in claims.values()):
        raise CorruptData("the program's precision is none")
    return Stored(
        graph,
        ranges,
        manifest,
        levels=levels,
        costs=costs,
        weights=weights,
        claims=claims,
        device=device,
        **numbers,
    )


def _levels(content: Any, most: int) -> dict[str, int]:
    found = {str(name): level for name, level in content.items()}
    if any(type(level) is not int or not 0 <= level <= most for level in found.values()):
        raise ValueError("a level or a number of slots is none of its parameters")
    return found


def _checked(node: Node, ranges: Any) -> dict[str, Any]:
    """The attributes of a node of the calibrated graph."""
    shape = (node.size,) if node.op in ("input", "loop") else ()
    try:
        found = {k: ranges[k] for k in _NUMBERS}
        if node.op == "input":
            found = {k: np.resize(v, shape) if v.shape == (1,) else v for k, v in found.items()}
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
