"""adder_tree against Python's integers."""

from __future__ import annotations

from typing import Any

import cocotb
from residues import prime_of, residues
from streams import SETTINGS, Unit, check_stream, measure

W, C, G = SETTINGS["W"], SETTINGS["C"], SETTINGS["G"]


def packed(words: list[int]) -> int:
    return sum(word << (lane * W) for lane, word in enumerate(words))


@cocotb.test()
async def sums(dut: Any) -> None:
    for lowest in (False, True):
        q = prime_of(W, 64, lowest)
        dut.q.value = q
        groups = [[residues(q, C) for _ in range(G)] for _ in range(SETTINGS["count"])]
        beats = [{"in_data": packed([x for group in beat for x in group])} for beat in groups]
        expected = [
            {"out_data": packed([sum(lane) % q for lane in zip(*beat, strict=True)])}
            for beat in groups
        ]
        unit = Unit(dut, ("in_data",), ("out_data",))
        await check_stream(unit, beats, expected)
    await measure(unit, beats)
