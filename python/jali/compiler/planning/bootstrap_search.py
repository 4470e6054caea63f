"""Where to bootstrap, and at which level to compute every array: the cheapest plan of an abstract
graph.

A stage computes an array at a level. It costs more at a high level than at a low one. It takes its
inputs that many levels above as its operation takes. What lies above is brought down for nothing.
An array that is still high enough may be bootstrapped to a level again; one bootstrapping serves
all users, as they may bring it down as they need it.

So every array has two variables, the level at which it is computed and the one from which its users
take it, and every edge a condition between two variables. ``elimination`` finds the cheapest
values: paths, branches and joins are reduced from the innermost out, as a residual region becomes a
    table of (level at its fork, level at its join).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from jali.compiler.cost.elimination import LIMIT, NEVER, Costs, Found, Table, eliminated, minimised
from jali.errors import Unsupported

__all__ = ["Placement", "Problem", "Stage", "Undecided", "passage", "placed"]


class Undecided(Unsupported):
    """The search found no plan and did not prove that there is none."""


@dataclass(frozen=True)
class Stage:
    """One array of a problem.

    inputs: (array, levels that the operation takes of it).
    costs: of its computation by the level of the result, NEVER where it is not possible.
    restored: for each way to bootstrap it, what that costs by the level to which it leads; empty if
        it must not be bootstrapped.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    costs: tuple[int, ...]
    restored: tuple[tuple[int, ...], ...] = ()

    def way(self, level: int) -> int:
        """The cheapest way to bootstrap it to a level; of several, the first."""
        return min(range(len(self.restored)), key=lambda k: self.restored[k][level])

    @property
    def cheapest(self) -> Costs:
        """What a bootstrapping to each level costs."""
        costs: Costs = np.asarray(self.restored, np.int64).min(axis=0)
        return costs


@dataclass(frozen=True)
class Problem:
    """Arrays in the order of computation.

    due: the lowest level from which an array can be bootstrapped. Levels are 0 to depth.
    """

    stages: tuple[Stage, ...]
    depth: int
    due: int


@dataclass(frozen=True)
class Placement:
    """A plan: the level of every array, the levels to which some are restored, and the cost.

    ways: of every array that is restored, the number of the way among those of its stage.
    bound: no plan costs less. It equals the cost unless the graph is so entangled that tables had
        to be split.
    """

    levels: dict[str, int]
    restored: dict[str, int]
    cost: int
    bound: int
    ways: dict[str, int]


_Pattern = tuple[tuple[str, int], ...]


def _tables(problem: Problem, fresh: Collection[str]) -> list[Table]:
    """The costs of all arrays, and the conditions between them. What is equal is the same object,
    such as the tables of a loop's iterations.

    Arrays that take the same inputs share a variable: the highest level at which these can be used
    together.

    fresh: inputs that lie at the top, and have no variables.
    """
    size = problem.depth + 1
    levels = np.arange(size)
    own: dict[tuple[object, ...], Costs] = {}
    fits: dict[int, Costs] = {}  # by how many levels lie between
    tables = []

    def follows(above: str, below: str, taken: int) -> None:
        if taken not in fits:
            fits[taken] = np.where(levels[:, None] >= levels + taken, 0, NEVER)
        tables.append(Table((above, below), fits[taken]))

    inputs = {stage.name: _most_taken(stage) for stage in problem.stages}
    together = {name: _together(most, fresh) for name, most in inputs.items()}
    users = Counter(pattern for pattern, _ in together.values() if len(pattern) > 1)
    met: set[tuple[tuple[str, int], ...]] = set()
    for stage in problem.stages:
        if stage.name in fresh:
            continue
        key = stage.costs, stage.restored
        if key not in own:
            own[key] = _own(stage, problem)
        at, most = _at(stage.name), inputs[stage.name]
        tables.append(Table((at, _from(stage.name)), own[key]))
        highest = problem.depth - max((most[name] for name in most if name in fresh), default=0)
        if highest < problem.depth:
            tables.append(Table((at,), np.where(levels <= highest, 0, NEVER)))
        pattern, least = together[stage.name]
        if users[pattern] < 2:
            for name, more in pattern:
                follows(_from(name), at, least + more)
            continue
        meet = _meet(pattern)
        if pattern not in met:
            met.add(pattern)
            for name, more in pattern:
                follows(_from(name), meet, more)
        follows(meet, at, least)
    return tables


