"""Inputs from anywhere in the ranges that clients accept: no array leaves a range that is proven,
and what leaves one that was seen is told."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.ir.execute import execute
from jali.compiler.passes.approximate import approximate
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.execute_approximated import expected
from jali.compiler.passes.fold import fold
from jali.nn import scalar

Function = Callable[..., Any]
Array = np.ndarray[Any, np.dtype[np.float64]]
BITS = 6


def anywhere(program: nn.Program, count: int, rng: np.random.Generator) -> list[Array]:
    """Examples of every input: numbers drawn uniformly from the ranges that clients accept, and
    corners of these."""
    found = []
    for port in program.manifest.inputs:
        inside = rng.uniform(port.low, port.high, (count, port.low.size))
        corners = np.where(rng.random((count, port.low.size)) < 0.5, port.low, port.high)
        found.append(np.concatenate([inside, corners]).reshape(-1, *port.shape))
    return found


def largest_errors(
    program: nn.Program, calibration: list[Array], inputs: list[Array]
) -> tuple[Array, list[str]]:
    """The largest error of every example without noise, in units of the largest number of the
    calibration, and what simulate warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        got = np.asarray(program.simulate(*inputs, rng=0))
    largest = np.abs(program.clear(*calibration)).max()
    off = np.abs(got - program.clear(*inputs)).reshape(len(got), -1)
    return off.max(axis=1) / largest, [str(warning.message) for warning in told]


def perceptron(rng: np.random.Generator) -> Function:
    first, second = rng.normal(size=(6, 8)) / 3, rng.normal(size=(3, 6)) / 2
    return lambda x: second @ np.tanh(first @ x)


def with_relu(rng: np.random.Generator) -> Function:
    first, second = rng.normal(size=(6, 8)) / 3, rng.normal(size=(3, 6)) / 2
    return lambda x: second @ scalar.relu(first @ x) + 1.0


def norm(rng: np.random.Generator) -> Function:
    weights = rng.normal(size=(4, 8)) / 3
    return lambda x: (weights @ x) / np.sqrt((x * x).sum() + 1.0)


def cosine(rng: np.random.Generator) -> Function:
    other = rng.normal(size=8)
    return lambda x: (other @ x) * (1 / ((x * x).sum() + 0.5))


def squares(rng: np.random.Generator) -> Function:
    first, second = rng.normal(size=(6, 8)) / 3, rng.normal(size=(3, 6)) / 2
    return lambda x: second @ ((first @ x) ** 2)


def products(rng: np.random.Generator) -> Function:
    shift = rng.normal(size=(2, 2))
    return lambda x: np.tanh((x.reshape(2, 4) @ x.reshape(4, 2)) + shift)


def error_anywhere(program: jali.nn.Program) -> float:
    """A bound on errors of the results of all inputs that clients accept. They are larger than the
    results of the calibration, for which the precision holds, and errors of functions are in units
    of the largest value."""
    largest = max(1.0, *(np.abs(p.peak * p.radius).max() for p in program.manifest.outputs))
    return 4 * 2.0**-BITS * float(largest)


MODELS = (perceptron, with_relu, norm, cosine, squares, products)


@pytest.mark.parametrize("model", MODELS, ids=lambda f: f.__name__)
def test_no_accepted_input_leads_out_of_proven_ranges(
    model: Callable[[np.random.Generator], Function], rng: np.random.Generator
) -> None:
    function, calibration = model(rng), rng.normal(size=(300, 8)) / 3
    program = jali.compile(
        function, calibration[0], calibration=calibration, precision_bits=BITS, ranges="proven"
    )
    assert all(node.attrs["proven"] for node in program.stages["calibrate"])
    inputs = anywhere(program, 2000, rng)
    off, told = largest_errors(program, [calibration], inputs)
    assert off.max() <= error_anywhere(program)
    assert not [text for text in told if "decryption refuses" in text]
    assert all("no number left its range" in text for text in told)
    if told:  # what it says to do helps
        every = np.concatenate([calibration, *inputs])
        wider = jali.compile(
            function, calibration[0], calibration=every, precision_bits=BITS, ranges="proven"
        )
        assert not largest_errors(wider, [every], inputs)[1]


