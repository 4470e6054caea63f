"""Integers for the benches, in Python alone: primes, and residues that make units err if they can."""

from __future__ import annotations

import random


def is_prime(n: int) -> bool:
    """Miller and Rabin's test; these bases decide every n < 3.3e24 (Sorenson and Webster 2015)."""
    if n < 41:
        return n in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime_of(bits: int, step: int, lowest: bool = False) -> int:
    """The largest prime 1 mod `step` of exactly so many bits, or the smallest."""
    first = (1 << (bits - 1 if lowest else bits)) // step * step + 1
    q = first + step if lowest else first - step
    while not is_prime(q):
        q += step if lowest else -step
    assert q.bit_length() == bits
    return q


def reciprocal(q: int) -> int:
    """Barrett's mu."""
    return (1 << (2 * q.bit_length())) // q


def residues(q: int, count: int) -> list[int]:
    """Residues of q: the edges, neighbours of powers of two, and uniform ones."""
    edges = [0, 1, 2, q - 1, q - 2, q // 2, q // 2 + 1]
    powers = [(1 << k) + d for k in range(2, q.bit_length()) for d in (-1, 0, 1)]
    edges += [x for x in powers if x < q]
    return [
        random.choice(edges) if random.random() < 0.4 else random.randrange(q) for _ in range(count)
    ]
