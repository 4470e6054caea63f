"""When each step runs: a discrete-event simulation of the machine, exact to the cycle.

Each unit of a cluster issues its steps in program order. Loads of a channel are issued in program
order, and so are stores; if the first load and the first store are both ready, the earlier one in
the program goes. A load runs ahead as far as there is room (residency.py), which is double
buffering where the memory has twice the room of an operand. Buses serve in order of arrival.
Nothing is random, and no cycle is stepped through in which nothing happens.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.simulate.machine import Machine
from jali.simulate.plan import INLINE, Plan, make_plan
from jali.simulate.residency import Residency
from jali.simulate.steps import Steps

__all__ = ["Reason", "Schedule", "schedule"]

Progress = Callable[[int, int], None]
EVERY = 1 << 16  # steps between two calls of progress


class Reason(IntEnum):
    """Why a unit or a channel was idle before it started a step: what the step waited for last."""

    DEPENDENCE = 0  # the result of a step that ran as soon as it could
    UNIT = 1  # the result of a step that had waited for its own unit
    BUFFER = 2  # room on the chip
    BUS = 3  # a bus
    DRAM = 4  # an off-chip channel
    DONE = 5  # no step was left


@dataclass(frozen=True)
class Server:
    """What one queue did. busy + sum of stalls = instances x span. unit: the name of the unit,
    channel or bus; cluster: its cluster, or -1."""

    name: str
    sort: str  # "unit", "channel" or "bus"
    cluster: int
    instances: int
    busy: int
    stalls: tuple[int, ...]  # cycles by Reason


@dataclass(frozen=True)
class Schedule:
    """The result of a simulation. Times are cycles of the machine.

    start, end: of each step, task_start: of each task of the plan; a step that needs nothing (a
        hit) has both at the time when its operand is there.
    ready: when the last of its dependences ended.
    span: the end of the last step.
    """

    steps: Steps
    machine: Machine
    plan: Plan
    residency: Residency
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    ready: NDArray[np.int64]
    task_start: NDArray[np.int64]
    servers: list[Server]
    span: int

    @property
    def seconds(self) -> float:
        """The time from the first step to the last."""
        return self.span / float(self.machine.frequency_hz)


def schedule(
    steps: Steps, machine: Machine, progress: Progress | None = None, plan: Plan | None = None
) -> Schedule:
    """Simulates a program on a machine. progress: is called with (steps done, steps). plan: of
    make_plan, if it is there. Raises Unsupported if the machine has no unit for a kind of step, or
    no channel for an entity."""
    plan = make_plan(steps, machine) if plan is None else plan
    run = _Run(len(steps), plan, progress)
    run.run()
    servers = run.finish()
    return Schedule(
        steps=steps,
        machine=machine,
        plan=plan,
        residency=plan.residency,
        start=np.array(run.start, np.int64),
        end=np.array(run.end, np.int64),
        ready=np.array(run.ready, np.int64),
        task_start=np.array(run.task_start, np.int64),
        servers=servers,
        span=run.span,
    )


def _zeros(code: str, size: int) -> Any:
    return array(code, bytes(array(code).itemsize * size))


class _Run:
    """The state of one simulation.

    An event is (time, number): number i < size says that step i ended, size + i that its first
    output is there, 2 size + q that an instance of queue q is free. Events of one time are all
    handled before anything starts at that time, and then queues go by their number.
    """

    def __init__(self, size: int, plan: Plan, progress: Progress | None):
        self.size, self.plan, self.progress = size, plan, progress
        self.waits = array("i", plan.indegree.astype(np.int32).tobytes())
        self.left = array("i", plan.tasks_of.astype(np.int32).tobytes())  # tasks not started
        self.start, self.end, self.ready = (_zeros("q", size) for _ in range(3))
        self.flow = _zeros("q", size)  # the end of the steps whose output streams in
        self.first = _zeros("q", size)  # when the first output is there
        self.cause = _zeros("B", size)
        self.task_start = _zeros("q", len(plan.step_of))
        self.times: list[int] = []
        self.events: dict[int, list[int]] = {}
        queues = len(plan.queues)
        self.head = list(plan.queue_start[:-1])
        self.free = [[0] * queue.instances for queue in plan.queues]
        self.busy = [0] * queues
        self.stalls = [[0] * len(Reason) for _ in range(queues)]
        self.last_reason = [0] * queues
        self.bus_free = [0] * len(plan.buses)
        self.bus_busy = [0] * len(plan.buses)
        self.dirty: set[int] = set()
        self.span = self.done = 0

    def add(self, time: int, event: int) -> None:
        found = self.events.get(time)
        if found is None:
            self.events[time] = [event]
            heappush(self.times, time)
        else:
            found.append(event)

    def run(self) -> None:
        plan, waits = self.plan, self.waits
        self.dirty.update(range(len(plan.queues)))
        self.events[0] = []
        heappush(self.times, 0)
        for step in range(self.size):
            if not waits[step] and plan.queue_of[step] == INLINE:
                self.start_inline(step, 0)
        while self.times:
            now = heappop(self.times)
            events = self.events[now]
            while events or self.dirty:
                for event in events:  # may grow meanwhile
                    if event < self.size:
                        self.ended(event, now)
                    elif event < 2 * self.size:
                        self.release(event - self.size, now, plan.streams_start, plan.streams)
                    else:
                        self.dirty.add(event - 2 * self.size)
                events.clear()
                dirty = sorted(self.dirty)
                self.dirty.clear()
                for queue in dirty:
                    if plan.queues[queue].channel:
                        self.issue_channel(queue, now)
                    else:
                        self.issue(queue, now)
            del self.events[now]

    def ended(self, step: int, now: int) -> None:
        plan = self.plan
        queue = plan.queue_of[step]
        if queue >= 0:
            self.dirty.add(queue)
        self.done += 1
        if self.progress is not None and self.done % EVERY == 0:
            self.progress(self.done, self.size)
        self.release(step, now, plan.users_start, plan.users)

    def release(self, step: int, now: int, starts: Any, users: Any) -> None:
        """Tells the users of a step that it ended, or that its first output is there."""
        plan, waits = self.plan, self.waits
        for edge in range(starts[step], starts[step + 1]):
            user = users[edge]
            if user < 0:  # a pair about room
                user = -1 - user
                self.cause[user] = Reason.BUFFER
            else:
                self.cause[user] = self.reason_after(step)
            if starts is plan.streams_start and self.end[step] > self.flow[user]:
                self.flow[user] = self.end[step]
            waits[user] -= 1
            if not waits[user]:
                self.ready[user] = now
                queue = plan.queue_of[user]
                if queue >= 0:
                    self.dirty.add(queue)
                elif queue == INLINE:
                    self.start_inline(user, now)
                else:
                    self.dirty.update(plan.spread(user))

    def reason_after(self, step: int) -> int:
        """Why a unit is idle that waits for the end of this step."""
        if self.plan.is_move[step]:
            return int(self.cause[step])
        return Reason.UNIT if self.start[step] > self.ready[step] else Reason.DEPENDENCE

    def start_inline(self, step: int, now: int) -> None:
        """Starts a step that no queue serves: a hit, a store that stays, or a move on a bus."""
        plan = self.plan
        begin = end = now
        bus = plan.bus_of[step]
        if bus >= 0:
            begin, end = self.cross(step, bus, now, now)
        self.start[step], self.end[step], self.first[step] = begin, end, end
        self.finish_at(step, end)

    def cross(self, step: int, bus: int, now: int, until: int) -> tuple[int, int]:
        """Sends a step's bytes over a bus from now on, the last of them not before ``until``;
        (start, end) on the bus."""
        plan = self.plan
        begin = max(now, self.bus_free[bus])
        cycles = plan.bus_cycles[step]
        self.bus_busy[bus] += cycles
        self.bus_free[bus] = begin + cycles
        end = max(begin + cycles, until) + plan.bus_latency[bus]
        if begin > now or (
            begin + cycles > until > now
        ):  # it waited for the bus, or the bus is slower than the channel
            self.cause[step] = Reason.BUS
        return begin, end

    def finish_at(self, step: int, end: int) -> None:
        if end > self.span:
            self.span = end
        self.add(end, step)
        plan = self.plan
        if plan.streams_start[step] < plan.streams_start[step + 1]:
            self.add(max(self.first[step], self.start[step]), self.size + step)

    def idle(self, queue: int, step: int, gap: int, now: int) -> None:
        """Accounts for idle cycles of one instance before a step."""
        if gap:
            if self.ready[step] == now:
                self.last_reason[queue] = self.cause[step]
            self.stalls[queue][self.last_reason[queue]] += gap

    def issue(self, queue: int, now: int) -> None:
        """Starts what can start in the queue of a unit."""
        plan, free, waits = self.plan, self.free[queue], self.waits
        head, stop = self.head[queue], plan.queue_start[queue + 1]
        while head < stop:
            task = plan.order[head]
            step = plan.step_of[task]
            if waits[step]:
                break
            wide = plan.wide[task]
            if free[wide - 1] > now:
                break
            cycles, latency = plan.cycles[task], plan.latency[task]
            until = now + cycles
            flow = self.flow[step]
            if flow > until:  # the input comes slower than the unit could take it
                self.stalls[queue][self.reason_streamed(step)] += (flow - until) * wide
                until = flow
            for i in range(wide):
                self.idle(queue, step, now - free[i], now)
            self.busy[queue] += cycles * wide
            if len(free) == 1:
                free[0] = until
            else:
                free[:wide] = [until] * wide
                free.sort()
            head += 1
            self.task_start[task] = now
            self.began(step, now, until, latency, queue)
        self.head[queue] = head

    def reason_streamed(self, step: int) -> int:
        return int(self.cause[step]) if self.cause[step] != Reason.UNIT else int(Reason.DEPENDENCE)

    def began(self, step: int, now: int, until: int, latency: int, queue: int) -> None:
        """Notes that a task began, and, with the last task of a step, when the step ends."""
        left = self.left[step] - 1
        self.left[step] = left
        end, first = until + latency, now + latency
        single = self.plan.queue_of[step] >= 0
        if single or self.end[step] == 0:
            self.start[step], self.end[step], self.first[step] = now, end, first
        else:
            self.end[step] = max(self.end[step], end)
            self.first[step] = max(self.first[step], first)
        if not left:
            self.finish_at(step, self.end[step])
        if until != end or not single:
            self.add(until, 2 * self.size + queue)

    def issue_channel(self, queue: int, now: int) -> None:
        """Starts a load or a store; the queues of the loads and of the stores of a channel are
        neighbours and share its time."""
        plan, waits = self.plan, self.waits
        loads = queue - plan.queues[queue].second
        free = self.free[loads]
        while free[0] <= now:
            best, chosen = self.size, -1
            for candidate in (loads, loads + 1):
                if self.head[candidate] < plan.queue_start[candidate + 1]:
                    step = plan.step_of[plan.order[self.head[candidate]]]
                    if not waits[step] and step < best:
                        best, chosen = step, candidate
            if chosen < 0:
                break
            task = plan.order[self.head[chosen]]
            self.head[chosen] += 1
            self.task_start[task] = now
            cycles, latency = plan.cycles[task], plan.latency[task]
            self.idle(loads, best, now - free[0], now)
            if self.cause[best] != Reason.BUFFER or self.ready[best] != now:
                self.cause[best] = Reason.DRAM
            self.busy[loads] += cycles
            free[0] = now + cycles
            end = now + cycles + latency
            bus = plan.bus_of[best]
            if bus >= 0:
                end = self.cross(best, bus, now + latency, end)[1]
            self.left[best] = 0
            self.start[best], self.end[best], self.first[best] = now, end, end
            self.finish_at(best, end)
            if end != free[0]:
                self.add(free[0], 2 * self.size + loads)

    def finish(self) -> list[Server]:
        """Checks that every step ran, and closes the accounts."""
        assert self.done == self.size, "a step never ran: the dependences have a circle"
        servers = []
        for index, queue in enumerate(self.plan.queues):
            if queue.channel and queue.second:
                continue
            stalls = self.stalls[index]
            stalls[Reason.DONE] += sum(self.span - min(f, self.span) for f in self.free[index])
            sort = "channel" if queue.channel else "unit"
            servers.append(
                Server(
                    queue.name,
                    sort,
                    queue.cluster,
                    queue.instances,
                    self.busy[index],
                    tuple(stalls),
                )
            )
        for index, (name, group) in enumerate(self.plan.buses):
            rest = [0] * len(Reason)
            rest[Reason.DONE] = self.span - self.bus_busy[index]
            servers.append(Server(name, "bus", group, 1, self.bus_busy[index], tuple(rest)))
        return servers
