"""The owner of the data of a program of exact integers, who has the manifest and the secret key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import discrete
from jali._core import checks
from jali._core.columns import check_columns
from jali._core.console import bytes_text, counted_text, one_text
from jali._core.key_stream import KeyStream, of_one_size, whole
from jali._core.log import logger
from jali._core.refusals import Answering
from jali.errors import InvalidArgument, LimitExceeded, ParamsMismatch, WrongDecryption
from jali.program.demand import MAX_CLIENT_BYTES, MAX_KEY_BYTES, KeyCost
from jali.program.integers.manifest import Manifest
from jali.program.integers.message import Message
from jali.program.integers.port import Integers, Port

__all__ = ["Client"]


class Client(metaclass=Answering):
    """The owner of the data. Program.client() makes one; elsewhere, it is made from the manifest
    alone.

    secret: a discrete.Client of the manifest's parameters, e.g. a loaded one; None makes a new key.
    threads: see discrete.Client.
    max_bytes: how many bytes of memory it may take for itself, and for a request or a reply with
        the fewest examples: ``manifest.client_cost`` says what they take.

    Raises LimitExceeded, before any work, for a manifest that takes more than max_bytes.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> client = program.client()
    >>> server = program.server(client.evaluation_keys())
    >>> client.decrypt(server(client.encrypt(examples[:1])))
    array([[0, 2, 4]])
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        secret: discrete.Client | None = None,
        threads: int | None = None,
        max_bytes: int = MAX_CLIENT_BYTES,
    ) -> None:
        if not isinstance(manifest, Manifest):
            raise InvalidArgument(
                f"a client is made from an nn.integers.Manifest, not from {one_text(type(manifest).__name__)}: Manifest.load and from_bytes read one"
            )
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        cost = manifest.client_cost
        needed = max(cost.own, cost.request, cost.reply)
        if needed > most:
            raise LimitExceeded(
                f"the program takes {bytes_text(needed)} of this client's memory for a message, and it may take {bytes_text(most)}: if the program is "
                f"worth it, make the client with max_bytes={needed}"
            )
        if secret is not None and not isinstance(secret, discrete.Client):
            raise InvalidArgument(f"secret must be a discrete.Client, not {type(secret).__name__}")
        if secret is not None and secret.params != manifest.params:
            raise ParamsMismatch("the secret key has other parameters than the program")
        self._manifest = manifest
        self._client = (
            discrete.Client(manifest.params, threads=threads) if secret is None else secret
        )

    @property
    def manifest(self) -> Manifest:
        """What it knows of the program."""
        return self._manifest

    @property
    def secret(self) -> discrete.Client:
        """The holder of the secret key, which can save it."""
        return self._client

    def __repr__(self) -> str:
        return f"Client({self._manifest.params!r})"

    def evaluation_keys(
        self,
        *,
        max_bytes: int = MAX_KEY_BYTES,
        progress: Callable[[int, int], object] | None = None,
    ) -> discrete.EvaluationKeys:
        """The public keys that the program uses, and no others. Linear models in columns use none.

        max_bytes: how many bytes they may take in this client's memory. The server says which keys
            it wants, and may want too many: ``key_cost`` says what they cost.
        progress: called after each key, with how many are made and how many there will be. If it
            raises, the work ends.

        Raises LimitExceeded, before any key is made, if they take more than max_bytes.
        """
        cost = self._check_keys(max_bytes)
        logger.info("evaluation keys to make: %s", cost)
        return self._client.evaluation_keys(
            self._manifest.rotations, relinearise=self._manifest.relinearise, progress=progress
        )

    def _check_keys(self, max_bytes: int) -> KeyCost:
        """What the keys cost. Raises LimitExceeded if they take more than max_bytes of memory."""
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        cost = self.key_cost
        if cost.made > most:
            raise LimitExceeded(
                f"the program asks for keys of {bytes_text(cost.made)}. This client makes at most {bytes_text(most)}: if the program is worth it, "
                f"call evaluation_keys(max_bytes={cost.made})"
            )
        return cost

    def key_stream(self, *, max_bytes: int = MAX_KEY_BYTES) -> KeyStream:
        """The bytes of ``evaluation_keys``, made while they are read: one key lies in memory at a
        time. The first is made at once, since its size is that of all.

        max_bytes: as of ``evaluation_keys``.

        Raises LimitExceeded, before any key is made, if they take more than max_bytes.

        >>> examples = np.arange(60).reshape(20, 3)
        >>> program = jali.compile(lambda x: x * x, examples[0], calibration=examples, scheme="discrete")
        >>> client = program.client()
        >>> data = b"".join(client.key_stream())
        >>> server = program.server(discrete.EvaluationKeys.from_bytes(data, client.manifest.params))
        >>> client.decrypt(server(client.encrypt(examples[:1])))
        array([[0, 1, 4]])
        """
        self._check_keys(max_bytes)
        manifest, n = self._manifest, self._manifest.params.slots
        make = self._client._core.evaluation_keys
        steps = {pow(5, one % (n // 2), 2 * n): one for one in manifest.rotations}
        steps.pop(1, None)
        makers = [partial(make, [], False, True)] if manifest.relinearise else []
        makers += [partial(make, [steps[element]], False, False) for element in sorted(steps)]
        makers += [partial(make, [], True, False)] if manifest.rotations else []  # of the rows
        if not makers:
            return whole(self.evaluation_keys(max_bytes=max_bytes))
        return of_one_size(self._client.key_id, makers)

    @property
    def key_cost(self) -> KeyCost:
        """What the program's keys cost: how many there are, their bytes, and about the time to make
        them. Nothing is made."""
        return self._manifest.key_cost

    def encrypt(self, *inputs: npt.ArrayLike) -> Message:
        """One example, or a batch of any size, of every input, of whole numbers.

        Raises InvalidArgument, before anything is encrypted, for other shapes, for fractions, for
        numbers outside of the range for which the program was compiled, and for tables whose
        columns are not those of the model, in its order.
        """
        manifest, ports = self._manifest, self._manifest.inputs
        if len(inputs) != len(ports):
            raise InvalidArgument(
                f"the program takes {counted_text(len(ports), 'array')}, and was given {len(inputs)}"
            )
        pairs = list(zip(ports, inputs, strict=True))
        for k, (port, values) in enumerate(pairs):
            listed = f"list(client.manifest.inputs[{k}].columns)"
            check_columns(port.columns, values, f"the table for {port.name}", listed)
        arrays = [port.examples(values) for port, values in pairs]
        singles = {np.shape(values) == port.shape for port, values in pairs}
        if len({len(a) for a in arrays}) > 1 or len(singles) > 1:
            raise InvalidArgument("give every input the same number of examples")
        count, lanes = len(arrays[0]), manifest.lanes
        try:
            chunks = [
                tuple(
                    self._encrypted(port, array[start : start + lanes])
                    for port, array in zip(ports, arrays, strict=True)
                )
                for start in range(0, count, lanes)
            ]
        finally:
            for array in arrays:
                array.fill(0)
        return Message(manifest.fingerprint, count, singles == {True}, tuple(chunks))

    def _encrypted(self, port: Port, some: Integers) -> discrete.Ciphertext:
        """Up to manifest.lanes examples (n, size). The others are numbers of the range, so that
        results have theirs."""
        manifest = self._manifest
        whole = np.empty(manifest.shape(port), np.int64)
        laid = whole if manifest.layout == "columns" else whole.reshape(len(whole), -1).T
        try:
            laid[:] = port.low[:, None]
            laid[:, : len(some)] = some.T
            most = manifest.client_cost.request
            return self._client.encrypt(whole, range=port.sent, max_bytes=most)
        finally:
            whole.fill(0)  # no copy of the numbers stays in memory

    def decrypt(self, reply: Message, *, check: bool = True) -> Integers | tuple[Integers, ...]:
        """The results for the examples of a request: an array for each output, without the axis of
        the batch if one example was given without it. They are exact, of type int64.

        check: see discrete.Client.decrypt; also whether every number is compared with its range.

        Raises WrongDecryption, and KeyMismatch for another client's reply.
        """
        if not isinstance(reply, Message):
            raise InvalidArgument(
                f"decrypt takes a Message, not {type(reply).__name__}: Message.reply reads bytes"
            )
        compare = checks.flag(check, "check")
        manifest = self._manifest
        reply.check(manifest, is_reply=True)
        found = []
        for k, port in enumerate(manifest.outputs):
            parts = [self._examples(port, chunk[k], compare) for chunk in reply.chunks]
            flat = np.concatenate(parts)[: reply.examples]
            if compare and ((flat < port.low) | (flat > port.high)).any():
                raise WrongDecryption(
                    f"a result of {port.name} is outside of its range, in which every result of this program lies: the reply was altered, or "
                    "another program made it"
                )
            found.append(flat.reshape(port.shape if reply.single else (len(flat), *port.shape)))
        return found[0] if len(found) == 1 else tuple(found)

    def _examples(self, port: Port, one: discrete.Ciphertext, check: bool) -> Integers:
        """The numbers (lanes, size) of a ciphertext."""
        numbers = self._client.decrypt(one, check=check)
        if self._manifest.layout == "columns":
            return np.ascontiguousarray(numbers.T)
        return numbers.reshape(self._manifest.lanes, -1)

    def decoded(self, results: Any) -> Any:
        """What results stand for: results / scale, with the scale of each output in the manifest.

        results: what decrypt gave.

        >>> examples = np.arange(60).reshape(20, 3)
        >>> model = nn.integers.Quantised(np.array([[2, 1, 0]]), np.array([1]), scale=4)
        >>> program = jali.compile(model, examples[0], calibration=examples, scheme="discrete")
        >>> client = program.client()
        >>> server = program.server(client.evaluation_keys())
        >>> client.decoded(client.decrypt(server(client.encrypt(examples[:2]))))
        array([[0.5 ],
               [2.75]])
        """
        outputs = self._manifest.outputs
        several = results if len(outputs) > 1 else (results,)
        if not isinstance(several, tuple) or len(several) != len(outputs):
            raise InvalidArgument(
                f"results are {counted_text(len(outputs), 'array')}: give what decrypt gave"
            )
        found = [np.asarray(one) / port.scale for one, port in zip(several, outputs, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)
