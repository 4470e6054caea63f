"""Times by which something must be done, and requests that are repeated until then."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np

from jali._core import checks
from jali.errors import DeadlineExceeded, Error, InvalidArgument
from jali.remote.errors import Unavailable
from jali.remote.problems import error_of, said
from jali.remote.repeats import is_repeated, pause
from jali.remote.wire import Answer, Lost

__all__ = ["Deadline", "checked_seconds", "repeated"]

_LONGEST = 86400.0


def checked_seconds(value: Any, what: str) -> float:
    """A time in seconds, up to a day.

    value: what was given.
    what: the argument's name.

    Raises InvalidArgument for anything else.
    """
    number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not number or not 0 < value <= _LONGEST or math.isnan(value):
        raise InvalidArgument(
            f"{what} must be a number of seconds above 0, up to {_LONGEST:.0f}, not {checks.shown(value)}"
        )
    return float(value)


class Deadline:
    """A time by which something must be done. It begins when it is made, in a running loop.

    seconds: from now.
    what: that is to be done, for the sentence of the error, e.g. "the answer".
    """

    def __init__(self, seconds: float, what: str) -> None:
        self._seconds, self._what = seconds, what
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        #: Why it is not done yet, if that is known.
        self.reason = ""

    @property
    def left(self) -> float:
        """The seconds until then; 0 once it has passed."""
        return max(0.0, self._until - self._loop.time())

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Ends what is within the block at that time.

        Raises DeadlineExceeded then.
        """
        timeout = asyncio.timeout_at(self._until)
        try:
            async with timeout:
                yield
        except TimeoutError as error:
            if isinstance(error, Error) or not timeout.expired():
                raise
            raise self.exceeded() from None

    def exceeded(self) -> DeadlineExceeded:
        """The error of a deadline that has passed."""
        why = f": {self.reason}" if self.reason else ""
        return DeadlineExceeded(
            f"{self._what} was not there within {self._seconds:g} s{why}. Give more time, or try again later"
        )


async def repeated(
    ask: Callable[[], Awaitable[Answer]], deadline: Deadline, program: str
) -> Answer:
    """The answer to a request that may be sent several times, which is sent again if the connection
    is lost or if the service has no room, as long as there is time.

    ask: sends it.
    deadline: by when it must be answered.
    program: what the program is called, for errors.

    Raises Unavailable as soon as it is clear that the time does not suffice, and the errors of
    `ask`.
    """
    count = 0
    while True:
        count += 1
        headers: Any = {}
        try:
            answer = await ask()
        except Lost as lost:
            error: Error = Unavailable(f"the service cannot be reached: {lost}")
        else:
            if not is_repeated(answer.problem):
                return answer
            headers, error = answer.headers, error_of(answer.problem, program)
        deadline.reason = said(error, 500)
        seconds = pause(count, headers)
        if seconds >= deadline.left:
            raise error
        await asyncio.sleep(seconds)
