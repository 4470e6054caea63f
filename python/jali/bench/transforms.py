"""Number-theoretic transforms of one limb."""

from __future__ import annotations

from collections.abc import Iterator

from jali import _jali
from jali.bench import floors
from jali.bench.measure import Row, row
from jali.bench.registry import Options, benchmark
from jali.errors import InternalError

WORDS = ("w32", "w52", "w64")
LOG_NS = (14, 16)


def _transforms(name: str, options: Options, *, inverse: bool) -> Iterator[Row]:
    threads = options.threads or 1
    for log_n in LOG_NS:
        for word in WORDS:
            case = _jali.TransformBench(log_n, word, threads)
            if not case.check():
                raise InternalError(f"{name} at N = 2^{log_n}, {word}: the transform is wrong")
            times = case.run(inverse, options.seconds)
            n = 1 << log_n
            mults = n // 2 * (log_n + (1 if inverse else 0))
            floor = floors.of_mults(mults, word, case.engine, 1)
            params = {"log_n": log_n, "word": word, "prime_bits": case.prime_bits, "threads": 1}
            yield row(name, case.engine, params, times, floor=floor)


@benchmark("ntt", "number-theoretic transform of one limb, N = 2^14 and 2^16, every word")
def ntt(options: Options) -> Iterator[Row]:
    """Coefficients to values, in place."""
    return _transforms("ntt", options, inverse=False)


@benchmark("intt", "its inverse")
def intt(options: Options) -> Iterator[Row]:
    """Values to coefficients, in place."""
    return _transforms("intt", options, inverse=True)
