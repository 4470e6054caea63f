"""What a service sees of the library: records of the logger "jali", and counters. Never a
secret."""

from __future__ import annotations

import base64
import logging
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import World, make_world

import jali
from jali import ckks
from jali.tfhe import devices

PLAIN = 0.71828459045  # the number that is encrypted: no record may show it
WINDOW = 8  # bytes of a secret that count as seen


def shown(record: logging.LogRecord) -> list[str]:
    """Everything of a record that a handler may write somewhere."""
    return [record.getMessage(), *(repr(v) for v in vars(record).values())]


def leaks(records: list[logging.LogRecord], secret: bytes) -> list[str]:
    """Which records show part of the secret key, or the plaintext, in a form that people write
    bytes or numbers in."""
    pieces = [secret[i : i + WINDOW] for i in range(len(secret) - WINDOW + 1)]
    needles = {str(PLAIN)[:8]}
    for piece in pieces:
        if len(set(piece)) < 4:
            continue  # zeros of a header are no secret
        needles |= {piece.hex(), repr(piece)[2:-1], str(list(piece))[1:-1]}
    for start in range(3):  # base64 of every alignment
        text = base64.b64encode(secret[start:]).decode()
        needles |= {text[i : i + 11] for i in range(0, len(text) - 11, 4)}
    needles = {n for n in needles if len(set(n)) > 3}
    found = []
    for record in records:
        for text in shown(record):
            windows = {text[i : i + k] for k in {len(n) for n in needles} for i in range(len(text))}
            if windows & needles:
                found.append(text)
    return found


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """Everything that is logged, by anyone, at the finest level."""
    kept: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(record)

    loggers = (logging.getLogger(), logging.getLogger("jali"))
    before = [logger.level for logger in loggers]
    handler = Keep()
    loggers[0].addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    try:
        yield kept
    finally:
        loggers[0].removeHandler(handler)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def everything() -> bytes:
    """What a client and a server do in a life; returns the secret key."""
    params = ckks.Params.create(
        bootstrap=True, log_n=11, security=0, name="insecure_watched", levels_after=2
    )
    first = ckks.Client(params, threads=1)
    secret = first.secret_to_bytes()
    client = ckks.Client.from_secret_bytes(secret, params, threads=1)
    keys = client.evaluation_keys(rotations=[1], bootstrap=True)
    keys = ckks.EvaluationKeys.from_bytes(keys.to_bytes(), params)
    public = ckks.Encryptor(client.public_key())
    server = ckks.Evaluator(params, keys, threads=1)
    values = np.full(params.slots, PLAIN)
    x = server.bind(client.encrypt(values, level=params.bootstrap_level))
    y = server.bind(public.encrypt(values))
    client.decrypt((x * x + y).rotate(1))
    client.decrypt(x.bootstrap(real=True))
    policy = ckks.ReleasePolicy(origin="declared", error_bound=1e-3, largest=2.0)
    for attempt in (
        lambda: client.release(y, policy=policy),
        lambda: ckks.Client.from_secret_bytes(secret[:-1], params),
        lambda: y.rotate(7),
    ):
        try:
            attempt()
        except Exception:
            logging.getLogger("service").exception("refused")  # with its traceback
    server.map(lambda a: a + a, [y, y])
    return secret


def test_no_record_shows_a_secret(records: list[logging.LogRecord]) -> None:
    secret = everything()
    assert leaks(records, secret) == []
    for record in records:
        if record.name == "jali":
            assert all(type(a) in (str, int, float) for a in record.args or ()), record
    seen = " / ".join(record.getMessage() for record in records)
    for what in (
        "secret key made",
        "secret key loaded",
        "evaluation keys made",
        "evaluation keys loaded",
        "public key made",
        "evaluator made: engine",
        'device "auto" is',
        "bootstrapped",
        "batches",
    ):
        assert what in seen, what


def test_the_search_finds_what_is_logged(records: list[logging.LogRecord]) -> None:
    secret = bytes(np.random.default_rng().integers(0, 256, 400, dtype=np.uint8))
    log = logging.getLogger("jali")
    for text in (
        secret[100:140].hex(),
        secret[201:240],
        base64.b64encode(secret[3:60]).decode(),
        list(secret[40:60]),
        f"value {PLAIN}",
    ):
        records.clear()
        log.debug("kept %s", text)
        assert leaks(records, secret), text


