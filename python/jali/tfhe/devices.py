"""What a device's name means for TFHE."""

from __future__ import annotations

from jali._core.log import logger
from jali._jali import device as _device
from jali.device import resolved

__all__ = ["device_of", "tell_fallback"]


def device_of(name: str) -> str:
    """The device's name as the engine takes it, which says of "auto" whether it serves the GPU that
    is here."""
    found = resolved(name)
    return name if name == "auto" else found


def tell_fallback(name: str, engine: str) -> None:
    """Logs a warning if "auto" means a GPU, and that GPU is too old for TFHE, so that the CPU
    computes. engine: that which was made for the device of this name."""
    if name != "auto" or not engine.startswith("cpu"):
        return
    found = _device.resolve(name)[0]
    if found.startswith("cuda"):
        logger.warning("%s is too old for TFHE: the engine is %s", found, engine)
