"""Which loads hit and which stores leave the chip, against a direct simulation of the rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jali.simulate import Entity, Kind, Machine, StepsBuilder
from jali.simulate.report import occupancy
from jali.simulate.residency import place
from jali.simulate.scheduler import schedule

MACHINE = """
format = 1
name = "memory"
frequency_hz = {{ value = 1e9, source = "assumed" }}
[units.mac]
count = {{ value = 1, source = "assumed" }}
lanes = {{ value = 1, source = "assumed" }}
[units.mac.kinds.MAC]
[memories.buffer]
bytes = {{ value = {room}, source = "assumed" }}
holds = ["key", "scratch", "ciphertext"]
[channels.dram]
carries = ["all"]
bytes_a_second = {{ value = 1e9, source = "assumed" }}
buffer_bytes = {{ value = {ahead}, source = "assumed" }}
"""


def machine(room: int, ahead: int = 100) -> Machine:
    return Machine.parse(MACHINE.format(room=room, ahead=ahead))


def uses(operands: Sequence[int], room: int) -> list[bool]:
    """Loads of 10 bytes, each with one use; whether each moved."""
    b = StepsBuilder()
    for operand in operands:
        load = b.load(Entity.KEY, 10, operand)
        b.append(Kind.MAC, 5, after=(load,))
    return [bool(x) for x in place(b.build(), machine(room)).moved[::2]]


def test_the_farthest_next_use_goes() -> None:
    # Room for two: when 3 comes, 2 is needed later than 1, so 2 goes.
    assert uses([1, 2, 3, 1, 2], 20) == [True, True, True, False, True]
    assert uses([1, 2, 3, 1, 2], 30) == [True, True, True, False, False]
    assert uses([1, 1, 1], 5) == [True, True, True]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=25), st.integers(1, 5))
def test_misses_are_as_few_as_can_be(operands: list[int], slots: int) -> None:
    """With operands of one size the rule is Belady's: as few misses as any choice has (a search
    over all of them)."""
    found = sum(uses(operands, 10 * slots))
    states: dict[frozenset[int], int] = {frozenset(): 0}
    for operand in operands:
        after: dict[frozenset[int], int] = {}
        for held, misses in states.items():
            if operand in held:
                choices = [(held, misses)]
            elif len(held) < slots:
                choices = [(held | {operand}, misses + 1)]
            else:
                choices = [(held - {gone} | {operand}, misses + 1) for gone in held]
            for state, count in choices:
                after[state] = min(count, after.get(state, count))
        states = after
    assert found == min(states.values())


def test_scratch_leaves_the_chip_only_if_it_must() -> None:
    def written(room: int, entity: Entity) -> list[bool]:
        b = StepsBuilder()
        a = b.append(Kind.MAC, 4)
        b.store(entity, 10, 1, after=(a,))
        c = b.append(Kind.MAC, 4, after=(b.load(Entity.KEY, 10, 2),))
        d = b.append(Kind.MAC, 4, after=(c, b.load(entity, 10, 1)))
        b.store(entity, 10, 1, after=(d,))
        steps = b.build()
        moved = place(steps, machine(room)).moved
        return [bool(moved[i]) for i in range(len(steps)) if steps.kind[i] == Kind.STORE]

    assert written(20, Entity.SCRATCH) == [False, False]
    assert written(10, Entity.SCRATCH) == [True, False]
    assert written(20, Entity.CIPHERTEXT) == [False, True]
    assert written(10, Entity.PARTIAL_SUM) == [True, True]  # no memory holds it


def test_a_load_waits_for_the_store_of_its_operand() -> None:
    for room in (10, 1):  # on the chip, and over it
        b = StepsBuilder()
        a = b.append(Kind.MAC, 50)
        b.store(Entity.SCRATCH, 10, 1, after=(a,))
        load = b.load(Entity.SCRATCH, 10, 1)
        b.append(Kind.MAC, 5, after=(load,))
        result = schedule(b.build(), machine(room))
        assert result.end[load] == (50 if room == 10 else 70)


def test_streams_run_ahead_as_far_as_their_buffer() -> None:
    """Plaintexts of 10 cycles each, used for 100 cycles: with room for two, the third waits for the
    first one's use."""
    b = StepsBuilder()
    loads = []
    for _ in range(3):
        loads.append(b.load(Entity.PLAINTEXT, 10))
        b.append(Kind.MAC, 100, after=loads[-1:])
    starts = {ahead: schedule(b.build(), machine(1, ahead)).start[loads].tolist() for ahead in (20, 30)}  # fmt: skip
    assert starts == {20: [0, 10, 110], 30: [0, 10, 20]}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 30), st.booleans()), max_size=30),
    st.integers(10, 80),
)
def test_the_memory_is_never_over_full(asks: list[tuple[int, int, bool]], room: int) -> None:
    b = StepsBuilder()
    last = -1
    sizes: dict[int, int] = {}
    for operand, size, stores in asks:
        size = sizes.setdefault(operand, size)
        if stores:
            b.store(Entity.SCRATCH, size, operand, after=(last,) if last >= 0 else ())
        else:
            load = b.load(Entity.KEY if operand % 2 else Entity.SCRATCH, size, operand)
            last = b.append(Kind.MAC, 7, after=(load,))
    steps = b.build()
    result = schedule(steps, machine(room))
    for name, (_, used) in occupancy(result).items():
        if len(used):
            assert used.min() >= 0 and used[-1] == 0
            assert used.max() <= result.residency.capacity[name]


def test_what_finds_no_room_is_said() -> None:
    b = StepsBuilder()
    loads = [b.load(Entity.KEY, 10, i) for i in range(3)]
    b.append(Kind.MAC, 5, after=loads)
    result = schedule(b.build(), machine(20))
    assert result.residency.overflow["buffer"] == 10
    assert result.end[-1] == pytest.approx(35)
