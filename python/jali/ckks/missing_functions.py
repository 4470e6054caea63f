"""What newcomers look for among the named functions of CKKS: a sentence for each name."""

from __future__ import annotations

from jali.errors import NotOffered

__all__ = ["FUNCTIONS", "not_offered"]

SMOOTH = (
    "ckks.Polynomial.approximate(f, degree, interval) makes a polynomial near a smooth function f, "
    "and evaluator.polynomial(x, polynomial) computes it"
)
SOFTMAX = (
    "decrypt the numbers and compute it in the clear, or compute e = functions.exp(interval)(x) and "
    "e * functions.inverse(interval_of_sums)(e.sum())"
)

#: Names that jali.ckks.functions does not have.
FUNCTIONS = {
    **dict.fromkeys(("softmax", "log_softmax", "softmin", "logsumexp"), SOFTMAX),
    **dict.fromkeys(("swish",), "it is functions.silu(interval)"),
    **dict.fromkeys(("logistic", "expit"), "it is functions.sigmoid(interval)"),
    **dict.fromkeys(("abs", "fabs"), "it is functions.absolute(bound)"),
    **dict.fromkeys(("max", "amax", "fmax"), "functions.maximum(bound) gives f, and f(x, y)"),
    **dict.fromkeys(("min", "amin", "fmin"), "functions.minimum(bound) gives f, and f(x, y)"),
    "argmin": "functions.argmax(...) of -x gives it",
    **dict.fromkeys(
        ("reciprocal", "divide", "div", "inv"),
        "functions.inverse(interval) gives f with f(x) = 1/x",
    ),
    **dict.fromkeys(("rsqrt", "invsqrt", "inv_sqrt"), "it is functions.inverse_sqrt(interval)"),
    **dict.fromkeys(("square", "cube", "pow", "power"), "write x ** n for a whole number n from 1"),
    **dict.fromkeys(("sum", "mean", "var"), "arrays have it as a method, x.sum() or x.mean(axis)"),
    **dict.fromkeys(
        ("where", "heaviside", "greater", "less", "compare", "threshold"),
        "functions.step(gap=...) of x is 1 where x > 0 and 0 where x < 0",
    ),
    **dict.fromkeys(("polynomial", "Polynomial", "approximate", "chebyshev"), SMOOTH),
}


def not_offered(name: str) -> NotOffered:
    """The error for a name that jali.ckks.functions does not have."""
    sentence = FUNCTIONS.get(name, f"dir(ckks.functions) lists what there is; {SMOOTH}")
    return NotOffered(f"jali.ckks.functions has no {name}: {sentence}")
