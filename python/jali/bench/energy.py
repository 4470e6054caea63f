"""The energy of an operation, from the counter of a GPU (NVML) or of the processors (RAPL).

A counter changes in steps: NVML's about every 20 to 100 ms, RAPL's every millisecond. While an
operation runs again and again, a thread reads the counter every few milliseconds. The power is the
energy between the first and the last change that it saw, over the time between them: so the length
of a step does not count.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jali.bench import nvml, rapl
from jali.errors import Error, Unsupported

__all__ = ["Counter", "Energy", "Meter", "Power", "counter", "energy", "power", "while_running"]

EVERY_S = 0.004  # between two readings
SETTLE_S = 0.3  # of an operation, before power is taken as steady
IDLE_S = 1.0  # for which nothing runs, after as long a pause


class Counter(Protocol):
    """What counts joules."""

    name: str

    def read(self) -> float:
        """Joules since some time in the past. Raises jali.Error if it cannot be read."""


@dataclass(frozen=True)
class Power:
    """The mean power of a while, in watts.

    seconds: between the first and the last change of the counter.
    idle_watts: when nothing of this process ran.
    host_watts: of the processors, if a GPU computed and their counter can be read.
    """

    counter: str
    watts: float
    seconds: float
    idle_watts: float
    host_watts: float | None = None


@dataclass(frozen=True)
class Energy:
    """The energy of an operation on one ciphertext.

    joules: by the total power.
    per_joule: operations a joule, which are operations a second and watt.
    above_idle: the same two by the power above that of the idle device. The power of the host is in
        neither.
    """

    counter: str
    seconds: float
    watts: float
    idle_watts: float
    host_watts: float | None
    joules: float
    per_joule: float
    joules_above_idle: float
    per_joule_above_idle: float | None


def energy(spent: Power, seconds: float, batch: int) -> Energy:
    """seconds: the mean time of a call, which works on `batch` ciphertexts."""
    above = spent.watts - spent.idle_watts
    joules, joules_above = (watts * seconds / batch for watts in (spent.watts, above))
    return Energy(
        counter=spent.counter,
        seconds=spent.seconds,
        watts=spent.watts,
        idle_watts=spent.idle_watts,
        host_watts=spent.host_watts,
        joules=joules,
        per_joule=1 / joules,
        joules_above_idle=joules_above,
        per_joule_above_idle=1 / joules_above if joules_above > 0 else None,
    )


def power(readings: Sequence[tuple[float, float]], name: str) -> tuple[float, float]:
    """The watts, and the seconds for which they were measured, from readings (time in seconds,
    joules).

    Raises Unsupported if the counter changed less than twice, or went back.
    """
    changes = [this for last, this in itertools.pairwise(readings) if this[1] != last[1]]
    if any(this[1] < last[1] for last, this in itertools.pairwise(readings)):
        raise Unsupported(
            f"{name} went back while it was read: its driver was started again, so measure once more"
        )
    if len(changes) < 2:
        span = readings[-1][0] - readings[0][0] if readings else 0.0
        raise Unsupported(
            f"{name} changed {len(changes)} times in {span:.2f} s, and power is measured between two changes: "
            "give more --seconds, or leave out --energy if it stands still"
        )
    (start, first), (end, last) = changes[0], changes[-1]
    return (last - first) / (end - start), end - start


class Meter:
    """Reads counters in a thread of its own for as long as its block runs."""

    def __init__(self, counters: Sequence[Counter], settle: float = 0.0) -> None:
        self._counters, self._settle = counters, settle
        self._readings: list[list[tuple[float, float]]] = [[] for _ in counters]
        self._error: Error | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _read(self) -> None:
        self._done.wait(self._settle)
        while not self._done.is_set():
            try:
                for counter, readings in zip(self._counters, self._readings, strict=True):
                    joules = counter.read()
                    readings.append((time.perf_counter(), joules))
            except Error as error:
                self._error = error
                return
            self._done.wait(EVERY_S)

    def watts(self, index: int = 0) -> tuple[float, float]:
        """What `power` says of a counter. Raises what the counter raised."""
        if self._error is not None:
            raise self._error
        return power(self._readings[index], self._counters[index].name)


@functools.cache
def counter(device: str) -> Counter:
    """The counter of a device: "cpu" or "cuda:K". Raises Unsupported if there is none that can be
    read."""
    kind, _, index = device.split("/")[0].partition(":")
    return nvml.Gpu(int(index or 0)) if kind == "cuda" else rapl.Processors()


@functools.cache
def _counters(device: str) -> tuple[Counter, ...]:
    """The counter of a device, and for a GPU that of the host if there is one."""
    own = counter(device)
    if not device.startswith("cuda"):
        return (own,)
    try:
        return own, counter("cpu")
    except Unsupported:
        return (own,)


@functools.cache
def _idle_watts(device: str) -> float:
    time.sleep(IDLE_S)
    with Meter(_counters(device)[:1]) as meter:
        time.sleep(IDLE_S)
    return meter.watts()[0]


def while_running(
    engine: str, seconds: float, run: Callable[[float], list[float]]
) -> tuple[list[float], Power]:
    """The times that run(seconds) returns, and the power while it ran.

    engine: the name that Evaluator.engine gives, e.g. "cpu/ifma". The power when idle is measured
        once for each device, before.

    Raises Unsupported if no counter can be read, or if it stood still.
    """
    device = engine.split("/")[0]
    counters = _counters(device)
    idle = _idle_watts(device)
    with Meter(counters, SETTLE_S) as meter:
        times = run(seconds + SETTLE_S)
    watts, measured = meter.watts()
    host = meter.watts(1)[0] if len(counters) > 1 else None
    return times, Power(counters[0].name, watts, measured, idle, host)
