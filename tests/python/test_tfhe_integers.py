"""Encrypted integers against NumPy, on small parameters that are not secure."""

from __future__ import annotations

import hashlib
import operator
import pickle
import struct
from collections.abc import Callable

import numpy as np
import pytest
from tfhe_world import World, clear_pair, encrypted, make, shows_integers

import jali
from jali import tfhe


@pytest.fixture(scope="module", params=["switch_first", "bootstrap_first"])
def world(request: pytest.FixtureRequest) -> World:
    return World(make(order=request.param))


@pytest.fixture(scope="module")
def wide() -> World:
    return World(make())


def test_integers_come_back_as_they_went(wide: World) -> None:
    rng = np.random.default_rng()
    for width in (3, 8, 16, 32, 64):
        values = (
            rng.integers(0, 1 << width, 5, dtype=np.uint64, endpoint=False)
            if width < 64
            else (rng.integers(0, np.iinfo(np.uint64).max, 5, dtype=np.uint64, endpoint=True))
        )
        found = wide.client.decrypt(wide.client.encrypt_uint(values, bits=width))
        np.testing.assert_array_equal(found, values)
        signed = rng.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1, 5, endpoint=True)
        found = wide.client.decrypt(wide.client.encrypt_int(signed, bits=width))
        assert found.dtype.kind == "i"
        np.testing.assert_array_equal(found, signed)


BINARY = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("function", BINARY)
def test_integers_compute_as_numpy_does(
    world: World, kind: str, function: Callable[..., np.ndarray]
) -> None:
    a, b = clear_pair(kind, 6)
    x, y = encrypted(world, a), encrypted(world, b)
    with np.errstate(over="ignore"):
        shows_integers(world, function(x, y), function(a, b))
        shows_integers(world, function(x, b), function(a, b))
        shows_integers(world, function(x, 5), function(a, np.array(5, kind)))
        shows_integers(world, function(x[:1], y), function(a[:1], b))
        shows_integers(world, function(7, y), function(np.array(7, kind), b))
        shows_integers(world, function(a, y), function(a, b))  # NumPy asks y


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16"])
def test_bits_of_integers_move_as_in_numpy(wide: World, kind: str) -> None:
    a, _ = clear_pair(kind, 4)
    bits = 8 * a.dtype.itemsize
    x = encrypted(wide, a)
    amounts = np.array([0, 1, 3, bits - 1])
    by = wide.server.bind(wide.client.encrypt_uint(amounts, bits=4))
    for amount in (amounts, by):
        shows_integers(wide, x << amount, a << amounts.astype(kind))
        shows_integers(wide, x >> amount, a >> amounts.astype(kind))
    u = a.view(f"u{a.dtype.itemsize}")
    turned = ((u << 3) | (u >> (bits - 3))).astype(u.dtype).view(kind)
    shows_integers(wide, x.rotate_left(3), turned)
    shows_integers(wide, x.rotate_right(bits - 3), turned)
    shows_integers(wide, ~x, ~a)
    with np.errstate(over="ignore"):
        shows_integers(wide, -x, -a)
    text = [format(int(v), f"0{bits}b") for v in u]
    shows_integers(wide, x.leading_zeros(), np.array([len(t) - len(t.lstrip("0")) for t in text]))
    shows_integers(wide, x.trailing_zeros(), np.array([len(t) - len(t.rstrip("0")) for t in text]))
    shows_integers(wide, x.astype("int32"), a.astype("int32"))
    shows_integers(wide, x.astype("uint8"), a.astype("uint8"))


