"""More than a hundred calls that a newcomer guesses: each does what NumPy's does, or is refused in
a sentence of ours.

CALLS is the list for a vector, ROW_CALLS for an array of several axes. ``works`` names the clear
result; ``refused`` the words of the sentence that matter; ``either`` both, for arrays whose
abilities still grow; ``python`` the words of Python's own error, where nothing can be hooked in.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import array_world
import numpy as np
import pytest

import jali
from jali import ckks

X, Y = np.array([0.5, -0.25, 1.0, 0.125]), np.array([0.1, 0.2, 0.3, 0.4])
V = np.array([1.0, 2.0, -1.0, 0.5])
W = np.arange(16.0).reshape(4, 4) / 16
R = np.arange(24.0).reshape(4, 6) / 24


@dataclass(frozen=True)
class Expected:
    """What a call must do. result: compared after decryption; None for any. words: of the refusal,
    as a pattern."""

    result: Any = None
    words: str = ""
    works: bool = True
    by_python: bool = False


def works(result: Any = None) -> Expected:
    return Expected(result=result)


def refused(words: str) -> Expected:
    return Expected(words=words, works=False)


def either(result: Any) -> Expected:
    return Expected(result=result, words=".")


def python(words: str) -> Expected:
    return Expected(words=words, works=False, by_python=True)


def unfit(words: str) -> Expected:
    """A call that does not fit the signature: Python's own error, which names the function and the
    argument."""
    return Expected(words=rf"^[\w.]+\(\) .*{words}", works=False, by_python=True)


class Torch:
    """An array of another library, which NumPy can read."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return V


