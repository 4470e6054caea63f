"""A program of exact integers on a device, for the keys of any number of clients."""

from __future__ import annotations

from jali import discrete
from jali._core.refusals import Answering
from jali.compiler.integers.server import Server
from jali.compiler.ir.graph import Graph
from jali.errors import InvalidArgument
from jali.program.integers.manifest import Manifest
from jali.program.integers.message import Message

__all__ = ["MADE", "Deployment"]

MADE = ": a client's evaluation_keys() makes them, EvaluationKeys.from_bytes reads bytes"


class Deployment(metaclass=Answering):
    """A program and the device on which it runs. Program.deploy makes it. It holds no secret and no
    client's keys.

    Its methods are also those of nn.Deployment, so that code which serves one kind of program by
    them serves the other. There are no encoded weights, so that there is nothing to prepare.

    device, threads: as of discrete.Evaluator.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> deployment, client = program.deploy(), program.client()
    >>> server = deployment.server(client.evaluation_keys())
    >>> client.decrypt(server(client.encrypt(examples[:1])))
    array([[0, 2, 4]])
    """

    def __init__(
        self,
        graph: Graph,
        manifest: Manifest,
        *,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        self._graph, self._manifest = graph, manifest
        self._engine = discrete.Evaluator(manifest.params, None, device, threads=threads)

    @property
    def manifest(self) -> Manifest:
        """What its clients know of the program."""
        return self._manifest

    def __repr__(self) -> str:
        return f"Deployment({self._manifest.params!r}, device='{self._engine.device}')"

    def keys(self, data: bytes | bytearray | memoryview) -> discrete.EvaluationKeys:
        """The keys that a client sent, from the bytes of evaluation_keys().to_bytes(). Raises the
        errors of discrete.EvaluationKeys.from_bytes."""
        return discrete.EvaluationKeys.from_bytes(data, self._manifest.params)

    def request(self, data: bytes | bytearray | memoryview) -> Message:
        """The request that a client sent, from bytes. Raises the errors of
        nn.integers.Message.request."""
        return Message.request(data, self._manifest)

    def server(self, keys: discrete.EvaluationKeys) -> Server:
        """The server of a client. It takes the time and the memory of the client's keys alone.

        Raises InvalidArgument for anything else, and ParamsMismatch for keys of another program's
        clients.
        """
        if not isinstance(keys, discrete.EvaluationKeys):
            raise InvalidArgument(
                f"keys must be discrete.EvaluationKeys, not {type(keys).__name__}{MADE}"
            )
        return Server(self._graph, self._manifest, self._engine.with_keys(keys))
