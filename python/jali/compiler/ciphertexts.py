"""What the compiler asks of jali.ckks and jali.discrete beyond what their users see: ciphertexts
whose work is done, what is known of their noise, and evaluators that note which keys a run uses.

No other file of the compiler uses private members of these (tools/check_layers.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jali import ckks, discrete
from jali._core.view import View
from jali._jali import ckks as _ckks
from jali.ckks import Ciphertext, EncryptedArray, Evaluator
from jali.device import checked_threads
from jali.program.demand import MAX_KEY_BYTES
from jali.program.manifest import Manifest

__all__ = [
    "KeylessIntegers",
    "KeylessParty",
    "check_here",
    "ciphertext_of",
    "expected_bits",
    "is_here",
    "key_rotations",
    "noted_rotations",
    "peak_bytes",
    "stack",
    "take",
    "with_precision",
    "without_layout",
]


def ciphertext_of(x: EncryptedArray) -> Ciphertext:
    """The ciphertext of an array, without work that is left for later, such as a
    relinearisation."""
    return x._settled()


def expected_bits(x: EncryptedArray) -> float:
    """The bits of precision that are expected of independent numbers; the work that is left for
    later is done."""
    return x._expected_bits


def with_precision(x: EncryptedArray, bits: float) -> EncryptedArray:
    """The same numbers, known to so many bits, whatever the estimate says."""
    return x._with_precision(bits)


def stack(evaluator: Evaluator, ciphertexts: Sequence[Ciphertext]) -> EncryptedArray:
    """One array with the vectors of all. Raises InvalidArgument if what is known of their slots
    differs."""
    return EncryptedArray(evaluator, evaluator._core.stack(list(ciphertexts)))


def take(evaluator: Evaluator, ciphertext: Ciphertext, which: Sequence[int]) -> EncryptedArray:
    """The array of some of its vectors."""
    return EncryptedArray(evaluator, evaluator._core.take(ciphertext, list(which)))


def without_layout(evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
    """The same ciphertext, of whose slots nothing is known."""
    return evaluator._core.with_view(ciphertext, None, False)


def is_here(evaluator: Evaluator, ciphertext: Ciphertext) -> bool:
    """Whether it lies in the memory of the evaluator's device."""
    return evaluator._core.is_here(ciphertext)


def check_here(evaluator: Evaluator, ciphertext: Ciphertext) -> None:
    """Raises an error unless the evaluator can compute with it where it lies."""
    evaluator._core.check(ciphertext)


def peak_bytes(evaluator: Evaluator) -> int:
    """The most bytes of its memory that were in use at once since the last call."""
    return evaluator._core.take_peak()


class KeylessParty:
    """Both parties of a run that needs no evaluation keys: encrypted zeros, and evaluators that
    compute with zeros in the place of keys and note which are used.

    device: of the evaluators; also "dry", which does no arithmetic. It has the same levels, scales,
        estimates and keys as every other.
    """

    def __init__(
        self, params: ckks.Params, device: str = "cpu", threads: int | None = None
    ) -> None:
        self._client = _ckks.ClientCore(params, checked_threads(threads), "cpu")
        self._params, self._device, self._threads = params, device, threads

    def server(self) -> Evaluator:
        """An evaluator, which has made no tables yet."""
        none = self._client.evaluation_keys([], False, False, [])
        return Evaluator._noting_keys(self._params, none, self._device, self._threads)

    def holder(self, server: Evaluator, manifest: Manifest) -> Evaluator:
        """An evaluator on the engine of one of these, with the keys of a manifest, which are made.
        It composes the rotations of which there is no key."""
        demand = manifest._core.key_demand(MAX_KEY_BYTES)
        return server.with_keys(self._client.keys_for(demand))

    def zeros(self, level: int, magnitude: float, peak: float) -> Ciphertext:
        """Zeros in all slots, which pass for numbers of this root mean square, none of which is
        larger than the peak."""
        return self._client.encrypt(np.zeros(self._params.slots), level, 0, magnitude, peak)


def noted_rotations(evaluator: Evaluator) -> Mapping[int, int]:
    """Of an evaluator that notes keys: the rotations that were used, each with its highest
    level."""
    return evaluator._core.demand.rotations


def key_rotations(manifest: Manifest) -> Mapping[int, int]:
    """The rotations for which a client makes keys, those of bootstrapping among them, each with its
    highest level. No key is made."""
    return manifest._core.key_demand(MAX_KEY_BYTES).rotations


class KeylessIntegers:
    """Both parties of a dry run of exact integers, which makes no evaluation keys: it has the
    levels, the noise and the keys of every other, and does no arithmetic."""

    def __init__(self, params: discrete.Params) -> None:
        self._client = discrete.Client(params, threads=1)

    def server(self) -> discrete.Evaluator:
        """An evaluator that notes which keys are used."""
        none = self._client._core.evaluation_keys([], False, False)
        return discrete.Evaluator._noting_keys(self._client.params, none, "dry")

    def zeros(
        self, server: discrete.Evaluator, shape: tuple[int, ...], ends: tuple[int, int]
    ) -> discrete.EncryptedArray:
        """Zeros that pass for a fresh array of this shape and range. One vector is encrypted, and
        stands for all."""
        slots = self._client.params.slots
        view = View.dense(shape, slots // 2)
        one = server.bind(self._client.encrypt(np.zeros(slots, np.int64), range=ends))
        value = server._engine.vectors(one._ct, [0] * ((view.vectors + 1) // 2))
        return discrete.EncryptedArray(server, value, view)

    def rotations(self, server: discrete.Evaluator) -> tuple[int, ...]:
        """The rotations that the server used."""
        return tuple(sorted(server._engine.demand.rotations))
