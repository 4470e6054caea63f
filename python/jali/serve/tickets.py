"""Requests that a service admitted, and what it says of them."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from jali.serve.holding import Answer
from jali.serve.refusal import Refusal

__all__ = ["Event", "Result", "Ticket"]

_INLINE = 1 << 20  # bytes that are hashed at once


@dataclass(frozen=True)
class Result:
    """The bytes of a reply, and the seconds for which its request waited for a device, waited for
    its keys, and was computed, with the others of its batch."""

    body: bytes
    queue: float
    load: float
    compute: float


@dataclass(frozen=True)
class Event:
    """A request was answered.

    program: its fingerprint.
    code: the status of the answer, 200 for a result.
    queue_s, load_s, compute_s: as of Result; 0 for what it did not come to.
    predicted_s: how long its batch was to take.
    batch: how many requests were computed at once; 0 if it was not computed.
    """

    program: str
    code: int
    queue_s: float = 0.0
    load_s: float = 0.0
    compute_s: float = 0.0
    predicted_s: float = 0.0
    batch: int = 0


class Keys(Protocol):
    """What a ticket needs of its keys."""

    program: str
    answer: Answer | None


class Desk(Protocol):
    """What a ticket needs of its service."""

    def received(self, ticket: Ticket, digest: str) -> None: ...

    def left(self, ticket: Ticket) -> None: ...

    def position(self, ticket: Ticket) -> int: ...

    def seconds_left(self, ticket: Ticket) -> float: ...


class Ticket:
    """A request that was admitted: its room and its time are reserved until its body comes.

    Service.admit makes it. It belongs to the loop of its service.
    """

    def __init__(
        self,
        desk: Desk,
        request: str,
        keys: Keys,
        nbytes: int,
        seconds: float,
        deadline: float | None,
    ) -> None:
        self._desk = desk
        self.request, self.keys, self.program = request, keys, keys.program
        self.nbytes, self.seconds, self.deadline = nbytes, seconds, deadline
        self.state: Literal["admitted", "waiting", "running", "done"] = "admitted"
        self.body: bytes | Path = b""
        self.answer: Answer | None = None
        self.came = self.began = 0.0
        self.load = self.compute = self.predicted = 0.0
        self.batch = 0
        self._outcome: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def send(self, body: bytes | Path, digest: str = "") -> Result:
        """Hands the body over and waits for the reply. Whoever stops waiting cancels the request.

        body: the bytes of the request, or a file that stays until the reply is here.
        digest: a hash of the body, if it is known.

        Raises Refusal: 400 for more bytes than were admitted, 408 if it comes too late, 422 for
        what is no request of the program and these keys, 428 if the keys are gone, 500 if it fails,
        503 if the service ends, 504 at its deadline.
        """
        try:
            size = body.stat().st_size if isinstance(body, Path) else len(body)
            if size > self.nbytes:
                raise Refusal(
                    f"the request has {size} bytes, and {self.nbytes} were announced: send it again with the right length",
                    400,
                    "length",
                )
            if not digest:
                inline = isinstance(body, bytes) and size <= _INLINE
                digest = _digest(body) if inline else await asyncio.to_thread(_digest, body)
            if not self._outcome.done():
                self.body = body
                self._desk.received(self, digest)
            return await self._outcome
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Says that nobody waits for the reply. What runs for nobody is ended."""
        if self.state != "done":
            self._desk.left(self)

    @property
    def position(self) -> int | None:
        """How many requests of all clients came before and wait, too; None if it does not wait."""
        return self._desk.position(self) if self.state == "waiting" else None

    @property
    def seconds_left(self) -> float | None:
        """About the seconds until the reply; None before the body is here, and when it is done."""
        if self.state not in ("waiting", "running"):
            return None
        return self._desk.seconds_left(self)

    def end(self, outcome: Result | Refusal) -> None:
        """Answers it. The service calls this.

        outcome: the result, or why there is none.
        """
        self.state, self.body = "done", b""
        if self._outcome.done():
            return
        if isinstance(outcome, Result):
            self._outcome.set_result(outcome)
        else:
            self._outcome.set_exception(outcome)
            self._outcome.exception()  # it need not be waited for


def _digest(body: bytes | Path) -> str:
    if isinstance(body, bytes):
        return hashlib.sha256(body).hexdigest()
    with body.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
