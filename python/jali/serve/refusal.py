"""Requests that are refused, with what HTTP says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jali.errors import Error

__all__ = ["Refusal"]


class Refusal(Error):
    """A request that is refused. Its sentence says what to change.

    status: the status code of HTTP, 400 to 599.
    kind: the last part of the problem's type, e.g. "quota".
    headers: fields of the answer.
    members: further members of the problem's document.

    >>> from jali.serve.refusal import Refusal
    >>> Refusal("no room is left: delete keys", 507, "quota").problem()["status"]
    507
    """

    code = "refused"

    def __init__(
        self,
        sentence: str,
        status: int,
        kind: str,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status, self.kind = status, kind
        self.headers = dict(headers or {})
        self.members = dict(members or {})

    def problem(self) -> dict[str, Any]:
        """The document of the answer, of the media type application/problem+json (RFC 9457)."""
        kind = self.kind if self.kind.startswith("https:") else f"tag:jali,2026:{self.kind}"
        return {"type": kind, "status": self.status, "detail": str(self), **self.members}
