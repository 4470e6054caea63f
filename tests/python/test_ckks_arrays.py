"""Encrypted arrays of any shape give what NumPy gives, or are refused."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from array_world import Small, small, uniform
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali import ckks


@pytest.fixture
def s() -> Small:
    return small()


SHAPES = [
    (512,),
    (513,),
    (1700,),
    (40, 30),
    (7, 5),
    (3, 700),
    (4, 5, 6),
    (1, 1),
    (2, 100, 3),
    (3, 600, 4),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_comes_back(s: Small, shape: tuple[int, ...]) -> None:
    a = uniform(*shape)
    fresh = s.client.encrypt(a, peak=1)
    assert fresh.shape == shape
    s.check(s.server.bind(fresh), a)
    read = ckks.Ciphertext.from_bytes(fresh.to_bytes(), s.params)
    assert np.abs(s.client.decrypt(read) - a).max() < 1e-6
    assert fresh.nbytes == s.params.ciphertext_bytes(shape)
    s.check(s.server.bind(read) * 2, 2 * a)


def test_a_thousand_rows_take_four_megabytes() -> None:
    params = ckks.Params.create(depth=4, log_n=14)
    fresh = ckks.Client(params, threads=2).encrypt(uniform(1000, 30))
    assert len(fresh.to_bytes()) <= 4e6


def test_memory_is_told_and_refused(s: Small) -> None:
    params = ckks.Params.create(depth=10)
    rows = (5000, 30)
    assert params.ciphertext_bytes(rows, batch=True) > 100 * params.ciphertext_bytes(rows)
    client = ckks.Client(params, threads=1)
    with pytest.raises(jali.LimitExceeded, match="without batch=True"):
        client.encrypt(np.zeros(rows), batch=True)
    with pytest.raises(jali.LimitExceeded, match="max_bytes"):
        s.client.encrypt(np.zeros((40, 30)), max_bytes=1000)
    # These would be 8 GB as float64: they are refused before they are converted.
    huge = np.broadcast_to(np.float32(0.5), (1 << 20, 1 << 10))
    tracemalloc.start()
    try:
        with pytest.raises(jali.LimitExceeded, match="max_bytes"):
            s.client.encrypt(huge)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
    assert s.client.encrypt(np.ones((3, 4)), batch=True).batch == 3


@pytest.mark.parametrize("shape", SHAPES)
def test_arithmetic(s: Small, shape: tuple[int, ...]) -> None:
    a, b = uniform(*shape), uniform(*shape)
    x, y = s.bind(a), s.bind(b)
    s.check(x + y, a + b)
    s.check(x - b, a - b)
    s.check(b - x, b - a)
    s.check(x * y + x * x + 0.5, a * b + a * a + 0.5)
    s.check((x * b - 1) / 4, (a * b - 1) / 4)
    s.check(-(x**3), -(a**3))
    s.check(x / (b + 3), a / (b + 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_along_every_axis(s: Small, shape: tuple[int, ...]) -> None:
    a = uniform(*shape)
    x = s.bind(a)
    for axis in (None, *range(len(shape)), -1):
        s.check(x.sum(axis), a.sum(axis))
        s.check(np.mean(x, axis=axis), a.mean(axis))
        s.check(x.var(axis, keepdims=True), a.var(axis, keepdims=True))
    s.check(np.sum(x * x + 1), (a * a + 1).sum())


def test_what_lies_behind_an_array_does_not_count(s: Small) -> None:
    for shape in ((300,), (40, 30), (5, 3)):
        a = uniform(*shape)
        x = (s.bind(a) + 1) * 1
        s.check(x.sum(), (a + 1).sum())
        s.check(x[1:-1].sum(), (a + 1)[1:-1].sum())
        s.check(x[..., ::2].mean(axis=0), (a + 1)[..., ::2].mean(axis=0))


def test_variance_of_large_numbers(s: Small) -> None:
    salaries = 30_000 + 70_000 * (uniform(300) / 2 + 0.5)
    with pytest.raises(jali.RangeExceeded):
        s.bind(salaries, magnitude=60_000, peak=120_000, level=2).var()
    large = s.bind(salaries, magnitude=60_000, peak=120_000)
    s.check(large.var(), salaries.var())
    scaled = s.bind(salaries / 1e5, magnitude=0.6, peak=1.2)
    s.check(scaled.var() * 1, (salaries / 1e5).var())
    s.check(scaled.var(ddof=1), (salaries / 1e5).var(ddof=1))


def test_indices_slices_and_iteration(s: Small) -> None:
    a = uniform(40, 30)
    x = s.bind(a)
    for key in (
        3,
        -1,
        (2, 5),
        (slice(3, 20), slice(None, None, 3)),
        (..., 4),
        (None, 7),
        slice(None, None, -1),
    ):
        s.check(x[key], a[key])
    rows = list(x)
    assert len(rows) == len(x) == 40
    s.check(rows[17] + rows[3], a[17] + a[3])
    s.check(x[1:] - x[:-1], a[1:] - a[:-1])
    s.check(x[:, 1:] * x[:, :-1], a[:, 1:] * a[:, :-1])
    with pytest.raises(IndexError):
        x[40]
    for fancy in ([1, 2], np.array([True] * 40), "a", True, 1.5):
        with pytest.raises(jali.Unsupported, match="mask"):
            x[fancy]
    with pytest.raises(jali.InvalidArgument, match="no elements"):
        x[5:5]


def test_nothing_is_computed_on_vectors_without_elements(s: Small) -> None:
    a = uniform(40, 30)
    x = s.bind(a)
    assert x.ciphertext.batch == 3
    for part, batch in ((x[3] * x[3], 1), (x[20:] + 1, 2), (x[:, 0] * 0.5, 3), (x[39].sum(), 1)):
        assert part.ciphertext.batch == batch
    s.check(x[20:] * x[:20], a[20:] * a[:20])
    rows = s.bind(uniform(4, 5), batch=True)
    assert (rows[2] * 2).ciphertext.batch == 1


def test_shapes_change_as_numpys(s: Small) -> None:
    a = uniform(8, 16)
    x = s.bind(a)
    s.check(x.T, a.T)
    s.check(x.reshape(4, 2, 16), a.reshape(4, 2, 16))
    s.check(x.reshape(-1), a.reshape(-1))
    s.check(x.T.sum(0) + 1, a.T.sum(0) + 1)
    s.check(np.transpose(x)[2], a.T[2])
    s.check(x[None].squeeze(0), a)
    s.check(x.swapaxes(0, 1), a.swapaxes(0, 1))
    y = s.bind(uniform(7, 5))
    with pytest.raises(jali.InvalidArgument, match="without moving"):
        y.reshape(35)
    with pytest.raises(jali.InvalidArgument):
        x.reshape(3, 3)
    v = uniform(30)
    s.check(s.bind(v).reshape(5, 6) + 1, v.reshape(5, 6) + 1)
    s.check(s.bind(v)[4:20:2], v[4:20:2])


def test_putting_together_and_taking_apart(s: Small) -> None:
    a, b = uniform(40, 30), uniform(40, 30)
    x, y = s.bind(a), s.bind(b)
    s.check(np.stack([x, y * y]), np.stack([a, b * b]))
    s.check(np.stack([x[0], y[0]], axis=1), np.stack([a[0], b[0]], axis=1))
    s.check(np.concatenate([x, y]), np.concatenate([a, b]))
    s.check(np.concatenate([x[:3], y[5:9]]), np.concatenate([a[:3], b[5:9]]))
    v, w = uniform(200), uniform(90)
    s.check(np.concatenate([s.bind(v), s.bind(w)]), np.concatenate([v, w]))
    s.check(np.vstack([x[0], y[:2]]), np.vstack([a[0], b[:2]]))
    s.check(np.hstack([x[:3, :4], y[:3, :7]]), np.hstack([a[:3, :4], b[:3, :7]]))
    s.check(np.hstack([x[0], y[1]]), np.hstack([a[0], b[1]]))
    s.check(np.flip(x, 0) + y, np.flip(a, 0) + b)
    s.check(np.moveaxis(x[None], 0, 2), np.moveaxis(a[None], 0, 2))
    s.check(np.expand_dims(x, 1) * 1, np.expand_dims(a, 1))
    assert x.dtype == a.dtype and (x * 1j).dtype == complex
    for part, expected in zip(np.split(x, 4), np.split(a, 4), strict=True):
        s.check(part, expected)
    with pytest.raises(jali.InvalidArgument, match="shapes"):
        np.stack([x, s.bind(v)])
    with pytest.raises(jali.Unsupported, match=r"numpy\.sort"):
        np.sort(x)
    with pytest.raises(jali.Unsupported, match="dtype"):
        np.sum(x, dtype=np.float32)


def test_keys_for_a_function_of_arrays_are_enough(s: Small) -> None:
    a, w = uniform(40, 30), uniform(30, 9)
    fresh = s.client.encrypt(a, peak=1)
    functions: list[Any] = [
        lambda x: x - x.mean(axis=0),
        lambda x: x - x.mean(axis=1, keepdims=True),
        lambda x: x.var(axis=1),
        lambda x: x @ w,
        lambda x: w.T @ x[3],
        lambda x: x[:5, :6] @ x[:6, :7],
    ]
    for function in functions:
        keys = s.client.evaluation_keys(for_=function, example=fresh)
        assert keys.count <= 19
        server = ckks.Evaluator(s.params, keys, threads=1)
        s.check(function(server.bind(fresh)), function(a))


def test_a_mask_does_not_make_numbers_more_precise(s: Small) -> None:
    """Estimates are averages over all slots, of which a short array leaves few."""
    errors, claims = [], []
    for _ in range(40):
        a = uniform(3)
        y = s.bind(a, peak=1) * [1.0, -1.0, 0.5]
        errors.append(s.client.decrypt(y) - a * [1.0, -1.0, 0.5])
        claims.append(y.precision_bits)
    rms = float(np.sqrt(np.mean(np.square(errors))))
    # Of 120 errors. Without the rule of multiply_numbers it would be 8.
    assert 0.3 < rms / 2.0 ** -max(claims) < 1.7


def test_functions_of_arrays(s: Small) -> None:
    a = uniform(40, 30)
    x = s.bind(a, peak=1)
    got = s.client.decrypt(ckks.functions.sigmoid((-2, 2), error=1e-3)(x))
    assert np.abs(got - 1 / (1 + np.exp(-a))).max() < 2e-3
    s.check(s.server.polynomial(x, [0, 1, 0.5]), a + a * a / 2)
    s.check(s.server.polynomial(x, [1, 1]).sum(axis=1), (a + 1).sum(axis=1))
    larger = ckks.functions.maximum(0.5, error=0.1)(x * 0.5, x[0] * 0.5)
    assert np.abs(2 * s.client.decrypt(larger) - np.maximum(a, a[0])).max() < 0.21
    z = a[:, :5] + 1j * a[:, 5:10]
    s.check(s.bind(z).conj(), z.conj())


def test_what_vectors_alone_have(s: Small) -> None:
    x = s.bind(uniform(40, 30))
    for call in (
        lambda: x.rotate(1),
        lambda: x.with_length(3),
        lambda: s.client.decrypt(x, length=3),
        lambda: s.client.encrypt(np.ones((2, 2, 2)), batch=True),
        lambda: s.client.encrypt(np.ones(600), batch=True),
        lambda: s.client.encrypt(3.0),
        lambda: s.client.encrypt(np.ones((2, 0))),
        lambda: x.sum(2),
        lambda: x.sum((0, 0)),
        lambda: x.sum(True),
        lambda: x.var(ddof=2000),
        lambda: s.server.map(lambda v: v.sum(), [x]),
        lambda: s.server.map(lambda v: 3, [x]),
    ):
        with pytest.raises(jali.Error):
            call()


class Column:
    """As pandas' Series and DataFrame look from here."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def to_numpy(self) -> Any:
        return self.values


