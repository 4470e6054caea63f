"""The benchmarks by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jali import device as devices
from jali.bench.measure import Row

__all__ = ["BENCHMARKS", "Benchmark", "Options", "benchmark"]


@dataclass(frozen=True)
class Options:
    """What a user may choose. If a field is empty, the benchmark chooses.

    threads: None for one thread, unless the benchmark says otherwise. seconds: about how long each figure
    is measured. images: the file of images for the mnist demo. clock: as in jali.bench.measure.timed;
    figures of several threads are always wall times. variants: implementations by family, for the engine's
    operations. profile: also where the time goes.
    """

    device: str = "auto"
    threads: int | None = None
    seconds: float = 1.0
    sets: tuple[str, ...] = ()
    images: str | None = None
    clock: str = "wall"
    batches: tuple[int, ...] = ()
    levels: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    log_ns: tuple[int, ...] = ()
    limbs: tuple[int, ...] = ()
    variants: Mapping[str, str] = dataclasses.field(default_factory=dict)
    profile: bool = False

    def with_sets(self, *sets: str) -> Options:
        """The same options for other parameter sets, without the levels, which belong to one set."""
        return dataclasses.replace(self, sets=sets, levels=())

    def resolved_device(self) -> str:
        """The device that "auto" stands for, or the one that was named."""
        return devices.resolved(self.device)

    def on_gpu(self) -> bool:
        """Whether the device will be a GPU."""
        return self.resolved_device().startswith("cuda")

    def clock_of(self, threads: int) -> str:
        """The clock for a figure of so many threads."""
        return self.clock if threads == 1 and not self.on_gpu() else "wall"


@dataclass(frozen=True)
class Benchmark:
    """The name of a benchmark, what it measures, and the function that runs it."""

    name: str
    about: str
    run: Callable[[Options], Iterator[Row]]


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(
    name: str, about: str
) -> Callable[[Callable[[Options], Iterator[Row]]], Callable[[Options], Iterator[Row]]]:
    """Registers a function that yields rows, under a name."""

    def register(run: Callable[[Options], Iterator[Row]]) -> Callable[[Options], Iterator[Row]]:
        BENCHMARKS[name] = Benchmark(name, about, run)
        return run

    return register
