"""What the policy knows: programs, devices, keys, clients and requests."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jali.serve.policy.decisions import Decision, Fail, Failure, Reply, Stop
from jali.serve.policy.level import Level
from jali.serve.policy.limits import Limits
from jali.serve.policy.shares import Account

__all__ = ["Batch", "Device", "Keys", "Loading", "Program", "Request", "State"]

#: Times that differ by less are equal: sums of seconds are rounded.
ROUNDING = 1e-6
#: How many digests of requests that killed workers are kept.
_QUARANTINE = 1024
#: The part of a measurement in the pace of a worker, and the bounds of a pace.
_FRESH, _PACES = 0.2, (1 / 16, 16.0)


@dataclass(frozen=True, slots=True)
class Program:
    """A program, as of ProgramAdded."""

    max_batch: int
    marginal: float

    def seconds(self, costs: Sequence[float]) -> float:
        """How long a batch takes of whose requests the seconds alone are given."""
        longest = max(costs)
        return longest + self.marginal * (sum(costs) - longest)


@dataclass(slots=True)
class Request:
    """An admitted request.

    number: in the order of arrivals.
    cost: its seconds at the pace of the device that promised its deadline, or of the slowest.
    due: when its body is here, at the latest, if its deadline is to be met.
    until: when it is answered without a result unless its body came, or it was computed.
    device: that promised to meet its deadline.
    deaths, kills: how many workers died while it was computed, and how many it is blamed for.
    alone: it is computed in a batch of its own, since a batch with it died or failed.
    cancelled: it runs, and its client is gone.
    order: its place among promised requests, the earliest deadline first.
    """

    name: str
    number: int
    account: Account
    program: str
    keys: Keys
    seconds: float
    cost: float
    nbytes: int
    deadline: float | None
    arrived: float
    due: float
    until: float
    state: Literal["reserved", "waiting", "running"] = "reserved"
    device: Device | None = None
    digest: str = ""
    deaths: int = 0
    kills: int = 0
    alone: bool = False
    cancelled: bool = False
    order: tuple[float, int] = field(init=False)

    def __post_init__(self) -> None:
        self.order = (float("inf") if self.deadline is None else self.deadline, self.number)

    @property
    def suspect(self) -> bool:
        """Whether it may have killed a worker: nothing else runs or loads beside it."""
        return self.kills > 0

    def counts(self, now: float) -> bool:
        """Whether it waits, or may still do so in time for its deadline to be met."""
        return self.state == "waiting" or (self.state == "reserved" and now <= self.due + ROUNDING)


@dataclass(slots=True)
class Keys:
    """Keys that a client offered or sent.

    waiting: the requests that may be computed with them, in the order of arrivals.
    seconds: of these requests.
    suspects: how many of them may have killed a worker.
    users: how many admitted requests need them.
    kills, failures: how many workers died when they loaded them, and how many could not.
    deleted: nothing is admitted with them, and they leave each place as soon as they can.
    """

    name: str
    client: str
    nbytes: int
    stored: bool = False
    waiting: list[Request] = field(default_factory=list)
    seconds: float = 0.0
    suspects: int = 0
    users: int = 0
    kills: int = 0
    failures: int = 0
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Loading:
    """Keys on their way to a device, when they are expected, and whether they come from disk and
    stay in the host's memory."""

    keys: Keys
    until: float
    fresh: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """What a device computes. cost is predicted at the device's pace, plain without it."""

    number: int
    requests: tuple[Request, ...]
    keys: Keys
    program: str
    started: float
    cost: float
    plain: float


