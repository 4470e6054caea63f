"""vma against Python's integers."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import packed
from streams import SETTINGS, Unit, check_stream, measure

XW, KW, DW, C, PLP = (SETTINGS[name] for name in ("XW", "KW", "DW", "C", "PLP"))
SHIFT = SETTINGS["SHIFT"]


def number(bits: int) -> int:
    most = 1 << (bits - 1)
    return random.choice(
        (-most, most - 1, random.randrange(-most, most), random.randrange(-most, most))
    )


@cocotb.test()
async def sums(dut: Any) -> None:
    beats, expected = [], []
    half = (1 << SHIFT) // 2
    for _ in range(SETTINGS["count"]):
        x = [(number(XW), number(XW)) for _ in range(PLP * C)]
        k = [(number(KW), number(KW)) for _ in range(PLP * C)]
        out = []
        for lane in range(C):
            at = range(lane, PLP * C, C)
            re = sum(x[i][0] * k[i][0] - x[i][1] * k[i][1] for i in at)
            im = sum(x[i][0] * k[i][1] + x[i][1] * k[i][0] for i in at)
            out += [(re + half) >> SHIFT, (im + half) >> SHIFT]
        flat_x, flat_k = [part for z in x for part in z], [part for z in k for part in z]
        beats.append({"in_x": packed(flat_x, XW), "in_k": packed(flat_k, KW)})
        expected.append({"out_data": packed(out, DW)})
    unit = Unit(dut, ("in_x", "in_k"), ("out_data",))
    await check_stream(unit, beats, expected)
    await measure(unit, beats)