def test_integers_along_an_axis_are_those_of_numpy(wide: World) -> None:
    rng = np.random.default_rng()
    a = rng.integers(0, 256, (2, 5), dtype=np.uint8)
    x = encrypted(wide, a)
    shows_integers(wide, x.sum(axis=1, dtype=np.uint8), a.sum(axis=1, dtype=np.uint8))
    shows_integers(wide, x.sum(dtype="uint8"), a.sum(dtype=np.uint8))
    shows_integers(wide, x.sort(), np.sort(a))
    shows_integers(wide, x.sort(axis=0, descending=True), -np.sort(-a.astype(int), axis=0))
    shows_integers(wide, x.max(axis=1), a.max(axis=1))
    shows_integers(wide, x.min(axis=0), a.min(axis=0))
    assert (wide.client.decrypt(x.argmax(axis=1)) == a.argmax(axis=1)).all()
    assert (wide.client.decrypt(x.argmin()) == a.argmin()).all()
    shows_integers(
        wide, x.dot([1, 2, 3, 0, 5], dtype="uint8"), a @ np.array([1, 2, 3, 0, 5], dtype=np.uint8)
    )
    shows_integers(wide, x.T[1:3, ::-1], a.T[1:3, ::-1])
    shows_integers(wide, wide.server.select(x < 100, x, 255 - x), np.where(a < 100, a, 255 - a))
    index = wide.server.bind(wide.client.encrypt_uint([0, 3, 6], bits=3))
    shows_integers(wide, wide.server.read([9, 8, 7, 200, 5], index), np.array([9, 200, 0]))
    shows_integers(wide, wide.server.read(x[0], index), np.array([a[0, 0], a[0, 3], 0]))


def test_concatenate_takes_arrays_of_one_kind(wide: World) -> None:
    a, b = np.array([[1, 2, 3]], np.uint8), np.array([[250, 7, 0]], np.uint8)
    x, y = encrypted(wide, a), encrypted(wide, b)
    concatenate = wide.server.concatenate
    shows_integers(wide, concatenate([x, y]), np.concatenate([a, b]))
    shows_integers(wide, concatenate([x, y, x], axis=1), np.concatenate([a, b, a], axis=1))
    message = wide.given([[1, 2, 3]])
    for parts, axis in (
        ([x, message], 0),
        ([x, x.astype("uint16")], 0),
        ([x, x.astype("int8")], 0),
        ([], 0),
        ([x, a], 0),
        ([x, y[:, :2]], 0),
        ([x, y], 2),
        ([message[0, 0], message[0, 1]], 0),
    ):
        with pytest.raises(jali.InvalidArgument):
            concatenate(parts, axis=axis)
    with pytest.raises(jali.InvalidArgument, match="refresh"):
        wide.server.refresh(x)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument):
        wide.server.select(message, x, x)
    with pytest.raises(jali.InvalidArgument, match="axis"):
        x[0, 0] @ 1


def test_integers_say_when_they_overflow(wide: World) -> None:
    for kind in ("uint8", "int8"):
        a, b = clear_pair(kind, 8)
        x, y = encrypted(wide, a), encrypted(wide, b)
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        for name, function in (
            ("add", operator.add),
            ("subtract", operator.sub),
            ("multiply", operator.mul),
        ):
            true = function(a.astype(int), b.astype(int))
            result, flag = getattr(x, f"{name}_overflow")(y)
            with np.errstate(over="ignore"):
                shows_integers(wide, result, function(a, b))
            shows_integers(wide, flag, (true < low) | (true > high))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_operations_take_clear_numbers_on_either_side(wide: World, kind: str) -> None:
    a, b = clear_pair(kind, 6)
    x, y = encrypted(wide, a), encrypted(wide, b)
    seven = np.array(7, kind)
    for found, expected in (
        (divmod(x, b), np.divmod(a, b)),
        (divmod(a, y), np.divmod(a, b)),
        (divmod(7, y), np.divmod(seven, b)),
        (np.divmod(x, y), np.divmod(a, b)),
    ):
        for one, other in zip(found, expected, strict=True):
            shows_integers(wide, one, other)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    for name, function in (
        ("add", operator.add),
        ("subtract", operator.sub),
        ("multiply", operator.mul),
    ):
        for clear in (b, 7):
            true = function(a.astype(int), np.asarray(clear).astype(int))
            result, flag = getattr(x, f"{name}_overflow")(clear)
            shows_integers(wide, result, true.astype(kind))
            shows_integers(wide, flag, (true < low) | (true > high))
    select, less = wide.server.select, x < y
    shows_integers(wide, select(less, x, b), np.where(a < b, a, b))
    shows_integers(wide, select(less, b, x), np.where(a < b, b, a))
    shows_integers(wide, select(less, 7, y), np.where(a < b, seven, b))
    shows_integers(wide, select(less[0], x, b), np.where(a[0] < b[0], a, b))
    shows_integers(wide, select(less, x[0], [[1], [2]]), np.where(a < b, a[0], [[1], [2]]))
    shows_integers(wide, x.minimum(b), np.minimum(a, b))
    with np.errstate(over="ignore"):
        shows_integers(wide, abs(x), np.abs(a))
        for n in (1, 2, 5):
            shows_integers(wide, x**n, a**n)


