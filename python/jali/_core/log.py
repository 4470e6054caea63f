"""The logger "jali": what a service wants to know of this library. Silent until the program sets
logging up.

Records carry text and numbers alone: never a key, a seed, a plaintext or an object that holds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["logger"]


class _Lazy:
    """The logger, for which `logging` is imported when something is logged: that takes as long as a
    fifth of the rest of the package."""

    def __getattr__(self, name: str) -> Any:
        import logging

        found = logging.getLogger("jali")
        if not found.handlers:
            found.addHandler(logging.NullHandler())
        method = getattr(found, name)
        setattr(self, name, method)
        return method


logger = cast("Logger", _Lazy())
