"""Overlays: one product with a diagonal computes several diagonals of a matrix.

Let x be real and repeat after Q of all S = N/2 slots. An overlay of t turns h_1 .. h_t is the
ciphertext that

    u_0 = x,   u_j = u_{j-1} + X^{e_j} rotated(u_{j-1}, h_j)

end with: in slot s it holds  sum_k m_k[s] x[s + H_k]  for the F = 2^t sums H_k of turns, where
m_k[s] is a power of the 2N-th root of unity, the value of a monomial in slot s. A product with a
monomial takes neither a level nor a key, and adds no noise. The exponents are N/2, which is i in
every slot, and then C/2, C/4 .. 1 with C = F/2, the copies that are used; C divides S/Q.

Let T be the sum over the rotations by multiples of S/C and over conjugation, F terms in all.
Polynomials in X^C repeat after S/C slots, and 1, X .. X^{C-1} and their products with X^{N/2} = i
are a basis over the real ones among them, orthogonal for T: the exponents of all m_k are different
modulo C, but for pairs that differ by N/2. So T(conj(m_k) m_l) = F if k = l, and 0 otherwise, and

    sum_d v_d[s] x[s + d] = T( sum_e p_e[s] u[s + e] ),   p_e[s] = 1/F sum_k v_{e + H_k}[s]
    conj(m_k[s + e]),

for real diagonals v_d that repeat after Q slots, whenever every d is e + H_k, modulo the period of
x, for some e and k. There are then about 1/F as many products. That costs t rotations before them,
and t - 1 rotations and a conjugation behind them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.graph import Array
from jali.compiler.ir.sparse import Indices

__all__ = ["exponents", "joined", "monomial", "overlaid", "price", "sums_of"]

Complex = npt.NDArray[np.complex128]

_MOST_TURNS = 6
_CANDIDATES = 24  # turns that are tried for each step


def price(counts: Sequence[int], copies: int, costs: LayoutCosts) -> float:
    """About what products cost with the best number of turns.

    counts: of diagonals, for each pair of ciphertexts.
    copies: S/Q, or 0 if the source has no overlays.
    """
    return min(
        costs.matrix([math.ceil(n / 2**turns) for n in counts], turns)
        for turns in range(_most(copies) + 1)
    )


def _most(copies: int) -> int:
    """The most turns: one for numbers that lie once, and one more whenever the copies double."""
    return min(_MOST_TURNS, copies.bit_length())


def overlaid(
    diagonals: Mapping[tuple[int, int], Indices], period: int, copies: int, costs: LayoutCosts
) -> tuple[tuple[int, ...], dict[tuple[int, int], Indices]]:
    """The turns that make products and rotations cheapest, and the diagonals that are left; no
    turns if that is cheapest. Turns that save less than a rotation in a matrix are left out: each
    adds up to half a bit of noise, by which the scales of all levels grow.

    diagonals: rotations modulo the period of the source, by pair of ciphertexts.
    copies: S/Q.
    """
    turns: tuple[int, ...] = ()
    left = {pair: np.sort(np.asarray(d)) for pair, d in diagonals.items()}
    best, cost = (turns, left), costs.matrix(map(len, left.values()))
    for _ in range(_most(copies)):
        turn = _turn(list(left.values()), period)
        if turn is None:
            break
        turns = (*turns, turn)
        left = {pair: _paired(d, turn, period) for pair, d in left.items()}
        now = costs.matrix(map(len, left.values()), len(turns))
        if now + costs.switch <= cost:
            best, cost = (turns, left), now
    return best


def _turn(sets: Sequence[Indices], period: int) -> int | None:
    """The turn that leaves the fewest diagonals; None if there is nothing to save. The smallest of
    equal ones."""
    if all(len(d) < 2 for d in sets):
        return None
    pairs = np.zeros(period)
    for d in sets:
        there = np.zeros(period)
        there[d] = 1
        spectrum = np.fft.rfft(there)
        pairs += np.fft.irfft(np.abs(spectrum) ** 2, period)
    pairs = np.rint(pairs)
    pairs[0] = pairs[period // 2 + 1 :] = 0  # a turn and its opposite leave equally many
    order = np.argsort(-pairs, kind="stable")[:_CANDIDATES]
    found: list[int] = [int(turn) for turn in order if pairs[turn] > 0]
    return min(found, key=lambda turn: (sum(len(_paired(d, turn, period)) for d in sets), turn))


def _paired(diagonals: Indices, turn: int, period: int) -> Indices:
    """The fewest numbers such that each diagonal is one of them, or one plus the turn, modulo the
    period, a power of two."""
    step = turn & -turn
    length = period // step  # of the cycles of numbers that are turns apart
    place = diagonals // step * pow(turn // step, -1, length) % length
    cycle = diagonals % step
    order = np.lexsort((place, cycle))
    place, cycle = place[order], cycle[order]
    follows = np.r_[False, (np.diff(place) == 1) & (np.diff(cycle) == 0)]
    starts = np.flatnonzero(~follows)
    run = np.cumsum(~follows) - 1
    inside = np.arange(len(place)) - starts[run]
    # A run at the end of its cycle goes on at the beginning, unless the run there is all of the
    # cycle.
    ends = np.r_[starts[1:], len(place)] - 1
    first = {int(c): k for k, c in reversed(list(enumerate(cycle[starts])))}
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        head = first[int(cycle[start])]
        if place[end] == length - 1 and head != k and place[starts[head]] == 0:
            inside[starts[head] : ends[head] + 1] += end - start + 1
    return np.sort(diagonals[order][inside % 2 == 0])


def exponents(turns: Sequence[int], half: int) -> list[int]:
    """e_1 .. e_t.

    half: N/2.
    """
    copies = 1 << max(0, len(turns) - 1)
    return [half, *(copies >> k for k in range(1, len(turns)))] if turns else []


def sums_of(turns: Sequence[int], slots: int) -> list[int]:
    """The rotations of T: after each, y becomes y + rotated y. Twice the real part follows them."""
    return [slots >> k for k in range(1, len(turns))]


def _powers(half: int) -> Indices:
    """5^s modulo 2N for every slot s of N/2."""
    powers = np.ones(half, np.int64)
    filled, factor = 1, 5
    while filled < half:
        powers[filled : 2 * filled] = powers[:filled] * factor % (4 * half)
        filled, factor = 2 * filled, factor * factor % (4 * half)
    return powers


def monomial(exponent: int, half: int) -> Complex:
    """The value of X^exponent in each of N/2 slots."""
    return np.asarray(np.exp(2j * np.pi / (4 * half) * (_powers(half) * exponent % (4 * half))))


@lru_cache(maxsize=4)
def _units(turns: tuple[int, ...], lanes: int, slots: int) -> tuple[Indices, Complex]:
    """H_k, and m_k of slots s and s + S: (F, 2 S)."""
    half = slots * lanes
    order = 4 * half  # of the root of unity, 2N
    powers = _powers(half)
    distance, exponent = np.zeros(1, np.int64), np.zeros((1, half), np.int64)
    for turn, e in zip(turns, exponents(turns, half), strict=True):
        turned = np.roll(exponent, -turn * lanes, axis=1) + powers * e
        exponent = np.concatenate([exponent, turned % order])
        distance = np.r_[distance, distance + turn]
    roots = np.exp(2j * np.pi / order * np.arange(order))
    units = roots[exponent]
    return distance, np.concatenate([units, units], axis=1)


def joined(
    turns: tuple[int, ...],
    left: Indices,
    diagonals: Mapping[int, Array],
    period: int,
    slots: int,
    lanes: int,
) -> Iterator[tuple[int, Complex]]:
    """p_e for every e that is left, in all slots.

    diagonals: v_d by d, over any period that divides the slots of a lane.
    period: of the source.
    """
    distance, units = _units(turns, lanes, slots)
    missing = dict(diagonals)
    for e in map(int, left):
        total = np.zeros(slots * lanes, np.complex128)
        for k, far in enumerate(distance):
            vector = missing.pop((e + int(far)) % period, None)
            if vector is not None:
                unit = units[k, e * lanes : e * lanes + slots * lanes]
                shaped = unit.conj().reshape(-1, len(vector), lanes)
                total += (vector[:, None] * shaped).ravel()
        yield e, total / len(distance)
    assert not missing, "every diagonal is one that is left plus turns"
