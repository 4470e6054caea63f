"""Compiled programs of exact integers: results equal Python's integers, ranges at their ends,
refusals and their advice, files, and several clients."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integer_models import RING, exactly, examples, program, random_model

import jali
from jali import discrete, nn
from jali.compiler.integers.plan import planned_as
from jali.compiler.integers.program import Program
from jali.nn.integers import Client, Manifest, Message
from jali.program import container
from jali.program.integers import stored
from jali.program.integers.port import Port

WEIGHTS = np.array([[3, -1, 2], [0, 5, -7]])


def answered(made: Program, rows: Any, client: Client | None = None) -> Any:
    """What a client of its own decrypts of a server's reply."""
    client = client or made.client(threads=1)
    server = made.server(client.evaluation_keys(), device="cpu", threads=1)
    return client.decrypt(server(client.encrypt(rows)))


def by(made: Program, layout: str, depth: int = 3) -> Program:
    """The same program with its numbers laid otherwise."""
    manifest = made.manifest
    bits = max(2, manifest.params.modulus.bit_length() - 1)
    params = discrete.Params.create(integers=bits, depth=depth, **RING)  # type: ignore[arg-type]
    plan = planned_as(made.graph, manifest.inputs, manifest.outputs, layout, made.batch, params)
    return replace(made, plan=plan)


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_random_models_are_computed_as_python_computes_them(
    seed: int, rng: np.random.Generator
) -> None:
    model, shape = random_model(rng)
    low = int(rng.integers(-20, 5))
    made = program(model, low, low + 15, shape)
    rows = examples(rng, low, low + 15, shape, 5)
    found, expected = answered(made, rows), exactly(model, rows)
    assert found.dtype == np.int64
    assert found.tolist() == expected.tolist() == np.asarray(made.clear(rows)).tolist()
    with contextlib.suppress(jali.InvalidArgument, jali.DepthExhausted):  # numbers that would move
        other = by(made, "rows" if made.manifest.layout == "columns" else "columns", 6)
        assert answered(other, rows).tolist() == expected.tolist()
    (port,) = made.manifest.outputs  # the range of every number holds
    flat = expected.reshape(5, -1)
    assert (flat >= port.low).all() and (flat <= port.high).all()


@pytest.mark.parametrize("layout", ["columns", "rows"])
def test_both_ways_to_lay_numbers_give_the_same(layout: str, rng: np.random.Generator) -> None:
    def model(x: Any) -> Any:
        return WEIGHTS @ (x * x) + x.sum() - np.array([4, 5])

    made = by(program(model, -6, 6, (3,)), layout)
    rows = examples(rng, -6, 6, (3,), 6)  # more than one ciphertext by rows
    assert made.manifest.layout == layout
    assert answered(made, rows).tolist() == exactly(model, rows).tolist()
    single = answered(made, rows[0])
    assert single.tolist() == exactly(model, rows[:1])[0].tolist()


def test_results_reach_both_ends_of_their_range(rng: np.random.Generator) -> None:
    weights = np.array([[2**20, -(2**19)], [7, 1]])
    made = program(lambda x: weights @ x, [-100, 0], [5, 1000], (2,))
    rows = np.array([[-100, 1000], [5, 0], [-100, 0], [5, 1000]])
    (port,) = made.manifest.outputs
    found = answered(made, rows)
    assert found[0, 0] == port.low[0] and found[1, 0] == port.high[0]
    assert found[2, 1] == port.low[1] and found[3, 1] == port.high[1]
    assert found.tolist() == (rows @ weights.T).tolist()


def test_numbers_between_may_leave_the_modulus() -> None:
    """Differences of large numbers fit again: arithmetic modulo T is exact."""
    made = program(lambda x: 2**50 * x[0] - (2**50 - 1) * x[0] + x[1], -50, 50, (2,))
    (port,) = made.manifest.outputs
    assert port.range[1] > 2**50  # intervals do not know that both terms are one number
    rows = np.array([[50, -50], [-50, 3]])
    assert answered(made, rows).tolist() == [0, -47]


def test_results_far_from_zero_take_no_more_bits_than_they_differ_by() -> None:
    made = program(lambda x: x[0] - 10**15, 0, 100, (1,))
    assert made.params.modulus < 2**16
    assert made.manifest.outputs[0].range == (-(10**15), 100 - 10**15)
    assert answered(made, np.array([[0], [100]])).tolist() == [-(10**15), 100 - 10**15]


