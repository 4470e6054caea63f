"""ntt_engine against the definition of the transform: NTT, INTT and automorphisms in one stream of frames."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from residues import prime_of, reciprocal, residues
from spn_bench import C, N, W, packed
from streams import SETTINGS, Beat, Unit, interrupt, record
from transform import automorphism, ntt, root, turns, twiddles

BEATS = N // C


class Engine:
    """The unit with its tables for one prime and one automorphism."""

    def __init__(self, dut: Any) -> None:
        self.q = prime_of(W, 2 * N, random.random() < 0.5)
        self.psi = root(self.q, N)
        self.g = random.randrange(1, 2 * N, 2)
        self.unit = Unit(dut, ("in_data", "in_op"), ("out_data",))

    async def load(self) -> None:
        dut, unit = self.unit.dut, self.unit
        dut.q.value, dut.mu.value = self.q, reciprocal(self.q)
        dut.twiddle_valid.value = dut.turn_valid.value = 0
        await unit.reset()
        for inverse in (0, 1):
            for row, word in enumerate(twiddles(self.psi, N, self.q, C, bool(inverse))):
                dut.twiddle_valid.value, dut.twiddle_inverse.value = 1, inverse
                dut.twiddle_row.value, dut.twiddle_data.value = row, word
                await unit._edge()
        dut.twiddle_valid.value = 0
        for beat, word in enumerate(turns(self.g, N, C)):
            dut.turn_valid.value, dut.turn_beat.value, dut.turn_data.value = 1, beat, word
            await unit._edge()
        dut.turn_valid.value = 0

    def frame(self, op: int) -> tuple[list[Beat], list[Beat]]:
        """A frame of this operation, and its result."""
        x = residues(self.q, N)
        if op == 1:
            beats, result = packed(ntt(x, self.psi, self.q)), x
        elif op == 0:
            beats, result = packed(x), ntt(x, self.psi, self.q)
        else:
            beats, result = packed(x), [x[automorphism(k, self.g, N)] for k in range(N)]
        # The operation of a frame is that of its first beat.
        driven = [
            beat | {"in_op": random.randrange(4) if i else op} for i, beat in enumerate(beats)
        ]
        return driven, [{"out_data": beat["in_data"]} for beat in packed(result)]


@cocotb.test()
async def frames(dut: Any) -> None:
    for _ in range(SETTINGS.get("primes", 1)):
        engine = Engine(dut)
        await engine.load()
        unit, beats, results = engine.unit, [], []
        for op in (0, 1, 2, *random.choices((0, 1, 2), k=SETTINGS.get("more", 2))):
            driven, expected = engine.frame(op)
            beats, results = beats + driven, results + expected
        for full_in, full_out in ((1.0, 1.0), (0.6, 0.4)):
            assert (await unit.run(beats, len(results), full_in, full_out)).beats == results
        whole = (N.bit_length() - 1) * (BEATS + 23)
        await interrupt(unit, beats, results, 2 * whole)
        assert (await unit.run(beats, len(results))).beats == results


@cocotb.test()
async def speed(dut: Any) -> None:
    """Cycles from the last beat in to the first beat out, of an NTT, an INTT and an automorphism; from the NTT to the next frame."""
    engine = Engine(dut)
    await engine.load()
    driven = [beat for op in (0, 1, 2) for beat in engine.frame(op)[0]]
    log = await engine.unit.run(driven, len(driven))
    cycles = [log.given[i * BEATS] - log.taken[(i + 1) * BEATS - 1] for i in range(3)]
    record(
        cycles=cycles[0],
        inverse=cycles[1],
        permute=cycles[2],
        store=log.given[BEATS - 1] - log.given[0] + 1,
        interval=log.taken[BEATS] - log.taken[0],
    )
