"""Drives the valid/ready streams of a unit, clock by clock, and checks their rules.

A beat is a dictionary from the names of ports to integers. A beat crosses in a cycle in which valid and ready are both 1
before the rising edge. A unit that has shown a valid beat keeps it until it is taken.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from cocotb.triggers import Timer

Beat = dict[str, int]
SETTINGS: dict[str, Any] = json.loads(os.environ.get("JALI_RTL_SETTINGS", "{}"))


def record(**values: Any) -> None:
    """Adds to what the bench reports to the test that runs it."""
    file = Path(os.environ["JALI_RTL_RECORD"])
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | values))


@dataclass
class Log:
    """What crossed, and in which cycle."""

    taken: list[int] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)


class Unit:
    """A unit with one stream in, `in_`, and one out, `out_`, of these data ports."""

    def __init__(
        self,
        dut: Any,
        inputs: Sequence[str],
        outputs: Sequence[str],
        in_: str = "in",
        out: str = "out",
    ) -> None:
        self.dut = dut
        self.inputs, self.outputs = inputs, outputs
        self.in_valid, self.in_ready = getattr(dut, f"{in_}_valid"), getattr(dut, f"{in_}_ready")
        self.out_valid, self.out_ready = getattr(dut, f"{out}_valid"), getattr(dut, f"{out}_ready")
        self.cycle = 0

    async def reset(self, cycles: int = 2) -> None:
        self.in_valid.value = 0
        self.out_ready.value = 0
        self.dut.rst.value = 1
        for _ in range(cycles):
            await self._edge()
        self.dut.rst.value = 0

    async def _settle(self) -> None:
        self.dut.clk.value = 0
        await Timer(1, "step")

    async def _edge(self) -> None:
        await self._settle()
        self.dut.clk.value = 1
        await Timer(1, "step")
        self.cycle += 1

    async def run(
        self,
        beats: Sequence[Beat],
        expect: int,
        full_in: float = 1.0,
        full_out: float = 1.0,
        stop_after: int | None = None,
        beside: dict[str, list[int]] | None = None,
    ) -> Log:
        """Sends the beats and takes `expect` of them; in each cycle offers one with probability full_in and is ready
        with probability full_out. Stops early after stop_after cycles. Checks that no beat is shown and withdrawn,
        and that none comes after the last. beside: further streams into the unit, NAME_valid, NAME_ready and NAME_data,
        with their beats, offered as those of the first."""
        log = Log()
        sent, offering, shown = 0, False, None
        others: dict[str, list[Any]] = {
            name: [0, False, data] for name, data in (beside or {}).items()
        }
        start, quiet = self.cycle, 0
        limit = 1000 + 40 * (len(beats) + expect) / min(full_in, full_out)
        patience = self.cycle + int(SETTINGS.get("patience", 0)) + limit
        while quiet < 30:
            if stop_after is not None and self.cycle - start >= stop_after:
                break
            offering = offering or (sent < len(beats) and random.random() < full_in)
            self.in_valid.value = int(offering)
            if offering:
                for name in self.inputs:
                    getattr(self.dut, name).value = beats[sent][name]
            for name, other in others.items():
                other[1] = other[1] or (other[0] < len(other[2]) and random.random() < full_in)
                getattr(self.dut, f"{name}_valid").value = int(other[1])
                if other[1]:
                    getattr(self.dut, f"{name}_data").value = other[2][other[0]]
            ready = random.random() < full_out
            self.out_ready.value = int(ready)
            await self._settle()
            if int(self.out_valid.value):
                beat = {name: int(getattr(self.dut, name).value) for name in self.outputs}
                assert shown is None or shown == beat, "a beat changed before it was taken"
                shown = beat
                if ready:
                    log.beats.append(beat)
                    log.given.append(self.cycle)
                    shown = None
            else:
                assert shown is None, "a beat was withdrawn before it was taken"
            if offering and int(self.in_ready.value):
                log.taken.append(self.cycle)
                sent, offering = sent + 1, False
            for name, other in others.items():
                if other[1] and int(getattr(self.dut, f"{name}_ready").value):
                    other[0], other[1] = other[0] + 1, False
            await self._edge()
            assert len(log.beats) <= expect, "more beats came out than went in"
            quiet += sent == len(beats) and len(log.beats) == expect
            assert self.cycle < patience, f"{len(log.beats)} of {expect} beats came out"
        self.in_valid.value = 0
        for name, other in others.items():
            getattr(self.dut, f"{name}_valid").value = 0
            assert stop_after is not None or other[0] == len(other[2]), f"{name} has beats left"
        return log


PRESSURES = ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.7, 0.3), (0.2, 0.9))


async def interrupt(
    unit: Unit,
    beats: Sequence[Beat],
    expected: Sequence[Beat],
    stop_before: int | None = None,
    **streams: Any,
) -> None:
    """Resets the unit in the middle of the beats, at most stop_before cycles on: a beat has been taken, and results of what was
    sent are still to come."""
    stop_after = random.randrange(1, stop_before or len(beats))
    full_out = random.choice((1.0, 0.4))
    log = await unit.run(beats, len(expected), full_out=full_out, stop_after=stop_after, **streams)
    assert log.taken, "the reset came before the first beat"
    assert len(log.beats) < len(expected), "the reset came after the last beat"
    assert log.beats == list(expected[: len(log.beats)])
    await unit.reset(1)


async def check_stream(unit: Unit, beats: Sequence[Beat], expected: Sequence[Beat]) -> Log:
    """The results of these beats: back to back, under every pressure, and after a reset with beats inside. Returns this last run,
    without pressure."""
    await unit.reset()
    for full_in, full_out in PRESSURES:
        log = await unit.run(beats, len(expected), full_in, full_out)
        assert log.beats == list(expected)
    await interrupt(unit, beats, expected)
    log = await unit.run(beats, len(expected))
    assert log.beats == list(expected)
    return log


async def measure(unit: Unit, beats: Sequence[Beat]) -> None:
    """Records the latency of one beat alone, and the interval of beats back to back."""
    await unit.reset()
    alone = await unit.run(beats[:1], 1)
    together = await unit.run(beats, len(beats))
    interval = (together.given[-1] - together.given[0]) / (len(beats) - 1)
    assert together.taken[-1] - together.taken[0] == together.given[-1] - together.given[0]
    record(latency=alone.given[0] - alone.taken[0], interval=interval)


def record_sums(log: Log) -> None:
    """Records the latency from the last beat of a sum to its result, and the interval of the beats."""
    interval = (log.taken[-1] - log.taken[0]) / (len(log.taken) - 1)
    record(latency=log.given[-1] - log.taken[-1], interval=interval)


def record_frames(log: Log, filled: int = 0) -> None:
    """Records the latency from the first beat in to the first beat out, less `filled` cycles, and the interval of frames without a gap."""
    steps = {b - a for a, b in pairwise(log.given)}
    assert len(steps) == 1, "frames back to back leave a gap"
    record(latency=log.given[0] - log.taken[0] - filled, interval=steps.pop())
