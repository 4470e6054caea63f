"""decomposer: the digits of the definition, and what they are for: they recompose the word, and no other digits do better."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import cocotb
from lanes import packed
from streams import PRESSURES, SETTINGS, Unit, interrupt, record

C, BASE_LOG, LEVELS = SETTINGS["C"], SETTINGS["BASE_LOG"], SETTINGS["LEVELS"]
BASE, DROPPED, D = 1 << BASE_LOG, 32 - BASE_LOG * LEVELS, BASE_LOG + 1


def word() -> int:
    """A word that may tie: near a multiple of half a unit, or with digits of B/2."""
    ties = sum(
        random.choice((0, 1, BASE // 2, BASE // 2 - 1, BASE - 1)) << (DROPPED + k * BASE_LOG)
        for k in range(LEVELS)
    )
    near = ties + random.choice((0, -1, 1, (1 << DROPPED) // 2))
    return random.choice((near, random.getrandbits(32))) % (1 << 32)


def check(x: int, digits: list[int]) -> None:
    """Closest: half a unit away at most. Balanced: |d| <= B/2. Ties of B/2 are settled by the digit above, which is why
    digits of one sign do not carry."""
    back = sum(d << (32 - (j + 1) * BASE_LOG) for j, d in enumerate(digits))
    error = (x - back + (1 << 31)) % (1 << 32) - (1 << 31)
    assert abs(error) <= (1 << DROPPED) // 2
    assert all(abs(d) <= BASE // 2 for d in digits)
    for above, d in pairwise(digits):
        # d = +B/2 only if what was above it, d's carry apart, was even; d = -B/2 only if it was
        # odd.
        if d == BASE // 2:
            assert above % 2 == 0
        if d == -BASE // 2:
            assert above % 2 == 0


@cocotb.test()
async def digits(dut: Any) -> None:
    unit = Unit(dut, ("in_data",), ("out_data",))
    words = [[word() for _ in range(C)] for _ in range(SETTINGS["count"])]
    beats = [{"in_data": packed(lanes, 32)} for lanes in words]
    await unit.reset()
    first = None
    for full_in, full_out in PRESSURES:
        log = await unit.run(beats, LEVELS * len(beats), full_in, full_out)
        assert first in (None, log.beats), "digits depend on the pressure"
        first = log.beats
    assert first is not None
    for k, lanes in enumerate(words):
        for lane, x in enumerate(lanes):
            shown = []
            for j in range(LEVELS):  # the last level comes first
                raw = first[(k + 1) * LEVELS - 1 - j]["out_data"] >> (lane * D) & ((1 << D) - 1)
                shown.append(raw - (1 << D) if raw >> (D - 1) else raw)
            check(x, shown)
    await interrupt(unit, beats, first)
    log = await unit.run(beats, LEVELS * len(beats))
    assert log.beats == first
    record(
        latency=log.given[0] - log.taken[0],
        interval=(log.taken[-1] - log.taken[0]) / (len(beats) - 1) / LEVELS,
    )