def test_silent_unless_set_up() -> None:
    code = (
        "import jali; from jali import ckks\n"
        "params = ckks.Params.create(depth=1)\n"
        "client = ckks.Client(params)\n"
        "ckks.Evaluator(params, client.evaluation_keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_counters() -> None:
    world = make_world("w52")
    server, client = world.server, world.client
    at_first = server.counters()
    assert {type(v) for v in at_first.values()} == {int}
    assert all(v == 0 for k, v in at_first.items() if not k.startswith("bytes"))
    x = world.bind(np.linspace(-1, 1, 32))
    y = (x * x + 1).rotate(1) * np.ones(32) - x
    (y.conj() * 0.5).ciphertext.to_bytes()
    x.sum(count=32)
    with pytest.raises(jali.Error):  # refused: these parameters do not bootstrap
        x.bootstrap()
    program = server.capture(lambda a: a + a, x)
    program(x)
    program(x)
    now = server.counters()
    did = {k: v - at_first[k] for k, v in now.items() if v != at_first[k]}
    assert did.pop("bytes_in_use") > x.ciphertext.nbytes / 2
    did.pop("bytes_cached", None)
    assert now["bytes_peak"] >= now["bytes_in_use"] and did.pop("bytes_peak") > 0
    if server.device == "cuda":  # the value goes there and its result comes back
        assert did.pop("copies_to_device") == did.pop("copies_to_host") == 1
    assert did.pop("additions") >= 3  # a recording may run its function more than once
    assert did == {
        "products": 1,
        "plain_products": 2,
        "rotations": 1,
        "conjugations": 1,
        "sums": 1,
        "programs": 2,
    }
    assert client.decrypt(y).shape == (32,)
    fresh = ckks.Evaluator(world.params, world.keys, threads=1)
    assert fresh.counters()["products"] == 0  # each its own


def fallbacks(records: list[logging.LogRecord]) -> list[str]:
    words = ("has no key of its own", "less than all of its keys", "has no memory")
    texts = [record.getMessage() for record in records if record.name == "jali"]
    return [text for text in texts if any(word in text for word in words)]


def test_fallbacks_are_logged_and_counted(records: list[logging.LogRecord]) -> None:
    params = ckks.Params.create(depth=2)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(rotations=[1, 2]), threads=1)
    x = server.bind(client.encrypt(np.arange(8.0), peak=8.0))
    x.rotate(1), x.rotate(2)
    assert fallbacks(records) == [] and server.counters()["fallbacks"] == 0
    for _ in range(2):
        y = x.rotate(3)
    assert fallbacks(records) == [
        "rotation by 3 slots has no key of its own: composed of 2 rotations"
    ]
    assert np.allclose(client.decrypt(y)[:5], np.arange(3.0, 8), atol=1e-4)
    assert server.counters()["fallbacks"] == 1

    def of_two(values: ckks.EncryptedArray) -> ckks.EncryptedArray:
        time.sleep(0.02)  # a batch of two is a gain, and four are tried
        if values.shape[0] > 2:
            raise jali.OutOfMemory("no memory for more than two")
        return values + values

    records.clear()
    for y in server.map(of_two, [x] * 16):
        assert np.allclose(client.decrypt(y), 2 * np.arange(8.0), atol=1e-4)
    assert fallbacks(records)[-1] == (
        "a batch of 4 has no memory, or is too large: batches of up to 2 from now on"
    )
    assert server.counters()["fallbacks"] == 1 + len(fallbacks(records))


@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
def test_bootstrapping_with_fewer_keys_is_logged(
    records: list[logging.LogRecord], order: str
) -> None:
    params = ckks.Params.create(
        bootstrap=True, log_n=11, security=0, name="insecure_watched", levels_after=2, order=order
    )
    client = ckks.Client(params, threads=1)
    level = params.bootstrap_level

    def bootstrapped(slots: int, **wanted: object) -> tuple[list[str], int]:
        server = ckks.Evaluator(params, client.evaluation_keys(**wanted), threads=1)
        x = server.bind(client.encrypt(np.full(slots, 0.5), level=level, slots=slots))
        records.clear()
        for _ in range(2):
            assert np.allclose(client.decrypt(x.bootstrap()), 0.5, atol=1e-3)
        return fallbacks(records), server.counters()["fallbacks"]

    assert bootstrapped(params.slots, bootstrap=True) == ([], 0)
    assert bootstrapped(8, bootstrap=8) == ([], 0)
    told, count = bootstrapped(params.slots, bootstrap=True, minimum=True)
    assert count == len(told)
    assert told[0].startswith(
        "bootstrapping of 1024 slots has less than all of its keys: done with 1024 slots and "
    )
    time_of_all = float(told[0].split()[-4])
    assert time_of_all == pytest.approx(params.bootstrap_key_curve()[0][1], abs=0.01)
    told, count = bootstrapped(8, bootstrap=True, minimum=True)
    assert count == len(told)
    assert "bootstrapping of 8 slots has less than all of its keys: done with 1024 slots" in told[0]
    assert float(told[0].split()[-4]) > time_of_all


def test_a_gpu_too_old_for_tfhe_is_logged(
    records: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.tell_fallback("auto", "cpu/avx2")
    if jali.device.resolved("auto") == "cpu":  # as it was asked for
        assert [r for r in records if r.levelno >= logging.WARNING] == []
    monkeypatch.setattr(devices._device, "resolve", lambda name: ("cuda:1", {}, ""))
    records.clear()
    devices.tell_fallback("cpu", "cpu/avx2")
    devices.tell_fallback("auto", "cuda:1")
    assert records == []
    devices.tell_fallback("auto", "cpu/avx2")
    assert [r.getMessage() for r in records] == [
        "cuda:1 is too old for TFHE: the engine is cpu/avx2"
    ]


def test_counters_in_threads(one: World) -> None:
    x = one.bind(np.ones(8))
    before = one.server.counters()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: x.rotate(1), range(40)))
    assert one.server.counters()["rotations"] == before["rotations"] + 40


def test_reading_costs_little(one: World) -> None:
    """A scrape each second must not show: microseconds."""
    assert min(timeit.repeat(one.server.counters, number=1000, repeat=5)) < 0.05
