"""Which batch a device computes next."""

from __future__ import annotations

from jali.serve.policy.decisions import Dispatch
from jali.serve.policy.promises import keeps
from jali.serve.policy.state import Batch, Device, Keys, Request, State

__all__ = ["dispatch"]


def dispatch(state: State, device: Device) -> None:
    """Begins a batch on a device that computes nothing, if there is one that it may compute.

    The client is the one with the smallest tag. If its request would break a promise, the next
    client's turn comes, and if all would, the promised request with the earliest deadline.
    """
    if device.running is not None or device.hold:
        return
    if device.loading is not None and device.loading.keys.kills:
        return
    device.blocked = 0.0
    heads = []
    for name in device.level:
        keys = state.keys[name]
        if keys.waiting and device.has(keys):
            request = next((one for one in keys.waiting if _may_run(device, one)), None)
            if request is not None:
                heads.append(request)
    heads.sort(key=lambda one: (one.account.tag, one.number))
    for head in heads:
        cost = state.cost(head.seconds, head.program, device)
        if keeps(device, [head], state.now, cost):
            _start(state, device, _fill(state, device, head), fair=True)
            return
        elsewhere = head.device is not None and head.device is not device
        if head is heads[0] and not elsewhere:
            device.blocked = cost
    for request in device.promised:
        if request.state == "waiting" and device.has(request.keys) and _may_run(device, request):
            _start(state, device, [request], fair=False)
            return


def _may_run(device: Device, request: Request) -> bool:
    """Whether a device that has the keys may compute a request now."""
    if request.program not in device.programs:
        return False
    return not request.suspect or device.loading is None


def _fill(state: State, device: Device, head: Request) -> list[Request]:
    """A batch that begins with a request: those that wait with its keys for its program."""
    program, batch = state.programs[head.program], [head]
    if head.alone:
        return batch
    short = state.contended(head.account)
    costs = [state.cost(head.seconds, head.program, device)]
    for request in head.keys.waiting:
        if len(batch) == program.max_batch:
            break
        if request is head or request.alone or request.program != head.program:
            continue
        more = [*costs, state.cost(request.seconds, request.program, device)]
        seconds = program.seconds(more)
        if short and seconds > state.limits.stretch * costs[0]:
            break
        if not keeps(device, [*batch, request], state.now, seconds):
            break
        batch.append(request)
        costs = more
    return batch


def _start(state: State, device: Device, requests: list[Request], fair: bool) -> None:
    """Begins a batch and charges its client. `fair`: its turn has come."""
    head = requests[0]
    keys: Keys = head.keys
    program, account = state.programs[head.program], head.account
    plain = program.seconds([one.seconds for one in requests])
    cost = state.cost(plain, head.program, device)
    if fair:
        state.virtual = max(state.virtual, account.tag)
    account.tag += cost / account.weight
    for request in requests:
        state.dequeue(request)
        request.state = "running"
        if request.device is not None:
            request.device.release(request)
    batch = Batch(state.next_number(), tuple(requests), keys, head.program, state.now, cost, plain)
    device.running = batch
    device.served[keys.name] = device.served.get(keys.name, 0.0) + cost
    device.level.refresh(keys.name)
    if keys.name in state.hosts[device.host]:
        state.hosts[device.host].refresh(keys.name)
    names = tuple(one.name for one in requests)
    state.tell(Dispatch(device.name, batch.number, head.program, keys.name, names, cost))
