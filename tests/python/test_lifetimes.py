"""Values are freed as soon as their last user drops them; none waits for Python's garbage
collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from conftest import World

import jali
from jali import ckks

HEAVY = (
    ckks.Ciphertext,
    ckks.EncryptedArray,
    ckks.Evaluator,
    ckks.EvaluationKeys,
    ckks.Captured,
    ckks.Batcher,
)


@pytest.fixture
def garbage() -> Iterator[Callable[[], list[object]]]:
    """Returns a function that finds the objects in unreachable cycles that were made since the test
    began."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)

    def found() -> list[object]:
        gc.collect()
        kept = [x for x in gc.garbage if isinstance(x, HEAVY)]
        gc.garbage.clear()
        return kept

    yield found
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def test_powers_keep_nothing(one: World, garbage: Callable[[], list[object]]) -> None:
    x = one.bind(np.full(4, 0.5))
    for n in (1, 2, 3, 5, 7, 8):
        assert np.allclose(one.client.decrypt(x**n), 0.5**n, atol=1e-4)
    for _ in range(200):
        x**7
    assert garbage() == []


def test_no_operation_keeps_a_value_in_a_cycle(
    one: World, garbage: Callable[[], list[object]]
) -> None:
    server = ckks.Evaluator(one.params, one.keys, "cpu", threads=1)
    v = np.linspace(-1, 1, 8)
    x = server.bind(one.client.encrypt(v))
    y = server.bind(one.client.encrypt(v))
    plan = ckks.LinearTransform(one.params, {0: np.ones(one.params.slots)})
    square = ckks.Polynomial([0, 0, 1.0])
    for operation in (
        lambda: [x + y, x - y, x * y, -x, +x, 1 - x, x / 2, 2 * x, x + v, x * v, v - x],
        lambda: [x.rotate(1), x.conj(), x.sum(count=32), x.with_length(4), x.with_magnitude(0.5)],
        lambda: [server.linear_transform(plan, x), server.polynomial(x, square)],
        lambda: server.prepare(plan),
        lambda: server.capture(lambda a: a * a, x)(y),
        lambda: server.map(lambda a: a * a, [x, y]),
        lambda: server.batcher(lambda a: a + a)([x, y]),
        lambda: ckks.Ciphertext.from_bytes(x.ciphertext.to_bytes(), one.params),
        lambda: ckks.Evaluator(one.params, one.keys, "cpu", threads=1).bind(x.ciphertext) ** 3,
        lambda: one.client.decrypt(x),
    ):
        operation()
        assert garbage() == [], operation
    for wrong in (
        lambda: x**0,
        lambda: x + one.bind(v),
        lambda: ckks.Evaluator(one.params, None, "cpu").bind(x.ciphertext).rotate(1),
        lambda: server.capture(lambda a: 1 / 0, x),
        lambda: server.map(lambda a: 1 / 0, [x, y]),
    ):
        with pytest.raises((jali.Error, ZeroDivisionError)):
            wrong()
        assert garbage() == [], wrong
