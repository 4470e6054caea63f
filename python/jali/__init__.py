"""Jali: fully homomorphic encryption.

``jali.ckks`` computes on encrypted vectors of real or complex numbers, ``jali.discrete`` on vectors
of integers, exactly, and ``jali.tfhe`` on small integers and bits one by one, exactly.
``jali.compile`` makes an encrypted program of a trained model.
``jali.simulate`` runs programs on models of accelerators. Every error that Jali raises is a
``jali.Error``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jali._jali import build_info  # first: a subinterpreter is refused before it has NumPy

# isort: split
from jali import ckks, tfhe
from jali._core.refusals import of_module as _of_module
from jali.errors import (
    AuthenticationError,
    CorruptData,
    DeadlineExceeded,
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

if TYPE_CHECKING:
    from jali import discrete, nn, simulate
    from jali.nn.compile import compile
    from jali.remote import AsyncRemote, Remote

__version__: str = build_info()["version"]

__all__ = [
    "AsyncRemote",
    "AuthenticationError",
    "CorruptData",
    "DeadlineExceeded",
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
    "Remote",
    "ScaleMismatch",
    "Unsupported",
    "VersionError",
    "WrongDecryption",
    "__version__",
    "build_info",
    "ckks",
    "compile",
    "discrete",
    "nn",
    "simulate",
    "tfhe",
]


#: Names that are imported when they are first used: exact integers, the compiler, the models of
#: accelerators and services, by the module that has them; None for a module itself.
_LATER = {
    "AsyncRemote": "remote",
    "Remote": "remote",
    "compile": "nn",
    "discrete": None,
    "nn": None,
    "simulate": None,
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise _of_module(__name__, name)
    from importlib import import_module

    module = import_module(f"jali.{_LATER[name] or name}")
    found = module if _LATER[name] is None else getattr(module, name)
    globals()[name] = found  # the next access does not come here
    return found
