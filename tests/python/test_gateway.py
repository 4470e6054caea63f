"""The routes of a service, before a double of what computes. docs/reference/http.md says what they
are."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import serve_world
from gateway_world import KEY, refused, reply_to, running, until

from jali.serve import server
from jali.serve.bodies import Folder
from jali.serve.gateway import Settings
from jali.serve.refusal import Refusal

NETWORK = serve_world.served("network")
PROGRAM = NETWORK.program
RUN = f"/v1/programs/{PROGRAM}/run"
UPLOADS = f"/v1/programs/{PROGRAM}/uploads"


def test_programs_and_manifests(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        (one,) = client.get("/v1/programs").json()["programs"]
        assert one["fingerprint"] == PROGRAM and one["name"] == "network"
        assert one["key_bytes"] == len(NETWORK.keys[0])
        assert client.get(f"/v1/programs/{PROGRAM}").json() == one
        manifest = client.get(f"/v1/programs/{PROGRAM}/manifest")
        assert manifest.content == NETWORK.manifest.to_bytes()
        assert "immutable" in manifest.headers["Cache-Control"]
        tag = manifest.headers["ETag"]
        assert tag == f'"{PROGRAM}"'
        again = client.get(f"/v1/programs/{PROGRAM}/manifest", headers={"If-None-Match": tag})
        assert again.status_code == 304 and not again.content
        refused(client.get(f"/v1/programs/{'0' * 64}/manifest"), 404, "no-program")


def test_a_program_that_was_replaced_is_gone(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        assert client.get(f"/v1/programs/{PROGRAM}").status_code == 200
    with running(tmp_path, kinds=("integers",)) as world, world.client() as client:
        new = world.service.programs[serve_world.served("integers").program]
        new.name = "network"
        for answer in (
            client.get(f"/v1/programs/{PROGRAM}"),
            client.get(f"/v1/programs/{PROGRAM}/manifest"),
            client.options(UPLOADS),
            client.post(UPLOADS, content=NETWORK.keys[0]),
            client.post(RUN, content=b"a", headers={"Jali-Key": KEY}),
        ):
            assert refused(answer, 410, "replaced")["replaced_by"] == [new.fingerprint]


def test_a_request_is_answered(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        headers = {"Jali-Key": KEY, "Jali-Deadline-Ms": "1500", "Jali-Request": "mine-1"}
        answer = client.post(RUN, content=b"abc", headers=headers)
        assert answer.status_code == 200 and answer.content == reply_to(b"abc")
        assert answer.headers["Server-Timing"] == "queue;dur=1.0, load;dur=0.0, compute;dur=250.0"
        assert answer.headers["Jali-Request"] == "mine-1"
        (admitted,) = world.service.admitted
        assert admitted == {
            "client": "anyone",
            "key_id": KEY,
            "nbytes": 3,
            "deadline": 1.5,
            "weight": 1.0,
        }
        assert client.post(RUN, content=b"abc", headers=headers).content == answer.content
        assert len(world.service.bodies) == 2  # without Idempotency-Key nothing is kept


def test_what_is_wrong_with_a_request(tmp_path: Path) -> None:
    settings = Settings(request_bytes=1000)
    with running(tmp_path, settings=settings) as world, world.client() as client:

        def post(content: Any = b"a", **headers: str) -> Any:
            fields = {name.replace("_", "-"): text for name, text in headers.items()}
            return client.post(RUN, content=content, headers=fields)

        refused(post(), 428, "keys")
        refused(post(Jali_Key="../../etc/passwd"), 428, "keys")
        refused(post(bytes(1001), Jali_Key=KEY), 413, "too-large")
        refused(post(iter([b"a", b"b"]), Jali_Key=KEY), 411, "no-length")
        for bad in ("0", "-1", "1.5", "soon", "86400001", "9" * 5000, "١"):
            refused(
                client.post(
                    RUN,
                    content=b"a",
                    headers=[(b"Jali-Key", KEY.encode()), (b"Jali-Deadline-Ms", bad.encode())],
                ),
                400,
                "header",
            )
        refused(post(Jali_Key=KEY, Idempotency_Key="x" * 256), 400, "header")
        refused(post(Jali_Key=KEY, Jali_Seal="1"), 400, "seal")
        other = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
        digest = f"sha-256=:{other}:"
        refused(post(Jali_Key=KEY, Content_Digest=digest), 400, "digest")
        refused(post(Jali_Key=KEY, Content_Digest="sha-256=:AAAA:"), 400, "header")
        assert world.service.bodies == []
        assert all(ticket.cancelled for ticket in world.service.tickets)
        mine = base64.b64encode(hashlib.sha256(b"a").digest()).decode()
        assert post(Jali_Key=KEY, Content_Digest=f"sha-256=:{mine}:").status_code == 200


def test_what_the_framework_refuses_is_a_problem_too(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        refused(client.get("/nothing"), 404, "not-found")
        refused(client.get("/v1/programs/"), 404, "not-found")
        answer = client.put("/v1/keys")
        refused(answer, 405, "method")
        assert "GET" in answer.headers["Allow"] or "DELETE" in answer.headers["Allow"]
        refused(client.get("/docs"), 404, "not-found")
        assert client.get("/openapi.json").json()["info"]["title"] == "Jali"
        with socket.create_connection(("127.0.0.1", int(world.url.rsplit(":", 1)[1]))) as raw:
            raw.sendall(b"no such thing\r\n\r\n")
            text = raw.makefile("rb").read().decode()
        assert text.startswith("HTTP/1.1 400 ") and "application/problem+json" in text
        assert json.loads(text.split("\r\n\r\n", 1)[1])["status"] == 400


def test_an_error_of_the_service_names_the_request_and_nothing_else(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.service.failure = RuntimeError("a secret")
        answer = client.post(RUN, content=b"a", headers={"Jali-Key": KEY})
        document = refused(answer, 500, "internal")
        assert answer.headers["Jali-Request"] in document["detail"]
        assert "a secret" not in answer.text
        assert client.get("/healthz").status_code == 200


def test_refusals_of_the_service_are_passed_on(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.service.refusal = Refusal("later", 503, "full", headers={"Retry-After": "3"})
        answer = client.post(RUN, content=b"a", headers={"Jali-Key": KEY})
        refused(answer, 503, "full")
        assert answer.headers["Retry-After"] == "3"
        world.service.refusal, world.service.failure = None, Refusal("no", 422, "request")
        refused(client.post(RUN, content=b"a", headers={"Jali-Key": KEY}), 422, "request")


def test_connections_send_at_once() -> None:
    """asyncio turns Nagle's algorithm off for sockets that say that they are TCP's. With it, an answer
    in two pieces takes 40 ms more."""
    with server.listening("127.0.0.1", 0) as one:
        assert one.proto == socket.IPPROTO_TCP


def test_a_refusal_comes_before_the_body(tmp_path: Path) -> None:
    """A client that asks first sends nothing."""
    with running(tmp_path) as world:
        world.service.refusal = Refusal("later", 503, "full")
        with socket.create_connection(("127.0.0.1", int(world.url.rsplit(":", 1)[1]))) as raw:
            head = f"POST {RUN} HTTP/1.1\r\nHost: 127.0.0.1\r\nJali-Key: {KEY}\r\nContent-Length: 50000000\r\nExpect: 100-continue\r\n\r\n"
            raw.sendall(head.encode())
            text = raw.makefile("rb").read().decode()
        assert text.startswith("HTTP/1.1 503 ") and "connection: close" in text
        assert world.service.admitted[0]["nbytes"] == 50_000_000


def test_a_long_body_that_is_refused_does_not_hide_the_answer(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.service.refusal = Refusal("later", 503, "full")
        for size in (1000, 30 << 20):
            answer = client.post(RUN, content=bytes(size), headers={"Jali-Key": KEY})
            refused(answer, 503, "full")
            assert ("connection" in answer.headers) == (size > 1 << 20)


def test_long_bodies_and_answers_are_files_that_go(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        body = bytes(range(256)) * (9 << 12)
        world.service.reply = body[::-1]
        headers = {"Jali-Key": KEY, "Idempotency-Key": "long"}
        for again in (False, True):
            answer = client.post(RUN, content=body, headers=headers)
            assert answer.content == body[::-1]
            assert ("Idempotent-Replayed" in answer.headers) == again
        assert isinstance(world.service.tickets[0].sent, Path)
        assert not world.service.tickets[0].sent.exists()
        left = [path for path in (tmp_path / "store" / "bodies").rglob("*") if path.is_file()]
        assert left == []
    assert list((tmp_path / "store" / "bodies").iterdir()) == []


def test_a_folder_of_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "of-another"
    left.mkdir()
    (left / "body").write_bytes(b"a")
    first = Folder(tmp_path)
    path, file = first.named()
    file.close()
    second = Folder(tmp_path)
    assert not left.exists() and path.exists()
    second.close()
    first.close()
    assert list(tmp_path.iterdir()) == []


def test_the_same_request_is_computed_once(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.open(False)
        headers = {"Jali-Key": KEY, "Idempotency-Key": '"one"'}
        answers: list[Any] = []

        def post() -> None:
            answers.append(client.post(RUN, content=b"abc", headers=headers))

        threads = [threading.Thread(target=post) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(world.service.bodies) == 1)
        time.sleep(0.2)
        world.open()
        for thread in threads:
            thread.join()
        later = client.post(RUN, content=b"abc", headers={**headers, "Idempotency-Key": "one"})
        assert {answer.content for answer in [*answers, later]} == {reply_to(b"abc")}
        assert later.headers["Idempotent-Replayed"] == "?1"
        assert len(world.service.bodies) == 1
        wrong = client.post(RUN, content=b"abd", headers=headers)
        refused(wrong, 422, "idempotency-key")
        other = client.post(RUN, content=b"abc", headers={**headers, "Jali-Key": KEY[::-1]})
        refused(other, 422, "idempotency-key")
        assert len(world.service.bodies) == 1


def test_a_request_that_failed_is_computed_again(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        headers = {"Jali-Key": KEY, "Idempotency-Key": "one"}
        world.service.failure = Refusal("later", 503, "full")
        refused(client.post(RUN, content=b"abc", headers=headers), 503, "full")
        world.service.failure = None
        assert client.post(RUN, content=b"abc", headers=headers).status_code == 200


def test_answers_are_forgotten_after_a_time(tmp_path: Path) -> None:
    with (
        running(tmp_path, settings=Settings(result_seconds=0.3)) as world,
        world.client() as client,
    ):
        headers = {"Jali-Key": KEY, "Idempotency-Key": "one"}
        for _ in range(2):
            client.post(RUN, content=b"abc", headers=headers)
        job = client.post(RUN, content=b"x", headers={"Jali-Key": KEY, "Prefer": "respond-async"})
        where = job.headers["Location"]
        until(lambda: client.get(where).status_code == 404)
        refused(client.get(where), 404, "no-job")
        client.post(RUN, content=b"abc", headers=headers)
        assert world.service.bodies == [3, 1, 3]


def test_the_oldest_answers_of_who_has_most_go_first(tmp_path: Path) -> None:
    with (
        running(tmp_path, settings=Settings(result_bytes=40_000)) as world,
        world.client() as client,
    ):
        world.service.reply = bytes(10_000)

        def post(name: str) -> bool:
            headers = {"Jali-Key": KEY, "Idempotency-Key": name}
            answer = client.post(RUN, content=b"abc", headers=headers)
            return "Idempotent-Replayed" in answer.headers

        assert not any(post(name) for name in "abc")  # two have room
        assert post("b") and post("c") and not post("a")


def test_who_leaves_cancels(tmp_path: Path) -> None:
    with running(tmp_path) as world:
        world.open(False)
        for name in ("", "named"):
            with world.client(timeout=0.5) as client, pytest.raises(Exception, match="timed out"):
                headers = {"Jali-Key": KEY} | ({"Idempotency-Key": name} if name else {})
                client.post(RUN, content=b"abc", headers=headers)
        until(lambda: len(world.service.tickets) == 2)
        until(lambda: all(ticket.cancelled for ticket in world.service.tickets))
        world.open()
        with world.client() as client:
            headers = {"Jali-Key": KEY, "Idempotency-Key": "named"}
            assert client.post(RUN, content=b"abc", headers=headers).status_code == 200


def test_who_leaves_while_another_waits_cancels_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.open(False)
        headers = {"Jali-Key": KEY, "Idempotency-Key": "one"}
        answers: list[Any] = []
        first = threading.Thread(
            target=lambda: answers.append(client.post(RUN, content=b"abc", headers=headers))
        )
        first.start()
        until(lambda: world.service.bodies)
        with world.client(timeout=0.5) as other, pytest.raises(Exception, match="timed out"):
            other.post(RUN, content=b"abc", headers=headers)
        time.sleep(0.3)
        world.open()
        first.join()
        assert answers[0].content == reply_to(b"abc")


def test_who_repeats_a_request_takes_it_over(tmp_path: Path) -> None:
    """The first connection is lost while the body of the second is on its way."""
    with running(tmp_path) as world:
        world.open(False)
        port, raw = int(world.url.rsplit(":", 1)[1]), []
        head = f"POST {RUN} HTTP/1.1\r\nHost: localhost\r\nJali-Key: {KEY}\r\nIdempotency-Key: one\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
        for body in (b"abc", b"ab"):
            raw.append(socket.create_connection(("127.0.0.1", port)))
            raw[-1].sendall(head.encode() + body)
            until(lambda: len(world.service.bodies) == 1)
        run = world.gateway.runs.named("anyone", "one")
        assert run is not None
        until(lambda: run.waiting == 2)
        raw[0].close()
        until(lambda: run.waiting == 1)
        raw[1].sendall(b"c")
        time.sleep(0.2)
        world.open()
        text = raw[1].makefile("rb").read()
        assert text.startswith(b"HTTP/1.1 200 ") and text.endswith(reply_to(b"abc"))
        assert len(world.service.tickets) == 1


def test_who_leaves_in_the_body_gives_its_room_back(tmp_path: Path) -> None:
    with running(tmp_path) as world:
        with socket.create_connection(("127.0.0.1", int(world.url.rsplit(":", 1)[1]))) as raw:
            head = f"POST {RUN} HTTP/1.1\r\nHost: localhost\r\nJali-Key: {KEY}\r\nContent-Length: 50\r\n\r\nabc"
            raw.sendall(head.encode())
            until(lambda: world.service.tickets)
        until(lambda: world.service.tickets[0].cancelled)
        assert world.service.bodies == []


def test_a_body_that_stops_is_given_up(tmp_path: Path) -> None:
    with running(tmp_path, settings=Settings(patience=0.2)) as world:
        with socket.create_connection(("127.0.0.1", int(world.url.rsplit(":", 1)[1]))) as raw:
            head = f"POST {RUN} HTTP/1.1\r\nHost: localhost\r\nJali-Key: {KEY}\r\nContent-Length: 50\r\n\r\nabc"
            raw.sendall(head.encode())
            assert b" 408 " in raw.makefile("rb").readline()
        assert world.service.tickets[0].cancelled


def test_jobs(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.open(False)
        answer = client.post(
            RUN, content=b"abc", headers={"Jali-Key": KEY, "Prefer": "respond-async, wait=5"}
        )
        assert answer.status_code == 202
        assert answer.headers["Preference-Applied"] == "respond-async"
        where, job = answer.headers["Location"], answer.json()
        assert where == f"/v1/jobs/{job['job']}"
        until(lambda: client.get(where).json()["state"] == "waiting")
        found = client.get(where)
        assert found.status_code == 202 and "Retry-After" in found.headers
        assert found.json() == {
            "job": job["job"],
            "state": "waiting",
            "position": 2,
            "seconds_left": 1.5,
            "program": PROGRAM,
            "key_id": KEY,
        }
        threading.Timer(0.3, world.open).start()
        done = client.get(where, headers={"Prefer": "wait=20"})
        assert done.status_code == 200 and done.content == reply_to(b"abc")
        assert "Server-Timing" in done.headers
        assert client.get(where).content == done.content
        assert client.delete(where).status_code == 204
        refused(client.get(where), 404, "no-job")
        refused(client.delete(where), 404, "no-job")


def test_a_job_can_be_cancelled_and_can_fail(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        world.open(False)
        headers = {"Jali-Key": KEY, "Prefer": "respond-async"}
        where = client.post(RUN, content=b"abc", headers=headers).headers["Location"]
        until(lambda: world.service.bodies)
        assert client.delete(where).status_code == 204
        until(lambda: world.service.tickets[0].cancelled)
        refused(client.get(where), 404, "no-job")
        world.service.failure = Refusal("no", 422, "request")
        where = client.post(RUN, content=b"abc", headers=headers).headers["Location"]
        world.open()
        refused(client.get(where, headers={"Prefer": "wait=20"}), 422, "request")


def test_jobs_are_for_their_client(tmp_path: Path) -> None:
    async def identify(headers: Any, peer: Any) -> Any:
        from jali.serve.auth import Client

        return Client(headers["x-client"])

    with running(tmp_path, identify=identify) as world, world.client() as client:
        headers = {"Jali-Key": KEY, "Prefer": "respond-async", "X-Client": "alice"}
        where = client.post(RUN, content=b"abc", headers=headers).headers["Location"]
        for method in ("GET", "DELETE"):
            refused(client.request(method, where, headers={"X-Client": "bob"}), 404, "no-job")
        mine = client.get(where, headers={"X-Client": "alice", "Prefer": "wait=20"})
        assert mine.content == reply_to(b"abc")
        named = {"Jali-Key": KEY, "Idempotency-Key": "same"}
        for who in ("alice", "bob"):
            one = client.post(RUN, content=who.encode(), headers={**named, "X-Client": who})
            assert one.content == reply_to(who.encode())


def test_the_end_waits_for_answers(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client, world.client() as other:
        world.open(False)
        answers: list[Any] = []
        waiting = threading.Thread(
            target=lambda: answers.append(
                client.post(RUN, content=b"abc", headers={"Jali-Key": KEY})
            )
        )
        waiting.start()
        headers = {"Jali-Key": KEY, "Prefer": "respond-async"}
        where = other.post(RUN, content=b"job", headers=headers).headers["Location"]
        until(lambda: len(world.service.bodies) == 2)
        assert other.get("/readyz").status_code == 200
        world.end()
        until(lambda: world.gateway.draining)
        refused(other.get("/readyz"), 503, "draining")
        assert other.get("/healthz").status_code == 200
        refused(other.post(UPLOADS, content=b"abc"), 503, "draining")
        world.open()
        waiting.join()
        assert answers[0].content == reply_to(b"abc")
        assert other.get(where, headers={"Prefer": "wait=20"}).content == reply_to(b"job")


def test_readiness(tmp_path: Path) -> None:
    with running(tmp_path) as world, world.client() as client:
        assert client.get("/readyz").status_code == 200
        world.service.ready = False
        refused(client.get("/readyz"), 503, "no-worker")
        assert client.get("/healthz").status_code == 200


def test_the_service_answers_to_names_of_its_machine_alone(tmp_path: Path) -> None:
    """Pages of other sites reach it from a browser on this machine, by a name that they own."""
    with running(tmp_path) as world, world.client() as client:
        port = world.url.rsplit(":", 1)[1]
        for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
            assert client.get("/v1/programs", headers={"Host": host}).status_code == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", ""):
            refused(client.get("/v1/programs", headers={"Host": host}), 421, "host")
        refused(client.get("/v1/keys", headers={"Origin": "https://evil.example"}), 403, "origin")
        assert client.get("/v1/keys", headers={"Origin": world.url}).status_code == 200
    with running(tmp_path, local=False) as world, world.client() as client:
        assert client.get("/v1/keys", headers={"Host": "service.example"}).status_code == 200
