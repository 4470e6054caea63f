"""Requests are answered once within their deadline, or not at all."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

import numpy as np
import pytest
from remote_world import Cut, Service, httpx, problem, program_of, serving

import jali
from jali.remote import ProgramReplaced, ServiceError, Unavailable
from jali.remote.loop import LoopThread

ROWS = np.array([[1, 2, 3, 4], [-9, 9, 0, 5]])
SUMS = (ROWS * ROWS).sum(1) - ROWS[:, 0]


def _runs(service: Service) -> list[Any]:
    return [r for r in service.requests if r.url.path.endswith("/run")]


def test_a_request_is_repeated_under_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jali.remote.repeats._FIRST", 0.001)
    with serving("integers") as service, service.remote() as remote:
        remote.keys()
        service.faults = [
            lambda r: problem(503, "full", headers={"retry-after": "0"}),
            lambda r: httpx.ConnectError("refused"),
            lambda r: Cut(0),
            lambda r: Cut(None),  # it was computed, and the answer was lost
            lambda r: problem(429, "client"),
            lambda r: httpx.Response(502, text="<html>"),
            lambda r: httpx.Response(504, text="<html>"),
            lambda r: httpx.Response(200, headers={"content-length": "1000"}, content=b"cut"),
        ]
        assert (remote(ROWS) == SUMS).all()
        runs = _runs(service)
        assert len(runs) == 9 and service.computed == 1
        assert len({r.headers["idempotency-key"] for r in runs}) == 1
        assert len({r.content for r in runs}) == 1
        left = [int(r.headers["jali-deadline-ms"]) for r in runs]
        assert left == sorted(left, reverse=True) and 0 < left[-1] < left[0] <= 60_000
        assert (remote(ROWS) == SUMS).all()
        assert len({r.headers["idempotency-key"] for r in _runs(service)}) == 2


def test_nothing_is_sent_beyond_the_deadline() -> None:
    with serving("integers") as service, service.remote() as remote:
        remote.keys()
        service.fault = lambda r: problem(503, "full", "come later", headers={"retry-after": "0"})
        began = time.monotonic()
        with pytest.raises((Unavailable, jali.DeadlineExceeded), match="come later"):
            remote(ROWS, deadline=0.5)
        assert time.monotonic() - began < 30
        sent = len(_runs(service))
        assert 1 <= sent <= 6  # pauses grow also if a server asks for none
        time.sleep(0.3)
        assert len(_runs(service)) == sent
        service.fault = lambda r: problem(503, "full", headers={"retry-after": "61"})
        with pytest.raises(Unavailable):
            remote(ROWS, deadline=60)
        assert len(_runs(service)) == sent + 1  # it is clear at once


def test_an_answer_that_does_not_come_ends_with_the_deadline() -> None:
    async def never(request: Any) -> Any:
        await asyncio.sleep(3600)

    with serving("integers") as service, service.remote() as remote:
        transport = service.transport
        real = transport.handler

        async def handler(request: Any) -> Any:
            is_run = request.url.path.endswith("/run")
            return await (never(request) if is_run else real(request))

        with service.remote(
            transport=httpx.MockTransport(handler), secret=remote.client.secret
        ) as slow:
            slow.keys()
            with pytest.raises(jali.DeadlineExceeded, match=r"not there within 0\.3 s") as caught:
                slow(ROWS, deadline=0.3)
            assert isinstance(caught.value, TimeoutError)


def test_what_is_not_repeated() -> None:
    with serving("integers") as service, service.remote() as remote:
        remote.keys()
        for answer, kind in (
            (problem(500, "poison"), ServiceError),
            (problem(422, "corrupt_data"), jali.CorruptData),
            (problem(504, "deadline"), jali.DeadlineExceeded),
            (problem(413, "too-large"), jali.LimitExceeded),
            (problem(410, "program-retired", replaced_by=["c" * 64]), ProgramReplaced),
        ):
            before = len(_runs(service))
            service.faults = [lambda r, answer=answer: answer]
            with pytest.raises(kind):
                remote(ROWS)
            assert len(_runs(service)) == before + 1


def test_inputs_are_checked_before_anything_is_sent() -> None:
    with serving("integers") as service, service.remote() as remote:
        remote.keys()
        for wrong in (np.full(4, 99), np.zeros(5), np.full(4, 0.5)):
            with pytest.raises(jali.InvalidArgument):
                remote(wrong)
        with pytest.raises(jali.InvalidArgument):
            remote(ROWS, ROWS)
        with pytest.raises(jali.InvalidArgument, match="deadline"):
            remote(ROWS, deadline=0)
        assert _runs(service) == []


def test_the_program_may_be_asked_for_later() -> None:
    with serving("integers") as service:
        remote = service.asynchronous()
        with pytest.raises(jali.InvalidArgument, match=r"await remote\.open\(\) first"):
            _ = remote.client
        assert service.seen == []

        async def work() -> Any:
            await asyncio.gather(remote.open(), remote.open())
            await remote.keys()
            return await remote(ROWS)

        assert (asyncio.run(work()) == SUMS).all()
        assert (asyncio.run(remote(ROWS)) == SUMS).all()  # in another loop
        assert service.count("GET", "/programs") == 1


def test_several_threads_call_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("integers") as service, service.remote() as remote:
        remote.keys()
        found: list[Any] = []

        def call() -> None:
            found.append(remote(ROWS))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and all((one == SUMS).all() for one in found)


def test_a_callback_that_calls_is_refused() -> None:
    with serving("integers") as service, service.remote() as remote:
        with pytest.raises(jali.InvalidArgument, match="would wait for itself"):
            remote.keys(progress=lambda *_: remote(ROWS))
        remote.keys()
        assert (remote(ROWS) == SUMS).all()


def test_a_loop_begins_again_after_it_was_closed_and_in_a_forked_process() -> None:
    loop = LoopThread()

    async def answer() -> int:
        return 42

    assert loop.run(answer()) == 42
    child = os.fork()
    if child == 0:
        os._exit(0 if loop.run(answer()) == 42 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    loop.close()
    assert loop.run(answer()) == 42
    loop.close()
    loop.close()


def test_threads_end_with_what_they_serve() -> None:
    with serving("integers") as service:
        remote = service.remote()
        assert any(t.name == "jali-remote" for t in threading.enumerate())
        del remote
        until = time.monotonic() + 30
        while any(t.name == "jali-remote" for t in threading.enumerate()):
            assert time.monotonic() < until
            time.sleep(0.02)
        assert program_of("integers") is not None
