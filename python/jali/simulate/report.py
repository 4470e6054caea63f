"""What a simulation says: utilisation, why units wait, bytes, memory, energy, and the constants
behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali._core.console import bytes_text, seconds_text, table
from jali.errors import InvalidArgument
from jali.simulate.machine import Machine
from jali.simulate.roofline import Bounds, Roof, bounds, roofs
from jali.simulate.scheduler import Reason, Schedule, schedule
from jali.simulate.sensitivity import Dependence
from jali.simulate.steps import Entity, Kind, Steps
from jali.simulate.variations import Variations
from jali.simulate.workloads import Program

__all__ = ["Energy", "Report", "energy", "lines", "make_report", "occupancy", "show"]

DOUBT = 2.0  # an assumed energy may be half or twice as large


@dataclass(frozen=True)
class Energy:
    """Joules of one part of the machine. low, high: if each assumed number behind it is half or
    twice as large."""

    part: str
    joules: float
    low: float
    high: float


@dataclass(frozen=True)
class Report:
    """A schedule, its lower bounds, its energy, and the constants that it depends on. exact:
    whether those were found by simulation (or, for large programs, by the bounds). None: nobody
    looked. other_mode: the machine's other mode and the seconds there, if it has limits to leave
    out. bootstrappings: whole ones of TFHE in the program, 0 if there are none."""

    schedule: Schedule
    bounds: Bounds
    energies: list[Energy]
    constants: list[Dependence] | None
    exact: bool
    other_mode: tuple[str, float] | None = None
    bootstrappings: int = 0

    @property
    def roofs(self) -> list[Roof]:
        """The roofline of the program."""
        result = self.schedule
        moved = float(result.steps.bytes[result.residency.moved].sum())
        return roofs(result.steps, result.machine, self.bounds, moved, result.seconds)

    @property
    def joules(self) -> float:
        """The energy of the program."""
        return sum(e.joules for e in self.energies)


def make_report(
    program: Program,
    machine: Machine,
    progress: Callable[[int, int], None] | None = None,
    constants: bool = True,
) -> Report:
    """Simulates a program and says what there is to say.

    program: gives the steps for a machine, as workloads and lowered traces do.
    constants: whether to find what the calibrated and assumed constants change, and the time in the
        machine's other mode, which takes a simulation for each of them.
    progress: is called with (steps done, steps) of all simulations together, from the first to the
        last.

    Raises InvalidArgument for a program without steps.
    """
    steps = program(machine)
    if not len(steps):
        raise InvalidArgument(
            "this program has no steps: record a trace while an evaluator computes something"
        )
    runs = 1 + (Variations.runs_of(program, machine) if constants else 0)
    result = schedule(steps, machine, progress and (lambda done, all_: progress(done, all_ * runs)))
    limits = bounds(steps, machine, result.plan)
    varied = Variations(program, result, limits, progress)
    found = varied.constants() if constants else None
    other = varied.other_mode() if constants else None
    return Report(
        result,
        limits,
        energy(result),
        found,
        varied.exact,
        other,
        getattr(program, "bootstrappings", 0),
    )


def energy(result: Schedule) -> list[Energy]:
    """Energy by part: busy cycles x energy of a cycle, bytes x energy of a byte, and leakage x
    time."""
    machine, steps = result.machine, result.steps
    moved = result.residency.moved
    found: list[Energy] = []

    def add(part: str, amount: float, number: Any) -> None:
        joules = amount * float(number)
        doubt = DOUBT if number.source.startswith("assumed") else 1.0
        if joules:
            found.append(Energy(part, joules, joules / doubt, joules * doubt))

    for unit in machine.units.values():
        busy = sum(s.busy for s in result.servers if s.sort == "unit" and s.name == unit.name)
        add(unit.name, busy * 1e-12, unit.energy_pj)
        add(f"{unit.name} leakage", machine.instances(unit) * result.seconds, unit.leakage_w)
        if unit.memory and "coefficient" in machine.widths:
            words = sum(
                amount * unit.kinds[kind].passes.at(n) * unit.kinds[kind].words.at(n)
                for kind, n, amount in _elements(steps, unit.kinds)
            )
            memory = machine.memories[unit.memory]
            width = float(machine.widths["coefficient"])
            add(f"{memory.name} by {unit.name}", words * width * 1e-12, memory.energy_pj_byte)
    for memory in machine.memories.values():
        many = float(machine.clusters) if memory.scope == "cluster" else 1.0
        add(f"{memory.name} leakage", many * result.seconds, memory.leakage_w)
        held = np.isin(steps.entity, list(memory.holds)) & (steps.bytes > 0)
        add(memory.name, float(steps.bytes[held].sum()) * 1e-12, memory.energy_pj_byte)
    for channel in machine.channels.values():
        used = moved & np.isin(steps.entity, list(channel.carries))
        add(
            f"channel {channel.name}",
            float(steps.bytes[used].sum()) * 1e-12,
            channel.energy_pj_byte,
        )
    crossing = np.array(result.plan.bus_of, np.int64) >= 0
    for bus in machine.buses.values():
        used = crossing & np.isin(steps.entity, list(bus.carries))
        add(f"bus {bus.name}", float(steps.bytes[used].sum()) * 1e-12, bus.energy_pj_byte)
    for part in machine.parts.values():
        add(part.name, result.seconds, part.leakage_w)
    add("leakage", result.seconds, machine.leakage_w)
    return found


def _elements(steps: Steps, kinds: Any) -> Iterator[tuple[Kind, int, int]]:
    """(kind, n, elements) of the steps of some kinds."""
    for kind in kinds:
        chosen = steps.kind == kind
        for n in np.unique(steps.n[chosen]).tolist():
            count = int(steps.count[chosen & (steps.n == n)].astype(np.int64).sum())
            yield kind, int(n), int(n) * count


def occupancy(result: Schedule) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The bytes in use in each memory: (times, bytes from that time on). Bytes are in use from the
    start of a load to the end of the last step that uses them."""
    lives = result.residency.lives
    found = {}
    for index, name in enumerate(result.residency.capacity):
        mine = lives[lives[:, 0] == index]
        come, go = result.start[mine[:, 1]], result.end[mine[:, 2]]
        held = go > come  # what is never used takes no time
        times = np.concatenate([come[held], go[held]])
        changes = np.concatenate([mine[held, 3], -mine[held, 3]])
        order = np.lexsort((changes, times))  # what goes makes room for what comes
        found[name] = (times[order], np.cumsum(changes[order]))
    return found


