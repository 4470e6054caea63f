"""Bootstrapping: the set-up, the time of a bootstrapping, and its measured precision."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from jali import ckks
from jali._core.console import counter
from jali.bench import floors, profile, sets
from jali.bench.measure import NO_LIMIT, Row, accept, row, timed
from jali.bench.registry import Options, benchmark

ON_GPU = ("n16_fast", "n16_precise", "n16_real", "n15_small")
ON_CPU = ("n15_small",)  # the others take 5 to 10 GB and ten seconds each


@benchmark(
    "bootstrap",
    "bootstrapping of a full ciphertext: time, precision, set-up, bytes of keys",
    energy=True,
)
def bootstrap(options: Options) -> Iterator[Row]:
    """One row for each set, word and batch. On a GPU the captured function is timed."""
    for name in options.sets or (ON_GPU if options.on_gpu() else ON_CPU):
        for word in options.words or ("auto",):
            yield from _of_set(name, word, options)


def _of_set(name: str, word: str, options: Options) -> Iterator[Row]:
    start = time.perf_counter()
    gpu = options.on_gpu()
    threads = options.threads or 1
    params = sets.load(name, word=word, device="cuda" if gpu else "cpu")
    client = ckks.Client(params, device=options.device if gpu else "cpu", threads=threads)
    keys = client.evaluation_keys(bootstrap=True, progress=counter(f"{name}: keys"))
    real = name.endswith("_real")
    batches = options.batches or (1,)
    before = time.perf_counter()
    needs = _needs(client, keys, real, batches, options, threads)
    start += time.perf_counter() - before  # this is not part of the set-up
    server = ckks.Evaluator(params, keys, options.device, threads=threads)
    server.prepare_bootstrap(real=real, progress=counter(f"{name}: matrices"))
    rng = np.random.default_rng()
    about = {
        **sets.describe(name, params, threads),
        "clock": options.clock_of(threads),
        "key_bytes": keys.nbytes,
    }
    for batch in batches:
        values = rng.uniform(-1, 1, (batch, params.slots))
        if not real:  # of modulus up to 1
            values = (values + 1j * rng.uniform(-1, 1, values.shape)) / np.sqrt(2)
        x = server.bind(client.encrypt(values, level=params.bootstrap_level, max_bytes=NO_LIMIT))
        y = x.bootstrap()
        got = client.decrypt(y, complex=not real).reshape(values.shape)
        bits = accept(f"bootstrap at {name}", got, values, y.precision_bits)
        error = np.abs(got - values)
        about.setdefault("setup_s", round(time.perf_counter() - start, 3))
        body = _repeated(server, x)
        again = client.decrypt(body(), complex=not real).reshape(values.shape)
        accept(f"bootstrap at {name}, once more", again, values, y.precision_bits)
        if options.profile:
            profile.kernels(f"bootstrap at {name}", server._core.steps(x.bootstrap))
        times, power = options.measured(
            server.engine,
            lambda seconds, body=body: timed(  # type: ignore[misc]
                body,
                seconds=seconds,
                clock=options.clock_of(threads),
                most=options.most,
                wait=server.synchronize if gpu else None,
            ),
        )
        yield row(
            "bootstrap",
            server.engine,
            {**about, "mean_error": float(error.mean()), "largest_error": float(error.max())},
            times,
            batch=batch,
            floor=floors.of(needs[batch], params.word, server.engine, threads),
            precision_bits=bits,
            power=power,
        )


def _needs(
    client: ckks.Client,
    keys: ckks.EvaluationKeys,
    real: bool,
    batches: tuple[int, ...],
    options: Options,
    threads: int,
) -> dict[int, floors.Work]:
    """The work that each batch needs at least, from a trace.

    The trace is made by an evaluator of its own, which is freed before the one that is timed is
    made.
    """
    params = client.params
    recorder = ckks.Evaluator(params, keys, options.device, threads=threads, trace=True)
    recorder.prepare_bootstrap(real=real)
    trace = recorder.trace()
    found: dict[int, floors.Work] = {}
    for batch in batches:
        zeros = np.zeros((batch, params.slots), dtype=float if real else complex)
        x = recorder.bind(
            client.encrypt(zeros, level=params.bootstrap_level, max_bytes=NO_LIMIT)
        )._settled()
        array = ckks.EncryptedArray(recorder, x)
        trace.clear()
        array.bootstrap()
        found[batch] = floors.work_of(trace)
        trace.clear()
    return found


def _repeated(server: ckks.Evaluator, x: ckks.EncryptedArray) -> Callable[[], ckks.EncryptedArray]:
    """A function that bootstraps x; on a GPU it is captured."""
    if not server.engine.startswith("cuda"):
        return x.bootstrap
    captured = server.capture(ckks.EncryptedArray.bootstrap, x)

    def run() -> ckks.EncryptedArray:
        out = captured(x)
        assert isinstance(out, ckks.EncryptedArray)
        return out

    return run
