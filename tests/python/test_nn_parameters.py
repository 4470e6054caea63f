"""Parameters of compiled programs: how much noise they may have, how much room, and what the choice
among them costs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from test_demo import random_images
from test_nn_program import assert_precise, encrypted

import jali
from jali.demo import network


def layers(rng: np.random.Generator, *sizes: int) -> Any:
    """Matrices with squares between them."""
    weights = [rng.normal(size=(m, n)) / n**0.5 for n, m in pairwise(sizes)]

    def f(x: Any) -> Any:
        for w in weights[:-1]:
            x = (w @ x) ** 2
        return weights[-1] @ x

    return f


@pytest.mark.parametrize("sizes", [(10, 33, 17, 5), (20, 9, 3)])
def test_six_deviations_of_the_noise_are_within_the_promise(
    sizes: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Exact programs have nothing but noise. Over many numbers, its deviation is known to a
    tenth."""
    f, x = layers(rng, *sizes), rng.uniform(-1, 1, (300, sizes[0]))
    program = jali.compile(f, x[0], calibration=x, precision_bits=7)
    want = np.stack([f(v) for v in x[:80]])
    got = encrypted(program, x[:80])
    assert_precise(program, got, want)
    (name,) = program.stages["calibrate"].outputs
    largest = program.stages["calibrate"][name].attrs["largest"]
    assert 6 * np.std(got - want) <= 1.1 * 2.0**-7 * largest


