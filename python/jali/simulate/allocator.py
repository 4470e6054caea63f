"""What an on-chip memory should hold so that the least bytes cross the memory outside of the chip.

An entity (a table of twiddle factors, a key, a partial sum) is held on the chip as a whole, from
its first use to its last, or not at all. `greedy` is the rule of the matrix-vector accelerator
(he-matvec-fpga, III-D): whole entities, the dearest first. `exact` is the optimum: a knapsack over
intervals of life. `bound` is what no choice can exceed, for lists that are too long for `exact`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.errors import InvalidArgument, LimitExceeded
from jali.simulate.steps import ANY, Entity, Kind, Steps

__all__ = [
    "Allocation",
    "Allocator",
    "DataEntity",
    "bound",
    "entities_of",
    "exact",
    "greedy",
    "sweep",
]


@dataclass(frozen=True)
class DataEntity:
    """Something that is read, and may be held on the chip.

    bytes: its size.
    reads: how often all of it is read.
    first, last: when it is used first and last, both included, in any unit of time.
    made: whether the chip computes it. If not, it crosses the outer memory once even if it is held.
    """

    name: str
    bytes: int
    reads: int
    first: int = 0
    last: int = 0
    made: bool = False

    def __post_init__(self) -> None:
        if self.bytes <= 0 or self.reads < 0:
            raise InvalidArgument(
                f"entity {self.name!r} has {self.bytes} bytes and {self.reads} reads: bytes must be positive and "
                "reads must not be negative"
            )
        if self.first > self.last:
            raise InvalidArgument(
                f"entity {self.name!r} is used first at {self.first} and last at {self.last}: the last use must not "
                "come before the first"
            )

    @property
    def cost(self) -> int:
        """Bytes that are read from the outer memory if it is not held."""
        return self.bytes * self.reads

    @property
    def saving(self) -> int:
        """Bytes that are not read from the outer memory if it is held."""
        return self.bytes * (self.reads if self.made else max(self.reads - 1, 0))


@dataclass(frozen=True)
class Allocation:
    """Which entities an on-chip memory of `sram` bytes holds."""

    entities: tuple[DataEntity, ...]
    held: tuple[DataEntity, ...]
    sram: int

    @property
    def outer_bytes(self) -> int:
        """Bytes that are read from the outer memory."""
        return sum(e.cost for e in self.entities) - self.saving

    @property
    def outer_by_entity(self) -> dict[str, int]:
        """Bytes that are read from the outer memory, by the entity's name."""
        held = set(self.held)
        outer: dict[str, int] = {}
        for e in self.entities:
            outer[e.name] = outer.get(e.name, 0) + e.cost - (e.saving if e in held else 0)
        return outer

    @property
    def saving(self) -> int:
        """Bytes that are not read from the outer memory because of what is held."""
        return sum(e.saving for e in self.held)

    @property
    def peak(self) -> int:
        """The most bytes that are held at any time."""
        starts = {e.first for e in self.held}
        return max(
            (sum(e.bytes for e in self.held if e.first <= t <= e.last) for t in starts), default=0
        )


def entities_of(steps: Steps) -> list[DataEntity]:
    """The operands of a program as entities, named KIND NUMBER ("key 17"); times are the indices of
    steps.

    An operand's reads are its loads, and its size is that of the largest one. An operand that is
    stored before it is loaded was made on the chip. Operands that are never loaded, and loads
    without an operand's number, are left out: nothing can be saved there.
    """
    loads = np.flatnonzero((steps.kind == Kind.LOAD) & (steps.operand != ANY) & (steps.bytes > 0))
    stores = np.flatnonzero((steps.kind == Kind.STORE) & (steps.operand != ANY))
    made: dict[int, int] = {}
    for i in stores:
        made.setdefault(int(steps.operand[i]), int(i))
    uses: dict[int, list[int]] = {}
    for i in loads:
        uses.setdefault(int(steps.operand[i]), []).append(int(i))
    found = []
    for operand, at in uses.items():
        first = min(at[0], made.get(operand, at[0]))
        kind = Entity(int(steps.entity[at[0]])).name.lower().replace("_", " ")
        size = int(steps.bytes[at].max())
        found.append(DataEntity(f"{kind} {operand}", size, len(at), first, at[-1], first < at[0]))
    return found


