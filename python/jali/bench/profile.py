"""Where the time of an operation goes: engine operations, and on a GPU its kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable

from jali import ckks

__all__ = ["profile"]

REPEATS = 20


def profile(title: str, recorder: ckks.Evaluator, body: Callable[[], object]) -> None:
    """Prints, to standard error, the mean time of each engine operation in one call of body.

    recorder: an evaluator with a trace. On a GPU every engine operation is waited for by itself.
    """
    trace = recorder.trace
    assert trace is not None
    trace.clear()
    for _ in range(REPEATS):
        body()
    totals = sorted(trace.totals().items(), key=lambda item: -item[1]["seconds"])
    whole = sum(total["seconds"] for _, total in totals)
    print(f"{title}: {whole / REPEATS * 1e6:.1f} us in engine operations", file=sys.stderr)
    print(
        f"  {'operation':<20}{'calls':>7}{'us':>10}{'share':>8}{'MB':>9}{'M mults':>9}",
        file=sys.stderr,
    )
    for name, total in totals:
        moved = (total["bytes_read"] + total["bytes_written"]) / REPEATS / 1e6
        print(
            f"  {name:<20}{total['count'] / REPEATS:>7.0f}{total['seconds'] / REPEATS * 1e6:>10.1f}"
            f"{total['seconds'] / whole:>8.0%}{moved:>9.2f}{total['mults'] / REPEATS / 1e6:>9.2f}",
            file=sys.stderr,
        )
    trace.clear()
