"""mac_array against Python's integers."""

from __future__ import annotations

from typing import Any

import cocotb
from residues import prime_of, reciprocal, residues
from streams import SETTINGS, Unit, check_stream, measure

W, C = SETTINGS["W"], SETTINGS["C"]


def packed(words: list[int]) -> int:
    return sum(word << (lane * W) for lane, word in enumerate(words))


@cocotb.test()
async def sums_of_products(dut: Any) -> None:
    for lowest in (False, True):
        q = prime_of(W, 64, lowest)
        dut.q.value, dut.mu.value = q, reciprocal(q)
        beats, expected = [], []
        for _ in range(SETTINGS["count"]):
            a, b, c = (residues(q, C) for _ in range(3))
            beats.append({"a": packed(a), "b": packed(b), "c": packed(c)})
            expected.append(
                {"r": packed([(z + x * y) % q for x, y, z in zip(a, b, c, strict=True)])}
            )
        unit = Unit(dut, ("a", "b", "c"), ("r",))
        await check_stream(unit, beats, expected)
    await measure(unit, beats)
