"""A product of encrypted matrices is computed by the formulation with the least work, which is
counted before it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_world import small

from jali import ckks
from jali.ckks import formulations
from jali.ckks.counted import MASK, counted
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
    for one in formulations._formulations(x._viewed(), y._viewed()):
        other, value = world.switches(
            lambda x, y, one=one: one.compute(x._viewed(), y._viewed(), range(one.steps)), x, y
        )
        world.small.check(value, a @ b)
        assert taken <= 3 * other + 3, one.name


#: Products of a matrix H and vectors x, as long as its columns, and v, as long as its rows.
VECTORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "H.T @ x": lambda h, x, v: h.T @ x,
    "x @ H": lambda h, x, v: x @ h,
    "H @ v": lambda h, x, v: h @ v,
    "v @ H.T": lambda h, x, v: v @ h.T,
    "H[::-1] @ v": lambda h, x, v: h[::-1] @ v,
    "H.T @ (H @ v)": lambda h, x, v: h.T @ (h @ v),
}


@pytest.mark.parametrize("shape", [(60, 4), (3, 300), (1, 20), (20, 1)])
@pytest.mark.parametrize("name", VECTORS)
def test_a_matrix_times_a_vector_takes_the_work_of_the_best_formulation(
    world: Traced,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    shape: tuple[int, int],
) -> None:
    numbers = [rng.uniform(-1, 1, size) / max(shape) for size in (shape, shape[0], shape[1])]
    arrays = [world.bind(one) for one in numbers]
    every = formulations._of_vector
    taken, got = world.switches(VECTORS[name], *arrays)
    world.small.check(got, VECTORS[name](*numbers))
    for k in range(3):
        steps: list[int] = []

        def only(a: Any, v: Any, k: int = k, steps: list[int] = steps) -> Any:
            steps.append(every(a, v)[k].steps)
            return every(a, v)[k : k + 1] if steps[-1] <= 20 else every(a, v)

        monkeypatch.setattr(formulations, "_of_vector", only)
        other, value = world.switches(VECTORS[name], *arrays)
        if max(steps) <= 20:  # longer loops take seconds, and are never the best of these
            world.small.check(value, VECTORS[name](*numbers))
            assert taken <= 1.1 * other or got.level > value.level
            assert k > 0 or got.level >= value.level


# Found: 35 times the work of the loop over columns, as much as for a loop over 1,000 rows.
def test_covariances_and_projections_of_a_thousand_rows(
    world: Traced, rng: np.random.Generator
) -> None:
    d, r = rng.uniform(-1, 1, (1000, 8)), rng.uniform(-1, 1, 1000)
    x, y = world.bind(d), world.bind(r)
    looped, expected = world.switches(by_columns, x, x)
    taken, got = world.switches(lambda x: x.T @ x / 1000, x)
    world.small.check(got, d.T @ d / 1000)
    assert taken <= 3 * looped and got.level >= expected.level - 1
    ways = [one.work(x._viewed().T, y._viewed()) for one in formulations._of_vector(x.T, y)]
    for product in (lambda x, y: x.T @ y, lambda x, y: y @ x):
        taken, got = world.switches(product, x, y)
        world.small.check(got, d.T @ r)
        assert taken <= 1.1 * min(way.switches for way in ways)
        assert got.level == ways[0].level


def test_a_vector_meets_the_rows_where_it_cannot_meet_the_whole_matrix(
    world: Traced, rng: np.random.Generator
) -> None:
    """Rows of 1,000 numbers lie in several vectors each, the last row first."""
    h, v = rng.uniform(-1, 1, (2, 1000)), rng.uniform(-1, 1, 1000)
    world.small.check(world.bind(h)[::-1] @ world.bind(v), h[::-1] @ v)


def test_the_price_of_a_mask_is_of_the_size_of_its_multiplications() -> None:
    for depth, log_n in ((2, 10), (6, 10), (6, 12)):
        params = ckks.Params.create(depth=depth, log_n=log_n, security=0, name="insecure_masks")
        client = ckks.Client(params, threads=1)
        keys = client.evaluation_keys(rotations=[1])
        server = ckks.Evaluator(params, keys, "cpu", threads=1, trace=True)
        x = server.bind(client.encrypt(np.ones(params.slots)))._ct

        def products(function: Callable[[], Any], server: Any = server) -> float:
            server.trace().clear()
            function()
            return sum(one["mults"] for one in server.trace().totals().values())

        mask = np.arange(params.slots) % 2
        masked = products(lambda: server._core.multiply_array(x, mask))  # noqa: B023
        ratio = masked / products(lambda: server._core.rotate(x, 1))  # noqa: B023
        assert MASK / 2 < ratio < MASK * 2


def test_what_is_counted_beforehand_is_what_is_done(
    world: Traced, rng: np.random.Generator
) -> None:
    x = world.bind(rng.uniform(-1, 1, (60, 4)))
    for function in (by_columns, lambda a, b: a[:, :3] * b[:, 1:].sum(1)[:, None]):
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
    """Where keys are found out, no rotation is composed. Where only these keys are, the same
    formulation has the least work."""
    client = world.small.client
    for shape, function in (
        ((40, 3), lambda x: x.T @ x),
        ((4, 5), lambda x: x @ x.T),
        ((3, 300), lambda x: x.T @ x[:, 0]),
        ((40, 3), lambda x: x[:, 0] @ x),
    ):
        values = rng.uniform(-1, 1, shape)
        fresh = client.encrypt(values, peak=1.0)
        keys = client.evaluation_keys(for_=function, example=fresh)
        server = ckks.Evaluator(world.small.params, keys, threads=1)
        world.small.check(function(server.bind(fresh)), function(values))
