"""What client and server send each other: the ciphertexts of some examples."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from jali._core import schema
from jali._core.console import counted_text
from jali._core.refusals import Answering
from jali.ckks import Ciphertext
from jali.compiler.program.manifest import Manifest, Port
from jali.errors import CorruptData, InvalidArgument, LimitExceeded

__all__ = ["Message"]

_MAGIC = b"JALI-NM\1"
_HEADER = struct.Struct("<8s32sQB")
_LENGTH = struct.Struct("<Q")
MAX_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class Message(metaclass=Answering):
    """Encrypted inputs or outputs.

    program: the fingerprint of the manifest. examples: how many there are. single: whether the
    batch's axis is left out at decryption. arrays: the ciphertexts of each input or output.
    is_reply: whether they are outputs.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> client = program.client()
    >>> len(client.encrypt(examples[:1]).to_bytes()) > 1000
    True
    """

    program: str
    examples: int
    single: bool
    arrays: tuple[tuple[Ciphertext, ...], ...]
    is_reply: bool = False

    def to_bytes(self) -> bytes:
        """Bytes for transport. They are not authenticated; jali.authenticated seals them."""
        flags = self.single | self.is_reply << 1
        parts = [_HEADER.pack(_MAGIC, bytes.fromhex(self.program), self.examples, flags)]
        for ciphertext in (c for array in self.arrays for c in array):
            data = ciphertext.to_bytes()
            parts += [_LENGTH.pack(len(data)), data]
        return b"".join(parts)

    @classmethod
    def request(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """What a client's to_bytes wrote. Raises CorruptData, LimitExceeded, and the errors of
        Ciphertext.from_bytes."""
        return cls._read(data, manifest, manifest.inputs, max_bytes, False)

    @classmethod
    def reply(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """What a server's to_bytes wrote. Errors as of ``request``."""
        return cls._read(data, manifest, manifest.outputs, max_bytes, True)

    @classmethod
    def _read(
        cls,
        data: bytes | bytearray | memoryview,
        manifest: Manifest,
        ports: tuple[Port, ...],
        max_bytes: int,
        reply: bool,
    ) -> Message:
        try:
            view = schema.octets(data)
        except ValueError as error:
            raise InvalidArgument(f"a message {error}") from None
        if len(view) > max_bytes:
            raise LimitExceeded(f"the message has {len(view)} bytes, and max_bytes is {max_bytes}")
        if len(view) < _HEADER.size or bytes(view[:8]) != _MAGIC:
            raise CorruptData("these bytes are no message of jali.nn")
        _, program, examples, flags = _HEADER.unpack_from(view)
        if flags > 3:
            raise CorruptData("the message's header is damaged")
        _check_kind(bool(flags >> 1), reply)
        offset, arrays = _HEADER.size, []
        for port in ports:
            array = []
            for _ in range(port.layout.ciphertexts):
                if len(view) - offset < _LENGTH.size:
                    raise CorruptData("the message ends too early")
                (length,) = _LENGTH.unpack_from(view, offset)
                offset += _LENGTH.size
                if length > len(view) - offset:
                    raise CorruptData("the message ends too early")
                array.append(Ciphertext.from_bytes(view[offset : offset + length], manifest.params))
                offset += length
            arrays.append(tuple(array))
        if offset != len(view):
            raise CorruptData("the message has bytes behind its last ciphertext")
        message = cls(program.hex(), examples, bool(flags & 1), tuple(arrays), reply)
        message.check(manifest, ports)
        return message

    def check_request(self, manifest: Manifest) -> None:
        """Raises InvalidArgument unless it holds encrypted inputs of this program."""
        _check_kind(self.is_reply, False)
        self.check(manifest, manifest.inputs)

    def check_reply(self, manifest: Manifest) -> None:
        """Raises InvalidArgument unless it holds encrypted outputs of this program."""
        _check_kind(self.is_reply, True)
        self.check(manifest, manifest.outputs)

    def check(self, manifest: Manifest, ports: tuple[Port, ...]) -> None:
        """Raises InvalidArgument unless it holds the ciphertexts of these ports, and as many
        examples as it says."""
        if self.program != manifest.fingerprint:
            raise InvalidArgument(
                "the message belongs to another program, or to another compilation of this one"
            )
        counts = [len(array) for array in self.arrays]
        if counts != [port.layout.ciphertexts for port in ports]:
            raise InvalidArgument("the message holds other arrays than the program has")
        batches = {c.batch for array in self.arrays for c in array}
        slots = {c.slots for array in self.arrays for c in array}
        chunks = -(-self.examples // manifest.lanes)
        if batches != {chunks} or slots != {manifest.params.slots} or not chunks:
            raise InvalidArgument(
                f"the message's ciphertexts do not hold the {counted_text(self.examples, 'example')} that it announces"
            )
        if self.single and self.examples != 1:
            raise InvalidArgument("the message is of one example, and says that there are more")


def _check_kind(is_reply: bool, reply: bool) -> None:
    if is_reply and not reply:
        raise InvalidArgument(
            "the message is a server's reply: give the server what encrypt returned"
        )
    if reply and not is_reply:
        raise InvalidArgument(
            "the message is a request: give it to the server, and decrypt its reply"
        )
