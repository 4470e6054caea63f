"""The policy: events in, decisions out."""

from __future__ import annotations

import heapq
import math

from jali.errors import InvalidArgument
from jali.serve.policy import admission, failures
from jali.serve.policy.decisions import Decision
from jali.serve.policy.events import (
    Arrived,
    Cancelled,
    Draining,
    Event,
    Finished,
    KeysDeleted,
    KeysFailed,
    KeysLeft,
    KeysLoaded,
    KeysOffered,
    KeysStored,
    ProgramAdded,
    Received,
    Tick,
    WorkerDied,
    WorkerStarted,
)
from jali.serve.policy.level import Level
from jali.serve.policy.limits import Limits
from jali.serve.policy.loading import plan
from jali.serve.policy.running import dispatch
from jali.serve.policy.state import Device, Program, State

__all__ = ["Policy"]


class Policy:
    """Decides which requests a service admits, and what its devices load and compute.

    It reads no clock, does no input or output and has no threads: the same events at the same times
    give the same decisions. docs/scheduling.md has its rules and formulas.

    limits: its bounds.

    >>> from jali.serve.policy import events as on
    >>> policy = Policy()
    >>> for event in (
    ...     on.ProgramAdded("digits"),
    ...     on.WorkerStarted("gpu0", "here", device_bytes=1 << 30, programs=frozenset({"digits"})),
    ...     on.KeysOffered("k", "ann", nbytes=12_000_000),
    ...     on.KeysStored("k"),
    ... ):
    ...     decisions = policy.handle(event, now=0.0)
    >>> policy.handle(on.Arrived("r", "ann", "digits", "k", seconds=0.3, nbytes=185_000), now=1.0)
    [Admit(request='r', nbytes=185000, seconds=0.3, until=31.0)]
    >>> policy.handle(on.Received("r"), now=1.1)
    [Load(worker='gpu0', key='k', source='disk', keep=True, seconds=0.0072)]
    >>> policy.handle(on.KeysLoaded("gpu0", "k"), now=1.2)
    [Dispatch(worker='gpu0', batch=2, program='digits', key='k', requests=('r',), seconds=0.3)]
    >>> policy.handle(on.Finished("gpu0", batch=2), now=1.5)
    [Reply(request='r')]
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._state = State(Limits() if limits is None else limits)

    @property
    def wake(self) -> float | None:
        """When to send Tick if nothing happens before; None if there is no need."""
        state = self._state
        timers = state.timers
        if len(timers) > 1024 + 8 * len(state.requests):
            state.timers = timers = [one for one in timers if self._lives(one)]
            heapq.heapify(timers)
        while timers and not self._lives(timers[0]):
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def _lives(self, timer: tuple[float, int, str]) -> bool:
        request = self._state.requests.get(timer[2])
        return request is not None and request.number == timer[1]

    @property
    def pending(self) -> int:
        """How many requests are admitted and not done: those whose clients are gone count while
        they are computed."""
        return len(self._state.requests)

    @property
    def host_bytes(self) -> dict[str, int]:
        """The bytes of keys in the memory of each host."""
        return {name: level.used for name, level in self._state.hosts.items()}

    def handle(self, event: Event, now: float) -> list[Decision]:
        """What to do after an event, in this order.

        now: its time, in seconds, not before that of the last one.

        Raises InvalidArgument for what no service may say: a time that goes back, a name that is
        used twice, numbers outside their range. What may cross a decision on its way, such as the
        end of a request that was answered, has no effect.
        """
        state = self._state
        if not math.isfinite(now) or now < state.now:
            raise InvalidArgument(f"now is {now}, before {state.now}: give times in their order")
        state.now, state.decisions = now, []
        self._apply(event)
        failures.expire(state)
        # Keys that wait for room come before the next batch, which keeps the room of its own.
        plan(state, copies=False)
        self._dispatch()
        plan(state, copies=True)
        state.forget()
        return state.decisions

    def _dispatch(self) -> None:
        for name in sorted(self._state.devices):
            dispatch(self._state, self._state.devices[name])

    def _apply(self, event: Event) -> None:
        state = self._state
        match event:
            case ProgramAdded():
                _program_added(state, event)
            case WorkerStarted():
                _worker_started(state, event)
            case WorkerDied():
                failures.died(state, event)
            case Finished():
                failures.finished(state, event)
            case KeysOffered():
                admission.offered(state, event)
            case KeysStored():
                admission.stored(state, event)
            case KeysDeleted():
                admission.deleted(state, event)
            case KeysLoaded():
                failures.keys_loaded(state, event)
            case KeysFailed():
                failures.keys_failed(state, event)
            case KeysLeft():
                failures.keys_left(state, event)
            case Arrived():
                admission.arrived(state, event)
            case Received():
                admission.received(state, event)
            case Cancelled():
                failures.cancelled(state, event)
            case Draining():
                state.draining = True
            case Tick():
                pass


def _program_added(state: State, event: ProgramAdded) -> None:
    if event.max_batch < 1:
        raise InvalidArgument(f"max_batch is {event.max_batch}: give at least 1")
    if not 0 <= event.marginal <= 1:
        raise InvalidArgument(f"marginal is {event.marginal}: give a number from 0 to 1")
    state.programs[event.program] = Program(event.max_batch, event.marginal)


def _worker_started(state: State, event: WorkerStarted) -> None:
    if event.worker in state.devices:
        raise InvalidArgument(f"the worker {event.worker} lives: send WorkerDied first")
    for program in sorted(event.programs - state.programs.keys()):
        raise InvalidArgument(f"the program {program} is not known: send ProgramAdded first")
    if event.device_bytes < 0:
        raise InvalidArgument(f"device_bytes is {event.device_bytes}: give a positive number")
    state.hosts.setdefault(event.host, Level(state.limits.host_bytes))
    level = Level(event.device_bytes)
    state.devices[event.worker] = Device(event.worker, event.host, event.programs, level)
