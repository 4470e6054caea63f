"""The page that people use in a browser: its files, and what it must know of the programs.

Its client is WebAssembly, which `make wasm` builds (docs/how-to/browser.md).
"""

# Annotations are evaluated here, because FastAPI reads them and is imported within functions.

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.errors import Error, FileError
from jali.program.manifest import Manifest
from jali.serve.gateway import Gateway
from jali.serve.refusal import Refusal

__all__ = ["CLIENT", "HEADERS", "Page", "add", "described"]

_FOLDER = Path(__file__).parent / "page"
CLIENT = _FOLDER / "client"  # where the installation has the WebAssembly client
_CLIENT_FILES = ("jali.mjs", "jali.wasm")
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
_LARGEST = 200_000  # numbers of an example
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class _File:
    """A file as it is sent."""

    data: bytes
    packed: bytes
    media_type: str
    tag: str

    @classmethod
    def read(cls, path: Path) -> "_File":
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        return cls(data, gzip.compress(data, 9, mtime=0), _MEDIA_TYPES[path.suffix], tag)


class Page:
    """The files of the page, as the service sends them. They are read once.

    client: the folder with jali.mjs and jali.wasm; None for that of this installation, and then for
        that of `make wasm` if this is a copy of the repository.
    sentences: what the page asks for, by the names of programs; it has words of its own for others.

    Raises FileError if a given folder does not have the two files.

    >>> from jali.serve.page import Page
    >>> sorted(Page().files)[:2]
    ['/', '/page/icon.svg']
    """

    def __init__(
        self, client: Path | None = None, *, sentences: Mapping[str, str] | None = None
    ) -> None:
        self.sentences = dict(sentences or {})
        folder = _client_folder() if client is None else client
        found = [folder / name for name in _CLIENT_FILES]
        absent = [path.name for path in found if not path.is_file()]
        if absent and client is not None:
            raise FileError(
                f"{client} does not have {' and '.join(absent)}: give the folder build/wasm/client that 'make wasm' fills in a copy of Jali's repository"
            )
        self.has_client = not absent
        self.files = {
            f"/page/{path.name}": _File.read(path)
            for path in sorted(_FOLDER.iterdir())
            if path.suffix in _MEDIA_TYPES
        }
        self.files["/"] = self.files.pop("/page/index.html")
        if self.has_client:
            self.files |= {f"/page/client/{path.name}": _File.read(path) for path in found}

    @property
    def missing(self) -> str:
        """A sentence that says how to get the WebAssembly client; "" if it is there."""
        if self.has_client:
            return ""
        return (
            "the page has no client, since this installation was built without the WebAssembly module: "
            "run 'make wasm' in a copy of Jali's repository, and start the service with --web-client build/wasm/client"
        )

    def is_open(self, path: str) -> bool:
        """Whether everyone may have a path: files tell nothing of the service.

        path: of a request.
        """
        return path in self.files or path.startswith("/page/client/")


def _client_folder() -> Path:
    built = Path(__file__).parents[3] / "build" / "wasm" / "client"
    return CLIENT if (CLIENT / "jali.wasm").is_file() else built


def add(app: Any, gateway: Gateway) -> None:
    """Adds the routes of the page, if the service has one.

    app: an application of FastAPI.
    gateway: the service that they are about.
    """
    from fastapi import Request, Response

    page = gateway.page
    if page is None:
        return

    async def file(request: Request) -> Response:
        found = page.files[request.url.path]
        headers = {**HEADERS, "ETag": found.tag, "Vary": "Accept-Encoding"}
        if found.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        data = found.data
        if "gzip" in request.headers.get("accept-encoding", ""):
            data, headers["Content-Encoding"] = found.packed, "gzip"
        return Response(data, headers=headers, media_type=found.media_type)

    async def no_client(request: Request, name: str) -> Response:
        raise Refusal(
            page.missing or "there is no such file: load the page again", 404, "no-client"
        )

    async def programs() -> Response:
        """What the page must know of the programs."""
        found = [
            {
                **described(one.manifest),
                "name": one.name,
                "fingerprint": one.fingerprint,
                "sentence": page.sentences.get(one.name),
            }
            for one in gateway.programs().values()
        ]
        return Response(
            json.dumps({"programs": found}),
            headers={**HEADERS, "Cache-Control": "no-store"},
            media_type="application/json",
        )

    methods: dict[str, Any] = {"methods": ["GET", "HEAD"], "include_in_schema": False}
    for path in page.files:
        app.add_api_route(path, file, response_class=Response, **methods)
    app.add_api_route("/page/programs", programs, response_class=Response, **methods)
    app.add_api_route("/page/client/{name}", no_client, response_class=Response, **methods)


@lru_cache(maxsize=64)
def described(data: bytes) -> Mapping[str, Any]:
    """What the page must know of a program: its inputs and outputs, and in `refused` a sentence that
    says why it cannot ask it, or None.

    data: the bytes of its manifest.

    >>> from jali.serve.page import described
    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(
    ...     lambda x: 2 * x, examples[0], calibration=examples, input_range=(-1, 1)
    ... )
    >>> described(program.manifest.to_bytes())["inputs"]
    [{'name': 'x', 'shape': [3], 'columns': [], 'low': -1.0, 'high': 1.0}]
    """
    known: dict[str, Any] = {"inputs": [], "outputs": [], "refused": None}
    try:
        manifest = Manifest.from_bytes(data, security=0)  # which the client refuses below 128
    except Error:
        return known | {"refused": _refused("computes on decision trees or exact integers")}
    if manifest.parts is not None:
        return known | {"refused": _refused("has parts that its client computes in the clear")}
    if sum(port.low.size for port in manifest.inputs) > _LARGEST:
        return known | {"refused": _refused(f"takes more than {_LARGEST:,} numbers")}
    known["inputs"] = [
        {**_port(one), "low": _numbers(one.low), "high": _numbers(one.high)}
        for one in manifest.inputs
    ]
    known["outputs"] = [_port(one) for one in manifest.outputs]
    return known


def _refused(why: str) -> str:
    return f"This page cannot ask this program, because it {why}. Use jali.Remote of the Python package."


def _port(port: Any) -> dict[str, Any]:
    return {"name": port.name, "shape": list(port.shape), "columns": list(port.columns)}


def _numbers(values: npt.NDArray[np.float64]) -> float | list[float]:
    """One number for all if they are equal."""
    return float(values[0]) if np.all(values == values[0]) else [float(x) for x in values]
