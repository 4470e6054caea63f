"""Exact integers modulo a number, many in one ciphertext: sums, products and moves of arrays (the
schemes BGV and BFV).

The owner of the data makes a ``Client``, which holds the secret key. Whoever computes makes an
``Evaluator`` from public keys, and binds ciphertexts to it:

    params = discrete.Params.create(integers=32, depth=2)
    client = discrete.Client(params)
    server = discrete.Evaluator(params, client.evaluation_keys())
    x = server.bind(client.encrypt(np.array([3, -1, 7], dtype=np.int8)))
    client.decrypt(x * x + 1)

Numbers are signed, and results are exact. Every array knows the range in which its numbers lie
(``EncryptedArray.range``). An operation whose result may leave what the modulus tells apart is
refused before it computes, unless ``wrap`` says that arithmetic modulo ``params.modulus`` is meant.
So is one whose noise would make numbers wrong (``EncryptedArray.noise_budget``).

What needs the size of a number, such as comparison and division, is not arithmetic modulo a number:
``jali.tfhe`` computes it on encrypted integers one by one.
"""

from __future__ import annotations

import sys as _sys

from jali._core.refusals import of_module as _of_module
from jali._jali.discrete import Ciphertext, EvaluationKeys, Params, PublicKey
from jali.discrete.array import EncryptedArray
from jali.discrete.captured import Batcher, BatchPoint, Captured
from jali.discrete.client import Client, Encryptor
from jali.discrete.evaluator import Evaluator
from jali.discrete.matrix import Matrix
from jali.discrete.refusals import install as _install
from jali.discrete.selection import select


def __getattr__(name: str) -> object:
    raise _of_module(__name__, name)


__all__ = [
    "BatchPoint",
    "Batcher",
    "Captured",
    "Ciphertext",
    "Client",
    "EncryptedArray",
    "Encryptor",
    "EvaluationKeys",
    "Evaluator",
    "Matrix",
    "Params",
    "PublicKey",
    "select",
]

_install(_sys.modules[__name__])
