"""What a user of a service does with it, without the face: `asynchronous` and `synchronous` are
faces."""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jali import authenticated
from jali._core import checks
from jali._core.keys import checked_progress
from jali._core.log import logger
from jali.errors import (
    AuthenticationError,
    DeadlineExceeded,
    Error,
    InvalidArgument,
)
from jali.program.demand import MAX_CLIENT_BYTES
from jali.remote import upload
from jali.remote.address import address_of
from jali.remote.deadline import Deadline, checked_seconds, repeated
from jali.remote.errors import BadAnswer, Unavailable
from jali.remote.kinds import Kind
from jali.remote.problems import error_of
from jali.remote.programs import ServedProgram, chosen, listed, manifest_of
from jali.remote.sending import PIECE, Sending
from jali.remote.wire import Answer, Wire

__all__ = ["Options", "Session"]


@dataclass(frozen=True)
class Options:
    """The arguments of Remote, which explains them."""

    url: str
    program: str | None = None
    token: str | None = None
    secret: Any = None
    deadline: float = 60.0
    shared_key: bytes | None = None
    max_bytes: int = MAX_CLIENT_BYTES
    security: int = 128
    log2_p_fail: float = 0.0
    threads: int | None = None
    tls: ssl.SSLContext | None = None
    insecure_http: bool = False
    transport: Any = None

    def __repr__(self) -> str:
        return f"Options({self.url!r})"  # no token and no key


@dataclass(frozen=True)
class Opened:
    """What is known of the program once it was asked for."""

    programs: tuple[ServedProgram, ...]
    program: ServedProgram
    kind: Kind
    client: Any


