"""Arithmetic on encrypted arrays gives NumPy's results, up to the precision that is claimed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import World, assert_close
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jali
from jali import ckks


@pytest.mark.parametrize("complex_values", [False, True], ids=["real", "complex"])
def test_every_operator(world: World, rng: np.random.Generator, complex_values: bool) -> None:
    n = world.params.slots

    def draw() -> Any:
        values = rng.uniform(-1, 1, n)
        return values + 1j * rng.uniform(-1, 1, n) if complex_values else values

    a, b, c = draw(), draw(), draw()
    x, y = world.bind(a), world.bind(b)
    k = 0.37 - 0.2j if complex_values else 0.37
    results: list[tuple[ckks.EncryptedArray, Any]] = [
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (-x, -a),
        (+x, a),
        (x**2, a**2),
        (x**3, a**3),
        (x**5, a**5),
        (x + c, a + c),
        (c + x, c + a),
        (x - c, a - c),
        (c - x, c - a),
        (x * c, a * c),
        (c * x, c * a),
        (x / (c + 3), a / (c + 3)),
        (x + k, a + k),
        (k + x, k + a),
        (x - k, a - k),
        (k - x, k - a),
        (x * k, a * k),
        (k * x, k * a),
        (x / 4, a / 4),
        (x * 3, a * 3),
        (x * 0, a * 0),
        (x * -1, -a),
        (np.float32(0.5) * x, a * np.float32(0.5)),
        (x * np.int64(2), a * 2),
        (x + np.array(0.25), a + 0.25),
        (x * 1j, a * 1j),
        (x.conj(), a.conj()),
        (x.rotate(1), np.roll(a, -1)),
        (x.rotate(-3), np.roll(a, 3)),
        (x.rotate(0), a),
        (x.rotate(n), a),
        (x.rotate(n + 1), np.roll(a, -1)),
    ]
    for i, (value, expected) in enumerate(results):
        print("result", i)
        # The factors of a power have the same error, but the estimate assumes that they are
        # independent.
        assert_close(world, value, expected, slack_bits=2)


def test_levels_are_aligned(world: World, rng: np.random.Generator) -> None:
    a, b = rng.uniform(-1, 1, (2, world.params.slots))
    x, y = world.bind(a), world.bind(b)
    assert x.level == world.params.depth
    deep = x * x * y  # level depth - 2
    assert deep.level == world.params.depth - 2
    assert_close(world, deep + x, a * a * b + a)
    assert_close(world, x - deep, a - a * a * b)
    assert_close(world, deep * x, a * a * b * a)
    assert_close(world, world.bind(b, level=1) * x, a * b)
    assert (deep + x).level == deep.level


def test_sums_of_products_stay_lazy(world: World, rng: np.random.Generator) -> None:
    a, b, c = rng.uniform(-1, 1, (3, world.params.slots))
    x, y, z = world.bind(a), world.bind(b), world.bind(c)
    total = x * y + y * z - x * z + 0.5 * y + c
    assert total._ct.parts == 3  # one relinearisation is still owed
    assert total.level == world.params.depth - 1
    assert_close(world, total, a * b + b * c - a * c + 0.5 * b + c)
    assert total.ciphertext.parts == 2
    assert total.scale == total.ciphertext.scale


def test_small_whole_factors_are_free(one: World) -> None:
    x = one.bind([0.5, -0.25])
    assert (x * 3).level == x.level
    assert (x * 0.5).level == x.level - 1


def test_powers_take_the_least_depth(one: World) -> None:
    x = one.bind([0.9, -0.8])
    for exponent, depth in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3)]:
        assert (x**exponent).level == one.params.depth - depth


def test_sum(world: World, rng: np.random.Generator) -> None:
    values = rng.uniform(-1, 1, 32)
    x = world.bind(values, slots=32)
    assert_close(world, x.sum(), values.sum(), independent=1)
    assert_close(world, x.sum(count=32), np.full(32, values.sum()), independent=1)
    windows = np.array([np.roll(values, -i)[:8].sum() for i in range(32)])
    assert_close(world, x.sum(8), windows, independent=4)


def test_sparse_packing_rotates_within_its_slots(world: World, rng: np.random.Generator) -> None:
    values = rng.uniform(-1, 1, 128)
    x = world.bind(values, slots=128)
    assert x.slots == 128
    assert_close(world, x.rotate(-3), np.roll(values, 3))
    assert_close(world, (x * x + 0.5).rotate(64), np.roll(values * values + 0.5, -64))


MOVES: dict[str, Callable[[Any, Any, Any, float], Any]] = {
    "add": lambda v, w, a, k: v + w,
    "sub": lambda v, w, a, k: v - w,
    "mul": lambda v, w, a, k: v * w,
    "square": lambda v, w, a, k: v**2,
    "neg": lambda v, w, a, k: -v,
    "times 3": lambda v, w, a, k: v * 3,
    "array_add": lambda v, w, a, k: a + v,
    "array_sub": lambda v, w, a, k: a - v,
    "array_mul": lambda v, w, a, k: v * a,
    "number": lambda v, w, a, k: k - v,
    "number_mul": lambda v, w, a, k: v * k,
}


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_programs(world: World, data: st.DataObject) -> None:
    """A program has a few steps; each applies a random operator to random values that were made
    before."""
    seed = data.draw(st.integers(0, 2**32 - 1), label="seed")
    rng = np.random.default_rng(seed)
    batch = data.draw(st.sampled_from([None, 2]), label="batch")
    shape = (world.params.slots,) if batch is None else (batch, world.params.slots)
    plain: list[Any] = [rng.uniform(-1, 1, shape) for _ in range(2)]
    hidden = [world.bind(values) for values in plain]
    for _ in range(data.draw(st.integers(1, 6), label="steps")):
        i = data.draw(st.integers(0, len(plain) - 1), label="left")
        j = data.draw(st.integers(0, len(plain) - 1), label="right")
        array = rng.uniform(-1, 1, data.draw(st.sampled_from([shape, shape[-1:]])))
        number = float(rng.uniform(-1, 1))
        moves = ["add", "sub", "array_add", "array_sub", "number", "neg", "rotate", "times 3"]
        if min(hidden[i].level, hidden[j].level) > 0:
            moves += ["mul", "array_mul", "number_mul", "square"]
        move = data.draw(st.sampled_from(moves), label="move")
        if move == "rotate":
            made, expected = hidden[i].rotate(1), np.roll(plain[i], -1, axis=-1)
        else:
            expected = MOVES[move](plain[i], plain[j], array, number)
            try:
                made = MOVES[move](hidden[i], hidden[j], array, number)
            except jali.RangeExceeded:  # the largest numbers that were declared would not fit
                continue
        if np.abs(expected).max() < 64:  # larger numbers do not fit the modulus at level 0
            hidden.append(made)
            plain.append(expected)
    # Several operands may have the same error, but the estimate assumes that they are independent.
    # In six steps this can make the estimate a few bits too good.
    assert_close(world, hidden[-1], plain[-1], slack_bits=3)
