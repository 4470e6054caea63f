"""Keys in one place, in the order of their last use, never more than its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jali.errors import InternalError

__all__ = ["Level"]


class Level:
    """The keys on a device, in a host's memory or on disk.

    >>> level = Level(10)
    >>> level.add("a", 4)
    >>> level.add("b", 5)
    >>> level.refresh("a")
    >>> level.victims(6, lambda key: 0), level.victims(11, lambda key: 0)
    (['b'], None)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used = capacity, 0
        self._nbytes: dict[str, int] = {}  # the least recently used first

    def __contains__(self, key: str) -> bool:
        return key in self._nbytes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nbytes)

    def refresh(self, key: str) -> None:
        """Makes a key the last one used."""
        self._nbytes[key] = self._nbytes.pop(key)

    def victims(self, nbytes: int, rank: Callable[[str], int | None]) -> list[str] | None:
        """Which keys must leave so that so many bytes fit, or None if they cannot.

        rank: of a key: those of the lowest rank leave first, and among them the least recently
            used. None is for a key that must stay.
        """
        if nbytes > self.capacity:
            return None
        missing = self.used + nbytes - self.capacity
        if missing <= 0:
            return []
        ranks = [(found, key) for key in self._nbytes if (found := rank(key)) is not None]
        leaving: list[str] = []
        for _, key in sorted(ranks, key=lambda pair: pair[0]):  # stable: the order of last use
            leaving.append(key)
            missing -= self._nbytes[key]
            if missing <= 0:
                return leaving
        return None

    def add(self, key: str, nbytes: int) -> None:
        """Takes room for a key."""
        if key in self._nbytes or self.used + nbytes > self.capacity:
            raise InternalError(f"no room for {key}: {self.used} of {self.capacity} bytes are used")
        self._nbytes[key] = nbytes
        self.used += nbytes

    def remove(self, key: str) -> None:
        """Gives the room of a key back, if it has any."""
        self.used -= self._nbytes.pop(key, 0)