CALLS: dict[str, Expected] = {
    # Arithmetic.
    "x + y": works(X + Y),
    "x - 1": works(X - 1),
    "1 - x": works(1 - X),
    "-x": works(-X),
    "+x": works(X),
    "x * y": works(X * Y),
    "2 * x": works(2 * X),
    "v * x": works(V * X),
    "v - x": works(V - X),
    "x * [1, 2, -1, 0.5]": works(X * V),
    "np.float64(2) * x": works(2 * X),
    "np.float32(0.5) + x": works(0.5 + X),
    "x / 2": works(X / 2),
    "x / v": works(X / V),
    "x ** 2": works(X**2),
    "x ** 3": works(X**3),
    "x += 1": works(X + 1),
    "x *= y": works(X * Y),
    "1 / x": refused("functions.inverse"),
    "x / y": refused("functions.inverse"),
    "x ** 0.5": refused(r"whole number from 1, not 0.5: .* ckks.functions.sqrt\(\(low, high\)\)"),
    "x ** -1": refused(r"inverse\(\(low, high\)\)"),
    "x.cumsum()": refused(r"np.tri\(len\(x\)\) @ x"),
    "np.tri(len(x)) @ x": either(np.cumsum(X)),
    "x.prod()": refused(r"x\[0\] \* x\[1\]"),
    "np.partition(x, 1)": refused("not put in order"),
    "2 ** x": refused("functions.exp"),
    "x // 2": refused("cannot be rounded.*use /"),
    "x % 2": refused("cannot be rounded"),
    "divmod(x, 2)": refused("cannot be rounded"),
    "x << 1": refused(r"multiply by 2.0 \*\* n"),
    "x & y": refused("a \\* b is and"),
    "~x": refused("no bits"),
    "x + 'a'": refused("a number or an array of numbers, not 'a'"),
    "x + None": refused("a number or an array of numbers, not None"),
    "x + np.ones(5)": refused("5"),
    "x / 0": refused("division by zero"),
    "x + float('nan')": refused("NaN"),
    # Functions of NumPy.
    "np.add(x, y)": works(X + Y),
    "np.subtract(v, x)": works(V - X),
    "np.multiply(v, x)": works(V * X),
    "np.square(x)": works(X**2),
    "np.negative(x)": works(-X),
    "np.divide(x, 2)": works(X / 2),
    "np.power(x, 2)": works(X**2),
    "np.shape(x)": works((4,)),
    "np.copy(x)": works(X),
    "np.add(x, y, out=v)": refused("takes no out"),
    "np.exp(x)": refused("functions.exp"),
    "np.sqrt(x)": refused("functions.sqrt"),
    "np.abs(x)": refused("functions.absolute"),
    "np.maximum(x, 0)": refused("functions.maximum"),
    "np.where(x > 0, x, 0)": refused("compared"),
    "np.where(True, x, 0)": refused("functions.step"),
    "np.clip(x, 0, 1)": refused("not put in order"),
    "np.sort(x)": refused("not put in order"),
    "np.argmax(x)": either(2),
    "np.allclose(x, y)": refused("decrypt them first"),
    "np.isnan(x)": refused("decrypt them first"),
    "np.sin(x)": refused("numpy.sin does not compute on encrypted"),
    "np.array(x)": refused("decrypt it first"),
    "np.save('x.npy', x)": refused("ciphertext.save"),
    "np.mean(x)": either(X.mean()),
    "np.sum(x)": either(X.sum()),
    "np.sum(x, axis=0)": either(X.sum()),
    "np.std(x)": either(X.std()),
    "np.dot(x, y)": either(X @ Y),
    "np.dot(x, 2)": works(2 * X),
    "np.dot(0.5, x)": works(X / 2),
    "np.dot(2j, x)": works(2j * X),
    "np.dot(x, np.float64(2))": works(2 * X),
    "np.dot(x, 'a')": refused("an operand must be"),
    "np.matmul(W, x)": either(W @ X),
    "np.roll(x, 1)": refused(r"np.concatenate\(\[x\[-k:\], x\[:-k\]\]\)"),
    "np.concatenate([x, y])": either(np.concatenate([X, Y])),
    "np.linalg.norm(x)": refused("functions.sqrt"),
    "np.outer(x, y)": refused(r"write x\[:, None\] \* y"),
    "np.multiply.outer(x, y)": refused(r"write x\[:, None\] \* y"),
    "np.tensordot(x, y, 1)": refused(r"\(x \* y\).sum"),
    "np.average(x, weights=v)": refused(r"\(x \* weights\).sum\(axis\) / weights.sum"),
    "np.add.reduce(x)": either(X.sum()),
    "np.add.reduce(x, axis=None)": either(X.sum()),
    "np.prod(x)": refused(r"x\[0\] \* x\[1\]"),
    "np.cumsum(x)": refused(r"np.tri\(len\(x\)\) @ x"),
    "np.diff(x)": refused(r"x\[1:\] - x\[:-1\]"),
    "np.tile(x, 2)": refused(r"np.concatenate\(\[x, y\]\)"),
    "np.append(x, 1)": refused(r"np.concatenate\(\[x, y\]\)"),
    "np.repeat(x, 2)": refused("np.broadcast_to"),
    "np.column_stack([x, y])": refused(r"np.stack\(\[x, y\], axis\)"),
    "np.array_split(x, 3)": refused(r"np.split\(x, \[i, j\]\)"),
    "np.flipud(x)": refused(r"np.flip\(x, 0\)"),
    "np.atleast_2d(x)": refused(r"x\[None\]"),
    "np.real(x)": refused(r"x.conj\(\)\) / 2"),
    "np.iscomplexobj(x)": refused("x.dtype"),
    "np.zeros_like(x)": refused(r"np.zeros\(x.shape\)"),
    "np.triu(x)": refused(r"np.triu\(np.ones\(x.shape\)\)"),
    "np.take(x, [0])": refused("selection matrix"),
    # Arrays.
    "x.shape": works((4,)),
    "x.ndim": works(1),
    "x.size": works(4),
    "len(x)": works(4),
    "x[0]": either(X[0]),
    "x[1:3]": either(X[1:3]),
    "x[[0, 2]]": either(X[[0, 2]]),
    "x[0] = 1": refused("never change"),
    "list(x)": either(X),
    "sum(x)": either(X.sum()),
    "x.sum()": either(X.sum()),
    "x.mean()": either(X.mean()),
    "x.dot(y)": either(X @ Y),
    "x @ y": either(X @ Y),
    "x @ W": either(X @ W),
    "W @ x": either(W @ X),
    "x * Fraction(1, 4)": works(X / 4),
    "np.multiply(x, Fraction(1, 4))": works(X / 4),
    "x * Fraction(10**400)": refused("too large for a double"),
    "x / Fraction(0)": refused("division by zero"),
    "x / range(4)": refused("holds a zero"),
    "x * range(3)": refused("make them equal"),
    "x * Decimal(2)": refused(r"write float\(value\)"),
    "Decimal(2) * x": refused(r"write float\(value\)"),
    "x + Decimal(2)": refused(r"write float\(value\)"),
    "Decimal(2) + x": refused(r"write float\(value\)"),
    "x - Decimal(2)": refused(r"write float\(value\)"),
    "Decimal(2) - x": refused(r"write float\(value\)"),
    "x / Decimal(2)": refused(r"write float\(value\)"),
    "Decimal(2) / x": refused("functions.inverse"),
    "x.dot(Decimal(2))": refused(r"write float\(value\)"),
    "np.matrix(W) * x": refused(r"np.asarray\(M\) \* x for element by element, or M @ x"),
    "x * np.matrix(W)": refused("M @ x for the product"),
    "x + np.matrix(W)": refused("np.asarray"),
    "x / np.matrix(W)": refused("np.asarray"),
    "np.asarray(np.matrix(W)) * x": works(W * X),
    "np.matrix(W) @ x": works(W @ X),
    "x @ np.matrix(W)": works(X @ W),
    "W @ (x * 1j)": refused(r"write \(matrix \* x\).sum\(-1\)"),
    "(x * 1j) @ W": refused(r"write \(matrix \* x\).sum\(-1\)"),
    "server.matvec(ckks.MatVec(W, params), x * 1j)": refused("takes real vectors"),
    "(W * 1j) @ x": refused(r"write matrix.real @ x \+ 1j \* \(matrix.imag @ x\) for"),
    "x @ (W * 1j)": refused(r"write matrix.real @ x \+ 1j \* \(matrix.imag @ x\) for"),
    "(W * 1j)[:, :3] @ x[:3]": refused(r"write matrix.real @ x \+ 1j \* \(matrix.imag @ x\) for"),
    "W.dot(x)": refused("write matrix @ x instead of matrix.dot"),
    "x.T": either(X.T),
    "x.reshape(2, 2)": either(X.reshape(2, 2)),
    "x.reshape(2, 2, order='F')": works(X.reshape(2, 2, order="F")),
    "x.ravel()": works(X),
    "x.flatten()": works(X),
    "x.squeeze()": works(X),
    "x.swapaxes(0, 0)": works(X),
    "x.swapaxes(0)": unfit("missing 1 required .*argument: 'second'"),
    "np.ravel(x)": works(X),
    "x.real": either(X.real),
    "x.max()": refused("not put in order"),
    "x.argmax()": refused("functions.argmax"),
    "x.dtype": either(None),
    "x.astype(int)": refused("never rounded"),
    "x.tolist()": refused("Client.decrypt"),
    "x.relu()": refused("functions.relu"),
    "x.all()": refused("no truth values"),
    "x.nonzero()": refused("no truth values"),
    "x.take([0, 2])": refused("selection matrix"),
    "x.trace()": refused("np.eye"),
    "x.repeat(2)": refused("np.concatenate"),
    "x.flat": refused("reshape"),
    "x.nbytes": refused("ciphertext.nbytes"),
    "x.device": refused("evaluator.device"),
    "x.worst_case_error": refused("ckks.worst_case_error"),
    "x.magnitude": refused("with_magnitude"),
    "x.peak": refused("write x.ciphertext.peak"),
    "x.ciphertext.peak": works(1.0),
    "(x + x).ciphertext.peak": works(2.0),
    "x.with_magnitude(1, peak=1.5).ciphertext.peak": works(1.5),
    "x * 1e300": refused("^the factor 1e.300 is too large"),
    "x.square()": refused(r"x \*\* n"),
    "x.polyval([1, 2])": refused("evaluator.polynomial"),
    "x.to_bytes()": refused("x.ciphertext.to_bytes"),
    "x.rotate(1)": works([-0.25, 1.0, 0.125, 0.0]),
    "x.rotate(1.5)": refused("whole number of slots, not 1.5"),
    "x.rotate('1')": refused("whole number of slots, not '1'"),
    "x.rotate(k=1)": unfit("unexpected keyword argument 'k'"),
    "x.rotate()": unfit("missing 1 required .*argument: 'steps'"),
    "x.rotate(100)": either(np.zeros(4)),
    # What Python does with any object.
    "abs(x)": refused("functions.absolute"),
    "float(x)": refused("Client.decrypt"),
    "int(x)": refused("Client.decrypt"),
    "round(x)": refused("rounded"),
    "math.sqrt(x)": refused("Client.decrypt"),
    "bool(x)": refused("no truth value"),
    "1 if x else 2": refused("no truth value"),
    "x == y": refused("cannot be compared"),
    "x > 0": refused("cannot be compared"),
    "max(x, y)": refused("cannot be compared"),
    "sorted([x, y])": refused("cannot be compared"),
    "0.5 in x": either(None),
    "hash(x)": works(),
    "repr(x)": works(),
    "print(x)": works(),
    "f'{x}'": works(),
    "f'{x:.2f}'": refused("decrypt it first"),
    "copy.copy(x)": works(X),
    "copy.deepcopy(x)": works(X),
    "copy.copy(ct)": works(X),
    "pickle.dumps(x)": refused("to_bytes"),
    "pickle.dumps(ct)": refused("to_bytes"),
    "pickle.dumps(client)": refused("secret key"),
    "json.dumps(x)": python("not JSON serializable"),
    # Who can decrypt.
    "client.decrypt(x)": works(X),
    "client.decrypt(server_side)": works(X * Y),
    "client.decrypt(ct)": works(X),
    "x.decrypt()": refused("Client.decrypt"),
    "server.decrypt(x)": refused("holds no secret key"),
    "ckks.decrypt(x)": refused("client.decrypt"),
    "client.decrypt(v)": refused("not ndarray"),
    "client.decrypt([x, y])": refused("not list"),
    "client.decrypt()": unfit("missing 1 required .*argument: 'value'"),
    "client.secret_key": refused("stays inside"),
    "client.release(x)": unfit("missing 1 required .*argument: 'policy'"),
    # Encryption.
    "client.encrypt([0.5, -0.25, 1.0, 0.125])": works(X),
    "client.encrypt(torch)": works(V),
    "client.encrypt(range(4))": works(np.arange(4)),
    "client.encrypt('abc')": refused("numeric|numbers"),
    "client.encrypt(None)": refused("numbers"),
    "client.encrypt([1, 'a'])": refused("numbers"),
    "client.encrypt([[1, 2], [3]])": refused("not an array of numbers"),
    "client.encrypt(3)": either([3.0]),
    "client.encrypt(x)": refused("decrypt it first"),
    "client.encrypt([1.0], scale=2**40)": unfit("unexpected keyword argument 'scale'"),
    "client.encrypt()": unfit("missing 1 required .*argument: 'values'"),
    "ckks.encrypt([1, 2])": refused("Client"),
    "server.encrypt([1, 2])": refused("client encrypts"),
    "server.bind(v)": refused("ckks.Ciphertext, not ndarray"),
    "server.bind(ct)": works(X),
    # Making things.
    "ckks.Params()": refused("Params.create"),
    "ckks.Params(128)": refused("Params.create"),
    "ckks.Params.create()": refused("depth"),
    "ckks.Params.create(levels=3)": refused('no argument "levels": it takes depth'),
    "ckks.Params.create(3, 40, 14)": refused("by name"),
    "ckks.Params.preset('n14')": refused("n14"),
    "ckks.Params.preset(14)": refused("name of Params.preset must be a string, not 14"),
    "ckks.Client()": unfit("missing 1 required .*argument: 'params'"),
    "ckks.Client(depth=3)": unfit("unexpected keyword argument 'depth'"),
    "ckks.Client(3)": refused("ckks.Params, not int"),
    "ckks.Evaluator(params, [1, 2])": refused("EvaluationKeys, not list"),
    "ckks.Evaluator(params, keys, 'gpu')": refused("gpu"),
    "ckks.Ciphertext()": refused("Client.encrypt"),
    "ckks.EvaluationKeys()": refused("Client.evaluation_keys"),
    "ckks.ckks_vector(client, [1, 2])": refused("evaluator.bind"),
    "ckks.Context()": refused("Params.create"),
    "client.evaluation_keys(3)": refused("rotations"),
    "client.evaluation_keys(rotation=[1])": unfit("unexpected keyword argument 'rotation'"),
    "client.relin_keys()": refused("evaluation_keys"),
    "client.decrypt(bare.bind(ct) * bare.bind(ct))": refused("relinearisation"),
    "bare.bind(ct).rotate(1)": refused("rotation"),
    # Functions, polynomials and matrices.
    "ckks.sigmoid(x)": refused("functions.sigmoid"),
    "ckks.functions.sigmoid(x)": refused("interval"),
    "ckks.functions.exp((1, -1))": refused("low < high"),
    "ckks.functions.sigmoid(-4, 4)": unfit("takes .*positional argument"),
    "ckks.functions.sigmoid((-1, 1), eps=1)": unfit("unexpected keyword argument 'eps'"),
    "ckks.functions.log()": unfit("missing 1 required .*argument: 'interval'"),
    "ckks.functions.sigmoid((-1, 1), degree=3)()": unfit("missing 1 required .*argument: 'x'"),
    "ckks.functions.sigmoid((-1, 1), degree=3)(x)": works(),
    "ckks.functions.maximum(2.0, error=0.3)(x)": unfit("missing 1 required .*argument: 'b'"),
    "ckks.functions.maximum(2.0, error=0.3)(x, v)": refused("encrypt the other operand, too"),
    "x.refresh()": refused("x.bootstrap"),
    "x.encrypt()": refused("it is encrypted"),
    "server.polynomial(x, [0, 0, 1])": works(X**2),
    "server.polynomial([0, 0, 1], x)": refused("not an array"),
    "ckks.Polynomial('x**2')": refused("coefficients"),
    "ckks.Polynomial()": refused("needs coefficients"),
    "ckks.MatVec(W)": refused("needs params"),
    "ckks.MatVec(params, W)": refused("params of MatVec must be a ckks.Params"),
    "server.matvec(W, x)": refused("ckks.MatVec"),
    "server.add(x, y)": refused(r"x \+ y"),
    "server.rotate(x, 1)": refused("x.rotate"),
    # Ciphertexts, bytes and files.
    "ct + ct": refused("bind"),
    "x.reshape(2, 2, size=4)": unfit("unexpected keyword argument 'size'"),
    "x.swapaxes(1)": unfit("missing 1 required .*argument: 'second'"),
    "x.mean(0, 1, 2)": unfit("takes .*positional argument"),
    "ct * 2": refused("bind"),
    "ct[0]": refused("bind"),
    "ct.shape": works((4,)),
    "ckks.Ciphertext.from_bytes(ct.to_bytes(), params)": works(X),
    "ckks.Ciphertext.from_bytes(ct.to_bytes())": refused("needs params"),
    "ckks.Ciphertext.from_bytes(ct.to_bytes(), client)": refused("must be a ckks.Params"),
    "ckks.Ciphertext.from_bytes('abc', params)": refused("give bytes"),
    "ckks.Ciphertext.from_bytes(b'abc', params)": refused("end is missing"),
    "ckks.Ciphertext.from_bytes(keys.to_bytes(), params)": refused("evaluation keys, not a"),
    "ckks.Ciphertext.load('none.bin', params)": refused("none.bin cannot be read"),
    "ckks.Ciphertext.load(3, params)": refused("a path, a file"),
    "keys.save('/no/such/folder/keys')": refused("cannot be written"),
    "keys.has_rotation(1)": works(True),
    "params.level('top')": refused("level of Params.level must be a whole number"),
    "params.key_bytes(5)": refused("must be a sequence"),
    "ckks.worst_case_error(x)": refused("must be a ckks.Ciphertext"),
    "ckks.sum_rotations('a')": refused("power of two"),
    "ckks.ReleasePolicy(40)": refused("by name: origin"),
}

