"""Prepares a simulation: which queue each step goes to, for how many cycles, and who waits for
whom."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.errors import InvalidArgument, Unsupported
from jali.simulate.components import LONGEST, Unit, whole_cycles
from jali.simulate.machine import Machine, shipped
from jali.simulate.residency import Residency, place
from jali.simulate.steps import ANY, MOVES, Entity, Kind, Steps

__all__ = ["INLINE", "SPREAD", "Plan", "Queue", "make_plan"]

PERMUTED = (Kind.NTT, Kind.INTT, Kind.AUTOMORPHISM)  # what the buffers for n_max hold
INLINE, SPREAD = -1, -2  # queue_of a step that no queue serves, and of one that several serve
Ints = Any  # an array("i") or array("q"), which is quicker than an ndarray where single elements are read


@dataclass(frozen=True)
class Queue:
    """Steps that are issued in order: of one unit in one cluster, or the loads or the stores
    (``second``) of a channel."""

    name: str
    cluster: int
    instances: int
    channel: bool
    second: bool = False


@dataclass(frozen=True)
class Plan:
    """A program made ready for a machine.

    A task is the part of a step that one queue does; all steps but those spread over clusters have
    at most one. Tasks of queue q are order[queue_start[q] : queue_start[q + 1]]. users: for each
    step the steps that wait for its end, and -1 - user if they wait for room;
    streams: those that wait for its first output.
    """

    residency: Residency
    queues: list[Queue]
    queue_start: list[int]
    order: Ints
    step_of: Ints
    wide: Ints
    cycles: Ints
    latency: Ints
    queue_of: Ints
    tasks_of: NDArray[np.int64]
    first_task: NDArray[np.int64]
    task_queue: NDArray[np.int64]
    indegree: NDArray[np.int64]
    users_start: Ints
    users: Ints
    streams_start: Ints
    streams: Ints
    is_move: Ints
    buses: list[tuple[str, int]]
    bus_of: Ints
    bus_cycles: Ints
    bus_latency: list[int]

    def spread(self, step: int) -> list[int]:
        """The queues of a step that several serve."""
        first = int(self.first_task[step])
        return [int(q) for q in self.task_queue[first : first + int(self.tasks_of[step])]]


def _ints(values: NDArray[Any], code: str = "q") -> Ints:
    """The same numbers in an array.array."""
    return array(code, np.ascontiguousarray(values, dtype=np.dtype(code)).tobytes())


class _Tasks:
    """Columns of tasks, collected a group of steps at a time."""

    def __init__(self) -> None:
        self.columns: list[NDArray[np.int64]] = []  # rows: step, queue, wide, cycles, latency

    def add(self, *columns: Any) -> None:
        self.columns.append(np.stack([np.asarray(c, np.int64) for c in columns]))

    def sorted(self) -> NDArray[np.int64]:
        if not self.columns:
            return np.zeros((5, 0), np.int64)
        table = np.concatenate(self.columns, axis=1)
        return table[:, np.argsort(table[0], kind="stable")]


def _unit_tasks(
    steps: Steps, rows: NDArray[np.int64], unit: Unit, machine: Machine, first: int, tasks: _Tasks
) -> list[Queue]:
    """Adds the tasks of a unit's steps; returns its queues, the first of which has the number
    ``first``."""
    clusters = int(float(machine.clusters)) if unit.scope == "cluster" else 1
    instances = int(float(unit.count))
    lanes = steps.lane[rows].astype(np.int64)
    count = steps.count[rows].astype(np.int64)
    step, share, queue = rows, count, np.where(lanes == ANY, 0, lanes % clusters)
    spread = (lanes == ANY) & (clusters > 1)
    if spread.any():
        # A step without a lane gives each cluster its share; the remainder goes round, so that it
        # is even over many steps.
        parts = np.where(spread, np.minimum(count, clusters), 1)
        before = np.cumsum(np.where(spread, count, 0)) - np.where(spread, count, 0)
        at = np.repeat(np.arange(len(rows)), parts)
        nth = np.arange(len(at)) - np.repeat(np.cumsum(parts) - parts, parts)
        step = rows[at]
        share = np.where(spread[at], (count[at] - nth + clusters - 1) // clusters, count[at])
        queue = np.where(spread[at], (before[at] + nth) % clusters, queue[at])
    wide = np.minimum(share, instances)
    each = -(-share // wide)
    cycles, latency = _timings(steps, step, each, unit, machine)
    tasks.add(step, queue + first, wide, cycles, latency)
    cluster = range(clusters) if unit.scope == "cluster" else [-1]
    return [Queue(unit.name, c, instances, False) for c in cluster]


def _timings(
    steps: Steps, step: NDArray[np.int64], each: NDArray[np.int64], unit: Unit, machine: Machine
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles and latency of each task. They are computed once for each (kind, n, polynomials)."""
    kinds, lengths = steps.kind[step].astype(np.int64), steps.n[step].astype(np.int64)
    shapes, shape = np.unique(kinds << 32 | lengths, return_inverse=True)
    both, at = np.unique(shape.astype(np.int64) << 32 | each, return_inverse=True)
    width = 0.0
    if unit.memory and "coefficient" in machine.widths:
        width = float(machine.memories[unit.memory].bytes_a_cycle) / float(
            machine.widths["coefficient"]
        )
    cycles, latency = np.zeros(len(both), np.int64), np.zeros(len(both), np.int64)
    for i, key in enumerate(both.tolist()):
        kind, n = Kind(int(shapes[key >> 32]) >> 32), int(shapes[key >> 32]) & 0xFFFFFFFF
        cycles[i] = max(
            1, unit.cycles(kind, n, key & 0xFFFFFFFF, 0.0 if math.isinf(width) else width)
        )
        latency[i] = unit.delay(kind, n)
    return cycles[at], latency[at]


