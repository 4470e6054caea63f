"""The compiled core of Jali. Use the package jali, which wraps it."""

from typing import Any

from jali._jali import ckks as ckks, device as device, tfhe as tfhe

def build_info() -> dict[str, Any]:
    """
    Facts about this build: version, commit of the sources ("unknown" if they were no checkout), compiler, assertions, and whether it has the CUDA engine.
    """
