"""Keys arrive whole, whatever happens to connections, and are sent by one upload."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from remote_world import Cut, Service, httpx, problem, serving

import jali
from jali._core.key_stream import KeyStream
from jali.remote import BadAnswer, ServiceError, Unavailable
from jali.serve.keys import Quota


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are short, and pieces are smaller than the keys of a small program."""
    monkeypatch.setattr("jali.remote.repeats._FIRST", 0.001)
    monkeypatch.setattr("jali.remote.session.PIECE", 5000)


def watched(remote: Any) -> tuple[list[bytes], list[KeyStream]]:
    """The bytes of all keys that a remote makes from here on, and the streams."""
    client, made, streams = remote.client, list[bytes](), list[KeyStream]()
    real = type(client).key_stream

    def key_stream(**options: Any) -> KeyStream:
        stream = real(client, **options)

        def pieces() -> Iterator[bytes]:
            for piece in stream:
                made.append(piece)
                yield piece

        streams.append(stream)
        return KeyStream(stream.nbytes, stream.key_id, pieces())

    client.key_stream = key_stream
    return made, streams


def stored(service: Service, remote: Any) -> bytes:
    key_id = remote.client.secret.key_id
    with service.store.open("alice", remote.client.manifest.fingerprint, key_id) as file:
        return file.read()


