"""A service of small programs within the process: uploads as the routes of jali.serve answer them,
and requests that are computed. Connections are cut, and answers changed, as a test wants it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seeds
import serve_world

import jali
from jali import authenticated
from jali.remote.kinds import kind_of
from jali.serve.keys import KeyStore, Quota
from jali.serve.refusal import Refusal
from jali.serve.routes import Answer, Routes
from jali.serve.uploads import Uploads

httpx = pytest.importorskip("httpx", reason="httpx is not installed")

URL = "https://fhe.example"

#: What happens to a request: None, or an answer in its place, or an exception.
Fault = Callable[[Any], Any]


@cache
def program_of(kind: str) -> Any:
    with seeds.named(f"program of {kind}"):
        if kind != "two":
            return serve_world.program_of(kind)
        x, y = np.random.default_rng().uniform(-1, 1, (2, 40, 3))
        return jali.compile(lambda x, y: (x * y, x + 2 * y), (x[0], y[0]), calibration=(x, y))


@dataclass
class Cut:
    """A connection that is cut.

    before: bytes of the body that arrive; None for all of them, so that the answer is lost.
    """

    before: int | None


@dataclass
class Service:
    """A service, as a transport of httpx sees it.

    faults: what happens to the next requests, in their order.
    fault: what happens to each other request.
    seen: method and path of each request.
    bodies: of runs, by the Idempotency-Key.
    """

    folder: Path
    kinds: tuple[str, ...]
    quota: Quota | None = None
    token: str | None = None
    shared_key: bytes | None = None
    faults: list[Fault] = field(default_factory=list)
    fault: Fault | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    answered: dict[str, bytes] = field(default_factory=dict)
    hang: Callable[[Any], Any] | None = None  # what is awaited before a request is looked at
    computed: int = 0

    def __post_init__(self) -> None:
        self.programs = {program_of(kind).manifest.fingerprint: kind for kind in self.kinds}
        self.store = KeyStore(self.folder, quota=self.quota)
        manifests = {fp: program_of(kind).manifest for fp, kind in self.programs.items()}
        self.uploads = Uploads(self.store, manifests)
        self.routes = Routes(self.uploads, lambda name: f"/v1/uploads/{name}")
        self.servers: dict[tuple[str, str], Any] = {}

    @property
    def transport(self) -> Any:
        return httpx.MockTransport(self._handle)

    def remote(self, **options: Any) -> jali.Remote:
        options = {"security": 0, "threads": 1, "transport": self.transport, **options}
        return jali.Remote(URL, **options)

    def asynchronous(self, **options: Any) -> jali.AsyncRemote:
        options = {"security": 0, "threads": 1, "transport": self.transport, **options}
        return jali.AsyncRemote(URL, **options)

    def count(self, method: str, end: str) -> int:
        return sum(m == method and path.endswith(end) for m, path in self.seen)

    async def _handle(self, request: Any) -> Any:
        body = await request.aread()
        self.seen.append((request.method, request.url.path))
        self.requests.append(request)
        if self.hang is not None:
            await self.hang(request)
        fault = self.faults.pop(0) if self.faults else self.fault
        found = None if fault is None else fault(request)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Cut):
            if found.before is None:
                self._answer(request, body)
            elif request.method == "PATCH":
                self._upload(request, body[: found.before], cut=True)
            raise httpx.ReadError("the connection was cut")
        if found is not None:
            return found
        return self._answer(request, body)

    def _answer(self, request: Any, body: bytes) -> Any:
        try:
            if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
                raise Refusal("send a token", 401, "unauthenticated")
            return self._routed(request, body)
        except Refusal as refusal:
            headers = {"content-type": "application/problem+json", **refusal.headers}
            return httpx.Response(
                refusal.status, headers=headers, content=json.dumps(refusal.problem())
            )

    def _routed(self, request: Any, body: bytes) -> Any:
        method, path = request.method, request.url.path.split("/")[2:]
        if path == ["programs"]:
            return httpx.Response(200, json={"programs": list(map(self._described, self.programs))})
        if path[0] == "programs" and path[2] == "manifest":
            kind = self._kind(path[1])
            headers = {"etag": f'"{path[1]}"'}
            return httpx.Response(
                200, headers=headers, content=program_of(kind).manifest.to_bytes()
            )
        if path[0] == "programs" and path[2] == "uploads":
            with self.routes.post("alice", path[1], dict(request.headers)) as content:
                content.write(body)
                return _sent(content.end())
        if path[0] == "programs" and path[2] == "run":
            return self._run(request, path[1], body)
        if path[0] == "uploads":
            return self._upload(request, body)
        assert path[0] == "keys", path
        program = request.url.params.get("program")
        if method == "DELETE":
            count = self.store.delete("alice", key_id=path[1], program=program)
            self.servers.clear()
            return httpx.Response(204 if count else 404)
        found = self.store.find("alice", program, path[1])
        return httpx.Response(404 if found is None else 200)

    def _described(self, fingerprint: str) -> dict[str, Any]:
        kind = self.programs[fingerprint]
        return {"name": kind, "fingerprint": fingerprint, "key_bytes": 1, "seconds": 0.1}

    def _kind(self, fingerprint: str) -> str:
        if fingerprint not in self.programs:
            raise Refusal("list the programs again", 404, "no-program")
        return self.programs[fingerprint]

    def _upload(self, request: Any, body: bytes, cut: bool = False) -> Any:
        name, headers = request.url.path.split("/")[3], dict(request.headers)
        if request.method == "HEAD":
            return _sent(self.routes.head("alice", name))
        if cut:
            headers.pop("content-digest")  # a service that keeps what came of a piece
        with self.routes.patch("alice", name, headers) as content:
            content.write(body)
            return None if cut else _sent(content.end())

    def _run(self, request: Any, fingerprint: str, body: bytes) -> Any:
        program, key_id = program_of(self._kind(fingerprint)), request.headers["jali-key"]
        server = self.servers.get((fingerprint, key_id))
        manifest = program.manifest
        if server is None:
            try:
                with self.store.open("alice", fingerprint, key_id) as file:
                    keys = self.uploads.wanted(fingerprint).load(file.read())
            except Refusal:
                raise Refusal("send keys first", 428, "no-keys") from None
            server = self.servers[fingerprint, key_id] = program.server(keys)
        name = request.headers["idempotency-key"]
        if name not in self.answered:
            asked = kind_of(manifest.to_bytes()).message.request(body, manifest)
            self.answered[name] = server(asked).to_bytes()
            self.computed += 1
        reply = self.answered[name]
        if "jali-seal" in request.headers and self.shared_key is not None:
            reply = authenticated.seal_reply(self.shared_key, reply, request=body, place=key_id)
        return httpx.Response(200, content=reply)


def _sent(answer: Answer) -> Any:
    return httpx.Response(answer.status, headers=answer.headers, json=answer.document)


def problem(status: int, kind: str, detail: str = "", **more: Any) -> Any:
    """An answer that says no."""
    headers = {"content-type": "application/problem+json", **more.pop("headers", {})}
    document = {"type": f"tag:jali,2026:{kind}", "status": status, "detail": detail, **more}
    return httpx.Response(status, headers=headers, content=json.dumps(document))


@contextmanager
def serving(*kinds: str, **options: Any) -> Iterator[Service]:
    """A service within the block."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), kinds or ("network",), **options)
        try:
            yield service
        finally:
            service.store.close()