def test_functions_of_numpy_are_those_of_the_methods(wide: World) -> None:
    a, b = clear_pair("int8", 4)
    x, y = encrypted(wide, a), encrypted(wide, b)
    with np.errstate(over="ignore"):
        for function in (np.minimum, np.maximum, np.floor_divide, np.remainder, np.bitwise_xor):
            for found in (function(x, y), function(a, y), function(x, b)):
                shows_integers(wide, found, function(a, b))
        for one in (np.invert, np.absolute, np.negative, np.square):
            shows_integers(wide, one(x), one(a))
    shows_integers(wide, np.left_shift(x, 2), np.left_shift(a, 2))
    shows_integers(wide, np.sort(x), np.sort(a))
    shows_integers(wide, np.max(x), np.max(a))
    shows_integers(wide, np.min(x.reshape(2, 2), axis=1), a.reshape(2, 2).min(axis=1))
    assert wide.client.decrypt(np.argmax(x)) == np.argmax(a)
    assert wide.client.decrypt(np.argmin(x)) == np.argmin(a)
    for says, call in (
        ("evaluator.select", lambda: np.where(x < y, x, y)),
        ("evaluator.concatenate", lambda: np.concatenate([x, y])),
        ("maximum", lambda: np.clip(x, 0, 5)),
        ("write it with operators", lambda: np.gcd(x, y)),
        ("write it with operators", lambda: np.unique(x)),
    ):
        with pytest.raises(jali.Unsupported, match=says):
            call()


def test_division_by_zero_gives_the_largest_number_and_the_dividend(wide: World) -> None:
    x = encrypted(wide, np.array([0, 7, 255], dtype=np.uint8))
    quotient, remainder = divmod(x, x * 0)
    shows_integers(wide, quotient, np.array([255, 255, 255]))
    shows_integers(wide, remainder, np.array([0, 7, 255]))
    signed = encrypted(wide, np.array([-7, 7], dtype=np.int8))
    quotient, remainder = signed.divmod(np.array([2, -2]), truncate=True)
    shows_integers(wide, quotient, np.array([-3, -3]))
    shows_integers(wide, remainder, np.array([-1, 1]))


def test_integers_that_do_not_fit_together_are_refused(wide: World) -> None:
    x = encrypted(wide, np.array([1, 2], dtype=np.uint8))
    y = encrypted(wide, np.array([1, 2], dtype=np.uint16))
    m = wide.given([1, 2])
    refused: list[tuple[str, Callable[[], object]]] = [
        ("type|width|bits", lambda: x + y),
        ("messages and integers do not mix", lambda: x + m),
        ("messages and integers do not mix", lambda: m + x),
        ("more bits", lambda: x + 256),
        ("not negative", lambda: x + -1),
        ("astype", lambda: x + 1.0),
        ("//", lambda: x / 2),
        ("//", lambda: 2 / x),
        ("at least 1", lambda: x**0),
        ("clear number", lambda: x**x),
        ("read", lambda: 2**x),
        ("no width", lambda: 1 << x),
        ("no width", lambda: np.array([1, 2]) >> x),
        ("more bits", lambda: x.add_overflow(256)),
        ("more bits", lambda: wide.server.select(x < 2, x, 256)),
        ("encrypted integers", lambda: wide.server.select(x < 2, x, m)),
        ("do not fit", lambda: x + np.array([1, 2, 3])),
        ("type", lambda: x.astype("float32")),
        ("integers have operators", lambda: wide.server.apply(lambda v: v, x)),  # type: ignore[arg-type]
    ]
    for says, call in refused:
        with pytest.raises(jali.Error, match=says):
            call()


