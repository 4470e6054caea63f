"""What happens to a service, as the policy is told of it.

Clients, programs, keys, workers and requests are names. Seconds are those of a device, bytes are
bytes, and times are those of any clock that does not go back.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Arrived",
    "Cancelled",
    "Draining",
    "Event",
    "Finished",
    "KeysDeleted",
    "KeysFailed",
    "KeysLeft",
    "KeysLoaded",
    "KeysOffered",
    "KeysStored",
    "ProgramAdded",
    "Received",
    "Tick",
    "WorkerDied",
    "WorkerStarted",
]


@dataclass(frozen=True, slots=True)
class ProgramAdded:
    """A program that workers may offer.

    max_batch: the most requests that a device computes at once, at least 1.
    marginal: what each further request of a batch takes, as a share of what it takes alone: 0 to 1.
    """

    program: str
    max_batch: int = 1
    marginal: float = 1.0


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The process of a device is ready, and no keys are on the device.

    host: the machine whose memory the worker shares with its other workers.
    device_bytes: what the device has for keys.
    programs: what the worker can compute.
    """

    worker: str
    host: str
    device_bytes: int
    programs: frozenset[str]


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The process of a device ended, and what it computed and loaded is lost.

    blame: whether what it did may be the reason. Not so if somebody else ended it.
    """

    worker: str
    blame: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """A worker ended a batch.

    batch: the number that Dispatch gave it; an old one is ignored.
    ok: whether requests have their results. If not, none has, and it is not known which is at fault.
    failed: the requests that have no result by their own fault, if others have theirs.
    """

    worker: str
    batch: int
    ok: bool = True
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class KeysOffered:
    """A client wants to send keys of so many bytes."""

    key: str
    client: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class KeysStored:
    """Keys that were granted are on disk, whole and checked."""

    key: str


@dataclass(frozen=True, slots=True)
class KeysDeleted:
    """The client's keys are deleted, or will not come after all."""

    key: str


@dataclass(frozen=True, slots=True)
class KeysLoaded:
    """Keys that a worker was told to load are on its device."""

    worker: str
    key: str


@dataclass(frozen=True, slots=True)
class KeysFailed:
    """A worker could not load keys, and lives."""

    worker: str
    key: str


@dataclass(frozen=True, slots=True)
class KeysLeft:
    """Keys left a device although the policy did not ask for it."""

    worker: str
    key: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """The head of a request is here, and its body has not been read.

    seconds: what it takes alone on a device, as predicted.
    nbytes: the size of the body.
    deadline: the time by which it must be answered, if any.
    weight: the client's share in comparison with those of others.
    """

    request: str
    client: str
    program: str
    key: str
    seconds: float
    nbytes: int
    deadline: float | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Received:
    """The body of an admitted request is here.

    digest: of the body, by which a request is known that killed workers before.
    """

    request: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client of a request is gone, or its body will not come."""

    request: str


@dataclass(frozen=True, slots=True)
class Draining:
    """The service is about to end: nothing new is admitted."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed."""


Event = (
    ProgramAdded
    | WorkerStarted
    | WorkerDied
    | Finished
    | KeysOffered
    | KeysStored
    | KeysDeleted
    | KeysLoaded
    | KeysFailed
    | KeysLeft
    | Arrived
    | Received
    | Cancelled
    | Draining
    | Tick
)
