"""What is not arithmetic in one operation: what Python adds, and what bounds on the numbers
cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.bench import native
from jali.bench.measure import Row, accept, row
from jali.bench.registry import Options, benchmark

Vector = npt.NDArray[np.float64]

LOG_N = 11  # small, so that the calls take the time, not the residues
CALLS = 200  # between two waits; a GPU's queue holds more


@benchmark("overhead", "what Python adds to one operation: calls from Python less calls from C++")
def overhead(options: Options) -> Iterator[Row]:
    """x + y of encrypted arrays, and add and negate of the explicit evaluator."""
    params = ckks.Params.create(depth=0, scale_bits=20, integer_bits=4, log_n=LOG_N, word="w52")
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, None, options.device, threads=1)
    values = np.random.default_rng().uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(values, peak=1.0))
    e, a = server.explicit, x._settled()
    loop = native.CallLoop(params.to_bytes(), options.resolved_device())
    cases: dict[str, tuple[str, Callable[[], ckks.Ciphertext | ckks.EncryptedArray], Vector]] = {
        "add": ("add", lambda: e.add(a, a), 2 * values),
        "negate": ("negate", lambda: e.negate(a), -values),
        "array_add": ("add", lambda: x + x, 2 * values),
        "array_negate": ("negate", lambda: -x, -values),
    }
    for name, (operation, body, want) in cases.items():
        result = body()
        bits = accept(name, client.decrypt(result), want, result.precision_bits)
        times: list[float] = []
        end = time.perf_counter() + options.seconds
        while not times or time.perf_counter() < end:
            inner = loop.seconds(operation, CALLS)
            server.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                body()
            outer = (time.perf_counter() - start) / CALLS
            server.synchronize()
            times.append(outer - inner)
        about = {"log_n": params.log_n, "word": params.word, "operation": name, "threads": 1}
        # Each is a difference of two times, so a single one may be negative; the median counts.
        yield row("overhead", server.engine, about, times, precision_bits=bits)


@benchmark(
    "tracking", "a sum called from C++, and the part of it that computes bounds and averages"
)
def tracking(options: Options) -> Iterator[Row]:
    """Two rows a depth at N = 2^13: "add", and "track", which touches no residue."""
    for depth in (1, 2, 3):
        params = ckks.Params.create(
            depth=depth, scale_bits=30, log_n=13, word="w52", security=0, name="insecure_tracking"
        )
        engine = ckks.Evaluator(params, None, options.device, threads=1).engine
        loop = native.CallLoop(params.to_bytes(), options.resolved_device())
        times: dict[str, list[float]] = {"add": [], "track": []}
        end = time.perf_counter() + options.seconds
        while not times["add"] or time.perf_counter() < end:
            for operation, seconds in times.items():
                seconds.append(loop.seconds(operation, CALLS))
        for operation, seconds in times.items():
            about = {"log_n": 13, "depth": depth, "word": params.word, "operation": operation}
            yield row("tracking", engine, about | {"threads": 1}, seconds)
