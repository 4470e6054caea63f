"""What refusals of TFHE advise is code, and the code gives what was asked for."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tfhe_world import World, make

import jali

A, B = np.array([1, 0, 3]), np.array([2, 1, 1])
C = np.array([1, 0, 1])


@pytest.fixture(scope="module")
def world() -> World:
    return World(make())


def names_of(world: World, kind: str) -> dict[str, Any]:
    """What a program has at hand: x and y, which are encrypted, and clear weights."""
    server, client = world.server, world.client
    bind = {
        "messages": lambda v: server.bind(client.encrypt(v)),
        "integers": lambda v: server.bind(client.encrypt_uint(v, bits=8)),
    }[kind]
    condition = client.encrypt(C) if kind == "messages" else client.encrypt_uint(C, bits=1)
    return {
        **{"np": np, "functools": functools, "itertools": itertools, "operator": operator},
        **{"evaluator": server, "server": server, "client": client, "values": A},
        **{"x": bind(A), "y": bind(B), "v": 1, "weights": [1, 2, 1], "n": 2},
        "condition": server.bind(condition),
        "votes": np.array([1, 0] * 20),
    }


class Advice(NamedTuple):
    refused: Callable[[dict[str, Any]], object]  # raises, with this code in its sentence
    code: str
    expected: object  # of the code


def attribute(name: str, code: str, expected: object) -> Advice:
    return Advice(lambda n: getattr(n["x"], name), code, expected)


def function(name: str, code: str, expected: object, *more: Any) -> Advice:
    return Advice(lambda n: getattr(np, name)(n["x"], *more), code, expected)


def both(name: str, code: str, expected: object, *more: Any) -> list[Advice]:
    """As a method, and as a function of NumPy."""
    return [attribute(name, code, expected), function(name, code, expected, *more)]


COMMON = [
    *both("mean", "x.sum() // x.size", 4 // 3),
    *both("std", "client.decrypt(x).std()", A.std()),
    *both("repeat", "x[np.repeat(np.arange(x.size), 2)]", A.repeat(2), 2),
    *both("take", "x[[0, 2]]", A[[0, 2]], [0, 2]),
    attribute("compress", "x[[True, False, True]]", A[[0, 2]]),
    attribute("searchsorted", "(x < v).sum()", 1),
    *both("nonzero", "(x != 0).sum()", 2),
    function("count_nonzero", "(x != 0).sum()", 2),
    function("roll", "x[np.roll(np.arange(x.size), 1)]", np.roll(A, 1), 1),
    function("flip", "x[::-1]", A[::-1]),
    function("tile", "x[np.tile(np.arange(x.size), 2)]", np.tile(A, 2), 2),
    function("expand_dims", "x.reshape(1, -1)", A[None], 0),
    function("diff", "x[1:] - x[:-1]", None),
    Advice(lambda n: np.outer(n["x"], n["y"]), "x.reshape(-1, 1) * y", np.outer(A, B)),
    Advice(
        lambda n: np.average(n["x"], weights=n["weights"]), "(x @ weights) // sum(weights)", 4 // 4
    ),
    Advice(lambda n: n["weights"] @ n["x"], "x @ weights", 4),
    Advice(lambda n: np.array(n["weights"]) @ n["x"], "x @ weights", 4),
    Advice(lambda n: np.concatenate([n["x"], n["y"]]), "evaluator.concatenate([x, y])", [*A, *B]),
    Advice(lambda n: np.hstack([n["x"], n["y"]]), "evaluator.concatenate([x, y])", [*A, *B]),
    Advice(
        lambda n: np.stack([n["x"], n["y"]]),
        "evaluator.concatenate([x.reshape(1, -1), y.reshape(1, -1)])",
        [A, B],
    ),
]

PRODUCT = "evaluator.apply(lambda a, b: a * b % 4, u, v)"
WHERE = (
    "evaluator.apply(lambda v, c: v if c else 0, x, condition) + "
    "evaluator.apply(lambda v, c: 0 if c else v, y, condition)"
)
AS_INTEGERS = "evaluator.bind(client.encrypt_uint(values, bits=2))"
MESSAGES = [
    *both("any", "functools.reduce(operator.or_, (x != 0).ravel())", 1),
    *both("all", "functools.reduce(operator.and_, (x != 0).ravel())", 0),
    *both("prod", f"functools.reduce(lambda u, v: {PRODUCT}, x.ravel())", 0),
    *both("cumsum", "list(itertools.accumulate(x.ravel()))", A.cumsum()),
    *both("cumprod", f"list(itertools.accumulate(x.ravel(), lambda u, v: {PRODUCT}))", A.cumprod()),
    *both("argsort", AS_INTEGERS, A),
    *both("sort", AS_INTEGERS, A),
    function("median", AS_INTEGERS, A),
    *both("clip", "evaluator.apply(lambda v: min(max(v, 1), 2), x)", A.clip(1, 2), 1, 2),
    attribute("choose", "evaluator.apply(lambda c: (3, 1, 2, 0)[c], x)", [1, 3, 0]),
    function("isin", "evaluator.apply(lambda v: v in (1, 3), x)", [1, 0, 1], [1, 3]),
    Advice(
        lambda n: np.array_equal(n["x"], n["y"]),
        "functools.reduce(operator.and_, (x == y).ravel())",
        0,
    ),
    Advice(lambda n: np.where(n["condition"], n["x"], n["y"]), WHERE, np.where(C, A, B)),
    Advice(
        lambda n: n["server"].select(n["condition"], n["x"], n["y"]),
        "evaluator.apply(lambda c: 3 if c else 1, condition)",
        np.where(C, 3, 1),
    ),
    Advice(
        lambda n: n["server"].select(n["condition"], 3, 1),
        "evaluator.apply(lambda c: 3 if c else 1, condition)",
        np.where(C, 3, 1),
    ),
    Advice(lambda n: [3, 1, 2, 0][n["x"][0]], "evaluator.apply([3, 1, 2, 0], x)", [1, 3, 0]),
    Advice(lambda n: n["x"] ** 2, "evaluator.apply(lambda v: (v * v) % 4, x)", A * A % 4),
]

MEDIAN = "client.decrypt(x.ravel().sort()[x.size // 2 - 1 : x.size // 2 + 1]).mean()"
INTEGERS = [
    *both("any", "(x != 0).max()", True),
    *both("all", "(x != 0).min()", False),
    *both("prod", 'functools.reduce(operator.mul, x.ravel().astype("int64"))', 0),
    *both("cumsum", 'list(itertools.accumulate(x.ravel().astype("int64")))', A.cumsum()),
    *both(
        "cumprod",
        'list(itertools.accumulate(x.ravel().astype("int64"), operator.mul))',
        A.cumprod(),
    ),
    *both(
        "argsort",
        '(x.astype("int32") * x.size + np.arange(x.size)).sort() % x.size',
        A.argsort(kind="stable"),
    ),
    function("median", "x.ravel().sort()[x.size // 2]", np.median(A)),
    *both("clip", "x.maximum(1).minimum(2)", A.clip(1, 2), 1, 2),
    attribute("choose", "evaluator.read([30, 10, 20], x)", [10, 30, 0]),
    function("isin", "functools.reduce(operator.or_, [x == v for v in (1, 3)])", [1, 0, 1], [1, 3]),
    Advice(lambda n: np.array_equal(n["x"], n["y"]), "(x == y).min()", False),
    Advice(lambda n: np.inner(n["x"], n["y"]), "(x * y).sum()", A @ B),
    Advice(lambda n: n["x"] @ n["y"], "(x * y).sum()", A @ B),
    Advice(
        lambda n: np.where(n["condition"], n["x"], n["y"]),
        "evaluator.select(condition, x, y)",
        np.where(C, A, B),
    ),
    Advice(lambda n: n["y"][n["x"]], "evaluator.read(x, index)", None),
    Advice(lambda n: [3, 1, 2][n["x"][0]], "evaluator.read([30, 10, 20], x)", [10, 30, 0]),
    Advice(lambda n: np.array([3, 1])[n["x"]], "evaluator.read(", None),
    Advice(lambda n: n["x"].sum(dtype=bool), "(x != 0).max()", True),
    Advice(lambda n: n["server"].encrypt([1]), "evaluator.clear_uint(values, bits=8)", A),
]


def shown(world: World, result: Any) -> object:
    if isinstance(result, list):
        return [world.client.decrypt(one) for one in result]
    return result if isinstance(result, float) else world.client.decrypt(result)


@pytest.mark.parametrize("kind", ["messages", "integers"])
def test_what_refusals_advise_computes(world: World, kind: str) -> None:
    names = names_of(world, kind)
    for advice in [*COMMON, *(MESSAGES if kind == "messages" else INTEGERS)]:
        with pytest.raises(jali.Error) as refusal:
            advice.refused(names)
        assert advice.code in str(refusal.value), str(refusal.value)
        if advice.expected is not None:
            found = shown(world, eval(advice.code, dict(names)))
            np.testing.assert_array_equal(found, advice.expected, err_msg=advice.code)


def test_advice_for_numbers_of_a_matrix_is_for_all_of_them(world: World) -> None:
    """As in NumPy. Reductions over the first axis alone were advised."""
    m = np.array([[1, 0], [2, 3]])
    messages = world.server.bind(world.client.encrypt(m))
    integers = world.server.bind(world.client.encrypt_uint(m, bits=4))
    for x, name, code, expected in (
        (messages, "any", "functools.reduce(operator.or_, (x != 0).ravel())", 1),
        (messages, "all", "functools.reduce(operator.and_, (x != 0).ravel())", 0),
        (messages, "prod", f"functools.reduce(lambda u, v: {PRODUCT}, x.ravel())", 0),
        (messages, "cumsum", "list(itertools.accumulate(x.ravel()))", None),
        (integers, "any", "(x != 0).max()", 1),
        (integers, "all", "(x != 0).min()", 0),
        (integers, "median", MEDIAN, np.median(m)),
    ):
        names = {**names_of(world, "messages"), "x": x}
        with pytest.raises(jali.Error) as refusal:
            getattr(np, name)(x)
        assert code in str(refusal.value)
        if expected is not None:
            np.testing.assert_array_equal(shown(world, eval(code, names)), expected, err_msg=code)


def test_places_in_sorted_order_have_room(world: World) -> None:
    """Of numbers whose product with the count has no room in the type, the order was wrong."""
    numbers = np.array([1 << 31, 5], np.uint32)
    x = world.server.bind(world.client.encrypt_uint(numbers, bits=32))
    with pytest.raises(jali.Error) as refusal:
        np.argsort(x)
    code = '(x.astype("int32") * x.size + np.arange(x.size)).sort() % x.size'
    assert code in str(refusal.value)
    assert 'with "int64" if the numbers times x.size have no room' in str(refusal.value)
    found = world.client.decrypt(eval(code.replace("int32", "int64"), {"x": x, "np": np}))
    np.testing.assert_array_equal(found, np.argsort(numbers))


def test_an_encrypted_index_reads(world: World) -> None:
    names = names_of(world, "integers")
    read = world.server.read(names["y"], names["x"])
    np.testing.assert_array_equal(world.client.decrypt(read), [1, 2, 0])  # no element 3
    with pytest.raises(jali.Unsupported, match=r"evaluator\.read\(x, index\)"):
        names["x"].reshape(1, 3)[0, names["x"]]


def test_votes_are_counted_as_integers(world: World) -> None:
    """Forty messages have no room for their sum; the refusal says what has."""
    votes = names_of(world, "integers")["votes"]
    messages = world.given(votes, largest=1)
    with pytest.raises(jali.RangeExceeded, match="encrypt_uint"):
        messages.sum()
    counted = world.server.bind(world.client.encrypt_uint(votes, bits=1)).sum()
    assert world.client.decrypt(counted) == 20


def test_unknown_functions_are_refused_without_untrue_advice(world: World) -> None:
    for kind in ("messages", "integers"):
        with pytest.raises(jali.Unsupported, match="no method of the array"):
            np.fft.fft(names_of(world, kind)["x"])


def test_select_takes_two_clear_numbers(world: World) -> None:
    flag = world.server.bind(world.client.encrypt_uint(C, bits=1))
    for x, y, kind in (
        (5, 9, np.uint8),
        (300, 9, np.uint16),
        (-5, 200, np.int16),
        (np.array([1, 2, 3], np.int32), np.int32(7), np.int32),
        (np.int8(1), np.array([1, 2, 3], np.uint8), np.int16),
    ):
        found = world.client.decrypt(world.server.select(flag, x, y))
        assert found.dtype == kind
        np.testing.assert_array_equal(found, np.where(C, x, y))
    bits = World(make(1, 0))
    found = bits.client.decrypt(bits.server.select(bits.given(C), 1, 0))
    np.testing.assert_array_equal(found, C == 1)
