"""spn: random permutations, the identity, the order of an NTT, and the automorphisms of coefficients in order."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from routing import spn_tables
from streams import PRESSURES, SETTINGS, Beat, Unit, interrupt, record_frames
from transform import reversed_bits

W, C, N = SETTINGS["W"], SETTINGS["C"], SETTINGS["N"]


def packed(words: list[int]) -> list[Beat]:
    """The beats of frames."""
    return [
        {"in_data": sum(word << (lane * W) for lane, word in enumerate(words[i : i + C]))}
        for i in range(0, len(words), C)
    ]


async def load(unit: Unit, permutation: list[int]) -> None:
    dut = unit.dut
    await unit.reset()
    for row, word in enumerate(spn_tables(permutation, C)):
        dut.config_valid.value, dut.config_row.value, dut.config_data.value = 1, row, word
        await unit._edge()
    dut.config_valid.value = 0


def unit_for(dut: Any) -> Unit:
    dut.config_valid.value = 0
    return Unit(dut, ("in_data",), ("out_data",))


def frames(permutation: list[int], count: int) -> tuple[list[Beat], list[Beat]]:
    beats, results = [], []
    for _ in range(count):
        frame = [random.getrandbits(W) for _ in range(N)]
        beats += packed(frame)
        results += [
            {"out_data": b["in_data"]} for b in packed([frame[place] for place in permutation])
        ]
    return beats, results


@cocotb.test()
async def permutations(dut: Any) -> None:
    unit = unit_for(dut)
    shuffled = [random.sample(range(N), N) for _ in range(SETTINGS["count"])]
    galois = pow(5, random.randrange(1, N // 2), 2 * N)
    inverse = pow(galois, -1, N)
    known = [
        list(range(N)),
        list(range(N))[::-1],
        [reversed_bits(k, N) for k in range(N)],
        [k * inverse % N for k in range(N)],  # X^j -> X^(j g), but for the sign
    ]
    for permutation in known + shuffled:
        await load(unit, permutation)
        beats, results = frames(permutation, 3)
        for full_in, full_out in random.sample(PRESSURES, 2):
            assert (await unit.run(beats, len(results), full_in, full_out)).beats == results
        await interrupt(unit, beats, results)
        assert (await unit.run(beats, len(results))).beats == results


@cocotb.test()
async def speed(dut: Any) -> None:
    unit = unit_for(dut)
    await load(unit, list(range(N)))
    beats, results = frames(list(range(N)), 4)
    record_frames(await unit.run(beats, len(results)), N // C)
