"""The owner of the model, who has the program and public keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jali import tfhe
from jali._core.refusals import Answering
from jali._core.run_ends import stop_of
from jali._jali.tfhe import EvaluationKeys
from jali.errors import InvalidArgument
from jali.tfhe.trees.manifest import Manifest
from jali.tfhe.trees.message import Message

if TYPE_CHECKING:
    from jali.tfhe.trees.program import Program

__all__ = ["Server"]


class Server(metaclass=Answering):
    """The owner of the model. Program.server() and Deployment.server() make one. It holds no
    secret, and may be used from several threads.

    progress: called while the keys are prepared for the device.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> client = program.client()
    >>> server = program.server(client.evaluation_keys())
    >>> client.labels(client.decrypt(server(client.encrypt(rows[:1]))))
    array([0])
    """

    def __init__(
        self,
        program: Program,
        keys: EvaluationKeys,
        *,
        device: str = "auto",
        threads: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        self._program = program
        self._evaluator: tfhe.Evaluator | None = tfhe.Evaluator(
            program.params, keys, device, threads=threads, progress=progress
        )

    @property
    def evaluator(self) -> tfhe.Evaluator:
        """What it computes with."""
        if self._evaluator is None:
            raise InvalidArgument(
                "this server is closed: make another one with deployment.server(keys)"
            )
        return self._evaluator

    @property
    def manifest(self) -> Manifest:
        """What its clients know of the program."""
        return self._program.manifest

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
        at = "closed" if self._evaluator is None else f"engine='{self._evaluator.engine}'"
        return f"Server({self._program.params!r}, {at})"

    def check(self, request: Message) -> None:
        """Raises InvalidArgument for what is no request of a client of this program."""
        if not isinstance(request, Message):
            raise InvalidArgument(
                f"the server takes a Message, not {type(request).__name__}: Message.request reads bytes"
            )
        request.check(self.manifest, is_reply=False)

    def __call__(
        self,
        request: Message,
        *,
        deadline: float | None = None,
        checkpoint: Callable[[], object] | None = None,
    ) -> Message:
        """The encrypted results of encrypted rows.

        deadline: a moment of time.monotonic() by which the run is ended with DeadlineExceeded, if
            it is not done.
        checkpoint: called before each wave of look-ups. If it raises, the run ends with that
            exception. Either leaves the server as it was.
        """
        stop = stop_of(deadline, checkpoint)
        return self.run(request, self.read(request), stop)

    def read(self, request: Message) -> list[tfhe.EncryptedArray]:
        """The answers of a request that the model uses, in the device's memory: (rows, answers)
        for each chunk."""
        self.check(request)
        evaluator = self.evaluator
        return [self._read(evaluator, chunk) for chunk in request.chunks]

    def run(
        self,
        request: Message,
        answers: list[tfhe.EncryptedArray],
        stop: Callable[[], object] | None = None,
    ) -> Message:
        """The reply to a request whose answers were read. stop: called before each wave of
        look-ups; if it raises, the run ends."""
        circuit, evaluator = self._program.plan.circuit, self.evaluator
        chunks = tuple((circuit.run(evaluator, one, stop).ciphertext,) for one in answers)
        return Message(request.program, request.examples, request.single, chunks, is_reply=True)

    def _read(
        self, evaluator: tfhe.Evaluator, chunk: tuple[tfhe.Ciphertext, ...]
    ) -> tfhe.EncryptedArray:
        place, begin, parts = set(self._program.used), 0, []
        columns: list[int] = []
        for one, width in zip(chunk, self.manifest.parts, strict=True):
            here = range(begin, begin + width)
            if not place.isdisjoint(here):
                parts.append(evaluator.bind(one))
                columns += here
            begin += width
        given = parts[0] if len(parts) == 1 else evaluator.concatenate(parts, axis=1)
        where = {k: at for at, k in enumerate(columns)}
        order = np.array([where[k] for k in self._program.used])
        rows, width = given.shape
        taken: tfhe.EncryptedArray = given._taken(np.arange(rows)[:, None] * width + order)
        return taken
