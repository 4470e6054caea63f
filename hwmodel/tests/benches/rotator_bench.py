"""rotator against X^a p - p in Python's integers."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import beats_of
from streams import SETTINGS, Unit, check_stream, record_frames

C, N = SETTINGS["C"], SETTINGS["N"]


def rotated_less(p: list[int], a: int) -> list[int]:
    """The coefficients of X^a p - p modulo X^N + 1."""
    out = [-x for x in p]
    for j, x in enumerate(p):
        to = (j + a) % (2 * N)
        out[to % N] += x if to < N else -x
    return out


@cocotb.test()
async def rotations(dut: Any) -> None:
    unit = Unit(dut, ("in_data", "in_exponent"), ("out_data",))
    beats, results = [], []
    for a in (0, 1, N - 1, N, 2 * N - 1, *random.sample(range(2 * N), SETTINGS["count"])):
        p = [random.getrandbits(32) for _ in range(N)]
        for t, data in enumerate(beats_of(p, C, 32)):
            beats.append({"in_data": data, "in_exponent": random.randrange(2 * N) if t else a})
        results += [{"out_data": data} for data in beats_of(rotated_less(p, a), C, 32)]
    record_frames(await check_stream(unit, beats, results), N // C)
