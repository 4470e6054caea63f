"""The three words side by side at equal log Q, like Figures 6 and 7 of the GIF-FHE paper."""

from __future__ import annotations

from collections.abc import Iterator

from jali.bench.measure import Row
from jali.bench.primitives import BITS, Shape, measure
from jali.bench.registry import BENCHMARKS, WORDS, Options, benchmark

# log2 of N -> log2 of Q: the rings of the figures, with the Q that the security table allows
# together with P, and N = 2^16.
LOG_Q = {14: 360, 15: 720, 16: 1230}
SPECIAL_BITS = {14: 60, 15: 140, 16: 330}
# Figure 6, without CRT, whose integers come from the host here; and key switching.
ENGINE = ("ntt", "intt", "mul", "key_switch")
SETS = {
    14: "log_n=14,depth=7,scale_bits=40,dnum=6",
    15: "log_n=15,depth=15,scale_bits=40,dnum=5",
    16: "log_n=16,depth=29,scale_bits=40,dnum=4",
}


def shape(log_n: int, word: str, batch: int) -> Shape:
    """The shape with as many limbs as log2 of Q takes, and digits as large as P."""
    limbs = round(LOG_Q[log_n] / BITS[word])
    special = max(1, round(SPECIAL_BITS[log_n] / BITS[word]))
    return Shape(log_n, limbs, special, special, batch)


@benchmark("words", "the three words at equal log Q: transforms, key switch, HMULT and HROTATE")
def words(options: Options) -> Iterator[Row]:
    """Engine operations with the largest primes of each word, and ciphertext operations with scales
    of 40 bits."""
    for log_n in options.log_ns or tuple(LOG_Q):
        for batch in options.batches or (1,):
            for word in options.words or WORDS:
                for name in ENGINE:
                    yield measure(name, word, shape(log_n, word, batch), options)
    for log_n in options.log_ns or tuple(SETS):
        for word in options.words or WORDS:
            chosen = options.with_sets(f"{SETS[log_n]},word={word}")
            for name in ("hmult_relin_rescale", "rotate"):
                yield from BENCHMARKS[name].run(chosen)
