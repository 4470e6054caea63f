"""Random networks with every number of examples in a ciphertext and every precision: each compiles,
or its refusal names a setting with which it does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali

Network = tuple[Callable[..., Any], np.ndarray]

BATCHES = [1 << k for k in range(8)]
BITS = range(4, 11)


def perceptron(rng: np.random.Generator) -> Network:
    """30 numbers, 16 ReLUs and one score."""
    first = rng.normal(size=(16, 30)) / np.sqrt(30) * rng.uniform(0.5, 3)
    last = rng.normal(size=(1, 16)) / 4 * rng.uniform(0.5, 5)
    inner, outer = rng.normal(size=16) * 0.3, rng.normal(size=1)
    return lambda x: last @ np.maximum(first @ x + inner, 0) + outer, rng.normal(size=(300, 30))


def attention(rng: np.random.Generator) -> Network:
    """One head, written by hand: softmax(q k) v."""
    tokens, width = int(rng.choice([4, 8])), int(rng.choice([4, 8, 16]))
    query, key, value = (
        rng.normal(size=(width, width)) / np.sqrt(width) * rng.uniform(0.3, 1.0) for _ in range(3)
    )

    def head(x: Any) -> Any:
        shares = np.exp((x @ query) @ (x @ key).T / np.sqrt(width))
        return (shares / shares.sum(axis=1, keepdims=True)) @ (x @ value)

    return head, rng.normal(size=(300, tokens, width)) * rng.uniform(0.3, 1.0)


def compiled_as_advised(network: Network, **how: Any) -> jali.nn.Program:
    """The program, or that of the setting that its refusal names."""
    f, x = network
    try:
        return jali.compile(f, x[0], calibration=x, **how)
    except (jali.Unsupported, jali.InvalidArgument) as refused:
        advice = re.search(r"With (precision_bits|margin)=([\d.]+) it compiles", str(refused))
        assert advice, refused
        how[advice[1]] = float(advice[2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as more examples in a ciphertext
        return jali.compile(f, x[0], calibration=x, **how)


def check(network: Network, batch: int, bits: int) -> None:
    program = compiled_as_advised(network, batch=batch, precision_bits=bits)
    clear, simulated = program.clear(network[1]), program.simulate(network[1], rng=0)
    off = np.abs(np.subtract(simulated, clear)).max() / np.abs(clear).max()
    assert off <= 2.0**-program.precision_bits and program.manifest.lanes >= batch


@pytest.mark.parametrize("network", [perceptron, pytest.param(attention, marks=pytest.mark.long)])
def test_some_networks_compile_or_say_what_does(
    network: Callable[[np.random.Generator], Network], rng: np.random.Generator
) -> None:
    made = network(rng)
    for _ in range(3 if network is perceptron else 1):
        check(made, int(rng.choice(BATCHES)), int(rng.integers(4, 9)))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:there is no plan for")
@pytest.mark.parametrize("k", range(12))
@pytest.mark.parametrize("network", [perceptron, attention])
def test_networks_compile_or_say_what_does(
    network: Callable[[np.random.Generator], Network], k: int, rng: np.random.Generator
) -> None:
    check(network(rng), int(rng.choice(BATCHES)), int(rng.choice(BITS)))


@pytest.mark.parametrize(("least", "setting"), [(2e-5, "margin=0.125"), (1e-4, "precision_bits=4")])
def test_intervals_that_are_too_large(least: float, setting: str) -> None:
    """Inverses of numbers up to 1, whose interval the margin extends to far smaller ones. The
    nearest setting that compiles is named, and does."""
    x = np.geomspace(least, 1, 300)[:, None]
    network: Network = (lambda v: 1 / v), x
    with pytest.raises(
        jali.InvalidArgument,
        match=rf"smaller interval.* With {setting} it compiles: \d+ levels, and",
    ):
        jali.compile(network[0], x[0], calibration=x, precision_bits=6)
    check(network, 1, 6)