#: Calls of arrays of several axes: ``rows`` is the encryption of R, and `m` a place for results.
ROW_CALLS: dict[str, Expected] = {
    # Arguments of NumPy's methods.
    "rows.sum(dtype=float)": unfit("unexpected keyword argument 'dtype'"),
    "rows.sum(0, 1, 2, 3)": unfit("takes .*positional argument"),
    "rows.mean(dtype=float)": unfit("unexpected keyword argument 'dtype'"),
    "rows.var(axis=0, mean=1)": unfit("unexpected keyword argument 'mean'"),
    "rows.reshape(6, 4, order='F')": refused("without moving its numbers"),
    "rows.reshape(4, 6, order='F')": works(R),
    "rows.T.reshape(24, order='F')": works(R.ravel()),
    "rows.reshape(6, 4, order='C')": works(R.reshape(6, 4)),
    "rows.reshape(6, 4, order='K')": refused('order must be "C" or "F", not \'K\''),
    "rows.ravel('F')": refused("without moving its numbers"),
    "rows.T.ravel('F')": works(R.ravel()),
    "rows.flatten('F')": refused("without moving its numbers"),
    "rows.flatten('C')": works(R.ravel()),
    "np.reshape(rows.T, 24, order='F')": works(R.ravel()),
    "np.ravel(rows.T, 'F')": works(R.ravel()),
    "rows.transpose(axes=(1, 0))": unfit("unexpected keyword argument 'axes'"),
    "rows.transpose((1, 0))": works(R.T),
    "rows.swapaxes(1)": unfit("missing 1 required .*argument: 'second'"),
    "rows.squeeze(0, 1)": unfit("takes .*positional argument"),
    "rows.dot()": unfit("missing 1 required .*argument: 'other'"),
    "rows.dot(rows, 1)": unfit("takes .*positional argument"),
    "rows.with_magnitude()": unfit("missing 1 required .*argument: 'magnitude'"),
    "rows.conj(1)": unfit("takes .*positional argument"),
    "rows.rotate()": unfit("missing 1 required .*argument: 'steps'"),
    "rows * np.matrix(R)": refused("M @ x for the product"),
    "np.matrix(R) * rows": refused("M @ x for the product"),
    "np.matrix(W) @ rows": works(W @ R),
    "rows @ np.matrix(R.T)": works(R @ R.T),
    # Functions of NumPy.
    "np.concatenate([rows, rows], axis=None)": works(np.concatenate([R, R], axis=None)),
    "np.concatenate([rows, rows], axis=(0,))": refused("axis must be a whole number, not \\(0,\\)"),
    "np.stack([rows, rows], axis=None)": refused("axis must be a whole number, not None"),
    "np.split(rows, 2, axis=None)": refused("axis must be a whole number, not None"),
    "np.broadcast_to(rows, 3)": refused(r"the shapes \(4, 6\) and \(3,\) do not fit"),
    "np.broadcast_to(rows, 'a')": refused("a shape must be a whole number from 1 or a tuple"),
    "np.broadcast_to(rows, (0, 4, 6))": refused("a shape must be a whole number from 1"),
    "np.broadcast_to(rows[:1, :1].reshape(1), 3)": works([0, 0, 0]),
    "np.dot(rows, np.ones((6, 4)), out=m)": refused('has no argument "out": it takes a, b'),
    "np.sum(rows, 0, float)": refused("too many positional arguments: it takes x, axis"),
    "np.sum(rows, 0, keepdims=True)": works(R.sum(0, keepdims=True)),
    "np.mean(rows, dtype=float)": refused('has no argument "dtype": it takes x, axis, keepdims'),
    "np.var(rows, 0, float)": refused("too many positional arguments: it takes x, axis, ddof"),
    "np.vstack([])": python("at least one array"),
}

