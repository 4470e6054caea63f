"""Objects may be used by several threads, and long operations let other threads run."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from conftest import World, assert_close

from jali import ckks


def test_many_threads_share_everything(world: World, rng: np.random.Generator) -> None:
    inputs = rng.uniform(-1, 1, (12, 256))
    plan = ckks.MatVec(np.eye(256), world.params)
    shared = ckks.Evaluator(
        world.params,
        world.client.evaluation_keys(rotations=[*plan.rotations, 1], conjugate=True),
        threads=2,
    )
    constant = shared.bind(world.client.encrypt(np.full(256, 0.5)))

    def work(v: np.ndarray) -> tuple[ckks.EncryptedArray, ckks.EncryptedArray]:
        x = shared.bind(world.client.encrypt(v))
        y = (x * x + constant * x).conj()
        packed = shared.bind(world.client.encrypt(plan.pack(v)[0]))
        shared.prepare(plan)
        blob = y.ciphertext.to_bytes()
        back = shared.bind(ckks.Ciphertext.from_bytes(blob, world.params))
        return back, shared.matvec(plan, packed)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, inputs))
    for v, (y, z) in zip(inputs, results, strict=True):
        assert np.allclose(world.client.decrypt(y), v * v + v / 2, atol=1e-5)
        assert np.allclose(world.client.decrypt(z), v, atol=1e-5)


def test_one_value_in_many_threads(one: World, rng: np.random.Generator) -> None:
    v = rng.uniform(-1, 1, one.params.slots)
    pending = one.bind(v) * one.bind(v)  # its relinearisation is raced for
    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(lambda k: pending * pending + k, range(8)))
    for k, value in enumerate(values):
        assert_close(one, value, v**4 + k, slack_bits=2)


def test_operations_release_the_lock(one: World) -> None:
    """While an operation runs in one thread, another one counts."""
    x = one.bind(np.ones((8, one.params.slots)))
    pending = x * x
    blob = one.keys.to_bytes()
    keys = one.client.evaluation_keys(rotations=range(1, 9))
    operations = {
        "multiply": lambda: x * x,
        "rotate": lambda: x.rotate(1),
        "array": lambda: x * np.ones(one.params.slots),
        "normalise": lambda: pending.ciphertext,
        "encrypt": lambda: one.client.encrypt(np.ones((8, one.params.slots))),
        "decrypt": lambda: one.client.decrypt(x),
        "keys": lambda: one.client.evaluation_keys(rotations=range(1, 9)),
        "to_bytes": lambda: one.keys.to_bytes(),
        "from_bytes": lambda: ckks.EvaluationKeys.from_bytes(blob, one.params),
        "evaluator": lambda: ckks.Evaluator(one.params, keys),
    }
    count = [0]
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)  # gives up the lock

    interval = sys.getswitchinterval()
    counter = threading.Thread(target=tick)
    try:
        # With an interval this long nobody is made to give up the lock: only an operation that
        # releases it lets the counter move between the two readings.
        counter.start()
        sys.setswitchinterval(1000)
        for name, operation in operations.items():
            moved = 0
            end = time.monotonic() + 20  # on a busy machine the counter may wait for a core
            while not moved and time.monotonic() < end:
                before = count[0]
                operation()
                moved = count[0] - before
            assert moved > 0, name
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join()
