"""A product is computed only when its use is known: together with its key switch, or as a term of a
sum."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import jali
from jali import ckks

DEPTH = 3


class World:
    def __init__(self, device: str, trace: bool = False) -> None:
        params = ckks.Params.create(
            depth=DEPTH, scale_bits=40, log_n=11, security=0, name="insecure_test"
        )
        self.client = ckks.Client(params)
        self.server = ckks.Evaluator(
            params, self.client.evaluation_keys(rotations=[1]), device, trace=trace
        )
        random = np.random.default_rng()
        self.a, self.b, self.c = random.uniform(-1, 1, (3, params.slots))
        self.x, self.y, self.z = (self.bound(v) for v in (self.a, self.b, self.c))

    def bound(self, values: np.ndarray, level: int | None = None) -> ckks.EncryptedArray:
        return self.server.bind(self.client.encrypt(values, level=level, peak=1.5))

    def near(self, value: ckks.EncryptedArray, expected: np.ndarray) -> bool:
        return bool(np.max(np.abs(self.client.decrypt(value) - expected)) < 1e-6)

    def operations(self) -> list[str]:
        """The operations that were recorded since the last call."""
        trace = self.server.trace()
        _, *lines = trace.json_lines().splitlines()
        names = [json.loads(line)["op"] for line in lines]
        trace.clear()
        return names


@pytest.fixture
def world() -> World:
    return World("auto")


def test_sums_of_products_have_the_values_of_their_formulas(world: World) -> None:
    x, y, z, a, b, c = world.x, world.y, world.z, world.a, world.b, world.c
    assert world.near(x * y, a * b)
    assert world.near(x * x, a * a)
    assert world.near(x * y + y * z + 0.25, a * b + b * c + 0.25)
    assert world.near(0.5 - (x * y - z * z), 0.5 - (a * b - c * c))
    assert world.near(x * y + z, a * b + c)
    assert world.near(z - x * y, c - a * b)
    assert world.near(x * y + x * np.full(len(a), 0.5), a * b + a * 0.5)
    assert world.near((x * y + 1j) * (y * z), (a * b + 1j) * b * c)
    assert world.near((x * y).rotate(1), np.roll(a * b, -1))
    assert world.near(2 * (x * y) + (x * y + 3000.0), 3 * a * b + 3000)
    assert world.near(x**5, a**5)
    low = world.bound(b, level=1)
    assert world.near(x * low + x * y, a * b + a * b)
    many, expected = x * y, a * b
    for _ in range(20):  # more terms than a sum keeps uncomputed
        many, expected = many + x * z, expected + a * c
    assert world.near(many, expected)


def test_what_is_known_of_a_product_needs_no_computation() -> None:
    world = World("cpu", trace=True)
    world.operations()
    product = world.x * world.y
    assert (product.level, product.slots, product.shape) == (
        DEPTH - 1,
        len(world.a),
        (len(world.a),),
    )
    assert world.operations() == []


@pytest.mark.parametrize("terms", [1, 3])
def test_no_tensor_product_goes_through_memory(terms: int) -> None:
    world = World("cpu", trace=True)
    world.operations()
    total = world.x * world.y
    for _ in range(terms - 1):
        total = total + world.y * world.z
    _ = (total + 0.5).ciphertext
    names = world.operations()
    assert names.count("combine_key_switch") == 1
    assert "tensor" not in names
    _ = total.ciphertext, total.ciphertext  # the second is not computed again
    assert world.operations().count("combine_key_switch") == 1


def test_errors_come_with_the_product(world: World) -> None:
    last = world.bound(world.b, level=0)
    with pytest.raises(jali.DepthExhausted):
        world.x * last
    short = world.bound(world.b[:5])
    with pytest.raises(jali.InvalidArgument, match="lengths"):
        short * world.bound(world.b[:6])
    with pytest.raises(jali.InvalidArgument, match="lengths"):
        short * short + world.bound(world.b[:6]) * world.bound(world.b[:6])


def test_a_product_from_outside_a_recording_stays_right(world: World) -> None:
    outside = world.x * world.y
    captured = world.server.capture(lambda v: v + outside, world.z)
    assert world.near(outside, world.a * world.b)  # before the recording ever ran
    assert world.near(captured(world.z), world.c + world.a * world.b)
    del captured
    assert world.near(outside, world.a * world.b)


def test_threads_share_a_product(world: World) -> None:
    for _ in range(20):
        product = world.x * world.y
        with ThreadPoolExecutor(4) as pool:
            one = [pool.submit(lambda p=product: p.ciphertext) for _ in range(2)]
            two = [pool.submit(lambda p=product: (p + p).ciphertext) for _ in range(2)]
        assert all(world.near(world.server.bind(f.result()), world.a * world.b) for f in one)
        assert all(world.near(world.server.bind(f.result()), 2 * world.a * world.b) for f in two)
