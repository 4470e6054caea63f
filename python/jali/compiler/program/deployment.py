"""A program on a device: the model there, once, for the keys of any number of clients."""

from __future__ import annotations

from jali import ckks
from jali._core import checks
from jali._core.refusals import Answering
from jali.compiler.program.server import Server
from jali.compiler.progress import Counted, checked_progress
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import InvalidArgument
from jali.program.manifest import Manifest
from jali.program.message import Message

__all__ = ["MADE", "Deployment", "check_capture"]

MADE = ": a client's evaluation_keys() makes them, EvaluationKeys.from_bytes reads bytes"


class Deployment(metaclass=Answering):
    """The encoded weights of a program in the memory of a device. Program.deploy makes it. It holds
    no secret and no client's keys.

    device, threads: as of ckks.Evaluator.
    trace: whether evaluators keep every operation, for ``jali simulate``. A run that is replayed
        has no operations to keep, so that runs are not captured then.

    May be used from several threads.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> deployment = program.deploy()
    >>> clients = [program.client() for _ in range(2)]
    >>> servers = [deployment.server(client.evaluation_keys()) for client in clients]
    >>> replies = [server(client.encrypt(examples[:1])) for client, server in zip(clients, servers)]
    >>> [bool(abs(c.decrypt(r) - 2 * examples[:1]).max() < 0.01) for c, r in zip(clients, replies)]
    [True, True]
    """

    def __init__(
        self,
        interpreter: Interpreter,
        manifest: Manifest,
        *,
        device: str = "auto",
        threads: int | None = None,
        trace: bool = False,
    ) -> None:
        self._interpreter, self._manifest, self._trace = interpreter, manifest, trace
        self._engine = ckks.Engine(manifest.params, device, threads=threads, trace=trace)

    @property
    def manifest(self) -> Manifest:
        """What its clients know of the program."""
        return self._manifest

    @property
    def engine(self) -> ckks.Engine:
        """What computes: its device, and the memory in use there."""
        return self._engine

    def __repr__(self) -> str:
        return f"Deployment({self._manifest.params!r}, device='{self._engine.device}')"

    def prepare(self, progress: Counted | None = None) -> None:
        """Encodes the weights; Program.deploy has done so.

        progress: called after each matrix, with how many are done and how many there are. If it
            raises, the work ends.
        """
        self._interpreter.prepare(self._engine.with_keys(), checked_progress(progress))

    def keys(self, data: bytes | bytearray | memoryview) -> ckks.EvaluationKeys:
        """The keys that a client sent, from the bytes of evaluation_keys().to_bytes(). Raises the
        errors of ckks.EvaluationKeys.from_bytes."""
        return ckks.EvaluationKeys.from_bytes(data, self._manifest.params)

    def request(self, data: bytes | bytearray | memoryview) -> Message:
        """The request that a client sent, from bytes. Raises the errors of nn.Message.request."""
        return Message.request(data, self._manifest)

    def evaluator(self, keys: ckks.EvaluationKeys) -> ckks.Evaluator:
        """The engine with a client's keys. Raises InvalidArgument for anything else, and
        ParamsMismatch for keys of another program's clients."""
        checks.instance(keys, ckks.EvaluationKeys, "keys", MADE)
        return self._engine.with_keys(keys)

    def server(self, keys: ckks.EvaluationKeys, *, capture: bool | None = None) -> Server:
        """The server of a client. It takes the time and the memory of the client's keys alone.

        capture: as of Server.

        Raises the errors of ``evaluator``, and InvalidArgument for capture=True if runs are traced.
        """
        return self.server_of(self.evaluator(keys), capture)

    def server_of(self, evaluator: ckks.Evaluator, capture: bool | None = None) -> Server:
        """The server of an evaluator of this deployment's engine."""
        if self._trace:
            check_capture(capture)
            capture = False
        return Server(self._interpreter, self._manifest, evaluator, capture=capture)


def check_capture(capture: bool | None) -> None:
    """Raises InvalidArgument if runs that are traced are to be captured."""
    if capture:
        raise InvalidArgument("a run that is replayed cannot be traced: leave out capture=True")
