"""Generated workloads against the papers: Strix's tables by simulation, and the counts of the
matrix-vector paper's equations."""

from __future__ import annotations

import numpy as np
import pytest

import jali
from jali.simulate import Entity, Kind, Machine, StepsBuilder, workloads
from jali.simulate import strix as formulas
from jali.simulate.matvec import Product, partial_sum_s, published_sets
from jali.simulate.roofline import bounds
from jali.simulate.scheduler import Schedule, schedule
from jali.simulate.workloads import matvec, parse, strix

SETS = formulas.published_sets()


def epochs(result: Schedule) -> list[int]:
    """The end of each epoch: of its last store."""
    stores = np.flatnonzero(result.steps.kind == Kind.STORE)
    records = result.steps.record[stores]
    return [int(result.end[stores[records == e]].max()) for e in np.unique(records)]


def rate(machine: Machine, name: str, batch: int | None = None) -> float:
    """Bootstrappings a second of the whole chip in the steady state, by simulation of one core."""
    tfhe = SETS[name]
    batch = formulas.bootstrap(machine, tfhe).batch if batch is None else batch
    cores = int(float(machine.parameters["tvlp"]))
    steps = strix(machine, tfhe, ciphertexts=3 * cores * batch, batch=batch, cores=1)
    ends = epochs(schedule(steps, machine))
    return cores * batch / ((ends[2] - ends[1]) / float(machine.frequency_hz))


@pytest.mark.parametrize(
    ("name", "printed"), [("I", 74_696), ("II", 39_600), ("III", 21_104), ("IV", 2_368)]
)
def test_throughput_of_table_v(name: str, printed: int) -> None:
    machine = Machine.load("strix", "published")
    assert rate(machine, name) == pytest.approx(printed, rel=0.005)


@pytest.mark.parametrize(
    ("tvlp", "clp", "printed"),
    [(16, 2, 2368), (8, 4, 2368), (4, 8, 2364), (2, 16, 1240), (1, 32, 620)],
)
def test_throughput_of_table_vii(tvlp: int, clp: int, printed: int) -> None:
    machine = Machine.load("strix", "published", {"tvlp": tvlp, "clp": clp})
    assert rate(machine, "IV") == pytest.approx(printed, rel=0.005)


def test_throughput_without_folding() -> None:
    assert rate(Machine.load("strix_nofold", "published"), "I") == pytest.approx(37_472, rel=0.005)


@pytest.mark.parametrize(("name", "digits"), [("I", "0.16"), ("II", "0.23"), ("III", "0.44")])
def test_latency_of_table_v(name: str, digits: str) -> None:
    machine = Machine.load("strix", "published")
    result = schedule(strix(machine, SETS[name], cores=1), machine)
    assert f"{result.seconds * 1e3:.2f}" == digits


@pytest.mark.parametrize(
    ("tvlp", "clp", "rate_"), [(8, 4, 2326), (4, 8, 1183), (2, 16, 591), (1, 32, 296)]
)
def test_strict_table_vii_with_buses(tvlp: int, clp: int, rate_: int) -> None:
    """The closed form's figures for all limits, two ciphertexts a core."""
    machine = Machine.load("strix", "strict", {"tvlp": tvlp, "clp": clp})
    assert rate(machine, "IV", 2) == pytest.approx(rate_, rel=0.005)


@pytest.mark.parametrize("mode", ["published", "strict"])
@pytest.mark.parametrize("name", ["I", "IV"])
def test_the_schedule_agrees_with_the_closed_form(mode: str, name: str) -> None:
    """The steady state of epochs is the closed form's period, and no lower bound is above the
    schedule."""
    machine = Machine.load("strix", mode)
    closed = formulas.bootstrap(machine, SETS[name], 2 if mode == "strict" else None)
    steps = strix(machine, SETS[name], ciphertexts=24 * closed.batch, batch=closed.batch, cores=1)
    result = schedule(steps, machine)
    ends = epochs(result)
    period = (ends[2] - ends[1]) / float(machine.frequency_hz)
    assert period == pytest.approx(closed.epoch_s, rel=0.005)
    assert bounds(steps, machine, result.plan).seconds <= result.seconds


