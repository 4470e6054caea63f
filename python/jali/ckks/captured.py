"""Captured functions and batchers of CKKS, which take arrays of any shape, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jali._core import capture, checks
from jali._core.capture import BatchPoint
from jali._core.view import View
from jali.ckks.array import EncryptedArray
from jali.errors import InvalidArgument

if TYPE_CHECKING:
    from jali.ckks.evaluator import Evaluator

__all__ = ["BatchPoint", "Batcher", "Captured"]


def _view(value: object) -> View | None:
    # The array of which it is a part is another one at another call.
    view = value._compact()._view if isinstance(value, EncryptedArray) else None
    return view and view.changing()


def _beside(view: View) -> str:
    if view.zero:
        return "zeros"
    return "anything" if view.copies or view.rest == math.inf else f"numbers of up to {view.rest:g}"


def _vectors(value: Any) -> Any:
    """The vectors in which an array lies. The core records functions of vectors."""
    if not isinstance(value, EncryptedArray) or value._view is None:
        return value
    return value._new(value._compact()._settled())


def _seen(vectors: EncryptedArray, view: View | None) -> EncryptedArray:
    return vectors if view is None else vectors._new(vectors._settled(), view)


def _check_lies(view: View | None, example: View | None) -> None:
    """Raises InvalidArgument unless an input lies as the example does. Smaller numbers beside its
    own do no harm."""
    known = view
    if view and example and view.rest <= example.rest and view.copies <= example.copies:
        known = replace(view, rest=example.rest, copies=example.copies)
    if known == example:
        return
    told = [
        f"an array of the shape {v.shape} with the strides {v.strides} from slot {v.first} of {v.vectors} x {v.slots} slots, with {_beside(v)} in "
        "the other slots"
        if v
        else "a vector or a batch"
        for v in (view, example)
    ]
    raise InvalidArgument(
        f"the function was recorded for {told[1]}, and the input is {told[0]}: record it for inputs that lie like this one"
    )


class Captured(capture.Captured[EncryptedArray]):
    __doc__ = f"""{(capture.Captured.__doc__ or "").rstrip()}

    >>> client = ckks.Client(ckks.Params.create(depth=2))
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1]))
    >>> x = server.bind(client.encrypt([0.5, -1.25]))
    >>> square = server.capture(lambda v: v * v, x)
    >>> client.decrypt(square(x)).round(2)
    array([0.25, 1.56])
    """
    __slots__ = ("_inputs", "_outputs")

    def __init__(
        self,
        server: Evaluator,
        function: Callable[..., EncryptedArray | Sequence[EncryptedArray]],
        examples: Sequence[EncryptedArray],
    ) -> None:
        inputs = tuple(_view(v) for v in examples)
        outputs: list[
            list[View | None]
        ] = []  # the core holds the function, which must not hold self

        def of_vectors(*vectors: EncryptedArray) -> EncryptedArray | list[EncryptedArray]:
            out = function(*(_seen(x, view) for x, view in zip(vectors, inputs, strict=True)))
            several = isinstance(out, (list, tuple))
            results: list[Any] = [*out] if several else [out]
            views = [_view(v) for v in results]
            if not outputs:
                outputs.append(views)
            elif views != outputs[0]:  # a CPU runs the function again
                raise InvalidArgument(
                    "the function returned other arrays than when it was recorded: it must do the same at every call"
                )
            given = [_vectors(v) for v in results]
            return given if several else given[0]

        super().__init__(
            server,
            of_vectors if callable(function) else function,
            [_vectors(v) for v in examples],
        )
        self._inputs, self._outputs = inputs, tuple(outputs[0])

    def __call__(self, *inputs: EncryptedArray) -> EncryptedArray | tuple[EncryptedArray, ...]:
        """The function of these inputs: one value, or a tuple if the function returns several."""
        for value, example in zip(inputs, self._inputs, strict=False):
            if isinstance(value, EncryptedArray):
                _check_lies(_view(value), example)
        out = super().__call__(*(_vectors(v) for v in inputs))
        arrays: Any = out if isinstance(out, tuple) else (out,)
        seen = tuple(_seen(x, view) for x, view in zip(arrays, self._outputs, strict=True))
        return seen if isinstance(out, tuple) else seen[0]


class Batcher(capture.Batcher[EncryptedArray]):
    __doc__ = (
        (capture.Batcher.__doc__ or "")
        + """
    Arrays of other shapes than (n,) are done one after the other: the function gets each with an axis of 1 in front, and must keep it.

    >>> client = ckks.Client(ckks.Params.create(depth=2))
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1]))
    >>> x = server.bind(client.encrypt([0.5, -1.25]))
    >>> square = server.batcher(lambda v: v * v, max_batch=2)
    >>> [client.decrypt(y).round(2) for y in square([x, x + 1])]
    [array([0.25, 1.56]), array([2.25, 0.06])]
    """
    )
    __slots__ = ("_function",)

    def __init__(
        self,
        server: Evaluator,
        function: Callable[[EncryptedArray], EncryptedArray],
        max_batch: int | None,
    ) -> None:
        super().__init__(server, function, max_batch)
        self._function = function

    def __call__(self, values: Iterable[EncryptedArray]) -> list[EncryptedArray]:
        """The function of every value, in order. Vectors have equal levels and lengths, and arrays
        any."""
        if not isinstance(values, Iterable):
            raise InvalidArgument(f"give a list of encrypted arrays, not {checks.shown(values)}")
        items = list(values)
        if not any(_view(v) for v in items):
            return super().__call__(items)
        return [self._alone(v) for v in items]

    def _alone(self, value: EncryptedArray) -> EncryptedArray:
        self._server._raw(value)  # type: ignore[attr-defined]
        out = self._function(value[None])
        if not isinstance(out, EncryptedArray) or out.shape[:1] != (1,):
            raise InvalidArgument(
                "the function gets an array with an axis of 1 in front, one for each value of a batch, and must return one with it"
            )
        return out[0]
