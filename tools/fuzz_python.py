#!/usr/bin/env python3
"""Fuzzes the public face of jali.ckks: hostile objects, and hostile arguments, through every operation.

    python tools/fuzz_python.py [--seconds 60] [--seed N] [--case K] [--cases C]

A case makes objects whose bytes were changed and sealed again with a valid checksum, loads them, and runs a
program of operations on what was accepted. Every operation gives a result, an error under jali.Error, or a
TypeError for arguments of the wrong type; anything else, a death of the process included, ends the run with the
seed, the number of the case and its steps. `--seed N --case K --cases 1` repeats it.

A new public method joins by a function marked with @operation("Class.method") below, or by a line in EXEMPT that
says why not; tests/python/test_fuzz.py holds both lists to the classes.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import hashlib
import math
import pickle
import random
import secrets
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jali
from jali import ckks

HEADER, CHECKSUM = 48, 16
#: Fields of a ciphertext's payload, as docs/format.md has them: offset and struct format.
CIPHERTEXT = {
    "level": (0, "<H"),
    "log_slots": (2, "<B"),
    "batch": (3, "<I"),
    "scale": (7, "<d"),
    "parts": (15, "<B"),
    "seeded": (16, "<B"),
    "variance": (17, "<d"),
    "message": (25, "<d"),
    "peak": (33, "<d"),
    "error": (41, "<d"),
    "noise": (49, "<d"),
    "length": (57, "<I"),
    "packing": (61, "<B"),
}
PLAINTEXT = {name: CIPHERTEXT[name] for name in ("level", "log_slots", "batch", "scale")}
DOUBLES = [0.0, -0.0, 5e-324, 1e-300, 2.0**-64, 2.0**-63, 1e-9, 1.0, 2.0, 1e9, 2.0**40, 2.0**80,
           2.0**160, 1e300, 1.7e308, math.inf, -1.0, math.nan]  # fmt: skip
INTEGERS = [0, 1, -1, 2, 3, 4, 7, 8, 15, 16, 255, 511, 512, 513, 1024, 65535, 2**31 - 1, -(2**31),
            2**31, 2**32, 2**63 - 1, -(2**63), 2**63, 2**64, 10**400, 10**5000]  # fmt: skip
OTHERS = [None, "text", b"bytes", 2.5, math.nan, math.inf, True, [], {}, (), object(), np.float32(1.5),
          np.int8(3), np.bool_(True), np.array(2), np.float64("inf"), 1j, complex("nan"), "3", [1, "a"],
          np.array([], dtype=float), range(3), Exception]  # fmt: skip


def seal(payload_changed: bytearray) -> bytes:
    """The frame with its checksum, and the length that it has."""
    struct.pack_into("<Q", payload_changed, 40, len(payload_changed) - HEADER - CHECKSUM)
    digest = hashlib.sha256(payload_changed[:-CHECKSUM]).digest()
    payload_changed[-CHECKSUM:] = digest[:CHECKSUM]
    return bytes(payload_changed)


def field(data: bytes, fields: dict[str, tuple[int, str]], name: str) -> Any:
    """The value of a field of an object's bytes."""
    at, form = fields[name]
    return struct.unpack_from(form, data, HEADER + at)[0]


class World:
    """Small parameters of one word, honest keys, and the bytes of honest objects."""

    def __init__(self, word: str, bootstrap: bool) -> None:
        common: dict[str, Any] = {"log_n": 10, "word": word, "security": 0, "name": "insecure_fuzz"}
        if bootstrap:
            self.params = ckks.Params.create(bootstrap=True, levels_after=2, **common)
        else:
            self.params = ckks.Params.create(
                depth=3, scale_bits=50 if word == "w64" else 40, **common
            )
        self.client = ckks.Client(self.params, threads=1)
        rotations = [*ckks.sum_rotations(self.params.slots), -1, 3]
        self.matvec = ckks.MatVec(np.full((3, 4), 0.5), self.params, layout="natural")
        self.transform = ckks.LinearTransform(
            self.params, {d: np.full(self.params.slots, 0.5) for d in (0, 1)}
        )
        rotations += [*self.matvec.rotations, *self.transform.rotations]
        self.keys = self.client.evaluation_keys(
            rotations, conjugate=True, bootstrap=[8] if bootstrap else False
        )
        self.server = ckks.Evaluator(self.params, self.keys, "cpu", threads=1, variants={})
        if not bootstrap:
            self.server.prepare(self.matvec)
        v = np.linspace(-1, 1, 8)
        x = self.client.encrypt(v)
        e = self.server.explicit
        self.ciphertexts = [
            x.to_bytes(),
            self.client.encrypt(v, level=0).to_bytes(),
            self.client.encrypt(v, slots=8).to_bytes(),
            self.client.encrypt(np.ones((2, 3)) * 1j, level=1).to_bytes(),
            ckks.Encryptor(self.client.public_key()).encrypt(v).to_bytes(),
            e.square(x).to_bytes(),
        ]
        self.plaintexts = [e.encode(v).to_bytes(), e.encode(v, level=0, slots=8).to_bytes()]
        self.public_key = self.client.public_key().to_bytes()
        self.small_keys = self.client.evaluation_keys([1, 2]).to_bytes()
        self.key_bytes = self.params.key_bytes()


