"""Captured functions and batchers of CKKS."""

from __future__ import annotations

from jali._core import capture
from jali._core.capture import BatchPoint
from jali.ckks.array import EncryptedArray

__all__ = ["BatchPoint", "Batcher", "Captured"]


class Captured(capture.Captured[EncryptedArray]):
    __doc__ = capture.Captured.__doc__
    __slots__ = ()


class Batcher(capture.Batcher[EncryptedArray]):
    __doc__ = capture.Batcher.__doc__
    __slots__ = ()
