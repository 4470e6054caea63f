"""Recurrent layers of ONNX, as loops. See jali.compiler.frontends.onnx_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_batch_axis import Turned, place_of, turned
from jali.compiler.frontends.onnx_ops import Attrs, Operation, Value, clear
from jali.compiler.frontends.recurrent import GATES, Cell, run
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

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


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _part(inputs: Sequence[Value], place: int) -> Value:
    return inputs[place] if len(inputs) > place else None


def _activations(kind: str, attrs: Attrs, directions: int) -> list[list[str]]:
    """The functions of the gates, for each direction."""
    if attrs.get("activation_alpha") or attrs.get("activation_beta"):
        raise Unsupported(
            "activations with alpha or beta: train the model with Tanh, Sigmoid or Relu"
        )
    names = [_text(n) for n in attrs.get("activations") or _DEFAULTS[kind] * directions]
    each = len(_DEFAULTS[kind])
    return [[names[d * each + k].lower() for k in _GATES[kind]] for d in range(directions)]


def _sequence(x: Value, batch_first: bool) -> Traced:
    """The sequence (steps, features) of one example."""
    if not isinstance(x, (Traced, Turned)):
        raise Unsupported(
            "its sequence is in the clear, and its weights or states are not: make the sequence an input of the model"
        )
    array = x.x if isinstance(x, Turned) else x
    wanted = 0 if batch_first else 1
    if array.ndim != 2 or place_of(x) != wanted:
        raise Unsupported(
            f"its sequence has the batch as axis {place_of(x)}, and it takes (batch, steps, features) transposed to (steps, batch, features): "
            "export the model with the batch first, in PyTorch with batch_first=True"
        )
    return array


def _start(value: Value, batch_first: bool, directions: int, units: int) -> list[Any] | None:
    """The first state of each direction; None stands for zeros."""
    if value is None:
        return None
    at = 0 if batch_first else 1
    if isinstance(value, (Traced, Turned)):
        traced = value.x if isinstance(value, Turned) else value
        if place_of(value) != at or traced.shape != (directions, units):
            raise Unsupported(
                f"its first state has the shape {traced.shape} for an example, not {(directions, units)}: reshape it"
            )
        return [traced[d] for d in range(directions)]
    array = np.asarray(value, np.float64)
    if array.ndim != 3 or array.shape[at] != 1:
        raise Unsupported(
            "its first state differs between the examples of a batch: make it an input of the model"
        )
    return list(array.reshape(directions, units))


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

    def apply(inputs: Sequence[Value], attrs: Attrs) -> Value:
        if attrs.get("clip"):
            raise Unsupported(
                "clip: numbers between two ends take a ReLU for each; train the model without it"
            )
        if attrs.get("input_forget") or _part(inputs, 7) is not None:
            raise Unsupported("input_forget and peepholes: use the LSTM without them")
        batch_first = bool(attrs.get("layout", 0))
        reverses = _DIRECTIONS[_text(attrs.get("direction", "forward"))]
        x = _sequence(inputs[0], batch_first)
        _check_lengths(_part(inputs, 4), x.shape[0])
        units = int(clear(inputs[2], "weight R").shape[-1])
        activations = _activations(kind, attrs, len(reverses))
        first = [
            _start(_part(inputs, 5 + k), batch_first, len(reverses), units)
            for k in range(2 if kind == "LSTM" else 1)
        ]
        shown: list[Any] = []
        ends: list[list[Any]] = []
        for d, reverse in enumerate(reverses):
            bias = np.zeros((2, count * units))
            if _part(inputs, 3) is not None:
                given = clear(inputs[3], "bias").astype(np.float64)[d].reshape(2, count, units)
                bias = given[:, order].reshape(2, -1)
            cell = Cell(
                kind,
                weights(inputs[1], "weight W", d, units),
                weights(inputs[2], "weight R", d, units),
                outer_bias=bias[0],
                inner_bias=bias[1],
                activations=activations[d],
                reset_after=bool(attrs.get("linear_before_reset", 0)),
            )
            starts = [np.zeros(units) if s is None else s[d] for s in first]
            hidden, last = run(cell, x, starts, reverse=reverse)
            shown.append(hidden.reshape(hidden.shape[0], 1, units))
            ends.append([state.reshape(1, units) for state in last])
        results = [layers.concatenated(shown, 1)] if len(shown) > 1 else shown
        for states in zip(*ends, strict=True):
            results.append(layers.concatenated(states, 0) if len(states) > 1 else states[0])
        places = [0, 0, 0] if batch_first else [2, 1, 1]
        return [turned(y, at) for y, at in zip(results, places, strict=False)]

    return apply


RECURRENT: dict[str, Operation] = {kind: _recurrent(kind) for kind in GATES}
