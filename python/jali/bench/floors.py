"""Floors: the modular multiplications that an operation cannot do without, over the rate at which this
machine does them on registers. Derived in docs/performance.md."""

from __future__ import annotations

import functools

from jali import _jali
from jali._jali import Trace
from jali.bench.measure import Floor

__all__ = ["of_mults", "of_trace", "rate"]


@functools.cache
def rate(word: str, isa: str) -> float:
    """Butterflies a second of one thread on registers, measured: each is one modular multiplication by a
    constant, an addition and a subtraction."""
    return float(_jali.butterfly_rate(word, isa))


def of_mults(mults: float, word: str, engine: str, threads: int) -> Floor:
    """The floor of so many modular multiplications. engine: e.g. "cpu/ifma"."""
    isa = engine.partition("/")[2].replace("apart", "")
    return Floor(mults / (rate(word, isa) * threads), "modular multiplications on registers")


def of_trace(trace: Trace, word: str, engine: str, threads: int) -> Floor:
    """The floor of what a trace recorded."""
    mults = sum(total["mults"] for total in trace.totals().values())
    return of_mults(mults, word, engine, threads)