@dataclass(slots=True)
class Device:
    """A device whose worker lives.

    loading: the keys that are on their way.
    served: for keys on the device, the seconds for which they were in use since they came.
    promised: admitted requests whose deadlines it promised to meet, the earliest first.
    blocked: the seconds of a request whose turn it is, and which would break a promise now. New
        promises leave room for it.
    crowded: whether keys wait for room on it.
    hold: whether keys that killed a worker wait until nothing runs.
    """

    name: str
    host: str
    programs: frozenset[str]
    level: Level
    running: Batch | None = None
    loading: Loading | None = None
    served: dict[str, float] = field(default_factory=dict)
    promised: list[Request] = field(default_factory=list)
    blocked: float = 0.0
    crowded: bool = False
    hold: bool = False

    def free_at(self, now: float) -> float:
        """When it is expected to end what it computes."""
        return now if self.running is None else max(now, self.running.started + self.running.cost)

    def has(self, keys: Keys) -> bool:
        """Whether the keys are on the device, and not on their way."""
        return keys.name in self.level and (self.loading is None or self.loading.keys is not keys)

    def ready_at(self, keys: Keys, now: float) -> float | None:
        """When keys that it has or loads can be used; None for others."""
        if keys.name not in self.level:
            return None
        return now if self.has(keys) or self.loading is None else max(now, self.loading.until)

    def promise(self, request: Request, cost: float) -> None:
        """Adds a promise."""
        request.device, request.cost = self, cost
        bisect.insort(self.promised, request, key=lambda one: one.order)

    def release(self, request: Request) -> None:
        """Forgets a promise, if there is one."""
        if request.device is self:
            self.promised.remove(request)
            request.device = None