def _totals(result: Schedule) -> list[dict[str, Any]]:
    """A row for each unit, channel and bus: the clusters together."""
    rows: dict[tuple[str, str], list[Any]] = {}
    for server in result.servers:
        row = rows.setdefault((server.sort, server.name), [0, 0, [0] * len(Reason), 0])
        row[0] += server.instances
        row[1] += server.busy
        row[2] = [a + b for a, b in zip(row[2], server.stalls, strict=True)]
        row[3] = max(row[3], server.busy / server.instances)
    found = []
    for (sort, name), (instances, busy, stalls, most) in rows.items():
        whole = max(1, instances * result.span)
        shares = {
            reason.name.lower(): stalls[reason] / whole for reason in Reason if stalls[reason]
        }
        found.append(
            {
                "what": sort,
                "name": name,
                "instances": instances,
                "busy_cycles": busy,
                "busy": busy / whole,
                "busiest": most / max(1, result.span),
                "stalls": shares,
            }
        )
    return found


def _kinds(result: Schedule) -> list[dict[str, Any]]:
    """What each unit is busy with: a row for each kind of step that it served."""
    plan = result.plan
    kind = result.steps.kind[np.array(plan.step_of, np.int64)]
    busy = np.array(plan.cycles, np.int64) * np.array(plan.wide, np.int64)
    unit_of = np.array([-1 if q.channel else i for i, q in enumerate(plan.queues)], np.int64)
    served = unit_of[plan.task_queue] >= 0
    cycles = np.bincount(kind[served], weights=busy[served], minlength=len(Kind))
    found = []
    for unit in result.machine.units.values():
        whole = max(1, result.machine.instances(unit) * result.span)
        for one in sorted(unit.kinds):
            if cycles[one]:
                share = float(cycles[one]) / whole
                found.append({"what": "kind", "name": one.name, "unit": unit.name, "busy": share})
    return found


def lines(report: Report, name: str) -> Iterator[dict[str, Any]]:
    """The report as objects, one for each line of JSON. name: of the program."""
    result = report.schedule
    machine, steps = result.machine, result.steps
    yield {
        "what": "summary",
        "program": name,
        "machine": machine.name,
        "mode": machine.mode,
        "changes": dict(machine.changes),
        "switched_off": sorted(machine.switched_off),
        "steps": len(steps),
        "cycles": result.span,
        "seconds": result.seconds,
        "bound": report.bounds.name,
        "bound_seconds": report.bounds.seconds,
        "area_mm2": machine.area_mm2,
        "resources": {key: float(value) for key, value in machine.resources.items()},
        "energy_j": report.joules,
        "energy_low_j": sum(e.low for e in report.energies),
        "energy_high_j": sum(e.high for e in report.energies),
        "bootstrappings": report.bootstrappings,
        "energy_j_a_bootstrapping": report.joules / report.bootstrappings
        if report.bootstrappings
        else None,
        "steps_by_kind": {kind.name: count for kind, count in steps.counts().items()},
    }
    by = "simulation" if report.exact else "bounds"
    if report.other_mode is not None:
        mode, seconds = report.other_mode
        yield {"what": "mode", "name": mode, "seconds": seconds, "by": by}
    yield from _totals(result)
    yield from _kinds(result)
    for roof in report.roofs:
        yield {
            "what": "roof",
            "name": roof.unit,
            "elements_a_byte": roof.elements_a_byte,
            "peak_a_second": roof.peak,
            "bytes_a_second": None if math.isinf(roof.bandwidth) else roof.bandwidth,
            "reached_a_second": roof.reached,
        }
    moved = result.residency.moved
    for entity in Entity:
        mine = steps.entity == entity
        loads, stores = mine & (steps.kind == Kind.LOAD), mine & (steps.kind == Kind.STORE)
        if loads.any() or stores.any():
            yield {
                "what": "entity",
                "name": entity.name.lower(),
                "asked_bytes": int(steps.bytes[loads].sum()),
                "read_bytes": int(steps.bytes[loads & moved].sum()),
                "written_bytes": int(steps.bytes[stores & moved].sum()),
            }
    for memory, (_, used) in occupancy(result).items():
        capacity = result.residency.capacity[memory]
        if len(used):
            yield {
                "what": "memory",
                "name": memory,
                "capacity_bytes": None if math.isinf(capacity) else int(capacity),
                "peak_bytes": int(used.max()),
                "overflow_bytes": result.residency.overflow[memory],
            }
    for part in report.energies:
        yield {
            "what": "energy",
            "name": part.part,
            "joules": part.joules,
            "low_j": part.low,
            "high_j": part.high,
        }
    for constant in report.constants or ():
        yield {
            "what": "constant",
            "name": constant.path,
            "source": constant.source,
            "value": constant.value,
            "change": constant.change,
            "by": by,
        }


