"""What arithmetic modulo a number cannot do is refused with the way that exists, and that way runs."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from discrete_world import World, world

import jali
from jali import ckks, discrete, tfhe


@pytest.fixture
def w() -> World:
    return world()


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (lambda x: x < x, "tfhe"),
        (lambda x: x >= 3, "tfhe"),
        (lambda x: x == x, "decrypt"),
        (lambda x: x != 3, "decrypt"),
        (lambda x: x / 2, "tfhe"),
        (lambda x: 2 / x, "tfhe"),
        (lambda x: x // 2, "tfhe"),
        (lambda x: x % 2, "tfhe"),
        (lambda x: divmod(x, 2), "tfhe"),
        (lambda x: x >> 1, "tfhe"),
        (lambda x: x << 1, r"2 \*\* n"),
        (lambda x: x & x, "a \\* b is and"),
        (lambda x: abs(x), "tfhe"),
        (lambda x: 2**x, "decrypt"),
        (lambda x: bool(x), "truth"),
        (lambda x: int(x), "decrypt"),
        (lambda x: x.mean(), r"sum.*size"),
        (lambda x: np.mean(x), "sum"),
        (lambda x: x.var(), "sum"),
        (lambda x: x.max(), "tfhe"),
        (lambda x: np.maximum(x, x), "tfhe"),
        (lambda x: np.sort(x), "tfhe"),
        (lambda x: np.floor_divide(x, 2), "tfhe"),
        (lambda x: x.bootstrap(), "depth"),
        (lambda x: np.asarray(x), "decrypt"),
        (lambda x: operator.setitem(x, 0, 1), "select"),
        (lambda x: x * 0.5, "rint"),
        (lambda x: x + np.array([0.5, 1, 2]), "rint"),
        (lambda x: np.float32(2) * x, "rint"),
        (lambda x: x + "a", "array"),
        (lambda x: x + None, "array"),
        (lambda x: x * np.ones(4, int), r"\(4,\)"),
        (lambda x: x[np.array([0])], "selection matrix"),
        (lambda x: np.exp(x), "decrypt"),
        (lambda x: pickle.dumps(x), "pickl"),
        (lambda x: x.rotate(0.5), "whole number"),
        (lambda x: x.sum(7), "axis"),
        (lambda x: x @ 3, "arrays"),
        (lambda x: np.matrix([[1, 2, 3]]) * x, "numpy.matrix"),
    ],
)
def test_refusals_name_the_way_that_exists(w: World, operation: Any, says: str) -> None:
    x = w.bind([3, -1, 7], range=(-9, 9))
    with pytest.raises(jali.Error, match=says):
        operation(x)


def test_the_way_for_comparison_and_division_runs() -> None:
    client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"), threads=1)
    server = tfhe.Evaluator(client.params, client.evaluation_keys(), threads=1)
    x = server.bind(client.encrypt_int([-3], 4))
    y = server.bind(client.encrypt_int([2], 4))
    assert client.decrypt(x < y).tolist() == [1]
    z = server.bind(client.encrypt_uint([13], 4))
    assert client.decrypt(z // 4).tolist() == [3]
    assert client.decrypt(z % 4).tolist() == [1]
    assert client.decrypt(z >> 1).tolist() == [6]


def test_the_ways_for_means_and_bits_run(w: World) -> None:
    values = np.array([3, -1, 7])
    x = w.bind(values, range=(-9, 9))
    assert w.shown(x.sum()) / x.size == values.mean()
    variance = w.shown((x * x).sum()) / x.size - (w.shown(x.sum()) / x.size) ** 2
    assert np.isclose(variance, values.var())
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    p, q = w.bind(a, range=(0, 1)), w.bind(b, range=(0, 1))
    assert w.shown(p * q).tolist() == (a & b).tolist()
    assert w.shown(p + q - p * q).tolist() == (a | b).tolist()
    assert w.shown(p + q - 2 * p * q).tolist() == (a ^ b).tolist()
    assert w.shown(1 - p).tolist() == (1 - a).tolist()


def test_the_advice_of_a_range_that_is_left_runs(w: World) -> None:
    x = w.bind([300, -300], range=(-300, 300))
    with pytest.raises(jali.RangeExceeded, match="integers=") as caught:
        x * x
    bits = int(str(caught.value).split("integers=")[1].split(",")[0])
    other = world(modulus=None, integers=bits, depth=1)
    y = other.bind([300, -300], range=(-300, 300))
    assert other.shown(y * y).tolist() == [90000, 90000]


def test_the_advice_of_depth_runs(w: World) -> None:
    x = w.bind([1, -1], range=(-1, 1))
    with pytest.raises(jali.DepthExhausted, match="depth=") as caught:
        x**16
    found = str(caught.value).split("depth=")[1]
    depth = int("".join(c for c in found[:3] if c.isdigit()))
    y = world(depth=depth).bind([1, -1], range=(-1, 1))
    assert world(depth=depth).shown(y**16).tolist() == [1, 1]


def test_the_advice_of_a_low_level_runs(w: World) -> None:
    low = w.bind([2, -1], range=(-2, 2), level=0)
    with pytest.raises(jali.DepthExhausted, match="Encrypt the operands at a higher level"):
        low * low
    higher = w.bind([2, -1], range=(-2, 2), level=1)
    assert w.shown(higher * higher).tolist() == [4, 1]


def test_what_takes_several_products_is_refused_before_the_first(w: World) -> None:
    x, y = w.bind([1, -3], range=(-3, 3)), w.bind([200, -7], range=(-200, 200))
    matrix = w.bind([[200, 1], [2, 3]], range=(0, 200))
    before = w.server.counters()["products"]
    for operation in (
        lambda: x**16,
        lambda: x ** (2**190),
        lambda: y @ y,
        lambda: matrix @ y,
        lambda: matrix @ matrix,
    ):
        with pytest.raises(jali.RangeExceeded):
            operation()
    for n in (9, 2**190):
        with pytest.raises(jali.DepthExhausted, match="depth="):
            x.wrap() ** n
    assert w.server.counters()["products"] == before
    assert w.shown(y.wrap() @ y) == (40049 + 32768) % 65537 - 32768
    assert w.shown(x @ x) == 10 and (x @ x).range == (0, 18)


@pytest.mark.parametrize("n", [5, 9, 33])
def test_a_power_names_the_depth_that_would_do(n: int) -> None:
    with pytest.raises(jali.DepthExhausted) as caught:
        world(depth=1).bind([1, -1], range=(-1, 1)) ** n
    deep = world(depth=int(str(caught.value).split("depth=")[1]))
    with pytest.raises(jali.DepthExhausted, match="at a higher level"):
        deep.bind([1, -1], range=(-1, 1), level=1) ** n
    assert deep.shown(deep.bind([1, -1], range=(-1, 1)) ** n).tolist() == [1, -1]


def test_objects_of_other_keys_parameters_and_evaluators(w: World) -> None:
    other = discrete.Client(w.params, threads=1)
    with pytest.raises(jali.KeyMismatch):
        w.server.bind(other.encrypt([1]))
    with pytest.raises(jali.KeyMismatch):
        w.client.decrypt(other.encrypt([1]))
    far = world(depth=1)
    with pytest.raises(jali.ParamsMismatch):
        w.server.bind(far.client.encrypt([1]))
    with pytest.raises(jali.ParamsMismatch):
        w.client.decrypt(far.client.encrypt([1]))
    with pytest.raises(jali.ParamsMismatch):
        discrete.Evaluator(w.params, far.keys)
    again = discrete.Evaluator(w.params, w.keys, threads=1)
    with pytest.raises(jali.InvalidArgument, match="different evaluators"):
        w.bind([1]) + again.bind(w.client.encrypt([1]))
    for wrong in (ckks.Params.create(depth=1), None, 5):
        with pytest.raises(jali.InvalidArgument, match=r"discrete\.Params"):
            discrete.Client(wrong)
        with pytest.raises(jali.InvalidArgument, match=r"discrete\.Params"):
            discrete.Evaluator(wrong)
    with pytest.raises(jali.InvalidArgument, match=r"discrete\.Ciphertext"):
        w.server.bind(5)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "depth"),
        ({"modulus": 65537}, "depth"),
        ({"modulus": 65537.0, "depth": 1}, "whole number"),
        ({"modulus": True, "depth": 1}, "whole number"),
        ({"modulus": -7, "depth": 1}, "whole number"),
        ({"modulus": 2**70, "depth": 1}, "whole number"),
        ({"modulus": 65536, "depth": 1}, "prime"),
        ({"modulus": 65539, "depth": 1}, "2N|modulo"),
        ({"integers": 60, "depth": 1}, "tfhe"),
        ({"integers": 1, "depth": 1}, "2 to 59"),
        ({"integers": 8, "modulus": 65537, "depth": 1}, "modulus|integers"),
        ({"depth": -1}, "depth"),
        ({"depth": 1000}, "depth"),
        ({"depth": 1, "multiplication": "ckks"}, "bgv"),
        ({"depth": 1, "packing": "rows"}, "slots"),
        ({"depth": 1, "word": "w8"}, "w32"),
        ({"depth": 1, "security": 100}, "128"),
        ({"depth": 1, "security": 0}, "insecure_"),
        ({"depth": 30, "log_n": 12}, "log_n|128"),
        ({"depth": "2"}, "whole number"),
        ({"deep": 2}, "deep"),
    ],
)
def test_parameters_that_do_not_exist_are_refused(arguments: Any, says: str) -> None:
    with pytest.raises((jali.Error, TypeError), match=says):
        discrete.Params.create(**arguments)


def test_secrets_and_ciphertexts_are_not_pickled(w: World) -> None:
    for one in (w.client, w.client.encrypt([1]), w.keys, w.client.public_key(), w.bind([1])):
        with pytest.raises(jali.Error, match=r"pickled|pickling|bytes"):
            pickle.dumps(one)
    x = w.client.encrypt([1])
    assert copy.copy(x) is x and copy.deepcopy(x) is x


def test_parameters_are_pickled(w: World) -> None:
    for params in (w.params, discrete.Params.create(integers=20, depth=1, multiplication="bfv")):
        again = pickle.loads(pickle.dumps(params))
        assert again == params and hash(again) == hash(params)
        assert again.fingerprint == params.fingerprint
        assert copy.deepcopy(params) is params


def test_keys_are_sent_and_stored(w: World, tmp_path: Any) -> None:
    keys = discrete.EvaluationKeys.from_bytes(w.keys.to_bytes(), w.params)
    server = discrete.Evaluator(w.params, keys, threads=1)
    x = server.bind(w.client.encrypt([3, -1], range=(-9, 9)))
    assert w.client.decrypt((x * x).sum()) == 10
    w.client.save(tmp_path / "secret")
    again = discrete.Client.load(tmp_path / "secret", w.params, threads=1)
    assert again.decrypt(w.client.encrypt([3, -1])).tolist() == [3, -1]
    other = discrete.Client.from_secret_bytes(w.client.secret_to_bytes(), w.params, threads=1)
    assert other.key_id == w.client.key_id
    key = discrete.PublicKey.from_bytes(w.client.public_key().to_bytes(), w.params)
    assert w.client.decrypt(discrete.Encryptor(key).encrypt([5])).tolist() == [5]
    with pytest.raises(jali.ParamsMismatch):
        discrete.EvaluationKeys.from_bytes(w.keys.to_bytes(), world(depth=1).params)
    with pytest.raises(jali.CorruptData):
        discrete.PublicKey.from_bytes(b"\0" * 100, w.params)


def test_coefficients_are_added_for_any_modulus() -> None:
    for modulus in (2**64, 2**32, 10**6, 2**61 - 1):
        w = world(modulus=modulus, packing="coefficients", depth=0)
        assert w.params.modulus == modulus
        a, b = np.array([5, -7, 100]), np.array([1, 2, 3])
        x, y = w.bind(a, range=(-100, 100)), w.bind(b, range=(-100, 100))
        assert w.shown(x + y - 3 * x + b).tolist() == (a + b - 3 * a + b).tolist()
        with pytest.raises(jali.Error, match="slots"):
            x * y
        with pytest.raises(jali.Error, match="slots"):
            x * b
