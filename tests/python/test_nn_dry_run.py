"""DryRun runs: what they find without arithmetic is what a run with keys on real ciphertexts has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from deep_networks import squares

from jali import nn
from jali.compiler.cost.keys import Demand
from jali.compiler.driver import compiled
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Multiply, made
from jali.compiler.ir.windows import Convolution
from jali.compiler.planning.dry_run import DRY, DryRun
from jali.compiler.planning.parameters import Ring
from jali.compiler.runtime.ciphertext_ops import Encrypted
from jali.errors import Error, Unsupported
from jali.nn import scalar

Facts = list[tuple[str, int, float, int, float]]


def dense(rng: np.random.Generator) -> tuple[nn.Graph, np.ndarray]:
    """Two layers with a function between them."""
    a, b = rng.normal(size=(12, 8)) / 3, rng.normal(size=(5, 12)) / 4
    x = rng.uniform(-1, 1, (40, 8))
    return nn.trace(lambda v: b @ scalar.sigmoid(a @ v) + 0.25, x[0]), x


def convolutions(rng: np.random.Generator) -> tuple[nn.Graph, np.ndarray]:
    """Squares of convolutions, whose diagonals lie over each other."""
    nodes = [made("x", Input(shape=(2, 6, 6)), [])]
    for k, weight in enumerate((rng.normal(size=(4, 2, 3, 3)), rng.normal(size=(2, 4, 3, 3)))):
        attrs = {"weight": weight / 5, "bias": rng.normal(size=len(weight)), "dilation": (1, 1)}
        attrs |= {"groups": 1, "stride": (1, 1), "padding": ((1, 1), (1, 1))}
        nodes.append(made(f"c{k}", Convolution(**attrs), [nodes[-1]]))
        nodes.append(made(f"s{k}", Multiply(), [nodes[-1], nodes[-1]]))
    return Graph(tuple(nodes), (nodes[-1].name,)), rng.uniform(-1, 1, (40, 2, 6, 6))


def products(rng: np.random.Generator) -> tuple[nn.Graph, np.ndarray]:
    """A product of two encrypted matrices."""
    weights, x = rng.normal(size=(4, 4)) / 3, rng.uniform(-1, 1, (40, 4, 4))
    return nn.trace(lambda v: (weights @ v) @ v.T, x[0]), x


def several(rng: np.random.Generator) -> tuple[nn.Graph, np.ndarray]:
    """Arrays that take more than one ciphertext."""
    x = rng.uniform(-1, 1, (20, 3000))
    return nn.trace(lambda v: (v * v * 0.5 + v).sum() * 0.001, x[0]), x


def deep(rng: np.random.Generator) -> tuple[nn.Graph, np.ndarray]:
    """Too deep for the levels between two bootstrappings."""
    f, x = squares(6, rng)
    return nn.trace(f, x[0]), x


KINDS = [dense, convolutions, products, several]


def program_of(kind: Any, **options: Any) -> tuple[nn.Program, np.ndarray]:
    graph, x = kind(np.random.default_rng(7))
    how: dict[str, Any] = {"precision_bits": 8, "lanes": 2, "memory": 1 << 30}
    return compiled(graph, [x], **how | options), x


def facts(name: str, values: Encrypted) -> Facts:
    """What an evaluator keeps of ciphertexts beside their residues."""
    found: Facts = []
    for value in values:
        ct = value._settled()
        found.append((name, ct.level, ct.scale, ct.parts, ct.precision_bits))
    return found


class Watch:
    def __init__(self) -> None:
        self.found: Facts = []

    def __call__(self, node: Node, values: Encrypted) -> None:
        self.found += facts(node.name, values)


def tried(program: nn.Program, device: str) -> tuple[DryRun, Watch, Any]:
    """A trial run on a device, what it saw, and the keys that it used."""
    watch, demand = Watch(), program.manifest.demand
    dry_run = DryRun(program._interpreter(), device, 1, demand.restored_bits)
    dry_run.run(watch=watch)
    return dry_run, watch, dry_run.server._core.demand


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_knows_what_a_run_on_ciphertexts_has(kind: Any) -> None:
    """Every array of a run with the keys of the demand, and no others: level, scale, number of
    parts, and estimated noise."""
    program, x = program_of(kind)
    _, dry, used = tried(program, DRY)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    seen = Watch()
    bound = [
        tuple(server.evaluator.bind(c) for c in array) for array in client.encrypt(x[:2]).arrays
    ]
    program._interpreter()(server.evaluator, *bound, watch=seen)
    assert [one[:4] for one in dry.found] == [one[:4] for one in seen.found]
    bits = [[one[4] for one in watch.found] for watch in (dry, seen)]
    assert np.allclose(*bits, rtol=1e-8)  # the ciphertexts of an array have noise of their own
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() < 2.0**-6 * np.abs(program.clear(x)).max()
    demand: Demand = program.manifest.demand
    assert set(used.rotations) <= set(demand.rotations)


@pytest.mark.parametrize("kind", [*KINDS, deep])
def test_a_dry_run_finds_what_a_trial_with_arithmetic_finds(kind: Any) -> None:
    options = {"insecure_ring": Ring(10, 6), "precision_bits": 6} if kind is deep else {}
    program, _ = program_of(kind, **options)
    dry, seen, used = tried(program, DRY)
    real, computed, needed = tried(program, "cpu")
    assert seen.found == computed.found and dry.claims == real.claims
    assert used.rotations == needed.rotations
    assert bool(dry.claims) == (kind is deep)


def test_a_dry_run_has_no_numbers() -> None:
    program, _ = program_of(dense)
    dry_run, _, _ = tried(program, DRY)
    ((value, *_), *_) = dry_run.run()
    assert dry_run.server.engine == "dry"
    with pytest.raises(Unsupported, match="no numbers"):
        dry_run.server.explicit.send_back(value._settled())


def test_no_user_computes_with_it() -> None:
    program, _ = program_of(dense)
    with pytest.raises(Error, match="unknown device"):
        program.server(program.client().evaluation_keys(), device=DRY)
