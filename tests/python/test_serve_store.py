"""A store of keys: what it keeps, whose it is, and how much of it."""

from __future__ import annotations

import doctest
import os
import stat
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from serve_world import Opened, content, files, in_child, send, served, started, uploads_of

import jali
from jali.serve import (
    answers,
    blobs,
    check,
    frames,
    index,
    keys,
    local_pool,
    marginal,
    memory,
    postgres_index,
    process,
    refusal,
    routes,
    service,
    sql_index,
    uploads,
    wanted,
)
from jali.serve.index import Usage
from jali.serve.keys import KeyStore, Quota
from jali.serve.refusal import Refusal

NETWORK = served("network")
SIZE = len(NETWORK.keys[0])


def test_keys_come_back_after_the_store_was_opened_again(tmp_path: Path, opened: Opened) -> None:
    with opened(tmp_path / "store") as store:
        uploads = uploads_of(store, "network", "trees")
        assert send(uploads, "alice", "network") == NETWORK.key_ids[0]
        assert send(uploads, "alice", "trees", 1) == served("trees").key_ids[1]
    with opened(tmp_path / "store") as store:
        assert content(store, "alice", "network", NETWORK.key_ids[0]) == NETWORK.keys[0]
        assert (
            content(store, "alice", "trees", served("trees").key_ids[1]) == served("trees").keys[1]
        )
        assert [keys.key_id for keys in store.sets("alice")] == [
            served("trees").key_ids[1],
            NETWORK.key_ids[0],
        ]
        assert store.verify() == []
    for path in (tmp_path / "store").rglob("*"):
        if "index" not in path.name and path.name != "lock":
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_client_sees_its_own_keys_alone(tmp_path: Path, opened: Opened) -> None:
    with opened(tmp_path) as store:
        uploads = uploads_of(store, "network")
        key_id = send(uploads, "alice", "network")
        assert store.find("bob", NETWORK.program, key_id) is None
        with pytest.raises(Refusal, match="send them first") as refused:
            store.open("bob", NETWORK.program, key_id)
        assert refused.value.status == 404
        assert store.sets("bob") == [] and store.delete("bob", key_id=key_id) == 0
        assert content(store, "alice", "network", key_id) == NETWORK.keys[0]


def test_the_same_bytes_lie_on_the_disk_once(tmp_path: Path, opened: Opened) -> None:
    with opened(tmp_path) as store:
        uploads = uploads_of(store, "network")
        key_id = send(uploads, "alice", "network")
        before = files(tmp_path)
        assert send(uploads, "bob", "network") == key_id
        assert send(uploads, "alice", "network") == key_id
        assert files(tmp_path) == before and len(before) == 1
        assert store.index.usage() == Usage(SIZE, 1, 0, 0)
        assert store.index.usage("alice") == store.index.usage("bob") == Usage(SIZE, 1, 0, 0)
        store.delete("alice", key_id=key_id)
        assert content(store, "bob", "network", key_id) == NETWORK.keys[0]
        assert store.index.usage("alice") == Usage(0, 0, 0, 0)
        store.delete("bob")
        assert files(tmp_path) == {}


def test_what_a_client_sent_before_is_not_sent_again(tmp_path: Path, opened: Opened) -> None:
    """If it says the hash of its bytes. Of another client's bytes it learns nothing."""
    with opened(tmp_path) as store:
        uploads = uploads_of(store, "network")
        key_id = send(uploads, "alice", "network")
        sha256 = store.sets("alice")[0].sha256
        again = uploads.create("alice", NETWORK.program, SIZE, sha256)
        assert (again.state, again.key_id, again.received) == ("done", key_id, SIZE)
        other = uploads.create("bob", NETWORK.program, SIZE, sha256)
        assert (other.state, other.received) == ("open", 0)
        uploads.cancel("bob", other.upload)
        assert store.index.usage("bob").uploads == 0


def test_deletion_is_immediate_and_readers_read_on(tmp_path: Path, opened: Opened) -> None:
    """Another process has the keys open. What it read is whole; nobody opens them again."""
    with opened(tmp_path) as store:
        key_id = send(uploads_of(store, "network"), "alice", "network")
    (have, having), (deleted, deleting) = os.pipe(), os.pipe()

    def read() -> None:
        with opened(tmp_path) as mine:
            with mine.open("alice", NETWORK.program, key_id) as file:
                first = file.read(1000)
                os.write(having, b"x")
                os.read(deleted, 1)
                assert first + file.read() == NETWORK.keys[0]
            with pytest.raises(Refusal):
                mine.open("alice", NETWORK.program, key_id)

    def delete() -> None:
        os.read(have, 1)
        with opened(tmp_path) as store:
            assert store.delete("alice", key_id=key_id) == 1
            assert store.find("alice", NETWORK.program, key_id) is None
            assert files(tmp_path) == {}
        os.write(deleting, b"x")

    join = started(delete)
    in_child(read)
    join()
    assert files(tmp_path) == {}


