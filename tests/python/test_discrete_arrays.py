"""Arrays of exact integers follow NumPy's rules, and every result is exact or refused."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from discrete_world import World, integers, world

import jali
from jali import discrete
from jali.discrete.values import in_range


@pytest.fixture
def w() -> World:
    return world()


@pytest.fixture(params=["bgv", "bfv"])
def either(request: pytest.FixtureRequest) -> World:
    return world(multiplication=request.param)


# --- encryption -----------------------------------------------------------------------------------

TYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_integers_comes_back(w: World, dtype: Any, rng: np.random.Generator) -> None:
    if dtype is np.bool_:
        values, ends = rng.integers(0, 2, 100).astype(bool), (0, 1)
    else:
        info = np.iinfo(dtype)
        fits = info.max - info.min < w.params.modulus
        ends = (info.min, info.max) if fits else (w.params.low, w.params.high)
        values = integers(rng, max(ends[0], info.min), ends[1], 100).astype(dtype)
    ciphertext = w.client.encrypt(values)
    assert ciphertext.range == ends
    back = w.client.decrypt(ciphertext)
    assert back.dtype == np.int64 and (back == values).all()


@pytest.mark.parametrize(
    "shape",
    [
        (1,),
        (5,),
        (512,),
        (513,),
        (1024,),
        (1025,),
        (3, 7),
        (2, 600),
        (4, 3, 5),
        (1, 1, 1),
        (1500, 2),
    ],
)
def test_every_shape_comes_back(w: World, shape: Any, rng: np.random.Generator) -> None:
    values = integers(rng, -3, 4, shape)
    x = w.bind(values, range=(-3, 4))
    assert x.shape == shape and x.ndim == len(shape) and x.size == values.size
    assert (w.shown(x) == values).all()
    assert (w.shown(x + x) == 2 * values).all()


def test_lists_and_tables_are_taken(w: World) -> None:
    assert w.client.decrypt(w.client.encrypt([3, -1])).tolist() == [3, -1]
    assert w.client.decrypt(w.client.encrypt(range(4))).tolist() == [0, 1, 2, 3]
    pandas = pytest.importorskip("pandas")
    assert w.client.decrypt(w.client.encrypt(pandas.Series([3, -1]))).tolist() == [3, -1]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([0.5], "rint"),
        (np.ones(2, np.complex64), "rint"),
        (["a"], "integers"),
        ([2**70], "64 bits"),
        (np.array([2**64 - 1], np.uint64), "2\\*\\*63"),
        ([], "at least one"),
        (5, "0 dimensions"),
        ([[1], [1, 2]], "equal lengths"),
        (None, "integers"),
        ([40000], "range"),
        (np.ma.masked_array([1, 2], [0, 1]), "masked"),
    ],
)
def test_what_is_no_array_of_integers_is_refused(w: World, values: Any, says: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=says):
        w.client.encrypt(values)


def test_the_advice_for_floats_runs(w: World) -> None:
    values = np.array([0.5, -1.25, 3.0])
    scaled = np.rint(values * 2**8).astype(np.int64)
    x = w.bind(scaled, range=(-1024, 1024))
    assert (w.shown(x + x) / 2**8 == 2 * values).all()


def test_numbers_outside_of_a_declared_range_are_refused_and_not_told(w: World) -> None:
    with pytest.raises(jali.InvalidArgument) as caught:
        w.client.encrypt([7, 12345], range=(-10, 10))
    assert "12345" not in str(caught.value)
    for wrong in ((3, 2), (1,), (1, 2, 3), "ab", (0.5, 2), (True, 2), 5, (0, 2**64)):
        with pytest.raises(jali.InvalidArgument, match="range"):
            w.client.encrypt([0], range=wrong)
    with pytest.raises(jali.RangeExceeded):
        w.client.encrypt([0], range=(0, 65537))
    assert w.client.encrypt([0], range=(0, 65536)).range == (0, 65536)


def test_a_range_includes_the_zeros_that_fill_slots_up(w: World) -> None:
    assert w.client.encrypt([5, 6], range=(5, 6)).range == (0, 6)
    assert w.client.encrypt(np.full(1024, 5), range=(5, 6)).range == (5, 6)


def test_memory_is_bounded_before_work(w: World) -> None:
    with pytest.raises(jali.LimitExceeded, match="max_bytes"):
        w.client.encrypt(np.zeros(3000, int), max_bytes=1000)


def test_others_encrypt_by_the_public_key(w: World, rng: np.random.Generator) -> None:
    other = discrete.Encryptor(w.client.public_key(), threads=1)
    values = integers(rng, -100, 100, (3, 40))
    ciphertext = other.encrypt(values, range=(-100, 100))
    assert ciphertext.key_id == w.client.key_id == other.key_id
    assert (w.client.decrypt(w.server.bind(ciphertext) * 2) == 2 * values).all()


# --- sums and products ----------------------------------------------------------------------------

SHAPES = [
    ((6,), (6,)),
    ((3, 5), (3, 5)),
    ((3, 5), (5,)),
    ((4, 1), (1, 3)),
    ((600,), (600,)),
    ((2, 3, 4), (4,)),
]


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_arithmetic_of_two_arrays(
    either: World, name: str, shapes: Any, rng: np.random.Generator
) -> None:
    operation = getattr(operator, name)
    a, b = (integers(rng, -11, 13, shape) for shape in shapes)
    x, y = (either.bind(v, range=(-11, 13)) for v in (a, b))
    expected = operation(a, b)
    for result in (operation(x, y), operation(x, b), operation(a, y)):
        assert result.shape == expected.shape
        assert (either.shown(result) == expected).all()
        low, high = result.range
        assert low <= expected.min() and expected.max() <= high


@pytest.mark.parametrize("number", [0, 1, -1, 7, np.int8(-3), np.uint16(9), True, np.array(4)])
def test_arithmetic_with_numbers(w: World, number: Any, rng: np.random.Generator) -> None:
    a = integers(rng, -100, 100, (3, 5))
    x, n = w.bind(a, range=(-100, 100)), int(number)
    for result, expected in (
        (x + number, a + n),
        (number + x, a + n),
        (x - number, a - n),
        (number - x, n - a),
        (x * number, a * n),
        (number * x, a * n),
    ):
        assert (w.shown(result) == expected).all()
    assert (w.shown(-x) == -a).all() and +x is x


def test_powers_and_depth(either: World, rng: np.random.Generator) -> None:
    a = integers(rng, -3, 3, 20)
    x = either.bind(a, range=(-3, 3))
    for n in range(1, 9):
        power = x**n
        assert (either.shown(power) == a**n).all()
        assert power.noise_budget > 0
    assert (x**2).range == (0, 9)  # a square is not negative
    for wrong in (0, -1, 0.5, True, "2"):
        with pytest.raises(jali.InvalidArgument, match="whole number from 1"):
            x**wrong
    y = x.wrap() if either.params.multiplication == "bgv" else x
    if either.params.multiplication == "bgv":
        with pytest.raises(jali.DepthExhausted, match="depth"):
            y**1000


def test_operations_that_leave_the_range_are_refused_before_they_compute(w: World) -> None:
    x = w.bind([20000, -20000], range=(-20000, 20000))
    before = w.server.counters()
    for operation in (
        lambda: x + x,
        lambda: x - x,
        lambda: x * x,
        lambda: x * 2,
        lambda: x + np.array([30000, 0]),
        lambda: x * np.array([2, 1]),
        lambda: x.sum(),
        lambda: np.full((2, 2), 2) @ x,
        lambda: x**3,
    ):
        with pytest.raises(jali.RangeExceeded, match=r"x\.wrap\(\)"):
            operation()
    after = w.server.counters()
    counted = ("additions", "products", "plain_products", "rotations")
    assert [before[name] for name in counted] == [after[name] for name in counted]


def centred(values: Any, modulus: int) -> Any:
    """The numbers nearest to 0 that are the same modulo an odd number."""
    half = modulus // 2
    return np.array([(int(v) + half) % modulus - half for v in np.ravel(values)]).reshape(
        np.shape(values)
    )


def test_arithmetic_wraps_where_it_is_meant(either: World, rng: np.random.Generator) -> None:
    t = either.params.modulus
    a = integers(rng, -32768, 32767, 30).astype(object)
    b = integers(rng, -32768, 32767, 30).astype(object)
    x, y = (either.bind(v.astype(np.int64), wrap=True) for v in (a, b))
    clear = b.astype(np.int64)
    for result, expected in (
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x * clear, a * b),
        (x + clear, a + b),
        (clear - x, b - a),
        (x * 12345, a * 12345),
        (x * (t * 2**80 + 3), a * 3),
        (-x, -a),
        (x * x * y, a * a * b),
        (x.sum(), a.sum()),
        (either.bind(a.astype(np.int64)).sum(wrap=True), a.sum()),
        (either.bind(a.astype(np.int64)).wrap() * y, a * b),
    ):
        assert result.wraps and result.range == (either.params.low, either.params.high)
        assert (either.shown(result) == centred(expected, t)).all()


def test_the_ends_of_the_range_are_exact(w: World) -> None:
    low, high = w.params.low, w.params.high
    ends = np.array([low, high, 0, -1])
    x = w.bind(ends)
    assert (w.shown(x) == ends).all()
    assert (w.shown(x + 0) == ends).all() and (w.shown(x * -1) == -ends).all()
    unsigned = w.bind(np.array([0, 65536]), range=(0, 65536))
    assert w.shown(unsigned).tolist() == [0, 65536]
    assert w.shown(-unsigned).tolist() == [0, -65536]


# --- views ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), (700,), (1024,), (6, 5), (3, 300), (3, 4, 5), (5, 600)])
def test_slices_sums_and_shapes(w: World, shape: Any, rng: np.random.Generator) -> None:
    a = integers(rng, -9, 9, shape)
    x = w.bind(a, range=(-9, 9))
    assert (w.shown(x[1:]) == a[1:]).all() and (w.shown(x[-1]) == a[-1]).all()
    assert (w.shown(x[::2]) == a[::2]).all() and (w.shown(x.T) == a.T).all()
    assert (w.shown(x[..., None]) == a[..., None]).all()
    assert w.shown(x.sum()) == a.sum()
    for axis in range(a.ndim):
        assert (w.shown(x.sum(axis)) == a.sum(axis)).all()
        assert (w.shown(np.sum(x, axis=axis, keepdims=True)) == a.sum(axis, keepdims=True)).all()
    part = x[1:3] * 2 + 1
    assert (w.shown(part) == a[1:3] * 2 + 1).all()
    low, high = x.sum().range
    assert (low, high) == (-9 * a.size, 9 * a.size)


def test_parts_of_arrays_meet(w: World, rng: np.random.Generator) -> None:
    a = integers(rng, -9, 9, (4, 6))
    x = w.bind(a, range=(-9, 9))
    assert (w.shown(x[0] * x[1]) == a[0] * a[1]).all()
    assert (w.shown(x[:, 1] + x[:, 3]) == a[:, 1] + a[:, 3]).all()
    assert (w.shown(x[1:3, 2:5] - x[0:2, 0:3]) == a[1:3, 2:5] - a[0:2, 0:3]).all()
    assert (w.shown(x.T[2] * x[:, 2]) == a[:, 2] ** 2).all()


def test_arrays_of_several_ciphertexts_meet(w: World, rng: np.random.Generator) -> None:
    a = integers(rng, -9, 9, 2000)
    x = w.bind(a, range=(-9, 9))
    assert x.ciphertext.rows == 4
    assert (w.shown(x[:500] + x[512:1012]) == a[:500] + a[512:1012]).all()
    assert (w.shown(x[:500] * x[1024:1524]) == a[:500] * a[1024:1524]).all()
    assert (w.shown(x[3:20] + x[1500:1517]) == a[3:20] + a[1500:1517]).all()


@pytest.mark.parametrize("n", [5, 512, 900, 1024])
@pytest.mark.parametrize("steps", [0, 1, -1, 3, 511, 512, 513, -600, 1024, 5000])
def test_rotations_are_over_all_slots(
    w: World, n: int, steps: int, rng: np.random.Generator
) -> None:
    a = integers(rng, -9, 9, n)
    all_slots = np.zeros(1024, int)
    all_slots[:n] = a
    moved = w.bind(a, range=(-9, 9)).rotate(steps)
    assert moved.range == (-9, 9)
    assert (w.shown(moved) == np.roll(all_slots, -steps)[:n]).all()


@pytest.mark.parametrize("steps", [1, -1, 2, 511, 512, 513, -600])
def test_no_number_behind_a_vector_is_rotated_into_it(
    w: World, steps: int, rng: np.random.Generator
) -> None:
    a = integers(rng, 1, 9, (2, 512))
    x = w.bind(a, range=(1, 9))
    sums = w.bind(a[0, :8], range=(0, 9))
    for vector, expected in (
        (sums + 5, a[0, :8] + 5),  # the slots beside it are 5, too
        (sums[:3].with_range(1, 9), a[0, :3]),
        (w.server.bind(x[0].ciphertext), a[0]),  # the other row holds another vector
        (x[0] + 1, a[0] + 1),
    ):
        n = len(expected)
        all_slots = np.zeros(1024, int)
        all_slots[:n] = expected
        moved = vector.rotate(steps)
        assert moved.range[0] <= 0
        assert (w.shown(moved) == np.roll(all_slots, -steps)[:n]).all()


@pytest.mark.parametrize(
    ("shape", "axis", "high"),
    [(600, None, 109), (513, None, 127), (1000, 0, 65), ((3, 600), 1, 109), ((5, 7), None, 1872)],
)
def test_sums_are_refused_for_their_own_range_alone(
    w: World, shape: Any, axis: int | None, high: int, rng: np.random.Generator
) -> None:
    a = integers(rng, 0, high, shape)
    x = w.bind(a, range=(0, high))
    total = x.sum(axis)
    count = a.size if axis is None else a.shape[axis]
    assert total.range == (0, count * high) and count * (high + 1) > 65537
    assert (w.shown(total) == a.sum(axis)).all()
    with pytest.raises(jali.RangeExceeded):
        (x + 1).with_range(0, high + 1).sum(axis)


def test_zeros_that_were_claimed_say_nothing_of_the_slots_beside(w: World) -> None:
    x = w.bind([0, 0, 0, 7, 8], range=(0, 9))
    zeros = x[:3].with_range(0, 0)
    assert w.shown((zeros + zeros).sum()) == 0
    assert w.shown((zeros * w.bind([1, 2, 3], range=(0, 3))).sum()) == 0
    other = w.bind([5], range=(0, 1000))
    assert w.shown((zeros + zeros).sum() + other).tolist() == [5]


def test_rotations_of_parts_are_refused_with_what_to_do(w: World) -> None:
    a = np.arange(8)
    x = w.bind(a, range=(0, 8))
    for part in (x[1:], x.reshape(2, 4), x[::2]):
        with pytest.raises(jali.Unsupported, match=r"np\.concatenate"):
            part.rotate(1)
    assert w.shown(np.concatenate([x[3:], x[:3]])).tolist() == np.roll(a, -3).tolist()


def test_joins(w: World, rng: np.random.Generator) -> None:
    a, b = integers(rng, -9, 9, (2, 3)), integers(rng, -90, 90, (2, 3))
    x, y = w.bind(a, range=(-9, 9)), w.bind(b, range=(-90, 90))
    for axis in (0, 1):
        joined = np.concatenate([x, y], axis=axis)
        assert (w.shown(joined) == np.concatenate([a, b], axis=axis)).all()
        assert joined.range == (-90, 90)
        assert (w.shown(np.stack([x, y], axis=axis)) == np.stack([a, b], axis=axis)).all()
    assert (w.shown(np.stack([x, y]).sum(0)) == a + b).all()
    parts = np.split(x, 3, axis=1)
    assert all((w.shown(p) == q).all() for p, q in zip(parts, np.split(a, 3, axis=1), strict=True))


# --- matrices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 3), (2, 7), (9, 4), (1, 5), (5, 1)])
def test_matrices_in_the_clear(w: World, m: int, n: int, rng: np.random.Generator) -> None:
    matrix = integers(rng, -5, 5, (m, n))
    v, a = integers(rng, -9, 9, n), integers(rng, -9, 9, (n, 3))
    x, y = w.bind(v, range=(-9, 9)), w.bind(a, range=(-9, 9))
    assert (w.shown(matrix @ x) == matrix @ v).all()
    assert (w.shown(x @ matrix.T) == v @ matrix.T).all()
    assert (w.shown(matrix @ y) == matrix @ a).all()
    assert (w.shown(y.T @ matrix.T) == a.T @ matrix.T).all()


def test_encrypted_products(either: World, rng: np.random.Generator) -> None:
    a, b, v = (integers(rng, -4, 4, shape) for shape in ((3, 4), (4, 2), 4))
    x, y, u = (either.bind(c, range=(-4, 4)) for c in (a, b, v))
    assert either.shown(u @ u) == v @ v and either.shown(u.dot(u)) == v @ v
    for found in (np.dot(u, 3), np.dot(3, u), np.dot(np.int8(3), u), u.dot(3)):
        assert (either.shown(found) == 3 * v).all()
    assert either.shown(np.dot(v.tolist(), u)) == v @ v
    assert (either.shown(x @ u) == a @ v).all()
    assert (either.shown(u @ y) == v @ b).all()
    assert (either.shown(x @ y) == a @ b).all()


def test_the_range_of_a_product_is_that_of_its_rows(w: World) -> None:
    x = w.bind(np.ones(4, int), range=(0, 10))
    result = np.array([[1, 2, -3, 0], [0, 0, 0, 1]]) @ x
    assert result.range == (-30, 30)


# --- numbers of more than 64 bits -----------------------------------------------------------------

LARGE = [2**63 - 1, -(2**63), 2**63, 2**63 + 12345, 2**64 - 1, -(2**63) - 7, 3 * 2**62 + 7, 2**70]


@pytest.mark.parametrize("number", [*LARGE, np.uint64(2**63 + 12345)])
@pytest.mark.parametrize(
    "arguments",
    [
        {"modulus": 2**64, "packing": "coefficients", "depth": 0},
        {"modulus": 2**61 - 1, "packing": "coefficients", "depth": 0},
        {},
    ],
)
def test_large_numbers_are_taken_modulo_t(arguments: Any, number: Any) -> None:
    w, k = world(**arguments), int(number)
    x = w.bind([0, 1, 7], range=(0, 9)).wrap()
    for found, exact in (
        (x + number, [k, k + 1, k + 7]),
        (x - number, [-k, 1 - k, 7 - k]),
        (number - x, [k, k - 1, k - 7]),
    ):
        assert [
            (int(v) - e) % w.params.modulus for v, e in zip(w.shown(found), exact, strict=True)
        ] == [0] * 3
    # It is -1 modulo T, and takes no noise.
    minus = (2**60 + 5) * w.params.modulus - 1
    assert (w.shown(x * minus) == [0, -1, -7]).all()
    with pytest.raises(jali.Error, match=r"smaller|range"):
        w.bind([0, 1, 7], range=(0, 9)) + 2**66


def test_a_range_of_more_than_64_bits_is_refused(w: World) -> None:
    x, mask = w.bind([1, 2], range=(0, 9)), w.bind([True, False])
    for sign in (1, -1):
        with pytest.raises(jali.RangeExceeded):
            np.full((3, 2), sign * 2**62) @ x
    assert w.shown(np.array([[2**62, 3]]) @ x.wrap()).tolist() == [
        (2**62 + 6 + 32768) % 65537 - 32768
    ]
    for a, b in ((2**70, x), (x, -(2**70)), (2**70, np.array([1, 2]))):
        with pytest.raises(jali.InvalidArgument, match="smaller number"):
            discrete.select(mask, a, b)
    before = w.server.counters()["products"]
    with pytest.raises(jali.RangeExceeded):
        discrete.select(mask, np.array([2**63 - 1]), np.array([-(2**63)]))
    assert w.server.counters()["products"] == before  # it is refused before it computes


def test_integers_of_python_are_taken_as_objects(w: World) -> None:
    values = np.array([1, -2, True], object)
    x = w.bind(values)
    assert x.range == (w.params.low, w.params.high)
    assert w.shown(x).tolist() == [1, -2, 1]
    assert w.shown(w.bind([1, 2, 3], range=(0, 9)) * values).tolist() == [1, -4, 3]
    for wrong in ([2**70, 1], [1, None], [1, 0.5]):
        with pytest.raises(jali.InvalidArgument):
            w.bind(np.array(wrong, object))


# --- choices --------------------------------------------------------------------------------------


def test_select(either: World, rng: np.random.Generator) -> None:
    a, b = integers(rng, -20000, 20000, 50), integers(rng, -10, 30000, 50)
    c = rng.integers(0, 2, 50).astype(bool)
    x, y = either.bind(a, range=(-20000, 20000)), either.bind(b, range=(-10, 30000))
    mask = either.bind(c)
    for chosen in (
        discrete.select(mask, x, y),
        discrete.select(mask, x, b),
        discrete.select(mask, a, y),
        discrete.select(mask, a, b),
        discrete.select(c, x, y),
        np.where(mask, x, y),
    ):
        assert (either.shown(chosen) == np.where(c, a, b)).all()
        assert chosen.range[0] >= -20000 and chosen.range[1] <= 30000
    assert (either.shown(discrete.select(mask, 7, x)) == np.where(c, 7, a)).all()
    with pytest.raises(jali.InvalidArgument, match="booleans"):
        discrete.select(x, x, y)
    with pytest.raises(jali.InvalidArgument, match="zeros and ones"):
        discrete.select(np.full(50, 2), x, y)
    with pytest.raises(jali.InvalidArgument, match=r"np\.where"):
        discrete.select(c, a, b)


# --- what is known --------------------------------------------------------------------------------


def test_budget_falls_and_bounds_the_noise(either: World, rng: np.random.Generator) -> None:
    a = integers(rng, -3, 3, 1024)
    x = either.bind(a, range=(-3, 3))
    square = x * x
    assert 0 < square.noise_budget < x.noise_budget
    for one in (x, square, x.rotate(5), x + x):
        coefficient, slot = either.client._core.noise(one.ciphertext)
        assert coefficient > 0 and slot > 0
        assert one.noise_budget == one.ciphertext.noise_budget


def test_a_claimed_range_is_compared_at_decryption(w: World) -> None:
    x = w.bind([5, -5], range=(-100, 100))
    assert w.shown(x.with_range(-5, 5)).tolist() == [5, -5]
    assert w.shown((x * x).with_range(0, 200) * 300).tolist() == [7500, 7500]
    with pytest.raises(jali.WrongDecryption):
        w.shown(x.with_range(-4, 4))


def test_slots_beside_the_elements_may_hold_any_number(w: World) -> None:
    """The row beside these elements is full, and its sums are larger than theirs."""
    x = w.bind(np.full(700, 9), range=(-9, 9))
    assert w.shown(x[512:].sum()) == 188 * 9
    y = w.bind(np.full((4, 400), 9), range=(-9, 9))
    assert (w.shown(np.concatenate([y[0], y[1][:100]])) == 9).all()
    assert w.shown(x.sum().with_range(0, 6300)) == 6300
    assert w.shown((x[:2] * x[2:4]).with_range(81, 81)).tolist() == [81, 81]


@pytest.mark.parametrize("modulus", [3, 65537, 10**6, 2**61 - 1, 2**32, 2**62, 2**63, 2**64])
def test_residues_become_the_numbers_of_a_range(modulus: int, rng: np.random.Generator) -> None:
    half = modulus // 2
    for low in (0, -half, -modulus + 1, 1, -(2**63), 2**63 - modulus, 12345):
        if not -(2**63) <= low <= low + modulus - 1 < 2**63:
            continue
        high = low + modulus - 1
        exact = [low, high, low + half, *(low + int(v * modulus) for v in rng.random(20))]
        exact = [min(v, high) for v in exact]
        centred_ = [(v + half) % modulus - half for v in exact]
        found, within = in_range(np.array(centred_, np.int64), low, high, modulus)
        assert found.tolist() == exact and within
        _, within = in_range(np.array(centred_, np.int64), low, high - 1, modulus)
        assert within == (high not in exact)


def test_captured_functions(w: World, rng: np.random.Generator) -> None:
    a, b = integers(rng, -9, 9, (2, 3)), integers(rng, -9, 9, (2, 3))
    x, y = (w.bind(v, range=(-9, 9)) for v in (a, b))
    captured = w.server.capture(lambda x, y: (x * y - x, x.sum(1)), x, y)
    product, total = captured(y, x)
    assert (w.shown(product) == a * b - b).all() and (w.shown(total) == b.sum(1)).all()
    for wrong in (w.bind(a, range=(-10, 10)), w.bind(a.T.copy(), range=(-9, 9)), x * x):
        with pytest.raises(jali.InvalidArgument):
            captured(wrong, y)


def test_keys_for_a_function(w: World, rng: np.random.Generator) -> None:
    matrix = integers(rng, -3, 3, (4, 4))

    def scores(x: discrete.EncryptedArray) -> discrete.EncryptedArray:
        return (matrix @ (x * x)).sum()

    example = np.zeros(4, np.int8)
    keys = w.client.evaluation_keys(for_=scores, example=w.client.encrypt(example, range=(-9, 9)))
    assert keys.nbytes < w.keys.nbytes
    server = discrete.Evaluator(w.params, keys, threads=1)
    a = integers(rng, -9, 9, 4)
    assert (
        w.client.decrypt(scores(server.bind(w.client.encrypt(a, range=(-9, 9)))))
        == (matrix @ (a * a)).sum()
    )
    with pytest.raises(jali.KeyMissing):
        server.bind(w.client.encrypt(a, range=(-9, 9))).rotate(77)


def test_without_keys_there_are_sums_alone(w: World) -> None:
    x = discrete.Evaluator(w.params, threads=1).bind(w.client.encrypt([3, -1], range=(-5, 5)))
    assert w.client.decrypt(x * 3 + np.array([1, 2]) * 2 - x).tolist() == [8, 2]
    with pytest.raises(jali.KeyMissing):
        x * x
    with pytest.raises(jali.KeyMissing):
        x.sum()


def test_captured_functions_that_rely_on_zeros_refuse_other_numbers_beside(w: World) -> None:
    x, other = w.bind([1, 2, 3], range=(0, 9)), w.bind([1, 2, 3, 4], range=(0, 9))
    total = w.server.capture(lambda v: v.sum(), x)
    assert w.shown(total(x)) == 6
    with pytest.raises(jali.InvalidArgument, match="slices"):
        total(other[:3])
    of_slices = w.server.capture(lambda v: v.sum(), other[:3])  # what relies on less takes more
    assert w.shown(of_slices(other[:3])) == w.shown(of_slices(x)) == 6
