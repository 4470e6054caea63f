"""Captured runs of a program on a server: one for every batch of its ciphertexts. On a GPU each is
a CUDA graph."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

from jali import ckks
from jali.compiler.ciphertexts import check_here, ciphertext_of, is_here
from jali.compiler.runtime.ciphertext_ops import Encrypted
from jali.compiler.runtime.interpreter import Interpreter
from jali.program.manifest import Manifest

__all__ = ["CapturedRuns", "can_capture", "in_place"]

_KEPT = 4  # for how many sizes of batch a captured run is kept


def can_capture(interpreter: Interpreter, evaluator: ckks.Evaluator) -> bool:
    """Whether a server captures its runs unless it is told otherwise: on a GPU whose memory holds
    all encoded matrices."""
    return evaluator.device == "cuda" and interpreter.is_resident


def in_place(evaluator: ckks.Evaluator, ciphertext: ckks.Ciphertext) -> ckks.EncryptedArray:
    """A ciphertext where it lies, checked. A captured run copies its inputs to its own place,
    wherever they are."""
    if ciphertext.view is not None:
        return evaluator.bind(ciphertext)
    check_here(evaluator, ciphertext)
    return ckks.EncryptedArray(evaluator, ciphertext)


class CapturedRuns:
    """The captured runs of an interpreter on an evaluator. Several threads may use them."""

    def __init__(
        self, interpreter: Interpreter, evaluator: ckks.Evaluator, manifest: Manifest
    ) -> None:
        self._interpreter, self._evaluator, self._manifest = interpreter, evaluator, manifest
        self._lock = threading.Lock()
        self._programs: dict[tuple[int, ...], ckks.Captured] = {}  # by the batch of the ciphertexts

    @property
    def nbytes(self) -> int:
        """The bytes of the device's memory that all captured runs keep."""
        with self._lock:
            return sum(program.nbytes for program in self._programs.values())

    def has(self, inputs: Sequence[Encrypted]) -> bool:
        """Whether the run for this batch is captured."""
        return inputs[0][0].shape[:-1] in self._programs

    def __call__(self, inputs: Sequence[Encrypted]) -> list[Encrypted]:
        """The outputs for inputs that may lie in any memory. The first run of a batch is
        captured."""
        flat = [x for array in inputs for x in array]
        batch = flat[0].shape[:-1]
        with self._lock:
            program = self._programs.get(batch)
            if program is None:
                if len(self._programs) == _KEPT:
                    del self._programs[next(iter(self._programs))]
                program = self._programs[batch] = self._captured(inputs)
        found = program(*flat)
        arrays = [found] if isinstance(found, ckks.EncryptedArray) else list(found)
        return _split(arrays, [port.layout.ciphertexts for port in self._manifest.outputs])

    def _captured(self, inputs: Sequence[Encrypted]) -> ckks.Captured:
        # The program refers to these two only. If it held self, neither would ever be freed.
        interpreter, evaluator = self._interpreter, self._evaluator
        counts = [port.layout.ciphertexts for port in self._manifest.inputs]
        if self._manifest.demand.bootstrap != "none":
            # This encodes the matrices of every bootstrapping. What it takes of memory is free
            # again before the capture begins.
            interpreter(evaluator, *(tuple(map(self._brought, array)) for array in inputs))
        return evaluator.capture(
            lambda *xs: [x for y in interpreter(evaluator, *_split(xs, counts)) for x in y],
            *(x for array in inputs for x in array),
        )

    def _brought(self, x: ckks.EncryptedArray) -> ckks.EncryptedArray:
        ciphertext = ciphertext_of(x)
        return x if is_here(self._evaluator, ciphertext) else self._evaluator.bind(ciphertext)


def _split(arrays: Sequence[ckks.EncryptedArray], counts: Sequence[int]) -> list[Encrypted]:
    """The arrays in groups of these sizes."""
    ends = itertools.accumulate(counts)
    return [tuple(arrays[end - n : end]) for n, end in zip(counts, ends, strict=True)]
