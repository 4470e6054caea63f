"""Honest parameters, keys and objects, from which a program begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from jali import ckks


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
            self.client.encrypt(np.ones((2, 3)) * 1j, level=1, batch=True).to_bytes(),
            self.client.encrypt(np.ones((2, 3)) * 0.5).to_bytes(),
            ckks.Encryptor(self.client.public_key()).encrypt(v).to_bytes(),
            e.square(x).to_bytes(),
            self.server.bind(x).sum().ciphertext.to_bytes(),
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
