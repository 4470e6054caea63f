"""``jali.Remote`` before ``jali serve``, each in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seeds

import jali
from jali._core import packages
from jali.remote import AccessDenied, ProgramReplaced, Unavailable

for needed in ("fastapi", "uvicorn", "httptools", "httpx", "prometheus_client"):
    if not packages.here(needed):
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

WEIGHTS = np.random.default_rng(1).normal(size=(3, 8)) / 3
X = np.random.default_rng(0).uniform(-1, 1, (40, 8))
WANTED = np.square(X @ WEIGHTS.T)
TOKEN = "token-of-alice"
SHARED = bytes(range(32))  # the key of replies that are sealed


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The files of a program, and of one that replaces it."""
    folder = tmp_path_factory.mktemp("programs")
    paths = folder / "first.jali", folder / "second.jali"
    with seeds.named("programs that are replaced"):
        for path, bits in zip(paths, (8, 10), strict=True):
            made = jali.compile(
                lambda x: np.square(WEIGHTS @ x), X[0], calibration=X, precision_bits=bits
            )
            made.save(path)
    return paths


@dataclass
class Server:
    """A service on loopback, whose process may be killed and begin again."""

    program: Path
    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def remote(self, **options: Any) -> jali.Remote:
        options = {"token": TOKEN, "threads": 1, "deadline": 300, **options}
        return jali.Remote(self.url, **options)

    def start(self) -> None:
        tokens, log = self.folder / "tokens", self.folder / "log"
        tokens.write_text(f"{hashlib.sha256(TOKEN.encode()).hexdigest()} alice")
        seals = self.folder / "seals"
        seals.touch(0o600)
        seals.write_text(f"{SHARED.hex()} alice")
        words = [sys.executable, "-m", "jali", "serve", f"squares={self.program}"]
        words += ["--port", str(self.port), "--workers", "cpu", "--tokens", str(tokens)]
        words += ["--store", str(self.folder / "store"), "--seal-keys", str(seals)]
        package = Path(jali.__file__).parents[1]
        path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                words, stderr=stream, env={**os.environ, "PYTHONPATH": path}
            )
        until = time.monotonic() + 300
        while not re.search("^ready$", log.read_text(), re.MULTILINE):
            assert self.process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        found = re.search(r"^listening on http://127.0.0.1:(\d+)$", log.read_text(), re.MULTILINE)
        assert found is not None
        self.port = int(found[1])

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(120) == 0


@contextlib.contextmanager
def serving(program: Path, folder: Path) -> Iterator[Server]:
    server = Server(program, folder)
    server.start()
    try:
        yield server
    finally:
        assert server.process is not None
        if server.process.poll() is None:
            server.process.terminate()
            try:
                server.process.wait(120)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


def test_a_program_is_called(programs: tuple[Path, Path], tmp_path: Path) -> None:
    with serving(programs[0], tmp_path) as server:
        with pytest.raises(AccessDenied, match=r"as token=.*The server said"):
            server.remote(token="another")
        with server.remote() as remote:
            with pytest.raises(jali.KeyMissing, match=r"call keys\(\) first"):
                remote(X[0])
            remote.keys()
            assert np.allclose(remote(X[:3]), WANTED[:3], atol=0.02)
            assert np.allclose(remote(X[0], deadline=250), WANTED[0], atol=0.02)
            with remote.stream(X[:10], in_flight=4) as results:
                assert np.allclose(list(results), WANTED[:10], atol=0.02)
            remote.save_secret(tmp_path / "secret")
        with server.remote(secret=tmp_path / "secret", shared_key=SHARED) as sealed:
            assert np.allclose(sealed(X[:3]), WANTED[:3], atol=0.02)
        with (
            server.remote(secret=tmp_path / "secret", shared_key=bytes(32)) as other,
            pytest.raises(jali.AuthenticationError, match="nothing was decrypted"),
        ):
            other(X[:3])

        async def work() -> Any:
            options: Any = {"token": TOKEN, "secret": tmp_path / "secret", "deadline": 300}
            async with jali.AsyncRemote(server.url, **options) as again:
                await again.keys()
                found = await asyncio.gather(*(again(x) for x in X[:4]))
                deleted = await again.delete_keys()
                with pytest.raises(jali.KeyMissing):
                    await again(X[0])
                return found, deleted

        found, deleted = asyncio.run(work())
        assert np.allclose(found, WANTED[:4], atol=0.02) and deleted


def test_a_service_that_is_killed_while_keys_come(
    programs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that has another program once it is back for the second time."""
    with serving(programs[0], tmp_path) as server, server.remote() as remote:
        monkeypatch.setattr("jali.remote.session.PIECE", remote.client.key_cost.sent // 5)
        told: list[int] = []

        def progress(done: int, total: int) -> None:
            told.append(done)
            if len(told) == 2:
                server.kill()
                server.start()

        remote.keys(progress=progress)
        assert len(told) >= 5 and told == sorted(told)
        uploads = list((tmp_path / "store" / "blobs").rglob("*"))
        assert sum(p.stat().st_size for p in uploads if p.is_file()) == told[-1]
        assert np.allclose(remote(X[:2]), WANTED[:2], atol=0.02)
        server.stop()
        with pytest.raises(Unavailable, match="cannot be reached"):
            remote(X[0], deadline=0.5)
        server.program = programs[1]
        server.start()
        with pytest.raises(ProgramReplaced, match=r"squares is not served any more: make") as gone:
            remote(X[0])
        with server.remote() as second:
            assert gone.value.replaced_by == (second.program.fingerprint,)
            second.keys()
            assert np.allclose(second(X[:2]), WANTED[:2], atol=0.02)
