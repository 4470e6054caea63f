"""Fields of a request's head, as docs/reference/http.md defines them."""

from __future__ import annotations

import re

from jali.serve.refusal import Refusal
from jali.serve.routes import digest_of

__all__ = [
    "deadline",
    "digest",
    "idempotency",
    "is_key_id",
    "key_id",
    "length",
    "preferences",
    "seconds",
]

_DAY = 86_400_000  # milliseconds
_KEY_ID = re.compile("[0-9a-f]{32}")
_NAME = re.compile("[ -~]{1,255}")
_PREFERENCE = re.compile(r'\s*([a-z-]+)\s*(?:=\s*"?([^",;]*)"?)?[^,]*', re.IGNORECASE)


def is_key_id(text: str) -> bool:
    """Whether a text can be the name of a secret key."""
    return _KEY_ID.fullmatch(text) is not None


def key_id(text: str) -> str:
    """Jali-Key.

    >>> from jali.serve.fields import key_id
    >>> key_id("")
    Traceback (most recent call last):
    jali.serve.refusal.Refusal: say in Jali-Key which keys: send them first, and give the key_id that you get
    """
    if not is_key_id(text):
        raise Refusal(
            "say in Jali-Key which keys: send them first, and give the key_id that you get",
            428,
            "keys",
        )
    return text


def length(text: str, most: int) -> int:
    """Content-Length.

    most: how many bytes are taken.
    """
    if not text.isascii() or not text.isdecimal():
        raise Refusal("say how long the body is, by Content-Length", 411, "no-length")
    if len(text) > 15 or int(text) > most:
        raise Refusal(
            f"a request has at most {most} bytes here: send fewer examples", 413, "too-large"
        )
    return int(text)


def digest(text: str) -> str:
    """The SHA-256 of Content-Digest in hexadecimal, "" for none."""
    return digest_of({"content-digest": text}, "content-digest")


def deadline(text: str) -> float | None:
    """Jali-Deadline-Ms in seconds; None for none.

    >>> from jali.serve.fields import deadline
    >>> deadline("1500")
    1.5
    """
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _DAY and len(text) < 9):
        raise Refusal(f"Jali-Deadline-Ms is a whole number from 1 to {_DAY}", 400, "header")
    return int(text) / 1e3


def idempotency(text: str) -> str:
    """Idempotency-Key, without quotation marks; "" for none.

    >>> from jali.serve.fields import idempotency
    >>> idempotency('"a1"') == idempotency("a1")
    True
    """
    if not text:
        return ""
    inner = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if not _NAME.fullmatch(inner):
        raise Refusal("Idempotency-Key has 1 to 255 printable characters", 400, "header")
    return inner


def preferences(text: str) -> dict[str, str]:
    """The preferences of Prefer (RFC 7240), by their names in lower case.

    >>> from jali.serve.fields import preferences
    >>> preferences("respond-async, wait=10")
    {'respond-async': '', 'wait': '10'}
    """
    found: dict[str, str] = {}
    for name, value in _PREFERENCE.findall(text):
        found.setdefault(name.lower(), value.strip())
    return found


def seconds(text: str) -> float:
    """A whole number of seconds; 0 for what is none."""
    return float(text[:6]) if text.isascii() and text.isdecimal() else 0.0
