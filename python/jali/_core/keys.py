"""Arguments of those who make keys, for the schemes that rotate slots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jali._core import checks
from jali.errors import InvalidArgument

__all__ = ["checked_progress", "checked_rotations"]


def checked_progress(progress: Any) -> None:
    """Raises InvalidArgument for what cannot be called."""
    if progress is not None and not callable(progress):
        raise InvalidArgument(
            f"progress must be a function of two whole numbers, not {checks.shown(progress)}"
        )


def checked_rotations(rotations: Iterable[int] | str) -> list[int] | str:
    """The rotations as a list of Python integers, or "powers". Raises InvalidArgument for anything
    else."""
    if isinstance(rotations, str):
        if rotations != "powers":
            raise InvalidArgument(
                f'rotations must be whole numbers of slots, or "powers", not {checks.shown(rotations)}'
            )
        return rotations
    try:
        steps = list(rotations)
    except TypeError:
        raise InvalidArgument("rotations must be a sequence of whole numbers") from None
    for step in steps:
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise InvalidArgument(
                f"a rotation must be a whole number of slots, not {checks.shown(step)}"
            )
        if not -(2**30) <= step <= 2**30:
            raise InvalidArgument(
                f"rotation {checks.shown(step)} is out of range: reduce it modulo the number of slots"
            )
    return [int(step) for step in steps]
