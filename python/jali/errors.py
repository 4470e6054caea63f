"""The errors of Jali: one base class, one subclass for each kind of failure.

Every message is a sentence that says what to change; ``code`` names the kind for programs and logs.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AuthenticationError",
    "CorruptData",
    "DeadlineExceeded",
    "DepthExhausted",
    "DeviceLost",
    "Error",
    "FileError",
    "IndexOutOfRange",
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
]


class Error(Exception):
    """The base class of every error that Jali raises."""

    code: ClassVar[str] = "internal"


class InvalidArgument(Error, ValueError):
    """A value outside its documented range."""

    code = "invalid_argument"


class IndexOutOfRange(InvalidArgument, IndexError):
    """An index of an encrypted array that it does not have."""


class InsecureParams(Error):
    """Parameters below the requested security."""

    code = "insecure"


class DepthExhausted(Error):
    """No level is left for the operation."""

    code = "depth_exhausted"


class ScaleMismatch(Error):
    """Operands whose scales differ, or a scale that does not fit its level."""

    code = "scale_mismatch"


class RangeExceeded(Error):
    """Numbers that may be larger than a level holds: nothing was computed."""

    code = "range_exceeded"


class WrongDecryption(Error):
    """A decryption that is not what its ciphertext says: another key, or numbers beyond their
    range."""

    code = "wrong_decryption"


class ParamsMismatch(Error):
    """Objects that belong to different parameters."""

    code = "params_mismatch"


class KeyMismatch(Error):
    """Objects that belong to different secret keys: two clients, or a client and another client's
    keys."""

    code = "key_mismatch"


class KeyMissing(Error):
    """The operation needs an evaluation key that was not made."""

    code = "key_missing"


class CorruptData(Error):
    """Bytes that are not a well-formed object."""

    code = "corrupt_data"


class AuthenticationError(Error):
    """Bytes that were not sealed with this key for this request."""

    code = "authentication"


class VersionError(Error):
    """Bytes of a format that this build does not read."""

    code = "version"


class LimitExceeded(Error):
    """An object larger than the declared limit."""

    code = "limit_exceeded"


class DeadlineExceeded(LimitExceeded, TimeoutError):
    """A run that was ended because its time was over."""


class OutOfMemory(Error, MemoryError):
    """Less memory is free than the operation needs."""

    code = "out_of_memory"


class FileError(Error, OSError):
    """A file that cannot be read or written."""

    code = "file"


class NoDevice(Error):
    """A device that this machine lacks, or that this build does not support."""

    code = "no_device"


class DeviceLost(Error):
    """A device that failed while it was in use: make a new Evaluator once it is back."""

    code = "device_lost"


class LaunchFailed(Error):
    """A kernel that the device would not start."""

    code = "launch_failed"


class Unsupported(Error):
    """A valid request that this engine or this type cannot serve."""

    code = "unsupported"


class WrongCall(InvalidArgument, TypeError):
    """A call with arguments that a function does not have, lacks, or cannot take."""


class NotPickled(Unsupported, TypeError):
    """An object that cannot be pickled: its bytes are written and read by methods of its own."""


class NotOffered(Unsupported, AttributeError):
    """A name that an object or module does not have."""


class InternalError(Error):
    """A broken invariant inside Jali: please report it."""

    code = "internal"


def from_code(code: str, message: str) -> Error:
    """The error with this code; an unknown code gives InternalError. The binding uses it."""
    for kind in Error.__subclasses__():
        if kind.code == code:
            return kind(message)
    return InternalError(f"{message} (code {code})")
