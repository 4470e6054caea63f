"""Programs as files: the traced model, what the calibration found, and the manifest. Everything
else follows from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jali._core import schema
from jali._core.console import bytes_text
from jali.compiler.cost.costs import STORAGE, Costs
from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.frontends.answers import Kept
from jali.compiler.ir.facts import Range
from jali.compiler.ir.folded_ops import Errors
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import Loop, unrolled_count
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import entries
from jali.compiler.passes.function_domains import functions_with_own, with_own
from jali.compiler.passes.levels import Levels
from jali.compiler.passes.limits import LARGEST, LEAST_WIDTH
from jali.compiler.passes.simplify import KINDS, Changes, are_changes_of
from jali.compiler.program import graph_file
from jali.errors import CorruptData, LimitExceeded, VersionError
from jali.program import container
from jali.program.clear import stored
from jali.program.manifest import Manifest

if TYPE_CHECKING:
    from jali.compiler.passes.fitted_relus import Fitted

__all__ = ["ProgramFile", "from_bytes", "to_bytes"]

_KIND = "program"
_NEW = {"weights"}  # fields that programs of earlier versions do not have
_EARLIER = "the program was compiled by an earlier version of Jali, which planned by other costs: compile the model again"
_MOST_NODES = 1 << 20
_MOST_FOLDED, _FEW = 4, 64  # of so many nodes of the model, one at least has a level of its own
_LEAST_ERROR = 2.0**-50
# Matrices are made from files that may be much smaller: one of a convolution has as many entries
# for each weight as there are places.
_FEW_ENTRIES, _ENTRIES_A_BYTE, _ENTRY_BYTES = 1 << 25, 1 << 10, 24
_MOST = {"low": LARGEST, "high": LARGEST, "mean": LARGEST, "square": LARGEST**2}
_NUMBERS = ("low", "high", "mean", "square")  # for each number of an input, or one for all


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """What a file of a program holds.

    ranges: a calibrated graph, or the ranges of its nodes by name.
    """

    graph: Graph
    ranges: Graph | dict[str, dict[str, Any]]
    manifest: Manifest
    precision_bits: float
    error: float
    memory: float
    levels: Levels
    costs: Costs
    layout_costs: LayoutCosts
    claims: Mapping[str, float]
    device: str = "cpu"
    changes: Changes = field(default_factory=dict)
    answers: Kept | None = None
    fitted: Fitted | None = None

    def calibrated(self, folded: Graph) -> Graph:
        """The folded graph with the ranges of the file. Raises CorruptData if they do not fit."""
        ranges = self.ranges
        assert isinstance(ranges, dict)
        return _calibrated(folded, ranges)


def _calibrated(folded: Graph, ranges: Any) -> Graph:
    if isinstance(ranges, dict):
        folded = with_own(folded, functions_with_own(ranges.keys(), folded))
    if not isinstance(ranges, dict) or set(ranges) != {node.name for node in folded}:
        raise CorruptData("the program's ranges are those of other arrays")
    nodes = []
    for node in folded:
        mine = ranges[node.name]
        made = node.with_facts(range=_checked(node, mine))
        if isinstance(node.operation, Loop):
            made = made.with_operation(body=_calibrated(node.operation.body, mine.get("body")))
        nodes.append(made)
    return Graph(tuple(nodes), folded.outputs, "calibrate")


def to_bytes(program: ProgramFile) -> bytes:
    """The bytes of a program."""
    assert isinstance(program.ranges, Graph)
    arrays: list[Array] = []
    content = {
        "graph": graph_file.document(program.graph, arrays),
        "ranges": {node.name: _ranges(node, arrays) for node in program.ranges},
        "manifest": program.manifest.encrypted_part.to_bytes().hex(),
        "precision_bits": float(program.precision_bits),
        "error": float(program.error),
        "errors": dict(program.error.own) if isinstance(program.error, Errors) else {},
        "memory": float(program.memory),
        "levels": dict(program.levels.at),
        "restored": dict(program.levels.restored),
        "slots": dict(program.levels.slots),
        "costs": program.costs.document,
        "weights": program.layout_costs.document,
        "claims": dict(program.claims),
        "device": program.device,
        "changes": dict(program.changes),
        "answers": None if program.answers is None else list(program.answers),
        "fitted": None if program.fitted is None else program.fitted._asdict(),
    }
    if program.manifest.parts is not None:
        content["client"] = stored.document(program.manifest.parts, arrays)
    return container.written(_KIND, content, arrays)


def _ranges(node: Node, arrays: list[Array]) -> Any:
    kept: dict[str, Any] = {k: np.asarray(getattr(node.range, k), np.float64) for k in _NUMBERS}
    if isinstance(node.operation, Input) and not any(np.ptp(kept[k]) for k in ("low", "high")):
        # All numbers have one scale, for which only the means over all of them count.
        kept = {k: np.full(1, _mean(values)) for k, values in kept.items()}
    kept |= {"largest": float(node.range.largest), "proven": bool(node.range.proven)}
    if isinstance(node.operation, Loop):
        kept["body"] = {n.name: _ranges(n, arrays) for n in node.operation.body}
    return container.encoded(kept, arrays)


def _mean(values: Array) -> float:
    """The mean; of equal numbers, that number exactly, so that a program that was loaded has the
    same bytes."""
    return float(values[0] if not np.ptp(values) else np.mean(values))


def from_bytes(
    data: bytes | bytearray | memoryview,
    security: int = 128,
    max_entries: int | None = None,
    log2_p_fail: float = 0.0,
) -> ProgramFile:
    """What to_bytes wrote. Raises CorruptData, VersionError and LimitExceeded.

    security, log2_p_fail: see Manifest.from_bytes.
    max_entries: see Program.from_bytes.
    """
    content, arrays = container.read(_KIND, data)
    if type(content) is dict and not content.keys() >= _NEW:
        raise VersionError(_EARLIER)
    try:
        found = _outside(arrays)(content)
    except ValueError as error:
        raise CorruptData(f"the bytes are no program: {error}") from None
    manifest = Manifest.from_bytes(found["manifest"], security=security, log2_p_fail=log2_p_fail)
    if found["client"] is not None:
        manifest = replace(manifest, parts=found["client"]).checked()
    graph = graph_file.graph_of(content["graph"], arrays)
    costs = found["costs"]
    if type(costs) is not dict or not {"added", *STORAGE} <= costs.keys():
        raise VersionError(_EARLIER)
    try:
        _check_ports(graph, manifest)
        inside = _inside(manifest)(
            {k: v for k, v in found.items() if k in ("levels", "restored", "slots", "costs")}
        )
    except ValueError as error:
        raise CorruptData(f"the bytes are no program: {error}") from None
    most = max(_FEW_ENTRIES, _ENTRIES_A_BYTE * memoryview(data).nbytes)
    _check_size(graph, most if max_entries is None else max_entries)
    levels = Levels(inside["levels"], inside["restored"], inside["slots"])
    if unrolled_count(graph) > _MOST_FOLDED * len(levels.at) + _FEW:
        raise CorruptData("the program's loops have more iterations than it has levels for")
    if not are_changes_of(graph, found["changes"]):
        raise CorruptData("the bytes are no program: it changes operations that it does not have")
    if found["errors"]:
        found["error"] = Errors(found["error"], found["errors"])
    kept = {"ranges", "claims", "device", "changes", "precision_bits", "error", "memory"}
    return ProgramFile(
        graph=graph,
        manifest=manifest,
        levels=levels,
        costs=inside["costs"],
        layout_costs=found["weights"],
        answers=found["answers"],
        fitted=found["fitted"],
        **{k: found[k] for k in kept},
    )


def _outside(arrays: Sequence[Array]) -> schema.Check:
    """The check of a program's document, as far as it goes without parameters."""

    def decoded(value: Any) -> Any:
        return container.decoded(value, arrays)

    return schema.record(
        {
            "graph": lambda value: value,
            "ranges": schema.mapped(decoded, _MOST_NODES),
            "manifest": container.from_hex,
            "precision_bits": schema.number(1, 40),
            "error": schema.number(_LEAST_ERROR, 1 - _LEAST_ERROR),
            "errors": schema.mapped(schema.number(_LEAST_ERROR, 1 - _LEAST_ERROR), _MOST_NODES),
            "memory": schema.number(0, 1e30),
            "levels": lambda value: value,
            "restored": lambda value: value,
            "slots": lambda value: value,
            "costs": lambda value: value,
            "weights": LayoutCosts.of_document,
            "claims": schema.mapped(schema.number(-255, 255), _MOST_NODES),
            "device": schema.one_of("cpu", "cuda"),
            "changes": schema.mapped(schema.one_of(*KINDS), _MOST_NODES),
            "answers": schema.optional(schema.pair(schema.whole(), schema.whole())),
            "fitted": schema.optional(_fitted),
            "client": lambda value: stored.parts_of(value, list(arrays)),
        },
        {
            "slots": {},
            "errors": {},
            "device": "cpu",
            "changes": {},
            "answers": None,
            "fitted": None,
            "client": None,
        },
    )


