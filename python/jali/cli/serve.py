"""The command ``jali serve``: a service that answers requests on encrypted inputs."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jali import device as devices
from jali._core import checks, packages
from jali._core.console import bytes_text, seconds_text
from jali.cli.parser import Parser
from jali.errors import InvalidArgument, Unsupported
from jali.serve import auth, logs
from jali.serve.keys import KeyStore, Quota

__all__ = ["main"]

_BODY = 300.0  # seconds for a body whose bytes keep coming: 400 MB need 160 s at 20 Mbit/s
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt
_DEMO = "drawn-digits"  # the name of its program
_PACKAGES = ("fastapi", "uvicorn", "httptools", "prometheus_client")


def _parser() -> Parser:
    parser = Parser(
        prog="jali serve",
        description="Answers requests of clients on inputs that it cannot read. Clients send their evaluation keys once, which are kept on "
        "disk. It ends after SIGTERM or SIGINT, once everything that it accepted is answered.",
    )
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="[NAME=]P.jali",
        help="what 'jali compile' wrote, and its name; the name of the file if none is given. A program that replaces another keeps its name",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8473, help="of TCP; 0 for any (8473)")
    parser.add_argument(
        "--store", type=Path, default=Path("jali-store"), metavar="DIR", help="of keys (jali-store)"
    )
    parser.add_argument(
        "--index",
        metavar="URL",
        default=os.environ.get("JALI_INDEX"),
        help="of a database of PostgreSQL in which machines that share the store keep its index (a file in the store). Leave its password out: "
        "JALI_INDEX may hold the URL, and PGPASSFILE the password",
    )
    parser.add_argument(
        "--workers",
        default="auto",
        metavar="DEVICES",
        help="one process for each: auto is every GPU, or the CPU if there is none; or a list such as cuda:0,cuda:1 or cpu",
    )
    _add_page(parser)
    _add_callers(parser)
    bounds = parser.add_argument_group("bounds")
    bounds.add_argument(
        "--quota", default="8 GB", metavar="BYTES", help="of the keys of each client (8 GB)"
    )
    bounds.add_argument(
        "--capacity", metavar="BYTES", help="of the keys of all clients (what the disk has)"
    )
    bounds.add_argument(
        "--max-request",
        default="2 GiB",
        metavar="BYTES",
        help="longer requests are refused (2 GiB)",
    )
    bounds.add_argument(
        "--grace",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds after SIGTERM in which requests are computed (30)",
    )
    parser.add_argument(
        "--verify", action="store_true", help="read all stored keys first, and drop damaged ones"
    )
    parser.add_argument(
        "--log-clients", action="store_true", help="write names of clients into the log"
    )
    return parser


def _add_page(parser: Parser) -> None:
    group = parser.add_argument_group(
        "the page", "The service answers browsers with a page that encrypts, asks and decrypts."
    )
    group.add_argument(
        "--demo", action="store_true", help="serve a network that reads digits that people draw"
    )
    group.add_argument(
        "--web-client",
        type=Path,
        metavar="DIR",
        help="the folder with jali.mjs and jali.wasm, which 'make wasm' fills (that of this installation)",
    )
    group.add_argument("--no-page", action="store_true", help="serve no page")


def _add_callers(parser: Parser) -> None:
    group = parser.add_argument_group(
        "who calls", "Without one of these, everyone who reaches the service may use it."
    )
    group.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help="a line for each client: the SHA-256 of its token in hexadecimal, and its name",
    )
    group.add_argument("--tls-cert", type=Path, metavar="FILE", help="the certificate, in PEM")
    group.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, without a password")
    group.add_argument(
        "--tls-client-ca",
        type=Path,
        metavar="FILE",
        help="clients have certificates that these have signed; their subjects are their names",
    )
    group.add_argument(
        "--proxy-header", metavar="NAME", help="a field in which a proxy says who calls"
    )
    group.add_argument(
        "--proxy-from",
        action="append",
        default=[],
        metavar="NETWORK",
        help="from where that proxy connects, e.g. 10.0.0.0/8; may be given several times",
    )
    group.add_argument(
        "--auth", metavar="MODULE:NAME", help="an async function that says who calls"
    )
    group.add_argument(
        "--operator",
        action="append",
        default=[],
        metavar="NAME",
        help="a client who may read metrics; may be given several times",
    )
    group.add_argument(
        "--seal-keys",
        type=Path,
        metavar="FILE",
        help="a line for each client who shares a key with the service: the key in hexadecimal, and the client's name. The replies that it asks to be sealed are bound to their requests",
    )
    group.add_argument(
        "--insecure-no-auth",
        action="store_true",
        help="listen where others can reach it, and ask nobody who they are",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali serve``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(sys.argv[2:] if argv is None else argv)
    missing = [name for name in _PACKAGES if not packages.here(name)]
    if missing:
        raise Unsupported(
            f"jali serve needs {', '.join(missing)}: run {packages.install(*map(packages.of_module, missing))}"
        )
    programs: dict[str, Any] = dict(_named(options.programs))
    if not programs and not options.demo:
        raise InvalidArgument(
            "name the file of a program, which 'jali compile' or Program.save writes, or give --demo"
        )
    page = _page(options)
    seals = None
    if options.seal_keys is not None:
        from jali.serve.seals import Seals

        seals = Seals(options.seal_keys)
    identify = _identify(options)
    auth.check_binding(
        options.host, authenticated=identify is not None, insecure=options.insecure_no_auth
    )
    if options.grace < 0:
        raise InvalidArgument("--grace must be 0 or more seconds")
    quota = Quota(checks.size(options.quota, "--quota"))
    capacity = None if options.capacity is None else checks.size(options.capacity, "--capacity")
    largest = checks.size(options.max_request, "--max-request")
    if options.demo:
        if _DEMO in programs:
            raise InvalidArgument(f"{_DEMO} is the program of --demo: give another name")
        from jali.demo import drawn

        programs = {_DEMO: drawn.program(), **programs}  # the page begins with the first
    with KeyStore(options.store, quota=quota, capacity=capacity, index=options.index) as store:
        if options.verify:
            print(f"{len(store.verify())} damaged keys were dropped", file=sys.stderr)
        asyncio.run(_serve(options, programs, store, identify, largest, page, seals))
    return 0


def _named(words: Sequence[str]) -> dict[str, Path]:
    """The files of programs, by their names."""
    found: dict[str, Path] = {}
    for word in words:
        name, given, path = word.partition("=")
        if not given:
            name, path = Path(word).stem, word
        if not name or name in found:
            raise InvalidArgument(
                f"two programs are called {name}: give them names, as in NAME={path}"
                if name
                else f"{word} has no name before =: write NAME={path}"
            )
        found[name] = Path(path)
    return found


def _page(options: Namespace) -> Any:
    """The page; None if there is to be none. Raises InvalidArgument, FileError and Unsupported."""
    if options.no_page:
        if options.demo or options.web_client is not None:
            raise InvalidArgument("--no-page goes with neither --demo nor --web-client")
        return None
    from jali.serve.page import Page

    page = Page(options.web_client, sentences={_DEMO: "Draw a digit from 0 to 9."})
    if options.demo and page.missing:
        raise Unsupported(page.missing)
    return page


def _identify(options: Namespace) -> auth.Identify | None:
    """The ways to know who calls; None if there are none. Raises InvalidArgument."""
    ways: list[auth.Identify] = []
    if options.tokens is not None:
        ways.append(auth.Tokens(options.tokens))
    if options.tls_client_ca is not None:
        if options.tls_cert is None:
            raise InvalidArgument("--tls-client-ca needs --tls-cert and --tls-key")
        ways.append(auth.certified)
    if options.proxy_header is not None:
        ways.append(auth.ProxyHeader(options.proxy_header, options.proxy_from))
    elif options.proxy_from:
        raise InvalidArgument("--proxy-from needs --proxy-header, the field that the proxy sets")
    if options.auth is not None:
        ways.append(auth.by_path(options.auth))
    return auth.first_of(ways) if ways else None


def _devices(words: str) -> list[str]:
    """The devices of the workers."""
    if words == "auto":
        gpus = [name for name in devices.available() if name.startswith("cuda")]
        return gpus or ["cpu"]
    return [word.strip() for word in words.split(",") if word.strip()]


def _return_memory() -> None:
    """Has the allocator of glibc give the memory of keys that were checked back at once. It would
    keep that of each thread otherwise."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


