"""Whether a request, or the keys of a client, may come in."""

from __future__ import annotations

import math

from jali.errors import InvalidArgument
from jali.serve.policy.decisions import Admit, Deny, Evict, Fail, Grant, Refusal, Refuse
from jali.serve.policy.events import Arrived, KeysDeleted, KeysOffered, KeysStored, Received
from jali.serve.policy.loading import load, may_load, remove, room, source, wait
from jali.serve.policy.promises import late_by, promise
from jali.serve.policy.shares import excess
from jali.serve.policy.state import ROUNDING, Device, Keys, Request, State

__all__ = [
    "arrived",
    "deleted",
    "offered",
    "promise_where_keys_are",
    "received",
    "stored",
    "vacate",
]

#: The shortest time to retry after, in seconds.
_SOON = 0.1


def arrived(state: State, event: Arrived) -> None:
    """Admits a request, with what it reserves, or refuses it."""
    _check(state, event)
    keys = state.keys.get(event.key)
    devices = state.offering(event.program)
    if state.draining:
        return _refuse(state, event, "draining", None)
    if keys is None or not keys.stored or keys.deleted or keys.client != event.client:
        return _refuse(state, event, "keys", None)
    if keys.kills >= state.limits.kills:
        return _refuse(state, event, "poison", None)
    if not devices:
        return _refuse(state, event, "no_worker", state.limits.restart)
    devices = [one for one in devices if keys.nbytes <= one.level.capacity]
    if not devices:
        return _refuse(state, event, "keys", None)
    account = state.account(event.client, event.weight)
    if (found := _overload(state, event)) is not None:
        return _refuse(state, event, *found)
    limits = state.limits
    request = Request(
        name=event.request,
        number=state.next_number(),
        account=account,
        program=event.program,
        keys=keys,
        seconds=event.seconds,
        cost=max(state.cost(event.seconds, event.program, one) for one in devices),
        nbytes=event.nbytes,
        deadline=event.deadline,
        arrived=state.now,
        due=state.now + event.nbytes / limits.body_rate,
        until=state.now + limits.body,
    )
    if request.deadline is not None:
        late = _promise(state, request, devices)
        if late is not None:
            cost = min(state.cost(event.seconds, event.program, one) for one in devices)
            never = state.now + cost > request.deadline
            return _refuse(state, event, "deadline", None if never else max(late, _SOON))
        state.alarm(request.due + 2 * ROUNDING, request)
    state.requests[request.name] = request
    state.reserve(request, 1)
    state.watch(request)
    state.tell(Admit(request.name, request.nbytes, request.seconds, request.until))
    return None


def received(state: State, event: Received) -> None:
    """Has a request wait whose body is here."""
    request = state.requests.get(event.request)
    if request is None or request.state != "reserved":
        return  # it was answered already
    request.digest = event.digest
    if event.digest in state.poison:
        state.fail(request, "poison")
        return
    if request.device is not None and not promise_where_keys_are(state, request, firm=True):
        state.fail(request, "deadline")  # the body came too late
        return
    if request.deadline is not None and request.device is None:  # its device died
        promise_where_keys_are(state, request, firm=True)
    request.until = request.arrived + state.limits.patience
    state.enqueue(request)
    state.watch(request)


def promise_where_keys_are(state: State, request: Request, *, firm: bool) -> bool:
    """Whether a device that has, or loads, the keys of a request promises to meet its deadline."""
    devices = [one for one in state.homes(request.keys) if request.program in one.programs]
    devices.sort(key=lambda one: (one is not request.device, wait(state, one), one.name))
    return any(promise(state, one, request, firm=firm) == 0 for one in devices)


def _promise(state: State, request: Request, devices: list[Device]) -> float | None:
    """Has a device promise to meet the deadline of a request. Returns None, or by how many seconds
    the best device would be late. If no device has the keys and one has room for them, and nothing
    waits for that room, they are loaded at once."""
    late = float("inf")
    for device in sorted(devices, key=lambda one: (wait(state, one), one.name)):
        if request.keys.name in device.level:
            late = min(late, promise(state, device, request, firm=False))
        if not late:
            return None
    keys = request.keys
    for device in sorted(devices, key=lambda one: (wait(state, one), one.name)):
        if keys.name in device.level:
            continue
        leaving = None
        if not keys.kills and not device.crowded and may_load(state, device):
            leaving = room(state, device, keys, idle=True)
        before = 0.0 if device.loading is None else max(device.loading.until - state.now, 0.0)
        _, seconds = source(state, device.host, keys)
        ready = state.now + before + seconds
        found = late_by(state, device, request, firm=False, ready=ready)
        if leaving is not None and not found:
            load(state, device, keys, leaving)
            device.promise(request, state.cost(request.seconds, request.program, device))
            return None
        late = min(late, max(found, before + seconds) if leaving is None else found)
    return late


