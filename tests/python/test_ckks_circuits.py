"""Matrix products, linear transforms and polynomials from Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import World, assert_close

import jali
from jali import ckks


def server_for(world: World, rotations: list[int]) -> ckks.Evaluator:
    """An evaluator that has keys for these rotations."""
    return ckks.Evaluator(world.params, world.client.evaluation_keys(rotations=rotations))


@pytest.mark.parametrize("shape", [(10, 100), (100, 10), (7, 7), (1, 33), (33, 1)], ids=str)
def test_matvec(world: World, rng: np.random.Generator, shape: tuple[int, int]) -> None:
    matrix = rng.uniform(-1, 1, shape) / np.sqrt(shape[1])
    bias = rng.uniform(-1, 1, shape[0])
    v = rng.uniform(-1, 1, (2, shape[1]))
    plan = ckks.MatVec(matrix, world.params, bias=bias)
    assert (plan.rows, plan.columns, plan.level) == (*shape, world.params.depth)
    keys = world.client.evaluation_keys(rotations=plan.rotations, relinearise=False)
    assert keys.nbytes == plan.key_bytes
    server = ckks.Evaluator(world.params, keys)
    (packed,) = plan.pack(v)
    x = server.bind(world.client.encrypt(packed))
    y = server.matvec(plan, x)
    assert y.level == plan.level - 1
    assert_close(world, y, v @ matrix.T + bias)
    unpacked = plan.unpack([world.client.decrypt(y, length=world.params.slots)])
    assert np.allclose(unpacked, world.client.decrypt(y), atol=1e-6)
    server.prepare(plan)
    assert_close(world, server.matvec(plan, x), v @ matrix.T + bias)
    (single,) = plan.pack(v[0])
    assert_close(
        world, server.matvec(plan, server.bind(world.client.encrypt(single))), matrix @ v[0] + bias
    )


def test_matrix_products_in_a_row(one: World, rng: np.random.Generator) -> None:
    a, b = rng.uniform(-0.3, 0.3, (12, 20)), rng.uniform(-0.3, 0.3, (5, 12))
    v = rng.uniform(-1, 1, 20)
    first = ckks.MatVec(a, one.params)
    second = ckks.MatVec(b, one.params, level=first.level - 2, layout=first.output_layout)
    server = server_for(one, first.rotations + second.rotations)
    hidden = server.matvec(first, server.bind(one.client.encrypt(first.pack(v)[0], peak=1)))
    assert_close(one, server.matvec(second, hidden * hidden), b @ (a @ v) ** 2, slack_bits=2)


def test_matmul_operator(one: World, rng: np.random.Generator) -> None:
    matrix = rng.uniform(-0.3, 0.3, (6, 9))
    v = rng.uniform(-1, 1, 9)
    plan = ckks.MatVec(matrix, one.params, layout="natural")
    server = server_for(one, plan.rotations)
    x = server.bind(one.client.encrypt(v))
    assert_close(one, matrix @ x, matrix @ v)
    # The slots behind the vector may hold other numbers.
    assert_close(one, matrix @ (x + 1), matrix @ (v + 1))
    with pytest.raises(jali.InvalidArgument, match="must be equal"):
        matrix.T @ x
    with pytest.raises(jali.KeyMissing):
        matrix @ ckks.Evaluator(one.params).bind(one.client.encrypt(v))


def test_matrix_errors(one: World) -> None:
    for bad in (
        lambda: ckks.MatVec(np.ones(3), one.params),
        lambda: ckks.MatVec(np.ones((3, 3)) * 1j, one.params),
        lambda: ckks.MatVec(np.full((3, 3), np.nan), one.params),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params, layout="diagonal"),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params, layout=3),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params, hoisting="thrice"),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params, bias=np.ones(4)),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params, level=-1),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params, level=one.params.depth + 1),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params).pack(np.ones(4)),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params).unpack([np.ones(4)]),
        lambda: ckks.MatVec(np.ones((3, 3)), one.params).unpack([]),
        lambda: ckks.LinearTransform(one.params, {}, slots=3),
        lambda: ckks.LinearTransform(one.params, {0: np.ones(3)}),
        lambda: ckks.LinearTransform.from_matrix(np.ones((3, 4)), one.params),
        lambda: ckks.Polynomial.approximate(np.sin, 10**9),
        lambda: ckks.Polynomial([]),
        lambda: ckks.Polynomial([1, np.inf]),
        lambda: ckks.Polynomial([1, 2], basis="fourier"),
        lambda: ckks.Polynomial([1, 2], basis="chebyshev", interval=(1, 1)),
        lambda: one.server.matvec(np.ones((3, 3)), one.bind([1.0])),
    ):
        with pytest.raises(jali.InvalidArgument):
            bad()
    with pytest.raises(jali.DepthExhausted):
        ckks.MatVec(np.ones((3, 3)), one.params, level=0)


def test_a_vector_that_does_not_lie_as_planned_is_refused(one: World) -> None:
    plan = ckks.MatVec(np.eye(20), one.params)
    server = server_for(one, plan.rotations)
    with pytest.raises(jali.InvalidArgument, match="pack"):
        server.matvec(plan, server.bind(one.client.encrypt(np.ones(20))))
    with pytest.raises(jali.InvalidArgument, match="1 ciphertexts"):
        server.matvec(plan, [])
    with pytest.raises(jali.InvalidArgument, match="real"):
        server.matvec(plan, server.bind(one.client.encrypt(plan.pack(np.ones(20))[0] * 1j)))
    stranger = ckks.MatVec(np.eye(3), ckks.Params.create(depth=1, scale_bits=30))
    with pytest.raises(jali.ParamsMismatch):
        server.matvec(stranger, server.bind(one.client.encrypt(np.ones(3))))
    with pytest.raises(jali.ParamsMismatch):
        server.prepare(stranger)


def test_linear_transform(world: World, rng: np.random.Generator) -> None:
    n = world.params.slots
    a, b = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n) + 1j * rng.uniform(-1, 1, n)
    v = rng.uniform(-1, 1, n)
    plan = ckks.LinearTransform(world.params, {0: a, -5: b})
    server = server_for(world, plan.rotations)
    assert_close(
        world,
        server.linear_transform(plan, server.bind(world.client.encrypt(v))),
        a * v + b * np.roll(v, 5),
    )
    matrix = rng.uniform(-1, 1, (16, 16))
    plan = ckks.LinearTransform.from_matrix(matrix, world.params)
    server = server_for(world, plan.rotations)
    server.prepare(plan)
    x = server.bind(world.client.encrypt(v[:16], slots=16))
    assert_close(world, server.linear_transform(plan, x), matrix @ v[:16])


def test_storages_give_the_same_bytes(world: World, rng: np.random.Generator) -> None:
    """Diagonals over all primes, as integers and streamed; of numbers that repeat, one period is
    kept."""
    params, n = world.params, world.params.slots
    for period in (n, 4):
        diagonals = {d: np.tile(rng.uniform(-1, 1, period), n // period) for d in (0, 1, -3)}
        plan = ckks.LinearTransform(params, {**diagonals})
        server = server_for(world, plan.rotations)
        x = server.bind(world.client.encrypt(rng.uniform(-1, 1, n)))
        want = server.linear_transform(plan, x).ciphertext.to_bytes()
        assert plan.nbytes == 0 and plan.integer_bytes == 3 * 2 * period * 8
        for storage in ("integers", "residues", "streamed"):
            server.prepare(plan, storage=storage)
            whole = storage == "residues"
            assert plan.nbytes == (plan.plaintext_bytes if whole else plan.integer_bytes)
            assert server.linear_transform(plan, x).ciphertext.to_bytes() == want
        plan.forget()
        assert server.linear_transform(plan, x).ciphertext.to_bytes() == want
        with pytest.raises(jali.InvalidArgument, match="gave up the numbers"):
            server.prepare(plan)
    matrix = rng.uniform(-0.3, 0.3, (7, 20))
    product = ckks.MatVec(matrix, params, bias=np.ones(7))
    server = server_for(world, product.rotations)
    y = server.bind(world.client.encrypt(product.pack(rng.uniform(-1, 1, 20))[0]))
    server.prepare(product)
    want = server.matvec(product, y).ciphertext.to_bytes()
    server.prepare(product, storage="integers")
    assert product.nbytes == product.integer_bytes
    assert server.matvec(product, y).ciphertext.to_bytes() == want


def test_storages_that_there_are_not_are_refused(one: World) -> None:
    plan = ckks.LinearTransform(one.params, {0: np.ones(one.params.slots)})
    for wrong in ("", "Integers", None, 3):
        with pytest.raises(jali.InvalidArgument, match='"integers"'):
            one.server.prepare(plan, storage=wrong)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="prepare the plan before"):
        plan.forget()
    assert plan.nbytes == 0


@pytest.mark.parametrize("basis", ["power", "chebyshev"])
def test_polynomial(world: World, rng: np.random.Generator, basis: str) -> None:
    v = rng.uniform(-1, 1, world.params.slots)
    c = rng.uniform(-1, 1, 8)
    x = world.bind(v, peak=1)
    y = world.server.polynomial(x, c, basis=basis)
    value = np.polynomial.Polynomial if basis == "power" else np.polynomial.Chebyshev
    assert y.level == world.params.depth - 3
    assert_close(world, y, value(c)(v), slack_bits=3)
    with pytest.raises(jali.DepthExhausted, match="4"):
        world.server.polynomial(x, np.ones(9), basis=basis)


def test_approximation(one: World, rng: np.random.Generator) -> None:
    v = rng.uniform(-4, 4, one.params.slots)
    sigmoid = ckks.Polynomial.approximate(lambda t: 1 / (1 + np.exp(-t)), 7, (-4, 4))
    assert (sigmoid.degree, sigmoid.interval, sigmoid.max_error) == (7, (-4, 4), None)
    x = one.server.bind(one.client.encrypt(v, magnitude=4 / np.sqrt(3), peak=4))
    plain = np.array([sigmoid(t).real for t in v])
    error = np.abs(plain - 1 / (1 + np.exp(-v))).max()
    assert sigmoid.measured_error is not None and error <= sigmoid.measured_error < 0.01
    if sigmoid.depth <= one.params.depth:
        got = one.client.decrypt(one.server.polynomial(x, sigmoid))
        assert np.abs(got - plain).max() < 1e-5
    else:
        with pytest.raises(jali.DepthExhausted):
            one.server.polynomial(x, sigmoid)


def test_numbers_outside_the_interval_are_refused(one: World) -> None:
    """A sigmoid fitted on +-16 is off by 1e4 at -23."""
    sigmoid = ckks.Polynomial.approximate(lambda t: 1 / (1 + np.exp(-t)), 3, (-16, 16))
    assert (
        abs(ckks.Polynomial.approximate(lambda t: 1 / (1 + np.exp(-t)), 31, (-16, 16))(-23)) > 1e3
    )
    x = one.bind([-23.0, 5.0], magnitude=10, peak=23)
    with pytest.raises(jali.InvalidArgument, match=r"\[-23, 23\].*\[-16, 16\].*peak="):
        one.server.polynomial(x, sigmoid)
    with pytest.raises(jali.InvalidArgument, match=r"\[-80, 80\].*\[-16, 16\]"):
        one.server.polynomial(one.bind([-23.0], magnitude=10), sigmoid)  # the peak is 8 times that
    claimed = one.server.polynomial(one.bind([3.0], peak=23), sigmoid, within=(-5, 5))
    assert abs(one.client.decrypt(claimed)[0] - sigmoid(3).real) < 1e-4
    smaller = (x * 0.5).with_magnitude(5, peak=12)
    assert (
        abs(one.client.decrypt(one.server.polynomial(smaller, [0, 1], interval=(-12, 12)))[1] - 2.5)
        < 1e-4
    )
    for wrong in ((5, -5), (1,), "ab", (float("nan"), 1), 3):
        with pytest.raises(jali.InvalidArgument, match="within"):
            one.server.polynomial(x, sigmoid, within=wrong)
    # Coefficients stand for themselves, unless they are given an interval.
    assert ckks.Polynomial([0, 1]).interval is None
    assert ckks.Polynomial([0, 1], "chebyshev").interval is None
    one.server.polynomial(x, [0, 0.5])
    for basis in ("power", "chebyshev"):
        with pytest.raises(jali.InvalidArgument, match=r"\[-1, 1\]"):
            one.server.polynomial(x, [0, 0.5], basis=basis, interval=(-1, 1))


def test_polynomials_that_do_not_follow_a_function_are_refused() -> None:
    for degree in (1, 2, 7, 31):
        for function in (lambda t: 1 / t, math.log, np.log, lambda t: 1 / (t - 0.3), math.sqrt):
            with np.errstate(all="ignore"), pytest.raises(jali.InvalidArgument):
                ckks.Polynomial.approximate(function, degree)
    with pytest.raises(jali.InvalidArgument, match="finite at 0"):
        ckks.Polynomial.approximate(lambda t: 1 / t, 7, (0, 1))
    with pytest.raises(KeyError):  # what is no arithmetic is the function's own error
        ckks.Polynomial.approximate(lambda t: {}[t], 3)
    with pytest.raises(jali.InvalidArgument, match="255"):
        ckks.Polynomial.approximate(math.exp, 256, minimax=True)


def test_coefficients_that_are_not_there_are_zero() -> None:
    """An even function of degree 3 takes the depth of degree 2."""
    for function in (math.cos, lambda t: t * t, abs, math.cosh):
        p = ckks.Polynomial.approximate(function, 3)
        assert (p.degree, p.depth) == (2, 2)
        assert all(c == 0 for c in p.coefficients[1::2])
    assert ckks.Polynomial.approximate(lambda t: 2.0, 5).depth == 0
    assert ckks.Polynomial.approximate(math.sin, 4).degree == 3


def test_minimax_is_better() -> None:
    for degree in (3, 6, 20):
        near = ckks.Polynomial.approximate(lambda t: math.exp(math.sin(3 * t)), degree)
        best = ckks.Polynomial.approximate(
            lambda t: math.exp(math.sin(3 * t)), degree, minimax=True
        )
        assert best.measured_error is not None and near.measured_error is not None
        assert 0.3 * near.measured_error < best.measured_error < 0.99 * near.measured_error


@pytest.mark.parametrize("more", [{}, {"security": 0, "log_n": 12, "name": "insecure_small"}])
def test_the_advice_of_used_up_levels_runs(more: dict[str, Any]) -> None:
    params = ckks.Params.create(depth=1, **more)
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), threads=1)
    x = server.bind(client.encrypt([0.5, -1.0]))
    with pytest.raises(
        jali.DepthExhausted, match=r"create\(depth=2\).*gives log_n (\d+)"
    ) as caught:
        (x * x) * x * x
    log_n = int(str(caught.value).split("log_n ")[1].split()[0])
    assert ckks.Params.create(depth=2, **more).log_n == log_n
