"""Workers of a service die, hang and are stopped under load: every request has one answer, and it is
right."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from service_world import (
    PATIENCE,
    ask,
    check,
    fingerprint,
    give_keys,
    long_request,
    party,
    program,
    run,
    running,
    until,
)

from jali.serve.keys import KeyStore
from jali.serve.policy import Limits
from jali.serve.process import Watch
from jali.serve.refusal import Refusal
from jali.serve.service import Service
from jali.serve.tickets import Event


def _pids(service: Service) -> list[int]:
    return [one.pid for one in service.snapshot().workers.values() if one.pid]


def test_two_hundred_requests_while_workers_are_killed(tmp_path: Path) -> None:
    async def work() -> None:
        limits = Limits(attempts=1000, restart=PATIENCE)
        async with running(tmp_path, "network", "integers", workers=2, limits=limits) as service:
            events: list[Event] = []
            service.observers.append(events.append)
            people = [
                (f"{kind} {k}", party(kind, k)) for kind in ("network", "integers") for k in (0, 1)
            ]
            for name, one in people:
                give_keys(service, name, one)
            rng, done, killed = random.Random(1), asyncio.Event(), 0

            async def kill() -> None:
                nonlocal killed
                while not done.is_set():
                    if pids := _pids(service):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(rng.choice(pids), signal.SIGKILL)
                            killed += 1
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(done.wait(), rng.uniform(0.3, 1))

            async def client(name: str, k: int) -> None:
                one = party(name.split()[0], k)
                for n in range(50):
                    await check(service, name, one, 1 + n % 5, n)
                    await asyncio.sleep(0.08)

            killing = asyncio.create_task(kill())
            await asyncio.gather(*(client(name, int(name[-1])) for name, _ in people))
            done.set()
            await killing
            assert killed >= 3
            assert [one.code for one in events] == [200] * 200
            assert not service._desk.tickets and not service._desk._batches

    run(work())


def test_a_worker_is_stopped_while_it_computes(tmp_path: Path) -> None:
    async def work() -> None:
        watch = Watch(beat=0.1, silence=3.0)
        async with running(tmp_path, "deep", workers=2, watch=watch) as service:
            one = party("deep")
            give_keys(service, "ann", one)
            asked = asyncio.create_task(check(service, "ann", one, 20, 1))
            await until(lambda: service.snapshot().running[fingerprint("deep")])
            [busy] = {worker for worker, _ in service._desk._batches}
            os.kill(service.snapshot().workers[busy].pid, signal.SIGSTOP)
            await asked
            assert service.snapshot().retries == 1

    run(work())


def test_a_request_that_ends_workers(tmp_path: Path) -> None:
    """It is not given to a third worker, nor is it if it is sent again. Others have answers."""

    async def work() -> None:
        async with running(tmp_path, "deep") as service:
            one, deadly = party("deep"), long_request()
            for name in ("ann", "bob"):
                give_keys(service, name, one)
            ticket = await service.admit("ann", fingerprint("deep"), one.key_id, len(deadly))
            asked = asyncio.create_task(ticket.send(deadly))
            other = asyncio.create_task(check(service, "bob", one, 1, 1))
            for _ in range(2):
                await until(lambda: ticket.state == "running" and _pids(service), "the run")
                [pid] = _pids(service)
                os.kill(pid, signal.SIGSEGV)
                await until(lambda: ticket.state != "running", "the end of the worker")
            with pytest.raises(Refusal) as refused:
                await asked
            assert (refused.value.status, refused.value.kind) == (500, "poison")
            await other
            with pytest.raises(Refusal) as refused:
                await ask(service, "ann", one, deadly)
            assert refused.value.kind == "poison"
            await check(service, "ann", one, 1, 2)
            assert service.snapshot().refusals == {"poison": 2}

    run(work())


def test_no_worker_comes_back(tmp_path: Path) -> None:
    """A request waits for no longer than its patience."""

    async def work() -> None:
        limits = Limits(patience=3.0, restart=1.0)
        async with running(tmp_path, "integers", limits=limits) as service:
            one = party("integers")
            give_keys(service, "ann", one)
            await check(service, "ann", one, 1, 0)
            [file] = Path(service._folder.name if service._folder else "").iterdir()
            file.write_bytes(b"damaged")
            body = one.request(one.rows(1, 0))
            ticket = await service.admit("ann", fingerprint("integers"), one.key_id, len(body))
            [pid] = _pids(service)
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not service.ready)
            with pytest.raises(Refusal) as refused:
                await ticket.send(body)
            assert refused.value.status == 503
            with pytest.raises(Refusal) as refused:
                await ask(service, "ann", one, body)
            assert refused.value.status == 503 and int(refused.value.headers["Retry-After"]) >= 1

    run(work())


_GATEWAY = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from jali.serve.keys import KeyStore
from jali.serve.refusal import Refusal
from jali.serve.service import Service
folder = Path({folder!r})
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
INVERSE = bytes(range(255, -1, -1))
def found(inverse):
    '''Whether bytes lie in the memory of this process that are the inverse of these.'''
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, mode = line.split()[:2]
        if mode.startswith("rw") and "[v" not in line:
            begin, end = (int(x, 16) for x in place.split("-"))
            try:
                with open("/proc/self/mem", "rb", buffering=0) as memory:
                    memory.seek(begin)
                    while begin < end:
                        piece = memory.read(min(1 << 20, end - begin)).translate(INVERSE)
                        begin += len(piece)
                        if inverse in piece:
                            return True
            except OSError:
                pass
    return False
async def work():
    with KeyStore(folder / "store") as store:
        service = Service({{"network": folder / "program"}}, store, security=0, seconds={{"network": 0.01}})
        await service.start()
        [fingerprint] = service.programs
        before = resident()
        for path in sorted((folder / "bodies").iterdir()):
            client, key_id = path.name.split("-")
            body = path.read_bytes()
            ticket = await service.admit(client, fingerprint, key_id, len(body))
            try:
                result = await ticket.send(body)
                (folder / "replies" / path.name).write_bytes(result.body)
            except Refusal as refusal:
                print(refusal, flush=True)
        grown = resident() - before
        del body
        print("grown", grown, resident())
        windows = (folder / "windows").read_bytes()
        control = windows[:32].translate(INVERSE)
        print("planted", found(windows[:32]))
        print("keys", [found(windows[k:k + 32]) for k in range(32, len(windows), 32)])
        assert control
        await service.stop(0)
asyncio.run(work())
"""


