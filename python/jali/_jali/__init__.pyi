"""The compiled core of Jali. Use the package jali, which wraps it."""

from typing import Any

from . import bench as bench
from . import ckks as ckks
from . import device as device

def build_info() -> dict[str, Any]:
    """
    Facts about this build: version, compiler, whether a CUDA backend is in it.
    """
