"""Programs of services: ``jali.Remote``, its asynchronous twin, and their errors.

A service of ``jali serve`` answers what docs/reference/http.md lists. This package imports neither
the service nor the compiler, and httpx only when a Remote is made.
"""

from __future__ import annotations

from jali.remote.asynchronous import AsyncRemote, AsyncResults
from jali.remote.errors import (
    AccessDenied,
    BadAnswer,
    ProgramReplaced,
    ServiceError,
    Unavailable,
)
from jali.remote.programs import ServedProgram
from jali.remote.synchronous import Remote, Results

__all__ = [
    "AccessDenied",
    "AsyncRemote",
    "AsyncResults",
    "BadAnswer",
    "ProgramReplaced",
    "Remote",
    "Results",
    "ServedProgram",
    "ServiceError",
    "Unavailable",
]
