"""The matrices of a program on a server, within a budget of memory.

A matrix between two ciphertexts is kept in one of three forms: encoded, which is ready to use; in the clear, as the numbers
of its diagonals, which are encoded at every use; or not at all, so that at every use the diagonals are made from the weights, for
one pair of ciphertexts at a time. Results are the same bit by bit. Matrices with the same numbers at the same level are one: a loop's in all
iterations, and one that is applied to every row of an array for all its ciphertexts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.ckks import Evaluator, LinearTransform
from jali.nn.graph import Node
from jali.nn.levels import taken
from jali.nn.lower import Term

__all__ = ["FlatMatrices", "Matrices", "Numbers"]

_CLEAR_BYTES = 16  # of a number in the clear
_SMALL = 2.0**-40  # compared with what rotations and roundings add
_MOST_SHARED = 2 << 30  # bytes of Numbers, as if all of them were complex


class Numbers:
    """Diagonals of matrices in the clear, which plans for several parameters share: they take longer to make than all else that a plan does
    with them. As many are kept as take 2 GiB."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, int, int], dict[int, npt.ArrayLike]] = {}
        self._room = _MOST_SHARED

    def get(self, key: tuple[bytes, int, int]) -> dict[int, npt.ArrayLike] | None:
        """The diagonals of a matrix, by a hash of its numbers, the slots and the lanes; None if they are not kept."""
        return self._kept.get(key)

    def add(self, key: tuple[bytes, int, int], diagonals: dict[int, npt.ArrayLike]) -> None:
        """Keep diagonals if there is room."""
        taken = _CLEAR_BYTES * key[1] * len(diagonals)
        if key not in self._kept and taken <= self._room:
            self._kept[key] = diagonals
            self._room -= taken


#: A hash of the numbers of a matrix between two ciphertexts, and the level.
_Key = tuple[bytes, int]


class Matrices:
    """memory: bytes that all forms may take together. Matrices are encoded as long as they fit, in the order of computation; those that do
    not fit stay in the clear, if they fit so. numbers: what plans share; None for a plan that is alone."""

    def __init__(
        self, params: ckks.Params, lanes: int, memory: float, numbers: Numbers | None = None
    ) -> None:
        self._numbers = numbers
        self._params, self._lanes, self._room = params, lanes, memory
        self._terms: dict[tuple[str, int], tuple[Term, int]] = {}  # with their levels
        self._kept: dict[_Key, LinearTransform] = {}
        self._known: dict[_Key, tuple[int, int]] = {}  # rotations and encoded bytes of every matrix
        self._encoded: list[LinearTransform] = []
        self.steps: set[tuple[int, int]] = (
            set()
        )  # rotations of products of matrices, and their levels
        self.rotations: dict[str, int] = {}  # by node, as are these:
        self.encoded_bytes: dict[str, int] = {}  # of all matrices, if they were encoded
        self.held_bytes: dict[str, int] = {}  # of the forms that are kept
        self.is_resident = True  # whether all of them are encoded

    def add(self, node: Node) -> None:
        """Plan the matrices of a transform, or those of the factors of products."""
        turned, encoded, held = 0, 0, 0
        layout, level = node.attrs["layout"], node.attrs["level"] + taken(node)
        for k, term in enumerate(node.attrs["terms"]):
            self._terms[node.name, k] = term, level
            for to in sorted({to for to, _ in term.diagonals}):
                blocks = _blocks(term, level, to)
                missing = {key: from_ for from_, key in blocks if key not in self._known}
                for from_, plan in self._made(term, level, to, missing.values()):
                    key = term.digests[to, from_], level
                    self._known[key] = len(plan.rotations), plan.plaintext_bytes
                    if node.op == "products":
                        self.steps |= {(step, level) for step in plan.rotations}
                    encoded += plan.plaintext_bytes
                    held += self._keep(key, plan, len(term.diagonals[to, from_]))
                turned += sum(self._known[key][0] for _, key in blocks)
            if node.op == "products":
                self.steps |= {(step * self._lanes, level - 1) for step in term.sums}
            turned += len(term.sums) * layout.ciphertexts + len(term.before) * len(term.diagonals)
            turned += term.moved
            turned += term.around * (len(term.diagonals) + len({to for to, _ in term.diagonals}))
        if node.op == "products":
            self.steps |= {(step * self._lanes, level - 2) for step in node.attrs["sums"]}
            turned += len(node.attrs["sums"])
        self.rotations[node.name] = turned
        self.encoded_bytes[node.name], self.held_bytes[node.name] = encoded, held

    def _keep(self, key: _Key, plan: LinearTransform, diagonals: int) -> int:
        """Choose a form; the bytes that it takes. A plan holds its numbers in the clear, whether it is encoded or not."""
        clear = _CLEAR_BYTES * self._params.slots * diagonals
        self.is_resident &= clear + plan.plaintext_bytes <= self._room
        if clear > self._room:
            return 0
        self._kept[key] = plan
        taken = clear
        if clear + plan.plaintext_bytes <= self._room:
            self._encoded.append(plan)
            taken += plan.plaintext_bytes
        self._room -= taken
        return taken

    def _made(
        self, term: Term, level: int, to: int, only: Collection[int]
    ) -> Iterator[tuple[int, LinearTransform]]:
        if not only:
            return
        shared = self._numbers or Numbers()
        keys = {from_: (term.digests[to, from_], self._params.slots, self._lanes) for from_ in only}
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

    def forget(self) -> None:
        """Let go of what other plans share: this one has its matrices."""
        self._numbers = None

    def prepare(self, server: Evaluator) -> None:
        """Encode what is kept in that form. It then belongs to this evaluator."""
        for plan in self._encoded:
            server.prepare(plan)

    def of(self, name: str, k: int, to: int) -> Iterator[LinearTransform]:
        """The matrices of term k of a node to ciphertext `to`, in the order of Term.columns."""
        term, level = self._terms[name, k]
        blocks = _blocks(term, level, to)
        missing = [from_ for from_, key in blocks if key not in self._kept]
        made = self._made(term, level, to, missing)  # in the order of the blocks
        for _, key in blocks:
            yield next(made)[1] if key not in self._kept else self._kept[key]


class FlatMatrices(Matrices):
    """Matrices with as many diagonals as others have, all of whose numbers are nearly 0: what they add to a result is what does not depend on
    the numbers of the matrices."""

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
    """The ciphertexts of the source that ciphertext `to` of the result needs, each with its matrix's key."""
    return [(from_, (term.digests[to, from_], level)) for from_ in term.columns(to)]
