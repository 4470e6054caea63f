"""Frames of coefficients in the lanes of Strix's units: lane l of beat t is coefficient t + l T."""

from __future__ import annotations

from collections.abc import Sequence


def packed(words: Sequence[int], bits: int) -> int:
    """Lane 0 in the low bits."""
    return sum((word % (1 << bits)) << (lane * bits) for lane, word in enumerate(words))


def beats_of(words: Sequence[int], lanes: int, bits: int) -> list[int]:
    beats = len(words) // lanes
    return [packed([words[t + lane * beats] for lane in range(lanes)], bits) for t in range(beats)]
