"""The server of a program of exact integers: the model, and the public keys of a client."""

from __future__ import annotations

from collections.abc import Callable

from jali import discrete
from jali._core.refusals import Answering
from jali._core.run_ends import stop_of
from jali.compiler.integers.run import run
from jali.compiler.ir.graph import Graph
from jali.errors import InvalidArgument
from jali.program.integers.manifest import Manifest
from jali.program.integers.message import Message

__all__ = ["Server"]


class Server(metaclass=Answering):
    """The owner of the model. Program.server() and Deployment.server() make one. It holds no
    secret, and may be used from several threads.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> client = program.client()
    >>> server = program.server(client.evaluation_keys())
    >>> client.decrypt(server(client.encrypt(examples[:1])))
    array([[0, 2, 4]])
    """

    def __init__(self, graph: Graph, manifest: Manifest, evaluator: discrete.Evaluator) -> None:
        self._graph, self._manifest = graph, manifest
        self._evaluator: discrete.Evaluator | None = evaluator

    @property
    def evaluator(self) -> discrete.Evaluator:
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
        """The bytes that this client takes of the device's memory between two runs: its keys. A
        closed server has none."""
        return 0 if self._evaluator is None else self._evaluator.key_bytes

    def close(self) -> None:
        """Lets go of the client's keys. Their memory is free as soon as no run uses them. Every
        other method raises InvalidArgument from then on."""
        self._evaluator = None

    def __repr__(self) -> str:
        at = "closed" if self._evaluator is None else f"device='{self._evaluator.device}'"
        return f"Server({self._manifest.params!r}, {at})"

    def check(self, request: Message) -> None:
        """Raises InvalidArgument for what is no request of a client of this program."""
        if not isinstance(request, Message):
            raise InvalidArgument(
                f"the server takes a Message, not {type(request).__name__}: Message.request reads bytes"
            )
        request.check(self._manifest, is_reply=False)

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
        checkpoint: called before each operation of the model, and ten times a second. If it raises,
            the run ends with that exception. Either leaves the server as it was.
        """
        self.check(request)
        evaluator = self.evaluator
        stop = stop_of(deadline, checkpoint)
        if stop is None:
            return self._reply(evaluator, request, None)
        stop()
        with evaluator.checkpoint(stop):
            return self._reply(evaluator, request, stop)

    def _reply(
        self,
        evaluator: discrete.Evaluator,
        request: Message,
        stop: Callable[[], object] | None,
    ) -> Message:
        manifest, chunks = self._manifest, []
        ranges = [port.range for port in manifest.outputs]
        for chunk in request.chunks:
            inputs = [evaluator.bind(one) for one in chunk]
            outputs = run(self._graph, manifest.layout, inputs, ranges, stop)
            chunks.append(tuple(x.ciphertext for x in outputs))
        fields = request.program, request.examples, request.single
        return Message(*fields, tuple(chunks), is_reply=True)
