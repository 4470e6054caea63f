"""ntt_core against Python's integers, both directions mixed."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from residues import prime_of, reciprocal, residues
from streams import SETTINGS, Beat, Unit, check_stream, measure

W = SETTINGS["W"]


def expected(beat: Beat, q: int) -> Beat:
    a, b, w = beat["a"], beat["b"], beat["w"]
    half = (q + 1) // 2
    if beat["inverse"]:
        return {"u": (a + b) * half % q, "v": (a - b) * half * w % q}
    return {"u": (a + b * w) % q, "v": (a - b * w) % q}


def unit_for(dut: Any, q: int) -> Unit:
    dut.q.value, dut.mu.value = q, reciprocal(q)
    return Unit(dut, ("inverse", "a", "b", "w"), ("u", "v"))


def beats_of(q: int, count: int) -> list[Beat]:
    columns = [residues(q, count) for _ in range(3)]
    return [
        {"inverse": random.getrandbits(1), "a": a, "b": b, "w": w}
        for a, b, w in zip(*columns, strict=True)
    ]


@cocotb.test()
async def butterflies(dut: Any) -> None:
    for lowest in (False, True):
        q = prime_of(W, 64, lowest)
        beats = beats_of(q, SETTINGS["count"])
        await check_stream(unit_for(dut, q), beats, [expected(beat, q) for beat in beats])


@cocotb.test()
async def speed(dut: Any) -> None:
    q = prime_of(W, 64)
    await measure(unit_for(dut, q), beats_of(q, 50))
