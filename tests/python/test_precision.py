"""The precision that a value claims is the precision that it has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import UNIFORM, World
from numpy.typing import NDArray

from jali import ckks

Real = NDArray[np.float64]
CASES: dict[str, tuple[Callable[..., ckks.EncryptedArray], Callable[..., Real]]] = {
    "fresh": (lambda x, y, c: x, lambda a, b, c: a),
    "sum": (lambda x, y, c: x + y, lambda a, b, c: a + b),
    "doubled": (lambda x, y, c: x + x, lambda a, b, c: a + a),
    "product": (lambda x, y, c: x * y, lambda a, b, c: a * b),
    "square": (lambda x, y, c: x * x, lambda a, b, c: a * a),
    "plain product": (lambda x, y, c: x * c, lambda a, b, c: a * c),
    "plain sum": (lambda x, y, c: x + c, lambda a, b, c: a + c),
    "scalar product": (lambda x, y, c: x * 0.7, lambda a, b, c: a * 0.7),
    "scalar sum": (lambda x, y, c: x - 0.7, lambda a, b, c: a - 0.7),
    "negation": (lambda x, y, c: -x, lambda a, b, c: -a),
    "rotation": (lambda x, y, c: x.rotate(1), lambda a, b, c: np.roll(a, -1)),
    "conjugation": (lambda x, y, c: x.conj(), lambda a, b, c: a),
    "sum of products": (lambda x, y, c: x * y + x * c, lambda a, b, c: a * b + a * c),
    "two products": (lambda x, y, c: x * y * c, lambda a, b, c: a * b * c),
    "lower level": (lambda x, y, c: x * (y * c), lambda a, b, c: a * b * c),
    "rotated product": (lambda x, y, c: (x * y).rotate(-3), lambda a, b, c: np.roll(a * b, 3)),
}


@pytest.mark.parametrize("case", CASES)
def test_claims_are_honest(world: World, rng: np.random.Generator, case: str) -> None:
    encrypted, plain = CASES[case]
    a, b, c = rng.uniform(-1, 1, (3, world.params.slots))
    value = encrypted(world.bind(a, magnitude=UNIFORM), world.bind(b, magnitude=UNIFORM), c)
    measured = -np.log2(np.std(world.client.decrypt(value) - plain(a, b, c)))
    assert abs(measured - value.precision_bits) < 1


def test_estimates_tell_nothing_of_the_data(world: World, rng: np.random.Generator) -> None:
    small, large = rng.uniform(-1e-3, 1e-3, world.params.slots), np.ones(world.params.slots)
    x, y = world.bind(small), world.bind(large)
    for one, other in ((x, y), (x * x, y * y), (x * x + x, y * y + y)):
        assert one.precision_bits == other.precision_bits
    louder = world.bind(large, magnitude=8.0)
    assert (louder * louder).precision_bits < (y * y).precision_bits - 1


def test_numbers_of_which_only_the_peak_is_declared() -> None:
    """Estimates take the peak for their root mean square, above which none can be. With 1, 11 bits too many were claimed."""
    params = ckks.Params.create(
        depth=3, scale_bits=40, log_n=10, security=0, name="insecure_peak", integer_bits=24
    )
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys())
    for peak in (0.25, 2.0, 100.0):
        v = np.random.default_rng().uniform(-peak, peak, params.slots)
        x = server.bind(client.encrypt(v, peak=peak))
        y = x * x * x
        measured = -np.log2((client.decrypt(y) - v**3).std())
        assert measured - 3.5 < y.precision_bits < measured + 0.3, peak
