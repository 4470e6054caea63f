"""The matrices of a program on a server, within a budget of memory.

jali.compiler.runtime.storage says in which kinds a matrix between two ciphertexts may be stored.
Results are the same bit by bit. Matrices with the same numbers at the same level are one: a loop's
in all iterations, and one that is applied to every row of an array for all its ciphertexts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.ckks import Evaluator, LinearTransform
from jali.compiler.cost.costs import Costs, counted
from jali.compiler.cost.keys import integer_bytes
from jali.compiler.ir.graph import Node
from jali.compiler.layout.lowered_ops import LoweredProducts, terms_of
from jali.compiler.layout.terms import Term
from jali.compiler.passes.levels import levels_taken
from jali.compiler.runtime.storage import KINDS, Item, Kind, choose_kinds
from jali.errors import InvalidArgument

__all__ = ["FlatMatrices", "Matrices", "Numbers"]

_CLEAR_BYTES = 16  # of a number in the clear
_SMALL = 2.0**-40  # compared with what rotations and roundings add
_MOST_SHARED = 2 << 30  # bytes of Numbers, as if all of them were complex
_MOST_HELD = 2 << 30  # bytes of the numbers of plans that are not encoded yet

#: As Evaluator.prepare names them.
_STORAGE: dict[Kind, str] = {
    "resident": "residues",
    "integers": "integers",
    "periodic": "integers",
    "streamed": "streamed",
}


class Numbers:
    """Diagonals of matrices in the clear, which plans for several parameters share: they take
    longer to make than all else that a plan does with them. As many are kept as take 2 GiB."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, int, int], dict[int, npt.ArrayLike]] = {}
        self._room = _MOST_SHARED

    def get(self, key: tuple[bytes, int, int]) -> dict[int, npt.ArrayLike] | None:
        """The diagonals of a matrix, by a hash of its numbers, the slots and the lanes; None if
        they are not kept."""
        return self._kept.get(key)

    def add(self, key: tuple[bytes, int, int], diagonals: dict[int, npt.ArrayLike]) -> None:
        """Keep diagonals if there is room."""
        taken = _CLEAR_BYTES * key[1] * len(diagonals)
        if key not in self._kept and taken <= self._room:
            self._kept[key] = diagonals
            self._room -= taken


#: A hash of the numbers of a matrix between two ciphertexts, and the level.
_Key = tuple[bytes, int]


@dataclass
class _Matrix:
    """What is known of a matrix.

    steps: its rotations.
    uses: how many times a run multiplies by it.
    owner: the node that has it first.
    """

    owner: str
    level: int
    steps: tuple[int, ...]
    diagonals: int
    resident: int  # bytes
    integers: int  # bytes; 0 if they are too large for integers
    period: bool
    uses: int = 0

    def item(self, costs: Costs) -> Item:
        """For the choice of its kind."""
        products = self.uses * self.diagonals
        expanded, streamed, made = (
            max(1, products * costs.of_storage(kind, self.level))
            for kind in ("integers", "streamed", "made")
        )
        return Item(self.resident, self.integers, self.period, expanded, streamed, made)


