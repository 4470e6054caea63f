"""Functions of arrays that train and recur: for arrays of NumPy, and for jali.compile."""

from __future__ import annotations

from jali.compiler.frontends.workloads import (
    SIGMOID,
    TANH,
    logistic_regression,
    lstm,
    momenta,
    recurrent,
)

__all__ = ["SIGMOID", "TANH", "logistic_regression", "lstm", "momenta", "recurrent"]
