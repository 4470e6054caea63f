"""The price list of a program: what it takes and how exact it is, layer by layer, before any key
exists."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jali import device as devices
from jali._core.console import aligned, bytes_text, counted_text, seconds_text
from jali.ckks import functions
from jali.ckks.evaluator import Evaluator
from jali.compiler.ciphertexts import ciphertext_of, expected_bits, peak_bytes
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.keys import key_sizes, relative_time
from jali.compiler.frontends.answers import Kept, kept_text
from jali.compiler.ir.folded_ops import Bootstrap, approximation_of
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.operation import Input
from jali.compiler.ir.scalar import DECIDING
from jali.compiler.layout.lowered_ops import terms_of
from jali.compiler.planning.dry_run import DryRun
from jali.compiler.program.captured_runs import CapturedRuns, can_capture, in_place
from jali.compiler.program.uploads import (
    Uploads,
    composes,
    sending_seconds,
    sending_text,
    uploads_of,
)
from jali.compiler.progress import Counted
from jali.compiler.runtime.ciphertext_ops import Encrypted, bootstrapped
from jali.compiler.runtime.interpreter import Interpreter
from jali.compiler.runtime.storage import Kind
from jali.program.manifest import Manifest

__all__ = [
    "Layer",
    "Summary",
    "bootstraps_of",
    "comparisons_of",
    "kinds_text",
    "stored_text",
    "summarised",
]

_RUNS = 3


@dataclass(frozen=True)
class Layer:
    """One node of the lowered graph.

    level: of its result.
    seconds: the least of three trial runs, for all examples of one ciphertext. If a server captures
        its runs, the time of a captured run is divided among the layers in proportion to these.
    diagonals: products with encoded diagonals.
    diagonal_bytes: of those that stay in the memory of the device.
    stored: the kinds of jali.compiler.runtime.storage in which they are.
    noise: the standard deviation of the noise of its numbers, in the model's units.
    low, high: the range that was assumed for it; proven says whether it follows from the inputs'
        ranges.
    """

    name: str
    op: str
    level: int
    seconds: float
    rotations: int
    diagonals: int
    diagonal_bytes: int
    stored: tuple[Kind, ...]
    noise: float
    low: float
    high: float
    proven: bool


@dataclass(frozen=True)
class Summary:
    """What Program.summary gives. Times are in seconds, and for all `examples` of one ciphertext.

    key_bytes: what the client makes, in memory.
    key_bytes_sent: in a message.
    key_bytes_expanded: in the server's memory.
    diagonal_bytes: of all matrices in the memory of the device.
    stored_bytes: of those of every kind of jali.compiler.runtime.storage; streamed ones lie in the
        memory of the host.
    request_bytes, reply_bytes: of the messages of one run.
    precision_bits: what was asked for: results are off by at most 2^-precision_bits of the largest
        output of the calibration.
    averaged: whether this is promised for the average of the noise over numbers, not for the number
        that has most of it, as in all programs that bootstrap.
    answers: see Program.
    fitted: what polynomials in the place of ReLUs change, in a line; empty without them.
    client: what the client computes in the clear, and how many of the model's numbers it has for
        that, a line for each; empty if it computes nothing.
    comparisons: how near numbers may be to each other that the program compares, a line for each
        comparison.
    uploads: see Program.uploads.
    constant_bytes: of the encoded biases.
    workspace_bytes: of the arrays that are in memory at once, and of what an operation takes for
        itself, at most. Both were measured in the trial runs.
    first_seconds: what the first call of a server takes: `seconds`, and beside them what is made
        once: the matrices of every kind of bootstrapping, tables and pools of memory, and on a GPU
        the recording of the run. Each was measured in the trial runs. prepare_seconds come before
        it, when the server is made. What it leaves out is what the operating system does for keys
        that no call has read yet.
    bootstraps: bootstrappings of one ciphertext, or of two at once.
    sparse_bootstraps: those of them with fewer slots than all, of numbers that repeat.
    bootstrap_seconds: their part of the time.
    bootstrap_key_bytes: what their keys take in the server's memory, as a part of
        key_bytes_expanded.
    bootstrap_matrix_bytes: what the matrices of bootstrapping take on the device: there are some
        for every level to which, and every number of slots with which, the program bootstraps. They
        were measured in the trial runs.
    """

    device: str
    params: str
    examples: int
    depth: int
    layers: tuple[Layer, ...]
    seconds: float
    prepare_seconds: float
    keys: int
    key_bytes: int
    key_bytes_sent: int
    key_bytes_expanded: int
    diagonal_bytes: int
    stored_bytes: Mapping[Kind, int]
    constant_bytes: int
    workspace_bytes: int
    request_bytes: int
    reply_bytes: int
    precision_bits: float
    bootstraps: int
    sparse_bootstraps: int
    bootstrap_seconds: float
    bootstrap_key_bytes: int
    bootstrap_matrix_bytes: int = 0
    first_seconds: float = 0.0
    averaged: bool = False
    answers: Kept | None = None
    fitted: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    comparisons: tuple[str, ...] = ()
    uploads: Uploads | None = None

    @property
    def upload_seconds(self) -> float:
        """The time in which a client sends its keys at 20 Mbit/s."""
        return sending_seconds(self.key_bytes_sent)

    @property
    def device_bytes(self) -> int:
        """What the server takes of the memory of its device: keys, matrices, those of
        bootstrapping, too, biases and arrays."""
        matrices = self.diagonal_bytes + self.bootstrap_matrix_bytes
        return self.key_bytes_expanded + matrices + self.constant_bytes + self.workspace_bytes

    def __str__(self) -> str:
        head = (
            "layer",
            "operation",
            "level",
            "time",
            "rotations",
            "diagonals",
            "bytes",
            "stored",
            "noise",
            "range",
        )
        rows = [head, *(_cells(layer) for layer in self.layers)]
        return "\n".join(
            [
                f"{self.params} on {self.device}",
                *(f"  {line}" for line in aligned(rows)),
                f"{seconds_text(self.seconds)} for {counted_text(self.examples, 'example')}; {counted_text(self.depth, 'level')}; "
                f"{seconds_text(self.prepare_seconds)} to encode the matrices, once",
                f"{seconds_text(self.first_seconds)} for the first call, which makes the matrices of bootstrapping, tables and room in memory once",
                *self._bootstraps(),
                f"{counted_text(self.keys, 'key')}: {bytes_text(self.key_bytes_sent)} sent once, {bytes_text(self.key_bytes_expanded)} in the "
                f"server; matrices {bytes_text(self.diagonal_bytes)}; biases {bytes_text(self.constant_bytes)}; arrays at most "
                f"{bytes_text(self.workspace_bytes)}",
                *self._uploads(),
                f"matrices: {stored_text(self.stored_bytes)}{self._made()}",
                f"request {bytes_text(self.request_bytes)}, reply {bytes_text(self.reply_bytes)}; results to "
                f"{self.precision_bits:g} bits of the largest output{kept_text(self.answers)}{self._averaged()}",
                *self.fitted,
                *self.client,
                *self.comparisons,
                *self._ranges(),
            ]
        )

    def _ranges(self) -> list[str]:
        if all(layer.proven for layer in self.layers):
            return [
                "All ranges follow from the inputs' ranges: no input that clients accept leads out of one."
            ]
        return [
            "A range marked ? was seen in the calibration and widened; others follow from the inputs' ranges. Inputs unlike the calibration may lead out of it,",
            'of which decryption does not notice all: see Program.simulate, and ranges="proven" of jali.compile.',
        ]

    def _uploads(self) -> list[str]:
        """How long the keys take to send, and what fewer of them cost."""
        told = f"keys take {sending_text(self.upload_seconds)} to send at 20 Mbit/s"
        if self.uploads is None or not self.uploads.fewer:
            return [told]
        mine = self.uploads.own.relative_time
        costs = ", ".join(
            f"{bytes_text(one.sent_bytes)} ({sending_text(one.send_seconds)}) at {one.relative_time / mine:.2g} x the time"
            for one in self.uploads.fewer
        )
        return [f"{told}; with upload=, fewer do: about {costs}"]

    def _averaged(self) -> str:
        if not self.averaged:
            return ""
        return ", by the average of the noise over numbers: single ones may have more"

    def _made(self) -> str:
        made = sum("made" in layer.stored for layer in self.layers)
        if not made:
            return ""
        return f"; those of {counted_text(made, 'layer')} do not fit, and are made at every use: compile with more memory="

    def _bootstraps(self) -> list[str]:
        if not self.bootstraps:
            return ["no bootstraps"]
        times = counted_text(self.bootstraps, "bootstrap")
        if self.sparse_bootstraps:
            times += f" ({self.sparse_bootstraps} of them with fewer slots)"
        return [
            f"{times}, {seconds_text(self.bootstrap_seconds)} in all; their keys take "
            f"{bytes_text(self.bootstrap_key_bytes)}, and their matrices {bytes_text(self.bootstrap_matrix_bytes)} in the server"
        ]


def comparisons_of(graph: Graph) -> tuple[str, ...]:
    """How near numbers may be to each other that a lowered graph compares, a line for each
    comparison."""
    lines = []
    for node in graph:
        by = approximation_of(node)
        if by is not None and by.name in DECIDING:
            assert isinstance(by.by, functions.Function)
            gap = by.by.gap * float(np.max(graph[node.inputs[0]].scaling.radius))
            lines.append(
                f"{node.name} compares numbers that differ by at least {gap:.2g}: of nearer ones, it gives something between its results"
            )
    return tuple(lines)


def stored_text(bytes_of: Mapping[Kind, int]) -> str:
    """The bytes of every kind of matrices that there are."""
    found = [f"{kind} {bytes_text(n)}" for kind, n in bytes_of.items() if n]
    return ", ".join(found) or "none"


def kinds_text(kinds: Sequence[Kind]) -> str:
    """The kinds of the matrices of a node."""
    return ", ".join(kinds) or "-"


def _cells(layer: Layer) -> tuple[str, ...]:
    return (
        layer.name,
        layer.op,
        str(layer.level),
        seconds_text(layer.seconds),
        str(layer.rotations),
        str(layer.diagonals),
        bytes_text(layer.diagonal_bytes),
        kinds_text(layer.stored),
        f"{layer.noise:.1e}",
        f"[{layer.low:.3g}, {layer.high:.3g}]{'' if layer.proven else '?'}",
    )


class _Memory:
    """The memory of a server that work takes beyond what is in use before and after it."""

    def __init__(self, server: Evaluator) -> None:
        self._server = server
        self._before = 0
        self.lap()

    def lap(self) -> int:
        """The bytes since the last call."""
        peak, now = peak_bytes(self._server), self._server.counters()["bytes_in_use"]
        taken = max(0, peak - max(now, self._before))
        self._before = now
        return taken


class _Watch:
    """Times every node of a run, and measures its memory."""

    def __init__(self, dry_run: DryRun) -> None:
        self._synchronize = dry_run.server.synchronize
        self.seconds: dict[str, float] = {}
        self.noise_bits: dict[str, float] = {}
        self.array_bytes: dict[str, int] = {}
        self.temporary_bytes: dict[str, int] = {}
        self._memory = _Memory(dry_run.server)
        self._last = time.perf_counter()

    def __call__(self, node: Node, value: Encrypted) -> None:
        self.noise_bits[node.name] = min(
            expected_bits(x) for x in value
        )  # it also computes what is put off
        self._synchronize()
        now = time.perf_counter()
        self.seconds[node.name] = now - self._last
        self.array_bytes[node.name] = sum(ciphertext_of(x).nbytes for x in value)
        self.temporary_bytes[node.name] = self._memory.lap()
        self._last = time.perf_counter()


def summarised(
    interpreter: Interpreter,
    manifest: Manifest,
    precision_bits: float,
    device: str,
    threads: int | None,
    progress: Counted | None = None,
    costs: Costs | None = None,
) -> Summary:
    """The price list on a device of this machine, by trial runs there.

    progress: as of Program.summary.
    costs: of the program, by which Summary.uploads is counted; None leaves it out.
    """
    demand = manifest.demand
    dry_run = DryRun(interpreter, device, threads, demand.restored_bits, timed=True)
    before = dry_run.server.counters()["bytes_in_use"]
    start = time.perf_counter()
    matrices = 0

    def encoded(done: int, total: int) -> None:
        nonlocal matrices
        matrices = total
        if progress is not None:
            progress(done, total + 1 + _RUNS)

    interpreter.prepare(dry_run.server, encoded)
    dry_run.server.synchronize()
    prepared = time.perf_counter() - start
    held, kinds = interpreter.held_bytes, interpreter.storage
    encoded_bytes = dry_run.server.counters()["bytes_in_use"] - before
    constant_bytes = max(0, encoded_bytes - sum(held.values()))
    start = time.perf_counter()
    dry_run.run()  # makes tables and pools
    dry_run.server.synchronize()
    once = time.perf_counter() - start
    rotations, slower = dry_run.rotations(), relative_time(manifest.params, demand)
    if costs is not None:
        slower = costs.slower(slower)
    if composes(manifest.params, demand, rotations):
        dry_run.hold(demand)
        dry_run.run()  # finds out how rotations are composed
        slower = 1.0  # the dry run had all keys, and has those of the program now
    uploads = None if costs is None else uploads_of(interpreter, demand, costs, rotations)
    measured, restoring_bytes, temporary, made = _bootstraps(interpreter, dry_run)
    least = float("inf")
    restoring = {k: slower * s for k, s in measured.items()}
    seconds: dict[str, list[float]] = {}
    for k in range(_RUNS):
        if progress is not None:
            progress(matrices + 1 + k, matrices + 1 + _RUNS)
        watch, start = _Watch(dry_run), time.perf_counter()
        outputs = dry_run.run(watch=watch)
        least = min(least, time.perf_counter() - start)
        taken = watch.seconds | dry_run.seconds
        taken |= {name: taken[one] for name, one in dry_run.first.items()}
        for name, spent in (taken | restoring).items():
            seconds.setdefault(name, []).append(spent)
        temporary = watch.temporary_bytes | temporary
        temporary |= {name: temporary[one] for name, one in dry_run.first.items()}
    if progress is not None:
        progress(matrices + 1 + _RUNS, matrices + 1 + _RUNS)
    layers = tuple(
        _layer(
            interpreter,
            node,
            min(seconds[node.name]),
            watch.noise_bits[node.name],
            held.get(node.name, 0),
            kinds.get(node.name, ()),
        )
        for node in interpreter.graph
        if not isinstance(node.operation, Input)
    )
    share = 1.0
    once = max(0.0, once - least) + made
    if can_capture(interpreter, dry_run.server):
        captured, first = _captured_seconds(dry_run, manifest)
        once += first
        total = captured + (slower - 1) * sum(measured.values())
        share = total / sum(layer.seconds for layer in layers)
        layers = tuple(replace(layer, seconds=share * layer.seconds) for layer in layers)
    params, sizes = manifest.params, key_sizes(manifest.params, demand)
    return Summary(
        device=f"{dry_run.server.engine} ({devices.name(device if device != 'auto' else devices.resolved(device))})",
        params=repr(params),
        examples=manifest.lanes,
        depth=params.depth,
        layers=layers,
        seconds=sum(layer.seconds for layer in layers),
        prepare_seconds=prepared,
        keys=sizes.count,
        key_bytes=sizes.made,
        key_bytes_sent=sizes.sent,
        key_bytes_expanded=sizes.expanded,
        diagonal_bytes=sum(layer.diagonal_bytes for layer in layers),
        stored_bytes=interpreter.bytes_of,
        constant_bytes=constant_bytes,
        workspace_bytes=_workspace(interpreter, watch.array_bytes, temporary),
        request_bytes=sum(len(c.to_bytes()) for array in dry_run.requests for c in array),
        reply_bytes=sum(len(x.ciphertext.to_bytes()) for array in outputs for x in array),
        precision_bits=precision_bits,
        bootstraps=sum(bootstraps_of(node) for node in interpreter.graph),
        sparse_bootstraps=sum(
            bootstraps_of(n)
            for n in interpreter.graph
            if isinstance(n.operation, Bootstrap) and n.operation.slots
        ),
        bootstrap_seconds=share * sum(restoring.values()),
        bootstrap_key_bytes=sizes.bootstrap,
        bootstrap_matrix_bytes=restoring_bytes,
        averaged=demand.restored_bits > 0,
        comparisons=comparisons_of(interpreter.graph),
        uploads=uploads,
        first_seconds=sum(layer.seconds for layer in layers) + once,
    )


def _captured_seconds(dry_run: DryRun, manifest: Manifest) -> tuple[float, float]:
    """The time of a whole request to a server that captures its runs, and what the first request
    takes beyond it, in which the run is captured.

    The time is the least of three, with the transfer of the request to the device. A captured run
    has no gaps between the launches of small operations.
    """
    runs, server = CapturedRuns(dry_run.interpreter, dry_run.server, manifest), dry_run.server
    spent = []
    for _ in range(1 + _RUNS):
        start = time.perf_counter()
        runs([tuple(in_place(server, c) for c in request) for request in dry_run.requests])
        server.synchronize()
        spent.append(time.perf_counter() - start)
    return min(spent[1:]), max(0.0, spent[0] - min(spent[1:]))


def bootstraps_of(node: Node) -> int:
    """How often a node bootstraps: a pair counts once."""
    if not isinstance(node.operation, Bootstrap):
        return 0
    count: int = node.layout.ciphertexts
    return -(-count // 2) if node.operation.kind == "pair" else count


def _bootstraps(
    interpreter: Interpreter, dry_run: DryRun
) -> tuple[dict[str, float], int, dict[str, int], float]:
    """The time of every node ``bootstrap``, by one run for each kind, number of ciphertexts and of
    slots, and level; the bytes of all their matrices, which stay on the device behind the first run
    of a kind; what every node takes for itself; and the time that the first runs take beyond
    others, which make the matrices."""
    total, once = 0, 0.0
    found: dict[str, float] = {}
    temporary: dict[str, int] = {}
    known: dict[tuple[object, ...], tuple[float, int]] = {}
    server, due = dry_run.server, interpreter.params.bootstrap_level
    for node in interpreter.graph:
        if not isinstance(node.operation, Bootstrap):
            continue
        count, level = node.layout.ciphertexts, node.level
        key = (node.operation.kind, count, level, node.operation.slots)
        if key not in known:
            source = dry_run.fresh(node, due)
            before, start = server.counters()["bytes_in_use"], time.perf_counter()
            for x in bootstrapped(server, node, source):  # makes the matrices
                ciphertext_of(x)
            del x
            server.synchronize()
            first = time.perf_counter() - start
            total += max(0, server.counters()["bytes_in_use"] - before)
            memory, start = _Memory(server), time.perf_counter()
            for x in bootstrapped(server, node, source):
                ciphertext_of(x)
            server.synchronize()
            known[key] = time.perf_counter() - start, memory.lap()
            once += max(0.0, first - known[key][0])
        found[node.name], temporary[node.name] = known[key]
    return found, total, temporary, once


def _layer(
    interpreter: Interpreter,
    node: Node,
    seconds: float,
    noise_bits: float,
    held: int,
    kinds: tuple[Kind, ...],
) -> Layer:
    scaling, by = node.scaling, approximation_of(node)
    radius, centre = float(np.mean(scaling.radius)), float(np.mean(scaling.centre))
    return Layer(
        name=node.name,
        op=node.op if by is None else by.name,
        level=node.level,
        seconds=seconds,
        rotations=interpreter.rotations.get(node.name, 0),
        diagonals=sum(term.count for term in terms_of(node)),
        diagonal_bytes=held,
        stored=kinds,
        noise=radius * 2.0**-noise_bits,
        low=scaling.low * radius + centre,
        high=scaling.high * radius + centre,
        proven=scaling.proven,
    )


def _workspace(
    interpreter: Interpreter, array_bytes: Mapping[str, int], temporary: Mapping[str, int]
) -> int:
    """The most bytes of arrays that are in use at once, and of what a node takes while it
    computes."""
    graph = interpreter.graph
    last = {name: k for k, node in enumerate(graph) for name in node.inputs}
    last |= {name: len(graph) for name in graph.outputs}
    last |= {node.name: len(graph) for node in graph.inputs}  # the server holds them to the end
    most = 0
    for k in range(len(graph)):
        alive = [
            n.name for n in graph.nodes[: k + 1] if last.get(n.name, -1) >= k or n is graph.nodes[k]
        ]
        own = temporary.get(graph.nodes[k].name, 0)
        most = max(most, sum(array_bytes[name] for name in alive) + own)
    return most
