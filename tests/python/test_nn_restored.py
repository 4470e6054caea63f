"""Compiled programs that bootstrap, on small rings that are not secure: against the model in the
clear, and against what was announced."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_nodes import made_by_name
from slot_interpreter import WEIGHTS

import jali
from jali import ckks, nn
from jali._core.console import seconds_text
from jali.compiler.cost.costs import Costs, counted
from jali.compiler.cost.layout_costs import layout_costs_of
from jali.compiler.driver import compiled
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.layouts import packed
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import made
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.noise import element_noise
from jali.compiler.noise.copies import AddedToCopies
from jali.compiler.noise.element_noise import Samples
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.levels import Levels, assign_levels, depth_of, levelled, levels_of
from jali.compiler.pipeline import lowered
from jali.compiler.planning import bootstrapping_planner
from jali.compiler.planning.bootstrap_placement import best_levels, refusal, repeated_after, verify
from jali.compiler.planning.node_costs import cost_of
from jali.compiler.planning.parameters import Ring
from jali.compiler.program import report
from jali.errors import RangeExceeded
from jali.nn import scalar


def rotations(rng: np.random.Generator, count: int, size: int) -> list[np.ndarray]:
    """Orthogonal matrices, which keep the numbers of a deep network within their range."""
    return [np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(count)]


def network(rng: np.random.Generator, layers: int, activation: Any, skip: bool = False) -> Any:
    """Layers of an orthogonal matrix and an activation; with `skip`, an array goes past each but
    the first."""
    matrices = rotations(rng, layers, 8)

    def f(x: Any) -> Any:
        x = activation(matrices[0] @ x)
        for matrix in matrices[1:]:
            y = activation(matrix @ x)
            x = (x + y) * 0.6 if skip else y
        return matrices[0][:3] @ x

    return f


def quadratic(x: Any) -> Any:
    return 0.8 * x + 0.2 * x * x


def program_of(
    f: Any, x: np.ndarray, bits: float, levels: int, lanes: int = 2, **options: Any
) -> nn.Program:
    return compiled(
        nn.trace(f, x[0]),
        [x],
        precision_bits=bits,
        lanes=lanes,
        memory=1 << 30,
        insecure_ring=Ring(10, levels),
        **options,
    )


def largest(program: nn.Program) -> float:
    graph = program.stages["calibrate"]
    return float(graph[graph.outputs[0]].attrs["largest"])


def bootstraps(program: nn.Program) -> list[Node]:
    return [node for node in program.stages["levels"] if node.op == "bootstrap"]


@pytest.fixture(scope="module")
def deep() -> tuple[nn.Program, np.ndarray]:
    """Twelve layers, of two levels each, with arrays that go past them."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (200, 8))
    return program_of(network(rng, 12, quadratic, skip=True), x, 6, 6), x


def test_a_deep_network_is_what_it_is_in_the_clear(deep: tuple[nn.Program, np.ndarray]) -> None:
    program, x = deep
    summary = program.summary("cpu", threads=1)
    client = program.client(threads=1)
    keys = client.evaluation_keys()
    server = program.server(keys, threads=1, device="cpu")
    x = x[: summary.examples]  # in one ciphertext
    got = client.decrypt(server(client.encrypt(x)))
    assert np.abs(got - program.clear(x)).max() <= 2.0**-program.precision_bits * largest(program)
    assert 2 <= summary.bootstraps == server.evaluator.counters()["bootstraps"]
    assert summary.bootstraps == len(bootstraps(program))  # of one ciphertext each
    assert summary.keys == keys.count and summary.key_bytes == keys.nbytes
    assert abs(summary.key_bytes_sent / keys.sent_bytes - 1) < 0.05
    assert 0 < summary.bootstrap_seconds < summary.seconds
    assert 0 < summary.bootstrap_key_bytes <= summary.key_bytes_expanded
    assert f"{summary.bootstraps} bootstraps" in str(summary)
    # Also the matrices of bootstrapping, one set for each level, are part of the memory that is
    # predicted.
    assert summary.bootstrap_matrix_bytes > summary.device_bytes / 10
    assert abs(server.evaluator.counters()["bytes_peak"] / summary.device_bytes - 1) < 0.05
    assert "by the average of the noise over numbers" in str(summary)
    assert "of the average of its numbers" in program.explain("program")


