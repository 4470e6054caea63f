"""Ranges of approximated functions: what is computed lies in them, and a client takes it for
right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.frontends.tracing import trace_function
from jali.compiler.ir.execute import every_value
from jali.compiler.ir.graph import peak
from jali.compiler.passes.approximate import approximate
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.widened_ranges import TooCoarse, widened
from jali.nn import scalar

W = np.random.default_rng(5).normal(size=(8, 6)) / 2
V = np.random.default_rng(6).normal(size=(3, 8)) / 2

#: Functions of six numbers whose ranges follow from those of approximated functions.
MODELS: dict[str, Any] = {
    "relu": lambda x: scalar.relu(x),
    "mean of relu": lambda x: scalar.relu(x).mean(),
    "difference of relu": lambda x: scalar.relu(W @ x) - scalar.relu(-(W @ x)),
    "square of relu": lambda x: scalar.relu(W @ x) ** 2,
    "relu of relu": lambda x: scalar.relu(V @ scalar.relu(W @ x)),
    "sum of sigmoid": lambda x: scalar.sigmoid(4 * (W @ x)).sum(),
    "sigmoid times tanh": lambda x: scalar.sigmoid(W @ x) * np.tanh(W @ x),
    "norm": lambda x: np.sqrt(np.square(W @ x).sum() + 0.01),
    "inverse of exp": lambda x: scalar.inverse(np.exp(W @ x).sum()),
    "composition": lambda x: scalar.relu_15_15_27(W @ x).sum(),
}


def corners(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of [-1, 1], of which many lie at its ends and at 0."""
    some = rng.uniform(-1, 1, (count, 6))
    return np.where(rng.random(some.shape) < 0.5, some, rng.integers(-1, 2, some.shape))


@pytest.mark.parametrize("bits", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_computed_lies_in_its_range(
    model: str, bits: float, rng: np.random.Generator
) -> None:
    """With room enough, all ranges are proven: that of the inputs implies them."""
    graph = fold(trace_function(MODELS[model], [np.zeros(6)]))
    x = corners(rng, 100)
    known = calibrate(graph, [x], margin=50, input_ranges=[(-1.0, 1.0)])
    made, _ = approximate(known, [x], bits)
    for node in made:
        assert node.attrs["proven"] or node.op == "products", node.name
    values = every_value(made, [corners(rng, 5000)])
    for node in made:
        assert np.abs(values[node.name]).max() <= peak(node) * (1 + 1e-9), node.name
        if node.op == "affine":  # a polynomial may take it, which is good on [-1, 1] alone
            assert np.abs(values[node.name]).max() <= 1 + 1e-9, node.name


@pytest.mark.parametrize("bits", [1, *(pytest.param(k, marks=pytest.mark.long) for k in (3, 4, 5))])
@pytest.mark.parametrize("model", MODELS)
def test_few_bits_are_decrypted(model: str, bits: float, rng: np.random.Generator) -> None:
    """Results that are as exact as was asked for were refused, because their ranges were those of
    the exact functions."""
    f, x = MODELS[model], corners(rng, 128)
    margin = float(rng.choice([0.0, 0.5]))
    program = jali.compile(
        f, x[0], calibration=x, precision_bits=bits, batch=128, margin=margin, input_range=(-1, 1)
    )
    program.verify()
    program = nn.Program.from_bytes(program.to_bytes())
    client = program.client(threads=1)
    got = client.decrypt(program.server(client.evaluation_keys(), threads=1)(client.encrypt(x)))
    want = np.stack([f(v) for v in x])
    assert np.abs(got - want).max() <= 2.0**-bits * np.abs(want).max()


def test_errors_that_lead_below_0_are_too_coarse(rng: np.random.Generator) -> None:
    """The inverse of a number that is above 0.05, plus an error."""
    graph = fold(trace_function(lambda x: scalar.inverse(scalar.relu(x) + 0.05), [np.zeros(6)]))
    x = corners(rng, 100)
    known = calibrate(graph, [x], margin=50, input_ranges=[(-1.0, 1.0)])
    with pytest.raises(TooCoarse, match="above 0"):
        widened(known, 0.1)
    made, error = approximate(known, [x], 2)
    assert error < 0.05 and made[made.outputs[0]].op == "approximated"
