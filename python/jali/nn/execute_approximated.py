"""What a graph with approximated functions computes, in the clear."""

from __future__ import annotations

from jali.compiler.passes.execute_approximated import computed, expected, scaled, unscaled

__all__ = ["computed", "expected", "scaled", "unscaled"]
