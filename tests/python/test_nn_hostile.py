"""Files and manifests of someone who lies: they are refused before any work, and no check of a
client relies on them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lies
import numpy as np
import pytest

import jali
from jali import nn
from jali._jali import program as _program
from jali.compiler.ir.layouts import Layout
from jali.nn import graph_file
from jali.program import container
from jali.program.demand import Demand

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import fuzz_python

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def program() -> nn.Program:
    rng = np.random.default_rng(11)
    w, x = rng.normal(size=(3, 6)) / 2, rng.uniform(-1, 1, (40, 6))
    return jali.compile(lambda v: np.square(w @ v), x[0], calibration=x)


def changed(kind: str, data: bytes, change: Change) -> bytes:
    """A program or graph whose document was changed by someone who knows the format."""
    content, arrays = container.read(kind, data)
    content = json.loads(json.dumps(content))
    change(content)
    return container.written(kind, content, arrays)


LIES: list[tuple[lies.Lie, str]] = [
    (lies.manifest(inputs=()), "inputs: must be a list of 1 to"),
    (lies.manifest(outputs=()), "outputs: must be a list of 1 to"),
    (lambda m: replace(m, inputs=m.inputs * 2), "inputs: two have one name"),
    (lies.manifest(lanes=3), "lanes: must be a power of two"),
    (lies.demand(noise_bits=()), "noise_bits: must be a list of 1 to"),
    (lies.demand(noise_bits=(12.0, 12.0)), "noise_bits: must be a number for each output"),
    (lies.demand(noise_bits=(-1000.0,)), "noise_bits: entry 0: must be a number from 1 to 64"),
    (lies.port("outputs", peak=1e5), "outputs: peak: is larger than any number that decryption"),
    (lies.port("outputs", peak=1e-9, rms=1e-9), "peak: must hold for all numbers from low to high"),
    (lies.port("inputs", rms=5.0), "rms: must be above 0 and at most peak"),
    (lies.port("inputs", name="x\u001b[2J"), "name: must be a text without control characters"),
    (lies.port("inputs", name="\u202etxt"), "name: must be a text without control characters"),
    (lies.port("inputs", level=99), "level: must be a whole number"),
    (lies.port("inputs", shape=(7,)), "shape: has another number of numbers than laid"),
    (lies.demand(rotations={1 << 20: 0}), "rotations: a step or a level is out of range"),
    (lies.demand(bootstrap="all"), "bootstrap: must be one of none"),
    (lies.demand(packings=()), "packings: must be a list of 1 to"),
    (lies.demand(restored_bits=1e9), "restored_bits: must be a number from 0 to 64"),
]


@pytest.mark.parametrize("k", range(len(LIES)))
def test_a_manifest_that_lies_is_refused_with_the_place(k: int, program: nn.Program) -> None:
    """tests/client/manifest_test.cpp has more of them."""
    lie, sentence = LIES[k]
    with pytest.raises(jali.CorruptData, match="manifest: ") as refused:
        nn.Manifest.from_bytes(lie(program.manifest).to_bytes())
    assert sentence in str(refused.value) and str(refused.value).isprintable()


def test_the_range_check_of_decryption_cannot_be_switched_off(program: nn.Program) -> None:
    """Whatever a manifest says, a number near the end of what decryption can give is refused."""
    last = program.params.level(0)
    room = 2.0 ** (last.log_q - np.log2(last.scale) - 1)
    seen = 0
    for bits in (1, 2, 8, 64):
        for peak in 2.0 ** np.arange(-3, 20):
            lie = lies.port("outputs", peak=peak)(program.manifest)
            try:
                manifest = nn.Manifest.from_bytes(lies.demand(noise_bits=(bits,))(lie).to_bytes())
            except jali.CorruptData:
                continue
            seen += 1
            (output,) = manifest.outputs
            assert output.refused(np.full((1, 3), 1.02 * room), bits).all()
    assert seen > 10


def test_what_a_manifest_costs_is_said_before_any_key_is_made(program: nn.Program) -> None:
    honest = program.client(threads=1)
    cost = honest.key_cost
    keys = honest.evaluation_keys(max_bytes=cost.made)
    assert (keys.count, keys.nbytes) == (cost.count, cost.made)
    assert str(cost.count) in str(cost) and "of one thread" in str(cost)
    with pytest.raises(
        jali.LimitExceeded, match=r"call evaluation_keys\(max_bytes=\d+\)"
    ) as refused:
        honest.evaluation_keys(max_bytes=cost.made - 1)
    advice = int(str(refused.value).rpartition("max_bytes=")[2].rstrip(")"))
    assert honest.evaluation_keys(max_bytes=advice).count == cost.count


def test_a_manifest_that_asks_for_all_rotations_is_refused_at_once(program: nn.Program) -> None:
    slots, depth = program.params.slots, program.params.depth
    every = dict.fromkeys(range(1, slots), depth)
    data = lies.demand(rotations=every)(program.manifest).to_bytes()
    client = nn.Client(nn.Manifest.from_bytes(data), secret=program.client(threads=1).secret)
    told: list[Any] = []
    start = time.process_time()
    with pytest.raises(jali.LimitExceeded, match="the program asks for"):
        client.evaluation_keys(max_bytes=1 << 28, progress=lambda *seen: told.append(seen))
    assert time.process_time() - start < 0.01 * len(data) / 1024 and not told


def test_rotations_beside_bootstrapping_are_counted_before_its_keys(program: nn.Program) -> None:
    params = jali.ckks.Params.create(bootstrap=True, log_n=11, security=0, name="insecure_hostile")
    every = Demand(dict.fromkeys(range(1, params.slots), params.depth), 1, (12.0,), "all")
    asking = replace(program.manifest, params=params, demand=every)
    client = nn.Client(asking, threads=1)
    start = time.process_time()
    with pytest.raises(jali.LimitExceeded, match="and those of bootstrapping"):
        client.evaluation_keys(max_bytes=1 << 20)
    assert time.process_time() - start < 0.1
    few = replace(asking, demand=Demand({1: params.depth}, 1, (12.0,), "all"))
    with pytest.raises(jali.LimitExceeded):
        nn.Client(few, secret=client.secret).evaluation_keys(max_bytes=few.key_cost.made - 1)


def scattered(manifest: nn.Manifest, apart: int, count: int = 1) -> bytes:
    """A manifest with inputs of 4 numbers, whose rows lie so many slots apart."""
    slots = manifest.params.slots // manifest.lanes
    layout = _program.Layout.grid((2, 2), slots, slots, 1, (apart,))
    numbers = {"centre": np.zeros(1), "radius": np.ones(1), "low": -np.ones(1), "high": np.ones(1)}
    (port,) = lies.port("inputs", shape=(2, 2), layout=layout, **numbers)(manifest).inputs
    inputs = tuple(replace(port, name=f"x{k}") for k in range(count))
    return replace(manifest, inputs=inputs).to_bytes()


def test_a_small_manifest_cannot_make_a_client_take_gigabytes(program: nn.Program) -> None:
    """4 numbers took 2,049 ciphertexts and 0.6 GB here, and 4 GB where inputs are many."""
    data = scattered(program.manifest, 1 << 23, count=4)
    manifest = nn.Manifest.from_bytes(data)
    cost = manifest.client_cost
    assert len(data) < 2000 and cost.request > 1 << 31 and cost.own < 1 << 28
    start = time.process_time()
    with pytest.raises(jali.LimitExceeded, match=r"give the client max_bytes=\d+") as refused:
        nn.Client(manifest)
    assert time.process_time() - start < 0.1
    assert "at most 2.0 GiB" in str(refused.value) and "in a request" in str(cost)
    advice = int(str(refused.value).rpartition("max_bytes=")[2])
    assert advice == cost.request
    assert nn.Client(manifest, max_bytes=advice).manifest is manifest
    honest = program.manifest.client_cost
    assert max(honest.own, honest.request, honest.reply) < 1 << 24
    with pytest.raises(jali.LimitExceeded):
        program.client(max_bytes=honest.own - 1)
    program.client(max_bytes=honest.own)
    for wrong in (0, -1, None, "1 GB", 1.5, True):
        with pytest.raises(jali.InvalidArgument, match="max_bytes"):
            program.client(max_bytes=wrong)  # type: ignore[arg-type]


PROCESS = """
import sys
import numpy as np
from jali import nn