def _check(state: State, event: Arrived) -> None:
    if event.request in state.requests:
        raise InvalidArgument(f"{event.request} was admitted: give each request its own name")
    if event.program not in state.programs:
        raise InvalidArgument(f"the program {event.program} is not known: send ProgramAdded first")
    for name, value, low in (
        ("seconds", event.seconds, 0.0),
        ("weight", event.weight, 0.0),
        ("nbytes", event.nbytes, -1.0),
    ):
        if not (math.isfinite(value) and value > low):
            raise InvalidArgument(f"{name} is {value}: give a positive number")
    if event.deadline is not None and not math.isfinite(event.deadline):
        raise InvalidArgument("deadline is no time: give None if there is none")


def _overload(state: State, event: Arrived) -> tuple[Refusal, float | None] | None:
    """Why a request is too much, and when it may not be."""
    limits, total, own = state.limits, state.total, state.accounts[event.client]
    count = len(state.devices)
    clear = total.seconds / count  # until everything is answered
    bounds: tuple[tuple[float, float, float, float], ...] = (
        (own.requests, total.requests, 1, limits.requests),
        (own.nbytes, total.nbytes, event.nbytes, limits.nbytes),
        (own.seconds, total.seconds, event.seconds, limits.seconds * count),
    )
    for mine, all_of_them, more, bound in bounds:
        if more > bound:
            return "too_large", None
        over = excess(mine, all_of_them, more, bound)
        if over > 0:
            reason: Refusal = "full" if all_of_them + more > bound else "client"
            return reason, max(clear * min(1.0, over / all_of_them), _SOON)
    return None


def _refuse(state: State, event: Arrived, reason: Refusal, retry_after: float | None) -> None:
    state.tell(Refuse(event.request, reason, retry_after))


def offered(state: State, event: KeysOffered) -> None:
    """Reserves room on disk for keys, if those that nobody uses make room."""
    known = state.keys.get(event.key)
    if known is not None and not known.deleted:
        raise InvalidArgument(f"the keys {event.key} are known: send KeysDeleted first")
    if event.nbytes < 0:
        raise InvalidArgument(f"nbytes is {event.nbytes}: give a positive number")
    loading = {one.loading.keys.name for one in state.devices.values() if one.loading is not None}

    def rank(name: str) -> int | None:
        keys = state.keys[name]
        return 0 if keys.stored and not keys.users and name not in loading else None

    leaving = None if known is not None else state.disk.victims(event.nbytes, rank)
    if leaving is None:
        state.tell(Deny(event.key))
        return
    for name in leaving:
        _leave(state, state.keys[name])
    state.keys[event.key] = Keys(event.key, event.client, event.nbytes)
    state.disk.add(event.key, event.nbytes)
    state.tell(Grant(event.key))


def stored(state: State, event: KeysStored) -> None:
    """Lets requests use keys."""
    keys = state.keys.get(event.key)
    if keys is None:
        raise InvalidArgument(f"the keys {event.key} are not known: send KeysOffered first")
    keys.stored = True


def deleted(state: State, event: KeysDeleted) -> None:
    """Removes keys wherever they are, and answers the requests that need them."""
    keys = state.keys.get(event.key)
    if keys is None or keys.deleted:
        return
    for request in [one for one in state.requests.values() if one.keys is keys]:
        if request.state != "running":
            state.fail(request, "keys")
        elif not request.cancelled:
            state.abandon(request, Fail(request.name, "keys"))
    _leave(state, keys)


def _leave(state: State, keys: Keys) -> None:
    """Removes keys from every place where nothing uses them; from the others once they are free."""
    keys.deleted, keys.stored = True, False
    vacate(state, keys)
    state.disk.remove(keys.name)
    state.tell(Evict("disk", "", keys.name))


def vacate(state: State, keys: Keys) -> None:
    """Removes deleted keys from devices and hosts that do not use them, and forgets them if none is
    left."""
    busy = set()
    for device in state.homes(keys):
        running = device.running is not None and device.running.keys is keys
        if running or (device.loading is not None and device.loading.keys is keys):
            busy.add(device.host)
            continue
        remove(state, device, keys.name)
        state.tell(Evict("device", device.name, keys.name))
    for host, level in state.hosts.items():
        if keys.name in level and host not in busy:
            level.remove(keys.name)
            state.tell(Evict("host", host, keys.name))
    if not busy:
        del state.keys[keys.name]
