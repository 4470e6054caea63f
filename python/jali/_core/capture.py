"""Functions that run many times: recorded once, or over many ciphertexts in batches, for the arrays
of any scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from jali._core import checks
from jali._core.log import logger
from jali._core.refusals import Answering
from jali.errors import InvalidArgument

__all__ = ["BatchPoint", "Batcher", "Captured"]

Array = TypeVar("Array")  # the encrypted arrays of a scheme


class Evaluator(Protocol[Array]):
    """The methods that a scheme's evaluator must have. Cores work on ciphertexts, functions on
    encrypted arrays."""

    def _own(self, value: Array) -> Any:
        """The ciphertext of one of its arrays."""

    def _result(self, value: Array) -> Any:
        """The ciphertext of what a function returned."""

    def _array(self, ciphertext: Any) -> Array:
        """The array of a ciphertext on its device."""

    def _captured(
        self, function: Callable[[Sequence[Any]], list[Any]], examples: Sequence[Any]
    ) -> Any:
        """The core that records a function of ciphertexts. It has run(ciphertexts) and nbytes."""

    def _batcher(self, function: Callable[[Sequence[Any]], Any], max_batch: int) -> Any:
        """The core that chooses batches. It has run(ciphertexts), batch and curve(). max_batch 0
        sets no limit."""


def _results(server: Evaluator[Array], value: Array | Sequence[Array]) -> list[Any]:
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return [server._result(v) for v in values]


def _callable(function: object) -> None:
    if not callable(function):
        raise InvalidArgument(
            f"give a function of encrypted arrays to record, not {type(function).__name__}"
        )


class Captured(Generic[Array], metaclass=Answering):
    """A function of encrypted arrays of fixed shapes. Evaluator.capture makes it.

    On a GPU it is one CUDA graph with memory of its own: a call costs one launch instead of one for
    every kernel. On a CPU a call runs the function again. Calls take values like the examples: of
    the same level, batch and length, and with no more noise. They raise InvalidArgument for other
    values, and if the function calls its own capture. Threads take turns.
    """

    __slots__ = ("_core", "_server", "_single")

    def __init__(
        self,
        server: Evaluator[Array],
        function: Callable[..., Array | Sequence[Array]],
        examples: Sequence[Array],
    ) -> None:
        _callable(function)
        single = [True]  # not an attribute: the core holds the function, which must not hold self

        def on_ciphertexts(inputs: Sequence[Any]) -> list[Any]:
            out = function(*(server._array(c) for c in inputs))
            single[0] = not isinstance(out, (list, tuple))
            return _results(server, out)

        settled = [server._own(v) for v in examples]
        self._server = server
        self._core = server._captured(on_ciphertexts, settled)
        self._single = single[0]

    def __call__(self, *inputs: Array) -> Array | tuple[Array, ...]:
        """The function of these inputs: one value, or a tuple if the function returns several."""
        out = self._core.run([self._server._own(v) for v in inputs])
        arrays = tuple(self._server._array(c) for c in out)
        return arrays[0] if self._single else arrays

    def __repr__(self) -> str:
        return f"Captured({self._server!r}, {self.nbytes} bytes)"

    @property
    def nbytes(self) -> int:
        """The bytes of device memory that it keeps."""
        return int(self._core.nbytes)


class BatchPoint(NamedTuple):
    """A measurement of one batch: the seconds for each of its ciphertexts, and the bytes of memory
    that it takes.

    >>> ckks.BatchPoint(batch=4, seconds=0.5, nbytes=1024).batch
    4
    """

    batch: int
    seconds: float
    nbytes: int


class Batcher(Generic[Array], metaclass=Answering):
    """One function of many values, in batches that suit the machine. Evaluator.batcher makes it.

    It tries batches of 1, 2, 4, ... on the work itself, as long as there is memory and the time for
    each ciphertext falls, and keeps the best for later calls. A batch that is refused for its
    memory (OutOfMemory) or its size (Unsupported) is halved. The function gets values of shape
    (batch, n). If it calls its own batcher, that raises InvalidArgument. Threads take turns.
    """

    __slots__ = ("_core", "_server")

    def __init__(
        self,
        server: Evaluator[Array],
        function: Callable[[Array], Array],
        max_batch: int | None,
    ) -> None:
        _callable(function)
        if max_batch is not None:
            max_batch = checks.whole(max_batch, 1, "max_batch must be at least 1, or None")
        self._server = server

        def on_ciphertexts(inputs: Sequence[Any]) -> list[Any]:
            return _results(server, function(server._array(inputs[0])))

        self._core = server._batcher(on_ciphertexts, max_batch or 0)

    def __call__(self, values: Iterable[Array]) -> list[Array]:
        """The function of every value, in order. The values are vectors of equal levels and
        lengths."""
        inputs = [self._server._own(v) for v in values]
        results = self._core.run(inputs)
        logger.debug("%d values done in batches of up to %d", len(inputs), self.batch)
        return [self._server._array(c) for c in results]

    def __repr__(self) -> str:
        return f"Batcher({self._server!r}, batch={self.batch})"

    @property
    def batch(self) -> int:
        """The batch in use, or 0 before the first call."""
        return int(self._core.batch)

    @property
    def curve(self) -> list[BatchPoint]:
        """The measurements so far, one for each batch."""
        return [BatchPoint(*point) for point in self._core.curve()]
