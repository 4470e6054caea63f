"""Which rows of scikit-learn's data sets are the demos' test rows."""

from __future__ import annotations

DIGITS = 1797
TEST = 360
BREAST_CANCER = 569
BREAST_CANCER_TEST = 142
_MULTIPLIER = 1009  # prime to 1,797 and 569: i -> 1009 i mod n is a permutation


def _scattered(count: int, test: int) -> list[int]:
    """Row i is one when 1009 i mod count < test.

    A fixed scattering without any random generator, so that the training script and the demo agree
    for ever.
    """
    return [i for i in range(count) if _MULTIPLIER * i % count < test]


def digits_test_indices() -> list[int]:
    """Indices of the 360 test images (20 %), ascending: image i is one when 1009 i mod 1797 <
    360."""
    return _scattered(DIGITS, TEST)


def breast_cancer_test_indices() -> list[int]:
    """Indices of the 142 test rows (25 %), ascending: row i is one when 1009 i mod 569 < 142."""
    return _scattered(BREAST_CANCER, BREAST_CANCER_TEST)
