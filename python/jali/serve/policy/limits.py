"""The bounds and the rates by which the policy decides."""

from __future__ import annotations

from dataclasses import dataclass, fields

from jali.errors import InvalidArgument

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a service. All are positive.

    seconds: the most that is admitted and not answered, predicted, for each device that lives.
    nbytes: the most bytes of bodies that are admitted and not answered.
    requests: the most requests that are admitted and not answered.
    host_bytes: what a machine's memory has for keys.
    disk_bytes: what the disk has for keys.
    host_rate: bytes of keys that reach a device from its host in a second.
    disk_rate: bytes of keys that reach a host from disk in a second.
    turn: the seconds for which waiting requests of keys are computed, at least, before these keys
        are evicted for others. It is as long as the keys take to load, if that is longer.
    stretch: how much longer a batch takes than its longest request alone, at most, while requests
        of other clients are there or were within `recent` seconds. At least 1.
    recent: the seconds for which a client counts that has nothing to compute.
    body: the seconds in which the body of an admitted request must come.
    body_rate: bytes of a body that come in a second, at least, if its deadline is to be met.
    patience: the seconds after which an admitted request is answered without a result.
    attempts: how often a request is computed, at most, if its workers die.
    kills: how many workers a request or keys may kill.
    restart: the seconds that a worker takes to come back, for the time to retry after.
    """

    seconds: float = 60.0
    nbytes: int = 4 << 30
    requests: int = 10_000
    host_bytes: int = 16 << 30
    disk_bytes: int = 256 << 30
    host_rate: float = 10e9
    disk_rate: float = 2e9
    turn: float = 0.25
    stretch: float = 2.0
    recent: float = 5.0
    body: float = 30.0
    body_rate: float = 25e6
    patience: float = 600.0
    attempts: int = 8
    kills: int = 2
    restart: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise InvalidArgument(
                    f"{field.name} is {getattr(self, field.name)}: give a positive number"
                )
        if self.stretch < 1:
            raise InvalidArgument(
                "stretch is below 1: a batch takes as long as its longest request"
            )

    def load_seconds(self, nbytes: int, from_host: bool) -> float:
        """How long keys of so many bytes take to reach a device."""
        return nbytes / self.host_rate + (0.0 if from_host else nbytes / self.disk_rate)