#: What never may be the whole answer.
FOREIGN = re.compile(
    "incompatible function arguments|no constructor|unsupported operand|has no attribute '|"
    "__array_ufunc__|object is not|got an unexpected keyword"
)


@pytest.fixture(scope="module")
def names() -> Mapping[str, Any]:
    params = ckks.Params.create(depth=3)
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys(rotations=[1, 2, *ckks.sum_rotations(params.slots)])
    server = ckks.Evaluator(params, keys, threads=1)
    bare = ckks.Evaluator(params, threads=1)
    ct = client.encrypt(X, peak=1)
    x, y = server.bind(ct), server.bind(client.encrypt(Y, peak=1))
    mine = {"params": params, "client": client, "keys": keys, "server": server, "bare": bare}
    mine |= {"ct": ct, "x": x, "y": y, "server_side": x * y, "v": V, "W": W, "torch": Torch()}
    # The rows of a reshaped vector lie without gaps.
    rows = server.bind(client.encrypt(R.ravel(), peak=1)).reshape(4, 6)
    mine |= {"rows": rows, "R": R, "m": np.zeros((4, 4))}
    return mine | {
        "ckks": ckks,
        "np": np,
        "Decimal": Decimal,
        "Fraction": Fraction,
        "copy": copy,
        "json": json,
        "math": math,
        "pickle": pickle,
    }