def test_quotas_are_told_before_a_byte_is_sent(tmp_path: Path, opened: Opened) -> None:
    quotas = {"alice": Quota(2 * SIZE, 5), "bob": Quota(1 << 30, 1)}
    with opened(tmp_path, quota=lambda client: quotas[client]) as store:
        uploads = uploads_of(store, "network", "trees")
        assert store.room("alice") == Usage(2 * SIZE, 5, 0, 0)
        send(uploads, "alice", "network")
        begun = uploads.create("alice", NETWORK.program, SIZE)  # reserves its bytes
        assert store.room("alice") == Usage(0, 3, SIZE, 1)
        with pytest.raises(Refusal, match="delete keys or uploads") as refused:
            uploads.create("alice", NETWORK.program, SIZE)
        assert refused.value.status == 507 and refused.value.problem()["bytes-left"] == 0
        uploads.cancel("alice", begun.upload)
        uploads.create("alice", NETWORK.program, SIZE)
        send(uploads, "bob", "network")
        with pytest.raises(Refusal, match="in 0 more sets"):
            uploads.create("bob", served("trees").program, len(served("trees").keys[0]))
        store.delete("bob")
        send(uploads, "bob", "trees")
        assert files(tmp_path).keys() == {
            f"blobs/{keys.sha256[:2]}/{keys.sha256}"
            for client in quotas
            for keys in store.sets(client)
        }


def test_a_full_store_forgets_what_was_used_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    with opened(tmp_path, capacity=2 * SIZE, spared=100) as store:
        uploads = uploads_of(store, "network", "other")
        for client, which in (("alice", 0), ("bob", 1)):
            send(uploads, client, "network", which)
            now[0] += 200
        content(store, "alice", "network", NETWORK.key_ids[0])  # a use
        now[0] += 200
        send(uploads, "carol", "other")
        assert [len(store.sets(c)) for c in ("alice", "bob", "carol")] == [1, 0, 1]
        assert len(files(tmp_path)) == 2
        now[0] += 50  # carol's are fresh, and alice's are not
        send(uploads, "bob", "network", 1)
        assert [len(store.sets(c)) for c in ("alice", "bob", "carol")] == [0, 1, 1]
        with pytest.raises(Refusal, match="no room for more keys") as refused:
            uploads.create("dave", NETWORK.program, SIZE)
        assert refused.value.status == 507 and "Retry-After" in refused.value.headers
        assert [len(store.sets(c)) for c in ("alice", "bob", "carol")] == [0, 1, 1]


def test_two_processes_share_a_quota(tmp_path: Path, opened: Opened) -> None:
    """Each of several clients may have one upload, and two processes begin one for each of them at
    the same time: one of the two is refused."""
    clients = [f"client {k}" for k in range(20)]
    ready, go = (os.pipe() for _ in range(2))
    results, out = os.pipe()
    opened(tmp_path).close()

    def begin() -> None:
        with opened(tmp_path, quota=Quota(1 << 30, 1)) as store:
            uploads = uploads_of(store, "network")
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            for client in clients:
                try:
                    uploads.create(client, NETWORK.program, SIZE)
                    os.write(out, b"1")
                except Refusal:
                    os.write(out, b"0")

    joins = [started(begin) for _ in range(2)]
    for _ in joins:
        os.read(ready[0], 1)
    os.write(go[1], b"xx")
    for join in joins:
        join()
    answers = os.read(results, 100)
    assert sorted(answers) == sorted(b"01" * len(clients))
    with opened(tmp_path) as store:
        assert [store.index.usage(c).uploads for c in clients] == [1] * len(clients)


