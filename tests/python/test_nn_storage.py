"""How matrices are stored: the choice within a memory, what a server really holds, and results that
do not depend on it."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali import ckks, nn
from jali.ckks import LinearTransform
from jali.compiler.cost.keys import key_sizes
from jali.compiler.driver import compiled
from jali.compiler.planning.parameters import Ring
from jali.compiler.runtime import storage as kinds_of
from jali.compiler.runtime.interpreter import Interpreter
from jali.compiler.runtime.storage import KINDS, Item, choose_kinds
from jali.nn import scalar


@st.composite
def items(draw: st.DrawFn) -> Item:
    resident = draw(st.integers(1, 40))
    expanded = draw(st.integers(1, 30))
    streamed = expanded + draw(st.integers(0, 30))
    return Item(
        resident=resident,
        integers=draw(st.integers(0, 50)),  # 0: too large; more than resident: of one prime
        period=draw(st.booleans()),
        expanded=expanded,
        streamed=streamed,
        made=streamed + draw(st.integers(0, 500)),
    )


def total(chosen: Any, matrices: list[Item]) -> tuple[int, int]:
    """Bytes of the device, and cost."""
    pairs = list(zip(chosen, matrices, strict=True))
    held = sum(m.bytes(kind) for kind, m in pairs if kind != "streamed")
    return held, sum(m.cost(kind) for kind, m in pairs)


@settings(max_examples=300, deadline=None)
@given(st.lists(items(), min_size=1, max_size=5), st.integers(0, 160))
def test_the_choice_is_near_the_best_of_all_and_fits(matrices: list[Item], memory: int) -> None:
    """Of all choices that fit, the best is cheaper by at most one step of one matrix; if everything
    fits resident, nothing is cheaper. If any choice fits that makes nothing, only such choices
    count."""
    found = choose_kinds(matrices, memory)
    held, cost = total(found, matrices)
    assert held <= memory
    offered = [
        [kind for kind in ("made", m.compact, "resident") if kind == "made" or m.bytes(kind)]
        for m in matrices
    ]
    every = [(total(choice, matrices), choice) for choice in itertools.product(*offered)]
    fitting = [(cost, "made" in choice) for (held, cost), choice in every if held <= memory]
    makes = all(made for _, made in fitting)
    assert makes == ("made" in found)
    best = min(cost for cost, made in fitting if made == makes)
    assert best <= cost <= best + max(m.made for m in matrices)
    if sum(m.resident for m in matrices) <= memory:
        assert found == ["resident"] * len(matrices) and cost == 0
    assert all(
        kind == m.compact
        for kind, m in zip(found, matrices, strict=True)
        if kind in ("integers", "periodic")
    )


@given(st.lists(items(), min_size=1, max_size=6), st.integers(0, 160))
def test_what_fits_on_the_device_is_there(matrices: list[Item], memory: int) -> None:
    """If all fits as integers, whatever they cost, so that a run asks the host for nothing."""
    least = sum(min(m.resident, m.integers or m.resident) for m in matrices)
    assert ("made" in choose_kinds(matrices, memory)) == (memory < least)


def test_matrices_of_few_primes_are_not_made_if_integers_fit() -> None:
    """Two resident ones and one that is made would cost less, by what an encoding takes alone."""
    assert choose_kinds([Item(15, 10, False, 6, 6, 10)] * 3, 30) == ["integers"] * 3
    assert choose_kinds([Item(15, 10, False, 6, 6, 10)] * 3, 29) == ["resident", "integers", "made"]


def test_streamed_matrices_take_a_share_of_the_hosts_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = Item(100, 10, False, 1, 2, 50)
    assert choose_kinds([matrix] * 3, 0, streams=True) == ["streamed"] * 3
    assert choose_kinds([matrix] * 3, 0) == ["made"] * 3
    found = choose_kinds([matrix] * 3, 120, streams=True)
    assert found == ["resident", "integers", "integers"]
    monkeypatch.setattr(kinds_of, "STREAMED_BYTES", 25)
    assert choose_kinds([matrix] * 3, 0, streams=True) == ["streamed", "streamed", "made"]
    assert choose_kinds([replace(matrix, integers=0)], 0, streams=True) == ["made"]


# --- programs ------------------------------------------------------------------------------------


def network(rng: np.random.Generator) -> Any:
    a, b = rng.normal(size=(16, 10)) / 4, rng.normal(size=(3, 16)) / 4
    return lambda v: b @ scalar.sigmoid(a @ v)


@pytest.fixture(scope="module")
def served() -> tuple[nn.Program, np.ndarray, Any, Any, bytes]:
    """A program, an example, keys, a request, and the reply of a server with all matrices
    resident."""
    rng = np.random.default_rng(11)
    x = rng.uniform(-1, 1, (50, 10))
    program = jali.compile(network(rng), x[0], calibration=x)
    client = program.client(threads=1)
    keys, request = client.evaluation_keys(), client.encrypt(x[0])
    interpreter = program._interpreter()
    assert interpreter.is_resident and set(itertools.chain(*interpreter.storage.values())) == {
        "resident"
    }
    assert sum(interpreter.held_bytes.values()) == sum(interpreter.encoded_bytes.values())
    reply = program.server(keys, threads=1, device="cpu")(request).to_bytes()
    return program, x, keys, request, reply


def of_memory(program: nn.Program, memory: float) -> nn.Program:
    return replace(program, memory=memory)


def in_use(program: nn.Program, keys: Any) -> tuple[nn.Server, int]:
    server = program.server(keys, threads=1, device="cpu")
    return server, server.evaluator.counters()["bytes_in_use"]


def test_every_memory_gives_the_same_reply_and_is_kept(served: Any) -> None:
    """The bytes that a server takes more than one without matrices are those that are told, and no
    more than were given."""
    program, _, keys, request, want = served
    most = sum(program._interpreter().encoded_bytes.values())
    least = program._interpreter().least_bytes
    assert 0 < least < most
    nothing = in_use(of_memory(program, 0), keys)[1]
    seen: set[Any] = set()
    for memory in (most, most - 1, (most + least) // 2, least, least - 1, least // 2, 1, 0):
        small = of_memory(program, memory)
        interpreter = small._interpreter()
        told = sum(interpreter.held_bytes.values())
        assert told <= memory
        by_kind = interpreter.bytes_of
        assert told == sum(by_kind[k] for k in ("resident", "integers", "periodic"))
        assert interpreter.is_resident == (memory >= least)
        server, taken = in_use(small, keys)
        plans = server._interpreter._matrices._plans.values()
        assert sum(plan.nbytes for plan in plans) == told
        blocks = sum(plan.diagonal_count for plan in plans)
        assert taken - nothing <= told + 4096 * blocks  # the pool rounds blocks up
        assert server(request).to_bytes() == want
        seen |= {k for kinds in interpreter.storage.values() for k in kinds}
    assert seen == {"resident", "periodic", "made"}  # the arrays are smaller than the slots


def test_streamed_matrices_give_the_same_reply(served: Any) -> None:
    """On a CPU they lie where integers do; a GPU copies them at each use."""
    program, _, keys, request, want = served
    graph = program.stages["levels"]
    interpreter = Interpreter(
        graph, program.params, 1, 0, program.claims, costs=program.costs, streams=True
    )
    assert {k for kinds in interpreter.storage.values() for k in kinds} == {"streamed"}
    assert sum(interpreter.held_bytes.values()) == 0 < interpreter.bytes_of["streamed"]
    assert not interpreter.is_resident
    deployment = nn.Deployment(interpreter, program.manifest, threads=1, device="cpu")
    deployment.prepare()
    server = deployment.server(keys)
    assert server(request).to_bytes() == want


def test_precision_does_not_depend_on_the_memory(served: Any) -> None:
    program, x = served[:2]
    client = program.client(threads=1)
    small = of_memory(program, program._interpreter().least_bytes)
    assert small.manifest.demand == program.manifest.demand
    server = small.server(client.evaluation_keys(), threads=1, device="cpu")
    assert (
        np.abs(client.decrypt(server(client.encrypt(x[:1]))) - program.clear(x[:1])).max() < 2**-9
    )


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 1))
def test_random_shapes_within_random_memories(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    n, m, k, lanes = (int(v) for v in (*rng.integers(1, 40, 3), 2 ** rng.integers(0, 4)))
    a, b = rng.normal(size=(m, n)) / n**0.5, rng.normal(size=(k, m)) / m**0.5
    x = rng.uniform(-1, 1, (40, n))
    f = lambda v: b @ np.square(a @ v)  # noqa: E731
    whole = jali.compile(f, x[0], calibration=x, batch=lanes, precision_bits=8)
    memory = int(share * sum(whole._interpreter().encoded_bytes.values()))
    program = of_memory(whole, memory)
    client = program.client(threads=1)
    keys, request = client.evaluation_keys(), client.encrypt(x[:lanes])
    server = program.server(keys, threads=1, device="cpu")
    assert sum(p.nbytes for p in server._interpreter._matrices._plans.values()) <= memory
    reply = server(request)
    assert reply.to_bytes() == whole.server(keys, threads=1, device="cpu")(request).to_bytes()
    want = np.stack([f(v) for v in x[:lanes]])
    assert np.abs(client.decrypt(reply) - want).max() < 2**-7 * np.abs(program.clear(x)).max()


def test_loaded_programs_store_alike(served: Any, tmp_path: Any) -> None:
    program = served[0]
    least = program._interpreter().least_bytes
    for memory in (least - 1, least, 2 * least):
        small = of_memory(program, memory)
        small.save(tmp_path / "small.jali")
        again = nn.Program.load(tmp_path / "small.jali")
        assert again.to_bytes() == small.to_bytes()
        assert again._interpreter().storage == small._interpreter().storage
        assert again.sizes() == small.sizes() and again.explain("report") == small.explain("report")


def test_the_price_list_and_the_stages_tell_the_kinds(served: Any) -> None:
    program = served[0]
    least = program._interpreter().least_bytes
    for memory, kind in ((1 << 30, "resident"), (least, "periodic"), (0, "made")):
        small = of_memory(program, memory)
        summary, sizes = small.summary("cpu", threads=1), small.sizes()
        assert summary.stored_bytes == sizes.kinds and set(sizes.kinds) == set(KINDS)
        assert sizes.matrices == summary.diagonal_bytes == sum(sizes.kinds.values())
        assert (sizes.kinds[kind] > 0) == (kind != "made")
        found = {k for layer in summary.layers for k in layer.stored}
        assert found == {kind} and kind in str(summary) and kind in small.explain("report")
        more = "for matrices that are not resident" in small.explain("report")
        assert more == (kind != "resident")
        assert ("more memory=" in small.explain("program")) == (kind == "made")
        assert ("more memory=" in str(summary)) == (kind == "made")
    assert program.summary("cpu", threads=1).layers[0].stored == ("resident",)


def test_too_little_memory_is_warned_of_with_the_memory_that_is_enough() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (50, 10))
    f = network(rng)
    with pytest.warns(UserWarning, match=r"has no room for the matrices of \d+ operations") as told:
        jali.compile(f, x[0], calibration=x, memory=10)
    (text,) = [str(w.message) for w in told if "no room" in str(w.message)]
    enough = int(text.split("at least ")[1].split(" bytes")[0].replace(",", ""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = jali.compile(f, x[0], calibration=x, memory=enough)
    assert program._interpreter().is_resident
    assert sum(program._interpreter().held_bytes.values()) <= enough
    with pytest.warns(UserWarning, match="no room"):
        jali.compile(f, x[0], calibration=x, memory=enough - 1)


def test_numbers_that_are_too_large_for_integers_are_resident_or_made() -> None:
    """A scale of 60 bits, and weights of more than 4: compact plaintexts have 62 bits."""
    rng = np.random.default_rng(4)
    params = ckks.Params.create(depth=2, scale_bits=58, log_n=12, security=0, name="insecure_test")
    plan = LinearTransform(params, {0: np.full(params.slots, 100.0)})
    with pytest.raises(jali.InvalidArgument, match="62 bits"):
        _ = plan.integer_bytes
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
    with pytest.raises(jali.InvalidArgument, match="62"):
        server.prepare(plan, storage="integers")
    server.prepare(plan)
    x = rng.uniform(-1, 1, params.slots)
    y = client.decrypt(server.linear_transform(plan, server.bind(client.encrypt(x))))
    assert np.abs(y - 100 * x).max() < 1e-6


def test_keys_of_bootstrapping_and_matrices_share_the_memory() -> None:
    """What keys and matrices take together is within what was given, from the memory for which a
    warning asks on."""
    rng = np.random.default_rng(5)
    turns = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(4)]
    x = rng.uniform(-1, 1, (200, 8))

    def f(v: Any) -> Any:
        for turn in turns:
            v = 0.8 * (turn @ v) + 0.2 * np.square(turn @ v)
        return turns[0][:3] @ v

    def made(memory: float, keys: float | None) -> nn.Program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compiled(
                nn.trace(f, x[0]),
                [x],
                precision_bits=6,
                lanes=2,
                memory=memory,
                key_memory=keys,
                insecure_ring=Ring(10, 6),
            )

    free = made(1 << 30, float("inf"))
    assert any(node.op == "bootstrap" for node in free.stages["levels"])
    params = free.params
    curve = params.bootstrap_key_curve(slots=free.manifest.demand.packings)
    whole = curve[-1][0] + sum(free._interpreter().encoded_bytes.values())
    fewest = curve[0][0] + free._interpreter().least_bytes
    for memory in np.linspace(fewest * 1.2, whole, 5):
        program = made(float(memory), None)
        sizes = program.sizes()
        own = key_sizes(program.params, program.manifest.demand).bootstrap
        assert own + sizes.matrices <= memory
        assert program._interpreter().is_resident


def test_a_gpu_streams_what_does_not_fit_and_a_cpu_makes_it() -> None:
    """The plan for a GPU needs none. A server on a CPU has no other memory than the one that is
    given."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (50, 10))
    f = network(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = jali.compile(f, x[0], calibration=x, device="cuda", memory=100)
    sizes = program.sizes()
    assert sizes.matrices <= 100 and sizes.kinds["streamed"] > 0 == sizes.kinds["made"]
    assert "streamed" in program.explain("report") and "streamed" in program.explain("program")
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.device == "cuda" and again.sizes() == sizes
    interpreter = program._interpreter("cpu")
    assert {k for kinds in interpreter.storage.values() for k in kinds} == {"made"}
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:2])))
    assert np.abs(got - program.clear(x[:2])).max() < 2**-9
