"""Functions of arrays that train and recur: for arrays of NumPy, and for jali.compile.

program = jali.compile(lambda x: workloads.logistic_regression(x, 32), batch, calibration=batches)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.loops import loop
from jali.compiler.ir import scalar
from jali.compiler.ir.graph import Array

__all__ = ["SIGMOID", "TANH", "logistic_regression", "lstm", "momenta", "recurrent"]

#: sigmoid(-z) for |z| up to about 16, beyond which it turns round (Kim et al. 2018, as used for
#: MNIST by Han et al. 2019).
SIGMOID = (0.5, -0.0843, 0.0, 0.0002)
#: tanh, as Podschwadt and Takabi (2020) have it.
TANH = (0.0, 0.249476365628036, 0.0, -0.00163574303018748)


def momenta(count: int) -> Array:
    """Nesterov's eta for every iteration: a_0 = 0, a_i = (1 + sqrt(1 + 4 a_(i-1)^2)) / 2, eta_i =
    (1 - a_i) / a_(i+1)."""
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
    """The weights of a logistic regression after `count` iterations of Nesterov's accelerated
    gradient.

    batches: an array (rows, features), or a list of them, which the iterations take in turn. A row
        is an example, with a 1 for the bias, times its label, -1 or 1. If the features are a power
        of two, filled up with zeros, sums take few rotations.
    rate: gamma in  w = v + gamma / rows  sum_r sigmoid(-x_r v) x_r  and  v = (1 - eta) w + eta
        w_before.
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
    """The last state of a recurrent network (Elman 1990): h = tanh(inner h + outer x + bias) for
    every x of `words` (steps, features).

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
    """The last h of a network of long short-term memory (Hochreiter and Schmidhuber 1997, with
    forget gates).

    inner (4 units, units), outer (4 units, features) and bias (4 units,) hold the gates in
    PyTorch's order: input, forget, cell, output. gate and activation: coefficients of the
    polynomials in the place of the sigmoid and of tanh.

    If the activation is a multiple of the gate's polynomial without its constant, as tanh(z) = 2
    sigmoid(2 z) - 1 is, all gates are one array.
    """
    multiple = _multiple(activation, gate)
    if multiple is None:
        return _gate_by_gate(words, inner, outer, bias, gate, activation)
    return _gates_together(words, inner, outer, bias, gate, activation, *multiple)


def _multiple(p: Sequence[float], q: Sequence[float]) -> tuple[float, float] | None:
    """(r, s) with  p(z) = r (q(s z) - q(0))  for cubic polynomials p and q, p odd and q odd but for
    its constant; None if there are none."""
    if len(p) != 4 or len(q) != 4 or p[0] or p[2] or q[2] or not all((p[1], p[3], q[1], q[3])):
        return None
    square = p[3] / q[3] * (q[1] / p[1])
    if square <= 0:
        return None
    s = math.sqrt(square)
    return p[1] / (s * q[1]), s


def _gates_together(
    words: Any,
    inner: Array,
    outer: Array,
    bias: Array,
    gate: Sequence[float],
    activation: Sequence[float],
    ratio: float,
    stretch: float,
) -> Any:
    """The gates i, f, g and o lie one after the other in an array of four blocks, each padded to a
    power of two, and so do h and the next x in the array that their matrix takes. One polynomial
    and one matrix then serve all gates. Blocks meet by np.roll, which is one rotation of a
    ciphertext. What lies in other blocks than the first is of no use until it is multiplied by
    zeros.

    With activation(z) = ratio (gate(stretch z) - gate(0)), c is computed as c / ratio. Both states
    are one array, so that they are bootstrapped together: h in its first block, and c in its second
    one.
    """
    units, features = len(bias) // 4, outer.shape[1]
    block = 1 << (units - 1).bit_length()
    size = 1 << (block + features - 1).bit_length()
    rows = np.add.outer(block * np.arange(4), np.arange(units)).ravel()
    stretched = np.repeat([1.0, 1.0, stretch, 1.0], units)
    a, _, b = (k * ratio**n for k, n in zip(activation[1:], (1, 2, 3), strict=True))
    scale, last = _factored((0.0, a, 0.0, b))
    matrix, added = np.zeros((4 * block, size)), np.zeros(4 * block)
    matrix[rows, :units] = stretched[:, None] * scale * inner
    matrix[rows, block : block + features] = stretched[:, None] * outer
    added[rows] = stretched * bias
    first = np.repeat([1.0, 0.0, 0.0, 0.0], block)
    second = np.roll(first, block)
    constants = gate[0] * np.repeat([1.0, 1.0, 0.0, 1.0], block)
    odd = (0.0, *gate[1:])
    given = np.eye(size, features, -block)  # of x in the array of h and x
    kept = np.eye(size, 4 * block) * first  # of h there

    def states(v: Any, s: Any) -> Any:
        gates = scalar.polynomial(matrix @ v + added, odd) + constants
        g, o = np.roll(gates, -2 * block), np.roll(gates, -3 * block)
        c = gates * g + np.roll(s * gates, -block)
        return last(first * o, c) + np.roll(c, block) * second

    def cell(v: Any, s: Any, x: Any) -> Any:
        s = states(v, s)
        return kept @ s + x, s

    x = words @ given.T
    v, s = x[0], np.zeros(4 * block)
    if len(words) > 1:
        v, s = loop(cell, (v, s), x[1:])
    return scale * states(v, s)[:units]


def _gate_by_gate(
    words: Any,
    inner: Array,
    outer: Array,
    bias: Array,
    gate: Sequence[float],
    activation: Sequence[float],
) -> Any:
    """Every gate is an array, with a matrix and a polynomial of its own."""
    units = len(bias) // 4
    gates = [slice(k * units, (k + 1) * units) for k in range(4)]
    # A gate's parts for all steps lie as the words do, so that their matrix has as many diagonals
    # as there are units.
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
    """(s, f) with  o p(c) = s f(o, c)  for a polynomial p. If p(c) = a c + b c^3, f is (o c) (c^2 +
    a / b), which takes two levels of c and two of o; p takes two and the product one more."""
    if len(activation) == 4 and activation[3] and not activation[0] and not activation[2]:
        ratio = activation[1] / activation[3]
        return activation[3], lambda o, c: (o * c) * (c * c + ratio)
    return 1.0, lambda o, c: o * scalar.polynomial(c, activation)
