"""What client and server of a program of exact integers send each other: the ciphertexts of some
examples."""

from __future__ import annotations

from dataclasses import dataclass

from jali._core import checks, messages
from jali._core.refusals import Answering
from jali.discrete import Ciphertext
from jali.errors import InvalidArgument, WrongCall
from jali.program.integers import stored
from jali.program.integers.manifest import Manifest

__all__ = ["Message"]

MAX_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class Message(metaclass=Answering):
    """Encrypted inputs or outputs.

    program: the fingerprint of the manifest.
    examples: how many there are.
    single: whether the axis of the batch is left out at decryption.
    chunks: for every manifest.lanes examples, the ciphertext of each input or output.
    is_reply: whether they are outputs.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> program.client().encrypt(examples).examples
    20
    """

    program: str
    examples: int
    single: bool
    chunks: tuple[tuple[Ciphertext, ...], ...]
    is_reply: bool = False

    def to_bytes(self) -> bytes:
        """Bytes for transport. They are not authenticated; jali.authenticated seals them."""
        ciphertexts = (one.to_bytes() for chunk in self.chunks for one in chunk)
        fields = self.program, self.examples, self.single, self.is_reply
        return stored.written("message", messages.written(*fields, ciphertexts))

    @classmethod
    def request(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """What a client's to_bytes wrote.

        manifest: of the program.
        max_bytes: the most memory that it may take.

        Raises CorruptData, VersionError, LimitExceeded, and InvalidArgument for messages of another
        program and for replies.
        """
        return cls._read(data, manifest, max_bytes, is_reply=False)

    @classmethod
    def reply(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """What a server's to_bytes wrote. Arguments and errors as of ``request``."""
        return cls._read(data, manifest, max_bytes, is_reply=True)

    @classmethod
    def _read(
        cls,
        data: bytes | bytearray | memoryview,
        manifest: Manifest,
        max_bytes: int,
        *,
        is_reply: bool,
    ) -> Message:
        if not isinstance(manifest, Manifest):
            raise WrongCall(
                f"manifest must be an nn.integers.Manifest, not {type(manifest).__name__}"
            )
        left = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes, at least 1")
        view = stored.payload("message", data, left)
        each = len(manifest.outputs if is_reply else manifest.inputs)
        fingerprint = manifest.fingerprint
        found = messages.read(view, fingerprint, manifest.lanes, each, is_reply=is_reply)
        chunks = []
        for chunk in found.chunks:
            made = []
            for part in chunk:
                one = Ciphertext.from_bytes(part, manifest.params, max_bytes=max(1, left))
                left -= one.nbytes
                made.append(one)
            chunks.append(tuple(made))
        message = cls(fingerprint, found.examples, found.single, tuple(chunks), is_reply)
        message.check(manifest, is_reply=is_reply)
        return message

    def check(self, manifest: Manifest, *, is_reply: bool) -> None:
        """Raises InvalidArgument for a message of another program, and for ciphertexts that are not
        as its client and its server make them."""
        kind = "reply" if is_reply else "request"
        if self.is_reply != is_reply:
            raise InvalidArgument(
                f"this is no {kind}: clients make requests and decrypt replies, servers take requests"
            )
        if self.program != manifest.fingerprint:
            raise InvalidArgument(messages.OTHER_PROGRAM)
        ports = manifest.outputs if is_reply else manifest.inputs
        chunks = -(-self.examples // manifest.lanes)
        if self.examples < 1 or len(self.chunks) != chunks or (self.single and self.examples != 1):
            raise InvalidArgument(
                f"the {kind} has another number of ciphertexts than its examples need"
            )
        for chunk in self.chunks:
            if len(chunk) != len(ports) or not all(
                isinstance(one, Ciphertext) and manifest.fits(port, one, is_input=not is_reply)
                for port, one in zip(ports, chunk, strict=True)
            ):
                raise InvalidArgument(
                    f"the ciphertexts of the {kind} have other shapes, ranges or levels than those of this program's client and server"
                )
