"""Products of matrices and vectors, of which one or both are encrypted, give what NumPy gives, or
are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_world import Small, small, uniform

import jali
from jali import ckks


@pytest.fixture
def s() -> Small:
    return small()


def test_products_with_matrices_in_the_clear(s: Small) -> None:
    a, w = uniform(40, 30), uniform(30, 9)
    x = s.bind(a)
    s.check(x @ w, a @ w)
    s.check(x @ w[:, 0], a @ w[:, 0])
    s.check(x.dot(w[:, 1]), a.dot(w[:, 1]))
    left = uniform(6, 8)
    b = uniform(8, 10)
    s.check(left @ s.bind(b), left @ b)
    with pytest.raises(jali.InvalidArgument, match="must be equal"):
        x @ w.T
    wide = uniform(30, 33)
    s.check(x @ wide, a @ wide)
    s.check(left.T @ s.bind(left), left.T @ left)
    long = uniform(300, 30)
    s.check(s.bind(long) @ wide, long @ wide)


@pytest.mark.parametrize("slots", [2, 4, 8])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_matrices_whose_rows_fill_the_vectors(s: Small, slots: int, rows: int) -> None:
    """A rotation by a positive number of slots and one by a negative number may then be the same
    one."""
    a = uniform(rows, slots)
    x = s.server.bind(s.client.encrypt(a, peak=1, slots=slots))
    for columns in (1, slots - 1, slots):
        w = uniform(slots, columns)
        s.check(x @ w, a @ w)
    for columns in (slots + 1, 2 * slots + 1):
        with pytest.raises(jali.Unsupported, match="fewer columns"):
            x @ uniform(slots, columns)


def test_vectors_times_matrices(s: Small) -> None:
    a, w = uniform(30), uniform(30, 9)
    plan = ckks.MatVec(w.T, s.params, layout="natural")
    every = s.client.evaluation_keys(rotations="powers")
    server = ckks.Evaluator(s.params, every, threads=1)
    x = server.bind(s.client.encrypt(a, peak=1))
    assert plan.rows == 9
    s.check(x @ w, a @ w)
    s.check(w.T @ x, w.T @ a)
    table = uniform(20, 30)
    y = server.bind(s.client.encrypt(table, peak=1))
    s.check(w.T @ y[3], w.T @ table[3])
    s.check(uniform_like(5, 20, seed=1) @ y[:, 4], uniform_like(5, 20, seed=1) @ table[:, 4])
    s.check(y @ w, table @ w)
    long = uniform(1300)
    matrix = uniform(3, 1300)
    s.check(matrix @ server.bind(s.client.encrypt(long, peak=1)), matrix @ long)


def uniform_like(*shape: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def test_products_of_encrypted_matrices(s: Small) -> None:
    a, b = uniform(5, 6), uniform(6, 7)
    x, y = s.bind(a), s.bind(b)
    s.check(x @ y, a @ b)
    s.check((x @ y).T, (a @ b).T)
    v = uniform(6)
    s.check(x @ s.bind(v), a @ v)
    s.check(s.bind(v) @ y, v @ b)
    s.check(s.bind(v) @ s.bind(v), v @ v)
    s.check(s.bind(v).dot(s.bind(v)), v.dot(v))
    wide = uniform(3, 2), uniform(2, 12)
    s.check(s.bind(wide[0]) @ s.bind(wide[1]), wide[0] @ wide[1])


@pytest.mark.parametrize(("rows", "columns"), [(600, 6), (6, 600), (600, 600), (1100, 5), (513, 1)])
def test_matrices_larger_than_the_slots_take_several_vectors(
    s: Small, rows: int, columns: int
) -> None:
    assert s.params.slots == 512
    w, v = uniform(rows, columns), uniform(columns)
    x = s.bind(v)
    y = w @ x
    assert y.level == x.level - 1
    s.check(y, w @ v)
    s.check(x @ w.T, v @ w.T)
    s.check((y * 0.01).sum(), (w @ v * 0.01).sum())


def test_the_keys_of_a_large_product_are_recorded_or_named(s: Small) -> None:
    w, v = uniform(600, 6), uniform(6)
    fresh = s.client.encrypt(v, peak=1)
    keys = s.client.evaluation_keys(for_=lambda x: w @ x, example=fresh)
    s.check(w @ ckks.Evaluator(s.params, keys, threads=1).bind(fresh), w @ v)
    few = ckks.Evaluator(s.params, s.client.evaluation_keys([]), threads=1)
    with pytest.raises(jali.KeyMissing, match="rotation"):
        w @ few.bind(fresh)