def test_the_first_call_makes_the_matrices_of_bootstrapping(
    deep: tuple[nn.Program, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call took up to 2.8 times the predicted time, which left out what is made once."""
    program, _ = deep
    real = report._bootstraps
    monkeypatch.setattr(report, "_bootstraps", lambda *given: (*real(*given)[:3], 1000.0))
    summary = program.summary("cpu", threads=1)
    assert summary.first_seconds >= summary.seconds + 1000.0
    assert f"{seconds_text(summary.first_seconds)} for the first call" in str(summary)


def test_a_server_that_records_its_runs_is_timed_by_a_recorded_one(
    deep: tuple[nn.Program, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a whole run is shared among the layers as their own times are."""
    program, _ = deep
    monkeypatch.setattr(report, "can_capture", lambda interpreter, evaluator: True)
    assert program.summary("cpu", threads=1).seconds > 0  # a whole run, with zeros for keys
    monkeypatch.setattr(report, "_captured_seconds", lambda dry_run, manifest: (42.0, 5.0))
    summary = program.summary("cpu", threads=1)
    assert summary.seconds == pytest.approx(42.0)
    assert summary.first_seconds > 47.0  # it is recorded then
    assert sum(layer.seconds for layer in summary.layers if layer.op == "bootstrap") == (
        pytest.approx(summary.bootstrap_seconds)
    )
    assert 0 < summary.bootstrap_seconds < 42.0


def test_arrays_that_repeat_are_bootstrapped_with_fewer_slots(
    deep: tuple[nn.Program, np.ndarray],
) -> None:
    """Eight numbers of two examples repeat after 16 of 512 slots."""
    program, _ = deep
    params, demand = program.params, program.manifest.demand
    assert {node.attrs["slots"] for node in bootstraps(program)} == {16}
    assert demand.packings == (16,)
    summary = program.summary("cpu", threads=1)
    assert summary.sparse_bootstraps == summary.bootstraps
    assert "with fewer slots" in str(summary)
    assert "slots=16" in program.explain("levels")
    assert "for 16 slots" in program.explain("parameters")
    # The keys are fewer than those for all slots, and the plan is cheaper.
    assert summary.bootstrap_key_bytes == params.expanded_bootstrap_key_bytes(slots=[16])
    assert summary.bootstrap_key_bytes < params.expanded_bootstrap_key_bytes()
    low = program.stages["lower"]
    sparse = best_levels(low, params, counted(params, [16]), (16,))[1].cost
    assert sparse < best_levels(low, params, counted(params))[1].cost
    # Arrays are bootstrapped with more slots than they repeat after, too, but not with fewer.
    assert best_levels(low, params, counted(params, [16, 64]), (64,))[0].packings == (64,)
    with pytest.raises(jali.Unsupported):
        best_levels(low, params, counted(params, [8]), (8,))


def test_further_keys_are_made_if_they_save_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four arrays of 256 numbers fill all slots; most of 8 numbers behind them repeat after 16 or
    64."""
    rng = np.random.default_rng(11)
    x = rng.uniform(-1, 1, (40, 256))
    small, (narrow,) = rotations(rng, 8, 8), rotations(rng, 1, 256)

    def f(v: Any) -> Any:
        for k in range(4):
            v = quadratic(v * (1 - 0.1 * k))
        v = narrow[:8] @ v
        for matrix in small:
            v = quadratic(matrix @ v)
        return v

    program = program_of(f, x, 5, 5)
    ways = {(node.size, node.attrs.get("slots", 0)) for node in bootstraps(program)}
    packings = program.manifest.demand.packings
    assert len(packings) == 2 and packings[0] == 0 and packings[1] in (16, 64)
    assert {(256, 0), (8, packings[1])} <= ways
    params = program.params
    keys = params.expanded_bootstrap_key_bytes(slots=packings)
    assert program.summary("cpu", threads=1).bootstrap_key_bytes == keys
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() <= 2.0**-5 * largest(program)
    # Without room for the keys, or if they do not save enough, all arrays are bootstrapped with all
    # slots.
    tight = program_of(f, x, 5, 5, key_memory=params.expanded_bootstrap_key_bytes() - 1)
    assert tight.manifest.demand.bootstrap not in ("all", "none")
    monkeypatch.setattr(bootstrapping_planner, "_WORTH_KEYS", 0.9)
    assert program_of(f, x, 5, 5).manifest.demand.packings == (0,)


def test_its_noise_is_what_was_announced(deep: tuple[nn.Program, np.ndarray]) -> None:
    program, x = deep
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got, want = client.decrypt(server(client.encrypt(x[:16]))), program.clear(x[:16])
    noise = np.sqrt(np.mean((got - want) ** 2))  # polynomials of degree 2 are exact
    radius = program.stages["approximate"][program.stages["approximate"].outputs[0]].attrs["radius"]
    announced = radius * 2.0 ** -program.manifest.demand.noise_bits[0]
    assert announced / 8 < noise < 2 * announced
    simulated = program.simulate(x, rng=np.random.default_rng(1))
    assert np.sqrt(np.mean((simulated - program.clear(x)) ** 2)) < 2 * announced


def test_noise_as_large_as_the_numbers_is_refused(deep: tuple[nn.Program, np.ndarray]) -> None:
    program, x = deep
    samples, laid_out = Samples(program.stages["trace"], [x]), program.stages["layout"]
    (name,) = laid_out.outputs
    (bits,) = samples.mean_noise_bits(laid_out, {name: AddedToCopies(alone=0.25)})
    assert bits == pytest.approx(2, abs=0.2)
    for much in (2.0, 1e300):
        with pytest.raises(RangeExceeded, match="more noise"):
            samples.mean_noise_bits(laid_out, {name: AddedToCopies(alone=much)})


def test_an_average_is_over_all_examples_if_there_are_few_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise of a factor is in proportion to the other one, which is small in the examples that are
    drawn first."""
    monkeypatch.setattr(element_noise, "_MOST", 8)
    x = np.full((64, 2), 0.9)
    x[::8] = 0.01
    program = jali.compile(lambda v: v[:1] * v[1:], x[0], calibration=x, precision_bits=8)
    graph, noise = program.stages["layout"], 2.0**-10
    (given,), (name,) = graph.inputs, graph.outputs
    samples = Samples(program.stages["trace"], [x])
    (bits,) = samples.mean_noise_bits(graph, {given.name: AddedToCopies(alone=noise)})
    noise *= float(np.max(given.attrs["radius"])) / float(np.max(graph[name].attrs["radius"]))
    assert 2.0**-bits == pytest.approx(noise * np.sqrt(np.mean(np.sum(x**2, axis=1))), rel=0.2)


def test_captured_and_eager_runs_agree(deep: tuple[nn.Program, np.ndarray]) -> None:
    program, x = deep
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu", capture=True)
    for examples in (x[:2], x[2:4]):
        got = client.decrypt(server(client.encrypt(examples)))
        assert np.abs(got - program.clear(examples)).max() <= 2.0**-6 * largest(program)


def test_many_squares_between_two_bootstraps_are_within_their_bounds() -> None:
    """Bounds of ciphertexts would outgrow all numbers behind nine squares. Every array has what the
    plan knows of it instead."""
    rng = np.random.default_rng(3)
    matrices = rotations(rng, 17, 64)

    def f(x: Any) -> Any:
        for matrix in matrices:
            y = matrix @ x
            x = 0.6 * y + 0.28 * (y * y - 1.0)
        return matrices[0][:3] @ x

    x = rng.normal(size=(50, 64))
    program = program_of(f, x, 4, 30)
    assert len(bootstraps(program)) == 1
    client = program.client(threads=1)
    got = client.decrypt(program.server(client.evaluation_keys(), threads=1)(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() <= 2.0**-4 * largest(program)


def test_programs_and_manifests_are_kept(
    deep: tuple[nn.Program, np.ndarray], tmp_path: Path
) -> None:
    program, x = deep
    program.save(tmp_path / "deep.jali")
    with pytest.raises(jali.InsecureParams):
        nn.Program.load(tmp_path / "deep.jali")
    again = nn.Program.load(tmp_path / "deep.jali", security=0)
    assert again.costs == program.costs and again.claims == program.claims
    assert again.explain("levels") == program.explain("levels")
    with pytest.raises(jali.InsecureParams):
        nn.Manifest.from_bytes(program.manifest.to_bytes())
    client = nn.Client(nn.Manifest.from_bytes(program.manifest.to_bytes(), security=0), threads=1)
    keys = client.evaluation_keys().to_bytes()
    server = again.server(
        ckks.EvaluationKeys.from_bytes(keys, again.params), threads=1, device="cpu"
    )
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() <= 2.0**-6 * largest(program)


def test_the_fewest_keys_compute_the_same() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (100, 8))
    f = network(rng, 6, quadratic)
    program = program_of(f, x, 6, 6, key_memory=0)
    assert program.manifest.demand.bootstrap == "fewest"
    every = program_of(f, x, 6, 6).summary("cpu", threads=1)
    few = program.summary("cpu", threads=1)
    assert few.bootstrap_key_bytes < every.bootstrap_key_bytes / 2
    client = program.client(threads=1)
    keys = client.evaluation_keys()
    assert few.keys == keys.count and few.key_bytes == keys.nbytes < every.key_bytes
    server = program.server(keys, threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() <= 2.0**-6 * largest(program)


def test_keys_between_all_and_the_fewest_are_those_that_fit() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (100, 8))
    f = network(rng, 6, quadratic)
    every = program_of(f, x, 6, 6)
    curve = every.params.bootstrap_key_curve(slots=every.manifest.demand.packings)
    room = (curve[0][0] + curve[-1][0]) // 2
    program = program_of(f, x, 6, 6, key_memory=room)
    chosen = program.manifest.demand.bootstrap
    packings = program.manifest.demand.packings
    sets = program.params.bootstrap_key_curve(slots=packings)
    fits = [point for point in sets if point[0] <= room]
    assert chosen == fits[-1][0]
    # The plan counts the longer time of a bootstrapping.
    if program.params == every.params:
        longer = np.array(program.costs.real[-1]) / every.costs.real[-1]
        assert abs(longer - fits[-1][1]) < 1e-3
    again = nn.Manifest.from_bytes(program.manifest.to_bytes(), security=0)
    assert again.demand == program.manifest.demand
    client = nn.Client(again, threads=1)
    keys = client.evaluation_keys()
    summary = program.summary("cpu", threads=1)
    assert summary.bootstrap_key_bytes <= room
    assert summary.keys == keys.count and summary.key_bytes == keys.nbytes
    server = program.server(keys, threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() <= 2.0**-6 * largest(program)


def test_arrays_of_two_ciphertexts_are_bootstrapped_together() -> None:
    rng = np.random.default_rng(7)
    matrices = rotations(rng, 5, 48)
    x = rng.uniform(-1, 1, (60, 48))

    def f(v: Any) -> Any:
        for matrix in matrices:
            v = quadratic(matrix @ v)
        return matrices[0][:2] @ v

    program = program_of(f, x, 5, 5, lanes=16)  # a lane has 32 slots
    nodes = bootstraps(program)
    assert nodes and all(node.attrs["kind"] == "pair" for node in nodes)
    assert all(node.attrs["layout"].ciphertexts == 2 for node in nodes)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:16])))
    assert np.abs(got - program.clear(x[:16])).max() <= 2.0**-5 * largest(program)
    assert server.evaluator.counters()["bootstraps"] == len(nodes)


