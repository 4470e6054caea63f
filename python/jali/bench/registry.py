"""The benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jali.bench.measure import Row

__all__ = ["BENCHMARKS", "Benchmark", "Options", "benchmark"]


@dataclass(frozen=True)
class Options:
    """What a user may choose. threads: None for a benchmark's own choice, which is one thread unless it
    says otherwise. seconds: about how long each figure is measured. sets: empty for the benchmark's own.
    images: the file of images for the mnist demo. clock: as in jali.bench.measure.timed; figures of
    several threads are always wall times."""

    device: str = "auto"
    threads: int | None = None
    seconds: float = 1.0
    sets: tuple[str, ...] = ()
    images: str | None = None
    clock: str = "wall"

    def clock_of(self, threads: int) -> str:
        """The clock for a figure of so many threads."""
        return self.clock if threads == 1 else "wall"


@dataclass(frozen=True)
class Benchmark:
    """A name, what it measures, and how."""

    name: str
    about: str
    run: Callable[[Options], Iterator[Row]]


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(
    name: str, about: str
) -> Callable[[Callable[[Options], Iterator[Row]]], Callable[[Options], Iterator[Row]]]:
    """Registers a function that yields rows under a name."""

    def register(run: Callable[[Options], Iterator[Row]]) -> Callable[[Options], Iterator[Row]]:
        BENCHMARKS[name] = Benchmark(name, about, run)
        return run

    return register