def show(report: Report, name: str) -> None:
    """Prints the report as tables."""
    found = list(lines(report, name))
    head = found[0]
    print(
        f"{name} on {head['machine']} ({head['mode']}): {seconds_text(head['seconds'])}, {head['cycles']} cycles, "
        f"{head['steps']} steps"
    )
    if head["switched_off"]:
        print(f"  without the limits {', '.join(head['switched_off'])}")
    share = head["bound_seconds"] / head["seconds"] if head["seconds"] else 1.0
    print(
        f"  bounded by {head['bound']}: at least {seconds_text(head['bound_seconds'])} ({share:.0%})"
    )
    if report.other_mode is not None:
        mode, seconds = report.other_mode
        least = "" if report.exact else "at least "
        print(f"  in the mode {mode}: {least}{seconds_text(seconds)}")
    if head["area_mm2"]:
        print(f"  area {head['area_mm2']:.2f} mm2")
    if head["resources"]:
        print("  " + ", ".join(f"{key} {value:g}" for key, value in head["resources"].items()))
    reasons = [r.name.lower() for r in Reason]
    rows: list[tuple[Any, ...]] = []
    for r in found:
        if r["what"] not in ("unit", "channel", "bus") or not r["busy_cycles"]:
            continue
        stalls = (f"{r['stalls'].get(reason, 0):.1%}" for reason in reasons)
        title = f"{r['what']} {r['name']}"
        rows.append((title, r["instances"], f"{r['busy']:.1%}", f"{r['busiest']:.1%}", *stalls))
        of_it = [k for k in found if k["what"] == "kind" and r["what"] == "unit" and k["unit"] == r["name"]]  # fmt: skip
        if len(of_it) > 1:
            rows += [(f"  of it {k['name']}", "", f"{k['busy']:.1%}", "", *[""] * len(reasons)) for k in of_it]  # fmt: skip
    table(
        "Time, and what the rest was spent on", ["", "of them", "busy", "busiest", *reasons], rows
    )
    rows = [
        (r["name"], *(bytes_text(r[key]) for key in ("asked_bytes", "read_bytes", "written_bytes")))
        for r in found
        if r["what"] == "entity"
    ]
    if rows:
        table("Bytes off the chip", ["", "asked for", "read", "written"], rows)
    rows = [
        (
            r["name"],
            "no limit" if r["capacity_bytes"] is None else bytes_text(r["capacity_bytes"]),
            bytes_text(r["peak_bytes"]),
            bytes_text(r["overflow_bytes"]),
        )
        for r in found
        if r["what"] == "memory"
    ]
    if rows:
        table("Bytes on the chip", ["", "capacity", "peak", "found no room"], rows)
    _show_energy(report)
    if report.constants:
        how = "simulated" if report.exact else "by the bounds alone: the program is large"
        rows = [
            (
                c.path,
                c.source,
                f"{c.value:g}",
                "1.1 times is refused" if c.change is None else f"{c.change:+.2%}",
            )
            for c in report.constants
        ]
        table(f"Constants, and the time's change if each is 1.1 times as large ({how})", ["", "source", "value", "time"], rows)  # fmt: skip
    elif report.constants is not None:
        print("The time depends on no calibrated and no assumed constant.")


def _show_energy(report: Report) -> None:
    if not report.energies:
        print("The machine's file gives no energy.")
        return

    count = report.bootstrappings

    def row(name: str, joules: float, low: float, high: float) -> tuple[str, ...]:
        each = (f"{joules / count * 1e3:.4g}",) if count else ()
        return name, *(f"{value * 1e3:.4g}" for value in (joules, low, high)), *each

    rows = [row(e.part, e.joules, e.low, e.high) for e in report.energies]
    lows, highs = (sum(values) for values in zip(*((e.low, e.high) for e in report.energies), strict=True))  # fmt: skip
    rows.append(row("all", report.joules, lows, highs))
    titles = ["", "mJ", "from", "to", *(["mJ a bootstrapping"] if count else [])]
    table("Energy in mJ, and its range if assumed numbers are half or twice", titles, rows)
