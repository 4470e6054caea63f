"""Sums of encrypted integers are those of NumPy: they widen, and wrap if and only if a type is
asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tfhe_world import World, make

import jali


@pytest.fixture(scope="module")
def world() -> World:
    return World(make())


def extremes(bits: int, signed: bool, count: int) -> list[np.ndarray]:
    """The largest numbers of a type, its lowest, and some between."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    kind = np.int64 if signed else np.uint64
    rng = np.random.default_rng([bits, signed, count])
    return [
        np.full(count, high, kind),
        np.full(count, low, kind),
        rng.integers(low, high, count, dtype=kind, endpoint=True),
    ]


def bound(w: World, a: np.ndarray, bits: int) -> Any:
    signed = a.dtype.kind == "i"
    return w.server.bind((w.client.encrypt_int if signed else w.client.encrypt_uint)(a, bits=bits))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8, 13, 62, 64])
def test_sums_are_exact(world: World, bits: int, signed: bool) -> None:
    for count in (1, 2, 5):
        for a in extremes(bits, signed, count):
            x = bound(world, a, bits)
            with np.errstate(over="ignore"):
                expected = a.sum()  # modulo 2^64, as NumPy's
            for found in (x.sum(), np.sum(x), x.sum(0), x.sum(axis=(0,))):
                shown = world.client.decrypt(found)
                assert shown == expected and found.shape == ()
                assert shown.dtype.kind == a.dtype.kind


def test_the_sum_of_ages(world: World) -> None:
    ages = world.server.bind(world.client.encrypt_uint([17, 42, 18, 90], bits=7))
    for total in (
        ages.sum(),
        np.sum(ages),
        np.add.reduce(ages),
        ages.reshape(2, 2).sum(axis=1).sum(),
    ):
        assert world.client.decrypt(total) == 167
    assert world.client.decrypt(ages.sum() // ages.size) == 41
    assert ages.sum().bits == 9
    columns = np.add.reduce(ages.reshape(2, 2)), np.maximum.reduce(ages.reshape(2, 2), axis=1)  # type: ignore[call-overload]
    assert [world.client.decrypt(c).tolist() for c in columns] == [[35, 132], [42, 90]]
    for wrapped in (ages.sum(bits=7), ages.sum(dtype="uint7"), np.sum(ages, dtype="uint7")):
        assert world.client.decrypt(wrapped) == 39
    with pytest.raises(jali.Unsupported, match=r"x\.sum\(\) // x\.size"):
        ages.mean()


def test_sums_along_axes_have_numpys_shapes(world: World) -> None:
    a = np.array([[200, 100, 255], [255, 255, 255]], np.uint8)
    x = bound(world, a, 8)
    for axis in (None, 0, 1, -1, (0, 1), (1, 0), ()):
        for keepdims in (False, True):
            expected = a.sum(axis=axis, keepdims=keepdims)
            for found in (x.sum(axis=axis, keepdims=keepdims), np.sum(x, axis, keepdims=keepdims)):
                np.testing.assert_array_equal(world.client.decrypt(found), expected)
                assert found.shape == expected.shape
    y = world.given([[1, 2, 3]])
    assert y.sum(axis=1, keepdims=True).shape == (1, 1)
    assert y.sum(keepdims=True).shape == (1, 1)


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16", "uint32", "int64", "int5"])
def test_a_type_that_is_asked_for_wraps(world: World, kind: str) -> None:
    bits = int(kind.lstrip("uint"))
    for a in (np.array([200, 100, 255], np.uint8), np.array([-128, -128, 127], np.int8)):
        total = int(a.sum()) % (1 << bits)
        if kind[0] == "i" and total >= 1 << (bits - 1):
            total -= 1 << bits
        x = bound(world, a, 8)
        assert world.client.decrypt(x.sum(dtype=kind)) == total
        assert world.client.decrypt(x.dot([1, 1, 1], dtype=kind)) == total
        same_sign = kind.lstrip("u") == kind if a.dtype.kind == "i" else kind[0] == "u"
        if same_sign:
            assert world.client.decrypt(x.sum(bits=bits)) == total


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [2, 7, 8, 16])
def test_products_with_clear_weights_are_exact(world: World, bits: int, signed: bool) -> None:
    for weights in ([3, 200, 70], [-5, 7, 0], [0, 0, 0], [-1, -1, -1], [1, 0, 0]):
        for a in extremes(bits, signed, 3):
            x = bound(world, a, bits)
            expected = int(a.astype(np.int64) @ weights)
            for found in (x @ weights, x.dot(weights), np.dot(x, weights), x @ np.array(weights)):
                assert world.client.decrypt(found) == expected
    narrow = np.array([200, 250, 255], np.uint8)  # NumPy would wrap
    x = bound(world, np.full(3, 1 << (bits - 1 - signed), np.int64 if signed else np.uint64), bits)
    assert world.client.decrypt(x @ narrow) == 705 << (bits - 1 - signed)


def test_what_a_sum_can_not_be(world: World) -> None:
    x = bound(world, np.array([1, 2], np.uint64), 8)
    with pytest.raises(jali.InvalidArgument, match="give one of them"):
        x.sum(dtype="uint8", bits=8)
    for bits in (0, 65, 2.5, True):
        with pytest.raises(jali.InvalidArgument, match="whole number from 1 to 64"):
            x.sum(bits=bits)
    with pytest.raises(jali.Unsupported, match="no type of integers"):
        x.sum(dtype=np.float64)
    with pytest.raises(jali.Unsupported, match=r"\(x != 0\)\.max\(\)"):
        x.sum(dtype=bool)
    with pytest.raises(jali.InvalidArgument, match="keepdims"):
        x.sum(keepdims=3)
