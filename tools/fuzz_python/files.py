"""Hostile files of programs: documents that someone changed who knows the format, through
everything that is done with them.

A manifest goes through load, client, keys (within a limit), encrypt and decrypt; a program through
load, summary, client and server; recorded graphs, programs of trees, messages and key files through
their loaders. What is accepted must work or be refused with an error under jali.Error.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import random
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jali
from fuzz_python.client_files import ClientWorld
from fuzz_python.hostile import INTEGERS
from fuzz_python.integer_files import IntegerWorld
from fuzz_python.manifests import lying
from jali import nn, tfhe
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.traced_ops import OPERATIONS, made
from jali.nn import graph_file, scalar
from jali.program import container
from jali.tfhe import trees
from jali.tfhe.trees import stored
from jali.tfhe.trees.ensemble import NO, YES, Builder, Head, Question

__all__ = ["FileCase", "changed_document"]

#: Values that stand where others belong.
VALUES: list[Any] = [None, True, False, "", "x", "none", "all", "a\u001b[31mb", "\u202egnp.exe", "\ud800", "n\ne", "x" * 2000, 0.5, -0.0, 1e300, -1e300, 1e-300,
          [], [[]], {}, {"a": 1}, {"array": 0}, {"array": -1}, {"array": 1 << 40}, [0], [1, 1], [[1, 0]], [1 << 30, 1 << 30], [1 << 24]]  # fmt: skip
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 16, 20, 64, 65, 1 << 10, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 31, 1 << 40,
         2_000_000_000, 1 << 53, 1 << 63, 1 << 64, 10**30, -1, -2, -5, -1000, -5000]  # fmt: skip
#: Texts that no writer of JSON gives, in the place of a number.
LITERALS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1E400", b"9" * 5000, b"1" + b"0" * 400, b"[" * 5000, b'"\xff"', b"0x10", b"-", b"[],[]",
            b'"\\u0000"', b"01", b'{"a":1,"a":2}']  # fmt: skip
OBJECTS = {"program": 9, "graph": 11}  # as the header of their bytes names them
FEW_BYTES = 1 << 24  # of keys that a case makes
LEAST_SECONDS, SECONDS_A_KB = 1.0, 0.01  # that a refusal may take


def changed_document(random_: random.Random, document: Any) -> Any:
    """A copy with one to three places changed: deleted, doubled, retyped, made huge or negative,
    nested, or exchanged."""
    document = copy.deepcopy(document)  # and no value stands in two places, nor in the lists above
    for _ in range(random_.choice([1, 1, 1, 1, 2, 3])):
        document = copy.deepcopy(_changed(random_, document))
    return document


def _changed(random_: random.Random, value: Any) -> Any:
    """The value with one place below it changed."""
    pick = random_.choice
    if isinstance(value, dict) and value and random_.random() < 0.9:
        key = pick(list(value))
        kind = random_.random()
        if kind < 0.05:
            del value[key]
        elif kind < 0.08:
            value[pick(["more", "shape", key + "\n"])] = copy.deepcopy(value[key])
        elif kind < 0.11:
            other = pick(list(value))
            value[key], value[other] = value[other], value[key]
        else:
            value[key] = _changed(random_, value[key])
        return value
    if isinstance(value, list) and value and random_.random() < 0.85:
        at, kind = random_.randrange(len(value)), random_.random()
        if kind < 0.06:
            del value[at]
        elif kind < 0.12:
            value.insert(random_.randrange(len(value) + 1), copy.deepcopy(value[at]))
        elif kind < 0.15:
            value += copy.deepcopy(value * pick([1, 3, 50]))
        elif kind < 0.18:
            return value[:at]
        elif kind < 0.22:
            random_.shuffle(value)
        else:
            value[at] = _changed(random_, value[at])
        return value
    kind = random_.random()
    if kind < 0.06:
        deep = value
        for _ in range(pick([1, 2, 20, 60])):
            deep = [deep] if random_.random() < 0.5 else {"a": deep}
        return deep
    if isinstance(value, bool) or kind < 0.25:
        return copy.deepcopy(pick(VALUES))
    if isinstance(value, int):
        return pick(
            [
                pick(SIZES),
                pick(SIZES),
                pick(INTEGERS[:-2]),
                value * 2,
                value + 1,
                value - 1,
                value // 2,
                -value,
                float(value),
            ]
        )
    if isinstance(value, float):
        return pick(
            [
                0.0,
                -value,
                value * 1e10,
                value * 1e-10,
                value * 2,
                value / 2,
                1e308,
                5e-324,
                pick(SIZES),
                -1000.0,
                -5000.0,
            ]
        )
    if isinstance(value, str) and random_.random() < 0.5:
        return value + pick(["\u0007", "\x9b", "\u2028", "'", "\U0001f600", "\ud800", value])
    return copy.deepcopy(pick([*VALUES, *SIZES]))


def changed_arrays(random_: random.Random, arrays: list[Any]) -> list[Any]:
    """The arrays, one of which is mostly as it was."""
    if not arrays or random_.random() < 0.75:
        return arrays
    arrays = [a.copy() for a in arrays]
    k = random_.randrange(len(arrays))
    kind = random_.random()
    if kind < 0.5:
        flat = arrays[k].reshape(-1)
        value = random_.choice(
            [
                0.0,
                -1.0,
                1e300,
                -1e300,
                5e-324,
                0.5,
                255.0,
                256.0,
                1e9,
                float(flat[0]) * 2,
                -float(flat[0]),
            ]
        )
        flat[random_.randrange(len(flat))] = value
    elif kind < 0.6:
        arrays[k] = arrays[k].reshape(-1)[: random_.randrange(1, arrays[k].size + 1)]
    elif kind < 0.7:
        arrays[k] = arrays[k] * random_.choice([-1.0, 0.0, 1e10, 1e-10, 1e200])
    elif kind < 0.8:
        arrays[k] = arrays[k].reshape(-1)
    elif kind < 0.9:
        arrays[k] = np.concatenate([arrays[k].reshape(-1)] * 2)
    else:
        del arrays[k]
    return arrays


def written(
    kind: str, content: Any, arrays: list[Any], literal: bytes | None = None, at: float = 0.0
) -> bytes:
    """The bytes of a file, of any content, also of what the library does not write. literal: stands
    in the place of a number of the document."""
    document = json.dumps(content, sort_keys=True).encode()
    if literal is not None:
        digits = [
            k
            for k in range(1, len(document))
            if document[k - 1 : k] == b" " and document[k : k + 1].isdigit()
        ]
        if digits:
            start = digits[int(at * len(digits))]
            end = start
            while document[end : end + 1] not in (b",", b"}", b"]", b""):
                end += 1
            document = document[:start] + literal + document[end:]
    numbers = len(arrays).to_bytes(4, "little")
    for array in arrays:
        sizes = np.array(array.shape, "<u4").tobytes()
        numbers += bytes([array.ndim]) + sizes + np.ascontiguousarray(array, "<f8").tobytes()
    header = b"JALI" + bytes([1, 0, 1, OBJECTS[kind]]) + bytes(40)
    return sealed(header + len(document).to_bytes(4, "little") + document + numbers + bytes(16))


def sealed(frame: bytes) -> bytes:
    """The bytes of an object that were changed, with the length and the checksum that they need."""
    body = frame[:40] + (len(frame) - 64).to_bytes(8, "little") + frame[48:-16]
    return body + hashlib.sha256(body).digest()[:16]


class World:
    """Honest programs, as files, and what belongs to them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        a, b = rng.normal(size=(6, 5)) / 3, rng.normal(size=(2, 6)) / 3
        x = rng.uniform(-1, 1, (40, 5))
        kernel = rng.normal(size=(3, 2, 3, 3)) / 4

        def looped(v: Any) -> Any:
            return nn.loop(
                lambda h, t: 0.5 * h * t + v, np.zeros(5) + v, np.array([0.5, 0.25, 0.5, 0.125])
            )

        models: list[tuple[Any, Any, dict[str, Any]]] = [
            (lambda v: b @ scalar.sigmoid(a @ v), (x,), {"precision_bits": 8, "batch": 4}),
            (lambda v, w: (v * w, np.square(a @ v)), (x, 0.5 * x), {"batch": 128}),
            (looped, (x,), {"precision_bits": 8}),
        ]
        self.programs = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for f, data, how in models:
                self.programs.append(
                    jali.compile(f, tuple(d[0] for d in data), calibration=data, **how)
                )
        self.inputs = [data for _, data, _ in models]
        self.graphs = [p.stages["trace"] for p in self.programs]
        self.graphs += [
            _image_network(kernel),
            _moving_network(),
        ]
        self.clients = [p.client(threads=1) for p in self.programs]
        self.keys = [c.evaluation_keys() for c in self.clients]
        self.messages = []
        for p, c, k, data in zip(self.programs, self.clients, self.keys, self.inputs, strict=True):
            request = c.encrypt(*(d[:2] for d in data))
            reply = p.server(k, device="cpu", threads=1)(request)
            self.messages.append((request.to_bytes(), reply.to_bytes()))
        self.trees = _some_trees(rng)
        self.integers = IntegerWorld()
        self.parts = ClientWorld()
        self.tfhe = tfhe.Client(tfhe.Params.preset("message_2_carry_2"), threads=1)