def test_a_gateway_has_no_keys_in_its_memory(tmp_path: Path) -> None:
    """Nor does anything that was sent get into what is printed."""
    one, clients = party("network"), [f"client {k}" for k in range(12)]
    with KeyStore(tmp_path / "store") as store:
        service = Service({"network": program("network")}, store)
        for name in clients:
            give_keys(service, name, one)
    program("network").save(tmp_path / "program")
    for folder in ("bodies", "replies"):
        (tmp_path / folder).mkdir()
    rows = one.rows(2, 0)
    for name in clients:
        (tmp_path / "bodies" / f"{name}-{one.key_id}").write_bytes(one.request(rows))
    planted = b"PLANTED-" + os.urandom(12).hex().encode()
    good = bytearray(one.request(rows))
    good[-600 : -600 + len(planted)] = planted
    (tmp_path / "bodies" / f"{clients[0]}-{one.key_id}").write_bytes(good)
    places = range(len(one.keys) // 8, len(one.keys), len(one.keys) // 5)
    windows = planted + b"".join(one.keys[k : k + 32] for k in places)
    inverse = bytes(range(255, -1, -1))
    (tmp_path / "windows").write_bytes(windows.translate(inverse))
    code = _GATEWAY.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=False
    )
    assert ended.returncode == 0, ended.stderr
    for name in clients[1:]:
        one.check((tmp_path / "replies" / f"{name}-{one.key_id}").read_bytes(), rows)
    said = ended.stdout + ended.stderr
    assert planted.decode() not in said and "checksum" in said
    _, grown, whole = next(line.split() for line in said.splitlines() if "grown" in line)
    assert int(grown) < 8 << 20 and int(whole) < 150 << 20  # all keys are 10 MB
    assert "planted True" in said  # what is looked for is found, where it is
    [keys] = [line for line in said.splitlines() if line.startswith("keys")]
    assert json.loads(keys[5:].lower()) == [False] * len(places)
