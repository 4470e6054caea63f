"""What TFHE parameters the demos need, and the noise that their look-ups have.

A `Literal` has the fields of `jali::tfhe::Literal`. The variances are those of a phase on a torus of circumference 1, with
a binary secret whose mean is 1/2, for the classic rotation. A clear run takes its simulated noise from here. This module
needs the standard library alone, so that the training scripts can load it by its path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["MESSAGE_2_CARRY_2", "MESSAGE_2_CARRY_2_FINE", "WIDE_4096", "Gadget", "Literal"]


@dataclass(frozen=True)
class Gadget:
    """A decomposition into `levels` digits of `base_log` bits."""

    base_log: int
    levels: int

    @property
    def digit_variance(self) -> float:
        """The variance of a closest-representative digit: (B^2 + 2) / 12."""
        return (4.0**self.base_log + 2) / 12

    @property
    def dropped_variance(self) -> float:
        """The variance of what the digits leave out: B^(-2 l) / 12."""
        return 4.0 ** (-self.base_log * self.levels) / 12


def _tuniform_variance(bits: int) -> float:
    """TUniform(b) is uniform on the integers from -2^b to 2^b, with half the weight at both ends: (2^(2b+1) + 1) / 6."""
    return (2.0 ** (2 * bits + 1) + 1) / 6


@dataclass(frozen=True)
class Literal:
    """Sizes, gadgets and errors of one parameter set.

    Small ciphertexts have dimension n and words of 32 bits; large ones have dimension k N and words of 64 bits, and are
    what users hold. An operation switches to the small key, then bootstraps.

    lwe_noise_bits, glwe_noise_bits: errors are TUniform of them, in words of 32 and of 64 bits.
    """

    name: str
    n: int
    k: int
    N: int
    rotation_gadget: Gadget
    switch_gadget: Gadget
    lwe_noise_bits: int
    glwe_noise_bits: int
    message_bits: int = 2
    carry_bits: int = 2
    security: int = 128

    @property
    def fresh(self) -> float:
        """The variance of a fresh large ciphertext."""
        return _tuniform_variance(self.glwe_noise_bits) * 2.0**-128

    @property
    def bootstrapped(self) -> float:
        """The variance of a result of a look-up: the key's errors, the digits' rounding and the FFT's."""
        gadget = self.rotation_gadget
        products = (self.k + 1) * gadget.levels * self.N
        reach = 1 + self.k * self.N / 2
        key = products * gadget.digit_variance * self.fresh
        rounding = gadget.dropped_variance * reach / 2
        transform = (
            products * gadget.digit_variance / 12 * 2 * math.log2(self.N) * 2.0**-106
        ) * reach
        return self.n * (key + rounding + transform)

    @property
    def key_switch(self) -> float:
        """The variance that a key switch adds."""
        large, gadget = self.k * self.N, self.switch_gadget
        errors = _tuniform_variance(self.lwe_noise_bits) * 2.0**-64
        return (
            large * (gadget.levels * gadget.digit_variance * errors + gadget.dropped_variance / 2)
            + 2.0**-64 / 12
        )

    def modulus_switch(self, log_many: int = 0) -> float:
        """The variance that rounding the mask to 2N / 2^log_many steps adds, its mean compensated: n / 48 squared steps."""
        return self.n / 48 * (2.0**log_many / (2 * self.N)) ** 2

    def before_look_up(self, norm2: float, log_many: int = 0) -> float:
        """The variance of the phase that is looked up, without the rounding of the body, which is no noise but exact.

        norm2: the squared 2-norm of the weights of look-ups' results in the combination.
        """
        return norm2 * self.bootstrapped + self.key_switch + self.modulus_switch(log_many)

    def log2_failure(self, norm2: float, half_box: float, log_many: int = 0) -> float:
        """log2 of the probability that a look-up of such a combination leaves a box of +- half_box of the torus."""
        half = half_box - 2.0**log_many / (4 * self.N)  # the body is rounded to whole steps
        return log2_outside(half, self.before_look_up(norm2, log_many))


def log2_outside(half: float, variance: float) -> float:
    """log2 of P(|x| > half) for a normal x, also where it underflows."""
    x = half / math.sqrt(2 * variance)
    if x < 20:
        return math.log2(math.erfc(x))
    return (-x * x - math.log(x * math.sqrt(math.pi))) * math.log2(math.e)


# Two bits of message and two of carry, with n and noise of known sets: 918 from the literature's, and 128 bits by the
# estimator at 2^32 and TUniform(13) from n = 876 on, at 2^64 and TUniform(15) for k N = 2048.
MESSAGE_2_CARRY_2 = Literal("message_2_carry_2", 918, 1, 2048, Gadget(23, 1), Gadget(4, 4), 13, 17)
# The same with less noise of the key switch, at a third more work there.
MESSAGE_2_CARRY_2_FINE = Literal(
    "message_2_carry_2_fine", 918, 1, 2048, Gadget(23, 1), Gadget(3, 6), 12, 16
)
# Half the steps' width, at 2.8 times the work of a look-up: two levels, because one leaves 2^-13.8 of noise here.
WIDE_4096 = Literal("wide_4096", 918, 1, 4096, Gadget(15, 2), Gadget(3, 6), 12, 4)