def test_a_polynomial_has_the_range_of_its_values() -> None:
    made = program(lambda x: x**4 - 10 * x**2, -3, 3, (2,))
    (port,) = made.manifest.outputs
    assert port.range[0] >= -10 * 9 and port.range[1] <= 81
    rows = np.array([[-3, 2], [0, 1]])
    assert answered(made, rows).tolist() == exactly(lambda x: x**4 - 10 * x**2, rows).tolist()
    table = program(lambda x: nn.scalar.polynomial(x, [1, 0, -9, 0, 1]), -3, 3, (2,))
    assert table.manifest.outputs[0].range == (-19, 1)  # exactly, number by number
    assert answered(table, rows).tolist() == [[1, -19], [1, -7]]


def test_several_inputs_and_outputs_and_what_depends_on_no_input() -> None:
    graph = nn.trace(lambda a, b: (a * b, b - a), (np.zeros(2), np.zeros(2)))
    ports = [Port(n.name, n.shape, np.array([-9, -9]), np.array([9, 9])) for n in graph.inputs]
    made = Program.of(graph, ports, 4, 1, RING)
    client = made.client(threads=1)
    server = made.server(client.evaluation_keys(), device="cpu", threads=1)
    a, b = np.array([[1, -9]]), np.array([[9, 9]])
    product, difference = client.decrypt(server(client.encrypt(a, b)))
    assert product.tolist() == [[9, -81]] and difference.tolist() == [[8, 18]]
    none = np.array([[0, 0], [1, 2]])
    constant = program(lambda x: none @ x + np.array([7, 0]), -3, 3, (2,))
    assert answered(constant, np.array([[3, -3]])).tolist() == [[7, -3]]


# --- when it is chosen ----------------------------------------------------------------------------


def compiled(model: Any, x: Any, **options: Any) -> Any:
    return jali.compile(model, x[0], calibration=x, **options)


def test_floats_are_compiled_as_ever(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (40, 3)).astype(np.float64)  # whole, and still floats
    made, asked = (
        compiled(lambda v: WEIGHTS @ v, x),
        compiled(lambda v: WEIGHTS @ v, x, scheme="ckks"),
    )
    assert type(made) is type(asked) is nn.Program
    assert made.to_bytes() == asked.to_bytes()


def test_integers_move_only_where_that_costs_no_more(rng: np.random.Generator) -> None:
    weights, x = rng.integers(-50, 50, 30), rng.integers(-9, 9, (40, 30))
    few, many = (compiled(lambda v: v @ weights, x, batch=batch) for batch in (1, 4096))
    assert type(few) is nn.Program and type(many) is nn.integers.Program
    choice = many.choice
    assert choice.ckks_cost is not None
    assert choice.cost <= choice.ckks_cost and choice.traffic <= choice.ckks_traffic
    told = many.explain("program")
    assert "exact integers modulo T: exact" in told and "with CKKS" in told
    asked = compiled(lambda v: v @ weights, x, scheme="discrete")
    assert type(asked) is nn.integers.Program and asked.choice.ckks_cost is None
    assert answered(asked, x[:3]).tolist() == (x[:3] @ weights).tolist()


def test_lists_have_no_type_and_stay_with_ckks_unless_asked(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 9, (12, 3)).tolist()
    made = jali.compile(lambda v: v[0] + v[1], rows[0], calibration=rows, batch=4096)
    assert type(made) is nn.Program
    asked = jali.compile(lambda v: v[0] + v[1], rows[0], calibration=rows, scheme="discrete")
    assert type(asked) is nn.integers.Program


def test_long_examples_lie_in_rows_and_short_ones_in_columns(rng: np.random.Generator) -> None:
    long = rng.integers(0, 2, (12, 2000), dtype=np.int8)
    made = compiled(lambda v: v.sum(), long, scheme="discrete")
    assert made.manifest.layout == "rows" and made.manifest.client_cost.request < 1 << 20
    assert answered(made, long[:1]).tolist() == [int(long[0].sum(dtype=int))]
    short = compiled(lambda v: v.sum(), long[:, :4], scheme="discrete")
    assert short.manifest.layout == "columns" and short.manifest.key_cost.count == 0


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (lambda v: v.sum() / 3, {}),
        (lambda v: 0.5 * v, {}),
        (lambda v: v.mean(), {}),
        (lambda v: np.maximum(v, 0), {}),
        (lambda v: 2 * v, {"precision_bits": 12}),
        (lambda v: 2 * v, {"scheme": "ckks"}),
    ],
)
def test_what_is_not_exact_or_asks_for_a_precision_is_ckks(
    model: Any, options: dict[str, Any], rng: np.random.Generator
) -> None:
    x = rng.integers(-9, 9, (40, 3))
    assert type(compiled(model, x, batch=4096, **options)) is nn.Program


