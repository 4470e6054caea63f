"""ks_mac against Python's integers: sums of random length."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import packed
from streams import PRESSURES, SETTINGS, Unit, record

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
    await unit.reset()
    for full_in, full_out in PRESSURES:
        assert (await unit.run(beats, len(results), full_in, full_out)).beats == results
    await unit.run(beats, len(results), stop_after=random.randrange(1, len(beats)))
    await unit.reset(1)
    log = await unit.run(beats, len(results))
    assert log.beats == results
    record(
        latency=log.given[-1] - log.taken[-1],
        interval=(log.taken[-1] - log.taken[0]) / (len(beats) - 1),
    )
