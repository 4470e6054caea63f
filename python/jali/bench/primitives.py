"""The engine's operations one by one: what the layers above are made of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jali import _jali
from jali.bench import floors, profile
from jali.bench.measure import Row, row
from jali.bench.registry import Options, benchmark
from jali.errors import InternalError, InvalidArgument

WORDS = ("w32", "w52", "w64")

ABOUT = {
    "ntt": "number-theoretic transform: coefficients to values",
    "intt": "its inverse",
    "add": "sum of two polynomials",
    "sub": "their difference",
    "neg": "negation",
    "mul": "product of two polynomials, value by value",
    "mul_scalar": "product with one constant a limb",
    "mul_scalar_add": "the same added to another polynomial",
    "add_scalar": "sum with one constant a limb",
    "inner_product": "sum of eight products",
    "weighted_sums": "the same for both halves of a ciphertext",
    "tensor": "tensor product of two ciphertexts",
    "combine": "sum of two products of ciphertexts, eight multiples and a constant",
    "automorphism_ntt": "automorphism of values",
    "mod_up": "lifts of every digit to all primes (ModUp)",
    "key_product": "inner product of lifted digits with a key, automorphism included",
    "rotated_sums": "four weighted sums of eight hoisted rotations",
    "outer_sum": "four giant steps of a linear transform: divisions by P, rotations, their sum",
    "key_switch": "ModUp and inner product in one",
    "key_switch_joined": "the same with a ciphertext added",
    "tensor_key_switch": "tensor product and key switch in one",
    "combine_key_switch": "such a sum and its key switch in one",
    "key_switch_rotate": "a ciphertext rotated: automorphism, key switch and division by P",
    "mod_down": "division of a ciphertext by P (ModDown)",
    "drop_last": "division of a ciphertext by its last prime",
    "sample_uniform": "uniform residues from a seed",
    "sample_ternary": "a ternary polynomial from a seed",
    "sample_error": "an error polynomial from a seed",
    "sample_sparse": "a ternary polynomial of 32 non-zero coefficients from a seed",
    "embed": "slots of the host to residues (encoding)",
    "unembed": "residues to slots of the host (decoding)",
    "from_int64": "64-bit integers of the host to residues",
    "from_double": "integers in doubles of the host to residues",
    "crt_mod": "CRT of large integers by Horner's rule",
    "crt_mul": "CRT by products with powers of two",
    "icrt_product_sum": "inverse CRT by sums of products",
    "icrt_garner": "inverse CRT in mixed radix",
    "crt_from_host": "crt_mul of integers in the host's memory",
    "icrt_to_host": "icrt_product_sum to the host's memory",
}
TRANSFORMS = ("ntt", "intt")

# log2 of N -> bits of Q: within the security table beside P.
LOG_Q = {11: 30, 12: 60, 13: 160, 14: 285, 15: 660, 16: 1230, 17: 2500}
DIGITS = 4  # of key switching
# (log N, limbs, batch) of the transforms on a GPU: as in the tables of other systems.
GPU_TRANSFORMS = ((12, 8, 256), (13, 8, 128), (14, 16, 64), (16, 48, 16))
BITS = {"w32": 30, "w52": 50, "w64": 61}


@dataclass(frozen=True)
class Shape:
    """N, limbs of Q in digits of `alpha`, special primes, batch; bits of a prime, 0 for the word's most."""

    log_n: int
    limbs: int
    special: int
    alpha: int
    batch: int
    prime_bits: int = 0


def shape(log_n: int, word: str, batch: int, limbs: int | None = None) -> Shape:
    """Limbs for LOG_Q, in DIGITS digits."""
    count = limbs or max(1, LOG_Q.get(log_n, 30) // BITS[word])
    alpha = -(-count // DIGITS)
    return Shape(log_n, count, alpha, alpha, batch)


def shapes(name: str, on_gpu: bool, word: str, options: Options) -> Iterator[Shape]:
    """What the user asked for; else the benchmark's own."""
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
    case = _jali.bench.EngineBench(
        options.resolved_device(),
        word,
        log_n=s.log_n,
        limbs=s.limbs,
        special=s.special,
        alpha=s.alpha,
        batch=s.batch,
        prime_bits=s.prime_bits,
        threads=threads,
        variants=variants or {},
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


def _profile(case: _jali.bench.EngineBench, name: str, title: str) -> None:
    """Its kernels on a GPU, to standard error."""
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


for _name, _about in ABOUT.items():
    _register(_name, _about)
