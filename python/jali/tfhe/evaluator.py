"""The server's side: it computes on what it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.log import logger
from jali._jali import tfhe as _tfhe
from jali._jali.tfhe import Ciphertext, EvaluationKeys, Params
from jali.device import checked_threads, resolved
from jali.errors import InvalidArgument
from jali.tfhe.array import EncryptedArray
from jali.tfhe.tables import of_one, of_two
from jali.tfhe.values import whole_numbers

__all__ = ["Evaluator"]


class Evaluator:
    """Computes on encrypted arrays with the public keys of one client.

    params: the parameters of the client.
    keys: Client.evaluation_keys().
    device: "auto" for a GPU if there is one, "cpu", "cuda" or "cuda:1".
    threads: of the CPU; None stands for JALI_NUM_THREADS or, if that is not set, every core.
    progress: called while the keys are prepared for the device.

    Raises ParamsMismatch if the keys are of other parameters, and NoDevice for a device that is not here.
    """

    __slots__ = ("_core",)

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys,
        device: str = "auto",
        *,
        threads: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        if not isinstance(params, Params):
            raise InvalidArgument(f"params must be a tfhe.Params, not {type(params).__name__}")
        if not isinstance(keys, EvaluationKeys):
            raise InvalidArgument(
                f"keys must be a tfhe.EvaluationKeys, not {type(keys).__name__}: Client.evaluation_keys() makes them"
            )
        self._core = _tfhe.EvaluatorCore(
            params, keys, resolved(device), checked_threads(threads), progress
        )
        logger.info("evaluator made: engine %s, %s", self.engine, repr(params))

    @property
    def params(self) -> Params:
        """Its parameters."""
        return self._core.params

    @property
    def engine(self) -> str:
        """The engine and its instruction set, e.g. "cpu/avx512" or "cuda:0"."""
        return self._core.engine

    @property
    def key_id(self) -> str:
        """The name of the secret key to which its keys belong."""
        return self._core.key_id

    def bind(self, ciphertext: Ciphertext) -> EncryptedArray:
        """The ciphertext as an encrypted array, in the device's memory.

        Raises KeyMismatch or ParamsMismatch for another client's.
        """
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(
                f"bind takes a tfhe.Ciphertext, not {checks.shown(ciphertext)}: Client.encrypt makes it"
            )
        return EncryptedArray(self, self._core.bind(ciphertext))

    def clear(self, values: npt.ArrayLike) -> EncryptedArray:
        """Numbers that anybody can read, as an array that operations take: whole numbers below 2^(message_bits + carry_bits)."""
        array = whole_numbers(values)
        high = (1 << (self.params.message_bits + self.params.carry_bits)) - 1
        if int(array.min()) < 0 or int(array.max()) > high:
            raise InvalidArgument(f"values must be from 0 to {high}")
        words = [int(v) for v in array.reshape(-1)]
        return EncryptedArray(self, self._core.clear(words, list(array.shape)))

    def apply(
        self,
        function: Callable[..., Any] | Sequence[int],
        x: EncryptedArray,
        y: EncryptedArray | None = None,
    ) -> EncryptedArray:
        """A function of every element, or of the elements of two arrays, by one programmable bootstrapping each.

        function: of whole numbers, called here for every value that an element can have (0 to x.largest) or, with y, for every
            pair; or the list of its results. Results must be whole numbers from 0 to 2^(message_bits + carry_bits) - 1.
        y: needs x below 2^message_bits and y below 2^carry_bits: apply(lambda v: v % 4, x) brings a sum back.

        The result has fresh noise. Raises InvalidArgument for other results, RangeExceeded for values that have no room.
        """
        if not isinstance(x, EncryptedArray) or not (y is None or isinstance(y, EncryptedArray)):
            raise InvalidArgument(
                "apply takes encrypted arrays of this evaluator after the function"
            )
        if y is None:
            table = of_one(self.params, function, x.largest)
            return EncryptedArray(self, self._core.apply(x._here(self), table))
        table = of_two(self.params, function, x.largest, y.largest)
        a, b = x._aligned(y)
        return EncryptedArray(self, self._core.apply_two(a._here(self), b._here(self), table))

    def refresh(self, x: EncryptedArray) -> EncryptedArray:
        """The same messages modulo 2^message_bits, with fresh noise and no carries."""
        return EncryptedArray(self, self._core.refresh(x._here(self)))

    def select(
        self, condition: EncryptedArray, x: EncryptedArray, y: EncryptedArray
    ) -> EncryptedArray:
        """x where the condition is 1, else y, for parameters of bits: the gate MUX."""
        condition, x = condition._aligned(x)
        condition, y = condition._aligned(y)
        x, y = x._aligned(y)
        core = self._core
        return EncryptedArray(self, core.mux(condition._here(self), x._here(self), y._here(self)))

    def concatenate(self, arrays: Sequence[EncryptedArray], axis: int = 0) -> EncryptedArray:
        """numpy.concatenate of encrypted arrays."""
        if not arrays:
            raise InvalidArgument("concatenate needs at least one array")
        flat = self._core.concatenate(
            [a._here(self) for a in arrays], [sum(a.size for a in arrays)]
        )
        starts = np.cumsum([0, *(a.size for a in arrays)])
        order = np.concatenate(
            [s + np.arange(a.size).reshape(a.shape) for s, a in zip(starts, arrays, strict=False)],
            axis=axis,
        )
        return EncryptedArray(self, flat)._taken(order)

    def __repr__(self) -> str:
        return f"Evaluator(params='{self.params.name}', engine='{self.engine}')"
