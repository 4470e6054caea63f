"""How a server stores its matrices: the kinds, and which matrix gets which within a budget of
memory.

A matrix is stored in one of five kinds, from the fastest to the smallest. Results are the same bit
by bit.

- resident: over all primes in NTT form, ready for products, in the memory of the device;
- integers: the coefficients of its diagonals, 8 bytes each, in the memory of the device. A product
  reduces them modulo every prime and transforms them ("limb extension": Kim et al., ARK, 2022). At
  17 primes of 4 bytes, that is 8.5 times fewer bytes;
- periodic: the same of diagonals whose numbers repeat after p slots, of which 2 p coefficients are
  not zero;
- streamed: integers in the memory of the host, which are copied to a GPU at each use;
- made: nothing. Diagonals are made from the weights and encoded at each use.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = ["KINDS", "STREAMED_BYTES", "Item", "Kind", "choose_kinds"]

Kind = Literal["resident", "integers", "periodic", "streamed", "made"]

KINDS: tuple[Kind, ...] = ("resident", "integers", "periodic", "streamed", "made")

#: The most bytes that streamed matrices take of the host's memory. It is a constant, so that two
#: machines make the same plan.
STREAMED_BYTES = 64 << 30


@dataclass(frozen=True)
class Item:
    """A matrix: the bytes of its kinds, and what a run takes longer with them than with a resident
    one.

    resident, integers: bytes.
    period: whether its integers are those of one period.
    expanded, streamed, made: costs of a run, in that order from the least to the most.
    """

    resident: int
    integers: int
    period: bool
    expanded: int
    streamed: int
    made: int

    def cost(self, kind: Kind) -> int:
        """What a run takes longer."""
        if kind == "resident":
            return 0
        return {"streamed": self.streamed, "made": self.made}.get(kind, self.expanded)

    def bytes(self, kind: Kind) -> int:
        """The bytes of the device, or for a streamed one of the host."""
        if kind == "made":
            return 0
        return self.resident if kind == "resident" else self.integers

    @property
    def compact(self) -> Kind:
        """The kind of its integers in the memory of the device."""
        return "periodic" if self.period else "integers"

    @property
    def smallest(self) -> Kind:
        """The kind with the fewest bytes in the memory of the device."""
        return self.compact if 0 < self.integers < self.resident else "resident"


def _from_the_host(items: Sequence[Item], streams: bool) -> list[Kind]:
    """The kinds of matrices of which none is in the memory of the device."""
    host = STREAMED_BYTES if streams else 0
    kinds: list[Kind] = []
    for item in items:
        kind: Kind = "streamed" if item.integers <= host and item.integers > 0 else "made"
        host -= item.integers if kind == "streamed" else 0
        kinds.append(kind)
    return kinds


def choose_kinds(items: Sequence[Item], memory: float, streams: bool = False) -> list[Kind]:
    """The kind of every matrix, so that they take at most `memory` bytes of the device and a run
    takes little longer than if all were resident.

    If all fit in their smallest kinds of the device, none is streamed or made, because to make one
    takes more than its encoding, which is what is measured: its numbers come from the weights. The
    rest is a knapsack with a choice for each item, filled by the cost that each further byte saves
    (Sinha and Zoltners 1979). Where the best step of a matrix does not fit, the next best is tried.
    So the result costs at most one step of one matrix more than the best choice.

    streams: whether there is a device with memory apart from the host's.
    """
    kinds = [item.smallest for item in items]
    room = memory - sum(item.bytes(kind) for item, kind in zip(items, kinds, strict=True))
    if room < 0:
        kinds, room = _from_the_host(items, streams), memory
    steps: list[tuple[Fraction, int, Kind]] = []

    def offer(k: int) -> None:
        """The next step of an item: that which saves the most for each byte, of those that fit."""
        item, now = items[k], kinds[k]
        taken = 0 if now in ("streamed", "made") else item.bytes(now)
        found = []
        for kind in ("resident", item.compact):
            saved, more = item.cost(now) - item.cost(kind), item.bytes(kind) - taken
            if item.bytes(kind) > 0 and saved > 0 and more <= room:
                found.append((-Fraction(saved, more) if more > 0 else Fraction(-1 << 62), k, kind))
        if found:
            heapq.heappush(steps, min(found))

    for k in range(len(items)):
        offer(k)
    while steps:
        _, k, kind = heapq.heappop(steps)
        now = kinds[k]
        more = items[k].bytes(kind) - (0 if now in ("streamed", "made") else items[k].bytes(now))
        if more <= room:
            kinds[k], room = kind, room - more
        offer(k)
    return kinds
