"""Errors that services alone have. What a service refuses for a reason that the library knows, e.g.
damaged bytes or a deadline, is the library's error.

A sentence of the server stands in quotation marks, behind "the server said". It is cut, and has no
character on which a terminal acts. Whoever runs the server chose it.
"""

from __future__ import annotations

from jali.errors import Error

__all__ = ["AccessDenied", "BadAnswer", "ProgramReplaced", "ServiceError", "Unavailable"]


class ServiceError(Error):
    """A service that does not do what it was asked for.

    status: the status of its answer in HTTP; 0 if there was none.
    kind: the kind of the problem by docs/reference/http.md, e.g. "forbidden"; "" if there is none.
    """

    code = "service"
    status: int = 0
    kind: str = ""


class Unavailable(ServiceError):
    """A service that cannot be reached, or that has no room now: try again later."""

    code = "unavailable"


class AccessDenied(ServiceError):
    """A service that does not know who calls, or does not serve them."""

    code = "access_denied"


class ProgramReplaced(ServiceError):
    """A program that the service had, and has no more.

    replaced_by: the fingerprints of the programs that have its name now.
    """

    code = "program_replaced"
    replaced_by: tuple[str, ...] = ()


class BadAnswer(ServiceError):
    """An answer that no service of Jali gives: another server answers at this address, or one that
    is damaged or lies."""

    code = "bad_answer"
