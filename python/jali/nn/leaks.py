"""Noise that reaches a number from slots in which its row has no entry.

Numbers are exact there: zeros that are added, or copies that cancel. Their noise is not. Two kinds of terms have such slots:

- Sums without a mask (jali.nn.axes) add whole windows, with the noise of the slots that hold no number.
- Overlays (jali.nn.overlay) rest on copies of the source being real and the same. Noise is complex: let a_l and b_l be the variances of its real and
  imaginary part at the place that the sum of turns H_l reaches. F/2 copies are used, and one of them adds to y = sum_k v_k x_k

      2/F sum_l Re( noise_l m_l sum_k v_k conj(m_k) ).

  Monomials come in pairs, of m and i m. Of its own number l' = l xor 1 of a pair, y takes the imaginary part; of two pairs p and q, what an angle that
  depends on the slot mixes of both parts. So y has, beside  sum_l v_l^2 a_l  and with W_p = v_l^2 + v_l'^2,

      sum_l v_l'^2 b_l,                                                                 if all copies have the same noise,
      2/F ( sum_l (v_l^2 a_l + v_l'^2 b_l) + sum_{q not p} E_p W_q ) - sum_l v_l^2 a_l,    if each has its own,

  at most, where E_p is the larger a of a pair plus the larger b. The mean over angles has means of a pair in their place. With r other pairs and
  their angles, what is above the mean counts 1/sqrt(r) times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jali.nn.diagonals import placed
from jali.nn.graph import Array
from jali.nn.layout import Gathered, contents
from jali.nn.lower import Term
from jali.nn.sparse import Indices

__all__ = ["Leaks", "leaks_of"]


@dataclass(frozen=True, eq=False)
class Leaks:
    """What a term adds to the variances of numbers beyond what its matrix makes of its source's.

    empty: by number of the result, how many times the variance of a slot without a number. squares: by row of groups and place in them, v^2; numbers: the
    number of the source that lies there, or -1; rows: the number of the result.
    """

    empty: Array | float
    squares: Array | None = None
    numbers: Indices | None = None
    rows: Indices | None = None

    def __call__(self, real: Array, imaginary: Array, between: float, count: int) -> Array:
        """The variances that are added to `count` numbers. real, imaginary: those of the source's numbers; between: of a slot without a number."""
        found = np.zeros(count) + self.empty * between
        if self.squares is not None:
            assert self.numbers is not None and self.rows is not None
            a, b = (np.r_[x, between][self.numbers] for x in (real, imaginary))
            swapped = self.squares[:, np.arange(self.squares.shape[1]) ^ 1]
            usual, other = (self.squares * a).sum(1), (swapped * b).sum(1)
            angles = max(1, self.squares.shape[1] // 2 - 1)
            parts = [x.reshape(len(x), -1, 2) for x in (a, b)]
            pairs = sum(x.mean(2) + (x.max(2) - x.mean(2)) / angles**0.5 for x in parts)
            weights = self.squares.reshape(len(a), -1, 2).sum(2)
            mixed = (pairs * (weights.sum(1, keepdims=True) - weights)).sum(1)
            alone = 2 / self.squares.shape[1] * (usual + other + mixed) - usual
            same, own = (np.bincount(self.rows, x, count) for x in (other, alone))
            found += np.maximum(same, own)
        return found


def leaks_of(term: Term) -> Leaks:
    """The leaks of a term."""
    if term.turns and not isinstance(term.source, Gathered):
        return _of_overlay(term)
    single = term.single
    if single is None or (term.factor is None and not term.before and not term.joined):
        return Leaks(0.0)
    windows = 2.0 ** len(term.sums if term.factor is not None else term.before)
    if term.factor is None:
        windows *= max(1, len(term.joined))
    elif term.picked is not None:
        windows *= max(len(of) for of in term.picked)
    largest = float(np.square(single.values).max(initial=0.0))
    return Leaks(largest * np.maximum(windows - single.row_counts, 0.0))


def _of_overlay(term: Term) -> Leaks:
    assert term.single is not None and term.source is not None and term.target is not None
    source = term.source
    distance = np.zeros(1, np.int64)
    for turn in term.turns:
        distance = np.r_[distance, distance + turn]
    found = placed(term.single, source, term.target)
    start, member = _members(term, distance, found.block, found.diagonal)
    groups, of = np.unique(np.stack([found.block, found.slot, start]), axis=1, return_inverse=True)
    of = of.ravel()
    squares = np.zeros((groups.shape[1], len(distance)))
    np.add.at(squares, (of, member), np.square(term.single.values[found.entry]))
    rows = np.zeros(groups.shape[1], np.int64)
    rows[of] = term.single.rows[found.entry]
    block, slot, first = groups
    places = (slot[:, None] + first[:, None] + distance) % source.period
    numbers = contents(source)[(block % source.ciphertexts)[:, None], places]
    return Leaks(0.0, squares, numbers, rows)


def _members(
    term: Term, distance: Indices, block: Indices, diagonal: Indices
) -> tuple[Indices, Indices]:
    """For each entry, the diagonal that is left of those which its own was joined to, and which of them it is; as overlay.joined takes them."""
    assert term.source is not None
    period = term.source.period
    start, member = np.zeros_like(block), np.zeros_like(block)
    for pair, left in term.diagonals.items():
        first, which = np.full(period, -1), np.full(period, -1)
        for e in map(int, left):
            places = (e + distance) % period
            for k, place in enumerate(map(int, places)):
                if first[place] < 0:
                    first[place], which[place] = e, k
        mine = block == pair[0] * term.source.ciphertexts + pair[1]
        start[mine], member[mine] = first[diagonal[mine]], which[diagonal[mine]]
    return start, member
