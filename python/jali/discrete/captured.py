"""Functions of encrypted arrays of exact integers that run many times."""

from __future__ import annotations

from jali._core.capture import Captured as _Captured
from jali.discrete.array import EncryptedArray

__all__ = ["Captured"]


class Captured(_Captured[EncryptedArray]):
    """A function of encrypted arrays of fixed shapes. Evaluator.capture makes it.

    On a GPU it is one CUDA graph with memory of its own: a call costs one launch instead of one for
    every kernel. On a CPU a call runs the function again. Calls take values like the examples: of
    the same level and shape, within their ranges, and with no more noise. They raise InvalidArgument
    for other values, and if the function calls its own capture. Threads take turns.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> server = discrete.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt(np.array([3, -1], dtype=np.int8)))
    >>> squared = server.capture(lambda x: x * x, x)
    >>> client.decrypt(squared(x))
    array([9, 1])
    """

    __slots__ = ()
