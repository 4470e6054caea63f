"""Counts the work of a computation with encrypted arrays beforehand: the computation itself runs,
on shadows of ciphertexts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jali.ckks.array import EncryptedArray

if TYPE_CHECKING:
    from jali.ckks.evaluator import Evaluator

__all__ = ["Work", "counted"]

#: A product of a vector with a mask, which is encoded for it, in key switches: the median of what
#: was measured, 0.06 to 0.24 (docs/decisions/0060). It decides only between formulations of about
#: the same number of key switches.
MASK = 0.15


@dataclass(frozen=True)
class Work:
    """What a computation takes: key switches and products with masks, of single vectors each; and
    the level and vectors of its result."""

    switches: int
    masks: int
    level: int
    vectors: int

    @property
    def total(self) -> float:
        """In key switches. Every vector of a result counts as one, for what is computed with it
        later."""
        return self.switches + MASK * self.masks + self.vectors


@dataclass(frozen=True)
class _Shadow:
    """What is known of a ciphertext without its numbers. owed: whether it is a product that was not
    relinearised yet."""

    batch: int
    slots: int
    level: int
    owed: bool = False
    is_complex: bool = False
    peak: float = math.inf

    @property
    def shape(self) -> tuple[int, int]:
        """As that of a batch of vectors."""
        return self.batch, self.slots


class _Core:
    """An evaluator's operations, which count key switches and do nothing else.

    has_rotation: says whether a rotation has a key. Others are composed of rotations by powers of
        two.
    """

    def __init__(self, has_rotation: Callable[[int], bool]) -> None:
        self.switches = self.masks = 0
        self._parts: dict[int, int] = {}
        self._has_rotation = has_rotation
        self.explicit = SimpleNamespace(adjust=lambda a, level, scale: replace(a, level=level))

    def rotate(self, a: _Shadow, steps: int) -> _Shadow:
        self.switches += a.batch * self._rotations(steps % a.slots, a.slots)
        return a

    def _rotations(self, steps: int, slots: int) -> int:
        if steps not in self._parts:
            single = steps == 0 or self._has_rotation(steps)
            # The digits -1, 0 and 1 of a number of which the fewest are not 0 are those of 3 steps
            # xor steps.
            parts = min((3 * s ^ s).bit_count() for s in (steps, slots - steps))
            self._parts[steps] = int(steps != 0) if single else max(parts, 1)
        return self._parts[steps]

    def sum(self, a: _Shadow, count: int) -> _Shadow:
        self.switches += a.batch * (count.bit_length() - 1)
        return a

    def multiply_array(self, a: _Shadow, values: Any) -> _Shadow:
        self.masks += a.batch
        return replace(a, level=a.level - 1)

    def take(self, a: _Shadow, vectors: Sequence[int]) -> _Shadow:
        return replace(a, batch=len(vectors))

    def stack(self, inputs: Sequence[_Shadow]) -> _Shadow:
        return replace(inputs[0], batch=sum(a.batch for a in inputs))

    def product(self, a: _Shadow, b: _Shadow) -> _Shadow:
        return replace(a, level=min(a.level, b.level) - 1, owed=True)

    def join(self, a: _Shadow, b: _Shadow) -> _Shadow:
        if not (a.owed and b.owed):
            a, b = self.settle(a), self.settle(b)
        return self.add(a, b)

    def settle(self, a: _Shadow) -> _Shadow:
        self.switches += a.batch * a.owed
        return replace(a, owed=False)

    def add(self, a: _Shadow, b: _Shadow) -> _Shadow:
        return replace(a, level=min(a.level, b.level))

    def with_bounds(self, a: _Shadow, like: _Shadow, terms: float) -> _Shadow:
        return a

    def with_view(self, a: _Shadow, view: Any, padded: bool) -> _Shadow:
        return a

    def effective_level(self, a: _Shadow) -> int:
        return a.level


def counted(function: Callable[..., EncryptedArray], *arrays: EncryptedArray) -> Work:
    """The work of a function of arrays of one evaluator that moves, masks, multiplies, adds and
    sums them.

    It raises what the function raises because of shapes and places; a level below 0 says that there
    are too few.
    """
    server: Evaluator = arrays[0].evaluator
    # One that finds out which keys are used would note those that are asked for. No rotation is
    # composed there.
    has = (lambda steps: True) if server._noting else server._core.explicit.has_rotation
    core = _Core(has)
    shadow: Any = SimpleNamespace(_core=core, params=server.params, _recording=None, _noting=True)
    shadows: list[EncryptedArray] = []
    for x in arrays:
        one: Any = _Shadow(x._place.vectors, x.slots, x.level)
        shadows.append(EncryptedArray(shadow, one, x._view))
    result = function(*shadows)
    value: Any = result._settled()
    return Work(core.switches, core.masks, value.level, result._place.vectors)
