"""Noise that products of encrypted matrices add to their factors: against noise that is added to
them."""

from __future__ import annotations

import numpy as np
import pytest
from graph_nodes import node_of

from jali.compiler.ir.graph import Graph
from jali.compiler.noise.product_noise import Factors, factor_noise, gain_of_products

N, K, M, EXAMPLES = 4, 16, 8, 400
SHAPES = ((N, K), (K, M))
ATTRS = {
    "shapes": SHAPES,
    "left": np.arange(N * K),
    "right": np.arange(K * M),
    "order": np.arange(N * M),
    "gain": 3.0,
    "shape": (N, M),
}
A = node_of("a", "input", (), (N, K), {})
B = node_of("b", "input", (), (K, M), {})
Y = node_of("y", "products", ("a", "b"), (N, M), ATTRS)
GRAPH = Graph((A, B, Y), ("y",), "layout")


def examples(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Factors of which one has columns of very different sizes, as the values of a transformer."""
    a = rng.normal(size=(EXAMPLES, N, K)) / 100
    b = np.tile(rng.normal(size=(1, K, M)) * 2.0 ** -np.arange(M), (EXAMPLES, 1, 1))
    return a, b


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(Y.operation.compute((a, b)))


def test_noise_of_a_factor_lies_in_the_directions_of_the_other(rng: np.random.Generator) -> None:
    a, b = examples(rng)
    factors = Factors(GRAPH, {"y": (0.01, 0.0)}, rng)
    for node, values in ((A, a), (B, b)):
        assert factors(node, values) is values
        factors.keep(node, values)
    off = factors(Y, product(a, b)) - product(a, b)
    want = 3.0 * 0.01 * np.sqrt(np.square(b[0]).sum(axis=0))  # by column
    assert np.sqrt(np.square(off).mean(axis=(0, 1))) == pytest.approx(want, rel=0.15)
    # Columns of b that are alike have the same noise: its rank is that of b, not that of the
    # result.
    covariance = np.cov(off[:, 0].T)
    assert covariance == pytest.approx(9e-4 * b[0].T @ b[0], abs=0.2 * covariance[0, 0])
    assert not factors._factors  # they are not needed any more


def test_other_nodes_and_products_without_such_noise_are_left_alone(
    rng: np.random.Generator,
) -> None:
    a, b = examples(rng)
    factors = Factors(GRAPH, {}, rng)
    for node, values in ((A, a), (B, b), (Y, product(a, b))):
        assert factors(node, values) is values
        factors.keep(node, values)
    assert not factors._factors


@pytest.mark.parametrize("noise", [(1e-3, 0.0), (0.0, 1e-3), (2e-3, 1e-3)])
def test_what_was_added_is_found_from_what_a_product_adds(
    noise: tuple[float, float], rng: np.random.Generator
) -> None:
    """With one factor nearly 0, the noise of that one is left, times the other factor."""
    a, b = rng.normal(size=(EXAMPLES, N, K)) / 10, rng.normal(size=(EXAMPLES, K, M)) / 5
    sizes, floor = (0.1, 0.2), 1e-4

    def added(a: np.ndarray, b: np.ndarray) -> float:
        noisy = (x + e * rng.normal(size=x.shape) for x, e in zip((a, b), noise, strict=True))
        off = product(*noisy) - product(a, b)
        return float(np.hypot(off.std(), floor))

    found = factor_noise(Y, sizes, added(a, b), (added(0 * a, b), added(a, 0 * b)), floor)
    assert found == pytest.approx(noise, rel=0.1, abs=1e-4)
    assert gain_of_products(Y) == 3.0 * np.sqrt(K)


@pytest.mark.parametrize("alone", [(0.0, 0.0), (1.0, 0.0), (1e-3, 1e-3), (1e-9, 1e-9)])
def test_factors_never_have_more_than_the_product_adds(alone: tuple[float, float]) -> None:
    sizes, own, floor = (0.1, 0.2), 1e-3, 1e-5
    first, second = factor_noise(Y, sizes, own, alone, floor)
    behind = gain_of_products(Y) * np.hypot(first * sizes[1], second * sizes[0])
    assert 0 <= behind <= own * (1 + 1e-9)
