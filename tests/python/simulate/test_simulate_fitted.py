"""Traces of TFHE on Strix: recorded programs run there, and bootstrappings take what the closed
form says."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import jali
from jali import tfhe
from jali.simulate import Entity, Kind, Machine, schedule, strix
from jali.simulate import trace as traces
from jali.simulate.fitted import fitted, residue_bytes, set_of
from jali.simulate.lower import lower

ROUNDS, BATCH = 4, 16


def evaluator(params: tfhe.Params) -> tuple[tfhe.Client, tfhe.Evaluator]:
    client = tfhe.Client(params, threads=1)
    server = tfhe.Evaluator(params, client.evaluation_keys(), "cpu", threads=1, trace=True)
    return client, server


def recorded(server: tfhe.Evaluator, body: Callable[[], object]) -> traces.Trace:
    server.trace().clear()
    body()
    return traces.parse(server.trace().json_lines())


@cache
def bootstrappings() -> traces.Trace:
    """ROUNDS look-ups of a batch at the sizes of Strix's set I, none of which needs another."""
    params = tfhe.Params.create(
        n=500,
        k=1,
        N=1024,
        rotation_gadget=(10, 2),
        switch_gadget=(2, 8),
        lwe_noise_bits=16,
        glwe_noise_bits=7,
        message_bits=1,
        torus_bits=32,
        name="insecure_strix_I",
    )
    client, server = evaluator(params)
    x = server.bind(client.encrypt(np.zeros(BATCH, int)))
    return recorded(server, lambda: [server.apply(lambda v: v, x) for _ in range(ROUNDS)])


def test_the_sizes_of_a_trace_are_those_of_the_set() -> None:
    ours, theirs = set_of(bootstrappings().header), strix.published_sets()["I"]
    for name in ("n", "k", "N", "l_b", "l_k"):
        assert getattr(ours, name) == getattr(theirs, name)


