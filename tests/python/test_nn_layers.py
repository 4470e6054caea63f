"""Functions and ranges that layers of networks need."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.ir.execute import execute
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.nn import trace
from jali.nn.scalar import APPROXIMATED, FUNCTIONS

#: One number at a time, by the definition.
DEFINITIONS: dict[str, Callable[[float], float]] = {
    "erf": math.erf,
    "gelu_tanh": lambda x: x / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "mish": lambda x: x * ((1 + math.exp(x)) ** 2 - 1) / ((1 + math.exp(x)) ** 2 + 1),
    "elu": lambda x: x if x > 0 else math.exp(x) - 1,
    "sin": math.sin,
    "cos": math.cos,
    "atan": math.atan,
    "asinh": math.asinh,
    "softsign": lambda x: x / (1 + abs(x)),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_functions_without_a_proof_are_near_enough(name: str, rng: np.random.Generator) -> None:
    low = float(rng.uniform(-6, 0))
    interval, error = (low, float(rng.uniform(0.5, 6))), 2.0**-9
    found = APPROXIMATED[name](interval, error=error)
    x = np.linspace(*interval, 999)
    want = np.array([DEFINITIONS[name](v) for v in x])
    assert np.allclose(FUNCTIONS[name](x), want, atol=1e-12)
    unit = (2 * x - sum(interval)) / (interval[1] - interval[0])
    got = np.polynomial.chebyshev.chebval(unit, np.real(found.polynomial.coefficients))
    assert np.abs(got - want).max() <= 1.01 * error
    assert found.max_error <= error
    with pytest.raises(jali.InvalidArgument, match=f"no polynomial .* {name} on"):
        APPROXIMATED[name]((-5000.0, 5000.0), error=2.0**-30)


@pytest.mark.parametrize(("name", "exact"), [("sinh", np.sinh), ("cosh", np.cosh)])
def test_hyperbolic_functions_are_near_enough(name: str, exact: Any) -> None:
    found = APPROXIMATED[name]((-3.0, 2.0), error=2.0**-9)
    unit = np.linspace(-1, 1, 999)
    got = np.polynomial.chebyshev.chebval(unit, np.real(found.polynomial.coefficients))
    assert np.abs(got - exact(2.5 * unit - 0.5)).max() <= 1.01 * 2.0**-9


def test_functions_above_zero_are_approximated_above_zero(rng: np.random.Generator) -> None:
    """A layer normalisation divides by a deviation that is never near 0, though its epsilon is."""

    def normalised(x):  # type: ignore[no-untyped-def]
        centred = x - x.mean()
        return centred / np.sqrt((centred * centred).mean() + 1e-5)

    x = rng.normal(size=(300, 8))
    graph = fold(trace(normalised, x[0]))
    seen = x.var(axis=1)
    lows = []
    for margin in (0.0, 0.5, 1.0):
        ranges = calibrate(graph, [x], margin=margin)
        (function,) = (n for n in ranges if n.attrs.get("function") == "inverse_sqrt")
        lows.append(ranges[function.inputs[0]].attrs["low"])
    assert np.isclose(lows[0], seen.min() + 1e-5)
    assert 1e-4 < lows[2] < lows[1] < lows[0]
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    assert np.allclose(execute(graph, x)[0], want)
