"""Floors: what no implementation can beat on this machine. Derived in docs/performance.md.

On a CPU, the modular multiplications that an operation cannot do without over the rate at which the threads do
them on registers. On a GPU the bytes that must cross its memory, once each, over the rate of a copy; for
transforms the butterflies over their rate where that is longer. (Products of base conversion and with keys are sums:
they cost less than butterflies.) All rates are measured in the run.
"""

from __future__ import annotations

import functools
import json

from jali import _jali
from jali._jali import Trace
from jali.bench.measure import Floor

__all__ = ["compulsory_bytes", "of", "of_trace", "rate"]

ON_REGISTERS = "modular multiplications on registers"
IN_MEMORY = "every byte once"


@functools.cache
def rate(word: str, isa: str) -> float:
    """Butterflies a second of one thread on registers, measured: each is one modular multiplication by a
    constant, an addition and a subtraction."""
    return float(_jali.butterfly_rate(word, isa))


@functools.cache
def _gpu_rates(word: str, device: int) -> tuple[float, float]:
    """Butterflies and bytes a second."""
    return _jali.cuda_peak(word, device)


def of(
    mults: float,
    bytes_moved: float,
    word: str,
    engine: str,
    threads: int,
    *,
    transform: bool = False,
) -> Floor | None:
    """The floor of so many modular multiplications and bytes. engine: e.g. "cpu/ifma", "cuda:0"; transform:
    whether the multiplications are butterflies."""
    if engine.startswith("cuda"):
        butterflies, bandwidth = _gpu_rates(word, int(engine.partition(":")[2] or 0))
        computing = mults / butterflies if transform else 0.0
        moving = bytes_moved / bandwidth
        if computing > moving:
            return Floor(computing, ON_REGISTERS)
        return Floor(moving, f"{IN_MEMORY} at {bandwidth / 1e12:.2f} TB/s")
    if mults == 0:
        return None
    isa = engine.partition("/")[2].replace("apart", "")
    return Floor(mults / (rate(word, isa) * threads), ON_REGISTERS)


def compulsory_bytes(trace: Trace) -> int:
    """Bytes of operands that no operation of the trace made, and of results that none of them read again."""
    made: dict[int, int] = {}
    used: dict[int, int] = {}
    fresh: set[int] = set()
    for line in trace.json_lines().splitlines():
        record = json.loads(line)
        for address, count in record["reads"]:
            if address in made:
                fresh.discard(address)
            else:
                used[address] = max(count, used.get(address, 0))
        for address, count in record["writes"]:
            made[address] = count
            fresh.add(address)
    return sum(used.values()) + sum(made[address] for address in fresh)


def of_trace(trace: Trace, word: str, engine: str, threads: int) -> Floor | None:
    """The floor of what a trace recorded."""
    mults = sum(total["mults"] for total in trace.totals().values())
    return of(mults, compulsory_bytes(trace), word, engine, threads)
