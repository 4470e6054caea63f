"""What newcomers from NumPy look for in encrypted arrays of TFHE and do not find: a sentence for each name and operator.

A name that a class comes to define loses its sentence by itself.
"""

from __future__ import annotations

from types import MappingProxyType

from jali._core import refusals
from jali._core.refusals import DECRYPT, explain_calls, refuse_names, refuse_operators
from jali._jali.tfhe import Ciphertext, CompactCiphertext, EvaluationKeys, Params, PublicKey
from jali.tfhe.array import EncryptedArray
from jali.tfhe.client import Client
from jali.tfhe.encryptor import Encryptor
from jali.tfhe.evaluator import Evaluator
from jali.tfhe.integers import EncryptedIntegers
from jali.tfhe.shaped import Shaped

__all__ = ["install"]

# Every sentence that says what to write has the code, and tests/python/test_tfhe_advice.py runs it.

MEAN = "whole numbers have no fractions: write x.sum() // x.size for the mean rounded down, or decrypt first"
SPREAD = "whole numbers have no fractions: decrypt first, client.decrypt(x).std()"
NEVER = "encrypted values never change: compute a new one, or Evaluator.select(condition, new, x)"
LOOKED_UP = "look it up: evaluator.apply(lambda v: (v * v) % 4, x) takes any function of a message"
FRACTIONS = "whole numbers have no fractions: write x // 2, with a clear number, for the quotient rounded down, or decrypt first"
ORDER = (
    "messages are not put in order, and integers are: encrypt them as such, "
    "x = evaluator.bind(client.encrypt_uint(values, bits=2))"
)
PRODUCT = "evaluator.apply(lambda a, b: a * b % 4, u, v)"

#: Attributes of encrypted arrays of both kinds.
ARRAY = {
    **refusals.ARRAY,
    "mean": MEAN,
    **dict.fromkeys(("var", "std"), SPREAD),
    **dict.fromkeys(("round", "around"), "whole numbers are round: write x"),
    "nonzero": "which numbers are 0 is encrypted, too: (x != 0).sum() counts the others",
    "searchsorted": "write (x < v).sum() for the place of the number v in sorted x",
    **dict.fromkeys(("real", "conj", "conjugate"), "whole numbers are real: write x"),
    "imag": "whole numbers are real, and have no imaginary part: leave it out",
    "take": "write x[[0, 2]], with clear places",
    "compress": "write x[[True, False, True]], with clear truth values",
    "repeat": "write x[np.repeat(np.arange(x.size), 2)]",
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
    "any": "write functools.reduce(operator.or_, x != 0)",
    "all": "write functools.reduce(operator.and_, x != 0)",
    "prod": f"write functools.reduce(lambda u, v: {PRODUCT}, x), modulo the message",
    "cumprod": f"write list(itertools.accumulate(x, lambda u, v: {PRODUCT})), modulo the message",
    "cumsum": "write list(itertools.accumulate(x)), if the sums have room",
    **dict.fromkeys(("argmax", "argmin", "argsort", "sort", "max", "min"), ORDER),
    **dict.fromkeys(("maximum", "minimum", "partition", "argpartition"), ORDER),
    "choose": "write evaluator.apply(lambda c: (3, 1, 2, 0)[c], x) for clear numbers",
    "clip": "look it up: evaluator.apply(lambda v: min(max(v, 1), 2), x)",
    "astype": "messages have one type: encrypt_int and encrypt_uint make integers, which have astype",
    "dot": "write x @ weights for clear weights, or (x * y).sum() for two encrypted arrays",
}

#: Attributes of arrays of integers.
INTEGERS = {
    **ARRAY,
    "any": "write (x != 0).max()",
    "all": "write (x != 0).min()",
    "prod": 'write functools.reduce(operator.mul, x.astype("int64")): products have the bits of their factors',
    "cumprod": 'write list(itertools.accumulate(x.astype("int64"), operator.mul))',
    "cumsum": 'write list(itertools.accumulate(x.astype("int64")))',
    "choose": "write evaluator.read([30, 10, 20], x) for clear numbers, or evaluator.select(condition, x, y)",
    "clip": "write x.maximum(1).minimum(2)",
    **dict.fromkeys(
        ("argsort", "argpartition"),
        'write (x.astype("int32") * x.size + np.arange(x.size)).sort() % x.size for the places of one axis in sorted order; '
        "x.argmin() and x.argmax() find one place",
    ),
    "partition": "write x.sort()",
}

