"""accumulator against Python's integers: sums of one to four frames."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import packed
from streams import SETTINGS, Unit, check_stream, record_sums

C, T = SETTINGS["C"], SETTINGS["T"]


@cocotb.test()
async def sums(dut: Any) -> None:
    unit = Unit(dut, ("in_data", "in_first", "in_last"), ("out_data",))
    beats, results = [], []
    for _ in range(SETTINGS["count"]):
        count = random.choice((1, 2, 4))
        frames = [
            [[random.getrandbits(32) for _ in range(C)] for _ in range(T)] for _ in range(count)
        ]
        for i, frame in enumerate(frames):
            beats += [
                {"in_data": packed(row, 32), "in_first": i == 0, "in_last": i == count - 1}
                for row in frame
            ]
        rows = [
            [sum(lane) for lane in zip(*(frame[t] for frame in frames), strict=True)]
            for t in range(T)
        ]
        results += [{"out_data": packed(row, 32)} for row in rows]
    record_sums(await check_stream(unit, beats, results))
