"""What newcomers from NumPy, TenSEAL and scikit-learn look for and CKKS does otherwise: a sentence for each name.

A name that a class comes to define loses its sentence by itself.
"""

from __future__ import annotations

from jali._core import refusals
from jali._core.refusals import (
    DECRYPT,
    explain_calls,
    explain_functions,
    refuse_names,
    refuse_operators,
)
from jali.ckks import functions, missing_functions, missing_names
from jali.ckks.array import EncryptedArray
from jali.ckks.captured import Batcher, Captured
from jali.ckks.client import Client, Encryptor
from jali.ckks.dense import DenseArray
from jali.ckks.evaluator import Evaluator
from jali.ckks.shaped import Shaped
from jali.errors import NotOffered

__all__ = ["install", "of_module"]

APPROXIMATE = (
    "ckks.functions.{0}(...) makes a polynomial near it: f = ckks.functions.{0}(...), then f(x)"
)
WHERE = (
    "a condition on encrypted numbers is a number, too: ckks.functions.step(gap=...) of x is 1 where "
    "x > 0 and 0 where x < 0; then compute c * a + (1 - c) * b"
)
ORDER = (
    "encrypted numbers are not put in order: ckks.functions.maximum and argmax compare them, "
    "or decrypt them first"
)
TRUTH = (
    "encrypted numbers have no truth values: the sum of zeros and ones counts the ones, "
    "or decrypt them first"
)
PICKED = (
    "an encrypted array takes whole numbers and slices as an index, and np.stack and np.concatenate put "
    "the parts together: for other choices use a selection matrix (S @ x)"
)
REAL = "write (x + x.conj()) / 2 for the real part, and (x - x.conj()) * -0.5j for the other"
CLEAR_LIKE = (
    "write np.zeros(x.shape), or np.full(x.shape, number): clear numbers take part as they are"
)
ROUNDED = "encrypted numbers cannot be rounded, so that there is no // and no %: use /, or decrypt them first"

#: Attributes of an encrypted array.
ARRAY = {
    **refusals.ARRAY,
    "decode": DECRYPT,
    **{
        name: APPROXIMATE.format(name)
        for name in (
            "sigmoid",
            "tanh",
            "gelu",
            "silu",
            "exp",
            "log",
            "inverse",
            "sqrt",
            "sign",
            "relu",
        )
    },
    **dict.fromkeys(("square", "pow", "power"), "write x ** n for a whole number n from 1"),
    **dict.fromkeys(
        ("div", "divide"), "write x / number, or multiply by ckks.functions.inverse(...) of y"
    ),
    **dict.fromkeys(("neg", "negate"), "write -x"),
    **dict.fromkeys(
        ("matmul", "mm", "mv"), "write matrix @ x, or use Evaluator.matvec with a ckks.MatVec"
    ),
    "dot": "write (x * y).sum() for the sum of products, or matrix @ x",
    "mean": "write x.sum() / len(x), which holds the mean of a vector in every slot",
    "var": "write ((x - mean) ** 2).sum() / len(x) with the mean of x.sum() / len(x)",
    "std": "take ckks.functions.sqrt((low, high)) of the variance ((x - mean) ** 2).sum() / len(x)",
    "abs": APPROXIMATE.format("absolute"),
    "polyval": "write evaluator.polynomial(x, coefficients), with the constant first",
    **dict.fromkeys(("max", "min", "argmin", "sort", "argsort", "median"), ORDER),
    "argmax": "ckks.functions.argmax(count, slots, gap=...) makes a function f, then f(x)",
    "clip": ORDER,
    **dict.fromkeys(
        ("round", "floor", "ceil", "astype", "dtype"),
        "encrypted numbers are approximate, real or complex, and never rounded: decrypt them first",
    ),
    **dict.fromkeys(("real", "imag"), REAL),
    **dict.fromkeys(
        ("roll", "shift"), "write x.rotate(steps): slot i of the result is slot i + steps"
    ),
    **dict.fromkeys(
        ("relinearize", "relinearise", "rescale", "mod_switch"),
        "relinearisation, rescaling and levels are managed for you; Evaluator.explicit does them by hand",
    ),
    **dict.fromkeys(
        ("cumsum", "cumprod", "prod"),
        "it is not computed on encrypted arrays: combine rotate, + and *",
    ),
    **dict.fromkeys(("all", "any", "nonzero"), TRUTH),
    **dict.fromkeys(("take", "compress", "choose", "diagonal"), PICKED),
    "trace": "write (x * np.eye(n)).sum() for the trace of an n by n matrix",
    "repeat": "write np.broadcast_to(x, shape) for copies along a new axis, or np.concatenate for copies one behind the other",
    "flat": "write x.reshape(-1)",
    "mT": "write x.T, or x.transpose(...) with the axes",
    **dict.fromkeys(("searchsorted", "argpartition"), ORDER),
    **dict.fromkeys(
        ("device", "to_device"), "see x.evaluator.device: Evaluator(..., device=...) chooses it"
    ),
    "refresh": "write x.bootstrap()",
    "encrypt": "it is encrypted: Client.encrypt(values) encrypts others",
    "itemset": "encrypted values never change: compute a new one",
    "worst_case_error": "write ckks.worst_case_error(x.ciphertext)",
    "magnitude": "it is declared to Client.encrypt, and x.with_magnitude(...) declares a smaller one",
    "peak": "write x.ciphertext.peak: it is declared to Client.encrypt, and x.with_magnitude(..., peak=) declares a smaller one",
}

