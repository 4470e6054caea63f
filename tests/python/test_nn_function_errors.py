"""Errors of their own for functions: where one error for all leads to no program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.compiler.ir.folded_ops import Approximated, Errors, error_of
from jali.compiler.passes.approximate import Measured, approximate, approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.function_errors import _exact_but, approximate_each
from jali.compiler.program import program_file
from jali.program import container

BITS = 5
X = np.random.default_rng(48).uniform(-1, 1, (200, 4))


def amplified(x: Any) -> Any:
    """A tanh that amplifies the error of a root 200 times, and may be off itself."""
    return np.tanh(200 * np.sqrt(x * x) - 100)


WANT = np.stack([amplified(x) for x in X])


@pytest.fixture(scope="module")
def ranged() -> Any:
    return calibrate(fold(nn.trace(amplified, X[0])), [X])


@pytest.fixture(scope="module")
def program() -> nn.Program:
    return jali.compile(amplified, X[0], calibration=X, precision_bits=BITS)


def test_errors_are_numbers_and_know_their_own() -> None:
    errors = Errors(0.5, {"a": 0.25})
    assert errors == 0.5 and errors.of("a") == 0.25 and errors.of("b") == 0.5
    assert error_of(errors, "a") == 0.25 and error_of(0.5, "a") == 0.5
    assert Errors(0.5).own == {}


def test_what_one_error_for_all_does_not_reach(ranged: Any) -> None:
    known: dict[str, Any] = {"traced": ranged, "exact": {ranged.outputs[0]: WANT}}
    with pytest.raises(jali.InvalidArgument, match=r"tanh on .* has no approximation"):
        approximate(ranged, [X], BITS, **known)
    made, errors = approximate_each(ranged, [X], BITS, **known)
    assert errors.of("sqrt") < errors.of("tanh") / 16
    off = Measured.of(ranged, [X], [WANT]).largest_error(ranged, made, np.inf)
    assert off <= 7 / 8 * 2.0**-BITS


def test_other_functions_are_exact_while_one_is_measured(ranged: Any) -> None:
    made = approximated(ranged, Errors(2.0**-6))
    measured = Measured.of(ranged, [X], [WANT])

    def off(kept: str) -> float:
        return measured.largest_error(ranged, _exact_but(made, ranged, kept), np.inf)

    assert off("none of them") < 1e-9
    assert 2.0**-9 < off("tanh") < 2.0**-5 < off("sqrt")
    with pytest.raises(jali.InvalidArgument, match=r"smaller precision_bits|has no approximation"):
        approximate_each(ranged, [X], 30, traced=ranged, exact={ranged.outputs[0]: WANT})


def test_programs_with_errors_of_their_own(program: nn.Program) -> None:
    assert isinstance(program.error, Errors) and set(program.error.own) == {"sqrt", "tanh"}
    assert np.abs(program.simulate(X) - WANT).max() < 2.0**-BITS
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.error == program.error and again.error.own == program.error.own
    assert again.to_bytes() == program.to_bytes()
    for one, other in zip(program.stages["levels"], again.stages["levels"], strict=True):
        if isinstance(one.operation, Approximated):
            assert one.operation.by.depth == other.operation.by.depth


def test_files_that_lie_of_errors(program: nn.Program) -> None:
    content, arrays = container.read(program_file._KIND, program.to_bytes())
    for errors in ({"cosine": 0.01}, {"tanh": 0.0}, {"tanh": 1.0}, {"tanh": "small"}, [0.01]):
        lies = container.written(program_file._KIND, {**content, "errors": errors}, list(arrays))
        with pytest.raises(jali.CorruptData):
            nn.Program.from_bytes(lies)
