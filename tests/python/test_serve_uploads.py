"""Uploads that are cut, damaged, taken over or repeated, and what HTTP says of them."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve_world import KINDS, Opened, files, send, served, started, uploads_of
from serve_world import content as content_of

from jali.serve.index import IndexUnavailable, Usage
from jali.serve.keys import KeyStore, Quota
from jali.serve.refusal import Refusal
from jali.serve.routes import MEDIA_TYPE, Answer, Routes
from jali.serve.uploads import Uploads

NETWORK = served("network")
DATA = NETWORK.keys[0]
TYPES = "https://iana.org/assignments/http-problem-types#"


@pytest.fixture
def store(tmp_path: Path, opened: Opened) -> Iterator[KeyStore]:
    with opened(tmp_path / "store") as store:
        yield store


def routes_of(store: KeyStore, *kinds: str, **options: Any) -> Routes:
    return Routes(uploads_of(store, *kinds, **options), lambda name: f"/v1/uploads/{name}")


def begun(routes: Routes, kind: str = "network", client: str = "alice", **headers: str) -> str:
    """The name of a new upload without bytes."""
    length = str(len(served(kind).keys[0]))
    fields = {"upload-complete": "?0", "upload-length": length, **headers}
    with routes.post(client, served(kind).program, fields) as content:
        answer = content.end()
    assert answer.status == 201 and answer.headers["Upload-Complete"] == "?0"
    return answer.headers["Location"].rpartition("/")[2]


def fields(offset: int, complete: bool, **more: str) -> dict[str, str]:
    return {
        "content-type": MEDIA_TYPE,
        "upload-offset": str(offset),
        "upload-complete": f"?{complete:d}",
        **more,
    }


def patched(
    routes: Routes, name: str, data: bytes, offset: int, complete: bool, **more: str
) -> Answer:
    with routes.patch("alice", name, fields(offset, complete, **more)) as content:
        for start in range(0, len(data), 100_000):
            content.write(data[start : start + 100_000])
        return content.end()


def refused(status: int, work: Any, *arguments: Any, **options: Any) -> Refusal:
    with pytest.raises(Refusal) as found:
        work(*arguments, **options)
    assert found.value.status == status, found.value
    return found.value


@pytest.mark.parametrize("kind", KINDS)
def test_uploads_that_are_cut_are_equal_after_they_went_on(
    kind: str, store: KeyStore, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Ten of them, each cut three times: by a lost connection, by another process that serves the
    rest, and by a server that starts again."""
    data, key_id = served(kind).keys[0], served(kind).key_ids[0]
    for k in range(10):
        routes = routes_of(store, kind, sync_bytes=len(data) // 5)
        client = f"client {k}"
        name = begun(routes, kind, client)
        for cut in range(4):
            head = routes.head(client, name)
            assert (head.status, head.headers["Upload-Complete"]) == (204, "?0")
            assert head.headers["Upload-Length"] == str(len(data))
            offset = int(head.headers["Upload-Offset"])
            end = len(data) if cut == 3 else int(rng.integers(offset, len(data)))
            with routes.patch(client, name, fields(offset, True)) as content:
                for start in range(offset, end, 50_000):
                    content.write(data[start : min(end, start + 50_000)])
                if cut == 3:
                    answer = content.end()
            if cut != 3:  # all that came was acknowledged
                assert routes.head(client, name).headers["Upload-Offset"] == str(end)
            if cut == 1:
                routes = routes_of(store, kind)
        assert answer.status == 200 and answer.headers["Upload-Complete"] == "?1"
        assert answer.document == {
            "key_id": key_id,
            "program": served(kind).program,
            "bytes": len(data),
        }
        assert content_of(store, client, kind, key_id) == data
        head = routes.head(client, name)  # as a client asks that missed the answer
        assert head.headers["Upload-Complete"] == "?1" and head.headers["Jali-Key"] == key_id
    assert len(files(tmp_path / "store")) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_uploads_are_refused_and_leave_nothing(
    kind: str, store: KeyStore, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Flipped bits, bytes that are missing in the middle, runs of zeros: of all clients the quota is
    as it was, and so are the files."""
    uploads = uploads_of(store, kind)
    send(uploads, "bob", kind, 1)
    before = files(tmp_path / "store")
    data = served(kind).keys[0]
    for k in range(36):
        damaged = bytearray(data)
        at = int(rng.integers(0, 96 if k % 4 == 3 else len(data) - 64))
        if k % 3 == 0:
            damaged[at] ^= 1 << rng.integers(0, 8)
        elif k % 3 == 1:
            damaged[at:] = damaged[at + 1 :] + b"\0"
        else:
            damaged[at : at + 4096] = bytes(len(damaged[at : at + 4096]))
        if damaged == data:
            continue
        begun = uploads.create("alice", served(kind).program, len(data))

        def give(damaged: bytes = bytes(damaged), name: str = begun.upload) -> None:
            with uploads.append("alice", name, 0, complete=True) as append:
                for start in range(0, len(damaged), 65_536):
                    append.write(damaged[start : start + 65_536])
                append.end()

        refusal = refused(422, give)
        assert refusal.problem()["code"] in ("corrupt_data", "params_mismatch", "version")
        refused(410, uploads.append, "alice", begun.upload, 0, complete=True)
        assert files(tmp_path / "store") == before
        assert store.index.usage("alice") == Usage(0, 0, 0, 0)
    assert content_of(store, "bob", kind, served(kind).key_ids[1]) == served(kind).keys[1]


def test_lengths_that_are_wrong_are_refused_before_a_byte(store: KeyStore, tmp_path: Path) -> None:
    routes = routes_of(store, "network")
    for length in (0, len(DATA) - 1, len(DATA) + 1, 10**14):
        given = {"upload-complete": "?0", "upload-length": str(length)}
        refusal = refused(413, routes.post, "alice", NETWORK.program, given)
        assert f"max-size={len(DATA)}, min-size={len(DATA)}" in refusal.headers["Upload-Limit"]
    refused(411, routes.post, "alice", NETWORK.program, {"upload-complete": "?0"})
    refused(404, routes.post, "alice", "another", {"content-length": "5"})
    given = {"upload-complete": "?1", "upload-length": "7", "content-length": "8"}
    refusal = refused(400, routes.post, "alice", NETWORK.program, given)
    assert refusal.problem()["type"] == f"{TYPES}inconsistent-upload-length"
    assert files(tmp_path / "store") == {}


def test_uploads_keep_to_their_length(store: KeyStore, tmp_path: Path) -> None:
    routes = routes_of(store, "network")
    name = begun(routes)
    refused(400, patched, routes, name, DATA, 0, True, **{"upload-length": str(len(DATA) + 1)})
    assert "send the rest" in str(refused(400, patched, routes, name, DATA[:-5], 0, True))
    assert routes.head("alice", name).headers["Upload-Offset"] == str(len(DATA) - 5)
    refusal = refused(400, patched, routes, name, b"123456", len(DATA) - 5, False)
    assert "more bytes" in str(refusal)
    refused(410, routes.head, "alice", name)
    assert files(tmp_path / "store") == {}


def test_another_programs_keys_are_refused(store: KeyStore, tmp_path: Path) -> None:
    """Also if they have its parameters. The header alone does not tell them apart."""
    uploads = uploads_of(store, "network", "other", "deep")
    for kind in ("other", "deep"):
        data = bytearray(served(kind).keys[0][: len(DATA)].ljust(len(DATA), b"\0"))
        data[40:48] = (len(DATA) - 64).to_bytes(8, "little")
        name = uploads.create("alice", NETWORK.program, len(DATA)).upload
        with uploads.append("alice", name, 0, complete=False) as append:
            refused(422, append.write, bytes(data[:200]))
    assert files(tmp_path / "store") == {}
    other = served("other")
    send(uploads, "alice", "other")
    sha256 = hashlib.sha256(other.keys[0]).hexdigest()
    refused(413, uploads.create, "alice", NETWORK.program, len(other.keys[0]), sha256)
    assert store.find("alice", NETWORK.program, other.key_ids[0]) is None


def test_a_hash_that_was_announced_is_kept(store: KeyStore, tmp_path: Path) -> None:
    routes = routes_of(store, "network")
    wrong = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    name = begun(routes, **{"repr-digest": f"sha-512=:AA==:, sha-256=:{wrong}:"})
    assert "another hash" in str(refused(422, patched, routes, name, DATA, 0, True))
    assert files(tmp_path / "store") == {}
    right = base64.b64encode(hashlib.sha256(DATA).digest()).decode()
    name = begun(routes, **{"repr-digest": f"sha-256=:{right}:"})
    assert patched(routes, name, DATA, 0, True).status == 200
    given = {"upload-complete": "?1", "content-length": str(len(DATA))}
    given["repr-digest"] = f"sha-256=:{right}:"
    with routes.post("alice", NETWORK.program, given) as content:  # the client has sent it before
        assert content.interim is None
        assert content.end().headers["Jali-Key"] == NETWORK.key_ids[0]
    for bad in ("AA==", "A", right[:-4]):
        refused(400, begun, routes, **{"repr-digest": f"sha-256=:{bad}:"})


def test_a_bad_piece_is_refused_alone(store: KeyStore) -> None:
    """If its content has a digest, another content leaves the upload as it was."""
    routes = routes_of(store, "network")
    name, half = begun(routes), len(DATA) // 2
    digest = base64.b64encode(hashlib.sha256(DATA[:half]).digest()).decode()
    more = {"content-digest": f"sha-256=:{digest}:"}
    damaged = bytes([*DATA[:100], DATA[100] ^ 1, *DATA[101:half]])
    refused(400, patched, routes, name, damaged, 0, False, **more)
    assert routes.head("alice", name).headers["Upload-Offset"] == "0"
    with routes.patch("alice", name, fields(0, False, **more)) as content:
        content.write(
            DATA[:1000]
        )  # and the connection is lost: nobody knows whether they are right
    assert routes.head("alice", name).headers["Upload-Offset"] == "0"
    assert patched(routes, name, DATA[:half], 0, False, **more).headers["Upload-Offset"] == str(
        half
    )
    assert patched(routes, name, DATA[half:], half, True).status == 200
    assert content_of(store, "alice", "network", NETWORK.key_ids[0]) == DATA


def test_offsets_must_be_right(store: KeyStore) -> None:
    routes = routes_of(store, "network")
    name = begun(routes)
    answer = patched(routes, name, DATA[:1000], 0, False)
    assert (answer.status, answer.headers["Upload-Complete"]) == (204, "?0")
    for offset in (0, 999, 1001, len(DATA) + 5):
        refusal = refused(409, routes.patch, "alice", name, fields(offset, False))
        assert refusal.headers["Upload-Offset"] == "1000"
        assert refusal.problem()["type"] == f"{TYPES}mismatching-upload-offset"
        assert refusal.problem()["expected-offset"] == 1000
        assert refusal.problem()["provided-offset"] == offset
    for bad in ({"upload-offset": "-1"}, {"upload-offset": "x"}, {"upload-complete": "1"}):
        refused(400, routes.patch, "alice", name, fields(1000, False) | bad)
    refused(415, routes.patch, "alice", name, fields(1000, False) | {"content-type": "text/plain"})
    patched(routes, name, DATA[1000:], 1000, False)
    assert routes.head("alice", name).headers["Upload-Complete"] == "?0"  # nobody said it was all
    assert patched(routes, name, b"", len(DATA), True).status == 200
    refusal = refused(410, patched, routes, name, b"", len(DATA), True)
    assert refusal.problem()["type"] == f"{TYPES}completed-upload"
    more = fields(len(DATA), True, **{"content-length": "5"})
    refusal = refused(400, routes.patch, "alice", name, more)
    assert refusal.problem()["type"] == f"{TYPES}inconsistent-upload-length"


def test_uploads_belong_to_their_client(store: KeyStore, tmp_path: Path) -> None:
    routes = routes_of(store, "network")
    name = begun(routes)
    patched(routes, name, DATA[:1000], 0, False)
    with routes.patch("alice", name, fields(1000, True)) as content:
        for work in (routes.head, routes.delete):
            refused(404, work, "bob", name)
        refused(404, routes.patch, "bob", name, fields(1000, True))
        content.write(DATA[1000:])  # and nobody ended it
        assert content.end().status == 200
    for unknown in ("", "../index.sqlite", "x" * 32):
        refused(404, routes.head, "alice", unknown)
        refused(404, routes.patch, "alice", unknown, fields(0, True))
        refused(404, routes.delete, "alice", unknown)
    assert len(files(tmp_path / "store")) == 1


def test_a_new_request_takes_the_upload(store: KeyStore) -> None:
    """A server may not see that a connection is dead. The client goes on over another one, and what
    the dead one still brings is not taken."""
    routes = routes_of(store, "network")
    name = begun(routes)
    with routes.patch("alice", name, fields(0, True)) as old:
        old.write(DATA[:5000])
        offset = int(routes.head("alice", name).headers["Upload-Offset"])
        assert offset == 5000
        refused(409, old.write, b"x" * 100)
        with routes.patch("alice", name, fields(offset, True)) as new:
            new.write(DATA[5000:9000])
            refused(409, old.write, b"x" * 100)
            with routes.patch("alice", name, fields(9000, True)) as newest:
                newest.write(DATA[9000:])
                refused(409, new.end)
                assert newest.end().status == 200
    assert content_of(store, "alice", "network", NETWORK.key_ids[0]) == DATA
    name = begun(routes)
    with routes.patch("alice", name, fields(0, True)) as old:
        old.write(DATA[:5000])
        assert routes.delete("alice", name).status == 204
        refused(409, old.write, DATA[5000:])
    refused(410, routes.head, "alice", name)


def test_another_process_takes_the_upload(store: KeyStore, tmp_path: Path, opened: Opened) -> None:
    """It waits until the one that writes has noticed, which is when it acknowledges bytes."""
    routes = routes_of(store, "network", sync_bytes=10_000)
    name = begun(routes)
    (writing, writes), (asking, asks) = os.pipe(), os.pipe()

    def other() -> None:
        os.read(writing, 1)
        with opened(tmp_path / "store") as mine:
            theirs = routes_of(mine, "network", patience=60)
            offset = int(theirs.head("alice", name).headers["Upload-Offset"])
            os.write(asks, b"x")
            assert offset == 20_000
            with theirs.patch("alice", name, fields(offset, True)) as content:
                content.write(DATA[offset:])
                assert content.end().status == 200

    join = started(other)  # before the lock, which a forked process would share
    with routes.patch("alice", name, fields(0, True)) as old:
        old.write(DATA[:10_000])
        old.write(DATA[10_000:20_000])
        assert old.progress.headers == {"Upload-Offset": "20000"}
        os.write(writes, b"x")
        os.read(asking, 1)
        refused(409, old.write, DATA[20_000:40_000])
    join()
    assert content_of(store, "alice", "network", NETWORK.key_ids[0]) == DATA
    assert store.verify() == []


def test_one_that_keeps_the_upload_is_waited_for(
    store: KeyStore, tmp_path: Path, opened: Opened
) -> None:
    routes = routes_of(store, "network")
    name = begun(routes)
    with routes.patch("alice", name, fields(0, True)), opened(tmp_path / "store") as second:
        theirs = routes_of(second, "network", patience=0.05)
        refusal = refused(503, theirs.patch, "alice", name, fields(0, True))
        assert "Retry-After" in refusal.headers
    with opened(tmp_path / "store") as second:
        assert patched(routes_of(second, "network"), name, DATA, 0, True).status == 200


def test_the_check_goes_on_between_requests(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many small requests do not make the server read from the beginning each time."""
    from jali.serve import blobs

    read: list[tuple[int, int]] = []
    real = blobs.Part.read

    def noted(part: blobs.Part, at: int, end: int) -> Iterator[bytes]:
        if end > at:
            read.append((at, end))
        return real(part, at, end)

    monkeypatch.setattr(blobs.Part, "read", noted)
    routes = routes_of(store, "network")
    name = begun(routes)
    for start in range(0, 50_000, 5_000):
        patched(routes, name, DATA[start : start + 5_000], start, False)
    assert read == []
    again = routes_of(store, "network")  # another server knows nothing of the bytes
    patched(again, name, DATA[50_000:60_000], 50_000, False)
    assert read == [(0, 50_000)]
    patched(routes, name, DATA[60_000:], 60_000, True)
    assert read == [(0, 50_000), (0, 60_000)]


def test_a_full_disk_ends_the_request_alone(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = routes_of(store, "network")
    name = begun(routes)
    patched(routes, name, DATA[:1000], 0, False)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for call in ("pwrite", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            refusal = refused(507, patched, routes, name, DATA[1000:], 1000, True)
            assert "No space left" in str(refusal) and "Retry-After" in refusal.headers
        assert routes.head("alice", name).headers["Upload-Offset"] == "1000"
    assert patched(routes, name, DATA[1000:], 1000, True).status == 200


def test_damage_is_not_acknowledged_if_the_index_cannot_be_told(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    routes = routes_of(store, "network")
    name, damaged = begun(routes), bytearray(DATA)
    damaged[200:4200] = b"\xff" * 4000

    def away(*_: object) -> None:
        raise IndexUnavailable("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(store.index, "end", away)
        refused(503, patched, routes, name, bytes(damaged), 0, True)
    assert routes.head("alice", name).headers["Upload-Offset"] == "0"
    refused(422, patched, routes, name, bytes(damaged), 0, True)
    refused(410, routes.head, "alice", name)
    assert store.sets("alice") == [] and files(tmp_path / "store") == {}


def test_what_the_disk_lost_is_not_taken_for_right(store: KeyStore, tmp_path: Path) -> None:
    for damage, status, sentence in (
        (lambda path: path.write_bytes(DATA[:5_000]), 410, "lost"),
        (lambda path: path.unlink(), 410, "lost"),
        (lambda path: path.write_bytes(bytes(50_000)), 422, "JALI"),
    ):
        routes = routes_of(store, "network")
        name = begun(routes)
        patched(routes, name, DATA[:50_000], 0, False)
        damage(store.blobs.part_path(name))  # type: ignore[no-untyped-call]
        again = routes_of(store, "network")
        refusal = refused(status, again.patch, "alice", name, fields(50_000, True))
        assert sentence in str(refusal)
        refused(410, routes.head, "alice", name)
        assert files(tmp_path / "store") == {}


def test_old_uploads_are_removed(
    store: KeyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    routes = routes_of(store, "network", max_age=100)
    name = begun(routes)
    patched(routes, name, DATA[:1000], 0, False)
    now[0] += 90
    patched(routes, name, DATA[1000:2000], 1000, False)
    now[0] += 90
    begun(routes)
    assert routes.head("alice", name).headers["Upload-Offset"] == "2000"
    now[0] += 20
    begun(routes)
    refused(404, routes.head, "alice", name)
    assert set(files(tmp_path / "store").values()) == {b""}
    assert store.index.usage("alice").uploads == 2


def test_one_request_brings_all(store: KeyStore) -> None:
    """With the interim answer that tells how to go on, or without, by a client that knows nothing of
    resumption."""
    routes = routes_of(store, "network")
    for more in ({"upload-complete": "?1"}, {}):
        given = {"content-length": str(len(DATA)), **more}
        with routes.post("alice", NETWORK.program, given) as content:
            assert (content.interim is None) == (not more)
            if content.interim is not None:
                assert content.interim.status == 104
                assert content.interim.headers["Location"].startswith("/v1/uploads/")
                assert f"max-size={len(DATA)}" in content.interim.headers["Upload-Limit"]
            content.write(DATA)
            assert content.end().status == 200


def test_options_say_what_may_be_sent(tmp_path: Path, opened: Opened) -> None:
    with opened(tmp_path, quota=Quota(len(DATA) + 10, 5)) as store:
        routes = routes_of(store, "network")
        answer = routes.options("alice", NETWORK.program)
        assert answer.headers["Accept-Patch"] == MEDIA_TYPE
        assert f"max-size={len(DATA)}," in answer.headers["Upload-Limit"]
        begun(routes)
        assert "max-size=10," in routes.options("alice", NETWORK.program).headers["Upload-Limit"]


def test_threads_send_at_once(store: KeyStore, tmp_path: Path) -> None:
    uploads = uploads_of(store, *KINDS)
    failed: list[BaseException] = []

    def work(client: str, kind: str) -> None:
        try:
            key_id = send(uploads, client, kind)
            assert content_of(store, client, kind, key_id) == served(kind).keys[0]
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(client, kind))
        for client in ("alice", "bob")
        for kind in KINDS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(files(tmp_path / "store")) == len(KINDS)


def test_the_uploads_of_a_store_keep_to_their_programs(store: KeyStore) -> None:
    uploads = Uploads(store, {})
    refused(404, uploads.create, "alice", NETWORK.program, len(DATA))
