"""Addresses of services: which are refused before anything is sent."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from jali.errors import InvalidArgument

__all__ = ["Address", "address_of"]

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True)
class Address:
    """Where a service is.

    origin: scheme, host and port.
    path: what stands before the paths of the service, "" or for example "/fhe".
    is_local: whether it is this machine, to which no other listens.
    """

    origin: str
    path: str
    is_local: bool

    def of(self, path: str) -> str:
        """The URL of a path of the service."""
        return f"{self.origin}{self.path}{path}"


def address_of(url: str, *, insecure_http: bool) -> Address:
    """The address that a URL names.

    insecure_http: whether http is allowed to other machines.

    Raises InvalidArgument for other URLs, without the URL: it may hold a password.
    """
    if not isinstance(url, str):
        raise InvalidArgument(f"url must be a text, not {type(url).__name__}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidArgument('url must be an address such as "https://host"') from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable():
        raise InvalidArgument('url must be an address such as "https://host"')
    if parts.username is not None or parts.password is not None:
        raise InvalidArgument("url has a user or password: give the service's token as token=")
    path = parts.path.rstrip("/")
    if parts.query or parts.fragment or not _PATH.fullmatch(path) or ".." in path.split("/"):
        raise InvalidArgument(
            "url must end with the host, or with the path below which the service is: leave out what follows"
        )
    is_local = _is_loopback(host)
    if parts.scheme == "http" and not (is_local or insecure_http):
        raise InvalidArgument(
            "url begins with http:, so that everyone between here and there reads the token and can change what is sent: use https:, or say "
            "insecure_http=True if that network is trusted"
        )
    name = f"[{host}]" if ":" in host else host
    return Address(
        f"{parts.scheme}://{name}" + ("" if port is None else f":{port}"), path, is_local
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
