"""A product of encrypted matrices is computed by the formulation with the least work, which is counted before it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_world import small

from jali import ckks
from jali.ckks import formulations
from jali.ckks.counted import counted
from jali.ckks.dense import dense
from jali.ckks.joins import stack


class Traced:
    """The small world, with an evaluator that records every operation of the engine."""

    def __init__(self) -> None:
        self.small = small()
        keys = self.small.client.evaluation_keys(rotations="powers")
        self.server = ckks.Evaluator(self.small.params, keys, "cpu", threads=1, trace=True)

    def bind(self, values: Any) -> Any:
        return self.server.bind(self.small.client.encrypt(values, peak=1.0))

    def switches(self, function: Callable[..., Any], *arrays: Any) -> tuple[int, Any]:
        """The key switches of single vectors that a function does, and its result."""
        trace = self.server.trace()
        trace.clear()
        result = function(*arrays)
        _ = result.ciphertext
        lines = map(json.loads, trace.json_lines().splitlines()[1:])
        switched = ("rotate", "combine_key_switch")
        return sum(line["batch"] for line in lines if line["op"] in switched), result


@pytest.fixture(scope="module")
def world() -> Traced:
    return Traced()


def by_columns(a: Any, b: Any) -> Any:
    """What NumPy users write in the place of a.T @ b."""
    rows = [(a[:, i : i + 1] * b).sum(0) for i in range(a.shape[1])]
    return stack(rows)


def test_a_matrix_of_sums_of_products_takes_the_work_of_the_loop_over_columns(
    world: Traced, rng: np.random.Generator
) -> None:
    d = rng.uniform(-1, 1, (60, 4))
    x = world.bind(d)
    looped, expected = world.switches(by_columns, x, x)
    taken, got = world.switches(lambda x: x.T @ x, x)
    for value in (expected, got):
        world.small.check(value, d.T @ d)
    assert got.level == expected.level
    assert taken <= 1.2 * looped
    assert taken < 100  # as a sum of 60 outer products it would take more than 1,000


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 4), (4, 5)), ((40, 2), (2, 3)), ((2, 20), (20, 2)), ((1, 5), (5, 1))],
)
def test_no_formulation_takes_a_third_of_the_work_of_the_one_that_is_taken(
    world: Traced, rng: np.random.Generator, left: tuple[int, int], right: tuple[int, int]
) -> None:
    a, b = rng.uniform(-1, 1, left), rng.uniform(-1, 1, right)
    x, y = world.bind(a), world.bind(b)
    taken, got = world.switches(lambda x, y: x @ y, x, y)
    world.small.check(got, a @ b)
    for one in formulations._formulations(dense(x), dense(y)):
        other, value = world.switches(
            lambda x, y, one=one: one.compute(dense(x), dense(y), range(one.steps)), x, y
        )
        world.small.check(value, a @ b)
        assert taken <= 3 * other + 3, one.name


def test_what_is_counted_beforehand_is_what_is_done(
    world: Traced, rng: np.random.Generator
) -> None:
    x = world.bind(rng.uniform(-1, 1, (60, 4)))
    for function in (by_columns, lambda a, b: dense(a[:, :3] * b[:, 1:].sum(1)[:, None])):
        done, result = world.switches(function, x, x)
        work = counted(function, x, x)
        assert work.switches == done
        assert work.level == result.level


def test_a_transposed_operand_is_a_view(world: Traced, rng: np.random.Generator) -> None:
    a, b = rng.uniform(-1, 1, (2, 50, 3))
    x, y = world.bind(a), world.bind(b)
    world.small.check(x.T @ y, a.T @ b)
    world.small.check((x.T @ y).T @ world.bind(np.eye(3)), (a.T @ b).T)
    world.small.check(x[:7] @ y[:9].T, a[:7] @ b[:9].T)


def test_a_long_product_is_told_of_before_it_starts(
    world: Traced, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = world.bind(rng.uniform(-1, 1, (40, 3)))
    monkeypatch.setattr(formulations, "LONG", 0.0)
    monkeypatch.setattr(formulations, "MEASURED", 1)
    with pytest.warns(
        RuntimeWarning, match=r"takes about \d+ key switches and \d+ products with m"
    ):
        _ = x.T @ x
    with pytest.warns(RuntimeWarning, match="key switches"):
        _ = x.T @ world.bind(rng.uniform(-1, 1, 40))


def test_keys_for_a_product_serve_the_formulation_that_is_taken(
    world: Traced, rng: np.random.Generator
) -> None:
    """Where keys are found out, no rotation is composed. Where only these keys are, the same formulation has the least work."""
    client = world.small.client
    for shape, function in (
        ((40, 3), lambda x: x.T @ x),
        ((4, 5), lambda x: x @ x.T),
    ):
        values = rng.uniform(-1, 1, shape)
        fresh = client.encrypt(values, peak=1.0)
        keys = client.evaluation_keys(for_=function, example=fresh)
        server = ckks.Evaluator(world.small.params, keys, threads=1)
        world.small.check(function(server.bind(fresh)), function(values))
