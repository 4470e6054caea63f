"""The server's side: it computes, and holds no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from jali._core import checks
from jali._core.axes import axes
from jali._core.log import logger
from jali._core.moves import of_sum
from jali._core.numpy_calls import called
from jali._core.refusals import Answering
from jali._core.run_ends import Checked, checked_function
from jali._core.view import View
from jali._jali import ckks as _ckks
from jali._jali.ckks import (
    Ciphertext,
    EvaluationKeys,
    ExplicitEvaluator,
    LinearTransform,
    MatVec,
    Params,
    Polynomial,
    Trace,
)
from jali.ckks.arguments import (
    checked_iterations,
    checked_target,
    checked_within,
    refuse_complex,
)
from jali.ckks.arithmetic import place_of, together
from jali.ckks.array import EncryptedArray
from jali.ckks.captured import Batcher, Captured
from jali.ckks.domain import filled, mapped
from jali.ckks.engine_core import made
from jali.ckks.joins import FUNCTIONS
from jali.ckks.largest import argmax
from jali.ckks.products import matmul
from jali.device import checked_threads, resolved
from jali.errors import InvalidArgument

__all__ = ["Evaluator", "sum_rotations"]


def sum_rotations(count: int) -> list[int]:
    """The rotations that EncryptedArray.sum(count) needs: 1, 2, 4 .. count / 2.

    count: a power of two. Other numbers raise InvalidArgument.

    >>> ckks.sum_rotations(8)
    [1, 2, 4]
    """
    count = checks.whole(count, 1, "count must be a power of two")
    if count & (count - 1):
        raise InvalidArgument(f"count {checks.shown(count)} is not a power of two")
    return [1 << k for k in range(count.bit_length() - 1)]


class Evaluator(metaclass=Answering):
    """Computes on ciphertexts with public keys.

    params: the client's parameters.
    keys: the client's evaluation keys; None for a server that only adds, and multiplies by numbers
        in the clear.
    device: "auto", "cpu", "cuda" or "cuda:K". "auto" is the device that JALI_DEVICE names or, if
        that is not set, the first GPU that this build can use or, if there is none, the CPU. The
        attribute ``device`` says which it is. "cpu/portable", "cpu/avx2", "cpu/avx512" and
        "cpu/ifma" name an instruction set. "ref" is the slow reference engine, and "cpu/apart" a
        CPU engine with memory of its own; both are for tests.
    threads: how many threads the CPU engine uses; None stands for JALI_NUM_THREADS or, if that is
        not set, every core.
    trace: whether to record every operation of the engine; see the method ``trace``.
    variants: which implementations the engine uses, e.g. {"ntt": "two_pass"} on a GPU or {"isa":
        "avx2"} on a CPU. All give the same results. None stands for those that ``jali tune`` found
        on this machine, and for the engine's defaults if it has not run. {} stands for the engine's
        defaults.

    It may be used from several threads. Raises NoDevice for a device that is not there, and
    ParamsMismatch for keys of other parameters.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1]))
    >>> x = server.bind(client.encrypt([0.5, -1.25]))
    >>> client.decrypt(x * x + 0.25).round(2)
    array([0.5 , 1.81])
    """

    __slots__ = ("_core", "_noting", "_params", "_recording", "_variants")

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
        checks.instance(params, Params, "params")
        if keys is not None:
            checks.instance(keys, EvaluationKeys, "keys", ": EvaluationKeys.from_bytes reads bytes")
        core, chosen = made(params, device, threads, trace, variants)
        self._start(params, chosen, _ckks.EvaluatorCore(core, keys))

    def _start(
        self, params: Params, variants: Mapping[str, str], core: _ckks.EvaluatorCore
    ) -> None:
        self._params, self._core, self._variants = params, core, dict(variants)
        self._recording: object = None  # while a function is recorded, an object for that recording
        self._noting = False  # whether it only finds out which keys are used
        logger.info(
            "evaluator made: engine %s, %d bytes of keys, %s",
            core.engine,
            core.key_bytes,
            repr(params),
        )

    def with_keys(self, keys: EvaluationKeys | None) -> Evaluator:
        """An evaluator for another client on the same engine: device, memory, tables, and
        everything that was prepared for this one.

        It takes the time and the memory of the client's keys. See Engine, also for the errors.

        >>> params = ckks.Params.create(depth=1)
        >>> one, other = ckks.Client(params), ckks.Client(params)
        >>> server = ckks.Evaluator(params, one.evaluation_keys())
        >>> x = server.with_keys(other.evaluation_keys()).bind(other.encrypt([0.5]))
        >>> other.decrypt(x * x).round(3)
        array([0.25])
        """
        if keys is not None:
            checks.instance(keys, EvaluationKeys, "keys", ": EvaluationKeys.from_bytes reads bytes")
        other = Evaluator.__new__(Evaluator)
        other._start(self._params, self._variants, self._core.with_keys(keys))
        return other

    @property
    def key_bytes(self) -> int:
        """The bytes that its keys take in the memory of its device."""
        return self._core.key_bytes

    def checkpoint(self, function: Callable[[], object] | None) -> AbstractContextManager[None]:
        """While the block runs, `function` is called ten times a second by what this thread
        computes on this engine. If it raises, the work ends with that exception, and leaves
        everything as if memory had run out. A run of a recorded function on a GPU is not
        interrupted.

        >>> client = ckks.Client(ckks.Params.create(depth=1))
        >>> server = ckks.Evaluator(client.params, client.evaluation_keys())
        >>> calls = []
        >>> with server.checkpoint(lambda: calls.append("called")):
        ...     x = server.bind(client.encrypt([0.5])) + 1
        >>> calls
        ['called']
        """
        return Checked(self._core, checked_function(function))

    @classmethod
    def _noting_keys(
        cls,
        params: Params,
        keys: EvaluationKeys,
        device: str = "cpu",
        threads: int | None = None,
    ) -> Evaluator:
        """One that finds out which keys a computation uses. keys: an empty set of the client's.
        device: also "dry".

        It does all the work that keys would take, with zeros in their place. On "dry" it does no
        arithmetic; levels, scales, estimates and keys are the same.
        """
        server = cls.__new__(cls)
        core = _ckks.EvaluatorCore.recording(keys, resolved(device), checked_threads(threads))
        server._start(params, {}, core)
        server._noting = True
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
        return self._core.engine

    @property
    def variants(self) -> dict[str, str]:
        """The implementations that were chosen for it. For all others, the engine uses its
        defaults."""
        return dict(self._variants)

    @property
    def threads(self) -> int:
        """How many threads work on one operation.

        There are fewer than asked for if the system refuses some, and 1 in a forked child process.
        """
        return self._core.threads

    def trace(self) -> Trace:
        """The record of every operation since the evaluator was made.

        ``trace().clear()`` forgets what came before, and ``trace().json_lines()`` is the text that
        ``jali simulate`` reads. Raises InvalidArgument for an evaluator that was made without
        trace=True.
        """
        if self._core.trace is None:
            raise InvalidArgument(
                "this evaluator does not record its operations: make one with Evaluator(params, keys, trace=True)"
            )
        return self._core.trace

    @property
    def explicit(self) -> ExplicitEvaluator:
        """The explicit evaluator with the same keys: every operation by hand. See
        jali.ckks.explicit."""
        return self._core.explicit

    def synchronize(self) -> None:
        """Wait until a GPU has done everything that it was asked to do. Operations return before
        they are done."""
        self._core.synchronize()

    def counters(self) -> dict[str, int]:
        """How often each operation succeeded, whatever its batch, and the memory of its device.

        What a call does inside does not count: a bootstrapping has many rotations. A function that
        is recorded counts once for its recording.

        plain_products: with numbers and arrays in the clear.
        polynomials: also functions made of them.
        programs: runs of recorded functions.
        copies_to_device, copies_to_host: of ciphertexts, between a GPU's memory and the host's.
        fallbacks: ways that were found around missing keys or memory, each of which is logged, too:
            a rotation that is composed of others, bootstrapping with less than all of its keys, a
            batch that was refused.
        bytes_in_use, bytes_cached: of the device's pool: in ciphertexts, keys and tables, and kept
            for reuse.
        bytes_peak: the most that were in use at once since the device was taken, or since
            ``Program.summary`` measured with it.

        Counts only grow; the first two numbers of bytes go both ways. May be called from any
        thread, at any time.
        """
        return self._core.counters()

    def bind(self, ciphertext: Ciphertext | EncryptedArray) -> EncryptedArray:
        """An encrypted array that computes with this evaluator.

        Raises ParamsMismatch for a ciphertext of other parameters, KeyMismatch for one of another
        client than the keys, and InvalidArgument for anything else.
        """
        known: View | None = None
        if isinstance(ciphertext, EncryptedArray):
            known = ciphertext._view
            ciphertext = ciphertext.ciphertext
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(
                f"bind takes a ckks.Ciphertext, not {type(ciphertext).__name__}: Ciphertext.from_bytes reads bytes"
            )
        self._core.check(ciphertext)
        if not self._core.is_here(ciphertext):
            ciphertext = self._core.bring(ciphertext)
        if ciphertext.view is not None:
            view = known or place_of(ciphertext)
            return EncryptedArray(self, self._core.with_view(ciphertext, None, False), view)
        return EncryptedArray(self, ciphertext)

    def prepare(self, plan: MatVec | LinearTransform, *, storage: str = "residues") -> None:
        """Encode a plan's matrix once, now, instead of at each use. plan.nbytes then says how much
        memory it takes.

        storage: how diagonals are kept. Results are the same bit by bit.

        - "residues": over all primes, ready for products, in plan.plaintext_bytes;
        - "integers": the coefficients, of which each use makes residues, in plan.integer_bytes: 8
          bytes for each coefficient, or, of numbers that repeat after p slots, for 2 p of them;
        - "streamed": the same in the memory of the host, from which each use copies them.

        Raises InvalidArgument for matrices whose integers have more than 62 bits, and after
        plan.forget().
        """
        if not isinstance(plan, (MatVec, LinearTransform)):
            raise InvalidArgument("prepare takes a MatVec or a LinearTransform")
        if not isinstance(storage, str):
            raise InvalidArgument(
                f'storage is "residues", "integers" or "streamed", not {checks.shown(storage)}'
            )
        self._core.prepare(plan, storage)

    def matvec(self, plan: MatVec, x: EncryptedArray | Sequence[EncryptedArray]) -> EncryptedArray:
        """The plan's matrix times x (+ bias), one level lower. Decryption shows plan.rows numbers.

        x: the encryption of plan.pack(vector); several if the layout takes several ciphertexts. It
            must lie as plan.input_layout says; ``arrange`` brings it there.

        Raises KeyMissing, which names the rotations, DepthExhausted if x lies below plan.level, and
        InvalidArgument for inputs that the plan does not expect. If the output takes several
        ciphertexts, use matvec_blocks.
        """
        outputs = self.matvec_blocks(plan, x)
        if len(outputs) != 1:
            raise InvalidArgument(
                f"the product takes {len(outputs)} ciphertexts: call matvec_blocks"
            )
        return outputs[0]

    def arrange(self, plan: MatVec, x: EncryptedArray) -> EncryptedArray:
        """x, as the plan takes it.

        It costs nothing if x lies so. If it does not, plan.arrangement(x.layout) says how many
        levels it takes, and the rotations for which keys are needed:

        - if the plan's vectors repeat (or lie once), and zeros lie behind x: no level, and one
          rotation for each doubling, log2(slots / period) of them;
        - if the plan's vectors lie in windows: one level, and one rotation for each window, besides
          those of the doublings;
        - one level more if anything but zeros lies behind x, or if x lies in windows.

        Plan for a level that leaves these: MatVec(..., level=x.level - levels). Raises
        DepthExhausted, KeyMissing, and InvalidArgument for a vector of another length, or if the
        plan takes several ciphertexts.
        """
        if not isinstance(plan, MatVec):
            raise InvalidArgument("arrange takes a ckks.MatVec: make one from the matrix first")
        return EncryptedArray(self, self._core.arrange(plan, self._own(x)))

    def matvec_blocks(
        self, plan: MatVec, x: EncryptedArray | Sequence[EncryptedArray]
    ) -> list[EncryptedArray]:
        """``matvec(plan, x)`` for outputs longer than the slots: an array for each block of rows."""
        if not isinstance(plan, MatVec):
            raise InvalidArgument("matvec takes a ckks.MatVec: make one from the matrix first")
        inputs = [self._own(v) for v in ([x] if isinstance(x, EncryptedArray) else x)]
        for value in inputs:
            refuse_complex(value)
        return [EncryptedArray(self, c) for c in self._core.matvec(plan, inputs)]

    def linear_transform(
        self, plan: LinearTransform, x: EncryptedArray, *, peak: float | None = None
    ) -> EncryptedArray:
        """The plan's linear map of the slots of x, one level lower. Errors are those of matvec.

        peak: your claim that no number of the result is larger, if you know a smaller bound than
            the matrix's rows times the peak of x. Decryption compares the numbers with it.
        """
        if not isinstance(plan, LinearTransform):
            raise InvalidArgument("linear_transform takes a ckks.LinearTransform")
        return EncryptedArray(
            self, self._core.linear_transform(plan, self._own(x), checks.peak(peak) or None)
        )

    def polynomial(
        self,
        x: EncryptedArray,
        polynomial: Polynomial | npt.ArrayLike,
        *,
        basis: str = "power",
        interval: tuple[float, float] | None = None,
        within: tuple[float, float] | None = None,
    ) -> EncryptedArray:
        """A polynomial of every slot, with the fewest levels: ceil(log2(degree + 1)).

        polynomial: a ckks.Polynomial, or its coefficients, the constant first: those of x^i
            ("power"), or of T_i on ``interval`` ("chebyshev"). An interval other than [-1, 1] may
            cost one level more.
        basis, interval: for coefficients; see ckks.Polynomial.
        within: the least and the largest number that can occur in x, if you know better than the
            peak that x carries. What slots hold that hold none of them, beside a slice or a sum
            along an axis, is then masked first unless it lies in the interval, which takes one
            level more.

        If the polynomial has an interval, the numbers must be real and known to lie in it: those
        from -peak to peak, or those in ``within``. Others are refused before anything is computed.
        Raises InvalidArgument for these and for coefficients that are too large for the level of x,
        DepthExhausted, which names the depth that would be enough, and KeyMissing without a
        relinearisation key.
        """
        if not isinstance(polynomial, Polynomial):
            polynomial = Polynomial(polynomial, basis, interval)
        elif basis != "power" or interval is not None:
            raise InvalidArgument(
                "a ckks.Polynomial has a basis and an interval: leave out basis= and interval="
            )
        self._raw(x)
        x, within, fill = filled(x, polynomial.interval, checked_within(within))
        value = self._core.polynomial(polynomial, self._raw(x), within)
        return mapped(x, value, None if fill is None else float(abs(polynomial(fill))))

    def prepare_bootstrap(
        self,
        slots: int | None = None,
        *,
        real: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Encode the matrices of bootstrapping for this packing now, instead of at the first
        EncryptedArray.bootstrap.

        slots: the number of slots of the values; None stands for params.slots.
        real: whether imaginary parts are dropped. EncryptedArray.bootstrap drops those of real data
            with the order "slots_first".
        progress: called after each matrix, with how many are done and how many there are.

        Raises KeyMissing.
        """
        self._core.prepare_bootstrap(checks.slots(slots), real, progress)

    def bootstrap_pair(
        self,
        x: EncryptedArray,
        y: EncryptedArray,
        target_level: int | None = None,
        *,
        iterations: int = 1,
        slots: int | None = None,
        repeats: bool = False,
    ) -> tuple[EncryptedArray, EncryptedArray]:
        """Bootstraps two real values at once, as x + i y, which is half the work for each.

        x, y: of any shapes, with equal numbers of slots and vectors. One of a higher level is
            brought to that of the other. An imaginary part that noise left in one becomes an error
            of the other.
        target_level, iterations, slots, repeats: as of EncryptedArray.bootstrap; errors, too.
        """
        pair = self._raw(x), self._raw(y)
        level = min(x.level, y.level)
        scale = self._params.level(level).scale
        first, second = (
            v if v.level == level else self._core.explicit.adjust(v, level, scale) for v in pair
        )
        claimed = checks.flag(repeats, "repeats")
        few = [v._repeating(checks.slots(slots), claimed) for v in (x, y)]
        first, second = self._core.bootstrap_pair(
            first, second, checked_target(target_level), checked_iterations(iterations), few[0]
        )
        logger.debug("bootstrapped a pair: %d slots, to level %d", first.slots, first.level)
        return x._like(first), y._like(second)

    def capture(
        self,
        function: Callable[..., EncryptedArray | Sequence[EncryptedArray]],
        *examples: EncryptedArray,
    ) -> Captured:
        """Records the function for inputs like the examples. Call the result with such inputs.

        examples: of any shapes; inputs must lie as they do, so that slices of other arrays may have
            to be recorded by themselves.
        function: takes as many encrypted arrays as there are examples, and returns one or several.
            It must do the same at every call. On a GPU it must not use arrays in the clear: prepare
            plans, or encode with ``explicit``, beforehand.

        Raises InvalidArgument for a function that cannot be recorded.
        """
        return Captured(self, function, examples)

    def batcher(
        self, function: Callable[[EncryptedArray], EncryptedArray], *, max_batch: int | None = None
    ) -> Batcher:
        """The function for many values, in batches of the fastest measured size. See Batcher.

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
        """The function of every value, several at a time: ``batcher(function)(values)``.

        function, max_batch: as of ``batcher``.
        values: encrypted arrays. Those that are no vectors are done one by one, each with an axis
            of 1 in front.
        """
        return self.batcher(function, max_batch=max_batch)(values)

    # --- what jali.ckks.functions calls -----------------------------------------------------------

    def _function(
        self, plan: _ckks.FunctionCore, x: EncryptedArray, within: tuple[float, float] | None
    ) -> EncryptedArray:
        self._raw(x)
        x, within, fill = filled(x, plan.interval, within)
        value = self._core.function(plan, self._raw(x), within)
        return mapped(x, value, None if fill is None else float(abs(plan(fill))))

    def _maximum(
        self, plan: _ckks.MaximumCore, a: EncryptedArray, b: EncryptedArray
    ) -> EncryptedArray:
        for one in (a, b):
            self._raw(one)
        x, y, view = together(a, b)
        value = self._core.maximum(plan, x._settled(), y._settled())
        if view is not None:
            view = of_sum(x, y, view)
            view = replace(view, rest=view.rest and view.rest + plan.max_error)
        return EncryptedArray(self, value, view)

    def _argmax(self, plan: _ckks.ArgMaxCore, x: EncryptedArray, axis: Any) -> EncryptedArray:
        self._raw(x)
        # The engine compares the numbers of every vector of a batch by themselves.
        whole = axis is not None and axes(axis, x.ndim) != (x.ndim - 1,)
        if x._view is not None or whole:
            return argmax(plan, x._viewed(), axis)
        return EncryptedArray(self, self._core.argmax(plan, self._own(x)))

    # --- what jali._core.capture calls ------------------------------------------------------------

    def _array(self, ciphertext: Ciphertext) -> EncryptedArray:
        return EncryptedArray(self, ciphertext)

    def _captured(
        self,
        function: Callable[[Sequence[Ciphertext]], list[Ciphertext]],
        examples: Sequence[Ciphertext],
    ) -> _ckks.CapturedCore:
        before, self._recording = self._recording, object()
        try:
            return _ckks.CapturedCore(self.explicit, function, examples)
        finally:
            self._recording = before

    def _batcher(
        self, function: Callable[[Sequence[Ciphertext]], list[Ciphertext]], max_batch: int
    ) -> _ckks.BatcherCore:
        return _ckks.BatcherCore(self.explicit, function, max_batch)

    def _own(self, value: EncryptedArray) -> Ciphertext:
        """The ciphertext of a vector or a batch of vectors."""
        ciphertext = self._raw(value)
        if value._view is not None:
            raise InvalidArgument(
                f"this takes vectors (n,) and batches of them, not an array of the shape {value.shape} in "
                f"{value._view.vectors} x {value.slots} slots: encrypt it with batch=True, or write matrix @ x, which takes "
                "arrays as they are"
            )
        return ciphertext

    def _result(self, value: EncryptedArray) -> Ciphertext:
        """The ciphertext of what a captured or mapped function returned."""
        if isinstance(value, EncryptedArray) and value._view is not None:
            raise InvalidArgument(
                f"such a function returns vectors (n,) or batches of them, not an array of the shape {value.shape}: of a vector "
                "or a batch x return x.sum(count=n).with_length(1) for a sum, n a power of two, and "
                "x.rotate(i).with_length(n) for x[i:i+n]"
            )
        return self._own(value)

    def _matmul(self, a: Any, b: Any) -> EncryptedArray:
        return matmul(a, b)

    def _numpy(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return called(FUNCTIONS, function, args, kwargs)

    def _raw(self, value: EncryptedArray) -> Ciphertext:
        """The ciphertext of an array, of which every slot is worked on."""
        if not isinstance(value, EncryptedArray):
            raise InvalidArgument(
                f"this takes an encrypted array, not {type(value).__name__}: bind() makes one"
            )
        if value.evaluator is not self:
            raise InvalidArgument("the value is bound to another evaluator: bind it to this one")
        return value._settled()

    def __repr__(self) -> str:
        return f"Evaluator({self.params!r}, device='{self.device}', engine='{self.engine}')"
