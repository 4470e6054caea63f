"""mod_mul against Python's integers."""

from __future__ import annotations

from itertools import product
from typing import Any

import cocotb
from residues import prime_of, reciprocal, residues
from streams import SETTINGS, Unit, check_stream, measure

W = SETTINGS["W"]


def unit_for(dut: Any, q: int) -> Unit:
    dut.q.value, dut.mu.value = q, reciprocal(q)
    return Unit(dut, ("a", "b"), ("r",))


@cocotb.test()
async def products(dut: Any) -> None:
    """For the smallest and the largest prime: every pair of edges, then residues under pressure and a reset."""
    for lowest in (False, True):
        q = prime_of(W, 64, lowest)
        edges = [0, 1, 2, 3, q // 2, q // 2 + 1, q - 3, q - 2, q - 1]
        pairs = list(product(edges, edges))
        pairs += zip(residues(q, SETTINGS["count"]), residues(q, SETTINGS["count"]), strict=True)
        beats = [{"a": a, "b": b} for a, b in pairs]
        await check_stream(unit_for(dut, q), beats, [{"r": a * b % q} for a, b in pairs])


@cocotb.test()
async def speed(dut: Any) -> None:
    q = prime_of(W, 64)
    await measure(unit_for(dut, q), [{"a": a, "b": a} for a in residues(q, 50)])
