"""jali.compile: a model in, an encrypted program out."""

from __future__ import annotations

from jali.compiler.compile import compile, trace

__all__ = ["compile", "trace"]
