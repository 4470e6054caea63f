"""The server of a compiled program: the model, and the public keys of a client."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jali import ckks
from jali._core.refusals import Answering
from jali._core.run_ends import stop_of
from jali.compiler.program.batcher import Batcher
from jali.compiler.program.captured_runs import CapturedRuns, can_capture, in_place
from jali.compiler.runtime.ciphertext_ops import Encrypted
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import InvalidArgument
from jali.program.manifest import Manifest
from jali.program.message import Message

__all__ = ["Server"]


class Server(metaclass=Answering):
    """The owner of the model. Program.server() makes one. It holds no secret, and may be used from
    several threads.

    capture: whether a run is captured for each batch of ciphertexts, and replayed. None stands for
        yes on a GPU whose memory holds all encoded matrices, and no elsewhere.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> client = program.client()
    >>> server = program.server(client.evaluation_keys())
    >>> bool(np.allclose(client.decrypt(server(client.encrypt(examples[:1]))), 2 * examples[:1], atol=0.05))
    True
    """

    def __init__(
        self,
        interpreter: Interpreter,
        manifest: Manifest,
        evaluator: ckks.Evaluator,
        *,
        capture: bool | None = None,
    ) -> None:
        self._interpreter, self._manifest = interpreter, manifest
        self._evaluator: ckks.Evaluator | None = evaluator
        captured = can_capture(interpreter, evaluator) if capture is None else capture
        self._captured_runs = CapturedRuns(interpreter, evaluator, manifest) if captured else None

    @property
    def evaluator(self) -> ckks.Evaluator:
        """What it computes with."""
        if self._evaluator is None:
            raise InvalidArgument(
                "this server is closed: make another one with deployment.server(keys)"
            )
        return self._evaluator

    @property
    def manifest(self) -> Manifest:
        """What its clients know of the program."""
        return self._manifest

    @property
    def nbytes(self) -> int:
        """The bytes that this client takes of the device's memory between two runs: its keys, and
        the arrays that its captured runs keep. A closed server has none.
        """
        evaluator, runs = self._evaluator, self._captured_runs
        if evaluator is None:
            return 0
        return evaluator.key_bytes + (0 if runs is None else runs.nbytes)

    def close(self) -> None:
        """Lets go of the client's keys and captured runs. Their memory is free as soon as no run
        uses them. Every other method raises InvalidArgument from then on.

        >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
        >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
        >>> server = program.server(program.client().evaluation_keys())
        >>> server.close()
        >>> server.nbytes
        0
        """
        self._evaluator = self._captured_runs = None

    def __repr__(self) -> str:
        at = "closed" if self._evaluator is None else f"device='{self._evaluator.device}'"
        return f"Server({self._manifest.params!r}, {at})"

    def batcher(self, *, max_batch: int | None = None) -> Batcher:
        """This server for many requests of one client at once: ``replies =
        server.batcher()(requests)``. See Batcher.

        max_batch: the most ciphertexts side by side, at least 1; None sets no limit.
        """
        return Batcher(self, max_batch)

    def __call__(
        self,
        request: Message,
        *,
        deadline: float | None = None,
        checkpoint: Callable[[], object] | None = None,
    ) -> Message:
        """The encrypted results of encrypted examples.

        deadline: a moment of time.monotonic() by which the run is ended with DeadlineExceeded, if
            it is not done.
        checkpoint: called ten times a second during the run. If it raises, the run ends with that
            exception. Either leaves the server as it was. A run that is replayed on a GPU ends only
            before it begins.
        """
        self.check(request)
        evaluator, runs = self.evaluator, self._captured_runs
        stop = stop_of(deadline, checkpoint)
        if stop is None:
            return self._reply(evaluator, runs, request)
        stop()
        with evaluator.checkpoint(stop):
            return self._reply(evaluator, runs, request)

    def _reply(
        self, evaluator: ckks.Evaluator, runs: CapturedRuns | None, request: Message
    ) -> Message:
        taken = evaluator.bind if runs is None else partial(in_place, evaluator)
        inputs = [tuple(map(taken, array)) for array in request.arrays]
        outputs = self._interpreter(evaluator, *inputs) if runs is None else runs(inputs)
        arrays = tuple(tuple(x.ciphertext for x in output) for output in outputs)
        return Message(request.program, request.examples, request.single, arrays, is_reply=True)

    def check(self, request: Message) -> None:
        """Raises InvalidArgument for what is no request of a client of this program."""
        if not isinstance(request, Message):
            raise InvalidArgument(
                f"the server takes a Message, not {type(request).__name__}: Message.request reads bytes"
            )
        request.check_request(self._manifest)
        for port, array in zip(self._manifest.inputs, request.arrays, strict=True):
            if any(c.level < port.level for c in array):
                raise InvalidArgument(
                    f"{port.name} has to be encrypted at level {port.level}: use this program's client"
                )

    def warm(self, inputs: list[Encrypted]) -> None:
        """Captures the run for this batch if runs are captured, so that the next one takes as long
        as any later one."""
        if self._captured_runs is not None and not self._captured_runs.has(inputs):
            self.outputs(inputs)

    def outputs(self, inputs: list[Encrypted]) -> list[Encrypted]:
        """The outputs for bound inputs; if runs are captured, by the captured run for this batch.
        Its inputs may lie in any memory."""
        if self._captured_runs is None:
            return self._interpreter(self.evaluator, *inputs)
        return self._captured_runs(inputs)
