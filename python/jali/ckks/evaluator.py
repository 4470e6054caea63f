"""The side that computes and holds no secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy.typing as npt

from jali._core import checks
from jali._core.tuning import chosen
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
from jali.ckks.array import EncryptedArray, checked_iterations, checked_target
from jali.ckks.captured import Batcher, Captured
from jali.ckks.client import checked_slots
from jali.ckks.functions import checked_within
from jali.device import checked_threads, resolved
from jali.errors import InvalidArgument

__all__ = ["Evaluator", "sum_rotations"]


def sum_rotations(count: int) -> list[int]:
    """The rotations that EncryptedArray.sum(count) needs: 1, 2, 4 .. count / 2. count: a power of two."""
    count = checks.whole(count, 1, "count must be a power of two")
    if count & (count - 1):
        raise InvalidArgument(f"count {checks.shown(count)} is not a power of two")
    return [1 << k for k in range(count.bit_length() - 1)]


class Evaluator:
    """Computes on ciphertexts with public keys.

    params: the client's parameters.
    keys: its evaluation keys; None for a server that only adds and multiplies by plain numbers.
    device: "auto", "cpu", "cuda" or "cuda:K"; raises NoDevice for one that is not here. "auto" is what
        JALI_DEVICE names, else the first GPU that build and machine have, else the CPU; ``device``
        says which it was. "cpu/portable", "cpu/avx2", "cpu/avx512" and "cpu/ifma" name an
        instruction set, "ref" is the slow oracle, "cpu/apart" the CPU with memory of its own (tests).
    threads: of the cpu device; None for JALI_NUM_THREADS, else every core.
    trace: record every operation of the backend, see the attribute ``trace``.
    variants: implementations of the engine to use, all of equal results, e.g. {"ntt": "two_pass"} on a
        GPU, {"isa": "avx2"} on a CPU. None for what ``jali tune`` found on this machine, else the
        engine's own choice; {} for the latter.

    May be used from several threads. Raises ParamsMismatch for keys of other parameters.
    """

    __slots__ = ("_core", "_params", "_recording", "_variants")

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
        self._params = params
        self._recording: object = None  # one for each recording of a function, while it lasts
        device = resolved(device)
        if variants is None:
            tuned = device == "cpu" or device.startswith("cuda:")
            variants = chosen(device, params.word, params.log_n) if tuned else {}
        self._variants = dict(variants)
        engine_variants = dict(variants)
        if device == "cpu" and "isa" in engine_variants:
            device = f"cpu/{engine_variants.pop('isa')}"
        self._core = _ckks.EvaluatorCore(
            params, keys, device, checked_threads(threads), trace, engine_variants
        )

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
        """Backend and instruction set, e.g. "cpu/ifma"."""
        return self._core.engine

    @property
    def variants(self) -> dict[str, str]:
        """The implementations that were chosen for it; the engine chose the others."""
        return dict(self._variants)

    @property
    def threads(self) -> int:
        """Threads that work on one operation: fewer than asked for where the system gives fewer, 1 in a fork's child."""
        return self._core.threads

    @property
    def trace(self) -> Trace | None:
        """The recording of every operation since it was made; None unless made with trace=True."""
        return self._core.trace

    @property
    def explicit(self) -> ExplicitEvaluator:
        """Every operation by hand, with the same keys; see jali.ckks.explicit."""
        return self._core.explicit

    def synchronize(self) -> None:
        """Wait until a GPU has done everything asked of it: operations return before they are done."""
        self._core.synchronize()

    def bind(self, ciphertext: Ciphertext | EncryptedArray) -> EncryptedArray:
        """A value that computes with this evaluator. Raises ParamsMismatch for other parameters."""
        if isinstance(ciphertext, EncryptedArray):
            ciphertext = ciphertext.ciphertext
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(f"bind takes a Ciphertext, not {type(ciphertext).__name__}")
        self._core.check(ciphertext)
        if not self._core.is_here(ciphertext):
            ciphertext = self._core.bring(ciphertext)
        return EncryptedArray(self, ciphertext)

    def prepare(self, plan: MatVec | LinearTransform) -> None:
        """Encode a plan's matrix now, once, instead of at each use; takes plan.plaintext_bytes."""
        if not isinstance(plan, (MatVec, LinearTransform)):
            raise InvalidArgument("prepare takes a MatVec or a LinearTransform")
        self._core.prepare(plan)

    def matvec(self, plan: MatVec, x: EncryptedArray | Sequence[EncryptedArray]) -> EncryptedArray:
        """The plan's matrix times x (+ bias), one level down; shows plan.rows numbers.

        x: the encryption of plan.pack(vector), several where the layout takes several ciphertexts.
        For products whose output takes several see matvec_blocks. Raises KeyMissing, naming the
        rotations, DepthExhausted, InvalidArgument.
        """
        outputs = self.matvec_blocks(plan, x)
        if len(outputs) != 1:
            raise InvalidArgument(
                f"the product takes {len(outputs)} ciphertexts: call matvec_blocks"
            )
        return outputs[0]

    def matvec_blocks(
        self, plan: MatVec, x: EncryptedArray | Sequence[EncryptedArray]
    ) -> list[EncryptedArray]:
        """As matvec, for outputs longer than the slots: one value for each block of rows."""
        if not isinstance(plan, MatVec):
            raise InvalidArgument("matvec takes a ckks.MatVec: make one from the matrix first")
        inputs = [self._own(v) for v in ([x] if isinstance(x, EncryptedArray) else x)]
        return [EncryptedArray(self, c) for c in self._core.matvec(plan, inputs)]

    def linear_transform(self, plan: LinearTransform, x: EncryptedArray) -> EncryptedArray:
        """The plan's linear map of the slots of x, one level down. Errors as in matvec."""
        if not isinstance(plan, LinearTransform):
            raise InvalidArgument("linear_transform takes a ckks.LinearTransform")
        return EncryptedArray(self, self._core.linear_transform(plan, self._own(x)))

    def polynomial(
        self,
        x: EncryptedArray,
        polynomial: Polynomial | npt.ArrayLike,
        *,
        basis: str = "power",
        interval: tuple[float, float] | None = None,
        within: tuple[float, float] | None = None,
    ) -> EncryptedArray:
        """A polynomial on every slot, at the fewest levels: ceil(log2(degree + 1)).

        polynomial: a ckks.Polynomial, or coefficients with the constant first, of x^i ("power") or
            of T_i on ``interval`` ("chebyshev"), where an interval other than [-1, 1] may cost a level.
        within: the least and the largest number that can occur in x, if you know better than the peak that x
            carries.

        A polynomial with an interval takes real numbers that are known to lie in it: -peak to peak, or ``within``.
        Others are refused before anything is computed. Raises InvalidArgument for these, DepthExhausted with
        the depth that would be enough, KeyMissing without a relinearisation key.
        """
        if not isinstance(polynomial, Polynomial):
            polynomial = Polynomial(polynomial, basis, interval)
        return EncryptedArray(
            self, self._core.polynomial(polynomial, self._own(x), checked_within(within))
        )

    def prepare_bootstrap(
        self,
        slots: int | None = None,
        *,
        real: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Encode the matrices of bootstrapping for this packing now, not at the first EncryptedArray.bootstrap.

        real: as there; for real data of the order "slots_first" that is True. progress: called after each
        matrix with how many are done and how many there are. Raises KeyMissing.
        """
        self._core.prepare_bootstrap(checked_slots(slots), real, progress)

    def bootstrap_pair(
        self,
        x: EncryptedArray,
        y: EncryptedArray,
        target_level: int | None = None,
        *,
        iterations: int = 1,
    ) -> tuple[EncryptedArray, EncryptedArray]:
        """Two real values in one bootstrapping, as x + i y: half the work for each.

        Both of one number of slots, batch and level; other arguments and errors as in EncryptedArray.bootstrap.
        Imaginary parts that noise left in one become errors of the other.
        """
        first, second = self._core.bootstrap_pair(
            self._own(x), self._own(y), checked_target(target_level), checked_iterations(iterations)
        )
        return EncryptedArray(self, first), EncryptedArray(self, second)

    def capture(
        self,
        function: Callable[..., EncryptedArray | Sequence[EncryptedArray]],
        *examples: EncryptedArray,
    ) -> Captured:
        """The function recorded for inputs like the examples; call the result with such inputs.

        function: of as many encrypted arrays, giving one or several; it must do the same at every call. On a
            GPU it must not use arrays: prepare plans, or encode with ``explicit``, before. Raises
            InvalidArgument for what cannot be recorded.
        """
        return Captured(self, function, examples)

    def batcher(
        self, function: Callable[[EncryptedArray], EncryptedArray], *, max_batch: int | None = None
    ) -> Batcher:
        """The function for many values, in batches of the size measured best; see Batcher."""
        return Batcher(self, function, max_batch)

    def map(
        self,
        function: Callable[[EncryptedArray], EncryptedArray],
        values: Iterable[EncryptedArray],
        *,
        max_batch: int | None = None,
    ) -> list[EncryptedArray]:
        """function of every value, several at a time: ``batcher(function)(values)``."""
        return self.batcher(function, max_batch=max_batch)(values)

    # --- what jali.ckks.functions asks for --------------------------------------------------------

    def _function(
        self, plan: _ckks.FunctionCore, x: EncryptedArray, within: tuple[float, float] | None
    ) -> EncryptedArray:
        return EncryptedArray(self, self._core.function(plan, self._own(x), within))

    def _maximum(
        self, plan: _ckks.MaximumCore, a: EncryptedArray, b: EncryptedArray
    ) -> EncryptedArray:
        return EncryptedArray(self, self._core.maximum(plan, self._own(a), self._own(b)))

    def _argmax(self, plan: _ckks.ArgMaxCore, x: EncryptedArray) -> EncryptedArray:
        return EncryptedArray(self, self._core.argmax(plan, self._own(x)))

    # --- what jali._core.capture asks for ---------------------------------------------------------

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
        if not isinstance(value, EncryptedArray):
            raise InvalidArgument(f"this takes an encrypted array, not {type(value).__name__}")
        if value.evaluator is not self:
            raise InvalidArgument("the value is bound to another evaluator: bind it to this one")
        return value._settled()

    def __repr__(self) -> str:
        return f"Evaluator({self.params!r}, device='{self.device}', engine='{self.engine}')"
