"""The logger "jali": what a service wants to know of this library. Silent until the program sets
logging up.

Records carry text and numbers alone: never a key, a seed, a plaintext or an object that holds one.
"""

from __future__ import annotations

import logging

__all__ = ["logger"]

logger = logging.getLogger("jali")
logger.addHandler(logging.NullHandler())
