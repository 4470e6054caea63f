"""Random programs of encrypted arrays, as a user might write them, right or wrong.

Parameters, clients, keys, magnitudes, layouts, batches and operations are drawn. Beside every
encrypted value lies what its slots should hold, computed by NumPy. The rule that every program is
held to: its result is what NumPy gives, within what the ciphertext claims, or it is refused with an
error of Jali's. Anything else is wrong without a word.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bootstrap_world
import numpy as np
import numpy.typing as npt

import jali
from jali import ckks

Array = npt.NDArray[Any]

#: How many bits a root mean square may exceed the claim, besides chance. Estimates of single
#: operations are this much off.
MARGIN = 0.25
#: One world of so many can bootstrap, which takes some 50 ms.
BOOTSTRAPPING = 20
#: A true claim exceeds `chance` with a probability of about e^-28: in the 400 programs of `make
#: test` less than once in 10^9 runs.
RARE = 28.0


def chance(count: float) -> float:
    """By which factor the mean of ``count`` squared errors may exceed its expectation, except with
    probability e^-RARE.

    The largest source of noise is r s, with a rounding r and the secret key s. In a slot both are
    complex normal numbers, so that the real part of their product has Laplace's distribution: it
    exceeds t deviations with probability exp(-sqrt(2) t), and its square has the variance 5. The
    first term is that of many slots, the second one is the largest of them.
    """
    return 1 + np.sqrt(10 * RARE / count) + (RARE + np.log(count)) ** 2 / (2 * count)


def spread_of(values: Array) -> float:
    """In how many of its numbers an array has its squares: all if they are equal, one if it is much
    larger than the others."""
    squares = np.abs(values[~np.isnan(values)]) ** 2
    top = squares.max(initial=0)
    if not top > 0:
        return float(max(1, squares.size))
    squares = squares / top
    return float(squares.sum() ** 2 / (squares**2).sum())


@dataclass
class Outcome:
    """What became of a program."""

    steps: str
    refusals: list[
        str
    ]  # the errors of the operations, and of the input or the decryption, that were refused
    wrong: str = ""  # what is wrong, if anything is
    compared: bool = False  # whether there was a result
    excess: float = -np.inf  # bits by which the error exceeds the claim, less what chance explains


class World:
    """A client and a server with drawn parameters, and a stranger with other keys."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        pick = self.pick
        self.bootstraps = bool(rng.integers(BOOTSTRAPPING) == 0)
        if self.bootstraps:
            self.params = bootstrap_world.make(
                pick(["raise_first", "slots_first"]), log_n=10, word=pick(["w32", "w52", "w64"])
            )
        else:
            self.params = ckks.Params.create(
                depth=int(rng.integers(6, 13) if rng.integers(8) == 0 else rng.integers(1, 6)),
                scale_bits=float(rng.integers(26, 46)),
                integer_bits=float(rng.integers(5, 18)),
                word=pick(["w32", "w52", "w64"]),
                log_n=10,
                security=0,
                name="insecure_random_programs",
            )
        self.slots = pick([self.params.slots, self.params.slots, 2, 4, 8, 64])
        self.client = ckks.Client(self.params, threads=1)
        self.stranger = ckks.Client(self.params, threads=1)
        self.rotations = pick(["powers", "powers", [1, 2, 4, 8, 16, 32, 64, 128, 256], [1, -1, 3]])
        keys = self.client.evaluation_keys(
            self.rotations,
            conjugate=bool(rng.integers(2)),
            minimum=bool(rng.integers(2)),
            bootstrap=pick([True, self.slots]) if self.bootstraps else False,
        )
        # As a server gets them.
        if rng.integers(4) == 0:
            keys = ckks.EvaluationKeys.from_bytes(keys.to_bytes(), self.params)
        self.server = ckks.Evaluator(self.params, keys, "cpu", threads=1)

    def pick(self, choices: list[Any]) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]


