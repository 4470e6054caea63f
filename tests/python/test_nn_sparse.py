"""Maps of large matrices, which are not listed, against maps that are, and against NumPy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from map_lists import check_against_list, listed
from slot_interpreter import WEIGHTS, check

import jali
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import Layout, Repeated, Shared, fitted
from jali.compiler.ir.linear_ops import Dense
from jali.compiler.ir.operation import Input
from jali.compiler.ir.sparse import DenseMap, SparseMap
from jali.compiler.ir.traced_ops import Multiply, made
from jali.compiler.layout.diagonals import gathered
from jali.compiler.layout.terms import Term
from jali.compiler.noise.empty_slots import empty_slot_noise

SHAPE = (300, 250)


def drawn(
    rng: np.random.Generator, shape: tuple[int, int] = SHAPE, zeros: float = 0.1
) -> np.ndarray:
    return rng.normal(size=shape) * (rng.random(shape) >= zeros)


def test_only_large_and_full_matrices_are_not_listed(rng: np.random.Generator) -> None:
    full = drawn(rng)
    assert isinstance(SparseMap.dense(full), DenseMap)
    assert not isinstance(SparseMap.dense(full[:50]), DenseMap)
    assert not isinstance(SparseMap.dense(drawn(rng, zeros=0.9)), DenseMap)


@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_a_matrix_is_the_map_that_lists_it(zeros: float, rng: np.random.Generator) -> None:
    matrix, left, right = drawn(rng, zeros=zeros), rng.normal(size=300), rng.normal(size=250)
    matrix[:, 7] = matrix[11] = 0  # a number that nothing takes, and one that takes nothing
    dense = SparseMap.dense(matrix).scaled(left).scaled(2.0, right)
    want = listed(2 * left[:, None] * matrix * right)
    assert isinstance(dense, DenseMap)
    check_against_list(dense, want, rng, rtol=1e-14)
    assert dense.has_places_of(SparseMap.dense(matrix))
    assert np.allclose((dense + want).matrix(), 2 * want.matrix())


def test_pieces_of_a_matrix_are_its_entries(rng: np.random.Generator) -> None:
    matrix = drawn(rng, (1300, 450))
    rows, cols = rng.random(1300) < 0.7, rng.random(450) < 0.4
    pieces = list(SparseMap.dense(matrix).pieces(np.flatnonzero(rows), np.flatnonzero(cols)))
    assert len(pieces) > 0
    found = np.zeros_like(matrix)
    for piece in pieces:
        assert np.all(np.diff(piece.rows * 450 + piece.cols) > 0)
        found += piece.matrix()
    assert np.array_equal(found, matrix * np.outer(rows, cols))
    whole = list(SparseMap.dense(matrix).pieces())
    assert len(whole) > 1 and np.array_equal(sum(p.matrix() for p in whole), matrix)


def test_places_differ_if_a_zero_moves(rng: np.random.Generator) -> None:
    matrix = drawn(rng, zeros=0.0)
    one, other = matrix.copy(), matrix.copy()
    one[3, 4], other[4, 3] = 0, 0
    assert not SparseMap.dense(one).has_places_of(SparseMap.dense(other))
    assert not SparseMap.dense(one).has_places_of(SparseMap.dense(matrix))


def test_equal_entries_are_seen(rng: np.random.Generator) -> None:
    ones = np.full(SHAPE, 0.25)
    assert SparseMap.dense(ones).is_uniform and SparseMap.dense(ones).scaled(3.0).is_uniform
    ones[-1, -1] = 0.5
    assert not SparseMap.dense(ones).is_uniform


def test_a_matrix_behind_other_maps(rng: np.random.Generator) -> None:
    """A permutation, one with factors that drops numbers, a diagonal, sums, another matrix; and a
    scale with zeros."""
    matrix, order = drawn(rng), rng.permutation(250)
    dense = SparseMap.dense(matrix)
    chosen = np.where(rng.random(250) < 0.8, order, -1)
    inner = [
        SparseMap.gather(order, 250),
        SparseMap.gather(chosen, 250).scaled(rng.normal(size=250)),
        SparseMap.identity(250).scaled(rng.normal(size=250)),
        SparseMap.of(
            np.arange(500) // 2, rng.integers(0, 40, 500), rng.normal(size=500), (250, 40)
        ),
        SparseMap.dense(drawn(rng, (250, 270))),
    ]
    for other in inner:
        assert np.allclose(dense.after(other).matrix(), matrix @ other.matrix())
    behind = SparseMap.gather(rng.permutation(300)[:200], 300)
    assert np.allclose(behind.after(dense).matrix(), behind.matrix() @ matrix)
    left = np.where(rng.random(300) < 0.5, 0.0, 2.0)
    assert np.allclose(dense.scaled(left).matrix(), left[:, None] * matrix)


def layouts() -> dict[str, tuple[Layout, Layout]]:
    """Of 250 numbers and of 300."""
    one, other = fitted((250,), 1024), fitted((300,), 1024)
    return {
        "several ciphertexts": (fitted((250,), 64), fitted((300,), 64)),
        "a longer result": (fitted((250,), 256), fitted((300,), 256)),
        "windows": (Layout((250,), 1024, 1024), other),
        "copies of the source": (one, other),
        "shares": (one, Shared((300,), 1024, 1024, block=256, chunk=128, every=128)),
        "repeated": (fitted((250,), 2048), Repeated((300,), 2048, 2048, width=4)),
    }


@pytest.mark.parametrize("name", layouts())
def test_diagonals_of_a_matrix_are_those_of_its_list(name: str, rng: np.random.Generator) -> None:
    source, target = layouts()[name]
    matrix = drawn(rng)
    found, want = (
        Term.of(single, source, target, True, WEIGHTS)
        for single in (SparseMap.dense(matrix), listed(matrix))
    )
    assert isinstance(found.single, DenseMap) and not isinstance(want.single, DenseMap)
    assert found.diagonals.keys() == want.diagonals.keys() == found.digests.keys()
    for pair, diagonals in want.diagonals.items():
        assert np.array_equal(found.diagonals[pair], diagonals)
    for to, bounds in want.bounds.items():
        assert np.allclose(found.bounds[to], bounds)
    for to in range(target.ciphertexts):
        pairs = zip(found.vectors(to, 2), want.vectors(to, 2), strict=True)
        for (mine, vectors), (theirs, others) in pairs:
            assert mine == theirs and vectors.keys() == others.keys()
            assert all(np.allclose(vectors[d], others[d]) for d in others)


def test_noise_leaks_alike(rng: np.random.Generator) -> None:
    matrix, overlays = drawn(rng), 0
    for name in ("several ciphertexts", "copies of the source", "a longer result"):
        source, target = layouts()[name]
        terms = [
            Term.of(m, source, target, True, WEIGHTS)
            for m in (SparseMap.dense(matrix), listed(matrix))
        ]
        overlays += bool(terms[0].turns)
        noise = rng.uniform(0, 1, (2, 250))
        found, want = (empty_slot_noise(term)(*noise, 0.5, 300) for term in terms)
        assert np.allclose(found, want)
    assert overlays


def test_a_matrix_of_few_columns_may_be_gathered(rng: np.random.Generator) -> None:
    matrix = drawn(rng, (9000, 8), zeros=0.0)
    target = fitted((9000,), 1 << 17)
    source = gathered(SparseMap.dense(matrix), (8,), target, 4)
    assert source is not None
    found, want = (
        Term.of(m, source, target, True, WEIGHTS) for m in (SparseMap.dense(matrix), listed(matrix))
    )
    assert found.count == want.count == 1
    for (_, mine), (_, theirs) in zip(found.vectors(0), want.vectors(0), strict=True):
        assert all(np.allclose(mine[d], theirs[d]) for d in theirs)


def test_blocks_with_the_same_numbers_are_the_same_matrix(rng: np.random.Generator) -> None:
    block = drawn(rng, (512, 512), zeros=0.0)
    single = SparseMap.dense(np.block([[block, 2 * block], [3 * block, block]]))
    digests = Term.of(single, fitted((1024,), 512), fitted((1024,), 512), True, WEIGHTS).digests
    assert digests[0, 0] == digests[1, 1]
    assert len(set(digests.values())) == 3


@pytest.mark.parametrize("outputs", [300, 70])
def test_networks_of_large_matrices(outputs: int, rng: np.random.Generator) -> None:
    """What the diagonals compute in slots is what the model computes."""
    first, last = drawn(rng, (300, 250)) / 16, drawn(rng, (outputs, 300), 0.0) / 16
    x = made("x", Input(shape=(250,)), [])
    h = made("h", Dense(weight=first, bias=rng.normal(size=300)), [x])
    squared = made("s", Multiply(), [h, h])
    y = made("y", Dense(weight=last, bias=None), [squared])
    graph = Graph((x, h, squared, y), ("y",))
    for slots in (128, 512, 4096):
        low = check(graph, slots, 2, rng)
        assert isinstance(low["h"].attrs["terms"][0].single, DenseMap)


@pytest.mark.long
def test_memory_is_of_the_order_of_the_weights(rng: np.random.Generator) -> None:
    """Lists of the entries and of their places would take 20 times the bytes of the weights and
    more."""
    weights = rng.uniform(-1, 1, (2048, 3072)) / 64
    x = rng.uniform(-1, 1, (16, 3072))
    tracemalloc.start()
    try:
        program = jali.compile(lambda v: weights @ v, x[0], calibration=x, input_range=(-1, 1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * weights.nbytes
    assert np.allclose(program.clear(x), x @ weights.T)