_worlds: dict[tuple[str, bool], World] = {}


def world(word: str, bootstrap: bool) -> World:
    """Made at the first use."""
    if (word, bootstrap) not in _worlds:
        _worlds[word, bootstrap] = World(word, bootstrap)
    return _worlds[word, bootstrap]


class Case:
    """One program on its way: its choices, what it has loaded and computed, and its steps so far."""

    def __init__(self, seed: int, number: int, log: Callable[[str], None]) -> None:
        self.random = random.Random(f"{seed}:{number}")
        self.log = log
        bootstrap = self.random.random() < 0.1
        self.world = world(self.random.choice(["w32", "w52", "w64"]), bootstrap)
        self.server = self.world.server
        self.log(
            f"case {number}: {self.world.params.word}{' with bootstrapping' if bootstrap else ''}"
        )
        self.values: list[ckks.EncryptedArray] = []
        self.ciphertexts: list[ckks.Ciphertext] = []
        self.plaintexts: list[ckks.Plaintext] = []

    # --- choices ---------------------------------------------------------------------------------

    def rare(self, chance: float = 0.15) -> bool:
        """Whether something unusual happens here."""
        return self.random.random() < chance

    def integer(self, *usual: int) -> Any:
        """One of the usual numbers, or hostile."""
        if not self.rare(0.3):
            return self.random.choice(usual)
        return self.random.choice(INTEGERS if self.rare(0.7) else OTHERS)

    def number(self) -> Any:
        """A number to compute with, or hostile."""
        if not self.rare(0.4):
            return self.random.choice(
                [self.random.uniform(-1, 1), 2, -3, 0.5, 1 + 1j, np.float32(0.25)]
            )
        return self.random.choice(DOUBLES + INTEGERS if self.rare(0.8) else OTHERS)

    def array(self, *lengths: int) -> Any:
        """A vector or batch of one of the lengths, or hostile."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self._array(*lengths)

    def _array(self, *lengths: int) -> Any:
        n = self.random.choice(lengths) if lengths else 8
        values: Any = np.linspace(-1, 1, max(n, 1))[:n]
        if self.rare(0.2):
            values = values * 1j
        if self.rare(0.2):
            values = np.tile(values, (self.random.choice([0, 1, 2, 3]), 1))
        if not self.rare(0.35):
            return values
        kind = self.random.randrange(9)
        if kind == 0:
            values = values.astype(
                self.random.choice(["f2", "f4", "i1", "u8", "c8", "O", "S", ">f8", "?"])
            )
        elif kind == 1 and values.size:
            values = np.array(values)
            values.flat[0] = self.random.choice(DOUBLES)
        elif kind == 2:
            values = values[::-1]
        elif kind == 3:
            values = values.tolist()
        elif kind == 4:
            values = np.zeros(
                self.random.choice([(), (0,), (0, 4), (4, 0), (2, 2, 2), (1, 1), (9000,)])
            )
        elif kind == 5:
            values = np.ma.array(values, mask=np.ones(values.shape, dtype=bool))
        elif kind == 6:
            values = self.random.choice(OTHERS)
        elif kind == 7:
            values = np.broadcast_to(np.float64(self.random.choice(DOUBLES)), values.shape)
        return values

    # --- objects ---------------------------------------------------------------------------------

    def changed(self, honest: bytes, fields: dict[str, tuple[int, str]], name: str) -> bytes:
        """The bytes with some fields changed, sealed again."""
        data = bytearray(honest)
        changes = self.random.choice([0, 1, 1, 1, 2, 3])
        for _ in range(changes):
            if not self.rare(0.2):
                chosen = self.random.choice(list(fields))
                at, form = fields[chosen]
                value: Any
                if form == "<d":
                    value = self.random.choice(DOUBLES)
                    if self.rare(0.3):
                        value = field(data, fields, chosen)
                        value *= self.random.choice(
                            [2.0**-70, 0.5, 1 + 2.0**-21, 1 + 2.0**-19, 2.0, 2.0**40]
                        )
                else:
                    value = self.random.choice(INTEGERS) % (1 << 8 * struct.calcsize(form))
                self.log(f"  {name}: {chosen} = {value!r}")
                struct.pack_into(form, data, HEADER + at, value)
            else:
                at = HEADER + self.random.randrange(min(96, len(data) - HEADER - CHECKSUM - 8))
                if self.rare(0.3):
                    at = self.random.randrange(HEADER, len(data) - CHECKSUM - 8)
                value = self.random.choice([bytes(8), b"\xff" * 8, self.random.randbytes(8)])
                self.log(f"  {name}: bytes at {at} = {value.hex()}")
                data[at : at + 8] = value
        if self.rare(0.05):  # every residue zero
            self.log(f"  {name}: all residues are zero")
            data[HEADER + 96 : -CHECKSUM] = bytes(len(data) - HEADER - 96 - CHECKSUM)
        return seal(data)

    def load(self) -> None:
        """Objects to begin with, as far as they are accepted."""
        w = self.world
        for _ in range(self.random.choice([1, 2, 2, 3])):
            data = self.changed(self.random.choice(w.ciphertexts), CIPHERTEXT, "ciphertext")
            if (x := self.step("load", lambda d=data: self.read(ckks.Ciphertext, d))) is not None:
                self.ciphertexts.append(x)
        if self.rare(0.3):
            data = self.changed(self.random.choice(w.plaintexts), PLAINTEXT, "plaintext")
            if (p := self.step("load", lambda: self.read(ckks.Plaintext, data))) is not None:
                self.plaintexts.append(p)
        if self.rare(0.1) and not w.params.bootstraps:
            second = HEADER + 5 + w.key_bytes  # that of the first Galois key
            fields = {
                "kinds": (0, "<B"),
                "count": (1, "<I"),
                "element": (second - HEADER, "<Q"),
                "next element": (second - HEADER + 8 + w.key_bytes, "<Q"),
            }
            data = self.changed(w.small_keys, fields, "evaluation keys")
            keys = self.step("load", lambda: self.read(ckks.EvaluationKeys, data))
            made = self.step(
                "Evaluator", lambda: ckks.Evaluator(w.params, keys, "cpu", threads=1, variants={})
            )
            if made is not None:
                self.server = made
        if not self.ciphertexts or self.rare(0.6):
            self.ciphertexts.append(w.client.encrypt(np.linspace(-1, 1, 8)))
        for x in self.ciphertexts:
            if (v := self.step("bind", lambda x=x: self.server.bind(x))) is not None:
                self.values.append(v)
        if not self.values:
            self.values.append(self.server.bind(w.client.encrypt(np.linspace(-1, 1, 8))))

    def read(self, kind: Any, data: bytes) -> Any:
        """from_bytes, and to_bytes again: the format is canonical."""
        loaded = kind.from_bytes(data, self.world.params, max_bytes=1 << 24)
        assert loaded.to_bytes() == data, "an object's bytes are not those it was read from"
        assert repr(loaded) and loaded.params == self.world.params
        return loaded

    def value(self) -> ckks.EncryptedArray:
        """One of the values."""
        return self.random.choice(self.values)

    def ciphertext(self) -> ckks.Ciphertext:
        """One of the ciphertexts."""
        return self.random.choice(self.ciphertexts)

    def keep(self, result: Any) -> None:
        """Looks at a result, and keeps it for other operations."""
        if isinstance(result, (list, tuple)):
            for one in result:
                self.keep(one)
        elif isinstance(result, ckks.EncryptedArray):
            assert repr(result) and result.size == math.prod(result.shape)
            assert result.evaluator is self.server and len(result) == result.shape[0]
            assert result.ndim in (1, 2) and result.shape[-1] <= result.slots
            assert result.level >= 0 and result.scale > 0
            self.replace(self.values, result)
            self.keep(result.ciphertext)
        elif isinstance(result, ckks.Ciphertext):
            assert not math.isnan(result.precision_bits), "the precision is not a number"
            assert not math.isnan(ckks.worst_case_error(result)), "the bound is not a number"
            assert not math.isnan(ckks.worst_case_noise(result)), "the bound is not a number"
            self.read(ckks.Ciphertext, result.to_bytes())
            self.replace(self.ciphertexts, result)
        elif isinstance(result, ckks.Plaintext):
            self.replace(self.plaintexts, result)
        elif isinstance(result, np.ndarray):
            assert not np.isnan(result).any(), "a number that comes out is a NaN"

    def replace(self, items: list[Any], item: Any) -> None:
        """Appends, or takes the place of another: few are kept."""
        if len(items) < 6:
            items.append(item)
        else:
            items[self.random.randrange(6)] = item

    def step(self, name: str, call: Callable[[], Any]) -> Any:
        """What the call gives, or None where it raised what it may raise."""
        self.log(f"  {name}")
        try:
            return call()
        except jali.InternalError:
            raise
        except jali.Error as error:
            assert str(error), "an error without a sentence"
            self.log(f"    {type(error).__name__}: {str(error)[:150]}")
        except TypeError as error:
            self.log(f"    TypeError: {str(error)[:100]}")
        return None

    def run(self) -> None:
        """Loads, then some operations."""
        self.load()
        names = list(OPERATIONS)
        for _ in range(self.random.randrange(4, 16)):
            name = self.random.choice(names)
            self.keep_if(name, self.step(name, lambda name=name: OPERATIONS[name](self)))

    def keep_if(self, name: str, result: Any) -> None:
        """keep, whose own calls may raise as the operations do."""
        if result is not None:
            self.step(f"look at {name}", lambda: self.keep(result))


OPERATIONS: dict[str, Callable[[Case], Any]] = {}
COVERED: set[str] = set()


def operation(*methods: str) -> Callable[[Callable[[Case], Any]], Callable[[Case], Any]]:
    """Adds a function to the operations. methods: those of ckks that it calls, as "Class.method"."""

    def add(function: Callable[[Case], Any]) -> Callable[[Case], Any]:
        OPERATIONS[function.__name__] = function
        COVERED.update(methods)
        return function

    return add


#: Public methods that no operation calls, and why.
EXEMPT = {
    "Params.*": "parameters are read and made by tests/python/test_bytes.py and test_errors.py",
    "Client.__init__": "made once for every word",
    "Client.from_secret_bytes": "its bytes never come from a peer; fuzz/loader.cpp reads them",
    "Client.secret_to_bytes": "as above",
    "Evaluator.trace": "made without one",
    "ExplicitEvaluator.__init__": "made by Evaluator.explicit alone",
}


# --- EncryptedArray ---------------------------------------------------------------------------------------


def operand(c: Case) -> Any:
    """What may stand beside a value."""
    kind = c.random.randrange(3)
    if kind == 0:
        return c.value()
    return c.number() if kind == 1 else c.array(8, c.world.params.slots, 1, 3)


@operation("EncryptedArray.__add__", "EncryptedArray.__radd__")
def add(c: Case) -> Any:
    """x + y."""
    return c.value() + operand(c) if c.rare(0.5) else operand(c) + c.value()


@operation("EncryptedArray.__sub__", "EncryptedArray.__rsub__")
def sub(c: Case) -> Any:
    """x - y."""
    return c.value() - operand(c) if c.rare(0.5) else operand(c) - c.value()


@operation("EncryptedArray.__mul__", "EncryptedArray.__rmul__")
def mul(c: Case) -> Any:
    """x * y."""
    return c.value() * operand(c) if c.rare(0.5) else operand(c) * c.value()


@operation("EncryptedArray.__truediv__", "EncryptedArray.__rtruediv__")
def div(c: Case) -> Any:
    """x / y."""
    return c.value() / operand(c) if c.rare(0.9) else operand(c) / c.value()


@operation("EncryptedArray.__pow__")
def power(c: Case) -> Any:
    """x ** n."""
    return c.value() ** c.integer(1, 2, 3, 4)


@operation("EncryptedArray.__neg__", "EncryptedArray.__pos__")
def negate(c: Case) -> Any:
    """-x."""
    return -(+c.value())


@operation("EncryptedArray.__rmatmul__")
def matmul(c: Case) -> Any:
    """matrix @ x."""
    x = c.value()
    n = min(x.shape[-1], 16)
    matrix = c.array(n) if c.rare(0.3) else np.full((3, n), 0.5)
    return matrix @ x


@operation("EncryptedArray.rotate")
def rotate(c: Case) -> Any:
    """Rotation."""
    return c.value().rotate(c.integer(0, 1, -1, 2, 3, 8, 300))


@operation("EncryptedArray.conj", "EncryptedArray.conjugate")
def conj(c: Case) -> Any:
    """Conjugation."""
    return c.value().conj()


@operation("EncryptedArray.sum")
def total(c: Case) -> Any:
    """Sums of slots."""
    return c.value().sum(None if c.rare(0.5) else c.integer(1, 2, 8, 512))


@operation("EncryptedArray.with_length")
def with_length(c: Case) -> Any:
    """Another length."""
    return c.value().with_length(c.integer(1, 2, 8, 512))


@operation("EncryptedArray.with_magnitude")
def with_magnitude(c: Case) -> Any:
    """Another magnitude."""
    return c.value().with_magnitude(c.number())


@operation("EncryptedArray.bootstrap", "Evaluator.bootstrap_pair", "Evaluator.prepare_bootstrap")
def bootstrap(c: Case) -> Any:
    """Levels restored, where there are such levels."""
    x = c.value()
    if c.rare(0.1):
        c.server.prepare_bootstrap(c.integer(8))
    target = None if c.rare(0.7) else c.integer(0, 1, 2)
    if c.rare(0.3):
        return c.server.bootstrap_pair(x, c.value(), target)
    return x.bootstrap(target, iterations=c.integer(1, 1, 1, 2), real=c.random.choice([None, True]))


@operation(
    "EncryptedArray.ciphertext", "EncryptedArray.level", "EncryptedArray.scale", "EncryptedArray.slots", "EncryptedArray.shape", "EncryptedArray.ndim",
    "EncryptedArray.size", "EncryptedArray.evaluator", "EncryptedArray.__len__", "EncryptedArray.__repr__", "EncryptedArray.precision_bits",
    "EncryptedArray.__init__",
)  # fmt: skip
def facts(c: Case) -> Any:
    """What is known of a value."""
    x = c.value()
    assert not math.isnan(x.precision_bits)
    return x.ciphertext


@operation(
    "EncryptedArray.__bool__", "EncryptedArray.__eq__", "EncryptedArray.__lt__", "EncryptedArray.__le__", "EncryptedArray.__gt__", "EncryptedArray.__ge__",
    "EncryptedArray.__array__", "EncryptedArray.__iter__", "EncryptedArray.__reduce__", "EncryptedArray.__hash__", "Client.__reduce__",
)  # fmt: skip
def refusals(c: Case) -> None:
    """What values cannot do, they do not."""
    x = c.value()
    hash(x)
    refused: list[Callable[[], Any]] = [
        lambda: bool(x), lambda: x == x, lambda: x < 1, lambda: x <= 1, lambda: x > 1, lambda: x >= 1,
        lambda: np.asarray(x), lambda: list(x), lambda: pickle.dumps(x), lambda: copy.copy(x),
        lambda: pickle.dumps(c.world.client), lambda: pickle.dumps(c.ciphertext()),
    ]  # fmt: skip
    call = c.random.choice(refused)
    call()
    raise AssertionError("what must be refused was done")


# --- Evaluator -----------------------------------------------------------------------------------


@operation("Evaluator.bind")
def bind(c: Case) -> Any:
    """A ciphertext, a value, or something else."""
    return c.server.bind(
        c.random.choice([c.ciphertext(), c.value(), *OTHERS] if c.rare() else [c.ciphertext()])
    )


@operation(
    "Evaluator.__init__", "Evaluator.params", "Evaluator.device", "Evaluator.engine", "Evaluator.threads",
    "Evaluator.variants", "Evaluator.explicit", "Evaluator.synchronize", "Evaluator.__repr__",
)  # fmt: skip
def evaluator(c: Case) -> None:
    """What an evaluator says of itself; one with hostile arguments."""
    s = c.server
    assert repr(s) and s.device == "cpu" and s.engine and s.threads == 1 and s.variants == {}
    s.synchronize()
    if c.rare(0.2):
        ckks.Evaluator(
            c.world.params, c.random.choice([None, *OTHERS]), "cpu", threads=c.integer(1)
        )


@operation("Evaluator.matvec", "Evaluator.matvec_blocks", "MatVec.*")
def matvec(c: Case) -> Any:
    """Products with a prepared plan, and with one of hostile arguments."""
    if c.rare(0.6):
        return c.server.matvec_blocks(c.world.matvec, [c.value()] if c.rare(0.5) else c.value())
    plan = ckks.MatVec(
        c.array(3, 8) if c.rare(0.3) else np.full((2, 8), 0.5),
        c.world.params,
        level=c.integer(1, 2),
        layout=c.random.choice(["natural", "cheapest"] if not c.rare() else OTHERS),
        bias=None if c.rare(0.7) else c.array(2, 3),
    )
    assert repr(plan) and plan.rows > 0 and plan.columns > 0 and plan.cost >= 0
    plan.unpack([c.array(c.world.params.slots)])
    plan.pack(c.array(8))
    plan.working_bytes(c.integer(1, 2))
    return c.server.matvec(plan, c.value())


@operation("Evaluator.linear_transform", "Evaluator.prepare", "LinearTransform.*")
def linear_transform(c: Case) -> Any:
    """A plan, and a hostile one."""
    if c.rare(0.6):
        return c.server.linear_transform(c.world.transform, c.value())
    diagonals = {
        c.integer(0, 1): c.array(c.world.params.slots, 8) for _ in range(c.random.randrange(3))
    }
    plan = ckks.LinearTransform(
        c.world.params, diagonals, level=c.integer(1, 2), slots=c.integer(0, 8)
    )
    c.server.prepare(plan)
    return c.server.linear_transform(plan, c.value())


@operation("Evaluator.polynomial", "Polynomial.*")
def polynomial(c: Case) -> Any:
    """Coefficients, basis and interval of any kind."""
    coefficients = c.array(2, 3, 4)
    if c.rare(0.3):
        coefficients = [c.number() for _ in range(3)]
    interval = (c.number(), c.number()) if c.rare() else (-1.0, 1.0)
    basis = c.random.choice(OTHERS) if c.rare(0.1) else c.random.choice(["power", "chebyshev"])
    if c.rare(0.2):
        p = ckks.Polynomial(coefficients, basis, interval)
        assert repr(p) and p.degree >= 0 and p.depth >= 0 and p.coefficients
        p(0.5)
        coefficients = ckks.Polynomial.approximate(math.sin, c.integer(3), (-1.0, 1.0))
    return c.server.polynomial(c.value(), coefficients, basis=basis, interval=interval)


@operation("Evaluator.capture", "Captured.*")
def capture(c: Case) -> Any:
    """A recorded function, for the example and for another value."""
    number = c.number()
    x, y = c.value(), c.value()
    recorded = c.server.capture(lambda v: [v * v, v + number][c.random.randrange(2) :], x)
    assert recorded.nbytes >= 0
    return recorded(y if c.rare(0.5) else x)


@operation("Evaluator.map", "Evaluator.batcher", "Batcher.*")
def batched(c: Case) -> Any:
    """A function of many values, several at a time."""
    steps = c.integer(1, 2)
    values = [c.value() for _ in range(c.random.randrange(4))]
    function: Any = (lambda v: v.rotate(steps)) if not c.rare() else c.random.choice([*OTHERS, abs])
    batcher = c.server.batcher(function, max_batch=None if c.rare(0.7) else c.integer(1, 2))
    out = batcher(values)
    assert batcher.batch >= 0 and isinstance(batcher.curve, list)
    return [*out, *c.server.map(function, values)]


# --- the client's side ---------------------------------------------------------------------------


@operation("Client.encrypt", "Client.params", "Client.engine", "Client.__repr__")
def encrypt(c: Case) -> Any:
    """Numbers of any kind."""
    assert repr(c.world.client) and c.world.client.engine
    return c.world.client.encrypt(
        c.array(8, 512, 513),
        level=None if c.rare(0.6) else c.integer(0, 1, 3),
        slots=None if c.rare(0.6) else c.integer(8, 512),
        magnitude=1.0 if c.rare(0.6) else c.number(),
    )


@operation("Encryptor.*", "PublicKey.*", "Client.public_key")
def public_key(c: Case) -> Any:
    """With a public key that was changed."""
    data = c.changed(c.world.public_key, {"seed": (0, "<Q")}, "public key")
    key = c.read(ckks.PublicKey, data)
    encryptor = ckks.Encryptor(key, threads=1)
    assert repr(encryptor) and encryptor.params == c.world.params
    return encryptor.encrypt(c.array(8))


@operation("Client.decrypt")
def decrypt(c: Case) -> Any:
    """The numbers inside."""
    x = c.random.choice(OTHERS) if c.rare(0.05) else c.random.choice([c.value(), c.ciphertext()])
    return c.world.client.decrypt(
        x,
        length=None if c.rare(0.7) else c.integer(1, 8, 512),
        complex=c.random.choice([None, True, False] if not c.rare() else OTHERS),
    )


@operation("Client.release", "ReleasePolicy.*", "ckks.worst_case_error", "ckks.worst_case_noise")
def release(c: Case) -> Any:
    """The numbers inside, to be shared."""
    x = c.ciphertext()
    bound = ckks.worst_case_noise(x) if c.rare(0.5) else c.number()
    policy = ckks.ReleasePolicy(
        origin=c.random.choice(["derived", "declared"])
        if not c.rare()
        else c.random.choice(OTHERS),
        error_bound=bound,
        largest=8.0 if c.rare(0.7) else c.number(),
        releases=1.0 if c.rare(0.7) else c.number(),
        statistical_bits=c.integer(40),
    )
    assert repr(policy)
    policy.noise_std(c.integer(8), c.integer(1))
    return c.world.client.release(x, policy=policy)


@operation("Client.evaluation_keys", "EvaluationKeys.*")
def evaluation_keys(c: Case) -> None:
    """Keys for any rotations."""
    keys = c.world.client.evaluation_keys(
        [c.integer(1, 2)] if not c.rare() else c.random.choice(OTHERS)
    )
    assert repr(keys) and keys.nbytes > 0 and keys.count > 0 and not keys.has_conjugation
    assert keys.has_relinearisation
    keys.has_rotation(c.integer(1))


# --- the explicit evaluator ----------------------------------------------------------------------

UNARY = ["negate", "multiply_i", "square", "relinearise", "rescale", "relinearise_rescale", "conjugate",
         "bring", "send_back"]  # fmt: skip
BINARY = ["add", "sub", "multiply", "multiply_relinearise_rescale"]


@operation(*(f"ExplicitEvaluator.{name}" for name in UNARY))
def explicit_unary(c: Case) -> Any:
    """One ciphertext."""
    return getattr(c.server.explicit, c.random.choice(UNARY))(c.ciphertext())


@operation(*(f"ExplicitEvaluator.{name}" for name in BINARY))
def explicit_binary(c: Case) -> Any:
    """Two ciphertexts."""
    return getattr(c.server.explicit, c.random.choice(BINARY))(c.ciphertext(), c.ciphertext())


@operation(
    "ExplicitEvaluator.add_plain", "ExplicitEvaluator.sub_plain", "ExplicitEvaluator.multiply_plain",
    "ExplicitEvaluator.encode", "ExplicitEvaluator.decode", "Plaintext.*",
)  # fmt: skip
def explicit_plain(c: Case) -> Any:
    """A ciphertext and a plaintext."""
    e = c.server.explicit
    x = c.ciphertext()
    p = (
        c.random.choice(c.plaintexts)
        if c.plaintexts and c.rare(0.5)
        else e.encode(
            c.array(8, 512),
            x.level if c.rare(0.7) else c.integer(0, 1),
            x.scale if c.rare(0.7) else c.number(),
            c.integer(0, 8),
        )
    )
    assert repr(p) and p.nbytes > 0 and p.batch > 0
    assert not np.isnan(e.decode(p)).any()
    name = c.random.choice(["add_plain", "sub_plain", "multiply_plain"])
    return getattr(e, name)(x, p)


@operation(
    "ExplicitEvaluator.add_scalar", "ExplicitEvaluator.multiply_scalar",
    "ExplicitEvaluator.multiply_integer", "ExplicitEvaluator.has_rotation", "ExplicitEvaluator.is_here",
    "ExplicitEvaluator.params",
)  # fmt: skip
def explicit_numbers(c: Case) -> Any:
    """A ciphertext and a number."""
    e, x = c.server.explicit, c.ciphertext()
    assert e.is_here(x) and e.params == c.world.params
    e.has_rotation(c.integer(1))
    kind = c.random.randrange(3)
    if kind == 0:
        return e.add_scalar(x, c.number())
    if kind == 1:
        return e.multiply_integer(x, c.integer(0, 1, -3, 1000))
    return e.multiply_scalar(x, c.number(), c.world.params.scale if c.rare(0.6) else c.number())


@operation("ExplicitEvaluator.drop_to", "ExplicitEvaluator.adjust", "ExplicitEvaluator.rotate")
def explicit_levels(c: Case) -> Any:
    """A level, a scale, a rotation."""
    e, x = c.server.explicit, c.ciphertext()
    kind = c.random.randrange(3)
    if kind == 0:
        return e.drop_to(x, c.integer(0, 1, 2))
    if kind == 1:
        level = c.integer(0, 1)
        scale = c.world.params.level(0).scale if c.rare(0.6) else c.number()
        return e.adjust(x, level, scale)
    return e.rotate(x, c.integer(0, 1, 2, -1))


@operation(
    "ExplicitEvaluator.hoist", "ExplicitEvaluator.rotate_hoisted", "ExplicitEvaluator.rotate_extended",
    "ExplicitEvaluator.extend", "ExplicitEvaluator.reduce", "ExplicitEvaluator.reduce_rescale",
    "ExplicitEvaluator.encode_diagonal", "ExplicitEvaluator.multiply_accumulate",
    "ExplicitEvaluator.add_extended", "ExplicitEvaluator.rotate_accumulate", "Hoisted.*", "Diagonal.*",
    "Extended.*",
)  # fmt: skip
def explicit_hoisting(c: Case) -> Any:
    """Rotations that share their digits and their division."""
    e, x, y = c.server.explicit, c.ciphertext(), c.ciphertext()
    hoisted = e.hoist(x)
    turned = e.rotate_hoisted(hoisted, c.integer(0, 1, 2))
    a, b = e.rotate_extended(hoisted, c.integer(0, 1, 2)), e.extend(y)
    e.add_extended(a, b)
    e.rotate_accumulate(a, b if c.rare(0.7) else a, c.integer(0, 1, 2))
    diagonal = e.encode_diagonal(
        c.array(512, 8), c.integer(x.level), c.world.params.scale if c.rare(0.7) else c.number()
    )
    assert diagonal.scale > 0 and a.scale > 0 and a.level >= 0
    product = e.multiply_accumulate(
        [a, b][: c.random.randrange(3)], [diagonal] * c.random.randrange(3)
    )
    return [turned, e.reduce(a), e.reduce_rescale(product)]


@operation("Ciphertext.*")
def ciphertext(c: Case) -> None:
    """What is known of a ciphertext."""
    x = c.ciphertext()
    assert repr(x) and x.level >= 0 and x.scale > 0 and x.parts in (2, 3) and x.slots > 0
    assert x.batch > 0 and x.length > 0 and math.prod(x.shape) > 0 and x.nbytes > 0
    assert x.is_complex in (True, False) and x.params == c.world.params
    ckks.Ciphertext.from_bytes(x.to_bytes(), c.world.params, max_bytes=c.integer(1 << 24))


# --- the run -------------------------------------------------------------------------------------


def work(seed: int, seconds: float, first: int, cases: int | None, steps: Path) -> int:
    """Runs cases in this process, each step written to a file before it is taken."""
    faulthandler.enable()
    warnings.simplefilter("error")  # a warning of NumPy's is no error of Jali's
    end = time.monotonic() + seconds
    done = 0
    with steps.open("w", encoding="utf-8") as out:

        def log(line: str) -> None:
            out.write(line + "\n")
            out.flush()

        while (cases is None and time.monotonic() < end) or (cases is not None and done < cases):
            out.seek(0)
            out.truncate()
            try:
                Case(seed, first + done, log).run()
            except Exception:
                log(traceback.format_exc())
                return 1
            done += 1
    print(f"{done} programs", flush=True)
    return 0


def main() -> int:
    """Runs the cases in a process of their own, so that its death can be told."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="fresh unless given")
    parser.add_argument("--case", type=int, default=0, help="the first one")
    parser.add_argument("--cases", type=int, default=None, help="how many, instead of --seconds")
    parser.add_argument("--steps", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    seed = secrets.randbits(48) if args.seed is None else args.seed
    if args.steps is not None:
        return work(seed, args.seconds, args.case, args.cases, args.steps)
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps"
        command = [sys.executable, __file__, "--seed", str(seed), "--seconds", str(args.seconds)]
        command += ["--case", str(args.case), "--steps", str(steps)]
        if args.cases is not None:
            command += ["--cases", str(args.cases)]
        done = subprocess.run(command, check=False)
        if done.returncode == 0:
            print(f"fuzz_python: ok, seed {seed}")
            return 0
        text = steps.read_text(encoding="utf-8") if steps.exists() else ""
        case = text.split(":", 1)[0].removeprefix("case ") if text else "0"
        print(text)
        print(f"fuzz_python: FAILED with status {done.returncode}; to repeat it:")
        print(f"  python tools/fuzz_python.py --seed {seed} --case {case} --cases 1")
        return 1


if __name__ == "__main__":
    sys.exit(main())
