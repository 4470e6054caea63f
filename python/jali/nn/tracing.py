"""Tracing of plain Python functions."""

from __future__ import annotations

from jali.compiler.frontends.tracing import Builder, Traced, innermost, trace_function

__all__ = ["Builder", "Traced", "innermost", "trace_function"]
