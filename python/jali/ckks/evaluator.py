"""The side that computes and holds no secret."""

from __future__ import annotations

from jali import _jali
from jali._jali import Ciphertext, EvaluationKeys, ExplicitEvaluator, Params, Trace
from jali.ckks.bound import Bound
from jali.ckks.client import checked_threads
from jali.errors import InvalidArgument

__all__ = ["Evaluator", "sum_rotations"]


def sum_rotations(count: int) -> list[int]:
    """The rotations that Bound.sum(count) needs: 1, 2, 4 .. count / 2. count: a power of two."""
    if count < 1 or count & (count - 1):
        raise InvalidArgument(f"count {count} is not a power of two")
    return [1 << k for k in range(count.bit_length() - 1)]


class Evaluator:
    """Computes on ciphertexts with public keys.

    params: the client's parameters.
    keys: its evaluation keys; None for a server that only adds and multiplies by plain numbers.
    device: "auto", "cpu", "cuda" or "cuda:K"; raises NoDevice for one that is not here, while
        "auto" takes the best that is: ``device`` then says which. "cpu/portable", "cpu/avx2",
        "cpu/avx512" and "cpu/ifma" name an instruction set, "ref" is the slow oracle.
    threads: of the cpu device; None for JALI_NUM_THREADS, else every core.
    trace: record every operation of the backend, see the attribute ``trace``.

    May be used from several threads. Raises ParamsMismatch for keys of other parameters.
    """

    __slots__ = ("_core", "_params")

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys | None = None,
        device: str = "auto",
        *,
        threads: int | None = None,
        trace: bool = False,
    ) -> None:
        self._params = params
        self._core = _jali.EvaluatorCore(params, keys, device, checked_threads(threads), trace)

    @property
    def params(self) -> Params:
        """The parameters it was made for."""
        return self._params

    @property
    def device(self) -> str:
        """The kind of device that computes: "cpu"."""
        return self.engine.split("/")[0]

    @property
    def engine(self) -> str:
        """Backend and instruction set, e.g. "cpu/ifma"."""
        return self._core.engine

    @property
    def threads(self) -> int:
        """Threads that one operation may use."""
        return self._core.threads

    @property
    def trace(self) -> Trace | None:
        """The recording of every operation since it was made; None unless made with trace=True."""
        return self._core.trace

    @property
    def explicit(self) -> ExplicitEvaluator:
        """Every operation by hand, with the same keys; see jali.ckks.explicit."""
        return self._core.explicit

    def bind(self, ciphertext: Ciphertext | Bound) -> Bound:
        """A value that computes with this evaluator. Raises ParamsMismatch for other parameters."""
        if isinstance(ciphertext, Bound):
            ciphertext = ciphertext.ciphertext
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(f"bind takes a Ciphertext, not {type(ciphertext).__name__}")
        self._core.check(ciphertext)
        return Bound(self, ciphertext)

    def __repr__(self) -> str:
        return f"Evaluator({self.params!r}, device='{self.device}', engine='{self.engine}')"
