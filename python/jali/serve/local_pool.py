"""A pool of processes on this machine, one for each device."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jali import device as devices_of
from jali._core.log import logger
from jali.errors import InvalidArgument, NoDevice
from jali.serve import pool
from jali.serve.holding import Answer, forget
from jali.serve.pool import Pool, ProgramFile, Report, WorkerState
from jali.serve.process import End, Process, Watch

__all__ = ["LocalPool"]


class LocalPool(Pool):
    """A process for each of some devices of this machine.

    devices: their names, as of Program.deploy; a name that comes twice has two workers.
    threads: of each worker on the CPU; None shares the cores among them.
    watch: when a worker hangs, and how soon another one is started.

    Raises InvalidArgument and NoDevice.

    >>> from jali.serve.local_pool import LocalPool
    >>> list(LocalPool(["cpu", "cpu"]).workers)
    ['cpu/0', 'cpu/1']
    """

    def __init__(
        self,
        devices: Sequence[str] = ("cpu",),
        *,
        threads: int | None = None,
        watch: Watch | None = None,
    ) -> None:
        found = [devices_of.resolved(name) for name in devices]
        if not found:
            raise InvalidArgument('give at least one device, such as "cpu"')
        for name in found:
            if name not in devices_of.available():
                raise NoDevice(
                    f"there is no device {name} here: give some of {', '.join(devices_of.available())}"
                )
        if threads is None and found.count("cpu") > 1:
            threads = max(1, _cores() // found.count("cpu"))
        self._threads, self._watch = threads, watch or Watch()
        self._states: dict[str, WorkerState] = {}
        for name in found:
            number = sum(one.device == name for one in self._states.values())
            self._states[f"{name}/{number}"] = WorkerState(name)
        self._processes: dict[str, Process] = {}
        self._programs: list[ProgramFile] = []
        self._measured = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._report: Callable[[Report], None] = lambda _: None

    @property
    def workers(self) -> dict[str, WorkerState]:
        return dict(self._states)

    async def start(
        self, programs: Sequence[ProgramFile], report: Callable[[Report], None]
    ) -> None:
        self._programs, self._report = list(programs), report
        if not any(one.measure for one in programs):
            self._measured.set()
        first, *others = self._states
        self._tasks = [asyncio.create_task(self._keep(first))]
        self._tasks += [asyncio.create_task(self._after_first(name)) for name in others]

    async def _after_first(self, name: str) -> None:
        """Measurements are of one worker that is alone on the machine."""
        await self._measured.wait()
        await self._keep(name)

    async def _keep(self, name: str) -> None:
        """Runs the process of a device, again and again."""
        failures = 0
        while True:
            began, process = time.monotonic(), Process(self._watch)
            self._processes[name] = process
            self._change(name, starts=self._states[name].starts + 1)
            try:
                end = await process.run(
                    self._begin(name), lambda frame, parts: self._heard(name, frame, parts)
                )
            except OSError as error:
                end = End(False, f"it cannot be started: {error.strerror}")
            finally:
                was_up = self._states[name].up
                self._change(name, up=False, pid=0, memory=0, key_bytes=0)
                del self._processes[name]
            logger.warning("the worker %s ended: %s", name, end.reason)
            self._report(pool.Died(name, end.blame, end.reason))
            await process.gone()
            settled = time.monotonic() - began >= self._watch.settled
            failures = 0 if was_up and (settled or not end.blame) else failures + 1
            if failures:
                await asyncio.sleep(self._watch.pause(failures))

    def _begin(self, name: str) -> dict[str, Any]:
        device = self._states[name].device
        programs = [vars(one) for one in self._programs]
        threads = self._threads if device == "cpu" else None
        return {"device": device, "threads": threads, "programs": programs}

    def _change(self, name: str, **fields: Any) -> None:
        self._states[name] = replace(self._states[name], **fields)

    def _heard(self, name: str, said: dict[str, Any], parts: list[bytes]) -> None:
        """Takes what a worker said."""
        process = self._processes[name]
        match said["is"]:
            case "alive":
                self._change(name, memory=said["memory"])
            case "ready":
                self._programs = [replace(one, measure=False) for one in self._programs]
                self._measured.set()
                self._change(name, up=True, pid=process.pid)
                host = socket.gethostname()
                self._report(pool.Started(name, host, said["free"], said["measured"]))
            case "failed":
                self._report(pool.Failed(name, said["code"], said["text"]))
            case "loaded":
                process.done("load")
                self._change(name, key_bytes=said["held"])
                self._report(pool.KeysLoaded(name, said["key"], said["nbytes"], said["seconds"]))
            case "not loaded":
                process.done("load")
                self._report(pool.KeysNotLoaded(name, said["key"], said["code"], said["text"]))
            case "left":
                self._report(pool.KeysAway(name, said["key"]))
            case "ran":
                process.done("run")
                self._change(name, key_bytes=said["held"])
                answers = tuple(
                    Answer(body, one["code"], one["text"])
                    for body, one in zip(parts, said["answers"], strict=True)
                )
                self._report(pool.Ran(name, said["batch"], said["seconds"], answers))

    def load(
        self, worker: str, key: str, program: str, path: Path, *, keep: bool, seconds: float
    ) -> None:
        if (process := self._processes.get(worker)) is not None:
            process.expect("load", seconds)
            command = {"do": "load", "key": key, "program": program}
            process.send({**command, "path": str(path), "keep": keep})

    def evict(self, worker: str, key: str) -> None:
        if (process := self._processes.get(worker)) is not None:
            process.send({"do": "evict", "key": key})

    def forget(self, host: str, path: Path) -> None:
        forget(str(path))

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
        if (process := self._processes.get(worker)) is not None:
            process.expect("run", seconds)
            paths = [str(one) if isinstance(one, Path) else None for one in bodies]
            command = {"do": "run", "batch": batch, "key": key, "bodies": paths, "seconds": left}
            process.send(command, [one for one in bodies if isinstance(one, bytes)])

    def stop(self, worker: str, batch: int) -> None:
        if (process := self._processes.get(worker)) is not None:
            process.send({"do": "stop", "batch": batch})

    async def close(self) -> None:
        self._report = lambda _: None
        processes = list(self._processes.values())
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for process in processes:
            await process.gone()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
