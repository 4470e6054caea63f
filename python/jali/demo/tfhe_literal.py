"""TFHE parameters for the demos, which are no presets. Their noise and security are what jali.tfhe.Params says of them."""

from __future__ import annotations

from jali.tfhe import Params

__all__ = ["MESSAGE_2_CARRY_2", "MESSAGE_2_CARRY_2_FINE", "WIDE_4096"]


def _classic(
    name: str,
    *,
    N: int,
    rotation_gadget: tuple[int, int],
    switch_gadget: tuple[int, int],
    lwe_noise_bits: int,
    glwe_noise_bits: int,
) -> Params:
    """Two bits of message and two of carry, with keys of n = 918 and k = 1."""
    return Params.create(
        name=name,
        n=918,
        k=1,
        N=N,
        rotation_gadget=rotation_gadget,
        switch_gadget=switch_gadget,
        lwe_noise_bits=lwe_noise_bits,
        glwe_noise_bits=glwe_noise_bits,
        message_bits=2,
        carry_bits=2,
        log2_p_fail=-128.0,
        security=128,
    )


# The small key has n and noise of sets that the literature knows.
MESSAGE_2_CARRY_2 = _classic(
    "message_2_carry_2_demo",
    N=2048,
    rotation_gadget=(23, 1),
    switch_gadget=(4, 4),
    lwe_noise_bits=13,
    glwe_noise_bits=17,
)
# The same with less noise of the key switch, at a third more work there.
MESSAGE_2_CARRY_2_FINE = _classic(
    "message_2_carry_2_fine",
    N=2048,
    rotation_gadget=(23, 1),
    switch_gadget=(3, 6),
    lwe_noise_bits=12,
    glwe_noise_bits=16,
)
# Half the steps' width, at 2.8 times the work of a look-up: two levels, because one leaves 2^-13.8 of noise here.
WIDE_4096 = _classic(
    "wide_4096",
    N=4096,
    rotation_gadget=(15, 2),
    switch_gadget=(3, 6),
    lwe_noise_bits=12,
    glwe_noise_bits=4,
)
