"""Which requests are sent again, and when."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Mapping

from jali.remote.problems import Problem, whole_field

__all__ = ["REPEATED", "is_repeated", "pause"]

#: Answers after which the same request may succeed: too slow, too many, no room, and what proxies
#: say of a service that is not there.
REPEATED = frozenset({408, 429, 502, 503})
_FIRST, _LONGEST = 0.1, 5.0  # seconds


def is_repeated(problem: Problem) -> bool:
    """Whether the same request may be sent again. Only requests are, of which repetitions have no
    further effect."""
    return problem.status in REPEATED or (problem.status == 504 and not problem.is_document)


def pause(count: int, headers: Mapping[str, str]) -> float:
    """The seconds to wait before a request is sent again: as many as the server asks for, and at
    least a random share of a time that doubles, so that clients do not come all at once.

    count: how often it was sent.
    headers: of the answer; none if there was none.
    """
    own = min(_LONGEST, _FIRST * 2.0 ** min(count - 1, 10)) * random.uniform(0.5, 1.0)
    return max(own, _asked(headers))


def _asked(headers: Mapping[str, str]) -> float:
    """What Retry-After says: seconds, or a date."""
    seconds = whole_field(headers, "retry-after")
    if seconds is not None:
        return float(seconds)
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):
        return 0.0
