"""Floors: what no implementation can beat on this machine. Derived in docs/performance.md.

On a CPU, the arithmetic that an operation cannot do without over the rate at which the threads do
it on registers, or its bytes over the rate at which they are read from the caches, where that is
longer. On a GPU the bytes that must cross its memory, once each, over the rate of a copy; for
transforms the butterflies over their rate where that is longer. (Products of base conversion and
with keys are sums: they cost less than butterflies.) All rates are measured in the run.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

from jali._jali.ckks import Trace
from jali.bench import native
from jali.bench.measure import Floor

__all__ = ["Work", "of", "of_tfhe", "rate", "work_of"]

ON_REGISTERS = "modular multiplications on registers"
ARITHMETIC = "arithmetic on registers"
IN_MEMORY = "every byte once"
LEAST, MOST = 15, 26  # log2 of the blocks whose reading is measured


@dataclass(frozen=True)
class Work:
    """The least work of an operation.

    It counts modular multiplications; bytes read and written, and how many of them are written
    where they were read; bytes of ChaCha20; and butterflies and sums of products of complex
    doubles.
    """

    mults: float = 0
    bytes: float = 0
    in_place: float = 0
    stream_bytes: float = 0
    complex_butterflies: float = 0
    complex_products: float = 0


@functools.cache
def rate(word: str, isa: str) -> float:
    """The measured rate of butterflies of one thread on registers, per second.

    A butterfly is one modular multiplication by a constant, an addition and a subtraction.
    """
    return float(native.butterfly_rate(word, isa))


@functools.cache
def _complex_rate(isa: str) -> float:
    return native.complex_butterfly_rate(isa)


@functools.cache
def _stream_rate() -> float:
    return native.stream_rate()


@functools.cache
def _read_rates(isa: str) -> list[float]:
    """The measured rates of reading blocks of 2^LEAST to 2^MOST bytes, in bytes per second."""
    return [native.read_rate(isa, 1 << k) for k in range(LEAST, MOST + 1)]


def _read_rate(isa: str, count: float) -> float:
    """The best rate among blocks of at least about half of `count` bytes, in bytes per second.

    Smaller blocks count because part of a block that exceeds a cache may still be found there.
    """
    k = max(int(count), 1).bit_length() - 2
    return max(_read_rates(isa)[min(max(k, LEAST), MOST) - LEAST :])


@functools.cache
def _gpu_rates(word: str, device: int) -> tuple[float, float]:
    """The butterflies per second and bytes per second of a GPU."""
    return native.cuda_peak(word, device)


def of(work: Work, word: str, engine: str, threads: int, *, transform: bool = False) -> Floor:
    """The floor of so much work.

    engine: e.g. "cpu/ifma" or "cuda:0".
    transform: whether the multiplications are butterflies.
    """
    if engine.startswith("cuda"):
        butterflies, bandwidth = _gpu_rates(word, int(engine.partition(":")[2] or 0))
        computing, kind = work.mults / butterflies if transform else 0.0, ON_REGISTERS
        bytes_moved = work.bytes
    else:
        isa = engine.partition("/")[2].replace("apart", "")
        computing, kind = work.mults / rate(word, isa), ON_REGISTERS
        if work.stream_bytes or work.complex_butterflies:
            computing += work.stream_bytes / _stream_rate()
            computing += work.complex_butterflies / _complex_rate(isa)
            kind = ARITHMETIC
        computing /= threads
        bytes_moved = (
            work.bytes - work.in_place
        )  # a cache line that was read can be written in place
        bandwidth = threads * _read_rate(isa, bytes_moved / threads)
    moving = bytes_moved / bandwidth
    if computing > moving:
        return Floor(computing, kind)
    return Floor(moving, f"{IN_MEMORY} at {bandwidth / 1e12:.2f} TB/s")


# Instructions on vectors of doubles: of a butterfly whose products and sums are rounded one by one,
# as the measured rate has it; of one with fused multiply-adds, and of a fused product that is added
# to a sum.
ROUNDED_BUTTERFLY, FUSED_BUTTERFLY, FUSED_PRODUCT = 10, 6, 4


def of_tfhe(work: Work, engine: str, threads: int) -> Floor:
    """The floor of operations of TFHE with transforms in complex doubles.

    Multiplications of words by digits are not in it: how many of them an instruction does is an
    engine's choice.
    """
    if engine.startswith("cuda"):
        return of(Work(bytes=work.bytes), "w64", engine, threads)
    fused = FUSED_BUTTERFLY * work.complex_butterflies + FUSED_PRODUCT * work.complex_products
    counted = Work(bytes=work.bytes, complex_butterflies=fused / ROUNDED_BUTTERFLY)
    return of(counted, "w64", engine, threads)


def _compulsory_bytes(trace: Trace) -> tuple[int, int]:
    """The bytes that a trace reads and writes at least, and how many of them are written where they
    were read.

    They are the operands that no operation of the trace made, and the results that no operation
    read again.
    """
    Place = tuple[int, int]  # an object, and the offset in it
    made: dict[Place, int] = {}
    used: dict[Place, int] = {}
    fresh: set[Place] = set()
    for line in trace.json_lines().splitlines()[1:]:  # after the header
        record = json.loads(line)
        for _kind, entity, offset, count in record["reads"]:
            place = (entity, offset)
            if place in made:
                fresh.discard(place)
            else:
                used[place] = max(count, used.get(place, 0))
        for _kind, entity, offset, count in record["writes"]:
            made[entity, offset] = count
            fresh.add((entity, offset))
    in_place = sum(min(used[place], made[place]) for place in fresh & used.keys())
    return sum(used.values()) + sum(made[place] for place in fresh), in_place


def work_of(trace: Trace) -> Work:
    """The work that a trace recorded."""
    totals = trace.totals().values()

    def total(key: str) -> float:
        return float(sum(t[key] for t in totals))

    return Work(
        total("mults"),
        *_compulsory_bytes(trace),
        total("stream_bytes"),
        total("complex_butterflies"),
        total("complex_products"),
    )
