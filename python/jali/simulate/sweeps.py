"""Many machines: a program's time, area and energy over values of parameters, and which points no other beats."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from jali.errors import InvalidArgument
from jali.simulate.machine import Machine
from jali.simulate.report import energy
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Kind
from jali.simulate.workloads import Program

__all__ = ["Point", "grid", "pareto", "read_sweep", "sweep", "write_csv"]

MOST = 10_000  # points of a sweep


@dataclass(frozen=True)
class Point:
    """One machine of a sweep. values: what was set. seconds, joules: of the program; area_mm2, resources: of the machine."""

    values: Mapping[str, float]
    cycles: int
    seconds: float
    area_mm2: float
    joules: float
    read_bytes: int
    resources: Mapping[str, float] = field(default_factory=dict)


def read_sweep(text: str) -> tuple[str, list[float]]:
    """The parameter and the values of "hbm_gbs=150:1200:150" (with the end) or "clp=2,4,8". Raises InvalidArgument."""
    name, sign, rest = text.partition("=")
    try:
        if not sign or not name:
            raise ValueError
        if ":" not in rest:
            values = [float(value) for value in rest.split(",")]
        else:
            start, stop, step = (float(value) for value in rest.split(":"))
            if not (step > 0 and start <= stop and math.isfinite(stop / step)):
                raise ValueError
            count = int((stop - start) / step + 1e-9) + 1
            if count > MOST:
                raise ValueError
            values = [start + i * step for i in range(count)]
    except ValueError:
        raise InvalidArgument(
            f"{text!r}: write name=first:last:step or name=value,value, with at most {MOST} values"
        ) from None
    if not all(math.isfinite(value) for value in values):
        raise InvalidArgument(f"{text!r}: the values are finite")
    return name, values


def grid(sweeps: Sequence[tuple[str, list[float]]]) -> list[dict[str, float]]:
    """Every combination of the values. Raises InvalidArgument if there are too many."""
    names = [name for name, _ in sweeps]
    if len(set(names)) < len(names):
        raise InvalidArgument("each parameter is swept once")
    if math.prod(len(values) for _, values in sweeps) > MOST:
        raise InvalidArgument(f"a sweep has at most {MOST} points: give fewer values")
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(values for _, values in sweeps))
    ]


def sweep(
    program: Program,
    machine: Machine,
    points: Sequence[Mapping[str, float]],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Point]:
    """Simulates a program on a machine with each of the sets of values. progress: is called with (points done, points)."""
    for done, values in enumerate(points, 1):
        changed = machine.changed(values)
        result = schedule(program(changed), changed)
        reads = result.residency.moved & (result.steps.kind == Kind.LOAD)
        yield Point(
            values=dict(values),
            cycles=result.span,
            seconds=result.seconds,
            area_mm2=changed.area_mm2,
            joules=sum(part.joules for part in energy(result)),
            read_bytes=int(result.steps.bytes[reads].sum()),
            resources={name: float(number) for name, number in changed.resources.items()},
        )
        if progress is not None:
            progress(done, len(points))


def pareto(points: Sequence[Point]) -> list[bool]:
    """For each point whether no other is at least as good in time, area and energy, and better in one."""
    keys = [(p.seconds, p.area_mm2, p.joules) for p in points]
    best = set()
    front: list[tuple[float, float, float]] = []
    for key in sorted(set(keys)):  # whoever beats a point comes before it in this order
        if not any(all(a <= b for a, b in zip(other, key, strict=True)) for other in front):
            front.append(key)
            best.add(key)
    return [key in best for key in keys]


def write_csv(points: Sequence[Point], out: TextIO) -> None:
    """Writes the points as CSV: the values, time, area, energy, bytes read, whether the point is on the Pareto front, and the machine's resources."""
    names = list(points[0].values) if points else []
    counted = list(points[0].resources) if points else []
    writer = csv.writer(out, lineterminator="\n")
    titles = ["seconds", "cycles", "area_mm2", "energy_j", "read_bytes", "pareto"]
    writer.writerow([*names, *titles, *counted])
    for point, best in zip(points, pareto(points), strict=True):
        values: list[Any] = [f"{point.values[name]:g}" for name in names]
        rest = [repr(point.seconds), point.cycles, f"{point.area_mm2:.6g}", f"{point.joules:.6g}"]
        resources = [f"{point.resources[name]:g}" for name in counted]
        writer.writerow([*values, *rest, point.read_bytes, int(best), *resources])
