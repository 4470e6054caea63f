"""Lengths, batches and types of numbers follow NumPy's rules in all operations."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import World, assert_close

import jali
from jali import ckks


def test_length_is_remembered(one: World) -> None:
    x = one.bind(np.array([0.5, -1.25]))
    assert x.shape == (2,) and len(x) == 2 and x.size == 2 and x.ndim == 1
    assert one.client.decrypt(x).shape == (2,)
    y = (x * x + 0.25).rotate(1)
    assert np.allclose(one.client.decrypt(y), [1.8125, 0.25], atol=1e-5)
    whole = one.client.decrypt(x, length=one.params.slots)
    assert whole.shape == (one.params.slots,)
    assert np.abs(whole[2:]).max() < 1e-6  # zeros behind the vector


def test_full_vectors_and_numbers_of_any_type(one: World) -> None:
    n = one.params.slots
    for values in (
        np.ones(n, dtype=np.float32),
        np.arange(n) % 7,
        np.arange(n) % 2 == 0,
        (np.arange(n) % 5).astype(np.uint8),
        np.asfortranarray(np.ones((2, n))),
        np.ones(2 * n)[::2],
    ):
        assert np.allclose(one.client.decrypt(one.client.encrypt(values)), values, atol=1e-6)


def test_batches(world: World, rng: np.random.Generator) -> None:
    n = world.params.slots
    a, b = rng.uniform(-1, 1, (2, 3, n))
    row = rng.uniform(-1, 1, n)
    x, y = world.bind(a), world.bind(b)
    assert x.shape == (3, n)
    assert_close(world, x * y + row, a * b + row)
    assert_close(world, (x * b).rotate(1), np.roll(a * b, -1, axis=1))
    assert_close(world, row - x, row - a)
    column = np.array([[0.5], [-0.25], [1.5]])
    assert_close(world, x * column, a * column)
    assert_close(world, x.conj() + 1, a + 1)


def test_batch_of_one_keeps_its_axis(one: World) -> None:
    x = one.bind([[1.0, 2.0]], batch=True)
    assert x.shape == (1, 2)
    assert one.client.decrypt(x + x).shape == (1, 2)


def test_short_batches(one: World, rng: np.random.Generator) -> None:
    a = rng.uniform(-1, 1, (4, 10))
    x = one.bind(a, batch=True)
    assert_close(one, x * x - a, a * a - a)


def test_mismatched_lengths_are_refused(one: World) -> None:
    x, y = one.bind([1.0, 2.0]), one.bind([1.0, 2.0, 3.0])
    with pytest.raises(jali.InvalidArgument, match="lengths 2 and 3"):
        x + y
    with pytest.raises(jali.InvalidArgument, match="lengths 2 and 3"):
        x * y
    with pytest.raises(jali.InvalidArgument, match="length 3"):
        x + np.ones(3)
    with pytest.raises(jali.InvalidArgument, match="length 3"):
        x * [1, 2, 3]
    with pytest.raises(jali.InvalidArgument, match="rows"):
        one.bind(np.ones((2, 5)), batch=True) * np.ones((3, 5))
    with pytest.raises(jali.InvalidArgument, match="shapes"):
        one.bind(np.ones((2, 5))) * np.ones((3, 5))
    with pytest.raises(jali.InvalidArgument, match="slots"):
        one.bind([1.0, 2.0], slots=2) + one.bind([1.0, 2.0], slots=4)


def test_full_slot_operands_show_everything(one: World) -> None:
    x = one.bind([1.0, 2.0])
    mask = np.zeros(one.params.slots)
    mask[:2] = 1
    assert (x * mask).shape == (one.params.slots,)
    assert (x * mask).with_length(2).shape == (2,)
    assert np.allclose(one.client.decrypt(x.with_length(3)), [1, 2, 0], atol=1e-6)


def test_sum_over_everything_knows_what_lies_behind(one: World) -> None:
    keys = one.client.evaluation_keys(rotations=ckks.sum_rotations(one.params.slots))
    server = ckks.Evaluator(one.params, keys)
    x = server.bind(one.client.encrypt([0.5, 0.25, -0.125]))
    assert np.allclose(one.client.decrypt(x.sum()), 0.625, atol=1e-5)
    shifted = x + 1  # the slots behind the vector now hold 1
    for y in (shifted, shifted * np.ones(3), x + np.ones(3)):
        assert y.sum().shape == ()
        assert np.allclose(one.client.decrypt(y.sum()), 3.625, atol=1e-5)


def test_complex_follows_the_data(one: World) -> None:
    z = np.array([1 + 2j, -0.5j])
    assert one.client.decrypt(one.client.encrypt(z)).dtype == np.complex128
    assert np.allclose(one.client.decrypt(one.client.encrypt(z)), z, atol=1e-6)
    x = one.bind([0.5, 0.25])
    assert one.client.decrypt(x).dtype == np.float64
    assert one.client.decrypt(x, complex=True).dtype == np.complex128
    assert one.client.decrypt(x * z).dtype == np.complex128
    assert one.client.decrypt(x + 1j).dtype == np.complex128
    assert one.client.decrypt(x * z, complex=False).dtype == np.float64
