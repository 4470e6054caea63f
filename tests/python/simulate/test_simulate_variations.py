"""The times of changed machines: they are those of a simulation from the start, and progress goes
on while they are found."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from jali.simulate import Entity, Kind, Machine, find, make_report, schedule
from jali.simulate.roofline import bounds
from jali.simulate.steps import Steps, StepsBuilder
from jali.simulate.variations import Variations


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    "text", ["strix:I,iterations=12,ciphertexts=24", "strix:II,iterations=3,cores=1,epochs=2,batch=2"]
)  # fmt: skip
def test_variations_are_those_of_a_run_from_the_start(
    monkeypatch: pytest.MonkeyPatch, exact: bool, text: str
) -> None:
    """Steps and plans that a change leaves as they are must not hide one that it changes."""
    if not exact:
        monkeypatch.setattr("jali.simulate.variations.RUNS", 0)
    machine = Machine.load("strix")
    program = find(text, machine)
    report = make_report(program, machine)
    assert report.exact == exact and report.constants is not None
    known = report.schedule.seconds if exact else report.bounds.seconds
    found = {d.path: d.change for d in report.constants}

    def again(changed: Machine) -> float:
        steps = find(text, machine)(changed)
        return schedule(steps, changed).seconds if exact else bounds(steps, changed).seconds

    for number in machine.constants("calibrated", "assumed"):
        change = again(machine.changed(scale={number.path: 1.1})) / known - 1
        assert found.get(number.path, 0.0) == pytest.approx(change, abs=1e-11), number.path
    assert report.other_mode == ("published", again(machine.in_mode("published")))


def test_another_clock_changes_the_time_and_no_cycle() -> None:
    machine = Machine.load("mv_set_bc")
    program = find("matvec:8x8,set=A,rows=2", machine)
    steps = program(machine)
    varied = Variations(program, schedule(steps, machine), bounds(steps, machine))
    faster = machine.changed(set={"frequency_hz": 360e6, "dram_gbs": 154})
    assert varied.seconds(faster) == pytest.approx(varied.seconds(machine) / 2, rel=1e-12)
    assert varied.seconds(machine.changed(set={"c": 8})) > varied.seconds(machine)


@pytest.mark.parametrize("exact", [True, False])
def test_progress_goes_on_until_all_is_done(monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:
    """It used to stop when the program itself was simulated, with most of the work to come."""
    monkeypatch.setattr("jali.simulate.scheduler.EVERY", 64)
    if not exact:
        monkeypatch.setattr("jali.simulate.variations.RUNS", 0)
    machine = Machine.load("strix")
    program = find("strix:I,iterations=8,ciphertexts=16", machine)
    calls: list[tuple[int, int]] = []
    report = make_report(program, machine, lambda done, all_: calls.append((done, all_)))
    size, runs = len(report.schedule.steps), 1 + Variations.runs_of(program, machine)
    assert runs > 10 and {all_ for _, all_ in calls} == {size * runs}
    done = [call[0] for call in calls]
    assert done == sorted(done) and done[-1] == size * runs
    assert max(b - a for a, b in pairwise([0, *done])) <= size  # never further than one run
    assert len([d for d in done if d < size]) >= size // 64 - 1  # and inside of a run, too
    if exact:
        assert len([d for d in done if d > size]) > 2 * size // 64
    calls.clear()
    make_report(program, machine, lambda done, all_: calls.append((done, all_)), constants=False)
    assert {all_ for _, all_ in calls} == {size}


def chain(b: StepsBuilder, last: int) -> int:
    key = b.load(Entity.KEY, 8, 3, lane=1)
    return b.append(Kind.MAC, 16, 2, after=(key,), streams=(last,), mults=7, record=4)


@pytest.mark.parametrize("times", [0, 1, 5])
def test_repeated_steps_are_those_that_were_written_out(times: int) -> None:
    def built(repeated: bool) -> Steps:
        b = StepsBuilder()
        last = chain(b, b.load(Entity.CIPHERTEXT, 4))
        first = len(b)
        last = chain(b, last)
        if repeated:
            b.repeat(first, times)
        else:
            for _ in range(times):
                last = chain(b, last)
        b.store(Entity.CIPHERTEXT, 4, after=(len(b) - 1,))
        return b.build()

    one, other = built(True), built(False)
    for name, column in vars(one).items():
        assert column.dtype == getattr(other, name).dtype
        assert column.tolist() == getattr(other, name).tolist(), name


def test_a_repetition_beyond_the_limit_is_refused_at_once() -> None:
    b = StepsBuilder()
    chain(b, b.load(Entity.CIPHERTEXT, 4))
    with pytest.raises(Exception, match="more than 10000000 machine steps"):
        b.repeat(1, 5_000_000)
    assert len(b) == 3


PROGRAM = """
import sys
from pathlib import Path
from jali.cli import main
code = main(["simulate", "strix:I,cores=2", "--machine", "strix", "--json"])
status = Path("/proc/self/status").read_text()
print(status.partition("VmHWM:")[2].split()[0], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_memory_of_a_quarter_of_a_million_steps() -> None:
    """A million steps may take 1 GB, and so a quarter of them 256 MB beside the interpreter's own
    150 MB at most."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert '"steps": 243396' in ran.stdout
    assert int(ran.stderr.splitlines()[-1]) < (256 + 150) * 1024
