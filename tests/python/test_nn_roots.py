"""Square roots of numbers that reach 0, as the modulus of a complex number is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.passes.approximate import _interpolated_root

RNG = np.random.default_rng(46)
PAIRS = RNG.uniform(-1, 1, (120, 8))
PAIRS[:5, 4:] = PAIRS[:5, :4]  # of which the difference is exactly 0


def modulus(x: Any) -> Any:
    return np.sqrt((x[:4] - x[4:]) ** 2)


@pytest.mark.parametrize("bits", [5, 8])
def test_roots_from_zero_are_as_exact_as_asked_for(bits: int) -> None:
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=bits)
    want = np.stack([modulus(x) for x in PAIRS])
    assert np.abs(program.simulate(PAIRS) - want).max() < 2.0**-bits * want.max()
    client = program.client()
    server = program.server(client.evaluation_keys())
    for k in (0, 50):
        got = client.decrypt(server(client.encrypt(PAIRS[k])))
        assert np.abs(got - want[k]).max() < 2.0**-bits * want.max()


@pytest.mark.parametrize("degree", [510, 4094])
@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.0, 589.0), (-1e-5, 3.0)])
def test_interpolated_roots_are_within_their_error(
    degree: int, interval: tuple[float, float]
) -> None:
    low, high = interval
    coefficients, error = _interpolated_root(degree, interval)
    x = np.unique(
        np.r_[low, 0.0, np.geomspace(1e-12, 1, 20_000) * high, np.linspace(low, high, 777)]
    )
    t = (x - low) * 2 / (high - low) - 1
    off = np.polynomial.chebyshev.chebval(t, coefficients) - np.sqrt(np.maximum(x, 0))
    assert 0.5 * error < np.abs(off).max() <= 1.01 * error
    assert error < np.sqrt(high) * (0.3 if low == 0 else 4.0) / degree


@pytest.mark.long
def test_exact_roots_on_encrypted_numbers() -> None:
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=11)
    client = program.client()
    server = program.server(client.evaluation_keys())
    for k in (0, 50):
        got = client.decrypt(server(client.encrypt(PAIRS[k])))
        assert np.abs(got - modulus(PAIRS[k])).max() < 2.0**-11 * 2


def test_examples_between_those_of_the_calibration_are_right_too() -> None:
    """No interval near 0 is left out."""
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=6)
    x = np.zeros((200, 8))
    x[:, :4] = np.geomspace(1e-6, 1.0, 200)[:, None]
    want = np.stack([modulus(one) for one in x])
    assert np.abs(program.simulate(x) - want).max() < 2.0**-6 * 2


def test_roots_of_numbers_below_zero_are_refused() -> None:
    x = RNG.uniform(0.2, 1, (50, 3))
    with pytest.raises(jali.InvalidArgument, match=r"above 0|add a constant|NaN"):
        jali.compile(lambda v: np.sqrt(v - 0.5), x[0], calibration=x, precision_bits=5)


def test_roots_that_no_polynomial_reaches_are_refused_with_what_helps() -> None:
    with pytest.raises(jali.InvalidArgument, match="keep its numbers away from 0") as refused:
        jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=14)
    assert "ask for fewer precision_bits" in str(refused.value)
    jali.compile(
        lambda x: np.sqrt((x[:4] - x[4:]) ** 2 + 0.05),
        PAIRS[0],
        calibration=PAIRS,
        precision_bits=14,
    )
