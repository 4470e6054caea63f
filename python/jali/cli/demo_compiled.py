"""What the demos of compiled programs share: the plan, the prediction, and a run that is
measured."""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import device as devices
from jali import nn
from jali._core.console import bytes_text, counted_text, counter, seconds_text, stages
from jali._core.joined_results import joined
from jali.cli.demo_options import add_common
from jali.cli.parser import Parser
from jali.compiler.ir.folded_ops import Bootstrap
from jali.errors import InvalidArgument, LimitExceeded, WrongDecryption
from jali.nn import Graph, Message
from jali.nn.compile import compile as compile_function
from jali.nn.execute_approximated import expected
from jali.nn.program import Program

__all__ = ["Figures", "Session", "add_options", "free_bytes", "report", "report_plan"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Figures:
    """What a run took. Times are in seconds of wall time.

    predicted_seconds: of the server, for the examples of one ciphertext.
    seconds: for one request, the mean of all. On a GPU the first request, first_seconds, is
        recorded, and sent again.
    predicted_bytes: keys, encoded matrices, those of bootstrapping, too, and arrays in the server's
        memory.
    device_bytes: the most that were in use on the device at once, without what a captured run
        keeps for itself.
    host_bytes: the most that this process had in memory, with the client and the compiler.
    predicted_noise_bits, noise_bits: -log2 of the standard deviation of the noise of the output, in
        units of the largest number that the calibration allows: what the plan says, and what the
        decrypted numbers have beside the model with its approximations.
    refused: examples whose results decryption refused, because they left the ranges of the
        calibration.
    """

    device: str
    params: str
    log_n: int
    log_qp: float
    security: int
    levels: int
    bootstraps: int
    predicted_seconds: float
    predicted_bytes: int
    compile_seconds: float
    keys_seconds: float
    server_seconds: float
    encrypt_seconds: float
    first_seconds: float
    seconds: float
    decrypt_seconds: float
    key_bytes: int
    request_bytes: int
    reply_bytes: int
    device_bytes: int
    host_bytes: int
    predicted_noise_bits: float
    noise_bits: float
    refused: int = 0

    def lines(self) -> list[tuple[str, str]]:
        """Memory and noise, and how many examples have no result, for ``report``."""
        refused = (
            f"{counted_text(self.refused, 'example')}, which left the ranges of the calibration"
        )
        return [
            *([("refused at decryption", refused)] if self.refused else []),
            (
                "memory",
                f"on the device {bytes_text(self.device_bytes)} (predicted {bytes_text(self.predicted_bytes)}); of this process at most "
                f"{bytes_text(self.host_bytes)}",
            ),
            (
                "noise",
                f"{self.noise_bits:.1f} bits below the largest number (predicted {self.predicted_noise_bits:.1f})",
            ),
        ]


def add_options(parser: Parser) -> None:
    """Adds --plan and --program, and the options of every demo."""
    parser.add_argument(
        "--plan", action="store_true", help="print plan, prediction and price list, and end"
    )
    parser.add_argument(
        "--program",
        type=Path,
        metavar="FILE",
        help="keeps the compiled program, and is read if it is there",
    )
    add_common(parser)


def free_bytes() -> int | None:
    """The memory that programs may still take, by Linux; None elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) << 10 if found else None


class Session:
    """A function of arrays from its compilation to decrypted results, with a line for each
    stage."""

    def __init__(
        self,
        function: Callable[..., Any] | Graph,
        example: tuple[Array, ...],
        calibration: tuple[Array, ...] | Callable[[], tuple[Array, ...]],
        options: Namespace,
        **how: Any,
    ) -> None:
        """A program of a function, compiled when it is needed.

        function: a function of arrays, or a graph.
        calibration: a batch for every argument of the function, or a function that makes them.
        how: precision_bits, batch, memory and margin, as of jali.compile.

        Raises LimitExceeded if the server would need more memory than the machine has.
        """
        self._options = options
        self._smaller = "use a larger machine or a GPU" + (
            ", or a smaller --memory" if hasattr(options, "memory") else ", or smaller sizes"
        )
        self.say: Callable[..., None] = (lambda *_: None) if options.json else print
        self._device = devices.resolved(options.device)
        begin = time.perf_counter()
        kept: Path | None = options.program
        is_kept = kept is not None and kept.exists()
        if kept is not None and is_kept:
            self.program = nn.Program.load(kept)
            self._check(example, how)
        else:
            with warnings.catch_warnings():
                # An example of training is a whole set of rows, so that few examples say much.
                warnings.simplefilter("ignore", UserWarning)
                self.program = compile_function(
                    function,
                    example,
                    calibration=calibration() if callable(calibration) else calibration,
                    device=self._device.split(":")[0],
                    progress=stages("compiling"),
                    **how,
                )
            if kept is not None:
                self._keep(kept)
        self.compile_seconds = time.perf_counter() - begin
        params = self.program.params
        graph = self.program.stages["levels"]
        self._bootstraps = sum(isinstance(node.operation, Bootstrap) for node in graph)
        verb = "read" if is_kept else "compiled"
        self.say(f"plan: {params}")
        self.say(
            f"  {len(graph)} operations, {params.depth} levels, {self._bootstraps} arrays bootstrapped; {verb} in "
            f"{seconds_text(self.compile_seconds)}"
        )
        self._check_memory()
        self.summary = one = self.program.summary(
            self._device, threads=options.threads, progress=counter("trial runs, step")
        )
        self._memory = one.device_bytes
        self.say(
            f"predicted on {one.device}: {seconds_text(one.seconds)}, of which bootstrapping {seconds_text(one.bootstrap_seconds)}; "
            f"memory of the server {bytes_text(self._memory)}, of which keys {bytes_text(one.key_bytes_expanded)}"
        )

    def _check_memory(self) -> None:
        """Says what keys and matrices take. Raises LimitExceeded if a CPU has less memory."""
        sizes = self.program.sizes()
        self.say(
            f"memory: keys {bytes_text(sizes.keys_expanded)} in the server and {bytes_text(sizes.keys)} in the client, matrices "
            f"{bytes_text(sizes.matrices)}"
        )
        free = free_bytes() if self._device == "cpu" else None
        needed = sizes.keys_expanded + sizes.keys + sizes.matrices
        if free is not None and needed > free:
            raise LimitExceeded(
                f"client and server together need {bytes_text(needed)} beside their arrays, and this machine has {bytes_text(free)} "
                f"free: {self._smaller}"
            )

    def _keep(self, file: Path) -> None:
        """Saves the program if it is small enough for a file."""
        try:
            self.program.save(file)
        except LimitExceeded as error:
            print(f"the program is not kept: {error}", file=sys.stderr)

    def _check(self, example: tuple[Array, ...], how: Mapping[str, Any]) -> None:
        """Raises InvalidArgument for a program of another size."""
        manifest = self.program.manifest
        shapes = [port.shape for port in manifest.inputs]
        if shapes != [x.shape for x in example] or manifest.lanes != how.get("batch", 1):
            raise InvalidArgument(
                f"{self._options.program} is a program for other sizes: name a new file, or remove it"
            )

    def run(self, *inputs: Array, batch: int | None = None) -> tuple[Array, Figures]:
        """The decrypted results for one example, or a batch, of every argument, and the figures.
        batch: examples a request; None for all.

        If decryption refuses a request, its results are NaN, and the others are not lost. Raises
        WrongDecryption if it refuses all.
        """
        threads, program = self._options.threads, self.program
        laps = [time.perf_counter()]

        def lap() -> float:
            laps.append(time.perf_counter())
            return laps[-1] - laps[-2]

        client = program.client(threads=threads)
        keys = client.evaluation_keys(progress=counter("keys"))
        keys_seconds = lap()
        server = program.server(
            keys, device=self._device, threads=threads, progress=counter("matrices")
        )
        server_seconds = lap()

        def served(request: Message) -> tuple[Message, float]:
            lap()
            reply = server(request)
            server.evaluator.synchronize()
            return reply, lap()

        parts = [inputs]
        if batch is not None:
            starts = range(0, len(inputs[0]), batch)
            parts = [tuple(x[k : k + batch] for x in inputs) for k in starts]
        results: list[Array | None] = []
        seconds: list[float] = []
        for k, part in enumerate(parts):
            lap()
            request = client.encrypt(*part)
            spent = lap()
            if k == 0:
                encrypt_seconds = spent
                self.say(
                    f"client -> server, once: {bytes_text(self.summary.key_bytes_sent)} of public keys, made in "
                    f"{seconds_text(keys_seconds)}; request {bytes_text(self.summary.request_bytes)}, encrypted in "
                    f"{seconds_text(encrypt_seconds)}"
                )
            reply, spent = served(request)
            if k == 0:
                first = spent
            if k == 0 and self._device != "cpu":  # the first request was recorded
                reply, spent = served(request)
            seconds.append(spent)
            lap()
            results.append(None)
            said = ""
            try:
                results[-1] = np.asarray(client.decrypt(reply))  # there is one output
            except WrongDecryption as error:
                said = f", refused: {error}"
                if k + 1 == len(parts) and all(result is None for result in results):
                    raise
            decrypt_seconds = lap()
            if len(parts) > 1:
                self.say(f"  request {k + 1} of {len(parts)}: {seconds_text(seconds[-1])}{said}")
        found = results[0]
        counts = [1 if batch is None else len(part[0]) for part in parts]
        refused = sum(n for n, part in zip(counts, results, strict=True) if part is None)
        if batch is not None:
            known = next(result for result in results if result is not None)
            each = [None if result is None else [result] for result in results]
            found = joined(list(zip(counts, each, strict=True)), [known.shape[1:]])[0]
        assert found is not None  # decryption of the only request raises
        params, one = program.params, self.summary
        counters = server.evaluator.counters()
        figures = Figures(
            device=f"{server.evaluator.engine} ({devices.name(self._device)})",
            params=repr(params),
            log_n=params.log_n,
            log_qp=params.log_qp,
            security=params.security,
            levels=params.depth,
            bootstraps=one.bootstraps,
            predicted_seconds=one.seconds,
            predicted_bytes=self._memory,
            compile_seconds=self.compile_seconds,
            keys_seconds=keys_seconds,
            server_seconds=server_seconds,
            encrypt_seconds=encrypt_seconds,
            first_seconds=first,
            seconds=float(np.mean(seconds)),
            decrypt_seconds=decrypt_seconds,
            key_bytes=one.key_bytes_sent,
            request_bytes=one.request_bytes,
            reply_bytes=one.reply_bytes,
            device_bytes=counters["bytes_peak"],
            host_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            predicted_noise_bits=program.manifest.demand.noise_bits[0],
            noise_bits=_noise_bits(program, inputs, found),
            refused=refused,
        )
        return found, figures


def _noise_bits(program: Program, inputs: tuple[Array, ...], found: Array) -> float:
    """-log2 of the root mean square of the noise in decrypted numbers of the program's one output,
    without those that were refused."""
    ports, stages = program.manifest.inputs, program.stages
    examples = [np.reshape(x, (-1, *port.shape)) for x, port in zip(inputs, ports, strict=True)]
    (want,) = expected(stages["simplify"], stages["approximate"], examples)
    (name,) = stages["levels"].outputs
    off = found.reshape(len(want), -1) - want.reshape(len(want), -1)
    noise = off / stages["levels"][name].scaling.radius
    return float(-np.log2(np.sqrt(np.nanmean(np.square(noise)))))


def report(result: dict[str, Any], lines: list[tuple[str, str]], options: Namespace) -> None:
    """Prints one JSON object, or lines of a name and a value."""
    if options.json:
        print(json.dumps(result))
        return
    print()
    for name, value in lines:
        print(f"  {name:<34}{value}")


def report_plan(
    session: Session, about: Mapping[str, Any], lines: list[tuple[str, str]], options: Namespace
) -> None:
    """What --plan prints: the price list and the lines, or one JSON object."""
    session.say(str(session.summary))
    plan = {"compile_seconds": session.compile_seconds, **asdict(session.summary)}
    report({**about, **plan}, lines, options)
