"""Small parameters of TFHE, and a client with a server, for tests. The server computes where
JALI_DEVICE says."""

from __future__ import annotations

import numpy as np

from jali import tfhe

__all__ = ["World", "clear_pair", "encrypted", "make", "shows_integers"]


def make(message_bits: int = 2, carry_bits: int = 2, **more: object) -> tfhe.Params:
    arguments = {
        "n": 48,
        "k": 1,
        "N": 512,
        "rotation_gadget": (15, 2),
        "switch_gadget": (5, 4),
        "lwe_noise_bits": 4,
        "glwe_noise_bits": 10,
        "message_bits": message_bits,
        "carry_bits": carry_bits,
        "max_norm2": 40,
        "log2_p_fail": -128,
        "name": "insecure_test",
    }
    return tfhe.Params.create(**{**arguments, **more})


class World:
    def __init__(self, params: tfhe.Params) -> None:
        self.params = params
        self.client = tfhe.Client(params, threads=1)
        self.keys = self.client.evaluation_keys()
        self.server = tfhe.Evaluator(params, self.keys, threads=1)

    def given(self, values: object, **more: int) -> tfhe.EncryptedArray:
        return self.server.bind(self.client.encrypt(values, **more))

    def shows(self, array: tfhe.EncryptedArray, expected: object) -> None:
        found = self.client.decrypt(array)
        assert found.shape == np.shape(expected) == array.shape
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, expected)


def clear_pair(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of a type of NumPy, with its edges; the second has no 0."""
    rng = np.random.default_rng()
    info = np.iinfo(kind)
    a = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    b = rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    a[:3], b[:2] = (info.min, info.max, 0), (info.max, 1)
    b[b == 0] = 3
    return a, b


def encrypted(w: World, a: np.ndarray) -> tfhe.EncryptedIntegers:
    encrypt = w.client.encrypt_int if a.dtype.kind == "i" else w.client.encrypt_uint
    bound = w.server.bind(encrypt(a, bits=8 * a.dtype.itemsize))
    assert isinstance(bound, tfhe.EncryptedIntegers)
    return bound


def shows_integers(w: World, x: tfhe.EncryptedIntegers, expected: np.ndarray) -> None:
    found = w.client.decrypt(x)
    assert found.dtype == x.dtype and found.shape == np.shape(expected) == x.shape
    np.testing.assert_array_equal(found, expected)
