"""The precision that a value claims is the precision that it has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import UNIFORM, World
from numpy.typing import NDArray

from jali import ckks

Real = NDArray[np.float64]
CASES: dict[str, tuple[Callable[..., ckks.EncryptedArray], Callable[..., Real]]] = {
    "fresh": (lambda x, y, c: x, lambda a, b, c: a),
    "sum": (lambda x, y, c: x + y, lambda a, b, c: a + b),
    "doubled": (lambda x, y, c: x + x, lambda a, b, c: a + a),
    "opposites": (lambda x, y, c: x - (-x), lambda a, b, c: 2 * a),
    "product": (lambda x, y, c: x * y, lambda a, b, c: a * b),
    "square": (lambda x, y, c: x * x, lambda a, b, c: a * a),
    "plain product": (lambda x, y, c: x * c, lambda a, b, c: a * c),
    "plain sum": (lambda x, y, c: x + c, lambda a, b, c: a + c),
    "scalar product": (lambda x, y, c: x * 0.7, lambda a, b, c: a * 0.7),
    "scalar sum": (lambda x, y, c: x - 0.7, lambda a, b, c: a - 0.7),
    "negation": (lambda x, y, c: -x, lambda a, b, c: -a),
    "rotation": (lambda x, y, c: x.rotate(1), lambda a, b, c: np.roll(a, -1)),
    "conjugation": (lambda x, y, c: x.conj(), lambda a, b, c: a),
    "sum of products": (lambda x, y, c: x * y + x * c, lambda a, b, c: a * b + a * c),
    "two products": (lambda x, y, c: x * y * c, lambda a, b, c: a * b * c),
    "lower level": (lambda x, y, c: x * (y * c), lambda a, b, c: a * b * c),
    "rotated product": (lambda x, y, c: (x * y).rotate(-3), lambda a, b, c: np.roll(a * b, 3)),
}


@pytest.mark.parametrize("case", CASES)
def test_claims_are_honest(world: World, rng: np.random.Generator, case: str) -> None:
    encrypted, plain = CASES[case]
    a, b, c = rng.uniform(-1, 1, (3, world.params.slots))
    value = encrypted(world.bind(a, magnitude=UNIFORM), world.bind(b, magnitude=UNIFORM), c)
    measured = -np.log2(np.std(world.client.decrypt(value) - plain(a, b, c)))
    assert abs(measured - value.precision_bits) < 1


def test_estimates_tell_nothing_of_the_data(world: World, rng: np.random.Generator) -> None:
    small, large = rng.uniform(-1e-3, 1e-3, world.params.slots), np.ones(world.params.slots)
    x, y = world.bind(small), world.bind(large)
    for one, other in ((x, y), (x * x, y * y), (x * x + x, y * y + y)):
        assert one.precision_bits == other.precision_bits
    louder = world.bind(large, magnitude=8.0)
    assert (louder * louder).precision_bits < (y * y).precision_bits - 1


def test_numbers_of_which_only_the_peak_is_declared() -> None:
    """Estimates take the peak for their root mean square, above which none can be. With 1, 11 bits
    too many were claimed."""
    params = ckks.Params.create(
        depth=3, scale_bits=40, log_n=10, security=0, name="insecure_peak", integer_bits=24
    )
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys())
    for peak in (0.25, 2.0, 100.0):
        v = np.random.default_rng().uniform(-peak, peak, params.slots)
        x = server.bind(client.encrypt(v, peak=peak))
        y = x * x * x
        measured = -np.log2((client.decrypt(y) - v**3).std())
        assert measured - 3.5 < y.precision_bits < measured + 0.3, peak


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 3), (3, 1)])
@pytest.mark.parametrize("subtract", [False, True])
def test_numbers_added_to_few_slots(shape: tuple[int, ...], subtract: bool) -> None:
    """Their root mean square is that of the slots in which they lie. With that of all slots, 5 bits
    too many were claimed."""
    small = ckks.Params.create(
        depth=2, scale_bits=40, log_n=10, security=0, name="insecure_few", integer_bits=16
    )
    client = ckks.Client(small, threads=1)
    server = ckks.Evaluator(small, client.evaluation_keys(), threads=1)
    c, squares = np.full(shape, 60.0), []
    for _ in range(40):
        v = np.random.default_rng().uniform(-1, 1, shape)
        x = server.bind(client.encrypt(v, magnitude=UNIFORM, peak=1.0))
        y, want = (x - c, v - c) if subtract else (x + c, v + c)
        square = y * y
        squares.append((client.decrypt(square) - want**2) ** 2)
    measured = -0.5 * np.log2(np.mean(squares))
    # 40 means are within 1.5 bits of the truth, although the errors' tails are those of a product
    # of two normal numbers.
    assert abs(measured - square.precision_bits) < 1.5


def test_polynomials_of_equal_and_of_normal_numbers() -> None:
    """Powers of normal numbers, and of sums of equal ones, are far larger than those of signs. Up
    to 5 bits too many were claimed."""
    params = ckks.Params.create(
        depth=8, scale_bits=40, log_n=10, security=0, name="insecure_powers", integer_bits=20
    )
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), threads=1)
    rng = np.random.default_rng()
    ones, normal = np.ones(params.slots), np.clip(rng.normal(size=params.slots), -4, 4)
    c = [0.5, -1.0, 0.5, 1.0, 0.25, 1.0, -0.5, 1.0]
    for v, f in (
        (ones, lambda x: x + ones),
        (ones, lambda x: x * (x + ones)),
        (ones, lambda x: (x * (x + ones)) ** 3),
        (normal, lambda x: x),
        (normal, lambda x: x + ones),
    ):
        x = f(server.bind(client.encrypt(v, magnitude=1.0, peak=np.abs(v).max())))
        y = server.polynomial(x, c)
        want = np.polynomial.polynomial.polyval(f(v), c)
        measured = -np.log2(np.sqrt(np.mean((client.decrypt(y) - want) ** 2)))
        assert measured - 5 < y.precision_bits < measured + 0.5


def test_bytes_keep_the_claim(world: World) -> None:
    """Bytes carry averages alone. They are those that equal and normal numbers leave."""
    x = world.bind(np.ones(8) / 4, magnitude=0.25, peak=2.0)
    for value in (x + x.rotate(1), x * x * x):
        sent = ckks.Ciphertext.from_bytes(value.ciphertext.to_bytes(), world.params)
        assert abs(sent.precision_bits - value.precision_bits) < 1e-9


def equal_rows(x: ckks.EncryptedArray) -> ckks.EncryptedArray:
    return np.ones((512, 512)) / 64 @ x


# Every sum adds errors that may be the same in many slots. `least`: how many bits below the
# measured precision the claim may lie, because other errors, which the same ciphertext may have
# had, would leave no more.
SHARED: dict[str, tuple[Callable[..., ckks.EncryptedArray], Callable[..., Real], float]] = {
    "one sum": (lambda x: x.sum(), lambda v: v.sum(), 0.7),
    "a sum of sums": (lambda x: (x.sum() * np.ones(512)).sum(), lambda v: 512 * v.sum(), 1.0),
    "equal rows turned and added": (
        lambda x: (lambda y: y + y.rotate(1))(equal_rows(x)),
        lambda v: v.sum() / 32 * np.ones(512),
        1.5,
    ),
    "a sum after a matrix of equal rows": (
        lambda x: equal_rows(x).sum(),
        lambda v: 8 * v.sum(),
        2.5,
    ),
    "a matrix of equal rows twice": (
        lambda x: equal_rows(equal_rows(x)),
        lambda v: v.sum() / 8 * np.ones(512),
        2.5,
    ),
    "a filter after a matrix, then a sum": (
        lambda x: (lambda y: y + y.rotate(1) + y.rotate(2) + y.rotate(3))(np.eye(512) @ x).sum(),
        lambda v: 4 * v.sum(),
        2.5,
    ),
    "a product with a sum": (
        lambda x: (x.sum() * x.sum() * np.ones(512)).sum(),
        lambda v: 512 * v.sum() ** 2,
        2.0,
    ),
}


#: Each product with a matrix of 512 rows takes a third of a second.
LONG = ("equal rows turned and added", "a matrix of equal rows twice")


@pytest.mark.parametrize(
    "case", [pytest.param(k, marks=pytest.mark.long) if k in LONG else k for k in SHARED]
)
def test_errors_that_slots_share_are_counted(case: str) -> None:
    """Sums took the errors of different slots for independent: a sum of n sums was claimed up to
    half log2 n bits too precise."""
    encrypted, plain, least = SHARED[case]
    params = ckks.Params.create(
        depth=4, log_n=10, security=0, name="insecure_sums", integer_bits=31
    )
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys("powers"), threads=1)
    squares = []
    for _ in range(60):
        v = np.abs(np.random.default_rng().normal(size=params.slots)).clip(0.1, 4)
        y = encrypted(server.bind(client.encrypt(v, magnitude=1.0, peak=4.0)))
        errors = client.decrypt(y) - plain(v)
        assert np.all(np.abs(errors) < ckks.worst_case_error(y.ciphertext))
        squares.append(np.mean(np.square(errors)))
        sent = ckks.Ciphertext.from_bytes(y.ciphertext.to_bytes(), params)
        assert abs(sent.precision_bits - y.precision_bits) < 1e-6
    measured = -0.5 * np.log2(np.mean(squares))
    # Of 60 errors that are one error in all slots, the root mean square is within 0.6 bits of the
    # truth.
    assert measured - least - 0.6 < y.precision_bits < measured + 0.6


def test_sums_after_bytes_know_what_slots_share(world: World) -> None:
    y = world.bind(np.ones(8) / 8, magnitude=0.125, peak=1.0).sum() * np.ones(8)
    sent = world.server.bind(ckks.Ciphertext.from_bytes(y.ciphertext.to_bytes(), world.params))
    assert abs(sent.sum().precision_bits - y.sum().precision_bits) < 1e-6


def test_a_constant_that_was_rounded_has_one_error() -> None:
    """Equal numbers of size 2^20, times a constant with few bits: all slots have the same error,
    and all values, too."""
    params = ckks.Params.create(
        depth=2, log_n=10, scale_bits=30, security=0, name="insecure_constant", integer_bits=31
    )
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys("powers"), threads=1)
    v = np.full(params.slots, 2.0**18)
    x, z = (server.bind(client.encrypt(v, magnitude=2.0**18, peak=2.0**18)) for _ in range(2))
    c = 0.3 * 2.0**-10
    for y, want in (((x * c).sum(), c * v.sum()), ((x * c + z * c).sum(), 2 * c * v.sum())):
        error = abs(float(client.decrypt(y)) - want)
        assert error < 8 * 2.0**-y.precision_bits, (error, 2.0**-y.precision_bits)


def test_what_is_expected_is_at_most_one_and_a_half_bits_above_the_claim(world: World) -> None:
    x, y = (world.bind(np.ones(8) / 4, magnitude=0.25, peak=2.0) for _ in range(2))
    for value in (x, x + y, x + x.rotate(1), x * x * x):
        expected, claimed = value.ciphertext.expected_bits, value.precision_bits
        assert claimed - 1e-9 <= expected <= claimed + 1.5 + 1e-9
    assert x.ciphertext.expected_bits == x.precision_bits
    # x may be normal, and its cube larger than that of signs. Key switching adds noise of its own.
    assert expected > claimed + 0.05


def test_independent_bits_are_those_of_sums_of_a_window(
    world: World, rng: np.random.Generator
) -> None:
    """The errors of a fresh encryption are independent from slot to slot, so sums of its slots have
    this precision."""
    v = rng.uniform(-1, 1, world.params.slots)
    total = world.bind(v, magnitude=UNIFORM).sum(count=64)
    want = sum(np.roll(v, -k) for k in range(64))
    found = total.ciphertext
    noise = float(np.sqrt(np.mean(np.square(world.client.decrypt(total).real - want))))
    assert found.precision_bits <= found.expected_bits <= found.independent_bits
    assert abs(-np.log2(noise) - found.independent_bits) < 0.5
