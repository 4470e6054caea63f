"""Loops of functions that jali.compile traces: training, recurrent networks, and whatever repeats
itself."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from jali._core import checks
from jali._core.console import counted_text
from jali.compiler.frontends.layers import concatenated
from jali.compiler.frontends.tracing import Traced
from jali.compiler.ir.builder import Builder, innermost
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import ByStep, Loop
from jali.compiler.ir.operation import Input
from jali.errors import InvalidArgument, Unsupported

__all__ = ["Steps", "loop", "scan"]

_ALONE = 2  # iterations after which encrypted numbers have reached every state


def loop(
    body: Callable[..., Any], state: Any, sequence: Any = None, count: int | None = None
) -> Any:
    """The state after all iterations of ``state = body(state)``, or with a sequence, of ``state =
    body(state, sequence[t])``.

        hidden = nn.loop(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(128), words)

    body: takes the states, then one element of each sequence, and returns the states. It may use
        arrays from outside.
    state: an array, or a tuple of arrays, which the body returns in the same order and in the same
        shapes.
    sequence: an array, which is sliced along its first axis; a list of arrays; or a tuple of such
        sequences. A sequence in the clear gives a number to each iteration, which may multiply
        arrays.
    count: how many iterations there are; without it, as many as the sequence is long.

    With arrays of NumPy, it computes what it says. In a function that jali.compile traces, it is
    one operation: its body is traced and planned once, and its matrices are encoded once for all
    iterations. If the first state is in the clear, for example zeros, the first iteration stands
    before the loop, because it needs fewer levels.

    >>> nn.loop(lambda state, x: state / 2 + x, np.zeros(2), np.eye(2))
    array([0.5, 1. ])
    """
    return _run(body, state, sequence, count, None)[0]


def scan(
    body: Callable[..., Any], state: Any, sequence: Any = None, count: int | None = None
) -> tuple[Any, Any]:
    """The state after all iterations, and what every iteration gave besides: the ``body`` returns
    (state, array).

        last, hidden = nn.scan(lambda h, x: (h := np.tanh(W @ h + U @ x), h), np.zeros(128), words)

    The second result has a first axis for the iterations. If the body returns (state, (array, ..)),
    it is a tuple of such arrays. Everything else is as of ``loop``.

    >>> last, each = nn.scan(lambda state, x: (state / 2 + x, state), np.zeros(2), np.eye(2))
    >>> each
    array([[0., 0.],
           [1., 0.]])
    """
    shown: list[Any] = []

    @functools.wraps(body)
    def each(*arguments: Any) -> Any:
        result = body(*arguments)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise InvalidArgument(
                "the body of a scan returns two things: the state, and what to keep of the iteration"
            )
        shown.append(result[1])
        return [*_several(result[0]), *_several(result[1])]

    last, collected = _run(each, state, sequence, count, lambda: len(_several(shown[0])))
    single = not isinstance(shown[0], (tuple, list))
    return last, collected[0] if single else tuple(collected)


def _run(
    body: Callable[..., Any],
    state: Any,
    sequence: Any,
    count: int | None,
    collected: Callable[[], int] | None,
) -> tuple[Any, list[Any]]:
    """The last states, and what was collected.

    collected: how many arrays the body returns after the states, known once it ran.
    """
    states, single = _several(state), not isinstance(state, (tuple, list))
    sequences = () if sequence is None else sequence if isinstance(sequence, tuple) else (sequence,)
    steps, done = _count(sequences, count), 0
    kept: list[list[Any]] = []  # of every iteration that is no part of a node

    def one() -> None:
        nonlocal states, done
        results = _several(body(*states, *(x[done] for x in sequences)))
        _check_count(results, len(states), collected)
        states, done = results[: len(states)], done + 1
        kept.append(results[len(states) :])

    while done < steps and not all(isinstance(s, Traced) for s in states):
        if done >= _ALONE and any(isinstance(s, Traced) for s in states):
            clear = next(k for k, s in enumerate(states) if not isinstance(s, Traced))
            raise Unsupported(
                f"state {clear} of a loop stays in the clear and others are encrypted: give its numbers as a sequence"
            )
        one()
    rest: list[Any] = []
    if steps - done == 1:
        one()
    elif done < steps:
        inside = [_rest(x, done, steps) for x in sequences]
        states, rest = _traced(body, states, inside, steps - done, collected)
    found = [_joined([row[k] for row in kept], rest[k : k + 1]) for k in range(_number(collected))]
    return (states[0] if single else tuple(states)), found


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _number(collected: Callable[[], int] | None) -> int:
    return 0 if collected is None else collected()


def _check_count(results: list[Any], states: int, collected: Callable[[], int] | None) -> None:
    given = len(results) - _number(collected)
    if given != states:
        raise InvalidArgument(
            f"the body of a loop returned {counted_text(given, 'array')}, and has {counted_text(states, 'state')}"
        )


def _joined(singles: list[Any], rest: list[Traced]) -> Any:
    """Arrays of single iterations, and those of all later ones, along a first axis."""
    if not rest and not any(isinstance(x, Traced) for x in singles):
        return np.stack(singles)
    rows = [x.reshape(1, *x.shape) for x in map(_array, singles)]
    if len({x.shape[1:] for x in [*rows, *rest]}) > 1:
        raise InvalidArgument(
            "the body of a scan returned arrays of different shapes in different iterations"
        )
    return concatenated([*rows, *rest], 0) if len(rows) + len(rest) > 1 else [*rows, *rest][0]


def _array(value: Any) -> Any:
    return value if isinstance(value, Traced) else np.asarray(value, np.float64)


def _count(sequences: tuple[Any, ...], count: int | None) -> int:
    lengths = {len(x) for x in sequences}
    if count is not None:
        lengths.add(checks.whole(count, 1, "count must be a number of iterations from 1"))
    if len(lengths) != 1:
        wrong = f"its sequences and count say {sorted(lengths)}" if lengths else "neither is there"
        raise InvalidArgument(f"a loop needs sequences of one length, or a count: {wrong}")
    steps = lengths.pop()
    if not steps:
        raise InvalidArgument("a loop needs at least one iteration, and its sequence is empty")
    return steps


def _rest(sequence: Any, done: int, steps: int) -> list[Traced] | Array:
    """The elements from `done`: arrays that are traced, or numbers in the clear."""
    elements = [sequence[t] for t in range(done, steps)]
    traced = [x for x in elements if isinstance(x, Traced)]
    if len(traced) == len(elements):
        return traced
    if traced or any(np.ndim(x) for x in elements):
        raise Unsupported(
            "a sequence in the clear gives one number to each iteration: encrypt arrays that differ between the iterations, or "
            "compute with them outside of the loop"
        )
    return np.asarray(elements, np.float64)


def _traced(
    body: Callable[..., Any],
    states: list[Traced],
    sequences: list[list[Traced] | Array],
    count: int,
    collected: Callable[[], int] | None,
) -> tuple[list[Traced], list[Traced]]:
    """The states after a node ``loop``, and what it collects, with an axis for the iterations."""
    outer = innermost([*states, *(x for s in sequences if isinstance(s, list) for x in s)])
    inner = Builder(outer)
    names = _names(body, len(states) + len(sequences))
    given: list[Any] = [_input(inner, name, s) for name, s in zip(names, states, strict=False)]
    encrypted = []
    for name, elements in zip(names[len(states) :], sequences, strict=True):
        if isinstance(elements, list):
            if len({x.shape for x in elements}) > 1:
                raise InvalidArgument(f"the arrays of the sequence {name} have different shapes")
            encrypted.append(elements)
            given.append(_input(inner, name, elements[0]))
        else:
            given.append(Steps(inner, elements))
    results = _several(body(*given))
    _check_count(results, len(states), collected)
    for k, after in enumerate(results):
        if not isinstance(after, Traced):
            what = f"state {k}" if k < len(states) else "what to keep"
            raise InvalidArgument(
                f"the body of a loop returned {checks.shown(after)} as {what}, which does not depend on its arguments"
            )
    for k, (before, after) in enumerate(zip(states, results, strict=False)):
        if after.shape != before.shape:
            raise InvalidArgument(
                f"state {k} of a loop has the shape {before.shape}, and its body returned {after.shape}"
            )
    graph = _without_unused(inner.graph([inner.lifted(x) for x in results]), inner)
    constants = [inner.captured[n.name] for n in graph.inputs if n.name in inner.captured]
    inner.close()
    node = outer.add(
        getattr(body, "__name__", "loop").replace("<lambda>", "loop"),
        Loop(
            body=graph,
            count=count,
            states=len(states),
            sequences=len(encrypted),
            collected=len(results) - len(states),
        ),
        [outer.lifted(x) for x in [*states, *(x for s in encrypted for x in s)]] + constants,
    )
    whole = Traced(outer, node)
    if len(results) == 1:
        return [whole], []
    shapes = [x.shape for x in states]
    shapes += [(count, *x.shape) for x in results[len(states) :]]
    found, start = [], 0
    for shape in shapes:
        end = start + math.prod(shape)
        found.append(whole[start:end].reshape(shape))
        start = end
    assert start == sum(Loop.of(node).sizes)
    return found[: len(states)], found[len(states) :]


def _input(builder: Builder, name: str, like: Traced) -> Traced:
    return Traced(builder, builder.add(name, Input(shape=like.shape), []))


def _names(body: Callable[..., Any], count: int) -> list[str]:
    try:
        parameters = inspect.signature(body).parameters.values()
        names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    return [*names, *(f"x{k}" for k in range(len(names), count))][:count]


def _without_unused(graph: Graph, builder: Builder) -> Graph:
    """The body without arrays from outside that no result needs."""
    used = {name for node in graph for name in node.inputs} | set(graph.outputs)
    kept = (n for n in graph if n.name in used or n.name not in builder.captured)
    return Graph(tuple(kept), graph.outputs, graph.stage)


class Steps(NDArrayOperatorsMixin):
    """A number in the clear for each iteration of a loop, while its body is traced. It may multiply
    and divide arrays."""

    def __init__(self, builder: Builder, values: Array) -> None:
        self._builder, self._values = builder, values

    def times(self, array: Traced) -> Traced:
        """The array times the iteration's number."""
        node: Node = self._builder.lifted(array)
        made = self._builder.add("by_step", ByStep(factors=self._values), [node])
        return Traced(self._builder, made)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            "the numbers of a sequence in the clear may multiply and divide arrays, and nothing else: encrypt the sequence, or compute "
            "with it outside of the loop"
        )

    def __bool__(self) -> bool:
        raise Unsupported(
            "a loop is traced once, so that its body cannot branch on its sequence: compute both branches, and mix them by arithmetic"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        traced = [x for x in inputs if isinstance(x, Traced)]
        if method == "__call__" and not kwargs and not traced:
            values = [x._values if isinstance(x, Steps) else x for x in inputs]
            if all(np.ndim(x) == 0 for x in inputs if not isinstance(x, Steps)):
                return Steps(self._builder, np.asarray(ufunc(*values), np.float64))
        if method == "__call__" and not kwargs and len(traced) == 1:
            if ufunc is np.multiply:
                return self.times(traced[0])
            if ufunc is np.divide:
                return (
                    self.times(1 / traced[0]) if self is inputs[0] else (1 / self).times(traced[0])
                )
        return self.__array__()
