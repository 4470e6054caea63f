"""Timing, and the one line that a benchmark prints."""

from __future__ import annotations

import functools
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import device
from jali.bench.energy import Energy, Power, energy
from jali.errors import InternalError

__all__ = ["CLOCKS", "NO_LIMIT", "Floor", "Row", "accept", "commit", "row", "timed"]

#: For Client.encrypt: a benchmark's batches may take all memory that there is.
NO_LIMIT = 1 << 60


@dataclass(frozen=True)
class Row:
    """One result. Times are in seconds, of one call of `name` for the whole batch.

    min_s: the time that is least disturbed by other work on the machine.
    floor_s: the time that no implementation can beat, by `floor_kind`; null if no floor was
        derived.
    energy: by the counter of the device; null if it was not asked for.
    """

    name: str
    device: str
    device_name: str
    params: dict[str, Any]
    batch: int
    reps: int
    median_s: float
    min_s: float
    p95_s: float
    floor_s: float | None
    floor_kind: str | None
    fraction_of_floor: float | None
    precision_bits: float | None
    commit: str
    energy: Energy | None = None


@dataclass(frozen=True)
class Floor:
    """A lower bound on a time, and what it counts."""

    seconds: float
    kind: str


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def timed(
    body: Callable[[], object],
    *,
    seconds: float,
    clock: str = "wall",
    most: int = 2000,
    warm: int = 1,
    wait: Callable[[], None] | None = None,
) -> list[float]:
    """The times of repeated calls, for about `seconds` seconds and at least once, after `warm`
    calls.

    clock: "wall", or "cpu" for the processor time of all threads, which a busy machine disturbs
        less.
    wait: a function that waits until calls are done, if they return before. A figure is then the
        mean of as many calls as fill some milliseconds.
    """
    now = CLOCKS[clock]
    several = 1
    if wait is not None:
        body, several = _waited(body, wait)
    for _ in range(warm):
        body()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or (time.perf_counter() < end and len(times) < most):
        start = now()
        body()
        times.append((now() - start) / several)
    return times


def _waited(body: Callable[[], object], wait: Callable[[], None]) -> tuple[Callable[[], None], int]:
    """Several calls and the wait for them, and how many."""
    for _ in range(3):
        body()
    wait()
    start = time.perf_counter()
    body()
    wait()
    count = min(max(int(5e-3 / (time.perf_counter() - start)), 4), 200)

    def calls() -> None:
        for _ in range(count):
            body()
        wait()

    return calls, count


def row(
    name: str,
    engine: str,
    params: dict[str, Any],
    times: list[float],
    *,
    batch: int = 1,
    floor: Floor | None = None,
    precision_bits: float | None = None,
    power: Power | None = None,
) -> Row:
    """A result from its times. engine: the name that Evaluator.engine gives, e.g. "cpu/ifma"."""
    best = min(times)
    return Row(
        name=name,
        device=engine.split("/")[0].split(":")[0],
        device_name=device.name(engine),
        params={**params, "engine": engine},
        batch=batch,
        reps=len(times),
        median_s=float(np.median(times)),
        min_s=best,
        p95_s=float(np.quantile(times, 0.95)),
        floor_s=None if floor is None else floor.seconds,
        floor_kind=None if floor is None else floor.kind,
        fraction_of_floor=None if floor is None else floor.seconds / best,
        precision_bits=precision_bits,
        commit=commit(),
        energy=None if power is None else energy(power, float(np.mean(times)), batch),
    )


def accept(
    what: str, got: npt.NDArray[Any], want: npt.NDArray[Any], predicted_bits: float
) -> float:
    """The measured bits of precision: -log2 of the error's standard deviation over the parts of all
    slots.

    Raises InternalError when the largest error exceeds 16 times the 2^-predicted_bits that the
    ciphertext's own noise estimate gives: such a result is wrong, and its time means nothing.
    """
    error = np.asarray(got) - np.asarray(want)
    parts = (
        np.concatenate([error.real.ravel(), error.imag.ravel()])
        if np.iscomplexobj(error)
        else error.ravel()
    )
    worst = float(np.abs(parts).max())
    if not worst <= 16 * 2.0**-predicted_bits:
        raise InternalError(
            f"{what}: the result is off by {worst:.2e}, and {predicted_bits:.1f} bits were predicted"
        )
    return float(-np.log2(max(float(np.std(parts)), 1e-300)))


@functools.cache
def commit() -> str:
    """The commit of the checkout that this package lies in, with "-dirty" if it was changed;
    otherwise the version."""
    import jali

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()

    try:
        # The package may be installed inside the checkout of another project.
        if (Path(git("rev-parse", "--show-toplevel")) / "src" / "jali" / "schemes").is_dir():
            return git("describe", "--always", "--dirty", "--abbrev=12")
    except (OSError, subprocess.SubprocessError):
        pass
    return jali.__version__
