"""Lower bounds of the time of a program: no schedule of the machine is quicker than any of them.

They are the coarsest of three models. The closed forms (strix.py, matvec.py) know a dataflow, and
the schedule knows every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jali._core import packages
from jali._core.files import save_figure
from jali.errors import InvalidArgument, Unsupported
from jali.simulate.machine import Machine
from jali.simulate.plan import Plan, make_plan
from jali.simulate.steps import Steps

__all__ = ["Bounds", "Roof", "bounds", "draw", "plotting", "roofs"]


@dataclass(frozen=True)
class Bounds:
    """Lower bounds in cycles.

    work: of each unit, its busy cycles over its pipelines.
    bytes: of each channel and bus, its busy cycles.
    path: the longest chain of dependences on a machine without end.
    name: the largest of them.
    """

    work: dict[str, float]
    bytes: dict[str, float]
    path: int
    frequency_hz: float

    def all(self) -> dict[str, float]:
        """Every bound by name."""
        return {**self.work, **self.bytes, "critical path": float(self.path)}

    @property
    def name(self) -> str:
        """What bounds the program."""
        found = self.all()
        return max(found, key=lambda name: found[name])

    @property
    def cycles(self) -> float:
        """The largest bound."""
        return max(self.all().values())

    @property
    def seconds(self) -> float:
        """The largest bound as a time."""
        return self.cycles / self.frequency_hz


def bounds(steps: Steps, machine: Machine, plan: Plan | None = None) -> Bounds:
    """The bounds of a program on a machine. Loads count that the machine's memories do not save."""
    plan = make_plan(steps, machine) if plan is None else plan
    busy = np.zeros(len(plan.queues), np.int64)
    np.add.at(busy, plan.task_queue, np.array(plan.cycles) * np.array(plan.wide))
    work: dict[str, float] = dict.fromkeys(machine.units, 0.0)
    moved: dict[str, float] = dict.fromkeys(machine.channels, 0.0)
    for queue, cycles in zip(plan.queues, busy.tolist(), strict=True):
        if queue.channel:
            moved[queue.name] += cycles
        else:
            work[queue.name] += cycles / machine.instances(machine.units[queue.name])
    buses = np.bincount(
        np.maximum(np.array(plan.bus_of), 0),
        weights=np.where(np.array(plan.bus_of) >= 0, np.array(plan.bus_cycles), 0),
        minlength=len(plan.buses),
    )
    for i, (name, _) in enumerate(plan.buses):
        label = f"bus {name}"
        moved[label] = max(moved.get(label, 0.0), float(buses[i]))
    return Bounds(work, moved, _critical_path(steps, plan), float(machine.frequency_hz))


def _critical_path(steps: Steps, plan: Plan) -> int:
    """The longest chain, with streamed dependences as the schedule has them."""
    size = len(steps)
    tasks_step = np.array(plan.step_of)
    cycles, latency = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.maximum.at(cycles, tasks_step, np.array(plan.cycles))
    np.maximum.at(latency, tasks_step, np.array(plan.latency))
    ready, flow = [0] * size, [0] * size
    longest = 0
    users_start, users = plan.users_start, plan.users
    streams_start, streams = plan.streams_start, plan.streams
    moves = plan.is_move
    for step, (takes, after) in enumerate(zip(cycles.tolist(), latency.tolist(), strict=True)):
        start = ready[step]
        end = max(start + takes, flow[step]) + after
        first = end if moves[step] else start + after
        if plan.bus_of[step] >= 0:
            crossed = start + (after if takes else 0) + plan.bus_cycles[step]
            end = first = max(end, crossed) + plan.bus_latency[plan.bus_of[step]]
        longest = max(longest, end)
        for edge in range(users_start[step], users_start[step + 1]):
            user = users[edge]
            if user >= 0 and ready[user] < end:
                ready[user] = end
        for edge in range(streams_start[step], streams_start[step + 1]):
            user = streams[edge]
            ready[user] = max(ready[user], first)
            flow[user] = max(flow[user], end)
    return longest


@dataclass(frozen=True)
class Roof:
    """A unit's place under its roof. elements_a_byte: of its work for each byte that crosses the
    channels. peak: elements a second that all of its pipelines do of this mix of work. reached:
    elements a second of the whole program's time, at most the peak and elements_a_byte x
    bandwidth."""

    unit: str
    elements_a_byte: float
    peak: float
    bandwidth: float
    reached: float


def roofs(
    steps: Steps, machine: Machine, limits: Bounds, moved_bytes: float, seconds: float
) -> list[Roof]:
    """The roofs of the units that work in a program. limits: of the program. moved_bytes: over all
    channels. No bytes or no time have none."""
    bandwidth = sum(float(c.bytes_a_second) for c in machine.channels.values())
    work = steps.elements()
    found = []
    for unit in machine.units.values():
        elements = sum(work.get(kind, 0) for kind in unit.kinds)
        cycles = limits.work[unit.name]
        if elements and cycles and moved_bytes and seconds:
            peak = elements / cycles * float(machine.frequency_hz)
            reached = elements / seconds
            found.append(Roof(unit.name, elements / moved_bytes, peak, bandwidth, reached))
    return found


def plotting(file: Path) -> Any:
    """matplotlib's pyplot for a picture in a file. Raises InvalidArgument for a name that does not
    end in .png, Unsupported without matplotlib."""
    if file.suffix != ".png":
        raise InvalidArgument(f"{file}: give a name that ends in .png")
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise Unsupported(f"plots need matplotlib: {packages.install('matplotlib')}") from None
    return pyplot


def draw(file: Path, found: Sequence[Roof], title: str) -> None:
    """Writes a picture: for each unit its roof, and the rate that the program reached over the
    elements that it has for each byte from off chip.

    Raises InvalidArgument for a name that does not end in .png, Unsupported without matplotlib.
    """
    pyplot = plotting(file)
    figure, place = pyplot.subplots(figsize=(7, 5))
    for roof in found:
        line = np.geomspace(roof.elements_a_byte / 100, roof.elements_a_byte * 100, 200)
        height = np.minimum(roof.peak, line * roof.bandwidth)
        drawn = place.plot(line, height, linewidth=0.8, label=roof.unit)
        place.plot([roof.elements_a_byte], [roof.reached], "o", color=drawn[0].get_color())
    place.set_xscale("log")
    place.set_yscale("log")
    place.set_xlabel("elements a byte from off chip")
    place.set_ylabel("elements a second")
    place.set_title(title, fontsize=9)
    if place.lines:
        place.legend(fontsize=7)
    place.grid(True, which="both", linewidth=0.3)
    save_figure(figure, file, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
