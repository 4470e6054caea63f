"""Encrypted arrays of TFHE say what to do instead of what they do not do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tfhe_world import World, make

import jali


@pytest.fixture(scope="module")
def world() -> World:
    return World(make())


@pytest.fixture(params=["messages", "integers"])
def x(request: pytest.FixtureRequest, world: World) -> Any:
    if request.param == "messages":
        return world.given([1, 2, 3])
    return world.server.bind(world.client.encrypt_uint([1, 2, 3], bits=8))


def test_names_of_numpy_are_refused_in_sentences(x: Any) -> None:
    for name in ("mean", "std", "prod", "any", "tolist", "item", "decrypt", "fill"):
        assert not hasattr(x, name) and name not in dir(x)
        with pytest.raises(AttributeError, match=r"numbers|elements|element|encrypted"):
            getattr(x, name)


def test_numbers_stay_with_the_client(x: Any) -> None:
    for convert in (int, float, complex, range, math.floor, round, lambda v: [1, 2][v]):
        with pytest.raises(jali.Unsupported, match=r"client|fractions"):
            convert(x[0])
    with pytest.raises(jali.Unsupported, match="never change"):
        x[0] = 1
    with pytest.raises(jali.Unsupported, match="never change"):
        del x[0]


@pytest.mark.parametrize("axis", [1, -2, (0, 0), "a", 1.5])
def test_axes_that_are_none(x: Any, axis: Any) -> None:
    with pytest.raises(jali.InvalidArgument, match=r"an axis is a whole number from -1 to 0"):
        x.sum(axis=axis)


def test_hidden_numbers_are_not_used(x: Any, world: World) -> None:
    hidden = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    calls: list[Callable[[], object]] = [
        lambda: x + hidden,
        lambda: world.client.encrypt(hidden),
        lambda: world.client.encrypt_uint(hidden, bits=4),
    ]
    for call in calls:
        with pytest.raises(jali.InvalidArgument, match="masked"):
            call()
    shown = world.client.decrypt(x + np.ma.array([1, 1, 1]))
    np.testing.assert_array_equal(shown, [2, 3, 4])
