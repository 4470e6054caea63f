"""The scheduling policy of the service: events in, decisions out.

`events` has what happens, `decisions` what is to be done, and Limits the bounds. docs/scheduling.md
explains the rules.
"""

from __future__ import annotations

from jali.serve.policy import decisions, events
from jali.serve.policy.limits import Limits
from jali.serve.policy.scheduler import Policy

__all__ = ["Limits", "Policy", "decisions", "events"]