@pytest.mark.parametrize("name", ["I", "II", "III"])
def test_one_ciphertext_alone_is_quicker_than_the_closed_form_by_what_is_fetched_before(
    name: str,
) -> None:
    """The closed form streams the switching key after the rotation; the schedule fetches the tiles
    that its buffer holds beside it."""
    machine, tiles = Machine.load("strix", "strict"), 16
    closed = formulas.bootstrap(machine, SETS[name], 1)
    steps = strix(machine, SETS[name], batch=1, cores=1, ciphertexts=8, tiles=tiles)
    room = float(machine.channels["ksk"].buffer_bytes)
    held = int(room // (formulas.switching_key_bytes(machine, SETS[name]) / tiles))
    assert 0 < held < tiles
    expected = closed.latency_s - held / tiles * closed.switch_s
    assert schedule(steps, machine).seconds == pytest.approx(expected, rel=0.02)


def test_cores_do_the_same_at_the_same_times() -> None:
    machine = Machine.load("strix", "published")
    spans = {schedule(strix(machine, SETS["I"], cores=c, iterations=40), machine).span for c in (1, 8)}  # fmt: skip
    # The ciphertexts of eight cores come one after the other through their channels.
    assert max(spans) - min(spans) <= 0.001 * max(spans)


def test_the_rotator_is_half_busy() -> None:
    """Fig. 8, set I: rotator 50%, the other units close to 100%."""
    machine = Machine.load("strix", "published")
    result = schedule(strix(machine, SETS["I"], batch=3, cores=1), machine)
    busy = {s.name: s.busy for s in result.servers if s.sort == "unit" and s.cluster == 0}
    pipelines = {"rotator": 2, "fft": 2, "vma": 4, "ifft": 2}
    share = {name: busy[name] / (count * 3 * 500 * 256) for name, count in pipelines.items()}
    assert share == {"rotator": 0.5, "fft": 1, "vma": 1, "ifft": 1}


@pytest.mark.parametrize(("name", "residues"), [("Set-A", 3), ("Set-B", 7)])
def test_reads_of_equations_7_to_12(name: str, residues: int) -> None:
    """Bytes of loads against the equations. Twiddles are counted as the algorithms have them: 2
    NTTs less and 2 INTTs more (contradiction E6)."""
    machine = Machine.load("mv_set_bc")
    product = Product(64, 64, published_sets()[name])
    steps = matvec(machine, product)
    asked, expected = steps.moved(), product.reads()
    m, size = product.m, product.polynomial
    folds = product.folds
    assert asked[Entity.KEY] == expected["keys"]
    assert asked[Entity.INPUT] == expected["input"]
    assert asked[Entity.PLAINTEXT] == expected["matrix"]
    sums = expected["partial sum"] * (m + folds) / m  # rotations of the sum read theirs, too
    assert asked[Entity.PARTIAL_SUM] == sums
    switch, scale = residues**2 + 2 * residues, 2 * (residues - 1)
    assert asked[Entity.TWIDDLE] == (m * (switch + scale) + folds * switch) * size
    assert m * (switch + scale) * size == expected["NTT twiddles"] - 2 * m * size
    assert asked[Entity.INVERSE_TWIDDLE] == (m * (residues + 4) + folds * (residues + 2)) * size
    assert m * (residues + 4) * size == expected["INTT twiddles"] + 2 * m * size


def test_one_partial_sum_at_a_time_is_bounded_by_the_closed_form() -> None:
    """The balanced bound of a partial sum holds; the special prime, which one PE has beside its
    own, makes it slower."""
    machine, ckks = Machine.load("mv_set_bc"), published_sets()["Set-B"]
    result = schedule(matvec(machine, Product(64, 64, ckks), rows=16), machine)
    least = max(partial_sum_s(machine, ckks).values())
    assert 1 <= result.seconds / 16 / least < 2.5


def test_texts_of_workloads() -> None:
    machine = Machine.load("strix", "published")
    program = parse("strix:I,epochs=2,iterations=3,cores=1,tiles=2", machine)
    assert program is not None
    counts = program(machine).counts()
    assert counts[Kind.ROTATE] == 2 * 3 and counts[Kind.KEYSWITCH_MAC] == 4
    # Every machine gets the same work: 16 ciphertexts, whatever its batch.
    assert program(machine.changed({"tvlp": 4})).counts()[Kind.ROTATE] == 4 * 3
    mv = Machine.load("mv_set_bc")
    rows = parse("matvec:RNNT-FC0,rows=2", mv)
    assert rows is not None and rows(mv).counts()[Kind.NTT] == 2 * 75 + 4 * 63
    assert parse("trace.jsonl", machine) is None and parse("other:1", machine) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strix:V", "no set"),
        ("strix:I,speed=2", "no option"),
        ("strix:I,batch=x", "whole number"),
        ("strix:I,epochs=2,ciphertexts=3", "not both"),
        ("strix:I,batch=41", "batch is 1 to 40"),
        ("strix:I,iterations=501", "iterations"),
        ("matvec:12", "no matrix"),
        ("matvec:8x8,set=D", "Set-D"),
    ],
)
def test_wrong_texts(text: str, message: str) -> None:
    machine = Machine.load("strix", "published")
    with pytest.raises(jali.InvalidArgument, match=message):
        program = parse(text, machine)
        assert program is not None
        program(machine)


