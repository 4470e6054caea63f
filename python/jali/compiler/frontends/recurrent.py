"""Recurrent layers as loops. The readers of models share them.

A sequence is an array (steps, features) of one example. Weights of several gates lie one after the
other along their first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.loops import scan
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.graph import Array
from jali.errors import InvalidArgument, Unsupported

__all__ = ["GATES", "Cell", "run"]

#: The gates of every kind of cell, in the order in which ``Cell`` has them.
GATES: Mapping[str, str] = {"RNN": "h", "LSTM": "ifgo", "GRU": "rzn"}

_FUNCTIONS = ("tanh", "sigmoid", "relu")


@dataclass(frozen=True, eq=False)
class Cell:
    """The weights of a recurrent layer in one direction, with n units and g gates.

    kind: "RNN", "LSTM" or "GRU". outer (g n, features) multiplies the sequence, inner (g n, n) the
        state. outer_bias, inner_bias (g n).
    activations: the function of each gate and, for an LSTM, of the cell's state.
    reset_after: of a GRU, whether the reset gate multiplies the product with the state, as in
        PyTorch, or the state itself.

    An RNN is h = tanh(outer x + inner h + biases). An LSTM is
        i, f, o = sigmoid(..), g = tanh(..), c = f c + i g, h = o tanh(c)    (Hochreiter and
        Schmidhuber 1997, with forget gates),
    and a GRU
        r, z = sigmoid(..), n = tanh(outer x + r (inner h)), h = (1 - z) n + z h     (Cho et al.
        2014).
    """

    kind: str
    outer: Array
    inner: Array
    outer_bias: Array | float = 0.0
    inner_bias: Array | float = 0.0
    activations: Sequence[str] = field(default=())
    reset_after: bool = True

    def __post_init__(self) -> None:
        gates, units = len(GATES[self.kind]), self.units
        if self.inner.shape != (gates * units, units) or len(self.outer) != gates * units:
            raise InvalidArgument(
                f"the weights of {self.kind} have the shapes {self.outer.shape} and {self.inner.shape}, which do not belong together"
            )
        for name in self.activations:
            if name not in _FUNCTIONS:
                raise Unsupported(
                    f"the activation {name}: recurrent layers have {', '.join(_FUNCTIONS)}"
                )

    @property
    def units(self) -> int:
        """How many numbers a state has."""
        return int(self.inner.shape[1])

    @property
    def states(self) -> int:
        """How many states there are: h, and for an LSTM c."""
        return 2 if self.kind == "LSTM" else 1

    def _functions(self) -> list[str]:
        defaults = {
            "RNN": ("tanh",),
            "LSTM": ("sigmoid", "sigmoid", "tanh", "sigmoid", "tanh"),
            "GRU": ("sigmoid", "sigmoid", "tanh"),
        }
        return list(self.activations or defaults[self.kind])

    def step(self) -> Callable[..., tuple[Any, ...]]:
        """The states after a step, of the states and the sequence's part: outer x + outer_bias."""
        n, act = self.units, self._functions()
        inner = [self.inner[k * n : (k + 1) * n] for k in range(len(GATES[self.kind]))]
        bias = np.broadcast_to(self.inner_bias, (len(self.inner),)).reshape(-1, n)

        def gate(k: int, h: Any, x: Any) -> Any:
            return _applied(act[k], inner[k] @ h + (x[k * n : (k + 1) * n] + bias[k]))

        def rnn(h: Any, x: Any) -> tuple[Any, ...]:
            return (gate(0, h, x),)

        def lstm(h: Any, c: Any, x: Any) -> tuple[Any, ...]:
            i, f, g, o = (gate(k, h, x) for k in range(4))
            c = f * c + i * g
            return o * _applied(act[4], c), c

        def gru(h: Any, x: Any) -> tuple[Any, ...]:
            r, z = gate(0, h, x), gate(1, h, x)
            if self.reset_after:
                new = x[2 * n :] + r * (inner[2] @ h + bias[2])
            else:
                new = x[2 * n :] + (inner[2] @ (r * h) + bias[2])
            new = _applied(act[2], new)
            return (new + z * (h - new),)

        steps: dict[str, Callable[..., tuple[Any, ...]]] = {"RNN": rnn, "LSTM": lstm, "GRU": gru}
        return steps[self.kind]


def _applied(name: str, x: Any) -> Any:
    if isinstance(x, Traced):
        return x._function(name)
    clear: dict[str, Callable[[Any], Any]] = {
        "tanh": np.tanh,
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "relu": lambda v: v * (v > 0),
    }
    return clear[name](x)


def run(
    cell: Cell, sequence: Traced, start: Sequence[Any] | None = None, *, reverse: bool = False
) -> tuple[Any, list[Any]]:
    """(h after every step (steps, units), the last states). What does not depend on the states is
    computed for all steps at once.

    start: the first states, encrypted or clear; None stands for zeros.
    reverse: the sequence is read from its end; h after the step that reads place t lies at place t.
    """
    if sequence.ndim != 2 or sequence.shape[1] != cell.outer.shape[1]:
        raise InvalidArgument(
            f"its sequence has the shape {sequence.shape}, and it takes (steps, {cell.outer.shape[1]})"
        )
    bias = np.broadcast_to(cell.outer_bias, (len(cell.outer),))
    parts = sequence @ cell.outer.T + bias
    steps, step = parts.shape[0], cell.step()
    order = range(steps)[::-1] if reverse else range(steps)
    states = [np.zeros(cell.units)] * cell.states if start is None else list(start)

    def body(*given: Any) -> tuple[tuple[Any, ...], Any]:
        after = step(*given)
        return after, after[0]

    # The names of a traced body are those of its arguments.
    one = (lambda h, x: body(h, x)) if cell.states == 1 else (lambda h, c, x: body(h, c, x))
    last, hidden = scan(one, tuple(states), [parts[t] for t in order])
    return (layers.taken(hidden, 0, list(order)) if reverse else hidden), list(last)
