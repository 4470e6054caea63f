"""Captured functions of TFHE against the functions."""

from __future__ import annotations

import numpy as np
import pytest
from tfhe_world import World, make

import jali
from jali import tfhe


@pytest.fixture(scope="module")
def wide() -> World:
    return World(make())


def test_a_captured_function_gives_what_the_function_gives(wide: World) -> None:
    def function(x: tfhe.EncryptedArray, y: tfhe.EncryptedArray) -> list[tfhe.EncryptedArray]:
        return [wide.server.apply(lambda v: v * v % 16, x + y), x - y]

    zeros = wide.given([[0, 0, 0]])
    captured = wide.server.capture(function, zeros, zeros)
    assert captured.nbytes >= 0
    for step in range(3):
        a, b = np.array([[0, 1, 2]]), np.array([[step, 1, 3 - step]])
        squares, differences = captured(wide.given(a), wide.given(b))
        wide.shows(squares, (a + b) ** 2 % 16)
        wide.shows(differences, (a - b) % 4)
    single = wide.server.capture(wide.server.refresh, zeros)
    wide.shows(single(wide.given([[3, 2, 1]])), [[3, 2, 1]])


def test_a_captured_function_takes_integers(wide: World) -> None:
    def given(values: list[int]) -> tfhe.EncryptedIntegers:
        return wide.server.bind(wide.client.encrypt_uint(values, 8))

    captured = wide.server.capture(lambda x, y: x + y, given([0, 0]), given([0, 0]))
    total = captured(given([200, 7]), given([100, 1]))
    np.testing.assert_array_equal(wide.client.decrypt(total), [300 % 256, 8])


def test_a_captured_function_refuses_other_arrays(wide: World) -> None:
    x = wide.given([1, 2])
    captured = wide.server.capture(lambda a, b: a + b, x, wide.given([0, 0]))
    wide.shows(captured(x, wide.given([2, 0])), [3, 2])
    for bad in (wide.given([1, 2, 3]), wide.given([[1, 2]]), x + x, x):
        with pytest.raises(jali.InvalidArgument):
            captured(x, bad)
    with pytest.raises(jali.InvalidArgument):
        captured(x)
    with pytest.raises(jali.InvalidArgument, match="encrypted arrays"):
        wide.server.capture(lambda a: 3, x)
    with pytest.raises(jali.InvalidArgument):
        wide.server.capture(3, x)  # type: ignore[arg-type]
