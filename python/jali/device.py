"""Devices: which there are, what they are called, and which one a name means."""

from __future__ import annotations

import functools
import os
import warnings

from jali._core import checks
from jali._core.log import logger
from jali._jali import device as _device
from jali.errors import InvalidArgument

__all__ = ["available", "checked_threads", "name", "resolved"]


def available() -> list[str]:
    """The devices of this machine that this build can use: "cpu", "cuda:0", "cuda:1", ..."""
    return ["cpu", *(f"cuda:{k}" for k in range(_device.cuda_device_count()))]


def resolved(device: str) -> str:
    """ "cpu" or "cuda:K" for the name of a device; names of another kind as they are.

    "auto" is what JALI_DEVICE names, else the first GPU that build and machine have, else the CPU. "cuda" is
    "cuda:0". Raises InvalidArgument for what is no string.
    """
    if not isinstance(device, str):
        raise InvalidArgument(
            f'device must be a name such as "auto", "cpu" or "cuda:0", not {checks.shown(device)}'
        )
    if device == "auto":
        named = os.environ.get("JALI_DEVICE")
        device = named or _best()
        logger.info('device "auto" is %s%s', device, " (JALI_DEVICE)" if named else "")
    return "cuda:0" if device == "cuda" else device


def _best() -> str:
    """The first GPU, or the CPU; warns of a GPU that is here and cannot be used."""
    if _device.cuda_device_count() > 0:
        return "cuda"
    if trouble := _device.cuda_trouble():
        logger.warning("computing on the CPU, though there is a GPU: %s", trouble)
        warnings.warn(
            f"computing on the CPU, though there is a GPU: {trouble} or JALI_DEVICE=cpu",
            RuntimeWarning,
            stacklevel=4,  # who made an Evaluator
        )
    return "cpu"


def checked_threads(threads: int | None) -> int:
    """0, for "choose", or a number of threads."""
    if threads is None:
        return 0
    return checks.whole(
        threads, 1, "threads must be a whole number of at least 1, or None for every core"
    )


@functools.cache
def name(device: str = "cpu") -> str:
    """A GPU's name; or the processor's model, and how many cores this process may use."""
    if device.startswith("cuda"):
        return _device.cuda_device_name(int(device.partition(":")[2] or 0))
    import platform

    model = processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} core{'' if cores == 1 else 's'}"


def processor() -> str:
    """The processor's model; empty where the system does not tell."""
    import platform

    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
    except OSError:
        pass
    return platform.processor()
