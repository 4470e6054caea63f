"""What newcomers from NumPy look for in encrypted arrays of TFHE and do not find: a sentence for each name and operator.

A name that a class comes to define loses its sentence by itself.
"""

from __future__ import annotations

from jali._core import refusals
from jali._core.refusals import DECRYPT, explain_calls, refuse_names, refuse_operators
from jali._jali.tfhe import Ciphertext, EvaluationKeys, Params
from jali.tfhe.array import EncryptedArray
from jali.tfhe.client import Client
from jali.tfhe.evaluator import Evaluator
from jali.tfhe.integers import EncryptedIntegers
from jali.tfhe.shaped import Shaped

__all__ = ["install"]

FRACTIONS = "whole numbers have no fractions: divide x.sum() by the count with //, or decrypt first"
NEVER = "encrypted values never change: compute a new one, or Evaluator.select(condition, new, x)"
LOOKED_UP = "look it up: evaluator.apply(lambda v: (v * v) % 4, x) takes any function of a message"
ORDER = "messages are not put in order: encrypt_int and encrypt_uint make integers, which are"
PRODUCT = "write it element by element: x[0] * x[1], x[0] + x[1]"

#: Attributes of encrypted arrays of both kinds.
ARRAY = {
    **refusals.ARRAY,
    **dict.fromkeys(("mean", "var", "std", "round"), FRACTIONS),
    **dict.fromkeys(("prod", "cumprod", "cumsum"), PRODUCT),
    "any": "combine the elements of x != 0 with |",
    "all": "combine the elements of x != 0 with &",
    "nonzero": "which numbers are 0 is encrypted, too: (x != 0).sum() counts the others",
    "searchsorted": "write (x < v).sum() for the place of the number v in sorted x",
    **dict.fromkeys(("real", "conj", "conjugate"), "whole numbers are real: write x"),
    "imag": "whole numbers are real, and have no imaginary part: leave it out",
    "take": "write x[[0, 2]], with clear places",
    "compress": "write x[[True, False, True]], with clear truth values",
    "choose": "write evaluator.select(condition, x, y)",
    "repeat": "write x[np.repeat(np.arange(len(x)), count)]",
    "diagonal": "write x[np.arange(n), np.arange(n)] for the diagonal of an n by n matrix",
    "trace": "write x[np.arange(n), np.arange(n)].sum() for the trace of an n by n matrix",
    "flat": "write x.ravel()",
    "mT": "write x.swapaxes(-1, -2)",
    **dict.fromkeys(
        ("device", "to_device"), "see x.evaluator.engine: Evaluator(..., device=...) chooses it"
    ),
}

#: Attributes of arrays of messages.
MESSAGES = {
    **ARRAY,
    **dict.fromkeys(("argmax", "argmin", "argsort", "sort", "max", "min"), ORDER),
    **dict.fromkeys(("maximum", "minimum", "partition", "argpartition"), ORDER),
    "clip": "look it up: evaluator.apply(lambda v: min(max(v, 1), 2), x)",
    "astype": "messages have one type: encrypt_int and encrypt_uint make integers, which have astype",
    "dot": "write x @ weights for clear weights, or (x * y).sum() for two encrypted arrays",
}

#: Attributes of arrays of integers.
INTEGERS = {
    **ARRAY,
    "clip": "write x.maximum(lowest).minimum(largest)",
    **dict.fromkeys(
        ("argsort", "argpartition"),
        "the places of all numbers are not computed: x.sort() sorts them, x.argmin() and x.argmax() find one place",
    ),
    "partition": "write x.sort()",
}

OPERATORS = {
    "__setitem__ __delitem__": NEVER,
    "__int__ __float__ __complex__ __index__": DECRYPT,
    "__round__ __floor__ __ceil__ __trunc__": FRACTIONS,
    "__lshift__ __rlshift__ __rshift__ __rrshift__ __pow__ __rpow__ __abs__ __truediv__ __rtruediv__": LOOKED_UP,
}


CONSTANT = "it never changes: use it again as it is, no copy is needed"
BYTES = "to_bytes() gives its bytes"
DEGREE = "params.N is the degree of polynomials, and params.n the dimension of small ciphertexts"
ENDLESS = "every look-up gives fresh noise, so that a computation may be as long as you like"
ALONE = "a ciphertext alone cannot compute: x = evaluator.bind(ciphertext)"
HOLDER = "tfhe.Client(params) makes the keys, and encrypts and decrypts with them"

PARAMS = {
    **dict.fromkeys(("log_n", "degree", "ring_degree", "poly_modulus_degree"), DEGREE),
    **dict.fromkeys(("depth", "levels", "level"), ENDLESS),
    **dict.fromkeys(("slots", "slot_count"), "every number is a ciphertext of its own: no slots"),
    **dict.fromkeys(("encrypt", "decrypt", "keygen", "generate_keys"), HOLDER),
    **dict.fromkeys(("save", "serialize", "dump", "dumps"), BYTES),
    "load": "Params.from_bytes(data) reads what to_bytes() gave",
    "copy": CONSTANT,
}

KEYS = {
    **dict.fromkeys(
        ("rotations", "has_rotation", "galois_keys"),
        "arrays of TFHE move their elements without keys: write x[[1, 2, 0]]",
    ),
    **dict.fromkeys(("serialize", "dump", "dumps"), f"{BYTES}, and save(path) writes them"),
    "copy": CONSTANT,
}

CIPHERTEXT = {
    **{
        name: ALONE
        for kind in (EncryptedArray, EncryptedIntegers)
        for name in dir(kind)
        if not name.startswith("_")
    },
    **dict.fromkeys(
        ("decrypt", "decode", "tolist", "item", "numpy", "to_numpy"),
        "only the client can see the numbers: Client.decrypt(ciphertext) gives them as a NumPy array",
    ),
    **dict.fromkeys(
        ("serialize", "dump", "dumps", "tobytes"), f"{BYTES}, and save(path) writes them"
    ),
    "copy": CONSTANT,
    "bind": ALONE,
}

EVALUATOR = {
    **dict.fromkeys(
        ("encrypt", "encrypt_int", "encrypt_uint"),
        "the client encrypts, Client.encrypt(values); the evaluator binds the result",
    ),
    "decrypt": "an evaluator holds no secret key: Client.decrypt(x) gives the numbers",
    "bootstrap": "refresh(x) gives fresh noise, and every look-up does",
}

CLIENT_CALL = (
    "a client is not called: client.encrypt(values) encrypts, and client.decrypt(x) decrypts"
)
EVALUATOR_CALL = (
    "an evaluator is not called: x = evaluator.bind(ciphertext) makes an array that computes, and "
    "evaluator.apply(f, x) looks up a function of it"
)


def install() -> None:
    """Gives the classes of jali.tfhe their sentences."""
    refuse_names(Params, PARAMS)
    refuse_names(EvaluationKeys, KEYS)
    refuse_names(Evaluator, EVALUATOR)
    refuse_operators(Client, {"__call__": CLIENT_CALL})
    refuse_operators(Evaluator, {"__call__": EVALUATOR_CALL})
    for kind, names in ((EncryptedArray, MESSAGES), (EncryptedIntegers, INTEGERS)):
        refuse_names(kind, names)
        refuse_operators(kind, OPERATORS)
        explain_calls(kind, constructor=False)
    refuse_names(Ciphertext, CIPHERTEXT)
    explain_calls(Shaped, constructor=False, named="EncryptedArray")
    for called in (Client, Evaluator):
        explain_calls(called)
