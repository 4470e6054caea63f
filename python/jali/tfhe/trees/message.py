"""What client and server of a program of trees send each other: the ciphertexts of some rows."""

from __future__ import annotations

from dataclasses import dataclass

from jali._core import messages
from jali._jali import program as _program
from jali._jali.tfhe import Ciphertext
from jali.errors import InvalidArgument
from jali.tfhe.trees import stored
from jali.tfhe.trees.manifest import Manifest

__all__ = ["Message"]

MAX_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class Message:
    """Encrypted answers or results.

    program: the fingerprint of the manifest.
    examples: how many rows.
    single: whether the axis of the rows is left out at decryption.
    chunks: for every manifest.rows rows, the ciphertexts of the manifest's parts, or the one of the
        results.
    is_reply: whether they are results.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> sent = program.client().encrypt(rows[:2]).to_bytes()
    >>> trees.Message.request(sent, program.manifest).examples
    2
    """

    program: str
    examples: int
    single: bool
    chunks: tuple[tuple[Ciphertext, ...], ...]
    is_reply: bool = False

    def to_bytes(self) -> bytes:
        """Bytes for transport. They are not authenticated; jali.authenticated seals them."""
        ciphertexts = (c.to_bytes() for chunk in self.chunks for c in chunk)
        fields = self.program, self.examples, self.single, self.is_reply
        return _program.payload_to_bytes("tfhe", "message", messages.written(*fields, ciphertexts))

    @classmethod
    def request(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """The request of ``data``, which a client's to_bytes wrote.

        manifest: of the program.
        max_bytes: the most memory that it may take.

        Raises CorruptData, LimitExceeded, and the errors of Ciphertext.from_bytes.
        """
        return cls._read(data, manifest, len(manifest.parts), max_bytes, False)

    @classmethod
    def reply(
        cls, data: bytes | bytearray | memoryview, manifest: Manifest, max_bytes: int = MAX_BYTES
    ) -> Message:
        """The reply of ``data``, which a server's to_bytes wrote. manifest, max_bytes and errors
        are as of ``request``."""
        return cls._read(data, manifest, 1, max_bytes, True)

    @classmethod
    def _read(
        cls,
        data: bytes | bytearray | memoryview,
        manifest: Manifest,
        each: int,
        max_bytes: int,
        reply: bool,
    ) -> Message:
        view = stored.payload("message", data, max_bytes)
        program = manifest.fingerprint
        found = messages.read(view, program, manifest.rows, each, is_reply=reply)
        chunks = tuple(
            tuple(Ciphertext.from_bytes(data, manifest.params) for data in chunk)
            for chunk in found.chunks
        )
        message = cls(program, found.examples, found.single, chunks, reply)
        message.check(manifest, is_reply=reply)
        return message

    def check(self, manifest: Manifest, *, is_reply: bool) -> None:
        """Raises InvalidArgument for a message of another program, and for ciphertexts that are not
        as the manifest has them."""
        kind = "reply" if is_reply else "request"
        if self.is_reply != is_reply:
            raise InvalidArgument(
                f"this is no {kind}: clients make requests and decrypt replies, servers take requests"
            )
        if self.program != manifest.fingerprint:
            raise InvalidArgument(messages.OTHER_PROGRAM)
        widths = (len(manifest.outputs),) if is_reply else manifest.parts
        left = self.examples
        if left < 1 or len(self.chunks) != -(-left // manifest.rows):
            raise InvalidArgument(
                f"the {kind} has another number of ciphertexts than its rows need"
            )
        for chunk in self.chunks:
            rows = min(left, manifest.rows)
            left -= rows
            shapes = [tuple(one.shape) for one in chunk]
            if shapes != [(rows, width) for width in widths] or any(one.bits for one in chunk):
                raise InvalidArgument(
                    f"the ciphertexts of the {kind} have other shapes than those of this program's client and server"
                )
