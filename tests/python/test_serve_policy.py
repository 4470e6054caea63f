"""The rules of the scheduling policy, each on a virtual clock."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from policy_world import SERVICE, World, latencies, rate, reason, world

import jali
from jali.serve.policy import Limits, Policy, events
from jali.serve.policy import decisions as decide
from jali.serve.policy.level import Level
from jali.serve.policy.shares import excess


@pytest.mark.parametrize(
    ("workers", "batch", "marginal"), [(1, 1, 1.0), (1, 8, 0.38), (3, 8, 0.38)]
)
@pytest.mark.parametrize("within", [None, 3.0])
def test_a_flood_of_twenty_to_one_does_not_starve(
    workers: int, batch: int, marginal: float, within: float | None
) -> None:
    """The flood asks for five times what the devices can do one by one, with or without deadlines,
    and the small client for a quarter, which is below its half."""
    made = world(workers, batch, marginal, seconds=10.0)
    made.conserving = within is None
    rng = np.random.default_rng()
    gap = SERVICE / 5 / workers
    for index in range(1200):
        made.run(made.now + float(rng.exponential(gap)))
        made.send(f"f{index}", "flood", SERVICE, within=within)
        if index % 20 == 10:
            made.send(f"s{index}", "small", SERVICE)
    made.run()
    assert np.percentile(latencies(made, "small"), 95) <= 3 * SERVICE
    refused = [one for one in made.sent.values() if isinstance(one.answer, decide.Refuse)]
    assert refused and {reason(one) for one in refused} <= {"client", "deadline"}
    served = [one for one in made.sent.values() if isinstance(one.answer, decide.Reply)]
    assert all(one.deadline is None or one.answered <= one.deadline + 1e-5 for one in served)


def test_seconds_are_shared_by_weight_and_not_by_requests() -> None:
    """Three clients that never stop: one asks for ten times longer requests, one has weight 3."""
    made = world(seconds=1000.0)
    made.keys("heavy", "heavy", 10)
    for index in range(300):
        made.send(f"f{index}", "flood", 0.1)
        made.send(f"h{index}", "heavy", 0.1, weight=3.0)
        if index < 40:
            made.send(f"s{index}", "small", 1.0)
    made.run(40.0)
    flood, heavy, small = (rate(made, name) for name in ("flood", "heavy", "small"))
    assert abs(flood + heavy + small - 40) <= 1.0
    assert abs(flood - 8) <= 1.1 and abs(small - 8) <= 1.1 and abs(heavy - 24) <= 1.1


def test_what_was_used_while_nobody_else_was_there_is_not_held_against_a_client() -> None:
    made = world()
    for index in range(50):
        made.send(f"f{index}", "flood", 0.1)
    made.run()
    for index in range(20):
        made.send(f"g{index}", "flood", 0.1)
        made.send(f"s{index}", "small", 0.1)
    made.run(made.now + 2.0)
    assert abs(rate(made, "flood") - 5.0 - 1.0) <= 0.25


def test_a_client_is_charged_what_was_measured() -> None:
    """One client's requests take three times what they were predicted to take."""
    made = world(seconds=1000.0)
    made.slow = lambda batch: 3.0 if batch.key == "flood" else 1.0
    for index in range(100):
        made.send(f"f{index}", "flood", 0.1)
        made.send(f"s{index}", "small", 0.1)
    made.run(10.0)
    assert abs(3 * rate(made, "flood") - 5) <= 0.5 and abs(rate(made, "small") - 5) <= 0.5


def test_batches_are_of_one_client_and_grow_to_their_size() -> None:
    made = world(batch=4, marginal=0.5, recent=0.5)
    made.send("first", "flood", 0.1)
    made.run(0.05)  # its keys are there, and it runs
    for index in range(9):
        made.send(f"f{index}", "flood", 0.1)
    made.run()
    sizes = [len(one.requests) for _, one in made.log if isinstance(one, decide.Dispatch)]
    seconds = [one.seconds for _, one in made.log if isinstance(one, decide.Dispatch)]
    assert sizes == [1, 4, 4, 1] and np.allclose(seconds, [0.1, 0.25, 0.25, 0.1])


