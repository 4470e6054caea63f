"""Functions that run many times: recorded once, or over many ciphertexts in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jali import _checks, _jali
from jali._jali import Ciphertext
from jali.ckks.array import EncryptedArray
from jali.errors import InvalidArgument

if TYPE_CHECKING:
    from jali.ckks.evaluator import Evaluator

__all__ = ["BatchPoint", "Batcher", "Captured"]


def _results(
    server: Evaluator, value: EncryptedArray | Sequence[EncryptedArray]
) -> list[Ciphertext]:
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return [server._own(v) for v in values]


def _callable(function: object) -> None:
    if not callable(function):
        raise InvalidArgument(
            f"give a function of encrypted arrays to record, not {type(function).__name__}"
        )


class Captured:
    """A function of encrypted arrays with its shapes fixed; made by Evaluator.capture.

    On a GPU it is one CUDA graph with memory of its own: a call costs one launch instead of one for
    every kernel. Elsewhere the function runs again. Calls take values shaped like the examples (level,
    batch, length, no more noise) and raise InvalidArgument for others, and for a call from its own function.
    Threads take turns.
    """

    __slots__ = ("_core", "_server", "_single")

    def __init__(
        self,
        server: Evaluator,
        function: Callable[..., EncryptedArray | Sequence[EncryptedArray]],
        examples: Sequence[EncryptedArray],
    ) -> None:
        _callable(function)
        single = [True]  # not self: the core holds the function, and would hold itself

        def on_ciphertexts(inputs: Sequence[Ciphertext]) -> list[Ciphertext]:
            out = function(*(EncryptedArray(server, c) for c in inputs))
            single[0] = isinstance(out, EncryptedArray)
            return _results(server, out)

        settled = [server._own(v) for v in examples]
        self._server = server
        self._core = _jali.CapturedCore(server.explicit, on_ciphertexts, settled)
        self._single = single[0]

    def __call__(self, *inputs: EncryptedArray) -> EncryptedArray | tuple[EncryptedArray, ...]:
        """What the function gives for these inputs: one value, or a tuple where it gives several."""
        out = self._core.run([self._server._own(v) for v in inputs])
        bound = tuple(EncryptedArray(self._server, c) for c in out)
        return bound[0] if self._single else bound

    @property
    def nbytes(self) -> int:
        """Memory of the device that it keeps."""
        return self._core.nbytes


class BatchPoint(NamedTuple):
    """What was measured of a batch: the time of one of its ciphertexts, and its memory."""

    batch: int
    seconds: float
    nbytes: int


class Batcher:
    """One function over many values, in batches that suit the machine; made by Evaluator.batcher.

    Batches of 1, 2, 4, ... are tried on the work itself, as long as memory allows and the time of a
    ciphertext falls; the best is kept for later calls. A batch that is refused, for its memory (OutOfMemory)
    or its size (Unsupported), is halved. The function sees values of shape (batch, n). A call from it is refused
    (InvalidArgument); threads take turns.
    """

    __slots__ = ("_core", "_server")

    def __init__(
        self,
        server: Evaluator,
        function: Callable[[EncryptedArray], EncryptedArray],
        max_batch: int | None,
    ) -> None:
        _callable(function)
        if max_batch is not None:
            max_batch = _checks.whole(max_batch, 1, "max_batch must be at least 1, or None")
        self._server = server

        def on_ciphertexts(inputs: Sequence[Ciphertext]) -> list[Ciphertext]:
            return _results(server, function(EncryptedArray(server, inputs[0])))

        self._core = _jali.BatcherCore(server.explicit, on_ciphertexts, max_batch or 0)

    def __call__(self, values: Iterable[EncryptedArray]) -> list[EncryptedArray]:
        """The function of every value, in order. The values are vectors alike in level and length."""
        inputs = [self._server._own(v) for v in values]
        return [EncryptedArray(self._server, c) for c in self._core.run(inputs)]

    @property
    def batch(self) -> int:
        """The batch in use; 0 before the first call."""
        return self._core.batch

    @property
    def curve(self) -> list[BatchPoint]:
        """What was measured so far, by batch."""
        return [BatchPoint(*point) for point in self._core.curve()]
