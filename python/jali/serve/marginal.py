"""What a further request of a batch costs, learnt from the batches that were computed."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Marginals"]

_FRESH = 0.2  # the part of a measurement in what is known
_CHANGED = 0.05  # a smaller difference is not worth telling


class Marginals:
    """For each program, the time of a further request in a batch over its time alone, 0 to 1.

    >>> from jali.serve.marginal import Marginals
    >>> marginals = Marginals()
    >>> marginals.ran("digits", "gpu0", [0.3], 0.3)
    >>> round(marginals.ran("digits", "gpu0", [0.3] * 4, 0.6), 2)  # a third for each further one
    0.33
    """

    def __init__(self) -> None:
        self._alone: dict[tuple[str, str], float] = {}
        self._found: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def ran(
        self, program: str, worker: str, alone: Sequence[float], seconds: float
    ) -> float | None:
        """Learns from a batch. Returns the program's marginal cost if it has changed.

        program, worker: their names.
        alone: the seconds that each request was predicted to take alone.
        seconds: what the batch took.
        """
        place, longest, total = (program, worker), max(alone), sum(alone)
        if len(alone) == 1:
            ratio = seconds / longest
            old = self._alone.get(place, ratio)
            self._alone[place] = old + _FRESH * (ratio - old)
            return None
        if place not in self._alone:
            return None
        more = seconds / self._alone[place] - longest
        found = min(max(more / (total - longest), 0.0), 1.0)
        known = self._found.get(program, found)
        self._found[program] = known = known + _FRESH * (found - known)
        if abs(known - self._told.get(program, 1.0)) < _CHANGED:
            return None
        self._told[program] = known
        return known
