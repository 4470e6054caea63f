"""What the compiler asks of jali.ckks beyond what its users see: ciphertexts whose work is done,
what is known of their noise, and evaluators that note which keys a run uses.

No other file of the compiler uses private members of jali.ckks (tools/check_layers.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jali import ckks
from jali.ckks import Ciphertext, EncryptedArray, Evaluator

__all__ = [
    "check_here",
    "expected_bits",
    "is_here",
    "noted_rotations",
    "noting_evaluator",
    "peak_bytes",
    "settled",
    "stack",
    "take",
    "with_precision",
    "without_layout",
]


def settled(x: EncryptedArray) -> Ciphertext:
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


def noting_evaluator(
    client: ckks.Client, params: ckks.Params, device: str = "cpu", threads: int | None = None
) -> Evaluator:
    """An evaluator without keys, which computes with zeros in their place and notes which are
    used. device: also "dry", which does no arithmetic."""
    none = client._core.evaluation_keys([], False, False, [])
    return Evaluator._noting_keys(params, none, device, threads)


def noted_rotations(evaluator: Evaluator) -> Mapping[int, int]:
    """Of an evaluator that notes keys: the rotations that were used, each with its highest
    level."""
    return evaluator._core.demand.rotations