def test_batches_are_short_while_another_client_is_about() -> None:
    made = world(batch=8, marginal=0.5, recent=1.0)
    made.send("s", "small", 0.1)
    for index in range(24):
        made.send(f"f{index}", "flood", 0.1)
    made.run()
    batches = [(t, one) for t, one in made.log if isinstance(one, decide.Dispatch)]
    early = [len(one.requests) for t, one in batches if t < 1.0 and one.key == "flood"]
    late = [len(one.requests) for t, one in batches if t > 1.0]
    assert early and set(early) <= {1, 3} and late[0] == 8  # 3: 0.1 + 2 * 0.05 = 2 * 0.1


def test_a_request_goes_to_the_device_with_its_keys() -> None:
    made = world(workers=2, host_rate=1e6, disk_rate=1e6)  # keys of 10 MB take 20 s
    made.send("a", "flood", 0.1)
    made.run()
    for index in range(20):
        made.send(f"b{index}", "flood", 0.1)
        made.run(made.now + 0.5)
    made.run()
    assert sum(isinstance(one, decide.Load) for _, one in made.log) == 1
    assert len({one.worker for _, one in made.log if isinstance(one, decide.Dispatch)}) == 1


def test_keys_go_to_a_second_device_once_waiting_takes_longer() -> None:
    """They take 1 s from the host."""
    made = world(workers=2, host_rate=1e7, disk_rate=1e7)
    made.send("a", "flood", 0.1)
    made.run()
    for index in range(9):
        made.send(f"b{index}", "flood", 0.1)
    assert sum(isinstance(one, decide.Load) for _, one in made.log) == 1
    for index in range(30):
        made.send(f"c{index}", "flood", 0.1)
    loads = [one for _, one in made.log if isinstance(one, decide.Load)]
    assert [one.source for one in loads] == ["disk", "host"]
    assert loads[0].worker != loads[1].worker
    made.run()
    assert min(machine.busy for machine in made.machines.values()) > 1.0


def test_keys_load_beside_the_work_of_others() -> None:
    """Large keys take 10 s, in which a client with small ones is served as before."""
    made = world(disk_rate=1e9, host_rate=1e9)
    made.keys("large", "new", 5_000_000_000)
    made.send("s", "small", 0.1)
    made.run()
    made.send("n", "large", 0.1)
    for index in range(50):
        made.send(f"s{index}", "small", 0.1)
        made.run(made.now + 0.15)
    assert max(latencies(made, "small")[1:]) <= 0.1 + 1e-9
    made.run()
    assert isinstance(made.sent["n"].answer, decide.Reply)


def test_the_least_recently_used_keys_leave() -> None:
    made = World(Limits(host_bytes=250))
    made.program("p")
    made.worker("gpu0", capacity=200)
    for name in "abcd":
        made.keys(name, name, 100)
    for index, name in enumerate("abac"):
        made.send(f"{index}", name, 0.1)
        made.run()
    evicted = [(one.level, one.key) for _, one in made.log if isinstance(one, decide.Evict)]
    assert evicted == [("device", "b"), ("host", "b")]
    made.send("d", "d", 0.1)
    made.run()
    evicted = [(one.level, one.key) for _, one in made.log if isinstance(one, decide.Evict)]
    assert evicted[2:] == [("device", "a"), ("host", "a")]


def test_keys_have_their_turn_before_others_take_their_place() -> None:
    """Four clients that never stop, and room for the keys of two."""
    made = World(Limits(turn=1.0, seconds=1000.0))
    made.program("p")
    made.worker("gpu0", capacity=200)
    for name in "abcd":
        made.keys(name, name, 100)
    for index in range(100):
        for name in "abcd":
            made.send(f"{name}{index}", name, 0.1)
    made.run(20.0)
    loads = [t for t, one in made.log if isinstance(one, decide.Load)]
    assert 8 <= len(loads) <= 24
    assert all(rate(made, name) >= 4.0 for name in "abcd")


