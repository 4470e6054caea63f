"""The client of compiled programs: it knows no compiler, and lays numbers as the compiler does."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jali
from jali import nn
from jali._jali import program as cpp
from jali.compiler.ir.layouts import contents, packed
from jali.compiler.program.ports import client_layout
from jali.errors import WrongCall
from jali.nn import graph_file
from jali.program.port import Port
from jali.tfhe import trees


def dense(rng: np.random.Generator) -> tuple[nn.Program, tuple[Any, ...]]:
    a, b = rng.normal(size=(16, 10)) / 3, rng.normal(size=(3, 16)) / 4
    x = rng.uniform(-1, 1, (50, 10))
    return jali.compile(lambda v: b @ np.square(a @ v + 0.1), x[0], calibration=x, batch=4), (x,)


def several(rng: np.random.Generator) -> tuple[nn.Program, tuple[Any, ...]]:
    x, y = rng.uniform(-1, 1, (2, 40, 3, 4))
    made = jali.compile(lambda x, y: ((x * y).sum(-1), x + 2 * y), (x[0], y[0]), calibration=(x, y))
    return made, (x, y)


def skewed(rng: np.random.Generator) -> tuple[nn.Program, tuple[Any, ...]]:
    x = rng.uniform(-1, 1, (40, 2048, 8)) / 3

    def f(x: Any) -> Any:
        scores = (x * np.square((x * 0.01).sum(axis=0))).sum(axis=1, keepdims=True)
        return (x * np.square(scores)).sum(axis=0)

    return jali.compile(f, x[0], calibration=x, precision_bits=6), (x,)


def gathered(rng: np.random.Generator) -> tuple[nn.Program, tuple[Any, ...]]:
    kernel = rng.normal(size=(3, 2, 3, 3)) / 6
    x = rng.uniform(-1, 1, (40, 2, 8, 8))

    def f(v: Any) -> Any:
        return np.square(nn_convolution(v, kernel))

    return jali.compile(f, x[0], calibration=x, precision_bits=8), (x,)


def nn_convolution(v: Any, kernel: Any) -> Any:
    """A convolution as a sum of slices times numbers."""
    return sum(
        np.float64(kernel[0, c, i, j]) * v[c, i : i + 6, j : j + 6]
        for c in range(2)
        for i in range(3)
        for j in range(3)
    )


PROGRAMS: dict[str, Callable[..., Any]] = {
    "dense": dense,
    "several": several,
    "skewed": skewed,
    "gathered": gathered,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_lie_where_the_compiler_has_them(name: str, rng: np.random.Generator) -> None:
    """The slots of a request, decrypted, against the compiler's own packing; and the results."""
    program, data = PROGRAMS[name](rng)
    manifest, graph = program.manifest, program.stages["levels"]
    client = program.client(threads=1)
    x = [np.ascontiguousarray(d[:6], np.float64) for d in data]
    request = client.encrypt(*x)
    for port, node, values, array in zip(
        manifest.inputs, graph.inputs, x, request.arrays, strict=True
    ):
        layout = node.attrs["layout"]
        assert port.layout == client_layout(layout) and str(port.layout) == str(layout)
        assert np.array_equal(port.layout.contents(), contents(layout).ravel())
        inside = (values.reshape(6, -1) - port.centre) / port.radius
        lanes, chunks = manifest.lanes, -(-6 // manifest.lanes)
        filled = inside[np.minimum(np.arange(chunks * lanes), 5)]  # the last example fills lanes
        slots = packed(layout, filled).reshape(chunks, lanes, len(array), -1)
        for k, ciphertext in enumerate(array):
            want = slots[:, :, k].transpose(0, 2, 1).reshape(chunks, -1)
            got = client.secret.decrypt(ciphertext, complex=False, length=ciphertext.slots)
            assert np.abs(got.reshape(chunks, -1) - want).max() < 2.0**-12

    cost, keys = client.key_cost, client.evaluation_keys()
    assert (keys.count, keys.nbytes, keys.sent_bytes) == (cost.count, cost.made, cost.sent)
    reply = program.server(keys, threads=1, device="cpu")(request)
    found, clear = client.decrypt(reply), program.clear(*x)
    pairs = zip(found, clear, strict=True) if isinstance(found, tuple) else [(found, clear)]
    for got, want in pairs:
        assert np.abs(got - want).max() <= 2.0**-5 * max(1.0, np.abs(want).max())


def test_a_client_loads_no_compiler() -> None:
    """In a process of its own: what a client imports, of a manifest and messages from bytes."""
    code = """
import sys
import numpy as np
from jali.program.client import Client
from jali.program.manifest import Manifest
from jali.program.message import Message
data = bytes.fromhex(sys.stdin.read())
client = Client(Manifest.from_bytes(data), threads=1)
assert client.evaluation_keys().count == client.key_cost.count
client.encrypt(np.zeros(10)).to_bytes()
loaded = sorted(m for m in sys.modules if m.startswith("jali.compiler") or m in ("jali.nn", "json"))
assert not loaded, loaded
"""
    rng = np.random.default_rng(4)
    program, _ = dense(rng)
    found = subprocess.run(
        [sys.executable, "-c", code],
        input=program.manifest.to_bytes().hex(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def beyond(port: Port, values: np.ndarray, noise_bits: float) -> np.ndarray:
    """The rule by which decryption refuses results, as src/jali/client/secret/client.h has it."""
    low, high = ((end - port.centre) / port.radius for end in (port.low, port.high))
    carried = max(0.0, port.peak - max(np.abs(low).max(), np.abs(high).max()))
    room = carried + port.peak * 0.01 + 16 * 2.0**-noise_bits
    return np.asarray(~((low - room <= values) & (values <= high + room)).all(axis=1))


def test_the_same_examples_are_refused_by_every_face(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(16, 10)) / 3, rng.normal(size=(3, 16)) / 4
    x = rng.uniform(-1, 1, (50, 10))
    program = jali.compile(
        lambda v: b @ np.square(a @ v + 0.1),
        x[0],
        calibration=x,
        input_range=(-300, 300),
        precision_bits=6,
        batch=4,
    )
    client = program.client(threads=1)
    (port,), (output,) = program.manifest.inputs, program.manifest.outputs
    for wrong in ((0, 1), (2, 9), (1, 4)):
        values = x[:3].copy()
        values[wrong] = rng.choice([-1, 1]) * rng.uniform(301, 1e6)
        said = port.outside(values)
        assert said is not None and f"[{wrong[1]}] of example {wrong[0]} " in said
        with pytest.raises(jali.InvalidArgument) as refused:
            client.encrypt(values)
        assert str(refused.value) == said
    assert port.outside(x[:3]) is None
    for bad in (np.nan, np.inf):
        with pytest.raises(jali.InvalidArgument, match="holds NaN or infinity"):
            client.encrypt(np.full(10, bad))

    # Results beyond the range: the examples are named, and the numbers are there if they are wanted
    # all the same.
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    sent = x[:6].copy()
    sent[2], sent[4] = 290 * x[2], 290 * x[4]
    reply = server(client.encrypt(sent))
    with pytest.raises(jali.WrongDecryption, match=r"2 examples of 6; the first is example 2\."):
        client.decrypt(reply)
    numbers = client.decrypt(reply, check=False)
    assert isinstance(numbers, np.ndarray) and numbers.shape == (6, 3)

    # The rule itself, at its edges.
    values = rng.normal(size=(500, 3)) * output.peak * 1.2
    values[0], values[1, 2] = np.nan, np.inf
    for bits in (1.0, 6.5, 20.0):
        found = output.refused(values, bits)
        assert np.array_equal(found, beyond(output, values, bits)) and 0 < found.sum() < 500


def test_a_request_of_one_example_keeps_its_shape(rng: np.random.Generator) -> None:
    program, (x,) = dense(rng)
    client = program.client(threads=1)
    one, batch = client.encrypt(x[0]), client.encrypt(x[:1])
    assert one.single and not batch.single and one.examples == batch.examples == 1
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    assert np.shape(client.decrypt(server(one))) == (3,)
    assert np.shape(client.decrypt(server(batch))) == (1, 3)


def test_messages_with_fields_of_other_types_are_refused(rng: np.random.Generator) -> None:
    program, (x,) = dense(rng)
    client = program.client(threads=1)
    honest = client.encrypt(x[:2])
    for change in ({"examples": -1}, {"examples": "2"}, {"arrays": ((1,),)}, {"single": "yes"}):
        wrong = replace(honest, **change)  # type: ignore[arg-type]
        with pytest.raises(WrongCall, match="a field of the message has a type"):
            wrong.to_bytes()
        with pytest.raises(WrongCall, match="a field of the message has a type"):
            wrong.check_request(program.manifest)
    with pytest.raises(jali.InvalidArgument, match="another program"):
        replace(honest, program="00" * 32).check_request(program.manifest)
    with pytest.raises(jali.InvalidArgument, match="the message is a request"):
        client.decrypt(honest)
    with pytest.raises(jali.InvalidArgument, match="the message is a server's reply"):
        replace(honest, is_reply=True).check_request(program.manifest)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_manifests_are_copied_and_pickled(name: str, rng: np.random.Generator) -> None:
    program, _ = PROGRAMS[name](rng)
    assert program.manifest.fingerprint
    for again in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program)):
        assert again.manifest.to_bytes() == program.manifest.to_bytes()
        assert again.to_bytes() == program.to_bytes()
        assert again.manifest.inputs[0].layout == program.manifest.inputs[0].layout


def test_layouts_say_how_they_lie() -> None:
    table = np.array([0, -1, 1, 2], np.int32)
    assert str(cpp.Layout.gathered([3], 4, table)) == "1 x 4 slots, gathered"
    assert np.array_equal(cpp.Layout.gathered([3], 4, table).contents(), table)
    assert cpp.Layout.skewed([4, 4], 8, 2, 2) != cpp.Layout.skewed([4, 4], 8, 2, 1)


def test_files_of_earlier_builds_say_what_to_do() -> None:
    x = np.linspace(-1, 1, 60).reshape(20, 3)
    manifest = jali.compile(lambda v: 2 * v, x[0], calibration=x).manifest
    for begin, read in (
        (b"JALI-NN\0\1", graph_file.from_bytes),
        (b"JALI-NN\0\1", nn.Program.from_bytes),
        (b"JALI-NN\0\1", nn.Manifest.from_bytes),
        (b"JALI-NM\1", lambda data: nn.Message.reply(data, manifest)),
        (b"JALI-NM\1", lambda data: nn.Message.request(data, manifest)),
        (b"JALI-TP\1", trees.Program.from_bytes),
        (b"JALI-TP\1", trees.Manifest.from_bytes),
    ):
        for data in (begin + bytes(100), begin, memoryview(bytearray(begin + bytes(9)))):
            with pytest.raises(jali.VersionError, match="compile or record the model again"):
                read(data)
