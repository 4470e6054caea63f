"""The compiled core of Jali. Use the package jali, which wraps it."""

import os
from typing import Any, BinaryIO

from jali._jali import (
    ckks as ckks,
    device as device,
    discrete as discrete,
    program as program,
    tfhe as tfhe,
)

def build_info() -> dict[str, Any]:
    """
    Facts about this build: version, commit of the sources ("unknown" if they were no checkout), compiler, assertions, and whether it has the CUDA engine and guards stacks and buffers (hardened).
    """

def replace_file(
    file: str | os.PathLike[str] | BinaryIO, data: bytes | bytearray | memoryview
) -> None:
    """
    Write bytes to a path, which is replaced at once or stays as it was, or to a file opened with "wb". Raises FileError. See base/replace_file.h.
    """

def check_replaceable(file: str | os.PathLike[str]) -> None:
    """
    Raises the FileError that replace_file raises before it writes, for callers that work long before they write.
    """
