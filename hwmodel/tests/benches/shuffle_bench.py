"""shuffle against its definition: of segments (u0 u1, v0 v1), u1 and v0 change places."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from streams import SETTINGS, Beat, Unit, check_stream, record_frames

WIDTH, L, T = SETTINGS["WIDTH"], SETTINGS["L"], SETTINGS["T"]


def shuffled(frame: list[Beat]) -> list[Beat]:
    u, v = ([beat[name] for beat in frame] for name in ("in_u", "in_v"))
    for at in range(0, len(frame), 2 * L):
        u[at + L : at + 2 * L], v[at : at + L] = v[at : at + L], u[at + L : at + 2 * L]
    return [{"out_u": a, "out_v": b} for a, b in zip(u, v, strict=True)]


@cocotb.test()
async def frames(dut: Any) -> None:
    unit = Unit(dut, ("in_u", "in_v"), ("out_u", "out_v"))
    beats = [
        {name: random.getrandbits(WIDTH) for name in ("in_u", "in_v")}
        for _ in range(SETTINGS["count"] * T)
    ]
    expected = shuffled(beats)
    await check_stream(unit, beats, expected)
    # Frames with gaps of every length between them, in which the unit empties or does not.
    for gap in random.sample(range(1, 2 * L + 3), 3):
        for k in range(0, len(beats), T):
            log = await unit.run(beats[k : k + T], T)
            assert log.beats == expected[k : k + T]
            for _ in range(gap):
                await unit._edge()
    record_frames(await unit.run(beats, len(beats)))
