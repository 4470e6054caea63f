"""What stands between the policy and the workers: it tells the policy what happens, and does what
the policy decides.

All of it runs in one loop of asyncio, and nothing of it waits.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from jali._core.log import logger
from jali.serve import answers, pool
from jali.serve.marginal import Marginals
from jali.serve.policy import Limits, Policy, decisions
from jali.serve.policy import events as on
from jali.serve.pool import Answer, Pool
from jali.serve.refusal import Refusal
from jali.serve.tickets import Event, Result, Ticket

__all__ = ["Batch", "Desk", "Keys"]


@dataclass(eq=False)
class Keys:
    """Keys of a client, as of a KeySet, that requests use.

    name: by which policy and workers know them.
    nbytes: what they take of a device.
    devices: the workers that have them, or load them.
    loads: by worker, when it last began and ended to load them.
    answer: why they could not be loaded.
    """

    client: str
    program: str
    key_id: str
    sha256: str
    path: Path
    nbytes: int
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    devices: set[str] = field(default_factory=set)
    loads: dict[str, tuple[float, float]] = field(default_factory=dict)
    answer: Answer | None = None
    deleted: bool = False


@dataclass(frozen=True)
class Batch:
    """What a worker computes."""

    tickets: tuple[Ticket, ...]
    began: float
    seconds: float


class Desk:
    """Drives a policy and a pool.

    limits: of the policy.
    workers: the pool.
    room: the bytes for keys on the device of a worker that started.
    observe: called with each answer that was given, and the kind of refusal, if it is one.
    """

    def __init__(
        self,
        limits: Limits | None,
        workers: Pool,
        room: Callable[[pool.Started], int],
        observe: Callable[[Event, str], None],
    ) -> None:
        self._policy, self._pool = Policy(limits), workers
        self._room, self._observe = room, observe
        self._events: deque[on.Event] = deque()
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._verdicts: dict[str, decisions.Admit | decisions.Refuse] = {}
        self._denied: set[str] = set()
        self._batches: dict[tuple[str, int], Batch] = {}
        self._names: dict[str, Keys] = {}
        self.tickets: dict[str, Ticket] = {}
        self.keys: dict[tuple[str, str, str], Keys] = {}
        self.programs: dict[str, frozenset[str]] = {}  # by worker that is up
        self.up = asyncio.Event()  # whether there is one
        self.counters: Counter[str] = Counter()
        self.rooms: dict[str, int] = {}  # the bytes for keys, by worker
        self._marginals = Marginals()
        self._batch_limits: dict[str, int] = {}
        self.closed = False
        self.broken = False  # it ended because the policy and the workers disagree

    def add(self, program: str, max_batch: int) -> None:
        """Makes a program known, before workers have it."""
        self._batch_limits[program] = max_batch
        self.handle(on.ProgramAdded(program, max_batch))

    # --- requests ---------------------------------------------------------------------------------

    def hold(self, keys: Keys) -> bool:
        """Lets requests use keys that are stored. False if there is no room for them."""
        self._names[keys.name] = keys
        self.keys[keys.client, keys.program, keys.key_id] = keys
        self.handle(on.KeysOffered(keys.name, keys.client, keys.nbytes))
        if keys.name in self._denied:
            self._denied.discard(keys.name)
            del self._names[keys.name], self.keys[keys.client, keys.program, keys.key_id]
            return False
        self.handle(on.KeysStored(keys.name))
        return True

    def named(self, name: str) -> Keys | None:
        """The keys of a name, if they are known."""
        return self._names.get(name)

    def drop(self, keys: Keys) -> None:
        """Removes keys that the store has no more, wherever they are."""
        self.handle(on.KeysDeleted(keys.name))

    def arrive(
        self, keys: Keys, nbytes: int, seconds: float, deadline: float | None, weight: float
    ) -> Ticket:
        """Admits a request for keys, or raises Refusal.

        deadline: a moment of time.monotonic().
        """
        request = secrets.token_hex(16)
        self.handle(
            on.Arrived(
                request, keys.client, keys.program, keys.name, seconds, nbytes, deadline, weight
            )
        )
        verdict = self._verdicts.pop(request, None)
        if not isinstance(verdict, decisions.Admit):
            if verdict is None:
                raise answers.stopped()
            raise answers.refused(verdict.reason, verdict.retry_after)
        ticket = Ticket(self, request, keys, nbytes, seconds, deadline)
        self.tickets[request] = ticket
        return ticket

    def received(self, ticket: Ticket, digest: str) -> None:
        ticket.state, ticket.came = "waiting", time.monotonic()
        self.handle(on.Received(ticket.request, digest))

    def left(self, ticket: Ticket) -> None:
        self.handle(on.Cancelled(ticket.request))

    def position(self, ticket: Ticket) -> int:
        return len(self._before(ticket))

    def seconds_left(self, ticket: Ticket) -> float:
        now = time.monotonic()
        if ticket.state == "running":
            return max(0.0, ticket.began + ticket.predicted - now)
        running = [max(0.0, one.began + one.seconds - now) for one in self._batches.values()]
        work = sum(running) + sum(one.seconds for one in self._before(ticket)) + ticket.seconds
        return max(ticket.seconds, work / max(1, len(self.programs)))

    def _before(self, ticket: Ticket) -> list[Ticket]:
        return [
            one
            for one in self.tickets.values()
            if one.state == "waiting" and one.came < ticket.came
        ]

    def _answer(self, request: str, outcome: Result | Refusal) -> None:
        ticket = self.tickets.pop(request)
        ticket.end(outcome)
        code = 200 if isinstance(outcome, Result) else outcome.status
        waited = max(0.0, ticket.began - ticket.came - ticket.load) if ticket.batch else 0.0
        self._observe(
            Event(
                ticket.program,
                code,
                waited,
                ticket.load,
                ticket.compute,
                ticket.predicted,
                ticket.batch,
            ),
            outcome.kind if isinstance(outcome, Refusal) else "",
        )

    @property
    def host_bytes(self) -> int:
        """The bytes of keys that stay in the memory of machines."""
        return sum(self._policy.host_bytes.values())

    def end(self) -> None:
        """Answers all requests that are left. Nothing is done any more."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for request in list(self.tickets):
            self._answer(request, answers.stopped())

    # --- the policy -------------------------------------------------------------------------------

    def handle(self, event: on.Event) -> None:
        """Tells the policy of an event, and does what it decides."""
        self._events.append(event)
        if self._busy or self.closed:
            return
        self._busy = True
        try:
            while self._events:
                now = time.monotonic()
                for decision in self._policy.handle(self._events.popleft(), now):
                    self._do(decision)
            self._wake()
        except Exception as error:  # no request may wait for ever
            self.broken = True
            logger.critical("the service cannot go on: %s", type(error).__name__)
            self.end()
            raise
        finally:
            self._busy = False

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (wake := self._policy.wake) is not None:
            delay = max(0.0, wake - time.monotonic())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay, self.handle, on.Tick())

    def _do(self, decision: decisions.Decision) -> None:
        match decision:
            case decisions.Admit(request) | decisions.Refuse(request):
                self._verdicts[request] = decision
            case decisions.Deny(key):
                self._denied.add(key)
            case decisions.Load():
                self._load(decision)
            case decisions.Evict():
                self._evict(decision)
            case decisions.Dispatch():
                self._dispatch(decision)
            case decisions.Stop(worker, batch):
                self._pool.stop(worker, batch)
            case decisions.Reply(request):
                self._reply(request)
            case decisions.Fail(request, reason):
                self._fail(request, reason)
            case decisions.Drop(request):
                self._answer(request, answers.cancelled())

    def _load(self, decision: decisions.Load) -> None:
        keys = self._names[decision.key]
        keys.devices.add(decision.worker)
        now = time.monotonic()
        keys.loads[decision.worker] = now, now + decision.seconds
        self.counters["cache misses"] += 1
        self._pool.load(
            decision.worker,
            keys.name,
            keys.program,
            keys.path,
            keep=decision.keep or decision.source == "host",
            seconds=decision.seconds,
        )

    def _evict(self, decision: decisions.Evict) -> None:
        keys = self._names.get(decision.key)
        if keys is None:
            return
        if decision.level == "device":
            self.counters["cache evictions"] += 1
            self._pool.evict(decision.name, keys.name)
            self._leave(keys, decision.name)
        elif decision.level == "host":
            self._pool.forget(decision.name, keys.path)
        else:
            place = keys.client, keys.program, keys.key_id
            if self.keys.get(place) is keys:
                del self.keys[place]
            keys.deleted = True
            self._leave(keys, None)

    def _leave(self, keys: Keys, worker: str | None) -> None:
        """Keys are not on a device any more."""
        if worker is not None:
            keys.devices.discard(worker)
            keys.loads.pop(worker, None)
        if keys.deleted and not keys.devices:
            self._names.pop(keys.name, None)

    def _dispatch(self, decision: decisions.Dispatch) -> None:
        now, keys = time.monotonic(), self._names[decision.key]
        tickets = tuple(self.tickets[name] for name in decision.requests)
        began, ended = keys.loads.get(decision.worker, (0.0, 0.0))
        for ticket in tickets:
            ticket.state, ticket.began = "running", now
            ticket.predicted, ticket.batch = decision.seconds, len(tickets)
            ticket.load = max(0.0, min(ended, now) - max(began, ticket.came))
            self.counters["cache hits"] += ticket.load == 0.0
        deadlines = [one.deadline for one in tickets if one.deadline is not None]
        all_have = len(deadlines) == len(tickets)
        self._batches[decision.worker, decision.batch] = Batch(tickets, now, decision.seconds)
        self._pool.run(
            decision.worker,
            decision.batch,
            keys.name,
            [one.body for one in tickets],
            seconds=decision.seconds,
            left=max(deadlines) - now if all_have else None,
        )

    def _reply(self, request: str) -> None:
        ticket = self.tickets[request]
        answer = ticket.answer
        assert answer is not None and not answer.code
        queue = max(0.0, ticket.began - ticket.came - ticket.load)
        self._answer(request, Result(answer.body, queue, ticket.load, ticket.compute))

    def _fail(self, request: str, reason: decisions.Failure) -> None:
        ticket = self.tickets[request]
        answer = ticket.keys.answer if reason == "keys" else ticket.answer
        self._answer(request, answers.failed(reason, answer))

    # --- the workers ------------------------------------------------------------------------------

    def heard(self, report: pool.Report) -> None:
        """Tells the policy what a worker reports."""
        match report:
            case pool.Started(worker):
                self.programs[worker] = frozenset(report.measured)
                self.rooms[worker] = room = self._room(report)
                self.handle(on.WorkerStarted(worker, report.host, room, self.programs[worker]))
                self.up.set()
            case pool.Died(worker):
                self._died(report)
            case pool.KeysLoaded(worker, name):
                if (keys := self._names.get(name)) is not None:
                    began = keys.loads.get(worker, (0.0, 0.0))[0]
                    keys.loads[worker], keys.answer = (began, time.monotonic()), None
                self.handle(on.KeysLoaded(worker, name))
            case pool.KeysNotLoaded(worker, name):
                if (keys := self._names.get(name)) is not None:
                    keys.answer = Answer(code=report.code, text=report.text)
                    self._leave(keys, worker)
                logger.warning("keys could not be loaded on %s: %s", worker, report.code)
                self.handle(on.KeysFailed(worker, name))
            case pool.KeysAway(worker, name):
                if (keys := self._names.get(name)) is not None:
                    self._leave(keys, worker)
                self.handle(on.KeysLeft(worker, name))
            case pool.Ran():
                self._ran(report)

    def _died(self, report: pool.Died) -> None:
        worker = report.worker
        was_up = self.programs.pop(worker, None) is not None
        self.rooms.pop(worker, None)
        if not self.programs:
            self.up.clear()
        for place in [one for one in self._batches if one[0] == worker]:
            for ticket in self._batches.pop(place).tickets:
                if ticket.state == "running":
                    ticket.state = "waiting"
                    self.counters["retries"] += 1
        for keys in list(self._names.values()):
            self._leave(keys, worker)
        if was_up:
            self.handle(on.WorkerDied(worker, report.blame))

    def _ran(self, report: pool.Ran) -> None:
        batch = self._batches.pop((report.worker, report.batch), None)
        if batch is None:
            return
        wrong = set()
        for ticket, answer in zip(batch.tickets, report.answers, strict=True):
            ticket.answer, ticket.compute = answer, report.seconds
            if answer.code:
                wrong.add(ticket.request)
                ticket.state = "waiting" if ticket.state == "running" else ticket.state
        if not wrong:
            program, alone = batch.tickets[0].program, [one.seconds for one in batch.tickets]
            changed = self._marginals.ran(program, report.worker, alone, report.seconds)
            if changed is not None:
                self.handle(on.ProgramAdded(program, self._batch_limits[program], changed))
        all_wrong = len(wrong) == len(batch.tickets)
        failed = frozenset() if all_wrong else frozenset(wrong)
        self.handle(on.Finished(report.worker, report.batch, not all_wrong, failed))
