"""Encryption holds numbers to the root mean square that was declared of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from conftest import World

import jali
from jali import ckks
from jali.ckks import declared

REFUSED = "root mean square of the numbers is above the declared magnitude"


@pytest.mark.parametrize("by_public_key", [False, True])
def test_numbers_larger_than_declared_are_refused(one: World, by_public_key: bool) -> None:
    n = one.params.slots
    owner: Any = ckks.Encryptor(one.client.public_key()) if by_public_key else one.client
    signs = np.random.default_rng().choice([-1.0, 1.0], n)
    for values, options in (
        (1.2 * signs, {}),
        (1.2j * signs, {}),
        (6.0 * signs[:64], {}),
        ([6.0], {}),
        (1.2 * signs[:3000].reshape(100, 30), {}),
        (1.2 * signs[:3000].reshape(3, 1000), {"batch": True}),
        (1.2 * np.tile(signs, 3), {}),
        (1.2 * signs[::2], {}),
        (0.3 * signs, {"magnitude": 0.25}),
        (0.3 * signs, {"magnitude": 0.25, "peak": 1.0}),
        (2 * signs[:8], {"magnitude": 0.25, "peak": 2.0, "slots": 8}),
    ):
        with pytest.raises(jali.InvalidArgument, match=REFUSED):
            owner.encrypt(values, **options)
    # What helps is what the sentence says, or a peak alone.
    assert owner.encrypt(1.2 * signs, magnitude=1.2).shape == (n,)
    assert owner.encrypt(1.2 * signs, peak=1.2).shape == (n,)
    # Numbers above the peak are refused as such.
    with pytest.raises(jali.InvalidArgument, match="above the declared peak"):
        owner.encrypt(20 * signs)


def test_an_error_shows_none_of_the_numbers(one: World) -> None:
    messages = set()
    for size in (2.5, 3.25):
        with pytest.raises(jali.InvalidArgument) as error:
            one.client.encrypt(np.full(100, size))
        messages.add(str(error.value))
    assert len(messages) == 1


@pytest.mark.parametrize("count", [1, 2, 5, 30, 300, 4096])
@pytest.mark.parametrize("kind", ["normal", "uniform", "signs", "complex"])
def test_samples_of_the_declared_kind_are_accepted(one: World, count: int, kind: str) -> None:
    rng = np.random.default_rng()
    for _ in range(40):
        values: Any = rng.normal(size=count)
        if kind == "uniform":
            values = np.sqrt(3) * rng.uniform(-1, 1, count)
        elif kind == "signs":
            values = rng.choice([-1.0, 1.0], count)
        elif kind == "complex":
            values = rng.normal(size=(count, 2)) @ [1, 1j] / np.sqrt(2)
        one.client.encrypt(values, magnitude=1.0, level=0)


def test_claims_are_true_at_the_limit(one: World) -> None:
    """The largest numbers that are accepted take half a bit from the claim, and no more."""
    n = one.params.slots
    limit = 1 + 4 / np.sqrt(n)
    x = np.random.default_rng().choice([-1.0, 1.0], n) * limit * 0.999
    with pytest.raises(jali.InvalidArgument, match=REFUSED):
        one.client.encrypt(x * 1.01)
    y = one.bind(x)
    for value, expected in ((y, x), (y * y, x**2), (y * y * y, x**3)):
        error = one.client.decrypt(value) - expected
        rms = float(np.sqrt(np.mean(np.square(error))))
        assert rms < 2.0 ** (0.5 - value.precision_bits)
        assert np.abs(error).max() < ckks.worst_case_error(value.ciphertext)


@pytest.mark.parametrize("count", [5, 64, 4096])
@pytest.mark.parametrize("kind", ["normal", "uniform", "signs", "complex", "zeros"])
@pytest.mark.filterwarnings("error")
def test_even_numbers_are_not_warned_of(one: World, count: int, kind: str) -> None:
    rng = np.random.default_rng()
    values = {
        "normal": rng.normal(size=count).clip(-8, 8),
        "uniform": np.sqrt(3) * rng.uniform(-1, 1, count),
        "signs": rng.choice([-1.0, 1.0], count),
        "complex": rng.normal(size=(count, 2)).clip(-5, 5) @ [1, 1j] / np.sqrt(2),
        "zeros": np.zeros(count),
    }[kind]
    one.client.encrypt(values[: one.params.slots], level=0)


@pytest.mark.parametrize("numbers", [1, 1j])
def test_few_large_numbers_among_small_ones_are_warned_of(one: World, numbers: complex) -> None:
    """They are within what is declared, but their powers are far larger than those of normal
    numbers."""
    values = np.zeros(one.params.slots) * numbers
    values[::64] = 8 * numbers
    with pytest.warns(UserWarning, match="far larger than the others") as caught:
        one.client.encrypt(values, level=0)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.client.encrypt(values, level=0, magnitude=2.5)
        one.client.encrypt(values, level=0, peak=8.0)


def test_one_outlier_is_warned_of_and_not_shown(one: World) -> None:
    values = np.random.default_rng().choice([-0.9, 0.9], one.params.slots)
    messages = set()
    for place, size in ((7, 7.9), (11, -7.25)):
        outlier = values.copy()
        outlier[place] = size
        with pytest.warns(UserWarning, match="far larger") as caught:
            one.client.encrypt(outlier, level=0)
        messages.add(str(caught[0].message))
    assert len(messages) == 1


@pytest.mark.parametrize("numbers", [1, 1j])
def test_what_was_computed_from_the_numbers_is_wiped(
    one: World, numbers: complex, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    zeros = np.zeros

    def noted(*arguments: Any, **options: Any) -> Any:
        made.append(zeros(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(np, "zeros", noted)
    declared.check_magnitude(np.full(9000, 0.5) * numbers, 1.0, 0.0, stacklevel=1)
    assert made and not any(array.any() for array in made)
