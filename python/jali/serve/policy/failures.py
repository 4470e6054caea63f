"""What ends: batches, workers, loads, and the patience of clients."""

from __future__ import annotations

import heapq

from jali.serve.policy.admission import promise_where_keys_are, vacate
from jali.serve.policy.decisions import Drop, Evict
from jali.serve.policy.events import (
    Cancelled,
    Finished,
    KeysFailed,
    KeysLeft,
    KeysLoaded,
    WorkerDied,
)
from jali.serve.policy.loading import remove
from jali.serve.policy.state import ROUNDING, Batch, Device, Keys, State

__all__ = ["cancelled", "died", "expire", "finished", "keys_failed", "keys_left", "keys_loaded"]


def _settle(state: State, device: Device) -> Batch | None:
    """Ends the batch of a device. Its client was charged what was predicted, and is charged what it
    took from now on."""
    batch, device.running = device.running, None
    if batch is not None:
        more = state.now - batch.started - batch.cost
        account = batch.requests[0].account
        account.tag += more / account.weight
        if batch.keys.name in device.served:
            device.served[batch.keys.name] += more
    return batch


def finished(state: State, event: Finished) -> None:
    """Replies to the requests of a batch. One that failed is done again, each request alone, unless
    it is known which requests failed."""
    device = state.devices.get(event.worker)
    if device is None or device.running is None or device.running.number != event.batch:
        return  # the worker died before, as far as the policy knows
    batch = _settle(state, device)
    assert batch is not None
    if event.ok and not event.failed:
        state.measured(device, batch)
    for request in batch.requests:
        own = request.name in event.failed
        if request.cancelled or (event.ok and not own):
            state.reply(request)
        elif own or len(batch.requests) == 1:
            state.fail(request, "error")
        else:
            request.alone = True
            state.again(request)
    if batch.keys.deleted:
        vacate(state, batch.keys)


def died(state: State, event: WorkerDied) -> None:
    """Takes a device out, and has its requests computed elsewhere, or again."""
    device = state.devices.pop(event.worker, None)
    if device is None:
        return
    batch, loading = _settle(state, device), device.loading
    promised = list(device.promised)
    for request in promised:
        device.release(request)
    if loading is not None:
        if loading.fresh and loading.keys.name in state.hosts[device.host]:  # it may be cut off
            state.hosts[device.host].remove(loading.keys.name)
            state.tell(Evict("host", device.host, loading.keys.name))
        if event.blame:
            loading.keys.kills += 1
            if loading.keys.kills >= state.limits.kills:
                _give_up(state, loading.keys, poison=True)
    for request in () if batch is None else batch.requests:
        request.deaths += 1
        if event.blame:
            request.kills += 1
            request.alone = True
        if request.cancelled:
            state.end(request, None)
        elif request.kills >= state.limits.kills:
            state.quarantine(request.digest)
            state.fail(request, "poison")
        elif request.deaths >= state.limits.attempts:
            state.fail(request, "attempts")
        else:
            state.again(request)
    for request in promised:
        if state.requests.get(request.name) is request:
            promise_where_keys_are(state, request, firm=request.state == "waiting")
    for keys in (batch and batch.keys, loading and loading.keys):
        if keys and keys.deleted and keys.name in state.keys:
            vacate(state, keys)


def _give_up(state: State, keys: Keys, poison: bool) -> None:
    """Answers all requests that wait for keys that cannot be loaded."""
    for request in [one for one in state.requests.values() if one.keys is keys]:
        if request.state != "running":
            state.fail(request, "poison" if poison else "keys")


def keys_loaded(state: State, event: KeysLoaded) -> None:
    """Lets a device use keys."""
    device = state.devices.get(event.worker)
    if device is None or device.loading is None or device.loading.keys.name != event.key:
        return
    keys, device.loading = device.loading.keys, None
    keys.failures = 0
    if keys.deleted:
        vacate(state, keys)
        return
    if keys.waiting and sum(one.has(keys) for one in state.homes(keys)) == 1:
        # What others were served while these keys were on their way is not owed to their client.
        account = keys.waiting[0].account
        account.tag = max(account.tag, state.virtual)


def keys_failed(state: State, event: KeysFailed) -> None:
    """Frees the room of keys that could not be loaded. At the second time in a row their requests
    are answered."""
    device = state.devices.get(event.worker)
    if device is None or device.loading is None or device.loading.keys.name != event.key:
        return
    loading, device.loading = device.loading, None
    keys = loading.keys
    if loading.fresh and keys.name in state.hosts[device.host]:
        state.hosts[device.host].remove(keys.name)
        state.tell(Evict("host", device.host, keys.name))
    _lost(state, device, keys)
    keys.failures += 1
    if keys.failures >= state.limits.kills:
        keys.failures = 0
        _give_up(state, keys, poison=False)
    if keys.deleted:
        vacate(state, keys)


def keys_left(state: State, event: KeysLeft) -> None:
    """Frees the room of keys that left a device by themselves."""
    device, keys = state.devices.get(event.worker), state.keys.get(event.key)
    if device is None or keys is None or not device.has(keys):
        return
    if device.running is not None and device.running.keys is keys:
        return  # the batch ends first, and says how
    _lost(state, device, keys)


def _lost(state: State, device: Device, keys: Keys) -> None:
    """Takes keys from a device, with the promises that need them."""
    remove(state, device, keys.name)
    for request in [one for one in device.promised if one.keys is keys]:
        device.release(request)
        promise_where_keys_are(state, request, firm=request.state == "waiting")


def cancelled(state: State, event: Cancelled) -> None:
    """Forgets a request, and ends its batch if nobody waits for it."""
    request = state.requests.get(event.request)
    if request is None or request.cancelled:
        return
    if request.state == "running":
        state.abandon(request, Drop(request.name))
    else:
        state.end(request, Drop(request.name))


def expire(state: State) -> None:
    """Answers requests whose time is over."""
    while state.timers and state.timers[0][0] <= state.now:
        _, number, name = heapq.heappop(state.timers)
        request = state.requests.get(name)
        if request is None or request.number != number or request.state == "running":
            continue
        if request.deadline is not None and state.now + request.cost > request.deadline + ROUNDING:
            state.fail(request, "deadline")
        elif state.now >= request.until:
            state.fail(request, "body" if request.state == "reserved" else "patience")
