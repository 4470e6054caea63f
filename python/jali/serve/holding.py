"""What a worker holds, and what it does with it: programs on a device, and servers of clients."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jali import nn
from jali._core.log import logger
from jali._core.run_ends import stop_of
from jali.errors import (
    DeadlineExceeded,
    DeviceLost,
    Error,
    InvalidArgument,
    KeyMismatch,
    KeyMissing,
    OutOfMemory,
)
from jali.serve.programs import opened
from jali.serve.wanted import wanted

__all__ = ["Answer", "Held", "Holding", "Stopped"]


class Stopped(Exception):
    """A batch was ended because nobody waits for it any more."""


@dataclass(frozen=True)
class Answer:
    """What became of a request: the bytes of the reply, or the code and the sentence of an error."""

    body: bytes = b""
    code: str = ""
    text: str = ""


@dataclass
class Held:
    """The server of a client.

    key_id: of the secret key of its client.
    batcher: for many of its requests at once; None if there was no need, or its program has none.
    """

    program: str
    key_id: str
    server: Any
    batcher: Any = None


@dataclass
class _Known:
    """A program on the device.

    load: reads a client's keys from a path.
    of_ckks: whether its requests may be computed side by side.
    """

    deployment: Any
    load: Callable[[Any], Any]
    of_ckks: bool


@dataclass
class Holding:
    """The programs of a worker and the keys of clients on its device. It may be used from several
    threads; one of them computes at a time.

    device, threads: as of Program.deploy.
    left: called with the name of keys that left to make room.
    """

    device: str
    threads: int | None
    left: Callable[[str], None]
    programs: dict[str, _Known] = field(default_factory=dict)
    _servers: OrderedDict[str, Held] = field(
        default_factory=OrderedDict
    )  # least recently used first
    _places: dict[str, tuple[str, str]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _running: str = ""

    def add(self, fingerprint: str, data: bytes, *, measure: bool) -> dict[str, float]:
        """Puts a program on the device.

        fingerprint: that its manifest must have.
        data: its bytes.
        measure: whether trial runs say how long it takes, and how much memory a client's keys.

        Returns what was measured: seconds, and key_bytes.
        """
        program = opened(data)
        if program.manifest.fingerprint != fingerprint:
            raise InvalidArgument("the file holds another program than the service began with")
        measured = _measured(program, self.device, self.threads) if measure else {}
        deployment = program.deploy(self.device, threads=self.threads)
        keys = wanted(program.manifest)
        batches = isinstance(program, nn.Program)
        self.programs[fingerprint] = _Known(deployment, keys.load, batches)
        return measured

    @property
    def nbytes(self) -> int:
        """The bytes of clients' keys on the device."""
        with self._lock:
            return sum(held.server.nbytes for held in self._servers.values())

    def load(self, key: str, program: str, path: str, *, keep: bool) -> int:
        """Makes the server of keys, and returns the bytes that it takes of the device.

        key: a name for the keys.
        program: the fingerprint of their program.
        path: of their bytes.
        keep: whether the system should keep the file in its memory.

        Raises the errors of reading keys, and OutOfMemory if there is no room although all others
        left.
        """
        with self._lock:
            self._places[key] = program, path
        known = self.programs[program]
        keys, server = self._with_room(partial(_made, known, path))
        if not keep:
            forget(path)
        with self._lock:
            if key in self._places:  # it may have been evicted meanwhile
                self._servers[key] = Held(program, keys.key_id, server)
        return int(server.nbytes)

    def evict(self, key: str) -> None:
        """Removes keys from the device."""
        with self._lock:
            self._places.pop(key, None)
            held = self._servers.pop(key, None)
        if held is not None:
            held.server.close()

    def run(
        self,
        key: str,
        bodies: Sequence[bytes | str],
        *,
        seconds: float | None,
        stop: threading.Event,
    ) -> list[Answer]:
        """Computes the requests of a client.

        key: the name of its keys.
        bodies: the bytes of each request, or a path to them.
        seconds: after which the run is ended; None: it is not.
        stop: ends the run soon after it is set.

        Returns an answer for each request: one that is damaged fails alone. Raises Stopped, and
        DeviceLost.
        """
        deadline = None if seconds is None else time.monotonic() + seconds

        def ended() -> None:
            if stop.is_set():
                raise Stopped

        check = stop_of(deadline, ended)
        assert check is not None
        with self._lock:
            self._running = key
        try:
            held = self._held(key)
            known = self.programs[held.program]
            answers: list[Answer | None] = []
            requests = []
            for body in bodies:
                found = _read(known, held, body)
                answers.append(found if isinstance(found, Answer) else None)
                if not isinstance(found, Answer):
                    requests.append(found)
            done = iter(self._computed(held, known, requests, check))
            return [next(done) if one is None else one for one in answers]
        except DeviceLost:
            raise
        except Error as error:
            return [_answer_of(error)] * len(bodies)
        finally:
            with self._lock:
                self._running = ""

    def _computed(
        self, held: Held, known: _Known, requests: list[Any], check: Callable[[], object]
    ) -> list[Answer]:
        check()
        if known.of_ckks and len(requests) > 1:
            if held.batcher is None:
                held.batcher = held.server.batcher()
            with held.server.evaluator.checkpoint(check):
                replies = self._with_room(lambda: held.batcher(requests))
            return [Answer(reply.to_bytes()) for reply in replies]
        answers = []
        for request in requests:
            try:
                reply = self._with_room(partial(held.server, request, checkpoint=check))
                answers.append(Answer(reply.to_bytes()))
            except DeviceLost:
                raise
            except Error as error:
                answers.append(_answer_of(error))
        return answers

    def _held(self, key: str) -> Held:
        with self._lock:
            held, place = self._servers.get(key), self._places.get(key)
            if held is not None:
                self._servers.move_to_end(key)
                return held
        if place is None:
            raise KeyMissing("the keys are not on this device: load them first")
        self.load(key, *place, keep=True)  # they left to make room
        return self._held(key)

    def _with_room(self, work: Callable[[], Any]) -> Any:
        """What work gives. While it finds no memory, keys leave that were used longest ago."""
        while True:
            try:
                return work()
            except OutOfMemory:
                if not self._make_room():
                    raise

    def _make_room(self) -> bool:
        with self._lock:
            key = next((one for one in self._servers if one != self._running), None)
            if key is None:
                return False
            held = self._servers.pop(key)
        held.server.close()
        self.left(key)
        return True