def test_a_range_is_that_of_the_calibration_within_the_type(rng: np.random.Generator) -> None:
    x = rng.integers(100, 200, (40, 3)).astype(np.uint8)
    x[0], x[1] = 100, 199
    made = compiled(lambda v: 2 * v, x, scheme="discrete", margin=10.0)
    assert made.manifest.inputs[0].range == (0, 255)
    flags = rng.integers(0, 2, (40, 3)).astype(bool)
    assert compiled(lambda v: v.sum(), flags, scheme="discrete").manifest.outputs[0].range == (0, 3)
    declared = compiled(lambda v: 2 * v, x, scheme="discrete", input_range=(99.5, 200))
    assert declared.manifest.inputs[0].range == (100, 200)


# --- refusals -------------------------------------------------------------------------------------


def test_a_range_that_leaves_the_modulus_is_refused_and_the_advice_is_true() -> None:
    x = np.array([[-(2**20), 2**20 - 1]] * 12)
    cube = lambda v: v**3  # noqa: E731
    with pytest.raises(jali.RangeExceeded, match=r"narrower input_range=.*smaller scale") as told:
        compiled(cube, x, scheme="discrete")
    assert "59" in str(told.value)
    small = x // 2**10
    made = jali.compile(
        cube, small[0], calibration=small, scheme="discrete", input_range=(-(2**10), 2**10)
    )
    assert answered(made, small[:1]).tolist() == [[(-(2**10)) ** 3, (2**10 - 1) ** 3]]
    weights = np.array([0.123456789, -0.5])
    fine, coarse = (np.rint(weights * scale).astype(np.int64) for scale in (2**45, 2**20))
    with pytest.raises(jali.RangeExceeded, match="smaller scale"):
        compiled(lambda v: v @ fine, x, scheme="discrete")
    made = compiled(lambda v: v @ coarse, x, scheme="discrete")
    assert answered(made, x[:1]).tolist() == [int(x[0] @ coarse)]


def test_the_widest_range_is_computed_exactly() -> None:
    made = program(lambda x: 2**38 * x, -(2**19), 2**19, (1,))
    rows = np.array([[2**19], [-(2**19)], [-1]])
    assert answered(made, rows).tolist() == [[2**57], [-(2**57)], [-(2**38)]]
    with pytest.raises(jali.RangeExceeded):
        program(lambda x: 2**40 * x, -(2**19), 2**19, (1,))


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (lambda v: v.mean(), "take the sum"),
        (lambda v: 0.25 * v, r"np\.rint\(scale"),
        (lambda v: nn.scalar.sigmoid(v), "let the client compute it"),
        (lambda v: 2.0**53 * v, "use smaller ones"),
    ],
)
def test_what_is_no_arithmetic_of_whole_numbers_names_what_to_write(
    model: Any, advice: str
) -> None:
    x = np.arange(36).reshape(12, 3)
    with pytest.raises(jali.Unsupported, match=advice):
        compiled(model, x, scheme="discrete")


def test_floats_and_other_schemes_are_refused_with_the_way() -> None:
    x = np.arange(36.0).reshape(12, 3)
    with pytest.raises(jali.Unsupported, match=r"np\.rint\(scale \* x\)\.astype\(np\.int64\)"):
        compiled(lambda v: 2 * v, x, scheme="discrete")
    whole = np.rint(4 * x).astype(np.int64)  # as it says
    assert type(compiled(lambda v: 2 * v, whole, scheme="discrete")) is nn.integers.Program
    with pytest.raises(jali.InvalidArgument, match="scheme is"):
        compiled(lambda v: 2 * v, whole, scheme="bgv")
    huge = np.full((12, 3), 2**54)
    with pytest.raises(jali.RangeExceeded, match=r"smaller input_range="):
        compiled(lambda v: 2 * v, huge, scheme="discrete")


