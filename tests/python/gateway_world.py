"""A gateway on loopback, in a thread of the test, before a service that is a double."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import serve_world

from jali.serve.auth import Identify
from jali.serve.gateway import Gateway, Settings
from jali.serve.keys import KeyStore
from jali.serve.logs import Log
from jali.serve.refusal import Refusal

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httptools", reason="httptools is not installed")
pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")

KEY = "0123456789abcdef" * 2


@dataclass
class Result:
    body: bytes
    queue: float = 0.001
    load: float = 0.0
    compute: float = 0.25


def reply_to(body: bytes) -> bytes:
    """What the double answers."""
    return b"reply to " + hashlib.sha256(body).digest()


@dataclass
class Ticket:
    """A request of the double."""

    service: Double
    nbytes: int
    state: str = "admitted"
    cancelled: bool = False
    sent: Any = None

    @property
    def position(self) -> int | None:
        return 2 if self.state == "waiting" else None

    @property
    def seconds_left(self) -> float | None:
        return 1.5 if self.state == "waiting" else None

    async def send(self, body: bytes | Path, digest: str = "") -> Result:
        self.sent, self.state = body, "waiting"
        data = body.read_bytes() if isinstance(body, Path) else body
        assert hashlib.sha256(data).hexdigest() == digest
        self.service.bodies.append(len(data))
        try:
            await self.service.gate.wait()
            if self.service.failure is not None:
                raise self.service.failure
            return Result(self.service.reply or reply_to(data))
        finally:
            if self.state != "done" and not self.service.gate.is_set():
                self.cancelled = True
            self.state = "done"

    def cancel(self) -> None:
        self.cancelled = self.cancelled or self.state != "done"
        self.state = "done"


@dataclass
class Double:
    """A service that computes nothing. What it answers and refuses is set by the test."""

    store: KeyStore
    uploads: Any
    programs: dict[str, Any]
    ready: bool = True
    observers: list[Any] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    admitted: list[dict[str, Any]] = field(default_factory=list)
    refusal: Refusal | None = None
    failure: BaseException | None = None
    reply: bytes = b""
    stopped: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def admit(
        self, client: str, program: str, key_id: str, nbytes: int, **more: Any
    ) -> Ticket:
        self.admitted.append({"client": client, "key_id": key_id, "nbytes": nbytes, **more})
        if self.refusal is not None:
            raise self.refusal
        self.tickets.append(Ticket(self, nbytes))
        return self.tickets[-1]

    async def delete_keys(self, client: str, **which: str | None) -> int:
        return await asyncio.to_thread(lambda: self.store.delete(client, **which))

    async def stop(self, grace: float = 30.0) -> None:
        self.stopped = True
        until = asyncio.get_running_loop().time() + grace
        while any(t.state != "done" for t in self.tickets):
            if asyncio.get_running_loop().time() > until:
                return
            await asyncio.sleep(0.01)

    def snapshot(self) -> Any:
        return SimpleNamespace(
            workers={"cpu/0": SimpleNamespace(up=self.ready, key_bytes=70, memory=900)},
            waiting=dict.fromkeys(self.programs, 3),
            running=dict.fromkeys(self.programs, 1),
            key_bytes={"disk": 10, "host": 20, "device": 70},
            retries=5,
            hits=6,
            misses=7,
            evictions=8,
            uploads={"bytes": 9, "refused": 4},
        )


@dataclass
class World:
    """A gateway that runs."""

    url: str
    gateway: Gateway
    service: Double
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    folder: Path

    def client(self, **options: Any) -> Any:
        options = {"timeout": 20, "trust_env": False, **options}
        return httpx.Client(base_url=self.url, **options)

    def open(self, is_open: bool = True) -> None:
        """Lets the double answer, or not."""
        gate = self.service.gate
        self.loop.call_soon_threadsafe(gate.set if is_open else gate.clear)

    def end(self) -> None:
        """As a signal does."""
        self.loop.call_soon_threadsafe(self.stop.set)


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    kinds: tuple[str, ...] = ("network",),
    identify: Identify | None = None,
    settings: Settings | None = None,
    log: Log | None = None,
    grace: float = 10.0,
    tls: Any = None,
    **options: Any,
) -> Iterator[World]:
    """A gateway within the block."""
    from jali.serve.server import serve

    store = KeyStore(folder / "store", **options.pop("store", {}))
    uploads = serve_world.uploads_of(store, *kinds, **options.pop("uploads", {}))
    programs = {}
    for kind in kinds:
        one = serve_world.served(kind)
        programs[one.program] = SimpleNamespace(
            name=kind,
            fingerprint=one.program,
            manifest=one.manifest.to_bytes(),
            key_bytes=len(one.keys[0]),
            seconds=0.5,
            max_batch=4,
            inputs=[{"name": "x", "shape": [8], "dtype": "float64"}],
            request_bytes=1000,
            answer_bytes=500,
            examples=2,
        )
    worlds: list[World] = []
    ready, failed = threading.Event(), []

    async def main() -> None:
        service = Double(store, uploads, programs)
        service.gate.set()
        gateway = Gateway(
            service, folder / "store", identify=identify, settings=settings, log=log, **options
        )
        stop = asyncio.Event()

        def started(port: int) -> None:
            url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
            loop = asyncio.get_running_loop()
            worlds.append(World(url, gateway, service, loop, stop, folder))
            ready.set()

        try:
            await serve(gateway, "127.0.0.1", 0, tls=tls, grace=grace, started=started, stop=stop)
        finally:
            gateway.close()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(30)
    if not worlds:
        raise failed[0]
    try:
        yield worlds[0]
    finally:
        worlds[0].open()
        worlds[0].end()
        thread.join(30)
        store.close()
    assert not thread.is_alive()
    assert not failed, failed


def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def refused(answer: Any, status: int, kind: str) -> dict[str, Any]:
    """Checks a document of a problem, and returns it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["type"].rsplit("#", 1)[-1].rsplit(":", 1)[-1] == kind
    assert document["detail"]
    return document
