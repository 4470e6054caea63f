"""TFHE from Python: encrypted messages and bits against NumPy, on small parameters that are not secure."""

from __future__ import annotations

import copy
import hashlib
import operator
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jali
from jali import tfhe


def make(message_bits: int = 2, carry_bits: int = 2, **more: object) -> tfhe.Params:
    arguments = {
        "n": 48,
        "k": 1,
        "N": 512,
        "rotation_gadget": (15, 2),
        "switch_gadget": (5, 4),
        "lwe_noise_bits": 4,
        "glwe_noise_bits": 10,
        "message_bits": message_bits,
        "carry_bits": carry_bits,
        "max_norm2": 40,
        "log2_p_fail": -128,
        "name": "insecure_test",
    }
    return tfhe.Params.create(**{**arguments, **more})


class World:
    def __init__(self, params: tfhe.Params) -> None:
        self.params = params
        self.client = tfhe.Client(params, threads=1)
        self.keys = self.client.evaluation_keys()
        self.server = tfhe.Evaluator(params, self.keys, "cpu", threads=1)

    def given(self, values: object, **more: int) -> tfhe.EncryptedArray:
        return self.server.bind(self.client.encrypt(values, **more))

    def shows(self, array: tfhe.EncryptedArray, expected: object) -> None:
        found = self.client.decrypt(array)
        assert found.shape == np.shape(expected) == array.shape
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module", params=["switch_first", "bootstrap_first"])
def world(request: pytest.FixtureRequest) -> World:
    return World(make(order=request.param))


@pytest.fixture(scope="module")
def bits() -> World:
    return World(make(1, 0, max_norm2=8))


@pytest.fixture(scope="module")
def wide() -> World:
    return World(make())


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"torus_bits": 32, "rotation_gadget": (8, 2), "glwe_noise_bits": 2},
        {"k": 2, "N": 256},
        {"rotation": "multi_bit", "group": 3},
        {"rotation": "block_binary", "group": 3},
        {"order": "bootstrap_first"},
    ],
)
def test_a_look_up_gives_every_value_of_every_message(more: dict[str, object]) -> None:
    w = World(make(**more))
    table = np.random.default_rng().permutation(16)
    x = w.given(np.arange(16), largest=15)
    w.shows(w.server.apply([int(v) for v in table], x), table)
    w.shows(w.server.apply(lambda v: (v * v) % 16, x), np.arange(16) ** 2 % 16)


def test_every_column_may_have_a_function_of_its_own(world: World) -> None:
    x = np.random.default_rng().integers(0, 4, (3, 2, 3))
    given = world.given(x)
    functions = [lambda v: v * v % 16, [3, 1, 2, 0], lambda v: v > 1]
    expected = np.stack([x[..., 0] ** 2, np.array([3, 1, 2, 0])[x[..., 1]], x[..., 2] > 1], axis=-1)
    world.shows(world.server.apply_each(functions, given), expected)
    with pytest.raises(jali.InvalidArgument, match="last axis"):
        world.server.apply_each(functions[:2], given)
    with pytest.raises(jali.InvalidArgument, match="last axis"):
        world.server.apply_each([abs], given[0, 0, 0])
    with pytest.raises(jali.InvalidArgument, match="encrypted array"):
        world.server.apply_each(functions, x)
    with pytest.raises(jali.InvalidArgument, match="from 0 to 15"):
        world.server.apply_each([lambda v: 16] * 3, given)


def test_sums_and_products_are_those_of_numpy(world: World) -> None:
    rng = np.random.default_rng()
    a, b = rng.integers(0, 4, (2, 3, 4))
    x, y = world.given(a), world.given(b)
    world.shows(x + y, a + b)
    world.shows(x + 3, a + 3)
    world.shows(3 + x, a + 3)
    world.shows(x + b, a + b)
    world.shows(x * 5, a * 5)
    world.shows(np.int64(2) * x, a * 2)
    world.shows(x * b, a * b)
    world.shows(x * y, a * b)
    world.shows(world.server.refresh(x - y), (a - b) % 4)
    world.shows(world.server.refresh(x - 3), (a - 3) % 4)
    world.shows(world.server.refresh(2 - x), (2 - a) % 4)
    world.shows(world.server.refresh(-x), -a % 4)
    world.shows(x + y[0], a + b[0])
    world.shows(x[:, :1] + y, a[:, :1] + b)
    world.shows(x.sum(axis=1), a.sum(axis=1))
    world.shows(x[:, 1:].sum(axis=0), a[:, 1:].sum(axis=0))
    world.shows(x[0] @ [1, 2, 0, 1], a[0] @ [1, 2, 0, 1])
    world.shows(x @ np.eye(4, 2, dtype=int), a @ np.eye(4, 2, dtype=int))


