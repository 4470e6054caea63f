"""What a graph computes, in the clear."""

from __future__ import annotations

from jali.compiler.ir.execute import check_count, checked_examples, every_value, execute, iterations

__all__ = ["check_count", "checked_examples", "every_value", "execute", "iterations"]