Allocator = Callable[[Iterable[DataEntity], int], Allocation]


def _checked(entities: Iterable[DataEntity], sram: int) -> tuple[DataEntity, ...]:
    found = tuple(entities)
    if sram < 0:
        raise InvalidArgument(
            f"an on-chip memory of {sram} bytes does not exist: sram must not be negative"
        )
    return found


def _fill(entities: tuple[DataEntity, ...], order: Sequence[DataEntity], sram: int) -> Allocation:
    """Holds the entities that fit, in this order."""
    times = sorted({e.first for e in entities})
    # Bytes that are held at the first use of each entity: the peak is at one of them.
    used = np.zeros(len(times), np.int64)
    held = []
    for e in order:
        life = slice(bisect.bisect_left(times, e.first), bisect.bisect_right(times, e.last))
        if used[life].max() + e.bytes <= sram:
            used[life] += e.bytes
            held.append(e)
    return Allocation(entities, tuple(held), sram)


def greedy(entities: Iterable[DataEntity], sram: int) -> Allocation:
    """The rule of the paper: the entities that fit, the dearest first; among equally dear ones the
    smaller.

    Entities that save nothing are left out. More memory can make this choice worse: a dear entity
    that fits now may displace two that save more together.
    """
    found = _checked(entities, sram)
    useful = [e for e in found if e.saving]
    return _fill(found, sorted(useful, key=lambda e: (-e.cost, e.bytes, e.name)), sram)


class _Lives:
    """Entities by index of the times at which one begins to live."""

    def __init__(self, entities: Sequence[DataEntity]) -> None:
        times = sorted({e.first for e in entities})
        ends = {e: bisect.bisect_right(times, e.last) for e in entities}
        begins = {t: i for i, t in enumerate(times)}
        # Equal lives and sizes lie beside each other, the one that saves most first, so that equal
        # states meet early.
        self.entities = sorted(
            entities, key=lambda e: (e.first, ends[e], e.bytes, -e.saving, e.name)
        )
        self.begin = np.array([begins[e.first] for e in self.entities], np.int64)
        self.end = np.array([ends[e] for e in self.entities], np.int64)  # not included
        self.bytes = np.array([e.bytes for e in self.entities], np.float64)
        self.saving = np.array([e.saving for e in self.entities], np.float64)
        self.count = len(times)

    def prices(self, sram: int) -> npt.NDArray[np.float64]:
        """Prices of a byte at each time, summed from that time to the end, and 0 at the end: for
        the bound of Lagrange,

            most saving  <=  sum over entities of max(0, saving - bytes * prices of their life)  +
            sram * sum of prices,

        which holds for any prices that are not negative. Up to 300 steps of subgradients make it
        small.
        """
        price = np.zeros(self.count)
        best, chosen = float(self.saving.sum()), price
        step = 1.0
        for _ in range(min(300, 8 * len(self.entities))):
            ahead = _suffix(price)
            reduced = self.saving - self.bytes * (ahead[self.begin] - ahead[self.end])
            taken = reduced > 0
            value = float(reduced[taken].sum()) + sram * float(ahead[0])
            if value < best:
                best, chosen = value, price
            else:
                step *= 0.95
            size = self.bytes[taken]
            used = np.bincount(self.begin[taken], size, self.count + 1)
            used -= np.bincount(self.end[taken], size, self.count + 1)
            slope = np.cumsum(used)[:-1] - sram  # the bound grows by -slope with the price
            norm = float(slope @ slope)
            if norm == 0:
                break
            price = np.maximum(0.0, price + slope * (step * max(value - 0.99 * best, 1.0) / norm))
        return _suffix(chosen)


