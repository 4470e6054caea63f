"""Workers: what they compute, how they end, and what their pool says of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from service_world import PATIENCE, fingerprint, long_request, party, program, run, until

from jali.errors import InvalidArgument, NoDevice, OutOfMemory
from jali.serve import holding, pool
from jali.serve.frames import head, read
from jali.serve.holding import Holding, Stopped
from jali.serve.local_pool import LocalPool
from jali.serve.pool import ProgramFile
from jali.serve.process import Watch


class World:
    """A pool of one worker with a program, and what it reported."""

    def __init__(self, folder: Path, kind: str = "integers", watch: Watch | None = None) -> None:
        self.kind, self.party = kind, party(kind)
        self.keys, file = folder / "keys", folder / "program"
        self.keys.write_bytes(self.party.keys)
        file.write_bytes(program(kind).to_bytes())
        self.pool = LocalPool(["cpu"], threads=1, watch=watch)
        self.programs = [ProgramFile(fingerprint(kind), str(file), False)]
        self.reports: list[pool.Report] = []

    async def __aenter__(self) -> World:
        await self.pool.start(self.programs, self.reports.append)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.close()

    async def next(self, kind: type[Any]) -> Any:
        """The next report, which must be of this kind."""
        await until(lambda: self.reports, kind.__name__)
        report = self.reports.pop(0)
        assert isinstance(report, kind), report
        return report

    @property
    def pid(self) -> int:
        return self.pool.workers["cpu/0"].pid

    async def load(self) -> None:
        self.pool.load("cpu/0", "k", fingerprint(self.kind), self.keys, keep=True, seconds=0.1)
        loaded = await self.next(pool.KeysLoaded)
        assert loaded.nbytes == self.pool.workers["cpu/0"].key_bytes > 0

    def send(self, *bodies: bytes | Path, batch: int = 1, left: float | None = None) -> None:
        self.pool.run("cpu/0", batch, "k", list(bodies), seconds=0.1, left=left)


def test_a_worker_computes(tmp_path: Path) -> None:
    async def work() -> None:
        async with World(tmp_path) as made:
            started = await made.next(pool.Started)
            assert started.worker == "cpu/0" and started.free > 1 << 20
            assert os.getsid(made.pid) == made.pid  # a terminal's signals do not reach it
            await made.load()
            rows = [made.party.rows(k + 1, k) for k in range(3)]
            bodies = [made.party.request(x) for x in rows]
            path = tmp_path / "body"
            path.write_bytes(bodies[1])
            made.send(bodies[0], path, bodies[2], tmp_path / "nothing", batch=7)
            ran = await made.next(pool.Ran)
            assert ran.batch == 7 and ran.seconds > 0
            for answer, x in zip(ran.answers, rows, strict=False):
                made.party.check(answer.body, x)
            assert [one.code for one in ran.answers] == ["", "", "", "file"]
            made.pool.evict("cpu/0", "k")
            made.send(bodies[0])
            ran = await made.next(pool.Ran)
            assert ran.answers[0].code == "key_missing"
            made.pool.load(
                "cpu/0", "k", fingerprint("integers"), tmp_path / "nothing", keep=False, seconds=1
            )
            assert (await made.next(pool.KeysNotLoaded)).code == "file"
            made.keys.write_bytes(made.party.keys[:-20] + bytes(20))
            made.pool.load("cpu/0", "k", fingerprint("integers"), made.keys, keep=False, seconds=1)
            assert (await made.next(pool.KeysNotLoaded)).code == "corrupt_data"
            made.send(b"", batch=8)
            made.pool.stop("cpu/0", 8)
            made.pool.stop("cpu/0", 9)
            await made.next(pool.Ran)
            pid = made.pid
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run(work())


def test_how_workers_end(tmp_path: Path) -> None:
    """Who is ended by somebody else is not to blame, and every worker comes back."""

    async def work() -> None:
        watch = Watch(beat=0.05, silence=2.0)
        async with World(tmp_path, watch=watch) as made:
            for kill, blame, reason in (
                (signal.SIGKILL, False, "SIGKILL"),
                (signal.SIGTERM, False, "SIGTERM"),
                (signal.SIGSEGV, True, "SIGSEGV"),
                (signal.SIGSTOP, False, "stopped"),
            ):
                await made.next(pool.Started)
                os.kill(made.pid, kill)
                died = await made.next(pool.Died)
                assert died.blame == blame and reason in died.reason
                assert not made.pool.workers["cpu/0"].up
            await made.next(pool.Started)
            await made.load()
            rows = made.party.rows(1, 0)
            made.send(made.party.request(rows))
            made.party.check((await made.next(pool.Ran)).answers[0].body, rows)
            assert made.pool.workers["cpu/0"].starts == 5

    run(work())


def test_a_run_that_takes_too_long(tmp_path: Path) -> None:
    """It is stopped if nobody wants it, and else its worker is ended, and is to blame."""

    async def work() -> None:
        async with World(tmp_path, "deep") as made:
            await made.next(pool.Started)
            await made.load()
            made.send(long_request())
            await asyncio.sleep(0.5)
            made.pool.stop("cpu/0", 1)
            assert (await made.next(pool.Ran)).answers[0].code == "stopped"
            made.send(long_request(), left=0.5)
            assert (await made.next(pool.Ran)).answers[0].code == "deadline"
        async with World(tmp_path, "deep", Watch(least=1.0, times=1.0)) as made:
            await made.next(pool.Started)
            made.pool.load("cpu/0", "k", fingerprint("deep"), made.keys, keep=True, seconds=1000)
            await made.next(pool.KeysLoaded)
            made.send(long_request())
            died = await made.next(pool.Died)
            assert died.blame and died.reason == "its run took far longer than predicted"

    run(work())


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    async def work() -> None:
        made = World(tmp_path)
        made.programs = [ProgramFile("0" * 64, made.programs[0].path, False)]
        async with made:
            assert "another program" in (await made.next(pool.Failed)).text
            assert (await made.next(pool.Died)).blame

    run(work())


def test_devices_that_there_are_not() -> None:
    with pytest.raises(NoDevice, match="give some of cpu"):
        LocalPool(["cuda:99"])
    with pytest.raises(InvalidArgument):
        LocalPool([])


_GATEWAY = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_serve_pool import World, pool
async def work():
    async with World(Path({folder!r})) as made:
        await made.next(pool.Started)
        print(made.pid, flush=True)
        await asyncio.sleep(1000)
asyncio.run(work())
"""


