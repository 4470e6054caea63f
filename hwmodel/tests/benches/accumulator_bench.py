"""accumulator against Python's integers: sums of one to four frames."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import packed
from streams import PRESSURES, SETTINGS, Unit, record

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