#: Functions of NumPy that are no attributes, for both kinds.
FUNCTIONS = {
    "roll": "write x[np.roll(np.arange(x.size), 1)] for one axis",
    "flip": "write x[::-1]",
    "tile": "write x[np.tile(np.arange(x.size), 2)]",
    **dict.fromkeys(("expand_dims", "atleast_2d"), "write x.reshape(1, -1)"),
    **dict.fromkeys(("concatenate", "hstack", "append"), "write evaluator.concatenate([x, y])"),
    **dict.fromkeys(
        ("stack", "vstack"),
        "write evaluator.concatenate([x.reshape(1, -1), y.reshape(1, -1)])",
    ),
    "count_nonzero": "write (x != 0).sum()",
    "diff": "write x[1:] - x[:-1]",
    "outer": "write x.reshape(-1, 1) * y",
    "average": "write (x @ weights) // sum(weights), rounded down",
}

#: Functions of NumPy, of arrays of messages.
OF_MESSAGES = {
    **FUNCTIONS,
    "median": ORDER,
    "isin": "write evaluator.apply(lambda v: v in (1, 3), x)",
    "array_equal": "write functools.reduce(operator.and_, x == y)",
    "where": "write evaluator.apply(lambda v, c: v if c else 0, x, condition) + "
    "evaluator.apply(lambda v, c: 0 if c else v, y, condition)",
}

#: Functions of NumPy, of arrays of integers.
OF_INTEGERS = {
    **FUNCTIONS,
    "median": "write x.sort()[x.size // 2] for the number in the middle",
    "isin": "write functools.reduce(operator.or_, [x == v for v in (1, 3)])",
    "array_equal": "write (x == y).min()",
    "where": "write evaluator.select(condition, x, y)",
    **dict.fromkeys(("inner", "vdot"), "write (x * y).sum(), whose products have the bits of x"),
}

INDEX = "only the client can see the numbers, Client.decrypt(x). For an encrypted index into a clear list write "
INDEX_OF_MESSAGES = INDEX + "evaluator.apply([3, 1, 2, 0], x)"
INDEX_OF_INTEGERS = INDEX + "evaluator.read([30, 10, 20], x)"

OPERATORS = {
    "__rmatmul__": "write x @ weights, with clear weights on the right",
    "__setitem__ __delitem__": NEVER,
    "__int__ __float__ __complex__": DECRYPT,
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
    **dict.fromkeys(("serialize", "dump", "dumps"), f"{BYTES}, and save(path) writes them"),
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

PUBLIC_KEY = {
    **dict.fromkeys(
        ("encrypt", "encrypt_int", "encrypt_uint"),
        "Encryptor(params, key) encrypts with a public key: encryptor.encrypt(values)",
    ),
    "decrypt": "a public key decrypts nothing: Client.decrypt(ciphertext) gives the numbers",
    **dict.fromkeys(("serialize", "dump", "dumps"), f"{BYTES}, and save(path) writes them"),
    "copy": CONSTANT,
}

ENCRYPTOR = {
    "decrypt": "an encryptor holds no secret key: the client whose public key it has decrypts",
    "evaluation_keys": "an encryptor holds no secret key: Client.evaluation_keys() makes them",
    "bind": "the evaluator binds: evaluator.bind(ciphertext)",
}
ENCRYPTOR_CALL = "an encryptor is not called: encryptor.encrypt(values) encrypts"

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
        "the client encrypts, Client.encrypt_uint(values, bits=8), or Encryptor.encrypt_uint with its public key; the evaluator binds "
        "the result, and takes clear numbers by evaluator.clear_uint(values, bits=8)",
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
    for kind, names, functions, index in (
        (EncryptedArray, MESSAGES, OF_MESSAGES, INDEX_OF_MESSAGES),
        (EncryptedIntegers, INTEGERS, OF_INTEGERS, INDEX_OF_INTEGERS),
    ):
        refuse_names(kind, names)
        refuse_operators(kind, {**OPERATORS, "__index__": index})
        kind._hints = MappingProxyType({**names, **functions})
        explain_calls(kind, constructor=False)
    for sent in (Ciphertext, CompactCiphertext):
        refuse_names(sent, CIPHERTEXT)
    refuse_names(PublicKey, PUBLIC_KEY)
    refuse_names(Encryptor, ENCRYPTOR)
    refuse_operators(Encryptor, {"__call__": ENCRYPTOR_CALL})
    explain_calls(Shaped, constructor=False, named="EncryptedArray")
    for called in (Client, Encryptor, Evaluator):
        explain_calls(called)
