"""A matrix whose diagonals are stored in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from jali import ckks
from jali.bench import sets
from jali.bench.measure import Row, accept, row, timed
from jali.bench.registry import Options, benchmark
from jali.errors import InternalError

SETS = ("n14_d7",)
LEVELS = (7, 1)
DIAGONALS = 32
STORAGES = ("residues", "integers", "streamed", "none")


@benchmark(
    "storage",
    f"a matrix of {DIAGONALS} diagonals: over all primes, as integers, streamed, encoded at each use",
)
def storage(options: Options) -> Iterator[Row]:
    """Numbers without a period, and with one of 64 slots, at the levels of a set; and single
    plaintexts."""
    for name in options.sets or SETS:
        params = sets.load(name)
        for level in options.levels or LEVELS:
            yield from plaintexts(name, level, options)
            for period in (params.slots, 64):
                for kind in STORAGES:
                    yield measured(name, level, period, kind, options)


def measured(name: str, level: int, period: int, kind: str, options: Options) -> Row:
    """One matrix, compared with NumPy's."""
    params, threads = sets.load(name), options.threads or 1
    rng = np.random.default_rng()
    diagonals = {
        d: np.tile(rng.uniform(-1, 1, period) / DIAGONALS, params.slots // period)
        for d in range(DIAGONALS)
    }
    plan = ckks.LinearTransform(params, {**diagonals}, level=level)
    client = ckks.Client(params, threads=threads)
    keys = client.evaluation_keys(rotations=plan.rotations)
    server = ckks.Evaluator(params, keys, options.device, threads=threads)
    if kind != "none":
        server.prepare(plan, storage=kind)
    vector = rng.uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(vector, level=level))
    y = server.linear_transform(plan, x)
    want = np.sum([v * np.roll(vector, -d) for d, v in diagonals.items()], axis=0)
    bits = accept("storage", client.decrypt(y, complex=False), want, y.precision_bits)

    def run() -> None:
        server.linear_transform(plan, x)
        server.synchronize()

    clock = options.clock_of(threads)
    times = timed(run, seconds=options.seconds, clock=clock)
    about = {
        **sets.describe(name, params, threads),
        "clock": clock,
        "level": level,
        "diagonals": DIAGONALS,
        "period": period,
        "storage": kind,
        "bytes": plan.nbytes,
    }
    return row("storage", server.engine, about, times, precision_bits=bits)


def plaintexts(name: str, level: int, options: Options) -> Iterator[Row]:
    """Encoding at a level, encoding as integers, and their expansion to that level, which has the
    bytes of the former."""
    params, threads = sets.load(name), options.threads or 1
    keys = ckks.Client(params, threads=threads).evaluation_keys(relinearise=False)
    server = ckks.Evaluator(params, keys, options.device, threads=threads)
    e, scale = server.explicit, params.level(level).scale
    values = np.random.default_rng().uniform(-1, 1, params.slots)
    compact = e.encode_compact(values, scale)
    if e.expand(compact, level).to_bytes() != e.encode(values, level, scale).to_bytes():
        raise InternalError("storage: an expansion has other bytes than the encoding")
    runs: dict[str, Callable[[], object]] = {
        "encode": lambda: e.encode(values, level, scale),
        "encode_compact": lambda: e.encode_compact(values, scale),
        "expand": lambda: e.expand(compact, level),
    }
    for operation, run in runs.items():
        clock = options.clock_of(threads)
        times = timed(
            run, seconds=options.seconds, clock=clock, wait=server.synchronize, most=options.most
        )
        about = {**sets.describe(name, params, threads), "clock": clock, "level": level}
        yield row("storage", server.engine, {**about, "operation": operation}, times)
