"""What a server says of a request that it does not answer, as an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jali import errors
from jali._core import schema
from jali._core.console import bytes_text
from jali.errors import Error
from jali.remote.errors import AccessDenied, BadAnswer, ProgramReplaced, ServiceError, Unavailable

__all__ = ["Problem", "error_of", "problem_of", "said", "whole_field"]

MEDIA_TYPE = "application/problem+json"
_LONGEST = 300  # characters of a sentence of the server's
_KIND = re.compile(r"[a-z0-9_-]{1,40}")
_FINGERPRINT = re.compile("[0-9a-f]{64}")
_WHOLE = re.compile(r"\d{1,15}")
#: Errors of the library that a server may name for bytes that it was sent.
_NAMED: tuple[type[Error], ...] = (
    errors.CorruptData,
    errors.InvalidArgument,
    errors.KeyMismatch,
    errors.KeyMissing,
    errors.LimitExceeded,
    errors.ParamsMismatch,
    errors.Unsupported,
    errors.VersionError,
)
_BY_STATUS: dict[int, type[Error]] = {
    401: AccessDenied,
    403: AccessDenied,
    408: Unavailable,
    413: errors.LimitExceeded,
    421: AccessDenied,
    428: errors.KeyMissing,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: errors.DeadlineExceeded,
    507: errors.LimitExceeded,
}
_ADVICE = {
    401: "the service does not know who calls: give the token that its operator gave you, as token=",
    403: "the service does not serve you: ask its operator",
    413: "the service takes less: send what the program takes",
    421: "the service answers to other names: ask its operator for its address",
    428: "the service does not have your keys: call keys() first",
    429: "you have too much under way at the service: try again later",
    503: "the service has no room now: try again later",
    504: "the service did not answer within the deadline: give a longer one",
    507: "the service has no room for these keys: delete_keys() removes yours",
}


def said(text: object, most: int = _LONGEST) -> str:
    """A text of the server's for an error or a name: without characters on which a terminal acts,
    and not longer than a sentence.

    most: how many characters it has at most.
    """
    cut = str(text)[: most + 1]
    clean = "".join(c if c.isprintable() else " " for c in cut).replace('"', "'").strip()
    return clean if len(clean) <= most else clean[: most - 1] + "…"


@dataclass(frozen=True)
class Problem:
    """The content of an answer of status 400 or more.

    status: of HTTP.
    kind: the last part of its type, e.g. "quota"; "" if the server gave no document.
    detail: the sentence of the server, cleaned; "" if there is none.
    members: the other members.
    """

    status: int
    kind: str = ""
    detail: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_document(self) -> bool:
        """Whether a service wrote it, and not a proxy before the service."""
        return bool(self.kind)


def problem_of(status: int, headers: Mapping[str, str], data: bytes, hidden: str = "") -> Problem:
    """What an answer says. It never raises: a document that cannot be read says nothing.

    status, headers, data: of the answer.
    hidden: what is left out of the sentence, if the server says it.
    """
    if headers.get("content-type", "").split(";")[0].strip().lower() != MEDIA_TYPE:
        return Problem(status)
    try:
        document = schema.parsed(data)
    except ValueError:
        return Problem(status)
    if not isinstance(document, dict):
        return Problem(status)
    kind = re.split("[:#/]", str(document.get("type", ""))[-200:])[-1]
    detail = document.get("detail", "")
    text = detail if isinstance(detail, str) else ""
    if hidden:
        text = text.replace(hidden, "…")
    return Problem(status, kind if _KIND.fullmatch(kind) else "unknown", said(text), document)


def error_of(problem: Problem, program: str = "the program") -> Error:
    """The error that a problem is.

    program: what the program is called, for its sentence.
    """
    status = problem.status
    if status == 410 and problem.kind != "completed-upload":
        return _replaced(problem, program)
    if 300 <= status < 400:
        return _noted(
            BadAnswer("the server sends callers elsewhere, and nobody is followed with a token"),
            problem,
        )
    advice = _ADVICE.get(status, f"the service answered with status {status}")
    if status == 507 and problem.kind in ("store-full", "disk"):
        advice = "the service has no room now: try again later"
    left = problem.members.get("bytes-left")
    if status == 507 and isinstance(left, int) and 0 <= left < 1 << 60:
        advice += f", and {bytes_text(left)} are left"
    kind = _BY_STATUS.get(status) or _named(problem) or ServiceError
    return _noted(kind(_sentence(advice, problem)), problem)


def _named(problem: Problem) -> type[Error] | None:
    """The error of the library that the server names."""
    if problem.status != 422:
        return None
    names = (problem.members.get("code"), problem.kind)
    return next((kind for kind in _NAMED if kind.code in names), None)


def _replaced(problem: Problem, program: str) -> Error:
    given = problem.members.get("replaced_by")
    found = given if isinstance(given, list) else []
    now = tuple(x for x in found[:100] if isinstance(x, str) and _FINGERPRINT.fullmatch(x))
    error = ProgramReplaced(
        _sentence(
            f"{program} is not served any more: make a new Remote for the one that replaced it, and call its keys(). Your keys and secret were made "
            "for the old one and serve nothing else",
            problem,
        )
    )
    error.replaced_by = now
    return _noted(error, problem)


def _sentence(advice: str, problem: Problem) -> str:
    return f'{advice}. The server said: "{problem.detail}"' if problem.detail else advice


def _noted(error: Error, problem: Problem) -> Error:
    if isinstance(error, ServiceError):
        error.status, error.kind = problem.status, problem.kind
    return error


def whole_field(headers: Mapping[str, str], name: str) -> int | None:
    """A field that is a whole number, or None.

    headers: of the answer, with names in lower case.
    name: of the field.
    """
    text = headers.get(name, "").split(";")[0].strip()
    return int(text) if _WHOLE.fullmatch(text) else None
