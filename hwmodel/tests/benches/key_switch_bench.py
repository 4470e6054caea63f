"""key_switch against the definition of a key switch with one digit a prime, in Python's integers."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from lanes import packed
from residues import is_prime, reciprocal, residues
from streams import SETTINGS, Unit, interrupt, record
from transform import ntt, reversed_bits, root, twiddles

W, C, N, L = (SETTINGS[name] for name in ("W", "C", "N", "L"))
T = N // C


def intt(y: list[int], psi: int, q: int) -> list[int]:
    """x[j] = N^-1 sum_k y[k] psi^(-j (2 brv(k) + 1))."""
    powers = [pow(psi, -e, q) for e in range(2 * N)]
    scale = pow(N, -1, q)
    return [
        scale
        * sum(y[k] * powers[j * (2 * reversed_bits(k, N) + 1) % (2 * N)] for k in range(N))
        % q
        for j in range(N)
    ]


def primes(count: int) -> list[int]:
    """Some of exactly W bits, 1 modulo 2N, from both ends of the range."""
    found: list[int] = []
    low, high = (1 << (W - 1)) + 1, (1 << W) - 2 * N + 1
    while len(found) < count:
        for q in (low, high):
            if is_prime(q) and q not in found:
                found.append(q)
        low, high = low + 2 * N, high - 2 * N
    return random.sample(found, count)


def switched(
    x: list[list[int]], key: list[Any], q: list[int], psi: list[int]
) -> list[list[list[int]]]:
    """For each part of the key, the residues of (acc - [acc]_P) / P; key[i][part][e] are values."""
    acc = [[[0] * N for _ in q] for _ in range(2)]
    for i in range(L):
        centred = [c - q[i] if 2 * c > q[i] else c for c in intt(x[i], psi[i], q[i])]
        for e, prime in enumerate(q):
            values = ntt(centred, psi[e], prime)
            for part in range(2):
                row = acc[part][e]
                for k in range(N):
                    row[k] = (row[k] + values[k] * key[i][part][e][k]) % prime
    out = []
    for part in range(2):
        rest = [c - q[L] if 2 * c > q[L] else c for c in intt(acc[part][L], psi[L], q[L])]
        residues_of = []
        for e in range(L):
            values, inverse = ntt(rest, psi[e], q[e]), pow(q[L], -1, q[e])
            residues_of.append(
                [(a - v) * inverse % q[e] for a, v in zip(acc[part][e], values, strict=True)]
            )
        out.append(residues_of)
    return out


def beats_of(rows: list[list[int]]) -> list[int]:
    """A beat has C words of each row."""
    return [
        packed([word for row in rows for word in row[t * C : (t + 1) * C]], W) for t in range(T)
    ]


async def load(unit: Unit, q: list[int], psi: list[int]) -> None:
    dut = unit.dut
    dut.q.value, dut.mu.value = packed(q, W), packed([reciprocal(prime) for prime in q], W + 1)
    dut.p_inverse.value = packed([pow(q[L], -1, prime) for prime in q[:L]], W)
    dut.twiddle_valid.value = dut.key_valid.value = 0
    await unit.reset()
    for e, prime in enumerate(q):
        for inverse in (0, 1):
            for row, word in enumerate(twiddles(psi[e], N, prime, C, bool(inverse))):
                dut.twiddle_valid.value, dut.twiddle_inverse.value = 1 << e, inverse
                dut.twiddle_row.value, dut.twiddle_data.value = row, word
                await unit._edge()
    dut.twiddle_valid.value = 0


@cocotb.test()
async def switches(dut: Any) -> None:
    q = primes(L + 1)
    psi = [root(prime, N) for prime in q]
    unit = Unit(dut, ("in_data",), ("out_data",))
    await load(unit, q, psi)
    beats, keys, results = [], [], []
    for _ in range(SETTINGS["count"]):
        x = [residues(prime, N) for prime in q[:L]]
        key = [[[residues(prime, N) for prime in q] for _ in range(2)] for _ in range(L)]
        beats += [{"in_data": beat} for beat in beats_of(x)]
        keys += [beat for digit in key for part in digit for beat in beats_of(part)]
        results += [
            {"out_data": beat} for part in switched(x, key, q, psi) for beat in beats_of(part)
        ]
    for full_in, full_out in ((0.5, 0.5), (0.9, 0.2))[: SETTINGS["count"]]:
        log = await unit.run(beats, len(results), full_in, full_out, beside={"key": keys})
        assert log.beats == results
    await interrupt(unit, beats, results, 1500, beside={"key": keys})
    log = await unit.run(beats, len(results), beside={"key": keys})
    assert log.beats == results
    record(cycles=log.given[2 * T - 1] - log.taken[0] + 1)
