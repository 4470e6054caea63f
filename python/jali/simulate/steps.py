"""Machine steps: what a program asks of an accelerator, in columns.

A step is a load, a store, a move, or one kind of arithmetic on ``count`` polynomials of ``n``
elements. Steps are in program order, and a step depends on earlier steps only. Traces are lowered
to steps, and generated workloads are made of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.errors import InvalidArgument, LimitExceeded

__all__ = ["ANY", "MOVES", "Entity", "Kind", "Steps", "StepsBuilder"]

ANY = -1  # no lane, no operand, or no record
MOST = 10_000_000  # steps of a program, which take 6 GB and some minutes to simulate
LIMIT = 1 << 62  # of bytes and multiplications in all, so that no sum of them overflows


class Kind(IntEnum):
    """What a step does. Elements are coefficients, evaluations, or complex points of a Fourier
    transform."""

    LOAD = 0  # Reads the bytes of an operand from off-chip memory.
    STORE = 1  # Writes the bytes of an operand to off-chip memory.
    MOVE = 2  # Carries bytes between clusters on a bus: a broadcast residue, a partial sum.
    NTT = 3  # Transforms polynomials of n coefficients modulo a prime.
    INTT = 4  # Is the inverse of NTT.
    MAC = 5  # Multiplies and accumulates n elements modulo a prime: base conversion, product with a key.
    MUL = 6  # Multiplies n elements modulo a prime.
    ADD = 7  # Adds or subtracts n elements modulo a prime.
    AUTOMORPHISM = 8  # Permutes the n elements of a polynomial.
    REDUCE = 9  # Adds the partial sums of clusters in an adder tree.
    ROTATE = 10  # Multiplies a polynomial by X^a and subtracts it from the result (blind rotation).
    DECOMPOSE = 11  # Makes digits of torus coefficients for the external product; n elements are those made.
    FFT = 12  # Transforms polynomials of n real coefficients to n/2 complex points, folded.
    IFFT = 13  # Is the inverse of FFT.
    VMA = 14  # Multiplies and adds transformed digits with the bootstrapping key; n real elements are n/2 points.
    ACCUMULATE = 15  # Adds the result of an external product to the accumulator.
    KEYSWITCH_DECOMPOSE = 16  # Makes digits of the n words of an LWE ciphertext.
    KEYSWITCH_MAC = (
        17  # Multiplies and adds the digits of an LWE ciphertext with n words of the switching key.
    )
    KEYSWITCH_ACCUMULATE = 18  # Adds n words to the LWE ciphertext that a key switch makes.
    LINEAR = 19  # Adds multiples of LWE ciphertexts of n words.
    SAMPLE = 20  # Draws n random residues.
    EMBED = 21  # Transforms n slots between numbers and coefficients, in floating point.
    EXPAND = 22  # Makes n words of a key from a seed.
    OTHER = 23  # Is arithmetic on n elements that none of the kinds above names.


MOVES = frozenset({Kind.LOAD, Kind.STORE, Kind.MOVE})


class Entity(IntEnum):
    """What an operand is: the entity decides its memory, its bus and its channels."""

    NONE = 0
    CIPHERTEXT = 1
    PLAINTEXT = 2
    KEY = 3  # a key of CKKS: relinearisation, rotation, conjugation
    TWIDDLE = 4
    SCRATCH = 5  # never leaves the chip if there is room
    BOOTSTRAPPING_KEY = 6  # of TFHE
    SWITCHING_KEY = 7  # of TFHE
    TEST_VECTOR = 8
    PARTIAL_SUM = 9
    HOST = 10
    INVERSE_TWIDDLE = 11
    INPUT = 12  # the input ciphertext of a matrix-vector product


Column = NDArray[Any]


@dataclass(frozen=True)
class Steps:
    """Steps as columns of equal length, and their dependences in compressed rows.

    kind: a Kind.
    n: elements of a polynomial, 0 for moves of bytes.
    count: polynomials, at least 1.
    lane: the limb or the ciphertext of a batch, or ANY; steps of one lane run on the same cluster
        (lane % clusters), steps without one spread over all.
    record: the record of a trace, or ANY.
    mults: modular or real multiplications.
    entity, bytes, operand: for loads, stores and moves; operand is an id that outlives the reuse of
        an address, or ANY. Step i depends on deps[dep_start[i] : dep_start[i + 1]], all of which
        are below i; where ``streamed`` is true, it starts with the first output of that step (moves
        give theirs at once, at their end), else after the last.
    """

    kind: Column  # uint8
    n: Column  # int32
    count: Column  # int32
    lane: Column  # int32
    record: Column  # int32
    mults: Column  # int64
    entity: Column  # uint8
    bytes: Column  # int64
    operand: Column  # int64
    dep_start: Column  # int64
    deps: Column  # int32
    streamed: Column  # bool

    def __len__(self) -> int:
        return len(self.kind)

    def dependences(self, step: int) -> list[int]:
        """The steps that a step waits for."""
        return [int(d) for d in self.deps[self.dep_start[step] : self.dep_start[step + 1]]]

    def counts(self) -> dict[Kind, int]:
        """How many steps there are of each kind."""
        found = np.bincount(self.kind, minlength=len(Kind))
        return {kind: int(found[kind]) for kind in Kind if found[kind]}

    def elements(self) -> dict[Kind, int]:
        """The elements of each kind of arithmetic: n x count, summed."""
        work = self.n.astype(np.int64) * self.count
        return {
            kind: int(work[self.kind == kind].sum()) for kind in self.counts() if kind not in MOVES
        }

    def moved(self, kind: Kind = Kind.LOAD) -> dict[Entity, int]:
        """The bytes that steps of a kind ask for, by entity; a machine may find some of them on the
        chip."""
        chosen = self.kind == kind
        found = np.unique(self.entity[chosen])
        return {Entity(e): int(self.bytes[chosen & (self.entity == e)].sum()) for e in found}

    def slice(self, start: int, stop: int) -> Steps:
        """Steps start to stop, without their dependences on steps before."""
        if not 0 <= start <= stop <= len(self):
            raise InvalidArgument(f"there are steps 0 to {len(self)}, not {start} to {stop}")
        first, last = int(self.dep_start[start]), int(self.dep_start[stop])
        deps = self.deps[first:last] - np.int32(start)
        kept = deps >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        rows = {
            name: getattr(self, name)[start:stop]
            for name in ("kind", "n", "count", "lane", "record", "mults")
        }
        return Steps(
            **rows,
            entity=self.entity[start:stop],
            bytes=self.bytes[start:stop],
            operand=self.operand[start:stop],
            dep_start=before[self.dep_start[start : stop + 1] - first],
            deps=deps[kept],
            streamed=self.streamed[first:last][kept],
        )

    def verify(self) -> None:
        """Raises InvalidArgument if a column is out of range, or a step depends on itself or a
        later one."""
        size = len(self)
        for name in ("n", "count", "lane", "record", "mults", "entity", "bytes", "operand"):
            _demand(len(getattr(self, name)) == size, f"the column {name} has another length")
        _demand(
            len(self.dep_start) == size + 1, "dep_start has one entry more than there are steps"
        )
        _demand(len(self.deps) == len(self.streamed), "deps and streamed have the same length")
        ends = int(self.dep_start[0]), int(self.dep_start[-1])
        _demand(ends == (0, len(self.deps)), "dep_start goes from 0 to the number of dependences")
        _demand(bool((np.diff(self.dep_start) >= 0).all()), "dep_start never decreases")
        if not size:
            return
        _demand(int(self.kind.max()) < len(Kind), f"kinds are below {len(Kind)}")
        _demand(int(self.entity.max()) < len(Entity), f"entities are below {len(Entity)}")
        for name, least in (("n", 0), ("count", 1), ("bytes", 0), ("mults", 0)):
            _demand(int(getattr(self, name).min()) >= least, f"{name} is at least {least}")
        for name in ("lane", "record", "operand"):
            _demand(int(getattr(self, name).min()) >= ANY, f"{name} is at least {ANY}")
        for name in ("bytes", "mults"):
            total = float(getattr(self, name).astype(np.float64).sum())
            _demand(total < LIMIT, f"the sum of {name} is below 2^62")
        moves = np.isin(self.kind, list(MOVES))
        _demand(bool((self.n[~moves] > 0).all()), "arithmetic has n of at least 1")
        _demand(bool((self.entity[moves] > 0).all()), "loads, stores and moves have an entity")
        of = np.repeat(np.arange(size), np.diff(self.dep_start))
        _demand(
            bool(((self.deps >= 0) & (self.deps < of)).all()),
            "steps depend on earlier steps only",
        )


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise InvalidArgument(f"these steps are not well formed: {rule}")


class StepsBuilder:
    """Collects steps in program order.

    ``append`` takes about 2 microseconds. Nothing but their number is checked until ``build``.
    """

    def __init__(self) -> None:
        self._kind = array("B")
        self._n = array("i")
        self._count = array("i")
        self._lane = array("i")
        self._record = array("i")
        self._mults = array("q")
        self._entity = array("B")
        self._bytes = array("q")
        self._operand = array("q")
        self._dep_start = array("q", [0])
        self._deps = array("i")
        self._streamed = array("B")

    def __len__(self) -> int:
        return len(self._kind)

    def expect(self, more: int) -> None:
        """Raises LimitExceeded if so many more steps are too many for a program."""
        if len(self) + more > MOST:
            raise LimitExceeded(
                f"this program has more than {MOST} machine steps: simulate a part of it, with fewer ciphertexts or a shorter trace"
            )

    def append(
        self,
        kind: Kind,
        n: int = 0,
        count: int = 1,
        *,
        after: Iterable[int] = (),
        streams: Iterable[int] = (),
        mults: int = 0,
        entity: Entity = Entity.NONE,
        bytes: int = 0,
        operand: int = ANY,
        record: int = ANY,
        lane: int = ANY,
    ) -> int:
        """Adds a step and returns its index.

        after: steps that must have ended before.
        streams: steps whose output it takes as it comes.
        The rest is as in Steps. Raises LimitExceeded for a program that is too long.
        """
        if len(self._kind) >= MOST:
            self.expect(1)
        try:
            self._deps.extend(after)
            self._streamed.extend([0] * (len(self._deps) - len(self._streamed)))
            self._deps.extend(streams)
            self._streamed.extend([1] * (len(self._deps) - len(self._streamed)))
            self._n.append(n)
            self._count.append(count)
            self._lane.append(lane)
            self._record.append(record)
            self._mults.append(mults)
            self._entity.append(entity)
            self._bytes.append(bytes)
            self._operand.append(operand)
        except (OverflowError, TypeError) as error:
            raise InvalidArgument(f"step {len(self)} has a number out of range: {error}") from None
        self._kind.append(kind)
        self._dep_start.append(len(self._deps))
        return len(self._kind) - 1

    def load(self, entity: Entity, bytes: int, operand: int = ANY, **rest: Any) -> int:
        """Adds a load of an operand; returns its index. rest: after, record, lane."""
        return self.append(Kind.LOAD, entity=entity, bytes=bytes, operand=operand, **rest)

    def store(self, entity: Entity, bytes: int, operand: int = ANY, **rest: Any) -> int:
        """Adds a store of an operand; returns its index. rest: after, record, lane."""
        return self.append(Kind.STORE, entity=entity, bytes=bytes, operand=operand, **rest)

    def repeat(self, first: int, times: int) -> None:
        """Adds the steps from ``first`` on so many times more, each time after the last. What they
        wait for shifts with them, also where it lies before ``first``: a step that waits for one of
        the repetition before waits so each time. Operands stay. Raises LimitExceeded as append.
        """
        size = len(self) - first
        if size <= 0 or times <= 0:
            return
        self.expect(size * times)
        edge = self._dep_start[first]
        for column in (self._kind, self._n, self._count, self._lane, self._record, self._mults, self._entity, self._bytes, self._operand):  # fmt: skip
            column.extend(column[first:] * times)
        shift = size * np.arange(1, times + 1)[:, None]
        deps = np.array(self._deps[edge:], np.int64)
        starts = np.array(self._dep_start[first + 1 :], np.int64)
        edges = len(deps) * np.arange(1, times + 1)[:, None]
        self._deps.frombytes((deps + shift).astype(np.int32).tobytes())
        self._dep_start.frombytes((starts + edges).tobytes())
        self._streamed.extend(self._streamed[edge:] * times)

    def build(self) -> Steps:
        """The steps so far, verified. Raises InvalidArgument if they are not well formed."""
        steps = Steps(
            kind=np.array(self._kind, np.uint8),
            n=np.array(self._n, np.int32),
            count=np.array(self._count, np.int32),
            lane=np.array(self._lane, np.int32),
            record=np.array(self._record, np.int32),
            mults=np.array(self._mults, np.int64),
            entity=np.array(self._entity, np.uint8),
            bytes=np.array(self._bytes, np.int64),
            operand=np.array(self._operand, np.int64),
            dep_start=np.array(self._dep_start, np.int64),
            deps=np.array(self._deps, np.int32),
            streamed=np.array(self._streamed, np.bool_),
        )
        steps.verify()
        return steps
