"""Random services: whatever happens, every admitted request is answered once, and no bound is
exceeded."""

from __future__ import annotations

import random

import pytest
from policy_world import CLOSE, World

from jali.serve.policy import Limits, events
from jali.serve.policy import decisions as decide


def random_world(seed: int, deadlines: bool = True, deaths: bool = True) -> World:
    """A service that ran, with what follows from a seed: clients, devices, memory, and what
    happens. Every request of it is answered."""
    rng = random.Random(seed)
    limits = Limits(
        seconds=rng.choice([2.0, 20.0, 200.0]),
        nbytes=rng.choice([100, 1000, 10**9]),
        requests=rng.choice([5, 1000]),
        host_bytes=rng.choice([100, 300, 10_000]),
        disk_bytes=rng.choice([400, 10_000]),
        host_rate=rng.choice([100.0, 1000.0, 1e9]),
        disk_rate=rng.choice([100.0, 1000.0, 1e9]),
        body_rate=rng.choice([100.0, 1e6]),
        turn=rng.choice([0.1, 1.0]),
        recent=rng.choice([0.1, 5.0]),
        body=rng.choice([1.0, 30.0]),
        attempts=rng.choice([3, 8]),
    )
    world = World(limits)
    world.conserving = not deadlines
    programs = ["p", "q"][: rng.choice([1, 1, 2])]
    for program in programs:
        world.program(program, rng.choice([1, 2, 4, 8]), rng.choice([0.0, 0.3, 1.0]))
    for index in range(rng.choice([1, 1, 2, 3])):
        offers = " ".join(programs) if rng.random() < 0.7 else rng.choice(programs)
        world.worker(f"w{index}", rng.choice([100, 150, 400]), f"h{rng.randrange(2)}", offers)
    clients = rng.choice([1, 2, 3, 6])
    for index in range(clients):
        world.keys(f"k{index}", f"c{index}", rng.choice([0, 20, 50, 90]))
        if rng.random() < 0.3:
            world.keys(f"l{index}", f"c{index}", rng.choice([20, 50]))
    if deaths and rng.random() < 0.5:
        world.slow = lambda batch: rng.choice([0.5, 1.0, 1.0, 2.0])
        if rng.random() < 0.2:
            world.deadly_keys.add("k0")
    names = sorted(world.owner)
    rates = rng.choice([0.02, 0.2, 1.0])
    for index in range(rng.choice([10, 40, 80])):
        world.run(world.now + rng.expovariate(1 / rates))
        happens = rng.random() if deaths else 0.0
        if happens < 0.85:
            nbytes = rng.choice([0, 1, 20])
            body = rng.choice([0.0, 0.0, nbytes / limits.body_rate])
            if deaths:
                body = rng.choice([body, body, 0.5, float("inf")])
            world.send(
                f"r{index}",
                rng.choice(names),
                rng.choice([0.01, 0.1, 0.1, 0.5]),
                program=rng.choice(programs),
                nbytes=nbytes,
                body=body,
                within=rng.choice([None, 0.3, 1.0, 5.0]) if deadlines else None,
                weight=rng.choice([0.5, 1.0, 4.0]),
                deadly=deaths and rng.random() < 0.03,
                digest=rng.choice(["", f"d{index}"]),
            )
        elif happens < 0.90:
            world.kill(
                rng.choice(sorted(world.machines)), rng.choice([0.0, 0.5, 5.0]), rng.random() < 0.5
            )
        elif happens < 0.95 and world.open:
            world.cancel(rng.choice(sorted(world.open)))
        elif happens < 0.97:
            key = rng.choice(names)
            world.tell(events.KeysDeleted(key))
            if key not in world.policy._state.keys:
                world.keys(key, world.owner[key], rng.choice([0, 20, 50, 90]))
        elif happens < 0.98:
            machine = world.machines[rng.choice(sorted(world.machines))]
            if machine.alive and machine.batch is not None:
                for name in machine.batch.requests:
                    world.running.discard(name)
                world._finished(machine, ok=False)
        else:
            world.tell(events.Tick())
    world.run()
    assert not world.open and not world.policy.pending and world.policy.wake is None
    assert all(one.answer is not None for one in world.sent.values())
    return world


@pytest.mark.parametrize("part", range(10))
def test_every_request_is_answered_once_whatever_happens(part: int) -> None:
    kinds: set[str] = set()
    for _ in range(200):
        world = random_world(random.randrange(2**62))
        for one in world.sent.values():
            assert one.deaths <= world.limits.attempts
            assert isinstance(one.answer, (decide.Reply, decide.Fail, decide.Drop, decide.Refuse))
            kinds.add(getattr(one.answer, "reason", type(one.answer).__name__))
    assert {"Reply", "Drop", "poison", "client", "deadline", "keys", "body"} <= kinds


@pytest.mark.parametrize("part", range(5))
def test_no_device_idles_while_a_request_waits(part: int) -> None:
    """World checks it after every event."""
    for _ in range(200):
        world = random_world(random.randrange(2**62), deadlines=False, deaths=False)
        for one in world.sent.values():
            assert isinstance(one.answer, (decide.Reply, decide.Refuse))


@pytest.mark.parametrize("part", range(10))
def test_every_deadline_is_met_or_refused(part: int) -> None:
    """If predictions are right, bodies come as fast as they should, and nothing dies."""
    met = refused = 0
    for _ in range(200):
        seed = random.randrange(2**62)
        world = random_world(seed, deaths=False)
        for one in world.sent.values():
            if one.deadline is not None:
                assert isinstance(one.answer, (decide.Reply, decide.Refuse)), (seed, one)
                if isinstance(one.answer, decide.Reply):
                    met += 1
                    assert one.answered <= one.deadline + CLOSE
                else:
                    refused += 1
            else:
                assert isinstance(one.answer, (decide.Reply, decide.Refuse)), (seed, one)
    assert met > 500 and refused > 500


def test_the_same_events_give_the_same_decisions() -> None:
    for seed in range(50):
        assert random_world(seed).log == random_world(seed).log
