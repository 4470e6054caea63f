"""ks_mac against Python's integers: sums of random length."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import packed
from streams import SETTINGS, Unit, check_stream, record_sums

CLP, COLP, D = SETTINGS["CLP"], SETTINGS["COLP"], SETTINGS["D"]


@cocotb.test()
async def sums(dut: Any) -> None:
    unit = Unit(dut, ("in_digits", "in_key", "in_last"), ("out_data",))
    beats, results = [], []
    most = 1 << (D - 1)
    for _ in range(SETTINGS["count"]):
        total, length = [0] * COLP, random.randrange(1, 6)
        for i in range(length):
            digits = [
                random.choice((-most, most - 1, random.randrange(-most, most))) for _ in range(CLP)
            ]
            key = [[random.getrandbits(32) for _ in range(COLP)] for _ in range(CLP)]
            flat = [word for row in key for word in row]
            beats.append(
                {
                    "in_digits": packed(digits, D),
                    "in_key": packed(flat, 32),
                    "in_last": i == length - 1,
                }
            )
            for m in range(COLP):
                total[m] -= sum(d * row[m] for d, row in zip(digits, key, strict=True))
        results.append({"out_data": packed(total, 32)})
    record_sums(await check_stream(unit, beats, results))