def most():
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

manifest = nn.Manifest.load(sys.argv[1], security=0)
before = most()
client = nn.Client(manifest, threads=1)
own = most()
client.encrypt(*[np.zeros((1, 2, 2))] * len(manifest.inputs))
print(own - before, most() - own)
"""


def test_a_client_takes_the_memory_that_is_said(program: nn.Program, tmp_path: Path) -> None:
    params = jali.ckks.Params.create(depth=8, log_n=15)
    small = replace(program.manifest, params=params)
    slots = params.slots // small.lanes
    ports = (
        replace(port, layout=_program.Layout.grid(port.shape, slots, 8, 1, ()), level=0)
        for port in small.outputs
    )
    small = replace(small, outputs=tuple(ports))
    (tmp_path / "manifest").write_bytes(scattered(small, 1 << 20))
    cost = nn.Manifest.load(tmp_path / "manifest").client_cost
    out = subprocess.run(
        [sys.executable, "-c", PROCESS, str(tmp_path / "manifest")],
        capture_output=True,
        text=True,
        check=True,
    )
    own, request = map(int, out.stdout.split())
    assert 0.4 * cost.own < own <= cost.own
    assert 0.5 * cost.request < request < 1.25 * cost.request + (1 << 23)


DOCUMENTS = {
    "lists": lambda n: b"[" + b"[]," * n + b"[]]",
    "objects": lambda n: b"[" + b"{}," * n + b"{}]",
    "fields": lambda n: b'{"a":' * n + b"1" + b"}" * n,
    "nested": lambda n: b"[" * n,
    "numbers": lambda n: b"[" + b"1," * n + b"1]",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_large_documents_of_nothing_are_refused_quickly(name: str) -> None:
    """10 ms for each KB, and memory within 20 times the bytes; 66 MB of lists took 35 s before."""
    refused_quickly(lies.of_document("graph", DOCUMENTS[name](2_000_000)))


@pytest.mark.parametrize("array", [bytes(1), b"\1\1\0\0\0"], ids=["numbers", "vectors"])
def test_many_small_arrays_are_read_in_bounded_memory(array: bytes) -> None:
    arrays = (1 << 20).to_bytes(4, "little") + (array + bytes(8)) * (1 << 20)
    refused_quickly(lies.of_document("graph", b"[]", arrays))


def refused_quickly(data: bytes) -> None:
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(jali.CorruptData):
            graph_file.from_bytes(data)
        took = time.process_time() - start
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert took < min(10.0, 0.01 * len(data) / 1024) and peak < 20 * len(data)


def small_graph(change: Change) -> bytes:
    """A file of a graph of few nodes, changed."""
    nodes = [
        {"name": "x", "op": "input", "inputs": [], "attrs": {"shape": [1 << 26]}},
        {"name": "y", "op": "reshape", "inputs": ["x"], "attrs": {"shape": [1 << 13, 1 << 13]}},
        {"name": "z", "op": "transpose", "inputs": ["y"], "attrs": {"axes": [1, 0]}},
        {"name": "a", "op": "slice", "inputs": ["z"], "attrs": {"start": [None, 1], "stop": [None, None], "step": [2, 1]}},
        {"name": "b", "op": "pad", "inputs": ["a"], "attrs": {"widths": [[0, 0], [1, 0]]}},
        {"name": "c", "op": "concat", "inputs": ["b", "b"], "attrs": {"axis": 0}},
        {"name": "d", "op": "broadcast", "inputs": ["c"], "attrs": {"shape": [1, 1 << 13, 1 << 13]}},
    ]  # fmt: skip
    content = {"nodes": nodes, "outputs": ["d"]}
    change(content)
    return container.written("graph", content, [])


def test_shapes_of_a_small_graph_take_no_memory() -> None:
    """Each of these nodes has 67 million numbers. The file has fewer than 1 KB, and took a gigabyte
    before."""
    data = small_graph(lambda _: None)
    tracemalloc.start()
    try:
        graph = graph_file.from_bytes(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert graph["d"].shape == (1, 1 << 13, 1 << 13) and peak < 1 << 20
    for change in (
        lambda c: c["nodes"][5]["attrs"].update(axis=2),
        lambda c: c["nodes"][5]["attrs"].update(axis=-1),
        lambda c: c["nodes"][4]["attrs"].update(widths=[[0, 0]]),
        lambda c: c["nodes"][4]["attrs"].update(widths=[[0, 4096], [4096, 4096]]),
        lambda c: c["nodes"][3]["attrs"].update(step=[0, 1]),
        lambda c: c["nodes"][6]["attrs"].update(shape=[2, 1 << 13, 1 << 13]),
    ):
        with pytest.raises(jali.CorruptData):
            graph_file.from_bytes(small_graph(change))


@pytest.mark.parametrize("count", [2_000_000_000, 1 << 20, 40_000])
def test_counts_of_loops_are_checked_before_they_are_planned(count: int) -> None:
    """A file of 6 KB with 2,000,000,000 iterations hung before."""
    x = np.random.default_rng(3).uniform(-1, 1, (40, 4))
    program = jali.compile(
        lambda v: nn.loop(lambda h: 0.5 * h + v, v, count=4), x[0], calibration=x
    )
    data = program.to_bytes()
    assert nn.Program.from_bytes(data).to_bytes() == data

    def change(c: Any) -> None:
        (node,) = (node for node in c["graph"]["nodes"] if node["op"] == "loop")
        node["attrs"]["count"] = count

    hostile = changed("program", data, change)
    start = time.process_time()
    with pytest.raises(jali.CorruptData, match="iterations"):
        nn.Program.from_bytes(hostile)
    assert time.process_time() - start < 0.01 * len(hostile) / 1024


def test_loops_in_each_other_are_counted_together() -> None:
    body: Any = {"nodes": [{"name": "h", "op": "input", "inputs": [], "attrs": {"shape": [1]}},
                           {"name": "s", "op": "polynomial", "inputs": ["h"], "attrs": {"coefficients": [0.0, 0.5]}}],
                 "outputs": ["s"]}  # fmt: skip
    for _ in range(3):
        attrs = {"body": body, "count": 1 << 16, "states": 1, "sequences": 0, "collected": 0}
        loop = {"name": "s", "op": "loop", "inputs": ["h"], "attrs": attrs}
        body = {"nodes": [body["nodes"][0], loop], "outputs": ["s"]}
    with pytest.raises(jali.LimitExceeded, match="in all iterations of its loops"):
        graph_file.from_bytes(container.written("graph", body, []))


def test_addresses_of_layouts_are_checked_without_listing_them(rng: np.random.Generator) -> None:
    """The largest address and whether two are equal, against the list, for layouts of random
    shapes, gaps and grids."""
    for _ in range(500):
        axes = int(rng.integers(0, 3))
        shape = tuple(int(n) for n in rng.integers(1, 7, axes + 1))
        gap = int(rng.choice([1, 1, 2, 3, 4]))
        grid = tuple(max(1, n * gap + int(rng.integers(-2, 3))) for n in shape[1:])
        layout = Layout(shape, 1 << 12, 1 << 12, gap, grid)
        addresses = layout.addresses
        assert layout.extent == addresses.max() + 1
        assert layout.is_apart == (len(np.unique(addresses)) == len(addresses))


def test_matrices_are_counted_before_they_are_made() -> None:
    """A small file can stand for matrices of any size: here a dense layer on each of 4 rows becomes
    one on each of 2^20."""
    rng = np.random.default_rng(5)
    w, x = rng.normal(size=(8, 8)) / 8, rng.uniform(-1, 1, (20, 4, 8))
    program = jali.compile(lambda v: v @ w.T, x[0], calibration=x, input_range=(-1, 1), batch=64)
    data = program.to_bytes()
    count = 4 * 8 * 8
    with pytest.raises(jali.LimitExceeded, match=f"read it with max_entries={count}, which takes"):
        nn.Program.from_bytes(data, max_entries=count - 1)
    assert nn.Program.from_bytes(data, max_entries=count).to_bytes() == data
    rows = 1 << 20

    def wide(c: Any) -> None:
        c["graph"]["nodes"][0]["attrs"]["shape"] = [rows, 8]
        slots = program.params.slots // 64
        layout = _program.Layout.grid([rows * 8], slots, slots, 1, [])
        large = {"shape": (rows, 8), "layout": layout}
        large |= {"centre": np.zeros(1), "radius": np.ones(1)}
        inner = lies.port("inputs", **large, low=-np.ones(1), high=np.ones(1))(program.manifest)
        inner = lies.port("outputs", **large, low=np.zeros(1), high=np.zeros(1))(inner)
        c["manifest"] = inner.to_bytes().hex()

    hostile = changed("program", data, wide)
    tracemalloc.start()
    try:
        with pytest.raises(jali.Error):
            nn.Program.from_bytes(hostile)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 22


def hunted(first: int, last: int) -> None:
    """Changed files of the fuzzer: manifests, programs, recorded graphs, questions of trees and
    messages. A failure prints its number and steps."""
    for number in range(first, last):
        steps: list[str] = []
        try:
            fuzz_python.TARGETS["files"](1, number, steps.append).run()
        except Exception as error:
            raise AssertionError("\n".join([f"seed 1, case {number}", *steps])) from error


def test_hostile_files_fail_only_with_errors_of_jali() -> None:
    hunted(0, 1000)


@pytest.mark.long
def test_many_hostile_files_fail_only_with_errors_of_jali() -> None:
    hunted(1000, 100_000)


@pytest.mark.parametrize("share", [1e120, 1e200])
def test_weights_that_overflow_are_refused(share: float, program: nn.Program) -> None:
    """Of a program that someone made: what is not finite is no matrix, and gives no warning of
    NumPy's."""
    content, arrays = container.read("program", program.to_bytes())
    larger = [a * share if a.shape == (3, 6) else a for a in arrays]
    with pytest.raises(jali.Error):
        nn.Program.from_bytes(container.written("program", content, larger))
    content["ranges"]["v"]["largest"] = 10**400
    with pytest.raises(jali.CorruptData, match="largest: must be a number from 1e-100 to"):
        nn.Program.from_bytes(container.written("program", content, arrays))


