"""Deployments: many clients of one program on one device, each with keys of its own and nothing
else."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import jali
from jali import ckks, nn
from jali.nn import scalar

Array = np.ndarray[Any, np.dtype[np.float64]]


class World:
    """A program with a function, its examples, and a deployment."""

    def __init__(self, rng: np.random.Generator) -> None:
        weights, last = rng.normal(size=(16, 16)) / 4, rng.normal(size=(4, 16)) / 4
        self.x = rng.uniform(-1, 1, (50, 16))
        self.program = jali.compile(
            lambda x: last @ scalar.sigmoid(weights @ x),
            self.x[0],
            calibration=self.x,
            precision_bits=8,
        )
        self.deployment = self.program.deploy("cpu", threads=1)
        self.clients = [self.program.client(threads=1) for _ in range(2)]
        self.keys = [client.evaluation_keys() for client in self.clients]

    def wrong(self, client: nn.Client, server: nn.Server, k: int) -> bool:
        x = self.x[k : k + 1]
        want = self.program.clear(x)
        return bool(np.abs(client.decrypt(server(client.encrypt(x))) - want).max() > 2**-7)


@pytest.fixture
def world(rng: np.random.Generator) -> World:
    return World(rng)


def test_every_client_gets_its_answers_and_adds_its_keys_alone(world: World) -> None:
    engine = world.deployment.engine
    before = engine.bytes_in_use
    servers = []
    for client, keys in zip(world.clients, world.keys, strict=True):
        servers.append(world.deployment.server(keys))
        after = engine.bytes_in_use
        assert after - before == servers[-1].nbytes == servers[-1].evaluator.key_bytes > 0
        before = after
        assert not world.wrong(client, servers[-1], 0)
        assert engine.bytes_in_use == before  # nothing stays of a run
    # What the program predicted for the keys of a client.
    assert servers[0].nbytes == world.program.sizes().keys_expanded


def test_predicted_keys_are_those_that_are_made(world: World) -> None:
    """Digits of a key need not be of equal size: of 7 primes, 6 digits have one and one has two."""
    sizes, keys = world.program.sizes(), world.keys[0]
    assert sizes.keys == keys.nbytes
    sent = len(keys.to_bytes())
    assert 0.98 * sent <= sizes.keys_sent <= 1.02 * sent


def test_replies_are_those_of_a_server_alone(world: World) -> None:
    client, keys = world.clients[0], world.keys[0]
    request = client.encrypt(world.x[:2])
    alone = world.program.server(keys, device="cpu", threads=1)
    shared = world.deployment.server(keys)
    assert shared(request).to_bytes() == alone(request).to_bytes()


def test_a_request_for_another_server_is_refused(world: World) -> None:
    one, other = (world.deployment.server(keys) for keys in world.keys)
    request = world.clients[0].encrypt(world.x[:1])
    one(request)
    with pytest.raises(jali.KeyMismatch):
        other(request)


def test_keys_are_refused_before_weights_are_encoded(world: World) -> None:
    others = ckks.Client(ckks.Params.create(depth=1)).evaluation_keys()
    calls: list[int] = []
    with pytest.raises(jali.ParamsMismatch):
        world.program.server(others, device="cpu", progress=lambda *_: calls.append(1))
    with pytest.raises(jali.InvalidArgument, match="evaluation_keys"):
        world.program.server(None, device="cpu", progress=lambda *_: calls.append(1))  # type: ignore[arg-type]
    assert not calls
    with pytest.raises(jali.ParamsMismatch):
        world.deployment.server(others)


def test_a_closed_server_gives_its_memory_back(world: World) -> None:
    engine = world.deployment.engine
    before = engine.bytes_in_use
    server = world.deployment.server(world.keys[0])
    batcher, request = server.batcher(), world.clients[0].encrypt(world.x[:1])
    batcher([request])
    server.close()
    server.close()
    assert engine.bytes_in_use == before
    assert server.nbytes == 0
    assert "closed" in repr(server)
    for refused in (lambda: server(request), lambda: batcher([request]), lambda: server.evaluator):
        with pytest.raises(jali.InvalidArgument, match=r"deployment\.server\(keys\)"):
            refused()
    again = world.deployment.server(world.keys[0])
    assert not world.wrong(world.clients[0], again, 1)


def test_clients_are_served_by_threads(world: World) -> None:
    servers = [world.deployment.server(keys) for keys in world.keys]
    wrong: list[bool] = []

    def work(k: int) -> None:
        for i in range(4):
            wrong.append(world.wrong(world.clients[k], servers[k], i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [False] * 8


def test_a_run_ends_at_its_deadline_and_leaves_the_server_as_it_was(world: World) -> None:
    server, client = world.deployment.server(world.keys[0]), world.clients[0]
    request, before = client.encrypt(world.x[:1]), world.deployment.engine.bytes_in_use
    with pytest.raises(jali.DeadlineExceeded) as told:
        server(request, deadline=time.monotonic())
    assert isinstance(told.value, TimeoutError)
    server(request, deadline=time.monotonic() + 1000)
    wrong: Any
    for wrong in ("soon", True, float("nan")):  # which no moment is behind
        with pytest.raises(jali.InvalidArgument, match=r"time\.monotonic"):
            server(request, deadline=wrong)
    with pytest.raises(jali.InvalidArgument, match="a function without arguments"):
        server(request, checkpoint=5)  # type: ignore[arg-type]
    assert world.deployment.engine.bytes_in_use == before
    assert not world.wrong(client, server, 2)


def test_a_checkpoint_ends_a_run_of_its_thread_alone(world: World) -> None:
    server, client = world.deployment.server(world.keys[0]), world.clients[0]
    other = world.deployment.server(world.keys[1])
    request, before = client.encrypt(world.x[:1]), world.deployment.engine.bytes_in_use
    calls: list[int] = []

    class Cancelled(Exception):
        pass

    def checkpoint() -> None:
        calls.append(threading.get_ident())
        if len(calls) == 2:  # in the run; the first call is before it
            raise Cancelled

    replies: list[bool] = []
    thread = threading.Thread(
        target=lambda: replies.append(world.wrong(world.clients[1], other, 3))
    )
    thread.start()
    with pytest.raises(Cancelled):
        server(request, checkpoint=checkpoint)
    thread.join()
    assert set(calls) == {threading.get_ident()}
    assert replies == [False]
    assert world.deployment.engine.bytes_in_use == before
    assert not world.wrong(client, server, 3)
    assert len(calls) == 2  # it was taken back


def test_traced_deployments_record_no_runs(world: World) -> None:
    traced = world.program.deploy("cpu", threads=1, trace=True)
    with pytest.raises(jali.InvalidArgument, match="leave out capture=True"):
        traced.server(world.keys[0], capture=True)
    server = traced.server(world.keys[0])
    server(world.clients[0].encrypt(world.x[:1]))
    assert server.evaluator.trace().json_lines()


def test_evaluators_of_one_engine_share_what_is_prepared() -> None:
    params = ckks.Params.create(depth=2)
    engine = ckks.Engine(params, "cpu", threads=1)
    matrix = ckks.MatVec(np.eye(8) * 0.5, params)
    first, second = (ckks.Client(params) for _ in range(2))
    keys = [c.evaluation_keys(rotations=matrix.rotations) for c in (first, second)]
    one = engine.with_keys(keys[0])
    one.prepare(matrix)
    before = engine.bytes_in_use
    two = one.with_keys(keys[1])
    assert engine.bytes_in_use - before == two.key_bytes
    x = two.bind(second.encrypt(matrix.pack(np.arange(8.0) / 8)[0]))
    assert np.abs(second.decrypt(two.matvec(matrix, x)) - np.arange(8) / 16).max() < 1e-4
    assert (one.engine, one.threads, one.variants) == (two.engine, two.threads, two.variants)


def test_evaluators_of_one_engine_share_the_matrices_of_bootstrapping() -> None:
    params = ckks.Params.create(
        bootstrap=True, levels_after=2, log_n=11, security=0, name="insecure_test"
    )
    engine = ckks.Engine(params, "cpu", threads=1)
    clients = [ckks.Client(params) for _ in range(2)]
    added = []
    for client in clients:
        server = engine.with_keys(client.evaluation_keys(bootstrap=True))
        before = engine.bytes_in_use
        server.prepare_bootstrap()
        added.append(engine.bytes_in_use - before)
        x = server.bind(client.encrypt(np.linspace(-0.5, 0.5, 16)))
        got = client.decrypt(x.bootstrap())
        assert np.abs(got[:16] - np.linspace(-0.5, 0.5, 16)).max() < 2**-6
    assert added[0] > 0
    assert added[1] == 0
