"""Ciphertexts that no client made: bytes of every form that docs/format.md allows, with random
words, through every public method.

Each call gives a result whose bytes can be read again, or one jali.Error. A method that the test
does not call is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali import tfhe
from jali._core.refusals import is_refusal

PARAMS = tfhe.Params.create(
    n=16,
    k=1,
    N=256,
    rotation_gadget=(15, 2),
    switch_gadget=(5, 4),
    lwe_noise_bits=4,
    glwe_noise_bits=10,
    message_bits=2,
    carry_bits=2,
    max_norm2=25,
    log2_p_fail=-128,
    name="insecure_test",
)
CLIENT = tfhe.Client(PARAMS, threads=1)
SERVER = tfhe.Evaluator(PARAMS, CLIENT.evaluation_keys(), threads=1)
ROW = 8 * (PARAMS.k * PARAMS.N + 1)

# What a method takes besides, as far as it takes anything; of integers, numbers are those of their
# type.
Call = Callable[[Any, Any], Any]
SHARED: dict[str, Call] = {
    "T": lambda x, _: x.T,
    "astype": lambda x, _: x.astype("uint4"),
    "ciphertext": lambda x, _: x.ciphertext,
    "dtype": lambda x, _: x.dtype,
    "evaluator": lambda x, _: x.evaluator,
    "flatten": lambda x, _: x.flatten(),
    "largest": lambda x, _: x.largest,
    "ndim": lambda x, _: x.ndim,
    "norm2": lambda x, _: x.norm2,
    "params": lambda x, _: x.params,
    "ravel": lambda x, _: x.ravel(),
    "reshape": lambda x, _: x.reshape(-1, 1),
    "shape": lambda x, _: x.shape,
    "size": lambda x, _: x.size,
    "squeeze": lambda x, _: x.squeeze(),
    "sum": lambda x, _: x.sum(),
    "swapaxes": lambda x, _: x.swapaxes(0, -1),
    "transpose": lambda x, _: x.transpose(),
    **{
        name: lambda x, y, name=name: getattr(x, name)(y)
        for name in [
            "__add__",
            "__sub__",
            "__mul__",
            "__floordiv__",
            "__mod__",
            "__and__",
            "__or__",
            "__xor__",
            "__eq__",
            "__ne__",
            "__lt__",
            "__le__",
            "__gt__",
            "__ge__",
        ]
    },
    "__radd__": lambda x, _: 1 + x,
    "__rsub__": lambda x, _: 1 - x,
    "__rmul__": lambda x, _: 2 * x,
    "__rand__": lambda x, _: 1 & x,
    "__ror__": lambda x, _: 1 | x,
    "__rxor__": lambda x, _: 1 ^ x,
    "__rmod__": lambda x, _: 3 % x,
    "__rfloordiv__": lambda x, _: 3 // x,
    "copy": lambda x, _: x.copy(),
    "__neg__": lambda x, _: -x,
    "__pos__": lambda x, _: +x,
    "__invert__": lambda x, _: ~x,
    "__getitem__": lambda x, _: x[..., ::-1],
    "__iter__": lambda x, _: next(iter(x)),
    "__len__": lambda x, _: len(x),
    "__matmul__": lambda x, _: x @ np.ones(x.shape[-1:], int),
    "__repr__": lambda x, _: repr(x),
}
OF_ARRAYS: dict[str, Call] = {
    name: lambda x, y, name=name: getattr(x, name)(y)
    for name in ["nand", "nor", "xnor", "andny", "andyn", "orny", "oryn"]
}
OF_INTEGERS: dict[str, Call] = {
    **{name: lambda x, _, name=name: getattr(x, name) for name in ("bits", "is_signed")},
    **{
        name: lambda x, _, name=name: getattr(x, name)()
        for name in [
            "leading_zeros",
            "trailing_zeros",
            "ilog2",
            "sort",
            "max",
            "min",
            "argmax",
            "argmin",
        ]
    },
    **{
        name: lambda x, y, name=name: getattr(x, name)(y)
        for name in [
            "minimum",
            "maximum",
            "divmod",
            "__divmod__",
            "add_overflow",
            "subtract_overflow",
            "multiply_overflow",
            "__lshift__",
            "__rshift__",
            "rotate_left",
            "rotate_right",
        ]
    },
    "dot": lambda x, _: x.dot(np.ones(x.shape[-1:], int)),
    "__abs__": lambda x, _: abs(x),
    "__pow__": lambda x, _: x**3,
    "__rpow__": lambda x, _: 2**x,
    "__truediv__": lambda x, y: x / y,
    "__rtruediv__": lambda x, _: 1 / x,
    "__rdivmod__": lambda x, _: divmod(1, x),
    "__rlshift__": lambda x, _: 1 << x,
    "__rrshift__": lambda x, _: 1 >> x,
}
OF_EVALUATORS: dict[str, Call] = {
    "apply": lambda x, y: SERVER.apply(lambda v, w: (v + w) % 4, x, y),
    "apply_each": lambda x, _: SERVER.apply_each(
        [lambda v: v % 4] * (x.shape[-1] if x.shape else 1), x
    ),
    "apply_all": lambda x, _: SERVER.apply_all(tfhe.Table(PARAMS, range(16)), x),
    "bind": lambda x, _: SERVER.bind(x.ciphertext),
    "capture": lambda x, _: SERVER.capture(lambda a: a, x)(x),
    "clear": lambda x, _: SERVER.clear([1]) + x,
    "clear_int": lambda x, _: SERVER.clear_int([-1], getattr(x, "bits", 3)) + x,
    "clear_uint": lambda x, _: SERVER.clear_uint([1], getattr(x, "bits", 3)) + x,
    "concatenate": lambda x, y: SERVER.concatenate([x, y]),
    "linear": lambda x, _: SERVER.linear(np.ones(x.shape[-1:], int), x, largest=15),
    "read": lambda x, y: SERVER.read(x, y),
    "refresh": lambda x, _: SERVER.refresh(x),
    "select": lambda x, y: SERVER.select(x > 0, x, y),
    "engine": lambda *_: SERVER.engine,
    "transform": lambda *_: SERVER.transform,
    "synchronize": lambda *_: SERVER.synchronize(),
    "trace": lambda *_: SERVER.trace(),
    "key_id": lambda *_: SERVER.key_id,
    "key_bytes": lambda *_: SERVER.key_bytes,
    "params": lambda *_: SERVER.params,
}
REFUSED = {"__bool__", "__float__", "__complex__", "__int__", "__index__", "__array__", "__hash__"}


def hostile(rng: random.Random) -> tfhe.Ciphertext:
    """An array of messages or of integers whose every field is drawn."""
    integers = rng.random() < 0.6
    bits = rng.choice([1, 2, 3, 5, 6]) if integers else 0
    digits = (bits + 1) // 2 if integers else 1
    shape = rng.choice([[], [1], [2], [2, 1]])
    count = digits * int(np.prod(shape, dtype=int))
    payload = bytes.fromhex(rng.choice([CLIENT.key_id, CLIENT.key_id, "00" * 16]))
    degrees = [rng.choice([0, 1, 3, 3, 3, 15]) for _ in range(count)]
    several = len(set(degrees)) > 1
    payload += struct.pack("<BI", 4 + 2 * several, count)
    noise = rng.choice([0.0, 5e-324, 0.5, 1.0, 1.0, 4.0, 25.0])
    payload += struct.pack("<d", noise)
    payload += struct.pack(
        f"<{len(degrees) if several else 1}H", *(degrees if several else degrees[:1])
    )
    payload += struct.pack("<BBB", bits, integers and rng.random() < 0.5, len(shape))
    payload += struct.pack(f"<{len(shape)}I", *shape)
    rows = rng.choice([bytes(count * ROW), b"\xff" * (count * ROW), rng.randbytes(count * ROW)])
    payload += rows if noise else bytes(count * ROW)  # what has no noise has no mask
    data = b"JALI" + struct.pack("<HBB", 1, 3, 3) + bytes.fromhex(PARAMS.fingerprint)
    data += struct.pack("<Q", len(payload)) + payload
    return tfhe.Ciphertext.from_bytes(data + hashlib.sha256(data).digest()[:16], PARAMS)


def sound(result: Any) -> None:
    """Its figures are numbers, its bytes can be read again, and a client decrypts or refuses it."""
    if isinstance(result, tuple):
        for one in result:
            sound(one)
    if isinstance(result, (tfhe.EncryptedArray, tfhe.EncryptedIntegers)):
        ciphertext = result.ciphertext
        assert np.isfinite(ciphertext.norm2) and 0 <= ciphertext.norm2 <= PARAMS.max_norm2
        assert 0 <= ciphertext.largest <= 15
        data = ciphertext.to_bytes()
        again = tfhe.Ciphertext.from_bytes(data, PARAMS)
        assert again.to_bytes() == data and again.shape == result.shape
        assert CLIENT.decrypt(ciphertext, check=False).shape == result.shape
        with contextlib.suppress(jali.WrongDecryption):
            CLIENT.decrypt(ciphertext)


def public(kind: type) -> set[str]:
    """Its methods and properties, and the operators that it defines."""
    inherited = set(dir(object)) - {
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__repr__",
    }
    own = {n for n in dir(kind) if not n.startswith("_") or n.startswith("__")} - inherited
    members = {n: inspect.getattr_static(kind, n) for n in own}
    own -= {n for n, member in members.items() if is_refusal(member)}
    plumbing = {
        "__slots__",
        "__module__",
        "__init__",
        "__reduce__",
        "__array_ufunc__",
        "__array_function__",
        "__array_priority__",
        "__pandas_priority__",
        "__copy__",
        "__deepcopy__",
        "__abstractmethods__",
        "__dict__",
        "__weakref__",
        "__annotations__",
        "__static_attributes__",
        "__firstlineno__",
        "__orig_bases__",
        "__parameters__",
    }
    return own - plumbing - REFUSED


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (tfhe.EncryptedArray, SHARED | OF_ARRAYS),
        (tfhe.EncryptedIntegers, SHARED | OF_INTEGERS),
        (
            tfhe.Evaluator,
            OF_EVALUATORS
            | dict.fromkeys(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")),
        ),
    ],
)
def test_every_public_method_is_called(kind: type, calls: dict[str, Call]) -> None:
    assert public(kind) - set(calls) - {"__repr__"} == set()


def test_hostile_arrays_give_results_or_errors() -> None:
    seed = random.SystemRandom().getrandbits(64)
    rng = random.Random(seed)
    outcomes = {True: 0, False: 0}
    calls = (
        SHARED | OF_ARRAYS | OF_INTEGERS | {f"Evaluator.{n}": c for n, c in OF_EVALUATORS.items()}
    )
    for name, call in calls.items():
        for _ in range(6):
            x, y = (SERVER.bind(hostile(rng)) for _ in range(2))
            if rng.random() < 0.7:  # of one kind more often than not
                y = x
            if rng.random() < 0.2:
                y = 1
            try:
                result = call(x, y)
                ok = True
            except jali.Error:
                ok = False
            except (AttributeError, TypeError) as error:
                # A method of the other kind, or an operator that an operand does not have.
                other = not hasattr(x, name) and not name.startswith("Evaluator.")
                assert other or "operand" in str(error), f"{name}, seed {seed}: {error!r}"
                continue
            except Exception as error:
                raise AssertionError(f"{name}, seed {seed}: {error!r}") from error
            outcomes[ok] += 1
            if ok:
                try:
                    sound(result)
                except jali.Error as error:
                    raise AssertionError(f"{name}, seed {seed}: {x!r} {y!r}: {error!r}") from error
    assert min(outcomes.values()) > 50, outcomes
