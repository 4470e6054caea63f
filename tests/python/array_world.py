"""What tests of encrypted arrays share: parameters of few slots, and arrays of random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import seeds

from jali import ckks


@dataclass(frozen=True)
class Small:
    """A client and a server with few slots, so that arrays take several vectors."""

    params: ckks.Params
    client: ckks.Client
    server: ckks.Evaluator

    def bind(self, values: Any, **options: Any) -> Any:
        options.setdefault("peak", 2.0)
        return self.server.bind(self.client.encrypt(values, **options))

    def check(self, value: Any, expected: Any) -> None:
        """Asserts that the decryption is within the claimed precision of what is expected."""
        expected = np.asarray(expected)
        got = self.client.decrypt(value)
        assert got.shape == expected.shape == value.shape
        error = np.abs(got - expected).max()
        limit = ckks.worst_case_error(value.ciphertext)
        assert error <= limit, f"error {error:.3g}, bound {limit:.3g}"
        # 12 standard deviations of what is claimed, for up to thousands of numbers
        claimed = 12 * 2.0**-value.precision_bits
        assert error <= claimed, f"error {error:.3g}, claimed {claimed:.3g}"


@cache
def small() -> Small:
    params = ckks.Params.create(
        depth=6, scale_bits=40, log_n=10, security=0, name="insecure_arrays", integer_bits=16
    )
    with seeds.named("small arrays"):
        client = ckks.Client(params, threads=1)
        keys = client.evaluation_keys(rotations="powers", conjugate=True)
    return Small(params, client, ckks.Evaluator(params, keys, threads=1))


def uniform(*shape: int) -> Any:
    return np.random.default_rng().uniform(-1, 1, shape)
