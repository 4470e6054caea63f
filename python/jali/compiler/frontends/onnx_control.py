"""Branches and loops of ONNX whose conditions are known while a model is read: the branch that is
taken, and iterations one after the other. See jali.compiler.frontends.onnx_values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jali.compiler.frontends import layers
from jali.compiler.frontends.onnx_values import Attrs, Value, clear, inner, is_traced
from jali.compiler.frontends.tracing import Traced
from jali.errors import InvalidArgument, Unsupported

__all__ = ["CONTROL"]

_MOST_ITERATIONS = 4096
_Control = Callable[["Walker", Sequence[Value], Attrs, dict[str, Value]], list[Value]]


class Walker(Protocol):
    """What reads the operations inside."""

    def walk(self, nodes: Sequence[Any], values: dict[str, Value]) -> dict[str, Value]:
        """The values of all names, behind these operations."""


def _inside(
    walker: Walker, body: Any, around: Mapping[str, Value], inputs: Sequence[Value]
) -> list[Value]:
    """The results of a graph in an attribute, which also sees the values around it."""
    from onnx import numpy_helper

    values = {**around, **{t.name: numpy_helper.to_array(t) for t in body.initializer}}
    values |= dict(zip((port.name for port in body.input), inputs, strict=True))
    values = walker.walk(body.node, values)
    missing = [port.name for port in body.output if port.name not in values]
    if missing:
        raise InvalidArgument(f"nothing computes {missing[0]} in it: export the model again")
    return [values[port.name] for port in body.output]


def _if(
    walker: Walker, inputs: Sequence[Value], attrs: Attrs, values: dict[str, Value]
) -> list[Value]:
    if is_traced(inputs[0]):
        raise Unsupported(
            "the server does not see which branch is taken: compute both, and mix them by arithmetic"
        )
    taken = bool(clear(inputs[0], "condition").ravel()[0])
    return _inside(walker, attrs["then_branch" if taken else "else_branch"], values, [])


def _loop(
    walker: Walker, inputs: Sequence[Value], attrs: Attrs, values: dict[str, Value]
) -> list[Value]:
    most, goes, *states = inputs
    if is_traced(most) or is_traced(goes):
        raise Unsupported(_UNKNOWN)
    count = None if most is None else int(clear(most, "count").ravel()[0])
    shown: list[list[Value]] = []
    step = 0
    while (count is None or step < count) and (goes is None or bool(np.ravel(goes)[0])):
        if step == _MOST_ITERATIONS:
            raise Unsupported(f"a loop of more than {_MOST_ITERATIONS} iterations: make it shorter")
        known = [np.array(step), np.array(True) if goes is None else goes]
        goes, *found = _inside(walker, attrs["body"], values, [*known, *states])
        if is_traced(goes):
            raise Unsupported(_UNKNOWN)
        states = found[: len(states)]
        shown.append(found[len(states) :])
        step += 1
    return [*states, *_collected(shown, attrs, len(states))]


_UNKNOWN = "the server does not see how often a loop runs: let a constant say it, or write it as a recurrent layer, or as a function of arrays with jali.nn.loop"


def _collected(shown: Sequence[Sequence[Value]], attrs: Attrs, states: int) -> list[Value]:
    """What every iteration gave, along a new first axis."""
    if not shown:
        if attrs["outputs"] > states:
            raise Unsupported("a loop that collects results and never runs: leave it out")
        return []
    return [stacked(parts, 0) for parts in zip(*shown, strict=True)]


def stacked(parts: Sequence[Value], axis: int) -> Value:
    """Arrays of one shape along a new axis."""
    if not is_traced(list(parts)):
        return np.stack([np.asarray(p) for p in parts], axis)
    shape = np.shape(parts[0])
    axis = inner(axis, len(shape) + 1)
    longer = (*shape[:axis], 1, *shape[axis:])
    real = [p if isinstance(p, Traced) else np.asarray(p, np.float64) for p in parts]
    return layers.concatenated([p.reshape(longer) for p in real], axis)


def _scan(
    walker: Walker, inputs: Sequence[Value], attrs: Attrs, values: dict[str, Value]
) -> list[Value]:
    if attrs["opset"] < 9:
        raise Unsupported("a Scan of opset 8: export the model with opset 9 or later")
    count = int(attrs["num_scan_inputs"])
    states, arrays = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    axes = attrs.get("scan_input_axes") or [0] * count
    backwards = attrs.get("scan_input_directions") or [0] * count
    sequences = []
    for x, axis, back in zip(arrays, axes, backwards, strict=True):
        at = inner(axis, np.ndim(x))
        parts = [x[(slice(None),) * at + (k,)] for k in range(x.shape[at])]
        sequences.append(parts[::-1] if back else parts)
    shown = []
    for parts_of_step in zip(*sequences, strict=True):
        found = _inside(walker, attrs["body"], values, [*states, *parts_of_step])
        states = found[: len(states)]
        shown.append(found[len(states) :])
    kinds = len(shown[0])
    outer = attrs.get("scan_output_axes") or [0] * kinds
    turned = attrs.get("scan_output_directions") or [0] * kinds
    results = []
    for k, given in enumerate(zip(*shown, strict=True)):
        results.append(stacked(given[::-1] if turned[k] else given, outer[k]))
    return [*states, *results]


CONTROL: dict[str, _Control] = {"If": _if, "Loop": _loop, "Scan": _scan}
