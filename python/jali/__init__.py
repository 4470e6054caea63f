"""Jali: fully homomorphic encryption.

``jali.ckks`` computes on encrypted vectors of real or complex numbers, ``jali.tfhe`` on small integers and bits, exactly. Every
error that Jali raises is a ``jali.Error``.
"""

from __future__ import annotations

from jali import ckks, tfhe
from jali._jali import build_info
from jali.errors import (
    AuthenticationError,
    CorruptData,
    DepthExhausted,
    DeviceLost,
    Error,
    FileError,
    InsecureParams,
    InternalError,
    InvalidArgument,
    KeyMismatch,
    KeyMissing,
    LaunchFailed,
    LimitExceeded,
    NoDevice,
    OutOfMemory,
    ParamsMismatch,
    RangeExceeded,
    ScaleMismatch,
    Unsupported,
    VersionError,
    WrongDecryption,
)

__version__: str = build_info()["version"]

__all__ = [
    "AuthenticationError",
    "CorruptData",
    "DepthExhausted",
    "DeviceLost",
    "Error",
    "FileError",
    "InsecureParams",
    "InternalError",
    "InvalidArgument",
    "KeyMismatch",
    "KeyMissing",
    "LaunchFailed",
    "LimitExceeded",
    "NoDevice",
    "OutOfMemory",
    "ParamsMismatch",
    "RangeExceeded",
    "ScaleMismatch",
    "Unsupported",
    "VersionError",
    "WrongDecryption",
    "__version__",
    "build_info",
    "ckks",
    "tfhe",
]
