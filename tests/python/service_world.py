"""Programs on small rings with clients of theirs, and services of them, for tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import seeds
from serve_world import program_of

from jali import nn
from jali.serve.keys import KeyStore
from jali.serve.local_pool import LocalPool
from jali.serve.policy import Limits
from jali.serve.process import Watch
from jali.serve.service import Service
from jali.serve.tickets import Result
from jali.tfhe import trees

PATIENCE = 120.0  # seconds in which anything happens, also on a busy machine
SECONDS = {"network": 0.01, "integers": 0.01, "trees": 0.01, "deep": 0.05}


@cache
def program(kind: str) -> Any:
    with seeds.named(f"program of {kind}"):
        return program_of(kind)


@dataclass(frozen=True)
class Party:
    """A client with its secret."""

    kind: str
    client: Any
    keys: bytes
    key_id: str

    def rows(self, count: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        if self.kind == "integers":
            return rng.integers(-9, 10, (count, 4))
        if self.kind == "trees":
            return rng.uniform(0.1, 7, (count, 4))
        return rng.uniform(-1, 1, (count, 8))

    def request(self, rows: Any) -> bytes:
        return bytes(self.client.encrypt(rows).to_bytes())

    def check(self, body: bytes, rows: Any) -> None:
        """Fails if a reply is not that to these rows."""
        of: Any = {"integers": nn.integers.Message, "trees": trees.Message}.get(
            self.kind, nn.Message
        )
        found = self.client.decrypt(of.reply(body, program(self.kind).manifest))
        if self.kind == "trees":
            assert abs(found - program("trees").clear(rows)).max() <= 1.01 * program("trees").error
        elif self.kind == "integers":
            np.testing.assert_array_equal(found, (rows * rows).sum(axis=1) - rows[:, 0])
        else:
            np.testing.assert_allclose(found, program(self.kind).clear(rows), atol=0.05)


@cache
def party(kind: str, which: int = 0) -> Party:
    with seeds.named(f"party {which} of {kind}"):
        client = program(kind).client(threads=1)
        keys = client.evaluation_keys()
    return Party(kind, client, keys.to_bytes(), keys.key_id)


@cache
def long_request() -> bytes:
    """A request for the deep network that takes half a minute."""
    one = party("deep")
    return one.request(one.rows(1500, 0))


def fingerprint(kind: str) -> str:
    return str(program(kind).manifest.fingerprint)


def give_keys(service: Service, client: str, one: Party) -> None:
    """Stores the keys of a client."""
    begun = service.uploads.create(client, fingerprint(one.kind), len(one.keys))
    with service.uploads.append(client, begun.upload, 0, complete=True) as append:
        append.write(one.keys)
        append.end()


async def ask(
    service: Service, client: str, one: Party, body: bytes | Path, **options: Any
) -> Result:
    """One request from its head to its reply."""
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    ticket = await service.admit(client, fingerprint(one.kind), one.key_id, size, **options)
    return await ticket.send(body)


async def check(service: Service, client: str, one: Party, count: int, seed: int) -> None:
    """Asks for the results of some rows, and compares them."""
    rows = one.rows(count, seed)
    one.check((await ask(service, client, one, one.request(rows))).body, rows)


async def until(true: Callable[[], Any], what: str = "it") -> None:
    """Waits for something."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while not true():
        assert asyncio.get_running_loop().time() < end, f"{what} did not happen"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running(
    folder: Path,
    *kinds: str,
    workers: int = 1,
    watch: Watch | None = None,
    limits: Limits | None = None,
    seconds: Mapping[str, float] = SECONDS,
    **options: Any,
) -> AsyncIterator[Service]:
    """A service of some programs on CPUs, with its store in a folder."""
    pool = LocalPool(["cpu"] * workers, threads=1, watch=watch)
    with KeyStore(folder / "store") as store:
        service = Service(
            {kind: program(kind) for kind in kinds},
            store,
            pool=pool,
            limits=limits,
            seconds=seconds,
            **options,
        )
        await service.start()
        try:
            yield service
        finally:
            await service.stop(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs a test in a loop of its own."""
    asyncio.run(_bounded(work))


async def _bounded(work: Awaitable[None]) -> None:
    await asyncio.wait_for(work, 4 * PATIENCE)
