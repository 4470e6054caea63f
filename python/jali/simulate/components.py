"""What a machine is made of: units, memories, buses and channels, with their numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jali.errors import InvalidArgument
from jali.simulate.number import Number
from jali.simulate.steps import Entity, Kind

__all__ = ["LONGEST", "Bus", "Channel", "Memory", "Part", "Timing", "Unit", "whole_cycles"]


LONGEST = 1 << 61  # cycles, of a step and of a program


def whole_cycles(cycles: float, where: str) -> int:
    """The cycles as a whole number. Raises InvalidArgument for those that no simulation can
    count."""
    if not 0 <= cycles < LONGEST:
        raise InvalidArgument(
            f"{where}: a step would take {cycles:g} cycles; they are from 0 to 2^61"
        )
    return math.ceil(cycles - 1e-9)


@dataclass(frozen=True)
class Timing:
    """How long a unit takes for one kind of step.

    A step with ``count`` polynomials of n elements occupies a unit for max(interval, count passes
    (ceil(n / lanes) + fill)) cycles. Its first output comes ``latency`` cycles after its start, and
    its last output ``latency`` cycles after the last element went in.
    words: words of the unit's memory that are read and written for each element of a pass.
    """

    passes: Number
    fill: Number
    latency: Number
    interval: Number
    words: Number


@dataclass(frozen=True)
class Unit:
    """``count`` equal pipelines of the chip, or of each cluster. lanes: elements a cycle.
    energy_pj: picojoules of a busy cycle; area_mm2 and leakage_w: of one pipeline."""

    name: str
    scope: str
    count: Number
    lanes: Number
    memory: str
    energy_pj: Number
    area_mm2: Number
    leakage_w: Number
    kinds: dict[Kind, Timing]

    def cycles(self, kind: Kind, n: int, count: int, width: float = 0.0) -> int:
        """The cycles for which a step occupies one pipeline. width: bytes a cycle of its memory per
        byte of a word, 0 for no limit."""
        timing = self.kinds[kind]
        lanes = self.lanes.at(n)
        if lanes <= 0 or min(timing.passes.at(n), timing.fill.at(n), timing.words.at(n)) < 0:
            raise InvalidArgument(
                f"units.{self.name}: lanes are above 0, passes, fill and words are not negative, also for n = {n}"
            )
        one = float(n) / lanes
        if width:
            one = max(one, n * timing.words.at(n) / width)
        if one < LONGEST:
            one = math.ceil(one)
        whole = count * timing.passes.at(n) * (one + timing.fill.at(n))
        return whole_cycles(max(timing.interval.at(n), whole), f"units.{self.name}")

    def delay(self, kind: Kind, n: int) -> int:
        """The cycles from the last element of a step to its last result."""
        return whole_cycles(self.kinds[kind].latency.at(n), f"units.{self.name}")


@dataclass(frozen=True)
class Memory:
    """An on-chip memory. bytes: of one; there is one for the chip, or one for each cluster. holds:
    whose operands stay in it. bytes_a_cycle: of all ports and banks, for one pipeline that works on
    it."""

    name: str
    scope: str
    holds: frozenset[Entity]
    bytes: Number
    ports: Number
    banks: Number
    bytes_a_cycle: Number
    energy_pj_byte: Number
    area_mm2: Number
    leakage_w: Number


@dataclass(frozen=True)
class Bus:
    """``count`` equal buses between off-chip channels and clusters, or between clusters. carries:
    the entities that cross them. Clusters that follow each other share a bus; what has no lane
    crosses all buses at once."""

    name: str
    carries: frozenset[Entity]
    count: Number
    bytes_a_cycle: Number
    latency: Number
    energy_pj_byte: Number


@dataclass(frozen=True)
class Channel:
    """A group of channels of off-chip memory. carries: the entities that it serves. latency: cycles
    until the first byte. buffer_bytes: how far the loads of entities that no memory holds may run
    ahead of their use."""

    name: str
    carries: frozenset[Entity]
    bytes_a_second: Number
    latency: Number
    buffer_bytes: Number
    energy_pj_byte: Number


@dataclass(frozen=True)
class Part:
    """Area and power that no unit and no memory has: a network, a PHY."""

    name: str
    area_mm2: Number
    leakage_w: Number
