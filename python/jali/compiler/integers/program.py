"""A compiled program of exact integers: what makes its client and its server, and what it costs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from jali import discrete
from jali._core import checks
from jali._core.columns import check_columns
from jali._core.refusals import Answering
from jali.compiler.integers import program_file
from jali.compiler.integers.arithmetic import Columns, computed
from jali.compiler.integers.deployment import MADE, Deployment
from jali.compiler.integers.intervals import Bounds, bounds, whole, why_not, work
from jali.compiler.integers.plan import Plan, Ring, planned, planned_as
from jali.compiler.integers.server import Server
from jali.compiler.integers.summary import Choice, Summary, summarised
from jali.compiler.ir.execute import check_count
from jali.compiler.ir.graph import Graph
from jali.errors import (
    CorruptData,
    Error,
    InternalError,
    InvalidArgument,
    LimitExceeded,
    Unsupported,
    VersionError,
)
from jali.program import container
from jali.program.demand import MAX_CLIENT_BYTES
from jali.program.integers.client import Client
from jali.program.integers.manifest import Manifest
from jali.program.integers.port import Integers, Port, whole_numbers

__all__ = ["Program"]

_MOST_WORK = 1 << 17  # sums and products of single numbers
_OTHER = "the program was compiled by another version of Jali, which planned it otherwise: compile the model again"


@dataclass(frozen=True, eq=False)
class Program(metaclass=Answering):
    """What jali.compile returns for a model of whole numbers if it computes with exact integers.

    graph: the traced model.
    plan: how it is computed.
    batch: how many examples one ciphertext holds by rows, as was asked for.
    choice: why it is no program of CKKS.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> program.clear(examples[:1])
    array([[0, 2, 4]])
    """

    graph: Graph
    plan: Plan
    batch: int
    choice: Choice

    @classmethod
    def of(
        cls,
        graph: Graph,
        inputs: Sequence[Port],
        batch: int,
        scale: int = 1,
        ring: Ring | None = None,
    ) -> Program:
        """The program of a traced graph.

        inputs: the names, shapes and ranges of its inputs.
        batch: as of jali.compile.
        scale: by which clients divide results to have what they stand for.
        ring: parameters for tests.

        Raises Unsupported for a graph that does not compute whole numbers, and the errors of
        plan.planned.
        """
        made = planned(graph, inputs, _outputs(graph, inputs, scale), batch, ring)
        return cls(graph, made, batch, Choice(made.cost))

    @property
    def manifest(self) -> Manifest:
        """What its clients know of it."""
        return self.plan.manifest

    @property
    def params(self) -> discrete.Params:
        """The parameters that were chosen."""
        return self.manifest.params

    def clear(self, *inputs: npt.ArrayLike) -> Integers | tuple[Integers, ...]:
        """What the model itself gives for a batch of examples, in the clear: whole numbers, as
        NumPy's int64 has them. It takes tables as Client.encrypt does."""
        self._check_tables(inputs)
        check_count(self.graph, inputs)
        ports = self.manifest.inputs
        return self._computed(
            [whole_numbers(port.name, port.shape, x) for port, x in zip(ports, inputs, strict=True)]
        )

    def simulate(
        self, *inputs: npt.ArrayLike, rng: np.random.Generator | int | None = None
    ) -> Integers | tuple[Integers, ...]:
        """What decryption gives for a batch of examples, in the clear. Results are exact, so that
        there is no noise in them. Numbers that a client would not encrypt are warned of.

        rng: as of nn.Program.simulate. It draws nothing here.
        """
        check_count(self.graph, inputs)
        for port, values in zip(self.manifest.inputs, inputs, strict=True):
            try:
                port.examples(values)
            except InvalidArgument as error:
                warnings.warn(f"a client refuses these numbers: {error}", UserWarning, stacklevel=2)
        return self.clear(*inputs)

    def _computed(self, arrays: Sequence[Integers]) -> Integers | tuple[Integers, ...]:
        """The results for examples (n, *shape). Sums and products of 64 bits are right modulo 2^64,
        and results fit, whatever lies between."""
        count = len(arrays[0])
        if any(len(array) != count for array in arrays):
            raise InvalidArgument("give every input the same number of examples")
        given = []
        for array, node in zip(arrays, self.graph.inputs, strict=True):
            columns = np.empty(node.size, object)
            for k, column in enumerate(array.reshape(count, -1).T):
                columns[k] = column
            given.append(columns.reshape(1, *node.shape))
        with np.errstate(over="ignore"):
            found = computed(self.graph, Columns(None), given)
        results = [
            np.stack([np.broadcast_to(np.int64(x), count) for x in value.flat], -1).reshape(
                count, *port.shape
            )
            for value, port in zip(found, self.manifest.outputs, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def _check_tables(self, inputs: Sequence[object]) -> None:
        for k, (port, values) in enumerate(zip(self.manifest.inputs, inputs, strict=False)):
            listed = f"list(program.manifest.inputs[{k}].columns)"
            check_columns(port.columns, values, f"the table for {port.name}", listed)

    def explain(self, stage: str) -> str:
        """A stage as text: "trace", the graph, with the range of every array; or "program", what
        client and server have."""
        if stage == "program":
            return str(self._untimed())
        if stage != "trace":
            raise InvalidArgument(f"the stages are trace, program, not {checks.shown(stage)}")
        known = bounds(self.graph, [_bounds_of(port) for port in self.manifest.inputs])
        lines = str(self.graph).splitlines()
        for k, node in enumerate(self.graph, 1):
            ends = known[node.name]
            lines[k] += f"  # from {min(ends.low.flat)} to {max(ends.high.flat)}"
        return "\n".join(lines)

    def alternatives(self) -> NoReturn:
        """Raises Unsupported: there is one plan."""
        raise Unsupported(
            'exact integers have one plan: compile with scheme="ckks" and explain=True for those of CKKS'
        )

    def _untimed(self) -> Summary:
        """The summary without a measurement."""
        return summarised(self.plan, self.choice, "no device", None)

    def verify(self) -> None:
        """Raises InternalError if the plan is not the one that this build makes of the graph."""
        again = self._planned_again()
        if again.manifest.fingerprint != self.manifest.fingerprint:
            raise InternalError("the plan of this program is not that of its graph")

    def _planned_again(self) -> Plan:
        manifest = self.manifest
        outputs = _outputs(self.graph, manifest.inputs, manifest.outputs[0].scale)
        lanes, params = manifest.lanes, manifest.params
        return planned_as(self.graph, manifest.inputs, outputs, manifest.layout, lanes, params)

    def summary(
        self,
        device: str = "auto",
        *,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Summary:
        """The price list: why it computes with exact integers, time and bytes. ``print`` shows it.

        device, threads: of the server, as of discrete.Evaluator. A run is measured there, with keys
            of its own, which are forgotten.
        progress: called after each of these keys, with how many are made and how many there are.
        """
        client = self.client(threads=threads)
        keys = client.evaluation_keys(progress=progress)
        server = self.server(keys, device=device, threads=threads)
        some = client.encrypt(*(port.low.reshape(port.shape) for port in self.manifest.inputs))
        return summarised(self.plan, self.choice, server.evaluator.engine, lambda: server(some))

    def client(
        self,
        *,
        secret: discrete.Client | None = None,
        threads: int | None = None,
        max_bytes: int = MAX_CLIENT_BYTES,
    ) -> Client:
        """A client. It needs the manifest alone: Client(Manifest.from_bytes(..)) is the same
        elsewhere. Arguments as of nn.integers.Client."""
        return Client(self.manifest, secret=secret, threads=threads, max_bytes=max_bytes)

    def server(
        self,
        keys: discrete.EvaluationKeys,
        *,
        device: str = "auto",
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Server:
        """A server with a client's evaluation_keys(), on a deployment of its own.

        device, threads: as of discrete.Evaluator.
        progress: as of nn.Program.server. Nothing is prepared here.
        """
        if not isinstance(keys, discrete.EvaluationKeys):
            raise InvalidArgument(
                f"keys must be discrete.EvaluationKeys, not {type(keys).__name__}{MADE}"
            )
        return self.deploy(device, threads=threads, progress=progress).server(keys)

    def deploy(
        self,
        device: str = "auto",
        *,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Deployment:
        """The program on a device, for the keys of any number of clients:
        ``deployment.server(keys)``.

        device, threads: as of discrete.Evaluator.
        progress: as of nn.Program.deploy. Nothing is prepared here.
        """
        return Deployment(self.graph, self.manifest, device=device, threads=threads)

    def named(self, names: Sequence[Sequence[str]]) -> Program:
        """The program whose clients know the names of the columns of each input."""
        pairs = zip(self.manifest.inputs, names, strict=True)
        inputs = tuple(replace(port, columns=tuple(of)) for port, of in pairs)
        manifest = replace(self.manifest, inputs=inputs)
        return replace(self, plan=replace(self.plan, manifest=manifest))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name} {p.shape}" for p in self.manifest.inputs)
        return f"Program({sizes}, lanes={self.manifest.lanes}, {self.params!r})"

    # --- bytes ------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same program. They hold the weights, and no key."""
        return program_file.to_bytes(
            program_file.ProgramFile(self.graph, self.manifest, self.batch, self.choice)
        )

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
    ) -> Program:
        """What to_bytes wrote. The plan is made again, and clients of the saved program go on
        working.

        security, log2_p_fail: as of nn.integers.Manifest.from_bytes.

        Raises CorruptData, VersionError for a program that this build would make otherwise, and
        LimitExceeded.
        """
        was = program_file.from_bytes(data, security, log2_p_fail)
        found = cls(was.graph, Plan(was.manifest, 0, 0.0), was.batch, was.choice)
        try:
            again = found._planned_again()
        except LimitExceeded:
            raise
        except Unsupported as error:
            raise CorruptData(f"the bytes are no program of exact integers: {error}") from None
        except Error:
            raise VersionError(_OTHER) from None
        if again.manifest.fingerprint != was.manifest.fingerprint:
            raise VersionError(_OTHER)
        return replace(found, plan=again)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        container.save(file, self.to_bytes())

    @classmethod
    def load(
        cls, file: str | os.PathLike[str], *, security: int = 128, log2_p_fail: float = 0.0
    ) -> Program:
        """What save wrote. Arguments as of from_bytes. Raises FileError, and the errors of
        from_bytes."""
        data = container.load(file)
        return cls.from_bytes(data, security=security, log2_p_fail=log2_p_fail)


def _bounds_of(port: Port) -> Bounds:
    shape = (1, *port.shape)
    return Bounds(whole(port.low).reshape(shape), whole(port.high).reshape(shape))


def _outputs(graph: Graph, inputs: Sequence[Port], scale: int) -> list[Port]:
    """The ports of the results. Raises Unsupported for a graph that does not compute whole numbers,
    LimitExceeded for a large one, and RangeExceeded."""
    reason = why_not(graph)
    if reason is not None:
        raise Unsupported(f"exact integers cannot compute this model: {reason}")
    if (amount := work(graph)) > _MOST_WORK:
        raise LimitExceeded(
            f"exact integers compute models of up to {_MOST_WORK:,} sums and products, and this one has {amount:,}: compute on arrays of jali.discrete"
        )
    known = bounds(graph, [_bounds_of(port) for port in inputs])
    return [_output(name, graph[name].shape, known[name], scale) for name in graph.outputs]


def _output(name: str, shape: tuple[int, ...], ends: Bounds, scale: int) -> Port:
    low, high = (side.reshape(-1) for side in (ends.low, ends.high))
    return Port(name, shape, low, high, scale)