class Program:
    """One program, run as it is drawn. Kinds of programs draw their inputs and operations."""

    input: Callable[[], Any]
    operation: Callable[[], Any]

    def __init__(self, world: World) -> None:
        self.w, self.rng, self.pick = world, world.rng, world.pick
        self.steps: list[str] = []
        self.values: list[Any] = []
        self.refusals: list[str] = []
        self.excess = -np.inf
        self.independent = (
            np.inf
        )  # how many errors of the results may be independent of each other, at least
        self.as_declared = True  # whether the inputs have the root mean squares that were declared

    def run(self) -> Outcome:
        """Draws a program, runs it, and compares its result with NumPy's. It goes on without what
        is refused."""
        for _ in range(int(self.rng.integers(1, 4))):
            self.attempt(self.input)
        if self.values:
            for _ in range(int(self.rng.integers(1, 10))):
                self.attempt(self.operation)
        return self.outcome()

    def outcome(self) -> Outcome:
        """Compares the newest value, if there is one and none of the client's checks refuses it."""
        wrong, compared = "", False
        if self.values:
            try:
                wrong = self.trouble(self.values[-1])
                compared = True
            except jali.Error as error:
                self.refusals.append(f"{type(error).__name__}: {error}")
        return Outcome("; ".join(self.steps), self.refusals, wrong, compared, self.excess)

    def attempt(self, step: Callable[[], Any]) -> None:
        """Keeps the value of a step, or the error that refuses it."""
        try:
            self.keep(step())
        except jali.Error as error:
            self.refusals.append(f"{type(error).__name__}: {error}")
            self.steps.append("refused")

    def keep(self, value: Any) -> None:
        """Takes a value for one of the program's."""
        self.values.append(value)
        self.independent = min(self.independent, spread_of(value.vectors))

    def numbers(self, *shape: int) -> tuple[Array, float]:
        """Numbers of a drawn kind and size, and the largest modulus of this kind (infinite if there
        is none)."""
        rng = self.rng
        size = float(2.0 ** self.pick([-4, -2, 0, 0, 0, 1, 3, 6, 11]))
        kind = self.pick(["normal", "uniform", "signs", "equal", "complex", "positive"])
        if kind == "normal":
            return size * rng.normal(size=shape), np.inf
        if kind == "signs":
            return size * rng.choice([-1.0, 1.0], shape), size
        if kind == "equal":
            return np.full(shape, size), size
        if kind == "complex":
            return size * (rng.uniform(-1, 1, (*shape, 2)) @ [1, 1j]) / np.sqrt(2), size
        return size * rng.uniform(0 if kind == "positive" else -1, 1, shape), size

    def sent(self, array: ckks.EncryptedArray) -> ckks.EncryptedArray:
        """The same array, sent as bytes or through a file to another evaluator's machine."""
        ciphertext, params = array.ciphertext, self.w.params
        file = io.BytesIO()
        ciphertext.save(file)
        try:
            if self.rng.integers(2):
                return self.w.server.bind(ckks.Ciphertext.from_bytes(ciphertext.to_bytes(), params))
            return self.w.server.bind(ckks.Ciphertext.load(file.getvalue(), params))
        except jali.CorruptData as error:
            raise AssertionError("its own bytes are refused") from error

    def trouble(self, value: Any) -> str:
        """What is wrong with a result, compared with NumPy's: "" if it is right within what it
        claims."""
        if self.rng.integers(40) == 0 and np.nan_to_num(value.vectors).any():
            self.w.stranger.decrypt(value.array)
            return "a stranger's key decrypts it without a word"
        got, want = self.w.client.decrypt(value.array), value.vectors
        if got.shape != want.shape:
            return f"the shape is {got.shape}, not {want.shape}"
        known = ~np.isnan(want)
        if not known.any():
            return ""
        got, want = got[known], want[known]
        if not np.iscomplexobj(got):
            want = want.real
        error = np.abs(got - want)
        bound = ckks.worst_case_error(value.array.ciphertext)
        rounding = 2.0**-44 * max(1.0, float(np.abs(want).max()))
        if not error.max() <= bound + rounding:
            return f"an error of {error.max():.3g} above its bound {bound:.3g}"
        # Errors of complex numbers have two parts, and a claim is that of one of them.
        rms = float(np.sqrt(np.mean(error**2) / (1 + np.iscomplexobj(got))))
        if not self.as_declared or rms <= rounding:
            return ""
        claimed = value.array.precision_bits
        least = max(1.0, min(self.independent, error.size))
        self.excess = float(np.log2(rms) + claimed - np.log2(chance(least)) / 2)
        if self.excess > MARGIN:
            return (
                f"{-np.log2(rms):.1f} bits where {claimed:.1f} are claimed, {least:.0f} independent"
            )
        largest, deviation = float(error.max()), 2.0 ** (MARGIN - claimed)
        tail = (RARE + np.log(error.size)) / np.sqrt(2) * self.crest(want)
        if largest > deviation * tail * np.sqrt(2):
            return f"one error is {largest:.3g} where {claimed:.1f} bits are claimed"
        return ""

    def crest(self, want: Array) -> float:
        """How much more noise the largest number may have than the average: noise is proportional
        to numbers in products."""
        return float(np.sqrt(want.size / max(1.0, min(self.independent, want.size))))