class State:
    """Everything that the policy knows at a time, and what it has decided at that time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.now = 0.0
        self.virtual = 0.0  # the tag of the client whose turn came last
        self.number = 0  # of requests and batches
        self.draining = False
        self.programs: dict[str, Program] = {}
        self.devices: dict[str, Device] = {}
        self.hosts: dict[str, Level] = {}
        self.disk = Level(limits.disk_bytes)
        self.keys: dict[str, Keys] = {}
        self.requests: dict[str, Request] = {}
        self.accounts: dict[str, Account] = {}
        self.total = Account("")  # of all clients
        self.seen: dict[str, float] = {}  # when a client sent a request, the latest last
        self.wanted: dict[str, Keys] = {}  # those with requests that wait
        self.paces: dict[tuple[str, str], float] = {}
        self.poison: dict[str, None] = {}  # digests
        self.timers: list[tuple[float, int, str]] = []
        self.decisions: list[Decision] = []

    def next_number(self) -> int:
        """A number that is larger than all before."""
        self.number += 1
        return self.number

    def tell(self, decision: Decision) -> None:
        """Decides something."""
        self.decisions.append(decision)

    def cost(self, seconds: float, program: str, device: Device) -> float:
        """What predicted seconds are at the pace of a device."""
        return seconds * self.paces.get((program, device.name), 1.0)

    def offering(self, program: str) -> list[Device]:
        """The devices that have a program."""
        return [one for one in self.devices.values() if program in one.programs]

    def homes(self, keys: Keys) -> Iterator[Device]:
        """The devices that have keys or load them."""
        return (one for one in self.devices.values() if keys.name in one.level)

    def measured(self, device: Device, batch: Batch) -> None:
        """Corrects the pace of a device after a batch."""
        place = (batch.program, device.name)
        if batch.plain > 0:
            found = min(max((self.now - batch.started) / batch.plain, _PACES[0]), _PACES[1])
            old = self.paces.get(place, 1.0)
            # Rounding alone changes nothing.
            self.paces[place] = old if abs(found - old) < ROUNDING else old + _FRESH * (found - old)

    def alarm(self, time: float, request: Request) -> None:
        """Has a request looked at, at a time."""
        heapq.heappush(self.timers, (time, request.number, request.name))

    def watch(self, request: Request) -> None:
        """Has a request looked at when it cannot be met any more."""
        self.alarm(request.until, request)
        if request.deadline is not None:
            self.alarm(request.deadline - request.cost + 2 * ROUNDING, request)

    def account(self, client: str, weight: float) -> Account:
        """The account of a client that sends a request."""
        self.seen.pop(client, None)
        self.seen[client] = self.now
        if client not in self.accounts:
            self.accounts[client] = Account(client, tag=self.virtual)
        account = self.accounts[client]
        account.weight = weight
        return account

    def contended(self, account: Account) -> bool:
        """Whether clients beside this one have requests, or had some lately."""
        if self.total.requests > account.requests:
            return True
        others = (time for name, time in reversed(self.seen.items()) if name != account.name)
        return self.now - next(others, float("-inf")) <= self.limits.recent

    def reserve(self, request: Request, sign: int) -> None:
        """Adds a request to the accounts, or takes it from there (-1)."""
        for account in (request.account, self.total):
            account.requests += sign
            account.nbytes += sign * request.nbytes
            account.seconds = account.seconds + sign * request.seconds if account.requests else 0.0
        request.keys.users += sign

    def enqueue(self, request: Request) -> None:
        """Has a request wait to be computed."""
        keys, account = request.keys, request.account
        request.state = "waiting"
        bisect.insort(keys.waiting, request, key=lambda one: one.number)
        keys.seconds += request.seconds
        keys.suspects += request.suspect
        self.wanted[keys.name] = keys
        account.waiting += 1
        if account.waiting == 1:
            account.tag = max(account.tag, self.virtual)

    def dequeue(self, request: Request) -> None:
        """Takes a request from those that wait."""
        keys = request.keys
        keys.waiting.remove(request)
        keys.seconds = keys.seconds - request.seconds if keys.waiting else 0.0
        keys.suspects -= request.suspect
        if not keys.waiting:
            del self.wanted[keys.name]
        request.account.waiting -= 1

    def end(self, request: Request, answer: Decision | None) -> None:
        """Answers a request and forgets it."""
        if request.state == "waiting":
            self.dequeue(request)
        if request.device is not None:
            request.device.release(request)
        self.reserve(request, -1)
        del self.requests[request.name]
        if answer is not None:
            self.tell(answer)
        if request.keys.name in self.disk:
            self.disk.refresh(request.keys.name)

    def reply(self, request: Request) -> None:
        """Answers a request with its result."""
        self.end(request, None if request.cancelled else Reply(request.name))

    def fail(self, request: Request, reason: Failure) -> None:
        """Answers a request without a result."""
        self.end(request, None if request.cancelled else Fail(request.name, reason))

    def abandon(self, request: Request, answer: Decision) -> None:
        """Answers a request that runs, and ends its batch if nobody waits for it."""
        request.cancelled = True
        self.tell(answer)
        for device in self.devices.values():
            batch = device.running
            if batch is not None and request in batch.requests:
                if all(one.cancelled for one in batch.requests):
                    self.tell(Stop(device.name, batch.number))
                return

    def again(self, request: Request) -> None:
        """Has a request wait that ran."""
        self.enqueue(request)
        self.watch(request)

    def quarantine(self, digest: str) -> None:
        """Remembers the digest of a request that killed workers."""
        if digest:
            self.poison.pop(digest, None)
            self.poison[digest] = None
            if len(self.poison) > _QUARANTINE:
                del self.poison[next(iter(self.poison))]

    def forget(self) -> None:
        """Drops accounts that would begin anew with what they have, so that the policy does not
        grow with the clients that ever came."""
        if not self.total.requests:
            # Nobody waits: what was served on devices that nobody else wanted is not held against
            # anyone.
            self.accounts.clear()
        elif len(self.accounts) > 64 + 2 * self.total.requests:
            for name in [
                one.name
                for one in self.accounts.values()
                if not one.requests and one.tag <= self.virtual
            ]:
                del self.accounts[name]
        while self.seen:
            first = next(iter(self.seen))
            if self.now - self.seen[first] <= self.limits.recent:
                return
            del self.seen[first]