def _suffix(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums from each index to the end, and 0 at the end."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def bound(entities: Iterable[DataEntity], sram: int) -> float:
    """Bytes of saving that no choice exceeds. Takes about 10 s for 10^5 entities."""
    useful = [e for e in _checked(entities, sram) if e.saving and e.bytes <= sram]
    if not useful:
        return 0.0
    lives = _Lives(useful)
    ahead = lives.prices(sram)
    reduced = lives.saving - lives.bytes * (ahead[lives.begin] - ahead[lives.end])
    return float(np.maximum(reduced, 0).sum() + sram * ahead[0])


def exact(entities: Iterable[DataEntity], sram: int, limit: int = 200_000) -> Allocation:
    """The choice that saves most.

    Entities are decided in the order in which they begin to live. What was decided matters later
    only through the bytes that are still held and until when, so that the best of all choices with
    the same held bytes is kept (dynamic programming). Choices whose saving and bound for the rest
    (`_Lives.prices`) do not reach the best known choice are dropped (branch and bound).

    limit: how many choices are kept at once.

    Raises LimitExceeded if there are more.
    """
    found = _checked(entities, sram)
    useful = [e for e in found if e.saving and e.bytes <= sram]
    by_worth = sorted(useful, key=lambda e: (-e.reads, e.bytes, e.name))
    best = max(greedy(found, sram), _fill(found, by_worth, sram), key=lambda a: a.saving)
    if not useful:
        return best
    lives = _Lives(useful)
    ahead = lives.prices(sram)
    reduced = lives.saving - lives.bytes * (ahead[lives.begin] - ahead[lives.end])
    rest = _suffix(np.maximum(reduced, 0.0))
    unit = math.gcd(*(e.saving for e in useful))  # a better choice saves this much more

    # What is held, as sorted pairs (end, bytes): its saving, and what was held so far as (last
    # entity, (the one before, ...)).
    states: dict[tuple[tuple[int, int], ...], tuple[int, Any]] = {(): (0, None)}
    winner: Any = None
    most = best.saving
    for i, e in enumerate(lives.entities):
        begin, end = int(lives.begin[i]), int(lives.end[i])
        after: dict[tuple[tuple[int, int], ...], tuple[int, Any]] = {}
        for held, (saving, chain) in states.items():
            alive = held[bisect.bisect_left(held, (begin + 1, 0)) :]
            room = sram - sum(size for _, size in alive)
            tied = sum(size * (ahead[begin] - ahead[stop]) for stop, size in alive)
            options = [(alive, saving, chain, tied)]
            if e.bytes <= room:
                more = tuple(sorted([*alive, (end, e.bytes)]))
                price = e.bytes * (ahead[begin] - ahead[end])
                options.append((more, saving + e.saving, (i, chain), tied + price))
            for key, value, way, cost in options:
                if value > most:
                    most, winner = value, way
                reach = value + rest[i + 1] + sram * ahead[begin] - cost
                if reach < most + 0.5 * unit:
                    continue
                if key not in after or after[key][0] < value:
                    after[key] = (value, way)
        if len(after) > limit:
            raise LimitExceeded(
                f"the exact choice among {len(useful)} entities needs more than {limit} states: raise `limit`, or take "
                "`greedy`, whose saving `bound` compares with the most that is possible"
            )
        states = after
    if winner is None:
        return best
    held_entities = []
    while winner is not None:
        i, winner = winner
        held_entities.append(lives.entities[i])
    return Allocation(found, tuple(reversed(held_entities)), sram)


def sweep(
    entities: Iterable[DataEntity], sizes: Iterable[int], allocator: Allocator = exact
) -> list[Allocation]:
    """The choice for each size of the on-chip memory, in bytes."""
    found = tuple(entities)
    return [allocator(found, size) for size in sizes]