def test_columns_of_tables(s: Small) -> None:
    a = uniform(40, 30)
    x = s.bind(Column(a))
    s.check(x, a)
    s.check(x + Column(a[0]), a + a[0])
    s.check(x * Column(a[0]), a * a[0])
    s.check(s.bind(Column(a[0])), a[0])


def test_pandas_goes_in(s: Small) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": [31.0, 40, 52], "pay": [1.0, 2, 3]})
    x = s.bind(table["age"], magnitude=50, peak=100)
    s.check(x.mean(), table["age"].mean())
    y = s.bind(table, magnitude=50, peak=100)
    s.check(y, table.to_numpy())
    s.check(table * y, table.to_numpy() ** 2)
    s.check(table["age"] - x, np.zeros(3))
    s.check(y @ table.T, table.to_numpy() @ table.T.to_numpy())
    s.check(table.T.to_numpy() @ x, table.T.to_numpy() @ table["age"].to_numpy())
    mixed = pandas.DataFrame({"pay": [1.0, 2.5], "member": [True, False]})
    with pytest.raises(jali.InvalidArgument, match=r"dtype object: .* values.astype\(float\)"):
        s.client.encrypt(mixed, peak=100)
    s.check(s.bind(mixed.astype(float), peak=100), [[1, 1], [2.5, 0]])
    for product in (lambda: table.T @ x, lambda: table["age"] @ x, lambda: table.T.dot(x)):
        with pytest.raises(jali.Unsupported, match=r"write .* df.to_numpy\(\) @ x"):
            product()


