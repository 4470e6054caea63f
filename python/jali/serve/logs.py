"""What a service logs: one JSON object a line, without anything that is secret or names a client."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import sys
import time
import traceback
from typing import Any, TextIO

__all__ = ["JsonLines", "Log", "to_stream"]

_SHORT = 8  # characters of a name of keys or of a program
_FIELDS = "jali_fields"


class JsonLines(logging.Formatter):
    """Writes records as JSON, one a line.

    Of records of other packages, and of exceptions, only what their code says is written: the text
    without its arguments, and the places in the code. What they were called with may be a secret.

    >>> import logging
    >>> from jali.serve.logs import JsonLines
    >>> record = logging.LogRecord("other", logging.ERROR, "f.py", 1, "cannot read %s", ("abc",), None)
    >>> JsonLines().format(record).partition(", ")[2]  # after the time
    '"level": "error", "logger": "other", "event": "cannot read %s"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """A line without its end.

        record: of any logger.
        """
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{whole}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if record.name == "jali" or record.name.startswith("jali."):
            line["event"] = record.getMessage()
        else:
            line["event"] = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        line.update(getattr(record, _FIELDS, {}))
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = record.exc_info[1].__class__.__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["where"] = [f"{one.filename}:{one.lineno} {one.name}" for one in frames]
        return json.dumps(line)


class Log:
    """The records of a gateway, on the logger "jali.serve".

    clients: whether names of clients are written. If not, a client is a word that is another one
        after each start.

    >>> from jali.serve.logs import Log
    >>> Log(clients=True).client("alice")
    'alice'
    >>> "alice" in Log().client("alice")
    False
    """

    def __init__(self, *, clients: bool = False) -> None:
        self._clients = clients
        self._secret = secrets.token_bytes(32)
        self._logger = logging.getLogger("jali.serve")

    def client(self, name: str) -> str:
        """What is written for a client.

        name: of the client.
        """
        if self._clients or not name:
            return name
        return hmac.new(self._secret, name.encode(), hashlib.sha256).hexdigest()[:12]

    @staticmethod
    def short(name: str) -> str:
        """What is written for keys and programs.

        name: of them.
        """
        return name[:_SHORT]

    def event(self, name: str, **fields: Any) -> None:
        """Writes that something happened.

        name: of the event.
        fields: more members of the object. None of them may be a secret.
        """
        shown = {key: value for key, value in fields.items() if value not in (None, "")}
        self._logger.info(name, extra={_FIELDS: shown})

    def failure(self, name: str, error: BaseException, **fields: Any) -> None:
        """Writes where an error came from that should not be.

        name: of the event.
        error: its message is not written.
        fields: as of ``event``.
        """
        self._logger.error(
            name, exc_info=(type(error), error, error.__traceback__), extra={_FIELDS: fields}
        )


def to_stream(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Has all records of this process written as JSON.

    stream: where; None: standard error.
    level: of the records of the service that are written, at least; of others, warnings are.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger("jali").setLevel(max(level, logging.WARNING))
    logging.getLogger("jali.serve").setLevel(level)
    for name in ("uvicorn", "uvicorn.error"):
        one = logging.getLogger(name)
        one.handlers.clear()
        one.propagate = True
        one.setLevel(logging.WARNING)