class Session:
    """A client of one program of a service. Methods that wait are for one event loop at a time.

    options: of the user.

    Raises InvalidArgument for wrong options. Nothing is sent.
    """

    def __init__(self, options: Options) -> None:
        insecure = checks.flag(options.insecure_http, "insecure_http")
        if options.program is not None and not isinstance(options.program, str):
            raise InvalidArgument("program must be a program's name, or its fingerprint")
        self._deadline = checked_seconds(options.deadline, "deadline")
        self._max_bytes = checks.whole(
            options.max_bytes, 1, "max_bytes must be a number of bytes, at least 1"
        )
        if options.shared_key is not None:  # raises for what is no key
            authenticated.seal_reply(options.shared_key, b"", request=b"", place=0)
        self._options = options
        self.address = address_of(options.url, insecure_http=insecure)
        self._wire = Wire(self.address, options.token, options.tls, options.transport)
        self._opened: Opened | None = None
        self._sending: Sending | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = self._uploading = asyncio.Lock()

    @property
    def opened(self) -> Opened:
        """What is known of the program. Raises InvalidArgument before ``open``."""
        if self._opened is None:
            raise InvalidArgument("nothing is known of the program yet: await remote.open() first")
        return self._opened

    async def open(self) -> Opened:
        """Gets the list of programs and the manifest, and makes or loads the secret key."""
        async with self._locks()[0]:
            if self._opened is None:
                deadline = Deadline(self._deadline, "the program's manifest")
                async with deadline.kept():
                    self._opened = await self._open(deadline)
            return self._opened

    async def _open(self, deadline: Deadline) -> Opened:
        options = self._options
        programs = await listed(self._wire, deadline)
        program = chosen(programs, options.program)
        kind, manifest = await manifest_of(
            self._wire,
            program,
            deadline,
            most=self._max_bytes,
            security=options.security,
            log2_p_fail=options.log2_p_fail,
        )
        client = await asyncio.to_thread(self._client_of, kind, manifest)
        logger.info("program %s of %s", program.fingerprint, self.address.origin)
        return Opened(programs, program, kind, client)

    def _client_of(self, kind: Kind, manifest: Any) -> Any:
        """The client of a manifest, with the user's secret if there is one. Costs are checked before
        a secret is made or loaded."""
        secret, threads = self._options.secret, self._options.threads
        bounds, fits = {}, True
        if kind.bounded:
            cost, bounds = manifest.client_cost, {"max_bytes": self._max_bytes}
            fits = max(cost.own, cost.request, cost.reply) <= self._max_bytes
        if fits and isinstance(secret, (str, os.PathLike)):  # else the client refuses the manifest
            secret = kind.secret.load(secret, manifest.params, threads=threads)
        return kind.client(manifest, secret=secret, threads=threads, **bounds)

    async def keys(
        self,
        *,
        progress: Callable[[int, int], object] | None = None,
        max_bytes: int | None = None,
        patience: float = 600.0,
    ) -> str:
        """See Remote.keys."""
        checked_progress(progress)
        seconds = checked_seconds(patience, "patience")
        opened = await self.open()
        async with self._locks()[1]:
            deadline = Deadline(seconds, "the service's answer about keys")
            async with deadline.kept():
                there = await upload.has_keys(
                    self._wire, opened.program.fingerprint, opened.client.secret.key_id, deadline
                )
            if not there:
                try:
                    await self._send_keys(opened, max_bytes, seconds, progress)
                except upload.Gone:
                    await self._send_keys(opened, max_bytes, seconds, progress)
        return str(opened.client.secret.key_id)

    async def _send_keys(
        self,
        opened: Opened,
        most: int | None,
        patience: float,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        """Sends keys, or goes on with an upload that was not finished."""
        if self._sending is None:
            bound = {} if most is None else {"max_bytes": most}
            stream = await asyncio.to_thread(opened.client.key_stream, **bound)
            self._sending = Sending(stream, PIECE)
        sending = self._sending
        sending.is_known = False
        try:
            if not sending.name:
                deadline = Deadline(patience, "the service's answer to an upload")
                async with deadline.kept():
                    await upload.begin(self._wire, opened.program.fingerprint, sending, deadline)
            await upload.finish(self._wire, sending, patience, progress)
        except Exception as error:
            for_now = isinstance(error, (Unavailable, DeadlineExceeded))
            if sending.failed or (isinstance(error, Error) and not for_now):
                self._sending = None
            raise
        self._sending = None

    async def call(self, inputs: tuple[Any, ...], deadline: float | None = None) -> Any:
        """See Remote.__call__."""
        seconds = self._deadline if deadline is None else checked_seconds(deadline, "deadline")
        limit = Deadline(seconds, "the answer")
        async with limit.kept():
            return await self._call(await self.open(), inputs, limit)

    async def _call(self, opened: Opened, inputs: tuple[Any, ...], deadline: Deadline) -> Any:
        client, kind = opened.client, opened.kind
        request, body = await asyncio.to_thread(_encrypted, client, inputs)
        name = secrets.token_hex(16)  # the same for all repetitions, of which one is computed
        most = kind.most_reply(client.manifest, request.examples)

        async def ask() -> Answer:
            fields = {
                "Content-Type": "application/octet-stream",
                "Jali-Key": client.secret.key_id,
                "Jali-Deadline-Ms": str(max(1, int(1000 * deadline.left))),
                "Idempotency-Key": f'"{name}"',
            }
            if self._options.shared_key is not None:
                fields["Jali-Seal"] = "1"
            path = f"/v1/programs/{opened.program.fingerprint}/run"
            return await self._wire.ask("POST", path, fields=fields, content=body, most=most)

        answer = await repeated(ask, deadline, opened.program.name)
        if answer.status != 200:
            raise error_of(answer.problem, opened.program.name)
        data = self._unsealed(answer.data, body, client.secret.key_id)
        return await asyncio.to_thread(_decrypted, client, kind, request, data)

    def _unsealed(self, data: bytes, body: bytes, key_id: str) -> bytes:
        """The reply of a sealed one, if the user shares a key with the service."""
        key = self._options.shared_key
        if key is None:
            return data
        try:
            return authenticated.open_reply(key, data, request=body, place=key_id)
        except AuthenticationError:
            raise AuthenticationError(
                "this is not the service's reply to this request, sealed with the shared key: nothing was decrypted. Ask again, and ask the operator whether "
                "the service has this key"
            ) from None

    async def delete_keys(self) -> bool:
        """See Remote.delete_keys."""
        opened = await self.open()
        key_id, program = opened.client.secret.key_id, opened.program.fingerprint

        async def ask() -> Answer:
            path = f"/v1/keys/{key_id}?program={program}"
            return await self._wire.ask("DELETE", path, most=1 << 16)

        deadline = Deadline(self._deadline, "the answer")
        async with deadline.kept():
            answer = await repeated(ask, deadline, opened.program.name)
        if answer.status not in (200, 204, 404):
            raise error_of(answer.problem, opened.program.name)
        return answer.status != 404

    async def close(self) -> None:
        """Ends the connections."""
        await self._wire.close()

    def _locks(self) -> tuple[asyncio.Lock, asyncio.Lock]:
        """Those of this event loop: to open, and to send keys."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._opening, self._uploading = asyncio.Lock(), asyncio.Lock()
        return self._opening, self._uploading


def _encrypted(client: Any, inputs: tuple[Any, ...]) -> tuple[Any, bytes]:
    """A request, and its bytes."""
    request = client.encrypt(*inputs)
    return request, request.to_bytes()


def _decrypted(client: Any, kind: Kind, request: Any, data: bytes) -> Any:
    """The results of a reply's bytes."""
    reply = kind.message.reply(data, client.manifest)
    if (reply.examples, reply.single) != (request.examples, request.single):
        raise BadAnswer(
            "the server sent the reply to another request: nothing was decrypted. A key that is shared with the service, shared_key=, finds every "
            "exchange of replies"
        )
    return client.decrypt(reply)
