"""The owner of the rows, who has the manifest and the secret key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import tfhe
from jali._core import checks
from jali._core.console import bytes_text, one_text
from jali._core.key_stream import KeyStream, whole
from jali._jali.tfhe import EvaluationKeys
from jali.errors import InvalidArgument, LimitExceeded, ParamsMismatch
from jali.tfhe.trees.manifest import Manifest
from jali.tfhe.trees.message import Message
from jali.tfhe.trees.questions import table_of

__all__ = ["Client"]

#: The bytes of keys that a client makes unless its user allows more: those of the largest preset
#: are 3.4 GB.
MAX_KEY_BYTES = 1 << 32


class Client:
    """The owner of the rows. Program.client() makes one; elsewhere, it is made from the manifest
    alone.

    secret: a tfhe.Client of the manifest's parameters, e.g. a loaded one; None makes a new key.
    threads: see tfhe.Client.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> client = program.client()
    >>> client.encrypt(rows[:3]).examples
    3
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        secret: tfhe.Client | None = None,
        threads: int | None = None,
    ) -> None:
        if not isinstance(manifest, Manifest):
            raise InvalidArgument(
                f"a client is made from a Manifest, not from {one_text(type(manifest).__name__)}: Manifest.load and from_bytes read one"
            )
        if secret is not None and not isinstance(secret, tfhe.Client):
            raise InvalidArgument(f"secret must be a tfhe.Client, not {type(secret).__name__}")
        if secret is not None and secret.params != manifest.params:
            raise ParamsMismatch("the secret key has other parameters than the program")
        self._manifest = manifest
        self._client = tfhe.Client(manifest.params, threads=threads) if secret is None else secret

    @property
    def manifest(self) -> Manifest:
        """What it knows of the program."""
        return self._manifest

    @property
    def secret(self) -> tfhe.Client:
        """The holder of the secret key, which can save it."""
        return self._client

    def evaluation_keys(
        self,
        *,
        max_bytes: int = MAX_KEY_BYTES,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """The public keys that the server needs.

        max_bytes: how many bytes they may take to send. The server chose the parameters, and
            params.key_bytes says what they ask for.
        progress: called with how much is done and how much there is. If it raises, the work ends.

        Raises LimitExceeded, before any key is made, if they take more than max_bytes.
        """
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        asked = self._manifest.params.key_bytes
        if asked > most:
            raise LimitExceeded(
                f"the program asks for keys of {bytes_text(asked)}. This client makes at most {bytes_text(most)}: if the program is worth it, call "
                f"evaluation_keys(max_bytes={asked})"
            )
        return self._client.evaluation_keys(progress=progress)

    def key_stream(self, *, max_bytes: int = MAX_KEY_BYTES) -> KeyStream:
        """The bytes of ``evaluation_keys``, which are one object and are made at once.

        max_bytes: as of ``evaluation_keys``.

        Raises LimitExceeded, before any key is made, if they take more than max_bytes.
        """
        return whole(self.evaluation_keys(max_bytes=max_bytes))

    def encrypt(self, rows: npt.ArrayLike) -> Message:
        """One row (features,), or any number of rows (n, features).

        Raises InvalidArgument, before anything is encrypted, for other shapes, for tables whose
        columns are others or in another order, and for numbers that the model does not take.
        """
        self._manifest.check_names(rows, "client")
        given = table_of(rows)
        single = given.ndim == 1
        numbers = self._manifest.inputs(given[None] if single else given)
        each, chunks = self._manifest.rows, []
        ends = np.cumsum(self._manifest.parts).tolist()
        for start in range(0, len(numbers), each):
            chunk, begin = [], 0
            for end in ends:
                largest = self._manifest.columns[begin][1]
                some = numbers[start : start + each, begin:end]
                chunk.append(self._client.encrypt(some, largest=largest))
                begin = end
            chunks.append(tuple(chunk))
        return Message(self._manifest.fingerprint, len(numbers), single, tuple(chunks))

    def decrypt(self, reply: Message, *, check: bool = True) -> Any:
        """What the model gives for the rows of a request, without the axis of the rows if one row
        was given without it.

        check: see tfhe.Client.decrypt.

        Raises WrongDecryption, and KeyMismatch for another client's reply.
        """
        if not isinstance(reply, Message):
            raise InvalidArgument(
                f"decrypt takes a Message, not {type(reply).__name__}: Message.reply reads bytes"
            )
        reply.check(self._manifest, is_reply=True)
        parts = [self._client.decrypt(one, check=check) for (one,) in reply.chunks]
        results = self._manifest.results(np.concatenate(parts))
        return results[0] if reply.single else results

    def labels(self, results: npt.ArrayLike) -> npt.NDArray[Any]:
        """What the model's predict gives, from what decrypt gave for several rows or for one: names
        of classes, 1 and -1 for inliers and others, or, for regressors, the results themselves."""
        return self._manifest.labels(results)
