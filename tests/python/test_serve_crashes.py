"""Processes are killed at every kind of place where they change a store. Whoever opens it next finds
each set of keys whole or absent, and nothing else.

A kill keeps what the system has in its memory. Losses of power are not tested.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve_world import Opened, content, files, in_child, served, uploads_of

from jali.errors import FileError
from jali.serve.index import OPEN
from jali.serve.keys import KeyStore
from jali.serve.postgres_index import PostgresIndex
from jali.serve.refusal import Refusal
from jali.serve.sql_index import SqliteIndex

KINDS = ("network", "integers")
CLIENTS = ("alice", "bob")
SETS = [(client, kind, which) for client in CLIENTS for kind in KINDS for which in (0, 1)]
PIECE = 40_000


class Killer:
    """Counts the places at which a process changes its store, and kills it at one of them: before a
    call, in the middle of a write, or after a call."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0
        for name in ("pwrite", "fsync", "link", "unlink", "ftruncate", "mkdir", "rename"):
            setattr(os, name, self.around(getattr(os, name)))
        SqliteIndex._run = self.around(SqliteIndex._run)  # type: ignore[method-assign]
        PostgresIndex._execute = self.around(PostgresIndex._execute)  # type: ignore[method-assign]

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **options: Any) -> Any:
            self.step()
            if call.__name__ == "pwrite":
                file, data, at = given
                half = call(file, bytes(data)[: len(data) // 2], at)
                self.step()
                return half + call(file, bytes(data)[half:], at + half)
            result = call(*given, **options)
            self.step()
            return result

        return counted

    def step(self) -> None:
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


def work(folder: Path, told: int, ledger: dict[str, Any], seed: int, opened: Opened) -> None:
    """A few uploads, which go on where earlier ones ended, and deletions. What a client would learn is
    told to the parent."""
    rng = np.random.default_rng(seed)

    def tell(*words: Any) -> None:
        os.write(told, (json.dumps(words) + "\n").encode())

    with opened(folder) as store:
        uploads = uploads_of(store, *KINDS, sync_bytes=3 * PIECE)
        for k in rng.permutation(len(SETS))[:3].tolist():
            client, kind, which = SETS[k]
            if ledger["state"][k] == "done" and rng.random() < 0.6:
                tell("deleting", k)
                store.delete(client, key_id=served(kind).key_ids[which])
                tell("deleted", k)
                continue
            data, name, offset = served(kind).keys[which], ledger["names"][k], 0
            if name:
                try:
                    found = uploads.state(client, name)
                    name = name if found.state == OPEN else ""
                    offset = found.received
                    assert offset >= ledger["offsets"][k]
                except Refusal:
                    name = ""
            if not name:
                name, offset = uploads.create(client, served(kind).program, len(data)).upload, 0
                tell("begun", k, name)
            with uploads.append(client, name, offset, complete=True) as append:
                for start in range(offset, len(data), PIECE):
                    append.write(data[start : start + PIECE])
                    tell("acknowledged", k, append.acknowledged)
                tell("ending", k)
                append.end()
            tell("done", k)


def learn(ledger: dict[str, Any], lines: list[list[Any]]) -> None:
    """Updates what is known of each set, from what a process told before it ended."""
    for word, k, *more in lines:
        if word == "begun":
            ledger["names"][k], ledger["offsets"][k] = more[0], 0
        elif word == "acknowledged":
            ledger["offsets"][k] = max(ledger["offsets"][k], more[0])
        elif word == "done":
            ledger["state"][k], ledger["names"][k] = "done", ""
        elif word == "deleted":
            ledger["state"][k] = "none"
        else:  # it may have come to pass, or not
            ledger["state"][k] = "either"


def check(folder: Path, ledger: dict[str, Any], opened: Opened) -> None:
    """Opens the store, and looks at everything in it."""
    with opened(folder) as store:
        known = {}
        for k, (client, kind, which) in enumerate(SETS):
            program, key_id = served(kind).program, served(kind).key_ids[which]
            found = store.find(client, program, key_id)
            if ledger["state"][k] != "either":
                assert (found is not None) == (ledger["state"][k] == "done"), SETS[k]
            ledger["state"][k] = "none" if found is None else "done"
            if found is not None:
                assert content(store, client, kind, key_id) == served(kind).keys[which]
                known[f"blobs/{found.sha256[:2]}/{found.sha256}"] = found.nbytes
        assert store.verify() == []
        lie = {name: len(data) for name, data in files(folder).items()}
        parts = {name.removeprefix("parts/") for name in lie if name.startswith("parts/")}
        assert {name: n for name, n in lie.items() if name.startswith("blobs/")} == known
        assert parts <= set(store.index.open_uploads())
        for client in CLIENTS:
            mine = {k.sha256: k.nbytes for k in store.sets(client)}
            usage = store.index.usage(client)
            assert (usage.sets, usage.nbytes) == (len(mine), sum(mine.values()))


def killed_at(folder: Path, ledger: dict[str, Any], at: int, seed: int, opened: Opened) -> int:
    """Runs work in a process that is killed at a place; returns how many places it came to, or -1 if
    it was killed."""
    reads, writes = os.pipe()

    def child() -> None:
        os.close(reads)
        killer = Killer(at)
        work(folder, writes, ledger, seed, opened)
        os.write(writes, (json.dumps(["places", killer.count]) + "\n").encode())

    in_child(child, killed=True)
    os.close(writes)
    with os.fdopen(reads) as told:
        lines = [json.loads(line) for line in told]
    places = -1
    if lines and lines[-1][0] == "places":
        places = lines.pop()[1]
    learn(ledger, lines)
    return places


def new_ledger() -> dict[str, Any]:
    count = len(SETS)
    return {"state": ["none"] * count, "names": [""] * count, "offsets": [0] * count}


@pytest.mark.parametrize("run", range(3))
def test_a_store_survives_kills(
    run: int, tmp_path: Path, rng: np.random.Generator, opened: Opened
) -> None:
    """One store, and one process after the other, each killed at a place that the seed of the test
    chooses."""
    ledger, killed, ends = new_ledger(), 0, 0
    check(tmp_path, ledger, opened)
    for _ in range(30):
        at = int(rng.integers(0, 260))
        places = killed_at(tmp_path, ledger, at, int(rng.integers(1 << 30)), opened)
        killed += places < 0
        ends += places >= 0
        check(tmp_path, ledger, opened)
    assert killed >= 15
    assert killed_at(tmp_path, ledger, -1, 0, opened) > 0
    check(tmp_path, ledger, opened)


def test_the_first_opening_is_killed_at_every_place(tmp_path: Path, opened: Opened) -> None:
    """The next one goes on, and the store is as any other."""

    def first(folder: Path, at: int, told: int = -1) -> None:
        killer = Killer(at)
        opened(folder).close()
        if told >= 0:
            os.write(told, str(killer.count).encode())

    reads, writes = os.pipe()
    in_child(lambda: first(tmp_path / "counted", -1, writes))
    places = int(os.read(reads, 10))
    assert places > 20
    for at in range(places):
        folder = tmp_path / str(at)
        in_child(partial(first, folder, at), killed=True)
        with opened(folder) as store:
            assert store.index.name() == (folder / "store").read_text() != ""
    with pytest.raises(FileError, match="another index"), opened(tmp_path / "counted") as other:
        KeyStore(folder, index=other.index)


def test_the_end_of_an_upload_is_killed_at_every_place(tmp_path: Path, opened: Opened) -> None:
    """From the last bytes to the answer: then the keys are there, or the client asks for the offset
    and sends what is left."""
    data, key_id, program = (
        served("integers").keys[0],
        served("integers").key_ids[0],
        served("integers").program,
    )

    def end(folder: Path, name: str, at: int, told: int = -1) -> None:
        with opened(folder) as store:
            uploads = uploads_of(store, "integers")
            with uploads.append("alice", name, len(data) - 10, complete=True) as append:
                killer = Killer(at)
                append.write(data[-10:])
                append.end()
                if told >= 0:
                    os.write(told, str(killer.count).encode())

    def begun(folder: Path) -> str:
        with opened(folder) as store:
            uploads = uploads_of(store, "integers")
            name = uploads.create("alice", program, len(data)).upload
            with uploads.append("alice", name, 0, complete=False) as append:
                append.write(data[:-10])
            return name

    reads, writes = os.pipe()
    name = begun(tmp_path / "counted")
    in_child(lambda: end(tmp_path / "counted", name, -1, writes))
    places = int(os.read(reads, 10))
    assert places > 20
    seen = set()
    for at in range(places):
        folder = tmp_path / str(at)
        name = begun(folder)
        in_child(partial(end, folder, name, at), killed=True)
        with opened(folder) as store:
            uploads = uploads_of(store, "integers")
            found = uploads.state("alice", name)
            seen.add((found.state, found.received - len(data)))
            if found.state == OPEN:
                with uploads.append("alice", name, found.received, complete=True) as append:
                    append.write(data[found.received :])
                    append.end()
            assert uploads.state("alice", name).key_id == key_id
            assert content(store, "alice", "integers", key_id) == data
            assert len(files(folder)) == 1
    assert seen == {("open", -10), ("open", 0), ("done", 0)}
