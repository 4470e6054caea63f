"""Matrices in the clear that an evaluator keeps: products against NumPy's, element by element."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from discrete_world import RING, integers, world

import jali
from jali import discrete
from jali.discrete.matrix import babies_for
from jali.errors import NotPickled


def repeated(vector: Any, params: discrete.Params) -> Any:
    """The vector as often as it fits a ciphertext."""
    width = 1 << (len(vector) - 1).bit_length()
    return np.tile(np.asarray(vector), (params.slots // width, 1))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (600, 8), (1024, 2), (2500, 33), (7, 512)])
def test_products_are_those_of_numpy(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    """Of whole and of half vectors, of rows and columns that are no powers of two."""
    w = world(depth=1)
    most = 65536 // 2 // (shape[1] * 8 * 2)
    clear, vector = integers(rng, -most, most, shape), integers(rng, -8, 8, shape[1])
    matrix = discrete.Matrix(w.server, clear)
    x = w.bind(repeated(vector, w.params), range=(-8, 8))
    y = matrix @ x
    assert (y.shape, y.level, matrix.shape) == (shape[:1], 0, shape)
    assert (w.shown(y) == clear @ vector).all()
    low, high = y.range
    worst = np.abs(clear).sum(axis=1).max() * 8
    assert (low, high) == (-worst, worst)  # the range of the vector is symmetric
    assert matrix.nbytes == discrete.Matrix.nbytes_of(w.params, shape)
    # The result is an array as any other.
    assert (w.shown(y + y) == 2 * (clear @ vector)).all()
    if shape[0] > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a single number is decrypted as quietly as others
            assert w.shown(y[1]) == clear[1] @ vector


def test_rows_come_in_parts_and_modulo_the_modulus(rng: np.random.Generator) -> None:
    w = world(depth=1)
    clear = rng.integers(0, 65537, (2100, 3))
    parts = iter([clear[:5], clear[5:1500], clear[1500:].tolist()])
    chosen = np.array([0, 1, 0])
    matrix = discrete.Matrix(w.server, parts, wrap=True)
    row = matrix @ w.bind(repeated(chosen, w.params), range=(0, 1))
    assert row.wraps
    assert (w.shown(row) % 65537 == clear[:, 1]).all()
    with pytest.raises(jali.RangeExceeded):
        discrete.Matrix(w.server, clear) @ w.bind(repeated(chosen, w.params), range=(0, 1))
    # Residues stay residues in a matrix that does not wrap.
    small = discrete.Matrix(w.server, [[1, 2, 3]])
    assert (small @ w.bind(repeated(chosen, w.params), wrap=True)).wraps


@pytest.mark.parametrize("count", [None, 1, 1100, 10**6])
def test_however_many_rows_are_announced_the_product_is_the_same(
    rng: np.random.Generator, count: int | None
) -> None:
    """What is announced decides how the rotations are divided, and nothing else."""
    w = world(depth=1)
    clear, vector = integers(rng, -9, 9, (1100, 64)), integers(rng, -2, 2, 64)
    matrix = discrete.Matrix(w.server, iter([clear[:9], clear[9:]]), count=count)
    y = matrix @ w.bind(repeated(vector, w.params), range=(-2, 2))
    assert (w.shown(y) == clear @ vector).all()


def test_vectors_of_every_history_are_multiplied(rng: np.random.Generator) -> None:
    """Fresh, of a higher level, after products of both kinds, and results of another product."""
    w = world(depth=3)
    vector = integers(rng, -3, 3, 8)
    x = w.bind(repeated(vector, w.params), range=(-3, 3))
    clear = integers(rng, -5, 5, (20, 8))
    for level in (1, 2, 3):
        matrix = discrete.Matrix(w.server, clear, level=level)
        assert (matrix.level, (matrix @ x).level) == (level, level - 1)
        assert (w.shown(matrix @ x) == clear @ vector).all()
    low = discrete.Matrix(w.server, clear, level=1)
    weights = repeated(np.arange(8), w.params)
    assert (w.shown(low @ (x * x)) == clear @ vector**2).all()
    assert (w.shown(low @ (x * weights)) == clear @ (vector * np.arange(8))).all()
    assert (w.shown(low @ (-x + x * 3)) == clear @ (2 * vector)).all()
    captured = w.server.capture(lambda v: low @ v, x)
    assert (w.shown(captured(x)) == clear @ vector).all()


def test_rotations_are_divided_so_that_they_are_few() -> None:
    slots = 8192
    for shape, babies in [((8192, 64), 8), ((10**6, 128), 128), ((90_000, 4096), 256), ((1, 1), 1)]:
        assert babies_for(shape, slots) == babies


def test_one_matrix_serves_several_clients(rng: np.random.Generator) -> None:
    w = world(depth=1)
    clear = integers(rng, -50, 50, (40, 4))
    matrix = discrete.Matrix(w.server, clear)
    other = discrete.Client(w.params, threads=1)
    rotations = discrete.Matrix.rotations_of(4)
    theirs = w.server.with_keys(other.evaluation_keys(rotations, relinearise=False))
    x = theirs.bind(other.encrypt(repeated([1, -2, 3, 4], w.params), range=(-4, 4)))
    assert (other.decrypt(matrix @ x) == clear @ [1, -2, 3, 4]).all()
    with pytest.raises(jali.KeyMismatch):
        w.client.decrypt(matrix @ x)
    none = w.server.with_keys(other.evaluation_keys(relinearise=False))
    with pytest.raises(jali.KeyMissing, match="1, 2"):
        matrix @ none.bind(x)


def test_keys_are_found_out_by_an_example(rng: np.random.Generator) -> None:
    w = world(depth=1)
    clear = integers(rng, -20, 20, (40, 8))
    matrix = discrete.Matrix(w.server, clear)
    vector = repeated(np.arange(8, dtype=np.int8), w.params)
    keys = w.client.evaluation_keys(for_=lambda x: matrix @ x, example=vector)
    assert not keys.has_relinearisation
    server = w.server.with_keys(keys)
    assert (w.shown(matrix @ server.bind(w.client.encrypt(vector))) == clear @ np.arange(8)).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1, 2, 3], "the shape"),
        ([[1.5]], "exact integers"),
        ([], "the shape"),
        ([["a"]], "dtype"),
        (np.zeros((2, 600), int), "power of two"),
        (iter(()), "the shape"),
        (iter([np.ones((1, 2), int), np.ones((1, 3), int)]), "equally many columns"),
    ],
)
def test_other_rows_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=message):
        discrete.Matrix(world(depth=1).server, rows)


def test_what_does_not_fit_is_refused() -> None:
    w = world(depth=1)
    matrix = discrete.Matrix(w.server, np.ones((3, 4), int))
    with pytest.raises(jali.InvalidArgument, match=r"np.tile\(vector, \(256, 1\)\)"):
        matrix @ w.bind([1, 2, 3, 4], range=(0, 4))
    good = repeated([1, 2, 3, 4], w.params)
    assert w.shown(matrix @ w.bind(good, range=(0, 4))).tolist() == [10, 10, 10]
    with pytest.raises(jali.InvalidArgument, match="encrypted array"):
        matrix @ good
    with pytest.raises(jali.InvalidArgument, match="level=0"):
        matrix @ w.bind(good, range=(0, 4), level=0)
    with pytest.raises(jali.RangeExceeded):
        discrete.Matrix(w.server, [[65537]])
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotPickled):
            action(matrix)
    coefficients = discrete.Params.create(modulus=1000, packing="coefficients", depth=1, **RING)
    with pytest.raises(jali.InvalidArgument, match="slots"):
        discrete.Matrix(discrete.Evaluator(coefficients, threads=1), [[1]])


def test_noise_that_does_not_fit_is_refused_before_it_computes() -> None:
    """A wide modulus and many columns: the product is refused, or right."""
    w = world(modulus=None, integers=40, depth=1, word="w64")
    rows = np.ones((2, 512), np.int64)
    x = w.bind(repeated(np.ones(512, np.int8), w.params), range=(0, 1))
    try:
        y = discrete.Matrix(w.server, rows) @ x
    except jali.DepthExhausted as error:
        assert "depth=" in str(error)
    else:
        assert w.shown(y).tolist() == [512, 512]
