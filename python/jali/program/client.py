"""The owner of the data, who has the manifest and the secret key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali._core import checks
from jali._core.columns import check_columns
from jali._core.console import bytes_text, counted_text, one_text
from jali._core.key_stream import KeyStream, joined, whole
from jali._core.log import logger
from jali._core.refusals import Answering
from jali._jali import program as _program
from jali.errors import InvalidArgument, LimitExceeded, ParamsMismatch
from jali.program.demand import MAX_CLIENT_BYTES, MAX_KEY_BYTES, KeyCost
from jali.program.manifest import Manifest
from jali.program.message import Message
from jali.program.port import Array
from jali.program.single_keys import single_demands

__all__ = ["Client"]


class Client(metaclass=Answering):
    """The owner of the data. Program.client() makes one; elsewhere, it is made from the manifest
    alone.

    secret: a ckks.Client of the manifest's parameters, e.g. a loaded one; None makes a new key.
    threads: see ckks.Client.
    max_bytes: how many bytes of memory it may take for itself, and for a request or a reply with
        the fewest examples. The server chose parameters and the places of numbers, and may want too
        much: ``manifest.client_cost`` says what they take.

    Raises LimitExceeded, before any work, for a manifest that takes more than max_bytes.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> client = program.client()
    >>> server = program.server(client.evaluation_keys())
    >>> bool(np.allclose(client.decrypt(server(client.encrypt(examples[:1]))), 2 * examples[:1], atol=0.05))
    True
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        secret: ckks.Client | None = None,
        threads: int | None = None,
        max_bytes: int = MAX_CLIENT_BYTES,
    ) -> None:
        if not isinstance(manifest, Manifest):
            raise InvalidArgument(
                f"a client is made from a Manifest, not from {one_text(type(manifest).__name__)}: Manifest.load and from_bytes read one"
            )
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        manifest._core.check_cost(most)
        _check_parts(manifest, most)
        if secret is not None:
            checks.instance(secret, ckks.Client, "secret")
        if secret is not None and secret.params != manifest.params:
            raise ParamsMismatch("the secret key has other parameters than the program")
        self._manifest = manifest
        self._client = ckks.Client(manifest.params, threads=threads) if secret is None else secret

    @cached_property
    def _core(self) -> _program.ProgramClient:
        return self._client._core.of_program(self._manifest._core)

    @property
    def manifest(self) -> Manifest:
        """What it knows of the program."""
        return self._manifest

    @property
    def secret(self) -> ckks.Client:
        """The holder of the secret key, which can save it."""
        return self._client

    def __repr__(self) -> str:
        return f"Client({self._manifest.params!r})"

    def evaluation_keys(
        self,
        *,
        max_bytes: int = MAX_KEY_BYTES,
        progress: Callable[[int, int], object] | None = None,
    ) -> ckks.EvaluationKeys:
        """The public keys that the program uses, and no others, each for the levels at which it is
        used.

        max_bytes: how many bytes they may take in this client's memory. The server says which keys
            it wants, and may want too many: ``key_cost`` says what they cost.
        progress: called after each key, with how many are made and how many there will be. If it
            raises, the work ends.

        Raises LimitExceeded, before any key is made, if they take more than max_bytes.
        """
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        demand = self._manifest._core.key_demand(most)
        logger.info("evaluation keys to make: %s", self.key_cost)
        return self._client._made(demand, progress)

    def key_stream(self, *, max_bytes: int = MAX_KEY_BYTES) -> KeyStream:
        """The bytes of ``evaluation_keys``, made while they are read: one key lies in memory at a
        time. Of a program that bootstraps, all keys are made at the first.

        max_bytes: as of ``evaluation_keys``.

        Raises LimitExceeded, before any key is made, if they take more than max_bytes.

        >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
        >>> client = jali.compile(lambda x: 2 * x, examples[0], calibration=examples).client()
        >>> sum(map(len, client.key_stream())) == client.key_cost.sent
        True
        """
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        if self._manifest.demand.bootstrap != "none" or not self.key_cost.count:
            return whole(self.evaluation_keys(max_bytes=most))
        demands, levels = single_demands(self._manifest, most)
        logger.info("evaluation keys to make: %s", self.key_cost)
        makers = [partial(self._client._core.keys_for, one) for one in demands]
        return joined(self.key_cost.sent, self._client.key_id, makers, levels=levels)

    @property
    def key_cost(self) -> KeyCost:
        """What the program's keys cost: how many there are, their bytes, and about the time to make
        them. Nothing is made."""
        return self._manifest.key_cost

    def encrypt(self, *inputs: npt.ArrayLike) -> Message:
        """One example, or a batch of any size, of every input of the model. If the manifest has a
        part that the client computes before, it encrypts the results of that.

        Raises InvalidArgument, before anything is encrypted, for other shapes, for numbers outside
        the range for which the program was calibrated, and for tables whose columns are not those
        of the model, in its order: the results would mean nothing.
        """
        ports, parts = self._manifest.inputs, self._manifest.parts
        if parts is not None and parts.before is not None:
            arrays, single = parts.sent(inputs)
            return self._encrypted(arrays, single)
        if len(inputs) != len(ports):
            raise InvalidArgument(
                f"the program takes {counted_text(len(ports), 'array')}, and was given {len(inputs)}"
            )
        pairs = list(zip(ports, inputs, strict=True))
        for k, (port, values) in enumerate(pairs):
            listed = f"list(client.manifest.inputs[{k}].columns)"
            check_columns(port.columns, values, f"the table for {port.name}", listed)
        arrays = [checks.examples(port.name, port.shape, values) for port, values in pairs]
        singles = {np.shape(values) == port.shape for port, values in pairs}
        if len({len(a) for a in arrays}) > 1 or len(singles) > 1:
            raise InvalidArgument("give every input the same number of examples")
        return self._encrypted(arrays, singles == {True})

    def _encrypted(self, arrays: Sequence[Array], single: bool) -> Message:
        """A request of examples (n, *shape) of every input that is encrypted."""
        request = self._core.encrypt(arrays, [single] * len(arrays))
        examples = len(arrays[0])
        return Message(self._manifest.fingerprint, examples, single, tuple(map(tuple, request)))

    def decrypt(self, reply: Message, *, check: bool = True) -> Array | tuple[Array, ...]:
        """The results for the examples of a request: an array for each output of the model, without
        the axis of the batch if one example was given without it.

        check: True compares the numbers with the range of the calibration. Numbers beyond it mean
        that an example was unlike those, and that the result may be wrong. False returns them all
        the same. Numbers beyond 512 times the range have wrapped around, and may look like right
        ones.

        Raises WrongDecryption for such numbers, and KeyMismatch for another client's.
        """
        if not isinstance(reply, Message):
            raise InvalidArgument(
                f"decrypt takes a Message, not {type(reply).__name__}: Message.reply reads bytes"
            )
        checked = checks.flag(check, "check")
        found = reply._with(self._core.decrypt, checked)
        results = [
            numbers.reshape(reply.examples, *port.shape)
            for port, numbers in zip(self._manifest.outputs, found, strict=True)
        ]
        if self._manifest.parts is not None:
            results = self._manifest.parts.results(results, check=checked)
        results = [x.reshape(x.shape[1:]) for x in results] if reply.single else results
        return results[0] if len(results) == 1 else tuple(results)


def _check_parts(manifest: Manifest, most: int) -> None:
    """Raises LimitExceeded if the client's parts take more than so many bytes of memory."""
    needed = 0 if manifest.parts is None else manifest.parts.nbytes
    if needed > most:
        raise LimitExceeded(
            f"what the client computes takes {bytes_text(needed)} of its memory for an example, and it may take {bytes_text(most)}: if the program is "
            f"worth it, make the client with max_bytes={needed}"
        )
