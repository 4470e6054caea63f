"""The negacyclic transform by its definition, and the tables of rtl/ntt_engine.sv, in Python's integers."""

from __future__ import annotations

from collections.abc import Sequence

from routing import control


def reversed_bits(k: int, n: int) -> int:
    """The log2(n) low bits of k in the other order."""
    return int(f"{k:0{n.bit_length() - 1}b}"[::-1], 2)


def root(q: int, n: int) -> int:
    """Some psi with psi^n = -1 modulo q."""
    return next(
        psi
        for psi in (pow(a, (q - 1) // (2 * n), q) for a in range(2, q))
        if pow(psi, n, q) == q - 1
    )


def ntt(x: Sequence[int], psi: int, q: int) -> list[int]:
    """out[k] = sum_j x[j] psi^(j (2 brv(k) + 1)), in n^2 products."""
    n = len(x)
    powers = [pow(psi, e, q) for e in range(2 * n)]
    return [
        sum(x[j] * powers[j * (2 * reversed_bits(k, n) + 1) % (2 * n)] for j in range(n)) % q
        for k in range(n)
    ]


def twiddles(psi: int, n: int, q: int, lanes: int, inverse: bool) -> list[int]:
    """The rows of the engine's table: psi^brv(2^s + i mod 2^s) for the pairs i of a beat, or the inverses."""
    half = lanes // 2
    base = pow(psi, -1, q) if inverse else psi
    rows = []
    for s in range(n.bit_length() - 1):
        for t in range(max(1, (1 << s) // half)):
            word = 0
            for k in reversed(range(half)):
                e = reversed_bits((1 << s) + (t * half + k) % (1 << s), n)
                word = word << q.bit_length() | pow(base, e, q)
            rows.append(word)
    return rows


def automorphism(k: int, g: int, n: int) -> int:
    """Which value of x is value k of x(X^g): that at psi^(e g), e = 2 brv(k) + 1."""
    e = (2 * reversed_bits(k, n) + 1) * g % (2 * n)
    return reversed_bits((e - 1) // 2, n)


def turns(g: int, n: int, lanes: int) -> list[int]:
    """The engine's table {row, control} for the automorphism X -> X^g. All words of a beat come from one row; its halves
    are exchanged in the upper half of the rows."""
    beats = n // lanes
    bits = len(bin(control_mask(lanes))) - 2
    table = []
    for t in range(beats):
        places = [automorphism(t * lanes + lane, g, n) for lane in range(lanes)]
        (row,) = {place // lanes for place in places}
        stored = [place % lanes ^ (lanes // 2 if row >= beats // 2 else 0) for place in places]
        table.append(row << bits | control(stored))
    return table


def control_mask(lanes: int) -> int:
    """All bits of the control word of a Benes network."""
    return (1 << (2 * (lanes.bit_length() - 1) - 1) * lanes // 2) - 1
