"""What the scheduling policy does when something breaks: workers, keys, batches and patience."""

from __future__ import annotations

import numpy as np
import pytest
from policy_world import latencies, reason, world

from jali.serve.policy import Policy, events
from jali.serve.policy import decisions as decide


def test_nothing_waits_for_ever() -> None:
    made = world(patience=50.0)
    made.send("a", "small", 1.0)
    made.run(0.5)
    made.kill("gpu0", back=1000.0)
    made.run(60.0)
    assert reason(made.sent["a"]) == "patience" and made.sent["a"].answered == pytest.approx(50.0)


def test_cancelled_requests_are_dropped_and_batches_stopped() -> None:
    made = world(batch=4, marginal=0.5)
    for name in "abcde":
        made.send(name, "flood", 1.0)
    made.run(0.5)
    made.cancel("b")
    assert isinstance(made.sent["b"].answer, decide.Drop)
    running = made.machines["gpu0"].batch
    assert running is not None
    for name in running.requests:
        assert not any(isinstance(one, decide.Stop) for _, one in made.log)
        made.cancel(name)
    assert any(isinstance(one, decide.Stop) for _, one in made.log)
    made.run()
    assert made.now < 3.5 and not made.policy.pending
    made.cancel("a")  # has no effect any more


def test_a_request_that_kills_is_not_given_a_third_worker() -> None:
    made = world(workers=2, batch=4, marginal=0.5)
    made.send("before", "flood", 0.1)
    made.run()
    for name in "abcd":
        made.send(name, "flood", 1.0, deadly=name == "c", digest=f"digest {name}")
    made.send("s", "small", 0.1)
    made.run()
    assert reason(made.sent["c"]) == "poison" and made.sent["c"].deaths == 2
    assert all(isinstance(made.sent[name].answer, decide.Reply) for name in "abds")
    again = made.send("again", "flood", 1.0, digest="digest c")
    assert reason(again) == "poison"
    assert isinstance(again.answer, decide.Fail)


@pytest.mark.parametrize("workers", [1, 2])
def test_keys_that_kill_are_not_given_a_third_worker(workers: int) -> None:
    """What was computed beside them is computed again alone, and is not blamed twice."""
    made = world(workers, disk_rate=1e7, host_rate=1e9)  # they take a second
    made.send("first", "small", 0.1)
    made.run()
    made.deadly_keys.add("flood")
    for index in range(50):
        made.send(f"s{index}", "small", 0.3)
    for index in range(5):
        made.send(f"f{index}", "flood", 0.1)
    made.run()
    assert sum(one.life for one in made.machines.values()) == workers + 2 * 2
    assert {reason(made.sent[f"f{index}"]) for index in range(5)} == {"poison"}
    assert len(latencies(made, "small")) == 51
    assert max(one.deaths for one in made.sent.values() if one.client == "small") == 1
    assert reason(made.send("more", "flood", 0.1)) == "poison"


def test_keys_that_may_have_killed_are_loaded_while_nothing_runs() -> None:
    """So that what runs beside them cannot have them blamed again."""
    made = world(disk_rate=1e7, host_rate=1e7)
    made.conserving = False
    made.send("a", "flood", 5.0)
    made.run(2.5)
    made.send("b", "small", 1.0)  # its keys are on their way while "a" runs
    machine = made.machines["gpu0"]
    assert machine.batch is not None and machine.loading == "small"
    made.kill("gpu0", blame=True)
    made.cancel("a")
    made.cancel("b")
    made.run(3.6)  # the worker is back
    made.send("c", "flood", 5.0)
    made.send("d", "flood", 5.0)
    made.run(7.0)
    made.send("e", "small", 1.0)
    assert machine.batch is not None and machine.batch.requests == ("c",)
    assert machine.loading is None
    made.run(11.0)
    assert machine.batch is None and machine.loading == "small"
    made.run()
    assert all(isinstance(made.sent[name].answer, decide.Reply) for name in "cde")


def test_a_request_that_may_have_killed_runs_while_nothing_loads() -> None:
    made = world(workers=2, disk_rate=1e7, host_rate=1e9)
    made.conserving = False
    for index in range(40):
        made.send(f"f{index}", "flood", 0.2)
    made.run(4.0)  # both devices have these keys
    made.run()
    made.keys("slow", "slow", 100_000_000)
    made.send("x", "flood", 1.0)
    made.run(made.now + 0.1)
    first = next(one for one in made.machines.values() if one.batch is not None)
    other = next(one for one in made.machines.values() if one is not first)
    assert set(other.keys) == {"flood"}
    made.send("y", "slow", 0.1)
    assert other.loading == "slow"
    made.kill(first.name, back=100.0, blame=True)
    assert other.batch is None
    made.run(made.now + 9.0)
    assert other.batch is None and other.loading == "slow"
    made.run(made.now + 1.5)
    assert other.batch is not None or isinstance(made.sent["x"].answer, decide.Reply)
    made.run()
    assert all(isinstance(made.sent[name].answer, decide.Reply) for name in "xy")


