"""Which of scikit-learn's 1,797 digits are the demo's test images."""

from __future__ import annotations

DIGITS = 1797
TEST = 360
_MULTIPLIER = 1009  # prime to 1,797: i -> 1009 i mod 1797 is a permutation


def digits_test_indices() -> list[int]:
    """Indices of the 360 test images (20 %), ascending: image i is one when 1009 i mod 1797 < 360.

    A fixed scattering without any random generator, so that the training script and the demo agree
    for ever.
    """
    return [i for i in range(DIGITS) if _MULTIPLIER * i % DIGITS < TEST]
