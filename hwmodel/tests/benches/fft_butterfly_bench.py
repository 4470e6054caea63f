"""fft_butterfly against Python's integers."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from fixed_fft import Complex, Format
from streams import SETTINGS, Unit, check_stream, measure

DW, TW = SETTINGS["DW"], SETTINGS["TW"]
FORMAT = Format(DW, TW, SETTINGS.get("FRAC", TW - 2))


def word(bits: int) -> int:
    edges = [-(1 << (bits - 1)), (1 << (bits - 1)) - 1, -1, 0, 1]
    return (
        random.choice(edges) if random.random() < 0.3 else random.randrange(edges[0], edges[1] + 1)
    )


def packed(z: Complex, bits: int) -> int:
    """{imaginary, real}."""
    mask = (1 << bits) - 1
    return (z[1] & mask) << bits | z[0] & mask


@cocotb.test()
async def butterflies(dut: Any) -> None:
    beats, expected = [], []
    rule = FORMAT.butterfly_back if SETTINGS["INVERSE"] else FORMAT.butterfly
    for _ in range(SETTINGS["count"]):
        a, b, w = (word(DW), word(DW)), (word(DW), word(DW)), (word(TW), word(TW))
        u, v = rule(a, b, w)
        beats.append({"a": packed(a, DW), "b": packed(b, DW), "w": packed(w, TW)})
        expected.append({"u": packed(u, DW), "v": packed(v, DW)})
    unit = Unit(dut, ("a", "b", "w"), ("u", "v"))
    await check_stream(unit, beats, expected)
    await measure(unit, beats)
