"""Operators of PyTorch's exported graphs (aten) that are recurrent layers and cells, as loops.

An operator's arguments have PyTorch's names; ``x`` is the one that it calls ``input``. Clear
tensors come as arrays of NumPy. Nothing here imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jali.compiler.frontends import layers
from jali.compiler.frontends.recurrent import Cell, run
from jali.compiler.frontends.torch_ops import Operator, Value, clear, operator_in
from jali.compiler.frontends.tracing import Traced
from jali.errors import Unsupported

__all__ = ["RECURRENT"]

RECURRENT: dict[str, Operator] = {}
_operator = operator_in(RECURRENT)


def _cell(kind: str, parameters: Sequence[Value], activation: str | None = None) -> Cell:
    """The cell of weight_ih, weight_hh and, if there are any, bias_ih and bias_hh."""
    outer, inner, outer_bias, inner_bias = (
        clear(p, "weights") for p in [*parameters, None, None][:4]
    )
    return Cell(
        kind,
        outer,
        inner,
        0.0 if outer_bias is None else outer_bias,
        0.0 if inner_bias is None else inner_bias,
        activations=(activation,) if activation else (),
    )


def _sequence(x: Value, batch_first: bool) -> Traced:
    if not isinstance(x, Traced):
        raise Unsupported(
            "its sequence is in the clear, and its state is not: make the sequence an input of the module"
        )
    if x.shape[0 if batch_first else 1] != 1:
        raise Unsupported(
            f"it takes {x.shape[0 if batch_first else 1]} sequences of one example: its first axis is the steps, as it was made without "
            "batch_first=True. Make it with batch_first=True, or transpose its input"
        )
    return x.reshape(-1, x.shape[2])


def _check_mode(dropout: float, train: bool) -> None:
    if dropout and train:
        raise Unsupported("dropout in training mode is random: call eval() on the module")


def _layers(
    kind: str,
    x: Value,
    first: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
    activation: str | None = None,
) -> tuple[Any, ...]:
    """(The states of the last layer, the last states of all layers).

    first: the first states, each (layers directions, 1, units).
    """
    sequence, directions = _sequence(x, batch_first), 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if len(params) != each * num_layers * directions:
        raise Unsupported(
            "proj_size: put a linear layer behind an LSTM without it, or write the steps as a loop"
        )
    ends: list[list[Any]] = []
    for layer in range(num_layers):
        shown = []
        for direction in range(directions):
            place = layer * directions + direction
            cell = _cell(kind, params[each * place : each * (place + 1)], activation)
            starts = [state[place].reshape(-1) for state in first]
            hidden, last = run(cell, sequence, starts, reverse=direction == 1)
            shown.append(hidden)
            ends.append([state.reshape(1, 1, -1) for state in last])
        sequence = shown[0] if len(shown) == 1 else layers.concatenated(shown, 1)
    steps, wide = sequence.shape
    result = sequence.reshape((1, steps, wide) if batch_first else (steps, 1, wide))
    states = (s[0] if len(s) == 1 else layers.concatenated(s, 0) for s in zip(*ends, strict=True))
    return (result, *states)


@_operator("lstm")
def _lstm(
    x: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    _check_mode(dropout, train)
    return _layers("LSTM", x, hx, params, has_biases, num_layers, bidirectional, batch_first)


def _single(kind: str, activation: str | None = None) -> Operator:
    def apply(
        x: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Any, ...]:
        _check_mode(dropout, train)
        options = (has_biases, num_layers, bidirectional, batch_first, activation)
        return _layers(kind, x, [hx], params, *options)

    return apply


RECURRENT["gru"] = _single("GRU")
RECURRENT["rnn_tanh"] = _single("RNN")
RECURRENT["rnn_relu"] = _single("RNN", "relu")


def _step(kind: str, activation: str | None = None) -> Operator:
    """One step, of a cell that the module calls itself."""

    def apply(
        x: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value = None, b_hh: Value = None
    ) -> Any:
        cell = _cell(kind, [w_ih, w_hh, b_ih, b_hh], activation)
        part = (x @ cell.outer.T + cell.outer_bias).reshape(-1)
        states = [s.reshape(-1) for s in (hx if isinstance(hx, Sequence) else [hx])]
        if part.shape[0] != len(cell.outer):
            raise Unsupported("its input holds several sequences of one example: call it for each")
        found = [state.reshape(1, -1) for state in cell.step()(*states, part)]
        return tuple(found) if isinstance(hx, Sequence) else found[0]

    return apply


RECURRENT["lstm_cell"] = _step("LSTM")
RECURRENT["gru_cell"] = _step("GRU")
RECURRENT["rnn_tanh_cell"] = _step("RNN")
RECURRENT["rnn_relu_cell"] = _step("RNN", "relu")
