"""The face of a service for programs that wait."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from jali._core.refusals import Answering
from jali.program.demand import MAX_CLIENT_BYTES
from jali.remote.loop import LoopThread
from jali.remote.programs import ServedProgram
from jali.remote.session import Options, Session
from jali.remote.streams import Window, arguments, checked_in_flight

__all__ = ["Remote", "Results"]


class Remote(metaclass=Answering):
    """A program of a service: encrypts, has the service compute, and decrypts. The secret key stays
    here.

        remote = jali.Remote("https://fhe.example", token=token)
        remote.keys()  # makes keys and sends them, once
        y = remote(x)

    The service is believed nothing that can be checked: the fingerprint of the manifest is computed
    again, parameters must have the security that is asked for, costs are bounded before work begins,
    and decryption checks results as ``client.decrypt`` does. What cannot be checked is whether the
    service computed the right program: docs/security.md says so.

    Requests are sent again, with the same Idempotency-Key, if the connection is lost or the service
    has no room, as long as the deadline allows. Redirections are not followed. docs/how-to/
    use-a-service.md shows more. All methods may be called from several threads.

    url: of the service, with the path below which it is, if there is one. Addresses of http are
        refused, unless they are this machine's.
    program: its name at the service, or its fingerprint; None if there is only one. A fingerprint
        that you got otherwise makes sure that it is this program's manifest.
    token: that says who calls. It is sent to this service alone.
    secret: the secret key: the path of a file that ``save_secret`` wrote, or the ``client.secret`` of
        another program with the same parameters; None makes a new one.
    deadline: the seconds that a call may take, unless it says otherwise, and that making this object
        may take.
    shared_key: of authenticated.new_key(), if the service has it, too: replies that are not bound to
        their requests by it are refused.
    max_bytes: how many bytes of memory the client may take, see ``nn.Client``.
    security, log2_p_fail: what is demanded of the parameters, see ``nn.Manifest.from_bytes``.
    threads: how many threads compute, see ``ckks.Client``.
    tls: how the service proves who it is, and with which certificate this side does; None: as all
        programs of this machine have it.
    insecure_http: whether http is allowed to other machines: everyone between reads the token, and
        can change what is sent.
    transport: of httpx, for asynchronous clients, in the place of connections.

    Raises InvalidArgument for wrong arguments and for names that no program has, Unavailable if the
    service cannot be reached, AccessDenied if it does not take the token, BadAnswer if something
    else answers, LimitExceeded for a program that takes too much, InsecureParams for one that is not
    as secure as asked, FileError for a secret that cannot be read, and Unsupported if httpx is
    missing.
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
        self._loop = LoopThread()
        try:
            self._loop.run(self._session.open())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections. The secret stays until the object is gone."""
        self._loop.run(self._session.close())
        self._loop.close()

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
        """The client of the program, as ``program.client()`` makes it: its ``manifest``,
        ``key_cost`` and ``secret``."""
        return self._session.opened.client

    def save_secret(self, file: str | os.PathLike[str]) -> None:
        """Writes the secret key to a file that its owner alone can read (mode 0600). Nothing else
        writes it anywhere. ``secret=`` of another Remote reads it, so that keys need not be sent
        again.

        file: its path. Whoever reads the file can decrypt everything.
        """
        self.client.secret.save(file)

    def keys(
        self,
        *,
        progress: Callable[[int, int], object] | None = None,
        max_bytes: int | None = None,
        patience: float = 600.0,
    ) -> str:
        """Makes the program's keys and sends them, one by one, unless the service has them. Returns
        the name of the secret key.

        It goes on after connections that were cut. If it raises Unavailable or DeadlineExceeded, or
        is interrupted, another call goes on where it was. One key lies in memory at a time; those of
        a program that bootstraps or is made of trees are made at once.

        progress: called with how many bytes the service has, and how many there are, from a thread
            of its own. If it raises, the work ends.
        max_bytes: how many bytes the keys may take together, see ``client.evaluation_keys``.
        patience: the seconds within which 4 MiB must arrive.

        Raises LimitExceeded, before a key is made, if they take more than max_bytes or than the
        service takes from you.
        """
        return self._loop.run(
            self._session.keys(progress=progress, max_bytes=max_bytes, patience=patience)
        )

    def delete_keys(self) -> bool:
        """Has the service delete these keys for this program, and returns whether it had them."""
        return self._loop.run(self._session.delete_keys())

    def __call__(self, *inputs: Any, deadline: float | None = None) -> Any:
        """What the program gives for one example or a batch, as ``client.decrypt`` returns it.

        inputs: as ``client.encrypt`` takes them.
        deadline: the seconds within which the result must be here, with all repetitions.

        Raises KeyMissing if the service does not have the keys, DeadlineExceeded, Unavailable as
        soon as it is clear that the time does not suffice, ProgramReplaced if the service has
        another program now, AuthenticationError for replies without the seal of shared_key, and the
        errors of ``client.encrypt`` and ``client.decrypt``.
        """
        return self._loop.run(self._session.call(inputs, deadline))

    def stream(
        self, inputs: Iterable[Any], *, in_flight: int = 8, deadline: float | None = None
    ) -> Results:
        """The results for many inputs, in their order, with several under way at once:

            with remote.stream(images) as results:
                for y in results: ...

        The first error ends it. ``inputs`` is read as far as requests are under way.

        inputs: for each call an array or, if the model has several inputs, a tuple of them.
        in_flight: how many are encrypted, computed and decrypted at once.
        deadline: the seconds of each call.
        """
        return Results(self._loop, self._session, inputs, checked_in_flight(in_flight), deadline)

    def __repr__(self) -> str:
        return f"Remote({self._session.address.of('')!r}, program={self.program.name!r})"


class Results:
    """What Remote.stream gives. Leaving its block ends what is still under way."""

    def __init__(
        self,
        loop: LoopThread,
        session: Session,
        inputs: Iterable[Any],
        in_flight: int,
        deadline: float | None,
    ) -> None:
        self._loop, self._session, self._deadline = loop, session, deadline
        self._inputs = iter(inputs)
        self._window: Window[Future[Any]] = Window(in_flight)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self._window.cancel()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._window.has_room:
            try:
                given = next(self._inputs)
            except StopIteration:
                break
            call = self._session.call(arguments(given), self._deadline)
            self._window.add(self._loop.start(call))
        oldest = self._window.oldest
        if oldest is None:
            raise StopIteration
        try:
            result = oldest.result()
        except BaseException:
            self._window.cancel()
            raise
        self._window.pop()
        return result

    def __repr__(self) -> str:
        return f"Results({self._window!r})"
