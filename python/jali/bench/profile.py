"""Shows where the time of an operation goes: to which engine operations, and to which kernels on a
GPU."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable

from jali import ckks, discrete

__all__ = ["kernels", "operations"]

REPEATS = 20


def operations(
    title: str, recorder: ckks.Evaluator | discrete.Evaluator, body: Callable[[], object]
) -> None:
    """Prints, to standard error, the mean time of each engine operation in one call of body.

    recorder: an evaluator with a trace. On a GPU it waits for every engine operation.
    """
    trace = recorder.trace()
    trace.clear()
    for _ in range(REPEATS):
        body()
    totals = sorted(trace.totals().items(), key=lambda item: -item[1]["seconds"])
    trace.clear()
    rows = [
        (
            name,
            total["count"] / REPEATS,
            total["seconds"] / REPEATS,
            f"{(total['bytes_read'] + total['bytes_written']) / REPEATS / 1e6:>9.2f}"
            f"{total['mults'] / REPEATS / 1e6:>9.2f}",
        )
        for name, total in totals
    ]
    _print(f"{title}: engine operations, each waited for", rows, f"{'MB':>9}{'M mults':>9}")


def kernels(title: str, steps: Iterable[tuple[str, float]]) -> None:
    """Prints the mean times of a GPU's kernels, each measured alone with warm caches; nothing on a
    CPU."""
    totals: dict[str, list[float]] = defaultdict(list)
    for name, seconds in steps:
        totals[name].append(seconds)
    if totals:
        rows = [(name, len(times), sum(times), "") for name, times in totals.items()]
        _print(f"{title}: kernels, each alone", sorted(rows, key=lambda row: -row[2]), "")


def _print(title: str, rows: Iterable[tuple[str, float, float, str]], more: str) -> None:
    """Prints the calls, microseconds and share of each row."""
    rows = list(rows)
    whole = sum(seconds for _, _, seconds, _ in rows)
    width = max(len(name) for name, *_ in rows) + 2
    lines = [
        f"{title}: {whole * 1e6:.1f} us",
        f"  {'':<{width}}{'calls':>6}{'us':>10}{'share':>7}{more}",
    ]
    for name, count, seconds, rest in rows:
        lines.append(
            f"  {name:<{width}}{count:>6.0f}{seconds * 1e6:>10.1f}{seconds / whole:>7.0%}{rest}"
        )
    print("\n".join(lines), file=sys.stderr)