def _some_trees(rng: np.random.Generator) -> trees.Program:
    """Two trees that add to two scores, one of which asks for categories."""
    builder = Builder()
    for score in (0, 1):
        asked = [Question(0, 0.5, YES), Question(2, 1.0, NO, (1.0, 3.0)), None, None, None]
        builder.add(asked, [1, 2, 0, 0, 0], [4, 3, 0, 0, 0], [score], rng.normal(size=(5, 1)))
    head = Head(divisor=2.0, complement=True, rule="first")
    how = (3, "float32", True, False, np.array(["a", "b", "c"]))
    model = trees.Ensemble(tuple(builder.questions), tuple(builder.trees), np.zeros(2), head, *how)
    return trees.compile(model)


def _node(name: str, op: str, inputs: list[Node], arguments: dict[str, Any]) -> Node:
    return made(name, OPERATIONS[op](**arguments), inputs)


def _image_network(kernel: Any) -> Graph:
    """A convolution, a pool, a square and a sum."""
    x = _node("x", "input", [], {"shape": (2, 6, 6)})
    window = {"stride": (1, 1), "padding": ((1, 1), (1, 1))}
    y = _node(
        "y",
        "convolution",
        [x],
        {"weight": kernel, "bias": np.ones(3), "dilation": (1, 1), "groups": 1, **window},
    )
    z = _node("z", "average_pool", [y], {"kernel": (2, 2), "count_padding": False, **window})
    s = _node("s", "polynomial", [z], {"coefficients": (0.0, 0.5, 1.0)})
    total = _node("t", "sum", [s], {"axes": (1, 2), "factor": 0.1, "keepdims": False})
    return Graph((x, y, z, s, total), ("t",))


