"""Documents of what clients compute in the clear: those of a server that lies give an error of
Jali's, before any work."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lies
import numpy as np
import pytest

import jali
from jali import nn
from jali.program import container
from jali.program.clear import stored
from jali.program.clear.parts import Parts
from jali.program.clear.steps import Argument, Constant, Step, Steps

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from fuzz_python.files import changed_document

Change = Callable[[Any], Any]


def before() -> Steps:
    """Three numbers of a table of seven."""
    table = Constant(np.linspace(-1, 1, 7), "real")
    return Steps((Argument("x", (3,), "whole"),), (table,), (Step("gather", (1, 0), {"axis": 0}),), (2,))  # fmt: skip


def after() -> Steps:
    """The two largest of three numbers, and their shares."""
    top = {"how": "max", "axis": 1, "count": 2, "what": "numbers"}
    steps = (Step("top", (0,), top), Step("softmax", (1,), {"axis": 1}))
    return Steps((Argument("y", (3,), "real"),), (), steps, (1, 2))


@pytest.fixture(scope="module")
def program() -> nn.Program:
    x = np.random.default_rng(3).uniform(-1, 1, (40, 3))
    made = jali.compile(lambda v: 2 * v, x[0], calibration=x, input_range=(-1.0, 1.0))
    return replace(made, manifest=replace(made.manifest, parts=Parts(before(), after())))


def test_a_client_computes_both_parts(program: nn.Program) -> None:
    manifest = nn.Manifest.from_bytes(program.manifest.to_bytes())
    client, x = nn.Client(manifest), np.array([[0, 6, 3], [2, 2, 5]])
    reply = program.server(client.evaluation_keys(), device="cpu")(client.encrypt(x))
    largest, shares = client.decrypt(reply)
    wanted = -np.sort(-2 * np.linspace(-1, 1, 7)[x], axis=1)[:, :2]
    assert np.allclose(largest, wanted, atol=0.01)
    assert np.allclose(shares, np.exp(wanted) / np.exp(wanted).sum(1, keepdims=True), atol=0.01)


def changed(data: bytes, change: Change) -> bytes:
    """A manifest whose document was changed by someone who knows the format."""
    content, arrays = container.read("graph", data)
    content = json.loads(json.dumps(content))
    change(content["client"])
    return container.written("graph", content, arrays)


def put(part: str, *path: Any) -> Change:
    """Puts the last one of a path to where the others lead."""
    *way, last, value = path

    def change(client: Any) -> None:
        place = client[part]
        for key in way:
            place = place[key]
        place[last] = value

    return change


HUGE = [1 << 26, 1 << 26]
EXPAND = {"op": "expand", "inputs": [0], "how": {"shape": [1, *HUGE, 3]}}
MANY = {"op": "function", "inputs": [0], "how": {"function": "exp"}}
WIDE = {"op": "one_hot", "inputs": [0], "how": {"depth": 1 << 26}}

LIES: list[tuple[Change, str]] = [
    (lambda c: c.pop("after"), "after: is missing"),
    (lambda c: c.update(more=1), "has other fields"),
    (put("before", "arguments", []), "arguments: must be a list of 1 to"),
    (
        put("before", "arguments", 0, "shape", [2]),
        "does not fit|other shapes than what is encrypted",
    ),
    (put("before", "arguments", 0, "shape", [1 << 20, 1 << 20]), "must have fewer numbers"),
    (put("before", "arguments", 0, "kind", "text"), "kind: must be one of"),
    (put("before", "arguments", 0, "name", "x\u001b[2J"), "without control characters"),
    (lambda c: c["before"]["arguments"][0].update(low=5, high=4), "whose lower end comes first"),
    (put("before", "constants", 0, "array", {"array": 1}), "must be a whole number from 0 to 0"),
    (put("before", "constants", 0, "kind", "whole"), "has fractions"),
    (put("before", "constants", 0, "kind", "flag"), "other numbers than 0 and 1"),
    (put("before", "steps", 0, "op", "eval"), "op: must be one of"),
    (put("before", "steps", 0, "inputs", [1, 5]), "no step before it computes"),
    (put("before", "steps", 0, "inputs", [1]), "does not take 1 value"),
    (put("before", "steps", 0, "inputs", [0, 1]), "takes whole numbers"),
    (put("before", "steps", 0, "how", {"axis": 1}), "has no axis 1"),
    (put("before", "steps", 0, "how", {}), "axis: is missing"),
    (put("before", "steps", [EXPAND]), "too large"),
    (put("before", "steps", [WIDE]), "too large"),
    (put("before", "steps", [MANY] * 10_001), "must be a list of 0 to 10000"),
    (put("before", "outputs", [1]), "without the axis of the batch"),
    (put("before", "outputs", [2, 2]), "other shapes than what is encrypted"),
    (put("before", "outputs", [9]), "no step before it computes"),
    (put("after", "arguments", 0, "kind", "whole"), "takes real numbers"),
    (put("after", "steps", []), "no step before it computes"),
    (
        lambda c: c["after"].update(arguments=c["after"]["arguments"] * 2, steps=[], outputs=[0]),
        "other arrays than what is decrypted",
    ),
    (put("after", "steps", 0, "how", "count", 4), "takes 4 of 3 numbers"),
    (put("after", "steps", 1, "how", "axis", -1), "axis: must be a whole number"),
    (put("after", "steps", 1, "how", {"axis": 1, "more": 2}), "has other fields"),
]


@pytest.mark.parametrize("k", range(len(LIES)))
def test_a_part_that_lies_is_refused_with_the_place(k: int, program: nn.Program) -> None:
    lie, sentence = LIES[k]
    data = changed(program.manifest.to_bytes(), lie)
    with pytest.raises(jali.CorruptData, match="the bytes are no manifest: ") as refused:
        nn.Manifest.from_bytes(data)
    assert any(one in str(refused.value) for one in sentence.split("|"))
    assert str(refused.value).isprintable()


def test_work_is_counted_before_it_is_done(program: nn.Program) -> None:
    """Each result is small enough, and all together are not."""
    wide = {"op": "expand", "inputs": [0], "how": {"shape": [1, 1 << 20, 3]}}
    start = time.process_time()
    with pytest.raises(jali.CorruptData, match="reads and writes more than"):
        nn.Manifest.from_bytes(
            changed(program.manifest.to_bytes(), put("before", "steps", [wide] * 200))
        )
    assert time.process_time() - start < 1


def test_a_client_refuses_parts_that_take_its_memory(program: nn.Program) -> None:
    wide = {"op": "expand", "inputs": [0], "how": {"shape": [1, 1 << 20, 3]}}

    def lie(client: Any) -> None:
        client["before"]["steps"] += [wide] * 8

    manifest = nn.Manifest.from_bytes(changed(program.manifest.to_bytes(), lie))
    assert manifest.client_cost.own > 1 << 27
    with pytest.raises(jali.LimitExceeded, match="make the client with max_bytes="):
        nn.Client(manifest, max_bytes=1 << 27)


def test_results_that_are_no_numbers_are_refused(program: nn.Program) -> None:
    def lie(client: Any) -> None:
        client["after"]["steps"][1] = {"op": "function", "inputs": [1], "how": {"function": "log"}}

    manifest = nn.Manifest.from_bytes(changed(program.manifest.to_bytes(), lie))
    client = nn.Client(manifest)
    server = program.server(client.evaluation_keys(), device="cpu")
    reply = server(client.encrypt([0, 1, 2]))
    with pytest.raises(jali.WrongDecryption, match="a function has no value there"):
        client.decrypt(reply)
    assert np.isnan(client.decrypt(reply, check=False)[1]).all()


def test_whole_numbers_do_not_wrap_around() -> None:
    steps = Steps(
        (Argument("x", (1,), "whole"),),
        (),
        (Step("multiply", (0, 0), {"largest": (1 << 31) - 1}),),
        (1,),
    )
    assert steps([np.array([[46340]])])[0].tolist() == [[46340**2]]
    for number in (46341, 1 << 32, 1 << 52):
        with pytest.raises(jali.InvalidArgument, match="beyond 2,147,483,647"):
            steps([np.array([[number]])])


def test_a_frame_of_another_kind_is_refused(program: nn.Program) -> None:
    """A recorded graph is no manifest, and a manifest with parts is none of a client in C."""
    graph = nn.graph_file.to_bytes(program.stages["trace"])
    with pytest.raises(jali.CorruptData, match="a recorded graph, not a manifest"):
        nn.Manifest.from_bytes(graph)
    both = container.written(
        "graph", {"manifest": "", "client": {"before": None, "after": None}}, []
    )
    with pytest.raises(jali.CorruptData, match="nothing that a client computes"):
        nn.Manifest.from_bytes(both)
    with pytest.raises(jali.CorruptData):
        nn.graph_file.from_bytes(program.manifest.to_bytes())
    with pytest.raises(jali.CorruptData):
        type(program.manifest._core).from_bytes(program.manifest.to_bytes())
    for data in (b"JALI", lies.of_document("graph", b"{}"), lies.of_document("graph", b"[]")):
        with pytest.raises(jali.Error):
            nn.Manifest.from_bytes(data)


def test_changed_documents_give_errors_of_jali(program: nn.Program) -> None:
    """tools/fuzz_python goes on with this for as long as it is told."""
    content, arrays = container.read("graph", program.manifest.to_bytes())
    secret, taken = program.client().secret, 0
    for seed in range(300):
        random_ = random.Random(f"parts:{seed}")
        client = changed_document(random_, json.loads(json.dumps(content["client"])))
        try:
            data = container.written("graph", {**content, "client": client}, arrays)
        except (ValueError, TypeError):  # NaN is no JSON
            continue
        try:
            manifest = nn.Manifest.from_bytes(data)
            request = nn.Client(manifest, secret=secret).encrypt([0, 6, 3])
            assert request.examples == 1
            assert manifest.parts is not None
            manifest.parts.results([np.array([[0.5, -1.0, 2.0]])], check=False)
            taken += 1
        except jali.Error as error:
            assert not isinstance(error, jali.InternalError)
            assert str(error).isprintable() and len(str(error)) < 3000
    assert taken > 10  # such as with other names


def test_parts_that_are_written_are_read(program: nn.Program) -> None:
    parts = program.manifest.parts
    assert parts is not None
    arrays: list[Any] = []
    document = json.loads(json.dumps(stored.document(parts, arrays)))
    again = stored.parts_of(document, arrays)
    assert stored.document(again, []) == stored.document(parts, [])
    x = np.array([[1, 2, 3]])
    assert np.array_equal(again.sent([x])[0][0], parts.sent([x])[0][0])
