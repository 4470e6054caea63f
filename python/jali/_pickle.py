"""How objects that may be pickled come back."""

from __future__ import annotations

from jali._jali import Params


def params(data: bytes) -> Params:
    """Parameters from their bytes."""
    return Params.from_bytes(data)
