"""Workers, as a service sees them: what it tells them, and what they report.

``local_pool.LocalPool`` runs a process for each device of this machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jali.serve.holding import Answer

__all__ = [
    "Answer",
    "Died",
    "Failed",
    "KeysAway",
    "KeysLoaded",
    "KeysNotLoaded",
    "Pool",
    "ProgramFile",
    "Ran",
    "Report",
    "Started",
    "WorkerState",
]


@dataclass(frozen=True)
class ProgramFile:
    """A program for workers.

    fingerprint: of its manifest.
    path: of its bytes.
    measure: whether a worker finds out by trial runs what it costs.
    """

    fingerprint: str
    path: str
    measure: bool


@dataclass(frozen=True)
class Started:
    """A worker is ready.

    host: whose memory it shares.
    free: the bytes that are free on its device, before any keys; 0 if nobody knows.
    measured: by program, the "seconds" of a run and the "key_bytes" of a client there.
    """

    worker: str
    host: str
    free: int
    measured: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Failed:
    """A worker cannot start; an error with this code and sentence says why. It is tried again."""

    worker: str
    code: str
    text: str


@dataclass(frozen=True)
class Died:
    """A worker ended, or was ended because it hung.

    blame: whether what it did may be the reason: not so if somebody else ended or stopped it.
    reason: a word for logs and metrics.
    """

    worker: str
    blame: bool
    reason: str


@dataclass(frozen=True)
class KeysLoaded:
    """Keys are on a device, where they take so many bytes; it took so many seconds."""

    worker: str
    key: str
    nbytes: int
    seconds: float


@dataclass(frozen=True)
class KeysNotLoaded:
    """Keys could not be loaded; an error with this code and sentence says why."""

    worker: str
    key: str
    code: str
    text: str


@dataclass(frozen=True)
class KeysAway:
    """Keys left a device to make room."""

    worker: str
    key: str


@dataclass(frozen=True)
class Ran:
    """A batch ended after so many seconds, with an answer for each of its requests."""

    worker: str
    batch: int
    seconds: float
    answers: tuple[Answer, ...]


Report = Started | Failed | Died | KeysLoaded | KeysNotLoaded | KeysAway | Ran


@dataclass(frozen=True)
class WorkerState:
    """What is known of a worker.

    device: on which it computes.
    up: whether it is ready.
    pid: of its process, on its machine; 0 if there is none.
    memory: the bytes of its process.
    key_bytes: those of clients' keys on its device.
    starts: how often it was started.
    """

    device: str
    up: bool = False
    pid: int = 0
    memory: int = 0
    key_bytes: int = 0
    starts: int = 0


class Pool(ABC):
    """Workers of one service. What is said to a worker that died has no effect: its Died is on the
    way, or came."""

    @property
    @abstractmethod
    def workers(self) -> dict[str, WorkerState]:
        """The state of each worker, by its name."""

    @abstractmethod
    async def start(
        self, programs: Sequence[ProgramFile], report: Callable[[Report], None]
    ) -> None:
        """Begins to start the workers, and starts them again whenever they die.

        programs: that each of them runs.
        report: called with what happens, by the loop that runs this.
        """

    @abstractmethod
    def load(
        self, worker: str, key: str, program: str, path: Path, *, keep: bool, seconds: float
    ) -> None:
        """Has a worker load keys beside what it computes. It reports KeysLoaded or KeysNotLoaded.

        key: a name for them.
        program: the fingerprint of their program.
        path: of their bytes.
        keep: whether the machine should keep the file in its memory.
        seconds: how long it takes, as predicted.
        """

    @abstractmethod
    def evict(self, worker: str, key: str) -> None:
        """Has a worker remove keys that it does not use.

        key: their name.
        """

    @abstractmethod
    def forget(self, host: str, path: Path) -> None:
        """Says that a file of keys need not stay in the memory of a machine.

        host: the machine.
        path: of the file.
        """

    @abstractmethod
    def run(
        self,
        worker: str,
        batch: int,
        key: str,
        bodies: Sequence[bytes | Path],
        *,
        seconds: float,
        left: float | None,
    ) -> None:
        """Has a worker compute requests of a client. It reports Ran.

        key: the name of its keys.
        batch: a number for the report.
        bodies: the bytes of each request, or a path to them.
        seconds: how long it takes, as predicted.
        left: the seconds after which no answer is wanted; None if there is no such time.
        """

    @abstractmethod
    def stop(self, worker: str, batch: int) -> None:
        """Has a worker end a batch early. It reports Ran."""

    @abstractmethod
    async def close(self) -> None:
        """Ends all workers. Nothing is reported any more."""
