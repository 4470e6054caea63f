"""The benchmarks by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jali import device as devices
from jali.bench.energy import Power, while_running
from jali.bench.measure import Row

__all__ = ["BENCHMARKS", "WORDS", "Benchmark", "Options", "benchmark"]

WORDS = ("w32", "w52", "w64")


@dataclass(frozen=True)
class Options:
    """What a user may choose. If a field is empty, the benchmark chooses.

    threads: None for one thread, unless the benchmark says otherwise.
    seconds: about how long each figure is measured.
    images: the file of images for a demo.
    clock: as in jali.bench.measure.timed; figures of several threads are always wall times.
    variants: implementations by family, for the engine's operations.
    profile: also where the time goes.
    energy: also joules, if the benchmark can measure them.
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
    energy: bool = False

    def with_sets(self, *sets: str) -> Options:
        """The same options for other parameter sets, without the levels, which belong to one
        set."""
        return dataclasses.replace(self, sets=sets, levels=())

    def resolved_device(self) -> str:
        """The device that "auto" stands for, or the one that was named."""
        return devices.resolved(self.device)

    def measured(
        self, engine: str, run: Callable[[float], list[float]]
    ) -> tuple[list[float], Power | None]:
        """The times that run(seconds) returns, and the power of the engine's device meanwhile if
        energy is asked for."""
        if self.energy:
            return while_running(engine, self.seconds, run)
        return run(self.seconds), None

    @property
    def most(self) -> int:
        """How often an operation is repeated at most. A counter of energy needs the whole time."""
        return 1 << 30 if self.energy else 2000

    def on_gpu(self) -> bool:
        """Whether the device will be a GPU."""
        return self.resolved_device().startswith("cuda")

    def clock_of(self, threads: int) -> str:
        """The clock for a figure of so many threads."""
        return self.clock if threads == 1 and not self.on_gpu() else "wall"


@dataclass(frozen=True)
class Benchmark:
    """The name of a benchmark, what it measures, and the function that runs it.

    energy: whether it can measure energy.
    """

    name: str
    about: str
    run: Callable[[Options], Iterator[Row]]
    energy: bool = False


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(
    name: str, about: str, *, energy: bool = False
) -> Callable[[Callable[[Options], Iterator[Row]]], Callable[[Options], Iterator[Row]]]:
    """Registers a function that yields rows, under a name."""

    def register(run: Callable[[Options], Iterator[Row]]) -> Callable[[Options], Iterator[Row]]:
        BENCHMARKS[name] = Benchmark(name, about, run, energy)
        return run

    return register
