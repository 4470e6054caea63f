"""Forked workers share a client but no randomness.

Two encryptions with the same randomness would show the difference of their messages to everybody.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
import pytest

from jali import ckks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked here")

WORKERS = 4
EACH = 2


@pytest.fixture(scope="module")
def params() -> ckks.Params:
    return ckks.Params.create(depth=1, scale_bits=30)


@pytest.fixture(scope="module")
def client(params: ckks.Params) -> ckks.Client:
    """A client that is made and used before any worker is forked, like at the start of a server."""
    client = ckks.Client(params, threads=1)
    client.encrypt([1.0])
    return client


@pytest.fixture(scope="module")
def seed(client: ckks.Client) -> slice:
    """The place of the seed in the bytes of a fresh ciphertext.

    It is where the bytes of encryptions of the same numbers first differ.
    """
    blobs = [client.encrypt(np.zeros(4)).to_bytes() for _ in range(16)]
    start = next(i for i, values in enumerate(zip(*blobs, strict=True)) if len(set(values)) > 1)
    return slice(start, start + 32)


def by_workers(work: Callable[[], bytes]) -> list[bytes]:
    """The results of `work`, called EACH times in each of WORKERS processes that were forked at the
    same time."""

    def run(end: Connection) -> None:
        end.send([work() for _ in range(EACH)])

    fork = multiprocessing.get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(WORKERS)]
    workers = [fork.Process(target=run, args=(pipe[1],)) for pipe in pipes]
    for worker in workers:
        worker.start()
    results = [result for pipe in pipes for result in pipe[0].recv()]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert len(results) == WORKERS * EACH
    return results


def test_encryptions_of_forked_workers_differ(client: ckks.Client, seed: slice) -> None:
    message = np.zeros(4)
    blobs = by_workers(lambda: client.encrypt(message).to_bytes())
    assert len({blob[seed] for blob in blobs}) == WORKERS * EACH
    assert len({blob[seed.stop :] for blob in blobs}) == WORKERS * EACH


def test_public_key_encryptions_of_forked_workers_differ(client: ckks.Client) -> None:
    anyone = ckks.Encryptor(client.public_key(), threads=1)
    anyone.encrypt([1.0])
    message = np.zeros(4)
    blobs = by_workers(lambda: anyone.encrypt(message).to_bytes())
    half = len(blobs[0]) // 2
    for part in slice(half // 2, half), slice(half, half + half // 2):  # a part of each polynomial
        assert len({blob[part] for blob in blobs}) == WORKERS * EACH


def test_keys_of_forked_workers_differ(params: ckks.Params, client: ckks.Client) -> None:
    secrets = by_workers(lambda: ckks.Client(params, threads=1).secret_to_bytes())
    assert len(set(secrets)) == WORKERS * EACH
    public = by_workers(lambda: client.public_key().to_bytes())
    assert len(set(public)) == WORKERS * EACH
    evaluation = by_workers(lambda: client.evaluation_keys(rotations=[1]).to_bytes())
    assert len(set(evaluation)) == WORKERS * EACH


def test_releases_of_forked_workers_differ(client: ckks.Client) -> None:
    x = client.encrypt(np.zeros(4))
    policy = ckks.ReleasePolicy(origin="derived", statistical_bits=20)
    released = by_workers(lambda: client.release(x, policy=policy).tobytes())
    assert len(set(released)) == WORKERS * EACH


def test_a_client_restored_in_forked_workers_differs(
    params: ckks.Params, client: ckks.Client, seed: slice
) -> None:
    """Each worker loads the secret key again, like after a restart."""
    secret = client.secret_to_bytes()

    def work() -> bytes:
        restored = ckks.Client.from_secret_bytes(secret, params, threads=1)
        return restored.encrypt(np.zeros(4)).to_bytes()[seed]

    assert len(set(by_workers(work))) == WORKERS * EACH
