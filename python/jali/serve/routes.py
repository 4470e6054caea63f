"""Uploads as HTTP has them: draft-ietf-httpbis-resumable-upload-12, without a framework.

A route gives the fields of a request, with their names in lower case, and the pieces of its
content. It sends what it gets back: an Answer, or a Refusal that was raised.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jali.serve.index import OPEN, Upload
from jali.serve.refusal import Refusal
from jali.serve.uploads import Append, Uploads

__all__ = ["MEDIA_TYPE", "Answer", "Content", "Routes", "digest_of"]

#: The media type of what PATCH sends.
MEDIA_TYPE = "application/partial-upload"

_LENGTH = "https://iana.org/assignments/http-problem-types#inconsistent-upload-length"
_INTEGER = re.compile(r" *(\d{1,15}) *(?:;.*)?")
_BOOLEAN = re.compile(r" *\?([01]) *(?:;.*)?")
_SHA256 = re.compile(r"(?:^|,) *sha-256=:([A-Za-z0-9+/=]*):")


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    status: of HTTP.
    headers: its fields.
    document: its content, as JSON; None for no content.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    document: dict[str, Any] | None = None


class Routes:
    """The requests of an upload. Each method may raise Refusal.

    uploads: what takes the bytes.
    location: the URL of an upload, by its name.

    >>> import tempfile
    >>> from jali.serve.keys import KeyStore
    >>> from jali.serve.routes import Routes
    >>> from jali.serve.uploads import Uploads
    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> manifest, data = program.manifest, program.client().evaluation_keys().to_bytes()
    >>> with tempfile.TemporaryDirectory() as folder, KeyStore(folder) as store:
    ...     uploads = Uploads(store, {manifest.fingerprint: manifest})
    ...     routes = Routes(uploads, lambda name: f"/v1/uploads/{name}")
    ...     headers = {"upload-complete": "?1", "content-length": str(len(data))}
    ...     with routes.post("alice", manifest.fingerprint, headers) as content:
    ...         content.write(data)
    ...         answer = content.end()
    >>> answer.status, answer.headers["Upload-Complete"]
    (200, '?1')
    """

    def __init__(self, uploads: Uploads, location: Callable[[str], str]) -> None:
        self._uploads, self._location = uploads, location

    def options(self, client: str, program: str) -> Answer:
        """How keys are sent, and how many bytes this client may send.

        client: its name.
        program: the fingerprint of the program's manifest.
        """
        keys = self._uploads.wanted(program)
        left = self._uploads.room(client)
        most = min(keys.most, left.nbytes) if left.sets else 0
        limits = f"max-size={most}, min-size={keys.least}, max-age={int(self._uploads.max_age)}"
        return Answer(204, {"Accept-Patch": MEDIA_TYPE, "Upload-Limit": limits})

    def post(self, client: str, program: str, headers: Mapping[str, str]) -> Content:
        """Begins an upload with the first bytes of keys, or with all of them. Its refusals come before
        a byte need be read.

        client: its name.
        program: the fingerprint of the program's manifest.
        headers: Upload-Complete, and Upload-Length or Content-Length; Repr-Digest and Content-Digest
            if the client sends them. Without Upload-Complete, all bytes come in this request, and
            the upload cannot go on after a cut.
        """
        resumable = "upload-complete" in headers
        complete = _boolean(headers, "upload-complete") if resumable else True
        if complete is None:
            raise _bad("Upload-Complete is ?0 or ?1")
        length, content = _integer(headers, "upload-length"), _integer(headers, "content-length")
        if complete and content is not None:
            if length not in (None, content):
                raise _bad("Upload-Length and Content-Length differ", _LENGTH)
            length = content
        if length is None:
            raise Refusal("say how long the keys are, by Upload-Length", 411, "no-length")
        try:
            begun = self._uploads.create(client, program, length, digest_of(headers, "repr-digest"))
        except Refusal as refusal:
            if refusal.status == 413:
                refusal.headers.update(self.options(client, program).headers)
            raise
        if begun.state != OPEN:
            return Content(self, begun, None, None)
        append = self._uploads.append(
            client,
            begun.upload,
            0,
            complete=complete,
            content_sha256=digest_of(headers, "content-digest"),
        )
        interim = Answer(104, self._created(begun)) if resumable else None
        return Content(self, begun, append, interim)

    def head(self, client: str, name: str) -> Answer:
        """How many bytes of an upload are there. What appends to it, is ended.

        client: its name.
        name: of the upload.
        """
        found = self._uploads.state(client, name)
        if found.state not in (OPEN, "done"):
            raise Refusal("the upload has ended: begin another", 410, found.state)
        return Answer(204, {**self._where(found), "Cache-Control": "no-store"})

    def patch(self, client: str, name: str, headers: Mapping[str, str]) -> Content:
        """Goes on with an upload.

        client: its name.
        name: of the upload.
        headers: Content-Type, Upload-Offset and Upload-Complete; Upload-Length, Content-Length and
            Content-Digest if the client sends them.
        """
        if headers.get("content-type", "").split(";")[0].strip().lower() != MEDIA_TYPE:
            raise Refusal(
                f"send bytes as {MEDIA_TYPE}", 415, "media-type", {"Accept-Patch": MEDIA_TYPE}
            )
        offset, complete = (
            _integer(headers, "upload-offset"),
            _boolean(headers, "upload-complete"),
        )
        if offset is None or complete is None:
            raise _bad("Upload-Offset is a whole number, and Upload-Complete is ?0 or ?1")
        length, content = _integer(headers, "upload-length"), _integer(headers, "content-length")
        if complete and content is not None:
            if length not in (None, offset + content):
                raise _bad("Upload-Length and Content-Length differ", _LENGTH)
            length = offset + content
        try:
            append = self._uploads.append(
                client,
                name,
                offset,
                complete=complete,
                length=length,
                content_sha256=digest_of(headers, "content-digest"),
            )
        except Refusal as refusal:
            if refusal.kind.endswith("completed-upload") and content:
                raise _bad("the upload is complete: no byte follows", _LENGTH) from None
            raise
        return Content(self, None, append, None)

    def delete(self, client: str, name: str) -> Answer:
        """Removes an upload.

        client: its name.
        name: of the upload.
        """
        self._uploads.cancel(client, name)
        return Answer(204)

    def _created(self, begun: Upload) -> dict[str, str]:
        return {"Location": self._location(begun.upload), "Upload-Limit": self._limits(begun)}

    def _limits(self, found: Upload) -> str:
        return f"max-size={found.length}, max-age={int(self._uploads.max_age)}"

    def _where(self, found: Upload) -> dict[str, str]:
        """The fields that say how far an upload is. A client that missed the last answer learns from
        them what its keys are called."""
        headers = {
            "Upload-Offset": str(found.received),
            "Upload-Complete": "?1" if found.state == "done" else "?0",
            "Upload-Length": str(found.length),
            "Upload-Limit": self._limits(found),
        }
        return headers | ({"Jali-Key": found.key_id} if found.key_id else {})

    def _ended(self, found: Upload, begun: Upload | None) -> Answer:
        """The answer to a request whose content was read. begun: the upload, if it began it."""
        headers = self._where(found)
        if found.state == OPEN:
            created = {} if begun is None else self._created(begun)
            return Answer(204 if begun is None else 201, headers | created)
        document = {"key_id": found.key_id, "program": found.program, "bytes": found.length}
        return Answer(200, headers, document)


class Content:
    """The content of a request that appends. Routes make it.

    interim: an answer to send before the content is read, if the server can; None for none.
    """

    def __init__(
        self, routes: Routes, begun: Upload | None, append: Append | None, interim: Answer | None
    ) -> None:
        self._routes, self._begun, self._append = routes, begun, append
        self.interim = interim

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *_: object) -> None:
        """The connection was lost, unless ``end`` was called: what came, is kept."""
        if self._append is not None:
            self._append.stop()

    @property
    def progress(self) -> Answer:
        """An interim answer that says how many bytes need not be sent again."""
        received = self._append.acknowledged if self._append is not None else 0
        return Answer(104, {"Upload-Offset": str(received)})

    def write(self, data: bytes | memoryview) -> None:
        """The next bytes. Raises Refusal.

        data: of any length.
        """
        if self._append is not None:  # else they are stored already, and not needed
            self._append.write(data)

    def end(self) -> Answer:
        """All of the content was read. Raises Refusal."""
        if self._append is not None:
            return self._routes._ended(self._append.end(), self._begun)
        assert self._begun is not None
        return self._routes._ended(self._begun, self._begun)


def _bad(sentence: str, kind: str = "header") -> Refusal:
    return Refusal(sentence, 400, kind)


def _integer(headers: Mapping[str, str], name: str) -> int | None:
    """A field that is a whole number; others are ignored, as the draft wants it."""
    match = _INTEGER.fullmatch(headers.get(name, ""))
    return int(match[1]) if match else None


def _boolean(headers: Mapping[str, str], name: str) -> bool | None:
    match = _BOOLEAN.fullmatch(headers.get(name, ""))
    return match[1] == "1" if match else None


def digest_of(headers: Mapping[str, str], name: str) -> str:
    """The SHA-256 of a field of digests (RFC 9530), in hexadecimal; "" for none.

    headers: the fields of a request.
    name: of the field.

    Raises Refusal, of status 400, for a field that says sha-256 and has none.
    """
    match = _SHA256.search(headers.get(name, ""))
    if match is None:
        return ""
    try:
        found = base64.b64decode(match[1], validate=True)
    except binascii.Error:
        found = b""
    if len(found) != 32:
        raise _bad("the digest for sha-256 is no base64 of 32 bytes")
    return found.hex()
