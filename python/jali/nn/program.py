"""A compiled program: what makes its client and its server, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.errors import InvalidArgument, VersionError
from jali.nn import files, stored
from jali.nn.approximate import approximate, approximated, scaled
from jali.nn.calibrate import MARGIN, calibrate
from jali.nn.execute import checked_examples, every_value, execute
from jali.nn.fold import fold
from jali.nn.graph import Array, Graph, Shape
from jali.nn.levels import depth_of
from jali.nn.manifest import Manifest
from jali.nn.plan import Plan, lowered, plan
from jali.nn.report import Summary, summarised
from jali.nn.roles import Client, Server
from jali.nn.run import Machine

__all__ = ["Program", "compiled"]

STAGES = ("trace", "fold", "calibrate", "approximate", "layout", "lower", "levels")
_MEASURED = 256  # on so many examples of the calibration, errors of approximations are measured
_OTHER = "the program was compiled by another version of Jali, which planned it otherwise: compile the model again"


@dataclass(frozen=True, eq=False)
class Program:
    """What jali.compile returns.

    stages: the graph after every stage. memory: bytes for encoded matrices. precision_bits: what was asked for. error: of every function, in units of its largest
    value.
    """

    stages: Mapping[str, Graph]
    manifest: Manifest
    memory: float
    precision_bits: float
    error: float

    @classmethod
    def of(
        cls, stages: Mapping[str, Graph], found: Plan, precision_bits: float, error: float
    ) -> Program:
        """The program of the stages up to approximation and of the plan that was made for them."""
        params, lanes = found.machine.params, found.machine.lanes
        graph, memory = found.stages["levels"], found.machine.memory
        manifest = Manifest.of(graph, _shapes(stages), params, lanes, found.demand)
        return cls({**stages, **found.stages}, manifest, memory, precision_bits, error)

    @property
    def params(self) -> ckks.Params:
        """The parameters that were chosen."""
        return self.manifest.params

    def explain(self, stage: str) -> str:
        """The graph after a stage as text: trace, fold, calibrate, approximate, layout, lower or levels."""
        if stage not in self.stages:
            raise InvalidArgument(f"the stages are {', '.join(self.stages)}, not {stage!r}")
        return str(self.stages[stage])

    def clear(self, *inputs: npt.ArrayLike) -> Array | tuple[Array, ...]:
        """What the model itself gives for a batch of examples, in the clear."""
        results = execute(self.stages["trace"], *inputs)
        return results[0] if len(results) == 1 else tuple(results)

    def simulate(
        self, *inputs: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> Array | tuple[Array, ...]:
        """What decryption would give for a batch of examples, in the clear: with the approximations, and noise of the size that is
        estimated for each output. It takes seconds for a test set, of which it tells the accuracy to expect.
        """
        graph, generator = self.stages["approximate"], rng or np.random.default_rng()
        arrays = [checked_examples(n, x) for n, x in zip(graph.inputs, inputs, strict=True)]
        values = every_value(
            graph, [scaled(n, x) for n, x in zip(graph.inputs, arrays, strict=True)]
        )
        results = []
        bits = self.manifest.demand.noise_bits
        for name, shape, noise in zip(graph.outputs, _shapes(self.stages), bits, strict=True):
            attrs, value = graph[name].attrs, values[name].reshape(-1, *shape)
            noisy = value + generator.normal(0, 2.0**-noise, value.shape)
            size = (graph[name].size,)
            radius, centre = (
                np.broadcast_to(attrs[k], size).reshape(shape) for k in ("radius", "centre")
            )
            results.append(noisy * radius + centre)
        return results[0] if len(results) == 1 else tuple(results)

    def summary(self, device: str = "auto", *, threads: int | None = None) -> Summary:
        """The price list: time, bytes, levels, noise and assumed ranges, by layer and in all. ``print`` shows it as a table.

        device: where the server will compute; it must be one of this machine. Times are those of trial runs there, with zeros in the
            place of keys. No key is made.
        """
        return summarised(self._machine(), self.manifest, self.precision_bits, device, threads)

    def client(self, *, secret: ckks.Client | None = None, threads: int | None = None) -> Client:
        """A client. It needs the manifest alone: Client(Manifest.from_bytes(..)) is the same elsewhere."""
        return Client(self.manifest, secret=secret, threads=threads)

    def server(
        self,
        keys: ckks.EvaluationKeys,
        *,
        device: str = "auto",
        threads: int | None = None,
        record: bool | None = None,
    ) -> Server:
        """A server with a client's evaluation_keys(). Arguments as of nn.Server."""
        return Server(
            self._machine(), self.manifest, keys, device=device, threads=threads, record=record
        )

    def _machine(self) -> Machine:
        """One for each evaluator, because encoded matrices lie in the memory of its device."""
        return Machine(self.stages["levels"], self.params, self.manifest.lanes, self.memory)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name} {p.shape}" for p in self.manifest.inputs)
        return f"Program({sizes}, lanes={self.manifest.lanes}, {self.params!r})"

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same program. They hold the weights, and no key."""
        return stored.to_bytes(
            stored.Stored(
                self.stages["trace"],
                self.stages["calibrate"],
                self.manifest,
                self.precision_bits,
                self.error,
                self.memory,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Program:
        """What to_bytes wrote. Matrices and polynomials are made again from the weights; ranges, scales, levels, parameters and
        keys are those of the file, so that clients and their keys go on working.

        Raises CorruptData, VersionError for a program that this build would make otherwise, and LimitExceeded.
        """
        was = stored.from_bytes(data)
        stages = {"trace": was.graph, "fold": fold(was.graph)}
        stages["calibrate"] = was.calibrated(stages["fold"])
        stages["approximate"] = approximated(stages["calibrate"], was.error)
        params, lanes = was.manifest.params, was.manifest.lanes
        made = lowered(stages["approximate"], params.slots // lanes)
        if depth_of(made["levels"]) != params.depth:
            raise VersionError(_OTHER)
        found = Plan(made, Machine(made["levels"], params, lanes, was.memory), was.manifest.demand)
        again = cls.of(stages, found, was.precision_bits, was.error)
        if not again.manifest.is_like(was.manifest):
            raise VersionError(_OTHER)
        return replace(again, manifest=was.manifest)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        files.save(file, self.to_bytes())

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Program:
        """What save wrote. Raises FileError, and the errors of from_bytes."""
        return cls.from_bytes(files.load(file))


def compiled(
    graph: Graph,
    examples: Sequence[Array],
    *,
    precision_bits: float,
    lanes: int,
    margin: float = MARGIN,
    input_ranges: Sequence[tuple[object, object] | None] | None = None,
    memory: float,
    device: str = "cpu",
) -> Program:
    """The program of a traced graph. Arguments as of jali.compile; lanes: a power of two."""
    stages = {"trace": graph, "fold": fold(graph)}
    exact = every_value(graph, examples)
    stages["calibrate"] = calibrate(
        stages["fold"], examples, margin=margin, input_ranges=input_ranges, exact=exact
    )
    some = np.linspace(0, len(examples[0]) - 1, min(len(examples[0]), _MEASURED)).astype(int)
    stages["approximate"], error = approximate(
        stages["calibrate"],
        [x[some] for x in examples],
        precision_bits,
        exact={name: value[some] for name, value in exact.items()},
    )
    found = plan(stages["approximate"], precision_bits, lanes, memory, device)
    return Program.of(stages, found, precision_bits, error)


def _shapes(stages: Mapping[str, Graph]) -> list[Shape]:
    """The shapes of the outputs in the model; folding leaves out reshapes."""
    return [stages["trace"][name].shape for name in stages["trace"].outputs]