def _moving_network() -> Graph:
    """Every operation that moves numbers, a product of matrices and a function."""
    x = _node("x", "input", [], {"shape": (2, 3)})
    y = _node("y", "pad", [x], {"widths": ((1, 0), (0, 2))})
    z = _node("z", "slice", [y], {"start": (0, None), "stop": (None, 3), "step": (1, 1)})
    t = _node("t", "transpose", [x], {"axes": (1, 0)})
    m = _node("m", "matmul", [z, t], {})
    f = _node("f", "function", [m], {"function": "tanh"})
    b = _node("b", "broadcast", [x], {"shape": (3, 2, 3)})
    r = _node("r", "reshape", [b], {"shape": (9, 2)})
    c = _node("c", "concat", [r, f], {"axis": 0})
    g = _node("g", "combine", [c, c], {"weights": (1.0, -0.5)})
    s = _node("s", "scale", [g], {"factor": np.array(2.0), "offset": np.ones(2)})
    return Graph((x, y, z, t, m, f, b, r, c, g, s), ("s", "f"))


@functools.cache
def world() -> World:
    """Made once."""
    return World()


class FileCase:
    """One file, changed, and what is done with it. log: takes each step before it is taken."""

    def __init__(self, seed: int, number: int, log: Callable[[str], None]) -> None:
        self.random = random.Random(f"files:{seed}:{number}")
        self.log = log
        self.size = 0
        self.world = world()
        self.log(f"case {number}: FileCase")

    def attempt(self, name: str, call: Callable[[], Any]) -> Any:
        """What the call gives, or None where it raised an error of Jali's with a sentence that can
        be printed."""
        self.log(f"  {name}")
        start = time.process_time()
        try:
            return call()
        except jali.InternalError:
            raise
        except jali.Error as error:
            text = str(error)
            took = time.process_time() - start
            most = max(LEAST_SECONDS, SECONDS_A_KB * self.size / 1024)
            assert took < most, (
                f"a refusal that took {took:.2f} s of {self.size} bytes: {text[:200]}"
            )
            assert len(text.split()) > 3, f"an error that is no sentence: {text!r}"
            assert len(text) < 3000, f"an error of {len(text)} characters"
            assert all(c.isprintable() for line in text.splitlines() for c in line), (
                f"an error that acts on a terminal: {text!r}"
            )
            self.log(f"    {type(error).__name__}: {text[:200]}")
        return None

    def run(self) -> None:
        """One of the kinds of files."""
        kind = self.random.choice(
            [
                *["manifest"] * 8,
                *["program"] * 5,
                *["graph"] * 4,
                "trees",
                "integers",
                "parts",
                "message",
            ]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=".*memory=")
            getattr(self, kind)()

    def file(self, kind: str, data: bytes) -> bytes:
        """A file of jali.nn, changed: its document, its arrays, its text, or its bytes."""
        content, arrays = _content(kind, data)
        choice = self.random.random()
        if choice < 0.75:
            content = changed_document(self.random, content)
            arrays = changed_arrays(self.random, arrays)
            data = written(kind, content, arrays)
        elif choice < 0.85:
            data = written(kind, content, changed_arrays(self.random, arrays))
        elif choice < 0.93:
            data = written(
                kind, content, arrays, self.random.choice(LITERALS), self.random.random()
            )
        else:
            data = self.bytes(data)
        self.size = len(data)
        return data

    def lie(self, manifest: nn.Manifest) -> bytes:
        """A manifest with other fields, or other bytes under the right checksum."""
        if self.random.random() < 0.6:
            for _ in range(self.random.choice([1, 1, 2, 3])):
                manifest = lying(self.random, manifest)
            try:
                data = manifest.to_bytes()
            except (jali.Error, TypeError):  # numbers that the format does not hold
                data = self.bytes(self.world.programs[0].manifest.to_bytes())
        else:
            data = self.bytes(manifest.to_bytes())
        if self.random.random() < 0.9 and len(data) > 64:
            data = sealed(data)
        self.size = len(data)
        return data

    def bytes(self, data: bytes) -> bytes:
        """Bytes, of which some are others, missing, or more."""
        changed = bytearray(data)
        kind, at = self.random.random(), self.random.randrange(len(changed))
        if kind < 0.3:
            return bytes(changed[:at])
        if kind < 0.4:
            return bytes(changed + changed[at:])
        for _ in range(self.random.choice([1, 2, 8])):
            changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return bytes(changed)

    def manifest(self) -> None:
        """Load, client, keys, encrypt, decrypt."""
        k = self.random.randrange(len(self.world.programs))
        data = self.lie(self.world.programs[k].manifest)
        manifest = self.attempt("Manifest.from_bytes", lambda: nn.Manifest.from_bytes(data))
        if manifest is None:
            return
        self.client(manifest, k)

    def client(self, manifest: nn.Manifest, k: int) -> None:
        """What a client does with a manifest that was accepted."""
        same = manifest.params == self.world.programs[k].params
        secret = self.world.clients[k].secret if same else None
        client = self.attempt("Client", lambda: nn.Client(manifest, secret=secret, threads=1))
        if client is None:
            return
        self.attempt("key_cost", lambda: str(client.key_cost))
        if self.random.random() < 0.1:
            self.attempt("evaluation_keys", lambda: client.evaluation_keys(max_bytes=FEW_BYTES))
        data = [np.resize(d, (2, *p.shape)) for d, p in zip(self.world.inputs[k] * 9, manifest.inputs, strict=False) if np.prod(p.shape) < 1 << 16]  # fmt: skip
        request = self.attempt("encrypt", lambda: client.encrypt(*data))
        inside = [np.clip(d.reshape(2, -1), p.low, p.high).reshape(d.shape) for d, p in zip(data, manifest.inputs, strict=False)]  # fmt: skip
        request = self.attempt("encrypt inside", lambda: client.encrypt(*inside)) or request
        if request is not None:
            self.attempt("to_bytes", request.to_bytes)
        _, reply = self.world.messages[k]
        forged = sealed(reply[:48] + bytes.fromhex(manifest.fingerprint) + reply[80:])
        message = self.attempt("reply", lambda: nn.Message.reply(forged, manifest))
        if message is not None:
            check = self.random.random() < 0.5
            found = self.attempt("decrypt", lambda: client.decrypt(message, check=check))
            if found is not None:
                for values in found if isinstance(found, tuple) else (found,):
                    assert np.isfinite(values).all(), "a number that comes out is not finite"

    def program(self) -> None:
        """Load, summary, manifest, client and server."""
        k = self.random.randrange(len(self.world.programs))
        data = self.file("program", self.world.programs[k].to_bytes())
        if self.random.random() < 0.15:
            content, arrays = _content("program", self.world.programs[k].to_bytes())
            inner = self.lie(self.world.programs[k].manifest)
            data = written("program", content | {"manifest": inner.hex()}, arrays)
            self.size = len(data)
        program = self.attempt("Program.from_bytes", lambda: nn.Program.from_bytes(data))
        if program is None:
            return
        if self.random.random() < 0.1:
            self.attempt("summary", lambda: str(program.summary("cpu", threads=1)))
            self.attempt("explain", lambda: [program.explain(stage) for stage in program.stages])
            x = [np.resize(d, (2, *p.shape)) for d, p in zip(self.world.inputs[k], program.manifest.inputs, strict=False)]  # fmt: skip
            self.attempt("clear", lambda: program.clear(*x))
        if program.manifest.params == self.world.programs[k].params and self.random.random() < 0.3:
            server = self.attempt(
                "server", lambda: program.server(self.world.keys[k], device="cpu", threads=1)
            )
            request = self.world.messages[k][0]
            forged = sealed(
                request[:48] + bytes.fromhex(program.manifest.fingerprint) + request[80:]
            )
            message = self.attempt("request", lambda: nn.Message.request(forged, program.manifest))
            if server is not None and message is not None:
                self.attempt("serve", lambda: server(message))

    def graph(self) -> None:
        """Load, and compute in the clear."""
        honest = graph_file.to_bytes(self.random.choice(self.world.graphs))
        data = self.file("graph", honest)
        tracemalloc.start()
        try:
            graph = self.attempt("graph_file.from_bytes", lambda: graph_file.from_bytes(data))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < max(1 << 22, 20 * len(data)), f"{peak} bytes of memory for {len(data)}"
        if graph is not None:
            assert graph_file.from_bytes(graph_file.to_bytes(graph)).outputs == graph.outputs
            str(graph)

    def trees(self) -> None:
        """Load a manifest or a program of trees, and use it."""
        program, kind = self.world.trees, self.random.choice(["manifest", "program"])
        honest = program.manifest.to_bytes() if kind == "manifest" else program.to_bytes()
        if self.random.random() < 0.3:
            data = self.bytes(honest)
        else:  # under a hash that is right
            document = changed_document(self.random, stored.read(kind, honest))
            data = stored.written(kind, document) if isinstance(document, dict) else honest
        self.size = len(data)
        if kind == "program":
            made = self.attempt("trees.Program.from_bytes", lambda: trees.Program.from_bytes(data))
            if made is not None:
                rows = np.zeros((2, min(made.manifest.features, 100)))
                self.attempt("simulate", lambda: made.simulate(rows))
            return
        found = self.attempt("trees.Manifest.from_bytes", lambda: trees.Manifest.from_bytes(data))
        if found is None:
            return
        rows = np.zeros((2, min(found.features, 100))) + 0.25
        client = trees.Client(found, secret=self.world.tfhe)
        self.attempt("encrypt", lambda: client.encrypt(rows[0]))
        results = self.attempt(
            "results", lambda: found.results(np.ones((2, len(found.outputs)), np.int64))
        )
        if results is not None:
            self.attempt("labels", lambda: client.labels(results))

    def integers(self) -> None:
        """Load a manifest or a program of exact integers, and use it."""
        world, kind = self.world.integers, self.random.choice(["manifest", "program"])
        program = world.program
        if self.random.random() < 0.3:
            honest = program.manifest.to_bytes() if kind == "manifest" else program.to_bytes()
            data = self.bytes(honest)
        else:
            lie = functools.partial(changed_document, self.random)
            data = world.file(self.random, lie, kind)
        self.size = len(data)
        world.use(data, kind, self.attempt)

    def parts(self) -> None:
        """Load a manifest with parts of the client, and compute them."""
        lie = functools.partial(changed_document, self.random)
        honest = self.random.random() < 0.3
        data = self.bytes(self.world.parts.honest) if honest else self.world.parts.file(lie)
        self.size = len(data)
        self.world.parts.use(data, self.attempt)

    def message(self) -> None:
        """Load and decrypt."""
        k = self.random.randrange(len(self.world.programs))
        which = self.random.randrange(2)
        data = self.bytes(self.world.messages[k][which])
        if self.random.random() < 0.5 and len(data) > 64:
            data = sealed(data)
        self.size = len(data)
        manifest = self.world.programs[k].manifest
        take = (
            nn.Message.reply
            if self.random.random() < 0.5 + 0.4 * (2 * which - 1)
            else nn.Message.request
        )
        message = self.attempt("Message", lambda: take(data, manifest))
        if message is not None:
            self.attempt(
                "decrypt",
                lambda: self.world.clients[k].decrypt(message, check=self.random.random() < 0.5),
            )


@functools.cache
def _parsed(kind: str, data: bytes) -> tuple[str, list[Any]]:
    content, arrays = container.read(kind, data)
    return json.dumps(content), arrays


def _content(kind: str, data: bytes) -> tuple[Any, list[Any]]:
    """The document of an honest file and its arrays."""
    text, arrays = _parsed(kind, data)
    return json.loads(text), list(arrays)
