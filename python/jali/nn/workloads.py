"""Functions of arrays that train and recur: for arrays of NumPy, and for jali.compile.

program = jali.compile(lambda x: workloads.logistic_regression(x, 32), batch, calibration=batches)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.nn import scalar
from jali.nn.graph import Array
from jali.nn.loops import loop

__all__ = ["SIGMOID", "TANH", "logistic_regression", "lstm", "momenta", "recurrent"]

#: sigmoid(-z) for |z| up to about 16, beyond which it turns round (Kim et al. 2018, as used for MNIST by Han et al. 2019).
SIGMOID = (0.5, -0.0843, 0.0, 0.0002)
#: tanh, as Podschwadt and Takabi (2020) have it.
TANH = (0.0, 0.249476365628036, 0.0, -0.00163574303018748)


def momenta(count: int) -> Array:
    """Nesterov's eta for every iteration: a_0 = 0, a_i = (1 + sqrt(1 + 4 a_(i-1)^2)) / 2, eta_i = (1 - a_i) / a_(i+1)."""
    a = [0.0]
    for _ in range(count + 1):
        a.append((1 + math.sqrt(1 + 4 * a[-1] ** 2)) / 2)
    return np.array([(1 - a[i]) / a[i + 1] for i in range(1, count + 1)])


def logistic_regression(
    batches: Any,
    count: int,
    *,
    rate: float = 1.0,
    start: Any = None,
    sigmoid: Sequence[float] = SIGMOID,
) -> Any:
    """The weights of a logistic regression after `count` iterations of Nesterov's accelerated gradient.

    batches: an array (rows, features), or a list of them, which the iterations take in turn. A row is an example, with a 1 for the
    bias, times its label, -1 or 1. If the features are a power of two, filled up with zeros, sums take few rotations.
    rate: gamma in  w = v + gamma / rows  sum_r sigmoid(-x_r v) x_r  and  v = (1 - eta) w + eta w_before.
    """
    each = batches if isinstance(batches, list) else [batches]
    rows, features = each[0].shape

    def step(v: Any, before: Any, eta: Any, x: Any) -> Any:
        share = scalar.polynomial((x * v).sum(axis=1, keepdims=True), sigmoid)
        w = v + rate / rows * (share * x).sum(axis=0)
        return (1 - eta) * w + eta * before, w

    zero = np.zeros(features) if start is None else start
    if len(each) == 1:
        x = each[0]
        _, w = loop(lambda v, w, eta: step(v, w, eta, x), (zero, zero), momenta(count))
    else:
        turns = [each[t % len(each)] for t in range(count)]
        _, w = loop(step, (zero, zero), (momenta(count), turns))
    return w


def recurrent(
    words: Any,
    inner: Array,
    outer: Array,
    bias: Array,
    *,
    activation: Sequence[float] = TANH,
) -> Any:
    """The last state of a recurrent network (Elman 1990): h = tanh(inner h + outer x + bias) for every x of `words` (steps, features).

    The products with `outer` do not depend on h, and are computed for all steps at once.
    """
    projected = words @ outer.T + bias

    def cell(h: Any, x: Any) -> Any:
        return scalar.polynomial(inner @ h + x, activation)

    return loop(cell, np.zeros(len(bias)), projected)


def lstm(
    words: Any,
    inner: Array,
    outer: Array,
    bias: Array,
    *,
    gate: Sequence[float],
    activation: Sequence[float],
) -> Any:
    """The last h of a network of long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates).

    inner (4 units, units), outer (4 units, features) and bias (4 units,) hold the gates in PyTorch's order: input, forget, cell, output. gate
    and activation: coefficients of the polynomials in the place of the sigmoid and of tanh.
    """
    units = len(bias) // 4
    gates = [slice(k * units, (k + 1) * units) for k in range(4)]
    # A gate's parts for all steps lie as the words do, so that their matrix has as many diagonals as there are units.
    projected = (words @ outer.T + bias).reshape(len(words), 4, units).transpose(1, 0, 2)
    scale, last = _factored(activation)
    inner = scale * inner

    def cell(h: Any, c: Any, *parts: Any) -> Any:
        i, f, g, o = (inner[k] @ h + x for k, x in zip(gates, parts, strict=True))
        i, f, o = (scalar.polynomial(z, gate) for z in (i, f, o))
        c = f * c + i * scalar.polynomial(g, activation)
        return last(o, c), c

    h, _ = loop(cell, (np.zeros(units), np.zeros(units)), tuple(projected[k] for k in range(4)))
    return scale * h


def _factored(activation: Sequence[float]) -> tuple[float, Callable[[Any, Any], Any]]:
    """(s, f) with  o p(c) = s f(o, c)  for a polynomial p. If p(c) = a c + b c^3, f is (o c) (c^2 + a / b), which takes two levels of c and two of o; p
    takes two and the product one more."""
    if len(activation) == 4 and activation[3] and not activation[0] and not activation[2]:
        ratio = activation[1] / activation[3]
        return activation[3], lambda o, c: (o * c) * (c * c + ratio)
    return 1.0, lambda o, c: o * scalar.polynomial(c, activation)
