"""Which keys go to which device, and which leave for them."""

from __future__ import annotations

from jali.serve.policy.decisions import Evict, Load
from jali.serve.policy.promises import turn
from jali.serve.policy.state import Device, Keys, Loading, State

__all__ = ["load", "may_load", "plan", "remove", "room", "source", "wait"]


def wait(state: State, device: Device) -> float:
    """For how many seconds a request waits on a device, about: what runs or loads, and a part of
    what waits for each of its keys, as other devices with these keys compute the rest."""
    seconds = device.free_at(state.now) - state.now
    for name in device.level:
        keys = state.keys[name]
        if keys.waiting:
            ready = device.ready_at(keys, state.now)
            seconds = max(seconds, (ready or 0.0) - state.now)
    for name in device.level:
        keys = state.keys[name]
        if keys.waiting:
            seconds += keys.seconds / sum(1 for _ in state.homes(keys))
    return seconds


def room(state: State, device: Device, keys: Keys, idle: bool) -> list[str] | None:
    """Which keys must leave a device for others, or None if they cannot come now.

    Keys stay that are in use, that come, that are promised, and those that have not had their turn
    although requests wait that the device could compute with them.

    idle: keys stay in any case that the device could compute waiting requests with.
    """
    promised = {one.keys.name for one in device.promised}

    def rank(name: str) -> int | None:
        other = state.keys[name]
        if name in promised or (device.running is not None and device.running.keys is other):
            return None
        if device.loading is not None and device.loading.keys is other:
            return None
        if not any(one.program in device.programs for one in other.waiting):
            return 0
        had_turn = device.served.get(name, 0.0) >= turn(state, other.nbytes)
        return 1 if had_turn and not idle else None

    return device.level.victims(keys.nbytes, rank)


def remove(state: State, device: Device, name: str) -> None:
    """Takes keys from what a device has."""
    device.level.remove(name)
    device.served.pop(name, None)


def load(state: State, device: Device, keys: Keys, leaving: list[str]) -> None:
    """Has a device load keys, after others left."""
    for name in leaving:
        remove(state, device, name)
        state.tell(Evict("device", device.name, name))
    host = state.hosts[device.host]
    from_host, seconds = source(state, device.host, keys)
    fresh = keys.name not in host and _keep(state, device.host, keys)
    device.level.add(keys.name, keys.nbytes)
    device.served[keys.name] = 0.0
    device.loading = Loading(keys, state.now + seconds, fresh)
    if from_host:
        host.refresh(keys.name)
    state.disk.refresh(keys.name)
    state.tell(Load(device.name, keys.name, "host" if from_host else "disk", fresh, seconds))


def source(state: State, host: str, keys: Keys) -> tuple[bool, float]:
    """Whether keys come from a host's memory, and how many seconds they take to a device there."""
    from_host = keys.name in state.hosts[host] and not _moving(state, host).get(keys.name, False)
    return from_host, state.limits.load_seconds(keys.nbytes, from_host)


def _moving(state: State, host: str) -> dict[str, bool]:
    """The keys that devices of a host load, and whether they come into its memory only now."""
    found: dict[str, bool] = {}
    for one in state.devices.values():
        if one.loading is not None and one.host == host:
            name = one.loading.keys.name
            found[name] = found.get(name, False) or one.loading.fresh
    return found


def _keep(state: State, host: str, keys: Keys) -> bool:
    """Whether a host has room for keys, which it makes."""
    level, moving = state.hosts[host], _moving(state, host)
    leaving = level.victims(keys.nbytes, lambda name: None if name in moving else 0)
    if leaving is None:
        return False
    for name in leaving:
        level.remove(name)
        state.tell(Evict("host", host, name))
    level.add(keys.name, keys.nbytes)
    return True


def plan(state: State, copies: bool) -> None:
    """Begins to load what is wanted, for the client first whose turn it is.

    Keys that no device has wait for room at the head of the devices that could take them, so that
    small keys do not pass them for ever. Keys that a device has go to another one, too, if that
    saves more than they take to load.

    copies: whether keys go to a further device now.
    """
    for device in state.devices.values():
        device.crowded = device.hold = False
    open_devices = [one for one in state.devices.values() if may_load(state, one)]
    if not open_devices:
        return
    order = sorted(
        state.wanted.values(),
        key=lambda keys: (state.accounts[keys.client].tag, keys.waiting[0].number),
    )
    for keys in order:
        if not open_devices:
            return
        homes = list(state.homes(keys))
        programs = {one.program for one in keys.waiting}
        missing = {one for one in programs if not any(one in home.programs for home in homes)}
        able = [
            one
            for one in open_devices
            if keys.name not in one.level
            and (missing or programs) & one.programs
            and keys.nbytes <= one.level.capacity
        ]
        taken: list[Device] = []
        if missing:
            taken = _first(state, keys, able)
        elif copies:
            taken = _copy(state, keys, able)
        open_devices = [one for one in open_devices if one not in taken]


def may_load(state: State, device: Device) -> bool:
    """Whether nothing loads, and no request that may have killed a worker runs or could run."""
    if device.loading is not None:
        return False
    if device.running is not None and any(one.suspect for one in device.running.requests):
        return False
    return not any(
        one.suspect and one.program in device.programs
        for name in device.level
        if state.keys[name].suspects
        for one in state.keys[name].waiting
    )


def _first(state: State, keys: Keys, able: list[Device]) -> list[Device]:
    """Loads keys that no device has. Returns the devices that load nothing else now."""
    if keys.kills and any(one.running is not None for one in able):
        free = [one for one in able if one.running is None]
        if not free:
            for device in able:
                device.hold = True
            return able
        able = free
    rooms = [
        (one, leaving) for one in able if (leaving := room(state, one, keys, False)) is not None
    ]
    if not rooms:
        for device in able:
            device.crowded = True
        return able

    def order(pair: tuple[Device, list[str]]) -> tuple[bool, float, int, str]:
        device, leaving = pair
        wanted = any(state.keys[name].waiting for name in leaving)
        return wanted, wait(state, device), len(leaving), device.name

    device, leaving = min(rooms, key=order)
    load(state, device, keys, leaving)
    return [device]


def _copy(state: State, keys: Keys, able: list[Device]) -> list[Device]:
    """Loads keys that a device has on further ones, as long as their last request begins sooner
    there. Returns these devices."""
    taken: list[Device] = []
    if keys.kills:
        return taken
    for device in sorted(able, key=lambda one: (wait(state, one), one.name)):
        seconds = min(wait(state, one) for one in state.homes(keys)) - keys.waiting[-1].seconds
        _, needed = source(state, device.host, keys)
        if seconds - wait(state, device) > needed:
            leaving = room(state, device, keys, True)
            if leaving is not None:
                load(state, device, keys, leaving)
                taken.append(device)
    return taken