#: Operators of an encrypted array.
ARRAY_OPERATORS = {
    "__getitem__": "slots of an encrypted array are not taken one by one: rotate it by x.rotate(i), "
    "multiply it by a mask of zeros and ones, or decrypt it first",
    "__setitem__ __delitem__": "encrypted values never change: compute a new one, for example x * mask + other * (1 - mask)",
    "__abs__": APPROXIMATE.format("absolute"),
    "__float__ __int__ __complex__": DECRYPT,
    "__round__ __floor__ __ceil__ __trunc__": ROUNDED,
    "__floordiv__ __rfloordiv__ __mod__ __rmod__ __divmod__ __rdivmod__": ROUNDED,
    "__rpow__": "an encrypted exponent is not possible: ckks.functions.exp(...) makes a polynomial near exp(x)",
    "__lshift__ __rlshift__ __rshift__ __rrshift__": "bits of encrypted numbers cannot be shifted: "
    "multiply by 2.0 ** n; x.rotate(n) moves slots",
    "__and__ __rand__ __or__ __ror__ __xor__ __rxor__ __invert__": "encrypted numbers have no bits: for "
    "0 and 1, a * b is and, a + b - a * b is or, 1 - a is not",
    "__matmul__": "encrypted values on the left of @ are not multiplied by a matrix: write matrix.T @ x "
    "for x @ matrix, and (x * y).sum() for x @ y",
}

