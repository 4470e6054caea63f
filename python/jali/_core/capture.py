"""Functions that run many times: recorded once, or over many ciphertexts in batches. For the arrays of any scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from jali._core import checks
from jali._core.log import logger
from jali.errors import InvalidArgument

__all__ = ["BatchPoint", "Batcher", "Captured"]

Array = TypeVar("Array")  # the encrypted arrays of a scheme


class Evaluator(Protocol[Array]):
    """What is asked of a scheme's evaluator. Its cores work on ciphertexts, functions on encrypted arrays."""

    def _own(self, value: Array) -> Any:
        """The ciphertext of one of its arrays."""

    def _array(self, ciphertext: Any) -> Array:
        """The array of a ciphertext on its device."""

    def _captured(
        self, function: Callable[[Sequence[Any]], list[Any]], examples: Sequence[Any]
    ) -> Any:
        """The core that records a function of ciphertexts: run(ciphertexts), nbytes."""

    def _batcher(self, function: Callable[[Sequence[Any]], list[Any]], max_batch: int) -> Any:
        """The core that chooses batches; max_batch 0 is for any: run(ciphertexts), batch, curve()."""


def _results(server: Evaluator[Array], value: Array | Sequence[Array]) -> list[Any]:
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return [server._own(v) for v in values]


def _callable(function: object) -> None:
    if not callable(function):
        raise InvalidArgument(
            f"give a function of encrypted arrays to record, not {type(function).__name__}"
        )


class Captured(Generic[Array]):
    """A function of encrypted arrays with its shapes fixed; made by Evaluator.capture.

    On a GPU it is one CUDA graph with memory of its own: a call costs one launch instead of one for
    every kernel. Elsewhere the function runs again. Calls take values shaped like the examples (level,
    batch, length, no more noise) and raise InvalidArgument for others, and for a call from its own function.
    Threads take turns.
    """

    __slots__ = ("_core", "_server", "_single")

    def __init__(
        self,
        server: Evaluator[Array],
        function: Callable[..., Array | Sequence[Array]],
        examples: Sequence[Array],
    ) -> None:
        _callable(function)
        single = [True]  # not self: the core holds the function, and would hold itself

        def on_ciphertexts(inputs: Sequence[Any]) -> list[Any]:
            out = function(*(server._array(c) for c in inputs))
            single[0] = not isinstance(out, (list, tuple))
            return _results(server, out)

        settled = [server._own(v) for v in examples]
        self._server = server
        self._core = server._captured(on_ciphertexts, settled)
        self._single = single[0]

    def __call__(self, *inputs: Array) -> Array | tuple[Array, ...]:
        """What the function gives for these inputs: one value, or a tuple where it gives several."""
        out = self._core.run([self._server._own(v) for v in inputs])
        arrays = tuple(self._server._array(c) for c in out)
        return arrays[0] if self._single else arrays

    @property
    def nbytes(self) -> int:
        """Memory of the device that it keeps."""
        return int(self._core.nbytes)


class BatchPoint(NamedTuple):
    """What was measured of a batch: the time of one of its ciphertexts, and its memory."""

    batch: int
    seconds: float
    nbytes: int


class Batcher(Generic[Array]):
    """One function over many values, in batches that suit the machine; made by Evaluator.batcher.

    Batches of 1, 2, 4, ... are tried on the work itself, as long as memory allows and the time of a
    ciphertext falls; the best is kept for later calls. A batch that is refused, for its memory (OutOfMemory)
    or its size (Unsupported), is halved. The function sees values of shape (batch, n). A call from it is refused
    (InvalidArgument); threads take turns.
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
        """The function of every value, in order. The values are vectors alike in level and length."""
        inputs = [self._server._own(v) for v in values]
        results = self._core.run(inputs)
        logger.debug("%d values done in batches of up to %d", len(inputs), self.batch)
        return [self._server._array(c) for c in results]

    @property
    def batch(self) -> int:
        """The batch in use; 0 before the first call."""
        return int(self._core.batch)

    @property
    def curve(self) -> list[BatchPoint]:
        """What was measured so far, by batch."""
        return [BatchPoint(*point) for point in self._core.curve()]
