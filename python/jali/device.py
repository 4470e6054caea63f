"""Devices: which there are, what they are called, and which one a name means."""

from __future__ import annotations

import sys
import warnings

from jali._core import checks, refusals
from jali._core.log import logger
from jali._jali import device as _device
from jali.errors import InvalidArgument

__all__ = ["available", "checked_threads", "name", "resolved", "tuned"]


def available() -> list[str]:
    """The devices of this machine that this build can use: "cpu", "cuda:0", "cuda:1", ...

    >>> "cpu" in device.available()
    True
    """
    return ["cpu", *(f"cuda:{k}" for k in range(_device.cuda_device_count()))]


def resolved(device: str) -> str:
    """ "cpu" or "cuda:K" for the name of a device; names of another kind as they are.

    "auto" is what JALI_DEVICE names, else the first GPU that build and machine have, else the CPU.
    "cuda" is "cuda:0". Warns of a GPU that is here and cannot be used. Raises InvalidArgument for
    what is no string, and for "cuda:" followed by what is no number.

    >>> device.resolved("cpu")
    'cpu'
    """
    name, _, warning = _device.resolve(_checked(device))
    _tell(device, name, warning)
    return name


def tuned(device: str, word: str, log_n: int) -> tuple[str, dict[str, str]]:
    """As resolved, and the implementations by family that ``jali tune`` found fastest there for a
    word and a ring.

    device: as of ``resolved``.
    word: "w32", "w52" or "w64".
    log_n: the logarithm of the ring's dimension to base 2.

    Warns of a tuning file that cannot be used, too; the engine's own choices serve then.

    >>> name, fastest = device.tuned("cpu", "w64", 13)
    >>> name
    'cpu'
    """
    name, variants, warning = _device.resolve(_checked(device), word, log_n)
    _tell(device, name, warning)
    return name, variants


def _checked(device: str) -> str:
    if not isinstance(device, str):
        raise InvalidArgument(
            f'device must be a name such as "auto", "cpu" or "cuda:0", not {checks.shown(device)}'
        )
    return device


def _tell(device: str, name: str, warning: str) -> None:
    if device == "auto":
        logger.info('device "auto" is %s', name)
    if warning:
        logger.warning("%s", warning)
        warnings.warn(warning, RuntimeWarning, stacklevel=_callers() + 1)


def _callers() -> int:
    """How many frames lie between the caller of this function, included, and the first one outside
    of this package."""
    frame, count = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("jali."):
        frame, count = frame.f_back, count + 1
    return count


def checked_threads(threads: int | None) -> int:
    """0, for "choose", or a number of threads.

    >>> device.checked_threads(2)
    2
    """
    if threads is None:
        return 0
    return checks.whole(
        threads, 1, "threads must be a whole number of at least 1, or None for every core"
    )


def name(device: str = "cpu") -> str:
    """A GPU's name; or the processor's model, and how many cores this process may use.

    >>> isinstance(device.name("cpu"), str)
    True
    """
    return _device.device_name(device)


def __getattr__(name: str) -> object:
    raise refusals.of_module(__name__, name)