def _channel_tasks(
    steps: Steps, machine: Machine, moved: NDArray[np.bool_], first: int, tasks: _Tasks
) -> list[Queue]:
    """Adds the tasks of loads and stores that leave the chip; returns two queues a channel."""
    by_entity = {e: i for i, c in enumerate(machine.channels.values()) for e in c.carries}
    frequency = float(machine.frequency_hz)
    queues = []
    for name in machine.channels:
        queues += [Queue(name, -1, 1, True), Queue(name, -1, 1, True, second=True)]
    rows = np.flatnonzero(moved)
    where = np.full(len(Entity), -1)
    for entity, index in by_entity.items():
        where[entity] = index
    channel = where[steps.entity[rows]]
    if (channel < 0).any():
        entity = Entity(int(steps.entity[rows][channel < 0][0]))
        raise Unsupported(
            f"the machine {machine.name} has no channel for the entity {entity.name.lower()}: add it to 'carries' of one"
        )
    rates = [float(c.bytes_a_second) / frequency for c in machine.channels.values()]
    waits = [
        whole_cycles(float(c.latency), f"channels.{name}") for name, c in machine.channels.items()
    ]
    cycles = _moves(steps.bytes[rows], np.array(rates)[channel], f"the channels of {machine.name}")
    stores = steps.kind[rows] == Kind.STORE
    queue = first + 2 * channel + stores
    tasks.add(rows, queue, np.ones(len(rows)), np.maximum(cycles, 1), np.array(waits)[channel])
    return queues


def _moves(bytes: NDArray[np.int64], rates: NDArray[np.float64], where: str) -> NDArray[np.int64]:
    """The cycles of loads and stores at so many bytes a cycle."""
    with np.errstate(over="ignore"):
        cycles = np.ceil(bytes / rates - 1e-9)
    whole_cycles(float(cycles.max(initial=0)), where)
    return cycles.astype(np.int64)


def _buses(
    steps: Steps, machine: Machine, crosses: NDArray[np.bool_]
) -> tuple[list[tuple[str, int]], NDArray[np.int64], NDArray[np.int64], list[int]]:
    """The buses, the bus of each step, its cycles there, and the latency of each bus."""
    buses: list[tuple[str, int]] = []
    latency: list[int] = []
    bus_of = np.full(len(steps), -1, np.int64)
    cycles = np.zeros(len(steps), np.int64)
    clusters = int(float(machine.clusters))
    for bus in machine.buses.values():
        many, rate = int(float(bus.count)), float(bus.bytes_a_cycle)
        rows = np.flatnonzero(crosses & np.isin(steps.entity, list(bus.carries)))
        if not math.isinf(rate):
            lanes = steps.lane[rows].astype(np.int64)
            bus_of[rows] = len(buses) + np.where(
                lanes == ANY, 0, lanes % clusters * many // clusters
            )
            rates = np.where(lanes == ANY, rate * many, rate)
            cycles[rows] = _moves(steps.bytes[rows], rates, f"buses.{bus.name}")
        buses += [(bus.name, i) for i in range(many)]
        latency += [whole_cycles(float(bus.latency), f"buses.{bus.name}")] * many
    return buses, bus_of, cycles, latency


