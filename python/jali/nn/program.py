"""A compiled program: what makes its client and its server, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali._core import checks
from jali.errors import InvalidArgument, VersionError
from jali.nn import files, stored
from jali.nn.approximate import approximate, approximated, promised
from jali.nn.calibrate import MARGIN, calibrate
from jali.nn.costs import Costs
from jali.nn.dumps import parameters_text, program_text, report_text
from jali.nn.execute import check_count, checked_examples, every_value, execute
from jali.nn.expected import expected
from jali.nn.fold import fold
from jali.nn.graph import Array, Graph, Shape
from jali.nn.keys import key_sizes
from jali.nn.levels import conjugated, levels_of
from jali.nn.manifest import Manifest
from jali.nn.parameters import Ring
from jali.nn.placement import verify
from jali.nn.plan import Plan, lowered, plan
from jali.nn.plot import plotted
from jali.nn.report import Summary, summarised
from jali.nn.roles import Client, Server
from jali.nn.run import Machine
from jali.nn.unroll import unrolled
from jali.nn.verifiers import GRAPHS, verify_costs, verify_graph, verify_levels, verify_manifest

__all__ = ["Program", "Sizes", "compiled"]

STAGES = (*GRAPHS, "parameters", "report", "program")
_MEASURED = 256  # on so many examples of the calibration, errors of approximations are measured
_AT_ONCE = 1 << 26  # numbers of examples that are computed in the clear at a time
_OTHER = "the program was compiled by another version of Jali, which planned it otherwise: compile the model again"


@dataclass(frozen=True)
class Sizes:
    """Bytes. keys: as the client makes them. keys_sent: in a message. keys_expanded: in the server's memory. matrices: of those that stay
    encoded there."""

    keys: int
    keys_sent: int
    keys_expanded: int
    matrices: int


@dataclass(frozen=True, eq=False)
class Program:
    """What jali.compile returns.

    stages: the graph after every stage. memory: bytes for encoded matrices. precision_bits: what was asked for. error: of every function, in units of its largest
    value. costs: of operations and bootstrappings, by which levels were chosen. claims: see Machine.
    """

    stages: Mapping[str, Graph]
    manifest: Manifest
    memory: float
    precision_bits: float
    error: float
    costs: Costs
    claims: Mapping[str, float]

    @classmethod
    def of(
        cls, stages: Mapping[str, Graph], found: Plan, precision_bits: float, error: float
    ) -> Program:
        """The program of the stages up to approximation and of the plan that was made for them."""
        params, lanes = found.machine.params, found.machine.lanes
        graph, memory = found.stages["levels"], found.machine.memory
        manifest = Manifest.of(graph, _shapes(stages), params, lanes, found.demand)
        made = {**stages, **found.stages}
        claims = found.machine.claims
        return cls(made, manifest, memory, precision_bits, error, found.costs, claims)

    @property
    def params(self) -> ckks.Params:
        """The parameters that were chosen."""
        return self.manifest.params

    def explain(self, stage: str) -> str:
        """A stage as text: the graph after trace, fold, calibrate, approximate, layout, lower and levels; parameters, with the keys;
        report, what each node of the plan costs; and program, what client and server have."""
        levels, manifest = self.stages["levels"], self.manifest
        match stage:
            case "parameters":
                return parameters_text(manifest.params, manifest.demand)
            case "report":
                return report_text(self._machine(), self.costs)
            case "program":
                return program_text(manifest, levels, self.precision_bits, self.memory)
        if stage not in self.stages:
            raise InvalidArgument(f"the stages are {', '.join(STAGES)}, not {checks.shown(stage)}")
        return str(self.stages[stage])

    def verify(self) -> None:
        """Raises InternalError, which names the stage and the node, if a stage of this program breaks one of its rules. It takes a fraction of
        the time of compiling.
        """
        for stage in GRAPHS:
            verify_graph(stage, self.stages[stage])
        levels = self.stages["levels"]
        verify_levels(levels, self.params)
        verify_costs(levels, self.costs)
        verify_manifest(self.manifest, levels)

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
        stages, generator = self.stages, rng or np.random.default_rng()
        graph = stages["approximate"]
        check_count(graph, inputs)
        arrays = [checked_examples(n, x) for n, x in zip(graph.inputs, inputs, strict=True)]
        step = max(1, _AT_ONCE // sum(node.size for node in stages["trace"]))
        parts = [
            expected(stages["trace"], graph, [x[k : k + step] for x in arrays])
            for k in range(0, len(arrays[0]), step)
        ]
        bits, results = self.manifest.demand.noise_bits, []
        for name, noise, values in zip(graph.outputs, bits, zip(*parts, strict=True), strict=True):
            whole = np.concatenate(values)
            radius = np.broadcast_to(graph[name].attrs["radius"], (graph[name].size,))
            noisy = generator.normal(0, 2.0**-noise, whole.shape)
            results.append(whole + radius.reshape(whole.shape[1:]) * noisy)
        return results[0] if len(results) == 1 else tuple(results)

    def summary(self, device: str = "auto", *, threads: int | None = None) -> Summary:
        """The price list: time, bytes, levels, noise and assumed ranges, by layer and in all. ``print`` shows it as a table.

        device: where the server will compute; it must be one of this machine. Times are those of trial runs there, with zeros in the
            place of keys. No key is made.
        """
        stage, bits = unrolled(self.stages["approximate"]), self.precision_bits
        return summarised(self._machine(), stage, self.manifest, bits, device, threads)

    def sizes(self) -> Sizes:
        """The bytes of keys and matrices, which are counted and need no trial run."""
        keys, machine = key_sizes(self.params, self.manifest.demand), self._machine()
        return Sizes(keys.made, keys.sent, keys.expanded, sum(machine.held_bytes.values()))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A picture of the plan: the level of every array, where it is bootstrapped, and what each costs, by the costs that the plan was
        made with. It needs matplotlib.

        path: where to save it, as .png, .svg or .pdf. Returns the figure of matplotlib.
        """
        return plotted(self.stages["levels"], self.params, self.costs, path)

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
        trace: bool = False,
    ) -> Server:
        """A server with a client's evaluation_keys(). Arguments as of nn.Server."""
        return Server(
            self._machine(),
            self.manifest,
            keys,
            device=device,
            threads=threads,
            record=record,
            trace=trace,
        )

    def _machine(self) -> Machine:
        """One for each evaluator, because encoded matrices lie in the memory of its device."""
        graph, lanes = self.stages["levels"], self.manifest.lanes
        return Machine(graph, self.params, lanes, self.memory, self.claims)

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
                levels_of(self.stages["levels"]),
                self.costs,
                self.claims,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, *, security: int = 128) -> Program:
        """What to_bytes wrote. Matrices and polynomials are made again from the weights; ranges, scales, levels, parameters and
        keys are those of the file, so that clients and their keys go on working.

        security: the least that is accepted, see Params.from_bytes.

        Raises CorruptData, VersionError for a program that this build would make otherwise, and LimitExceeded.
        """
        was = stored.from_bytes(data, security)
        stages = {"trace": was.graph, "fold": fold(was.graph)}
        stages["calibrate"] = was.calibrated(stages["fold"])
        functions = approximated(stages["calibrate"], was.error)
        stages["approximate"] = promised(functions, was.precision_bits)
        params, lanes = was.manifest.params, was.manifest.lanes
        try:
            made = lowered(
                stages["approximate"],
                params.slots // lanes,
                was.levels,
                bootstraps=params.bootstraps,
            )
            verify(made["levels"], params)
            if was.manifest.demand.conjugation < conjugated(made["levels"]):
                raise VersionError(_OTHER)
        except InvalidArgument:
            raise VersionError(_OTHER) from None
        machine = Machine(made["levels"], params, lanes, was.memory, was.claims)
        found = Plan(made, machine, was.manifest.demand, was.costs)
        again = cls.of(stages, found, was.precision_bits, was.error)
        if not again.manifest.is_like(was.manifest):
            raise VersionError(_OTHER)
        return replace(again, manifest=was.manifest)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        files.save(file, self.to_bytes())

    @classmethod
    def load(cls, file: str | os.PathLike[str], *, security: int = 128) -> Program:
        """What save wrote. Raises FileError, and the errors of from_bytes."""
        return cls.from_bytes(files.load(file), security=security)


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
    key_memory: float = float("inf"),
    insecure_ring: Ring | None = None,
) -> Program:
    """The program of a traced graph. Arguments as of jali.compile and plan; lanes: a power of two."""
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
        traced=graph,
        exact={
            name: exact[before][some]  # folding leaves out reshapes, also of outputs
            for name, before in zip(stages["calibrate"].outputs, graph.outputs, strict=True)
        },
    )
    found = plan(
        stages["approximate"],
        precision_bits,
        lanes,
        memory,
        device,
        key_memory=key_memory,
        insecure_ring=insecure_ring,
    )
    return Program.of(stages, found, precision_bits, error)


def _shapes(stages: Mapping[str, Graph]) -> list[Shape]:
    """The shapes of the outputs in the model; folding leaves out reshapes."""
    return [stages["trace"][name].shape for name in stages["trace"].outputs]
