"""Levels and bootstraps of abstract graphs, against an exact solver of integer programs."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jali.compiler.cost import elimination
from jali.compiler.cost.elimination import NEVER, Table, minimised
from jali.compiler.planning.bootstrap_search import (
    Placement,
    Problem,
    Stage,
    Undecided,
    passage,
    placed,
)


def oracle(problem: Problem) -> int | None:
    """The least cost by HiGHS: a number from {0, 1} for each array, its level, and the level to
    which and the way in which it is restored."""
    optimize = pytest.importorskip("scipy.optimize")
    choices = [
        (k, level, above, way)
        for k, stage in enumerate(problem.stages)
        for level in range(problem.depth + 1)
        for way in (None, *range(len(stage.restored)))
        for above in ([level] if way is None else range(problem.depth + 1))
    ]
    costs, chosen, bounds = [], [], []
    for k, level, above, way in choices:
        stage = problem.stages[k]
        cost = stage.costs[level] + (0 if way is None else stage.restored[way][above])
        allowed = cost < NEVER and (way is None or level >= problem.due)
        costs.append(cost if allowed else 0)
        bounds.append(1 if allowed else 0)
        chosen.append([1 if k == j else 0 for j in range(len(problem.stages))])
    one = optimize.LinearConstraint(np.transpose(chosen), 1, 1)
    names = [stage.name for stage in problem.stages]
    rows, least = [], []
    for j, stage in enumerate(problem.stages):
        for name, taken in stage.inputs:
            source = names.index(name)
            row = [
                (above if k == source else 0) - (level if k == j else 0)
                for k, level, above, _ in choices
            ]
            rows.append(row)
            least.append(taken)
    constraints = [one]
    if rows:
        constraints.append(optimize.LinearConstraint(np.array(rows), least, np.inf))
    found = optimize.milp(
        np.array(costs, float),
        integrality=np.ones(len(costs)),
        bounds=optimize.Bounds(0, bounds),
        constraints=constraints,
        options={"mip_rel_gap": 0},
    )
    return None if found.x is None else round(found.fun)


def cost_of(problem: Problem, plan: Placement) -> int:
    """What a plan costs, if it breaks no rule."""
    above = plan.levels | plan.restored
    total = 0
    for stage in problem.stages:
        level = plan.levels[stage.name]
        assert 0 <= level <= problem.depth
        total += stage.costs[level]
        for name, taken in stage.inputs:
            assert above[name] >= level + taken
        if stage.name in plan.restored:
            assert stage.restored and level >= problem.due
            total += stage.restored[plan.ways[stage.name]][plan.restored[stage.name]]
    assert set(plan.ways) == set(plan.restored)
    return total


def random_stage(
    rng: np.random.Generator, name: str, sources: list[str], depth: int, restores: float = 0.8
) -> Stage:
    """An operation that takes up to three levels, with costs that grow with the level."""
    inputs = tuple((source, int(rng.integers(0, 3))) for source in sources)
    slope, ciphertexts = rng.integers(1, 10), rng.integers(1, 3)
    costs = (
        tuple(int(slope * (level + 2)) for level in range(depth + 1))
        if sources
        else (0,) * (depth + 1)
    )
    ways = [  # one is cheaper to low levels, another to high ones; some levels are out of reach
        tuple(
            NEVER if rng.random() < 0.1 else int(ciphertexts * (start + slope * level))
            for level in range(depth + 1)
        )
        for start, slope in ((60, 8), (75, 3), (50, 12))
    ]
    restored = tuple(ways[: int(rng.integers(1, 4))])
    return Stage(name, inputs, costs, restored if rng.random() < restores else ())


def chain(rng: np.random.Generator, length: int, depth: int) -> list[Stage]:
    stages = [random_stage(rng, "x", [], depth)]
    for k in range(length):
        stages.append(random_stage(rng, f"n{k}", [stages[-1].name], depth))
    return stages


def series_parallel(rng: np.random.Generator, size: int, depth: int) -> list[Stage]:
    """Blocks with branches, some within others, as residual networks have them."""
    stages = [random_stage(rng, "x", [], depth)]

    def grow(start: str, room: int) -> str:
        end = start
        while room > 0:
            if room >= 3 and rng.random() < 0.6:
                inner = int(rng.integers(1, room))
                ends = [grow(end, inner), end if rng.random() < 0.5 else grow(end, 1)]
                stages.append(random_stage(rng, f"n{len(stages)}", ends, depth))
                room -= inner + 1
            else:
                stages.append(random_stage(rng, f"n{len(stages)}", [end], depth))
                room -= 1
            end = stages[-1].name
        return end

    grow("x", size)
    return stages


def any_graph(rng: np.random.Generator, size: int, depth: int) -> list[Stage]:
    """Any operation may take any arrays before it; several inputs, several outputs."""
    stages = [random_stage(rng, f"x{k}", [], depth) for k in range(int(rng.integers(1, 3)))]
    for k in range(size):
        count = int(rng.integers(1, min(3, len(stages)) + 1))
        picked = rng.choice(len(stages), count)  # an array may be taken twice
        stages.append(random_stage(rng, f"n{k}", [stages[i].name for i in picked], depth))
    return stages


def repeated(rng: np.random.Generator, steps: int, depth: int, states: int = 1) -> list[Stage]:
    """A loop: a client's input, an array that all iterations take, and a body that is the same in
    each of them."""
    words = Stage("words", (), (0,) * (depth + 1))
    shared = replace(random_stage(rng, "shared", ["words"], depth), restored=())
    body = [random_stage(rng, "part", ["shared"], depth)]
    for k in range(int(rng.integers(1, 4))):
        taken = [f"state{int(rng.integers(states))} before", "part"]
        body.append(random_stage(rng, f"n{k}", taken, depth))
    for k in range(states):
        other = str(rng.choice([stage.name for stage in body[1:]]))
        body.append(random_stage(rng, f"state{k}", [other, f"state{k} before"], depth))
    stages = [words, shared]
    stages += [random_stage(rng, f"state{k} 0", ["shared"], depth) for k in range(states)]
    for t in range(steps):
        named = {"shared": "shared"} | {f"state{k} before": f"state{k} {t}" for k in range(states)}
        named |= {stage.name: f"{stage.name} {t + 1}" for stage in body}
        for stage in body:
            inputs = tuple((named[name], taken) for name, taken in stage.inputs)
            stages.append(replace(stage, name=named[stage.name], inputs=inputs))
    return stages


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([chain, series_parallel, any_graph]))
def test_plans_are_as_cheap_as_the_exact_solver_s(seed: int, kind: object) -> None:
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(3, 7))
    due = int(rng.integers(0, 2))
    problem = Problem(tuple(kind(rng, int(rng.integers(2, 8)), depth)), depth, due)  # type: ignore[operator]
    plan, least = placed(problem), oracle(problem)
    assert (plan is None) == (least is None)
    if plan is not None:
        assert plan.cost == plan.bound == least == cost_of(problem, plan)
        assert plan == placed(problem)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32))
def test_plans_of_loops_are_as_cheap_as_the_exact_solver_s(seed: int) -> None:
    """Also if the values of an array that all iterations take are passed through by intervals, as
    they are in long loops. With as many intervals as it takes: beyond _MOST of them, a plan may
    cost more, and its bound says so."""
    rng = np.random.default_rng(seed)
    steps, depth = int(rng.integers(3, 6)), int(rng.integers(3, 5))
    problem = Problem(tuple(repeated(rng, steps, depth)), depth, int(rng.integers(0, 2)))
    least = oracle(problem)
    for many in (steps, 24):  # `shared` has a neighbour more for each step
        with mock.patch.multiple(elimination, _MANY=many, _LARGE=0, _MOST=10_000):
            plan = placed(problem)
            assert (plan is None) == (least is None)
            if plan is not None:
                assert plan.cost == plan.bound == least == cost_of(problem, plan)
                assert placed(problem, below=plan.cost) is None
                assert placed(problem, below=plan.cost + 1) == plan


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (elimination.LIMIT, "1 intervals of the levels of .*shared.* were tried"),
        (1, "tables of more than 1 costs were split"),
    ],
)
def test_a_search_that_gives_up_does_not_say_that_there_is_no_plan(limit: int, says: str) -> None:
    """With a single interval, or with tables of one variable, one problem in 30 has a plan and is
    given up: of 1,000, none with probability 1e-15."""
    rng = np.random.default_rng()
    few = {"_MOST": 0, "_MANY": 4, "_LARGE": 0} if limit > 1 else {"_MOST": 200}
    for _ in range(1000):
        depth = int(rng.integers(3, 5))
        problem = Problem(tuple(repeated(rng, 4, depth)), depth, int(rng.integers(0, 2)))
        there = placed(problem) is not None
        try:
            with mock.patch.multiple(elimination, **few):
                assert (placed(problem, limit) is not None) == there
        except Undecided as gave_up:
            assert re.search(f"there may be one: {says}.* or ask for fewer", str(gave_up))
            if there:
                return
    raise AssertionError("every search found its plan")


def minima_of(problem: Problem) -> int:
    """How many minima of sums of tables a plan takes."""
    with mock.patch.object(elimination, "_minimum", wraps=elimination._minimum) as counted:
        plan = placed(problem)
    assert plan is not None and plan.cost == plan.bound == cost_of(problem, plan)
    return counted.call_count


def lstm(steps: int, depth: int) -> Problem:
    """Six levels a step, two states, and gates that all take the state and a part of an array of
    all steps."""

    def stage(name: str, cost: int, *inputs: tuple[str, int]) -> Stage:
        costs = tuple(cost * (level + 5) for level in range(depth + 1))
        restored = tuple(1000 + 30 * level for level in range(depth + 1))
        return Stage(name, inputs, costs, (restored,))

    stages = [Stage("words", (), (0,) * (depth + 1))]
    stages.append(replace(stage("shared", 900, ("words", 1)), restored=()))
    stages += [stage("h0", 1, ("shared", 1)), stage("c0", 1, ("shared", 1))]
    for t in range(1, steps + 1):
        x, h, c = (f"x{t}", 1), (f"h{t - 1}", 1), (f"c{t - 1}", 1)
        stages.append(stage(f"x{t}", 1, ("shared", 1)))
        for gate in "ifgo":
            stages.append(stage(f"z{gate}{t}", 8, h, x))
            stages.append(stage(f"{gate}{t}", 4, (f"z{gate}{t}", 2)))
        stages.append(stage(f"fc{t}", 2, (f"f{t}", 1), c))
        stages.append(stage(f"ig{t}", 2, (f"i{t}", 1), (f"g{t}", 1)))
        stages.append(stage(f"c{t}", 0, (f"fc{t}", 0), (f"ig{t}", 0)))
        stages.append(stage(f"oc{t}", 2, (f"o{t}", 1), (f"c{t}", 1)))
        stages.append(stage(f"cc{t}", 2, (f"c{t}", 1)))
        stages.append(stage(f"h{t}", 2, (f"oc{t}", 1), (f"cc{t}", 1)))
    return Problem(tuple(stages), depth, 3)


def test_an_lstm_is_planned_by_its_period() -> None:
    """Its plan is exact, and three times as many steps take hardly more tables: the search may pass
    through other intervals."""
    short, long = (minima_of(lstm(steps, 20)) for steps in (40, 120))
    assert long < 1.5 * short


def test_long_loops_cost_powers_of_one_iteration() -> None:
    """One state: the least costs of n iterations are the nth power of those of one, with minima in
    the place of sums."""
    rng = np.random.default_rng()
    depth, steps = 6, 70
    body = [random_stage(rng, f"n{k}", [f"n{k - 1}"], depth, 1.0) for k in range(1, 4)]

    def loop(count: int) -> list[Stage]:
        stages = [Stage("n0", (), (0,) * (depth + 1))]
        for t in range(count):
            for k, stage in enumerate(body, 3 * t + 1):
                inputs = tuple((f"n{k - 1}", taken) for _, taken in stage.inputs)
                stages.append(replace(stage, name=f"n{k}", inputs=inputs))
        return stages

    one = passage(Problem(tuple(loop(1)), depth, 1), "n0", "n3")
    power = one
    for _ in range(steps - 1):
        power = np.minimum((power[:, :, None] + one[None]).min(axis=1), NEVER)
    plan = placed(Problem(tuple(loop(steps)), depth, 1))
    assert (NEVER if plan is None else plan.cost) == power.min()
    assert plan is None or plan.bound == plan.cost


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_small_tables_say_how_far_the_plan_may_be_off(seed: int) -> None:
    """With tables of three variables at most, entangled graphs have plans between the bound and the
    stated cost."""
    rng = np.random.default_rng(seed)
    problem = Problem(tuple(any_graph(rng, 10, 5)), 5, 1)

    def by_small_tables(problem: Problem) -> Placement | None:
        try:
            return placed(problem, limit=6**3)
        except Undecided:
            return None

    best, plan = placed(problem), by_small_tables(problem)
    if plan is not None:
        assert best is not None
        assert plan.bound <= best.cost <= plan.cost == cost_of(problem, plan)
    # Without the bootstraps of dear arrays there is a plan, too, and it is not cheaper.
    least = min((int(s.cheapest.min()) for s in problem.stages if s.restored), default=0)
    stages = (
        replace(s, restored=()) if s.restored and s.cheapest.min() > least else s
        for s in problem.stages
    )
    few = by_small_tables(replace(problem, stages=tuple(stages)))
    assert few is None or (plan is not None and plan.cost <= few.cost)


def deep(length: int, depth: int, boot: int) -> Problem:
    """A path of operations of one level each, of which the first half has dear bootstraps."""
    stages = [Stage("x", (), (0,) * (depth + 1))]
    for k in range(length):
        price = boot * 2 if k < length // 2 else boot
        restored = tuple(price + 2 * level for level in range(depth + 1))
        stages.append(Stage(f"n{k}", ((stages[-1].name, 1),), (0,) * (depth + 1), (restored,)))
    return Problem(tuple(stages), depth, 3)


def test_a_path_by_hand() -> None:
    """13 levels between two bootstraps, 16 after the last: the figures of docs/bootstrapping.md's
    n16_fast."""
    for length, count in ((16, 0), (17, 1), (29, 1), (30, 2), (42, 2), (43, 3)):
        plan = placed(deep(length, 16, 1000))
        assert plan is not None and len(plan.restored) == count
    plan = placed(deep(20, 16, 1000))
    assert plan is not None
    # The late bootstrap is the cheap one, and it restores no more levels than follow it.
    ((name, level),) = plan.restored.items()
    assert name == "n12" and level == 7 and plan.cost == 1014
    assert (
        placed(deep(4, 3, 1)) is None
    )  # what comes from level 3 is at level 2, below that at which one bootstraps


def test_the_cheapest_way_is_taken_to_every_level() -> None:
    """Behind a path of k operations that take a level each, an array is restored to level k."""
    ways = ((100,) * 7, tuple(10 + 20 * level for level in range(7)))
    for after, way in ((3, 1), (4, 1), (5, 0), (6, 0)):
        stages = [Stage("x", (), (0,) * 7), Stage("y", (("x", 3),), (0,) * 7, ways)]
        stages.append(Stage("z", (("y", after),), (0,) * 7))
        plan = placed(Problem(tuple(stages), 6, 1))
        assert plan is not None
        if after == 3:
            assert not plan.restored and not plan.ways
        else:
            assert plan.restored == {"y": after} and plan.ways == {"y": way}
            assert plan.cost == ways[way][after]


def residual(blocks: int, depth: int, boot: int) -> Problem:
    """ResNet-20 with quadratic activations: a convolution and an activation take a level each."""
    flat = (0,) * (depth + 1)
    restored = tuple(boot + level for level in range(depth + 1))
    stages = [Stage("x", (), flat)]

    def add(name: str, *inputs: tuple[str, int]) -> str:
        stages.append(Stage(name, inputs, tuple(range(1, depth + 2)), (restored,)))
        return name

    end = add("act", (add("stem", ("x", 1)), 1))
    for k in range(blocks):
        first = add(f"act{k}a", (add(f"conv{k}a", (end, 1)), 1))
        joined = add(f"join{k}", (first, 1), (end, 1 if k in (3, 6) else 0))
        end = add(f"act{k}b", (joined, 1))
    add("dense", (end, 1))
    return Problem(tuple(stages), depth, 3)


def test_resnet_20_takes_two_bootstraps() -> None:
    plan = placed(residual(9, 16, 10**6))
    assert plan is not None and plan.cost == plan.bound
    assert len(plan.restored) == 2
    # 39 levels: a cut lies where a single array is alive, after the sum of a block or after its
    # activation.
    assert all(
        name.startswith(("join", "act")) and not name.endswith("a") for name in plan.restored
    )
    three = placed(residual(9, 15, 10**6))
    assert three is not None and len(three.restored) == 3  # a fresh input has one level less


def test_tables_of_regions_compose() -> None:
    """The table of a path is the minimum over the level between its parts."""
    rng = np.random.default_rng()
    stages = chain(rng, 6, 5)
    whole = passage(Problem(tuple(stages), 5, 1), "x", "n5")
    first = passage(Problem(tuple(stages[:4]), 5, 1), "x", "n2")
    alone = Stage("n2", (), (0,) * 6)
    second = passage(Problem((alone, *stages[4:]), 5, 1), "n2", "n5")
    composed = (first[:, :, None] + second[None]).min(axis=1)
    assert np.array_equal(np.minimum(composed, NEVER), whole)


def test_elimination_by_enumeration() -> None:
    """Tables of three variables, of different sizes, against all combinations."""
    rng = np.random.default_rng()
    sizes = {"a": 2, "b": 3, "c": 4, "d": 2}
    scopes = [("a", "b", "c"), ("c", "b"), ("d", "a"), ("d",)]
    tables = [Table(s, rng.integers(0, 50, [sizes[n] for n in s])) for s in scopes]
    total = sum(table.over(tuple(sizes)) for table in tables)
    found = minimised(tables)
    assert found.cost == found.bound == np.min(total)
    assert total[tuple(found.values[n] for n in sizes)] == found.cost
