"""Square roots of numbers that reach 0, as the modulus of a complex number is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.driver import compiled
from jali.compiler.ir.folded_ops import Errors
from jali.compiler.ir.loop_graph import Loop
from jali.compiler.passes import approximate, roots
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.execute_approximated import expected
from jali.compiler.passes.fold import fold
from jali.compiler.passes.function_errors import _exact_but
from jali.compiler.passes.roots import (
    LEVEL,
    RESTORED_LEVEL,
    RootPolynomial,
    RootStages,
    root_of,
)
from jali.compiler.passes.staged_roots import bootstraps
from jali.compiler.planning.parameters import Ring

RNG = np.random.default_rng(46)
PAIRS = RNG.uniform(-1, 1, (120, 8))
PAIRS[:5, 4:] = PAIRS[:5, :4]  # of which the difference is exactly 0

#: Where an approximation may be worst: 0 and tiny numbers, and points everywhere.
POINTS = np.unique(np.r_[0.0, np.geomspace(1e-14, 1, 12_000), np.linspace(0, 1, 1_001)])


def modulus(x: Any) -> Any:
    return np.sqrt((x[:4] - x[4:]) ** 2)


def values_of(found: RootPolynomial | RootStages, x: Any, interval: tuple[float, float]) -> Any:
    low, high = interval
    if isinstance(found, RootPolynomial):
        t = (x - low) * 2 / (high - low) - 1
        return np.polynomial.chebyshev.chebval(t, found.coefficients)
    start = min(low, 0.0)
    return found((x - start) / (high - start)) * math.sqrt(high - start)


def staged(program: nn.Program) -> bool:
    """Whether the root of a program is a composition."""
    return any(" factor " in node.name for node in program.stages["approximate"])


# --- approximations -----------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [3, 7, 10.5, 12, 13.5, 14.2, 16, 19.9])
@pytest.mark.parametrize("level", [LEVEL, RESTORED_LEVEL])
def test_roots_are_within_the_error_that_is_said(bits: float, level: float) -> None:
    found = root_of((0.0, 1.0), 2.0**-bits, level=level)
    assert found is not None and found.error <= 2.0**-bits
    off = np.abs(values_of(found, POINTS, (0.0, 1.0)) - np.sqrt(POINTS)).max()
    assert 0.9 * found.error < off <= found.error


@pytest.mark.parametrize("degree", [6, 254, 382, 4094])
def test_one_polynomial_is_nearly_the_best_one(degree: int) -> None:
    """The best one is off by half of Bernstein's constant, 0.2801694990, beside its degree."""
    found = roots._of_degree(degree, 0.0)
    off = values_of(found, POINTS, (0.0, 1.0)) - np.sqrt(POINTS)
    assert np.abs(off).max() <= found.error
    assert 0.99 < np.abs(off).max() * degree / 0.1400847 < 1.02
    assert len(found.coefficients) == degree + 1


@pytest.mark.parametrize("interval", [(0.0, 589.0), (2e-4, 1.0), (1e-8, 3.0), (-1e-9, 3.0)])
@pytest.mark.parametrize(("bits", "level"), [(9, LEVEL), (13, LEVEL), (13, 0), (15, LEVEL)])
def test_roots_on_other_intervals(interval: tuple[float, float], bits: float, level: float) -> None:
    low, high = interval
    error = 2.0**-bits * math.sqrt(high)
    found = root_of(interval, error, level=level)
    assert found is not None and found.error <= 2.0**-bits * math.sqrt(high)
    x = np.unique(np.r_[low, POINTS[high * POINTS >= low] * high, np.linspace(low, high, 999)])
    assert np.abs(values_of(found, x, interval) - np.sqrt(np.maximum(x, 0))).max() <= error


def test_numbers_may_be_a_little_below_0_but_not_as_far_as_the_square_of_the_error() -> None:
    found = root_of((-(2.0**-31), 1.0), 2.0**-14.2, level=RESTORED_LEVEL)
    assert isinstance(found, RootStages)
    x = np.r_[np.linspace(-(2.0**-31), 0, 500), POINTS]
    off = np.abs(values_of(found, x, (-(2.0**-31), 1.0)) - np.sqrt(np.maximum(x, 0)))
    assert off.max() <= 2.0**-14.2
    assert root_of((-(2.0**-20), 1.0), 2.0**-14.2) is None
    coarse = root_of((-1e-5, 3.0), 2.0**-9 * math.sqrt(3))
    assert isinstance(coarse, RootPolynomial)
    x = np.r_[np.linspace(-1e-5, 0, 500), POINTS * 3]
    off = np.abs(values_of(coarse, x, (-1e-5, 3.0)) - np.sqrt(np.maximum(x, 0)))
    assert off.max() <= coarse.error