def test_scikit_learn_goes_in(s: Small) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    iris = datasets.load_iris()
    x = s.bind(iris.data, magnitude=4, peak=10)
    s.check(x.mean(axis=0), iris.data.mean(axis=0))
    s.check(x[:50].var(axis=0), iris.data[:50].var(axis=0))


def test_views_in_bytes_are_checked(s: Small) -> None:
    """A view that leaves the slots is refused, whoever wrote it."""
    x = s.bind(uniform(40, 30))
    core = s.server._core
    whole = core.with_view(x._settled(), None, False)
    for axes, first, period in (
        ([(40, 32), (30, 1)], 1100, 0),
        ([(2, -1)], 0, 0),
        ([(3, 0)], 0, 0),
        ([(1 << 31, 1)], 0, 0),
        ([(1 << 16, 1), (1 << 16, 0)], 0, 0),
        ([(4, 1)], 0, 4),
        ([(1, 1)] * 17, 0, 0),
    ):
        with pytest.raises(jali.InvalidArgument, match="view"):
            core.with_view(whole, (axes, first, period), False)


# --- any program ---------------------------------------------------------------------------------

SIDES = st.integers(1, 24)
PROGRAM_SHAPES = st.lists(SIDES, min_size=1, max_size=3).filter(lambda s: math.prod(s) <= 1500)


