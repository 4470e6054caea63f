"""What ends a run of a server before it is done: a deadline, or a function that raises."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from jali._core import checks
from jali.errors import DeadlineExceeded, InvalidArgument

__all__ = ["Checked", "checked_function", "stop_of"]


def checked_function(function: Callable[[], object] | None) -> Callable[[], object] | None:
    """A checkpoint. Raises InvalidArgument for what cannot be called."""
    if function is not None and not callable(function):
        raise InvalidArgument(
            f"a checkpoint is a function without arguments, or None, not {checks.shown(function)}"
        )
    return function


def stop_of(
    deadline: float | None, checkpoint: Callable[[], object] | None
) -> Callable[[], object] | None:
    """A function to call during a run, which raises DeadlineExceeded behind the deadline, and else
    calls the checkpoint; None for neither.

    deadline: a moment of time.monotonic().

    Raises InvalidArgument for a deadline that is no number, and a checkpoint that cannot be called.
    """
    checked_function(checkpoint)
    if deadline is None:
        return checkpoint
    number = isinstance(deadline, (int, float)) and not isinstance(deadline, bool)
    if not number or math.isnan(deadline):
        raise InvalidArgument(
            f"deadline is a moment of time.monotonic(), not {checks.shown(deadline)}"
        )

    def stop() -> None:
        if time.monotonic() >= deadline:
            raise DeadlineExceeded(
                "the run was ended at its deadline: give it more time, or fewer examples at once"
            )
        if checkpoint is not None:
            checkpoint()

    return stop


class Checked(AbstractContextManager[None]):
    """While it is entered, what this thread computes on an engine calls a function; see
    Evaluator.checkpoint."""

    def __init__(self, core: Any, function: Callable[[], object] | None) -> None:
        self._core, self._function = core, function
        self._before: object = None

    def __enter__(self) -> None:
        self._before = self._core.exchange_checkpoint(self._function)

    def __exit__(self, *_: object) -> None:
        self._core.exchange_checkpoint(self._before)
