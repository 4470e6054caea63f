"""How much memory a process takes, and how much is free on a device, as the system says."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

__all__ = ["free", "resident"]

_QUERY = ("nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", "--id")


def resident() -> int:
    """The bytes of memory of this process; where the system does not say that, the most that it ever
    had."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return pages * resource.getpagesize()


def free(device: str) -> int:
    """The bytes that are free on a device; 0 if nobody knows.

    device: "cpu" or "cuda:K".

    >>> from jali.serve.memory import free
    >>> free("cpu") > 0
    True
    """
    return _of_host() if device == "cpu" else _of_gpu(int(device.partition(":")[2]))


def _of_host() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(one.split()[1]) << 10 for one in lines if one.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _of_gpu(number: int) -> int:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = visible.split(",") if visible else []
    name = names[number].strip() if number < len(names) else str(number)
    try:
        said = subprocess.run(
            [*_QUERY, name], capture_output=True, text=True, check=True, timeout=30
        )
        return int(said.stdout.split()[0]) << 20
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0