def test_keys_that_cannot_be_loaded_are_tried_twice() -> None:
    made = world()
    sent = made.send("f", "flood", 0.1)
    machine = made.machines["gpu0"]
    for _ in range(2):
        assert machine.loading == "flood" and sent.answer is None
        machine.life += 1  # what was to happen does not
        machine.loading = None
        del machine.keys["flood"]
        made.tell(events.KeysFailed("gpu0", "flood"))
    assert reason(sent) == "keys" and machine.loading is None


def test_keys_that_left_by_themselves_are_loaded_again() -> None:
    made = world()
    made.send("a", "flood", 0.1)
    made.run()
    del made.machines["gpu0"].keys["flood"]
    made.tell(events.KeysLeft("gpu0", "flood"))
    made.send("b", "flood", 0.1)
    made.run()
    assert len(latencies(made, "flood")) == 2


def test_two_hundred_requests_of_four_clients_while_workers_are_killed() -> None:
    """A random one every two seconds, from outside."""
    made = world(workers=2, batch=4, marginal=0.6)
    rng = np.random.default_rng()
    for client in range(4):
        made.keys(f"k{client}", f"c{client}", 12_000_000)
    for index in range(200):
        made.at(index * 0.1, lambda i=index: made.send(f"{i}", f"k{i % 4}", 0.28))  # type: ignore[misc]
    for index in range(60):
        name = f"gpu{rng.integers(2)}"
        made.at(2.0 * index, lambda w=name: made.kill(w))  # type: ignore[misc]
    made.run()
    assert all(isinstance(one.answer, decide.Reply) for one in made.sent.values())
    assert sum(one.deaths for one in made.sent.values()) > 10


def test_deaths_without_end_have_an_end() -> None:
    made = world(attempts=3)
    made.send("a", "small", 10.0)
    for _ in range(3):
        made.run(made.now + 2.0)
        made.kill("gpu0", back=0.5)
    assert reason(made.sent["a"]) == "attempts" and made.sent["a"].deaths == 3


def test_a_batch_that_fails_is_done_again_one_by_one() -> None:
    made = world(batch=4, marginal=0.5)
    for name in "abcd":
        made.send(name, "flood", 1.0)
    made.run(0.5)
    # "a" ran alone when it came, if its keys were there; take the batch that runs now.
    made.run(1.2)
    machine = made.machines["gpu0"]
    assert machine.batch is not None and len(machine.batch.requests) > 1
    names = machine.batch.requests
    made._finished(machine, ok=False)
    for name in names:
        assert machine.batch is not None and machine.batch.requests == (name,)
        made.run(made.now + 0.3)
        made._finished(machine, ok=name != names[1])
    assert [reason(made.sent[names[1]])] == ["error"]
    assert all(isinstance(made.sent[one].answer, decide.Reply) for one in names if one != names[1])


def test_requests_at_fault_in_a_batch_fail_alone() -> None:
    """The others have their results, and the time of such a batch says nothing of a device."""
    events_of = (
        events.ProgramAdded("p", max_batch=4),
        events.WorkerStarted("gpu0", "here", 1 << 30, frozenset({"p"})),
        events.KeysOffered("k", "ann", 1000),
        events.KeysStored("k"),
        *(events.Arrived(name, "ann", "p", "k", 1.0, 10) for name in "abcd"),
        *(events.Received(name) for name in "abcd"),
    )
    policy = Policy()
    for event in events_of:
        policy.handle(event, 0.0)
    batch = policy.handle(events.KeysLoaded("gpu0", "k"), 1.0)[-1]
    assert isinstance(batch, decide.Dispatch) and batch.requests == tuple("abcd")
    assert batch.seconds == 4.0
    policy.handle(events.Cancelled("d"), 1.0)
    done = events.Finished("gpu0", batch.batch, failed=frozenset("bd"))
    found = policy.handle(done, 1.001)
    assert found == [decide.Reply("a"), decide.Fail("b", "error"), decide.Reply("c")]
    for name in "ef":
        policy.handle(events.Arrived(name, "ann", "p", "k", 1.0, 10), 2.0)
    [again] = policy.handle(events.Received("e"), 2.0)
    assert isinstance(again, decide.Dispatch) and again.seconds == 1.0
