"""rotator against X^a p - p in Python's integers."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import beats_of
from streams import PRESSURES, SETTINGS, Unit, record

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
    await unit.reset()
    for full_in, full_out in PRESSURES:
        assert (await unit.run(beats, len(results), full_in, full_out)).beats == results
    await unit.run(beats, len(results), stop_after=random.randrange(1, len(beats)))
    await unit.reset(1)
    log = await unit.run(beats, len(results))
    assert log.beats == results
    steps = {b - a for a, b in zip(log.given, log.given[1:], strict=False)}
    assert len(steps) == 1, "frames back to back leave a gap"
    record(latency=log.given[0] - log.taken[0] - N // C, interval=steps.pop())
