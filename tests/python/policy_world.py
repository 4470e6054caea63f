"""A service without processes: the policy of jali.serve on a virtual clock.

A World does what the policy decides, in predicted or other times, and keeps books of its own. It
asserts after every decision that the policy may decide so: nothing is computed before its body and
its keys are there, no memory holds more than it has, nothing is answered twice.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jali.serve.policy import Limits, Policy, events
from jali.serve.policy import decisions as decide

CLOSE = 1e-5
#: What a request takes in most tests, in seconds.
SERVICE = 0.1


@dataclass
class Sent:
    """A request, and what became of it."""

    name: str
    client: str
    program: str
    key: str
    seconds: float
    nbytes: int
    deadline: float | None
    arrived: float
    body: float  # when it is here
    answer: decide.Decision | None = None
    answered: float = 0.0
    state: str = "sent"  # then admitted, waiting, running, answered
    deadly: bool = False
    deaths: int = 0
    digest: str = ""


@dataclass
class Machine:
    """A worker and its device."""

    name: str
    host: str
    capacity: int
    programs: frozenset[str]
    life: int = 0
    alive: bool = True
    keys: dict[str, int] = field(default_factory=dict)
    loading: str | None = None
    batch: decide.Dispatch | None = None
    began: float = 0.0
    busy: float = 0.0


class World:
    """Clients, workers and a policy between them, at a time of their own."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.policy = Policy(self.limits)
        self.now = 0.0
        self.clock: list[tuple[float, int, Callable[[], None]]] = []
        self.count = itertools.count()
        self.machines: dict[str, Machine] = {}
        self.sent: dict[str, Sent] = {}
        self.open: dict[str, Sent] = {}  # admitted and not answered
        self.running: set[str] = set()
        self.sizes: dict[str, int] = {}
        self.owner: dict[str, str] = {}
        self.disk: set[str] = set()
        self.hosts: dict[str, set[str]] = {}
        self.waiting: Counter[tuple[str, str]] = Counter()  # by key and program
        self.bodies = 0  # bytes of what is open
        self.batches: dict[str, tuple[int, float]] = {}
        self.log: list[tuple[float, decide.Decision]] = []
        self.slow: Callable[[decide.Dispatch], float] = lambda batch: 1.0
        self.deadly_keys: set[str] = set()
        self.suspects = False  # something is blamed for a death
        self.conserving = True

    # What happens.

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.clock, (max(time, self.now), next(self.count), action))

    def tell(self, event: events.Event) -> list[decide.Decision]:
        made = self.policy.handle(event, self.now)
        for decision in made:
            self.log.append((self.now, decision))
            getattr(self, "on_" + type(decision).__name__.lower())(decision)
        self.check()
        return made

    def turn(self, sent: Sent, state: str) -> None:
        """Moves a request from one state to another."""
        place = (sent.key, sent.program)
        self.waiting[place] += (state == "waiting") - (sent.state == "waiting")
        if not self.waiting[place]:
            del self.waiting[place]
        sent.state = state

    def run(self, until: float = float("inf")) -> None:
        """Lets time pass, to the end of all that happens by itself."""
        while True:
            wake = self.policy.wake
            first = self.clock[0][0] if self.clock else float("inf")
            if wake is not None and wake < first:
                if wake > until:
                    break
                self.now = max(self.now, wake)
                self.tell(events.Tick())
            elif first > until or not self.clock:
                break
            else:
                time, _, action = heapq.heappop(self.clock)
                self.now = time
                action()
        self.now = max(self.now, until) if until < float("inf") else self.now

    def program(self, name: str, max_batch: int = 1, marginal: float = 1.0) -> None:
        self.batches[name] = (max_batch, marginal)
        self.tell(events.ProgramAdded(name, max_batch, marginal))

    def worker(
        self, name: str, capacity: int = 1 << 40, host: str = "here", programs: str = "p"
    ) -> None:
        self.machines[name] = Machine(name, host, capacity, frozenset(programs.split()))
        self.hosts.setdefault(host, set())
        self._started(name)

    def _started(self, name: str) -> None:
        machine = self.machines[name]
        machine.alive = True
        machine.life += 1
        self.tell(events.WorkerStarted(name, machine.host, machine.capacity, machine.programs))

    def keys(self, name: str, client: str, nbytes: int) -> bool:
        self.sizes[name], self.owner[name] = nbytes, client
        made = self.tell(events.KeysOffered(name, client, nbytes))
        if not any(isinstance(one, decide.Grant) for one in made):
            return False
        self.tell(events.KeysStored(name))
        return True

    def send(self, name: str, key: str, seconds: float, **options: Any) -> Sent:
        """Sends a request now. within: its deadline from now on. body: seconds until it is here."""
        within = options.pop("within", None)
        deadline = None if within is None else self.now + within
        body, weight = options.pop("body", 0.0), options.pop("weight", 1.0)
        program, nbytes = options.pop("program", "p"), options.pop("nbytes", 0)
        client = options.pop("client", self.owner.get(key, "nobody"))
        sent = Sent(
            name,
            client,
            program,
            key,
            seconds,
            nbytes,
            deadline,
            self.now,
            self.now + body,
            **options,
        )
        self.sent[name] = sent
        event = events.Arrived(name, client, program, key, seconds, nbytes, deadline, weight)
        self.tell(event)
        if sent.state == "admitted" and body == 0:
            self._body(sent)
        elif sent.state == "admitted" and body < float("inf"):
            self.at(self.now + body, lambda: self._body(sent))
        return sent

    def _body(self, sent: Sent) -> None:
        if sent.state == "admitted":
            self.turn(sent, "waiting")
            self.tell(events.Received(sent.name, sent.digest))

    def cancel(self, name: str) -> None:
        if name in self.sent:
            self.tell(events.Cancelled(name))

    def kill(self, name: str, back: float = 1.0, blame: bool = False) -> None:
        """Ends a worker, which comes back."""
        machine = self.machines[name]
        if not machine.alive:
            return
        machine.alive, machine.life = False, machine.life + 1
        batch, machine.batch, machine.keys = machine.batch, None, {}
        loading, machine.loading = machine.loading, None
        for one in () if batch is None else batch.requests:
            self.running.discard(one)
            if self.sent[one].state == "running":
                self.turn(self.sent[one], "waiting")
                self.sent[one].deaths += 1
        self.suspects |= blame and (batch is not None or loading is not None)
        self.tell(events.WorkerDied(name, blame))
        self.at(self.now + back, lambda: self._started(name))

    # What the policy decides.

    def on_admit(self, one: decide.Admit) -> None:
        sent = self.sent[one.request]
        assert sent.state == "sent" and one.until > self.now
        self.turn(sent, "admitted")
        self.open[sent.name] = sent
        self.bodies += sent.nbytes

    def on_refuse(self, one: decide.Refuse) -> None:
        assert self.sent[one.request].state == "sent"
        assert one.retry_after is None or one.retry_after > 0
        self._answered(one.request, one)

    def _answered(self, name: str, one: decide.Decision) -> None:
        sent = self.sent[name]
        assert sent.answer is None, f"{name} is answered twice: {sent.answer}, {one}"
        sent.answer, sent.answered = one, self.now
        self.turn(sent, "answered")
        if self.open.pop(name, None) is not None:
            self.bodies -= sent.nbytes

    def on_reply(self, one: decide.Reply) -> None:
        assert self.sent[one.request].state == "computed"
        self._answered(one.request, one)

    def on_fail(self, one: decide.Fail) -> None:
        assert one.request in self.open
        self._answered(one.request, one)

    def on_drop(self, one: decide.Drop) -> None:
        assert one.request in self.open
        self._answered(one.request, one)

    def on_grant(self, one: decide.Grant) -> None:
        self.disk.add(one.key)

    def on_deny(self, one: decide.Deny) -> None:
        pass

    def on_evict(self, one: decide.Evict) -> None:
        if one.level == "disk":
            self.disk.remove(one.key)
        elif one.level == "host":
            self.hosts[one.name].remove(one.key)
        else:
            machine = self.machines[one.name]
            assert machine.batch is None or machine.batch.key != one.key
            assert machine.loading != one.key
            del machine.keys[one.key]

    def on_load(self, one: decide.Load) -> None:
        machine = self.machines[one.worker]
        assert machine.alive and machine.loading is None and one.key not in machine.keys
        assert one.key in self.disk
        assert (one.source == "host") <= (one.key in self.hosts[machine.host])
        if one.keep:
            assert one.key not in self.hosts[machine.host]
            self.hosts[machine.host].add(one.key)
        machine.keys[one.key] = self.sizes[one.key]
        machine.loading = one.key
        life = machine.life
        if one.key in self.deadly_keys:
            self.at(self.now + one.seconds / 2, lambda: self._if(machine, life, self._deadly))
        self.at(self.now + one.seconds, lambda: self._if(machine, life, self._loaded))

    def _if(self, machine: Machine, life: int, action: Callable[[Machine], None]) -> None:
        if machine.life == life:
            action(machine)

    def _deadly(self, machine: Machine) -> None:
        self.kill(machine.name, blame=True)

    def _loaded(self, machine: Machine) -> None:
        assert machine.loading is not None
        key, machine.loading = machine.loading, None
        self.tell(events.KeysLoaded(machine.name, key))

    def on_dispatch(self, one: decide.Dispatch) -> None:
        machine = self.machines[one.worker]
        assert machine.alive and machine.batch is None and one.program in machine.programs
        assert one.key in machine.keys and machine.loading != one.key
        assert 1 <= len(one.requests) <= self.batches[one.program][0]
        for name in one.requests:
            sent = self.sent[name]
            assert sent.state == "waiting" and name not in self.running
            assert (sent.key, sent.program) == (one.key, one.program)
            self.turn(sent, "running")
            self.running.add(name)
        machine.batch, machine.began = one, self.now
        alone = [self.sent[name].seconds for name in one.requests]
        marginal = self.batches[one.program][1]
        seconds = max(alone) + marginal * (sum(alone) - max(alone))
        life, seconds = machine.life, seconds * self.slow(one)
        deadly = any(self.sent[name].deadly for name in one.requests)
        if deadly:
            self.at(self.now + seconds / 2, lambda: self._if(machine, life, self._deadly))
        else:
            number = one.batch

            def end() -> None:
                if machine.batch is not None and machine.batch.batch == number:
                    self._finished(machine)

            self.at(self.now + seconds, lambda: self._if(machine, life, lambda _: end()))

    def _finished(self, machine: Machine, ok: bool = True) -> None:
        batch, machine.batch = machine.batch, None
        assert batch is not None
        machine.busy += self.now - machine.began
        for name in batch.requests:
            self.running.discard(name)
            if self.sent[name].state == "running":
                self.turn(self.sent[name], "computed" if ok else "waiting")
        self.tell(events.Finished(machine.name, batch.batch, ok))

    def on_stop(self, one: decide.Stop) -> None:
        machine = self.machines[one.worker]
        assert machine.batch is not None and machine.batch.batch == one.batch
        assert all(self.sent[name].state == "answered" for name in machine.batch.requests)
        life = machine.life

        def stopped(machine: Machine) -> None:
            if machine.batch is not None and machine.batch.batch == one.batch:
                self._finished(machine, ok=False)

        self.at(self.now + 1e-3, lambda: self._if(machine, life, stopped))

    # What must hold at any time.

    def check(self) -> None:
        limits = self.limits
        for machine in self.machines.values():
            assert sum(machine.keys.values()) <= machine.capacity
        for found in self.hosts.values():
            assert sum(self.sizes[name] for name in found) <= limits.host_bytes
        assert sum(self.sizes[name] for name in self.disk) <= limits.disk_bytes
        assert self.bodies <= limits.nbytes
        assert len(self.open) <= limits.requests
        if self.conserving and not self.suspects:
            self.check_conserving()

    def check_conserving(self) -> None:
        """No device idles while a request waits that it may compute, and no keys wait that have a
        place. Holds for requests without deadlines, and if nothing is blamed for a death."""
        alive = [one for one in self.machines.values() if one.alive]
        self.check_affinity(alive)
        wanted = {key for key, _ in self.waiting}
        largest = max((self.sizes[name] for name in wanted), default=0)
        for key, program in self.waiting:
            offering = [one for one in alive if program in one.programs]
            for machine in offering:
                if machine.batch is None and key in machine.keys and machine.loading != key:
                    raise AssertionError(f"{machine.name} idles, and a request with {key} waits")
            if any(key in one.keys for one in offering):
                continue
            for machine in offering:
                if machine.loading is None:
                    used = sum(
                        size
                        for name, size in machine.keys.items()
                        if name in wanted or (machine.batch and machine.batch.key == name)
                    )
                    # The largest keys that are wanted may be those that wait for this room.
                    spare = machine.capacity - used
                    assert spare < largest, f"{machine.name} has room for {key}"

    def check_affinity(self, alive: list[Machine]) -> None:
        """No device that is empty idles while the last request with some keys would begin sooner on
        it than on the devices that have them, by more than the keys take to load."""
        empty = [one for one in alive if one.batch is None and one.loading is None and not one.keys]
        if not empty or not self.waiting:
            return
        seconds: Counter[str] = Counter()
        last: dict[str, float] = {}
        programs: dict[str, set[str]] = {}
        for sent in self.open.values():
            if sent.state == "waiting":
                seconds[sent.key] += sent.seconds  # type: ignore[assignment]
                last[sent.key] = sent.seconds  # open is in the order of arrivals
                programs.setdefault(sent.key, set()).add(sent.program)
        homes = {key: [one for one in alive if key in one.keys] for key in seconds}
        for key, found in homes.items():
            waits = []
            for one in found:
                wait = 0.0
                if one.batch is not None:
                    wait = max(one.began + one.batch.seconds - self.now, 0.0)
                wait += sum(seconds[name] / len(homes[name]) for name in one.keys if name in homes)
                waits.append(wait)
            for machine in empty:
                offered = programs[key] <= machine.programs
                if found and offered and self.sizes[key] <= machine.capacity:
                    load = self.sizes[key] * (1 / self.limits.host_rate + 1 / self.limits.disk_rate)
                    assert min(waits) - last[key] <= load + CLOSE, f"{machine.name} idles for {key}"


def rate(world: World, client: str) -> float:
    """The seconds on devices that a client's replies took, as predicted."""
    return sum(
        one.seconds
        for one in world.sent.values()
        if one.client == client and isinstance(one.answer, decide.Reply)
    )


def world(workers: int = 1, batch: int = 1, marginal: float = 1.0, **limits: Any) -> World:
    """Workers with a program p, and keys of two clients, "small" and "flood", beside others."""
    made = World(Limits(**limits))
    made.program("p", batch, marginal)
    for index in range(workers):
        made.worker(f"gpu{index}")
    for client in ("small", "flood"):
        made.keys(client, client, 10_000_000)
    return made


def reason(sent: Sent) -> str:
    assert isinstance(sent.answer, (decide.Refuse, decide.Fail))
    return sent.answer.reason


def latencies(made: World, client: str) -> list[float]:
    """Of all replies to a client. Asserts that it has nothing but replies."""
    found = [one for one in made.sent.values() if one.client == client]
    assert all(isinstance(one.answer, decide.Reply) for one in found), [one.answer for one in found]
    return [one.answered - one.arrived for one in found]