def _own(stage: Stage, problem: Problem) -> Costs:
    """What an array costs by (level at which it is computed, level from which it is used)."""
    size = problem.depth + 1
    levels = np.arange(size)
    costs = np.asarray(stage.costs, np.int64)
    both: Costs = np.full((size, size), NEVER)
    both[levels, levels] = costs
    if stage.restored:
        restored = costs[:, None] + stage.cheapest
        both[problem.due :] = np.minimum(both, restored)[problem.due :]
    return np.minimum(both, NEVER)


def _fresh(problem: Problem) -> set[str]:
    """The client's inputs, which may lie at the top because they cost the same at every level."""
    return {
        stage.name
        for stage in problem.stages
        if not stage.inputs and not stage.restored and len(set(stage.costs)) == 1
    }


def _most_taken(stage: Stage) -> dict[str, int]:
    """The levels that an operation takes of each of its inputs, of which some may be given
    twice."""
    most: dict[str, int] = {}
    for name, taken in stage.inputs:
        most[name] = max(taken, most.get(name, 0))
    return most


def _together(most: Mapping[str, int], fresh: Collection[str]) -> tuple[_Pattern, int]:
    """The inputs with how many levels more each takes than the one that takes the fewest, and
    these."""
    others = {name: taken for name, taken in most.items() if name not in fresh}
    least = min(others.values(), default=0)
    return tuple(sorted((name, taken - least) for name, taken in others.items())), least


def _at(name: str) -> str:
    return f"{name} at"


def _from(name: str) -> str:
    return f"{name} from"


def _meet(pattern: _Pattern) -> str:
    return f"{pattern} together"


def placed(problem: Problem, limit: int = LIMIT, below: int = NEVER) -> Placement | None:
    """The cheapest plan, or None if there is none that costs less than `below`. Of several, it is
    the same on every machine.

    limit: entries of the largest table; smaller ones make plans that may not be the cheapest, with
        a bound. The plan then costs no more than one that bootstraps only arrays of which a
        bootstrapping costs least, such as the single ciphertexts of a loop.

    Raises Undecided if it found none, and cannot tell that there is none.
    """
    found = minimised(_tables(problem, _fresh(problem)), limit, below)
    if found.bound >= below:
        return None
    plans = [_lazy(problem)] if found.cost > found.bound else []
    if found.cost < NEVER:
        plans.append((found.cost, _read(problem, found.values)))
    sound = []
    for cost, (levels, restored) in filter(None, plans):
        ways = {s.name: s.way(restored[s.name]) for s in problem.stages if s.name in restored}
        sound.append(Placement(levels, restored, cost, found.bound, ways))
    if found.cost > found.bound and (few := _with_few(problem)) != problem:
        with contextlib.suppress(Undecided):
            other = placed(few, limit, below)
            sound += [] if other is None else [replace(other, bound=found.bound)]
    if not sound:
        raise _undecided(problem, found, limit)
    best = min(sound, key=lambda plan: plan.cost)
    return None if best.cost >= below else best


def _undecided(problem: Problem, found: Found, limit: int) -> Undecided:
    fresh = _fresh(problem)
    arrays: dict[str, list[str]] = {}
    for stage in problem.stages:
        pattern, _ = _together(_most_taken(stage), fresh)
        arrays |= {_at(stage.name): [stage.name], _from(stage.name): [stage.name]}
        arrays[_meet(pattern)] = [name for name, _ in pattern]
    names = list(dict.fromkeys(name for variable in found.left for name in arrays[variable]))
    if names:
        tried = (
            f"{found.tried} intervals of the levels of {', '.join(names[:3])} were tried, and there are more, because many operations take these "
            "arrays. Let fewer operations take them, give loops fewer iterations"
        )
    else:
        tried = f"tables of more than {limit:,} costs were split. Use arrays that many operations take in fewer places"
    return Undecided(
        f"no plan was found for these parameters, and there may be one: {tried}, or ask for fewer precision_bits"
    )


