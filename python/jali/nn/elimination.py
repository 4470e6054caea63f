"""The cheapest values of variables whose costs are given by tables, by eliminating one variable after the other.

This is nonserial dynamic programming (U. Bertele and F. Brioschi, 1972). A variable is eliminated by adding the tables that it is in, and by
taking the minimum over its values; what is left is a table of its neighbours. A variable with two neighbours leaves a table of
two: that is the series reduction of a path, and the sum of two tables of the same variables is the parallel reduction of
branches. Graphs that are made of these two need no larger table. Others need tables of more variables, up to a limit.

Beyond the limit, the tables of a variable are eliminated in groups (mini-buckets, R. Dechter and I. Rish, 2003). The minimum is then a
lower bound, and the values that are read off may cost more.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

__all__ = ["NEVER", "Costs", "Found", "Table", "eliminated", "minimised"]

#: Costs are whole numbers, so that sums are the same on every machine. This one stands for what is not possible.
NEVER = 1 << 50
_LIMIT = 1 << 23  # entries of a table

Costs = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """The costs of every combination of values of some variables, an axis for each."""

    names: tuple[str, ...]
    costs: Costs

    def over(self, names: Sequence[str]) -> Costs:
        """The costs with an axis for each of these names, of length 1 for those that the table does not have."""
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
    """Values of all variables, what they cost, and the least that any values can cost."""

    values: dict[str, int]
    cost: int
    bound: int


def _sum(tables: Sequence[Table], names: Sequence[str]) -> Table:
    total = reduce(np.add, (table.over(names) for table in tables))
    return Table(tuple(names), np.minimum(total, NEVER))


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
    return int(np.prod([sizes[name] for name in names], dtype=np.float64))


def eliminated(
    tables: Sequence[Table], kept: Collection[str] = (), limit: int = _LIMIT
) -> tuple[list[Table], list[tuple[str, list[Table]]]]:
    """The tables of the kept variables that are left, and for each variable that was eliminated the tables that it was in then.

    The variable with the fewest neighbours goes first; of several, the first in the order of the tables.
    """
    sizes = {n: s for t in tables for n, s in zip(t.names, t.costs.shape, strict=True)}
    rank = {name: k for k, name in enumerate(sizes)}
    left, following = dict(enumerate(tables)), len(tables)  # by number, the older ones first
    order: list[tuple[str, list[Table]]] = []
    of: dict[str, set[int]] = {name: set() for name in sizes}  # the numbers of its tables
    beside: dict[str, set[str]] = {name: set() for name in sizes}
    for number, table in left.items():
        for name in table.names:
            of[name].add(number)
            beside[name] |= set(table.names) - {name}
    waiting = [(len(beside[name]), rank[name], name) for name in sizes if name not in kept]
    heapq.heapify(waiting)
    while waiting:
        count, _, name = heapq.heappop(waiting)
        if name not in beside or count != len(beside[name]):
            continue  # it is gone, or the heap has a newer entry of it
        mine = []
        for number in sorted(of.pop(name)):
            mine.append(left.pop(number))
            for other in mine[-1].names:
                if other != name:
                    of[other].discard(number)
        order.append((name, mine))
        for group in _groups(mine, sizes, limit):
            names = dict.fromkeys(n for table in group for n in table.names if n != name)
            total = _sum(group, [*names, name])
            left[following] = Table(tuple(names), total.costs.min(axis=-1))
            for other in names:
                of[other].add(following)
            following += 1
        around = beside.pop(name)
        for (
            other
        ) in around:  # groups may leave fewer neighbours than that, which only the order could tell
            beside[other] |= around - {other}
            beside[other].discard(name)
            if other not in kept:
                heapq.heappush(waiting, (len(beside[other]), rank[other], other))
    return list(left.values()), order


def minimised(tables: Sequence[Table], limit: int = _LIMIT) -> Found:
    """The cheapest values. Of several, those that were eliminated last have the lowest. The cost is NEVER if values were read off that
    are not possible, which can happen only beyond the limit."""
    left, order = eliminated(tables, limit=limit)
    values: dict[str, int] = {}
    for name, mine in reversed(order):
        costs = reduce(np.add, (table.at(values, name) for table in mine))
        values[name] = int(np.argmin(costs))
    cost = sum(int(table.costs[tuple(values[n] for n in table.names)]) for table in tables)
    return Found(values, min(cost, NEVER), min(sum(int(t.costs) for t in left), NEVER))
