"""What plans that bootstrap ask of their parameters."""

from __future__ import annotations

import numpy as np
import pytest
from deep_networks import squares

import jali
from jali import ckks, nn
from jali.compiler.cost.keys import word_bytes
from jali.compiler.ir.graph import Graph
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.planning import bootstrapping_planner as planning
from jali.compiler.planning.parameters import MORE_BITS, MOST_BITS, rings
from jali.compiler.runtime.interpreter import Interpreter
from jali.compiler.runtime.matrices import Numbers


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

    assert create(MOST_BITS).bootstraps
    with pytest.raises(jali.InvalidArgument, match="precision_bits must be 5 to 32"):
        create(MOST_BITS + 0.1)


def restoring(device: str, layers: int = 16) -> planning.BootstrappingPlanner:
    return planning.BootstrappingPlanner(deep(layers), 6, 1, 1 << 30, device, float("inf"), None)


def test_more_precision_than_there_is_names_the_limit() -> None:
    with pytest.raises(jali.Unsupported, match="33 bits, and one bootstrapping has at most 32"):
        restoring("cpu")._cheapest(33.0)


def test_a_gpu_has_words_of_32_bits_for_the_fewest_more_bits_of_precision() -> None:
    """At 15.6 bits of precision no number of levels has enough primes of 32 bits. How many more
    bits it takes differs."""
    cpu, gpu = (rings(15.6, 1, device)[-1] for device in ("cpu", "cuda"))
    assert cpu.log_n == gpu.log_n == 16
    more = set()
    for levels in (4, 6, 7, 16):
        assert (cpu.bits(levels), cpu._at_precision(levels).word) == (15.6, "w52")  # type: ignore[union-attr]
        params, bits = gpu.at(levels), gpu.bits(levels)
        assert params is not None and params.word == "w32"
        assert params.depth - params.bootstrap_level == levels
        assert 15.6 < bits <= 15.6 + MORE_BITS
        more.add(bits)
        before = gpu._create(levels, round(bits - 0.1, 1))
        assert before is not None and before.word == "w52"
    assert len(more) > 1
    exact = rings(18.0, 1, "cuda")[-1]
    assert (exact.bits(6), exact.at(6).word) == (18.0, "w32")  # type: ignore[union-attr]


def test_plans_for_a_gpu_have_words_of_32_bits() -> None:
    fast, same = (restoring(device)._cheapest(16.0) for device in ("cuda", "cpu"))
    assert word_bytes(fast.params) == 4 and 16 < fast.bits <= 16 + MORE_BITS
    assert word_bytes(same.params) == 8 and same.bits == 16


@pytest.mark.long
def test_bits_that_have_other_words_take_other_levels() -> None:
    """With seven levels between two bootstrappings, words of 32 bits take 17.3 bits of precision,
    and with 16 levels 16.4: a search for fewer bits must not end where the one before did if
    nothing there has such words."""
    gpu = restoring("cuda")
    near = gpu._cheapest(18.0)
    assert gpu._cheapest(16.0, near).params.word == "w32"
    assert gpu._cheapest(16.0, near).cost <= 1.1 * gpu._cheapest(16.0).cost


def test_machines_that_share_numbers_compute_the_same() -> None:
    """The second machine has the diagonals of the first; another number of slots or of lanes has
    its own."""
    rng = np.random.default_rng(4)
    weights, x = rng.normal(size=(5, 12)) / 4, rng.uniform(-1, 1, (40, 12))
    program = jali.compile(lambda v: weights @ v, x[0], calibration=x, precision_bits=8, batch=2)
    numbers, alone = Numbers(), program._interpreter()
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    request = client.encrypt(x[:2])
    inputs = [tuple(map(server.evaluator.bind, array)) for array in request.arrays]
    made = [
        Interpreter(alone.graph, program.params, 2, 1 << 30, numbers=numbers)(
            server.evaluator, *inputs
        )
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
