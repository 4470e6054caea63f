"""Encrypted arrays of TFHE say what to do instead of what they do not do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tfhe_world import World, make

import jali
from jali import tfhe
from jali.errors import WrongCall


@pytest.fixture(scope="module")
def world() -> World:
    return World(make())


@pytest.fixture(params=["messages", "integers"])
def x(request: pytest.FixtureRequest, world: World) -> Any:
    if request.param == "messages":
        return world.given([1, 2, 3])
    return world.server.bind(world.client.encrypt_uint([1, 2, 3], bits=8))


def test_names_of_numpy_are_refused_in_sentences(x: Any) -> None:
    for name in ("mean", "std", "prod", "any", "tolist", "item", "decrypt", "fill"):
        assert not hasattr(x, name) and name not in dir(x)
        with pytest.raises(AttributeError, match=r"numbers|encrypted|write "):
            getattr(x, name)


@pytest.mark.parametrize("name", [name for name in dir(np.ndarray) if not name.startswith("_")])
def test_attributes_of_numpy_arrays_exist_or_are_refused(x: Any, name: str) -> None:
    try:
        getattr(x, name)
    except jali.Unsupported as error:
        assert "has no attribute '" not in str(error)


def test_what_the_refusals_of_names_say_computes(x: Any, world: World) -> None:
    """Each sentence's advice is that attribute of NumPy's arrays."""
    a, n = np.array([[1, 2], [3, 0]]), 2
    m = x[[0, 1, 2, 2]].reshape(2, 2) * np.array([[1, 1], [1, 0]])
    v = x.ravel()
    b = np.array([1, 2, 3])
    diagonal = m[np.arange(n), np.arange(n)]
    for result, expected in (
        (v[[0, 2]], b.take([0, 2])),
        (v[[True, False, True]], b.compress([True, False, True])),
        (v[np.repeat(np.arange(len(v)), 2)], b.repeat(2)),
        (diagonal, a.diagonal()),
        (diagonal.sum(), a.trace()),
        (m.swapaxes(-1, -2), a.T),
        (m.swapaxes(0, 1), a.swapaxes(0, 1)),
        (v.reshape(1, 3, 1).squeeze(), b),
        (np.squeeze(v.reshape(1, 3, 1), axis=2), b.reshape(1, 3)),
        ((v < 3).sum(), b.searchsorted(3)),
        ((m != 0).sum(), np.count_nonzero(a)),
    ):
        np.testing.assert_array_equal(world.client.decrypt(result), expected)
    for wrong in (lambda: m.swapaxes(0, 2), lambda: m.squeeze(0), lambda: m.squeeze("a")):
        with pytest.raises(jali.InvalidArgument):
            wrong()


def test_each_kind_says_how_it_is_put_in_order(world: World) -> None:
    messages = world.given([3, 0, 2])
    integers = world.server.bind(world.client.encrypt_uint([3, 0, 2], bits=8))
    with pytest.raises(jali.Unsupported, match="messages are not put in order"):
        messages.argsort()
    with pytest.raises(jali.Unsupported, match=r"\.sort\(\)"):
        integers.argsort()
    with pytest.raises(jali.Unsupported, match="apply"):
        messages.clip(1, 2)
    clipped = world.server.apply(lambda v: min(max(v, 1), 2), messages)
    np.testing.assert_array_equal(world.client.decrypt(clipped), [2, 1, 2])
    np.testing.assert_array_equal(world.client.decrypt(integers.maximum(1).minimum(2)), [2, 1, 2])


def test_numbers_stay_with_the_client(x: Any) -> None:
    for convert in (int, float, complex, range, math.floor, round, lambda v: [1, 2][v]):
        with pytest.raises(jali.Unsupported, match=r"client|fractions"):
            convert(x[0])
    with pytest.raises(jali.Unsupported, match="never change"):
        x[0] = 1
    with pytest.raises(jali.Unsupported, match="never change"):
        del x[0]


@pytest.mark.parametrize("axis", [1, -2, (0, 0), "a", 1.5])
def test_axes_that_are_none(x: Any, axis: Any) -> None:
    with pytest.raises(jali.InvalidArgument, match=r"an axis is a whole number from -1 to 0"):
        x.sum(axis=axis)


def test_hidden_numbers_are_not_used(x: Any, world: World) -> None:
    hidden = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    calls: list[Callable[[], object]] = [
        lambda: x + hidden,
        lambda: world.client.encrypt(hidden),
        lambda: world.client.encrypt_uint(hidden, bits=4),
    ]
    for call in calls:
        with pytest.raises(jali.InvalidArgument, match="masked"):
            call()
    shown = world.client.decrypt(x + np.ma.array([1, 1, 1]))
    np.testing.assert_array_equal(shown, [2, 3, 4])


def test_numbers_that_numpy_has_no_room_for_are_refused_with_the_range(world: World) -> None:
    client, server = world.client, world.server
    message = server.bind(client.encrypt([1, 2, 3]))
    word = server.bind(client.encrypt_uint([1, 2, 3], bits=8))
    signed = rf"from -{2**63} to {2**63 - 1}: integers have at most 64 bits"
    refused: list[tuple[str, Callable[[], object]]] = [
        ("from 0 to 3: ", lambda: client.encrypt(10**30)),
        ("from 0 to 3: ", lambda: client.encrypt([2**63, -1])),
        ("from 0 to 3: ", lambda: client.encrypt([np.uint64(2**63), -1])),
        (f"from 0 to {2**64 - 1}: ", lambda: client.encrypt_uint(2**64, bits=64)),
        (f"from 0 to {2**64 - 1}: .*encrypt_int", lambda: client.encrypt_uint([2**63, -1], 64)),
        (signed, lambda: client.encrypt_int([2**63, -1], bits=64)),
        (signed, lambda: client.encrypt_int(np.uint64(2**63), bits=64)),
        ("from 0 to 255: use more bits", lambda: word + 10**30),
        ("from 0 to 255: use more bits", lambda: server.read([10**30], word)),
        ("from 0 to 15: ", lambda: server.clear(10**30)),
        ("from 0 to 15: ", lambda: server.clear(16)),
        (f"to {2**63 - 1}: use smaller numbers", lambda: message + 10**30),
        (f"to {2**63 - 1}: use smaller numbers", lambda: message == 10**30),
        (f"to {2**63 - 1}: use smaller numbers", lambda: message @ [[10**30]] * 3),
    ]
    for says, call in refused:
        with pytest.raises(jali.InvalidArgument, match=says):
            call()


def test_whole_numbers_of_python_are_numbers_in_any_array(world: World) -> None:
    numbers = np.array([1, True, np.int8(3)], dtype=object)
    for encrypted in (world.client.encrypt(numbers), world.client.encrypt_int(numbers, bits=64)):
        np.testing.assert_array_equal(world.client.decrypt(encrypted), [1, 1, 3])
    with pytest.raises(jali.InvalidArgument, match="dtype object: give whole numbers"):
        world.client.encrypt(np.array([1, None], dtype=object))
    with pytest.raises(jali.InvalidArgument, match=r"dtype float64: .*astype"):
        world.client.encrypt([1.0, 2**63])


@pytest.mark.parametrize("count", [10**15, 2**62])
def test_numbers_without_room_are_refused_before_they_are_looked_at(
    x: Any, world: World, count: int
) -> None:
    ones = np.broadcast_to(np.uint8(1), (count,))
    calls: list[Callable[[], object]] = [
        lambda: world.client.encrypt(ones),
        lambda: world.client.encrypt_uint(ones, bits=8),
        lambda: x + ones,
    ]
    for call in calls:
        with pytest.raises(jali.OutOfMemory, match=rf"{count} numbers.* give fewer"):
            call()


def test_ciphertexts_are_bound_before_they_compute(x: Any, world: World) -> None:
    unbound = world.client.encrypt([1, 2, 3])
    for call in (lambda: x + unbound, lambda: x == unbound, lambda: x * unbound):
        with pytest.raises(jali.InvalidArgument, match=r"bind the ciphertext first"):
            call()


def test_calls_of_newcomers_are_told_what_to_write(world: World) -> None:
    client, server = world.client, world.server
    m, u = server.bind(client.encrypt([1, 2, 3])), server.bind(client.encrypt_uint([1, 2, 3], 8))
    unbound, c = client.encrypt([1, 2, 3]), np.array([True, False, True])
    wrong: Any = server
    refused: list[tuple[str, Callable[[], object]]] = [
        ("integers have operators, and Evaluator.read", lambda: wrong.apply(abs, u)),
        ("bind it first", lambda: wrong.apply(abs, unbound)),
        ("bind it first", lambda: wrong.apply(max, m, unbound)),
        ("not the text 'lambda v: v'", lambda: wrong.apply("lambda v: v", m)),
        ("not the text", lambda: wrong.apply_each(["abs"] * 3, m)),
        ("integers have operators", lambda: wrong.apply_each([abs] * 3, u)),
        (r"Table\.together", lambda: wrong.apply_all([abs, abs], m)),
        (r"write concatenate\(\[x, y\]\)", lambda: wrong.concatenate(m)),
        (r"write concatenate\(\[x, y\]\)", lambda: wrong.concatenate(5)),
        ("at least one", lambda: wrong.concatenate([])),
        ("bind each", lambda: wrong.concatenate([m, unbound])),
        ("messages and uint8: encrypt all by", lambda: wrong.concatenate([m, u])),
        ("int8 and uint8: convert", lambda: wrong.concatenate([u.astype("int8"), u])),
        (r"x \* c \+ y \* \(1 - c\)", lambda: wrong.select(c, u, u)),
        (r"encrypt_uint\(condition, bits=1\)", lambda: wrong.select(m, u, u)),
        ("compare them", lambda: wrong.select(u, u, u)),
        ("bind the condition", lambda: wrong.select(unbound, m, m)),
        ("or of length 1", lambda: m + m[:2]),
        ("or of length 1", lambda: u + np.arange(2)),
    ]
    for says, call in refused:
        with pytest.raises(jali.InvalidArgument, match=says):
            call()


def test_a_clear_condition_selects_by_products(x: Any, world: World) -> None:
    c = np.array([True, False, True])
    chosen = x * c + x[::-1] * (1 - c)
    np.testing.assert_array_equal(world.client.decrypt(chosen), [1, 2, 3])
    flag = world.server.bind(world.client.encrypt_uint(c, bits=1))
    words = world.server.bind(world.client.encrypt_uint([7, 8, 9], bits=8))
    selected = world.server.select(flag, words, 0)
    np.testing.assert_array_equal(world.client.decrypt(selected), [7, 0, 9])


def test_integers_are_not_encrypted_without_carries() -> None:
    client = World(make(1, 0)).client
    for encrypt in (client.encrypt_uint, client.encrypt_int):
        with pytest.raises(jali.InvalidArgument, match="message_1_carry_1"):
            encrypt(5, bits=8)


def test_look_ups_take_one_or_two_arrays_and_functions_of_as_many_numbers() -> None:
    w = World(make())
    x = w.given([1, 2])
    for message, call in (
        (r"apply\(f, apply\(g, x, y\), z\)", lambda: w.server.apply(max, x, x, x)),
        ("calls the function with two numbers", lambda: w.server.apply(lambda v: v, x, x)),
        ("calls the function with one number", lambda: w.server.apply(lambda u, v: u, x)),
    ):
        with pytest.raises(WrongCall, match=message):
            call()
    with pytest.raises(jali.InvalidArgument, match="list of functions"):
        w.server.apply_each(abs, x)
    assert (w.client.decrypt(w.server.apply(lambda u, v=0: u + v, x)) == [1, 2]).all()


def test_what_bytes_are_read_with_is_named() -> None:
    for call in (
        lambda: tfhe.Ciphertext.from_bytes(b"xxx"),
        lambda: tfhe.EvaluationKeys.from_bytes(b"xxx"),
        lambda: tfhe.Ciphertext.load(b"xxx"),
        lambda: tfhe.EvaluationKeys.load(b"xxx"),
    ):
        with pytest.raises(WrongCall, match="needs params"):
            call()
    with pytest.raises(jali.InvalidArgument, match=r"must be a tfhe\.Params, not 3"):
        tfhe.Ciphertext.from_bytes(b"xxx", 3)
    with pytest.raises(jali.InvalidArgument, match=r"each a tfhe\.Table"):
        tfhe.Table.together(3)


def test_amounts_that_are_too_large_are_told_what_a_shift_does() -> None:
    w = World(make())
    u = w.server.bind(w.client.encrypt_uint(np.array([3]), bits=8))
    with pytest.raises(jali.InvalidArgument, match="leaves no bit"):
        u << 10**30


RAGGED = [[1], [2, 3]]


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("weights must be", lambda x: x @ RAGGED),
        ("weights must be", lambda x: x.dot(RAGGED)),
        ("write x @ weights", lambda x: np.dot([1, 2, 3], x)),
        ("sort takes one axis", lambda x: x.reshape(1, 3).sort(axis=(0, 1))),
        ("slice step cannot be zero", lambda x: x[::0]),
        ("slice indices must be integers", lambda x: x[: "a"]),
        ('has no argument "initial": it takes axis', lambda x: np.sum(x, initial=3)),
        ('has no argument "where": it takes axis', lambda x: np.sum(x, where=[True, False, True])),
        ('has no argument "keepdims": it takes axis', lambda x: np.max(x, keepdims=True)),
        ('has no argument "kind": it takes axis', lambda x: np.sort(x, kind="stable")),
    ],
)  # fmt: skip
def test_arguments_that_numpy_takes_are_refused_in_sentences(
    world: World, sentence: str, call: Callable[[Any], object]
) -> None:
    """Each was an error of Python's or NumPy's, or advice that nothing has this name."""
    x = world.server.bind(world.client.encrypt_uint([1, 2, 3], bits=4))
    with pytest.raises(jali.Error, match=sentence):
        call(x)
    with pytest.raises(jali.InvalidArgument, match="a divisor is a whole number"):
        world.given([1, 2, 3]) % RAGGED
