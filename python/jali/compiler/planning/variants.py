"""Settings beside those that were asked for, of which plans are tried to choose from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jali.compiler.planning.batches import room_for
from jali.compiler.planning.plan import Plan

__all__ = ["Setting", "settings_beside"]

_FEWER, _FEWEST, _MORE = 2.0, 4.0, 4.0  # bits of precision
_LEAST, _MOST = 1.0, 40.0
_MUCH = 1 << 26  # bytes of matrices and keys of bootstrapping, of which a half is worth a try


@dataclass(frozen=True)
class Setting:
    """Arguments of jali.compile.

    bits: precision_bits.
    lanes: batch.
    memory: in bytes; None for what was asked for.
    relu_degree: None for ReLUs as they are, or as was asked for.
    """

    bits: float
    lanes: int
    memory: int | None = None
    relu_degree: int | None = None

    def beside(self, other: Setting) -> dict[str, object]:
        """The arguments in which it differs."""
        pairs = {
            "precision_bits": (_whole(self.bits), _whole(other.bits)),
            "batch": (self.lanes, other.lanes),
            "memory": (self.memory, other.memory),
            "relu_degree": (self.relu_degree, other.relu_degree),
        }
        return {name: mine for name, (mine, theirs) in pairs.items() if mine != theirs}


def _whole(bits: float) -> float:
    """The same, as an int if it is one."""
    return int(bits) if bits == int(bits) else bits


def settings_beside(
    asked: Setting, plan: Plan, held_bytes: int, relu_degree: int | None = None
) -> Iterator[Setting]:
    """Settings to try, those that say most first: polynomials in the place of ReLUs, less
    precision, as many examples as the slots have room for, half of the memory, and more precision.

    plan: of what was asked for.
    held_bytes: of its matrices and keys of bootstrapping in the server.
    relu_degree: of the polynomials, or None to leave them out.
    """
    if relu_degree is not None:
        yield replace(asked, relu_degree=relu_degree)
    if asked.bits - _FEWER >= _LEAST:
        yield replace(asked, bits=asked.bits - _FEWER)
    room = room_for(plan)
    if room > asked.lanes:
        yield replace(asked, lanes=room)
    if held_bytes > _MUCH:
        yield replace(asked, memory=held_bytes // 2)
    if asked.bits + _MORE <= _MOST:
        yield replace(asked, bits=asked.bits + _MORE)
    if asked.bits - _FEWEST >= _LEAST:
        yield replace(asked, bits=asked.bits - _FEWEST)