def _with_few(problem: Problem) -> Problem:
    """The problem in which only the arrays that are cheapest to bootstrap may be bootstrapped."""
    least = {s.name: int(s.cheapest.min()) for s in problem.stages if s.restored}
    lowest = min(least.values(), default=0)
    dear = {name for name, cost in least.items() if cost > lowest}
    stages = (replace(s, restored=()) if s.name in dear else s for s in problem.stages)
    return replace(problem, stages=tuple(stages))


Levels = tuple[dict[str, int], dict[str, int]]


def _read(problem: Problem, values: Mapping[str, int]) -> Levels:
    """The plan of the values of all variables. What the client sends lies as low as its users
    allow."""
    fresh = _fresh(problem)
    levels = {s.name: values[_at(s.name)] for s in problem.stages if s.name not in fresh}
    above = {name: values[_from(name)] for name in levels}
    restored = {name: level for name, level in above.items() if level > levels[name]}
    levels |= dict.fromkeys(fresh, 0)
    for stage in problem.stages:
        for name in {name for name, _ in stage.inputs} & fresh:
            levels[name] = max(levels[name], levels[stage.name] + _most_taken(stage)[name])
    return {s.name: levels[s.name] for s in problem.stages}, restored


def passage(problem: Problem, source: str, target: str, limit: int = LIMIT) -> Costs:
    """What the arrays cost together, by (level from which `source` is taken, level from which
    `target` is taken).

    It is the table of a region with one entry and one exit, such as a residual block or one step of
    a loop. Its least costs of k steps are its powers with sums in the place of products and minima
    in the place of sums.
    """
    kept = (_from(source), _from(target))
    tables = _tables(problem, _fresh(problem) - {source, target})
    left = eliminated(tables, kept, limit)
    total: Costs = np.full((problem.depth + 1,) * 2, left.least)
    for table in left.tables:
        total = total + table.over(kept)
    return np.minimum(total, NEVER)


def _lazy(problem: Problem) -> tuple[int, Levels] | None:
    """A plan that computes every array as high as its inputs allow, and bootstraps an array to the
    top where one of its users would come out too low. Afterwards, everything is brought down as far
    as possible."""
    depth, due = problem.depth, problem.due
    stages = {stage.name: stage for stage in problem.stages}
    least = _least(problem)
    levels: dict[str, int] = {}
    above: dict[str, int] = {}
    for stage in problem.stages:
        while True:
            levels[stage.name] = min((above[n] - t for n, t in stage.inputs), default=depth)
            if levels[stage.name] >= least[stage.name]:
                break
            low = [
                n
                for n, t in stage.inputs
                if above[n] - t == levels[stage.name] and above[n] < depth
            ]
            low = [n for n in low if stages[n].restored and levels[n] >= due]
            if not low:
                return None
            above[low[0]] = depth
        above[stage.name] = levels[stage.name]
    needed = dict.fromkeys(stages, 0)
    for stage in reversed(problem.stages):
        name = stage.name
        if needed[name] > levels[name]:
            above[name], levels[name] = needed[name], due
        else:
            above[name] = levels[name] = needed[name]
        for source, taken in stage.inputs:
            needed[source] = max(needed[source], levels[name] + taken)
    restored = {n: a for n, a in above.items() if a > levels[n]}
    cost = sum(s.costs[levels[s.name]] for s in problem.stages)
    cost += sum(int(stages[n].cheapest[a]) for n, a in restored.items())
    return None if cost >= NEVER else (cost, (levels, restored))


def _least(problem: Problem) -> dict[str, int]:
    """For every array, the level below which neither the rest of the graph nor a bootstrapping can
    follow."""
    found = {stage.name: 0 for stage in problem.stages}
    for stage in reversed(problem.stages):
        if stage.restored:
            found[stage.name] = min(found[stage.name], problem.due)
        for name, taken in stage.inputs:
            found[name] = max(found[name], found[stage.name] + taken)
    return found