def test_cuts_at_random_places(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jali.remote.session.PIECE", 20_000)
    for _ in range(10):
        with serving("integers") as service, service.remote() as remote:
            made, streams = watched(remote)
            left = 12

            def fault(request: Any) -> Any:
                nonlocal left
                if left == 0 or rng.random() < 0.4:
                    return None
                left -= 1
                if request.url.path.endswith("/uploads"):  # whose answer must not be lost
                    return problem(503, "busy")
                lost = httpx.ConnectError("refused")
                length = int(request.headers.get("content-length", 0))
                cuts = [lost, Cut(None), Cut(int(rng.integers(0, length + 1)))]
                return [*cuts, problem(503, "busy"), problem(429, "client"), httpx.Response(502)][
                    rng.integers(6)
                ]

            service.fault = fault
            remote.keys()
            assert stored(service, remote) == b"".join(made) and len(streams) == 1
            assert service.count("POST", "/uploads") <= 13
            assert service.store.index.usage("alice").uploads == 0  # none is left open


def test_an_upload_goes_on_at_the_next_call() -> None:
    with serving("integers") as service, service.remote() as remote:
        made, streams = watched(remote)

        class Stop(Exception):
            pass

        def stop(done: int, total: int) -> None:
            if done > total / 2:
                raise Stop

        with pytest.raises(Stop):
            remote.keys(progress=stop)
        sent = service.count("PATCH", "")
        service.fault = lambda request: httpx.ConnectError("no network")
        with pytest.raises(Unavailable, match=r"cannot be reached: no network"):
            remote.keys(patience=0.05)
        service.fault = None
        told: list[int] = []
        remote.keys(progress=lambda done, total: told.append(done))
        assert told[0] > streams[0].nbytes / 2
        assert stored(service, remote) == b"".join(made) and len(streams) == 1
        assert service.count("POST", "/uploads") == 1
        assert service.count("PATCH", "") == sent + len(told)


def test_a_call_that_was_given_up_does_no_harm() -> None:
    """A key that is being made when its call ends belongs to the next call."""

    async def work(service: Service) -> None:
        async with service.asynchronous() as remote:
            made, _ = watched(remote)
            for seconds in (0.001, 0.01, 0.02, 0.05):
                try:
                    async with asyncio.timeout(seconds):
                        await remote.keys()
                except TimeoutError:
                    pass
            await remote.keys()
            assert b"".join(made).endswith(stored(service, remote))

    with serving("integers") as service:
        asyncio.run(work(service))


def test_the_last_answer_may_be_lost() -> None:
    """The service has the keys then, and says so when it is asked for the offset."""
    with serving("integers") as service, service.remote() as remote:
        made, streams = watched(remote)
        ends = 0

        def lose(request: Any) -> Any:
            nonlocal ends
            ends += request.headers.get("upload-complete") == "?1"
            return Cut(None) if request.headers.get("upload-complete") == "?1" else None

        service.fault = lose
        remote.keys()
        assert stored(service, remote) == b"".join(made) and (len(streams), ends) == (1, 1)


def test_bytes_that_are_there_are_stored_by_another_request() -> None:
    """If the service has all bytes and was cut before it stored them."""
    with serving("integers") as service, service.remote() as remote:
        made, _ = watched(remote)
        ends: list[int] = []

        def forget(request: Any) -> Any:
            if request.headers.get("upload-complete") != "?1":
                return None
            ends.append(len(request.content))
            if len(ends) == 1:
                request.headers["upload-complete"] = "?0"
            return None

        service.fault = forget
        remote.keys()
        assert stored(service, remote) == b"".join(made)
        assert len(ends) == 2 and ends[0] > 0 == ends[1]


def test_an_interrupt_ends_an_upload_that_can_go_on() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        interrupted_upload()
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted_upload() -> None:
    with serving("integers") as service, service.remote() as remote:
        made, streams = watched(remote)
        ended, main = threading.Event(), threading.main_thread().ident

        async def hang(request: Any) -> Any:
            signal.pthread_kill(main, signal.SIGINT)
            try:
                await asyncio.sleep(3600)
            finally:
                ended.set()

        with pytest.raises(KeyboardInterrupt):
            remote.keys(progress=lambda *_: setattr(service, "hang", hang))
        assert ended.wait(30)
        service.hang = None
        remote.keys()
        assert stored(service, remote) == b"".join(made) and len(streams) == 1


def test_room_is_asked_for_before_a_key_is_made() -> None:
    with serving("network", quota=Quota(nbytes=100_000)) as service, service.remote() as remote:
        made, _ = watched(remote)
        with pytest.raises(jali.LimitExceeded, match=r"no room for these keys.*may take 97\.7 KiB"):
            remote.keys()
        assert made == [] and service.count("PATCH", "") == 0


def test_too_many_keys_are_not_made() -> None:
    with serving("network") as service, service.remote() as remote:
        with pytest.raises(jali.LimitExceeded, match="makes at most"):
            remote.keys(max_bytes=1000)
        assert service.count("POST", "/uploads") == 0


def test_an_upload_that_the_service_lost_begins_again_once() -> None:
    with serving("integers") as service, service.remote() as remote:
        made, streams = watched(remote)
        lost = 0

        def lose(request: Any) -> Any:
            nonlocal lost
            if request.method == "PATCH" and request.headers["upload-offset"] == "5000":
                lost += 1
                return problem(404, "no-upload") if lost <= 1 else None
            return None

        service.fault = lose
        remote.keys()
        assert len(streams) == 2 and b"".join(made).endswith(stored(service, remote))
    with serving("integers") as service, service.remote() as remote:
        service.fault = lambda r: problem(410, "lost") if r.method == "PATCH" else None
        with pytest.raises(ServiceError, match="has lost the upload"):
            remote.keys()
        assert service.count("POST", "/uploads") == 2


def test_a_bad_piece_is_sent_again_and_damaged_keys_are_not() -> None:
    with serving("integers") as service, service.remote() as remote:
        made, streams = watched(remote)
        service.faults = [*[lambda r: None] * 3, lambda r: problem(400, "digest", "another digest")]
        remote.keys()
        assert stored(service, remote) == b"".join(made) and len(streams) == 1
    with serving("integers") as service, service.remote() as remote:
        _, streams = watched(remote)
        damaged = problem(422, "corrupt_data", "the checksum is wrong", code="corrupt_data")
        service.faults = [*[lambda r: None] * 3, lambda r: damaged]
        with pytest.raises(jali.CorruptData, match=r"The server said: .the checksum is wrong"):
            remote.keys()
        remote.keys()  # makes new ones
        assert len(streams) == 2


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "does not say how many"),
        ({"upload-offset": "x"}, "does not say how many"),
        ({"upload-offset": "0", "upload-complete": "?0"}, "keeps none of them"),
        ({"upload-offset": "9999999", "upload-complete": "?0"}, "9999999 bytes"),
        ({"upload-offset": "5000", "upload-complete": "?1"}, "which were not sent"),
        ({"upload-offset": "5000", "upload-complete": "?1", "jali-key": "0" * 32}, "were not sent"),
    ],
)
def test_servers_that_lie_of_an_upload(headers: dict[str, str], why: str) -> None:
    with serving("integers") as service, service.remote() as remote:
        service.fault = lambda r: (
            httpx.Response(204, headers=headers) if r.method == "PATCH" else None
        )
        with pytest.raises(BadAnswer, match=why):
            remote.keys()


@pytest.mark.parametrize(
    "location",
    ["", "/v1/uploads/", "/v1/uploads/a b", "https://evil.example/v1/uploads/x?y", "/" + "a" * 200],
)
def test_no_place_that_a_server_names_is_followed(location: str) -> None:
    with serving("integers") as service, service.remote() as remote:
        answer = httpx.Response(201, headers={"location": location})
        service.fault = lambda r: answer if r.method == "POST" else None
        with pytest.raises(BadAnswer, match="does not say where"):
            remote.keys()
    with serving("integers") as service, service.remote() as remote:

        def elsewhere(request: Any) -> Any:
            if request.method != "POST":
                return None
            found = service._answer(request, b"")
            found.headers["location"] = "https://evil.example" + found.headers["location"]
            return found

        service.fault = elsewhere
        remote.keys()  # at the same service
        assert {request.url.host for request in service.requests} == {"fhe.example"}
