"""Lengths, batches and types of numbers follow NumPy's rules in all operations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from array_world import Small, small, uniform
from conftest import World, assert_close

import jali
from jali import ckks


@pytest.fixture
def s() -> Small:
    return small()


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
        fresh = one.client.encrypt(values, peak=6)
        assert np.allclose(one.client.decrypt(fresh), values, atol=1e-6)


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
    with pytest.raises(jali.InvalidArgument, match="shapes"):
        one.bind(np.ones((2, 5)), batch=True) * np.ones((3, 5))
    with pytest.raises(jali.InvalidArgument, match="shapes"):
        one.bind(np.ones((2, 5))) * np.ones((3, 5))
    with pytest.raises(jali.InvalidArgument, match="slots"):
        one.bind([1.0, 2.0], slots=2) + one.bind([1.0, 2.0], slots=4)


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_operands_in_the_clear_have_the_length_of_the_vector(one: World, operation: Any) -> None:
    """Not even one that fills all slots joins a shorter vector, on either side, as in NumPy."""
    x, rows = one.bind([1.0, 2.0]), one.bind(np.ones((3, 2)), batch=True)
    slots = one.params.slots
    for wrong in (np.ones(slots), [1.0] * slots, np.ones(3), np.ones((2, slots)), np.ones((3, 3))):
        with pytest.raises(jali.InvalidArgument, match=r"with_length\(x.slots\)"):
            operation(x, wrong)
        with pytest.raises(jali.InvalidArgument, match=r"with_length\(x.slots\)"):
            operation(rows, wrong)
        if operation is not operator.truediv:
            with pytest.raises(jali.InvalidArgument, match=r"with_length\(x.slots\)"):
                operation(np.asarray(wrong), x)


def test_all_slots_are_reached_by_their_length(one: World) -> None:
    """What was in the slots behind a vector shows only to who asks for them, and a mask of all
    slots clears them."""
    x = one.bind([1.0, 2.0]) + 1
    slots = one.params.slots
    mask = np.zeros(slots)
    mask[:2] = 1
    every = x.with_length(slots)
    assert (every * mask).shape == (slots,)
    assert_close(one, every, np.r_[2, 3, np.ones(slots - 2)])
    assert_close(one, every * mask, np.r_[2, 3, np.zeros(slots - 2)])
    assert_close(one, (every * mask).with_length(3), [2, 3, 0])


def test_one_number_meets_arrays_as_numpys(one: World, rng: np.random.Generator) -> None:
    server = ckks.Evaluator(one.params, one.client.evaluation_keys(rotations="powers"))
    x = server.bind(one.client.encrypt([0.5]))
    column = server.bind(one.client.encrypt([[0.5], [-0.25]], batch=True))
    row = server.bind(one.client.encrypt([[0.5, -0.25]], batch=True))
    w, rows = rng.uniform(0.5, 1, 5), rng.uniform(0.5, 1, (3, 2))
    assert_close(one, x * w, 0.5 * w)
    assert_close(one, w - x, w - 0.5)
    assert_close(one, (x + 1) / w, 1.5 / w)  # the slots behind it hold 1
    assert_close(one, column + w, np.array([[0.5], [-0.25]]) + w)
    assert_close(one, row * rows, np.array([0.5, -0.25]) * rows)
    assert_close(one, x * np.ones(one.params.slots), np.full(one.params.slots, 0.5))
    keyless = ckks.Evaluator(one.params, one.client.evaluation_keys())
    with pytest.raises(jali.KeyMissing, match="rotation"):
        keyless.bind(one.client.encrypt([0.5])) * w


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


# --- arrays that take several vectors ------------------------------------------------------------


@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply])
@pytest.mark.parametrize("lengths", [(512, 309), (309, 512), (511, 512), (40, 30)])
def test_vectors_of_different_lengths_do_not_fit(
    s: Small, operation: Any, lengths: tuple[int, int]
) -> None:
    """Not even if one of them fills all 512 slots."""
    assert s.params.slots == 512
    a, b = (s.bind(uniform(n)) for n in lengths)
    with pytest.raises(jali.InvalidArgument, match=f"lengths {lengths[0]} and {lengths[1]}"):
        operation(a, b)


def test_constants_broadcast(s: Small) -> None:
    a = uniform(40, 30)
    x = s.bind(a)
    row, column = uniform(30), uniform(40, 1)
    s.check(x + row, a + row)
    s.check(x * row, a * row)
    s.check(column * x, column * a)
    s.check(column - x, column - a)
    s.check(x + np.array([[0.5]]), a + 0.5)
    stack = uniform(3, 40, 30)
    s.check(x * stack, a * stack)
    s.check(x - stack[:, :1], a - stack[:, :1])
    small = uniform(4, 8)
    s.check(s.bind(small)[:, ::2] * stack[:, :4, :4], small[:, ::2] * stack[:, :4, :4])
    s.check(s.bind(small[0]) + stack[0, :5, :8], small[0] + stack[0, :5, :8])
    s.check(s.bind(small[0]) * stack[:, :5, :8], small[0] * stack[:, :5, :8])
    for wrong in (uniform(29), uniform(40), uniform(41, 1)):
        with pytest.raises(jali.InvalidArgument, match="shapes"):
            x + wrong
        with pytest.raises(jali.InvalidArgument, match="shapes"):
            x * wrong


def test_vectors_broadcast_with_batches_as_with_arrays(s: Small) -> None:
    a, b = uniform(5), uniform(3, 5)
    x, rows, one = s.bind(a), s.bind(b, batch=True), s.bind(b[0, :1])
    s.check(x + rows, a + b)
    s.check(x * rows, a * b)
    s.check(rows - x, b - a)
    s.check(x * b, a * b)
    s.check(b - x, b - a)
    s.check(x * one, a * b[0, 0])
    s.check(one + x, a + b[0, 0])
    s.check(rows * one, b * b[0, 0])
    s.check(rows.sum(axis=0), b.sum(axis=0))
    s.check(rows.mean(axis=1), b.mean(axis=1))
    s.check(rows[1] * rows[2], b[1] * b[2])
    s.check(np.stack(list(rows)), b)
    s.check(np.split(rows, 3)[1], b[1:2])
    long, short = s.bind(uniform(600)), s.bind(uniform(512))
    for wrong in (short, s.bind(uniform(4))):
        with pytest.raises(jali.InvalidArgument):
            long * wrong


def test_encrypted_rows_and_columns_broadcast(s: Small) -> None:
    a, row, column, number = uniform(40, 30), uniform(30), uniform(40, 1), uniform(1)
    x, r, c, n = s.bind(a), s.bind(row), s.bind(column), s.bind(number)
    s.check(x + r, a + row)
    s.check(r * x, row * a)
    s.check(x - c, a - column)
    s.check(x * n, a * number)
    s.check(x - x.mean(axis=0), a - a.mean(axis=0))
    s.check(x - x.mean(axis=1, keepdims=True), a - a.mean(axis=1, keepdims=True))
    short = uniform(6), uniform(4, 1)
    s.check(s.bind(short[0]) * s.bind(short[1]), short[0] * short[1])
    with pytest.raises(jali.InvalidArgument, match="shapes"):
        x + s.bind(uniform(40))
