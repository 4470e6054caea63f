"""What client and server send each other: the ciphertexts of some examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jali._core import checks, files
from jali._core.refusals import Answering
from jali._jali import program as _program
from jali.ckks import Ciphertext
from jali.errors import WrongCall
from jali.program.manifest import Manifest

__all__ = ["Message"]

MAX_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class Message(metaclass=Answering):
    """Encrypted inputs or outputs.

    program: the fingerprint of the manifest.
    examples: how many there are.
    single: whether the batch's axis is left out at decryption.
    arrays: the ciphertexts of each input or output.
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
        """Bytes for transport, which docs/format.md defines. They are not authenticated;
        jali.authenticated seals them."""
        return bytes(self._with(_program.message_to_bytes))

    @classmethod
    def request(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """What a client's to_bytes wrote. Raises CorruptData, VersionError, LimitExceeded for more
        than max_bytes, and InvalidArgument for messages of another program and for replies."""
        return cls._read(data, manifest, max_bytes, False)

    @classmethod
    def reply(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """What a server's to_bytes wrote. Errors as of ``request``."""
        return cls._read(data, manifest, max_bytes, True)

    @classmethod
    def _read(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int, reply: bool
    ) -> Message:
        if not isinstance(manifest, Manifest):
            raise WrongCall(f"manifest must be a Manifest, not {type(manifest).__name__}")
        most = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        files.refuse_earlier(data, "message")
        found = _program.message_from_bytes(data, manifest._core, reply, most)
        program, examples, single, arrays = found
        return cls(program, examples, single, tuple(map(tuple, arrays)), reply)

    def check_request(self, manifest: Manifest) -> None:
        """Raises InvalidArgument unless it holds encrypted inputs of this program."""
        self._with(_program.check_message, manifest._core, False)

    def check_reply(self, manifest: Manifest) -> None:
        """Raises InvalidArgument unless it holds encrypted outputs of this program."""
        self._with(_program.check_message, manifest._core, True)

    def _with(self, function: Any, *first: Any) -> Any:
        """The result of a function of the library that takes the message's fields at the end."""
        fields = self.program, self.examples, self.single, self.is_reply, self.arrays
        try:
            return function(*first, *fields)
        except TypeError:
            raise WrongCall(
                "a field of the message has a type that no message has: Client.encrypt, Message.request and Message.reply make messages"
            ) from None
