"""What newcomers from NumPy look for in encrypted arrays of TFHE and do not find: a sentence for each name and operator.

A name that a class comes to define loses its sentence by itself.
"""

from __future__ import annotations

from jali._core.refusals import refuse_names, refuse_operators
from jali.tfhe.array import EncryptedArray
from jali.tfhe.integers import EncryptedIntegers

__all__ = ["install"]

DECRYPT = "only the client can see the numbers: Client.decrypt(x) gives them as a NumPy array"
FRACTIONS = "whole numbers have no fractions: divide x.sum() by the count with //, or decrypt first"
NEVER = "encrypted values never change: compute a new one, or Evaluator.select(condition, new, x)"
LOOKED_UP = "look it up: evaluator.apply(lambda v: (v * v) % 4, x) takes any function of a message"
PRODUCT = "write it element by element: x[0] * x[1], x[0] + x[1]"

ARRAY = {
    **dict.fromkeys(("decrypt", "tolist", "item", "numpy", "tobytes", "view"), DECRYPT),
    **dict.fromkeys(("mean", "var", "std", "round"), FRACTIONS),
    **dict.fromkeys(("prod", "cumprod", "cumsum"), PRODUCT),
    "any": "combine the elements of x != 0 with |",
    "all": "combine the elements of x != 0 with &",
    **dict.fromkeys(
        ("argmax", "argmin", "argsort", "sort", "max", "min", "maximum", "minimum"),
        "messages are not put in order: encrypt_int and encrypt_uint make integers, which are",
    ),
    "clip": "write x.maximum(lowest).minimum(largest), of integers",
    **dict.fromkeys(("append", "fill", "put"), NEVER),
    **dict.fromkeys(("add", "plus"), "write x + y"),
    **dict.fromkeys(("sub", "subtract", "minus"), "write x - y"),
    **dict.fromkeys(("mul", "multiply"), "write x * y"),
    **dict.fromkeys(
        ("to_bytes", "serialize", "save", "dump", "dumps"),
        "write x.ciphertext.to_bytes(); the reader binds the ciphertext again",
    ),
}

OPERATORS = {
    "__setitem__ __delitem__": NEVER,
    "__int__ __float__ __complex__ __index__": DECRYPT,
    "__round__ __floor__ __ceil__ __trunc__": FRACTIONS,
    "__lshift__ __rlshift__ __rshift__ __rrshift__ __pow__ __rpow__ __abs__ __truediv__ __rtruediv__": LOOKED_UP,
}


def install() -> None:
    """Gives the arrays of jali.tfhe their sentences."""
    for kind in (EncryptedArray, EncryptedIntegers):
        refuse_names(kind, ARRAY)
        refuse_operators(kind, OPERATORS)