def test_workers_end_with_their_pool(tmp_path: Path) -> None:
    """A gateway that is killed leaves no worker."""
    code = _GATEWAY.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as gateway:
        assert gateway.stdout is not None
        pid = int(gateway.stdout.readline())
        os.kill(pid, 0)
        gateway.kill()

    def gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        except FileNotFoundError:
            return True
        return state == "Z"  # nobody has waited for it

    run(until(gone, "the end of the worker"))


def test_what_a_worker_imports() -> None:
    code = "import json, sys, jali.serve.worker; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    found = {name.partition(".")[0] for name in json.loads(out.stdout)}
    assert not found & {"fastapi", "starlette", "uvicorn", "httpx", "prometheus_client", "ray"}


_LOST = """
import socket, sys
from jali.errors import DeviceLost
from jali.serve import worker
def lost(*_, **__):
    raise DeviceLost("the device failed")
worker.Holding.run = lost
worker.main()
"""


def test_a_worker_whose_device_is_lost() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = subprocess.Popen(
            [sys.executable, "-c", _LOST, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
        begin = {"do": "begin", "beat": 0.1, "device": "cpu", "threads": 1, "programs": []}
        ours.sendall(head(begin))
        stream = ours.makefile("rb")
        said: Any = {}
        while said.get("is") != "ready":
            frame = read(stream)
            assert frame is not None
            said = frame[0]
        ours.sendall(head({"do": "run", "batch": 1, "key": "k", "bodies": [], "seconds": None}))
        assert child.wait(PATIENCE) == 75


def test_a_device_without_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that were used longest ago leave, and come back when they are wanted."""
    left: list[str] = []
    made = Holding("cpu", 1, left.append)
    one = party("integers")
    made.add(fingerprint("integers"), program("integers").to_bytes(), measure=False)
    path = tmp_path / "keys"
    path.write_bytes(one.keys)
    real = holding._made

    def small(known: Any, where: str) -> Any:
        if len(made._servers) == 2:
            raise OutOfMemory("the device has no memory")
        return real(known, where)

    monkeypatch.setattr(holding, "_made", small)
    for key in "abc":
        made.load(key, fingerprint("integers"), str(path), keep=True)
    assert left == ["a"]
    each = made.nbytes // 2
    rows = one.rows(1, 0)
    for key in "bab":
        [answer] = made.run(key, [one.request(rows)], seconds=None, stop=threading.Event())
        one.check(answer.body, rows)
    assert left == ["a", "c"] and made.nbytes == 2 * each
    made.evict("a")
    made.evict("b")
    made.evict("nothing")
    assert made.nbytes == 0
    monkeypatch.setattr(holding, "_made", lambda *_: (_ for _ in ()).throw(OutOfMemory("none")))
    with pytest.raises(OutOfMemory):
        made.load("d", fingerprint("integers"), str(path), keep=True)
    stop = threading.Event()
    stop.set()
    monkeypatch.setattr(holding, "_made", real)
    made.load("d", fingerprint("integers"), str(path), keep=False)
    with pytest.raises(Stopped):
        made.run("d", [one.request(rows)], seconds=None, stop=stop)
