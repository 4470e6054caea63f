"""Many machines: what a program takes over values of parameters, in time, area, energy and counted
parts, and which points no other beats."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from jali._core.files import save_figure
from jali.errors import InvalidArgument
from jali.simulate.bootstraps import BootstrapProgram
from jali.simulate.machine import Machine
from jali.simulate.report import energy
from jali.simulate.roofline import plotting
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Kind
from jali.simulate.workloads import Program, StrixProgram

__all__ = ["CIPHERTEXTS", "Point", "draw", "grid", "pareto", "read_sweep", "sweep", "write_csv"]

MOST = 10_000  # points of a sweep
CIPHERTEXTS = "ciphertexts"
LIMIT = "_limit"  # of a resource's name: how many the device has


@dataclass(frozen=True)
class Point:
    """One machine of a sweep. values: what was set. seconds, joules: of the program; area_mm2,
    resources: of the machine."""

    values: Mapping[str, float]
    cycles: int
    seconds: float
    area_mm2: float
    joules: float
    read_bytes: int
    resources: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, float]:
        """The resources that a machine takes: all but the limits of its device."""
        return {k: v for k, v in self.resources.items() if not k.endswith(LIMIT)}

    @property
    def fits(self) -> bool:
        """Whether no resource NAME is more than the resource NAME_limit, if there is one."""
        return not any(self.is_beyond(name) for name in self.resources)

    def is_beyond(self, name: str) -> bool:
        """Whether this resource is more than its device has."""
        return self.resources[name] > self.resources.get(f"{name}{LIMIT}", math.inf)


def read_sweep(text: str) -> tuple[str, list[float]]:
    """The parameter and the values of "hbm_gbs=150:1200:150" (with the end) or "clp=2,4,8". Raises
    InvalidArgument."""
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
    """Simulates a program on a machine with each of the sets of values. `ciphertexts` is of the
    program, all other names are of the machine.
    progress: is called with (points done, points).

    Raises InvalidArgument for ciphertexts of a program that has a number of its own.
    """
    for done, values in enumerate(points, 1):
        changed = machine.changed({k: v for k, v in values.items() if k != CIPHERTEXTS})
        result = schedule(_sized(program, values.get(CIPHERTEXTS))(changed), changed)
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


def _sized(program: Program, ciphertexts: float | None) -> Program:
    """The program with so many ciphertexts."""
    if ciphertexts is None:
        return program
    if not isinstance(program, BootstrapProgram | StrixProgram):
        raise InvalidArgument(f"--sweep {CIPHERTEXTS} is for the workloads tfhe: and strix:, and this program has the number that it was recorded with")  # fmt: skip
    if ciphertexts % 1 or ciphertexts < 1:
        raise InvalidArgument(f"{CIPHERTEXTS} is a whole number of at least 1, not {ciphertexts:g}")
    return program.resized(int(ciphertexts))


def pareto(points: Sequence[Point]) -> list[bool]:
    """For each point whether its device holds it, and no other such point is at least as good in
    time, area, energy, every counted resource and the number of ciphertexts, and better in one."""
    keys = [
        (p.seconds, p.area_mm2, p.joules, *p.counts.values(), -p.values.get(CIPHERTEXTS, 0.0))
        for p in points
    ]
    fitting = {key for p, key in zip(points, keys, strict=True) if p.fits}
    front: list[tuple[float, ...]] = []
    for key in sorted(fitting):  # whoever beats a point comes before it in this order
        if not any(all(a <= b for a, b in zip(other, key, strict=True)) for other in front):
            front.append(key)
    best = set(front)
    return [p.fits and key in best for p, key in zip(points, keys, strict=True)]


def write_csv(points: Sequence[Point], out: TextIO) -> None:
    """Writes the points as CSV: the values, time, area, energy, bytes read, whether the point is on
    the Pareto front, and the machine's resources."""
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


def draw(points: Sequence[Point], file: Path, title: str) -> None:
    """Writes a picture of the time over the first swept value, a line for each combination of the
    others. Raises as roofline.draw."""
    pyplot = plotting(file)
    figure, place = pyplot.subplots(figsize=(7, 5))
    first, *others = list(points[0].values)
    lines: dict[tuple[float, ...], list[Point]] = {}
    for point in points:
        lines.setdefault(tuple(point.values[name] for name in others), []).append(point)
    for rest, mine in lines.items():
        label = ", ".join(f"{name} {value:g}" for name, value in zip(others, rest, strict=True))
        mine.sort(key=lambda point: point.values[first])
        place.plot([p.values[first] for p in mine], [1e3 * p.seconds for p in mine], ".-", linewidth=0.8, label=label)  # fmt: skip
    place.set_xlabel(first)
    place.set_ylabel("ms")
    place.set_title(title, fontsize=9)
    if others:
        place.legend(fontsize=7)
    place.grid(True, linewidth=0.3)
    save_figure(figure, file, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
