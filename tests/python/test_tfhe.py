"""Encrypted messages and bits against NumPy, on small parameters that are not secure."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from tfhe_world import World, make

import jali
from jali import tfhe


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


@pytest.mark.parametrize("device", jali.device.available()[:2])
@pytest.mark.parametrize("more", [{}, {"rotation": "block_binary", "group": 3}])
def test_exact_transforms_give_the_same_words_everywhere(
    device: str, more: dict[str, object]
) -> None:
    w = World(make(**more))
    table, values = np.random.default_rng().permutation(16), np.arange(16)
    encrypted = w.client.encrypt(values, largest=15)

    def looked_up(where: str, transform: str) -> bytes:
        server = tfhe.Evaluator(w.params, w.keys, where, transform=transform)
        assert server.transform == transform
        out = server.apply([int(v) for v in table], server.bind(encrypted))
        np.testing.assert_array_equal(w.client.decrypt(out), table)
        return out.ciphertext.to_bytes()

    exact = looked_up("cpu", "ntt")
    assert looked_up(device, "ntt") == exact
    assert looked_up("cpu", "fft") != exact  # its rounding is there


def test_the_transform_is_chosen_or_asked_for() -> None:
    w = World(make(1, 0, max_norm2=8))
    assert w.server.transform == "fft"
    assert tfhe.Evaluator(w.params, w.keys, transform="ntt").transform == "ntt"
    for wrong in ("dct", "", "NTT", 2):
        with pytest.raises(jali.InvalidArgument, match="transform must be"):
            tfhe.Evaluator(w.params, w.keys, transform=wrong)


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
    world.shows(x - y, (a - b) % 4)
    world.shows(x - 3, (a - 3) % 4)
    world.shows(x - b, (a - b) % 4)
    world.shows(2 - x, (2 - a) % 4)
    world.shows(7 - x, (7 - a) % 4)
    world.shows(-x, -a % 4)
    world.shows((x + y) - y, a)
    world.shows((x - y) == 0, (a == b).astype(int))
    world.shows((x - 1) < 2, ((a - 1) % 4 < 2).astype(int))
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
        (jali.Unsupported, "selected by look-ups", lambda: server.select(x, x, x)),
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
