"""Keys are sent to a service, piece by piece, until it has them: draft-ietf-httpbis-resumable-upload."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

from jali.errors import Error
from jali.remote.deadline import Deadline, repeated
from jali.remote.errors import BadAnswer, ServiceError, Unavailable
from jali.remote.problems import error_of, said, whole_field
from jali.remote.repeats import is_repeated, pause
from jali.remote.sending import Sending
from jali.remote.wire import Answer, Lost, Wire

__all__ = ["Gone", "begin", "finish", "has_keys"]

_MEDIA_TYPE = "application/partial-upload"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MOST = 1 << 16  # bytes of an answer


class Gone(ServiceError):
    """An upload that the service does not have any more."""

    code = "upload_gone"


async def has_keys(wire: Wire, program: str, key_id: str, deadline: Deadline) -> bool:
    """Whether the service has the keys of a secret key for a program.

    wire: to the service.
    program: its fingerprint.
    key_id: the name of the secret key.
    deadline: by when the answer must be there.
    """

    async def ask() -> Answer:
        return await wire.ask("HEAD", f"/v1/keys/{key_id}?program={program}", most=_MOST)

    answer = await repeated(ask, deadline, "the program")
    if answer.status in (200, 204):
        return True
    if answer.status == 404:
        return False
    raise error_of(answer.problem)


async def begin(wire: Wire, program: str, sending: Sending, deadline: Deadline) -> None:
    """Asks the service to take keys. It reserves room for them or refuses, before a byte is sent and
    before a key is made.

    wire: to the service.
    program: its fingerprint.
    sending: the keys.
    deadline: by when the answer must be there.
    """

    async def ask() -> Answer:
        fields = {"Upload-Complete": "?0", "Upload-Length": str(sending.nbytes)}
        path = f"/v1/programs/{program}/uploads"
        return await wire.ask("POST", path, fields=fields, most=_MOST)

    answer = await repeated(ask, deadline, "the program")
    if answer.status != 201:
        raise error_of(answer.problem)
    # Where it is said to be is not followed: only the name is taken.
    name = answer.headers.get("location", "").rsplit("/", 1)[-1]
    if not _NAME.fullmatch(name) or whole_field(answer.headers, "upload-offset") not in (None, 0):
        raise BadAnswer("the server began an upload and does not say where: ask the operator")
    sending.name, sending.is_known = name, True


async def finish(
    wire: Wire, sending: Sending, patience: float, progress: Callable[[int, int], object] | None
) -> None:
    """Sends what the service does not have.

    wire: to the service.
    sending: an upload that was begun.
    patience: the seconds within which a piece must arrive.
    progress: called with how many bytes the service has, and how many there are.

    Raises Gone if the upload was lost, and DeadlineExceeded and Unavailable if a piece does not
    arrive. The upload can go on after these.
    """
    while not sending.done:
        piece = await asyncio.to_thread(sending.piece)
        deadline = Deadline(patience, "a piece of the keys")
        async with deadline.kept():
            await _deliver(wire, sending, piece, deadline)
        if progress is not None:
            progress(sending.offset, sending.nbytes)


async def _deliver(wire: Wire, sending: Sending, piece: bytes, deadline: Deadline) -> None:
    """Sends a piece until the service has all of it and, if it is the last, has stored the keys."""
    end, count = sending.offset + len(piece), 0
    is_last = end == sending.nbytes
    while sending.offset < end or (is_last and not sending.done):
        headers: Any = {}
        count += 1
        try:
            if appended := sending.is_known:
                rest = piece[len(piece) - (end - sending.offset) :]
                answer = await _append(wire, sending, rest)
            else:
                answer = await wire.ask("HEAD", f"/v1/uploads/{sending.name}", most=_MOST)
            headers = answer.headers
            error = _taken(sending, answer, appended=appended)
            if error is None:
                continue
        except Lost as lost:
            error = Unavailable(f"the service cannot be reached: {lost}")
        deadline.reason = said(error, 500)
        seconds = pause(count, headers)
        if seconds >= deadline.left:
            raise error
        await asyncio.sleep(seconds)


async def _append(wire: Wire, sending: Sending, data: bytes) -> Answer:
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    fields = {
        "Content-Type": _MEDIA_TYPE,
        "Content-Digest": f"sha-256=:{digest}:",
        "Upload-Offset": str(sending.offset),
        "Upload-Complete": "?1" if sending.offset + len(data) == sending.nbytes else "?0",
    }
    path, sending.is_known = f"/v1/uploads/{sending.name}", False
    return await wire.ask("PATCH", path, fields=fields, content=data, most=_MOST)


def _taken(sending: Sending, answer: Answer, *, appended: bool) -> Error | None:
    """Notes what the service has. The error, if the offset is to be asked for and the rest sent
    again.

    appended: whether bytes were sent, or the offset was asked for.

    Raises the error, if that is of no use.
    """
    problem = answer.problem
    offset = whole_field(answer.headers, "upload-offset")
    if answer.status in (200, 204) and offset is not None:
        before = sending.offset
        sending.acknowledge(offset)
        if answer.headers.get("upload-complete", "").startswith("?1"):
            _check_done(sending, answer)
        elif appended and offset == before:
            raise BadAnswer("the server takes the keys and keeps none of them: ask its operator")
        return None
    again = is_repeated(problem) or problem.kind in ("completed-upload", "digest", "disk")
    if again or answer.status == 409:
        return error_of(problem)
    if answer.status in (404, 410):
        raise Gone("the service has lost the upload of the keys: call keys() again")
    if answer.status < 300:
        raise BadAnswer("the server does not say how many bytes of the keys it has: try again")
    raise error_of(problem)


def _check_done(sending: Sending, answer: Answer) -> None:
    """Raises BadAnswer unless the service has all bytes, under the name of this secret key."""
    if sending.offset != sending.nbytes or answer.headers.get("jali-key") != sending.key_id:
        raise BadAnswer(
            "the server says that it has keys which were not sent to it: ask the operator"
        )
    sending.done = True
