"""Benchmarks: ``jali bench list``, ``jali bench NAME``.

Every benchmark checks its results in the same run: a figure whose result was wrong is an error, not a
line. Results are kept in the repository under bench/results/.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``jali bench ARGV``; returns the exit code. Raises jali.Error with what to change."""
    from jali.bench import command

    return command.run(argv)
