"""CKKS: approximate arithmetic on encrypted vectors of real or complex numbers.

The owner of the data makes a ``Client``, which holds the secret key. Whoever computes makes an
``Evaluator`` from public keys, and binds ciphertexts to it:

    params = ckks.Params.create(depth=3)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(rotations=[1]))
    x = server.bind(client.encrypt(np.array([0.5, -1.25])))
    client.decrypt(x * x + 0.25)

A ciphertext is a vector of ``params.slots`` numbers, or a batch of such vectors. A shorter vector
lies in the first slots, followed by zeros; vectors for a matrix product may lie otherwise. How a
vector lies is remembered (``EncryptedArray.layout``), so that decryption shows its numbers in order
and products refuse what does not fit. A longer vector, a matrix or an array of more axes lies
densely in several vectors, and has NumPy's shapes, slices and sums. Rotations act on all slots of a
vector.

On a GPU, limbs times batch is at most 65,535. The limbs are those of the level and, in products of
ciphertexts and rotations, also those of the special primes. A larger batch raises ``Unsupported``,
which names the largest that is possible. ``Evaluator.map`` keeps its batches below that.
"""

from __future__ import annotations

import sys as _sys

from jali._core.refusals import of_module as _of_module
from jali._jali.ckks import (
    Ciphertext,
    CompactPlaintext,
    EvaluationKeys,
    Layout,
    Level,
    LinearTransform,
    MatVec,
    Params,
    Plaintext,
    Polynomial,
    PublicKey,
    ReleasePolicy,
    Trace,
    max_log_qp,
    worst_case_error,
    worst_case_noise,
)
from jali.ckks import explicit, functions
from jali.ckks.array import EncryptedArray
from jali.ckks.captured import Batcher, BatchPoint, Captured
from jali.ckks.client import Client, Encryptor
from jali.ckks.engine import Engine
from jali.ckks.evaluator import Evaluator, sum_rotations
from jali.ckks.refusals import install as _install


def __getattr__(name: str) -> object:
    raise _of_module(__name__, name)


__all__ = [
    "BatchPoint",
    "Batcher",
    "Captured",
    "Ciphertext",
    "Client",
    "CompactPlaintext",
    "EncryptedArray",
    "Encryptor",
    "Engine",
    "EvaluationKeys",
    "Evaluator",
    "Layout",
    "Level",
    "LinearTransform",
    "MatVec",
    "Params",
    "Plaintext",
    "Polynomial",
    "PublicKey",
    "ReleasePolicy",
    "Trace",
    "explicit",
    "functions",
    "max_log_qp",
    "sum_rotations",
    "worst_case_error",
    "worst_case_noise",
]

_install(_sys.modules[__name__], explicit, functions)