def test_powers_of_powers_end_before_they_take_all_memory() -> None:
    def model(v: Any) -> Any:
        for _ in range(64):
            v = v * v
        return v

    start = time.monotonic()
    with pytest.raises(jali.RangeExceeded, match="lower powers"):
        compiled(model, np.arange(36).reshape(12, 3), scheme="discrete")
    assert time.monotonic() - start < 60  # it would never end


def test_a_client_refuses_what_would_be_wrong_and_shows_no_number() -> None:
    made = program(lambda x: 2 * x, [-5, 0], [5, 100], (2,))
    client = made.client(threads=1)
    for wrong in ([[-6, 0]], [[5, 101]], [[0, -1]], [[0.5, 1]], [[1, 2, 3]], [[np.nan, 1]], ["a"]):
        with pytest.raises(jali.InvalidArgument) as told:
            client.encrypt(wrong)
        assert "101" not in str(told.value) and "-6" not in str(told.value)
    assert client.encrypt([[5.0, 100.0]]).examples == 1  # whole, though of another type
    with pytest.raises(jali.InvalidArgument):
        client.encrypt([[1, 2]], [[1, 2]])
    with pytest.warns(UserWarning, match="a client refuses"):
        assert np.asarray(made.simulate([[6, 0]])).tolist() == [[12, 0]]


# --- several clients, messages --------------------------------------------------------------------


def test_clients_of_a_deployment_have_keys_of_their_own(rng: np.random.Generator) -> None:
    made = program(lambda x: (x * x).sum() - x[0], -9, 9, (3,))
    deployment = made.deploy("cpu", threads=1)
    clients = [
        made.client(threads=1),
        Client(Manifest.from_bytes(made.manifest.to_bytes(), security=0)),
    ]
    servers = [deployment.server(deployment.keys(c.evaluation_keys().to_bytes())) for c in clients]
    rows = examples(rng, -9, 9, (3,), 3)
    for client, server in zip(clients, servers, strict=True):
        reply = server(client.encrypt(rows))
        assert client.decrypt(reply).tolist() == ((rows * rows).sum(1) - rows[:, 0]).tolist()
    with pytest.raises(jali.KeyMismatch):
        servers[0](clients[1].encrypt(rows))
    with pytest.raises(jali.KeyMismatch):
        clients[0].decrypt(servers[1](clients[1].encrypt(rows)))
    servers[0].close()
    assert servers[0].nbytes == 0
    with pytest.raises(jali.InvalidArgument, match=r"deployment\.server\(keys\)"):
        servers[0](clients[0].encrypt(rows))


def test_a_server_refuses_what_its_clients_do_not_make() -> None:
    made = program(lambda x: x + 1, -9, 9, (2,))
    client = made.client(threads=1)
    server = made.server(client.evaluation_keys(), device="cpu", threads=1)
    request = client.encrypt([[1, 2]])
    (one,) = request.chunks[0]
    other = client.secret.encrypt(np.zeros(one.shape, np.int64), range=(-10, 9))
    low = client.secret.encrypt(np.zeros(one.shape[::-1], np.int64), range=(-9, 9))
    for wrong in (
        replace(request, chunks=((other,),)),  # claims another range
        replace(request, chunks=((low,),)),
        replace(request, chunks=((one, one),)),
        replace(request, chunks=((one,), (one,))),
        replace(request, chunks=()),
        replace(request, examples=0),
        replace(request, is_reply=True),
        replace(request, program="0" * 64),
        replace(request, chunks=(("ciphertext",),)),  # type: ignore[arg-type]
    ):
        with pytest.raises(jali.InvalidArgument):
            server(wrong)
    reply = server(request)
    for altered in (request, replace(reply, examples=5000), replace(reply, chunks=request.chunks)):
        with pytest.raises(jali.InvalidArgument):
            client.decrypt(altered)
    assert client.decrypt(reply).tolist() == [[2, 3]]


def test_a_result_outside_of_its_range_is_no_result() -> None:
    """A server that computes something else is noticed wherever its results leave their ranges."""
    made = program(lambda x: x * np.array([1, 100]), 0, 3, (2,))
    client = made.client(threads=1)
    server = made.server(client.evaluation_keys(), device="cpu", threads=1)
    request = client.encrypt([[3, 3]])
    (port,) = made.manifest.outputs
    x = server.evaluator.bind(request.chunks[0][0])
    for factor in (50, 101):  # 150 is a result of the second number alone, 303 of none
        claimed = (x.wrap() * factor).with_range(*port.range).ciphertext
        reply = replace(server(request), chunks=((claimed,),))
        with pytest.raises(jali.WrongDecryption):
            client.decrypt(reply)


