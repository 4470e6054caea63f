"""TFHE: encrypted small integers and bits, exact, with any function of one or two values by
look-up.

Every look-up is a programmable bootstrapping: its result has fresh noise, so that a computation may
be as long as you like.
"""

from __future__ import annotations

import sys as _sys

from jali._core.refusals import of_module as _of_module
from jali._jali.tfhe import (
    Ciphertext,
    CompactCiphertext,
    EvaluationKeys,
    Params,
    PublicKey,
    Table,
)
from jali.tfhe.array import EncryptedArray
from jali.tfhe.captured import Captured
from jali.tfhe.client import Client
from jali.tfhe.encryptor import Encryptor
from jali.tfhe.evaluator import Evaluator
from jali.tfhe.integers import EncryptedIntegers
from jali.tfhe.refusals import install as _install


def __getattr__(name: str) -> object:
    raise _of_module(__name__, name)


__all__ = [
    "Captured",
    "Ciphertext",
    "Client",
    "CompactCiphertext",
    "EncryptedArray",
    "EncryptedIntegers",
    "Encryptor",
    "EvaluationKeys",
    "Evaluator",
    "Params",
    "PublicKey",
    "Table",
]

_install(_sys.modules[__name__])