def _fitted(value: Any) -> Fitted:
    from jali.compiler.passes.fitted_relus import DEGREES, Fitted

    counts = {name: schema.whole() for name in ("relus", "same", "every")}
    degree = schema.whole(DEGREES[0], DEGREES[-1])
    check = schema.record({"degree": degree, **counts, "largest": schema.number(0, 1e300)})
    return Fitted(**check(value))


def _inside(manifest: Manifest) -> schema.Check:
    """The check of what has to fit the parameters."""
    params = manifest.params
    levels = schema.mapped(schema.whole(0, params.depth), _MOST_NODES)
    rows = params.depth + 1

    def costs(value: Any) -> Costs:
        found = Costs.of_document(value)
        restores = rows if params.bootstraps else 0
        if len(found.rotation) != rows or len(found.real) != restores:
            raise ValueError("must have a number for every level")
        return found

    return schema.record(
        {
            "levels": levels,
            "restored": levels,
            "slots": schema.mapped(schema.power_of_two(1, params.slots), _MOST_NODES),
            "costs": costs,
        }
    )


def _check_size(graph: Graph, most: int) -> None:
    """Raises LimitExceeded if the matrices that would be made have too many entries. Weights of
    windows are few, and their matrices large."""
    found = entries(graph)
    if found > most:
        raise LimitExceeded(
            f"the program's matrices have up to {found:,} numbers, which is more than the {most:,} that are made for a file of its size: if you trust whoever "
            f"made it, read it with max_entries={found}, which takes about {bytes_text(_ENTRY_BYTES * found)} of memory"
        )


