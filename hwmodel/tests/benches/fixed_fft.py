"""The folded transform of rtl/fft.sv in Python's integers, bit for bit.

A polynomial modulo X^P - i is a list of P pairs (real, imaginary) of integers. Stage s splits each factor X^(2m) - r^2 into
(X^m - r)(X^m + r). A factor's number is doubled for the first and doubled plus one for the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

Complex = tuple[int, int]


@cache
def turns(stage: int, factor: int) -> float:
    """The angle of r of a factor, in turns: half of that of its constant term r^2, which begins as i."""
    if stage == 0:
        return 1 / 8
    above = turns(stage - 1, factor // 2)
    return (above + factor % 2 / 2) / 2


def wrap(x: int, bits: int) -> int:
    """x as a signed word."""
    return (x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@dataclass(frozen=True)
class Format:
    """Bits of data words, of twiddles, and of twiddles behind the point."""

    data: int
    twiddle: int
    fraction: int

    def root(self, stage: int, factor: int, inverse: bool = False) -> Complex:
        """r, or its conjugate: each part rounded to the nearest word."""
        angle = 2 * math.pi * turns(stage, factor) * (-1 if inverse else 1)
        most = (1 << (self.twiddle - 1)) - 1
        re, im = (round(part * (1 << self.fraction)) for part in (math.cos(angle), math.sin(angle)))
        return max(-most - 1, min(most, re)), max(-most - 1, min(most, im))

    def word(self, x: int) -> int:
        return wrap(x, self.data)

    def butterfly(self, a: Complex, b: Complex, w: Complex) -> tuple[Complex, Complex]:
        half = 1 << (self.fraction - 1)
        re = self.word((b[0] * w[0] - b[1] * w[1] + half) >> self.fraction)
        im = self.word((b[0] * w[1] + b[1] * w[0] + half) >> self.fraction)
        u = self.word(a[0] + re), self.word(a[1] + im)
        return u, (self.word(a[0] - re), self.word(a[1] - im))

    def butterfly_back(self, a: Complex, b: Complex, w: Complex) -> tuple[Complex, Complex]:
        half, shift = 1 << self.fraction, self.fraction + 1
        x, y = a[0] - b[0], a[1] - b[1]
        u = self.word((a[0] + b[0] + 1) >> 1), self.word((a[1] + b[1] + 1) >> 1)
        v = (x * w[0] - y * w[1] + half) >> shift, (x * w[1] + y * w[0] + half) >> shift
        return u, (self.word(v[0]), self.word(v[1]))

    def forward(self, x: Sequence[Complex]) -> list[Complex]:
        """The values in the order of the factors' numbers."""
        factors = [list(x)]
        for stage in range(len(x).bit_length() - 1):
            split: list[list[Complex]] = []
            for number, factor in enumerate(factors):
                m, w = len(factor) // 2, self.root(stage, number)
                pairs = [
                    self.butterfly(a, b, w) for a, b in zip(factor[:m], factor[m:], strict=True)
                ]
                split += [[u for u, _ in pairs], [v for _, v in pairs]]
            factors = split
        return [factor[0] for factor in factors]

    def backward(self, values: Sequence[Complex]) -> list[Complex]:
        factors = [[value] for value in values]
        for stage in reversed(range(len(values).bit_length() - 1)):
            joined = []
            for number in range(len(factors) // 2):
                w = self.root(stage, number, inverse=True)
                both = zip(factors[2 * number], factors[2 * number + 1], strict=True)
                pairs = [self.butterfly_back(a, b, w) for a, b in both]
                joined.append([u for u, _ in pairs] + [v for _, v in pairs])
            factors = joined
        return factors[0]


def lane_words(beats: int, beat: int, values: bool) -> list[int]:
    """Which words the four lanes of a beat hold: of coefficients, or of values."""
    if values:
        return [2 * beat, 2 * beat + 1, 2 * (beats + beat), 2 * (beats + beat) + 1]
    return [beat + lane * beats for lane in range(4)]
