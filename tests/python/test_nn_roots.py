"""Square roots of numbers that reach 0, as the modulus of a complex number is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.passes import roots
from jali.compiler.passes.roots import RootPolynomial, RootStages, root_of

RNG = np.random.default_rng(46)
PAIRS = RNG.uniform(-1, 1, (120, 8))
PAIRS[:5, 4:] = PAIRS[:5, :4]  # of which the difference is exactly 0

#: Where an approximation may be worst: 0 and tiny numbers, and points everywhere.
POINTS = np.unique(np.r_[0.0, np.geomspace(1e-14, 1, 40_000), np.linspace(0, 1, 4_001)])


def modulus(x: Any) -> Any:
    return np.sqrt((x[:4] - x[4:]) ** 2)


def values_of(found: RootPolynomial | RootStages, x: Any, interval: tuple[float, float]) -> Any:
    low, high = interval
    if isinstance(found, RootPolynomial):
        t = (x - low) * 2 / (high - low) - 1
        return np.polynomial.chebyshev.chebval(t, found.coefficients)
    start = min(low, 0.0)
    return found((x - start) / (high - start)) * math.sqrt(high - start)


def staged(program: jali.nn.Program) -> bool:
    """Whether the root of a program is a composition."""
    return any(" factor " in node.name for node in program.stages["approximate"])


# --- approximations -----------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [3, 7, 10.5, 12, 13.5, 14.2, 16, 19.9])
def test_roots_are_within_the_error_that_is_said(bits: float) -> None:
    found = root_of((0.0, 1.0), 2.0**-bits)
    assert found is not None and found.error <= 2.0**-bits
    off = np.abs(values_of(found, POINTS, (0.0, 1.0)) - np.sqrt(POINTS)).max()
    assert 0.9 * found.error < off <= found.error


@pytest.mark.parametrize("degree", [6, 254, 382, 4094])
def test_one_polynomial_is_nearly_the_best_one(degree: int) -> None:
    """The best one is off by half of Bernstein's constant, 0.2801694990, beside its degree."""
    found = roots._of_degree(degree, 0.0)
    off = values_of(found, POINTS, (0.0, 1.0)) - np.sqrt(POINTS)
    assert np.abs(off).max() <= found.error
    assert 0.99 < np.abs(off).max() * degree / 0.1400847 < 1.02
    assert len(found.coefficients) == degree + 1


@pytest.mark.parametrize("interval", [(0.0, 589.0), (2e-4, 1.0), (1e-8, 3.0), (-1e-9, 3.0)])
@pytest.mark.parametrize("bits", [9, 12, 14.2])
def test_roots_on_other_intervals(interval: tuple[float, float], bits: float) -> None:
    low, high = interval
    error = 2.0**-bits * math.sqrt(high)
    found = root_of(interval, error)
    assert found is not None and found.error <= 2.0**-bits * math.sqrt(high)
    x = np.unique(np.r_[low, POINTS[high * POINTS >= low] * high, np.linspace(low, high, 999)])
    assert np.abs(values_of(found, x, interval) - np.sqrt(np.maximum(x, 0))).max() <= error


def test_numbers_may_be_a_little_below_0_but_not_as_far_as_the_square_of_the_error() -> None:
    assert isinstance(root_of((-(2.0**-31), 1.0), 2.0**-14.2), RootStages)
    assert root_of((-(2.0**-20), 1.0), 2.0**-14.2) is None
    coarse = root_of((-1e-5, 3.0), 2.0**-9 * math.sqrt(3))
    assert isinstance(coarse, RootPolynomial)
    x = np.r_[np.linspace(-1e-5, 0, 500), POINTS * 3]
    off = np.abs(values_of(coarse, x, (-1e-5, 3.0)) - np.sqrt(np.maximum(x, 0)))
    assert off.max() <= coarse.error


def test_an_argument_that_starts_above_0_has_polynomials_of_its_own() -> None:
    stages = root_of((1e-7, 1.0), 2.0**-15)
    assert isinstance(stages, RootStages)
    moved = stages.from_low(1e-7)
    x = np.geomspace(1e-7, 1, 1000)
    t = (x - 1e-7) * 2 / (1 - 1e-7) - 1
    assert np.allclose(moved((t + 1) / 2), stages(x), rtol=0, atol=1e-12)


def test_the_cheaper_one_is_taken() -> None:
    """Few levels up to 2^-12; and more levels with a half or a third of the products beyond."""
    for bits in (6, 10, 12):
        assert isinstance(root_of((0.0, 1.0), 2.0**-bits), RootPolynomial)
    for bits in (13.8, 14.5):
        found, one = (root_of((0.0, 1.0), 2.0**-bits, whole=w) for w in (False, True))
        assert isinstance(found, RootStages) and isinstance(one, RootPolynomial)
        assert found.price < one.price
    assert root_of((0.0, 1.0), 2.0**-14.9, whole=True) is None


def test_levels_and_products_are_those_of_the_polynomials() -> None:
    found = root_of((0.0, 1.0), 2.0**-16)
    assert isinstance(found, RootStages)
    sizes = [len(c) for c in found.inner]
    assert all(n in (8, 16, 32) for n in sizes)
    assert [len(c) for c in found.factors[1:-1]] == [n // 2 for n in sizes[1:]]
    assert len(found.factors[0]) == sizes[0] // 2 + 1
    levels = sum(int(math.log2(n)) for n in (*sizes, 2 * len(found.factors[-1])))
    assert found.depth == levels == 18


def test_errors_below_the_least_have_no_composition() -> None:
    assert root_of((0.0, 1.0), roots.LEAST_ERROR) is not None
    assert root_of((0.0, 1.0), 0.99 * roots.LEAST_ERROR) is None
