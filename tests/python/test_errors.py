"""Every failure is a jali.Error of its own kind, with a sentence that says what to change."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_world
import numpy as np
import pytest
from conftest import DEPTH, World

import jali
from jali import _jali, ckks, errors


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, np.nan]),
        np.array([np.inf]),
        np.array([1 + 1j * np.inf]),
        np.array(["a", "b"]),
        np.array([{}]),
        np.array([1, 2], dtype="M8[s]"),
        [[1, 2], [3]],
        np.zeros((2, 0, 2)),
        np.float64(3.0),
        3.0,
        np.zeros(0),
        np.zeros((0, 4)),
        None,
        "text",
        {1: 2},
    ],
    ids=str,
)
def test_bad_arrays(one: World, values: Any) -> None:
    with pytest.raises(jali.InvalidArgument) as caught:
        one.client.encrypt(values)
    assert caught.value.code == "invalid_argument"
    assert isinstance(caught.value, ValueError)


def test_bad_operands(one: World) -> None:
    x = one.bind([1.0, 2.0])
    for operand in (
        float("nan"),
        float("inf"),
        np.array([1.0, np.nan]),
        [1, "a"],
        np.array(["a", "b"]),
    ):
        for operation in (lambda v: x + v, lambda v: x * v, lambda v: x - v, lambda v: v - x):
            with pytest.raises(jali.InvalidArgument):
                operation(operand)
    for operand in ("a", None, object(), {}):
        with pytest.raises(TypeError):
            x + operand  # type: ignore[operator]
        with pytest.raises(TypeError):
            operand * x  # type: ignore[operator]
    for bad in (
        lambda: x / 5e-324,
        lambda: x / [5e-324, 1.0],
    ):  # the inverse is too large for a double
        with warnings.catch_warnings(), pytest.raises(jali.InvalidArgument):
            warnings.simplefilter("error")  # no warning of NumPy may reach the user
            bad()
    for bad in (lambda: x / 0, lambda: x / [1, 0], lambda: x**0, lambda: x**-1, lambda: x**0.5):
        with pytest.raises(jali.InvalidArgument):
            bad()
    with pytest.raises(jali.Unsupported):
        x / x
    with pytest.raises(jali.Unsupported):
        bool(x)
    with pytest.raises(jali.Unsupported):
        x == x  # noqa: B015
    with pytest.raises(jali.Unsupported):
        np.asarray(x)


def test_bad_arguments(one: World) -> None:
    client, x = one.client, one.bind([1.0, 2.0])
    slots = one.params.slots
    bad: tuple[Callable[[], object], ...] = (
        lambda: client.encrypt(np.ones((2, slots + 1)), batch=True),
        lambda: client.encrypt(np.ones((2, 8)), slots=4, batch=True),
        lambda: client.encrypt(np.ones(3), slots=3),
        lambda: client.encrypt(np.ones(3), slots=2 * slots),
        lambda: client.encrypt(np.ones(3), slots=0),
        lambda: client.encrypt(np.ones(3), level=DEPTH + 1),
        lambda: client.encrypt(np.ones(3), level=-1),
        lambda: client.encrypt(np.ones(3), level=1.5),
        lambda: client.encrypt(np.ones(3), magnitude=0.0),
        lambda: client.encrypt(np.ones(3), magnitude=float("nan")),
        lambda: client.encrypt(np.full(3, 1e9), level=0),
        lambda: client.decrypt(x, length=0),
        lambda: client.decrypt(x, length=slots + 1),
        lambda: client.decrypt(np.ones(3)),
        lambda: client.evaluation_keys(rotations=[1.5]),
        lambda: client.evaluation_keys(rotations=3),
        lambda: client.evaluation_keys(rotations=[2**40]),
        lambda: x.rotate(1.0),
        lambda: x.rotate(True),
        lambda: x.sum(-2),
        lambda: x.sum(count=3),
        lambda: x.sum(count=0),
        lambda: x.sum(count=2 * slots),
        lambda: x.with_length(0),
        lambda: x.with_length(slots + 1),
        lambda: one.server.bind(np.ones(3)),
        lambda: ckks.Evaluator(one.params, threads=0),
        lambda: ckks.Client(one.params, threads=-1),
        lambda: ckks.sum_rotations(3),
        lambda: one.params.level(DEPTH + 1),
        lambda: one.params.level(-1),
        lambda: ckks.Params.create(depth=-1),
        lambda: ckks.Params.create(depth=2, scale_bits=float("nan")),
        lambda: ckks.Params.create(depth=2, log_n=9),
        lambda: ckks.Params.create(depth=2, word="w128"),
    )
    for i, call in enumerate(bad):
        print("call", i)
        with pytest.raises(jali.InvalidArgument):
            call()


@dataclass(frozen=True)
class Call:
    """A call that a user may write by mistake, and words of the error message."""

    make: Callable[[World], Any]
    words: str


def blob(one: World) -> bytes:
    return one.client.encrypt([1.0]).to_bytes()


POLICY = ckks.ReleasePolicy
MISTAKES = {
    "float depth": Call(lambda w: ckks.Params.create(depth=2.5), "depth must be a whole .* 2.5"),
    "text depth": Call(lambda w: ckks.Params.create("2"), "depth must be a whole number, not '2'"),
    "huge depth": Call(lambda w: ckks.Params.create(2**40), "depth .* not 1099511627776"),
    "bool depth": Call(lambda w: ckks.Params.create(True), "depth .* not True"),
    "text scale": Call(lambda w: ckks.Params.create(2, "40"), "scale_bits must be a number"),
    "list scale": Call(lambda w: ckks.Params.create(2, [40]), "scale_bits must be a number"),
    "word by bits": Call(lambda w: ckks.Params.create(2, word=32), "word must be a string, not 32"),
    "text bootstrap": Call(lambda w: ckks.Params.create(bootstrap="yes"), "bootstrap must be True"),
    "no digits": Call(lambda w: ckks.Params.create(2, dnum=0), "dnum must be positive"),
    "client of nothing": Call(lambda w: ckks.Client(None), "ckks.Params, not NoneType"),
    "client of a name": Call(lambda w: ckks.Client("n14_d7"), "ckks.Params, not str"),
    "secret without": Call(
        lambda w: ckks.Client.from_secret_bytes(w.client.secret_to_bytes(), 3), "ckks.Params"
    ),
    "device by number": Call(lambda w: ckks.Client(w.params, device=0), "device .* not 0"),
    "no device": Call(lambda w: ckks.Evaluator(w.params, w.keys, None), "device .* not None"),
    "keys are a client": Call(lambda w: ckks.Evaluator(w.params, w.client), "Keys, not Client"),
    "keys are bytes": Call(
        lambda w: ckks.Evaluator(w.params, w.keys.to_bytes()), "not bytes: .*from_bytes"
    ),
    "keys are public": Call(
        lambda w: ckks.Evaluator(w.params, w.client.public_key()), "EvaluationKeys, not PublicKey"
    ),
    "swapped": Call(lambda w: ckks.Evaluator(w.keys, w.params), "Params, not EvaluationKeys"),
    "encryptor of keys": Call(lambda w: ckks.Encryptor(w.keys), "ckks.PublicKey"),
    "masked": Call(lambda w: w.client.encrypt(np.ma.array([1.0, 2], mask=[0, 1])), "masked"),
    "masked operand": Call(
        lambda w: w.bind([1.0, 2]) * np.ma.array([1.0, 2], mask=[0, 1]), "masked"
    ),
    "masked operand of an array": Call(
        lambda w: w.bind([[1.0, 2]]) + np.ma.array([1.0, 2], mask=[0, 1]), "masked"
    ),
    "nothing beside an array": Call(lambda w: w.bind([[1.0, 2]]) + None, "not None"),
    "nothing on the left of an array": Call(lambda w: {} * w.bind([[1.0, 2]]), "not {}"),
    "text below an array": Call(lambda w: w.bind([[1.0, 2]]) / "a", "not 'a'"),
    "an axis too many": Call(lambda w: w.bind([1.0, 2]).sum(axis=1), "axis 1 .* write count=1"),
    "three axes too many": Call(lambda w: w.bind([1.0, 2]).sum(axis=3), "counted from 0 to 0"),
    "two axes too many": Call(lambda w: w.bind([1.0, 2]).sum(axis=2), "axis 2 .* write count=2"),
    "text magnitude": Call(lambda w: w.client.encrypt([1], magnitude="big"), "magnitude .*'big'"),
    "huge magnitude": Call(lambda w: w.client.encrypt([1], magnitude=10**400), "magnitude must"),
    "huge slots": Call(lambda w: w.client.encrypt([1], slots=2**70), "slots must be a power of"),
    "float length": Call(lambda w: w.client.decrypt(w.bind([1.0]), length=1.5), "length .* 1.5"),
    "text length": Call(lambda w: w.client.decrypt(w.bind([1.0]), length="3"), "length .* '3'"),
    "text complex": Call(lambda w: w.client.decrypt(w.bind([1.0]), complex="yes"), "complex must"),
    "release below 0": Call(
        lambda w: w.client.release(
            w.bind([1.0]), policy=POLICY(origin="declared", error_bound=-1.0, largest=1.0)
        ),
        "error_bound > 0",
    ),
    "slots by float": Call(lambda w: w.client.evaluation_keys(bootstrap=1.5), "bootstrap takes"),
    "slots by name": Call(lambda w: w.client.evaluation_keys(bootstrap="all"), "bootstrap takes"),
    "text conjugate": Call(lambda w: w.client.evaluation_keys(conjugate="yes"), "conjugate must"),
    "progress bar": Call(lambda w: w.client.evaluation_keys(progress=3), "progress must be a fun"),
    "magnitude of text": Call(lambda w: w.bind([1.0]).with_magnitude("1"), "magnitude must be"),
    "capture of nothing": Call(lambda w: w.server.capture(None, w.bind([1.0])), "give a function"),
    "map of nothing": Call(lambda w: w.server.map(None, [w.bind([1.0])]), "give a function"),
    "text batch": Call(lambda w: w.server.batcher(abs, max_batch="2"), "max_batch must be"),
    "huge integer": Call(
        lambda w: w.server.explicit.multiply_integer(w.client.encrypt([1.0]), 2**70),
        "beyond 64 bits: use multiply_scalar",
    ),
    "thousands of digits": Call(
        lambda w: w.client.encrypt([1.0], slots=10**5000), "not a number of thousands of digits"
    ),
    "thousands of digits in C++": Call(
        lambda w: ckks.Params.create(10**5000), "depth .* not a number of thousands of digits"
    ),
    "a long power": Call(lambda w: w.bind([1.0]) ** 10**400, "depth for an exponent of 1329 bits"),
    "half a sum": Call(lambda w: ckks.sum_rotations(2.5), "count must be a power of two"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(one: World, mistake: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=MISTAKES[mistake].words):
        MISTAKES[mistake].make(one)


def test_numbers_of_numpy_are_numbers(one: World) -> None:
    made = ckks.Params.create(np.int64(DEPTH), np.float32(40), log_n=np.uint8(14))
    assert made.depth == DEPTH and made.log_n == 14
    client = one.client
    encrypted = client.encrypt([1.0, 2.0], magnitude=np.float32(2), level=np.int8(1))
    shown = client.decrypt(encrypted, length=np.int64(1), complex=np.bool_(True))
    assert shown.shape == (1,) and shown.dtype == np.complex128
    unmasked = client.encrypt(np.ma.array([1.0, 2.0]))
    assert np.allclose(client.decrypt(unmasked), [1, 2], atol=1e-5)


def test_what_encrypted_values_cannot_do(one: World) -> None:
    x = one.bind([1.0, 2.0])
    for call in (lambda: x < 1, lambda: x >= x, lambda: x > 1, lambda: x == 1, lambda: x != 1):
        with pytest.raises(jali.Unsupported, match="cannot be compared"):
            call()
    for divide in (lambda: 1 / x, lambda: x / x, lambda: [1.0, 2.0] / x):
        with pytest.raises(jali.Unsupported, match="inverse"):
            divide()


def test_wrong_bytes_say_what_they_are(one: World) -> None:
    with pytest.raises(jali.CorruptData, match="a set of evaluation keys, not a ciphertext"):
        ckks.Ciphertext.from_bytes(one.keys.to_bytes(), one.params)
    with pytest.raises(jali.CorruptData, match="a ciphertext, not a secret key"):
        ckks.Client.from_secret_bytes(blob(one), one.params)
    with pytest.raises(jali.LimitExceeded, match="limit of 10: raise max_bytes"):
        ckks.Ciphertext.from_bytes(blob(one), one.params, max_bytes=10)


def test_numbers_that_outgrow_the_modulus(one: World) -> None:
    """Numbers that would wrap around the modulus are refused, not computed wrongly."""
    x = one.bind([0.5, 0.25])
    low = one.bind([0.5, 0.25], level=1)
    for call in (
        lambda: x * 1e40,
        lambda: x * [1e40, 0.0],
        lambda: x / 1e-40,
        lambda: x * 10**400,
        lambda: x + 1e40,
        lambda: low * 1e5,
        lambda: low * [1e5, 1.0],
        lambda: (low * 0.5) + 1e5,
        lambda: one.server.polynomial(x, [0.0, 1e200]),
    ):
        with pytest.raises(jali.InvalidArgument):
            call()
    assert np.allclose(one.client.decrypt(low * 100), [50, 25], atol=1e-3)


def test_insecure_parameters() -> None:
    with pytest.raises(jali.InsecureParams, match="log_n") as caught:
        ckks.Params.create(depth=9, scale_bits=40, log_n=12)
    assert caught.value.code == "insecure"
    with pytest.raises(jali.Error):
        ckks.Params.create(depth=9, scale_bits=40, log_n=12, security=0)
    with pytest.raises(jali.Error):
        ckks.Params.create(depth=9, scale_bits=40, log_n=12, security=0, name="fast")
    weak = ckks.Params.create(depth=9, scale_bits=40, log_n=12, security=0, name="insecure_test")
    assert weak.security == 0


def test_depth_exhausted(one: World) -> None:
    x = one.bind([0.5, 0.25])
    y = x**8
    assert y.level == 0
    with pytest.raises(jali.DepthExhausted, match=rf"depth {DEPTH} .*depth={DEPTH + 1}") as caught:
        y * y
    assert caught.value.code == "depth_exhausted"
    for more in (lambda: y * 0.5, lambda: y * [1.0, 2.0]):
        with pytest.raises(jali.DepthExhausted):
            more()
    assert (y + y).level == 0 and (y * 2).level == 0


def test_missing_keys(one: World) -> None:
    # Of rotations by 512 slots, one by 300 is not composed.
    server = ckks.Evaluator(one.params, one.client.evaluation_keys([512]))
    x = server.bind(one.client.encrypt([0.5, 0.25]))
    with pytest.raises(jali.KeyMissing, match="300") as caught:
        x.rotate(300)
    assert caught.value.code == "key_missing"
    bare = ckks.Evaluator(one.params)
    y = bare.bind(one.client.encrypt([0.5, 0.25]))
    assert np.allclose(one.client.decrypt(y * [2.0, 4.0] + 1), [2, 2], atol=1e-5)
    with pytest.raises(jali.KeyMissing):
        y.conj()
    with pytest.raises(jali.KeyMissing):
        y.rotate(1)
    with pytest.raises(jali.KeyMissing):
        one.client.decrypt(y * y)


def test_other_parameters(one: World) -> None:
    other = ckks.Params.create(depth=1, scale_bits=30)
    stranger = ckks.Client(other)
    with pytest.raises(jali.ParamsMismatch) as caught:
        one.client.decrypt(stranger.encrypt([1.0]))
    assert caught.value.code == "params_mismatch"
    with pytest.raises(jali.ParamsMismatch):
        one.server.bind(stranger.encrypt([1.0]))
    with pytest.raises(jali.ParamsMismatch):
        ckks.Evaluator(one.params, stranger.evaluation_keys())
    with pytest.raises(jali.InvalidArgument, match="different evaluators"):
        one.bind([1.0]) + ckks.Evaluator(one.params).bind(one.client.encrypt([1.0]))


def test_devices(one: World) -> None:
    count = _jali.device.cuda_device_count()
    for name in ("cuda", "cuda:1") if count == 0 else (f"cuda:{count}",):
        with pytest.raises(jali.NoDevice) as caught:
            ckks.Evaluator(one.params, device=name)
        assert caught.value.code == "no_device"
    with pytest.raises(jali.Error):
        ckks.Evaluator(one.params, device="abacus")
    assert ckks.Evaluator(one.params, device="cpu").device == "cpu"
    portable = ckks.Evaluator(one.params, device="cpu/portable")
    assert portable.device == "cpu" and portable.engine == "cpu/portable"


def test_threads_of_the_environment(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JALI_NUM_THREADS", "2")
    assert ckks.Evaluator(one.params).threads == 2
    assert ckks.Evaluator(one.params, threads=1).threads == 1
    for bad in ("0", "-1", "two", "1.5", "9999"):
        monkeypatch.setenv("JALI_NUM_THREADS", bad)
        with pytest.raises(jali.InvalidArgument, match="JALI_NUM_THREADS"):
            ckks.Evaluator(one.params)


def test_every_code_has_a_class() -> None:
    # A program that uses the library, such as the service, may have kinds of its own.
    classes = [k for k in jali.Error.__subclasses__() if k.__module__ == jali.Error.__module__]
    codes = [kind.code for kind in classes]
    assert len(set(codes)) == len(codes) == 20  # those of base/error.h, and "authentication"
    for kind in classes:
        made = errors.from_code(kind.code, "sentence")
        assert type(made) is kind and str(made) == "sentence"
        assert getattr(jali, kind.__name__) is kind
    unknown = errors.from_code("new", "sentence")
    assert isinstance(unknown, jali.InternalError)
    assert issubclass(jali.OutOfMemory, MemoryError)


def test_secrets_stay_inside(one: World) -> None:
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            make(one.client)
        with pytest.raises(TypeError):
            make(one.client._core)
    x = one.bind([1.0])
    assert copy.copy(x) is x and copy.deepcopy(x) is x  # it never changes
    with pytest.raises(TypeError):
        pickle.dumps(x)
    # Nothing that is printed depends on the key or on the data.
    other = ckks.Client(one.params)
    assert repr(other) == repr(one.client)
    assert repr(other.encrypt([1.0])) == repr(one.client.encrypt([2.0]))
    assert repr(other.evaluation_keys()) == repr(one.client.evaluation_keys())
    assert repr(other.public_key()) == repr(one.client.public_key())
    for text in (repr(one.bind([1.0])), repr(one.server), repr(one.params)):
        assert "Client" not in text
    for thing in (one.server, one.server._core, one.server.explicit, one.bind([1.0]), one.keys):
        assert not any("decrypt" in name or "secret" in name for name in dir(thing))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s, x: x.sum(0, count=8), "leave out axis and keepdims"),
        (lambda s, x: x.sum("x", count=8), "leave out axis and keepdims"),
        (lambda s, x: x.sum(keepdims=True, count=8), "leave out axis and keepdims"),
        (lambda s, x: x.sum(8, keepdims=True), "leave out axis and keepdims"),
        (lambda s, x: x.sum(keepdims="no"), "keepdims must be True or False"),
        (lambda s, x: x.mean(keepdims="no"), "keepdims must be True or False"),
        (lambda s, x: x.var(keepdims="no"), "keepdims must be True or False"),
        (lambda s, x: pow(x, 2, 5), "no remainder"),
        (
            lambda s, x: s.polynomial(x, ckks.Polynomial([0, 0, 1]), basis="nonsense"),
            "leave out basis= and interval=",
        ),
        (
            lambda s, x: s.polynomial(x, ckks.Polynomial([0, 0, 1]), interval=(-1, 1)),
            "leave out basis= and interval=",
        ),
    ],
)
def test_no_argument_is_ignored(call: Callable[..., Any], says: str) -> None:
    s = array_world.small()
    with pytest.raises(jali.Error, match=says):
        call(s.server, s.bind(np.ones(5)))