def run(call: str, names: Mapping[str, Any]) -> Any:
    here = dict(names)
    try:
        code = compile(call, call, "eval")
    except SyntaxError:
        exec(call, here)  # an assignment
        return here["x"]
    return eval(code, here)


def clear(client: ckks.Client, result: Any) -> Any:
    if isinstance(result, ckks.EncryptedArray | ckks.Ciphertext):
        return client.decrypt(result)
    if isinstance(result, list) and result and isinstance(result[0], ckks.EncryptedArray):
        return np.concatenate([np.atleast_1d(client.decrypt(r)) for r in result])
    return result


@pytest.mark.parametrize("name", [name for name in dir(np.ndarray) if not name.startswith("_")])
def test_attributes_of_numpy_arrays_exist_or_are_refused(
    names: Mapping[str, Any], name: str
) -> None:
    rows = names["server"].bind(names["client"].encrypt(W))
    for array in (names["x"], rows):
        try:
            getattr(array, name)
        except jali.Unsupported as error:
            assert not FOREIGN.search(str(error))


def test_the_trace_of_a_matrix_is_the_sum_that_its_refusal_names(names: Mapping[str, Any]) -> None:
    client = names["client"]
    server = ckks.Evaluator(names["params"], client.evaluation_keys(rotations="powers"))
    rows = server.bind(client.encrypt(W))
    assert client.decrypt((rows * np.eye(4)).sum()) == pytest.approx(np.trace(W), abs=1e-5)
    assert np.allclose(client.decrypt(np.broadcast_to(rows[0], (2, 4))), [W[0], W[0]], atol=1e-5)


