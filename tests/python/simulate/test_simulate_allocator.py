"""The allocators: against each other, against every choice, and against a solver of integer
programs."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jali import errors
from jali.simulate.allocator import (
    Allocation,
    DataEntity,
    bound,
    entities_of,
    exact,
    greedy,
    sweep,
)
from jali.simulate.steps import Entity, Kind, StepsBuilder


def _entities(count: int, most: int = 9) -> st.SearchStrategy[list[DataEntity]]:
    number = st.integers(0, most)
    fields = st.tuples(st.integers(1, most), number, number, number, st.booleans())

    def build(rows: list[tuple[int, int, int, int, bool]]) -> list[DataEntity]:
        return [
            DataEntity(f"e{i}", size, reads, first, first + length, made)
            for i, (size, reads, first, length, made) in enumerate(rows)
        ]

    return st.lists(fields, max_size=count).map(build)


def _fits(chosen: list[DataEntity], sram: int) -> bool:
    return all(sum(e.bytes for e in chosen if e.first <= t.first <= e.last) <= sram for t in chosen)


def _best_of_all(entities: list[DataEntity], sram: int) -> int:
    choices = itertools.product((False, True), repeat=len(entities))
    held = ([e for e, taken in zip(entities, c, strict=True) if taken] for c in choices)
    return max(sum(e.saving for e in chosen) for chosen in held if _fits(chosen, sram))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_entities(8), st.integers(0, 30))
def test_exact_is_the_best_of_all_choices(entities: list[DataEntity], sram: int) -> None:
    found = exact(entities, sram)
    assert _fits(list(found.held), sram)
    assert found.saving == _best_of_all(entities, sram)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_entities(40, 30), st.integers(0, 100))
def test_greedy_exact_and_bound_are_ordered(entities: list[DataEntity], sram: int) -> None:
    dear, best = greedy(entities, sram), exact(entities, sram)
    for found in (dear, best):
        assert set(found.held) <= set(entities)
        assert found.peak <= sram
        assert found.outer_bytes == sum(e.cost for e in entities) - found.saving
    assert dear.saving <= best.saving <= bound(entities, sram) * (1 + 1e-9) + 1e-6


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_entities(20, 20), st.lists(st.integers(0, 80), min_size=2, max_size=5))
def test_more_memory_never_makes_exact_worse(entities: list[DataEntity], sizes: list[int]) -> None:
    outer = [found.outer_bytes for found in sweep(entities, sorted(sizes))]
    assert outer == sorted(outer, reverse=True)


def test_more_memory_can_make_greedy_worse() -> None:
    """The named exception: one dear entity displaces two that save more together."""
    entities = [
        DataEntity("dear", 10, 2, made=True),
        DataEntity("a", 4, 4, made=True),
        DataEntity("b", 4, 4, made=True),
    ]
    small, large = (greedy(entities, sram) for sram in (8, 10))
    assert (small.saving, large.saving) == (32, 20)
    assert exact(entities, 10).saving == 32


def test_exact_agrees_with_integer_programming(rng: np.random.Generator) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    for _ in range(5):
        begins = rng.integers(0, 40, 45)
        entities = [
            DataEntity(
                f"e{i}", int(rng.integers(1, 500)), int(rng.integers(0, 20)), int(b), int(b + d)
            )
            for i, (b, d) in enumerate(zip(begins, rng.integers(0, 12, 45), strict=True))
        ]
        sram = int(rng.integers(500, 2500))
        alive = [[e.first <= t <= e.last for e in entities] for t in range(52)]
        weights = np.array(alive) * np.array([e.bytes for e in entities])
        solved = optimize.milp(
            [-e.saving for e in entities],
            constraints=optimize.LinearConstraint(weights, ub=sram),
            integrality=np.ones(len(entities)),
            bounds=optimize.Bounds(0, 1),
            options={"mip_rel_gap": 0},  # else it stops within 0.01% of the best
        )
        assert solved.success
        assert exact(entities, sram).saving == pytest.approx(-solved.fun, abs=0.5)


def test_entities_that_do_not_live_together_share_memory() -> None:
    entities = [DataEntity(f"e{i}", 10, 5, first=i, last=i) for i in range(100)]
    for allocator in (greedy, exact):
        found = allocator(entities, 10)
        assert len(found.held) == 100
        assert found.peak == 10


def test_a_first_read_is_never_saved_unless_the_chip_made_it() -> None:
    read, made = DataEntity("read", 7, 3), DataEntity("made", 7, 3, made=True)
    assert (read.saving, made.saving) == (14, 21)
    assert DataEntity("once", 7, 1).saving == 0
    assert greedy([DataEntity("once", 7, 1)], 100).held == ()


def test_nothing_is_an_allocation_too() -> None:
    for allocator in (greedy, exact):
        assert allocator([], 10) == Allocation((), (), 10)
    assert bound([], 10) == 0
    assert Allocation((), (), 10).peak == 0


def test_too_many_states_are_refused_in_a_sentence(rng: np.random.Generator) -> None:
    sizes = rng.choice(100_000, 60, replace=False) + 1
    entities = [DataEntity(f"e{i}", int(s), int(rng.integers(2, 9))) for i, s in enumerate(sizes)]
    with pytest.raises(errors.LimitExceeded, match="greedy"):
        exact(entities, int(sizes.sum()) // 2, limit=10)


@pytest.mark.parametrize(
    ("fields", "word"),
    [((0, 1, 0, 0), "bytes"), ((1, -1, 0, 0), "reads"), ((1, 1, 2, 1), "last")],
)
def test_bad_entities_are_refused(fields: tuple[int, int, int, int], word: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=word):
        DataEntity("bad", *fields)


def test_a_negative_memory_is_refused() -> None:
    with pytest.raises(errors.InvalidArgument, match="sram"):
        greedy([], -1)


def test_entities_of_a_program() -> None:
    """Two rotations with one key, of an input that is read twice, and a sum that is stored and read
    again."""
    program = StepsBuilder()
    for _ in range(2):
        program.load(Entity.CIPHERTEXT, 20, operand=1)
        program.load(Entity.KEY, 100, operand=2)
        work = program.append(Kind.MAC, 16, 4)
        program.store(Entity.PARTIAL_SUM, 30, operand=3, after=(work,))
    program.load(Entity.PARTIAL_SUM, 30, operand=3)
    program.load(Entity.PLAINTEXT, 7)  # has no number
    found = entities_of(program.build())
    assert found == [
        DataEntity("ciphertext 1", 20, 2, 0, 4),
        DataEntity("key 2", 100, 2, 1, 5),
        DataEntity("partial sum 3", 30, 1, 3, 8, made=True),
    ]
    held = exact(found, 120)
    assert {e.name for e in held.held} == {"ciphertext 1", "key 2"}
    assert held.outer_by_entity == {"ciphertext 1": 20, "key 2": 100, "partial sum 3": 30}
    assert held.outer_bytes == sum(held.outer_by_entity.values())