@st.composite
def programs(draw: Any) -> tuple[tuple[int, ...], list[tuple[str, Any]]]:
    """A shape and some operations, whose arguments are drawn as fractions of what the shape
    allows."""
    shape = tuple(draw(PROGRAM_SHAPES))
    names = [
        "slice",
        "index",
        "T",
        "row",
        "column",
        "sum",
        "mean",
        "square",
        "scalar",
        "self",
        "shift",
        "array",
        "reshape",
    ]
    steps = draw(
        st.lists(st.tuples(st.sampled_from(names), st.integers(0, 999)), min_size=1, max_size=5)
    )
    return shape, steps


def apply(name: str, n: int, x: Any, a: Any, s: Small, make: Any) -> tuple[Any, Any]:
    """One operation on both the encrypted and the clear array."""
    if a.ndim == 0 and name not in ("square", "scalar", "self", "array"):
        return x, a
    axis = n % max(a.ndim, 1)
    if name == "slice":
        count = a.shape[axis]
        start = n % count
        key = (slice(None),) * axis + (slice(start, None, 1 + n % 3),)
        return x[key], a[key]
    if name == "index":
        return x[n % len(a)], a[n % len(a)]
    if name == "T":
        return x.T, a.T
    if name in ("row", "column"):
        other = make(a.shape[-1:] if name == "row" else (*a.shape[:-1], 1))
        y = s.bind(other, peak=1)
        return (x * y, a * other) if n % 2 else (x + y, a + other)
    if name == "sum":
        return x.sum(axis, keepdims=bool(n % 2)) * 0.25, a.sum(axis, keepdims=bool(n % 2)) * 0.25
    if name == "mean":
        return x.mean(axis), a.mean(axis)
    if name == "square":
        return x * x, a * a
    if name == "scalar":
        return (x + 0.5, a + 0.5) if n % 2 else (x * 0.5, a * 0.5)
    if name == "self":
        return x - x * 0.5, a * 0.5
    if name == "shift":
        if a.shape[axis] < 2:
            return x, a
        one = (slice(None),) * axis
        after, before = (*one, slice(1, None)), (*one, slice(None, -1))
        return x[after] + x[before], a[after] + a[before]
    if name == "array":
        other = make(a.shape if n % 3 else (1 + n % 4, *a.shape))
        return (x * other, a * other) if n % 2 else (x - other, a - other)
    return x.reshape(-1, a.shape[0]), a.reshape(-1, a.shape[0])


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(0, 2**32 - 1))
def test_random_programs_agree_with_numpy_or_are_refused(
    program: tuple[tuple[int, ...], list[tuple[str, int]]], seed: int
) -> None:
    s = small()
    rng = np.random.default_rng(seed)

    def make(shape: tuple[int, ...]) -> Any:
        return rng.uniform(-1, 1, shape)

    shape, steps = program
    a = make(shape)
    x = s.bind(a, peak=1)
    for name, n in steps:
        try:
            x, a = apply(name, n, x, a, s, make)
        except (jali.Unsupported, jali.DepthExhausted, jali.RangeExceeded):
            return
        except jali.InvalidArgument as error:
            assert "without moving" in str(error)
            return
    s.check(x, a)


