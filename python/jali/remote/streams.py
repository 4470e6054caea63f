"""Many inputs under way at once, whose results come in the order of the inputs."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, Protocol, TypeVar

from jali._core import checks

__all__ = ["Window", "arguments", "checked_in_flight"]


class Cancellable(Protocol):
    """Work that was begun."""

    def cancel(self) -> Any: ...


Work = TypeVar("Work", bound=Cancellable)


class Window(Generic[Work]):
    """Work that was begun and whose results nobody has yet, the oldest first.

    most: how much there is at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._works: deque[Work] = deque()

    @property
    def has_room(self) -> bool:
        """Whether more work may begin."""
        return len(self._works) < self._most

    @property
    def oldest(self) -> Work | None:
        """The work whose result is next; None if there is none."""
        return self._works[0] if self._works else None

    def add(self, work: Work) -> None:
        """Work was begun."""
        self._works.append(work)

    def pop(self) -> None:
        """The oldest has ended."""
        self._works.popleft()

    def cancel(self) -> None:
        """Ends all work."""
        for work in self._works:
            work.cancel()
        self._works.clear()

    def __repr__(self) -> str:
        return f"{len(self._works)} of {self._most} under way"


def arguments(given: Any) -> tuple[Any, ...]:
    """The arguments of a call for an entry of a stream: a tuple holds one for each input of the
    model."""
    return given if isinstance(given, tuple) else (given,)


def checked_in_flight(value: Any) -> int:
    """The argument in_flight. Raises InvalidArgument for no whole number from 1 on."""
    return checks.whole(value, 1, "in_flight must be a whole number of requests, at least 1")
