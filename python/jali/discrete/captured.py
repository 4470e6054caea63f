"""Functions of encrypted arrays of exact integers that run many times."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jali._core import capture, checks
from jali._core.capture import BatchPoint
from jali._core.view import View
from jali._jali.discrete import Ciphertext
from jali.discrete.array import EncryptedArray
from jali.errors import InvalidArgument

if TYPE_CHECKING:
    from jali.discrete.evaluator import Evaluator

__all__ = ["BatchPoint", "Batcher", "Captured"]


class Captured(capture.Captured[EncryptedArray]):
    """A function of encrypted arrays of fixed shapes. Evaluator.capture makes it.

    On a GPU it is one CUDA graph with memory of its own: a call costs one launch instead of one for
    every kernel. On a CPU a call runs the function again. Calls take values like the examples: of
    the same level and shape, within their ranges, and with no more noise. They raise InvalidArgument
    for other values, and if the function calls its own capture. Threads take turns.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt(np.array([3, -1], dtype=np.int8)))
    >>> squared = server.capture(lambda x: x * x, x)
    >>> client.decrypt(squared(x))
    array([9, 1])
    """

    __slots__ = ()


class Batcher(capture.Batcher[EncryptedArray]):
    """One function of many arrays, in batches that suit the machine. Evaluator.batcher makes it.

    The function gets several arrays as one, with an axis in front, and must keep that axis. It
    tries batches of 1, 2, 4, ... on the work itself, as long as there is memory and the time for
    each array falls, and keeps the best for later calls. A batch that is refused for its memory
    (OutOfMemory) or its size (Unsupported) is halved. Arrays of more than params.slots numbers are
    done one after the other. If the function calls its own batcher, that raises InvalidArgument.
    Threads take turns.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt([3, -1], range=(-10, 10)))
    >>> square = server.batcher(lambda v: v * v, max_batch=2)
    >>> [client.decrypt(y).tolist() for y in square([x, x + 1])]
    [[9, 1], [16, 0]]
    """

    __slots__ = ("_function", "_run")
    _server: Evaluator

    def __init__(
        self,
        server: Evaluator,
        function: Callable[[EncryptedArray], EncryptedArray],
        max_batch: int | None,
    ) -> None:
        if not callable(function):
            raise InvalidArgument(
                f"give a function of encrypted arrays, not {type(function).__name__}"
            )
        if max_batch is not None:
            max_batch = checks.whole(max_batch, 1, "max_batch must be at least 1, or None")
        run = _Run()

        def of_vectors(inputs: Sequence[Ciphertext]) -> Ciphertext:
            (vectors,) = inputs
            count = vectors.rows // 2
            assert run.place is not None
            out = _kept(
                function(EncryptedArray(server, vectors, _several(run.place, count))), count
            )
            one = out._place.changed(lambda a: a[0, ...])
            one = replace(one, vectors=2, rest=math.inf, whole=None)
            if run.result is not None and one != run.result:
                raise InvalidArgument(
                    "the function's results lie otherwise in one batch than in another: it must do the same at every call"
                )
            run.result = one
            return out._ct

        self._server, self._function, self._run = server, function, run
        self._core = server._batcher(of_vectors, max_batch or 0)

    def __call__(self, values: Iterable[EncryptedArray]) -> list[EncryptedArray]:
        """The function of every array, in order. Arrays have equal shapes, and lie alike."""
        if not isinstance(values, Iterable):
            raise InvalidArgument(f"give a list of encrypted arrays, not {checks.shown(values)}")
        items = list(values)
        for one in items:
            self._server._own(one)
        items = [one._compact() for one in items]
        if not items:
            return []
        views = [one._place.changing() for one in items]
        if any(not view.same_place(views[0]) for view in views):
            raise InvalidArgument(
                "the arrays of a batch have one shape and lie alike in their slots: encrypt them in one shape, or copy parts "
                "of other arrays by np.concatenate"
            )
        if any(one._ct.rows > 2 for one in items):
            return [_kept(self._function(one[None]), 1)[0] for one in items]
        run = self._run
        outer = run.place, run.result
        # What lies beside the elements of all of them.
        rest, copies = max(view.rest for view in views), any(view.copies for view in views)
        run.place, run.result = replace(views[0], rest=rest, copies=copies, whole=None), None
        try:
            results = self._core.run([one._ct for one in items])
            return [items[0]._new(result, run.result) for result in results]
        finally:
            run.place, run.result = outer


class _Run(threading.local):
    """Where the arrays of a run lie in their pairs of rows, and where the results do. The function
    is called by the thread that started the run."""

    place: View | None = None
    result: View | None = None


def _several(view: View, count: int) -> View:
    """Where arrays lie of which each has a pair of rows to itself."""
    even = view.vectors == 2
    return View(
        (count, *view.shape),
        (2 * view.slots, *view.strides),
        view.first,
        view.slots,
        2 * count,
        0,
        view.rest if even else math.inf,
        view.copies or view.period > 0,
    )


def _kept(out: Any, count: int) -> EncryptedArray:
    """The function's result. Raises InvalidArgument unless each array's lies in rows of its own."""
    good = isinstance(out, EncryptedArray) and out.shape[:1] == (count,)
    if good and count > 1:
        place = out._place
        one = place.changed(lambda a: a[0, ...])
        apart = place.strides[0] == 2 * place.slots and one.used().stop <= 2
        good = apart and out._ct.rows == 2 * count
    if not good:
        raise InvalidArgument(
            "the function gets arrays with an axis in front, one for each of a batch, and must return one in which they lie "
            "apart, along the same axis"
        )
    assert isinstance(out, EncryptedArray)
    return out