def test_an_argument_that_starts_above_0_has_polynomials_of_its_own() -> None:
    stages = root_of((1e-7, 1.0), 2.0**-15, level=0)
    assert isinstance(stages, RootStages)
    moved = stages.from_low(1e-7)
    x = np.geomspace(1e-7, 1, 1000)
    t = (x - 1e-7) * 2 / (1 - 1e-7) - 1
    assert np.allclose(moved((t + 1) / 2), stages(x), rtol=0, atol=1e-9)


def test_the_cheaper_one_is_taken() -> None:
    """Polynomials, which take fewer levels, as long as there are any; in programs that bootstrap
    up to 2^-12, beyond which compositions have a half or a third of their products."""
    for bits in (6, 10, 12):
        for level in (LEVEL, RESTORED_LEVEL):
            assert isinstance(root_of((0.0, 1.0), 2.0**-bits, level=level), RootPolynomial)
    for bits in (13.8, 14.2):
        one = root_of((0.0, 1.0), 2.0**-bits)
        found = root_of((0.0, 1.0), 2.0**-bits, level=RESTORED_LEVEL)
        assert isinstance(found, RootStages) and isinstance(one, RootPolynomial)
        assert found.price(RESTORED_LEVEL) < one.price(RESTORED_LEVEL)
        assert found.multiplications < len(one.coefficients) ** 0.5
    assert root_of((0.0, 1.0), 2.0**-14.9, whole=True) is None


def test_deep_programs_are_expected_to_bootstrap() -> None:
    def layers(count: int) -> Any:
        def f(x: Any) -> Any:
            x = np.sqrt(x * x)
            for _ in range(count):
                x = np.tanh(0.5 * x)
            return x

        return fold(nn.trace(f, PAIRS[0]))

    assert not bootstraps(layers(3)) and bootstraps(layers(4))


