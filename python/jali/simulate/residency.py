"""Which loads find their operand on the chip, which stores leave it, and what has to end before
there is room.

The decision is made in program order, before anything is timed, so it is the same for every speed
of the machine. When an operand needs room, operands without a later use go first, and then those
whose next use is farthest (Belady, "A study of replacement algorithms for a virtual-storage
computer", 1966). An operand that is in use by a step after the load in program order never goes.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from jali.simulate.components import Memory
from jali.simulate.machine import Machine
from jali.simulate.steps import ANY, Entity, Kind, Steps

__all__ = ["Residency", "place"]

NEVER = 1 << 60


@dataclass(frozen=True)
class Residency:
    """What place() decided.

    moved: for each step, whether a load or store uses off-chip memory.
    in_cluster: whether a load is a hit in a memory of the clusters, which needs no bus.
    before, after: pairs of steps; ``after`` waits for ``before``.
    room: whether the pair is about room (or about data).
    overflow: bytes that were loaded or stored while no room could be made, by memory.
    lives: (memory index, step at which the bytes come, last step that uses them, bytes) of
        everything that was held.
    capacity: bytes by memory.
    """

    moved: NDArray[np.bool_]
    in_cluster: NDArray[np.bool_]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    room: NDArray[np.bool_]
    overflow: dict[str, int]
    lives: NDArray[np.int64]
    capacity: dict[str, float]


@dataclass(eq=False)
class _Entry:
    """One version of an operand in a memory. events: the loads and the store that made or used it.
    pinned: the last step that uses it, as far as it is known.
    store: the store that made it, or -1."""

    pool: _Pool
    operand: int
    bytes: int
    next_use: int
    pinned: int
    events: list[int]
    store: int
    version: int = 0


class _Pool:
    """One memory. Entries go by (no later use first, then farthest use), in a heap whose old items
    are skipped.

    free: the room that nothing holds, in pieces, each with the steps that have to end before it is
        free in time as well.
    """

    def __init__(self, index: int, capacity: float):
        self.index, self.capacity, self.used = index, capacity, 0
        self.free: deque[tuple[float, tuple[int, ...]]] = deque([(capacity, ())])
        self.heap: list[tuple[int, int, int, int, _Entry]] = []
        self.overflow = 0
        self.lives: list[tuple[int, int, int, int]] = []

    def push(self, entry: _Entry) -> None:
        entry.version += 1
        item = (-entry.next_use, entry.pinned, entry.events[0], entry.version, entry)
        heappush(self.heap, item)

    def make_room(self, size: int, step: int) -> list[_Entry] | None:
        """Evicts until size bytes are free; None if no room can be made, and then nothing is
        evicted."""
        if size > self.capacity:
            return None
        gone: list[_Entry] = []
        kept = []
        free = self.capacity - self.used
        while free < size and self.heap:
            item = heappop(self.heap)
            entry = item[4]
            if item[3] != entry.version:
                continue
            if entry.pinned >= step:
                kept.append(item)
                continue
            gone.append(entry)
            free += entry.bytes
        for item in kept:
            heappush(self.heap, item)
        if free < size:
            for entry in gone:
                self.push(entry)
            return None
        for entry in gone:
            entry.version = -1
            self.drop(entry)
        return gone

    def take(self, size: int) -> set[int]:
        """Takes so many bytes of the free pieces, the oldest first. Gives the steps for whose end
        they wait."""
        users: set[int] = set()
        left = float(size)
        while left > 0:
            bytes_, waits = self.free.popleft()
            users.update(waits)
            if bytes_ > left:
                self.free.appendleft((bytes_ - left, waits))
            left -= bytes_
        self.used += size
        return users

    def drop(self, entry: _Entry) -> None:
        self.used -= entry.bytes
        self.lives.append((self.index, entry.events[0], entry.pinned, entry.bytes))


def _last_users(steps: Steps) -> NDArray[np.int64]:
    """For each step the last step that depends on it, or itself."""
    last = np.arange(len(steps), dtype=np.int64)
    of = np.repeat(np.arange(len(steps)), np.diff(steps.dep_start))
    np.maximum.at(last, steps.deps, of)
    return last


def _next(
    operands: NDArray[np.int64], at: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> list[int]:
    """For each access the place of the next chosen access of its operand, or NEVER."""
    following: dict[int, int] = {}
    found = [NEVER] * len(at)
    for i in range(len(at) - 1, -1, -1):
        operand = int(operands[i])
        if operand != ANY:
            found[i] = following.get(operand, NEVER)
            if chosen[i]:
                following[operand] = int(at[i])
    return found


def place(steps: Steps, machine: Machine) -> Residency:
    """Decides for every load and store of a program. An entity that no memory holds always moves,
    and its loads run ahead as far as the buffer of its channel has room."""
    size = len(steps)
    is_access = (steps.kind == Kind.LOAD) | (steps.kind == Kind.STORE)
    at = np.flatnonzero(is_access)
    loads = steps.kind[at] == Kind.LOAD
    operands, entities, sizes = steps.operand[at], steps.entity[at], steps.bytes[at]
    next_load = _next(operands, at, loads)
    next_store = _next(operands, at, ~loads)
    last = _last_users(steps)
    pools: dict[str, _Pool] = {}
    by_entity: dict[int, tuple[_Pool, Memory]] = {}
    streams: dict[int, _Pool] = {}
    for memory in machine.memories.values():
        many = float(machine.clusters) if memory.scope == "cluster" else 1.0
        pool = pools[memory.name] = _Pool(len(pools), float(memory.bytes) * many)
        by_entity.update({int(e): (pool, memory) for e in memory.holds})
    for channel in machine.channels.values():
        pool = pools[f"{channel.name} buffer"] = _Pool(len(pools), float(channel.buffer_bytes))
        streams.update({int(e): pool for e in channel.carries if int(e) not in by_entity})
    moved = np.zeros(size, np.bool_)
    in_cluster = np.zeros(size, np.bool_)
    before, after, room = array("i"), array("i"), array("B")
    resident: dict[int, _Entry] = {}  # by operand
    stored: dict[int, int] = {}  # operand to its last store

    def wait(first: int, then: int, for_room: bool) -> None:
        before.append(first)
        after.append(then)
        room.append(for_room)

    def freed(entry: _Entry) -> None:
        """The room of an entry that went is free once the steps that made or used the entry have
        ended."""
        users = set(entry.events)
        for event in entry.events:
            users.update(readers(event))
        if entry.store >= 0 and entry.next_use < NEVER:
            moved[entry.store] = True
        entry.pool.free.append((float(entry.bytes), tuple(sorted(users))))

    order = np.argsort(steps.deps, kind="stable")
    users_of = np.repeat(np.arange(size, dtype=np.int32), np.diff(steps.dep_start))[order]
    first_user = np.searchsorted(steps.deps[order], np.arange(size + 1))

    def readers(step: int) -> list[int]:
        return users_of[first_user[step] : first_user[step + 1]].tolist()  # type: ignore[no-any-return]

    for i, step in enumerate(at.tolist()):
        operand, amount = int(operands[i]), int(sizes[i])
        found = by_entity.get(int(entities[i]))
        use = next_load[i] if next_load[i] < next_store[i] else NEVER
        if loads[i]:
            entry = resident.get(operand) if operand != ANY else None
            if entry is not None:
                wait(entry.events[0], step, False)
                in_cluster[step] = found is not None and found[1].scope == "cluster"
                entry.events.append(step)
                entry.next_use, entry.pinned = use, max(entry.pinned, int(last[step]))
                entry.pool.push(entry)
                continue
            moved[step] = True
            if operand in stored:
                wait(stored[operand], step, False)
        else:
            final = next_store[i] == NEVER and int(entities[i]) != Entity.SCRATCH
            moved[step] = final or operand == ANY or (found is None and use < NEVER)
            if operand == ANY:
                continue
            stored[operand] = step
            old = resident.pop(operand, None)
            if old is not None:  # the new version takes room of its own
                old.next_use, old.store = NEVER, -1
                old.pool.push(old)
        if found is None and not loads[i]:
            continue
        room_for = found[0] if found is not None else streams.get(int(entities[i]))
        if room_for is None:  # no channel has the entity: the plan refuses it
            continue
        if found is None:
            use = NEVER
        gone = room_for.make_room(amount, step)
        if gone is None:
            room_for.overflow += amount
            if not loads[i] and use < NEVER:
                moved[step] = True
            continue
        for entry in gone:
            if resident.get(entry.operand) is entry:
                del resident[entry.operand]
            freed(entry)
        for user in sorted(room_for.take(amount)):
            if user < step:
                wait(user, step, True)
        store = -1 if loads[i] else step
        entry = _Entry(room_for, operand, amount, use, int(last[step]), [step], store)
        room_for.push(entry)
        if operand != ANY and found is not None:
            resident[operand] = entry
    for held in pools.values():
        for item in held.heap:
            if item[3] == item[4].version:
                held.drop(item[4])
    lives = sorted(life for pool in pools.values() for life in pool.lives)
    return Residency(
        moved=moved,
        in_cluster=in_cluster,
        before=np.array(before, np.int32),
        after=np.array(after, np.int32),
        room=np.array(room, np.bool_),
        overflow={name: pool.overflow for name, pool in pools.items()},
        lives=np.array(lives, np.int64).reshape(-1, 4),
        capacity={name: pool.capacity for name, pool in pools.items()},
    )
