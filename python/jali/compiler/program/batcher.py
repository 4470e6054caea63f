"""Many requests at once: the ciphertexts of a client's requests side by side in one batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from jali._core import checks
from jali._core.capture import BatchPoint
from jali._core.log import logger
from jali._core.refusals import Answering
from jali.ckks import EncryptedArray, Evaluator
from jali.compiler.ciphertexts import ciphertext_of, stack, take
from jali.compiler.runtime.ciphertext_ops import Encrypted, at_level
from jali.errors import InvalidArgument, OutOfMemory, Unsupported
from jali.program.manifest import Manifest
from jali.program.message import Message

__all__ = ["Batcher"]

_WORTH = 0.97  # part of the time for a ciphertext that the next batch must not exceed

Chunk = tuple[Encrypted, ...]  # for every input, its ciphertexts, each of one vector


class Serving(Protocol):
    """What a batcher needs of a server; see Server for what each of these is."""

    @property
    def evaluator(self) -> Evaluator: ...

    @property
    def manifest(self) -> Manifest: ...

    def check(self, request: Message) -> None: ...

    def warm(self, inputs: list[Encrypted]) -> None: ...

    def outputs(self, inputs: list[Encrypted]) -> list[Encrypted]: ...


class Batcher(metaclass=Answering):
    """A server for many requests of one client at once. Server.batcher makes it.

    Requests may hold any numbers of examples. Their ciphertexts lie side by side in batches of 1,
    2, 4, ..: the batch grows on the work itself as long as there is memory and the time for each
    ciphertext falls, and the best is kept for later calls. A batch that is refused for its memory
    (OutOfMemory) or its size (Unsupported) is halved. Threads take turns.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> client = program.client()
    >>> batcher = program.server(client.evaluation_keys()).batcher(max_batch=1)
    >>> [reply] = batcher([client.encrypt(examples[:1])])
    >>> bool(np.allclose(client.decrypt(reply), 2 * examples[:1], atol=0.05))
    True
    """

    def __init__(self, server: Serving, max_batch: int | None = None) -> None:
        self._most = (
            1 << 20
            if max_batch is None
            else checks.whole(max_batch, 1, "max_batch must be at least 1, or None")
        )
        self._server, self._lock = server, threading.Lock()
        self._points: dict[int, BatchPoint] = {}
        self._batch, self._settled = 0, False

    def __repr__(self) -> str:
        return f"Batcher({self._server!r}, batch={self.batch})"

    @property
    def batch(self) -> int:
        """The batch in use, or 0 before the first call."""
        return self._batch

    @property
    def curve(self) -> list[BatchPoint]:
        """The measurements so far, one for each batch."""
        return list(self._points.values())

    def __call__(self, requests: Iterable[Message]) -> list[Message]:
        """The encrypted results of every request, in order."""
        if isinstance(requests, Message):
            raise InvalidArgument("a batcher takes a list of requests: give [request] for one")
        messages = list(requests)
        for message in messages:
            self._server.check(message)
        with self._lock:
            chunks = [chunk for message in messages for chunk in self._chunks(message)]
            results = self._results(chunks)
        replies, start = [], 0
        for message in messages:
            end = start + message.arrays[0][0].batch
            arrays = self._joined(results[start:end])
            found = tuple(tuple(x.ciphertext for x in array) for array in arrays)
            replies.append(
                Message(message.program, message.examples, message.single, found, is_reply=True)
            )
            start = end
        return replies

    def _chunks(self, message: Message) -> list[Chunk]:
        """The vectors of a request one by one, at the level that the program takes them at."""
        evaluator = self._server.evaluator
        inputs = [
            [at_level(evaluator, evaluator.bind(c), port.level) for c in array]
            for port, array in zip(self._server.manifest.inputs, message.arrays, strict=True)
        ]
        if inputs[0][0].ciphertext.batch == 1:
            return [tuple(map(tuple, inputs))]
        return [
            tuple(tuple(self._taken(x, k) for x in array) for array in inputs)
            for k in range(inputs[0][0].ciphertext.batch)
        ]

    def _taken(self, x: EncryptedArray, k: int) -> EncryptedArray:
        return take(self._server.evaluator, ciphertext_of(x), [k])

    def _joined(self, chunks: Sequence[Chunk]) -> Chunk:
        """The arrays of several chunks, with the vectors of all of them, and an axis for these also
        if there is one chunk."""
        evaluator = self._server.evaluator
        return tuple(
            tuple(
                stack(evaluator, [ciphertext_of(x) for x in same])
                for same in zip(*arrays, strict=True)
            )
            for arrays in zip(*chunks, strict=True)
        )

    def _results(self, chunks: list[Chunk]) -> list[Chunk]:
        results: list[Chunk] = []
        while len(results) < len(chunks):
            left = len(chunks) - len(results)
            size = min(self._next(), 1 << (left.bit_length() - 1))
            try:
                results += self._run(chunks[len(results) : len(results) + size])
            except (OutOfMemory, Unsupported):
                if size == 1:
                    raise
                self._most = size // 2
                logger.info(
                    "a batch of %d has no memory, or is too large: batches of up to %d from now on",
                    size,
                    self._most,
                )
                self._batch, self._settled = min(self._batch or 1, self._most), True
        return results

    def _next(self) -> int:
        """The batch that is tried next, or the best one."""
        if self._settled or not self._batch:
            return max(1, min(self._batch, self._most))
        return min(2 * self._batch, self._most)

    def _run(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        size, evaluator = len(chunks), self._server.evaluator
        inputs = self._joined(chunks)
        new = not self._settled and size not in self._points
        if new:
            self._server.warm(list(inputs))
        start = time.perf_counter()
        outputs = tuple(self._server.outputs(list(inputs)))
        for x in (x for array in outputs for x in array):
            x._settled()
        evaluator.synchronize()
        each = (time.perf_counter() - start) / size
        if new:
            self._measured(size, each, sum(x.ciphertext.nbytes for y in outputs for x in y))
        if size == 1:
            return [outputs]
        return [
            tuple(tuple(self._taken(x, k) for x in array) for array in outputs) for k in range(size)
        ]

    def _measured(self, size: int, each: float, nbytes: int) -> None:
        before = self._points.get(self._batch)
        self._points[size] = BatchPoint(size, each, nbytes)
        if before is None or each < _WORTH * before.seconds:
            self._batch = size
        else:
            self._settled = True
        if 2 * size > self._most:
            self._settled = True
