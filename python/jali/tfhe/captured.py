"""Captured functions of TFHE."""

from __future__ import annotations

from jali._core import capture
from jali.tfhe.array import EncryptedArray
from jali.tfhe.integers import EncryptedIntegers

__all__ = ["Captured"]


class Captured(capture.Captured[EncryptedArray | EncryptedIntegers]):
    """A function of encrypted arrays of fixed shapes. Evaluator.capture makes it.

    On a GPU it is one CUDA graph with memory of its own: a call costs one launch instead of one for
    every kernel. On a CPU a call runs the function again. Calls take arrays like the examples: of
    the same shape, with elements that are no larger and have no more noise. The errors of the
    elements must be independent: refresh sums, and arrays that are given twice, before. Calls raise
    InvalidArgument for other arrays, and if the function calls its own capture. Threads take turns.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> server = tfhe.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt([1, 2]))
    >>> more = server.capture(lambda v: v + 1, x)
    >>> client.decrypt(more(x))
    array([2, 3])
    """

    __slots__ = ()