class Matrices:
    """memory: bytes of the device that all matrices may take together.
    numbers: what plans share; None for a plan that is alone.
    costs: by which matrices get their kinds; None stands for those that are counted.
    streams: whether there is a device with memory apart from the host's."""

    def __init__(
        self,
        params: ckks.Params,
        lanes: int,
        memory: float,
        numbers: Numbers | None = None,
        costs: Costs | None = None,
        streams: bool = False,
    ) -> None:
        self._numbers = numbers
        self._params, self._lanes, self._memory = params, lanes, memory
        self._costs, self._streams = costs, streams
        self._terms: dict[tuple[str, int], tuple[Term, int]] = {}  # with their levels
        self._known: dict[_Key, _Matrix] = {}
        self._plans: dict[_Key, LinearTransform] = {}  # that are ready to be encoded, or are
        self._held = 0  # bytes of their numbers
        self._kinds: dict[_Key, Kind] = {}
        self.steps: set[tuple[int, int]] = (
            set()
        )  # rotations of products of matrices, and their levels
        self.rotations: dict[str, int] = {}  # by node, as are these:
        self.encoded_bytes: dict[str, int] = {}  # of all matrices, if they were resident
        #: How often a run rotates by a step at a level, in matrices and the sums around them.
        self.turns: Counter[tuple[int, int]] = Counter()

    def add(self, node: Node) -> None:
        """Plan the matrices of a transform, or those of the factors of products."""
        turned, encoded = 0, 0
        layout = node.layout
        behind: set[tuple[object, ...]] = set()
        for k, term in enumerate(terms_of(node)):
            # Factors of products stand before products; of a transform, some terms take a level and
            # others none.
            level = node.level + levels_taken(node, k)
            self._terms[node.name, k] = term, level
            for to in sorted({to for to, _ in term.diagonals}):
                blocks = _blocks(term, level, to)
                missing = {key: from_ for from_, key in blocks if key not in self._known}
                for from_, plan in self._made(term, level, to, missing.values()):
                    key = term.digests[to, from_], level
                    self._known[key] = self._measured(node, level, plan)
                    if isinstance(node.operation, LoweredProducts):
                        self.steps |= {(step, level) for step in plan.rotations}
                    encoded += plan.plaintext_bytes
                    self._hold(key, plan)
                for _, key in blocks:
                    self._known[key].uses += 1
                    turned += len(self._known[key].steps)
                    self.turns.update((step, level) for step in self._known[key].steps)
            if isinstance(node.operation, LoweredProducts):
                self.steps |= {(step * self._lanes, level - 1) for step in term.sums}
            turned += len(term.before) * len(term.diagonals) + term.moved
            for step in term.before:
                self.turns[step * self._lanes, level] += len(term.diagonals)
            turned += term.around * len(term.diagonals)
            if term.behind not in behind:
                turned += len(term.sums) * layout.ciphertexts
                below = level - 1 if isinstance(node.operation, LoweredProducts) else node.level
                for step in term.sums:
                    self.turns[step * self._lanes, below] += layout.ciphertexts
                turned += term.around * len({to for to, _ in term.diagonals})
            behind |= {term.behind} - {()}
        if isinstance(node.operation, LoweredProducts):
            sums = node.operation.sums
            self.steps |= {(step * self._lanes, level - 2) for step in sums}
            turned += len(sums)
        self.rotations[node.name] = turned
        self.encoded_bytes[node.name] = encoded

    def _measured(self, node: Node, level: int, plan: LinearTransform) -> _Matrix:
        diagonals = plan.diagonal_count
        try:
            integers = plan.integer_bytes
        except InvalidArgument:  # coefficients of more than 62 bits
            integers = 0
        every = diagonals * integer_bytes(self._params)
        return _Matrix(
            owner=node.name,
            level=level,
            steps=tuple(plan.rotations),
            diagonals=diagonals,
            resident=plan.plaintext_bytes,
            integers=integers,
            period=0 < integers < every,
        )

    def _hold(self, key: _Key, plan: LinearTransform) -> None:
        """Keep a plan with its numbers, if there is room and they are not kept for other plans,
        because to make them again takes long."""
        if self._numbers is not None and self._numbers.get((key[0], *self._shape)) is not None:
            return
        clear = _CLEAR_BYTES * self._params.slots * self._known[key].diagonals
        if self._held + clear <= _MOST_HELD:
            self._plans[key] = plan
            self._held += clear

    @property
    def _shape(self) -> tuple[int, int]:
        """What diagonals in the clear depend on, beside their matrix: slots and lanes."""
        return self._params.slots, self._lanes

    @property
    def _chosen_by(self) -> Costs:
        return self._costs or counted(self._params, device="cuda" if self._streams else "cpu")

    def settle(self) -> None:
        """Choose the kind of every matrix, after all were added."""
        costs = self._chosen_by
        items = [matrix.item(costs) for matrix in self._known.values()]
        kinds = choose_kinds(items, self._memory, self._streams)
        self._kinds = dict(zip(self._known, kinds, strict=True))

    @property
    def bytes_of(self) -> dict[Kind, int]:
        """The bytes of every kind: of the device, or for streamed ones of the host. For those that
        are made at each use, 0."""
        found = dict.fromkeys(KINDS, 0)
        for key, kind in self._kinds.items():
            found[kind] += self._bytes(key)
        return found

    @property
    def least_bytes(self) -> int:
        """With so many bytes of the device, no matrix has to be streamed or made at each use."""
        sizes = ((m.resident, m.integers) for m in self._known.values())
        return sum(min(resident, integers or resident) for resident, integers in sizes)

    @property
    def storage(self) -> dict[str, tuple[Kind, ...]]:
        """For each node, the kinds of its matrices, of which there may be several."""
        found: dict[str, set[Kind]] = {name: set() for name in self.rotations}
        for (name, _), (term, level) in self._terms.items():
            for digest in term.digests.values():
                kind = self._kinds.get((digest, level))
                found[name] |= {kind} if kind else set()
        return {name: tuple(k for k in KINDS if k in kinds) for name, kinds in found.items()}

    @property
    def held_bytes(self) -> dict[str, int]:
        """For each node, the bytes of its matrices in the memory of the device; a matrix counts for
        the first node that has it."""
        found = dict.fromkeys(self.rotations, 0)
        for key, kind in self._kinds.items():
            if kind not in ("streamed", "made"):
                found[self._known[key].owner] += self._bytes(key)
        return found

    @property
    def extra(self) -> dict[str, int]:
        """For each node, what a run costs more than if all matrices were resident, in the unit of
        the costs."""
        costs = self._chosen_by
        found = dict.fromkeys(self.rotations, 0)
        for key, matrix in self._known.items():
            found[matrix.owner] += matrix.item(costs).cost(self._kinds[key])
        return found

    @property
    def is_resident(self) -> bool:
        """Whether a run takes nothing from the host: no matrix is streamed, or made at each use."""
        return not {"streamed", "made"} & set(self._kinds.values())

    def _bytes(self, key: _Key) -> int:
        matrix, kind = self._known[key], self._kinds[key]
        return 0 if kind == "made" else matrix.resident if kind == "resident" else matrix.integers

    def _made(
        self, term: Term, level: int, to: int, only: Collection[int]
    ) -> Iterator[tuple[int, LinearTransform]]:
        if not only:
            return
        shared = self._numbers or Numbers()
        keys = {from_: (term.digests[to, from_], *self._shape) for from_ in only}
        known = {from_: shared.get(key) for from_, key in keys.items()}
        for from_ in term.columns(to) if None not in known.values() else ():
            diagonals = known.pop(from_, None)
            if diagonals is not None:
                yield from_, LinearTransform(self._params, diagonals, level=level)
        if not known:
            return
        for from_, vectors in term.vectors(to, self._lanes, only):
            made: dict[int, npt.ArrayLike] = {**vectors}
            shared.add(keys[from_], made)
            yield from_, LinearTransform(self._params, made, level=level)

    def prepare(
        self, server: Evaluator, progress: Callable[[int, int], object] | None = None
    ) -> None:
        """Encode every matrix that is stored; numbers in the clear are given up. The matrices then
        belong to this evaluator.

        progress: called after each, with how many are done and how many there are.
        """
        total = sum(kind != "made" for kind in self._kinds.values())
        ready, self._plans, self._numbers = self._plans, {}, None
        for term, level in self._terms.values():
            for to in sorted({to for to, _ in term.diagonals}):
                wanted = {
                    key: from_
                    for from_, key in _blocks(term, level, to)
                    if key not in self._plans and self._kinds[key] != "made"
                }
                missing = [from_ for key, from_ in wanted.items() if key not in ready]
                plans = itertools.chain(
                    ((key, ready.pop(key)) for key in wanted.keys() & ready.keys()),
                    (
                        ((term.digests[to, from_], level), plan)
                        for from_, plan in self._made(term, level, to, missing)
                    ),
                )
                for key, plan in plans:
                    server.prepare(plan, storage=_STORAGE[self._kinds[key]])
                    plan.forget()
                    self._plans[key] = plan
                    if progress is not None:
                        progress(len(self._plans), total)

    def of(self, name: str, k: int, to: int) -> Iterator[LinearTransform]:
        """The matrices of term k of a node to ciphertext `to`, in the order of Term.columns."""
        term, level = self._terms[name, k]
        blocks = _blocks(term, level, to)
        missing = [from_ for from_, key in blocks if key not in self._plans]
        made = self._made(term, level, to, missing)  # in the order of the blocks
        for _, key in blocks:
            yield next(made)[1] if key not in self._plans else self._plans[key]


class FlatMatrices(Matrices):
    """Matrices with as many diagonals as others, whose numbers are nearly 0. What they add to the
    noise of a result is the part that does not depend on the numbers of the matrices."""

    def __init__(self, like: Matrices) -> None:
        super().__init__(like._params, like._lanes, 0.0)
        self._terms = like._terms

    def of(self, name: str, k: int, to: int) -> Iterator[LinearTransform]:
        """See Matrices."""
        term, level = self._terms[name, k]
        small = np.full(self._params.slots, _SMALL)
        for from_ in term.columns(to):
            steps = (int(d) * self._lanes for d in term.diagonals[to, from_])
            diagonals: dict[int, npt.ArrayLike] = dict.fromkeys(steps, small)
            yield LinearTransform(self._params, diagonals, level=level)


def _blocks(term: Term, level: int, to: int) -> list[tuple[int, _Key]]:
    """The ciphertexts of the source that ciphertext `to` of the result needs, each with its
    matrix's key."""
    return [(from_, (term.digests[to, from_], level)) for from_ in term.columns(to)]
