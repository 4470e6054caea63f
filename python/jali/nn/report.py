"""The price list of a program: what it takes and how exact it is, layer by layer, before any key exists."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from jali import device as devices
from jali._core.console import bytes_text, seconds_text
from jali.nn.graph import Node
from jali.nn.keys import key_bytes, sent_bytes
from jali.nn.manifest import Manifest
from jali.nn.run import Encrypted, Machine
from jali.nn.trial import Trial

__all__ = ["Layer", "Summary", "summarised"]

_RUNS = 3


@dataclass(frozen=True)
class Layer:
    """One node of the lowered graph.

    level: of its result. seconds: the least of three trial runs, for all examples of one ciphertext. diagonals: products with
    encoded diagonals. diagonal_bytes: of those that stay encoded. noise: the standard deviation of the noise of its numbers, in
    the model's units. low, high: the range that was assumed for it; proven says whether it follows from the inputs' ranges.
    """

    name: str
    op: str
    level: int
    seconds: float
    rotations: int
    diagonals: int
    diagonal_bytes: int
    noise: float
    low: float
    high: float
    proven: bool


@dataclass(frozen=True)
class Summary:
    """What Program.summary gives. Times are in seconds, and for all `examples` of one ciphertext.

    key_bytes: what the client makes, in memory. key_bytes_sent: in a message. key_bytes_expanded: in the server's memory.
    request_bytes, reply_bytes: of the messages of one run.
    workspace_bytes: of the arrays that are in memory at once, at most. bootstraps is 0: programs use none yet.
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
    workspace_bytes: int
    request_bytes: int
    reply_bytes: int
    precision_bits: float
    bootstraps: int = 0

    def __str__(self) -> str:
        head = (
            "layer",
            "operation",
            "level",
            "time",
            "rotations",
            "diagonals",
            "encoded",
            "noise",
            "range",
        )
        rows = [head, *(_cells(layer) for layer in self.layers)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        lines = [
            "  "
            + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join(
            [
                f"{self.params} on {self.device}",
                *lines,
                f"{seconds_text(self.seconds)} for {self.examples} examples; {self.depth} levels, {self.bootstraps} bootstraps; "
                f"{seconds_text(self.prepare_seconds)} to encode the matrices, once",
                f"{self.keys} keys: {bytes_text(self.key_bytes_sent)} sent once, {bytes_text(self.key_bytes_expanded)} in the "
                f"server; matrices {bytes_text(self.diagonal_bytes)}; arrays at most {bytes_text(self.workspace_bytes)}",
                f"request {bytes_text(self.request_bytes)}, reply {bytes_text(self.reply_bytes)}; results to "
                f"{self.precision_bits:g} bits of the largest output",
                "A range marked ? was seen in the calibration and widened; others follow from the inputs' ranges.",
            ]
        )


def _cells(layer: Layer) -> tuple[str, ...]:
    return (
        layer.name,
        layer.op,
        str(layer.level),
        seconds_text(layer.seconds),
        str(layer.rotations),
        str(layer.diagonals),
        bytes_text(layer.diagonal_bytes),
        f"{layer.noise:.1e}",
        f"[{layer.low:.3g}, {layer.high:.3g}]{'' if layer.proven else '?'}",
    )


class _Watch:
    """Times every node of a run."""

    def __init__(self, trial: Trial) -> None:
        self._synchronize = trial.server.synchronize
        self.seconds: dict[str, float] = {}
        self.noise_bits: dict[str, float] = {}
        self.array_bytes: dict[str, int] = {}
        self._last = time.perf_counter()

    def __call__(self, node: Node, value: Encrypted) -> None:
        self.noise_bits[node.name] = min(
            x.precision_bits for x in value
        )  # it also computes what is put off
        self._synchronize()
        now = time.perf_counter()
        self.seconds[node.name] = now - self._last
        self.array_bytes[node.name] = sum(x._settled().nbytes for x in value)
        self._last = time.perf_counter()


def summarised(
    machine: Machine,
    manifest: Manifest,
    precision_bits: float,
    device: str,
    threads: int | None,
) -> Summary:
    """The price list on a device of this machine, by trial runs there."""
    trial = Trial(machine, device, threads)
    start = time.perf_counter()
    machine.prepare(trial.server)
    trial.server.synchronize()
    prepared = time.perf_counter() - start
    machine(trial.server, *trial.inputs)  # tables and pools are made in the first run
    seconds: dict[str, list[float]] = {}
    for _ in range(_RUNS):
        watch = _Watch(trial)
        outputs = machine(trial.server, *trial.inputs, watch=watch)
        for name, taken in watch.seconds.items():
            seconds.setdefault(name, []).append(taken)
    layers = tuple(
        _layer(machine, node, min(seconds[node.name]), watch.noise_bits[node.name])
        for node in machine.graph
        if node.op != "input"
    )
    params, levels = manifest.params, manifest.demand.levels
    return Summary(
        device=f"{trial.server.engine} ({devices.name(device if device != 'auto' else devices.resolved(device))})",
        params=repr(params),
        examples=manifest.lanes,
        depth=params.depth,
        layers=layers,
        seconds=sum(layer.seconds for layer in layers),
        prepare_seconds=prepared,
        keys=len(levels),
        key_bytes=sum(key_bytes(params, level) for level in levels),
        key_bytes_sent=sum(sent_bytes(params, level) for level in levels),
        key_bytes_expanded=sum(2 * key_bytes(params, level) for level in levels),
        diagonal_bytes=sum(layer.diagonal_bytes for layer in layers),
        workspace_bytes=_workspace(machine, watch.array_bytes),
        request_bytes=sum(len(c.to_bytes()) for array in trial.requests for c in array),
        reply_bytes=sum(len(x.ciphertext.to_bytes()) for array in outputs for x in array),
        precision_bits=precision_bits,
    )


def _layer(machine: Machine, node: Node, seconds: float, noise_bits: float) -> Layer:
    attrs = node.attrs
    radius, centre = float(np.mean(attrs["radius"])), float(np.mean(attrs["centre"]))
    return Layer(
        name=node.name,
        op=str(attrs["by"].name) if "by" in attrs else node.op,
        level=attrs["level"],
        seconds=seconds,
        rotations=machine.rotations.get(node.name, 0),
        diagonals=sum(term.diagonals for term in attrs.get("terms", ())),
        diagonal_bytes=machine.held_bytes.get(node.name, 0),
        noise=radius * 2.0**-noise_bits,
        low=attrs["low"] * radius + centre,
        high=attrs["high"] * radius + centre,
        proven=attrs["proven"],
    )


def _workspace(machine: Machine, array_bytes: dict[str, int]) -> int:
    """The most bytes of arrays that are in use at once."""
    graph = machine.graph
    last = {name: k for k, node in enumerate(graph) for name in node.inputs}
    last |= {name: len(graph) for name in graph.outputs}
    most = 0
    for k in range(len(graph)):
        alive = [
            n.name for n in graph.nodes[: k + 1] if last.get(n.name, -1) >= k or n is graph.nodes[k]
        ]
        most = max(most, sum(array_bytes[name] for name in alive))
    return most
