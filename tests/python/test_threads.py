"""Several threads may use the same objects, and long operations let other threads run."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tfhe_world
from conftest import World, assert_close

from jali import ckks, tfhe


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
    pending = one.bind(v) * one.bind(v)  # all threads ask for its relinearisation at once
    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(lambda k: pending * pending + k, range(8)))
    for k, value in enumerate(values):
        assert_close(one, value, v**4 + k, slack_bits=2)


def test_bootstrapping_and_maps_share_an_evaluator(rng: np.random.Generator) -> None:
    """All threads need the matrices of bootstrapping, a recorded function and a batcher at once,
    before anyone has made them."""
    params = ckks.Params.create(
        bootstrap=True, log_n=10, security=0, name="insecure_threads", levels_after=2
    )
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys([1], bootstrap=True), threads=1)
    example = server.bind(client.encrypt(np.zeros(params.slots)))
    captured = server.capture(lambda x: x * x, example)
    batcher = server.batcher(lambda x: x + x)
    ready = threading.Barrier(4)

    def work(v: np.ndarray) -> list[np.ndarray]:
        ready.wait()
        low = server.bind(client.encrypt(v, level=params.bootstrap_level))
        fresh = server.bind(client.encrypt(v))
        results = [low.bootstrap(), captured(fresh), *batcher([fresh, fresh])]
        return [client.decrypt(y) for y in results]

    inputs = rng.uniform(-1, 1, (4, params.slots))
    with ThreadPoolExecutor(4) as pool:
        for v, (same, square, *doubled) in zip(inputs, pool.map(work, inputs), strict=True):
            assert np.allclose(same, v, atol=1e-3)
            assert np.allclose(square, v * v, atol=1e-4)
            for twice in doubled:
                assert np.allclose(twice, 2 * v, atol=1e-4)
    assert server.counters()["bootstraps"] == 4


def test_threads_share_integers_of_tfhe(rng: np.random.Generator) -> None:
    """One evaluator makes tables and circuits that all threads use, and one client encrypts and
    decrypts for all."""
    params = tfhe_world.make()
    client = tfhe.Client(params, threads=1)
    server = tfhe.Evaluator(params, client.evaluation_keys(), threads=1)

    def work(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = (server.bind(client.encrypt_uint(v, bits=4)) for v in numbers)
        return client.decrypt(x + y), client.decrypt(x < y)

    inputs = rng.integers(0, 16, (8, 2, 3))
    with ThreadPoolExecutor(4) as pool:
        for (x, y), (total, less) in zip(inputs, pool.map(work, inputs), strict=True):
            assert np.array_equal(total, (x + y) % 16)
            assert np.array_equal(less, x < y)


def test_what_one_thread_drops_another_uses(one: World) -> None:
    """The last reference to a value, an evaluator or a recorded function may go in any thread,
    while others compute."""
    v = np.linspace(-1, 1, 64)
    blob = one.bind(v).ciphertext.to_bytes()

    def work(k: int) -> np.ndarray:
        server = ckks.Evaluator(one.params, one.keys, threads=1)
        x = server.bind(ckks.Ciphertext.from_bytes(blob, one.params))
        captured = server.capture(lambda y: y + k, x)
        kept = captured(x)
        del server, captured, x
        gc.collect()
        return one.client.decrypt(kept + kept)

    with ThreadPoolExecutor(4) as pool:
        for k, got in enumerate(pool.map(work, range(12))):
            assert np.allclose(got, 2 * (v + k), atol=1e-4)


def test_importing_does_not_switch_the_lock_on() -> None:
    """A free-threaded Python stays free of the interpreter's lock; other Pythons never are."""
    built_free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    code = (
        "import sys, jali.ckks, jali.tfhe; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert (done.stdout.strip() == "False") == built_free
    assert "GIL" not in done.stderr


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
            time.sleep(0)  # releases the interpreter lock

    interval = sys.getswitchinterval()
    counter = threading.Thread(target=tick)
    try:
        # The switch interval is so long that no thread is forced to release the lock. The counter
        # moves between the two readings only if the operation releases it.
        counter.start()
        sys.setswitchinterval(1000)
        for name, operation in operations.items():
            moved = 0
            end = time.monotonic() + 20  # on a busy machine the counter may have to wait for a core
            while not moved and time.monotonic() < end:
                before = count[0]
                operation()
                moved = count[0] - before
            assert moved > 0, name
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join()
