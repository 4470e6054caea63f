"""What parameters of programs are chosen from."""

from __future__ import annotations

from jali.compiler.planning.parameters import (
    LEAST_INTEGER_BITS,
    MORE_BITS,
    MOST_BITS,
    Bootstrapping,
    Ring,
    integer_bits_of,
    needed_bits,
    rings,
    smallest,
    switch_work,
)

__all__ = [
    "LEAST_INTEGER_BITS",
    "MORE_BITS",
    "MOST_BITS",
    "Bootstrapping",
    "Ring",
    "integer_bits_of",
    "needed_bits",
    "rings",
    "smallest",
    "switch_work",
]
