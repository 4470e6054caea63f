"""What plans that bootstrap ask of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from deep_networks import squares

import jali
from jali import ckks, nn
from jali.nn import restoring as planning
from jali.nn.approximate import approximated
from jali.nn.calibrate import calibrate
from jali.nn.fold import fold
from jali.nn.graph import Graph
from jali.nn.keys import word_bytes
from jali.nn.matrices import Numbers
from jali.nn.run import Machine


def deep(layers: int) -> Graph:
    """Squares one behind the other, after the stage approximate."""
    f, x = squares(layers)
    return approximated(calibrate(fold(nn.trace(f, x[0])), [x]), 2.0**-6)


def test_the_most_precise_bootstrapping_is_the_most_precise_one_there_is() -> None:
    def create(bits: float) -> ckks.Params:
        return ckks.Params.create(
            bootstrap=True,
            precision_bits=bits,
            levels_after=4,
            log_n=12,
            security=0,
            name="insecure_test",
        )

    assert create(planning._MOST_BITS).bootstraps
    with pytest.raises(jali.InvalidArgument, match="precision_bits must be 5 to 32"):
        create(planning._MOST_BITS + 0.1)


def restoring(device: str, layers: int = 16) -> planning.Restoring:
    return planning.Restoring(deep(layers), 6, 1, 1 << 30, device, float("inf"), None)


def test_more_precision_than_there_is_names_the_limit() -> None:
    with pytest.raises(jali.Unsupported, match="33 bits, and one bootstrapping has at most 32"):
        restoring("cpu")._cheapest(33.0)


def test_a_gpu_has_words_of_32_bits_for_a_few_more_bits_of_precision() -> None:
    """At 16 bits of precision a scale has no primes in words of 32 bits, and at 18 it has."""
    gpu = restoring("cuda")
    slow, fast = gpu._cheapest(16.0), gpu._fast(16.0, None)
    assert word_bytes(slow.params) == 8 and word_bytes(fast.params) == 4
    assert slow.bits == 16 < fast.bits <= 16 + planning._MORE_BITS
    assert fast.cost < slow.cost
    same = restoring("cpu")._fast(16.0, None)
    assert same.bits == 16 and same.params.word == slow.params.word


def test_other_words_make_a_plan_look_at_all_rings_again() -> None:
    """A plan near to one whose ring had words of 64 bits would keep to that ring, where another one may now be better."""
    gpu = restoring("cuda")
    before = gpu._cheapest(16.0)
    assert gpu._words(18.0) != gpu._words(before.bits)
    assert gpu._fast(18.0, before).cost == gpu._fast(18.0, None).cost


def test_words_of_32_bits_are_looked_for_in_every_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 16 bits of precision the smaller ring has such words and the larger one none. If the others are slow, the smaller ring costs less, and the larger
    ring with a few more bits less still."""
    known = planning.costs_of

    def costs(params: ckks.Params, *rest: Any) -> Any:
        return known(params, *rest).slowed(1 if params.word == "w32" else 100)

    monkeypatch.setattr(planning, "costs_of", costs)
    gpu = restoring("cuda", 24)  # too deep to do without bootstrapping
    first = gpu._cheapest(16.0)
    assert (first.params.log_n, first.params.word) == (15, "w32")
    fast = gpu._fast(16.0, None)
    assert (fast.params.log_n, fast.params.word) == (16, "w32")
    assert 16 < fast.bits <= 16 + planning._MORE_BITS and fast.cost < first.cost / 2
    again = gpu._fast(16.0, first)  # the search goes on from other parameters
    assert again.cost <= first.cost


def test_machines_that_share_numbers_compute_the_same() -> None:
    """The second machine has the diagonals of the first; another number of slots or of lanes has its own."""
    rng = np.random.default_rng(4)
    weights, x = rng.normal(size=(5, 12)) / 4, rng.uniform(-1, 1, (40, 12))
    program = jali.compile(lambda v: weights @ v, x[0], calibration=x, precision_bits=8, batch=2)
    numbers, alone = Numbers(), program._machine()
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    request = client.encrypt(x[:2])
    inputs = [tuple(map(server.evaluator.bind, array)) for array in request.arrays]
    made = [
        Machine(alone.graph, program.params, 2, 1 << 30, numbers=numbers)(server.evaluator, *inputs)
        for _ in range(2)
    ]
    want = alone(server.evaluator, *inputs)
    for found in made:
        ((y,), (z,)) = (*found, *want)
        assert y.ciphertext.to_bytes() == z.ciphertext.to_bytes()
    ((key, kept),) = numbers._kept.items()
    assert numbers.get(key) is kept and key[1:] == (program.params.slots, 2)
    assert numbers.get((key[0], key[1] // 2, key[2])) is None
    assert numbers.get((key[0], key[1], 1)) is None


def test_numbers_are_kept_while_there_is_room() -> None:
    numbers = Numbers()
    one = {d: np.zeros(1) for d in range(1 << 10)}  # 1 GiB, if these were diagonals of 2^16 slots
    for k in range(3):
        numbers.add((bytes([k]), 1 << 16, 1), one)
    kept = [numbers.get((bytes([k]), 1 << 16, 1)) is one for k in range(3)]
    assert kept == [True, True, False]
