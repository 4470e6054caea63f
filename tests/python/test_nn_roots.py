"""Square roots of numbers that reach 0, as the modulus of a complex number is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali

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
