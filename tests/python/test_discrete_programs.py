"""Random programs of exact integers: every result equals Python's, or is refused before it computes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from discrete_world import World, integers, world

import jali
from jali import discrete

#: What may be refused without a fault of the program: a range, a depth, and moves that a view has
#: not.
REFUSED = (jali.RangeExceeded, jali.DepthExhausted, jali.Unsupported)


@dataclass(frozen=True)
class Value:
    """An encrypted array, and the integers of Python that it should hold."""

    x: discrete.EncryptedArray
    clear: Any


def sent(x: Any) -> Any:
    """The same after it travelled as bytes."""
    if not isinstance(x, discrete.EncryptedArray):
        return x
    return x.evaluator.bind(
        discrete.Ciphertext.from_bytes(x.ciphertext.to_bytes(), x.evaluator.params)
    )


def rotated(x: Any, steps: int, slots: int) -> Any:
    """A vector, moved in all slots."""
    if isinstance(x, discrete.EncryptedArray):
        return x.rotate(steps)
    if x.ndim != 1:
        raise ValueError("no vector")
    everywhere = np.zeros(slots, object)
    everywhere[: len(x)] = x
    return np.roll(everywhere, -steps)[: len(x)]


def flat(x: Any) -> Any:
    """All numbers as a vector; Unsupported if they would have to move."""
    try:
        return x.reshape(-1)
    except jali.InvalidArgument as error:
        raise jali.Unsupported(str(error)) from None


def selected(mask: Any, x: Any, y: Any) -> Any:
    if isinstance(x, discrete.EncryptedArray):
        return discrete.select(mask, x, y)
    return np.where(mask, x, y)


class Program:
    """Steps on arrays that were computed before."""

    def __init__(
        self, w: World, rng: np.random.Generator, wrap: bool, shape: tuple[int, ...] = ()
    ) -> None:
        self.w, self.rng, self.wrap = w, rng, wrap
        self.values: list[Value] = []
        self.refused = 0
        shape = shape or tuple(int(n) for n in rng.integers(1, 6, int(rng.integers(1, 4))))
        for _ in range(3):
            most = int(rng.choice([1, 3, 10, 100, 1000]))
            low = -most if rng.random() < 0.7 else 0
            clear = integers(rng, low, most, shape)
            options: dict[str, Any] = {"wrap": True} if wrap else {"range": (low, most)}
            self.values.append(Value(w.bind(clear, **options), clear.astype(object)))

    def pick(self) -> Value:
        return self.values[int(self.rng.integers(len(self.values)))]

    def small(self, shape: Any = None) -> Any:
        most = int(self.rng.choice([1, 2, 9]))
        return self.rng.integers(-most, most + 1, shape)

    def step(self) -> tuple[Callable[..., Any], list[Value]]:
        """A function of arrays, and its operands."""
        a, b, kind = self.pick(), self.pick(), int(self.rng.integers(17))
        sign = [operator.add, operator.sub, operator.mul][kind % 3]
        if kind < 3:
            return lambda x, y: sign(x, y), [a, b]
        if kind == 3:
            number = int(self.small())
            which = [operator.add, operator.sub, operator.mul][int(self.rng.integers(3))]
            if self.rng.random() < 0.5:
                return lambda x: which(number, x), [a]
            return lambda x: which(x, number), [a]
        if kind == 4:
            clear = self.small(a.clear.shape)
            which = [operator.add, operator.sub, operator.mul][int(self.rng.integers(3))]
            return lambda x: which(clear, x), [a]
        if kind == 5:
            axis = int(self.rng.integers(max(1, a.clear.ndim)))
            return lambda x: x.sum(axis if np.ndim(x) else None), [a]
        if kind == 6:
            start, step = int(self.rng.integers(3)), int(self.rng.choice([1, 2, -1]))
            return lambda x: x[start::step], [a]
        if kind == 7:
            return lambda x: x.T, [a]
        if kind == 8:
            return lambda x: -x, [a]
        if kind == 9:
            power = int(self.rng.integers(1, 4))
            return lambda x: x**power, [a]
        if kind == 10:
            joined = np.stack if self.rng.random() < 0.5 else np.concatenate
            return lambda x, y: joined([x, y]), [a, b]
        if kind == 11:
            steps = int(self.rng.choice([1, -1, 3, 511, 512, 700]))
            return lambda x: rotated(x, steps, self.w.params.slots), [a]
        if kind == 12:
            mask = self.rng.integers(0, 2, a.clear.shape)
            return lambda x, y: selected(mask, x, y), [a, b]
        if kind == 13:
            return flat, [a]
        if kind == 14:
            shape = (int(self.rng.integers(1, 4)), *a.clear.shape)
            return lambda x: np.broadcast_to(x, shape), [a]
        if kind == 15:
            return sent, [a]
        matrix = self.small((int(self.rng.integers(1, 5)), (a.clear.shape or (1,))[0]))
        return lambda x: matrix @ x, [a]

    def run(self, steps: int) -> None:
        for _ in range(steps):
            function, operands = self.step()
            try:
                expected = np.asarray(function(*(v.clear for v in operands)), dtype=object)
            except (ValueError, IndexError):
                # Shapes that NumPy does not take are refused, too.
                with pytest.raises((jali.Error, IndexError)):
                    function(*(v.x for v in operands))
                continue
            if expected.size == 0:
                continue
            before = self.w.server.counters()["products"]
            try:
                result = function(*(v.x for v in operands))
            except REFUSED:
                self.refused += 1
                assert self.w.server.counters()["products"] - before <= 2  # of a power
                continue
            self.check(result, expected)
            self.values.append(Value(result, expected))

    def check(self, result: discrete.EncryptedArray, expected: Any) -> None:
        assert result.shape == expected.shape and result.noise_budget > 0
        shown = self.w.client.decrypt(result)
        if self.wrap:
            modulus = self.w.params.modulus
            half = modulus // 2
            expected = np.array([(int(v) + half) % modulus - half for v in expected.reshape(-1)])
            assert result.wraps and (shown.reshape(-1) == expected).all()
            return
        low, high = result.range
        flat = expected.reshape(-1)
        assert all(low <= int(v) <= high for v in flat)
        assert (shown.reshape(-1) == flat).all()


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("multiplication", ["bgv", "bfv"])
def test_random_programs(multiplication: str, wrap: bool, rng: np.random.Generator) -> None:
    w = world(multiplication=multiplication)
    done = 0
    for _ in range(12):
        program = Program(w, rng, wrap)
        program.run(12)
        done += len(program.values) - 3
    assert done > 40  # most steps are computed


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(600,), (512,), (3, 300), (2, 2, 200)])
def test_random_programs_on_arrays_of_several_rows(
    shape: tuple[int, ...], wrap: bool, rng: np.random.Generator
) -> None:
    w = world()
    for _ in range(3):
        Program(w, rng, wrap, shape).run(8)


@pytest.mark.parametrize("integers_", [8, 20, 40])
def test_random_programs_of_other_sizes(integers_: int, rng: np.random.Generator) -> None:
    w = world(modulus=None, integers=integers_, depth=2)
    for _ in range(4):
        Program(w, rng, False).run(12)


@pytest.mark.long
@pytest.mark.parametrize("word", ["w32", "w52", "w64"])
def test_many_random_programs(word: str, rng: np.random.Generator) -> None:
    for multiplication in ("bgv", "bfv"):
        w = world(multiplication=multiplication, word=word, modulus=786433, depth=4)
        for _ in range(300):
            Program(w, rng, bool(rng.random() < 0.3)).run(15)
