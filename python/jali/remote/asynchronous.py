"""The face of a service for programs that run in an event loop of asyncio."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any

from jali._core.refusals import Answering
from jali.program.demand import MAX_CLIENT_BYTES
from jali.remote.programs import ServedProgram
from jali.remote.session import Options, Session
from jali.remote.streams import Window, arguments, checked_in_flight

__all__ = ["AsyncRemote", "AsyncResults"]


class AsyncRemote(metaclass=Answering):
    """A program of a service, for asyncio. All that waits is awaited; everything else is as of
    Remote.

        async with jali.AsyncRemote("https://fhe.example", token=token) as remote:
            await remote.keys()
            y = await remote(x)

    Nothing is sent before the first call, or before ``async with`` or ``open``. Several calls may
    be awaited at once, in one event loop.

    url, program, token, secret, deadline, shared_key, max_bytes, security, log2_p_fail, threads, tls,
        insecure_http, transport: as of Remote.

    Raises InvalidArgument for wrong arguments, and Unsupported if httpx is missing.
    """

    def __init__(
        self,
        url: str,
        *,
        program: str | None = None,
        token: str | None = None,
        secret: str | os.PathLike[str] | Any | None = None,
        deadline: float = 60.0,
        shared_key: bytes | None = None,
        max_bytes: int = MAX_CLIENT_BYTES,
        security: int = 128,
        log2_p_fail: float = 0.0,
        threads: int | None = None,
        tls: ssl.SSLContext | None = None,
        insecure_http: bool = False,
        transport: Any = None,
    ) -> None:
        self._session = Session(
            Options(
                url,
                program,
                token,
                secret,
                deadline,
                shared_key,
                max_bytes,
                security,
                log2_p_fail,
                threads,
                tls,
                insecure_http,
                transport,
            )
        )

    async def __aenter__(self) -> AsyncRemote:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Asks for the programs and the manifest, and makes or loads the secret key. Errors as of
        Remote."""
        await self._session.open()

    async def close(self) -> None:
        """Ends the connections. The secret stays until the object is gone."""
        await self._session.close()

    @property
    def programs(self) -> tuple[ServedProgram, ...]:
        """All programs of the service."""
        return self._session.opened.programs

    @property
    def program(self) -> ServedProgram:
        """The program that is called."""
        return self._session.opened.program

    @property
    def client(self) -> Any:
        """The client of the program, see Remote.client."""
        return self._session.opened.client

    def save_secret(self, file: str | os.PathLike[str]) -> None:
        """Writes the secret key to a file, see Remote.save_secret.

        file: its path.
        """
        self.client.secret.save(file)

    async def keys(
        self,
        *,
        progress: Callable[[int, int], object] | None = None,
        max_bytes: int | None = None,
        patience: float = 600.0,
    ) -> str:
        """Makes the program's keys and sends them, see Remote.keys.

        progress, max_bytes, patience: as of Remote.keys.
        """
        return await self._session.keys(progress=progress, max_bytes=max_bytes, patience=patience)

    async def delete_keys(self) -> bool:
        """Has the service delete these keys, see Remote.delete_keys."""
        return await self._session.delete_keys()

    async def __call__(self, *inputs: Any, deadline: float | None = None) -> Any:
        """What the program gives for examples, see Remote.

        inputs, deadline: as of Remote.
        """
        return await self._session.call(inputs, deadline)

    def stream(
        self,
        inputs: Iterable[Any] | AsyncIterable[Any],
        *,
        in_flight: int = 8,
        deadline: float | None = None,
    ) -> AsyncResults:
        """The results for many inputs, in their order, with several under way at once:

            async with remote.stream(images) as results:
                async for y in results: ...

        inputs, in_flight, deadline: as of Remote.stream. Inputs may be an asynchronous iterator.
        """
        return AsyncResults(self._session, inputs, checked_in_flight(in_flight), deadline)

    def __repr__(self) -> str:
        return f"AsyncRemote({self._session.address.of('')!r})"


class AsyncResults:
    """What AsyncRemote.stream gives. Leaving its block ends what is still under way."""

    def __init__(
        self,
        session: Session,
        inputs: Iterable[Any] | AsyncIterable[Any],
        in_flight: int,
        deadline: float | None,
    ) -> None:
        self._session, self._deadline = session, deadline
        self._inputs = _asynchronous(inputs)
        self._window: Window[asyncio.Task[Any]] = Window(in_flight)

    async def __aenter__(self) -> AsyncResults:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._window.cancel()

    def __aiter__(self) -> AsyncResults:
        return self

    async def __anext__(self) -> Any:
        while self._window.has_room:
            try:
                given = await anext(self._inputs)
            except StopAsyncIteration:
                break
            call = self._session.call(arguments(given), self._deadline)
            task = asyncio.create_task(call)
            task.add_done_callback(_note_error)
            self._window.add(task)
        oldest = self._window.oldest
        if oldest is None:
            raise StopAsyncIteration
        try:
            result = await oldest
        except BaseException:
            self._window.cancel()
            raise
        self._window.pop()
        return result

    def __repr__(self) -> str:
        return f"AsyncResults({self._window!r})"


def _note_error(task: asyncio.Task[Any]) -> None:
    """An error behind the first one is of no interest, and asyncio is told so."""
    if not task.cancelled():
        task.exception()


async def _asynchronous(inputs: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    if isinstance(inputs, AsyncIterable):
        async for given in inputs:
            yield given
    else:
        for given in inputs:
            yield given
