"""A compiled program: what makes its client and its server, and what it costs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali import device as devices
from jali._core import checks
from jali._core.columns import check_columns
from jali._core.console import counted_text
from jali._core.refusals import Answering
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.keys import key_sizes
from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.frontends.answers import Kept
from jali.compiler.ir.execute import check_alike, check_count, checked_examples, execute
from jali.compiler.ir.folded_ops import Errors
from jali.compiler.ir.graph import Array, Graph, Shape
from jali.compiler.layout.lowered_ops import conjugated
from jali.compiler.passes.approximate import approximated, promised
from jali.compiler.passes.execute_approximated import expected
from jali.compiler.passes.fold import fold
from jali.compiler.passes.levels import levels_of
from jali.compiler.passes.limits import MOST_WEIGHT, refusing_overflow, too_large
from jali.compiler.passes.simplify import Changes, changed
from jali.compiler.pipeline import lowered_as
from jali.compiler.planning.bootstrap_placement import verify
from jali.compiler.planning.plan import Plan
from jali.compiler.program import program_file
from jali.compiler.program.alternatives import Alternatives
from jali.compiler.program.deployment import MADE, Deployment, check_capture
from jali.compiler.program.plot import plotted
from jali.compiler.program.ports import manifest_of
from jali.compiler.program.report import Summary, summarised
from jali.compiler.program.server import Server
from jali.compiler.program.stage_texts import parameters_text, program_text, report_text
from jali.compiler.program.uploads import Uploads, uploads_of
from jali.compiler.program.verifiers import (
    GRAPHS,
    verify_costs,
    verify_graph,
    verify_levels,
    verify_manifest,
)
from jali.compiler.progress import checked_progress
from jali.compiler.runtime.interpreter import Interpreter
from jali.compiler.runtime.storage import Kind
from jali.errors import CorruptData, InvalidArgument, VersionError
from jali.program import container
from jali.program.client import Client
from jali.program.demand import MAX_CLIENT_BYTES
from jali.program.manifest import Manifest

if TYPE_CHECKING:
    from jali.compiler.passes.fitted_relus import Fitted

__all__ = ["Program", "Sizes"]

STAGES = (*GRAPHS, "parameters", "report", "program")
_AT_ONCE = 1 << 26  # numbers of examples that are computed in the clear at a time
_OTHER = "the program was compiled by another version of Jali, which planned it otherwise: compile the model again"


@dataclass(frozen=True)
class Sizes:
    """The bytes of a program's keys and matrices.

    keys: as the client makes them.
    keys_sent: in a message.
    keys_expanded: in the server's memory.
    matrices: of those that stay in the memory of its device.
    kinds: of the matrices of every kind of jali.compiler.runtime.storage; those of "streamed" lie
        in the memory of the host.
    """

    keys: int
    keys_sent: int
    keys_expanded: int
    matrices: int
    kinds: Mapping[Kind, int]


@dataclass(frozen=True, eq=False)
class Program(metaclass=Answering):
    """What jali.compile returns.

    stages: the graph after every stage.
    memory: bytes for matrices.
    device: "cpu" or "cuda", for which it was planned.
    precision_bits: what was asked for.
    error: of every function, in units of its largest value; Errors if some have their own.
    costs: of operations and bootstrappings, by which levels were chosen.
    layout_costs: of operations, by which layouts were chosen.
    claims: see Interpreter.
    changes: to the traced graph, operations that became cheaper ones.
    answers: if the precision followed from the answers of a classifier in the calibration, how many
        of them may change, and how many there are.
    fitted: what polynomials in the place of ReLUs change; None without them.
    others: what alternatives gives; files do not hold it.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> bool(np.allclose(program.clear(examples), 2 * examples))
    True
    """

    stages: Mapping[str, Graph]
    manifest: Manifest
    memory: float
    precision_bits: float
    error: float
    costs: Costs
    layout_costs: LayoutCosts
    claims: Mapping[str, float]
    device: str = "cpu"
    changes: Changes = field(default_factory=dict)
    answers: Kept | None = None
    fitted: Fitted | None = None
    others: Alternatives | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        stages: Mapping[str, Graph],
        found: Plan,
        precision_bits: float,
        error: float,
        device: str = "cpu",
        changes: Changes | None = None,
        answers: Kept | None = None,
    ) -> Program:
        """The program of the stages up to approximation and of the plan that was made for them."""
        params, lanes = found.interpreter.params, found.interpreter.lanes
        graph, memory = found.stages["levels"], found.interpreter.memory
        manifest = manifest_of(graph, _shapes(stages), params, lanes, found.demand)
        made = {**stages, **found.stages}
        claims = found.interpreter.claims
        asked, chosen_by = (memory, precision_bits, error), (found.costs, found.layout_costs)
        return cls(made, manifest, *asked, *chosen_by, claims, device, changes or {}, answers)

    @property
    def params(self) -> ckks.Params:
        """The parameters that were chosen."""
        return self.manifest.params

    def explain(self, stage: str) -> str:
        """A stage as text: the graph after trace, simplify, fold, calibrate, approximate, layout,
        lower and levels; parameters, with the keys; report, what each node of the plan costs; and
        program, what client and server have."""
        manifest = self.manifest
        match stage:
            case "parameters":
                return parameters_text(manifest.params, manifest.demand)
            case "report":
                return report_text(self._interpreter(), self.costs)
            case "program":
                return program_text(
                    manifest, self._interpreter(), self.precision_bits, self.answers
                )
        if stage not in self.stages:
            raise InvalidArgument(f"the stages are {', '.join(STAGES)}, not {checks.shown(stage)}")
        return str(self.stages[stage])

    def verify(self) -> None:
        """Raises InternalError, which names the stage and the node, if a stage of this program
        breaks one of its rules. It takes a fraction of the time of compiling.
        """
        for stage in GRAPHS:
            verify_graph(stage, self.stages[stage])
        levels = self.stages["levels"]
        verify_levels(levels, self.params)
        verify_costs(levels, self.costs)
        verify_manifest(self.manifest, levels)

    def clear(self, *inputs: npt.ArrayLike) -> Array | tuple[Array, ...]:
        """What the model itself gives for a batch of examples, in the clear. It takes tables as
        Client.encrypt does."""
        given = self._sent(inputs)
        self._check_tables(given)
        results = self._results(execute(self.stages["trace"], *given))
        return results[0] if len(results) == 1 else tuple(results)

    def simulate(
        self, *inputs: npt.ArrayLike, rng: np.random.Generator | int | None = None
    ) -> Array | tuple[Array, ...]:
        """What decryption would give for a batch of examples, in the clear: with the
        approximations, and noise of the size that is estimated for each output. It takes seconds
        for a test set, of which it tells the accuracy to expect. Numbers that a client would not
        encrypt, because they lie outside of the calibrated range, are warned of, and so are results
        that decryption would refuse, and results that it would return although they are off by more
        than was asked for, because numbers within the model left their ranges, or were compared
        with others that are nearly equal.

        rng: what draws the noise, or a seed for it.
        """
        stages, generator = self.stages, _generator(rng)
        given = self._sent(inputs)
        graph = stages["approximate"]
        check_count(graph, given)
        self._check_tables(given)
        arrays = [checked_examples(n, x) for n, x in zip(graph.inputs, given, strict=True)]
        check_alike(arrays)
        for port, x in zip(self.manifest.inputs, arrays, strict=True):
            outside = port.outside(x.reshape(len(x), -1))
            if outside is not None:
                warnings.warn(
                    f"a client refuses these numbers: {outside}", UserWarning, stacklevel=2
                )
        step = max(1, _AT_ONCE // sum(node.size for node in stages["trace"]))
        parts = [[x[k : k + step] for x in arrays] for k in range(0, len(arrays[0]), step)]
        found = [expected(stages["simplify"], graph, part) for part in parts]
        exact = [execute(stages["trace"], *part) for part in parts]
        proven = all(node.range.proven for node in stages["calibrate"])
        results = []
        for k, (port, noise) in enumerate(
            zip(self.manifest.outputs, self.manifest.demand.noise_bits, strict=True)
        ):
            whole, right = (np.concatenate([values[k] for values in of]) for of in (found, exact))
            flat = (whole.reshape(len(whole), port.radius.size) - port.centre) / port.radius
            noisy = flat + generator.normal(0, 2.0**-noise, flat.shape)
            refused = port.refused(noisy, noise)
            bound = 2.0**-self.precision_bits * graph[graph.outputs[k]].scaling.largest
            off = np.abs(whole - right).reshape(len(whole), -1).max(axis=1, initial=0.0)
            for examples, what in (
                (refused, "decryption refuses the results of"),
                (
                    ~refused & ~(off <= bound),
                    "decryption returns, although they are off by more than was asked for, the results of",
                ),
            ):
                if examples.any():
                    _warn_of_ranges(what, examples, port.name, proven)
            results.append((noisy * port.radius + port.centre).reshape(whole.shape))
        results = self._results(results)
        return results[0] if len(results) == 1 else tuple(results)

    def _sent(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """What a client encrypts of these inputs of the model."""
        parts = self.manifest.parts
        return inputs if parts is None or parts.before is None else parts.sent(inputs)[0]

    def _results(self, outputs: list[Array]) -> list[Any]:
        """What a client computes of what it decrypts."""
        parts = self.manifest.parts
        return outputs if parts is None else parts.results(outputs, check=False)

    def _check_tables(self, inputs: Sequence[object]) -> None:
        for k, (port, values) in enumerate(zip(self.manifest.inputs, inputs, strict=False)):
            listed = f"list(program.manifest.inputs[{k}].columns)"
            check_columns(port.columns, values, f"the table for {port.name}", listed)

    def summary(
        self,
        device: str = "auto",
        *,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Summary:
        """The price list: time, bytes, levels, noise and assumed ranges, by layer and in all.
        ``print`` shows it as a table.

        device: where the server will compute; it must be one of this machine. Times are those of
            trial runs there, with zeros in the place of keys. Keys are made only if rotations are
            composed of others, as with upload=, to find out what that takes.
        progress: called after each matrix is encoded and after each run, with how many of both are
            done and how many there are. If it raises, the work ends.
        """
        told = checked_progress(progress)
        interpreter = self._interpreter(device)
        how = (self.precision_bits, device, threads, told, self.costs)
        summary = summarised(interpreter, self.manifest, *how)
        parts = self.manifest.parts
        fitted = () if self.fitted is None else (f"{self.fitted}",)
        client = () if parts is None else parts.texts
        return replace(summary, answers=self.answers, fitted=fitted, client=client)

    def alternatives(self) -> Alternatives:
        """Three to five programs of the model, this one first, with time, keys, memory and
        precision: fewer and more bits of precision, as many examples as a ciphertext has room for,
        and half of the memory. Each was compiled, and is there to be taken.

        Raises InvalidArgument unless the program was compiled with explain=True.

        >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
        >>> how = {"calibration": examples, "explain": True}
        >>> plans = jali.compile(lambda x: 2 * x, examples[0], **how).alternatives()
        >>> 3 <= len(plans) <= 5, plans[0].examples
        (True, 1)
        """
        if self.others is None:
            raise InvalidArgument(
                "this program was compiled alone, or comes from a file: jali.compile(.., explain=True) tries others beside it"
            )
        return self.others

    def sizes(self) -> Sizes:
        """The bytes of keys and matrices, which are counted and need no trial run."""
        keys, interpreter = key_sizes(self.params, self.manifest.demand), self._interpreter()
        held = sum(interpreter.held_bytes.values())
        return Sizes(keys.made, keys.sent, keys.expanded, held, interpreter.bytes_of)

    def uploads(self) -> Uploads:
        """What a client sends once and what fewer keys cost in time, as this plan counts both: a
        few sets of keys, from the fewest bytes to one key for every rotation, with this program's
        own among them. ``print`` shows a table, and ``plot`` draws the curve.

        compile(.., upload=) plans with the keys of a number of bytes. It may choose other
        parameters, for the noise that composed rotations add.

        >>> examples = np.linspace(-1, 1, 160).reshape(10, 16)
        >>> weights = np.cos(np.arange(64).reshape(16, 4))
        >>> program = jali.compile(lambda x: x @ weights, examples[0], calibration=examples)
        >>> found = program.uploads()
        >>> found[0].sent_bytes < found[-1].sent_bytes == program.sizes().keys_sent
        True
        >>> found[0].relative_time > found[-1].relative_time == 1.0
        True
        """
        return uploads_of(self._interpreter(), self.manifest.demand, self.costs)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A picture of the plan: the level of every array, where it is bootstrapped, and what each
        costs, by the costs that the plan was made with. It needs matplotlib.

        path: where to save it, as .png, .svg or .pdf. Returns the figure of matplotlib.
        """
        return plotted(self.stages["levels"], self.params, self.costs, path)

    def client(
        self,
        *,
        secret: ckks.Client | None = None,
        threads: int | None = None,
        max_bytes: int = MAX_CLIENT_BYTES,
    ) -> Client:
        """A client. It needs the manifest alone: Client(Manifest.from_bytes(..)) is the same
        elsewhere. Arguments as of nn.Client."""
        return Client(self.manifest, secret=secret, threads=threads, max_bytes=max_bytes)

    def server(
        self,
        keys: ckks.EvaluationKeys,
        *,
        device: str = "auto",
        threads: int | None = None,
        capture: bool | None = None,
        trace: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Server:
        """A server with a client's evaluation_keys(), on a deployment of its own. Arguments as of
        deploy and nn.Server."""
        told = checked_progress(progress)
        if trace:
            check_capture(capture)
        checks.instance(keys, ckks.EvaluationKeys, "keys", MADE)
        deployment = self._deployment(device, threads, trace)
        evaluator = deployment.evaluator(keys)  # which refuses keys before there is any work
        deployment.prepare(told)
        return deployment.server_of(evaluator, capture)

    def map(
        self,
        *inputs: npt.ArrayLike,
        devices: Sequence[str] = ("auto",),
        client: Client | None = None,
        threads: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Array | tuple[Array, ...]:
        """The decrypted results of many examples, for the owner of data and devices alike: they are
        encrypted, computed on all devices and decrypted here.

        inputs: an array of examples (n, *shape) for each input.
        devices: a name for each device, such as "cuda:0" and "cuda:1"; a name may occur twice.
        client: whose keys are used; None makes one.
        threads: of each device that is a CPU, as of nn.Deployment.
        folder: where results are kept as they come, decrypted, readable by this user alone. The
            next call with the same program, inputs and folder computes only what is missing. Remove
            it when the results are not needed.
        progress: called with the examples that are done, and all. If it raises, the work ends, and
            what is kept stays.

        Results that decryption refuses are NaN, which a warning tells, and are not kept: integers
        are floats then. If a device fails, the others compute what it had.

        Raises InvalidArgument before any work for inputs that a client refuses, and for a folder
        with anything else in it; FileError if another process uses the folder; and what the last
        device failed with, if all did.

        >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
        >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
        >>> results = program.map(examples, devices=["cpu"])
        >>> bool(np.allclose(results, 2 * examples, atol=0.05))
        True
        """
        from jali.compiler.program.mapping import mapped

        told = checked_progress(progress) or (lambda done, of: None)
        where = None if folder is None else Path(folder)
        results = mapped(self, inputs, devices, client, threads, where, told)
        return results[0] if len(results) == 1 else tuple(results)

    def deploy(
        self,
        device: str = "auto",
        *,
        threads: int | None = None,
        trace: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Deployment:
        """The model on a device, once: ``deployment.server(keys)`` is then cheap for each client.

        device, threads, trace: as of nn.Deployment.
        progress: called after each matrix is encoded, with how many are done and how many there
            are. If it raises, the work ends.
        """
        told = checked_progress(progress)
        deployment = self._deployment(device, threads, trace)
        deployment.prepare(told)
        return deployment

    def _deployment(self, device: str, threads: int | None, trace: bool) -> Deployment:
        how: dict[str, Any] = {"device": device, "threads": threads, "trace": trace}
        return Deployment(self._interpreter(device), self.manifest, **how)

    def _interpreter(self, device: str | None = None) -> Interpreter:
        """One for each deployment, because encoded matrices lie in the memory of its device.

        device: None stands for the kind for which it was planned. Only a GPU has memory apart from
            the host's.
        """
        streams = (self.device if device is None else devices.resolved(device)).startswith("cuda")
        return Interpreter(
            self.stages["levels"],
            self.params,
            self.manifest.lanes,
            self.memory,
            self.claims,
            costs=self.costs,
            streams=streams,
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name} {p.shape}" for p in self.manifest.inputs)
        return f"Program({sizes}, lanes={self.manifest.lanes}, {self.params!r})"

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same program. They hold the weights, and no key."""
        return program_file.to_bytes(
            program_file.ProgramFile(
                self.stages["trace"],
                self.stages["calibrate"],
                self.manifest,
                self.precision_bits,
                self.error,
                self.memory,
                levels_of(self.stages["levels"]),
                self.costs,
                self.layout_costs,
                self.claims,
                self.device,
                self.changes,
                self.answers,
                self.fitted,
            )
        )

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        max_entries: int | None = None,
        log2_p_fail: float = 0.0,
    ) -> Program:
        """What to_bytes wrote. Matrices and polynomials are made again from the weights; ranges,
        scales, levels, parameters and keys are those of the file, so that clients and their keys go
        on working.

        security, log2_p_fail: what is demanded of the parameters, see Params.from_bytes.
        max_entries: how many numbers the matrices may have that are made from the weights, 24 bytes
            each. None stands for 33 million or, if that is more, 1,024 for each byte of the file.

        Raises CorruptData, VersionError for a program that this build would make otherwise, and
        LimitExceeded.
        """
        was = program_file.from_bytes(data, security, max_entries, log2_p_fail)
        with refusing_overflow():
            again = cls._made_again(was)
        if not again.manifest.is_like(was.manifest):
            raise VersionError(_OTHER)
        return replace(again, manifest=was.manifest)

    @classmethod
    def _made_again(cls, was: program_file.ProgramFile) -> Program:
        simple = changed(was.graph, was.changes)
        stages = {"trace": was.graph, "simplify": simple, "fold": fold(simple)}
        large = too_large(stages["fold"], MOST_WEIGHT)
        if large is not None:
            raise CorruptData(f"the bytes are no program: {large} are above {MOST_WEIGHT:.0e}")
        stages["calibrate"] = was.calibrated(stages["fold"])
        names = {node.name for node in stages["calibrate"]}
        if isinstance(was.error, Errors) and not was.error.own.keys() <= names:
            raise CorruptData("the bytes are no program: errors of functions that it does not have")
        functions = approximated(stages["calibrate"], was.error)
        stages["approximate"] = promised(functions, was.precision_bits)
        params, lanes = was.manifest.params, was.manifest.lanes
        try:
            made = lowered_as(stages["approximate"], params, lanes, was.layout_costs, was.levels)
            verify(made["levels"], params)
            if was.manifest.demand.conjugation < conjugated(made["levels"]):
                raise VersionError(_OTHER)
        except InvalidArgument:
            raise VersionError(_OTHER) from None
        interpreter = Interpreter(
            made["levels"], params, lanes, was.memory, was.claims, costs=was.costs
        )
        found = Plan(made, interpreter, was.manifest.demand, was.costs, was.layout_costs)
        again = cls.of(stages, found, was.precision_bits, was.error, was.device, was.changes)
        return replace(again, answers=was.answers, fitted=was.fitted)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        container.save(file, self.to_bytes())

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str],
        *,
        security: int = 128,
        max_entries: int | None = None,
        log2_p_fail: float = 0.0,
    ) -> Program:
        """What save wrote. Arguments as of from_bytes. Raises FileError, and the errors of
        from_bytes."""
        data = container.load(file)
        return cls.from_bytes(
            data, security=security, max_entries=max_entries, log2_p_fail=log2_p_fail
        )


def _generator(rng: object) -> np.random.Generator:
    if rng is None or isinstance(rng, np.random.Generator):
        return rng or np.random.default_rng()
    return np.random.default_rng(checks.whole(rng, 0, "rng is a generator of NumPy or a seed"))


def _warn_of_ranges(what: str, examples: npt.NDArray[np.bool_], output: str, proven: bool) -> None:
    """Warns of examples that led out of ranges on the way.

    what: what becomes of their results.
    proven: whether no input leads out of a range, so that results are imprecise at most.
    """
    text = f"{what} {counted_text(int(examples.sum()), 'example')} of {len(examples)} ({output}), first of example {int(examples.argmax())}"
    if proven:
        text += (
            ": no number left its range, but these examples are unlike the calibration, for whose results the precision holds. Compile with examples like these in "
            "calibration=, or with more precision_bits"
        )
    else:
        text += (
            ", and of those in the same request: numbers left the ranges of the calibration on the way, or were compared with others that are nearly "
            "equal, and these results mean nothing. Compile with examples like these in calibration=, with a larger margin=, or with "
            'ranges="proven", which refuses comparisons'
        )
    warnings.warn(text, UserWarning, stacklevel=3)


def _shapes(stages: Mapping[str, Graph]) -> list[Shape]:
    """The shapes of the outputs in the model; folding leaves out reshapes."""
    return [stages["trace"][name].shape for name in stages["trace"].outputs]
