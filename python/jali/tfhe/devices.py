"""What a device's name means for TFHE."""

from __future__ import annotations

from jali.device import resolved

__all__ = ["device_of"]


def device_of(name: str) -> str:
    """The device's name; "auto" is the CPU (decision 0024)."""
    return "cpu" if name == "auto" else resolved(name)
