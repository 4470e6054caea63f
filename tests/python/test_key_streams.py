"""The bytes of keys that are made one by one are those of a set, and one key lies in memory at a
time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import serve_world
from integer_models import program as integer_program
from serve_world import network
from test_program_client import dense, several

import jali
from jali import ckks, discrete, nn
from jali.serve.check import KeyCheck


def _shape(data: bytes) -> bytes:
    """What precedes the keys, without the name of the secret."""
    return data[:48] + data[64:69]


PROGRAMS: dict[str, Callable[[np.random.Generator], Any]] = {
    "several levels": lambda rng: dense(rng)[0],
    "two inputs": lambda rng: several(rng)[0],
    "small": lambda rng: serve_world.program_of("network"),
    "rotations alone": lambda rng: network(lambda x: 0.5 * x + x[::-1], 3),
    "integers": lambda rng: integer_program(lambda v: (v * v).sum() - v[0], -9, 9, (4,)),
    "no keys": lambda rng: integer_program(lambda v: 2 * v, -9, 9, (4,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bytes_are_those_of_a_set(name: str, rng: np.random.Generator) -> None:
    program = PROGRAMS[name](rng)
    client = program.client(threads=1)
    stream = client.key_stream()
    pieces = list(stream)
    data = b"".join(pieces)
    made = client.evaluation_keys()
    assert len(data) == stream.nbytes == len(made.to_bytes())
    assert stream.key_id == client.secret.key_id == made.key_id
    assert _shape(data) == _shape(made.to_bytes())
    check = KeyCheck(program.manifest, len(data))  # elements, levels, checksum
    check.feed(data)
    assert check.finish().key_id == stream.key_id
    kind = discrete if isinstance(client, nn.integers.Client) else ckks
    assert kind.EvaluationKeys.from_bytes(data, client.manifest.params).to_bytes() == data
    assert len(pieces) == (made.count + 1 if made.count else 1)
    assert len(set(pieces)) == len(pieces)


def test_a_server_computes_with_them(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (60, 8))
    program = network(lambda v: serve_world._mixed(v), 8, bits=12)
    client = program.client(threads=1)
    data = b"".join(client.key_stream())
    server = program.server(ckks.EvaluationKeys.from_bytes(data, program.manifest.params))
    found = client.decrypt(server(client.encrypt(x[:4])))
    assert np.allclose(found, program.clear(x[:4]), atol=1e-2)
    small = integer_program(lambda v: (v * v).sum() - v[0], -9, 9, (4,))
    owner = small.client(threads=1)
    keys = discrete.EvaluationKeys.from_bytes(b"".join(owner.key_stream()), small.manifest.params)
    rows = rng.integers(-9, 10, (3, 4))
    wanted = (rows * rows).sum(1) - rows[:, 0]
    assert (owner.decrypt(small.server(keys)(owner.encrypt(rows))) == wanted).all()


def test_a_conjugation_comes_last(rng: np.random.Generator) -> None:
    manifest = dense(rng)[0].manifest
    asked = replace(manifest, demand=replace(manifest.demand, conjugation=1))
    client = nn.Client(asked, threads=1)
    data = b"".join(client.key_stream())
    keys = ckks.EvaluationKeys.from_bytes(data, manifest.params)
    assert keys.has_conjugation and keys.count == client.evaluation_keys().count
    assert keys.to_bytes() == data


def test_a_program_that_bootstraps_makes_its_keys_at_once() -> None:
    client = serve_world.program_of("deep").client(threads=1)
    stream = client.key_stream()
    (data,) = stream
    assert len(data) == stream.nbytes == client.key_cost.sent
    check = KeyCheck(client.manifest, len(data))
    check.feed(data)
    assert check.finish().key_id == stream.key_id


def test_one_piece_lies_in_memory(rng: np.random.Generator) -> None:
    client = dense(rng)[0].client(threads=1)
    stream = client.key_stream()
    largest = read = 0
    tracemalloc.start()
    try:
        for piece in stream:
            largest, read = max(largest, len(piece)), read + len(piece)
            del piece
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == stream.nbytes > 5 * largest
    assert peak < 4 * largest


def test_too_many_bytes_are_refused_before_a_key_is_made(rng: np.random.Generator) -> None:
    for client in (
        dense(rng)[0].client(threads=1),
        integer_program(lambda v: (v * v).sum(), -9, 9, (4,)).client(threads=1),
    ):
        made = client.key_cost.made
        with pytest.raises(jali.LimitExceeded, match=f"max_bytes={made}"):
            client.key_stream(max_bytes=made - 1)
        assert client.key_stream(max_bytes=made).nbytes
        with pytest.raises(jali.InvalidArgument, match="max_bytes must be"):
            client.key_stream(max_bytes=0)
