"""CKKS by hand: ``Evaluator.explicit`` and the objects that it works with.

Here, nothing is relinearised, rescaled or brought to a common level unless you ask for it.
"""

from __future__ import annotations

from jali._jali.ckks import Diagonal, ExplicitEvaluator, Extended, Hoisted

__all__ = ["Diagonal", "ExplicitEvaluator", "Extended", "Hoisted"]
