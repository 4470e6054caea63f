"""What the policy tells a service to do, in the order in which it is to be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Admit",
    "Decision",
    "Deny",
    "Dispatch",
    "Drop",
    "Evict",
    "Fail",
    "Failure",
    "Grant",
    "Load",
    "Place",
    "Refusal",
    "Refuse",
    "Reply",
    "Stop",
]

#: Why a request is not admitted. "too_large": it never fits. "client": the client has as much
#: waiting as is left for others. "full": there is no room for anybody. "deadline": it cannot be met.
#: "no_worker": no worker that lives has the program. "keys": its keys are not stored, or no device
#: can hold them. "poison": its keys killed workers. "draining": the service is about to end.
Refusal = Literal[
    "too_large", "client", "full", "deadline", "no_worker", "keys", "poison", "draining"
]
#: Why an admitted request has no result. "body": it did not come in time. "deadline": it cannot be
#: met any more. "patience": it waited for too long. "keys": they were deleted, or cannot be loaded.
#: "poison": it, or its keys, killed as many workers as one may. "attempts": its workers died too
#: often, for whatever reason. "error": it was computed alone and failed.
Failure = Literal["body", "deadline", "patience", "keys", "poison", "attempts", "error"]
Place = Literal["device", "host", "disk"]


@dataclass(frozen=True, slots=True)
class Admit:
    """Read the body: its bytes and its seconds are reserved until a time."""

    request: str
    nbytes: int
    seconds: float
    until: float


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not read the body.

    retry_after: in how many seconds the same may be admitted, or None if that never happens by
        itself.
    """

    request: str
    reason: Refusal
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Compute these requests of one client and one program on a worker, whose device has the keys.

    batch: a number for Finished and Stop.
    seconds: how long it takes, as predicted.
    """

    worker: str
    batch: int
    program: str
    key: str
    requests: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Load:
    """Bring keys to a device, beside what it computes.

    source: where they are, "host" or "disk".
    keep: whether they stay in the host's memory, too, on their way from disk.
    seconds: how long it takes, as predicted.
    """

    worker: str
    key: str
    source: Place
    keep: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Evict:
    """Remove keys from a level.

    name: of the worker or of the host; empty for the disk.
    """

    level: Place
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Send the result of a request."""

    request: str


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer an admitted request without a result."""

    request: str
    reason: Failure


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget a request whose client is gone."""

    request: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End a batch that nobody waits for any more."""

    worker: str
    batch: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Take the keys that a client offered: the room on disk is reserved."""

    key: str


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not take the keys: what is on disk is in use, or they are larger than the disk."""

    key: str


Decision = (
    Admit | Refuse | Dispatch | Load | Evict | Reply | Fail | Drop | Stop | Grant | Deny
)  # fmt: skip
