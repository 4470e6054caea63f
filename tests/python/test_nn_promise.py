"""How many numbers may be further off than precision_bits promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali

WEIGHTS = np.random.default_rng(1).normal(size=(3, 4)) / 2
SHARE = 1 / 20_000  # of all numbers, that may be further off: docs/how-to/compile-a-model.md
LANES = 1024


def squares(x: Any) -> Any:
    """Of which the noise has a long tail: in a slot where the secret key is large, it is larger."""
    return (WEIGHTS @ x) ** 2


def most_by_chance(mean: float) -> int:
    """The least count that a Poisson variable of this mean exceeds less than once in 10^9."""
    count, term = 0, np.exp(-mean)
    below = term
    while 1 - below > 1e-9:
        count += 1
        term *= mean / count
        below += term
    return count


@pytest.mark.parametrize("keys", [pytest.param(12), pytest.param(100, marks=pytest.mark.long)])
def test_fewer_than_one_number_in_20_000_is_further_off(keys: int) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (LANES, 4))
    program = jali.compile(squares, x[0], calibration=x, batch=LANES)
    want = np.stack([squares(one) for one in x])
    allowed = 2.0**-program.precision_bits * np.abs(want).max()
    beyond = largest = 0.0
    for _ in range(keys):
        client = program.client()
        server = program.server(client.evaluation_keys())
        off = np.abs(client.decrypt(server(client.encrypt(x))) - want) / allowed
        beyond, largest = beyond + np.count_nonzero(off > 1), max(largest, float(off.max()))
    assert beyond <= most_by_chance(SHARE * keys * want.size)
    assert largest < 4
