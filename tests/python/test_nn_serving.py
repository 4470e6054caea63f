"""Many requests at once: each gets the results that it would get alone."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from test_nn_program import assert_precise

import jali
from jali import nn
from jali.compiler.program.batcher import Batcher
from jali.simulate import Machine, schedule
from jali.simulate import trace as traces
from jali.simulate.lower import lower
from jali.simulate.steps import Entity


@pytest.fixture(scope="module")
def served() -> Any:
    """A program of two inputs and two outputs, of which one takes several ciphertexts; its client
    and its function."""
    rng = np.random.default_rng(5)
    w = rng.normal(size=(3, 4)) / 2
    f = lambda x, y: (np.square(w @ x) + y[:3], x * 2)  # noqa: E731
    x, y = rng.uniform(-1, 1, (60, 4)), rng.uniform(-1, 1, (60, 40))
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), batch=128)
    assert [p.layout.ciphertexts for p in program.manifest.inputs][1] > 1
    return program, program.client(threads=1), (x, y), f


@pytest.mark.parametrize("capture", [False, True])
def test_every_request_gets_its_own_results(capture: bool, served: Any) -> None:
    program, client, examples, f = served
    server = program.server(client.evaluation_keys(), threads=1, capture=capture)
    batcher = server.batcher(max_batch=4)
    sizes = (1, 300, 4, 1, 129)  # 1, 3, 1, 1 and 2 ciphertexts side by side
    many = [np.concatenate([v] * 11) for v in examples]
    requests = [client.encrypt(*(v[n : n + n] for v in many)) for n in sizes]
    for _ in range(2):
        for n, reply in zip(sizes, batcher(requests), strict=True):
            first, second = client.decrypt(reply)
            x, y = (v[n : n + n] for v in many)
            assert np.abs(first - np.stack([f(*v)[0] for v in zip(x, y, strict=True)])).max() < 0.01
            assert np.abs(second - 2 * x).max() < 0.01
    assert 1 <= batcher.batch <= 4
    assert {1} <= {point.batch for point in batcher.curve} <= {1, 2, 4}
    assert all(point.seconds > 0 and point.nbytes > 0 for point in batcher.curve)


def test_a_single_example_stays_single(served: Any) -> None:
    program, client, (x, y), _ = served
    server = program.server(client.evaluation_keys(), threads=1)
    replies = server.batcher()([client.encrypt(x[0], y[0]), client.encrypt(x[:2], y[:2])])
    assert [client.decrypt(r)[0].shape for r in replies] == [(3,), (2, 3)]
    assert server.batcher()([]) == []


def test_a_compiled_program_is_traced_and_simulated(served: Any) -> None:
    program, client, (x, y), f = served
    keys = client.evaluation_keys()
    server = program.server(keys, device="cpu", threads=1, trace=True)
    trace = server.evaluator.trace()
    trace.clear()
    first, _ = client.decrypt(server(client.encrypt(x[:3], y[:3])))
    assert np.abs(first - np.stack([f(*v)[0] for v in zip(x[:3], y[:3], strict=True)])).max() < 0.01
    steps = lower(traces.parse(trace.json_lines()))
    assert steps.moved()[Entity.KEY] > 0 and schedule(steps, Machine.load("mv_set_bc")).span > 0
    with pytest.raises(jali.InvalidArgument, match="trace=True"):
        program.server(keys, device="cpu", threads=1).evaluator.trace()
    with pytest.raises(jali.InvalidArgument, match="leave out capture"):
        program.server(keys, device="cpu", threads=1, capture=True, trace=True)


def test_batches_that_do_not_fit_are_halved(
    served: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jali")
    program, client, (x, y), f = served
    server = program.server(client.evaluation_keys(), threads=1)
    seen: list[int] = []
    whole = nn.Server.outputs

    def scarce(self: nn.Server, inputs: Any) -> Any:
        seen.append(inputs[0][0].ciphertext.batch)
        if seen[-1] > 2:
            raise jali.OutOfMemory("no memory")
        return whole(self, inputs)

    monkeypatch.setattr(nn.Server, "outputs", scarce)
    batcher = server.batcher()
    monkeypatch.setattr(Batcher, "_next", lambda self: min(4, self._most))
    replies = batcher([client.encrypt(x[k], y[k]) for k in range(7)])
    assert seen[0] == 4 and max(seen[1:]) == 2
    (told,) = (text for text in caplog.messages if "has no memory" in text)
    assert told == "a batch of 4 has no memory, or is too large: batches of up to 2 from now on"
    for k, reply in enumerate(replies):
        assert_precise(program, client.decrypt(reply)[0], f(x[k], y[k])[0])
    monkeypatch.setattr(
        nn.Server, "outputs", lambda *_: (_ for _ in ()).throw(jali.OutOfMemory(""))
    )
    with pytest.raises(jali.OutOfMemory):
        batcher([client.encrypt(x[0], y[0])])


def test_requests_of_others_are_refused(served: Any) -> None:
    program, client, (x, y), _ = served
    server = program.server(client.evaluation_keys(), threads=1)
    stranger = program.client(threads=1)
    with pytest.raises(jali.KeyMismatch):
        server.batcher()([client.encrypt(x[0], y[0]), stranger.encrypt(x[0], y[0])])
    with pytest.raises(jali.InvalidArgument, match="takes a Message"):
        server.batcher()([x[0]])
    with pytest.raises(jali.InvalidArgument, match=r"give \[request\]"):
        server.batcher()(client.encrypt(x[0], y[0]))
    with pytest.raises(jali.InvalidArgument, match="max_batch"):
        server.batcher(max_batch=0)
