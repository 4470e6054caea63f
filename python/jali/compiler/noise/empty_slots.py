"""Noise from empty slots: what reaches a number from slots in which its row of the matrix has no
entry.

Numbers are exact there: zeros that are added, or copies that cancel. Their noise is not. Two kinds
of terms have such slots:

- Sums without a mask (jali.compiler.layout.axes) add whole windows, with the noise of the slots
  that hold no number.
- Overlays (jali.compiler.layout.overlay) rest on copies of the source being real and the same.
  Noise is complex: let a_l and b_l be the variances of its real and imaginary part at the place
  that the sum of turns H_l reaches. F/2 copies are used, and one of them adds to y = sum_k v_k x_k

      2/F sum_l Re( noise_l m_l sum_k v_k conj(m_k) ).

  Monomials come in pairs, of m and i m. Of its own number l' = l xor 1 of a pair, y takes the
  imaginary part; of two pairs p and q, what an angle that depends on the slot mixes of both parts.
  So y has, beside  sum_l v_l^2 a_l  and with W_p = v_l^2 + v_l'^2,

      sum_l v_l'^2 b_l,                                                                 if all
      copies have the same noise, 2/F ( sum_l (v_l^2 a_l + v_l'^2 b_l) + sum_{q not p} E_p W_q ) -
      sum_l v_l^2 a_l,    if each has its own,

  at most, where E_p is the larger a of a pair plus the larger b. The mean over angles has means of
  a pair in their place. With r other pairs and their angles, what is above the mean counts
  1/sqrt(r) times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jali.compiler.ir.graph import Array
from jali.compiler.ir.layouts import Gathered, contents
from jali.compiler.ir.sparse import Indices
from jali.compiler.layout.terms import Term

__all__ = ["EmptySlotNoise", "empty_slot_noise"]

_AT_ONCE = 1 << 18  # products of a slot and a diagonal whose variances are in memory at a time


@dataclass(frozen=True, eq=False)
class EmptySlotNoise:
    """What a term adds to the variances of numbers beyond what its matrix makes of its source's.

    empty: by number of the result, how many times the variance of a slot without a number.
    overlay: the term, if it has an overlay.
    """

    empty: Array | float
    overlay: Term | None = None

    def __call__(self, real: Array, imaginary: Array, between: float, count: int) -> Array:
        """The variances that are added to `count` numbers.

        real, imaginary: those of the source's numbers.
        between: of a slot without a number.
        """
        found = np.zeros(count) + self.empty * between
        if self.overlay is not None:
            parts = (np.r_[real, between], np.r_[imaginary, between])
            found += _of_overlay(self.overlay, *parts, count)
        return found


def empty_slot_noise(term: Term) -> EmptySlotNoise:
    """The noise that a term takes from empty slots."""
    if term.turns and not isinstance(term.source, Gathered):
        return EmptySlotNoise(0.0, term)
    single = term.single
    if single is None or (term.factor is None and not term.before and not term.joined):
        return EmptySlotNoise(0.0)
    windows = 2.0 ** len(term.sums if term.factor is not None else term.before)
    if term.factor is None:
        windows *= max(1, len(term.joined))
    elif term.picked is not None:
        windows *= max(len(of) for of in term.picked)
    largest = float(np.square(single.values).max(initial=0.0))
    return EmptySlotNoise(largest * np.maximum(windows - single.row_counts, 0.0))


def _of_overlay(term: Term, real: Array, imaginary: Array, count: int) -> Array:
    """What an overlay adds to `count` numbers.

    real, imaginary: variances of the source's numbers, and behind them that of a slot without a
        number.
    """
    assert term.source is not None
    distance, period = np.zeros(1, np.int64), term.source.period
    for turn in term.turns:
        distance = np.r_[distance, distance + turn]
    held, slots = contents(term.source), np.arange(term.period)
    same, own = np.zeros(count), np.zeros(count)
    for pair, diagonals, table, rows in term.tables():
        a, b = (x[held[pair[1], :period]] for x in (real, imaginary))
        squares = np.concatenate([np.square(table, out=table), np.zeros((1, term.period))])
        left, members = term.diagonals[pair], _members(term, pair, diagonals, distance)
        used = np.flatnonzero(rows >= 0)
        step = max(1, _AT_ONCE // (len(distance) * term.period))
        for k in range(0, len(left), step):
            at = (left[k : k + step, None, None] + distance[:, None] + slots) % period
            other, alone = _variances(squares[members[k : k + step]], a[at], b[at])
            for total, part in ((same, other), (own, alone)):
                total += np.bincount(rows[used], part.sum(0)[used], count)
    return np.maximum(same, own)


def _variances(squares: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The variances that an overlay adds beside sum_l v_l^2 a_l: if all copies of the source have
    the same noise, and if each has its own.

    The axis of the F products is the second one; the variances are of the shape without it.
    """
    turns = squares.shape[1]
    usual = (squares * a).sum(1)
    other = (squares[:, np.arange(turns) ^ 1] * b).sum(1)
    paired = (len(squares), turns // 2, 2, -1)
    angles = max(1, turns // 2 - 1)
    means = [x.reshape(paired) for x in (a, b)]
    pairs = sum(x.mean(2) + (x.max(2) - x.mean(2)) / angles**0.5 for x in means)
    weights = squares.reshape(paired).sum(2)
    mixed = (pairs * (weights.sum(1, keepdims=True) - weights)).sum(1)
    return other, 2 / turns * (usual + other + mixed) - usual


def _members(term: Term, pair: tuple[int, int], own: Indices, distance: Indices) -> Indices:
    """(diagonals that are left, F): which of the matrix's own diagonals each stands for, as
    overlay.joined takes them, or -1."""
    assert term.source is not None
    period = term.source.period
    place = np.full(period, -1)
    place[own] = np.arange(len(own))
    reached = place[(term.diagonals[pair][:, None] + distance) % period]
    _, first = np.unique(reached, return_index=True)
    found = np.full(reached.size, -1)
    found[first] = reached.ravel()[first]
    return found.reshape(reached.shape)
