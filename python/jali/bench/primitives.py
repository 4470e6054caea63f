"""The engine's operations one by one, of which the layers above are made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jali.bench import floors, native, profile
from jali.bench.measure import Row, row
from jali.bench.registry import WORDS, Options, benchmark
from jali.errors import InternalError, InvalidArgument

TRANSFORMS = ("ntt", "intt")

# log2 of N -> bits of Q. Together with P they are within the security table.
LOG_Q = {11: 30, 12: 60, 13: 160, 14: 285, 15: 660, 16: 1230, 17: 2500}
DIGITS = 4  # of key switching
# (log N, limbs, batch) of the transforms on a GPU, taken from the tables of other systems.
GPU_TRANSFORMS = ((12, 8, 256), (13, 8, 128), (14, 16, 64), (16, 48, 16))
BITS = {"w32": 30, "w52": 50, "w64": 61}


@dataclass(frozen=True)
class Shape:
    """log2 of N, limbs of Q in digits of `alpha` limbs, special primes, batch; bits of a prime, 0
    for the word's most."""

    log_n: int
    limbs: int
    special: int
    alpha: int
    batch: int
    prime_bits: int = 0


def shape(log_n: int, word: str, batch: int, limbs: int | None = None) -> Shape:
    """The shape with the limbs that LOG_Q takes, in DIGITS digits."""
    count = limbs or max(1, LOG_Q.get(log_n, 30) // BITS[word])
    alpha = -(-count // DIGITS)
    return Shape(log_n, count, alpha, alpha, batch)


def shapes(name: str, on_gpu: bool, word: str, options: Options) -> Iterator[Shape]:
    """The shapes that the user asked for; otherwise the benchmark's own."""
    if name in TRANSFORMS and not (options.log_ns or options.batches or options.limbs):
        if on_gpu:
            for log_n, limbs, batch in GPU_TRANSFORMS:
                yield Shape(log_n, limbs, 0, 1, batch)
        else:
            for log_n in (14, 16):
                yield Shape(log_n, 1, 0, 1, 1)
        return
    for log_n in options.log_ns or ((16,) if on_gpu else (14,)):
        for batch in options.batches or (1,):
            for count in options.limbs or (None,):
                yield shape(log_n, word, batch, count)


def measure(
    name: str,
    word: str,
    s: Shape,
    options: Options,
    *,
    variants: dict[str, str] | None = None,
    check: bool = True,
) -> Row:
    """One operation at one shape. Raises InternalError for a wrong result."""
    threads = options.threads or 1
    variants = {**options.variants, **(variants or {})}
    case = native.EngineBench(
        options.resolved_device(),
        word,
        log_n=s.log_n,
        limbs=s.limbs,
        special=s.special,
        alpha=s.alpha,
        batch=s.batch,
        prime_bits=s.prime_bits,
        threads=threads,
        variants=variants,
    )
    if check and not case.check(name):
        raise InternalError(
            f"{name} at N = 2^{s.log_n}, {word}, on {case.engine}: the result is wrong"
        )
    if options.profile:
        _profile(case, name, f"{name}, {word}, N = 2^{s.log_n}, {s.limbs} limbs x {s.batch}")
    work = floors.Work(**case.cost(name))
    floor = floors.of(work, word, case.engine, threads, transform=name in TRANSFORMS)
    params = {
        "log_n": s.log_n,
        "word": word,
        "prime_bits": case.prime_bits,
        "limbs": s.limbs,
        "special": s.special,
        "alpha": s.alpha,
        "threads": threads,
        **({"variants": variants} if variants else {}),
    }
    times = case.run(name, options.seconds)
    return row(name, case.engine, params, times, batch=s.batch, floor=floor)


def _profile(case: native.EngineBench, name: str, title: str) -> None:
    """Prints the kernels of an operation on a GPU to standard error."""
    try:
        profile.kernels(title, case.steps(name))
    except InvalidArgument:  # it copies from or to the host, or draws random residues
        print(f"{title}: the host takes part, so kernels are not timed one by one", file=sys.stderr)


def _register(name: str, about: str) -> Callable[[Options], Iterator[Row]]:
    def run(options: Options) -> Iterator[Row]:
        on_gpu = options.on_gpu()
        for word in options.words or WORDS:
            for s in shapes(name, on_gpu, word, options):
                yield measure(name, word, s, options)

    return benchmark(name, about)(run)


for _name, _about in native.EngineBench.operations():
    _register(_name, _about)
