"""Rotations that are composed of others: sets of keys from few to all, and what each costs.

A server composes a rotation without a key of its own of the fewest rotations that have one
(jali.ckks does so by itself). Rotations commute, so the fewest of them are a shortest path from 0
in the slots, whose edges are the keys.

>>> sets = key_sets(16, {1: 1.0, 2: 1.0, 3: 9.0})
>>> [(one.steps, one.extra) for one in sets]  # the last has a key for each rotation
[((1,), 19.0), ((1, 3), 1.0), ((1, 2, 3), 0.0)]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["KeySet", "extra_of", "key_sets", "levels_of", "signed"]

_PARTS = 3  # uses of one more key in a rotation that is composed already
_MORE = 0.08  # part of the keys of a set that the next has more

_Parts = npt.NDArray[np.int8]


@dataclass(frozen=True)
class KeySet:
    """Rotations that have keys.

    steps: of these rotations, signed.
    extra: what composing the others costs beyond a rotation each.
    """

    steps: tuple[int, ...]
    extra: float


def key_sets(
    slots: int, costs: Mapping[int, float], others: Collection[int] = ()
) -> Iterator[KeySet]:
    """Sets of keys of which all rotations can be composed, from the fewest that are found to one
    for each rotation. Each has a few keys more than the one before, those that save most.

    costs: for every rotation, what a rotation costs, times its number in a run.
    others: rotations that have keys beside those of the sets, which have none of these.
    """
    steps, weights = _weighted(slots, costs)
    most = slots.bit_length() - 1  # rotations of which an evaluator composes one
    powers = 1 << np.arange(most)
    every = np.unique(np.concatenate([steps, powers, slots - powers]))
    chosen: list[int] = []
    there = parts = _parts(slots, others, most)
    while np.any(parts[steps] > most):
        saved = _saved(parts, steps, weights, every, most, most)
        chosen.append(int(every[np.argmax(saved)]))
        parts = _with(parts, chosen[-1], most)
    for one in tuple(chosen):  # a key is left out if its rotation can be composed of later ones
        fewer = [c for c in chosen if c != one]
        if np.all((found := _parts(slots, fewer, most, there))[steps] <= most):
            chosen, parts = fewer, found
    while True:
        extra = float(weights @ (parts[steps] - 1))
        if np.all(parts[steps] == 1):
            break
        yield KeySet(_signed(chosen, slots), extra)
        saved = _saved(parts, steps, weights, steps, most, _PARTS)
        for k in np.argsort(-saved, kind="stable")[: max(1, int(_MORE * len(chosen)))]:
            if saved[k] > 0:
                chosen.append(int(steps[k]))
                parts = _with(parts, chosen[-1], most)
    given = {step % slots for step in others}
    yield KeySet(_signed((int(step) for step in steps if int(step) not in given), slots), 0.0)


def extra_of(slots: int, keys: Collection[int], costs: Mapping[int, float]) -> float:
    """What composing rotations of these keys costs beyond a rotation each. Costs as of key_sets."""
    steps, weights = _weighted(slots, costs)
    return float(weights @ (_parts(slots, keys, slots.bit_length() - 1)[steps] - 1))


def levels_of(
    slots: int,
    keys: Collection[int],
    rotations: Mapping[int, int],
    others: Collection[int] = (),
) -> dict[int, int]:
    """The level of each of these keys, of which rotations are composed, each up to its level. Keys
    of which none is composed are left out.

    keys: of a KeySet.
    others: further rotations that have keys, for all of these levels.
    """
    most = slots.bit_length() - 1
    every, found = (*others, *keys), dict[int, int]()
    parts = _parts(slots, every, most)
    for step, level in rotations.items():
        left = step % slots
        while left:
            key = next(k for k in every if parts[(left - k) % slots] == parts[left] - 1)
            found[key] = max(level, found.get(key, 0))
            left = (left - key) % slots
    return {key: level for key, level in found.items() if key not in others}


def signed(step: int, slots: int) -> int:
    """A rotation in its shorter direction; half of the slots counts as positive."""
    half = slots // 2
    return (step + half - 1) % slots - half + 1


def _weighted(
    slots: int, costs: Mapping[int, float]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The rotations, from 1 to slots - 1, and what each costs. That by 0 is none."""
    found: dict[int, float] = {}
    for step, cost in costs.items():
        found[step % slots] = found.get(step % slots, 0.0) + cost
    found.pop(0, None)
    steps = sorted(found)
    return np.array(steps, np.int64), np.array([found[step] for step in steps])


def _signed(steps: Iterable[int], slots: int) -> tuple[int, ...]:
    """Rotations in their shorter directions, sorted."""
    return tuple(sorted(signed(step, slots) for step in steps))


def _parts(slots: int, keys: Collection[int], most: int, parts: _Parts | None = None) -> _Parts:
    """For every rotation, of how many of these it is composed; more than `most` stands for none.

    parts: the same of other keys, which are there, too.
    """
    if parts is None:
        parts = np.full(slots, 2 * most, np.int8)  # a rotation without any counts as so many
        parts[0] = 0
    for key in keys:
        parts = _with(parts, key, most)
    return parts


def _with(parts: _Parts, key: int, most: int) -> _Parts:
    """The same with one more key."""
    best, moved = parts, parts
    for _ in range(most):
        moved = np.roll(moved, key) + np.int8(1)
        if np.all(moved >= best):  # then further uses of the key do not help either
            break
        best = np.minimum(best, moved)
    return np.where(best > most, 2 * most, best)


def _saved(
    parts: _Parts,
    steps: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    keys: npt.NDArray[np.int64],
    most: int,
    times: int,
) -> npt.NDArray[np.float64]:
    """What each of several keys would save, if it is used up to so many times in a rotation. Among
    equal ones, the first is taken, so that a plan is the same on every machine."""
    slots = len(parts)
    best = np.broadcast_to(parts[steps], (len(keys), len(steps)))
    for k in range(1, times + 1):
        found = parts[(steps[None, :] - k * keys[:, None]) % slots] + k
        best = np.minimum(best, np.where(found > most, 2 * most, found))
    saved: npt.NDArray[np.float64] = (parts[steps] - best) @ weights
    return saved
