"""Clients and servers of exact integers in small rings, which tests share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import seeds

from jali import discrete

#: The smallest ring: 1,024 slots in two rows of 512.
RING = {"log_n": 10, "security": 0, "name": "insecure_test"}


@dataclass(frozen=True)
class World:
    """A client and a server with the same parameters."""

    params: discrete.Params
    client: discrete.Client
    keys: discrete.EvaluationKeys
    server: discrete.Evaluator

    def bind(self, values: Any, **options: Any) -> discrete.EncryptedArray:
        """Encrypts integers and binds them to the server."""
        return self.server.bind(self.client.encrypt(values, **options))

    def shown(self, x: discrete.EncryptedArray) -> Any:
        """The decrypted numbers."""
        return self.client.decrypt(x)


@cache
def world(**arguments: Any) -> World:
    """The world of these arguments of Params.create, with keys for every rotation."""
    params = discrete.Params.create(**({"modulus": 65537, "depth": 3} | RING | arguments))
    with seeds.named(f"world of exact integers {sorted(arguments.items())}"):
        client = discrete.Client(params, threads=1)
        keys = client.evaluation_keys(rotations="powers")
    return World(params, client, keys, discrete.Evaluator(params, keys, threads=1))


def integers(rng: np.random.Generator, low: int, high: int, shape: Any) -> Any:
    """Integers from low to high, ends included, of which some are the ends."""
    values = rng.integers(low, high, shape, dtype=np.int64, endpoint=True)
    flat = values.reshape(-1)
    flat[rng.random(flat.size) < 0.1] = low
    flat[rng.random(flat.size) < 0.1] = high
    return values