def test_digits_that_may_have_carries_are_refused(wide: World) -> None:
    """Bytes of a peer may say so; Client.encrypt_uint never makes them."""
    data = bytearray(wide.client.encrypt_uint([255], bits=8).to_bytes()[:-16])
    largest = 48 + 16 + 1 + 4 + 8  # behind the header, the key, the kind, the count and the noise
    assert struct.unpack_from("<H", data, largest) == (3,)
    struct.pack_into("<H", data, largest, 15)
    data += hashlib.sha256(data).digest()[:16]
    x = wide.server.bind(tfhe.Ciphertext.from_bytes(bytes(data), wide.params))
    assert isinstance(x, tfhe.EncryptedIntegers)
    for call in (lambda: x + x, lambda: x * 3, lambda: x < 5, lambda: x.sum()):
        with pytest.raises(jali.RangeExceeded, match="as large as 15, and digits are below 4"):
            call()


def test_truth_values_are_counted_and_not_added_modulo_2(wide: World) -> None:
    """NumPy counts them, and has no difference of two."""
    a = np.array([1, 5, 9, 5], dtype=np.uint8)
    flags = encrypted(wide, a) > 3
    wide_sum = flags.sum()
    assert wide.client.decrypt(wide_sum) == 3 == (a > 3).sum()
    assert wide.client.decrypt(flags.reshape(2, 2).sum(axis=1)).tolist() == [1, 2]
    assert wide.client.decrypt(flags @ [100, 200, 300, -4]) == 496
    for wrong in (
        lambda: flags + flags,
        lambda: flags - flags,
        lambda: -flags,
        lambda: 1 - flags,
    ):
        with pytest.raises(jali.Unsupported, match="truth values"):
            wrong()


def test_a_place_is_a_number_also_among_two(wide: World) -> None:
    x = encrypted(wide, np.array([3, 5], dtype=np.uint8))
    for found, expected in ((x.argmax(), 1), (x.argmin(), 0), (x[:1].argmax(), 0)):
        shown = wide.client.decrypt(found)
        assert shown.dtype == np.uint8
        assert shown == expected


def test_astype_bool_is_numpys(wide: World) -> None:
    a = np.array([0, 1, 2, 200], dtype=np.uint8)
    x = encrypted(wide, a)
    for kind in (bool, np.bool_, "bool"):
        np.testing.assert_array_equal(wide.client.decrypt(x.astype(kind)), a.astype(kind))
    np.testing.assert_array_equal(wide.client.decrypt(x.astype("uint1")), a % 2 == 1)


def test_sort_of_all_elements(wide: World) -> None:
    a = np.array([[7, 1], [5, 3]], dtype=np.uint8)
    np.testing.assert_array_equal(
        wide.client.decrypt(encrypted(wide, a).sort(axis=None)), np.sort(a, axis=None)
    )


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (lambda w, x: x << -1, "amounts are not negative"),
        (lambda w, x: x.rotate_left([-1, 2]), "amounts are not negative"),
        (lambda w, x: x + w.given([1, 2]), "messages and integers do not mix"),
        (lambda w, x: w.given([1, 2]) + x, "messages and integers do not mix"),
        (lambda w, x: w.given([1, 2]) == x, "messages and integers do not mix"),
        (lambda w, x: x << w.given([1, 2]), "messages and integers do not mix"),
        (lambda w, x: x @ x, r"write \(x \* y\)\.sum\(\)"),
        (lambda w, x: w.server.read(x.reshape(1, 2), x), "a table has one axis"),
        (lambda w, x: w.server.read([[1, 2]], x), "a table has one axis"),
        (lambda w, x: w.server.read([-1, 2], x), "name a type with a sign"),
        (lambda w, x: x.astype(8), "is no type of integers"),
        (lambda w, x: pickle.dumps(w.server), "an evaluator is not pickled"),
        (lambda w, x: w.given([1, 2]) << 1, "look it up"),
        (lambda w, x: w.given([1, 2]) ** 2, "look it up"),
        (lambda w, x: abs(w.given([1, 2])), "look it up"),
    ],
)
def test_mistakes_of_newcomers_get_sentences(
    wide: World, expression: Callable[[World, tfhe.EncryptedIntegers], object], sentence: str
) -> None:
    x = encrypted(wide, np.array([3, 5], dtype=np.uint8))
    with pytest.raises(jali.Error, match=sentence):
        expression(wide, x)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bits", [1, 5, 8, 64])
