"""No message, warning or log record tells a number that was to be encrypted, or that was decrypted.

Every refusal is provoked with different numbers in the same places. What is said must be the same,
whatever the numbers are: then it holds neither them nor anything that follows from them. Errors
that are kept beside an error (``__cause__``, ``__context__``) count, too.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import tfhe_world
from conftest import World

import jali
from jali import ckks
from jali.tfhe.trees.questions import bins

#: Numbers of one size, and of others: none of them may show.
SECRETS = (123457.25, -987654.5, 314159.0, 271828182.75)


class Said(logging.Handler):
    """Everything that a call says: its error with all that are kept beside it, warnings and log
    records."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        self.error: BaseException | None = None
        logger = logging.getLogger("jali")
        level = logger.level
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    call()
                except Exception as error:
                    self.error = error
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)
        self.texts += [f"{w.category.__name__}: {w.message}" for w in warned]
        for kept in chain(self.error):
            self.texts.append(f"{type(kept).__name__}: {kept} {kept.args}")

    def emit(self, record: logging.LogRecord) -> None:
        # Times differ in any case.
        self.texts.append(re.sub(r"\d+\.\d+ (s|ms|us)\b", "some time", record.getMessage()))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that led to it, also where a traceback does not show them."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]


class Talkative:
    """An object that tells its number whenever it cannot be converted."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __array__(self, *_: object, **__: object) -> Any:
        raise ValueError(f"could not convert {self.number}")

    def __float__(self) -> float:
        raise ValueError(f"could not convert {self.number}")

    def __repr__(self) -> str:
        return f"Talkative({self.number})"


#: Ways in which an array that holds the number is wrong, or may be too large. They have the same
#: shape for every number.
ARRAYS: dict[str, Callable[[float], Any]] = {
    "alone": lambda v: v,
    "whole": lambda v: int(v),
    "scalar of NumPy": lambda v: np.float64(v),
    "list": lambda v: [0.5, v],
    "whole list": lambda v: [1, int(v)],
    "array": lambda v: np.array([0.5, v]),
    "large": lambda v: np.array([0.5, v * 1e12]),
    "huge": lambda v: np.array([0.5, v * 1e200]),
    "largest": lambda v: np.array([0.5, v * 1e300]),
    "many": lambda v: np.array([*([1e-3] * 500), v]),
    "complex": lambda v: np.array([0.5j, v]),
    "integers": lambda v: np.array([0, int(v)]),
    "unsigned": lambda v: np.array([0, int(abs(v))], dtype=np.uint64),
    "of Python": lambda v: [10**30 * int(v), 1],
    "matrix": lambda v: np.array([[0.5, v], [0.25, 0.125]]),
    "cube": lambda v: np.full((1, 1, 2), v),
    "with NaN": lambda v: np.array([np.nan, v]),
    "with infinity": lambda v: np.array([v, np.inf]),
    "ragged": lambda v: [[v, 1.0], [2.0]],
    "text": lambda v: [str(v), "2"],
    "one text": lambda v: f"{v:.2f}",
    "bytes": lambda v: f"{v:.2f}".encode(),
    "mixed": lambda v: [v, "two"],
    "objects": lambda v: np.array([v, None], dtype=object),
    "dict": lambda v: {"a": v},
    "set": lambda v: {v},
    "Decimal": lambda v: [Decimal(str(v)), Decimal(1)],
    "Fraction": lambda v: [Fraction(v), Fraction(1)],
    "object": lambda v: Talkative(v),
    "objects in a list": lambda v: [Talkative(v), 1.0],
    "masked": lambda v: np.ma.masked_array([v, 1.0], [True, False]),
    "iterator": lambda v: iter([v, 1.0]),
    "dates": lambda v: np.array([int(v), 1], dtype="datetime64[s]"),
    "long": lambda v: np.array([v, 1], dtype=np.longdouble) * np.longdouble("1e4000"),
    "records": lambda v: np.array([(v, 1)], dtype=[("a", float), ("b", int)]),
}  # fmt: skip


class Place:
    """Clients of every kind, made once."""

    def __init__(self) -> None:
        params = ckks.Params.create(depth=2, scale_bits=30, log_n=11, security=0, name="insecure_test")  # fmt: skip
        self.ckks = ckks.Client(params, threads=1)
        self.public = ckks.Encryptor(self.ckks.public_key(), threads=1)
        self.server = ckks.Evaluator(params, self.ckks.evaluation_keys(), threads=1)
        tiny = tfhe_world.World(tfhe_world.make())
        self.tfhe = tiny.client
        program = jali.compile(lambda x: x * 0.5, np.ones(2), calibration=np.array([[-1.0, 1.0]] * 20))  # fmt: skip
        self.program = program
        self.nn = program.client(threads=1)


@pytest.fixture(scope="module")
def place() -> Place:
    return Place()


#: Every entry that encrypts, and those to which a number may be given by mistake.
ENTRIES: dict[str, Callable[[Place, Any], object]] = {
    "encrypt": lambda p, x: p.ckks.encrypt(x),
    "encrypt as a batch": lambda p, x: p.ckks.encrypt(x, batch=True),
    "encrypt in few slots": lambda p, x: p.ckks.encrypt(x, slots=1),
    "encrypt low": lambda p, x: p.ckks.encrypt(x, level=0, magnitude=1e12),
    "encrypt with a peak": lambda p, x: p.ckks.encrypt(x, peak=2.0),
    "encrypt with a magnitude": lambda p, x: p.ckks.encrypt(x, magnitude=1e3, peak=1e9),
    "encrypt in little memory": lambda p, x: p.ckks.encrypt(x, max_bytes=1),
    "encrypt with a public key": lambda p, x: p.public.encrypt(x),
    "encrypt low with a public key": lambda p, x: p.public.encrypt(x, level=0, magnitude=1e300),
    "encode": lambda p, x: p.server.explicit.encode(x),
    "encode low": lambda p, x: p.server.explicit.encode(x, level=0),
    "as a magnitude": lambda p, x: p.ckks.encrypt([0.5], magnitude=[x]),
    "as a peak": lambda p, x: p.ckks.encrypt([0.5], peak=np.asarray([1.0], dtype=object) if x is None else [x]),
    "example of keys": lambda p, x: p.ckks.evaluation_keys(for_=lambda y: y * y, example=x),
    "decrypt": lambda p, x: p.ckks.decrypt(x),
    "release": lambda p, x: p.ckks.release(x, policy=ckks.ReleasePolicy(origin="derived")),
    "messages": lambda p, x: p.tfhe.encrypt(x),
    "messages below": lambda p, x: p.tfhe.encrypt(x, largest=1),
    "unsigned integers": lambda p, x: p.tfhe.encrypt_uint(x, bits=8),
    "signed integers": lambda p, x: p.tfhe.encrypt_int(x, bits=9),
    "wide integers": lambda p, x: p.tfhe.encrypt_uint(x, 64),
    "as bits": lambda p, x: p.tfhe.encrypt_uint([1, 2], x),
    "decrypt of TFHE": lambda p, x: p.tfhe.decrypt(x),
    "compiled": lambda p, x: p.nn.encrypt(x),
    "compiled, as a row": lambda p, x: p.nn.encrypt([x]),
    "compiled, twice": lambda p, x: p.nn.encrypt(x, x),
    "decrypt of a program": lambda p, x: p.nn.decrypt(x),
    "simulated": lambda p, x: p.program.simulate(x, rng=1),
    "in the clear": lambda p, x: p.program.clear(x),
    "rows of a tree": lambda p, x: bins(x, [[0.0], [1.0]]),
    "a row of a tree": lambda p, x: bins([x], [[0.0], [1.0]]),
    "rows of numbers of a tree": lambda p, x: bins([[x, 1.0]], [[0.0], [1.0]]),
    "a reply": lambda p, x: jali.authenticated.open_reply(bytes(32), x, request=b"", place=0),
}  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_said_does_not_depend_on_the_numbers(entry: str, place: Place) -> None:
    call, refused = ENTRIES[entry], 0
    for way, make in ARRAYS.items():
        said = {v: Said(partial(call_with, call, place, make, v)) for v in SECRETS}
        refused += any(one.error is not None for one in said.values())
        # Whether a number is refused, and as what, may follow from its size and its sign. What is
        # said in one case is always the same.
        by_kind: dict[str, set[str]] = {}
        for v, one in said.items():
            text = "\n".join(one.texts)
            for digits in digits_of(v):
                assert digits not in text, (way, digits, text)
            shape = re.sub(r"[\d.e+-]+", "#", text)
            by_kind.setdefault(shape, set()).add(text)
        for texts in by_kind.values():
            assert len(texts) == 1, (way, texts)
    assert refused >= 10, entry


def call_with(
    call: Callable[[Place, Any], object], place: Place, make: Callable[[float], Any], v: float
) -> object:
    return call(place, make(v))


def digits_of(v: float) -> set[str]:
    """How a number shows, at three digits and more, and what follows from it."""
    out = set()
    for x in (
        abs(v),
        v * v,
        np.log2(abs(v)),
        np.sqrt(abs(v)),
        abs(v) * 2.0**30,
        np.log2(abs(v)) + 30,
    ):
        out |= {f"{x:.4g}", f"{x:.6g}", f"{x:.3e}"[:5], f"{x:f}"[:8]}
    out.add(str(int(abs(v))))
    return {d for d in out if len(d.replace(".", "")) >= 4}


def test_the_search_finds_what_is_told() -> None:
    """Each of these would have to fail."""
    for text in ("123457", "79.480417 bits and 123457.25", "log2 16.91", "1.235e+05"):
        assert any(d in text for d in digits_of(123457.25)), text
    told = [Said(lambda v=v: float(f"{v}x")) for v in SECRETS]  # type: ignore[misc]
    assert len({tuple(one.texts) for one in told}) == len(SECRETS)

    def caused() -> None:
        try:
            float("123457x")
        except ValueError:
            raise jali.InvalidArgument("no number") from None

    assert any("123457" in text for text in Said(caused).texts)


def test_what_was_decrypted_is_not_told(place: Place, one: World) -> None:
    """Another key's ciphertext, numbers beyond their range, and arguments that are wrong."""
    stranger = ckks.Client(place.ckks.params, threads=1)
    for v in SECRETS:
        mine = place.ckks.encrypt([v], peak=1e9)
        calls: list[Callable[[], object]] = [
            lambda x=mine: stranger.decrypt(x),  # type: ignore[misc]
            lambda x=mine: place.ckks.decrypt(x, length=10**6),  # type: ignore[misc]
            lambda x=mine: place.ckks.decrypt(x, complex="no"),  # type: ignore[misc]
            lambda x=mine: one.client.decrypt(x),  # type: ignore[misc]
            lambda x=mine: place.ckks.release(x, policy=ckks.ReleasePolicy(origin="declared", error_bound=1e30, largest=1e9)),  # type: ignore[misc]
            lambda x=mine: place.tfhe.decrypt(x),  # type: ignore[misc]
            lambda x=mine: place.nn.decrypt(x),  # type: ignore[misc]
        ]  # fmt: skip
        for call in calls:
            said = Said(call)
            assert said.error is not None
            for digits in digits_of(v):
                assert not any(digits in text for text in said.texts), said.texts
