"""One function of many arrays of exact integers, in batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from discrete_world import World, integers, world

import jali


@pytest.fixture
def w() -> World:
    return world()


def test_functions_run_over_many_arrays_in_batches(w: World, rng: np.random.Generator) -> None:
    values = [integers(rng, -3, 3, (2, 5)) for _ in range(5)]
    arrays = [w.bind(v, range=(-3, 3)) for v in values]
    arrays[1] = arrays[1] * 1 + 0  # with another history
    other = w.bind(np.ones((2, 5), np.int64), range=(-3, 3))
    for function, clear in (
        (lambda x: x * x - 1, lambda v: v * v - 1),
        (lambda x: x.sum(axis=-1), lambda v: v.sum(axis=-1)),
        (lambda x: x.sum(axis=(1, 2)), lambda v: v.sum()),
        (lambda x: x * other, lambda v: v),
        (lambda x: x[:, 1, ::2], lambda v: v[1, ::2]),
        (lambda x: x.transpose(0, 2, 1) + 1, lambda v: v.T + 1),
    ):
        batched = w.server.batcher(function, max_batch=2)
        for _ in range(2):
            results = batched(arrays)
            assert [w.shown(y).tolist() for y in results] == [clear(v).tolist() for v in values]
        assert 1 <= batched.batch <= 2 and {p.batch for p in batched.curve} <= {1, 2}
        # The results are arrays like others.
        assert (w.shown(results[0] + results[1]) == clear(values[0]) + clear(values[1])).all()
    assert w.server.map(lambda x: x, []) == []


def test_arrays_of_several_vectors_are_done_one_by_one(w: World, rng: np.random.Generator) -> None:
    values = [integers(rng, 0, 9, (3, w.params.slots)) for _ in range(2)]
    arrays = [w.bind(v, range=(0, 9)) for v in values]
    for y, v in zip(w.server.map(lambda x: x + x, arrays), values, strict=True):
        assert (w.shown(y) == v + v).all()


def test_values_at_different_levels_are_brought_to_one(w: World) -> None:
    x = w.bind([1, 2, 3], range=(0, 3))
    arrays = [x, x * x, x * np.array([1, 2, 1])]
    results = w.server.map(lambda v: v + 1, arrays)
    assert [w.shown(y).tolist() for y in results] == [[2, 3, 4], [2, 5, 10], [2, 5, 4]]


def test_functions_that_do_not_fit_batches_are_refused(w: World) -> None:
    x = w.bind([1, 2, 3], range=(0, 3))
    for function in (lambda v: v[0], lambda v: v.sum(), lambda v: v.T, lambda v: 3, lambda v: None):
        with pytest.raises(jali.InvalidArgument, match="axis in front"):
            w.server.map(function, [x, x, x, x], max_batch=2)
    with pytest.raises(jali.InvalidArgument, match="one shape"):
        w.server.map(lambda v: v, [x, x[:2]])
    with pytest.raises(jali.InvalidArgument, match="function of encrypted arrays"):
        w.server.batcher(3)
    with pytest.raises(jali.InvalidArgument, match="max_batch"):
        w.server.batcher(lambda v: v, max_batch=0)
    with pytest.raises(jali.InvalidArgument, match="encrypted array"):
        w.server.map(lambda v: v, [x, 3])
    own: list[Any] = []
    own.append(w.server.batcher(lambda v: own[0]([x])[0]))
    with pytest.raises(jali.InvalidArgument, match="has called it again"):
        own[0]([x])


def test_a_refused_batch_is_halved(w: World) -> None:
    x = w.bind([1, 2, 3], range=(0, 3))

    def small(v: Any) -> Any:
        if len(v) > 1:
            raise jali.Unsupported("too large")
        return v + 1

    batched = w.server.batcher(small)
    assert [w.shown(y).tolist() for y in batched([x] * 5)] == [[2, 3, 4]] * 5
    assert batched.batch == 1


def test_threads_share_a_batcher(w: World) -> None:
    batched = w.server.batcher(lambda v: v * 2, max_batch=4)
    sets = [[w.bind(list(range(n)), range=(0, 9)) for _ in range(3)] for n in (2, 3, 4, 5)]
    with ThreadPoolExecutor(4) as pool:
        for n, results in zip((2, 3, 4, 5), pool.map(batched, sets), strict=True):
            assert [w.shown(y).tolist() for y in results] == [[2 * i for i in range(n)]] * 3


def test_sums_of_stacked_arrays_take_no_masks(w: World) -> None:
    """Each of them lies in one row of a pair, and two rows of different pairs would be put together
    by masks."""
    x = np.stack([w.bind(list(range(5)), range=(0, 4)) for _ in range(3)])
    before = w.server.counters()["plain_products"]
    total = x.sum(axis=-1)
    assert w.server.counters()["plain_products"] == before
    assert w.shown(total).tolist() == [10, 10, 10] and total.level == x.level
