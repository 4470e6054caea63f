"""Recurrent layers of ONNX, as loops. See jali.compiler.frontends.onnx_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_values import Attrs, Operation, Value, clear, given, text
from jali.compiler.frontends.recurrent import GATES, Cell, run
from jali.compiler.frontends.tracing import Traced
from jali.errors import InvalidArgument, Unsupported

__all__ = ["RECURRENT"]

_ORDERS = {"RNN": "h", "LSTM": "iofg", "GRU": "zrn"}  # of the gates in ONNX
_DIRECTIONS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
_DEFAULTS = {
    "RNN": ["Tanh"],
    "LSTM": ["Sigmoid", "Tanh", "Tanh"],
    "GRU": ["Sigmoid", "Tanh"],
}
#: Which of ONNX's activations the gates of Cell have, in the cell's order.
_GATES = {"RNN": [0], "LSTM": [0, 0, 1, 0, 2], "GRU": [0, 0, 1]}


def _activations(kind: str, attrs: Attrs, directions: int) -> list[list[str]]:
    """The functions of the gates, for each direction."""
    if attrs.get("activation_alpha") or attrs.get("activation_beta"):
        raise Unsupported(
            "activations with alpha or beta: train the model with Tanh, Sigmoid or Relu"
        )
    names = [text(n) for n in attrs.get("activations") or _DEFAULTS[kind] * directions]
    each = len(_DEFAULTS[kind])
    return [[names[d * each + k].lower() for k in _GATES[kind]] for d in range(directions)]


def _sequence(x: Value, batch_first: bool) -> Traced:
    """The sequences (examples, steps, features)."""
    if not isinstance(x, Traced):
        raise Unsupported(
            "its sequence is in the clear, and its weights or states are not: make the sequence an input of the model"
        )
    if x.ndim != 3:
        raise InvalidArgument(f"its sequence has the shape {x.shape}, and it takes three axes")
    return x if batch_first else x.transpose(1, 0, 2)


def _start(value: Value, batch_first: bool, units: int) -> Any:
    """The first states (examples, directions, units); None stands for zeros."""
    if value is None:
        return None
    array = value if isinstance(value, Traced) else np.asarray(value, np.float64)
    if array.ndim != 3 or array.shape[2] != units:
        raise InvalidArgument(f"its first state has the shape {array.shape}, of {units} units")
    return array if batch_first else array.transpose(1, 0, 2)


def _check_lengths(value: Value, steps: int) -> None:
    if value is not None and np.any(clear(value, "sequence_lens") != steps):
        raise Unsupported(
            "sequences of different lengths: leave sequence_lens out, and fill sequences up at their front"
        )


def _recurrent(kind: str) -> Operation:
    order, count = [_ORDERS[kind].index(gate) for gate in GATES[kind]], len(GATES[kind])

    def weights(value: Value, what: str, direction: int, units: int) -> Any:
        array = clear(value, what).astype(np.float64)[direction]
        return array.reshape(count, units, -1)[order].reshape(count * units, -1)

    def cell(
        inputs: Sequence[Value], attrs: Attrs, d: int, units: int, activations: list[str]
    ) -> Cell:
        bias = np.zeros((2, count * units))
        if given(inputs, 3) is not None:
            known = clear(inputs[3], "bias").astype(np.float64)[d].reshape(2, count, units)
            bias = known[:, order].reshape(2, -1)
        return Cell(
            kind,
            weights(inputs[1], "weight W", d, units),
            weights(inputs[2], "weight R", d, units),
            outer_bias=bias[0],
            inner_bias=bias[1],
            activations=activations,
            reset_after=bool(attrs.get("linear_before_reset", 0)),
        )

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        if attrs.get("clip"):
            raise Unsupported(
                "clip: numbers between two ends take a ReLU for each; train the model without it"
            )
        if attrs.get("input_forget") or given(inputs, 7) is not None:
            raise Unsupported("input_forget and peepholes: use the LSTM without them")
        batch_first = bool(attrs.get("layout", 0))
        reverses = _DIRECTIONS[text(attrs.get("direction", "forward"))]
        x = _sequence(inputs[0], batch_first)
        _check_lengths(given(inputs, 4), x.shape[1])
        units = int(clear(inputs[2], "weight R").shape[-1])
        activations = _activations(kind, attrs, len(reverses))
        first = [
            _start(given(inputs, 5 + k), batch_first, units)
            for k in range(2 if kind == "LSTM" else 1)
        ]
        cells = [cell(inputs, attrs, d, units, activations[d]) for d in range(len(reverses))]
        examples = []
        for e in range(x.shape[0]):
            starts = [None if s is None else s[e] for s in first]
            examples.append(_directions(cells, x[e], starts, reverses))
        shown, *ends = (_stacked(parts, 0) for parts in zip(*examples, strict=True))
        if batch_first:  # (examples, steps, directions, units), and (examples, directions, units)
            return [shown, *ends]
        return [shown.transpose(1, 2, 0, 3), *(end.transpose(1, 0, 2) for end in ends)]

    return apply


def _directions(
    cells: Sequence[Cell], x: Traced, starts: Sequence[Any], reverses: Sequence[bool]
) -> list[Any]:
    """For one example: the states (steps, directions, units), and the last ones (directions,
    units)."""
    shown, ends = [], []
    for d, (cell, reverse) in enumerate(zip(cells, reverses, strict=True)):
        first = [np.zeros(cell.units) if s is None else s[d] for s in starts]
        hidden, last = run(cell, x, first, reverse=reverse)
        shown.append(hidden)
        ends.append(last)
    return [_stacked(shown, 1), *(_stacked(states, 0) for states in zip(*ends, strict=True))]


def _stacked(arrays: Sequence[Any], axis: int) -> Any:
    """Arrays of one shape along a new axis."""
    shape = arrays[0].shape
    parts = [a.reshape((*shape[:axis], 1, *shape[axis:])) for a in arrays]
    return layers.concatenated(parts, axis) if len(parts) > 1 else parts[0]


RECURRENT: dict[str, Operation] = {kind: _recurrent(kind) for kind in GATES}
