"""Named functions at the Python face: facts told beforehand, errors that hold, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali import ckks
from jali.ckks import functions

DEPTH = 12


class Deep:
    """One client and server with levels for every function."""

    def __init__(self) -> None:
        self.params = ckks.Params.create(
            depth=DEPTH, scale_bits=45, log_n=10, security=0, name="insecure_functions"
        )
        self.client = ckks.Client(self.params, threads=1)
        best = functions.argmax(4, self.params.slots, bound=0.5, gap=0.25, error=0.2)
        self.argmax = best
        self.server = ckks.Evaluator(
            self.params, self.client.evaluation_keys(rotations=best.rotations), threads=1
        )

    def bind(self, values: Any, **options: Any) -> ckks.EncryptedArray:
        return self.server.bind(self.client.encrypt(values, **options))


@pytest.fixture(scope="module")
def deep() -> Deep:
    return Deep()


def erf(x: float) -> float:
    return math.erf(x)


#: Made when they are tested: what a module holds is still there when the interpreter ends.
CASES: list[tuple[Callable[[], functions.Function], Callable[[float], float]]] = [
    (lambda: functions.sigmoid(error=1e-3), lambda x: 1 / (1 + math.exp(-x))),
    (lambda: functions.tanh((-2, 2), error=1e-3), math.tanh),
    (lambda: functions.gelu((-3, 3), degree=14), lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    (lambda: functions.silu((-4, 4), depth=5), lambda x: x / (1 + math.exp(-x))),
    (lambda: functions.exp(error=1e-4), math.exp),
    (lambda: functions.log((0.5, 2), error=1e-3), math.log),
    (lambda: functions.inverse((0.5, 2), error=1e-4), lambda x: 1 / x),
    (lambda: functions.inverse((0.2, 1), error=1e-3, steps=2), lambda x: 1 / x),
    (lambda: functions.inverse_sqrt((0.5, 2), error=1e-3), lambda x: x**-0.5),
    (lambda: functions.inverse_sqrt((0.5, 2), error=1e-5, steps=1), lambda x: x**-0.5),
    (lambda: functions.sqrt((0.25, 1), error=1e-3), math.sqrt),
    (lambda: functions.sqrt((0.25, 1), error=1e-4, steps=1), math.sqrt),
    (lambda: functions.sign(gap=0.2, error=0.05), lambda x: math.copysign(1, x)),
    (lambda: functions.step(0.5, gap=0.1, error=0.05), lambda x: float(x > 0)),
    (lambda: functions.relu(1.0, error=0.05), lambda x: max(x, 0)),
    (lambda: functions.absolute(0.5, error=0.05), abs),
]


@pytest.mark.parametrize(("make", "exact"), CASES)
def test_a_function_is_as_exact_and_as_deep_as_it_says(
    deep: Deep,
    rng: np.random.Generator,
    make: Callable[[], functions.Function],
    exact: Callable[[float], float],
) -> None:
    f = make()
    low, high = f.interval
    v = np.concatenate([rng.uniform(low, high, 300), [low, high]])
    v = v[np.abs(v) >= f.gap]
    truth = np.array([exact(float(t)) for t in v])
    assert np.abs(f(v) - truth).max() <= f.max_error + 1e-13
    peak = max(abs(low), abs(high))
    x = deep.bind(v, peak=peak)
    y = f(x, within=(low, high))
    assert x.level - y.level == f.depth
    assert y.shape == x.shape
    got = deep.client.decrypt(y)
    assert np.abs(got - f(v)).max() < 1e-5
    assert np.abs(got - truth).max() <= f.max_error + 1e-5
    assert f.name in repr(f) and f.multiplications >= 0
    if f.polynomial is not None:
        assert f.polynomial.interval == f.interval
        same = deep.server.polynomial(x, f.polynomial, within=f.interval)
        assert np.abs(deep.client.decrypt(same) - got).max() < 1e-5


def test_what_is_asked_for_is_what_is_made() -> None:
    f = functions.sigmoid((-6, 6), error=1e-5)
    assert f.max_error <= 1e-5
    assert f.polynomial is not None and f.polynomial.max_error == f.max_error
    assert functions.sigmoid((-6, 6), degree=f.polynomial.degree - 2).max_error > 1e-5
    assert functions.sigmoid((-6, 6), depth=5).depth == 5
    assert functions.sigmoid((-6, 6)).max_error <= 2**-20
    assert functions.sign(gap=0.01, error=0.01).depth > functions.sign(gap=0.1, error=0.01).depth
    least = functions.inverse((0.01, 1), error=1e-3)
    steps = functions.inverse((0.01, 1), error=1e-3, steps=3)
    assert least.depth < steps.depth and least.multiplications > steps.multiplications


def test_numbers_that_may_lie_outside_are_refused(deep: Deep) -> None:
    f = functions.sigmoid((-8, 8), error=1e-3)
    with pytest.raises(jali.InvalidArgument, match=r"\[-23, 23\].*sigmoid.*\[-8, 8\].*peak="):
        f(deep.bind([-23.0], magnitude=10, peak=23))
    with pytest.raises(jali.InvalidArgument, match=r"within=\(0.5, 4\)"):
        functions.inverse((0.5, 4), error=1e-2)(deep.bind([1.0, 2.0], peak=4))
    with pytest.raises(jali.InvalidArgument, match="complex"):
        f(deep.bind([1j]))
    for within in ((1, -1), (math.nan, 1), 3, "ab", (1, 2, 3)):
        with pytest.raises(jali.InvalidArgument, match="within"):
            f(deep.bind([1.0]), within=within)
    with pytest.raises(
        jali.DepthExhausted, match=r"sigmoid takes \d+ levels, the ciphertext has 1"
    ):
        f(deep.bind([1.0], level=1))
    with pytest.raises(jali.InvalidArgument, match="encrypted array or real numbers"):
        f("text")
    with pytest.raises(jali.InvalidArgument, match="bound to"):
        functions.maximum(error=0.1)(
            deep.bind([0.5], peak=1),
            ckks.Evaluator(deep.params).bind(deep.client.encrypt([0.5], peak=1)),
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda: functions.log((0, 1)),
        lambda: functions.log((-1, 1)),
        lambda: functions.inverse((-1, 1)),
        lambda: functions.inverse((0, 1)),
        lambda: functions.sqrt((0, 1)),
        lambda: functions.inverse_sqrt((-2, -1)),
        lambda: functions.sigmoid((1, -1)),
        lambda: functions.sigmoid(8),  # type: ignore[arg-type]
        lambda: functions.sigmoid((-math.inf, 1)),
        lambda: functions.sigmoid(error=0),
        lambda: functions.sigmoid(error="small"),  # type: ignore[arg-type]
        lambda: functions.sigmoid(error=1e-3, degree=7),
        lambda: functions.sigmoid(degree=-1),
        lambda: functions.sigmoid(degree=10**6),
        lambda: functions.sigmoid(depth=0),
        lambda: functions.sigmoid(depth=10**9),
        lambda: functions.exp((-700, 700)),
        lambda: functions.exp((0, 1e300)),
        lambda: functions.sign(gap=0),
        lambda: functions.sign(gap=1),
        lambda: functions.sign(gap=0.1, error=math.nan),
        lambda: functions.sign(1e400, gap=0.1),
        lambda: functions.relu(0),
        lambda: functions.maximum(-1),
        lambda: functions.inverse((1, 2), steps=99),
        lambda: functions.argmax(1, 512, gap=0.1),
        lambda: functions.argmax(400, 512, gap=0.1),
        lambda: functions.argmax(4, 500, gap=0.1),
        lambda: functions.argmax(4, 512, gap=-1),
        lambda: functions.maximum()(1.0, 2.0),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call: Callable[[], object]) -> None:
    with pytest.raises(jali.InvalidArgument) as refused:
        call()
    assert len(str(refused.value).split()) > 4


def test_the_larger_and_the_smaller(deep: Deep, rng: np.random.Generator) -> None:
    a, b = rng.uniform(-0.5, 0.5, (2, 200))
    b[:20] = a[:20]
    x, y = (deep.bind(v, magnitude=0.3, peak=0.5) for v in (a, b))
    for make, exact in ((functions.maximum, np.maximum), (functions.minimum, np.minimum)):
        f = make(0.5, error=0.02)
        z = f(x, y)
        assert z.level == DEPTH - f.depth
        assert (
            np.abs(deep.client.decrypt(z) - exact(a, b)).max() <= f.max_error + 1e-5 <= 0.02 + 1e-5
        )
    with pytest.raises(jali.InvalidArgument, match="lengths"):
        functions.maximum(0.5)(x, deep.bind([0.1, 0.2], magnitude=0.2, peak=0.5))
    full = deep.bind(np.full(deep.params.slots, 0.1), magnitude=0.2, peak=0.5)
    for first, second in ((x, full), (full, x)):
        with pytest.raises(jali.InvalidArgument, match="lengths"):
            functions.minimum(0.5)(first, second)


def test_the_largest_of_several(deep: Deep) -> None:
    f = deep.argmax
    assert f.count == 4 and f.gap == 0.25 and f.bound == 0.5
    for winner in range(4):
        scores = np.array([-0.3, 0.1, 0.0, -0.5])
        scores[winner] = 0.45
        y = f(deep.bind(scores, magnitude=0.3, peak=0.5))
        assert y.level == DEPTH - f.depth and y.shape == (4,)
        assert np.abs(deep.client.decrypt(y) - np.eye(4)[winner]).max() <= f.max_error + 1e-5
    with pytest.raises(jali.InvalidArgument, match="4 numbers"):
        f(deep.bind([0.1, 0.2], magnitude=0.2, peak=0.5))


def test_a_batch_and_a_short_vector(deep: Deep) -> None:
    f = functions.inverse((0.5, 4), error=1e-2)
    v = np.array([[0.5, 1.0, 4.0], [2.0, 3.0, 0.7]])
    for batch in (True, False):
        y = f(deep.bind(v, magnitude=2, peak=4, batch=batch), within=(0.5, 4))
        assert np.abs(deep.client.decrypt(y) - 1 / v).max() <= f.max_error + 1e-5


def test_what_lies_beside_the_numbers_is_masked(deep: Deep) -> None:
    """A function whose interval does not hold 0 takes slices, and vectors with anything behind
    them, at one level more."""
    f = functions.inverse((0.5, 4), error=1e-2)
    v = np.array([[0.5, 1.0, 3.0], [2.0, 2.5, 0.7]])
    table = deep.bind(v, magnitude=2, peak=3.0)
    shifted = deep.bind(v - 1, magnitude=2, peak=3.0, batch=True) + 1.0
    for x, expected in ((table[:, :2], v[:, :2]), (table.T[1], v[:, 1]), (shifted, v)):
        y = f(x, within=(0.5, 4))
        assert y.level == x.level - f.depth - 1 and y.shape == expected.shape
        assert np.abs(deep.client.decrypt(y) - 1 / expected).max() <= f.max_error + 1e-5
        z = deep.server.polynomial(
            x, ckks.Polynomial([0.25, 0.5], "chebyshev", (0.5, 4)), within=(0.5, 4)
        )
        assert np.abs(deep.client.decrypt(z) - 0.25 - 0.5 * (expected - 2.25) / 1.75).max() < 1e-5
    whole = f(table, within=(0.5, 4))
    assert whole.level == table.level - f.depth  # zeros lie beside it


def test_what_is_said_of_a_slice_alone_masks_what_lies_beside_it(deep: Deep) -> None:
    """The polynomials of larger numbers that are hidden beside it would be beyond all bounds."""
    f = functions.sign(gap=0.1, error=0.1)
    v = np.array([[0.5, -1.0, 3.0], [-0.75, 0.25, -4.0]])
    table = deep.bind(v, magnitude=4, peak=4.0)
    batch = deep.bind(v, magnitude=4, peak=4.0, batch=True)
    for x, expected in (
        (table[:, :2], v[:, :2]),
        (table.T[1], v[:, 1]),
        (table[::-1, 1::-1], v[::-1, 1::-1]),
        (table[0, :2].reshape(2, 1), v[0, :2].reshape(2, 1)),
        (batch[:, :2], v[:, :2]),
    ):
        y = f(x, within=(-1, 1))
        assert y.level == x.level - f.depth - 1 and y.shape == expected.shape
        assert np.abs(deep.client.decrypt(y) - np.sign(expected)).max() <= f.max_error + 1e-5
        z = deep.server.polynomial(x, ckks.Polynomial([0, 1], "chebyshev", (-1, 1)), within=(-1, 1))
        assert np.abs(deep.client.decrypt(z) - expected).max() < 1e-5
    wide = functions.sigmoid((-8, 8), degree=3)
    small = deep.bind(v[:, :2], magnitude=1, peak=4.0)
    for x, expected, within in (
        (small, v[:, :2], (-1, 1)),  # zeros lie beside it
        (small.T.reshape(2, 2), v[:, :2].T, (-1, 1)),
        (batch[1:], v[1:], (-4, 0.25)),
        (table[:, :2], v[:, :2], (-1, 4)),  # says no more than the peak
        (table[:, :2], v[:, :2], None),
    ):
        y = wide(x, within=within)
        assert y.level == x.level - wide.depth
        assert np.abs(deep.client.decrypt(y) - wide(expected)).max() < 1e-5


def test_the_largest_of_an_array() -> None:
    scores = np.array([[-0.2, 0.2, 0.0, -0.4], [0.5, -0.1, -0.4, 0.0], [-0.3, -0.5, 0.0, 0.25]])
    params = ckks.Params.create(
        depth=16, scale_bits=45, log_n=10, security=0, name="insecure_functions"
    )
    client, slots = ckks.Client(params, threads=1), params.slots
    server = ckks.Evaluator(params, client.evaluation_keys(rotations="powers"), threads=1)
    x, batch = (server.bind(client.encrypt(scores, peak=0.5, batch=b)) for b in (False, True))

    def made(count: int) -> functions.ArgMax:
        return functions.argmax(count, slots, bound=0.5, gap=0.2, error=0.2)

    def one_at(values: np.ndarray, axis: int | None) -> np.ndarray:
        if axis is None:
            return (values == values.max()).astype(float)
        return (values == values.max(axis=axis, keepdims=True)).astype(float)

    for value, expected, axis, count in (
        (x, scores, 1, 4),
        (x, scores, -1, 4),
        (x[:, ::2], scores[:, ::2], 1, 2),
        (x, scores, None, 12),
        (x[1], scores[1], None, 4),
        (x[1:, 1:].T, scores[1:, 1:].T, None, 6),
        (batch, scores, None, 4),
        (batch, scores, 1, 4),
    ):
        f = made(count)
        y = f(value, axis)
        assert y.level >= value.level - f.depth - 2 and y.shape == expected.shape
        by = 1 if value is batch else axis
        assert np.abs(client.decrypt(y) - one_at(expected, by)).max() < 0.2 + 1e-3
    for f, axis, words in (
        (made(4), 0, "has 3 along axis 0"),
        (made(4), None, "has 12 in all"),
        (made(4), 2, "out of range"),
    ):
        with pytest.raises(jali.InvalidArgument, match=words):
            f(x, axis)


def test_recorded_like_any_other_operation(deep: Deep) -> None:
    f = functions.tanh((-1, 1), error=1e-2)
    x = deep.bind([0.25, -0.5], magnitude=0.5, peak=1)
    recorded = deep.server.capture(lambda a: f(a), x)
    assert np.abs(deep.client.decrypt(recorded(x)) - f([0.25, -0.5])).max() < 1e-5


def test_every_function_is_documented() -> None:
    for name in functions.__all__:
        assert getattr(functions, name).__doc__, name