def test_runs_end_at_a_deadline_and_at_a_checkpoint() -> None:
    made = program(lambda x: x + 1, -9, 9, (2,))
    client = made.client(threads=1)
    server = made.server(client.evaluation_keys(), device="cpu", threads=1)
    request = client.encrypt([[1, 2]])
    with pytest.raises(jali.DeadlineExceeded):
        server(request, deadline=time.monotonic() - 1)
    asked: list[int] = []
    server(request, deadline=time.monotonic() + 600, checkpoint=lambda: asked.append(1))
    assert len(asked) > 1


# --- quantised models -----------------------------------------------------------------------------


def test_scores_of_a_quantised_classifier_are_those_of_its_rounded_weights(
    rng: np.random.Generator,
) -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    x = rng.normal(size=(60, 3))
    y = (x @ np.array([1.0, -2.0, 0.5]) > 0.2).astype(int)
    fitted = linear.LogisticRegression().fit(x, y)
    model = nn.integers.quantised(fitted, scale=2**8, feature_scale=2**6)
    whole = np.rint(2**6 * x).astype(np.int64)
    made = jali.compile(model, whole[0], calibration=whole)
    assert type(made) is nn.integers.Program  # whoever rounds wants exact results
    client = made.client(threads=1)
    server = made.server(client.evaluation_keys(), device="cpu", threads=1)
    results = client.decrypt(server(client.encrypt(whole[:8])))
    assert results.tolist() == (whole[:8] @ model.weight.T + model.offset).tolist()
    scores = client.decoded(results)[:, 0]
    rounded = np.rint(2**6 * x[:8]) / 2**6 @ (np.rint(2**8 * fitted.coef_[0]) / 2**8)
    assert np.allclose(scores, rounded + fitted.intercept_, atol=2.0**-14)
    assert ((scores > 0) == fitted.predict(x[:8])).all()
    assert made.manifest.outputs[0].scale == 2**14
    with pytest.raises(jali.Unsupported, match="coef_"):
        nn.integers.quantised(linear.LogisticRegression(), 8)
    with pytest.raises(jali.InvalidArgument, match="smaller"):
        nn.integers.quantised(fitted, 2**60)


# --- bytes ----------------------------------------------------------------------------------------


def test_a_saved_program_is_the_same_one(tmp_path: Path, rng: np.random.Generator) -> None:
    made = program(lambda x: WEIGHTS @ (x * x), -4, 9, (3,), scale=16)
    client = made.client(threads=1)  # of the program before it was saved
    made.save(tmp_path / "model.jali")
    again = nn.integers.Program.load(tmp_path / "model.jali", security=0)
    assert again.to_bytes() == made.to_bytes()
    assert again.manifest.fingerprint == made.manifest.fingerprint
    assert (again.plan.cost, again.plan.noise_budget) == (made.plan.cost, made.plan.noise_budget)
    rows = examples(rng, -4, 9, (3,), 2)
    assert (
        answered(again, rows, client).tolist()
        == exactly(lambda x: WEIGHTS @ (x * x), rows).tolist()
    )
    made.manifest.save(tmp_path / "manifest.jali")
    manifest = Manifest.load(tmp_path / "manifest.jali", security=0)
    assert manifest.fingerprint == made.manifest.fingerprint
    again.verify()
    with pytest.raises(jali.InsecureParams):
        nn.integers.Program.load(tmp_path / "model.jali")
    with pytest.raises(jali.Error):
        nn.Program.load(tmp_path / "model.jali")


def test_messages_cross_the_wire(rng: np.random.Generator) -> None:
    for layout in ("columns", "rows"):
        made = by(program(lambda x: (x * x).sum(), -9, 9, (3,)), layout)
        client, deployment = made.client(threads=1), made.deploy("cpu", threads=1)
        server = deployment.server(deployment.keys(client.evaluation_keys().to_bytes()))
        rows = examples(rng, -9, 9, (3,), 6)
        sent = client.encrypt(rows).to_bytes()
        reply = server(deployment.request(sent)).to_bytes()
        read = Message.reply(reply, client.manifest)
        assert client.decrypt(read).tolist() == (rows * rows).sum(1).tolist()
        for data in (b"", sent[:-1], sent[:100], reply, sent + b"x", made.to_bytes()):
            with pytest.raises(jali.Error):
                deployment.request(data)
        with pytest.raises(jali.LimitExceeded):
            Message.request(sent, client.manifest, max_bytes=1000)
        with pytest.raises(jali.InvalidArgument, match="another program"):
            Message.request(sent, program(lambda x: x, -9, 9, (3,)).manifest)