@pytest.fixture(scope="module")
def programs() -> list[nn.Program]:
    """Functions, products, and a loop whose sums are taken apart."""
    rng = np.random.default_rng(12)
    a, x = rng.normal(size=(3, 6)) / 2, rng.uniform(-1, 1, (40, 6))

    def descent(v: Any) -> Any:
        return nn.loop(lambda w, u: (w + u, 0.5 * u - 0.1 * (w - v)), (v, v), count=4)[0]

    models: list[Any] = [lambda v: np.tanh(a @ v) * (a @ v), descent]
    return [jali.compile(f, x[0], calibration=x, input_range=(-2, 2)) for f in models]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("k", range(2))
def test_extreme_numbers_of_a_file_give_no_warning(k: int, programs: list[nn.Program]) -> None:
    """Of weights and of ranges, one array at a time: what is computed of them is finite, or the
    file is refused."""
    content, arrays = container.read("program", programs[k].to_bytes())
    ranges = list(content["ranges"].values())
    ranges += [inner for one in ranges for inner in one.get("body", {}).values()]
    changes = [[one[key]["array"] for key in ("low", "high")] for one in ranges]
    changes += [[at] for at, array in enumerate(arrays) if array.size > 1]
    loaded = refused = 0
    for places in changes:
        for value in (0.0, -1e-200, 1e99):
            other = [a * 0 + value if at in places else a for at, a in enumerate(arrays)]
            try:
                nn.Program.from_bytes(container.written("program", content, other))
                loaded += 1
            except jali.Error:
                refused += 1
    assert refused and loaded
