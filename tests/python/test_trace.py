"""The recording of backend operations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import World

import jali
from jali import ckks, tfhe


def test_trace(world: World) -> None:
    with pytest.raises(jali.InvalidArgument, match="trace=True"):
        world.server.trace()
    server = ckks.Evaluator(world.params, world.keys, trace=True)
    assert server.device == world.server.device and server.engine == world.server.engine
    trace = server.trace()
    trace.clear()
    assert len(trace) == 0
    x = server.bind(world.client.encrypt(np.ones(4)))
    y = (x * x).rotate(1)
    plain = (world.bind(np.ones(4)) ** 2).rotate(1)
    assert np.allclose(world.client.decrypt(y), world.client.decrypt(plain), atol=1e-6)
    header, *lines = (json.loads(line) for line in trace.json_lines().splitlines())
    assert len(lines) == len(trace) > 0
    assert (header["schema"], header["scheme"], header["engine"]) == (1, "ckks", server.engine)
    assert header["library"] == f"jali {jali.__version__}" and header["N"] == 2 * world.params.slots
    assert header["commit"] == jali.build_info()["commit"]
    assert sum(header["digits"]) + header["special_primes"] == len(header["prime_bits"])
    names = [line["op"] for line in lines]
    assert "combine_key_switch" in names and names.index("combine_key_switch") < len(names) - 1
    totals = trace.totals()
    assert sum(total["count"] for total in totals.values()) == len(lines)
    assert all(name in trace.summary() for name in totals)
    trace.clear()
    assert len(server.trace()) == 0


def test_trace_of_tfhe() -> None:
    params = tfhe.Params.create(
        n=24,
        k=1,
        N=512,
        rotation_gadget=(15, 2),
        switch_gadget=(5, 4),
        lwe_noise_bits=4,
        glwe_noise_bits=10,
        message_bits=2,
        carry_bits=2,
        max_norm2=40,
        log2_p_fail=-128,
        name="insecure_trace",
    )
    client = tfhe.Client(params, threads=1)
    keys = client.evaluation_keys()
    plain = tfhe.Evaluator(params, keys, threads=1)
    server = tfhe.Evaluator(params, keys, threads=1, trace=True)
    with pytest.raises(jali.InvalidArgument, match="trace=True"):
        plain.trace()
    assert server.engine == plain.engine
    trace = server.trace()
    assert set(trace.totals()) == {"prepare_seeded_rotation_key", "prepare_seeded_switch_key"}
    trace.clear()
    values = np.arange(4)
    x = server.bind(client.encrypt(values))
    y = server.apply(lambda v: 3 - v, x + x.sum() * 0)
    np.testing.assert_array_equal(client.decrypt(y), 3 - values)
    header, *lines = (json.loads(line) for line in trace.json_lines().splitlines())
    assert len(lines) == len(trace) > 0
    names = [line["op"] for line in lines]
    assert names[-1] == "switch_bootstrap" and "combine" in names
    assert (header["scheme"], header["engine"]) == ("tfhe", server.engine)
    assert header["commit"] == jali.build_info()["commit"]
    assert (header["n"], header["k"], header["N"], header["torus"]) == (24, 1, 512, 64)
    assert (header["rotation_gadget"], header["switch_gadget"]) == ([15, 2], [5, 4])
    assert lines[-1]["batch"] == 4 and lines[-1]["steps"] == 24
    # Each of 24 steps transforms 4 digits and 2 sums of 256 points.
    assert lines[-1]["complex_butterflies"] == 4 * 24 * 6 * 128 * 8
    total = trace.totals()["switch_bootstrap"]
    assert total["count"] == 1 and total["complex_products"] == lines[-1]["complex_products"] > 0
    assert all(name in trace.summary() for name in names)
    a, b = (server.bind(client.encrypt_uint([200, 3], 8)) for _ in range(2))
    trace.clear()
    np.testing.assert_array_equal(client.decrypt(a * b), [200 * 200 % 256, 9])
    assert {"switch_bootstrap", "combine"} <= set(trace.totals())
    with pytest.raises(jali.InvalidArgument, match="trace"):
        tfhe.Evaluator(params, keys, trace=1)  # type: ignore[arg-type]