def _check_ports(graph: Graph, manifest: Manifest) -> None:
    """Raises ValueError unless the client's inputs and outputs have the shapes of the model's."""
    for what, ports, names in (
        ("inputs", manifest.inputs, [node.name for node in graph.inputs]),
        ("outputs", manifest.outputs, list(graph.outputs)),
    ):
        if [port.shape for port in ports] != [graph[name].shape for name in names]:
            raise ValueError(f"manifest: its {what} have other shapes than those of the graph")


def _checked(node: Node, ranges: Any) -> Range:
    """The range of a node of the calibrated graph."""
    shape = (node.size,) if isinstance(node.operation, Input | Loop) else ()
    body = {"body": lambda value: value} if isinstance(node.operation, Loop) else {}
    try:
        found = schema.record({**_RANGE, **body})(ranges)
    except ValueError as error:
        raise CorruptData(f"the program has no range for {node.name}: {error}") from None
    numbers: dict[str, Any] = {k: found[k] for k in _NUMBERS}
    if isinstance(node.operation, Input):
        numbers = {k: np.resize(v, shape) if v.shape == (1,) else v for k, v in numbers.items()}
    if any(v.shape != shape or np.abs(v).max() > _MOST[k] for k, v in numbers.items()):
        raise CorruptData(f"the program's range for {node.name} is none")
    least = LEAST_WIDTH if isinstance(node.operation, Input) else 0.0
    if not np.all(numbers["high"] - numbers["low"] >= least):
        raise CorruptData(f"the program's range for {node.name} is empty")
    if not shape:
        numbers = {k: float(v) for k, v in numbers.items()}
    return Range(**numbers, largest=found["largest"], proven=found["proven"])


def _array(value: Any) -> Array:
    if not isinstance(value, np.ndarray):
        raise ValueError("must be an array of the file")
    return value


_RANGE = {
    **dict.fromkeys(_NUMBERS, _array),
    "largest": schema.number(1 / LARGEST, LARGEST),
    "proven": schema.flag,
}
