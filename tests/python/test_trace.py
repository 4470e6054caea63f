"""The recording of backend operations."""

from __future__ import annotations

import json

import numpy as np
from conftest import World

from jali import ckks


def test_trace(world: World) -> None:
    assert world.server.trace is None
    server = ckks.Evaluator(world.params, world.keys, trace=True)
    assert server.device == world.server.device and server.engine == world.server.engine
    trace = server.trace
    assert trace is not None
    trace.clear()
    assert len(trace) == 0
    x = server.bind(world.client.encrypt(np.ones(4)))
    y = (x * x).rotate(1)
    plain = (world.bind(np.ones(4)) ** 2).rotate(1)
    assert np.allclose(world.client.decrypt(y), world.client.decrypt(plain), atol=1e-6)
    lines = [json.loads(line) for line in trace.json_lines().splitlines()]
    assert len(lines) == len(trace) > 0
    names = [line["op"] for line in lines]
    assert "combine_key_switch" in names and names.index("combine_key_switch") < len(names) - 1
    assert all(line["n"] == 2 * world.params.slots for line in lines)
    totals = trace.totals()
    assert sum(total["count"] for total in totals.values()) == len(lines)
    assert all(name in trace.summary() for name in totals)
    trace.clear()
    assert len(server.trace or []) == 0
