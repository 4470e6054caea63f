"""Captured runs of the clients of a deployment: every client gets the bits that a server of its own
would give, whoever ran before and whoever leaves."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import jali
from jali import _jali, ckks, nn

Array = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and _jali.device.cuda_device_count() == 0:
        pytest.skip("no NVIDIA GPU on this machine")
    return str(request.param)


class World:
    """A program, a deployment, three clients, and for each a server that nobody shares."""

    def __init__(self, device: str) -> None:
        rng = np.random.default_rng(7)
        self.a, self.x = rng.normal(size=(8, 8)) / 3, rng.uniform(-1, 1, (60, 8))
        self.program = jali.compile(
            lambda x: np.square(np.square(self.a @ x) @ self.a.T),
            self.x[0],
            calibration=self.x,
            batch=4,
            precision_bits=10,
        )
        self.device = device
        self.deployment = self.program.deploy(device, threads=1)
        self.clients = [self.program.client(threads=1) for _ in range(3)]
        self.keys = [client.evaluation_keys() for client in self.clients]
        self.alone = [self.program.server(keys, device=device, threads=1) for keys in self.keys]

    def server(self, k: int) -> nn.Server:
        return self.deployment.server(self.keys[k], capture=True)

    def request(self, k: int, n: int = 1) -> nn.Message:
        """A request of n examples, as it arrives."""
        return self.deployment.request(self.clients[k].encrypt(self.x[:n]).to_bytes())

    def right(self, k: int, server: nn.Server, n: int = 1) -> bool:
        """Whether a reply to n examples has the bits of the client's own server, and the answer."""
        request = self.request(k, n)
        reply = server(request)
        same = reply.to_bytes() == self.alone[k](request).to_bytes()
        error = np.abs(self.clients[k].decrypt(reply) - self.program.clear(self.x[:n])).max()
        return same and bool(error < 0.05)


@pytest.fixture(scope="module")
def world(device: str) -> World:
    return World(device)


def test_clients_take_turns_in_any_order(world: World) -> None:
    servers = [world.server(k) for k in range(3)]
    for k in (0, 1, 0, 2, 2, 1, 1, 0):
        assert world.right(k, servers[k])
    for k in (2, 0, 1):  # another batch, recorded by another client
        assert world.right(k, servers[k], 9)


def test_a_client_takes_its_keys_and_its_captured_run(world: World) -> None:
    deployment = world.program.deploy(world.device, threads=1)
    engine = deployment.engine
    before = engine.bytes_in_use
    servers = [deployment.server(keys, capture=True) for keys in world.keys]
    assert engine.bytes_in_use - before == sum(server.nbytes for server in servers)
    for k, server in enumerate(servers):
        keys = server.nbytes
        assert keys == server.evaluator.key_bytes
        assert world.right(k, server)
        assert server.nbytes > keys  # the arrays of the captured run
    assert len({server.nbytes for server in servers}) == 1
    servers[1].close()
    assert servers[1].nbytes == 0
    assert world.right(0, servers[0])
    assert world.right(2, servers[2])
    for k in (0, 2):
        servers[k].close()
    if world.device == "cpu":  # a GPU frees what a run has used once it has done the run
        assert engine.bytes_in_use == before


def test_requests_of_other_clients_are_refused(world: World) -> None:
    servers = [world.server(k) for k in range(2)]
    requests = [world.request(k) for k in range(2)]
    for k in range(2):
        servers[k](requests[k])
        with pytest.raises(jali.KeyMismatch):
            servers[k](requests[1 - k])
        assert world.right(k, servers[k])


def test_a_client_without_all_keys_harms_nobody(world: World) -> None:
    server = world.server(0)
    assert world.right(0, server)
    secret = ckks.Client(world.program.params, threads=1)
    few = world.deployment.server(secret.evaluation_keys(), capture=True)
    one = world.program.client(secret=secret, threads=1)
    for _ in range(2):
        with pytest.raises(jali.KeyMissing):
            few(one.encrypt(world.x[:1]))
        assert world.right(0, server)


def test_threads_of_many_clients(world: World) -> None:
    servers = [world.server(k) for k in range(3)]
    requests = [[world.clients[k].encrypt(world.x[i : i + 1]) for i in range(4)] for k in range(3)]
    want = [[world.alone[k](r).to_bytes() for r in requests[k]] for k in range(3)]

    def work(k: int) -> bool:
        return [servers[k](r).to_bytes() for r in requests[k]] == want[k]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, [0, 1, 2, 0, 1, 2]))


def test_clients_leave_while_others_run(world: World) -> None:
    stays = world.server(0)
    request = world.request(0)
    want, ended, wrong = world.alone[0](request).to_bytes(), threading.Event(), []

    def work() -> None:
        while not ended.is_set():
            wrong.append(stays(request).to_bytes() != want)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for k in (1, 2, 1, 2):
            server = world.server(k)
            assert world.right(k, server)
            server.close()
            with pytest.raises(jali.InvalidArgument, match="closed"):
                server(request)
    finally:
        ended.set()
        thread.join()
    assert wrong and not any(wrong)


class Cancelled(Exception):
    pass


def test_a_cancelled_run_leaves_nothing_to_the_next_client(world: World) -> None:
    deployment = world.program.deploy(world.device, threads=1)
    servers = [deployment.server(keys, capture=True) for keys in world.keys]
    for k, after in ((0, 1), (1, 0), (2, 2), (0, 3)):
        calls: list[int] = []

        def checkpoint(calls: list[int] = calls, after: int = after) -> None:
            calls.append(1)
            if len(calls) > after:
                raise Cancelled

        request = world.request(k)
        with contextlib.suppress(Cancelled):  # a short run may be done before it is cancelled
            servers[k](request, checkpoint=checkpoint)
        for other in range(3):
            assert world.right(other, servers[other])
