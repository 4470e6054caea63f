"""The process of a device: it computes what a pool tells it, and ends with the pool.

It holds programs and public keys. It is told nothing of clients, and writes nothing of what they
send. ``python -m jali.serve.worker FD`` takes commands from a socket.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jali._core.log import logger
from jali.errors import DeviceLost, Error
from jali.serve import memory
from jali.serve.frames import head, read
from jali.serve.holding import Answer, Holding, Stopped, unexpected

__all__ = ["DEVICE_LOST", "main"]

#: The exit status of a worker whose device failed.
DEVICE_LOST = 75


class Worker:
    """Obeys the commands of a socket. One thread reads them, one computes, one loads keys, and one
    says that the process lives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._stops: dict[int, threading.Event] = {}
        self._holding: Holding

    def serve(self) -> None:
        """Reads commands until there are no more."""
        stream = self._connection.makefile("rb")
        first = read(stream)
        if first is None:
            return
        begin = first[0]
        threading.Thread(target=self._beat, args=(begin["beat"],), daemon=True).start()
        runs, loads = (self._worker_thread(name) for name in ("run", "load"))
        runs.put(lambda: self._begin(begin))
        while (frame := read(stream)) is not None:
            command, parts = frame
            match command["do"]:
                case "load":
                    loads.put(partial(self._load, command))
                case "evict":
                    self._holding.evict(command["key"])
                case "run":
                    stop = self._stops[command["batch"]] = threading.Event()
                    runs.put(partial(self._run, command, parts, stop))
                case "stop":
                    if (event := self._stops.get(command["batch"])) is not None:
                        event.set()

    def _worker_thread(self, name: str) -> queue.SimpleQueue[Callable[[], None]]:
        todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

        def work() -> None:
            while True:
                try:
                    todo.get()()
                except DeviceLost as error:
                    logger.error("the device is lost: %s", error)
                    os._exit(DEVICE_LOST)
                except BaseException as error:
                    logger.error("the worker ends: %s", unexpected(error).code)
                    os._exit(1)

        threading.Thread(target=work, name=name, daemon=True).start()
        return todo

    def _tell(self, content: dict[str, Any], parts: Sequence[bytes] = ()) -> None:
        try:
            with self._sending:
                self._connection.sendall(head(content, parts))
                for part in parts:
                    self._connection.sendall(part)
        except OSError:
            os._exit(0)  # the pool is gone

    def _beat(self, seconds: float) -> None:
        while True:
            self._tell({"is": "alive", "memory": memory.resident()})
            time.sleep(seconds)

    def _begin(self, command: dict[str, Any]) -> None:
        holding = Holding(
            command["device"],
            command["threads"],
            lambda key: self._tell({"is": "left", "key": key}),
        )
        measured = {}
        try:
            for one in command["programs"]:
                data = Path(one["path"]).read_bytes()
                fingerprint = one["fingerprint"]
                measured[fingerprint] = holding.add(fingerprint, data, measure=one["measure"])
        except DeviceLost:
            raise
        except Error as error:
            self._tell({"is": "failed", "code": error.code, "text": str(error)})
            os._exit(1)
        self._holding = holding
        self._tell({"is": "ready", "measured": measured, "free": memory.free(command["device"])})

    def _load(self, command: dict[str, Any]) -> None:
        key = command["key"]
        start = time.monotonic()
        try:
            nbytes = self._holding.load(
                key, command["program"], command["path"], keep=command["keep"]
            )
        except DeviceLost:
            raise
        except Error as error:
            self._tell({"is": "not loaded", "key": key, "code": error.code, "text": str(error)})
            return
        seconds = time.monotonic() - start
        self._tell(
            {
                "is": "loaded",
                "key": key,
                "nbytes": nbytes,
                "seconds": seconds,
                "held": self._holding.nbytes,
            }
        )

    def _run(self, command: dict[str, Any], parts: list[bytes], stop: threading.Event) -> None:
        taken = iter(parts)
        bodies = [next(taken) if path is None else path for path in command["bodies"]]
        start = time.monotonic()
        try:
            answers = self._holding.run(
                command["key"], bodies, seconds=command["seconds"], stop=stop
            )
        except Stopped:
            answers = [Answer(code="stopped")] * len(bodies)
        except DeviceLost:
            raise
        except Exception as error:
            answers = [unexpected(error)] * len(bodies)
        finally:
            del self._stops[command["batch"]]
        report = {
            "is": "ran",
            "batch": command["batch"],
            "seconds": time.monotonic() - start,
            "answers": [{"code": one.code, "text": one.text} for one in answers],
            "held": self._holding.nbytes,
        }
        self._tell(report, [one.body for one in answers])


def main() -> int:
    """Serves the socket whose number is the first argument."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, which is for the pool
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        Worker(connection).serve()
    os._exit(0)  # also if a run goes on


if __name__ == "__main__":
    main()