def test_large_keys_are_not_passed_by_small_ones_for_ever() -> None:
    made = World(Limits(turn=0.2, seconds=1000.0))
    made.program("p")
    made.worker("gpu0", capacity=100)
    made.keys("large", "large", 100)
    for index in range(8):
        made.keys(f"k{index}", f"c{index}", 30)
    for index in range(40):
        for client in range(8):
            made.send(f"{client}-{index}", f"k{client}", 0.1)
    made.send("x", "large", 0.1)
    made.run(6.0)
    assert isinstance(made.sent["x"].answer, decide.Reply)


def test_promises_do_not_keep_others_from_the_device() -> None:
    """One client's requests all have deadlines, without a pause, and no room is left for the keys
    of another one."""
    made = World(Limits(turn=0.5))
    made.conserving = False
    made.program("p")
    made.worker("gpu0", capacity=100)
    made.keys("a", "ann", 80)
    made.keys("b", "bob", 80)
    for index in range(200):
        made.send(f"a{index}", "a", 0.1, within=1.5)
        if index == 60:
            made.send("b", "b", 0.1)
        made.run(made.now + 0.05)
    assert isinstance(made.sent["b"].answer, decide.Reply)
    assert made.sent["b"].answered - made.sent["b"].arrived <= 3.0
    made.run()
    late = [one for one in made.sent.values() if isinstance(one.answer, decide.Fail)]
    assert not late and rate(made, "ann") > 4.0


def test_promises_do_not_keep_a_long_request_from_its_turn() -> None:
    """It takes longer than all deadlines that others ask for without a pause."""
    made = world()
    made.conserving = False
    for client in range(3):
        made.keys(f"k{client}", f"c{client}", 10)
    made.send("first", "small", 0.1)
    for index in range(300):
        made.send(f"f{index}", f"k{index % 3}", 0.1, within=1.0)
        if index == 60:
            made.send("s", "small", 5.0)
        made.run(made.now + 0.04)
    assert isinstance(made.sent["s"].answer, decide.Reply)
    assert made.sent["s"].answered - made.sent["s"].arrived <= 7.0
    made.run()
    assert not any(isinstance(one.answer, decide.Fail) for one in made.sent.values())


def test_what_others_were_served_while_keys_came_is_not_owed() -> None:
    """Keys that come after 5 s do not give their client the next 5 s."""
    made = world(disk_rate=1e9, host_rate=1e9, seconds=1000.0)
    made.send("first", "small", 0.1)
    made.run(1.0)
    made.keys("large", "new", 2_500_000_000)
    for index in range(150):
        made.send(f"f{index}", "flood", 0.1)
        made.send(f"n{index}", "large", 0.1)
    for index in range(30):
        made.at(0.4 * index + 1.0, lambda i=index: made.send(f"s{i}", "small", 0.1))  # type: ignore[misc]
    made.run(6.0)
    assert rate(made, "new") == 0
    made.run(13.5)
    assert np.percentile(latencies(made, "small"), 95) <= 3 * 0.1 + 1e-9
    assert rate(made, "new") > 2.0


def test_the_disk_keeps_what_is_used() -> None:
    made = World(Limits(disk_bytes=300))
    made.program("p")
    made.worker("gpu0")
    for name in "abc":
        assert made.keys(name, name, 100)
    for name in "ab":
        made.send(name, name, 1.0)
    assert made.keys("d", "d", 100)  # in the place of c
    assert made.disk == {"a", "b", "d"}
    assert made.keys("e", "e", 100)  # in the place of d
    assert not made.keys("f", "f", 200)  # a and b are in use
    made.run()
    assert made.keys("f", "f", 200)
    assert not made.keys("g", "g", 301)


def test_deleted_keys_leave_at_once_and_their_requests_are_answered() -> None:
    made = world()
    for index in range(3):
        made.send(f"f{index}", "flood", 1.0)
    made.send("late", "flood", 1.0, body=float("inf"))
    made.run(0.5)
    made.tell(events.KeysDeleted("flood"))
    assert [reason(made.sent[name]) for name in ("f0", "f1", "f2", "late")] == ["keys"] * 4
    assert "flood" not in made.disk
    made.run()  # the batch is stopped, and its keys leave the device
    assert not made.machines["gpu0"].keys and not made.hosts["here"]
    assert reason(made.send("again", "flood", 1.0)) == "keys"
    made.keys("flood", "flood", 100)
    made.send("anew", "flood", 1.0)
    made.run()
    assert isinstance(made.sent["anew"].answer, decide.Reply)