#: Functions of NumPy.
NUMPY = {
    **{name: APPROXIMATE.format(name) for name in ("exp", "log", "sqrt", "tanh", "sign")},
    "absolute": APPROXIMATE.format("absolute"),
    "reciprocal": APPROXIMATE.format("inverse"),
    **dict.fromkeys(("maximum", "fmax"), "f = ckks.functions.maximum(bound), then f(x, y)"),
    **dict.fromkeys(("minimum", "fmin"), "f = ckks.functions.minimum(bound), then f(x, y)"),
    **dict.fromkeys(("where", "heaviside", "select"), WHERE),
    **dict.fromkeys(("sort", "argsort", "max", "min", "amax", "amin", "median", "clip"), ORDER),
    "argmax": ARRAY["argmax"],
    **dict.fromkeys(
        ("allclose", "array_equal", "isclose", "isnan", "isfinite"), "decrypt them first"
    ),
    "roll": "write np.concatenate([x[-k:], x[:-k]]) for np.roll(x, k), along another axis with axis=; "
    "x.rotate(-k) of a vector moves it in all of its slots",
    "matmul": ARRAY_OPERATORS["__matmul__"],
    **dict.fromkeys(
        ("concatenate", "stack", "vstack", "hstack"), "encrypt the numbers together, as one array"
    ),
    **dict.fromkeys(("save", "savez", "savetxt"), ARRAY["save"]),
    "power": "write x ** n for a whole number n from 1",
    **dict.fromkeys(
        ("floor_divide", "remainder", "fmod", "divmod", "rint", "floor", "ceil", "round"), ROUNDED
    ),
    "polyval": ARRAY["polyval"],
    **dict.fromkeys(("inner", "vdot", "einsum", "tensordot", "convolve"), ARRAY["dot"]),
    **dict.fromkeys(
        ("outer", "kron", "multiply.outer"), "write x[:, None] * y for all products of two numbers"
    ),
    **dict.fromkeys(("add.reduce", "nansum"), "write x.sum(axis)"),
    "average": "write (x * weights).sum(axis) / weights.sum(), or x.mean(axis)",
    **dict.fromkeys(
        ("cov", "corrcoef"),
        "write d.T @ d / n for the n rows of d = x - x.mean(axis=0, keepdims=True)",
    ),
    **dict.fromkeys(
        ("prod", "multiply.reduce"), "write x[0] * x[1], and x ** n for n equal factors"
    ),
    **dict.fromkeys(("cumsum", "add.accumulate"), "write np.tri(len(x)) @ x"),
    "norm": "take ckks.functions.sqrt((low, high)) of (x * x).sum()",
    "diff": "write x[1:] - x[:-1]",
    **dict.fromkeys(
        ("tile", "append", "pad", "insert"),
        "np.concatenate([x, y]) puts arrays one behind the other, and np.broadcast_to copies one",
    ),
    "repeat": ARRAY["repeat"],
    **dict.fromkeys(
        ("column_stack", "dstack", "block"),
        "np.stack([x, y], axis) and np.concatenate([x, y], axis) put arrays together",
    ),
    "array_split": "write np.split(x, [i, j]), which takes the places at which parts begin",
    "flipud": "write np.flip(x, 0)",
    "fliplr": "write np.flip(x, 1)",
    "rot90": "write np.flip(x.T, 0)",
    "atleast_2d": "write x[None]",
    **dict.fromkeys(("real", "imag"), REAL),
    "iscomplexobj": "see x.dtype",
    "result_type": "see x.dtype",
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "empty_like"), CLEAR_LIKE),
    **dict.fromkeys(("trace", "diagonal", "diag"), ARRAY["trace"]),
    **dict.fromkeys(("triu", "tril"), "write x * np.triu(np.ones(x.shape)), or np.tril(...)"),
    **dict.fromkeys(("take", "delete"), PICKED),
}

COMPUTE = "bind ciphertexts to an Evaluator, x = evaluator.bind(ciphertext), and write x + y, x * y, x.rotate(1)"
SECRET = "the secret key stays inside the Client: save(path) and secret_to_bytes() store it"
MANAGED = "relinearisation, rescaling and levels are managed for you; Evaluator.explicit does them by hand"

CLIENT_CALL = (
    "a client is not called: client.encrypt(values) encrypts, and client.decrypt(x) decrypts"
)
EVALUATOR_CALL = (
    "an evaluator is not called: x = evaluator.bind(ciphertext) makes an array that computes, and "
    "evaluator.capture(f, x) records a function of it"
)

CLIENT = {
    **dict.fromkeys(("secret_key", "sk", "key", "private_key"), SECRET),
    **dict.fromkeys(
        (
            "keys",
            "relin_keys",
            "relin_key",
            "galois_keys",
            "rotation_keys",
            "generate_keys",
            "generate_galois_keys",
            "generate_relin_keys",
            "keygen",
        ),
        "evaluation_keys(rotations=[...]) makes the keys for products and rotations together",
    ),
    **dict.fromkeys(
        ("encode", "decode"),
        "encrypt encodes and decrypt decodes; Evaluator.explicit.encode makes a Plaintext",
    ),
    **dict.fromkeys(("add", "sub", "multiply", "mul", "rotate", "dot", "bind"), COMPUTE),
    **dict.fromkeys(
        ("to_bytes", "serialize"),
        "secret_to_bytes() gives the bytes of the secret key, public_key().to_bytes() those of the public one",
    ),
    "from_bytes": "from_secret_bytes(data, params) reads the bytes of secret_to_bytes()",
    "depth": "see params.depth",
    "slots": "see params.slots",
}

