"""Which classes of jali.discrete refuse operators, and answer unknown names. The sentences are in
refusals.toml."""

from __future__ import annotations

from types import ModuleType

from jali._core.refusals import answer, refuse_operators
from jali.discrete.array import EncryptedArray
from jali.discrete.client import Client, Encryptor
from jali.discrete.evaluator import Evaluator

__all__ = ["install"]

#: Divisions, bits, numbers in the clear, and assignments.
OPERATORS = """
    __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __divmod__ __rdivmod__
    __round__ __floor__ __ceil__ __trunc__ __lshift__ __rlshift__ __rshift__ __rrshift__
    __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __invert__ __abs__ __rpow__
    __float__ __int__ __complex__ __index__ __setitem__ __delitem__
"""


def install(*modules: ModuleType) -> None:
    """Lets the public classes of these modules answer unknown names, and refuse operators."""
    answer(*modules)
    refuse_operators(EncryptedArray, OPERATORS)
    for called in (Client, Encryptor, Evaluator):
        refuse_operators(called, "__call__")
