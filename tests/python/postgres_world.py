"""A server of PostgreSQL for tests: started in a folder of its own, on a Unix socket alone."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

#: It has every letter that means something in a URL.
PASSWORD = "pass-w%rd:/?#[@]&=+ 7Q"
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def missing() -> str:
    """Why there can be no server; "" if there can."""
    if not program("postgres"):
        return "PostgreSQL is not installed (Debian: apt install postgresql)"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "the package psycopg is not installed (pip install 'psycopg[binary]')"
    if os.getuid() == 0 and not _account():
        return "PostgreSQL does not run as root, and there is no account 'postgres' or 'nobody'"
    return ""


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs; "" if there is none. Debian keeps those of the server
    in a folder of its version."""
    found = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))]
    return (found or [shutil.which(name) or ""])[-1]


def _account() -> str:
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return ""


class Server:
    """A server that runs. Everything of it is in one folder.

    folder: of it, which only its account may enter.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            account = pwd.getpwnam(_account())
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.user = "jali"
        words = folder / "password"
        words.write_text(PASSWORD)
        words.chmod(0o644)
        self._do("initdb", "-D", folder / "data", "-U", self.user, "--pwfile", words, "-A", "scram-sha-256",
                 "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        words.unlink()
        self._schemas: set[str] = set()
        self.start()

    def _do(self, name: str, *words: Any) -> None:
        done = subprocess.run(
            [program(name), *map(str, words)], cwd="/", capture_output=True, text=True, **self._as
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, *, after: float = 0.0) -> None:
        """Starts it, and waits until it takes connections; or does not wait, and it starts after some
        seconds.

        Only the main thread may call it: the server ends with the thread that started it.
        """
        # A crash of the system, against which fsync is, is not tested.
        words = [program("postgres"), "-D", self.folder / "data", "-k", self.folder, "-c", "listen_addresses=",
                 "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=60"]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", f'sleep {after}; exec "$@"', "sh", *map(str, words)],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT),
                **self._as,
            )
        if not after:
            self.wait()

    def wait(self) -> None:
        """Until it takes connections."""
        import psycopg

        end = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError as error:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < end, error
                time.sleep(0.05)

    def kill(self) -> None:
        """Ends it at once. What was not committed is lost, and the next start recovers the rest."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def url(self, schema: str = "public", *, user: str = "", password: str = PASSWORD) -> str:
        """How to reach it."""
        words = f"{user or self.user}:{quote(password, safe='')}"
        return f"postgresql://{words}@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def url_of(self, folder: Path) -> str:
        """The URL of the index of the store in a folder, whose schema is made."""
        schema = f"store_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        if schema not in self._schemas:
            self.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            self._schemas.add(schema)
        return self.url(schema)

    def run(self, *statements: str, schema: str = "public") -> list[tuple[Any, ...]]:
        """Runs statements over a connection of their own, and returns the rows of the last."""
        import psycopg

        rows = []
        with psycopg.connect(self.url(schema), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
                rows = cursor.fetchall() if cursor.description else []
        return rows


@contextmanager
def running() -> Iterator[Server]:
    """A server that ends at the end. Skips the test if there can be none."""
    if why := missing():
        pytest.skip(why)
    # A socket's path is short, and the server's account must reach it.
    folder = Path(tempfile.mkdtemp(prefix="jali-pg-", dir="/tmp"))
    try:
        server = Server(folder)
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder)
