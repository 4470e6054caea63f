"""The owner of the data, who has the manifest and the secret key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali._core import checks
from jali._core.console import counted_text, one_text
from jali._core.log import logger
from jali._core.refusals import Answering
from jali.ckks.client import encrypted
from jali.compiler.cost.keys import MAX_KEY_BYTES, KeyCost, check_cost, key_cost, keys
from jali.compiler.ir.execute import checked_examples
from jali.compiler.ir.graph import Array, Node
from jali.compiler.layout.packing import packed, unpacked
from jali.compiler.program.manifest import Manifest, Port
from jali.compiler.program.message import Message
from jali.errors import InvalidArgument, ParamsMismatch, WrongDecryption

__all__ = ["Client"]


class Client(metaclass=Answering):
    """The owner of the data. Program.client() makes one; elsewhere, it is made from the manifest
    alone.

    secret: a ckks.Client of the manifest's parameters, e.g. a loaded one; None makes a new key.
    threads: see ckks.Client.

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
    ) -> None:
        if not isinstance(manifest, Manifest):
            raise InvalidArgument(
                f"a client is made from a Manifest, not from {one_text(type(manifest).__name__)}: Manifest.load and from_bytes read one"
            )
        if secret is not None:
            checks.instance(secret, ckks.Client, "secret")
        if secret is not None and secret.params != manifest.params:
            raise ParamsMismatch("the secret key has other parameters than the program")
        self._manifest = manifest
        self._client = ckks.Client(manifest.params, threads=threads) if secret is None else secret

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
        cost = check_cost(self._manifest.params, self._manifest.demand, most)
        logger.info("evaluation keys to make: %s", cost)
        return keys(self._client, self._manifest.demand, progress)

    @property
    def key_cost(self) -> KeyCost:
        """What the program's keys cost: how many there are, their bytes, and about the time to make
        them. Nothing is made."""
        return key_cost(self._manifest.params, self._manifest.demand)

    def encrypt(self, *inputs: npt.ArrayLike) -> Message:
        """One example, or a batch of any size, of every input.

        Raises InvalidArgument, before anything is encrypted, for other shapes and for numbers
        outside the range for which the program was calibrated: its results would mean nothing.
        """
        ports = self._manifest.inputs
        if len(inputs) != len(ports):
            raise InvalidArgument(
                f"the program takes {counted_text(len(ports), 'array')}, and was given {len(inputs)}"
            )
        singles, arrays = set(), []
        for port, values in zip(ports, inputs, strict=True):
            array = checked_examples(Node(port.name, "input", (), port.shape), values)
            singles.add(np.shape(values) == port.shape)
            arrays.append(array.reshape(len(array), -1))
            outside = port.outside(arrays[-1])
            if outside is not None:
                raise InvalidArgument(outside)
        if len({len(a) for a in arrays}) > 1 or len(singles) > 1:
            raise InvalidArgument("give every input the same number of examples")
        request = tuple(
            self._encrypted(port, array) for port, array in zip(ports, arrays, strict=True)
        )
        return Message(self._manifest.fingerprint, len(arrays[0]), singles == {True}, request)

    def _encrypted(self, port: Port, values: Array) -> tuple[ckks.Ciphertext, ...]:
        lanes = self._manifest.lanes
        inside = (values - port.centre) / port.radius
        # Lanes that are left over repeat the last example: their numbers stay within the range,
        # too.
        chunks = -(-len(inside) // lanes)
        filled = inside[np.minimum(np.arange(chunks * lanes), len(inside) - 1)]
        slots = packed(port.layout, filled).reshape(chunks, lanes, port.layout.ciphertexts, -1)
        rows = slots.transpose(2, 0, 3, 1).reshape(port.layout.ciphertexts, chunks, -1)
        return tuple(
            encrypted(
                self._client._core,
                row if chunks > 1 else row[0],
                port.level,
                None,
                port.rms,
                max(port.peak, 1.0),
                batch=chunks > 1,
                max_bytes=1 << 40,
                calibrated=True,
            )
            for row in rows
        )

    def decrypt(self, reply: Message, *, check: bool = True) -> Array | tuple[Array, ...]:
        """The results for the examples of a request: an array for each output, without the axis of
        the batch if one example was given without it.

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
        reply.check_reply(self._manifest)
        checked = checks.flag(check, "check")
        outputs = zip(
            self._manifest.outputs, reply.arrays, self._manifest.demand.noise_bits, strict=True
        )
        results = [self._decrypted(*output, reply, checked) for output in outputs]
        return results[0] if len(results) == 1 else tuple(results)

    def _decrypted(
        self,
        port: Port,
        ciphertexts: tuple[ckks.Ciphertext, ...],
        noise_bits: float,
        reply: Message,
        check: bool,
    ) -> Array:
        lanes, chunks = self._manifest.lanes, ciphertexts[0].batch
        wrong = "a result is beyond the range of the calibration and may be wrong"
        try:
            decrypted, refused = self._slots(ciphertexts, check), False
        except WrongDecryption as error:  # a ciphertext cannot tell which example is wrong
            decrypted, refused, wrong = self._slots(ciphertexts, False), True, str(error)
        rows = np.stack([slots.reshape(chunks, -1, lanes) for slots in decrypted])
        slots = rows.transpose(1, 3, 0, 2).reshape(chunks * lanes, len(ciphertexts), -1)
        flat = unpacked(port.layout, slots)[: reply.examples]
        beyond = port.refused(flat, noise_bits)
        if check and (refused or beyond.any()):
            raise WrongDecryption(f"{port.name}: {wrong}. {_which(beyond)}{_calibrated(port)}")
        flat = flat * port.radius + port.centre
        shape = port.shape if reply.single else (reply.examples, *port.shape)
        return np.asarray(flat.reshape(shape))

    def _slots(self, ciphertexts: Sequence[ckks.Ciphertext], check: bool) -> list[Array]:
        return [
            self._client.decrypt(c, complex=False, length=c.slots, check=check) for c in ciphertexts
        ]


def _which(beyond: npt.NDArray[np.bool_]) -> str:
    """Which examples of several have results beyond the range, as a sentence and a space."""
    if len(beyond) == 1 or not beyond.any():
        return ""
    return (
        f"It concerns {counted_text(int(beyond.sum()), 'example')} of {len(beyond)}; the first is example {int(beyond.argmax())}. The others of the "
        "request may be wrong, too: send those again alone. "
    )


def _calibrated(port: Port) -> str:
    return (
        f"The program was calibrated for results from {port.low.min():g} to {port.high.max():g}. If the reply is genuine, an example led "
        "outside of the ranges of the calibration: compile with examples like it, or with a larger margin=. check=False returns the "
        "numbers all the same"
    )
