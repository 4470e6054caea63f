"""The cheapest values of variables whose costs are given by tables, by eliminating one variable
after the other.

This is nonserial dynamic programming (U. Bertele and F. Brioschi, 1972). A variable is eliminated
by adding the tables that it is in, and by taking the minimum over its values; what is left is a
table of its neighbours. A variable with two neighbours leaves a table of
two: that is the series reduction of a path, and the sum of two tables of the same variables is the
parallel reduction of branches. Graphs that are made of these two need no larger table. Others need
tables of more variables, up to a limit.

Iterations of a loop have the same tables, and so the same sums and minima: each is computed once.
The table of all that lies before an iteration is kept as its least cost and what lies above that.
In the algebra of minima and sums, powers of a matrix become periodic in this sense after some steps
(F. Baccelli, G. Cohen, G. J. Olsder and J.-P. Quadrat, 1992, section 3.7). From there on, a loop
costs no more than the look-up of its period.

A variable with many neighbours, such as the level of an array that every iteration takes, would be
in all tables. Its values are passed through in place of that, by intervals: the least that tables
cost anywhere in an interval gives a bound, and intervals whose bound is above a known cost are left
out.

Beyond the limit, the tables of a variable are eliminated in groups (mini-buckets, R. Dechter and I.
Rish, 2003). The minimum is then a lower bound, and the values that are read off may cost more.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count

import numpy as np
import numpy.typing as npt

__all__ = ["LIMIT", "NEVER", "Costs", "Eliminated", "Found", "Table", "eliminated", "minimised"]

#: Costs are whole numbers, so that sums are the same on every machine. This one stands for what is
#: not possible.
NEVER = 1 << 50
LIMIT = 1 << 26  #: Entries of a sum of tables beyond which it is split.
_AT_ONCE = 1 << 20  # entries of a sum that are in memory
#: Entries of a sum up to which variables with many neighbours are eliminated like others.
_LARGE = 1 << 17
_MANY = 24  # neighbours, more than an array has that is not used by many iterations
_MOST = 200  # intervals of the values of variables that have many

Costs = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """The costs of every combination of values of some variables, an axis for each."""

    names: tuple[str, ...]
    costs: Costs

    def over(self, names: Sequence[str]) -> Costs:
        """The costs with an axis for each of these names, of length 1 for those that the table does
        not have."""
        own = [self.names.index(name) for name in names if name in self.names]
        shape = [
            self.costs.shape[self.names.index(name)] if name in self.names else 1 for name in names
        ]
        return self.costs.transpose(own).reshape(shape)

    def at(self, values: Mapping[str, int], free: str) -> Costs:
        """The costs by the values of one of its variables, for fixed values of the others."""
        where = tuple(slice(None) if name == free else values[name] for name in self.names)
        return self.costs[where]


@dataclass(frozen=True)
class Found:
    """Values of all variables, what they cost, and the least that any values can cost.

    left: variables with many neighbours, if only so many of the intervals of their values were
        tried, and others may hold cheaper ones.
    """

    values: dict[str, int]
    cost: int
    bound: int
    left: tuple[str, ...] = ()
    tried: int = 0


@dataclass(frozen=True)
class Eliminated:
    """tables: of the kept variables, to which `least` is to be added.
    order: every variable that was eliminated, and the tables that it was in then, up to a constant.
    """

    tables: list[Table]
    order: list[tuple[str, list[Table]]]
    least: int


@dataclass(eq=False)
class _Memo:
    """Minima of sums that were computed, by the arrays of costs and by which of their axes are the
    same variable."""

    known: dict[tuple[object, ...], tuple[Costs, int]] = field(default_factory=dict)
    arrays: dict[bytes, Costs] = field(default_factory=dict)  # one of all that are equal

    def own(self, table: Table) -> Table:
        """The table with the array that stands for all equal ones."""
        return Table(table.names, self._one(table.costs))

    def minimum(self, tables: Sequence[Table], names: Sequence[str]) -> tuple[Costs, int]:
        """The sum of tables over these names, its minimum along the last one: (what lies above the
        least entry, the least entry)."""
        place = {name: k for k, name in enumerate(names)}
        key = tuple(
            x for t in tables for x in (id(t.costs), *(place[name] for name in t.names), -1)
        )
        if key not in self.known:  # `arrays` keeps the arrays alive, and their ids
            found = _minimum([table.over(names) for table in tables])
            possible = found < NEVER
            least = int(found[possible].min()) if possible.any() else NEVER
            above = np.where(possible, found - least, NEVER) if least < NEVER else found
            self.known[key] = self._one(above), least
        return self.known[key]

    def _one(self, costs: Costs) -> Costs:
        costs = np.array(costs, np.int64, order="C")
        digest = hashlib.blake2b(costs.tobytes(), digest_size=16)
        digest.update(repr(costs.shape).encode())
        return self.arrays.setdefault(digest.digest(), costs)


def _minimum(tables: Sequence[Costs]) -> Costs:
    """The minimum along the last axis of a sum, some entries at a time."""
    shape = np.broadcast_shapes(*(t.shape for t in tables))
    if len(shape) > 1 and math.prod(shape) > _AT_ONCE:
        rows = ([t[k] if len(t) > 1 else t[0] for t in tables] for k in range(shape[0]))
        return np.stack([_minimum(row) for row in rows])
    total = np.broadcast_to(reduce(np.add, tables), shape)
    found: Costs = np.minimum(total.min(axis=-1), NEVER)
    return found


def _groups(tables: Sequence[Table], sizes: Mapping[str, int], limit: int) -> list[list[Table]]:
    """The tables in groups whose sums have at most `limit` entries."""
    groups: list[tuple[set[str], list[Table]]] = []
    for table in sorted(tables, key=lambda t: -t.costs.size):
        for names, members in groups:
            if _entries(names | set(table.names), sizes) <= limit:
                names |= set(table.names)
                members.append(table)
                break
        else:
            groups.append((set(table.names), [table]))
    return [members for _, members in groups]


def _entries(names: Collection[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


def eliminated(
    tables: Sequence[Table],
    kept: Collection[str] = (),
    limit: int = LIMIT,
) -> Eliminated:
    """What is left of tables without all variables but the kept ones."""
    memo, order = _Memo(), _order(tables, kept)[0]
    return _eliminated([memo.own(table) for table in tables], order, limit, memo)


def _eliminated(
    tables: Sequence[Table], names: Sequence[str], limit: int, memo: _Memo
) -> Eliminated:
    """The same in a given order, for tables with arrays of the memo."""
    sizes = _sizes(tables)
    left = dict(enumerate(tables))  # by number, the older ones first
    of: dict[str, list[int]] = {name: [] for name in sizes}  # the numbers of its tables
    for number, table in left.items():
        for name in table.names:
            of[name].append(number)
    order: list[tuple[str, list[Table]]] = []
    following, least = len(tables), 0
    for name in names:
        mine = [left.pop(number) for number in of.pop(name) if number in left]
        order.append((name, mine))
        for group in _groups(mine, sizes, limit):
            others = tuple(dict.fromkeys(n for t in group for n in t.names if n != name))
            above, lowest = memo.minimum(group, [*others, name])
            left[following] = Table(others, above)
            least = min(least + lowest, NEVER)
            for other in others:
                of[other].append(following)
            following += 1
    return Eliminated(list(left.values()), order, least)


def _order(tables: Sequence[Table], kept: Collection[str] = ()) -> tuple[list[str], int]:
    """The variables in the order of elimination, and the entries of the largest sum of tables if
    none is split.

    The variable with the fewest neighbours goes first; of several, the first in the order of the
    tables.
    """
    sizes, beside = _sizes(tables), _neighbours(tables)
    rank = {name: k for k, name in enumerate(sizes)}
    waiting = [(len(beside[name]), rank[name], name) for name in sizes if name not in kept]
    heapq.heapify(waiting)
    order, largest = [], 1
    while waiting:
        neighbours, _, name = heapq.heappop(waiting)
        if name not in beside or neighbours != len(beside[name]):
            continue  # it is gone, or the heap has a newer entry of it
        around = beside.pop(name)
        order.append(name)
        largest = max(largest, _entries({name, *around}, sizes))
        for other in around:
            beside[other] |= around
            beside[other] -= {name, other}
            if other not in kept:
                heapq.heappush(waiting, (len(beside[other]), rank[other], other))
    return order, largest


def _sizes(tables: Sequence[Table]) -> dict[str, int]:
    return {n: s for t in tables for n, s in zip(t.names, t.costs.shape, strict=True)}


def _neighbours(tables: Sequence[Table]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for table in tables:
        for name in table.names:
            found.setdefault(name, set()).update(table.names)
    for name, names in found.items():
        names.discard(name)
    return found


def minimised(tables: Sequence[Table], limit: int = LIMIT, below: int = NEVER) -> Found:
    """The cheapest values. Of several, those that were eliminated last have the lowest. The cost is
    NEVER if values were read off that are not possible, which can happen only beyond the limit, or
    if none cost less than `below`; the bound then is at least that."""
    memo = _Memo()
    tables = [memo.own(table) for table in tables]
    sizes = _sizes(tables)
    hubs = [name for name, beside in _neighbours(tables).items() if len(beside) > _MANY]
    within = {name: (0, sizes[name] - 1) for name in hubs}
    order, largest = _order([_least_in(table, within) for table in tables])
    if hubs and largest * max(sizes[name] for name in hubs) <= _LARGE:
        within, order = {}, _order(tables)[0]
    best = Found({}, below, NEVER)
    number = count()  # of intervals with the same bound, the first one is taken
    waiting = [(0, next(number), within)]
    bound = NEVER  # of intervals that are not divided
    left, tried = False, 0
    while waiting:
        least, passed, within = heapq.heappop(waiting)
        if least >= best.cost or passed > _MOST:
            left = left or least < best.cost
            bound = min(bound, least)
            continue
        tried += 1
        found = _relaxed(tables, within, order, limit, memo, best.cost)
        if found.cost < best.cost:
            best = found
        wide = [name for name, (low, high) in within.items() if low < high]
        if found.bound >= best.cost or not wide:
            bound = min(bound, found.bound)
            continue
        name = max(wide, key=lambda name: within[name][1] - within[name][0])
        low, high = within[name]
        margin = (high - low) // 4
        at = min(max(found.values[name], low + margin), high - margin)
        for part in ((low, at - 1), (at, at), (at + 1, high)):
            if part[0] <= part[1]:
                heapq.heappush(waiting, (found.bound, next(number), {**within, name: part}))
    cost = best.cost if best.values else NEVER
    return Found(best.values, cost, min(bound, cost), tuple(hubs) if left else (), tried)


def _relaxed(
    tables: Sequence[Table],
    within: Mapping[str, tuple[int, int]],
    order: Sequence[str],
    limit: int,
    memo: _Memo,
    below: int,
) -> Found:
    """Values with those of some variables in intervals, and a bound for all that are there: every
    table may take another value of the interval.

    The values are not read off if none cost less than `below`.
    """
    some = [memo.own(_least_in(t, within)) if within.keys() & t.names else t for t in tables]
    left = _eliminated(some, order, limit, memo)
    bound = min(left.least + sum(int(table.costs) for table in left.tables), NEVER)
    if bound >= below:
        return Found({}, NEVER, bound)
    values: dict[str, int] = {}
    for name, mine in reversed(left.order):
        costs = reduce(np.add, (table.at(values, name) for table in mine))
        values[name] = int(np.argmin(costs))
    for name, (low, _) in within.items():
        values[name] = low
    for name, (low, high) in within.items():
        mine = [table for table in tables if name in table.names]
        costs = reduce(np.add, (table.at(values, name) for table in mine))
        values[name] = low + int(np.argmin(costs[low : high + 1]))
    cost = sum(int(table.costs[tuple(values[n] for n in table.names)]) for table in tables)
    return Found(values, min(cost, NEVER), bound)


def _least_in(table: Table, within: Mapping[str, tuple[int, int]]) -> Table:
    """The least costs for any values of some variables in intervals."""
    for name in table.names:
        if name in within:
            axis, (low, high) = table.names.index(name), within[name]
            part = table.costs.take(range(low, high + 1), axis)
            names = table.names[:axis] + table.names[axis + 1 :]
            table = Table(names, part.min(axis))
    return table
