"""Runs that are recorded: for every batch one, from several threads, and freed with their
server."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import jali
from jali import ckks
from jali.compiler.program.captured_runs import can_capture, in_place
from jali.errors import ParamsMismatch


@pytest.fixture(scope="module")
def affine() -> Any:
    """A program of one level, its client, and examples with what it makes of them."""
    rng = np.random.default_rng(3)
    a, x = rng.normal(size=(3, 6)), rng.uniform(-1, 1, (60, 6))
    program = jali.compile(
        lambda x: np.square(a @ x), x[0], calibration=x, batch=4, precision_bits=12
    )
    return program, program.client(threads=1), x, np.square(x @ a.T)


def server_of(affine: Any, **options: Any) -> Any:
    program, client = affine[:2]
    return program.server(client.evaluation_keys(), threads=1, device="cpu", **options)


def test_a_batch_is_known_when_it_was_recorded(affine: Any) -> None:
    _, client, x, want = affine
    server = server_of(affine, capture=True)
    for sizes, known in (((1,), 1), ((1, 4), 1), ((9, 1), 2), ((5, 13, 17), 4), ((60,), 4)):
        for n in (
            sizes
        ):  # four examples lie in a ciphertext, and as many ciphertexts as needed side by side
            request = client.encrypt(x[:n])
            inputs = [tuple(in_place(server.evaluator, c) for c in y) for y in request.arrays]
            server.warm(inputs)
            assert server._captured_runs.has(inputs)
            assert np.abs(client.decrypt(server(request)) - want[:n]).max() < 0.01
        assert len(server._captured_runs._programs) == known


def test_threads_share_recorded_runs(affine: Any) -> None:
    _, client, x, want = affine
    server = server_of(affine, capture=True)

    def error(n: int) -> float:
        return float(np.abs(client.decrypt(server(client.encrypt(x[:n]))) - want[:n]).max())

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(error, [1, 9, 4, 5, 9, 2, 13, 1])) < 0.01


def test_what_is_recorded_is_freed_with_its_server(affine: Any) -> None:
    _, client, x, _ = affine
    server = server_of(affine, capture=True)
    server(client.encrypt(x[:1]))
    freed = weakref.ref(server), weakref.ref(server._captured_runs)
    del server
    gc.collect()
    assert [reference() for reference in freed] == [None] * 2


def test_only_whole_ciphertexts_of_the_same_parameters_are_taken(affine: Any) -> None:
    server = server_of(affine, capture=True)
    params = ckks.Params.create(depth=3, log_n=10, security=0, name="insecure_other")
    other = ckks.Client(params, threads=1).encrypt(np.zeros(3))
    with pytest.raises(ParamsMismatch):
        in_place(server.evaluator, other)


def test_servers_on_a_cpu_record_if_they_are_told(affine: Any) -> None:
    server = server_of(affine)
    assert server._captured_runs is None
    assert not can_capture(server._interpreter, server.evaluator)