def test_what_repeats_is_not_added_to_its_own_copies() -> None:
    """A vector that repeats every 4 slots meets rows that lie 3 apart."""
    params = ckks.Params.create(depth=3, scale_bits=36, log_n=10, security=0, name="insecure_rows")
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys("powers"))
    rng = np.random.default_rng()
    v, w = rng.uniform(-1, 1, 6), rng.uniform(-1, 1, (3, 6))
    x = server.bind(client.encrypt(v, peak=1))
    result = x.reshape(2, 3) - w @ x
    assert np.allclose(client.decrypt(result), v.reshape(2, 3) - w @ v, atol=1e-4)


@pytest.mark.parametrize("shape", [(5,), (3, 5)])
def test_fractions_and_ranges_are_operands(s: Small, shape: tuple[int, ...]) -> None:
    a, third, five = uniform(*shape), Fraction(1, 3), range(1, 6)
    x, f, r = s.bind(a), 1 / 3, np.arange(1, 6)
    for got, expected in (
        (x + third, a + f),
        (third + x, f + a),
        (x - third, a - f),
        (third - x, f - a),
        (x * third, a * f),
        (third * x, f * a),
        (x / third, a / f),
        (x + five, a + r),
        (five + x, r + a),
        (x - five, a - r),
        (five - x, r - a),
        (x * five, a * r),
        (five * x, r * a),
        (x / five, a / r),
        (x @ five, a @ r),
    ):
        s.check(got, expected)
    assert (x * Fraction(4, 2)).level == x.level  # a whole number


def test_what_is_advised_for_complex_vectors_works(s: Small) -> None:
    a, w = uniform(5) + 1j * uniform(5), uniform(2, 5)
    x = s.bind(a)
    with pytest.raises(jali.InvalidArgument, match=r"write \(matrix \* x\)\.sum\(-1\)"):
        w @ x
    s.check((w * x).sum(-1), w @ a)


def test_what_is_advised_for_complex_matrices_works(s: Small) -> None:
    a, matrix = uniform(5), uniform(2, 5) + 1j * uniform(2, 5)
    x = s.bind(a)
    with pytest.raises(
        jali.Unsupported, match=r"write matrix.real @ x \+ 1j \* \(matrix.imag @ x\)"
    ):
        matrix @ x
    s.check(matrix.real @ x + 1j * (matrix.imag @ x), matrix @ a)


def test_variance_of_complex_numbers() -> None:
    params = ckks.Params.create(depth=3, scale_bits=36, log_n=10, security=0, name="insecure_rows")
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys("powers", conjugate=True))
    v = np.random.default_rng().uniform(-1, 1, (4, 6, 2)) @ [1, 1j]
    x = server.bind(client.encrypt(v, peak=2))
    assert np.allclose(client.decrypt(x.var(axis=1)), v.var(axis=1), atol=1e-4)