def test_programs_that_are_too_long_are_refused_at_once() -> None:
    machine = Machine.load("strix")
    program = parse("strix:I,ciphertexts=1000000", machine)
    assert program is not None
    with pytest.raises(jali.LimitExceeded, match="fewer ciphertexts"):
        program(machine)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("buffers = {", "copies = {", "no parameters.buffers"),
        ("[buses.bsk]", "[buses.other]", "no buses.bsk"),
        ("kinds.VMA = {", "kinds.SAMPLE = {", "units.vma .* does not serve VMA"),
        ("buffers = { value = 2", "buffers = { value = 0", "parameters.buffers is 0"),
        ("plp = { value = 2", "plp = { value = 2.5", "parameters.plp is 2.5|no whole number"),
    ],
)
def test_files_that_lack_a_part_of_strix(old: str, new: str, message: str) -> None:
    text = Machine.load("strix").source
    assert old in text
    with pytest.raises(jali.Error, match=message):
        machine = Machine.parse(text.replace(old, new, 1))
        program = parse("strix:I,batch=1,iterations=2", machine)
        assert program is not None
        program(machine)


def test_wrong_machines() -> None:
    machine = Machine.load("strix")
    program = parse("matvec:8x8", machine)
    assert program is not None
    with pytest.raises(jali.InvalidArgument, match="g and p"):
        program(machine)
    with pytest.raises(jali.Unsupported, match="streaming"):
        parse("strix:I", Machine.load("mv_set_a"))
    with pytest.raises(jali.Unsupported, match="ciphertexts"):
        matvec(Machine.load("mv_set_a"), Product(16, 8192, published_sets()["Set-A"]))


@pytest.mark.parametrize("kind", [Kind.NTT, Kind.INTT, Kind.AUTOMORPHISM])
def test_polynomials_beyond_the_buffers_of_the_network_are_refused(kind: Kind) -> None:
    """BRAMs are counted for n_max coefficients: up to it a step runs, above it none does, whoever
    wrote it."""
    steps = {}
    for n in (8192, 16384):
        b = StepsBuilder()
        b.append(kind, n, 1)
        steps[n] = b.build()
    machine = Machine.load("mv_set_a")
    assert schedule(steps[8192], machine).span > 0
    with pytest.raises(jali.Unsupported, match=r"N is 16384.*mv_set_a have at most 8192 points"):
        schedule(steps[16384], machine)
    with pytest.raises(jali.Unsupported, match=r"at most 1024 points"):
        schedule(steps[8192], machine.changed(set={"n_max": 1024}))
    wider = machine.changed(set={"n_max": 16384})
    assert schedule(steps[16384], wider).span > 0
    assert float(wider.resources["bram"]) == 2 * float(machine.resources["bram"])


def test_steps_are_generated_again_only_if_their_sizes_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What makes the constants of a report cheap: most of them change no step."""
    made = []
    epoch = workloads._Strix.epoch
    monkeypatch.setattr(
        workloads._Strix, "epoch", lambda self, *a: (made.append(1), epoch(self, *a))
    )
    machine = Machine.load("strix")
    program = parse("strix:I,iterations=2,ciphertexts=8,batch=1", machine)
    assert program is not None
    steps = program(machine)
    assert program(machine.changed(set={"hbm_gbs": 600})) is steps and len(made) == 1
    wider = program(machine.changed(set={"key_word_bytes": 16}))
    assert len(made) == 2 and wider.bytes.sum() > steps.bytes.sum()