def test_refusals_say_why_and_when() -> None:
    made = World(Limits(seconds=10.0, nbytes=1000, requests=50))
    made.program("p")
    made.keys("a", "ann", 100)
    made.keys("b", "bob", 100)
    assert reason(made.send("0", "a", 1.0)) == "no_worker"
    made.worker("gpu0", capacity=500)
    assert reason(made.send("1", "none", 1.0)) == "keys"
    assert reason(made.send("2", "a", 1.0, client="bob")) == "keys"
    made.keys("huge", "ann", 501)
    assert reason(made.send("3", "huge", 1.0)) == "keys"
    assert reason(made.send("4", "a", 11.0)) == "too_large"
    assert reason(made.send("5", "a", 1.0, nbytes=1001)) == "too_large"
    never = made.send("6", "a", 1.0, within=0.9).answer
    assert isinstance(never, decide.Refuse) and never.reason == "deadline"
    assert never.retry_after is None
    for index in range(20):
        made.send(f"a{index}", "a", 1.0)
    found = [one for one in made.sent.values() if one.name.startswith("a")]
    admitted = [one for one in found if not isinstance(one.answer, decide.Refuse)]
    assert len(admitted) == 5 and reason(found[-1]) == "client"  # half of what there is
    made.run(0.1)
    late = made.send("7", "b", 1.0, within=1.5).answer
    assert isinstance(late, decide.Refuse) and late.reason == "deadline" and late.retry_after
    made.run(made.now + late.retry_after)
    assert made.send("8", "b", 1.0, within=1.5).state != "answered"
    assert reason(made.send("9", "b", 9.0)) == "full"
    made.tell(events.Draining())
    assert reason(made.send("10", "b", 1.0)) == "draining"
    made.run()
    assert isinstance(made.sent["8"].answer, decide.Reply)
    assert not made.policy.pending


def test_after_the_time_to_retry_the_same_is_admitted() -> None:
    made = world(seconds=5.0)
    index = 0
    while made.send(f"f{index}", "flood", 0.1).state != "answered":
        index += 1
    refusal = made.sent[f"f{index}"].answer
    assert isinstance(refusal, decide.Refuse) and refusal.retry_after
    made.run(made.now + refusal.retry_after + 0.1)
    assert made.send("again", "flood", 0.1).state != "answered"


def test_bodies_that_do_not_come_give_back_what_they_reserved() -> None:
    made = world(seconds=2.0, body=3.0)
    sent = made.send("f", "flood", 2.0, body=float("inf"))
    assert reason(made.send("s", "small", 0.1)) == "full"
    made.run(4.0)
    assert reason(sent) == "body" and sent.answered == pytest.approx(3.0)
    assert made.send("t", "small", 0.1).state != "answered"


def test_what_crosses_a_decision_has_no_effect() -> None:
    policy = Policy()
    for event in (
        events.Finished("gone", 1),
        events.WorkerDied("gone"),
        events.KeysLoaded("gone", "k"),
        events.KeysFailed("gone", "k"),
        events.KeysLeft("gone", "k"),
        events.KeysDeleted("k"),
        events.Received("r"),
        events.Cancelled("r"),
        events.Tick(),
    ):
        assert policy.handle(event, 0.0) == []
    assert policy.wake is None


