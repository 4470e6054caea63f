"""What collects the nodes of a graph."""

from __future__ import annotations

from jali.compiler.ir.builder import Builder, TracedArray, innermost

__all__ = ["Builder", "TracedArray", "innermost"]
