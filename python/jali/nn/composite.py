"""The sign by a composition of odd polynomials of given degrees."""

from __future__ import annotations

from jali.compiler.passes.composite import Composite, sign

__all__ = ["Composite", "sign"]
