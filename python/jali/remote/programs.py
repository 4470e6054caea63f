"""The programs of a service, and the manifest of one. Nothing that the service says of a manifest is
believed: its fingerprint is computed again."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jali._core import schema
from jali.errors import InvalidArgument
from jali.remote.deadline import Deadline, repeated
from jali.remote.errors import BadAnswer, Unavailable
from jali.remote.kinds import Kind, kind_of
from jali.remote.problems import error_of, said
from jali.remote.wire import Answer, Wire

__all__ = ["ServedProgram", "chosen", "listed", "manifest_of"]

_MOST_LIST = 1 << 20  # bytes
_MOST_PROGRAMS = 1000
_MOST_MANIFEST = 1 << 28
_FINGERPRINT = re.compile("[0-9a-f]{64}")
_NAME_LENGTH = 100


@dataclass(frozen=True)
class ServedProgram:
    """A program, as its service describes it. The manifest says what is true.

    name: what the operator calls it.
    fingerprint: of its manifest.
    key_bytes: what its keys take to send.
    seconds: the time of one request, as the service predicts it; None if it does not.
    """

    name: str
    fingerprint: str
    key_bytes: int
    seconds: float | None

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint[:12]})"


async def listed(wire: Wire, deadline: Deadline) -> tuple[ServedProgram, ...]:
    """The programs of a service.

    wire: to the service.
    deadline: by when they must be there.
    """

    async def ask() -> Answer:
        return await wire.ask("GET", "/v1/programs", most=_MOST_LIST)

    answer = await repeated(ask, deadline, "the program")
    if answer.status != 200:
        raise error_of(answer.problem)
    try:
        document = schema.parsed(answer.data)
        entries = document["programs"]
        if not isinstance(entries, list) or len(entries) > _MOST_PROGRAMS:
            raise ValueError
        return tuple(_program(entry) for entry in entries)
    except (ValueError, KeyError, TypeError):
        raise BadAnswer(
            "what answers at this address lists no programs: give the address of a service of Jali"
        ) from None


def _program(entry: Any) -> ServedProgram:
    """Raises ValueError, KeyError and TypeError for what describes no program."""
    fingerprint, nbytes, seconds = entry["fingerprint"], entry["key_bytes"], entry.get("seconds")
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        raise ValueError
    if type(nbytes) is not int or not 0 <= nbytes < 1 << 62 or type(entry["name"]) is not str:
        raise ValueError
    if seconds is not None:
        seconds = float(seconds)
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError
    return ServedProgram(said(entry["name"], _NAME_LENGTH), fingerprint, nbytes, seconds)


def chosen(programs: Sequence[ServedProgram], wanted: str | None) -> ServedProgram:
    """The program of a name or fingerprint; the only one, if None is wanted.

    programs: of the service.
    wanted: by the user.

    Raises InvalidArgument if there is no such program, or more than one, and Unavailable if there is
    none at all.
    """
    found = [one for one in programs if wanted in (None, one.name, one.fingerprint)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(map(str, programs[:20])) + (", …" if len(programs) > 20 else "")
    if not programs:
        raise Unavailable(
            "the service has no program, or has not read them yet: try again later, or ask its operator"
        )
    if wanted is None:
        raise InvalidArgument(
            f"the service has several programs: choose one by program=, of {names}"
        )
    if not found:
        raise InvalidArgument(f"the service has no such program: give program= one of {names}")
    raise InvalidArgument(
        f"several programs have this name: give program= the fingerprint, one of {', '.join(one.fingerprint for one in found[:20])}"
    )


async def manifest_of(
    wire: Wire,
    program: ServedProgram,
    deadline: Deadline,
    *,
    most: int,
    security: int,
    log2_p_fail: float,
) -> tuple[Kind, Any]:
    """The kind of a program, and its manifest.

    wire: to the service.
    program: which.
    deadline: by when it must be there.
    most: how many bytes it may have.
    security, log2_p_fail: what is demanded of its parameters.

    Raises BadAnswer for another program's, and the errors of the manifest's from_bytes.
    """

    async def ask() -> Answer:
        path = f"/v1/programs/{program.fingerprint}/manifest"
        return await wire.ask("GET", path, most=min(most, _MOST_MANIFEST))

    answer = await repeated(ask, deadline, program.name)
    if answer.status != 200:
        raise error_of(answer.problem, program.name)
    kind = kind_of(answer.data)
    manifest = kind.manifest.from_bytes(answer.data, security=security, log2_p_fail=log2_p_fail)
    tag = answer.headers.get("etag", f'"{program.fingerprint}"').removeprefix("W/").strip('"')
    if manifest.fingerprint != program.fingerprint or tag != program.fingerprint:
        raise BadAnswer(
            f"the server sent the manifest of another program than {program.name}: nothing was encrypted for it. Ask the operator"
        )
    return kind, manifest