def test_two_processes_keep_and_delete_the_same_bytes(tmp_path: Path, opened: Opened) -> None:
    """One client sends and deletes keys all the time, and another sends the same ones: these stay."""
    opened(tmp_path).close()

    def send_and_delete() -> None:
        with opened(tmp_path) as store:
            for _ in range(6):
                send(uploads_of(store, "network"), "alice", "network")
                store.delete("alice")

    def send_and_look() -> None:
        with opened(tmp_path) as store:
            for _ in range(6):
                key_id = send(uploads_of(store, "network"), "bob", "network")
                assert content(store, "bob", "network", key_id) == NETWORK.keys[0]
                store.delete("bob")
            send(uploads_of(store, "network"), "bob", "network")

    join = started(send_and_delete)
    in_child(send_and_look)
    join()
    with opened(tmp_path) as store:
        assert content(store, "bob", "network", NETWORK.key_ids[0]) == NETWORK.keys[0]
        assert len(files(tmp_path)) == 1 and store.verify() == []


def test_damage_on_the_disk_is_found(tmp_path: Path, opened: Opened) -> None:
    with opened(tmp_path) as store:
        uploads = uploads_of(store, "network")
        key_id = send(uploads, "alice", "network")
        send(uploads, "alice", "network", 1)
        path = store.blobs.path(store.find("alice", NETWORK.program, key_id).sha256)  # type: ignore[union-attr]
        data = bytearray(path.read_bytes())
        data[1000] ^= 1
        path.write_bytes(data)
        assert store.verify() == [path.name]
        assert store.find("alice", NETWORK.program, key_id) is None and len(files(tmp_path)) == 1
    (survivor,) = files(tmp_path)
    (tmp_path / survivor).write_bytes(b"short")
    with opened(tmp_path) as store:  # a file of another length is not opened as keys
        assert store.sets("alice") == [] and files(tmp_path) == {}


def test_what_is_no_store_is_refused(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(jali.FileError, match="cannot hold a store"):
        opened(tmp_path / "file")
    with pytest.raises(jali.InvalidArgument, match="capacity"):
        opened(tmp_path, capacity=0)
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "index.sqlite").write_bytes(b"no database" * 500)
    with pytest.raises(jali.FileError, match="index"):
        KeyStore(folder)
    with opened(tmp_path / "store") as store:
        store.index._run("UPDATE store SET version = 7", {})  # type: ignore[attr-defined]
    with pytest.raises(jali.VersionError, match="its version is"):
        opened(tmp_path / "store")
    with opened(tmp_path / "other") as store:
        for name in ("", "a\nb", "x" * 501):
            with pytest.raises(jali.InvalidArgument, match="printable"):
                uploads_of(store, "network").create(name, NETWORK.program, SIZE)


def test_a_store_keeps_to_its_index(tmp_path: Path, opened: Opened) -> None:
    """The index of another store would have all files removed, and the folder of another one, or none
    where a disk is not mounted, all that the index knows."""
    with opened(tmp_path / "a") as first, opened(tmp_path / "b") as second:
        for store, which in ((first, 0), (second, 1)):
            send(uploads_of(store, "network"), "alice", "network", which)
        for folder, index, sentence in (
            ("a", second.index, "made with another index"),
            ("b", first.index, "made with another index"),
            ("a", sql_index.SqliteIndex(tmp_path / "new.sqlite"), "made with another index"),
            ("empty", first.index, "mount it there"),
        ):
            with pytest.raises(jali.FileError, match=sentence):
                KeyStore(tmp_path / folder, index=index)
        (tmp_path / "b" / "store").rename(tmp_path / "kept")
        with pytest.raises(jali.FileError, match="mount it there"):
            KeyStore(tmp_path / "b", index=second.index)
        with pytest.raises(jali.FileError, match="knows nothing"):
            KeyStore(tmp_path / "b", index=sql_index.SqliteIndex(tmp_path / "new.sqlite"))
        (tmp_path / "kept").rename(tmp_path / "b" / "store")
    for folder, which in (("a", 0), ("b", 1)):
        with opened(tmp_path / folder) as store:
            key_id = NETWORK.key_ids[which]
            assert content(store, "alice", "network", key_id) == NETWORK.keys[which]


def test_a_forked_process_opens_its_own(tmp_path: Path, opened: Opened) -> None:
    with opened(tmp_path) as store:

        def use() -> None:
            with pytest.raises(jali.FileError, match="open the store there"):
                store.sets("alice")

        in_child(use)
        assert store.sets("alice") == []


@pytest.mark.parametrize(
    "module",
    [
        answers,
        blobs,
        check,
        frames,
        index,
        keys,
        local_pool,
        marginal,
        memory,
        postgres_index,
        process,
        refusal,
        routes,
        service,
        sql_index,
        uploads,
        wanted,
    ],
)
def test_examples_run(module: ModuleType) -> None:
    found = doctest.testmod(module, extraglobs={"np": np, "jali": jali})
    assert found.attempted and not found.failed
