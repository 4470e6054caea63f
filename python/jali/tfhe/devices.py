"""What a device's name means for TFHE."""

from __future__ import annotations

from jali.device import resolved

__all__ = ["device_of"]


def device_of(name: str) -> str:
    """The device's name as the engine takes it, which says of "auto" whether it serves the GPU that is here."""
    found = resolved(name)
    return name if name == "auto" else found
