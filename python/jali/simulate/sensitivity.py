"""On which calibrated and assumed constants a result depends, and how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from jali.errors import InvalidArgument, LimitExceeded, Unsupported
from jali.simulate.number import Number

__all__ = ["UNCERTAIN", "Dependence", "Tagged", "sensitivity", "text"]

UNCERTAIN = (
    "calibrated",
    "assumed",
)  # the sources of constants that no paper and no measurement gives


class Tagged(Protocol):
    """Something whose numbers have sources: a Machine or a TfheSet."""

    def constants(self, *sources: str) -> list[Number]:
        """The numbers whose source begins with one of the words."""
        ...

    def changed(self, *, scale: Mapping[str, float]) -> Tagged:
        """The same with numbers multiplied by factors."""
        ...


@dataclass(frozen=True)
class Dependence:
    """A constant that a result depends on.

    path, source, value: of the constant.
    change: how much the result changes, as a share of it, if the constant is multiplied by the
        factor. None: the changed constant is not possible, for example no whole number of units.
    """

    path: str
    source: str
    value: float
    change: float | None


def sensitivity(
    formula: Callable[..., float],
    *subjects: Tagged,
    factor: float = 1.1,
    sources: tuple[str, ...] = UNCERTAIN,
    progress: Callable[[int], None] | None = None,
) -> list[Dependence]:
    """The constants of the subjects with these sources on which formula(*subjects) depends; the
    strongest first.

    Each constant is multiplied by the factor, the others stay. Constants that change nothing are
    left out. progress: is called with the number of constants that are done.
    """
    if factor <= 0 or factor == 1:
        raise InvalidArgument(f"the factor is {factor}: give one above 0 that is not 1, as 1.1")
    result = formula(*subjects)
    found = []
    numbers = [(i, n) for i, subject in enumerate(subjects) for n in subject.constants(*sources)]
    for done, (i, number) in enumerate(numbers):
        if progress is not None:
            progress(done)
        value = float(number)
        if value == 0:
            continue
        try:
            changed = subjects[i].changed(scale={number.path: factor})
            other = formula(*subjects[:i], changed, *subjects[i + 1 :])
        except (InvalidArgument, LimitExceeded, Unsupported):
            found.append(Dependence(number.path, number.source, value, None))
            continue
        if not math.isclose(other, result, rel_tol=1e-12):
            change = other / result - 1 if result else math.inf
            found.append(Dependence(number.path, number.source, value, change))
    if progress is not None:
        progress(len(numbers))
    return sorted(found, key=lambda d: (d.change is None, -abs(d.change or 0.0), d.path))


def text(dependences: list[Dependence], factor: float = 1.1) -> str:
    """A line for each dependence."""
    if not dependences:
        return "The result depends on no calibrated and no assumed constant."
    lines = [
        f"Constants that no source gives, and the result's change if each is {factor:g} times as large:"
    ]
    for d in dependences:
        change = "not possible" if d.change is None else f"{d.change:+.2%}"
        lines.append(f"  {d.path} = {d.value:g} ({d.source}): {change}")
    return "\n".join(lines)
