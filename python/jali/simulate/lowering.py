"""What the lowering of both schemes shares: operands become loads and stores, and dependences
follow what they overlap.

A record is lowered by a function of its operation, which takes the operands in the order of
docs/format.md. Its steps must have as many multiplications as the record says; a record that does
not agree with its operation is CorruptData.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from jali.errors import CorruptData
from jali.simulate.steps import Entity, Kind, StepsBuilder
from jali.simulate.trace import Header, Operand, Record

__all__ = ["Lowering", "butterflies", "corrupt"]

ENTITIES = {
    "ciphertext": Entity.CIPHERTEXT,
    "plaintext": Entity.PLAINTEXT,
    "key": Entity.KEY,
    "scratch": Entity.SCRATCH,
    "host": Entity.HOST,
}
TRANSFORMS = (Kind.NTT, Kind.INTT)
PRODUCTS = (Kind.MAC, Kind.MUL, Kind.KEYSWITCH_MAC, Kind.LINEAR)
MOST = (1 << 31) - 1  # polynomials of a step


def corrupt(record: Record, rule: str) -> NoReturn:
    """Raises CorruptData for a record that does not agree with its operation."""
    raise CorruptData(f"line {record.line} of the trace, {record.op}: {rule}")


def log2(n: int) -> int:
    """The logarithm of a power of two."""
    return n.bit_length() - 1


def butterflies(kind: Kind, n: int) -> int:
    """Complex butterflies of one transform: of n real coefficients, folded to n/2 points, or of n
    slots."""
    if kind == Kind.EMBED:
        return n // 2 * log2(n)
    return n // 4 * log2(n // 2) if kind in (Kind.FFT, Kind.IFFT) else 0


def multiplications(kind: Kind, n: int) -> int:
    """Modular multiplications of one polynomial of a step, as backend/trace/cost.h counts them."""
    if kind in TRANSFORMS:
        return n // 2 * (log2(n) + (kind == Kind.INTT))
    return n if kind in PRODUCTS else 0


@dataclass(slots=True)
class _Written:
    """Who wrote an extent last: the steps that made it, and the one that stores it."""

    begin: int
    end: int
    makers: Sequence[int]
    store: int
    operand: int


class Lowering:
    """Steps so far, and what wrote each object last. One record is open at a time."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.builder = StepsBuilder()
        self._operands: dict[tuple[object, int], int] = {}
        self._written: dict[int, list[_Written]] = {}

    # --- one record -----------------------------------------------------------------------------

    def lower(self, index: int, record: Record, by: Callable[[Any], None]) -> None:
        """The steps of a record, whose index they carry. by: the function of its operation."""
        self.record, self._index = record, index
        self._reads, self._writes = 0, 0
        self._mults = self._butterflies = self._products = 0
        by(self)
        if self._reads != len(record.reads) or self._writes != len(record.writes):
            corrupt(
                record,
                f"it has operands beyond the {self._reads} that it reads and the {self._writes} that it writes",
            )
        for name, found in (
            ("mults", self._mults),
            ("complex_butterflies", self._butterflies),
            ("complex_products", self._products),
        ):
            if found != getattr(record, name):
                corrupt(
                    record,
                    f"{name} is {getattr(record, name)}, but its shape takes {found}: record the program again",
                )

    @property
    def reads_left(self) -> int:
        """Operands that were not taken yet."""
        return len(self.record.reads) - self._reads

    def next_read(self) -> Operand:
        """The operand that is taken next."""
        if not self.reads_left:
            corrupt(self.record, f"it reads more than {self._reads} operands")
        return self.record.reads[self._reads]

    def entry(self, name: str, index: int) -> int:
        """An entry of a list of the record's shape."""
        values = self.record[name]
        if index >= len(values):
            corrupt(self.record, f"{name} must have more than {index} entries")
        return int(values[index])

    # --- steps ----------------------------------------------------------------------------------

    def step(
        self,
        kind: Kind,
        n: int,
        count: int,
        after: Sequence[int] = (),
        streams: Sequence[int] = (),
    ) -> tuple[int, ...]:
        """A step of `count` polynomials. If there are none, what it would wait for stands for
        it."""
        if count <= 0:
            return (*after, *streams)
        if count > MOST or n > MOST:
            corrupt(self.record, f"a step of {count} polynomials of {n} is beyond what steps hold")
        mults = multiplications(kind, n) * count
        self._mults += mults
        self._butterflies += butterflies(kind, n) * count
        self._products += n // 2 * count if kind == Kind.VMA else 0
        return (
            self.builder.append(
                kind,
                n,
                count,
                after=dict.fromkeys(after),
                streams=dict.fromkeys(streams),
                mults=mults,
                record=self._index,
            ),
        )

    def load(self, entity: Entity | None = None) -> tuple[int, ...]:
        """Loads the next operand that is read."""
        operand = self.next_read()
        self._reads += 1
        return self.load_part(operand, entity)

    def load_part(self, operand: Operand, entity: Entity | None = None) -> tuple[int, ...]:
        """Loads an extent of an operand that was taken before."""
        name = self._name(operand)
        after: list[int] = []
        end = operand.offset + operand.bytes
        for one in self._written.get(operand.object, ()):
            if one.begin < end and operand.offset < one.end:
                after.extend(one.makers if one.operand == name else (one.store,))
        step = self.builder.load(
            ENTITIES[operand.kind] if entity is None else entity,
            operand.bytes,
            name,
            after=dict.fromkeys(after),
            record=self._index,
        )
        return (step,)

    def take(self) -> Operand:
        """The next operand that is read, whose parts are loaded one by one."""
        operand = self.next_read()
        self._reads += 1
        return operand

    def store(self, after: Sequence[int], entity: Entity | None = None) -> None:
        """Stores the next operand that is written, which the steps `after` made."""
        if self._writes == len(self.record.writes):
            corrupt(self.record, f"it writes more than {self._writes} operands")
        operand = self.record.writes[self._writes]
        self._writes += 1
        name = self._name(operand)
        step = self.builder.store(
            ENTITIES[operand.kind] if entity is None else entity,
            operand.bytes,
            name,
            after=dict.fromkeys(after),
            record=self._index,
        )
        begin, end = operand.offset, operand.offset + operand.bytes
        others = self._written.get(operand.object, [])
        kept = [one for one in others if one.begin < begin or end < one.end]
        self._written[operand.object] = [*kept, _Written(begin, end, after, step, name)]

    def copy(self) -> None:
        """Loads every operand that is read, and stores every one that is written."""
        loads = [step for _ in range(self.reads_left) for step in self.load()]
        for _ in self.record.writes:
            self.store(loads)

    def table(self, entity: Entity, name: int, bytes: int) -> tuple[int, ...]:
        """Loads a table that a trace does not hold, such as the twiddle factors of a prime."""
        number = self._operands.setdefault((("table", entity), name), len(self._operands))
        return (self.builder.load(entity, bytes, number, record=self._index),)

    def _name(self, operand: Operand) -> int:
        # What begins at one place is one operand, whatever its length: a lower level is the first
        # limbs of a higher one.
        return self._operands.setdefault((operand.object, operand.offset), len(self._operands))
