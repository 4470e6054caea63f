"""The progress of a compilation: a function of the caller's is told each stage when it begins, and
about how much is done by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jali._core import checks, keys
from jali.errors import InvalidArgument

__all__ = ["Counted", "Progress", "Told", "checked_progress"]

#: Called with the name of a stage, and a fraction from 0 to 1 that never falls.
Told = Callable[[str, float], object]

#: Called with how many pieces of work are done, and how many there are.
Counted = Callable[[int, int], object]


def checked_progress(progress: Counted | None) -> Counted | None:
    """The same. Raises InvalidArgument for what cannot be called."""
    keys.checked_progress(progress)
    return progress


class _Stopped(BaseException):
    """The function raised. Planning catches errors of its own, and must not take the function's for
    one of them."""


class Progress:
    """How much is done.

    tell: None tells nobody.
    """

    def __init__(self, tell: Told | None = None) -> None:
        if tell is not None and not callable(tell):
            raise InvalidArgument(
                "progress must be a function of the name of a stage and a fraction, not "
                f"{checks.shown(tell)}"
            )
        self._tell = tell
        self._done = 0.0
        self._error: BaseException | None = None

    def at(self, stage: str, done: float) -> None:
        """A stage begins, and so much is done."""
        self._done = max(self._done, done)
        if self._tell is None:
            return
        try:
            self._tell(stage, self._done)
        except BaseException as error:
            self._error = error
            raise _Stopped from None

    def some(self, stage: str, part: float) -> None:
        """A stage begins, of which nobody knows how many there are. At its end, this part of what
        was left to do is done."""
        self.at(stage, self._done)
        self._done += part * (1.0 - self._done)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Lets what the caller's function raises end the work inside, whatever catches errors
        there."""
        try:
            yield
        except _Stopped:
            assert self._error is not None
            raise self._error from None