#: What refusals advise to write, and what it stands for.
INSTEAD: dict[str, str] = {
    "x[:, None] * y": "np.outer(x, y)",
    "(x * v).sum(0) / v.sum()": "np.average(x, weights=v)",
    "np.tri(len(x)) @ x": "np.cumsum(x)",
    "x[1:] - x[:-1]": "np.diff(x)",
    "np.split(x, [2])[0]": "np.array_split(x, 2)[0]",
    "np.flip(rows, 0)": "np.flipud(rows)",
    "np.flip(rows, 1)": "np.fliplr(rows)",
    "np.flip(rows.T, 0)": "np.rot90(rows)",
    "x[None]": "np.atleast_2d(x)",
    "rows * np.triu(np.ones(rows.shape))": "np.triu(rows)",
    "np.concatenate([x[-1:], x[:-1]])": "np.roll(x, 1)",
    "np.concatenate([rows[:, -2:], rows[:, :-2]], axis=1)": "np.roll(rows, 2, axis=1)",
    "(lambda d: d.T @ d / 4)(rows - rows.mean(axis=0, keepdims=True))": "np.cov(rows.T, ddof=0)",
}


@pytest.mark.parametrize("call", INSTEAD)
def test_what_refusals_advise_computes_the_same(call: str) -> None:
    small = array_world.small()
    clear = {"np": np, "x": X, "y": Y, "rows": R, "v": V}
    here = clear | {name: small.bind(clear[name]) for name in ("x", "y", "rows")}
    with pytest.raises(jali.Unsupported):
        eval(INSTEAD[call], dict(here))
    small.check(eval(call, dict(here)), eval(INSTEAD[call], clear))


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("call", [*CALLS, *ROW_CALLS])
def test_call(call: str, names: Mapping[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    expected = (CALLS | ROW_CALLS)[call]
    try:
        result = run(call, names)
    except Exception as error:
        assert expected.words, f"{call} was refused: {error}"
        assert re.search(expected.words, str(error)), str(error)
        if not expected.by_python:
            assert isinstance(error, jali.Error), f"{type(error).__name__}: {error}"
            assert not FOREIGN.search(str(error)), str(error)
        return
    assert expected.works, f"{call} gave {result!r}"
    if expected.result is not None:
        got = clear(names["client"], result)
        assert np.allclose(got, expected.result, atol=1e-4), got
    assert not list(tmp_path.iterdir())


def test_the_list_is_long_and_python_speaks_seldom() -> None:
    assert len(CALLS) >= 100
    every = (CALLS | ROW_CALLS).values()
    assert sum(e.by_python and not e.words.startswith("^") for e in every) <= 5


def test_names_that_are_refused_are_not_there(names: Mapping[str, Any]) -> None:
    x = names["x"]
    for thing, name in ((x, "tolist"), (names["client"], "secret_key"), (ckks, "encrypt")):
        assert not hasattr(thing, name) and name not in dir(thing)
        assert getattr(thing, name, None) is None
    with pytest.raises(AttributeError):
        x.mean_of_everything  # noqa: B018


def test_errors_of_a_wrong_call_are_typeerrors(names: Mapping[str, Any]) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: names["x"].ciphertext.save("a", mode="wb"),
        lambda: names["x"] + "a",
        lambda: ckks.Params(),
        lambda: ckks.Params.create(levels=3),
    ]
    for call in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert isinstance(caught.value, jali.InvalidArgument)


def test_a_typeerror_from_inside_is_left_alone(names: Mapping[str, Any]) -> None:
    def function(_: Any) -> Any:
        raise TypeError("of the user's own function")

    with pytest.raises(TypeError, match="user's own"):
        names["server"].capture(function, names["x"])
