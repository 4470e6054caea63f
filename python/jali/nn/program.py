"""Compiled programs, and what makes one of a traced graph."""

from __future__ import annotations

from jali.compiler.driver import compiled
from jali.compiler.program.program import Program, Sizes

__all__ = ["Program", "Sizes", "compiled"]
