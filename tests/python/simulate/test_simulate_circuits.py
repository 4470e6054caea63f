"""A key switch at three resolutions: the bound of its work, its schedule, and the circuit of
hwmodel/rtl/key_switch.sv."""

import tomllib
from pathlib import Path

import pytest

from jali.simulate import workloads
from jali.simulate.machine import Machine
from jali.simulate.matvec import CkksSet, Product
from jali.simulate.roofline import bounds
from jali.simulate.scheduler import schedule
from jali.simulate.steps import Entity, Steps

ROOT = Path(__file__).resolve().parents[3]
LATENCIES = tomllib.loads((ROOT / "hwmodel" / "latencies.toml").read_text(encoding="utf-8"))


def key_switch(machine: Machine, n: int, primes: int) -> Steps:
    """Algorithm 2 by one group with an element for each prime, as the circuit has them; the
    residues lie on the chip."""
    w = workloads._Matvec(machine, Product(1, 1, CkksSet("", n, primes), 8.0))
    x = [w.b.load(Entity.INPUT, w.bytes, w.operand("x", j), lane=j) for j in range(primes)]
    size = 2 * (primes + 1) * w.bytes
    w.switch(0, [x, x], lambda i: w.b.load(Entity.KEY, size, w.operand("key", i)))
    return w.b.build()


@pytest.mark.parametrize(
    ("c", "n", "primes", "share"),
    [(4, 64, 3, 0.80), (8, 128, 2, 0.80), (16, 4096, 3, 0.80), (16, 16384, 7, 0.85)],
)
def test_bound_schedule_and_circuit(c: int, n: int, primes: int, share: float) -> None:
    """The circuit's cycles are what hwmodel/tests/latencies.py holds it to. It runs all elements in
    step, so that the division of the second part waits for that of the first, one transform; and
    words go into an engine and out of it apart from its passes, up to 4 N/C and turn_overhead in
    each of l + 2 turns. The schedule has neither."""
    changes = {"g": 1, "p": primes + 1, "c": c, "dram_gbs": 1e7}  # keys come at once
    machine = Machine.load("mv_set_bc", set=changes)
    steps = key_switch(machine, n, primes)
    cycles = schedule(steps, machine).span
    engine, turn = LATENCIES["ntt_engine"], LATENCIES["key_switch"]["turn_overhead"]
    beats = n // c
    transform = (n.bit_length() - 1) * (beats + engine["pass_overhead"])
    digits, divisions = 5 * beats + 2 * transform + turn, 4 * beats + 2 * transform + turn
    circuit = beats + primes * digits + 2 * divisions
    assert bounds(steps, machine).cycles <= cycles < circuit
    assert circuit - cycles <= transform + (primes + 2) * (4 * beats + turn)
    assert cycles / circuit == pytest.approx(share, abs=0.006)


def test_what_the_page_says_of_frames() -> None:
    page = (ROOT / "docs" / "hardware.md").read_text(encoding="utf-8")
    assert f"$2N/c + {LATENCIES['ntt_engine']['frame_overhead']}$ cycles beside its passes" in page