def test_levels_and_products_are_those_of_the_polynomials() -> None:
    found = root_of((0.0, 1.0), 2.0**-16)
    assert isinstance(found, RootStages)
    sizes = [len(c) for c in found.inner]
    assert all(n in (8, 16, 32) for n in sizes)
    assert [len(c) for c in found.factors[1:-1]] == [n // 2 for n in sizes[1:]]
    assert len(found.factors[0]) == sizes[0] // 2 + 1
    levels = sum(int(math.log2(n)) for n in (*sizes, 2 * len(found.factors[-1])))
    assert found.depth == levels == 18


def test_errors_below_the_least_have_no_composition() -> None:
    assert root_of((0.0, 1.0), roots.LEAST_ERROR) is not None
    assert root_of((0.0, 1.0), 0.99 * roots.LEAST_ERROR) is None


# --- programs -----------------------------------------------------------------------------------


@pytest.fixture
def no_price_on_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compositions are taken for errors for which one polynomial takes fewer levels, so that
    programs are small."""
    monkeypatch.setattr(approximate, "LEVEL", 0)
    monkeypatch.setattr(roots, "_LOW", 0)


@pytest.mark.parametrize("bits", [5, 8])
def test_roots_from_zero_are_as_exact_as_asked_for(bits: int) -> None:
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=bits)
    want = np.stack([modulus(x) for x in PAIRS])
    assert np.abs(program.simulate(PAIRS) - want).max() < 2.0**-bits * want.max()
    assert not staged(program)
    client = program.client()
    server = program.server(client.evaluation_keys())
    for k in (0, 50):
        got = client.decrypt(server(client.encrypt(PAIRS[k])))
        assert np.abs(got - want[k]).max() < 2.0**-bits * want.max()


@pytest.mark.usefixtures("no_price_on_levels")
def test_a_composition_on_encrypted_numbers() -> None:
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=10)
    assert staged(program)
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.to_bytes() == program.to_bytes() and staged(again)
    (root,) = (n for n in program.stages["levels"] if n.name == "sqrt")
    (argument,) = (n for n in program.stages["levels"] if n.name == "sqrt argument")
    path = ("sqrt square 1", "sqrt square 2", "sqrt factor 3")
    taken = [program.stages["approximate"][name].operation.by.depth for name in path]
    assert argument.level - root.level == sum(taken) + 1
    want = np.stack([modulus(x) for x in PAIRS])
    client = program.client()
    server = again.server(client.evaluation_keys())
    for k in (0, 50):
        got = client.decrypt(server(client.encrypt(PAIRS[k])))
        assert np.abs(got - want[k]).max() < 2.0**-10 * want.max()


@pytest.mark.long
@pytest.mark.parametrize(("bits", "composed"), [(11, False), (15, True)])
def test_exact_roots_on_encrypted_numbers(bits: int, composed: bool) -> None:
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=bits)
    assert staged(program) == composed
    client = program.client()
    server = program.server(client.evaluation_keys())
    for k in (0, 50):
        got = client.decrypt(server(client.encrypt(PAIRS[k])))
        assert np.abs(got - modulus(PAIRS[k])).max() < 2.0**-bits * 2


@pytest.mark.usefixtures("no_price_on_levels")
def test_compositions_bootstrap_between_their_polynomials() -> None:
    """Six levels lie between two bootstrappings, and no polynomial of six levels is as exact. The
    noise is what was announced: where the slope of one factor is large, the other is small, and a
    product of their means would be off by many bits."""
    weights = np.linalg.qr(np.random.default_rng(7).normal(size=(8, 8)))[0]
    program = compiled(
        nn.trace(lambda v: weights[:3, :4] @ modulus(v), PAIRS[0]),
        [PAIRS],
        precision_bits=10,
        lanes=1,
        memory=1 << 30,
        insecure_ring=Ring(10, 6),
    )
    restored = [n.inputs[0] for n in program.stages["levels"] if n.op == "bootstrap"]
    assert staged(program) and any("square" in name for name in restored)
    assert not any("factor" in name for name in restored)  # they are larger than 1
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got, want = client.decrypt(server(client.encrypt(PAIRS))), program.clear(PAIRS)
    assert np.abs(got - want).max() <= 2.0**-10 * np.abs(want).max()
    graph = program.stages["approximate"]
    noise = np.std(got - expected(program.stages["trace"], graph, [PAIRS])[0])
    bits = program.manifest.demand.noise_bits[0]
    announced = float(graph[graph.outputs[0]].scaling.radius) * 2.0**-bits
    assert announced / 4 < noise < 2 * announced


@pytest.mark.usefixtures("no_price_on_levels")
def test_a_composition_is_one_function_of_the_model() -> None:
    """Its error is measured as that of a function, while others are exact."""
    graph = calibrate(fold(nn.trace(lambda x: np.tanh(4 * np.sqrt(x * x) - 2), PAIRS[0])), [PAIRS])
    made = approximated(graph, Errors(2.0**-12))
    assert any(" factor " in node.name for node in made)
    want = np.tanh(4 * np.abs(PAIRS) - 2)

    def off(kept: str) -> float:
        (got,) = expected(graph, _exact_but(made, graph, kept), [PAIRS])
        return float(np.abs(got - want).max())

    assert off("none of them") < 1e-9
    assert 2.0**-15 < off("tanh") < 2.0**-11
    assert 2.0**-15 < off("sqrt") < 2.0**-8


@pytest.mark.usefixtures("no_price_on_levels")
def test_roots_in_loops_are_single_polynomials() -> None:
    def f(x: Any) -> Any:
        return nn.loop(lambda h, y: np.sqrt(0.25 * h * h + 0.25 * y * y), np.zeros(4), x)

    x = RNG.uniform(-1, 1, (40, 3, 4))
    traced = nn.trace(f, x[0])
    graph = calibrate(fold(traced), [x])
    made = approximated(graph, 2.0**-11)
    bodies = [n.operation.body for n in made if isinstance(n.operation, Loop)]
    assert bodies and not any(" factor " in n.name for body in bodies for n in body)
    (got,) = expected(traced, made, [x])
    assert np.abs(got - np.stack([f(one) for one in x])).max() < 2.0**-6


def test_examples_between_those_of_the_calibration_are_right_too() -> None:
    """No interval near 0 is left out."""
    program = jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=6)
    x = np.zeros((200, 8))
    x[:, :4] = np.geomspace(1e-6, 1.0, 200)[:, None]
    want = np.stack([modulus(one) for one in x])
    assert np.abs(program.simulate(x) - want).max() < 2.0**-6 * 2


def test_roots_of_numbers_below_zero_are_refused() -> None:
    x = RNG.uniform(0.2, 1, (50, 3))
    with pytest.raises(jali.InvalidArgument, match=r"above 0|add a constant|NaN"):
        jali.compile(lambda v: np.sqrt(v - 0.5), x[0], calibration=x, precision_bits=5)


def test_roots_that_nothing_reaches_are_refused_with_what_helps() -> None:
    with pytest.raises(jali.InvalidArgument, match="keep its numbers away from 0") as refused:
        jali.compile(modulus, PAIRS[0], calibration=PAIRS, precision_bits=20)
    assert "ask for fewer precision_bits" in str(refused.value)
    approximated(calibrate(fold(nn.trace(modulus, PAIRS[0])), [PAIRS]), 2.0**-19)
    jali.compile(
        lambda x: np.sqrt((x[:4] - x[4:]) ** 2 + 0.05),
        PAIRS[0],
        calibration=PAIRS,
        precision_bits=20,
    )
