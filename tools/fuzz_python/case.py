"""One program: what it loads, the choices it makes and the steps it takes."""

from __future__ import annotations

import io
import math
import random
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jali
from fuzz_python.hostile import (
    CHECKSUM,
    CIPHERTEXT,
    DOUBLES,
    HEADER,
    INTEGERS,
    OTHERS,
    PLAINTEXT,
    field,
    seal,
)
from fuzz_python.registry import OPERATIONS
from fuzz_python.world import world
from jali import ckks


class Case:
    """One program on its way: its choices, what it has loaded and computed, and its steps so
    far."""

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
            few = np.linspace(-1, 1, 8)
            self.ciphertexts.append(w.client.encrypt(few.reshape(2, 4) if self.rare() else few))
        for x in self.ciphertexts:
            if (v := self.step("bind", lambda x=x: self.server.bind(x))) is not None:
                self.values.append(v)
        if not self.values:  # for example, if the keys name another client
            self.server = w.server
            self.values.append(self.server.bind(w.client.encrypt(np.linspace(-1, 1, 8))))

    def read(self, kind: Any, data: bytes) -> Any:
        """from_bytes, and to_bytes again: the format is canonical."""
        options = {"params": self.world.params, "max_bytes": 1 << 24}
        if self.rare(0.5):
            loaded = kind.load(io.BytesIO(data), **options)
        else:
            loaded = kind.from_bytes(data, **options)
        file = io.BytesIO()
        loaded.save(file)
        assert loaded.to_bytes() == file.getvalue(), "a file has other bytes than to_bytes()"
        assert file.getvalue() == data, "an object's bytes are not those it was read from"
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
            assert result.evaluator is self.server and result.ndim == len(result.shape)
            assert not result.shape or len(result) == result.shape[0]
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
