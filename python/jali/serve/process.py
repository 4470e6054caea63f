"""One process of a worker, as its pool sees it: how it starts, whether it hangs, and why it ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jali
from jali.serve.frames import head, receive
from jali.serve.worker import DEVICE_LOST

__all__ = ["End", "Process", "Watch"]

#: Signals that come from outside. Others are sent by the system to a process that did wrong.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_LIMIT = 1 << 20  # bytes that a stream reads ahead


@dataclass(frozen=True)
class Watch:
    """When a worker hangs, and how soon another one is started. All are seconds.

    beat: between two signs of life.
    silence: without one, after which it is ended.
    opening: how long the first sign may take, since a machine with other work starts it slowly.
    least, times: a run, or a load of keys, may take `least`, and `times` what was predicted.
    settled: a worker that lived for so long starts again at once, whatever ended it.
    longest: the pause before the next start doubles with each failure, up to this.

    >>> from jali.serve.process import Watch
    >>> [Watch().pause(failures) for failures in (1, 2, 20)]
    [0.25, 0.5, 30.0]
    """

    beat: float = 0.5
    silence: float = 30.0
    opening: float = 120.0
    least: float = 60.0
    times: float = 20.0
    settled: float = 60.0
    longest: float = 30.0

    def limit(self, seconds: float) -> float:
        """How long something may take that is predicted to take so many seconds."""
        return self.least + self.times * seconds

    def pause(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return min(self.longest, 0.25 * 2.0 ** min(failures - 1, 30))


@dataclass(frozen=True)
class End:
    """Why a process ended.

    blame: whether what it did may be the reason.
    reason: in a few words.
    """

    blame: bool
    reason: str


class Process:
    """A process that computes on a device. It has a session of its own, so that the signals of a
    terminal do not reach it, and ends when the socket to it is closed."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._until: dict[str, float] = {}
        self._silent = 0.0
        self._heard = False
        self._end: End | None = None

    async def run(
        self,
        begin: dict[str, Any],
        heard: Callable[[dict[str, Any], list[bytes]], None],
    ) -> End:
        """Starts the process, and waits until it ended or hangs.

        begin: the first command.
        heard: called with each frame that comes.
        """
        reader = await self._started()
        self.send({**begin, "beat": self._watch.beat})
        watching = asyncio.create_task(self._watching())
        try:
            while (frame := await receive(reader)) is not None and self._end is None:
                self._silent, self._heard = 0.0, True
                heard(*frame)
            return await self._ended()
        finally:
            watching.cancel()
            self.kill()
            if self._writer is not None:
                self._writer.close()

    async def _started(self) -> asyncio.StreamReader:
        """Starts the process. What it says comes from the reader."""
        package = str(Path(jali.__file__).parent.parent)
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as opened:
            opened.callback(ours.close)
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # no module of the folder in which the service runs
                    "-m",
                    "jali.serve.worker",
                    str(theirs.fileno()),
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                )
            opened.callback(self.kill)
            ours.setblocking(False)
            reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=_LIMIT)
            opened.pop_all()
        return reader

    def send(self, command: dict[str, Any], parts: Sequence[bytes] = ()) -> None:
        """Writes a command.

        parts: the bytes that follow it.
        """
        if self._writer is None or self._writer.is_closing():
            return
        self._writer.write(head(command, parts))
        for part in parts:
            self._writer.write(part)

    def expect(self, what: str, seconds: float) -> None:
        """Something begins that is predicted to take so many seconds.

        what: its name, of which there is one at a time.
        """
        self._until[what] = time.monotonic() + self._watch.limit(seconds)

    def done(self, what: str) -> None:
        """It ended.

        what: its name.
        """
        self._until.pop(what, None)

    @property
    def pid(self) -> int:
        """Its number, 0 before it was started."""
        return 0 if self._process is None else self._process.pid

    def kill(self) -> None:
        """Ends the process, also one that is stopped."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def gone(self) -> None:
        """Waits until the process is no more."""
        if self._process is not None:
            await self._process.wait()

    async def _watching(self) -> None:
        """Ends the process once it hangs. A pause of this process itself counts little."""
        step = min(self._watch.beat, self._watch.silence / 4)
        before = time.monotonic()
        while self._end is None:
            await asyncio.sleep(step)
            now = time.monotonic()
            self._silent += min(now - before, 2 * step)
            before = now
            late = [what for what, until in self._until.items() if now > until]
            if late:
                self._hangs(End(True, f"its {late[0]} took far longer than predicted"))
            elif self._silent > (self._watch.silence if self._heard else self._watch.opening):
                stopped = self._is_stopped()
                reason = "somebody stopped it" if stopped else "it gave no sign of life"
                self._hangs(End(not stopped, reason))

    def _hangs(self, end: End) -> None:
        self._end = end
        self.kill()
        if self._writer is not None:
            self._writer.transport.abort()

    def _is_stopped(self) -> bool:
        """Whether a signal from outside holds the process."""
        assert self._process is not None
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        except (OSError, ValueError):
            return False
        return text.rpartition(") ")[2][:1] in ("T", "t")

    async def _ended(self) -> End:
        if self._end is not None:
            return self._end
        assert self._process is not None
        try:
            status = await asyncio.wait_for(self._process.wait(), self._watch.silence)
        except TimeoutError:
            return End(True, "it closed its socket and did not end")
        if status == DEVICE_LOST:
            return End(True, "its device is lost")
        if status < 0:
            name = signal.Signals(-status).name
            return End(-status not in _FROM_OUTSIDE, f"it was ended by {name}")
        return End(status != 0, f"it ended with status {status}")
