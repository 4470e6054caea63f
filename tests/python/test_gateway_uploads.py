"""Keys over HTTP: uploads that are cut, damaged, too many; and what a client sees of its keys."""

from __future__ import annotations

import base64
import hashlib
import random
import socket
import threading
from pathlib import Path
from typing import Any

import serve_world
from gateway_world import World, refused, running, until

from jali.serve.auth import Client
from jali.serve.gateway import Settings
from jali.serve.keys import Quota
from jali.serve.wanted import wanted

KIND = "integers"
SERVED = serve_world.served(KIND)
PROGRAM, DATA, KEY = SERVED.program, SERVED.keys[0], SERVED.key_ids[0]
UPLOADS = f"/v1/programs/{PROGRAM}/uploads"
PARTIAL = {"Content-Type": "application/partial-upload"}


async def by_field(headers: Any, peer: Any) -> Client | None:
    """Clients who say who they are."""
    return Client(headers["x-client"]) if "x-client" in headers else None


def digest(data: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def begun(client: Any, length: int = len(DATA), **headers: str) -> str:
    """Begins an upload without content, and returns where it is."""
    answer = client.post(
        UPLOADS, headers={"Upload-Complete": "?0", "Upload-Length": str(length), **headers}
    )
    assert answer.status_code == 201, answer.text
    where: str = answer.headers["Location"]
    return where


def patched(client: Any, where: str, data: bytes, offset: int, complete: bool = True) -> Any:
    headers = {"Upload-Offset": str(offset), "Upload-Complete": "?1" if complete else "?0"}
    return client.patch(where, content=data, headers={**PARTIAL, **headers})


def stored(world: World) -> dict[str, bytes]:
    return serve_world.files(world.folder / "store")


def test_keys_come_in_one_request(tmp_path: Path) -> None:
    with running(tmp_path, kinds=(KIND,)) as world, world.client() as client:
        limits = client.options(UPLOADS).headers
        assert limits["Accept-Patch"] == "application/partial-upload"
        assert f"max-size={wanted(SERVED.manifest).most}," in limits["Upload-Limit"]
        answer = client.post(UPLOADS, content=DATA)
        assert answer.status_code == 200
        assert answer.json() == {"key_id": KEY, "program": PROGRAM, "bytes": len(DATA)}
        assert answer.headers["Jali-Key"] == KEY
        assert serve_world.content(world.service.store, "anyone", KIND, KEY) == DATA
        again = client.post(
            UPLOADS,
            headers={
                "Upload-Complete": "?0",
                "Upload-Length": str(len(DATA)),
                "Repr-Digest": digest(DATA),
            },
        )
        assert again.status_code == 200 and again.json()["key_id"] == KEY


def test_an_upload_that_is_cut_goes_on(tmp_path: Path) -> None:
    """Ten times the connection is closed in the middle of a request."""
    rng = random.Random(5)
    with running(tmp_path, kinds=(KIND,)) as world, world.client() as client:
        where, port = begun(client), int(world.url.rsplit(":", 1)[1])
        offsets = [0]
        for _ in range(10):
            left = DATA[offsets[-1] :]
            sent = left[: rng.randrange(1, len(DATA) // 10)]
            fields = {
                **PARTIAL,
                "Host": "127.0.0.1",
                "Upload-Offset": str(offsets[-1]),
                "Upload-Complete": "?1",
                "Content-Length": str(len(left)),
            }
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(f"PATCH {where} HTTP/1.1\r\n{lines}\r\n".encode() + sent)
                until(lambda: world.gateway.uploads_now == 1)
            until(lambda: world.gateway.uploads_now == 0)
            offsets.append(int(client.head(where).headers["Upload-Offset"]))
            assert 0 <= offsets[-1] - offsets[-2] <= len(sent)
        assert len(set(offsets)) > 5
        offset = offsets[-1]
        wrong = refused(patched(client, where, DATA[5:], 5), 409, "mismatching-upload-offset")
        assert wrong["expected-offset"] == offset
        done = patched(client, where, DATA[offset:], offset)
        assert done.status_code == 200 and done.json()["key_id"] == KEY
        assert serve_world.content(world.service.store, "anyone", KIND, KEY) == DATA
        last = client.head(where).headers
        assert last["Upload-Complete"] == "?1" and last["Jali-Key"] == KEY


def damaged(rng: random.Random) -> bytes:
    """Bytes that are not the keys, of the same length."""
    data = bytearray(DATA)
    start = rng.randrange(len(data))
    if rng.random() < 0.3:  # where the header and the first sizes are
        start = rng.randrange(120)
    end = min(len(data), start + rng.choice((1, 1, 8, 500, 20_000)))
    how = rng.randrange(4)
    if how == 0:
        data[start] ^= 1 << rng.randrange(8)
    elif how == 1:
        data[start:end] = rng.randbytes(end - start)
    elif how == 2:
        data[start:end] = bytes(end - start)
    else:
        data[start:] = data[start + 1 :] + b"\0"
    return bytes(data)


def test_a_thousand_damaged_uploads_change_nothing(tmp_path: Path) -> None:
    rng = random.Random(7)
    quota = {"quota": Quota(3 * len(DATA), 3)}
    with running(tmp_path, kinds=(KIND,), store=quota) as world, world.client() as client:
        assert client.post(UPLOADS, content=DATA).status_code == 200
        before, listed = stored(world), client.get("/v1/keys").json()
        count = 0
        while count < 1000:
            data = damaged(rng)
            if data == DATA:
                continue
            count += 1
            answer = client.post(UPLOADS, content=data)
            assert answer.status_code == 422, (count, answer.text)
            assert answer.headers["Content-Type"] == "application/problem+json"
        assert stored(world) == before
        assert client.get("/v1/keys").json() == listed
        assert client.post(UPLOADS, content=DATA).status_code == 200


def test_other_mistakes_of_uploads(tmp_path: Path) -> None:
    with running(tmp_path, kinds=(KIND,)) as world, world.client() as client:
        refused(client.post(UPLOADS, content=3 * DATA), 413, "wrong-length")
        refused(client.post(UPLOADS, content=b""), 413, "wrong-length")
        refused(client.post(UPLOADS, content=iter([DATA])), 411, "no-length")
        refused(client.post(UPLOADS, content=DATA, headers={"Upload-Complete": "1"}), 400, "header")
        where = begun(client)
        answer = client.patch(where, content=DATA, headers={"Upload-Offset": "0"})
        refused(answer, 415, "media-type")
        bad = {"Content-Digest": digest(b"other"), "Upload-Offset": "0", "Upload-Complete": "?1"}
        refused(client.patch(where, content=DATA, headers={**PARTIAL, **bad}), 400, "digest")
        assert client.head(where).headers["Upload-Offset"] == "0"
        assert patched(client, where, DATA[:9], 0, False).status_code == 204
        refused(patched(client, where, DATA, 9), 400, "inconsistent-upload-length")
        assert client.delete(begun(client)).status_code == 204
        for method in ("HEAD", "DELETE"):
            assert client.request(method, "/v1/uploads/" + "0" * 32).status_code == 404
        assert client.delete(where).status_code == 204
        assert stored(world) == {}


def test_a_quota_is_told_before_a_byte_is_sent(tmp_path: Path) -> None:
    quota = {"quota": Quota(len(DATA) + 5, 4)}
    with running(tmp_path, kinds=(KIND,), store=quota) as world, world.client() as client:
        where = begun(client)
        document = refused(client.post(UPLOADS, content=DATA), 507, "quota")
        assert document["bytes-left"] == 5
        assert "max-size=5," in client.options(UPLOADS).headers["Upload-Limit"]
        assert patched(client, where, DATA, 0).status_code == 200


def test_so_many_uploads_at_once(tmp_path: Path) -> None:
    settings = Settings(uploads=3, uploads_each=2)
    with running(tmp_path, kinds=(KIND,), identify=by_field, settings=settings) as world:
        port, held = int(world.url.rsplit(":", 1)[1]), []
        for who in ("alice", "alice", "bob"):
            fields = f"Host: a\r\nX-Client: {who}\r\nContent-Length: {len(DATA)}\r\n\r\nJ"
            held.append(socket.create_connection(("127.0.0.1", port)))
            held[-1].sendall(f"POST {UPLOADS} HTTP/1.1\r\n{fields}".encode())
            until(lambda: world.gateway.uploads_now == len(held))
        with world.client() as client:
            for who in ("alice", "carol"):
                answer = client.post(UPLOADS, content=DATA, headers={"X-Client": who})
                refused(answer, 503, "busy")
            held.pop().close()
            until(lambda: world.gateway.uploads_now == 2)
            answer = client.post(UPLOADS, content=DATA, headers={"X-Client": "alice"})
            refused(answer, 429, "client")
            answer = client.post(UPLOADS, content=DATA, headers={"X-Client": "bob"})
            assert answer.status_code == 200
        for one in held:
            one.close()


def test_a_client_sees_and_deletes_its_keys_alone(tmp_path: Path) -> None:
    with (
        running(tmp_path, kinds=(KIND, "network"), identify=by_field) as world,
        world.client(headers={"X-Client": "alice"}) as alice,
    ):
        assert alice.post(UPLOADS, content=DATA).status_code == 200
        other = serve_world.served("network")
        where = f"/v1/programs/{other.program}/uploads"
        assert alice.post(where, content=other.keys[0]).status_code == 200
        found = alice.get("/v1/keys").json()
        assert [one["key_id"] for one in found["keys"]] == [other.key_ids[0], KEY]
        assert found["keys"][1]["bytes"] == len(DATA)
        assert found["keys"][1]["made"].endswith("Z")
        assert found["sets_left"] == 14
        (one,) = alice.get(f"/v1/keys/{KEY}").json()["keys"]
        assert one["program"] == PROGRAM
        assert alice.head(f"/v1/keys/{KEY}").status_code == 200
        narrowed = alice.get("/v1/keys", params={"program": other.program}).json()
        assert [one["program"] for one in narrowed["keys"]] == [other.program]
        with world.client(headers={"X-Client": "bob"}) as bob:
            assert bob.get("/v1/keys").json()["keys"] == []
            refused(bob.get(f"/v1/keys/{KEY}"), 404, "no-keys")
            refused(bob.delete(f"/v1/keys/{KEY}"), 404, "no-keys")
            assert bob.delete("/v1/keys").status_code == 204
        narrow = {"program": other.program}
        refused(alice.delete(f"/v1/keys/{KEY}", params=narrow), 404, "no-keys")
        assert alice.delete(f"/v1/keys/{KEY}").status_code == 204
        refused(alice.get(f"/v1/keys/{KEY}"), 404, "no-keys")
        assert alice.head(f"/v1/keys/{KEY}").status_code == 404
        assert alice.delete("/v1/keys").status_code == 204
        assert alice.get("/v1/keys").json()["keys"] == []
        assert stored(world) == {}


def test_threads_send_at_once(tmp_path: Path) -> None:
    with running(tmp_path, kinds=(KIND,), identify=by_field) as world:

        def send(who: str) -> None:
            with world.client(headers={"X-Client": who}) as client:
                where = begun(client)
                for start in range(0, len(DATA), 20_000):
                    last = start + 20_000 >= len(DATA)
                    answer = patched(client, where, DATA[start : start + 20_000], start, last)
                    assert answer.status_code == (200 if last else 204), answer.text

        threads = [threading.Thread(target=send, args=(f"client {k}",)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for k in range(4):
            store = world.service.store
            assert serve_world.content(store, f"client {k}", KIND, KEY) == DATA
