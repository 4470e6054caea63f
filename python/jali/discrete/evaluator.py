"""The server's side: it computes, and holds no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from jali._core.console import choices_text
from jali._core.log import logger
from jali._core.numpy_calls import called
from jali._core.refusals import Answering
from jali._core.run_ends import Checked, checked_function
from jali._core.view import View
from jali._jali.ckks import Trace
from jali._jali.discrete import (
    BatcherCore,
    CapturedCore,
    Ciphertext,
    EvaluationKeys,
    EvaluatorCore,
    Params,
)
from jali.device import checked_threads, resolved, tuned
from jali.discrete.array import EncryptedArray
from jali.discrete.captured import Batcher, Captured
from jali.discrete.joins import FUNCTIONS
from jali.discrete.products import matmul
from jali.discrete.rows import Rows
from jali.errors import InvalidArgument

__all__ = ["Evaluator", "place_of"]


def place_of(ciphertext: Ciphertext) -> View:
    """Where the elements of a ciphertext lie."""
    assert ciphertext.view is not None
    axes, first, period = ciphertext.view
    counts, strides = tuple(count for count, _ in axes), tuple(stride for _, stride in axes)
    place = View(counts, strides, first, ciphertext.slots, 1, period)
    vectors = int(place.addresses().max()) // ciphertext.slots + 1
    rest = 0.0 if ciphertext.is_padded else float("inf")
    return View(counts, strides, first, ciphertext.slots, vectors, period, rest)


def checked(value: object, kind: type, what: str, instead: str = "") -> None:
    """Raises InvalidArgument unless value is an instance of `kind`, a class of jali.discrete."""
    if not isinstance(value, kind):
        raise InvalidArgument(
            f"{what} must be a discrete.{kind.__name__}, not {type(value).__name__}{instead}"
        )


class Evaluator(metaclass=Answering):
    """Computes on ciphertexts with public keys.

    params: the client's parameters.
    keys: the client's evaluation keys; None for a server that only adds, and multiplies by numbers
        in the clear.
    device: "auto", "cpu", "cuda" or "cuda:K". "auto" is the device that JALI_DEVICE names or, if
        that is not set, the first GPU that this build can use or, if there is none, the CPU.
        "cpu/portable", "cpu/avx2", "cpu/avx512" and "cpu/ifma" name an instruction set, and "ref"
        is the slow reference engine, for tests.
    threads: how many threads the CPU engine uses; None stands for JALI_NUM_THREADS or, if that is
        not set, every core.
    trace: whether to record every operation of the engine; see the method ``trace``.
    variants: which implementations the engine uses, all of which give the same results. None stands
        for those that ``jali tune`` found on this machine, and {} for the engine's defaults.

    It may be used from several threads. Raises NoDevice for a device that is not there, and
    ParamsMismatch for keys of other parameters.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt(np.array([3, -1, 7], dtype=np.int8)))
    >>> client.decrypt(x * x + 1)
    array([10,  2, 50])
    """

    __slots__ = ("_core", "_engine", "_params", "_variants")

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys | None = None,
        device: str = "auto",
        *,
        threads: int | None = None,
        trace: bool = False,
        variants: Mapping[str, str] | None = None,
    ) -> None:
        checked(params, Params, "params")
        if keys is not None:
            checked(keys, EvaluationKeys, "keys", ": EvaluationKeys.from_bytes reads bytes")
        if variants is None:
            device, variants = tuned(device, params.word, params.log_n)
        else:
            device = resolved(device)
        chosen = dict(variants)
        core = EvaluatorCore(params, keys, device, checked_threads(threads), trace, chosen)
        if chosen:
            logger.info("implementations: %s", choices_text(chosen))
        self._start(params, chosen, core)

    def _start(self, params: Params, variants: Mapping[str, str], core: EvaluatorCore) -> None:
        self._params, self._engine, self._variants = params, core, dict(variants)
        self._core = Rows(core, params.slots // 2)
        logger.info(
            "evaluator made: engine %s, %d bytes of keys, %s",
            core.engine,
            core.key_bytes,
            repr(params),
        )

    def with_keys(self, keys: EvaluationKeys | None) -> Evaluator:
        """An evaluator for another client on the same engine: device, memory and tables.

        It takes the time and the memory of the client's keys, and raises ParamsMismatch for keys of
        other parameters.

        >>> params = discrete.Params.create(modulus=65537, depth=1)
        >>> one, other = discrete.Client(params), discrete.Client(params)
        >>> server = discrete.Evaluator(params, one.evaluation_keys())
        >>> x = server.with_keys(other.evaluation_keys()).bind(other.encrypt(np.array([3], np.int8)))
        >>> other.decrypt(x * x)
        array([9])
        """
        if keys is not None:
            checked(keys, EvaluationKeys, "keys", ": EvaluationKeys.from_bytes reads bytes")
        other = Evaluator.__new__(Evaluator)
        other._start(self._params, self._variants, self._engine.with_keys(keys))
        return other

    @classmethod
    def _noting_keys(cls, params: Params, keys: EvaluationKeys, device: str = "dry") -> Evaluator:
        """One that finds out which keys a computation uses. keys: an empty set of the client's."""
        server = cls.__new__(cls)
        server._start(params, {}, EvaluatorCore.recording(keys, device, checked_threads(None)))
        return server

    @property
    def params(self) -> Params:
        """The parameters it was made for."""
        return self._params

    @property
    def device(self) -> str:
        """The kind of device that computes: "cpu" or "cuda"."""
        return self.engine.split("/")[0].split(":")[0]

    @property
    def engine(self) -> str:
        """The engine and its instruction set, e.g. "cpu/ifma"."""
        return self._engine.engine

    @property
    def variants(self) -> dict[str, str]:
        """The implementations that were chosen for it. For all others, the engine uses its
        defaults."""
        return dict(self._variants)

    @property
    def threads(self) -> int:
        """How many threads work on one operation."""
        return self._engine.threads

    @property
    def key_bytes(self) -> int:
        """The bytes that its keys take in the memory of its device."""
        return self._engine.key_bytes

    def trace(self) -> Trace:
        """The record of every operation since the evaluator was made.

        ``trace().json_lines()`` is the text that ``jali simulate`` reads. Raises InvalidArgument for
        an evaluator that was made without trace=True.
        """
        if self._engine.trace is None:
            raise InvalidArgument(
                "this evaluator does not record its operations: make one with Evaluator(params, keys, trace=True)"
            )
        return self._engine.trace

    def synchronize(self) -> None:
        """Wait until a GPU has done everything that it was asked to do. Operations return before
        they are done."""
        self._engine.synchronize()

    def counters(self) -> dict[str, int]:
        """How often each operation succeeded, whatever its batch, and the memory of its device.

        rotations also counts exchanges of the rows, and plain_products the masks that moves take.
        The last three numbers are bytes of the device's pool. May be called from any thread.
        """
        return self._engine.counters()

    def checkpoint(self, function: Callable[[], object] | None) -> AbstractContextManager[None]:
        """While the block runs, `function` is called ten times a second by what this thread
        computes on this engine. If it raises, the work ends with that exception.

        >>> server = discrete.Evaluator(discrete.Params.create(modulus=65537, depth=1))
        >>> with server.checkpoint(lambda: None):
        ...     pass
        """
        return Checked(self._engine, checked_function(function))

    def bind(self, ciphertext: Ciphertext | EncryptedArray) -> EncryptedArray:
        """An encrypted array that computes with this evaluator.

        Raises ParamsMismatch for a ciphertext of other parameters, KeyMismatch for one of another
        client than the keys, and InvalidArgument for anything else.
        """
        if isinstance(ciphertext, EncryptedArray):
            ciphertext = ciphertext.ciphertext
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(
                f"bind takes a discrete.Ciphertext, not {type(ciphertext).__name__}: Client.encrypt makes one"
            )
        self._engine.check(ciphertext)
        if not self._engine.is_here(ciphertext):
            ciphertext = self._engine.bring(ciphertext)
        return self._array(ciphertext)

    def capture(
        self,
        function: Callable[..., EncryptedArray | Sequence[EncryptedArray]],
        *examples: EncryptedArray,
    ) -> Captured:
        """Records the function for inputs like the examples. Call the result with such inputs.

        function: takes as many encrypted arrays as there are examples, and returns one or several.
            It must do the same at every call. On a GPU it must not use arrays in the clear, nor
            what takes masks: some moves, and sums of a number with an array that does not fill its
            ciphertexts.

        Raises InvalidArgument for a function that cannot be recorded.
        """
        return Captured(self, function, examples)

    def batcher(
        self, function: Callable[[EncryptedArray], EncryptedArray], *, max_batch: int | None = None
    ) -> Batcher:
        """The function for many arrays, in batches of the fastest measured size. See Batcher.

        max_batch: the largest batch, at least 1; None sets no limit.
        """
        return Batcher(self, function, max_batch)

    def map(
        self,
        function: Callable[[EncryptedArray], EncryptedArray],
        values: Iterable[EncryptedArray],
        *,
        max_batch: int | None = None,
    ) -> list[EncryptedArray]:
        """The function of every array, several at a time: ``batcher(function)(values)``.

        function, max_batch: as of ``batcher``.
        values: encrypted arrays of one shape.
        """
        return self.batcher(function, max_batch=max_batch)(values)

    # --- what jali._core.capture calls ------------------------------------------------------------

    def _array(self, ciphertext: Ciphertext) -> EncryptedArray:
        view = place_of(ciphertext)
        # Of a part of a larger array, no vectors without an element are kept.
        return EncryptedArray(self, self._core.take(ciphertext, [*range(view.vectors)]), view)

    def _captured(
        self,
        function: Callable[[Sequence[Ciphertext]], list[Ciphertext]],
        examples: Sequence[Ciphertext],
    ) -> CapturedCore:
        return CapturedCore(self._engine, function, examples)

    def _batcher(
        self, function: Callable[[Sequence[Ciphertext]], Ciphertext], max_batch: int
    ) -> BatcherCore:
        return BatcherCore(self._engine, function, max_batch)

    def _own(self, value: EncryptedArray) -> Ciphertext:
        """The ciphertext of an array, on the device."""
        if not isinstance(value, EncryptedArray):
            raise InvalidArgument(
                f"this takes an encrypted array, not {type(value).__name__}: bind() makes one"
            )
        if value._server is not self:
            raise InvalidArgument("the value is bound to another evaluator: bind it to this one")
        view = value._place.changing()
        return self._engine.with_view(value._ct, view.as_tuple(), view.zero)

    _result = _own

    # --- what arrays call -------------------------------------------------------------------------

    def _matmul(self, a: Any, b: Any) -> EncryptedArray:
        return matmul(a, b)

    def _numpy(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return called(FUNCTIONS, function, args, kwargs)

    def __repr__(self) -> str:
        return f"Evaluator({self.params!r}, device='{self.device}', engine='{self.engine}')"