@pytest.mark.parametrize("model", MODELS, ids=lambda f: f.__name__)
def test_what_leads_out_of_seen_ranges_is_told(
    model: Callable[[np.random.Generator], Function], rng: np.random.Generator
) -> None:
    function, calibration = model(rng), rng.normal(size=(300, 8)) / 3
    program = jali.compile(function, calibration[0], calibration=calibration, precision_bits=BITS)
    off, told = largest_errors(program, [calibration], anywhere(program, 2000, rng))
    wrong = int((off > 1.5 * 2.0**-BITS).sum())
    counts = [re.search(r"results of ([\d,]+) examples? of 4000", text) for text in told]
    counted = sum(int(found[1].replace(",", "")) for found in counts if found)
    assert counted >= wrong
    if wrong:
        assert any(
            "off by more than was asked for" in text or "decryption refuses" in text
            for text in told
        )


def test_a_perceptron_leads_out_of_seen_ranges_without_decryption_noticing(
    rng: np.random.Generator,
) -> None:
    """What is told above does occur."""
    function, calibration = perceptron(rng), rng.normal(size=(300, 8)) / 3
    program = jali.compile(function, calibration[0], calibration=calibration, precision_bits=BITS)
    _, told = largest_errors(program, [calibration], anywhere(program, 2000, rng))
    assert any("decryption returns, although they are off" in text for text in told)
    assert 'ranges="proven"' in str(program.summary("cpu"))


def test_a_corner_of_the_accepted_range_is_decrypted_right(rng: np.random.Generator) -> None:
    function, calibration = perceptron(rng), rng.normal(size=(300, 8)) / 3
    program = jali.compile(
        function,
        calibration[0],
        calibration=calibration,
        precision_bits=BITS,
        batch=8,
        ranges="proven",
    )
    (port,) = program.manifest.inputs
    inputs = np.where(rng.random((8, 8)) < 0.5, port.low, port.high)
    client = program.client()
    got = client.decrypt(program.server(client.evaluation_keys())(client.encrypt(inputs)))
    want = np.asarray(program.clear(inputs))
    assert np.abs(got - want).max() <= error_anywhere(program)
    assert "no input that clients accept leads out" in str(program.summary("cpu"))


def test_results_on_the_other_side_of_0_are_refused(rng: np.random.Generator) -> None:
    """Results of the calibration lie in [1, 9]. Those of the same size with the other sign are out
    of range."""
    calibration = rng.uniform(1, 3, (100, 4))
    program = jali.compile(lambda x: x * x, calibration[0], calibration=calibration)
    (port,) = program.manifest.outputs
    inside = (np.full((1, 4), 4.0) - port.centre) / port.radius
    assert not port.refused(inside, 30).any()
    assert port.refused((np.full((1, 4), -4.0) - port.centre) / port.radius, 30).all()


def test_ranges_that_nothing_bounds_are_refused_with_the_way_out(rng: np.random.Generator) -> None:
    calibration = rng.normal(size=(50, 3))

    def f(x: Any) -> Any:
        return np.log(x @ x + (x * 1.5) @ x - 0.5 * (x @ x) + 0.01)

    with pytest.raises(jali.InvalidArgument, match=r'ranges="seen"'):
        jali.compile(
            f, calibration[0], calibration=calibration, ranges="proven", precision_bits=BITS
        )
    with pytest.raises(jali.InvalidArgument, match='ranges is "seen" or "proven"'):
        jali.compile(f, calibration[0], calibration=calibration, ranges="both")


@pytest.mark.parametrize("gain", [1.0, 3.0])
def test_proven_ranges_hold_in_loops(gain: float, rng: np.random.Generator) -> None:
    weights = gain * np.linalg.qr(rng.normal(size=(4, 4)))[0]

    def network(x: Any) -> Any:
        return nn.loop(lambda hidden, t: np.tanh(weights @ hidden + t), x[0], x[1:])

    calibration = rng.uniform(-0.3, 0.3, (100, 6, 4))
    folded = fold(nn.trace(network, calibration[0]))
    ranged = calibrate(folded, [calibration], proven=True)
    made, _ = approximate(ranged, [calibration], BITS)
    low, high = (np.reshape(ranged.inputs[0].attrs[key], (6, 4)) for key in ("low", "high"))
    shape = (1000, 6, 4)
    corners = np.where(rng.random(shape) < 0.5, low, high)
    inputs = np.concatenate([rng.uniform(low, high, shape), corners])
    want, largest = (execute(folded, x)[0] for x in (inputs, calibration))
    off = np.abs(expected(folded, made, [inputs])[0] - want).max()
    # As exact as on the calibration, up to twice: errors are measured there.
    assert off <= 2 * 2.0**-BITS * np.abs(largest).max()