def test_wrong_calls_are_refused() -> None:
    made = world()
    made.send("a", "small", 1.0)
    worker = events.WorkerStarted("gpu0", "here", 1, frozenset())
    for event, says in (
        (events.Arrived("a", "small", "p", "small", 1.0, 1), "its own name"),
        (events.Arrived("b", "small", "q", "small", 1.0, 1), "ProgramAdded"),
        (events.Arrived("b", "small", "p", "small", 0.0, 1), "seconds is 0"),
        (events.Arrived("b", "small", "p", "small", float("nan"), 1), "seconds is nan"),
        (events.Arrived("b", "small", "p", "small", 1.0, -1), "nbytes is -1"),
        (events.Arrived("b", "small", "p", "small", 1.0, 1, float("inf")), "no time"),
        (events.Arrived("b", "small", "p", "small", 1.0, 1, None, 0.0), "weight is 0"),
        (events.ProgramAdded("r", 0), "max_batch is 0"),
        (events.ProgramAdded("r", 1, 1.5), "marginal is 1.5"),
        (worker, "gpu0 lives"),
        (events.WorkerStarted("new", "here", 1, frozenset({"q"})), "ProgramAdded"),
        (events.KeysOffered("small", "small", 1), "KeysDeleted first"),
        (events.KeysStored("none"), "KeysOffered first"),
    ):
        with pytest.raises(jali.errors.InvalidArgument, match=says):
            made.policy.handle(event, made.now)
    with pytest.raises(jali.errors.InvalidArgument, match="in their order"):
        made.policy.handle(events.Tick(), -1.0)
    with pytest.raises(jali.errors.InvalidArgument, match="turn is 0"):
        Limits(turn=0)
    with pytest.raises(jali.errors.InvalidArgument, match="stretch is below 1"):
        Limits(stretch=0.5)


def test_a_level_never_holds_more_than_it_has() -> None:
    level = Level(10)
    level.add("a", 6)
    with pytest.raises(jali.errors.InternalError, match="no room"):
        level.add("b", 5)
    assert level.victims(5, lambda key: None) is None
    assert level.victims(5, lambda key: 0) == ["a"]


def test_floods_leave_a_part_for_the_next_client() -> None:
    """n of them have n / (n + 1) of a bound."""
    for clients in (1, 2, 5):
        own = [0] * clients
        while any(excess(have, sum(own), 1, 600) <= 0 for have in own):
            for index, have in enumerate(own):
                own[index] += excess(have, sum(own), 1, 600) <= 0
        assert sum(own) == pytest.approx(600 * clients / (clients + 1), abs=clients + 1)


def test_decisions_do_not_depend_on_hashes() -> None:
    """Of names, which Python changes from process to process."""
    code = (
        "import sys; sys.path.insert(0, 'tests/python')\n"
        "from test_serve_policy_random import random_world\n"
        "for seed in range(8): print(random_world(seed).log)"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
            cwd=__file__.rpartition("tests")[0],
        ).stdout
        for seed in (1, 2)
    ]
    assert found[0] == found[1] and found[0].count("Dispatch") > 50


def test_keys_that_come_just_when_a_device_becomes_free() -> None:
    """A request is promised to be computed with them next. A later one with a later deadline, whose
    keys are there, does not take its place, although the device is free a moment before they come."""
    made = World(Limits(disk_rate=100.0))
    made.program("p")
    made.worker("w", capacity=200)
    made.keys("k", "c", 20)
    made.keys("l", "d", 20)
    made.send("before", "k", 0.01)
    made.run()
    made.send("first", "k", made.limits.load_seconds(20, from_host=False))
    second = made.send("second", "l", 0.1, within=0.35)
    made.send("third", "k", 0.5, within=1.0)
    made.run()
    assert (
        second.deadline is not None
        and isinstance(second.answer, decide.Reply)
        and second.answered <= second.deadline
    )


def test_keys_leave_a_device_that_cannot_compute_what_waits_for_them() -> None:
    """Two devices offer one program each, and each has the keys of the request that the other one
    could compute, without room for both."""
    made = World(Limits())
    made.program("p")
    made.program("q")
    made.worker("w0", capacity=100, programs="p")
    made.worker("w1", capacity=100, programs="q")
    for key, program in (("k0", "p"), ("k1", "q")):
        made.keys(key, f"of {key}", 90)
        made.send(f"first of {key}", key, 0.01, program=program)
    for key, program in (("k0", "q"), ("k1", "p")):
        made.send(f"second of {key}", key, 0.01, program=program)
    made.run()
    assert all(isinstance(one.answer, decide.Reply) for one in made.sent.values())