def rates(name: str, mode: str) -> tuple[float, float]:
    """Bootstrappings a second of the recorded rounds, but for the first key switch, which nothing
    hides; and of the closed form."""
    machine = Machine.load(name, mode)
    trace = bootstrappings()
    steps = fitted(trace)(machine)
    result = schedule(steps, machine)
    rotated = steps.kind == Kind.ACCUMULATE
    ends = [int(result.end[rotated & (steps.record == r)].max()) for r in range(len(trace))]
    ends = sorted(ends)[-ROUNDS:]
    rounds = (ends[-1] - ends[0]) / (ROUNDS - 1) / float(machine.frequency_hz)
    cores = int(float(machine.parameters["tvlp"]))
    return BATCH / rounds, strix.bootstrap(machine, set_of(trace.header), BATCH // cores).throughput


@pytest.mark.parametrize("name", ["strix", "strix_nofold"])
def test_bootstrappings_of_a_trace_take_what_the_closed_form_says(name: str) -> None:
    simulated, closed = rates(name, "published")
    assert simulated == pytest.approx(closed, rel=0.01)


def test_small_batches_in_the_mode_strict_are_those_of_the_page() -> None:
    """Without folding a trace's iteration ends with the latency of all stages, which the closed
    form hides."""
    page = (Path(__file__).parents[3] / "docs" / "hardware.md").read_text(encoding="utf-8")
    (stated,) = re.findall(
        r"ciphertexts a core: ([\d,]+) against ([\d,]+) a second\).*\(both ([\d,]+)\)", page
    )
    slow, closed, both = (int(text.replace(",", "")) for text in stated)
    assert rates("strix_nofold", "strict") == (
        pytest.approx(slow, abs=0.5),
        pytest.approx(closed, abs=0.5),
    )
    assert rates("strix", "strict") == (pytest.approx(both, abs=1), pytest.approx(both, abs=1))


def test_keys_and_words_have_the_sizes_of_the_machine() -> None:
    machine, trace = Machine.load("strix"), bootstrappings()
    tfhe_set = set_of(trace.header)
    steps = fitted(trace)(machine)
    moved = steps.moved()
    count = sum("bootstrap" in record.op for record in trace.records)
    assert count == ROUNDS
    assert moved[Entity.BOOTSTRAPPING_KEY] == count * tfhe_set.n * strix.key_bytes(
        machine, tfhe_set
    )
    switching = count * strix.switching_key_bytes(machine, tfhe_set)
    assert moved[Entity.SWITCHING_KEY] == pytest.approx(switching, rel=1e-4)  # tiles round up
    assert np.array_equal(steps.mults, fitted(trace)(machine).mults)


def test_words_of_no_machine_are_refused() -> None:
    huge = Machine.load("strix").changed(set={"parameters.key_word_bytes": 1e30})
    with pytest.raises(jali.LimitExceeded, match=r"more than 2\^53 bytes: make the widths"):
        fitted(bootstrappings())(huge)


def test_a_batch_beyond_the_scratchpads_goes_in_epochs() -> None:
    """Half the scratchpad means more epochs, each of which reads the bootstrapping key; the
    arithmetic stays."""
    trace = bootstrappings()
    whole = Machine.load("strix")
    small = whole.changed(set={"memories.local.bytes": 2 * 2 * 1024 * 4})  # one ciphertext a core
    one, two = (fitted(trace)(machine) for machine in (whole, small))
    assert two.moved()[Entity.BOOTSTRAPPING_KEY] == 2 * one.moved()[Entity.BOOTSTRAPPING_KEY]
    assert two.elements() == one.elements()
    assert two.mults.sum() == one.mults.sum()


def test_other_machines_get_the_trace_as_it_is() -> None:
    trace = bootstrappings()
    plain, found = lower(trace), fitted(trace)(Machine.load("h100"))
    assert np.array_equal(plain.bytes, found.bytes) and np.array_equal(plain.kind, found.kind)


def test_gates_and_integers_run_on_strix() -> None:
    machine = Machine.load("strix")
    client, server = evaluator(tfhe.Params.preset("boolean"))
    x, y = (server.bind(client.encrypt(np.array(bits))) for bits in ([True, False], [True, True]))
    made = [recorded(server, lambda: x & y), recorded(server, lambda: server.select(x, y, x))]
    client, server = evaluator(tfhe.Params.preset("message_2_carry_2"))
    a, b = (server.bind(client.encrypt_uint(np.array([v], np.uint64), 8)) for v in (77, 99))
    made.append(recorded(server, lambda: a + b))
    for trace in made:
        result = schedule(fitted(trace)(machine), machine)
        rotations = sum(1 for r in trace.records if "bootstrap" in r.op or r.op == "blind_rotate")
        least = rotations * set_of(trace.header).n * 256 / float(machine.frequency_hz)
        assert rotations and result.seconds > 0
        assert (
            result.seconds >= least / 8
        )  # no fewer cycles than one ciphertext's rotations over all cores


def test_preparing_keys_runs_on_strix() -> None:
    params = tfhe.Params.preset("boolean")
    _, server = evaluator(params)
    trace = traces.parse(server.trace().json_lines())
    steps = fitted(trace)(Machine.load("strix"))
    assert steps.counts()[Kind.EXPAND] and schedule(steps, Machine.load("strix")).span > 0


@pytest.mark.parametrize(
    ("bits", "width", "residue"),
    [
        ((31, 30), 4, 4),
        ((50, 36), 4, 8),
        ((50,), 8, 8),
        ((36, 30), 4.5, 4.5),
        ((40,), 5, 5),
        ((61,), 3, 9),
    ],
)
def test_residues_have_the_words_of_the_machine(
    bits: tuple[int, ...], width: float, residue: float
) -> None:
    """As many words of the machine as the longest prime needs, whatever the engine that recorded
    has. The host's numbers stay."""
    header = traces.Header("ckks", "", "", "", {"prime_bits": bits, "word_bytes": 8})
    machine = Machine.load("mv_set_bc", set={"word_bytes": width})
    assert residue_bytes(machine, header) == residue


def test_a_recorded_trace_moves_the_bytes_of_the_machine() -> None:
    """On the matrix-vector machine 8 bytes a residue; with words of 4 bytes and primes of 61 bits,
    too; with words of 6 bytes, 12."""
    trace = traces.read(Path(__file__).parents[3] / "vectors" / "traces" / "ckks.jsonl")
    plain = lower(trace)
    for width, times in ((8, 1.0), (4, 1.0), (6, 1.5), (9, 1.125)):
        steps = fitted(trace)(Machine.load("mv_set_bc", set={"word_bytes": width}))
        host = plain.entity == Entity.HOST
        assert (steps.bytes[host] == plain.bytes[host]).all() and host.any()
        assert (steps.bytes[~host] == np.ceil(plain.bytes[~host] * times)).all()
        assert (steps.mults == plain.mults).all()
    h100 = fitted(trace)(Machine.load("h100"))  # 4 bytes a word, and two words a residue
    assert (h100.bytes == plain.bytes).all()
