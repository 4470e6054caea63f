"""Requests that are computed: who waits for them, and the answers that are kept for a while."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jali.serve.bodies import Body, Folder, Kept
from jali.serve.refusal import Refusal

__all__ = ["Answered", "Run", "Runs"]

_OVERHEAD = 4096  # bytes that a run without an answer counts
_POLL = 0.05


@dataclass(frozen=True)
class Answered:
    """An answer, and the seconds that it waited, its keys were loaded and it was computed."""

    kept: Kept
    queue: float
    load: float
    compute: float

    @property
    def server_timing(self) -> str:
        """The header field of this name."""
        times = {"queue": self.queue, "load": self.load, "compute": self.compute}
        return ", ".join(f"{name};dur={1e3 * seconds:.1f}" for name, seconds in times.items())


@dataclass(eq=False)
class Run:
    """A request whose body is here.

    client, program, key_id, digest: whose it is, of what, with which keys, and the SHA-256 of its
        body.
    idempotency: the client's name for it, "" for none.
    ticket: of its admission.
    job: its name if it is a job, "" if not.
    """

    client: str
    program: str
    key_id: str
    digest: str
    idempotency: str
    ticket: Any
    job: str = ""
    outcome: asyncio.Task[Answered] = field(init=False)
    waiting: int = 0
    fetched: bool = False
    nbytes: int = _OVERHEAD
    ended: float = 0.0

    @property
    def done(self) -> bool:
        """Whether it has an answer, or failed."""
        return self.outcome.done()

    def same(self, program: str, key_id: str, digest: str | None = None) -> bool:
        """Whether another request asks the same. digest: None if it is not known yet."""
        asked = (program, key_id, self.digest if digest is None else digest)
        return asked == (self.program, self.key_id, self.digest)

    @contextlib.contextmanager
    def waited(self) -> Iterator[None]:
        """Somebody waits for it within the block. When nobody does any more, it is cancelled, unless
        it is a job."""
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1
            if not (self.waiting or self.job or self.done):
                self.cancel()

    def cancel(self) -> None:
        """Ends it without an answer."""
        self.ticket.cancel()
        self.outcome.cancel()

    async def answer(self) -> Answered:
        """Its answer. Raises what it failed with, and Refusal if it was cancelled."""
        try:
            return await asyncio.shield(self.outcome)
        except asyncio.CancelledError:
            if not self.outcome.cancelled():
                raise  # who waits was cancelled
            raise Refusal(
                "the request was cancelled: send it again",
                503,
                "cancelled",
                headers={"Retry-After": "1"},
            ) from None


class Runs:
    """The runs of a gateway. All methods are for the thread of its loop.

    folder: for long answers.
    seconds: how long answers are kept.
    nbytes: how many bytes of answers are kept. The oldest of the client that has most go first.
    """

    def __init__(self, folder: Folder, seconds: float = 600.0, nbytes: int = 4 << 30) -> None:
        self._folder, self._seconds, self._nbytes = folder, seconds, nbytes
        self._named: dict[tuple[str, str], Run] = {}
        self._jobs: dict[str, Run] = {}
        self._kept: dict[str, dict[Run, None]] = {}  # by client, in the order in which they ended
        self._taken: Counter[str] = Counter()  # bytes of answers, by client

    @property
    def seconds(self) -> float:
        """How long answers are kept."""
        return self._seconds

    def start(
        self,
        client: str,
        program: str,
        key_id: str,
        ticket: Any,
        body: Body,
        content: Any,
        *,
        idempotency: str = "",
    ) -> Run:
        """Has a request computed.

        client, program, key_id: as of Run.
        ticket: of its admission.
        body: is closed once it is not needed any more.
        content: of the body.
        idempotency: the client's name for it; no run of this name may be there.
        """
        run = Run(
            client,
            program,
            key_id,
            body.sha256,
            idempotency,
            ticket,
        )
        run.outcome = asyncio.create_task(self._computed(run, content))
        run.outcome.add_done_callback(lambda _: self._end(run, body))
        if idempotency:
            self._named[client, idempotency] = run
        return run

    def make_job(self, run: Run) -> None:
        """Has a run go on if nobody waits for it, until ``forget``.

        run: that nobody else forgot meanwhile.
        """
        if not run.job:
            run.job = secrets.token_hex(16)
            self._jobs[run.job] = run
            if run.done:
                asyncio.get_running_loop().call_later(self._seconds, self.forget, run)

    def named(self, client: str, idempotency: str) -> Run | None:
        """The run that has this name of the client's, if it did not fail."""
        return self._named.get((client, idempotency))

    def job(self, client: str, name: str) -> Run:
        """A job. Raises Refusal, of status 404, if the client has none of this name."""
        run = self._jobs.get(name)
        if run is None or run.client != client:
            raise Refusal("there is no such job: results are removed after a time", 404, "no-job")
        return run

    def forget(self, run: Run) -> None:
        """Cancels a run, and forgets its answer."""
        if not run.done:
            run.cancel()
        self._jobs.pop(run.job, None)
        if self._named.get((run.client, run.idempotency)) is run:
            del self._named[run.client, run.idempotency]
        ended = self._kept.get(run.client, {})
        if run in ended:
            del ended[run]
            self._taken[run.client] -= run.nbytes
            if not ended:
                del self._kept[run.client], self._taken[run.client]
        if run.done and not run.outcome.cancelled() and run.outcome.exception() is None:
            run.outcome.result().kept.close()

    async def settle(self, seconds: float) -> None:
        """Waits until the clients of all jobs have their answers, for so many seconds at most."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(not one.fetched for one in self._jobs.values()):
            await asyncio.sleep(_POLL)

    def close(self) -> None:
        """Ends and forgets all runs."""
        for run in {*self._jobs.values(), *self._named.values()}:
            self.forget(run)

    async def _computed(self, run: Run, content: Any) -> Answered:
        result = await run.ticket.send(content, run.digest)
        data, again = result.body, run.idempotency or run.job
        kept = await Kept.of(data, self._folder) if again else Kept(data, None)
        return Answered(kept, result.queue, result.load, result.compute)

    def _end(self, run: Run, body: Body) -> None:
        """A run has its answer or failed."""
        body.close()
        failed = run.outcome.cancelled() or run.outcome.exception() is not None
        if failed and self._named.get((run.client, run.idempotency)) is run:
            del self._named[run.client, run.idempotency]
        registered = run.job in self._jobs or self.named(run.client, run.idempotency) is run
        if not registered:  # it was forgotten, or nobody asks for it again
            return
        run.ended = time.monotonic()
        run.nbytes += 0 if failed else run.outcome.result().kept.nbytes
        self._kept.setdefault(run.client, {})[run] = None
        self._taken[run.client] += run.nbytes
        asyncio.get_running_loop().call_later(self._seconds, self.forget, run)
        self._make_room()

    def _make_room(self) -> None:
        while self._taken.total() > self._nbytes:
            most = max(self._taken, key=lambda client: self._taken[client])
            self.forget(next(iter(self._kept[most])))