async def _serve(
    options: Namespace,
    programs: dict[str, Any],
    store: KeyStore,
    identify: auth.Identify | None,
    largest: int,
    page: Any,
    seals: Any,
) -> None:
    from jali.serve.gateway import Gateway, Settings
    from jali.serve.policy import Limits
    from jali.serve.server import Tls, serve
    from jali.serve.service import Service

    if (options.tls_cert is None) != (options.tls_key is None):
        raise InvalidArgument("TLS needs both --tls-cert and --tls-key")
    tls = None
    if options.tls_cert is not None:
        tls = Tls(options.tls_cert, options.tls_key, options.tls_client_ca)
    limits = Limits(body=_BODY)
    service: Any = Service(programs, store, devices=_devices(options.workers), limits=limits)
    gateway = Gateway(
        service,
        options.store,
        identify=identify,
        local=not options.insecure_no_auth,
        settings=Settings(request_bytes=largest, operators=frozenset(options.operator)),
        log=logs.Log(clients=options.log_clients),
        page=page,
        seals=seals,
    )
    stop, failed = asyncio.Event(), []

    async def start() -> None:
        try:
            await service.start()
        except BaseException as error:
            failed.append(error)
            stop.set()
            return
        for one in gateway.programs().values():
            print(
                f"{one.name}: {seconds_text(one.seconds)} a request, {bytes_text(one.key_bytes)} of keys a client, fingerprint {one.fingerprint[:16]}",
                file=sys.stderr,
            )
        if page is not None and page.missing:
            print(f"note: {page.missing}", file=sys.stderr)
        print("ready", file=sys.stderr, flush=True)

    starting: list[asyncio.Task[None]] = []

    def started(port: int) -> None:
        scheme, host = "http" if tls is None else "https", options.host
        host = f"[{host}]" if ":" in host else host
        print(f"listening on {scheme}://{host}:{port}", file=sys.stderr, flush=True)
        if identify is not None and tls is None and not auth.is_loopback(options.host):
            print(
                "warning: names and tokens cross the network in the clear unless a proxy adds TLS: give --tls-cert and --tls-key otherwise",
                file=sys.stderr,
            )
        starting.append(asyncio.create_task(start()))

    _return_memory()
    logs.to_stream()
    try:
        await serve(
            gateway,
            options.host,
            options.port,
            tls=tls,
            grace=options.grace,
            started=started,
            stop=stop,
        )
    finally:
        for task in starting:
            task.cancel()
        await service.stop(0)
        gateway.close()
    if failed:
        raise failed[0]
