"""Which classes of jali.tfhe refuse operators, and answer unknown names. The sentences are in
refusals.toml."""

from __future__ import annotations

from types import ModuleType

from jali._core.refusals import answer, refuse_operators
from jali.tfhe.array import EncryptedArray
from jali.tfhe.client import Client
from jali.tfhe.encryptor import Encryptor
from jali.tfhe.evaluator import Evaluator
from jali.tfhe.integers import EncryptedIntegers

__all__ = ["install"]

#: Of messages and of integers: numbers in the clear, fractions, and assignments.
OPERATORS = """
    __rmatmul__ __setitem__ __delitem__ __int__ __float__ __complex__ __index__ __round__ __floor__ __ceil__ __trunc__
"""
#: Of messages alone: operators that a look-up computes.
OF_MESSAGES = """
    __lshift__ __rlshift__ __rshift__ __rrshift__ __pow__ __rpow__ __abs__ __truediv__ __rtruediv__
"""


def install(*modules: ModuleType) -> None:
    """Lets the public classes of these modules answer unknown names, and refuse operators."""
    answer(*modules)
    refuse_operators(EncryptedArray, f"{OPERATORS} {OF_MESSAGES}")
    refuse_operators(EncryptedIntegers, OPERATORS)
    for called in (Client, Encryptor, Evaluator):
        refuse_operators(called, "__call__")