@pytest.mark.parametrize(
    "function", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
)
def test_comparisons_are_those_of_numpy(world: World, function: Callable[..., object]) -> None:
    a, b = np.divmod(np.arange(16), 4)
    world.shows(function(world.given(a), world.given(b)), function(a, b).astype(int))
    world.shows(function(world.given(a), 2), function(a, 2).astype(int))
    world.shows(function(world.given(a), b), function(a, b).astype(int))


def test_look_ups_of_two_values_see_every_pair(world: World) -> None:
    a, b = np.divmod(np.arange(16), 4)
    x, y = world.given(a), world.given(b)
    world.shows(world.server.apply(lambda v, w: (3 * v + w) % 7, x, y), (3 * a + b) % 7)
    world.shows(x & y, a & b)
    world.shows(x | y, a | b)
    world.shows(x ^ y, a ^ b)
    world.shows(~x, 3 - a)
    world.shows(x % 3, a % 3)
    world.shows(x // 2, a // 2)


def test_sums_with_weights_of_both_signs_are_those_of_numpy(wide: World) -> None:
    rng = np.random.default_rng()
    a = rng.integers(0, 4, (2, 3, 4))
    weights, constants = np.array([[1, -1, 0, 2], [0, 0, -2, -1]]), np.array([3, 9])
    x = wide.given(a)
    sums = np.einsum("...c,rc->...r", a, weights)
    found = wide.server.linear(weights, x, constants)
    assert found.largest == 12 and found.norm2 == 6
    wide.shows(found, sums + constants)
    wide.shows(wide.server.linear([1, 2, 0, 0], x), a[..., 0] + 2 * a[..., 1])
    wide.shows(wide.server.linear([-1, 0, 0, 0], x[0, 0], 3), 3 - a[0, 0, 0])
    # A layer of a neural network, whose worst case has no room.
    neurons = np.array([[2, -3, 1, 1], [-1, 1, 2, -2]])
    with pytest.raises(jali.RangeExceeded, match="as small as"):
        wide.server.linear(neurons, x, 6)
    expected = a @ neurons.T + 6
    within = wide.server.linear(neurons, x, 6, largest=15)
    assert within.largest == 15 and within.norm2 == 15
    relu = wide.server.apply(lambda v: max(v - 6, 0) // 3, within)
    inside = (expected >= 0) & (expected <= 15)
    np.testing.assert_array_equal(
        wide.client.decrypt(relu, check=False)[inside], np.maximum(expected - 6, 0)[inside] // 3
    )
    with pytest.raises(jali.WrongDecryption):  # 3 - 3 * 3 breaks the promise
        three = wide.given(np.array([3]))
        wide.client.decrypt(wide.server.linear([-3], three, 3, largest=15))
    for wrong, words in (
        (lambda: wide.server.linear(neurons, x, 6, largest=16), "room up to 15"),
        (lambda: wide.server.linear([17, 0, 0, 0], x, largest=15), "a weight is 17"),
        (lambda: wide.server.linear([7, 0, 0, 0], x, largest=15), "squared norm 49"),
    ):
        with pytest.raises(jali.RangeExceeded, match=words):
            wrong()
    for wrong, words in (
        (lambda: wide.server.linear([[1, 2]], x), "do not fit an array"),
        (lambda: wide.server.linear(neurons, x, [1, 2, 3]), "do not fit 2 rows"),
        (lambda: wide.server.linear(neurons, x, largest=-1), "at least 0"),
        (lambda: wide.server.linear(neurons * 0.5, x), "whole numbers"),
        (lambda: wide.server.linear(neurons, a), "linear takes an encrypted array"),
    ):
        with pytest.raises(jali.InvalidArgument, match=words):
            wrong()


def test_tables_are_looked_up_alone_and_together(wide: World) -> None:
    rng = np.random.default_rng()
    results = [int(v) for v in rng.integers(0, 16, 16)]
    table = tfhe.Table(wide.params, results)
    x = wide.given(np.arange(16), largest=15)
    wide.shows(wide.server.apply(table, x), results)
    low, high = wide.given(np.arange(16) % 4), wide.given(np.arange(16) // 4)
    wide.shows(wide.server.apply(table, low, high), results)
    # Of bits, eight tables lie side by side.
    pairs = rng.integers(0, 16, (8, 2))
    together = tfhe.Table.together([tfhe.Table(wide.params, [int(v) for v in p]) for p in pairs])
    bits = wide.given([0, 1, 1], largest=1)
    found = wide.server.apply_all(together, bits)
    assert len(found) == together.count == 8
    for one, pair in zip(found, pairs, strict=True):
        wide.shows(one, pair[[0, 1, 1]])
    few = tfhe.Table(wide.params, [1, 2])
    refused: list[tuple[type[jali.Error], Callable[[], object]]] = [
        (jali.RangeExceeded, lambda: wide.server.apply(few, x)),
        (jali.RangeExceeded, lambda: wide.server.apply_all(together, x)),
        (jali.InvalidArgument, lambda: wide.server.apply(together, bits)),
        (jali.InvalidArgument, lambda: wide.server.apply_all([1, 2], bits)),  # type: ignore[arg-type]
        (jali.InvalidArgument, lambda: wide.server.apply(5, bits)),  # type: ignore[arg-type]
        (jali.InvalidArgument, lambda: wide.server.apply(None, bits)),  # type: ignore[arg-type]
        (jali.InvalidArgument, lambda: tfhe.Table(wide.params, [16])),
        (jali.InvalidArgument, lambda: tfhe.Table.together([few, few, few])),
        (jali.ParamsMismatch, lambda: wide.server.apply(tfhe.Table(make(3, 1), [1]), bits)),
        (jali.ParamsMismatch, lambda: tfhe.Table.together([few, tfhe.Table(make(3, 1), [1])])),
    ]
    for kind, call in refused:
        with pytest.raises(kind):
            call()


def test_shapes_are_those_of_numpy(wide: World) -> None:
    a = np.arange(24).reshape(2, 3, 4) % 4
    x = wide.given(a)
    wide.shows(x[1], a[1])
    wide.shows(x[:, ::2, -1], a[:, ::2, -1])
    wide.shows(x[a > 1], a[a > 1])
    wide.shows(x.reshape(6, 4), a.reshape(6, 4))
    wide.shows(x.T, a.T)
    wide.shows(x.ravel(), a.ravel())
    wide.shows(wide.server.concatenate([x, x[:, :1]], axis=1), np.concatenate([a, a[:, :1]], 1))
    assert len(x) == 2 and x.ndim == 3 and x.size == 24
    for part, values in zip(x, a, strict=True):
        wide.shows(part, values)


def test_gates_are_those_of_numpy(bits: World) -> None:
    a, b, c = (np.arange(8) >> i & 1 == 1 for i in range(3))
    x, y, z = (bits.given(v) for v in (a, b, c))
    bits.shows(x & y, a & b)
    bits.shows(x | y, a | b)
    bits.shows(x ^ y, a ^ b)
    bits.shows(~x, ~a)
    bits.shows(x.nand(y), ~(a & b))
    bits.shows(x.nor(y), ~(a | b))
    bits.shows(x.xnor(y), ~(a ^ b))
    bits.shows(x.andny(y), ~a & b)
    bits.shows(x.andyn(y), a & ~b)
    bits.shows(x.orny(y), ~a | b)
    bits.shows(x.oryn(y), a | ~b)
    bits.shows(bits.server.select(x, y, z), np.where(a, b, c))
    bits.shows(x & x, a)


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


def test_what_does_not_fit_is_refused_in_a_sentence(wide: World) -> None:
    client, server = wide.client, wide.server
    x = wide.given([1, 2, 3])
    other = World(wide.params)
    refused: list[tuple[type[jali.Error], str, Callable[[], object]]] = [
        (jali.InvalidArgument, "from 0 to 3", lambda: client.encrypt([4])),
        (jali.InvalidArgument, "from 0 to 3", lambda: client.encrypt([-1])),
        (jali.InvalidArgument, "astype", lambda: client.encrypt([1.0])),
        (jali.InvalidArgument, "jali.ckks", lambda: client.encrypt([1.5])),
        (jali.InvalidArgument, "at least one", lambda: client.encrypt([])),
        (jali.InvalidArgument, "encrypt_int", lambda: client.encrypt_uint([-1], bits=8)),
        (jali.InvalidArgument, "more bits", lambda: client.encrypt_uint([256], bits=8)),
        (jali.InvalidArgument, "1 to 64", lambda: client.encrypt_uint([1], bits=0)),
        (jali.InvalidArgument, "1 to 64", lambda: client.encrypt_uint([1], bits=65)),
        (jali.RangeExceeded, "refresh", lambda: x + 100),
        (jali.RangeExceeded, "refresh", lambda: x * 9),
        (jali.RangeExceeded, "modulo", lambda: (x + 3) * x),
        (jali.RangeExceeded, "refresh", lambda: server.apply(lambda v, w: 0, x + 1, x)),
        (jali.InvalidArgument, "negative", lambda: x * -1),
        (jali.InvalidArgument, "from 0 to 15", lambda: server.apply(lambda v: 16, x)),
        (jali.InvalidArgument, "from 0 to 15", lambda: server.apply(lambda v: -v, x)),
        (jali.InvalidArgument, "whole number", lambda: server.apply(lambda v: 0.5, x)),
        (jali.InvalidArgument, "do not fit", lambda: x + np.array([1, 2])),
        (jali.InvalidArgument, "do not fit", lambda: x + x[:2]),
        (jali.InvalidArgument, "is 0", lambda: x % 0),
        (jali.Unsupported, "boolean", lambda: server.select(x, x, x)),
        (jali.Unsupported, "truth value", lambda: bool(x)),
        (jali.Error, ".", lambda: x[3]),
        (jali.KeyMismatch, ".", lambda: server.bind(other.client.encrypt([1]))),
        (jali.KeyMismatch, ".", lambda: other.client.decrypt(x)),
        (jali.KeyMismatch, ".", lambda: x + other.given([1])),
        (jali.InvalidArgument, "tfhe.Params", lambda: tfhe.Client(None)),  # type: ignore[arg-type]
    ]
    for kind, says, call in refused:
        with pytest.raises(kind, match=says):
            call()


def test_parameters_of_another_kind_are_refused(wide: World) -> None:
    other = make(glwe_noise_bits=11)
    assert other != wide.params and make() == wide.params
    with pytest.raises(jali.ParamsMismatch):
        tfhe.Evaluator(other, wide.keys, "cpu")
    with pytest.raises(jali.ParamsMismatch):
        tfhe.Client(other).decrypt(wide.client.encrypt([1]))
    with pytest.raises(jali.InsecureParams, match="insecure_"):
        make(name="plain")


def test_objects_are_values(wide: World) -> None:
    x = wide.given([1])
    assert copy.deepcopy(x) is x
    for thing in (wide.params, wide.keys, x, x.ciphertext, wide.client):
        with pytest.raises(jali.Error):
            pickle.dumps(thing)
        assert "insecure_test" in repr(thing)


def test_a_wrong_decryption_is_found() -> None:
    """A value that was never possible, because the client encrypted it with another bound."""
    w = World(make())
    low = w.given([0], largest=0)
    high = w.given([3])
    mixed = w.client.encrypt([3])
    assert w.client.decrypt(mixed)[0] == 3
    assert (low + high).largest == 3
    w.shows(low + high, [3])


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


def clear_pair(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of a type of NumPy, with its edges; the second has no 0."""
    rng = np.random.default_rng()
    info = np.iinfo(kind)
    a = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    b = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    a[:3], b[:2] = (info.min, info.max, 0), (info.max, 1)
    b[b == 0] = 3
    return a, b


def encrypted(w: World, a: np.ndarray) -> tfhe.EncryptedIntegers:
    encrypt = w.client.encrypt_int if a.dtype.kind == "i" else w.client.encrypt_uint
    bound = w.server.bind(encrypt(a, bits=8 * a.dtype.itemsize))
    assert isinstance(bound, tfhe.EncryptedIntegers)
    return bound


def shows_integers(w: World, x: tfhe.EncryptedIntegers, expected: np.ndarray) -> None:
    found = w.client.decrypt(x)
    assert found.dtype == x.dtype and found.shape == np.shape(expected) == x.shape
    np.testing.assert_array_equal(found, expected)


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
        if function in (operator.add, operator.sub, operator.mul, operator.and_):
            shows_integers(world, function(7, y), function(np.array(7, kind), b))


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
    shows_integers(wide, x.sum(axis=1), a.sum(axis=1, dtype=np.uint8))
    shows_integers(wide, x.sum(), a.sum(dtype=np.uint8))
    shows_integers(wide, x.sort(), np.sort(a))
    shows_integers(wide, x.sort(axis=0, descending=True), -np.sort(-a.astype(int), axis=0))
    shows_integers(wide, x.max(axis=1), a.max(axis=1))
    shows_integers(wide, x.min(axis=0), a.min(axis=0))
    assert (wide.client.decrypt(x.argmax(axis=1)) == a.argmax(axis=1)).all()
    assert (wide.client.decrypt(x.argmin()) == a.argmin()).all()
    shows_integers(wide, x @ [1, 2, 3, 0, 5], a @ np.array([1, 2, 3, 0, 5], dtype=np.uint8))
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
        (".", lambda: x + y),
        (".", lambda: x + m),
        (".", lambda: m + x),
        ("more bits", lambda: x + 256),
        ("not negative", lambda: x + -1),
        ("astype", lambda: x + 1.0),
        ("do not fit", lambda: x + np.array([1, 2, 3])),
        ("type", lambda: x.astype("float32")),
        (".", lambda: wide.server.apply(lambda v: v, x)),  # type: ignore[arg-type]
    ]
    for says, call in refused:
        with pytest.raises(jali.Error, match=says):
            call()


def test_everything_that_travels_comes_back(wide: World, tmp_path: Path) -> None:
    params = tfhe.Params.from_bytes(wide.params.to_bytes(), min_security=0)
    assert params == wide.params and params.name == wide.params.name
    keys = tfhe.EvaluationKeys.from_bytes(wide.keys.to_bytes(), params)
    wide.keys.save(tmp_path / "keys")
    assert tfhe.EvaluationKeys.load(tmp_path / "keys", params).to_bytes() == wide.keys.to_bytes()
    server = tfhe.Evaluator(params, keys, "cpu", threads=1)
    a = np.arange(6).reshape(2, 3) % 4
    fresh = wide.client.encrypt(a)
    assert len(fresh.to_bytes()) < 6 * 8 + 300  # masks are a seed
    x = tfhe.Ciphertext.from_bytes(fresh.to_bytes(), params)
    assert x.shape == (2, 3) and x.bits == 0
    y = (server.bind(x) + 1).ciphertext
    y.save(tmp_path / "y")
    np.testing.assert_array_equal(
        wide.client.decrypt(tfhe.Ciphertext.load(tmp_path / "y", params)), a + 1
    )
    signed = wide.client.encrypt_int([[-5], [100]], bits=8)
    again = tfhe.Ciphertext.from_bytes(signed.to_bytes(), params)
    assert again.shape == (2, 1) and again.bits == 8 and again.is_signed
    np.testing.assert_array_equal(wide.client.decrypt(again), [[-5], [100]])
    wide.client.save(tmp_path / "secret")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    for client in (
        tfhe.Client.load(tmp_path / "secret", params),
        tfhe.Client.from_secret_bytes(wide.client.secret_to_bytes(), params),
    ):
        assert client.key_id == wide.client.key_id
        np.testing.assert_array_equal(client.decrypt(fresh), a)


def test_bytes_that_are_wrong_are_refused(wide: World) -> None:
    blob = wide.client.encrypt([1, 2]).to_bytes()
    wrong = [blob[:-1], blob + b"x", blob[:100] + bytes([blob[100] ^ 1]) + blob[101:], b""]
    for data in wrong:
        with pytest.raises(jali.CorruptData):
            tfhe.Ciphertext.from_bytes(data, wide.params)
    with pytest.raises(jali.ParamsMismatch):
        tfhe.Ciphertext.from_bytes(blob, make(glwe_noise_bits=11))
    with pytest.raises(jali.LimitExceeded):
        tfhe.EvaluationKeys.from_bytes(wide.keys.to_bytes(), wide.params, max_bytes=1000)
    with pytest.raises(jali.InsecureParams):
        tfhe.Params.from_bytes(wide.params.to_bytes())
    with pytest.raises(jali.CorruptData):
        tfhe.Client.from_secret_bytes(wide.client.secret_to_bytes()[:-1], wide.params)


def test_noise_and_security_of_free_parameters(world: World) -> None:
    params = world.params
    small = params.order == "bootstrap_first"
    noise_bits, word = (4, 32) if small else (10, 64)
    fresh = (2.0 ** (2 * noise_bits + 1) + 1) / 6 / 2.0 ** (2 * word)  # TUniform
    assert params.fresh_variance == pytest.approx(fresh, rel=1e-12, abs=0)
    one = params.bootstrapped_variance
    more = params.variance_before_look_up(9) - params.variance_before_look_up(4)
    assert more == pytest.approx(5 * one, rel=1e-6, abs=0)  # noise is a sum over the weights
    assert params.log2_failure(9) < params.log2_failure(16) < 0
    assert params.log2_failure(9, 0.25) < params.log2_failure(9)
    assert params.key_security[0] < 128  # insecure parameters are seen to be
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(jali.InvalidArgument, match="norm2"):
            params.log2_failure(wrong)
    with pytest.raises(jali.InvalidArgument, match="log_many"):
        params.variance_before_look_up(1, 17)
    with pytest.raises(jali.InvalidArgument, match="half_box"):
        params.log2_failure(1, 0.75)


def test_presets_are_secure_and_hardly_ever_fail() -> None:
    names = tfhe.Params.presets()
    assert {"boolean", "message_2_carry_2", "message_4_carry_4"} <= set(names)
    for name in names:
        params = tfhe.Params.preset(name)
        assert params.name == name
        if not name.startswith("insecure_"):
            assert params.security >= 128
        if "strix" not in name:
            assert params.log2_p_fail <= -128
    with pytest.raises(jali.InvalidArgument, match="boolean"):
        tfhe.Params.preset("unknown")


@pytest.mark.long
def test_the_usual_preset_computes() -> None:
    params = tfhe.Params.preset("message_2_carry_2")
    client = tfhe.Client(params)
    server = tfhe.Evaluator(params, client.evaluation_keys(), "cpu")
    a, b = np.divmod(np.arange(16), 4)
    x, y = server.bind(client.encrypt(a)), server.bind(client.encrypt(b))
    np.testing.assert_array_equal(
        client.decrypt(server.apply(lambda v, w: v * w % 4, x, y)), a * b % 4
    )
    u = np.array([200, 17], dtype=np.uint8)
    z = server.bind(client.encrypt_uint(u, bits=8))
    np.testing.assert_array_equal(client.decrypt(z + 100), u + np.uint8(100))
    np.testing.assert_array_equal(client.decrypt(z * z), u * u)


# --- captured functions -------------------------------------------------------------------------


def test_a_captured_function_gives_what_the_function_gives(wide: World) -> None:
    def function(x: tfhe.EncryptedArray, y: tfhe.EncryptedArray) -> list[tfhe.EncryptedArray]:
        return [wide.server.apply(lambda v: v * v % 16, x + y), x - y]

    zeros = wide.given([[0, 0, 0]])
    captured = wide.server.capture(function, zeros, zeros)
    assert captured.nbytes >= 0
    for step in range(3):
        a, b = np.array([[0, 1, 2]]), np.array([[step, 1, 3 - step]])
        squares, differences = captured(wide.given(a), wide.given(b))
        wide.shows(squares, (a + b) ** 2 % 16)
        assert (wide.client.decrypt(differences) % 4 == (a - b) % 4).all()
    single = wide.server.capture(wide.server.refresh, zeros)
    wide.shows(single(wide.given([[3, 2, 1]])), [[3, 2, 1]])


def test_a_captured_function_takes_integers(wide: World) -> None:
    def given(values: list[int]) -> tfhe.EncryptedIntegers:
        return wide.server.bind(wide.client.encrypt_uint(values, 8))

    captured = wide.server.capture(lambda x, y: x + y, given([0, 0]), given([0, 0]))
    total = captured(given([200, 7]), given([100, 1]))
    np.testing.assert_array_equal(wide.client.decrypt(total), [300 % 256, 8])


def test_a_captured_function_refuses_other_arrays(wide: World) -> None:
    x = wide.given([1, 2])
    captured = wide.server.capture(lambda a, b: a + b, x, wide.given([0, 0]))
    wide.shows(captured(x, wide.given([2, 0])), [3, 2])
    for bad in (wide.given([1, 2, 3]), wide.given([[1, 2]]), x + x, x):
        with pytest.raises(jali.InvalidArgument):
            captured(x, bad)
    with pytest.raises(jali.InvalidArgument):
        captured(x)
    with pytest.raises(jali.InvalidArgument, match="encrypted arrays"):
        wide.server.capture(lambda a: 3, x)
    with pytest.raises(jali.InvalidArgument):
        wide.server.capture(3, x)  # type: ignore[arg-type]


def test_a_client_says_what_computes() -> None:
    client = tfhe.Client(make(), threads=1)
    assert client.engine == "cpu"
    assert tfhe.Client(make(), device="auto").engine == "cpu"
    with pytest.raises(jali.InvalidArgument):
        tfhe.Client(make(), device="tpu")
    with pytest.raises(jali.InvalidArgument):
        tfhe.Client.from_secret_bytes(client.secret_to_bytes(), make(), device="tpu")
