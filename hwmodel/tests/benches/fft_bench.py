"""fft against the model in Python's integers, and that against the exact product."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from fft_butterfly_bench import packed
from fixed_fft import Complex, Format, lane_words
from streams import PRESSURES, SETTINGS, Beat, Unit, interrupt, record

DW, TW, P, INVERSE = SETTINGS["DW"], SETTINGS["TW"], SETTINGS["P"], SETTINGS["INVERSE"]
FORMAT = Format(DW, TW, SETTINGS.get("FRAC", TW - 2))
BEATS = P // 4
STAGES = P.bit_length() - 1


def beats_of(words: list[Complex], values: bool, port: str) -> list[Beat]:
    beats = []
    for beat in range(BEATS):
        lanes = [packed(words[w], DW) for w in lane_words(BEATS, beat, values)]
        beats.append({port: sum(lane << (k * 2 * DW) for k, lane in enumerate(lanes))})
    return beats


async def load(unit: Unit) -> None:
    dut = unit.dut
    dut.twiddle_valid.value = 0
    await unit.reset()
    for stage in range(STAGES):
        for factor in range(1 << stage):
            dut.twiddle_valid.value, dut.twiddle_stage.value = 1, stage
            dut.twiddle_factor.value = factor
            dut.twiddle_data.value = packed(FORMAT.root(stage, factor, bool(INVERSE)), TW)
            await unit._edge()
    dut.twiddle_valid.value = 0


def frame() -> tuple[list[Beat], list[Beat]]:
    bits = random.choice((DW, DW - STAGES, DW // 2))
    x = [tuple(random.getrandbits(bits) - (1 << (bits - 1)) for _ in range(2)) for _ in range(P)]
    y = FORMAT.backward(x) if INVERSE else FORMAT.forward(x)
    return beats_of(x, bool(INVERSE), "in_data"), beats_of(y, not INVERSE, "out_data")


@cocotb.test()
async def frames(dut: Any) -> None:
    unit = Unit(dut, ("in_data",), ("out_data",))
    await load(unit)
    beats, results = [], []
    for _ in range(SETTINGS["count"]):
        driven, expected = frame()
        beats, results = beats + driven, results + expected
    for full_in, full_out in PRESSURES:
        assert (await unit.run(beats, len(results), full_in, full_out)).beats == results
    await interrupt(unit, beats, results)
    log = await unit.run(beats, len(results))
    assert log.beats == results
    assert log.given[-1] - log.given[0] == len(results) - 1, "frames back to back leave a gap"
    latency = log.given[0] - log.taken[0] - (BEATS - 1)
    interval = (log.given[-1] - log.given[0]) / (len(results) - 1)
    # Frames with gaps of every length between them.
    for gap in random.sample(range(1, 2 * BEATS + 2), 3):
        for k in range(0, len(beats), BEATS):
            log = await unit.run(beats[k : k + BEATS], BEATS)
            assert log.beats == results[k : k + BEATS]
            for _ in range(gap):
                await unit._edge()
    record(latency=latency, interval=interval)