def _rows(of: NDArray[Any], values: NDArray[Any], size: int) -> tuple[Ints, Ints]:
    """Compressed rows: the values of each step, in the order given."""
    order = np.argsort(of, kind="stable")
    start = np.searchsorted(of[order], np.arange(size + 1))
    return _ints(start, "i"), _ints(values[order], "i")


def make_plan(steps: Steps, machine: Machine) -> Plan:
    """Prepares steps for a machine. Raises Unsupported if it cannot run one of them, also if a
    transform or an automorphism is longer than its parameter n_max."""
    size = len(steps)
    residency = place(steps, machine)
    is_move = np.isin(steps.kind, list(MOVES))
    for kind in steps.counts():
        if kind not in MOVES and machine.unit_of(kind) is None:
            others = [name for name in shipped() if Machine.load(name).unit_of(kind) is not None]
            known = f"use one that has ({', '.join(others)}), or " if others else ""
            raise Unsupported(
                f"the machine {machine.name} has no unit for {kind.name}: {known}add [units.NAME.kinds.{kind.name}] to its file"
            )
    in_network = np.isin(steps.kind, PERMUTED)
    machine.check_degree(int(steps.n[in_network].max(initial=0)))
    tasks = _Tasks()
    queues: list[Queue] = []
    for unit in machine.units.values():
        rows = np.flatnonzero(np.isin(steps.kind, list(unit.kinds)))
        queues += _unit_tasks(steps, rows, unit, machine, len(queues), tasks)
    queues += _channel_tasks(steps, machine, residency.moved, len(queues), tasks)
    step_of, queue, wide, cycles, latency = tasks.sorted()
    order = np.argsort(queue, kind="stable")
    tasks_of = np.bincount(step_of, minlength=size)
    first_task = np.cumsum(tasks_of) - tasks_of
    queue_of = np.full(size, INLINE, np.int64)
    queue_of[step_of] = queue
    queue_of[tasks_of > 1] = SPREAD
    crosses = residency.moved | (steps.kind == Kind.MOVE)
    crosses |= (steps.kind == Kind.LOAD) & ~residency.moved & ~residency.in_cluster
    buses, bus_of, bus_cycles, bus_latency = _buses(steps, machine, crosses)
    most = float((cycles * wide.astype(np.float64)).sum() + latency.astype(np.float64).sum())
    most += float(bus_cycles.astype(np.float64).sum()) + size * float(max(bus_latency, default=0))
    if not most < LONGEST:
        raise InvalidArgument(
            f"this program may take {most:.2g} cycles on {machine.name}; a simulation counts up to 2^61 of them"
        )
    after = np.repeat(np.arange(size), np.diff(steps.dep_start))
    whole = ~steps.streamed
    room = residency.room
    of = np.concatenate([steps.deps[whole], residency.before])
    users = np.concatenate(
        [after[whole], np.where(room, -1 - residency.after, residency.after)]
    ).astype(np.int64)
    users_start, users_flat = _rows(of, users, size)
    streams_start, streams = _rows(steps.deps[~whole], after[~whole], size)
    indegree = np.bincount(after, minlength=size) + np.bincount(residency.after, minlength=size)
    return Plan(
        residency=residency,
        queues=queues,
        queue_start=np.searchsorted(queue[order], np.arange(len(queues) + 1)).tolist(),
        order=_ints(order),
        step_of=_ints(step_of),
        wide=_ints(wide, "i"),
        cycles=_ints(cycles),
        latency=_ints(latency),
        queue_of=_ints(queue_of, "i"),
        tasks_of=tasks_of,
        first_task=first_task,
        task_queue=queue,
        indegree=indegree,
        users_start=users_start,
        users=users_flat,
        streams_start=streams_start,
        streams=streams,
        is_move=_ints(is_move, "b"),
        buses=buses,
        bus_of=_ints(bus_of, "i"),
        bus_cycles=_ints(bus_cycles),
        bus_latency=bus_latency,
    )