def lowered_network(levels: int, layers: int = 6) -> tuple[Any, ckks.Params]:
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, (50, 8))
    program = program_of(network(rng, layers, quadratic), x, 5, levels)
    return program.stages, program.params


def test_stages_with_bootstraps_are_verified() -> None:
    stages, params = lowered_network(5)
    low, graph = stages["lower"], stages["levels"]
    verify(graph, params)
    levels = levels_of(graph)
    assert levels.restored and str(levelled(low, levels)) == str(graph)
    name = next(iter(levels.restored))
    due = params.bootstrap_level
    with pytest.raises(jali.InvalidArgument, match="takes"):
        levelled(low, Levels(levels.at, {}))
    with pytest.raises(jali.InvalidArgument, match="another graph"):
        levelled(low, Levels(levels.at, {"nobody": 3}))
    too_low = {**levels.at, name: due - 1}
    with pytest.raises(jali.InvalidArgument, match="below level"):
        verify(levelled(low, Levels(too_low, levels.restored)), params)
    least = repeated_after(low[name].attrs["layout"], params.slots)
    verify(levelled(low, Levels(levels.at, levels.restored, {name: least})), params)
    for wrong in (least // 2, 3 * least, params.slots):
        with pytest.raises(jali.InvalidArgument, match=f"does not repeat after {wrong} slots"):
            verify(levelled(low, Levels(levels.at, levels.restored, {name: wrong})), params)
    with pytest.raises(jali.InvalidArgument, match="another graph"):
        levelled(low, Levels(levels.at, levels.restored, {"nobody": least}))
    # In the clear, a bootstrapping changes nothing.
    values = np.random.default_rng().uniform(-1, 1, (3, 8))
    inputs = [packed(low.inputs[0].attrs["layout"], values)]
    for output in low.outputs:
        assert np.allclose(
            every_slot(graph, inputs)[output], every_slot(low, inputs)[output], 0, 1e-12
        )


def test_what_may_hold_large_numbers_is_not_bootstrapped() -> None:
    stages, params = lowered_network(5)
    most = params.bootstrap_max_magnitude
    node = next(n for n in stages["levels"] if n.op == "transform")
    assert refusal(node, most) == ""
    assert "as large as 1.5" in refusal(node.with_scaling(high=1.5), most)
    assert "between the numbers" in refusal(node.with_scaling(most=2 * most), most)
    loud = stages["lower"].__class__(
        tuple(n.with_scaling(high=1.5) for n in stages["lower"]), stages["lower"].outputs, "lower"
    )
    with pytest.raises(jali.Unsupported, match=r"levels lie between two bootstrappings.*1\.5"):
        best_levels(loud, params, counted(params))


def test_without_need_nothing_is_bootstrapped() -> None:
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, (50, 8))
    program = program_of(network(rng, 2, quadratic), x, 6, 6)
    assert not bootstraps(program) and program.manifest.demand.bootstrap == "none"
    summary = program.summary("cpu", threads=1)
    assert summary.bootstraps == 0 and "no bootstraps" in str(summary)
    assert str(program.stages["levels"]) == str(assign_levels(program.stages["lower"]))