def forget(path: str) -> None:
    """Tells the system that a file need not stay in its memory."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError), Path(path).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _made(known: _Known, path: str) -> tuple[Any, Any]:
    """Keys and their server."""
    keys = known.load(path)
    return keys, known.deployment.server(keys)


def _read(known: _Known, held: Held, body: bytes | str) -> Any:
    """A request, or the answer to one that is damaged or another client's."""
    try:
        data = Path(body).read_bytes() if isinstance(body, str) else body
        request = known.deployment.request(data)
        held.server.check(request)
    except Error as error:
        return _answer_of(error)
    except OSError:
        return Answer(code="file", text="the body of the request is gone: send it again")
    groups = request.arrays if known.of_ckks else request.chunks
    if any(one.key_id not in ("", held.key_id) for group in groups for one in group):
        return Answer(
            code=KeyMismatch.code,
            text="the request was encrypted with another secret key than its keys are of: send it with the keys of its client",
        )
    return request


def _answer_of(error: Error) -> Answer:
    code = "deadline" if isinstance(error, DeadlineExceeded) else error.code
    return Answer(code=code, text=str(error))


def unexpected(error: BaseException) -> Answer:
    """The answer to a request that met an error of no kind of the library's. The log has where it
    came from, and nothing that it says, which may be of the request."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = ", ".join(f"{frame.filename}:{frame.lineno}" for frame in last)
    logger.error("a run ended with %s at %s", type(error).__name__, where)
    return Answer(code="internal", text="the run failed: tell the operator of this service")


def _measured(program: Any, device: str, threads: int | None) -> dict[str, float]:
    """What trial runs say of a program: the seconds of a run, the bytes of a client's keys on the
    device, and those of a request."""
    summary = program.summary(device, threads=threads)
    if isinstance(program, nn.Program):
        sizes = {
            "key_bytes": summary.key_bytes_expanded,
            "request_bytes": summary.request_bytes,
        }
    elif isinstance(program, nn.integers.Program):
        # A client of its own, which is forgotten, encrypts something.
        some = [port.low.reshape(port.shape) for port in program.manifest.inputs]
        request = program.client(threads=1).encrypt(*some)
        sizes = {"key_bytes": summary.key_bytes, "request_bytes": len(request.to_bytes())}
    else:
        sizes = {"key_bytes": summary.keys}
    return {"seconds": summary.seconds, **sizes}
