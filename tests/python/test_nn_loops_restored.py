"""Loops that bootstrap, on a small ring that is not secure: recurrent networks and training,
against the clear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_nn_restored import Ring, bootstraps, compiled, largest, program_of
from test_nn_workloads import ACTIVATION, GATE, cell_of, examples_of

from jali import nn
from jali.compiler.frontends import workloads
from jali.compiler.ir.layouts import Skewed
from jali.compiler.planning.dry_run import _share_of_copies
from jali.compiler.planning.parameters import needed_bits


@pytest.mark.parametrize(
    "kind",
    [
        "recurrent",
        pytest.param("lstm", marks=pytest.mark.long),
        "training",
        pytest.param("training on a large set", marks=pytest.mark.long),
    ],
)
def test_loops_bootstrap(kind: str, rng: np.random.Generator) -> None:
    """A large set has rows for four ciphertexts."""
    if "training" in kind:
        x, levels = examples_of(*((128, 16) if "large" in kind else (16, 8)), 100, rng), 8
        f: Any = lambda x: workloads.logistic_regression(x, 6)  # noqa: E731
    elif kind == "recurrent":
        weights, x, levels = cell_of(8, 1, 4, rng), rng.uniform(-1, 1, (100, 10, 4)), 6
        f = lambda x: workloads.recurrent(x, *weights, activation=(0, 0.9, 0, -0.1))  # noqa: E731
    else:
        weights, x, levels = cell_of(4, 4, 3, rng), rng.uniform(-1, 1, (100, 5, 3)), 9
        f = lambda x: workloads.lstm(x, *weights, gate=GATE, activation=ACTIVATION)  # noqa: E731
    program = program_of(f, x, 5, levels, lanes=1 if "training" in kind else 4)
    assert len(bootstraps(program)) >= 2
    skewed = [n for n in program.stages["levels"] if isinstance(n.attrs["layout"], Skewed)]
    assert bool(skewed) == ("large" in kind)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:4])))
    want = np.stack([f(v) for v in x[:4]])
    assert np.abs(got - want).max() <= 2.0**-5 * largest(program)
    noisy = program.simulate(x)
    assert np.abs(noisy - program.clear(x)).max() <= 2.0**-5 * largest(program)
    (needed,) = needed_bits(program.stages["approximate"], 5, average=True)
    assert program.manifest.demand.noise_bits[0] >= needed
    program.verify()


def test_matrices_are_encoded_once_for_each_level_of_a_period(rng: np.random.Generator) -> None:
    """A step takes three levels and six lie between bootstraps, so that ten steps use the matrix at
    few levels."""
    weights, x = cell_of(8, 1, 4, rng), rng.uniform(-1, 1, (100, 10, 4))
    f = lambda x: workloads.recurrent(x, *weights, activation=(0, 0.9, 0, -0.1))  # noqa: E731
    program = program_of(f, x, 5, 6)
    steps = [n for n in program.stages["levels"] if n.name.endswith("].add")]
    inner = {(id(n.attrs["terms"][0]), n.attrs["level"]) for n in steps}
    assert len(steps) == 9 and len({k for k, _ in inner}) == 1
    assert len({level for _, level in inner}) <= 6


@pytest.mark.long
def test_the_noise_of_a_loop_grows_in_the_directions_that_its_matrix_enlarges(
    rng: np.random.Generator,
) -> None:
    """The matrix leaves one direction of 8 as it is and nearly nothing of the others. By the sums
    of the squares of its rows, noise would become a third in every step."""
    width, steps = 8, 64
    _, outer, bias = cell_of(width, 1, 4, rng)
    x = rng.uniform(-1, 1, (100, steps, 4))
    direction = rng.choice([-1.0, 1.0], width) / np.sqrt(width)
    inner = np.outer(direction, direction) + rng.normal(size=(width, width)) / 100
    f = lambda x: workloads.recurrent(x, inner, outer, bias / 40, activation=(0, 0.999, 0, -0.001))  # noqa: E731
    program = program_of(f, x / 40, 6, 6)
    (output,) = program.stages["levels"].outputs
    radius = float(np.max(program.stages["levels"][output].attrs["radius"]))
    assert len(bootstraps(program)) >= 2
    squares = []
    for _ in range(6):
        client = program.client(threads=1)
        server = program.server(client.evaluation_keys(), threads=1, device="cpu")
        got = client.decrypt(server(client.encrypt(x[:4] / 40)))
        squares.append(np.mean(np.square((got - program.clear(x[:4] / 40)) / radius)))
    measured = -0.5 * np.log2(np.mean(squares))
    assert abs(program.manifest.demand.noise_bits[0] - measured) < 0.8, measured


@pytest.mark.parametrize("steps", [7, pytest.param(24, marks=pytest.mark.long)])
def test_noise_of_windows_that_are_summed_masked_and_copied(
    steps: int, rng: np.random.Generator
) -> None:
    """A step of training sums products over windows of 128 slots, keeps one slot of each window and
    copies it to the others. If all of these slots held noise of the mask, the plan would have two
    bits more of it than there is. A bootstrapping takes the mean of four copies. If their noise
    counted as common, 24 steps would have one bit more of it than there is. If the copies' noise
    counted as each copy's own behind the bootstrapping, too, it would be two bits less."""
    rows = np.split(examples_of(12, 128, 60, rng), 3, axis=1)
    train = lambda *r: workloads.logistic_regression(list(r), steps)  # noqa: E731
    program = compiled(
        nn.trace(train, tuple(x[0] for x in rows)),
        rows,
        precision_bits=5,
        lanes=1,
        memory=1 << 30,
        insecure_ring=Ring(10, 12),
    )
    assert any(_share_of_copies(node) < 1 / 64 for node in program.stages["levels"])
    (output,) = program.stages["levels"].outputs
    radius = float(np.max(program.stages["levels"][output].attrs["radius"]))
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    some = [x[:6] for x in rows]
    got = np.stack(
        [client.decrypt(server(client.encrypt(*one))) for one in zip(*some, strict=True)]
    )
    off = (got - program.clear(*some).reshape(got.shape)) / radius
    measured = -0.5 * np.log2(np.mean(np.square(off)))
    assert abs(program.manifest.demand.noise_bits[0] - measured) < 0.5, measured
    assert sum(node.attrs.get("slots", 0) == 128 for node in bootstraps(program)) > steps // 3
