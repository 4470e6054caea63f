"""The sizes of numbers: arrays of zeros are computed, and what is compiled has the limits of what
files may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali.nn import scalar

X = np.linspace(-1, 1, 120).reshape(40, 3)
ZEROS: list[Any] = [
    lambda v: (v - v) * v + v,
    lambda v: np.tanh(v - v) + v,
    lambda v: np.exp(v - v + 1) * v,
    lambda v: v / (v - v + 3),
    lambda v: scalar.sigmoid(v - v) * v,
    lambda v: np.maximum(v - v, 0) + v,
    lambda v: np.square(1e-200 * v) + v,
    lambda v: np.tanh(1e-300 * v) + v,
    lambda v: (v - v) * (v - v) * v + v,
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("k", range(len(ZEROS)))
def test_arrays_whose_numbers_are_all_equal_are_computed(k: int) -> None:
    """They were divided by the width of their range, which is 0."""
    program = jali.compile(ZEROS[k], X[0], calibration=X)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), device="cpu", threads=1)
    got = client.decrypt(server(client.encrypt(X[:4])))
    assert np.abs(got - ZEROS[k](X[:4])).max() < 2.0**-8
    assert nn.Program.from_bytes(program.to_bytes()).to_bytes() == program.to_bytes()


@pytest.mark.filterwarnings("error")
def test_numbers_that_no_file_may_hold_are_not_compiled() -> None:
    """Such programs were compiled, and refused when they were read again."""
    with pytest.raises(jali.InvalidArgument, match=r"gives? numbers above 1e\+100 here"):
        jali.compile(lambda v: v * 1e-20, X[0], calibration=X * 1e110)
    with pytest.raises(jali.InvalidArgument, match=r"the weights of scale are above 1e\+50"):
        jali.compile(lambda v: np.square(v * 1e60), X[0], calibration=X * 1e-45)
    with pytest.raises(jali.InvalidArgument, match="differ by less than 1e-50"):
        jali.compile(lambda v: v + 1, X[0], calibration=X * 1e-60)
    with pytest.raises(jali.InvalidArgument, match="narrower than 1e-50"):
        jali.compile(lambda v: v + 1, X[0], calibration=X * 0, input_range=(-1e-60, 1e-60))
    with pytest.raises(jali.InvalidArgument, match=r"reaches beyond 1e\+100"):
        jali.compile(lambda v: v + 1, X[0], calibration=X, input_range=(-1e200, 1e200))
    with pytest.raises(jali.InvalidArgument, match="its numbers are below 1e-100"):
        f = lambda v: np.square(np.square(1e-40 * v) * 1e-40) + v  # noqa: E731
        jali.compile(f, X[0], calibration=X)


def test_a_margin_of_0_needs_numbers_that_differ() -> None:
    assert jali.compile(lambda v: v + 1, X[0], calibration=X, margin=0).precision_bits > 0
    same = np.c_[X[:, :2], np.full(len(X), 0.5)]
    with pytest.raises(jali.InvalidArgument, match="give a margin above 0"):
        jali.compile(lambda v: v + 1, X[0], calibration=same, margin=0)
    assert jali.compile(lambda v: v + 1, X[0], calibration=same, margin=0.1).precision_bits > 0
    found = jali.compile(lambda v: v + 1, X[0], calibration=same, margin=0, input_range=(-1, 1))
    assert found.precision_bits > 0