def test_negative_numbers_bring_no_warnings(wide: World, bits: int) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    x = wide.server.bind(wide.client.encrypt_int([low, high], bits=bits))
    for clear in (-1, low, np.array(-1), np.array([low, -1])):
        c = np.asarray(clear, dtype=object)
        wrapped = [(v - low) % (1 << bits) + low for v in np.array([low, high], dtype=object) + c]
        assert wide.client.decrypt(x + clear).tolist() == wrapped
        assert wide.client.decrypt(x < clear).tolist() == [low < c.flat[0], high < c.flat[-1]]
    if bits == 5:
        for call in (lambda: x * -1, lambda: x // -1, lambda: x.maximum(-1), lambda: x & -1):
            call()
        index = wide.server.bind(wide.client.encrypt_uint([1, 0], bits=2))
        read = wide.server.read([-16, 15], index, "int5")
        assert wide.client.decrypt(read).tolist() == [15, -16]


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint64", "int64", "uint5", "int3"])
def test_clear_integers_are_operands_like_encrypted_ones(wide: World, kind: str) -> None:
    bits, signed = int(kind.lstrip("uint")), kind[0] == "i"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    make_clear = wide.server.clear_int if signed else wide.server.clear_uint
    encrypt = wide.client.encrypt_int if signed else wide.client.encrypt_uint
    a = np.array([[low, high, 1]], np.int64 if signed else np.uint64)
    c = make_clear(a, bits=bits)
    assert (c.shape, c.bits, c.is_signed) == ((1, 3), bits, signed)
    np.testing.assert_array_equal(wide.client.decrypt(c), a)
    x = wide.server.bind(encrypt(a[:, ::-1].copy(), bits=bits))
    both = wide.server.concatenate([c, x])
    np.testing.assert_array_equal(wide.client.decrypt(both), np.concatenate([a, a[:, ::-1]]))
    np.testing.assert_array_equal(wide.client.decrypt(c == x), a == a[:, ::-1])
    np.testing.assert_array_equal(wide.client.decrypt(c ^ c), a ^ a)
    np.testing.assert_array_equal(wide.client.decrypt(c.max(axis=1)), a.max(axis=1))
    read = tfhe.Ciphertext.from_bytes(c.ciphertext.to_bytes(), wide.params)
    np.testing.assert_array_equal(wide.client.decrypt(wide.server.bind(read) & x), a & a[:, ::-1])


def test_clear_integers_that_do_not_fit_are_refused(wide: World) -> None:
    server = wide.server
    for call, says in (
        (lambda: server.clear_uint([256], bits=8), "from 0 to 255"),
        (lambda: server.clear_uint([-1], bits=8), "clear_int"),
        (lambda: server.clear_int([128], bits=8), "from -128 to 127"),
        (lambda: server.clear_int([1], bits=65), "from 1 to 64"),
        (lambda: server.clear_int([1], bits=0), "from 1 to 64"),
        (lambda: server.clear_uint([0.5], bits=8), "whole numbers"),
        (lambda: server.clear_uint([], bits=8), "at least one number"),
        (lambda: World(make(1, 0)).server.clear_uint([1], bits=8), "message_1_carry_1"),
    ):
        with pytest.raises(jali.InvalidArgument, match=says):
            call()


def test_an_encrypted_number_chooses_among_clear_and_encrypted_ones(wide: World) -> None:
    prices = wide.server.clear_uint([120, 80, 200], bits=8)
    offer = wide.server.bind(wide.client.encrypt_uint([95], bits=8))
    choice = wide.server.bind(wide.client.encrypt_uint([3, 0], bits=2))
    paid = wide.server.read(wide.server.concatenate([prices, offer]), choice)
    shows_integers(wide, paid, np.array([95, 120], np.uint8))