def unequal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A matrix of which one row is 10,000 times as large as the others."""
    matrix = rng.normal(size=(rows, columns)) / columns**0.5 * 1e-4
    matrix[rng.integers(rows)] *= 1e4
    return matrix


def plain(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return rng.normal(size=(rows, columns)) / columns**0.5


def three_layers(*kinds: Any) -> Any:
    def of(rng: np.random.Generator) -> Any:
        a, b, c = (k(rng, *s) for k, s in zip(kinds, [(40, 16), (24, 40), (5, 24)], strict=True))
        return lambda v: c @ ((b @ ((a @ v) ** 2)) ** 2)

    return of


def equal_rows(rng: np.random.Generator) -> Any:
    """The errors of all numbers behind the second matrix are the same, and add up."""
    a, b = plain(rng, 20, 16), np.tile(plain(rng, 1, 20), (32, 1))
    return lambda v: (b @ ((a @ v) ** 2)).sum()


def sums_along_an_axis(rng: np.random.Generator) -> Any:
    a, b = unequal(rng, 4, 4), plain(rng, 4, 4)
    return lambda v: ((((a @ v.reshape(4, 4)) ** 2).sum(axis=1)) @ b) ** 2


def products_of_numbers(rng: np.random.Generator) -> Any:
    a, b, c = unequal(rng, 32, 16), unequal(rng, 32, 16), plain(rng, 3, 32)
    return lambda v: c @ ((a @ v) * (b @ v))


def products_of_matrices(rng: np.random.Generator) -> Any:
    a, b, c = unequal(rng, 4, 4), unequal(rng, 4, 4), unequal(rng, 4, 4)
    return lambda v: c @ ((a @ v.reshape(4, 4)) @ (v.reshape(4, 4) @ b))


def large_and_small_inputs(rng: np.random.Generator) -> Any:
    """One number of the input is 10,000 times as large in the result as the others."""
    a, b = unequal(rng, 16, 24).T, plain(rng, 3, 24)
    return lambda v: b @ ((a @ v) ** 2)


NOISY = {
    "first": three_layers(unequal, plain, plain),
    "second": three_layers(plain, unequal, plain),
    "last": three_layers(plain, plain, unequal),
    "all": three_layers(unequal, unequal, unequal),
    "none": three_layers(plain, plain, plain),
    "equal rows": equal_rows,
    "sums along an axis": sums_along_an_axis,
    "products of numbers": products_of_numbers,
    "products of matrices": products_of_matrices,
    "inputs": large_and_small_inputs,
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.long)
        if kind in ("first", "second", "last", "none")
        else kind
        for kind in NOISY
    ],
)
def test_six_deviations_of_every_number_are_within_the_promise(
    kind: str, rng: np.random.Generator
) -> None:
    """Nothing but noise is in an exact program's results. In most of these, nearly all of it is in
    one number of each array, with which a mean over numbers has little to do."""
    f, x, bits = NOISY[kind](rng), rng.uniform(-1, 1, (400, 16)), 9
    program = jali.compile(f, x[0], calibration=x, precision_bits=bits, batch=32)
    want = np.stack([f(v) for v in x[:256]])
    off = (encrypted(program, x[:256]) - want).reshape(256, -1)
    (name,) = program.stages["calibrate"].outputs
    promise = 2.0**-bits * program.stages["calibrate"][name].attrs["largest"]
    # A slot's noise is larger where the secret key's polynomial is, so that tails are heavier than
    # those of normal numbers: of 1,024 numbers, the largest error exceeded the promise in one of a
    # hundred runs (docs/noise.md).
    assert np.abs(off).max() <= 1.5 * promise
    assert np.mean(np.abs(off) > promise) <= 0.01
    # The estimate is that of the worst number, and not of a bound far above it, unless few examples
    # have most of the noise.
    worst = np.sqrt(np.mean(off**2, axis=0)).max()
    radius = float(program.stages["levels"][name].attrs["radius"])
    claimed = radius * 2.0 ** -program.manifest.demand.noise_bits[0]
    assert worst <= 1.4 * claimed <= 1.4 * promise / 6
    if kind in ("none", "equal rows", "sums along an axis", "products of numbers"):
        assert claimed <= 3 * worst


@pytest.mark.parametrize("bits", [6, 12])
def test_the_network_of_lola_takes_a_small_ring(bits: int) -> None:
    """As small as a program by hand takes. Brighter images than those of the calibration leave its
    ranges, which decryption says; level 0 holds their results all the same."""
    graph = network.load("mnist").graph()
    images = random_images("mnist", 60)
    images = images[images.any((1, 2))]  # the logits of an empty one are large
    dark = images.reshape(-1, 1, 28, 28) / 255
    program = jali.compile(
        graph, dark[:1], calibration=dark, precision_bits=bits, input_range=(0, 1.5), margin=0.0
    )
    assert (program.params.log_n, program.params.word) == (13, "w32")
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    assert_precise(
        program, client.decrypt(server(client.encrypt(dark[:3]))), program.clear(dark[:3])
    )
    bright = 1.5 * dark
    want = program.clear(bright)
    first = int(np.abs(want).max(1).argmax())
    reply = server(client.encrypt(bright[first : first + 1]))
    with pytest.raises(jali.WrongDecryption, match="outside of the ranges of the calibration"):
        client.decrypt(reply)
    # The promise is one for numbers within the ranges. Squares of larger ones have more noise, so
    # this is held to their own size.
    got = client.decrypt(reply, check=False)
    assert np.abs(got - want[first]).max() <= 2.0**-bits * np.abs(want[first]).max()


@pytest.mark.parametrize("beyond", [100, 5000])
def test_level_0_holds_what_a_matrix_may_give(beyond: float, rng: np.random.Generator) -> None:
    """The terms of a sum cancel in all examples of the calibration. In others they need not, and
    intervals allow for that."""
    signs = np.tile([1.0, -1.0], 32)
    x = rng.uniform(-1, 1, (300, 1)) * np.ones((300, 64))
    x[:, ::2] *= 1 + rng.uniform(-1, 1, (300, 32)) / beyond
    f = lambda v: signs @ v**2  # noqa: E731
    program = jali.compile(f, x[0], calibration=x, precision_bits=8, input_range=(-2, 2))
    assert_precise(program, encrypted(program, x[:4]), np.array([f(v) for v in x[:4]]))
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1)
    other = np.where(signs > 0, 1.0, 0.0)  # 32, which is far beyond the range
    reply = server(client.encrypt(other))
    with pytest.raises(jali.WrongDecryption):
        client.decrypt(reply)
    largest = program.stages["calibrate"][program.stages["calibrate"].outputs[0]].attrs["largest"]
    got = float(np.asarray(client.decrypt(reply, check=False)).ravel()[0])
    assert f(other) == 32 > 20 * largest
    assert abs(got - f(other)) < 0.05
