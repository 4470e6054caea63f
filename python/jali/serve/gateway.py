"""What the routes of a service share."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jali._core import files
from jali.errors import Error
from jali.serve.auth import Identify
from jali.serve.bodies import Folder
from jali.serve.logs import Log
from jali.serve.metrics import Metrics
from jali.serve.middleware import Call
from jali.serve.refusal import Refusal
from jali.serve.routes import Routes
from jali.serve.runs import Runs
from jali.serve.seals import Seals, no_key

if TYPE_CHECKING:
    from jali.serve.page import Page

__all__ = ["Gateway", "Settings"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Settings:
    """The bounds of a gateway.

    request_bytes: longer requests are refused.
    result_seconds: how long answers are kept for jobs and for repeated requests.
    result_bytes: how many bytes of them are kept.
    uploads: how many uploads send bytes at once.
    uploads_each: of one client.
    patience: the seconds after which a body is given up of which nothing came.
    operators: the names of clients who may read metrics.
    """

    request_bytes: int = 2 << 30
    result_seconds: float = 600.0
    result_bytes: int = 4 << 30
    uploads: int = 16
    uploads_each: int = 4
    patience: float = 30.0
    operators: frozenset[str] = frozenset()


class Gateway:
    """A service as HTTP has it.

    service: what computes.
    folder: of the store, for bodies, and for the names of programs that it served.
    identify: who calls; None: nobody is asked.
    local: whether a service that asks nobody answers only to names of this machine.
    settings: its bounds.
    log: of its events.
    page: the page for browsers; None for none.
    seals: the keys for sealed replies; None: there are none.
    """

    def __init__(
        self,
        service: Any,
        folder: Path,
        *,
        identify: Identify | None = None,
        local: bool = True,
        settings: Settings | None = None,
        log: Log | None = None,
        page: Page | None = None,
        seals: Seals | None = None,
    ) -> None:
        self.service, self.identify, self.local = service, identify, local
        self.page, self.seals = page, seals
        self.settings = settings or Settings()
        self.log = log or Log()
        self.known = Known(folder / "programs.json", self.programs)
        self.metrics = Metrics(service.snapshot, self.known.name)
        service.observers.append(self.metrics.computed)
        self.folder = Folder(folder / "bodies")
        self.runs = Runs(self.folder, self.settings.result_seconds, self.settings.result_bytes)
        self.routes = Routes(service.uploads, lambda name: f"/v1/uploads/{name}")
        self.draining = False
        self._threads = ThreadPoolExecutor(self.settings.uploads, "jali-uploads")
        self._uploading: Counter[str] = Counter()

    def programs(self) -> dict[str, Any]:
        """What is served, by fingerprint."""
        return dict(self.service.programs)

    def seal_key(self, asked: str, call: Call) -> bytes | None:
        """The key that seals a reply, or None if the request asks for no seal.

        asked: its field Jali-Seal.
        call: the request.

        Raises Refusal, of status 400, if there is none.
        """
        if self.seals is not None:
            return self.seals.key(asked, call.client.name)
        return None if asked in ("", "0") else no_key()

    def program(self, fingerprint: str, call: Call) -> Any:
        """A program that is served.

        fingerprint: as the request gives it.
        call: the request, which is about it.

        Raises Refusal: 410 for a program that was served before, 404 for others.
        """
        found, name = self.service.programs.get(fingerprint), self.known.name(fingerprint)
        call.program = fingerprint if name else ""
        if found is not None:
            return found
        if not name:
            raise Refusal("this program is not served: list the programs again", 404, "no-program")
        now = [one.fingerprint for one in self.programs().values() if one.name == name]
        raise Refusal(
            "this program is not served any more: "
            + (
                "get the manifest of the one that replaced it, and send keys for that"
                if now
                else "list the programs"
            ),
            410,
            "replaced",
            members={"name": name, "replaced_by": now},
        )

    async def thread(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """Calls what waits for the disk."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call, *arguments)

    @property
    def uploads_now(self) -> int:
        """How many uploads send bytes."""
        return self._uploading.total()

    @asynccontextmanager
    async def uploading(self, client: str) -> AsyncIterator[None]:
        """An upload within the block. Raises Refusal if there are too many."""
        if self.draining:
            raise Refusal(
                "the service ends: try again later", 503, "draining", {"Retry-After": "10"}
            )
        full = self._uploading.total() >= self.settings.uploads
        if full or self._uploading[client] >= self.settings.uploads_each:
            raise Refusal(
                "too many uploads are under way at once: try again later",
                503 if full else 429,
                "busy" if full else "client",
                {"Retry-After": "5"},
            )
        self._uploading[client] += 1
        try:
            yield
        finally:
            self._uploading[client] -= 1
            self._uploading += Counter()  # without zeros

    @property
    def ready(self) -> bool:
        """Whether it computes what is asked."""
        return bool(self.service.ready) and not self.draining

    async def stop(self, grace: float) -> None:
        """Takes nothing new, and returns when everything that was accepted is answered, or after a
        time.

        grace: the seconds of it.
        """
        self.draining = True
        self.log.event("draining")
        until = asyncio.get_running_loop().time() + grace
        await self.service.stop(grace)
        await self.runs.settle(max(0.0, until - asyncio.get_running_loop().time()))

    def close(self) -> None:
        """Removes what is kept."""
        self.runs.close()
        self.folder.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class Known:
    """The names of all programs that a store was opened with, by fingerprint, in a file.

    path: of the file.
    programs: what is served.
    """

    def __init__(self, path: Path, programs: Callable[[], dict[str, Any]]) -> None:
        self._programs = programs
        self._names: dict[str, str] = {}
        try:
            found = json.loads(files.load(path, 1 << 24))
            self._names = {str(key): str(name) for key, name in found.items()}
        except (Error, ValueError, AttributeError):
            pass  # it is the first time, or nobody can tell any more what was served
        before = dict(self._names)
        self._names |= {key: one.name for key, one in programs().items()}
        if self._names != before:
            files.replace(path, json.dumps(self._names, indent=1))

    def name(self, fingerprint: str) -> str:
        """What a program is or was called; "" for one that was never served."""
        found = self._programs().get(fingerprint)
        return self._names.get(fingerprint, "") if found is None else str(found.name)
