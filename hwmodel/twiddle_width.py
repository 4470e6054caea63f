#!/usr/bin/env python3
"""How many bits Strix's twiddles need: external products and whole blind rotations with the fixed-point transform of
rtl/fft.sv, bit for bit, at the paper's parameter sets I and II.

The paper states 16 bits (VI-A). The arithmetic is that of the RTL: digits times 2^DIGIT_FRACTION go through the transform,
the key is transformed beforehand with all precision and KEY_FRACTION bits behind the point, vma divides by 2^SHIFT, and the
inverse transform gives integers modulo 2^32. Data words have 64 bits a part. tests/test_twiddles.py holds the transform
here equal to the model that the RTL is held to.

Usage: hwmodel/twiddle_width.py [--set I|II] [--rotations B] > bench/results/rtl-twiddles.jsonl
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "tests" / "benches"))
from fixed_fft import Format, turns

Ints = NDArray[np.int64]
DIGIT_FRACTION, KEY_FRACTION, SHIFT = 24, 4, 28


@dataclass(frozen=True)
class Set:
    """A parameter set of Strix's Table IV. The paper gives neither base nor noise: both are those of the TFHE library's
    defaults of this n, N and l."""

    name: str
    n: int
    N: int
    levels: int
    base_log: int
    lwe_noise: float  # standard deviations, of the torus
    glwe_noise: float


SETS = {
    "I": Set("I", 500, 1024, 2, 10, 2.44e-5, 3.73e-9),
    "II": Set("II", 630, 1024, 3, 7, 2.0**-15, 2.0**-25),
}


class Transform:
    """rtl/fft.sv on the last axis of int64 arrays. Words stay below 2^62, so that nothing wraps."""

    def __init__(self, points: int, twiddle: int, fraction: int) -> None:
        self.stages = points.bit_length() - 1
        self.fraction = fraction
        form = Format(64, twiddle, fraction)
        self.roots = [
            np.array([form.root(s, f) for f in range(1 << s)], dtype=np.int64)
            for s in range(self.stages)
        ]
        # The second sign: a part that is rounded to the least word has no opposite.
        self.conjugates = [
            np.array([form.root(s, f, inverse=True) for f in range(1 << s)], dtype=np.int64)
            for s in range(self.stages)
        ]

    @staticmethod
    def _product(re: Ints, im: Ints, w: Ints, shift: int) -> tuple[Ints, Ints]:
        """(re + i im) w / 2^shift, rounded half up. Words are taken in two parts of 32 bits, so that products of 96 bits fit."""
        w_re, w_im, half = w[:, :1], w[:, 1:], 1 << (shift - 1)
        re_high, re_low, im_high, im_low = re >> 32, re & 0xFFFFFFFF, im >> 32, im & 0xFFFFFFFF
        real = ((re_high * w_re - im_high * w_im) << (32 - shift)) + (
            (re_low * w_re - im_low * w_im + half) >> shift
        )
        imaginary = ((re_high * w_im + im_high * w_re) << (32 - shift)) + (
            (re_low * w_im + im_low * w_re + half) >> shift
        )
        return real, imaginary

    def forward(self, re: Ints, im: Ints) -> tuple[Ints, Ints]:
        """Coefficients modulo X^P - i -> values, by the factors' numbers."""
        shape = re.shape
        for s in range(self.stages):
            split = (*shape[:-1], 1 << s, 2, shape[-1] >> (s + 1))
            re, im = re.reshape(split), im.reshape(split)
            t_re, t_im = self._product(re[..., 1, :], im[..., 1, :], self.roots[s], self.fraction)
            re = np.stack([re[..., 0, :] + t_re, re[..., 0, :] - t_re], axis=-2)
            im = np.stack([im[..., 0, :] + t_im, im[..., 0, :] - t_im], axis=-2)
        return re.reshape(shape), im.reshape(shape)

    def backward(self, re: Ints, im: Ints) -> tuple[Ints, Ints]:
        shape = re.shape
        for s in reversed(range(self.stages)):
            split = (*shape[:-1], 1 << s, 2, shape[-1] >> (s + 1))
            re, im = re.reshape(split), im.reshape(split)
            a_re, b_re, a_im, b_im = re[..., 0, :], re[..., 1, :], im[..., 0, :], im[..., 1, :]
            v_re, v_im = self._product(
                a_re - b_re, a_im - b_im, self.conjugates[s], self.fraction + 1
            )
            re = np.stack([(a_re + b_re + 1) >> 1, v_re], axis=-2)
            im = np.stack([(a_im + b_im + 1) >> 1, v_im], axis=-2)
        return re.reshape(shape), im.reshape(shape)