def test_eight_layers_of_relu() -> None:
    rng = np.random.default_rng(10)
    x = rng.uniform(-1, 1, (300, 8))
    program = program_of(network(rng, 8, lambda v: scalar.relu(v) * 1.4), x, 3, 9)
    nodes = bootstraps(program)
    assert len(nodes) >= 7
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() <= 2.0**-3 * largest(program)
    assert server.evaluator.counters()["bootstraps"] == len(nodes)


def resnet_20(rng: np.random.Generator, examples: np.ndarray, width: int) -> Graph:
    """A residual network of 20 layers with squares, whose arrays are scaled so that the examples'
    largest number is 1; at its two strides, matrices go past the block."""
    nodes = [made("x", Input(shape=examples.shape[1:]), [])]
    values = {"x": examples}

    def add(name: str, op: str, inputs: list[Node], **attrs: Any) -> Node:
        nodes.append(made_by_name(name, op, inputs, attrs))
        values[name] = nodes[-1].operation.compute([values[node.name] for node in inputs])
        return nodes[-1]

    def square(name: str, x: Node) -> Node:
        largest = np.abs(values[x.name]).max()
        scaled = add(f"{name} scaled", "combine", [x], weights=(1 / largest,))
        return add(name, "multiply", [scaled, scaled])

    def convolution(name: str, x: Node, channels: int, stride: int = 1, kernel: int = 3) -> Node:
        shape = (channels, x.shape[0], kernel, kernel)
        attrs = {
            "weight": rng.normal(size=shape) / np.sqrt(np.prod(shape[1:])),
            "bias": None,
            "stride": (stride, stride),
            "padding": ((kernel // 2, kernel // 2),) * 2,
            "dilation": (1, 1),
            "groups": 1,
        }
        return add(name, "convolution", [x], **attrs)

    x = convolution("stem", nodes[0], width)
    x = square("stem square", x)
    for k in range(9):
        channels, stride = width << k // 3, 2 if k in (3, 6) else 1
        y = convolution(f"{k} first", x, channels, stride)
        y = convolution(f"{k} second", square(f"{k} inner", y), channels)
        if stride == 2:
            x = convolution(f"{k} past", x, channels, 2, 1)
        x = add(f"{k} sum", "combine", [y, x], weights=np.array([0.5, 0.5]))
        x = square(f"{k} square", x)
    x = add("pool", "sum", [x], axes=(1, 2), keepdims=False, factor=1 / np.prod(x.shape[1:]))
    add("dense", "dense", [x], weight=rng.normal(size=(10, x.shape[0])), bias=None)
    return Graph(tuple(nodes), ("dense",))


@pytest.mark.long
def test_a_residual_network_of_20_layers_takes_two_bootstraps() -> None:
    """39 levels at N = 2^16, with the preset's 16 levels of which 13 lie between two bootstraps."""
    rng = np.random.default_rng()
    examples = rng.uniform(-1, 1, (8, 3, 8, 8))
    calibrated = calibrate(fold(resnet_20(rng, examples, 4)), [examples])
    params = ckks.Params.preset("n16_fast", device="cuda")
    low = lowered(approximated(calibrated, 2.0**-10), params.slots, WEIGHTS, bootstraps=True)[
        "lower"
    ]
    assert depth_of(low) == 39
    levels, plan = best_levels(low, params, counted(params))
    assert plan.cost == plan.bound and sorted(levels.restored) == [
        "2 square scaled",
        "5 square scaled",
    ]
    # With bootstraps for nothing, nothing stays at a high level for long.
    free = replace(counted(params), real=(0,) * (params.depth + 1), pair=(0,) * (params.depth + 1))
    assert len(best_levels(low, params, free)[0].restored) > 10


@pytest.mark.long
def test_a_program_that_is_too_deep_for_bounds_of_noise_bootstraps() -> None:
    """Its 39 levels fit the largest ring, but its bounds square with every product. Parameters are
    secure ones."""
    rng = np.random.default_rng()
    x = rng.uniform(-1, 1, (50, 8))
    f = network(rng, 19, quadratic)
    program = jali.compile(f, x[0], calibration=x, precision_bits=4, device="cuda")
    assert program.params.security >= 128 and bootstraps(program)
    assert program.manifest.demand.noise_bits[0] > 4


def test_precision_can_be_claimed() -> None:
    params = ckks.Params.create(depth=2, scale_bits=40, log_n=12, security=0, name="insecure_test")
    client = ckks.Client(params, threads=1)
    x = ckks.Evaluator(params, client.evaluation_keys(), "cpu", threads=1).bind(
        client.encrypt(np.ones(4))
    )
    y = x._with_precision(12.0)
    assert abs(y.precision_bits - 12) < 0.01 < x.precision_bits - 12
    assert np.array_equal(client.decrypt(y), client.decrypt(x))
    assert ckks.worst_case_error(y.ciphertext) <= ckks.worst_case_error(x.ciphertext)
    z = x._with_precision(60.0)
    assert ckks.worst_case_error(z.ciphertext) < ckks.worst_case_error(x.ciphertext)
    for wrong in (float("nan"), float("inf"), 1e9):
        with pytest.raises(jali.InvalidArgument, match="precision_bits"):
            x._with_precision(wrong)


def test_plots(deep: tuple[nn.Program, np.ndarray], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    program, _ = deep
    figure = program.plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    above, below = figure.axes
    assert above.get_ylabel() == "level" and below.get_ylabel() == f"cost, {program.costs.unit}"
    assert len(below.patches) == len(program.stages["levels"])
    assert f"{len(bootstraps(program))} arrays" in figure.get_suptitle()
    with pytest.raises(jali.InvalidArgument, match=r"\.png"):
        program.plot(tmp_path / "plan.txt")
    with pytest.raises(jali.FileError):
        program.plot(tmp_path / "nowhere" / "plan.png")


def test_costs_are_whole_numbers_that_files_keep() -> None:
    stages, params = lowered_network(5)
    costs = counted(params)
    assert Costs.of_document(costs.document) == costs
    due = params.bootstrap_level
    assert costs.bootstrap(2)[-1] < 2 * costs.bootstrap(1)[-1] < costs.bootstrap(3)[-1]
    assert costs.real[due] < costs.real[-1] and costs.real[due - 1] > 10**12
    for wrong in ({"unit": "hours"}, {"real": [1]}, {"product": [-1]}, {"plain": [0.5]}):
        with pytest.raises((ValueError, TypeError)):
            Costs.of_document({**costs.document, **wrong})
    for node in stages["lower"]:
        row = cost_of(costs, node)
        assert len(row) == params.depth + 1 and all(a <= b for a, b in itertools.pairwise(row))
    weights = layout_costs_of(costs, params)
    again = lowered(stages["approximate"], params.slots // 2, weights, bootstraps=True)["lower"]
    levels = levels_of(stages["levels"])
    costs = counted(params, [n for n in levels.packings if n])
    assert best_levels(again, params, costs, levels.packings)[0] == levels
