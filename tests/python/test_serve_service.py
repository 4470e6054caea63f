"""A service of small programs: several clients at once, errors, and what happens at its end."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from service_world import (
    PATIENCE,
    SECONDS,
    ask,
    check,
    fingerprint,
    give_keys,
    long_request,
    party,
    program,
    run,
    running,
    until,
)

from jali.errors import InsecureParams, InternalError, InvalidArgument
from jali.serve.keys import KeyStore
from jali.serve.marginal import Marginals
from jali.serve.policy import Limits
from jali.serve.refusal import Refusal
from jali.serve.service import Service
from jali.serve.tickets import Event, Result


def test_several_clients_of_several_programs(tmp_path: Path) -> None:
    """Answers are right, whatever is asked at the same time, and programs are measured at start."""

    async def work() -> None:
        kinds = ("network", "integers", "trees")
        async with running(tmp_path, *kinds, workers=2, seconds={}) as service:
            assert service.ready
            people = [(f"client {k}", party(kind, k)) for kind in kinds for k in (0, 1)]
            for name, one in people:
                give_keys(service, name, one)
            await asyncio.gather(
                *(
                    check(service, name, one, count=1 + n, seed=n)
                    for n in range(5)
                    for name, one in people
                )
            )
            for kind in kinds:
                served = service.programs[fingerprint(kind)]
                assert served.name == kind and 0 < served.seconds < 1
                one, many = (
                    len(party(kind).request(party(kind).rows(n * served.examples, 1)))
                    for n in (1, 20)
                )
                assert served.predicted(one) == pytest.approx(served.seconds, rel=0.05)
                assert served.predicted(many) == pytest.approx(20 * served.seconds, rel=0.05)
            await asyncio.gather(*(check(service, name, one, 1, 9) for name, one in people))
            found = service.snapshot()
            assert not any(found.waiting.values()) and not any(found.running.values())
            assert found.hits > 0 and found.misses >= 6 and found.retries == 0
            assert found.refusals == {} and found.uploads["done"] == 6
            assert found.key_bytes["device"] == sum(found.device_bytes.values()) > 0

    run(work())


def test_requests_and_replies_have_as_many_bytes_whatever_they_hold(tmp_path: Path) -> None:
    async def work() -> None:
        kinds = ("network", "integers", "trees")
        async with running(tmp_path, *kinds) as service:
            for kind in kinds:
                one = party(kind)
                give_keys(service, "alice", one)
                sizes = set()
                for rows in (one.rows(2, 1), one.rows(2, 2), 0 * one.rows(2, 1) + 1):
                    body = one.request(rows)
                    reply = (await ask(service, "alice", one, body)).body
                    one.check(reply, rows)
                    sizes.add((len(body), len(reply)))
                assert len(sizes) == 1

    run(work())


def test_a_request_without_keys_or_program(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path, "integers") as service:
            one = party("integers")
            body = one.request(one.rows(1, 0))
            for program, key_id, status in (
                (fingerprint("integers"), one.key_id, 428),
                ("0" * 64, one.key_id, 404),
            ):
                with pytest.raises(Refusal) as refused:
                    await service.admit("ann", program, key_id, len(body))
                assert refused.value.status == status
            give_keys(service, "ann", one)
            await ask(service, "ann", one, body)
            with pytest.raises(Refusal) as refused:
                await ask(service, "bob", one, body)  # who has none of his own
            assert refused.value.status == 428
            service.retire(fingerprint("integers"))
            with pytest.raises(Refusal) as refused:
                await ask(service, "ann", one, body)
            assert refused.value.status == 410
            assert service.snapshot().refusals == {"keys": 2, "no-program": 1, "replaced": 1}

    run(work())


def test_requests_of_a_batch(tmp_path: Path) -> None:
    """Requests of a client that wait together are computed together, and one that is damaged, or
    another client's, fails alone."""

    async def work() -> None:
        async with running(tmp_path, "network", "deep", device_bytes=1 << 30) as service:
            events: list[Event] = []
            service.observers.append(events.append)
            one, other = party("network", 0), party("network", 1)
            give_keys(service, "ann", one)
            give_keys(service, "bob", party("deep"))
            await check(service, "ann", one, 1, 0)
            long = asyncio.create_task(check(service, "bob", party("deep"), 40, 1))
            await until(lambda: service.snapshot().running[fingerprint("deep")])
            rows = [one.rows(1 + k % 3, k) for k in range(6)]
            bodies = [one.request(x) for x in rows]
            cut = bodies[1][:-9]
            flipped = bytearray(bodies[2])
            flipped[len(flipped) // 2] ^= 16
            bad = [cut, bytes(flipped), b"", other.request(rows[0]), bodies[0][:20], b"JALI" * 99]
            found = await asyncio.gather(
                *(ask(service, "ann", one, body) for body in [*bodies, *bad]),
                return_exceptions=True,
            )
            await long
            for result, x in zip(found, rows, strict=False):
                assert isinstance(result, Result), result
                one.check(result.body, x)
            for refusal in found[len(rows) :]:
                assert isinstance(refusal, Refusal) and refusal.status == 422, refusal
                assert refusal.problem()["code"] in (
                    "corrupt_data",
                    "invalid_argument",
                    "key_mismatch",
                    "version",
                )
            assert max(one.batch for one in events if one.code == 200) > 1
            assert sum(one.code == 422 for one in events) == len(bad)
            assert service.snapshot().refusals == {"request": len(bad)}

    run(work())


def test_keys_leave_and_come_back(tmp_path: Path) -> None:
    """The device has room for the keys of two of five clients."""

    async def work() -> None:
        async with running(tmp_path, "integers", device_bytes=600_000) as service:
            one = party("integers")
            clients = [f"client {k}" for k in range(5)]
            for name in clients:
                give_keys(service, name, one)
            for n in range(3):
                await asyncio.gather(*(check(service, name, one, 2, n) for name in clients))
                state = service.snapshot()
                assert state.key_bytes["device"] <= 600_000
            assert state.evictions >= 3 and state.misses >= 8

    run(work())


def test_keys_that_fit_nowhere(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path, "integers", device_bytes=1000) as service:
            give_keys(service, "ann", party("integers"))
            with pytest.raises(Refusal, match="no device of this service") as refused:
                await check(service, "ann", party("integers"), 1, 0)
            assert refused.value.status == 503 and not refused.value.headers

    run(work())


def test_deleted_keys(tmp_path: Path) -> None:
    """Keys that are deleted are gone from the device, too, and so are those that somebody else
    deleted or replaced."""

    async def work() -> None:
        async with running(tmp_path, "integers") as service:
            one, device = party("integers"), lambda: service.snapshot().key_bytes["device"]
            for name in ("ann", "bob"):
                give_keys(service, name, one)
                await check(service, name, one, 1, 0)
            both = device()
            waiting = asyncio.create_task(check(service, "ann", one, 4000, 1))
            await until(lambda: service.snapshot().running[fingerprint("integers")])
            second = asyncio.create_task(check(service, "ann", one, 1, 1))
            await until(lambda: service.snapshot().waiting[fingerprint("integers")])
            assert await service.delete_keys("ann") == 1
            for task in (waiting, second):
                with pytest.raises(Refusal) as refused:
                    await task
                assert refused.value.status == 428
            with pytest.raises(Refusal) as refused:
                await check(service, "ann", one, 1, 2)
            assert refused.value.status == 428
            service.store.delete("bob")
            with pytest.raises(Refusal):
                await check(service, "bob", one, 1, 2)
            give_keys(service, "cleo", one)
            await check(service, "cleo", one, 1, 3)
            assert device() == both / 2
            service.store.delete("cleo")
            await until(lambda: not service._desk.keys, "the sweep")

    run(work())


def test_keys_that_were_damaged_on_disk(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path, "integers") as service:
            one = party("integers")
            give_keys(service, "ann", one)
            [blob] = [path for path in tmp_path.rglob("blobs/*/*") if path.is_file()]
            damaged = bytearray(blob.read_bytes())
            damaged[len(damaged) // 2] ^= 1
            blob.write_bytes(damaged)
            with pytest.raises(Refusal, match="delete them, and send them again") as refused:
                await check(service, "ann", one, 1, 0)
            assert refused.value.status == 428
            assert refused.value.problem()["code"] == "corrupt_data"
            assert await service.delete_keys("ann") == 1
            give_keys(service, "ann", one)
            await check(service, "ann", one, 1, 0)

    run(work())


def test_cancelled_requests(tmp_path: Path) -> None:
    """What waits is dropped, and what runs ends long before it is done."""

    async def work() -> None:
        async with running(tmp_path, "deep", device_bytes=1 << 30) as service:
            one, program, body = party("deep"), fingerprint("deep"), long_request()
            give_keys(service, "ann", one)
            await check(service, "ann", one, 1, 0)
            ticket = await service.admit("ann", program, one.key_id, len(body))
            assert (ticket.state, ticket.position, ticket.seconds_left) == ("admitted", None, None)
            first = asyncio.create_task(ticket.send(body))
            await until(lambda: ticket.state == "running")
            assert 1 < (ticket.seconds_left or 0) < 1000 and ticket.position is None
            others = [await service.admit("ann", program, one.key_id, 100) for _ in range(3)]
            sent = [asyncio.create_task(other.send(b"x" * 100)) for other in others]
            await until(lambda: others[-1].state == "waiting")
            assert [other.position for other in others] == [0, 1, 2]
            assert (others[2].seconds_left or 0) > (others[0].seconds_left or 0) > 0
            others[0].cancel()
            sent[1].cancel()
            with pytest.raises(Refusal, match="cancelled"):
                await sent[0]
            with pytest.raises(asyncio.CancelledError):
                await sent[1]
            assert [other.state for other in others] == ["done", "done", "waiting"]
            first.cancel()
            start = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await first
            with pytest.raises(Refusal) as refused:
                await sent[2]
            assert refused.value.status == 422
            assert time.monotonic() - start < 30
            assert ticket.state == "done" and not service._desk.tickets
            await check(service, "ann", one, 1, 2)

    run(work())


def test_deadlines(tmp_path: Path) -> None:
    async def work() -> None:
        seconds = {"deep": 1e-6}
        async with running(tmp_path, "deep", device_bytes=1 << 30, seconds=seconds) as service:
            one, program = party("deep"), fingerprint("deep")
            give_keys(service, "ann", one)
            result = await ask(service, "ann", one, one.request(one.rows(1, 0)), deadline=60.0)
            one.check(result.body, one.rows(1, 0))
            assert min(result.queue, result.load, result.compute) >= 0 < result.compute
            for deadline, status in ((1e-9, 504), (-1.0, 504), (float("nan"), 400)):
                with pytest.raises(Refusal) as refused:
                    await service.admit("ann", program, one.key_id, 100, deadline=deadline)
                assert refused.value.status == status
            # The run takes much longer than predicted, and is ended.
            start = time.monotonic()
            with pytest.raises(Refusal) as refused:
                await ask(service, "ann", one, long_request(), deadline=2.0)
            assert refused.value.status == 504
            await check(service, "ann", one, 1, 2)
            assert time.monotonic() - start < 30

    run(work())


def test_too_much(tmp_path: Path) -> None:
    """What is reserved is given back, and a client cannot take what is left for others."""

    async def work() -> None:
        limits = Limits(requests=4, nbytes=10_000_000, body=1.0)
        async with running(tmp_path, "integers", limits=limits) as service:
            one, program = party("integers"), fingerprint("integers")
            for name in ("ann", "bob"):
                give_keys(service, name, one)
            admit = service.admit
            with pytest.raises(Refusal) as refused:
                await admit("ann", program, one.key_id, 10_000_001)
            assert refused.value.status == 413
            first = [await admit("ann", program, one.key_id, 1000) for _ in range(2)]
            with pytest.raises(Refusal) as refused:
                await admit("ann", program, one.key_id, 1000)
            assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) >= 1
            await admit("bob", program, one.key_id, 1000)
            first[0].cancel()
            with pytest.raises(Refusal) as refused:
                await first[1].send(b"x" * 1001)
            assert refused.value.status == 400
            late = await admit("ann", program, one.key_id, 1000)
            await until(lambda: late.state == "done", "the end of its patience")
            with pytest.raises(Refusal) as refused:
                await late.send(b"x" * 1000)
            assert refused.value.status == 408
            await check(service, "ann", one, 1, 0)
            with pytest.raises(Refusal) as refused:
                await admit("ann", program, one.key_id, -1)
            assert refused.value.status == 411
            with pytest.raises(InvalidArgument):
                await admit("ann", program, one.key_id, 1, weight=0)

    run(work())


def test_a_body_on_disk(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path, "integers") as service:
            one = party("integers")
            give_keys(service, "ann", one)
            rows = one.rows(3, 0)
            path = tmp_path / "body"
            path.write_bytes(one.request(rows))
            one.check((await ask(service, "ann", one, path)).body, rows)

    run(work())


def test_the_end(tmp_path: Path) -> None:
    """What was admitted is answered, nothing else is admitted, and what takes too long is refused."""

    async def work() -> None:
        async with running(tmp_path, "network", workers=2) as service:
            one = party("network")
            give_keys(service, "ann", one)
            program, rows = fingerprint("network"), [one.rows(5, k) for k in range(8)]
            bodies = [one.request(x) for x in rows]
            tickets = [
                await service.admit("ann", program, one.key_id, len(body)) for body in bodies
            ]
            sent = zip(tickets, bodies, strict=True)
            asked = [asyncio.create_task(ticket.send(body)) for ticket, body in sent]
            ending = asyncio.create_task(service.stop(PATIENCE))
            await asyncio.sleep(0)
            assert not service.ready
            with pytest.raises(Refusal) as refused:
                await service.admit("ann", program, one.key_id, 100)
            assert refused.value.status == 503 and "Retry-After" in refused.value.headers
            for result, x in zip(await asyncio.gather(*asked), rows, strict=True):
                one.check(result.body, x)
            await ending
            with pytest.raises(Refusal) as refused:
                await service.admit("ann", program, one.key_id, 100)
            assert refused.value.status == 503 and not service.ready
            await service.stop()
        async with running(tmp_path, "network", "deep") as service:
            await check(service, "ann", one, 1, 0)  # whose keys are still there
            one = party("deep")
            give_keys(service, "ann", one)
            asked = [
                asyncio.create_task(ask(service, "ann", one, long_request())) for _ in range(2)
            ]
            await until(lambda: service.snapshot().running[fingerprint("deep")])
            await service.stop(0.1)
            for task in asked:
                with pytest.raises(Refusal) as refused:
                    await task
                assert refused.value.status == 503

    run(work())


def test_workers_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
        with pytest.raises(InternalError, match="cannot be started: No such file"):
            async with running(tmp_path, "integers"):
                pass

    run(work())


def test_costs_of_batches_are_learnt() -> None:
    """A further request takes 0.3 of its time alone, on devices of any pace."""
    marginals, told = Marginals(), []
    assert marginals.ran("p", "gpu0", [1.0, 2.0], 1.0) is None  # nothing is known of one alone
    for n in range(40):
        worker, pace = (("gpu0", 0.5), ("gpu1", 3.0))[n % 2]
        marginals.ran("p", worker, [0.1], 0.1 * pace)
        told.append(marginals.ran("p", worker, [0.1] * 5, 0.22 * pace))
        assert marginals.ran("q", worker, [0.1], 0.1) is None
    assert [one for one in told if one is not None] == [pytest.approx(0.3)]


def test_programs_that_cannot_be_run(tmp_path: Path) -> None:
    async def work() -> None:
        path = tmp_path / "program"
        program("integers").save(path)
        with KeyStore(tmp_path / "store") as store:
            with pytest.raises(InsecureParams):
                Service({"integers": path}, store)
            with pytest.raises(InvalidArgument, match="compiled programs"):
                Service({"integers": 3}, store)
            (tmp_path / "other").write_bytes(b"nothing")
            with pytest.raises(InvalidArgument, match="holds no program"):
                Service({"integers": tmp_path / "other"}, store)
            with pytest.raises(InvalidArgument, match="twice"):
                Service({"a": program("integers"), "b": path}, store, security=0)
            service = Service({"integers": path}, store, security=0, seconds=SECONDS)
            assert not service.ready
            service._bytes[fingerprint("integers")] = program("network").to_bytes()
            with pytest.raises(InvalidArgument, match="another program"):
                await service.start()

    run(work())