def signed(x: Ints) -> Ints:
    """Words of 32 bits as integers in [-2^31, 2^31)."""
    return ((x + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def digits(x: Ints, at: Set) -> Ints:
    """The digits of rtl/decomposer.sv: a new axis of the levels, the first level first, before the last axis."""
    dropped, base = 32 - at.levels * at.base_log, 1 << at.base_log
    rest = ((x & 0xFFFFFFFF) + (1 << (dropped - 1))) >> dropped & ((1 << (32 - dropped)) - 1)
    out = []
    for _ in range(at.levels):
        low = rest & (base - 1)
        rest = rest >> at.base_log
        negative = (low > base // 2) | ((low == base // 2) & (rest & 1 == 1))
        out.append(low - base * negative)
        rest = rest + negative
    return np.stack(out[::-1], axis=-2)


def exact_product(a: Ints, b: Ints) -> Ints:
    """a b modulo X^N + 1 and 2^32; |a| < 2^15. By a transform in double precision of b's halves, whose products stay so
    small that rounding gives the integers."""
    n = a.shape[-1]
    twist = np.exp(1j * np.pi * np.arange(n) / n)
    f = np.fft.fft(a * twist)

    def product(part: Ints) -> Ints:
        return np.rint((np.fft.ifft(f * np.fft.fft(part * twist)) / twist).real).astype(np.int64)

    b = b & 0xFFFFFFFF
    return (product(b & 0xFFFF) + (product(b >> 16) << 16)) & 0xFFFFFFFF


def key_values(key: Ints) -> tuple[Ints, Ints]:
    """Words of a key in the transform domain, KEY_FRACTION bits behind the point, of double precision before rounding."""
    p = key.shape[-1] // 2
    angles = np.array([turns(p.bit_length() - 1, f) * 2 for f in range(p)])  # those of the roots
    matrix = np.exp(2j * np.pi * np.outer(np.arange(p), angles))
    centred = signed(key).astype(np.float64)
    values = (centred[..., :p] + 1j * centred[..., p:]) @ matrix * (1 << KEY_FRACTION)
    return np.rint(values.real).astype(np.int64), np.rint(values.imag).astype(np.int64)


class Cluster:
    """The external product of Strix's pipe: decomposer, transforms, multipliers, inverse transforms."""

    def __init__(self, at: Set, twiddle: int, fraction: int) -> None:
        self.set = at
        self.transform = Transform(at.N // 2, twiddle, fraction)

    def product(self, key: tuple[Ints, Ints], glwe: Ints) -> Ints:
        """GGSW x GLWE. key: (rows, 2, P) of each part; glwe: (batch, 2, N)."""
        p = self.set.N // 2
        d = digits(glwe, self.set).reshape(len(glwe), -1, self.set.N) << DIGIT_FRACTION
        x_re, x_im = self.transform.forward(d[..., :p], d[..., p:])
        re, im = self._sum(x_re, x_im, *key)
        out_re, out_im = self.transform.backward(re, im)
        return np.concatenate([out_re, out_im], axis=-1) & 0xFFFFFFFF

    @staticmethod
    def _sum(x_re: Ints, x_im: Ints, k_re: Ints, k_im: Ints) -> tuple[Ints, Ints]:
        """rtl/vma.sv: sum over the rows of x k / 2^SHIFT, rounded once. Both factors in two parts, so that 64 bits hold products."""
        x_re, x_im = x_re[:, :, None], x_im[:, :, None]

        x0, k0 = (1 << 22) - 1, (1 << 20) - 1  # masks of the low parts

        def halves(a: Ints, b: Ints, c: Ints, d: Ints, sign: int) -> Ints:
            def parts(high_x: bool, high_k: bool) -> Ints:
                ax, cx = (a >> 22, c >> 22) if high_x else (a & x0, c & x0)
                bk, dk = (b >> 20, d >> 20) if high_k else (b & k0, d & k0)
                return (ax * bk + sign * cx * dk).sum(axis=1)

            # The sum is A 2^42 + B 2^22 + C 2^20 + D.
            low = (parts(False, False) + (1 << (SHIFT - 1))) >> 20
            middle = 4 * parts(True, False) + parts(False, True) + low
            return (parts(True, True) << 14) + (middle >> 8)

        return halves(x_re, k_re, x_im, k_im, -1), halves(x_re, k_im, x_im, k_re, 1)


def exact_external(at: Set, key: Ints, glwe: Ints) -> Ints:
    """The same over the integers. key: (rows, 2, N)."""
    d = digits(glwe, at).reshape(len(glwe), -1, 1, at.N)
    return (
        exact_product(np.broadcast_to(d, (*d.shape[:2], 2, at.N)), key[None]).sum(axis=1)
        & 0xFFFFFFFF
    )


class Keys:
    """A binary secret of each kind, and GGSW ciphertexts of the LWE secret's bits."""

    def __init__(self, at: Set, rng: np.random.Generator) -> None:
        self.set, self.rng = at, rng
        self.lwe = rng.integers(0, 2, at.n)
        self.glwe = rng.integers(0, 2, at.N)

    def noise(self, deviation: float, *shape: int) -> Ints:
        return np.rint(self.rng.normal(0, deviation * 2**32, shape)).astype(np.int64)

    def ggsw(self, bit: int) -> Ints:
        """(rows, 2, N): row c levels + j - 1 has bit 2^(32 - j base_log) added to its part c."""
        at = self.set
        rows = 2 * at.levels
        mask = self.rng.integers(0, 1 << 32, (rows, at.N))
        body = exact_product(np.broadcast_to(self.glwe, mask.shape), mask)
        out = np.stack([mask, body + self.noise(at.glwe_noise, rows, at.N)], axis=1)
        for row in range(rows):
            out[row, row // at.levels, 0] += bit << (32 - (row % at.levels + 1) * at.base_log)
        return out & 0xFFFFFFFF

    def phase(self, glwe: Ints) -> Ints:
        mask = glwe[:, 0]
        product = exact_product(np.broadcast_to(self.glwe, mask.shape), mask)
        return signed(glwe[:, 1] - product)


def times_power(x: Ints, exponents: Ints) -> Ints:
    """X^e x modulo X^N + 1, an exponent for each entry of the batch."""
    n = x.shape[-1]
    out = np.empty_like(x)
    for b, e in enumerate(exponents):
        whole = np.roll(np.concatenate([x[b], -x[b]], axis=-1), int(e), axis=-1)
        out[b] = whole[..., :n]
    return out


def one_product(at: Set, widths: list[tuple[int, int]], rng: np.random.Generator) -> list[float]:
    """For each width, the standard deviation, of the torus, of an external product beside the exact one."""
    key = Keys(at, rng).ggsw(1)
    values = key_values(key)
    glwe = rng.integers(0, 1 << 32, (8, 2, at.N))
    exact = exact_external(at, key, glwe)
    errors = [signed(Cluster(at, *width).product(values, glwe) - exact) / 2**32 for width in widths]
    return [float(np.sqrt(np.mean(error**2))) for error in errors]


def rotations(
    at: Set, widths: list[tuple[int, int]], batch: int, rng: np.random.Generator
) -> list[dict[str, float]]:
    """Gate bootstrappings of `batch` random messages +-1/8 at each width, with the same keys and ciphertexts: the error of the
    accumulator's phase, and how many messages decrypt to the other sign."""
    keys = Keys(at, rng)
    sign = rng.integers(0, 2, batch) * 2 - 1
    mask = rng.integers(0, 1 << 32, (batch, at.n))
    body = mask @ keys.lwe + keys.noise(at.lwe_noise, batch) + sign * (1 << 29)
    log = (2 * at.N).bit_length() - 1
    exponents = (np.column_stack([mask, body]) + (1 << (31 - log)) >> (32 - log)) % (2 * at.N)
    switched = (exponents[:, at.n] - exponents[:, : at.n] @ keys.lwe) % (2 * at.N)
    table = np.zeros((batch, 2, at.N), dtype=np.int64)
    table[:, 1] = 1 << 29
    right = times_power(table, -switched % (2 * at.N))[:, 1]

    clusters = [Cluster(at, *width) for width in widths]
    accumulators = [times_power(table, -exponents[:, at.n] % (2 * at.N)) for _ in widths]
    for i in range(at.n):
        key = key_values(keys.ggsw(int(keys.lwe[i])))
        for c, cluster in enumerate(clusters):
            turned = times_power(accumulators[c], exponents[:, i])
            accumulators[c] = accumulators[c] + cluster.product(key, turned - accumulators[c])
            accumulators[c] &= 0xFFFFFFFF
    found = []
    for acc in accumulators:
        phase = keys.phase(acc)
        error = signed(phase - right) / 2**32
        found.append(
            {
                "phase_error": float(np.sqrt(np.mean(error**2))),
                "wrong": int(np.sum(np.sign(phase[:, 0]) != sign)),
            }
        )
    return found


WIDTHS = [(16, 15), (16, 14), (20, 18), (24, 22), (28, 26), (32, 30)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=sorted(SETS), action="append")
    parser.add_argument("--rotations", type=int, default=64)
    options = parser.parse_args()
    describe = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip()
    rng = np.random.default_rng()
    for name in options.set or sorted(SETS):
        at = SETS[name]
        errors = one_product(at, WIDTHS, rng)
        rotated = rotations(at, WIDTHS, options.rotations, rng)
        for (twiddle, fraction), error, rotation in zip(WIDTHS, errors, rotated, strict=True):
            row: dict[str, Any] = {"name": "rtl_twiddles", "set": name, "twiddle_bits": twiddle}
            row |= {"fraction_bits": fraction, "base_log": at.base_log, "levels": at.levels}
            row |= {"product_error": error, **rotation, "of": options.rotations, "commit": commit}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