EVALUATOR = {
    **dict.fromkeys(
        ("encrypt", "encrypt_vector"),
        "the client encrypts, Client.encrypt(values), and others with an Encryptor; the evaluator binds the result",
    ),
    "decrypt": "an evaluator holds no secret key: Client.decrypt(x) gives the numbers",
    **dict.fromkeys(
        (
            "add",
            "sub",
            "subtract",
            "multiply",
            "mul",
            "square",
            "negate",
            "rotate",
            "sum",
            "conjugate",
            "dot",
        ),
        COMPUTE,
    ),
    **dict.fromkeys(("relinearize", "relinearise", "rescale", "mod_switch", "encode"), MANAGED),
    "bootstrap": "write x.bootstrap()",
    **dict.fromkeys(
        ("keys", "secret_key"),
        "it was given its keys: keep them, or save them with EvaluationKeys.save(path)",
    ),
}

#: Names that jali.ckks does not have.
MODULE = {
    "encrypt": "a client encrypts: ckks.Client(params).encrypt(values)",
    "decrypt": "a client decrypts: client.decrypt(x)",
    **dict.fromkeys(
        ("ckks_vector", "ckks_tensor", "CKKSVector", "CKKSTensor", "array", "vector"),
        "evaluator.bind(client.encrypt(values)) makes an encrypted array",
    ),
    **dict.fromkeys(
        ("context", "Context", "SCHEME_TYPE", "EncryptionParameters", "create"),
        "ckks.Params.create(depth=...) makes parameters, ckks.Client(params) the keys",
    ),
    **dict.fromkeys(
        ("KeyGenerator", "keygen", "SecretKey", "RelinKeys", "GaloisKeys", "Decryptor"),
        "ckks.Client(params) makes and holds the secret key; its evaluation_keys() and public_key() are for others",
    ),
    **dict.fromkeys(
        ("Encoder", "CKKSEncoder", "encode"),
        "Client.encrypt encodes; Evaluator.explicit.encode makes a Plaintext",
    ),
    "load": "each class reads its own: Ciphertext.load(path, params), EvaluationKeys.load, PublicKey.load, Client.load, Params.load(path)",
    "save": "each object saves itself: x.ciphertext.save(path), keys.save(path), client.save(path)",
}


def of_module(name: str) -> NotOffered:
    """The error for a name that jali.ckks does not have."""
    if name in functions.__all__:
        sentence = f"it is in ckks.functions: f = ckks.functions.{name}(...), then f(x)"
    elif name in missing_functions.FUNCTIONS:
        sentence = missing_functions.FUNCTIONS[name]
    else:
        sentence = MODULE.get(name, "dir(jali.ckks) lists what there is")
    return NotOffered(f"jali.ckks has no {name}: {sentence}")


def install() -> None:
    """Gives the classes of jali.ckks their sentences."""
    missing_names.install()
    refuse_names(EncryptedArray, ARRAY)
    refuse_operators(EncryptedArray, ARRAY_OPERATORS)
    EncryptedArray._hints = NUMPY
    refuse_names(Client, CLIENT)
    refuse_operators(Client, {"__call__": CLIENT_CALL})
    refuse_names(Evaluator, EVALUATOR)
    refuse_operators(Evaluator, {"__call__": EVALUATOR_CALL})
    explain_calls(EncryptedArray, constructor=False)
    explain_calls(Shaped, constructor=False, named="EncryptedArray")
    explain_calls(DenseArray, constructor=False, named="EncryptedArray")
    for kind in (Client, Encryptor, Evaluator, Captured, Batcher):
        explain_calls(kind)
    for made in (functions.Function, functions.Maximum, functions.ArgMax):
        explain_calls(made)
    explain_functions(functions, "ckks.functions")