@cache
def secret(params: discrete.Params) -> discrete.Client:
    """One client for all manifests of some parameters."""
    return discrete.Client(params, threads=1)


LIES = (
    None,
    True,
    -1,
    0,
    7,
    2**63,
    2**200,
    1e308,
    0.5,
    "",
    "00",
    "x",
    [],
    [1],
    [[]],
    {},
    {"array": 9},
)


def lies(document: Any) -> Any:
    """The same document with one field, anywhere in it, that is another value or is missing."""
    places = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(places):
        if isinstance(key, int) and key > 2:
            break  # of a long list
        for lie in LIES:
            copy = document.copy()
            copy[key] = lie
            yield copy
        if isinstance(value, dict | list):
            for inner in lies(value):
                copy = document.copy()
                copy[key] = inner
                yield copy
        copy = document.copy()
        del copy[key]
        yield copy


def test_lies_in_a_manifest_are_refused_or_harmless() -> None:
    made = program(lambda x: WEIGHTS @ x, -4, 9, (3,))
    honest = made.manifest.to_bytes()
    document = json.loads(bytes(stored.payload("manifest", honest, 1 << 20)))
    for lie in lies(document):
        data = stored.written("manifest", [stored.document(lie)])
        try:
            manifest = Manifest.from_bytes(data, security=0)
            str(manifest.key_cost), str(manifest.client_cost)
            client = Client(manifest, secret=secret(manifest.params), max_bytes=1 << 22)
            client.encrypt(*(port.low.reshape(port.shape) for port in manifest.inputs))
        except jali.Error:
            continue
        assert manifest.to_bytes() == data  # what was accepted is what was written
    for data in (b"", honest[:-1], honest[:60], honest + b"x", made.to_bytes()):
        with pytest.raises(jali.Error):
            Manifest.from_bytes(data, security=0)


def test_lies_in_a_program_are_refused_or_harmless() -> None:
    made = program(lambda x: x @ x + x**3 - x[0], -4, 9, (2,))
    honest = made.to_bytes()
    content, arrays = container.read("program of exact integers", honest)
    refused = 0
    for lie in lies(content):
        data = container.written("program of exact integers", lie, arrays)
        try:
            again = Program.from_bytes(data, security=0)
        except jali.Error:
            refused += 1
            continue
        assert again.manifest.fingerprint == made.manifest.fingerprint
        assert np.asarray(again.clear([[9, -4]])).shape
    assert refused > 100
    for cut in range(0, len(honest), 97):
        with pytest.raises(jali.Error):
            Program.from_bytes(honest[:cut], security=0)
    other = program(lambda x: x @ x + x**3, -4, 9, (2,))
    assert other.manifest.fingerprint != "" and other.to_bytes() != honest
    swapped = content | {"manifest": other.manifest.to_bytes().hex()}
    with pytest.raises(jali.VersionError):
        Program.from_bytes(
            container.written("program of exact integers", swapped, arrays), security=0
        )


def test_a_program_that_would_take_long_to_plan_is_refused_at_once() -> None:
    made = program(lambda x: x * x, -4, 9, (2,))
    content, arrays = container.read("program of exact integers", made.to_bytes())
    (x, y) = content["graph"]["nodes"]
    chain = [x] + [
        {
            "name": f"n{k}",
            "op": "multiply",
            "inputs": [f"n{k - 1}" if k else x["name"]] * 2,
            "attrs": {},
        }
        for k in range(5000)
    ]
    steep = [
        x,
        y | {"op": "polynomial", "inputs": [x["name"]], "attrs": {"coefficients": [1.0] * 90000}},
    ]
    start = time.monotonic()
    for nodes in (chain, steep):
        graph = {"nodes": nodes, "outputs": [nodes[-1]["name"]]}
        data = container.written("program of exact integers", content | {"graph": graph}, arrays)
        with pytest.raises(jali.Error):
            Program.from_bytes(data, security=0)
    assert time.monotonic() - start < 60  # neither would end
