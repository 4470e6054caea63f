"""Deadlines: which of them a device can promise to meet, and what it may do besides.

A device that computes one batch after the other, and may begin with any promised request at once,
meets all deadlines if it takes the earliest first and, for each promised request j,

    t + (the sum of the costs of promised requests i with D_i <= D_j) <= D_j,

where t is when the device ends what it computes. The condition is kept if the device computes the
earliest, or anything else that ends early enough for the condition to hold with that end for t.

A request whose keys or body are on their way until r_j >= t may have to wait for another promised
request with a later deadline, whose cost is at most b_j: its condition has r_j + b_j in the place
of t.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from jali.serve.policy.shares import excess
from jali.serve.policy.state import ROUNDING, Device, Request, State

__all__ = ["keeps", "late_by", "promise", "turn"]


def _lateness(now: float, begin: float, parts: Sequence[tuple[Request, float, float]]) -> float:
    """By how much the worst promise is broken if the device is free from `begin`; 0 or less if none
    is.

    parts: for each promised request, the earliest deadline first, its cost and when it is ready.
    """
    # Keys that come just when the device becomes free may come after its next batch has begun.
    before = max(now, begin - ROUNDING)
    larger, largest = [0.0] * len(parts), 0.0
    for index in reversed(range(len(parts))):
        larger[index] = largest
        largest = max(largest, parts[index][1])
    worst, done = float("-inf"), 0.0
    for (request, cost, ready), blocking in zip(parts, larger, strict=True):
        done += cost
        start = begin if ready <= before else max(begin, ready) + blocking
        worst = max(worst, start + done - request.order[0])
    return worst


def _ready(device: Device, request: Request, now: float) -> float:
    """When keys and body of a promised request are expected on a device, at the latest."""
    if device.loading is None and request.state != "reserved":
        return now  # its keys stay on the device as long as it is promised
    ready = device.ready_at(request.keys, now)
    assert ready is not None, "keys of promised requests stay on their device"
    return max(ready, request.due) if request.state == "reserved" else ready


def keeps(device: Device, batch: Sequence[Request], now: float, seconds: float) -> bool:
    """Whether all deadlines can be met if a device computes a batch now."""
    end = now + seconds
    if any(end > one.order[0] + ROUNDING for one in batch):
        return False
    rest = [one for one in device.promised if one.counts(now) and one not in batch]
    parts = [(one, one.cost, _ready(device, one, now)) for one in rest]
    return _lateness(now, end, parts) <= ROUNDING


def late_by(
    state: State, device: Device, request: Request, *, firm: bool, ready: float | None = None
) -> float:
    """By how many seconds a device would be too late for what is promised if it promised to meet a
    request's deadline, too; 0 or less if it may do so.

    firm: whether its body is here. Otherwise all other promised requests count, also those whose
        bodies are late, and so does the client's share: at each deadline from its own on, what is
        left to promise before it must be as much as the client was promised already.
    ready: when its keys are on the device, if they neither are there nor on their way.
    """
    now, cost = state.now, state.cost(request.seconds, request.program, device)
    served = device.served.get(request.keys.name, 0.0)
    if not firm and device.crowded and served >= turn(state, request.keys.nbytes):
        # Other keys wait for the room of these, which leave once nothing is promised with them.
        return device.free_at(now) - now + cost
    others = [
        one for one in device.promised if one is not request and (not firm or one.counts(now))
    ]
    if ready is None:
        ready = _ready(device, request, now)
    elif not firm:
        ready = max(ready, request.due)
    parts = [(one, one.cost, _ready(device, one, now)) for one in others]
    bisect.insort(parts, (request, cost, ready), key=lambda part: part[0].order)
    begin = device.free_at(now)
    late = _lateness(now, begin, parts)
    if not firm:
        # The request that is blocked may run first or not, and the later begin is not the worse one
        # for what is ready between the two.
        begin += device.blocked
        late = max(late, _lateness(now, begin, parts))
        own = total = 0.0
        for one, seconds, _ in parts:
            if one is not request:
                total += seconds
                own += seconds if one.account is request.account else 0.0
            if one.order >= request.order:
                late = max(late, excess(own, total, cost, one.order[0] - begin))
    return 0.0 if late <= ROUNDING else late


def promise(state: State, device: Device, request: Request, *, firm: bool) -> float:
    """Promises to meet a request's deadline on a device that has its keys, or loads them, and
    returns 0; or returns by how many seconds that is too late, as of late_by."""
    late = late_by(state, device, request, firm=firm)
    if not late:
        if request.device is not None:
            request.device.release(request)
        device.promise(request, state.cost(request.seconds, request.program, device))
    return late


def turn(state: State, nbytes: int) -> float:
    """The seconds for which keys of so many bytes are in use before others take their place."""
    return max(state.limits.turn, state.limits.load_seconds(nbytes, from_host=False))
